#!/usr/bin/env python3
"""The arguments that calls of apex's amp and its optimizers take, and what its levels set, read from its sources: what
the page for its users must explain. No package that can be installed has them, so that this is no family of
generate.py. Those of optimizers of the fork for Ascend are torch_npu's: torch_npu_signatures.py.

  apex_signatures.py APEX ASCEND            writes tests/fixtures/apex_signatures.json
  apex_signatures.py APEX ASCEND --check    compares instead; exit 1 where it differs

APEX is a checkout of github.com/NVIDIA/apex with apex/amp in it (the last is before its removal, commit cb65b8ed), and
apex/optimizers and apex/parallel/LARC.py;
ASCEND one of the fork for Ascend, whose README.zh.md says the signatures that its patch comes to. Sources are parsed,
not run.

The fixture as it lies there was made from excerpts of apex's files in the folders of a checkout: the signatures of
these functions and classes and what the levels assign, with all other bodies left out. It was compared by eye with
whole files of github.com/NVIDIA/apex, at the commits at which they could be read:

  apex/amp/frontend.py        initialize and the levels at 04667139, state_dict and load_state_dict at dec4fdd6
  apex/amp/handle.py          fab319f1
  apex/amp/amp.py             02ba8ee5
  apex/amp/_amp_state.py      03d70c41
  apex/optimizers             fused_adam.py 004da4ed, fused_sgd.py b9e5d37d, fused_lamb.py 16fadfe7,
                              fused_mixed_precision_lamb.py 25aa4e03, fused_novograd.py 007c5947,
                              fused_adagrad.py 05cec60c
  apex/parallel/LARC.py       0bfb8300

All is equal but for two arguments that these versions do not have yet: FusedAdam's `master_weights` (`use_master` at
004da4ed) and FusedSGD's `set_grad_none`. With both checkouts at hand, `--check` does the comparison: it says "same", or
that the fixture differs; then run it without `--check`, see what changed (`git diff tests/fixtures`), and mend
docs/from-apex.md until tests/conventions/test_from_apex.py passes.
"""
import argparse
import ast
import json
import pathlib
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("apex", type=pathlib.Path)
    parser.add_argument("ascend", type=pathlib.Path)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args()
    amp = options.apex / "apex" / "amp"
    content = {"calls": calls(amp) | calls_of_fork(options.ascend / "README.zh.md"),
               "optimizers": optimizers(options.apex / "apex"), "levels": levels(amp)}
    text = json.dumps(content, indent=1) + "\n"
    if options.check:
        same = FIXTURE.exists() and FIXTURE.read_text() == text
        print("same" if same else f"{FIXTURE} differs")
        return 0 if same else 1
    FIXTURE.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
