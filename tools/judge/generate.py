#!/usr/bin/env python3
"""Makes the committed fixtures with PyTorch and transformers, or checks them against a fresh run.

  generate.py                    writes tests/fixtures
  generate.py --check            regenerates in memory and compares; exit 1 where they differ
  generate.py --only ops gpt2    some families only

Everything is seeded. A check on another processor or another PyTorch compares inputs exactly,
float64 results within 1e-10 and float32 results within 2e-6 (largest difference over largest
magnitude); measured errors of PyTorch itself only have to stay small, in low types within 4 times.
"""
import argparse
import importlib
import json
import math
import pathlib
import re
import sys

import numpy as np
import safetensors
import torch
from safetensors.numpy import load_file, save

import measure
from families import Tensors

FAMILIES = ("amp_examples", "apex_losses", "beams", "chat_templates", "checkpoints", "decoders", "encoders", "gpt2",
            "jsonl", "optimizers", "optimizer_papers", "optimizer_rules", "ops", "points", "resnet", "scaler",
            "schedules", "signatures", "text_lengths", "tokenizer")
FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures"
TOLERANCE = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 2e-6}


def to_text(content):
    if isinstance(content, str):
        return content
    # One line a case keeps the files readable and their diffs small.
    if isinstance(content, dict) and isinstance(content.get("cases"), list):
        head = {k: v for k, v in content.items() if k != "cases"}
        lines = ",\n".join("  " + json.dumps(c) for c in content["cases"])
        start = json.dumps(head)[:-1] + (", " if head else "")
        return f'{start}"cases": [\n{lines}\n]}}\n'
    return json.dumps(content, indent=None if len(content) > 64 else 1) + "\n"


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, Tensors):
        arrays = {n: np.ascontiguousarray(v) if v.ndim else v for n, v in content.arrays.items()}
        path.write_bytes(save(arrays, content.metadata))
    else:
        path.write_text(to_text(content), encoding="utf-8", newline="\n")


def compare_json(have, want, where=""):
    if where.endswith(".torch_fp32_error"):
        same = have.keys() == want.keys() and all(0 <= v < 1e-4 for v in want.values())
        return [] if same else [f"{where}: not the judge's own small errors"]
    if re.search(r"\.torch_(losses|weights)_error$", where) and have is not None and want is not None:
        few = 1e-6  # of a float32 run, whatever they are
        return [] if have / 4 - few <= want <= 4 * have + few else [f"{where}: not within 4 times of what it was"]
    if re.search(r"\.torch_\w+16_(norm|element)_error$", where):
        # The loss is a mean of errors of either sign, and may meet 0.
        apart = [n for n in have.keys() | want.keys() if n != "loss" and not (
            n in have and n in want and have[n] / 4 <= want[n] <= 4 * have[n])]
        return [f"{where}.{n}: not within 4 times of what it was" for n in sorted(apart)]
    if isinstance(want, dict) and isinstance(have, dict):
        keys = (have.keys() ^ want.keys()) - {"transformers_version"}
        out = [f"{where}.{k}: only on one side" for k in sorted(keys)]
        for k in have.keys() & want.keys() - {"transformers_version"}:
            out += compare_json(have[k], want[k], f"{where}.{k}")
        return out
    if isinstance(want, (list, tuple)) and isinstance(have, list):
        if len(have) != len(want):
            return [f"{where}: {len(have)} entries, fresh run {len(want)}"]
        return [p for i, (h, w) in enumerate(zip(have, want))
                for p in compare_json(h, w, f"{where}[{i}]")]
    if isinstance(want, float) and isinstance(have, float):
        return [] if math.isclose(have, want, rel_tol=2e-6) else [f"{where}: {have} is now {want}"]
    return [] if have == want else [f"{where}: {have!r} is now {want!r}"]


def without_equal_points(a, b):
    """Both with zeros where both are the same infinity or NaN."""
    same = ~np.isfinite(a) & ((a == b) | (np.isnan(a) & np.isnan(b)))
    return np.where(same, 0, a), np.where(same, 0, b)


def compare_tensors(path, content):
    have, want = load_file(path), content.arrays
    out = [f"{n}: only on one side" for n in sorted(have.keys() ^ want.keys())]
    with safetensors.safe_open(path, "np") as f:
        if (f.metadata() or None) != content.metadata:
            out.append(f"metadata {f.metadata()} is now {content.metadata}")
    for n in sorted(have.keys() & want.keys()):
        h, w = have[n], np.asarray(want[n])
        if h.dtype != w.dtype or h.shape != w.shape:
            out.append(f"{n}: {h.dtype}{h.shape} is now {w.dtype}{w.shape}")
        elif (limit := TOLERANCE.get(h.dtype)) is None or "/in." in n or "/dy." in n:
            if not np.array_equal(h, w, equal_nan=w.dtype.kind == "f"):
                out.append(f"{n}: differs")
        elif (e := measure.error(*without_equal_points(w, h))) > limit:
            out.append(f"{n}: off by {e:.2e}")
    return out


def compare(path, content):
    if not path.exists():
        return ["missing"]
    if isinstance(content, Tensors):
        return compare_tensors(path, content)
    text = path.read_text(encoding="utf-8")
    if isinstance(content, str):
        return [] if text == content else ["text differs"]
    return compare_json(json.loads(text), json.loads(json.dumps(content)))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("--only", nargs="+", choices=FAMILIES, default=FAMILIES)
    options = parser.parse_args()
    torch.set_num_threads(1)  # one order of summation on every machine
    bad = total = 0
    for family in options.only:
        for name, content in importlib.import_module(f"families.{family}").build().items():
            path = FIXTURES / name
            if options.check:
                problems = compare(path, content)
                print(f"{'differs' if problems else 'same':8} {name}")
                for p in problems[:10]:
                    print(f"         {p}")
                bad += bool(problems)
            else:
                write(path, content)
                print(f"{path.stat().st_size:9,} {name}")
            total += path.stat().st_size if path.exists() else 0
    if not options.check:
        write(FIXTURES / "made_with.json", measure.versions())
    elif (made := json.loads((FIXTURES / "made_with.json").read_text())) != measure.versions():
        print(f"note: made with {made}, checked with {measure.versions()}")
    print(f"{total:9,} bytes altogether")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
