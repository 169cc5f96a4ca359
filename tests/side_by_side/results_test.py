"""tools/results: the page is what the files say, and a section says of which revision it is."""
import importlib.machinery
import importlib.util
import json
import pathlib
import re
import tempfile
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def tool():
    loader = importlib.machinery.SourceFileLoader("results", str(ROOT / "tools" / "results"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("results", loader))
    loader.exec_module(module)
    return module


class Results(unittest.TestCase):
    def test_the_page_is_what_the_files_say(self):
        self.assertEqual((ROOT / "docs" / "results.md").read_text(), tool().page_text())

    def test_every_file_says_of_which_revision_it_is(self):
        for file in (ROOT / "docs" / "results").glob("*.json"):
            self.assertRegex(json.loads(file.read_text()).get("revision", ""), r"^[0-9a-f]{12}$",
                             file.name)

    def test_a_section_is_written_with_its_revision(self):
        results = tool()
        with tempfile.TemporaryDirectory() as folder:
            results.ROOT = pathlib.Path(folder)
            results.STORE = results.ROOT / "docs" / "results"
            results.SECTIONS = {"live": (lambda options: {"rows": 3, "verdict": "fine"}, results.live_page)}
            for name in ("build/bin/aloft", "docs/results.md"):
                (results.ROOT / name).parent.mkdir(parents=True, exist_ok=True)
                (results.ROOT / name).write_text("")
            results.machine = types.SimpleNamespace(revision=lambda aloft: "0123456789ab+")
            results.main([])
            got = json.loads((results.STORE / "live.json").read_text())
            self.assertEqual(got["revision"], "0123456789ab+")
            page = (results.ROOT / "docs" / "results.md").read_text()
            self.assertTrue(re.search(r"^Measured on \d+ cores of .*, at 0123456789ab\+\.$", page, re.M), page)


if __name__ == "__main__":
    unittest.main()
