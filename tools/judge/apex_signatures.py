#!/usr/bin/env python3
"""The arguments that calls of apex's amp and its optimizers take, and what its levels set, read from its sources: what
the page for its users must explain. NVIDIA publishes no package, so that this is no family of generate.py. Those of
optimizers of the fork for Ascend are torch_npu's: torch_npu_signatures.py.

  apex_signatures.py APEX ASCEND            writes tests/fixtures/apex_signatures.json
  apex_signatures.py APEX ASCEND --check    compares instead; exit 1 where it differs

APEX is a folder with apex/amp, apex/optimizers and apex/parallel/LARC.py in it: a checkout of github.com/NVIDIA/apex
(the last with amp is before its removal, commit cb65b8ed), or an unpacked wheel of it. ASCEND is a checkout of the fork
for Ascend, whose README.zh.md says the signatures that its patch comes to. Sources are parsed, not run. The fixture's
"files" say of each file that was read the hash that git has for what is in it: in a clone of apex
`git log --all --find-object=HASH` names the commits.

The fixture as it lies there was made from the whole files in a wheel that somebody built of apex in October 2023 and
put on PyPI:

  pip download apex-personal==0.1 --no-deps --only-binary :all: --python-version 3.10 --abi cp310 \
      --platform manylinux2014_x86_64

and, of the fork's README.zh.md, from the two lines with the signatures of initialize and scale_loss.
"""
import argparse
import ast
import hashlib
import json
import pathlib
import sys

FIXTURE = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "apex_signatures.json"
LARC = "parallel/LARC.py"  # the one rule that stands beside apex/optimizers


def arguments(function):
    given = function.args
    return [a.arg for a in given.posonlyargs + given.args + given.kwonlyargs if a.arg not in ("self", "params")]


def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8")).body


def public(package):
    """What the __init__.py of a package gives: pairs of a file in it and a name."""
    found = []
    for node in parsed(package / "__init__.py"):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            found += [(node.module + ".py", a.name) for a in node.names if not a.name.startswith("_")]
    return found


def calls(amp):
    found = {}
    for file, name in public(amp):
        function = next(n for n in parsed(amp / file) if isinstance(n, ast.FunctionDef) and n.name == name)
        found["apex.amp." + name] = arguments(function)
    return found


def optimizers(apex):
    """Of each class what its __init__ takes."""
    found = {}
    for file, name in [("optimizers/" + file, name) for file, name in public(apex / "optimizers")] + [(LARC, "LARC")]:
        of = next(n for n in parsed(apex / file) if isinstance(n, ast.ClassDef) and n.name == name)
        init = next(n for n in of.body if isinstance(n, ast.FunctionDef) and n.name == "__init__")
        found[f"apex.{file.split('/')[0]}.{name}"] = arguments(init)
    return found


def levels(amp):
    """What the classes O0 .. O3 assign to properties."""
    found = {}
    for node in parsed(amp / "frontend.py"):
        if not (isinstance(node, ast.ClassDef) and node.name in ("O0", "O1", "O2", "O3")):
            continue
        values = {}
        for line in ast.walk(node):
            if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Attribute):
                value = line.value
                values[line.targets[0].attr] = value.value if isinstance(value, ast.Constant) else ast.unparse(value)
        found[node.name] = {k: v for k, v in values.items() if k not in ("enabled", "opt_level")}
    return dict(sorted(found.items()))


def calls_of_fork(readme):
    """Of its lines "> apex.amp.NAME(arguments)"."""
    found = {}
    for line in readme.read_text().splitlines():
        text = line.lstrip("> ").strip()
        if line.startswith(">") and text.startswith("apex.amp."):
            name, rest = text.split("(", 1)
            function = ast.parse(f"def f({rest}: pass").body[0]
            found["Ascend " + name] = arguments(function)
    return found


def files(apex):
    """What is read of apex's folder."""
    of = {f"{package}/{file}" for package in ("amp", "optimizers") for file, _ in public(apex / package)}
    return sorted(of) + [LARC]


def hashes(apex):
    """Of each file the hash that git has for what is in it."""
    def of(text):
        return hashlib.sha1(b"blob %d\0" % len(text) + text).hexdigest()
    return {"apex/" + file: of((apex / "apex" / file).read_bytes()) for file in files(apex / "apex")}


def package(apex):
    """Name and version where the folder is an unpacked wheel."""
    found = [folder.name.removesuffix(".dist-info") for folder in apex.glob("*apex*.dist-info")]
    return {"package": found[0]} if found else {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("apex", type=pathlib.Path)
    parser.add_argument("ascend", type=pathlib.Path)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args()
    amp = options.apex / "apex" / "amp"
    content = {"calls": calls(amp) | calls_of_fork(options.ascend / "README.zh.md"),
               "optimizers": optimizers(options.apex / "apex"), "levels": levels(amp)}
    if options.check:
        known = json.loads(FIXTURE.read_text()) if FIXTURE.exists() else {}
        same = {key: value for key, value in known.items() if key not in ("package", "files")} == content
        print("same" if same else f"{FIXTURE} differs")
        return 0 if same else 1
    text = json.dumps(package(options.apex) | {"files": hashes(options.apex)} | content, indent=1) + "\n"
    FIXTURE.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
