"""docs/from-pytorch.md explains every argument of PyTorch's calls, and none that there is not."""

import json
import re
import unittest

import project

PAGE = project.ROOT / "docs" / "from-pytorch.md"
SIGNATURES = project.ROOT / "tests" / "fixtures" / "signatures.json"


def tables():
    """Of each heading `### name` the rows of its tables, as lists of cells; by the name of the first column."""
    found, heading, column = {}, None, None
    for line in PAGE.read_text().splitlines():
        if line.startswith("#"):
            heading = line.removeprefix("### ") if line.startswith("### ") else None
        elif heading and line.startswith("| ") and not line.startswith("| ---"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            cells = [cell.strip(" |") for cell in cells]
            if not cells[0].startswith("`"):
                column = cells[0]
            else:
                found.setdefault((heading, column), []).append(cells)
    return found


class FromPyTorch(unittest.TestCase):
    def setUp(self):
        self.signatures = json.loads(SIGNATURES.read_text())
        self.tables = tables()

    def explained(self, heading, column):
        return [cells[0].strip("`") for cells in self.tables.get((heading, column), [])]

    def test_calls(self):
        calls = {name: args for name, args in self.signatures["calls"].items() if not name.startswith("torch.optim.")}
        self.assertGreater(len(calls), 5)
        for name, arguments in calls.items():
            with self.subTest(name):
                self.assertEqual(sorted(self.explained(name, "argument")), sorted(arguments))

    def test_methods(self):
        for name, methods in self.signatures["methods"].items():
            with self.subTest(name):
                self.assertEqual(sorted(self.explained(name, "method")), sorted(methods))

    def test_optimizers(self):
        rows = self.tables[("torch.optim", "argument")]
        classes = {name.removeprefix("torch.optim."): set(args) for name, args in self.signatures["calls"].items()
                   if name.startswith("torch.optim.")}
        self.assertGreater(len(classes), 10)
        for name, arguments in classes.items():
            with self.subTest(name):
                said = {cells[0].strip("`") for cells in rows
                        if cells[1] == "all" or name in re.split(r",\s*", cells[1])}
                self.assertEqual(sorted(arguments - said), [], "not explained")
                own = {cells[0].strip("`") for cells in rows if name in re.split(r",\s*", cells[1])}
                self.assertEqual(sorted(own - arguments), [], "explained, and not there")


if __name__ == "__main__":
    unittest.main()
