#!/usr/bin/env python3
"""config_check.py ALOFT MSPROBE BENCH.zip CMP.zip: `msprobe config_check` and `aloft probe check-config` on the same
two packs, their workbooks joined by name. Prints a table of what agrees, and every cell that does not; exit 1 where one
does not that is not a listed difference (docs/check-config.md).

MSPROBE is the program of PyPI's mindstudio-probe 26.2; this runs with the Python of its environment, which has pandas.
"""
import dataclasses
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas

# Of each sheet of msprobe: the columns that say which row it is, and those that are figures.
SHEETS = {
    "env": (("bench_env_name", "cmp_env_name"), ("bench_value", "cmp_value", "level")),
    "pip": (("package",), ("bench version", "cmp version", "level")),
    "dataset": (("step", "rank", "tag"), ("equal", "max_relative_diff", "min_relative_diff", "mean_relative_diff",
                                          "norm_relative_diff")),
    "weights": (("step", "rank", "weight_name"), ("equal", "max_relative_diff", "min_relative_diff",
                                                  "mean_relative_diff", "norm_relative_diff")),
    "hyperparameters": (("bench_para", "cmp_para"), ("bench_value", "cmp_value", "level")),
    "random": (("op", "rank", "bench_stack", "cmp_stack"), ("bench_count", "cmp_count", "check_result")),
}


def rows(workbook, sheet):
    """{names: row} of a sheet, all cells as text."""
    if sheet not in workbook:
        return {}
    table = workbook[sheet].fillna("").astype(str)
    return {tuple(row[name] for name in SHEETS[sheet][0]): row for _, row in table.iterrows()}


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def is_same(ours, theirs):
    a, b = number(ours), number(theirs)
    if a is None or b is None:
        return ours.strip().lower() == theirs.strip().lower() or {ours, theirs} <= {"", "None", "nan"}
    return a == b or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)


def last_part(key):
    return key.split(".")[-1].replace("-", "_")


def is_listed(column, ours, theirs, row):
    """Whether docs/check-config.md lists that msprobe differs there."""
    a, b = number(ours), number(theirs)
    if column.endswith("_relative_diff"):
        return a is not None and b is not None and math.isclose(a, -b, rel_tol=1e-9)
    if column == "equal":  # permuted: hashes see it; or rounding, which figures show
        figures = [abs(number(row[c]) or 0) for c in row.index if c.endswith("_relative_diff")]
        return (ours == "False" and not any(figures)) or (ours == "True" and max(figures) <= 1e-5)
    if column == "level" and "cmp_para" in row.index:  # 2e-4 and 0.0002
        a, b = number(row["bench_value"]), number(row["cmp_value"])
        return ours == "pass" and a is not None and a == b
    return False


def without_digits(key):
    return "".join(c for c in last_part(key) if not c.isdigit())


def is_listed_row(names, table):
    """Whether docs/check-config.md lists that msprobe alone has this row of hyper-parameters: of several keys with one
    last part it keeps one, and it knows fewer names of one thing; ours has a pair there, by its name or a synonym, or
    has the numbers of a list one by one. Or it takes names for one that differ in a digit, of which ours has each by
    itself."""
    bench, cmp = names
    if bench == "Only in comparison" or cmp == "Only in benchmark":
        at = 1 if bench == "Only in comparison" else 0
        if any(other[at].startswith(names[at] + "[") for other in table):  # betas[0], betas[1]
            return True
        of_it = {other[1 - at]: row["matched_with"] for other, row in table.items() if other[at] == names[at]}
        return any(not partner.startswith("Only in") and not how.startswith("similarity")
                   for partner, how in of_it.items())
    return last_part(bench) != last_part(cmp) and without_digits(bench) == without_digits(cmp) and \
        (bench, "Only in benchmark") in table and ("Only in comparison", cmp) in table


@dataclasses.dataclass
class Sheet:
    """Of one sheet: rows of msprobe, rows of ours, of both; figures that are equal, and (names, column, ours, theirs) of
    those that are not; names of rows that msprobe alone has."""
    theirs: int = 0
    ours: int = 0
    joined: int = 0
    same: int = 0
    listed: list = dataclasses.field(default_factory=list)
    other: list = dataclasses.field(default_factory=list)
    alone: list = dataclasses.field(default_factory=list)


def sheet_of(name, left, right):
    """What two tables of rows by names say of one another; `left` is msprobe's."""
    counts = Sheet(len(left), len(right))
    for names in left.keys() & right.keys():
        counts.joined += 1
        for column in SHEETS[name][1]:
            a, b = right[names][column], left[names][column]
            if is_same(a, b):
                counts.same += 1
            else:
                (counts.listed if is_listed(column, a, b, left[names]) else counts.other).append((names, column, a, b))
    counts.alone = [names for names in left if names not in right]
    if name == "env":  # what nobody sets is no finding here
        counts.alone = [names for names in counts.alone if not any("has this env" in word for word in names)]
    if name == "hyperparameters":
        lost = [names for names in counts.alone if is_listed_row(names, right)]
        counts.listed += [(names, "the row", "paired otherwise", " / ".join(names)) for names in lost]
        counts.alone = [names for names in counts.alone if names not in lost]
    return counts


def checked(aloft, msprobe, bench, cmp):
    """What both say of two packs: ({sheet: Sheet}, {program: verdicts})."""
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
        for command, right in (([aloft, "probe", "check-config", bench, cmp, "-o", ours], (0, 5)),
                               ([msprobe, "config_check", "-c", bench, cmp, "-o", theirs], (0,))):
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
            if done.returncode not in right:
                sys.exit(f"{' '.join(map(str, command[:3]))} ends with {done.returncode}:\n{done.stderr[-2000:]}")
        ours, theirs = (pandas.read_excel(Path(folder) / "result.xlsx", sheet_name=None, dtype=str)
                        for folder in (ours, theirs))
    sheets = {name: sheet_of(name, rows(theirs, name), rows(ours, name)) for name in SHEETS}
    verdicts = {name: dict(zip(book["summary"]["filename"], book["summary"]["pass_check"]))
                for name, book in (("here", ours), ("msprobe", theirs))}
    return {name: sheet for name, sheet in sheets.items() if sheet.theirs or sheet.ours}, verdicts


def main(aloft, msprobe, bench, cmp):
    sheets, verdicts = checked(aloft, msprobe, bench, cmp)
    print(f"{'sheet':16} {'msprobe':>8} {'here':>6} {'joined':>7} {'equal':>7} {'listed':>7} {'not':>5} {'alone':>6}")
    for name, s in sheets.items():
        print(f"{name:16} {s.theirs:8} {s.ours:6} {s.joined:7} {s.same:7} {len(s.listed):7} {len(s.other):5} "
              f"{len(s.alone):6}")
        for names, column, a, b in s.other:
            print(f"    {' / '.join(names)}: {column} is {a!r} here, {b!r} there")
        for names in s.alone:
            print(f"    {' / '.join(names)}: msprobe alone has it")
    print(f"verdicts here {verdicts['here']}, of msprobe {verdicts['msprobe']}")
    return 1 if any(s.other or s.alone for s in sheets.values()) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
