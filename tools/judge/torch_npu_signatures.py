#!/usr/bin/env python3
"""The arguments of torch_npu's optimizers and of its GradScaler, read from the sources in its package: what the pages
for its users must explain. Nothing of the package runs, so that it need not be installable here.

  torch_npu_signatures.py FOLDER            writes tests/fixtures/torch_npu.json
  torch_npu_signatures.py FOLDER --check    compares instead; exit 1 where it differs

FOLDER is the package's folder `torch_npu`, as its wheel has it, with the wheel's folder of metadata beside it.
"""
import ast
import re

import package_fixture


def arguments(tree, name):
    """What the class's __init__ takes."""
    of = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name)
    given = next(n for n in of.body if isinstance(n, ast.FunctionDef) and n.name == "__init__").args
    return [a.arg for a in given.posonlyargs + given.args + given.kwonlyargs if a.arg not in ("self", "params")]


def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def optimizers(folder):
    """Those that torch_npu.optim gives, but for what they are derived from."""
    found = {}
    for node in parsed(folder / "__init__.py").body:
        if not isinstance(node, ast.ImportFrom):
            continue
        for name in (alias.name for alias in node.names):
            if name.startswith("NpuFused") and not name.endswith("Base"):
                found["torch_npu.optim." + name] = arguments(parsed(folder / f"{node.module}.py"), name)
    return found


def build(folder):
    metadata = next(folder.parent.glob("torch_npu-*.dist-info")) / "METADATA"
    scaler = arguments(parsed(folder / "npu/amp/grad_scaler.py"), "GradScaler")
    return {"torch_npu": re.search(r"^Version: (.+)$", metadata.read_text(), re.M).group(1),
            "optimizers": optimizers(folder / "optim"), "calls": {"torch_npu.npu.amp.GradScaler": scaler}}


if __name__ == "__main__":
    package_fixture.main("torch_npu", build, __doc__)
