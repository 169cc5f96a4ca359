"""Pages can be read beside their sources: lines are not long, and measured changes say of when they are."""

import re
import unittest

import project

COLUMNS = 120
# Tools write these.
WRITTEN = {"docs/benchmarks.md", "docs/results.md"}


def blocks(page):
    """(first line, lines) of all that blank lines part, without blocks of code."""
    text = re.sub(r"^ *```.*?^ *```", lambda m: re.sub(r"[^\n]", "", m.group(0)), project.text(page),
                  flags=re.S | re.M)
    found = [[]]
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            found[-1].append((number, line))
        elif found[-1]:
            found.append([])
    return [(block[0][0], [line for _, line in block]) for block in found if block]


class Pages(unittest.TestCase):
    def test_line_length(self):
        problems = [f"{project.name(page)}:{first + i}: {len(line)} columns, at most {COLUMNS}"
                    for page in project.pages() if project.name(page) not in WRITTEN
                    for first, lines in blocks(page) for i, line in enumerate(lines)
                    if len(line) > COLUMNS and not line.startswith("|")]
        self.assertFalse(problems, project.report(problems))

    def test_tables_of_measurements_name_their_revisions(self):
        page = project.ROOT / "docs/performance.md"
        found = blocks(page)
        tables = [(first, found[i + 1][1][0] if i + 1 < len(found) else "")
                  for i, (first, lines) in enumerate(found) if lines[0].startswith("|")]
        self.assertGreater(len(tables), 5)
        problems = [f"{project.name(page)}:{first}: no revision behind the table" for first, behind in tables
                    if not re.match(r"Written down (in|from) [0-9a-f]{7}\b", behind)]
        self.assertFalse(problems, project.report(problems))


if __name__ == "__main__":
    unittest.main()
