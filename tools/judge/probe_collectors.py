#!/usr/bin/env python3
"""probe_collectors.py: one training step of a small GPT-2 beside a module of complex numbers and an encoder, dumped by
msprobe's PrecisionDebugger and by aloft_probe, in one process; the entries and figures of both, joined by name. Prints
what agrees, and what does not; exit 1 where a figure that both have does not. Run by a Python that has torch,
safetensors and PyPI's mindstudio-probe 26.2.
"""
import collections
import json
import math
import sys
import tempfile
from pathlib import Path

import torch
from msprobe.pytorch import PrecisionDebugger

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "planted"), str(ROOT / "python" / "aloft_probe")]
sys.dont_write_bytecode = True
from aloft_probe import Probe  # noqa: E402
from make_dumps import made_model  # noqa: E402

FIGURES = ("Max", "Min", "Mean", "Norm")


def dumped(folder):
    [path] = Path(folder).rglob("dump.json")
    return json.loads(path.read_text())["data"]


class Turn(torch.nn.Module):
    def forward(self, pairs):
        return torch.view_as_complex(pairs) * torch.polar(torch.ones(4), torch.arange(4.0))


class Draws(torch.nn.Module):
    """The encoder of a VAE: it gives what it has read itself."""
    def __init__(self):
        super().__init__()
        self.mean, self.log = torch.nn.Linear(8, 4), torch.nn.Linear(8, 4)

    def forward(self, x):
        mean, log = self.mean(x), self.log(x)
        return mean + torch.exp(0.5 * log) * 0.3, mean, log


class Both(torch.nn.Module):
    """A GPT-2, pairs of numbers that are turned as complex ones, and an encoder."""
    def __init__(self):
        super().__init__()
        self.gpt2, self.data = made_model("gpt2-tiny")
        torch.manual_seed(1)
        self.up, self.turn, self.pairs = torch.nn.Linear(8, 8), Turn(), torch.randn(3, 8)
        self.draws = Draws()

    def loss(self):
        turned = torch.view_as_real(self.turn(self.up(self.pairs).unflatten(-1, (4, 2))))
        drawn, mean, log = self.draws(self.pairs)
        far = 1 + log - mean.square() - log.exp()
        return self.gpt2.loss(*self.data) + turned.square().sum() + drawn.square().sum() - 0.5 * far.mean()


def theirs(folder):
    config = Path(folder) / "config.json"
    config.write_text(json.dumps({"task": "statistics", "dump_path": folder, "rank": [], "step": [], "level": "L0",
                                  "async_dump": False, "statistics": {"scope": [], "list": [], "data_mode": ["all"],
                                                                      "summary_mode": "statistics"}}))
    model = Both()
    debugger = PrecisionDebugger(config_path=str(config))
    debugger.start(model=model)
    model.loss().backward()
    debugger.stop()
    debugger.step()
    return dumped(folder)


def ours(folder):
    model = Both()
    with Probe(model, folder).step():
        model.loss().backward()
    return dumped(folder)


def records(value, name=""):
    """{name: record} of all tensors of an entry."""
    if isinstance(value, dict) and value.get("type") == "torch.Tensor":
        return {name: value}
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return {key: record for own, part in parts for key, record in records(part, f"{name}.{own}").items()}


def is_same(a, b):
    if a is None or b is None or isinstance(a, str) or isinstance(b, str):
        return str(a).lower() == str(b).lower()
    return math.isclose(a, b, rel_tol=2e-5, abs_tol=1e-7)  # theirs are summed in float32


def joined():
    """(tensors of msprobe, tensors of ours, {figure: how many are equal}, [(name, figure, ours, theirs)] of those that
    are not)."""
    with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
        there, here = records(theirs(a)), records(ours(b))
    same, other = collections.Counter(), []
    for name in there.keys() & here.keys():
        for figure in ("dtype", "shape", *FIGURES):
            x, y = here[name].get(figure), there[name].get(figure)
            if y is None and figure == "Norm" and "complex" in here[name]["dtype"]:
                continue  # msprobe has none
            if x == y or figure in FIGURES and is_same(x, y):
                same[figure] += 1
            else:
                other.append((name, figure, x, y))
    return there, here, same, other


def main():
    there, here, same, other = joined()
    print(f"{len(there)} tensors of msprobe, {len(here)} of ours, {len(there.keys() & here.keys())} joined by name")
    print(", ".join(f"{figure} {same[figure]} equal" for figure in ("dtype", "shape", *FIGURES)))
    for name, figure, x, y in other[:20]:
        print(f"    {name} {figure}: {x} here, {y} there")
    for what, names in (("msprobe", set(there) - set(here)), ("ours", set(here) - set(there))):
        print(f"only in {what}: {len(names)}", *sorted(names)[:8])
    return 1 if other else 0


if __name__ == "__main__":
    sys.exit(main())
