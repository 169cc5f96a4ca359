#!/usr/bin/env python3
"""Writes src/data/tokenizers/unicode_classes.inc: the code points of Unicode's classes L (letters) and N
(numbers) as ranges. From PyPI's unicodedata2 where it is installed, which is ahead of Python's own
tables; 16.0 is what Hugging Face's tokenizers had when this was compared with them:

    pip install unicodedata2==16.0.0
    tools/unicode_classes.py > src/data/tokenizers/unicode_classes.inc
"""

import sys

try:
    import unicodedata2 as unicodedata
except ImportError:
    import unicodedata


def ranges(initial):
    found = []
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code))[0] != initial:
            continue
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def table(name, initial):
    print(f"constexpr CodeRange {name}[] = {{")
    line = "   "
    for first, last in ranges(initial):
        cell = f" {{0x{first:X}, 0x{last:X}}},"
        if len(line) + len(cell) > 100:
            print(line)
            line = "   "
        line += cell
    print(line + "\n};")


print(f"// Unicode {unicodedata.unidata_version}; written by tools/unicode_classes.py.")
table("kLetters", "L")
table("kNumbers", "N")
