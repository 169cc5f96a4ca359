"""tools/judge/probe_compare.py: what it counts as a figure that agrees."""
import csv
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools/judge"))
import probe_compare  # noqa: E402

COLUMNS = ["NPU Name", "Bench Name", "NPU max", "MaxRelativeErr", "One Thousandth Err Ratio", "Result", "Err_message",
           "NPU Tensor Shape", "Bench Tensor Shape", "Cosine"]


def row(name, partner, largest="1", relative="0", share="1.0"):
    return [name, partner, largest, relative, share, "pass", "", "[2]", "[2]", "1.0"]


class Compared(unittest.TestCase):
    def compared(self, ours, theirs):
        """What it says where the two programs write these rows."""
        with tempfile.TemporaryDirectory() as folder:
            programs = []
            for name, rows in (("ours", ours), ("theirs", theirs)):
                table, program = Path(folder) / f"{name}.table", Path(folder) / name
                with open(table, "w", newline="", encoding="utf-8") as file:
                    csv.writer(file).writerows([COLUMNS, *rows])
                # The last argument is the folder of the results.
                program.write_text(f'#!/bin/sh\nfor last; do :; done\ncp "{table}" "$last/table.csv"\n')
                program.chmod(0o755)
                programs.append(program)
            return probe_compare.compared(*programs, "npu", "bench")

    def test_rows_without_a_partner_are_no_figures(self):
        rows = [row("a", "N/A", "N/A", "N/A", "N/A"), row("b", "b")]
        found = self.compared(rows, rows)
        self.assertEqual((found.joined, found.alone, found.elsewhere), (["b"], ["a"], []))
        self.assertEqual((found.columns["NPU max"].same, found.columns["NPU max"].words), (1, 0))
        self.assertEqual((found.columns["Result"].same, found.columns["Result"].words), (0, 1))

    def test_another_partner_is_told(self):
        found = self.compared([row("a", "b")], [row("a", "c")])
        self.assertEqual(found.elsewhere, [("a", "b", "c")])

    def test_words_for_no_number_are_not_all_the_same(self):
        for x, y, same in (("nan", "NaN", True), ("N/A", "None", True), ("nan", "N/A", False),
                           ("unsupported", "N/A", False), ("nan", "unsupported", False)):
            self.assertEqual(probe_compare.is_same(x, y), same, (x, y))

    def test_shares_differ_where_an_element_has_0_for_a_partner_and_no_further(self):
        for ours, theirs, listed in ((("inf", "0.5"), ("0.01", "0.75"), 1), (("inf", "0.9"), ("0.01", "0.75"), 0),
                                     (("inf", "0.5"), ("inf", "0.75"), 0)):
            column = self.compared([row("a", "a", "1", *ours)],
                                   [row("a", "a", "1", *theirs)]).columns["One Thousandth Err Ratio"]
            self.assertEqual((len(column.listed), len(column.other)), (listed, 1 - listed), (ours, theirs))

    def test_what_wraps_and_what_is_short_is_listed_and_nothing_like_it(self):
        plain = {"NPU Dtype": "torch.uint8", "NPU Tensor Shape": "[]", "Bench Tensor Shape": "[]", "Result": "error",
                 "Err_message": "", "Bench max": "2", "Bench min": "2", "NPU l2norm": "1e-17", "Bench l2norm": "2e-17"}

        def is_listed(column, ours, theirs, **other):
            return probe_compare.is_listed(column, {**plain, column: ours, **other}, {column: theirs})
        self.assertTrue(is_listed("MaxAbsErr", "1", "255.0"))
        self.assertFalse(is_listed("MaxAbsErr", "1", "254.0"))
        self.assertFalse(is_listed("MaxAbsErr", "1", "255.0", **{"NPU Dtype": "torch.float32"}))
        self.assertFalse(is_listed("MaxAbsErr", "1", "255.0", **{"NPU Tensor Shape": "[3]", "Bench Tensor Shape": "[3]"}))
        self.assertTrue(is_listed("Cosine", "0.5", "1.0"))
        self.assertFalse(is_listed("Cosine", "0.5", "0.6"))
        self.assertFalse(is_listed("Cosine", "0.5", "1.0", **{"NPU l2norm": "0.1"}))
        self.assertFalse(is_listed("Cosine", "0.5", "1.0", **{"NPU l2norm": "0", "Bench l2norm": "0"}))


if __name__ == "__main__":
    unittest.main()
