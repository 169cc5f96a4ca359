#!/usr/bin/env python3
"""Writes scikit-learn's handwritten digits as CSV: 64 pixels of 0 to 16 (8 x 8, row by row), then
the label, one digit a line. examples/lenet.cpp reads it.

  tools/digits.py digits.csv        needs scikit-learn (apt install python3-sklearn)
"""
import argparse
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", help="file to write")
    out = parser.parse_args().out
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        sys.exit("scikit-learn is missing: apt install python3-sklearn, or pip install scikit-learn")
    digits = load_digits()
    with open(out, "w", encoding="ascii") as f:
        for pixels, label in zip(digits.data.astype(int), digits.target):
            f.write(",".join(map(str, [*pixels, label])) + "\n")
    print(f"{len(digits.target)} digits in {out}", file=sys.stderr)


if __name__ == "__main__":
    main()
