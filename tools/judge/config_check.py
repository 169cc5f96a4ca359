#!/usr/bin/env python3
"""config_check.py ALOFT MSPROBE BENCH.zip CMP.zip: `msprobe config_check` and `aloft probe check-config` on the same
two packs, their workbooks joined by name. Prints a table of what agrees, and every cell that does not; exit 1 where one
does not that is not a listed difference (docs/check-config.md).

MSPROBE is the program of PyPI's mindstudio-probe 26.2; this runs with the Python of its environment, which has pandas.
"""
import collections
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
    return False


def main(aloft, msprobe, bench, cmp):
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
        done = subprocess.run([aloft, "probe", "check-config", bench, cmp, "-o", ours], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
        if done.returncode not in (0, 5):
            sys.exit(f"aloft probe check-config ends with {done.returncode}")
        subprocess.run([msprobe, "config_check", "-c", bench, cmp, "-o", theirs], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        ours, theirs = (pandas.read_excel(Path(folder) / "result.xlsx", sheet_name=None, dtype=str)
                        for folder in (ours, theirs))
    is_good = True
    print(f"{'sheet':16} {'msprobe':>8} {'here':>6} {'joined':>7} {'equal':>7} {'listed':>7} {'not':>5} {'alone':>6}")
    for sheet, (_, figures) in SHEETS.items():
        left, right = rows(theirs, sheet), rows(ours, sheet)
        if not left and not right:
            continue
        counts, other = collections.Counter(), []
        for names, row in left.items():
            if names not in right:
                continue
            counts["joined"] += 1
            for column in figures:
                a, b = right[names][column], row[column]
                word = "equal" if is_same(a, b) else "listed" if is_listed(column, a, b, row) else "not"
                counts[word] += 1
                if word == "not":
                    other.append((names, column, a, b))
        alone = [names for names in left if names not in right]
        if sheet == "env":  # what nobody sets is no finding here
            alone = [names for names in alone if not any("has this env" in name for name in names)]
        if sheet == "hyperparameters":  # of several keys with one last part msprobe keeps one
            lost = [names for names in alone if "Only in comparison" in names and any(
                other[1] == names[1] and last_part(other[0]) == last_part(names[1]) for other in right)]
            counts["listed"] += len(lost)
            alone = [names for names in alone if names not in lost]
        print(f"{sheet:16} {len(left):8} {len(right):6} {counts['joined']:7} {counts['equal']:7} {counts['listed']:7} "
              f"{counts['not']:5} {len(alone):6}")
        for names, column, a, b in other:
            print(f"    {' / '.join(names)}: {column} is {a!r} here, {b!r} there")
        for names in alone:
            print(f"    {' / '.join(names)}: msprobe alone has it")
        is_good = is_good and not other and not alone
    verdicts = {name: dict(zip(book["summary"]["filename"], book["summary"]["pass_check"]))
                for name, book in (("here", ours), ("msprobe", theirs))}
    print(f"verdicts here {verdicts['here']}, of msprobe {verdicts['msprobe']}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
