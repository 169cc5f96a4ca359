#!/usr/bin/env python3
"""The arguments that calls of apex's amp and its optimizers take, and what its levels set, read from its sources: what
the page for its users must explain. No package that can be installed has them, so that this is no family of
generate.py. Those of optimizers of the fork for Ascend are torch_npu's: torch_npu_signatures.py.

  apex_signatures.py APEX ASCEND            writes tests/fixtures/apex_signatures.json
  apex_signatures.py APEX ASCEND --check    compares instead; exit 1 where it differs

APEX is a checkout of github.com/NVIDIA/apex with apex/amp in it (the last is before its removal, commit cb65b8ed), and
apex/optimizers and apex/parallel/LARC.py; ASCEND one of the fork for Ascend, whose README.zh.md says the signatures
that its patch comes to. Sources are parsed, not run. The fixture's "commits" say of each file which commit it was read
at: the newest that changed it there.

The fixture as it lies there was made from excerpts of apex's files in the folders of a checkout: the signatures of
these functions and classes and what the levels assign, with all other bodies left out. Its "commits" are those of the
whole files that it was compared with by eye. All is equal but for two arguments that these versions do not have yet:
FusedAdam's `master_weights` (`use_master` there) and FusedSGD's `set_grad_none`; and of frontend.py `initialize` and
the levels were read at 04667139, `state_dict` and `load_state_dict` at the commit that is named. With both checkouts at
hand, `--check` does the comparison: it says "same", or that the fixture differs; then run it without `--check`, see
what changed (`git diff tests/fixtures`), and mend docs/from-apex.md until tests/conventions/test_from_apex.py passes.
"""
import argparse
import ast
import json
import pathlib
import subprocess
import sys

FIXTURE = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "apex_signatures.json"
CALLS = {
    "frontend.py": ["initialize", "state_dict", "load_state_dict"],
    "handle.py": ["scale_loss", "disable_casts"],
    "amp.py": ["half_function", "float_function", "promote_function", "register_half_function",
               "register_float_function", "register_promote_function"],
    "_amp_state.py": ["master_params"],
}
OPTIMIZERS = {
    "optimizers/fused_adam.py": "FusedAdam",
    "optimizers/fused_sgd.py": "FusedSGD",
    "optimizers/fused_lamb.py": "FusedLAMB",
    "optimizers/fused_mixed_precision_lamb.py": "FusedMixedPrecisionLamb",
    "optimizers/fused_novograd.py": "FusedNovoGrad",
    "optimizers/fused_adagrad.py": "FusedAdagrad",
    "parallel/LARC.py": "LARC",
}


def arguments(function):
    given = function.args
    return [a.arg for a in given.posonlyargs + given.args + given.kwonlyargs if a.arg not in ("self", "params")]


def calls(amp):
    found = {}
    for file, names in CALLS.items():
        functions = {n.name: n for n in ast.parse((amp / file).read_text()).body if isinstance(n, ast.FunctionDef)}
        for name in names:
            found["apex.amp." + name] = arguments(functions[name])
    return found


def optimizers(apex):
    """Of each class what its __init__ takes."""
    found = {}
    for file, name in OPTIMIZERS.items():
        classes = {n.name: n for n in ast.parse((apex / file).read_text()).body if isinstance(n, ast.ClassDef)}
        init = next(n for n in classes[name].body if isinstance(n, ast.FunctionDef) and n.name == "__init__")
        found[f"apex.{file.split('/')[0]}.{name}"] = arguments(init)
    return found


def levels(amp):
    """What the classes O0 .. O3 assign to properties."""
    found = {}
    for node in ast.parse((amp / "frontend.py").read_text()).body:
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


def files():
    """What is read of apex's checkout."""
    return ["amp/" + file for file in CALLS] + list(OPTIMIZERS)


def commits(apex):
    """Of each file the newest commit that changed it."""
    def newest(file):
        return subprocess.run(["git", "log", "-1", "--format=%h", "--abbrev=8", "--", "apex/" + file], cwd=apex,
                              check=True, capture_output=True, text=True).stdout.strip()
    return {"apex/" + file: newest(file) for file in files()}


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
        same = {key: value for key, value in known.items() if key != "commits"} == content
        print("same" if same else f"{FIXTURE} differs")
        return 0 if same else 1
    text = json.dumps({"commits": commits(options.apex)} | content, indent=1) + "\n"
    FIXTURE.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
