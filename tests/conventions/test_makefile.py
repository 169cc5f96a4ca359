"""What make installs before it builds: the program and the demo need no test tools."""

import re
import unittest

import project


def rules():
    """target -> (what it depends on, its recipe)."""
    text = project.text(project.ROOT / "Makefile")
    return {m[1]: (m[2].split("#")[0].split(), m[3])
            for m in re.finditer(r"^([a-z_0-9]+):([^\n=]*)\n((?:\t[^\n]*\n?)*)", text, re.M)}


def recipes_of(target):
    needs, recipe = rules()[target]
    return "".join(recipes_of(t) for t in needs) + recipe


class Makefile(unittest.TestCase):
    def test_the_program_needs_no_test_tools(self):
        for target in ("build", "demo", "results"):
            self.assertNotRegex(recipes_of(target), r"tools/setup[^\n]* test", target)
            self.assertIn("tools/setup build", recipes_of(target), target)

    def test_tests_do(self):
        for target in ("test", "bench", "avx2"):
            self.assertRegex(recipes_of(target), r"tools/setup[^\n]* test", target)
            self.assertIn("ALOFT_TESTS=ON", recipes_of(target), target)


if __name__ == "__main__":
    unittest.main()
