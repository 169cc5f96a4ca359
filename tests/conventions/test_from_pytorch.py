"""docs/from-pytorch.md explains every argument of PyTorch's calls, and none that there is not."""

import json
import re
import unittest

import project
from explained import explained, tables

PAGE = project.ROOT / "docs" / "from-pytorch.md"
SIGNATURES = project.ROOT / "tests" / "fixtures" / "signatures.json"


class FromPyTorch(unittest.TestCase):
    def setUp(self):
        self.signatures = json.loads(SIGNATURES.read_text())
        self.tables = tables(PAGE)

    def test_calls(self):
        calls = {name: args for name, args in self.signatures["calls"].items() if not name.startswith("torch.optim.")}
        self.assertGreater(len(calls), 5)
        for name, arguments in calls.items():
            with self.subTest(name):
                self.assertEqual(sorted(explained(self.tables, name, "argument")), sorted(arguments))

    def test_methods(self):
        for name, methods in self.signatures["methods"].items():
            with self.subTest(name):
                self.assertEqual(sorted(explained(self.tables, name, "method")), sorted(methods))

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
