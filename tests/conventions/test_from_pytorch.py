"""docs/from-pytorch.md explains every argument of PyTorch's calls, and none that there is not."""

import ast
import json
import unittest

import project
from explained import blocks, differences, explained, is_in_an_example, of_package, tables

PAGE = project.ROOT / "docs" / "from-pytorch.md"
SIGNATURES = project.ROOT / "tests" / "fixtures" / "signatures.json"
NPU = project.ROOT / "tests" / "fixtures" / "torch_npu.json"


class FromPyTorch(unittest.TestCase):
    def setUp(self):
        self.signatures = json.loads(SIGNATURES.read_text())
        self.tables = tables(PAGE)

    def test_calls(self):
        calls = self.signatures["calls"]
        self.assertGreater(len(calls), 15)
        for name, arguments in calls.items():
            with self.subTest(name):
                self.assertEqual(sorted(explained(self.tables, name, "argument")), sorted(arguments))

    def test_methods(self):
        for name, methods in self.signatures["methods"].items():
            with self.subTest(name):
                self.assertEqual(sorted(explained(self.tables, name, "method")), sorted(methods))

    def test_optimizers(self):
        """Those that are not here, too: what may serve instead stands in their rows."""
        classes = of_package(self.signatures["optimizers"], "torch.optim")
        self.assertGreater(len(classes), 10)
        self.assertEqual(explained(self.tables, "torch.optim", "optimizer"), sorted(classes, key=str.lower))
        self.assertEqual(differences(self.tables["torch.optim", "argument"], classes), [])

    def test_schedulers_and_means(self):
        for package, column in (("torch.optim.lr_scheduler", "scheduler"), ("torch.optim.swa_utils", "call")):
            with self.subTest(package):
                calls = of_package(self.signatures["rates and means"], package)
                self.assertGreater(len(calls), 5)
                rows = self.tables[package, column]
                self.assertEqual(sorted(cells[0].strip("`") for cells in rows), sorted(calls))
                there = {cells[0].strip("`") for cells in rows if not cells[1].startswith("none")}
                self.assertEqual(differences(self.tables[package, "argument"],
                                             {name: calls[name] for name in there}), [])

    def test_nothing_else_is_explained(self):
        for heading, column in self.tables:
            if column == "argument" and heading.startswith(("torch.amp.", "torch.nn.", "torch.optim.swap")):
                self.assertIn(heading, self.signatures["calls"])

    def test_the_scaler_of_torch_npu(self):
        """What it has besides torch's own."""
        name = "torch_npu.npu.amp.GradScaler"
        own = set(json.loads(NPU.read_text())["calls"][name]) - set(self.signatures["calls"]["torch.amp.GradScaler"])
        self.assertEqual(explained(self.tables, name, "argument"), sorted(own))

    def test_loops_stand_in_an_example(self):
        """Every block of C++ beside a loop of PyTorch is line by line in a program that the tests build and run; the
        Python beside it can be read."""
        section = project.text(PAGE).split("\n## The training loop\n")[1].split("\n## ")[0]
        ours, theirs = blocks(section, "cpp"), blocks(section, "python")
        self.assertGreater(min(len(ours), len(theirs)), 8)
        for block in theirs:
            ast.parse(block)
        for block in ours:
            self.assertTrue(is_in_an_example(block), f"in no example:\n{block}")


if __name__ == "__main__":
    unittest.main()
