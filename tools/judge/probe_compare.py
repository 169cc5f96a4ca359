#!/usr/bin/env python3
"""probe_compare.py ALOFT MSPROBE NPU BENCH: `msprobe compare` and `aloft probe compare` on the same two dump.json,
joined by name, on the figures that both define. Prints what agrees, and every cell that does not; exit 1 where one
does not that is not a listed defect of msprobe (docs/compare.md).

MSPROBE is the program of PyPI's mindstudio-probe 26.2, in an environment that has torch, too.
"""
import collections
import csv
import dataclasses
import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# Words of both, each a set of those that say the same of a cell without a number.
WORDS = ({"", "n/a", "none"}, {"nan"}, {"unsupported"})
# Of tensors of another shape msprobe has none of these.
OF_ELEMENTS = ("Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr", "One Thousandth Err Ratio",
               "Five Thousandths Err Ratio")


@dataclasses.dataclass
class Column:
    """Of one column, in rows that have a partner: how many cells are equal numbers (`same`) and equal words (`words`:
    types, shapes, verdicts, and that there is no number), and (name, ours, theirs) of those that are not equal."""
    same: int = 0
    words: int = 0
    listed: list = dataclasses.field(default_factory=list)
    other: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Joined:
    """Rows by what both programs say of them: joined by both names; of which both say that there is no partner; and
    (name, our partner, their partner) where the partners differ; {name: rows} of those that have several, of either."""
    theirs: int
    ours: int
    joined: list = dataclasses.field(default_factory=list)
    alone: list = dataclasses.field(default_factory=list)
    elsewhere: list = dataclasses.field(default_factory=list)
    multiplied: dict = dataclasses.field(default_factory=dict)
    columns: dict = dataclasses.field(default_factory=dict)


def has_partner(row):
    return row["Bench Name"].strip().lower() not in WORDS[0]


def rows(folder):
    """{name of the first run's record: row}, and the names that have several, of which the last is taken."""
    [path] = Path(folder).glob("*.csv")
    with open(path, newline="", encoding="utf-8-sig") as file:
        all_ = list(csv.DictReader(file))
    counts = collections.Counter(row["NPU Name"] for row in all_ if row["NPU Name"].strip().lower() not in WORDS[0])
    return {row["NPU Name"]: row for row in all_}, {name: count for name, count in counts.items() if count > 1}


def number(text):
    text = text.strip()
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return None


def is_same(ours, theirs):
    a, b = number(ours), number(theirs)
    if a is None or b is None or math.isnan(a) or math.isnan(b):
        x, y = ours.strip().lower(), theirs.strip().lower()
        return x == y or any(x in words and y in words for words in WORDS)
    if math.isinf(a) or math.isinf(b):
        return a == b
    # Ours adds in another order; both print rounded figures.
    return a == b or abs(a - b) <= 1e-6 * max(abs(a), abs(b)) + 1e-11


def has_infinities_of_other_sign(row):
    """Whether an end of the first run's is infinite, and one of the second's is so of the other sign."""
    ends = [{row.get(f"{run} {end}", "").strip().lower() for end in ("max", "min")} for run in ("NPU", "Bench")]
    return any(a in ends[0] and b in ends[1] for a, b in (("inf", "-inf"), ("-inf", "inf")))


def wraps(row, there):
    """Whether their difference of two whole numbers is ours beyond the end of an unsigned type."""
    bits = re.fullmatch(r"torch\.uint(\d+)", row["NPU Dtype"])
    ours, theirs = number(row["MaxAbsErr"]), number(there["MaxAbsErr"])
    return bits is not None and row["NPU Tensor Shape"] == "[]" and ours is not None and \
        theirs == 2 ** int(bits[1]) - ours


def are_both_short(row):
    """Whether both tensors are shorter than what msprobe takes for 0, and one of them is not 0."""
    lengths = [number(row[f"{run} l2norm"]) for run in ("NPU", "Bench")]
    return None not in lengths and max(lengths) <= sys.float_info.epsilon and max(lengths) > 0


