"""tools/run_tests counts what was skipped, with its reasons, and passes nothing as passed that was
not."""
import importlib.machinery
import importlib.util
import pathlib
import tempfile
import unittest
import xml.sax.saxutils

ROOT = pathlib.Path(__file__).resolve().parents[2]
loader = importlib.machinery.SourceFileLoader("run_tests", str(ROOT / "tools" / "run_tests"))
run_tests = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_tests", loader))
loader.exec_module(run_tests)

GTEST = """[==========] Running 4 tests from 1 test suite.
[ RUN      ] A.Passes
[       OK ] A.Passes (1 ms)
[ RUN      ] A.Waits/3
../tests/a_test.cpp:9: Skipped
no Python with tensorboard

[  SKIPPED ] A.Waits/3 (0 ms)
[ RUN      ] A.Fails
../tests/a_test.cpp:12: Failure
[  FAILED  ] A.Fails (0 ms)
[==========] 4 tests from 1 test suite ran. (1 ms total)
[  PASSED  ] 1 test.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] A.Waits/3
[  FAILED  ] 1 test, listed below:
[  FAILED  ] A.Fails
"""
UNITTEST = "test_one (a.B.test_one) ... skipped 'strace is not here'\nOK (skipped=1)\n"


def report(*cases):
    why = {"notrun": '<skipped message="SKIP_RETURN_CODE=77"/>',
           "missing": '<skipped message="Unable to find executable"/>'}
    lines = [f'<testcase name="{name}" status="{status.replace("missing", "notrun")}">'
             f"{why.get(status, '')}<system-out>{xml.sax.saxutils.escape(text)}</system-out>"
             "</testcase>" for name, status, text in cases]
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
        file.write("<testsuite>" + "".join(lines) + "</testsuite>")
        file.flush()
        return run_tests.summary(file.name)


class Summary(unittest.TestCase):
    def test_a_program_counts_as_its_tests(self):
        lines = report(("program", "fail", GTEST))
        self.assertEqual(lines[-1], "1 passed, 1 failed, 1 skipped")
        self.assertIn("     1 no Python with tensorboard", lines)
        self.assertIn("         program: A.Waits/3", lines)

    def test_a_program_that_crashes_failed(self):
        cut = GTEST[:GTEST.index("[ RUN      ] A.Fails")]
        self.assertEqual(report(("program", "fail", cut))[-1], "1 passed, 1 failed, 1 skipped")

    def test_other_programs_count_as_one(self):
        lines = report(("tool", "run", "fine"), ("broken", "fail", "no"),
                       ("counted", "notrun", "skipped: valgrind is not installed\n"),
                       ("python", "run", UNITTEST))
        self.assertEqual(lines[-1], "2 passed, 1 failed, 2 skipped")
        self.assertIn("     1 valgrind is not installed", lines)
        self.assertIn("     1 strace is not here", lines)

    def test_a_program_that_is_not_there_failed(self):
        self.assertEqual(report(("gone", "missing", ""))[-1], "0 passed, 1 failed, 0 skipped")

    def test_nothing_skipped(self):
        self.assertEqual(report(("tool", "run", "")), ["", "1 passed, 0 failed, 0 skipped"])


if __name__ == "__main__":
    unittest.main()
