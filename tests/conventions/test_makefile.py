"""What make installs before it builds: the program and the demo need no test tools. And what make install
runs (tests/consumer shows what then lies where)."""

import os
import re
import subprocess
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


def commands_of(*arguments):
    """What make would run, line by line."""
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "DESTDIR",
                                                                "PREFIX")}
    done = subprocess.run(["make", "-n", *arguments], cwd=project.ROOT, env=environment, check=True,
                          capture_output=True, text=True)
    return done.stdout.splitlines()


class Makefile(unittest.TestCase):
    def test_the_program_needs_no_test_tools(self):
        for target in ("build", "demo", "results"):
            self.assertNotRegex(recipes_of(target), r"tools/setup[^\n]* test", target)
            self.assertIn("tools/setup build", recipes_of(target), target)

    def test_tests_do(self):
        for target in ("test", "bench", "avx2"):
            self.assertRegex(recipes_of(target), r"tools/setup[^\n]* test", target)
            self.assertIn("ALOFT_TESTS=ON", recipes_of(target), target)

    def test_what_tests_run_is_installed_for_them(self):
        """A test skips where its program is missing: on a fresh machine `make test` must have installed it."""
        lines = (line.split() for line in project.text(project.ROOT / "tools" / "packages.txt").splitlines()
                 if not line.startswith("#"))
        packages = {words[1]: words[0] for words in lines}
        for program in ("chromium", "strace", "valgrind"):
            uses = [path for path in (project.ROOT / "tests").rglob("*.py") if program in project.text(path)]
            self.assertTrue(uses, f"no test runs {program}: tools/packages.txt and this list need not name it")
            self.assertEqual(packages.get(program), "test", program)

    def test_install_builds_what_build_builds_and_no_more(self):
        built = commands_of("build")
        self.assertRegex(built[-1], r"^cmake --build --preset rel --target aloft -j \d+$")
        self.assertNotRegex("\n".join(built), "ALOFT_(TESTS|BENCH)|ctest|run_tests")
        installed = commands_of("install", "DESTDIR=/a stage", "PREFIX=/opt/aloft")
        self.assertEqual(installed[:-1], built)
        self.assertEqual(installed[-1], "DESTDIR='/a stage' cmake --install build --prefix '/opt/aloft'")

    def test_install_goes_to_usr_local(self):
        self.assertEqual(commands_of("install")[-1], "DESTDIR='' cmake --install build --prefix '/usr/local'")


if __name__ == "__main__":
    unittest.main()