def are_numbers(*texts):
    return all(number(text) is not None for text in texts)


def is_listed(column, row, there):
    """Whether docs/compare.md lists that msprobe differs there: of our row and of theirs."""
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
        column == "MaxRelativeErr" and "Cosine" in row and row["MaxRelativeErr"] == "inf" or \
        column in ("One Thousandth Err Ratio", "Five Thousandths Err Ratio") and \
        row.get("MaxRelativeErr") == "inf" != there["MaxRelativeErr"] and is_smaller(row[column], there[column]) or \
        column in OF_ELEMENTS and row["NPU Tensor Shape"] != row["Bench Tensor Shape"] or \
        column in OF_ELEMENTS and row[column] == "N/A" and has_infinities_of_other_sign(row) or \
        column == "MaxAbsErr" and wraps(row, there) or \
        column == "Cosine" and there["Cosine"] == "1.0" and are_both_short(row)


def is_smaller(ours, theirs):
    """A share here that is below theirs, which leaves elements out whose partner is 0."""
    a, b = number(ours), number(theirs)
    return a is not None and b is not None and a < b


def compared(aloft, msprobe, npu, bench):
    """What both say of the two dumps: a Joined."""
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
        for command in ([aloft, "probe", "compare", npu, bench, "-o", ours],
                        [msprobe, "compare", "-tp", npu, "-gp", bench, "-o", theirs]):
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{' '.join(map(str, command[:3]))} ends with {done.returncode}:\n{done.stderr[-2000:]}")
        (ours, our_multiples), (theirs, their_multiples) = rows(ours), rows(theirs)
    found = Joined(len(theirs), len(ours), multiplied={
        **{f"{name} (here)": count for name, count in our_multiples.items()},
        **{f"{name} (there)": count for name, count in their_multiples.items()}})
    found.columns = {c: Column() for c in next(iter(theirs.values())) if c in next(iter(ours.values())) and
                     c not in ("NPU_Stack_Info", "Data_name")}
    for name in (name for name in theirs if name in ours):
        here, there = ours[name], theirs[name]
        if not has_partner(here) and not has_partner(there):
            found.alone.append(name)
        elif here["Bench Name"] != there["Bench Name"]:
            found.elsewhere.append((name, here["Bench Name"], there["Bench Name"]))
        else:
            found.joined.append(name)
    for name in found.joined:
        for column, counts in found.columns.items():
            a, b = ours[name][column], theirs[name][column]
            if is_same(a, b):
                counts.same += are_numbers(a, b)
                counts.words += not are_numbers(a, b)
            elif is_listed(column, ours[name], theirs[name]):
                counts.listed.append((name, a, b))
            else:
                counts.other.append((name, a, b))
    return found


def main(aloft, msprobe, npu, bench):
    found = compared(aloft, msprobe, npu, bench)
    print(f"{found.theirs} rows of msprobe, {found.ours} of ours: {len(found.joined)} have the same partner in both, "
          f"{len(found.alone)} none in both, {len(found.elsewhere)} another one")
    for name, here, there in found.elsewhere[:5]:
        print(f"    {name}: {here} here, {there} there")
    for name, count in found.multiplied.items():
        print(f"    {name}: {count} rows")
    for column, counts in found.columns.items():
        print(f"{column:28} {counts.same:6} numbers equal {counts.words:6} words equal {len(counts.listed):6} listed "
              f"{len(counts.other):6} not")
        for name, a, b in counts.other[:5]:
            print(f"    {name}: {a} here, {b} there")
    # A partner that msprobe finds, and ours is another one: to be looked at. (Ours finds more of them by structure.)
    is_wrong = any(there.strip().lower() not in WORDS[0] for _, _, there in found.elsewhere)
    return 1 if is_wrong or found.multiplied or any(counts.other for counts in found.columns.values()) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
