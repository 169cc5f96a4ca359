#!/usr/bin/env python3
"""probe_compare.py ALOFT MSPROBE NPU BENCH: `msprobe compare` and `aloft probe compare` on the same two dump.json,
joined by name, on the figures that both define. Prints what agrees, and every cell that does not; exit 1 where one
does not that is not a listed defect of msprobe (docs/compare.md).

MSPROBE is the program of PyPI's mindstudio-probe 26.2, in an environment that has torch, too.
"""
import csv
import dataclasses
import math
import subprocess
import sys
import tempfile
from pathlib import Path

# Words of both for what is no number.
NOTHING = {"", "N/A", "None", "nan", "Nan", "unsupported"}
# Of tensors of another shape msprobe has none of these.
OF_ELEMENTS = ("Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr", "One Thousandth Err Ratio",
               "Five Thousandths Err Ratio")


@dataclasses.dataclass
class Column:
    """Of one column: how many cells are equal, and (name, ours, theirs) of those that are not."""
    same: int = 0
    listed: list = dataclasses.field(default_factory=list)
    other: list = dataclasses.field(default_factory=list)


def rows(folder):
    """{name of the first run's record: row}."""
    [path] = Path(folder).glob("*.csv")
    with open(path, newline="", encoding="utf-8-sig") as file:
        return {row["NPU Name"]: row for row in csv.DictReader(file)}


def number(text):
    text = text.strip()
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return None


def is_same(ours, theirs):
    a, b = number(ours), number(theirs)
    if a is None or b is None or math.isnan(a) or math.isnan(b):
        return ours.strip().lower() == theirs.strip().lower() or (ours in NOTHING and theirs in NOTHING)
    if math.isinf(a) or math.isinf(b):
        return a == b
    # Ours adds in another order; both print rounded figures.
    return a == b or abs(a - b) <= 1e-6 * max(abs(a), abs(b)) + 1e-11


def is_listed(column, row):
    """Whether docs/compare.md lists that msprobe differs there."""
    verdict = column in ("Result", "Err_message")
    return verdict and "One Thousandth Err Ratio > 0.9" in row["Err_message"] or \
        column in ("EucDist", "One Thousandth Err Ratio", "Five Thousandths Err Ratio") and \
        row["NPU Tensor Shape"] == "[1]" or \
        column in ("NPU MD5", "BENCH MD5") and row[column] == "N/A" or \
        verdict and "N/A" in (row.get("NPU MD5"), row.get("BENCH MD5")) or \
        verdict and "The dtype" in row["Err_message"] and \
        any(word in row["Bench Name"] for word in ("qkv", "gate_up")) or \
        verdict and "There is nan/inf/-inf" in row["Err_message"] and \
        any(row[f"Bench {end}"].strip().lower() in ("nan", "inf", "-inf") for end in ("max", "min")) or \
        column in ("MaxRelativeErr", "One Thousandth Err Ratio", "Five Thousandths Err Ratio") and "Cosine" in row and \
        row["MaxRelativeErr"] == "inf" or \
        column in OF_ELEMENTS and row["NPU Tensor Shape"] != row["Bench Tensor Shape"]


def compared(aloft, msprobe, npu, bench):
    """The figures of both: (rows of msprobe, rows of ours, joined, {column: Column})."""
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
        for command in ([aloft, "probe", "compare", npu, bench, "-o", ours],
                        [msprobe, "compare", "-tp", npu, "-gp", bench, "-o", theirs]):
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{' '.join(map(str, command[:3]))} ends with {done.returncode}:\n{done.stderr[-2000:]}")
        ours, theirs = rows(ours), rows(theirs)
    joined = [name for name in theirs if name in ours and theirs[name]["Bench Name"] == ours[name]["Bench Name"]]
    columns = {c: Column() for c in next(iter(theirs.values())) if c in next(iter(ours.values())) and
               c not in ("NPU_Stack_Info", "Data_name")}
    for name in joined:
        for column, counts in columns.items():
            a, b = ours[name][column], theirs[name][column]
            if is_same(a, b):
                counts.same += 1
            elif is_listed(column, ours[name]):
                counts.listed.append((name, a, b))
            else:
                counts.other.append((name, a, b))
    return len(theirs), len(ours), len(joined), columns


def main(aloft, msprobe, npu, bench):
    theirs, ours, joined, columns = compared(aloft, msprobe, npu, bench)
    print(f"{theirs} rows of msprobe, {ours} of ours, {joined} joined by both names")
    for column, counts in columns.items():
        print(f"{column:28} {counts.same:6} equal {len(counts.listed):6} listed {len(counts.other):6} not")
        for name, a, b in counts.other[:5]:
            print(f"    {name}: {a} here, {b} there")
    return 1 if any(counts.other for counts in columns.values()) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
