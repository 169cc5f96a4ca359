"""tools/before_after with builds that only pretend (the standard library only)."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Each start takes the next of its numbers.
BUILD = """#!{python}
import json, pathlib, sys
assert "--no-limit" in sys.argv and sys.argv[sys.argv.index("--threads") + 1] == "2", sys.argv
log = pathlib.Path({folder!r}) / "log"
seen = log.read_text() if log.exists() else ""
log.write_text(seen + {name!r})
numbers = {numbers}
if seen.count({name!r}) == len(numbers):
    sys.exit("error: no more")
print(json.dumps({{"step_ms": numbers[seen.count({name!r})]}}))
"""


class BeforeAfter(unittest.TestCase):
    def run_it(self, old, new, *options):
        with tempfile.TemporaryDirectory() as folder:
            for name, numbers in (("o", old), ("n", new)):
                build = pathlib.Path(folder) / name
                build.write_text(BUILD.format(python=sys.executable, folder=folder, name=name, numbers=numbers))
                build.chmod(0o755)
            command = [sys.executable, "-B", ROOT / "tools" / "before_after", f"{folder}/o", "--new", f"{folder}/n",
                       "--rounds", "3", "--only", "char-fp32", *options]
            done = subprocess.run(command, capture_output=True, text=True)
            self.order = (pathlib.Path(folder) / "log").read_text()
            return done

    def test_the_median_of_the_rounds_in_turns(self):
        done = self.run_it([10, 30, 12], [10, 10, 10])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("char-fp32: 1.200 x (1.000 to 3.000)", done.stdout)
        self.assertEqual(self.order, "onnoon")

    def test_what_is_slower_ends_with_1(self):
        done = self.run_it([10, 10, 10], [10, 11, 12], "--least", "0.99")
        self.assertEqual(done.returncode, 1)
        self.assertIn("below 0.99: char-fp32", done.stderr)

    def test_a_build_that_fails_says_what(self):
        done = self.run_it([10], [10, 10])
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: no more", done.stderr)


if __name__ == "__main__":
    unittest.main()
