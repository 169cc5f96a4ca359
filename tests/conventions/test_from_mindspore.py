"""docs/from-mindspore.md explains every argument of MindSpore's calls, every entry of its lists, and none that there
is not."""

import json
import re
import unittest

import project
from explained import differences, explained, of_package, tables

PAGE = project.ROOT / "docs" / "from-mindspore.md"
SIGNATURES = project.ROOT / "tests" / "fixtures" / "mindspore.json"
# The headings of lists, and what the lists are called there and in counterparts.cpp.
LISTS = {"mindspore.amp.get_white_list": ("AMP_WHITE_LIST", "kWhite"),
         "mindspore.amp.get_black_list": ("AMP_BLACK_LIST", None),
         "White list of auto": ("AMP_AUTO_WHITE_LIST", "kAutoWhite"),
         "Black list of auto": ("AMP_AUTO_BLACK_LIST", "kAutoBlack")}


class FromMindSpore(unittest.TestCase):
    def setUp(self):
        self.signatures = json.loads(SIGNATURES.read_text())
        self.tables = tables(PAGE)

    def test_calls(self):
        self.assertGreater(len(self.signatures["calls"]), 20)
        for name, arguments in self.signatures["calls"].items():
            with self.subTest(name):
                self.assertEqual(sorted(explained(self.tables, name, "argument")), sorted(arguments))

    def test_optimizers_and_rates(self):
        """Each is here or is not, and of those that are every argument is explained."""
        for key, column in (("optimizers", "optimizer"), ("rates", "call")):
            with self.subTest(key):
                calls = of_package(self.signatures[key], "mindspore.nn")
                self.assertGreater(len(calls), 10)
                heading = "mindspore.nn " + key
                rows = self.tables[heading, column]
                self.assertEqual([cells[0].strip("`") for cells in rows], sorted(calls))
                there = {cells[0].strip("`") for cells in rows
                         if not cells[1].startswith("none") or key == "rates"}
                self.assertEqual(differences(self.tables[heading, "argument"],
                                             {name: calls[name] for name in there}), [])

    def test_methods(self):
        for name, methods in self.signatures["methods"].items():
            with self.subTest(name):
                self.assertEqual(sorted(explained(self.tables, name, "method")), sorted(methods))

    def test_nothing_else_is_explained(self):
        for heading, column in self.tables:
            if heading in ("mindspore.nn optimizers", "mindspore.nn rates"):
                continue
            known = {"argument": self.signatures["calls"], "method": self.signatures["methods"]}.get(column)
            if known is not None:
                self.assertIn(heading, known)

    def test_metrics(self):
        self.assertEqual(explained(self.tables, "Metrics", "name"), self.signatures["metrics"])
        source = project.code(project.ROOT / "src/mindspore/metrics.cpp")
        own = re.findall(r'\{"(\w+)", ', source[source.index("kKinds[] = {"):])
        self.assertEqual(own, [cells[0].strip("`") for cells in self.tables["Metrics", "name"]
                               if cells[1] == "the same"])

    def test_lists(self):
        source = project.code(project.ROOT / "src/mindspore/counterparts.cpp")
        for heading, (theirs, ours) in LISTS.items():
            with self.subTest(heading):
                rows = self.tables[heading, "entry"]
                self.assertEqual([cells[0].strip("`") for cells in rows], self.signatures["lists"][theirs])
                if ours is None:
                    continue
                body = re.search(ours + r"\[\] = \{(.*?)\n\};", source, re.S).group(1)
                known = dict(re.findall(r'\{"([^"]+)", "([^"]*)"\}', body))
                for entry, here in rows:
                    self.assertEqual(",".join(re.findall(r"`(\w+)`", here)), known[entry.strip("`")], entry)

    def test_levels(self):
        """What build_train_network takes of a level is what plan_train_network() does, and its test says."""
        levels = self.signatures["levels"]
        scaled = [level for level, row in levels.items() if row["loss_scale_manager"] != "None"]
        self.assertEqual(scaled, ["O2"])
        self.assertEqual([level for level, row in levels.items() if row["keep_batchnorm_fp32"] == "True"], ["O2"])
        self.assertEqual([level for level, row in levels.items() if "float16" in row["cast_model_type"]], ["O2", "O3"])


if __name__ == "__main__":
    unittest.main()
