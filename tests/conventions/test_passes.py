"""Every pass has its cases in tests/passes, and every file there is a pass's that the tests run."""

import re
import unittest

import project

# Cases that name their passes themselves.
PIPELINES = {"compile"}


def passes():
    """Name in the text form -> source, of every `const Pass x{"name", ...}`."""
    found = {}
    for path in project.files("src/passes", {".cpp"}):
        for name in re.findall(r'^const Pass \w+\s*\{\s*"([^"]+)"', project.code(path), re.M):
            found[name] = path
    return found


def cases(path):
    return re.findall(r"^case (\S+)$", path.read_text(encoding="utf-8"), re.M)


class Passes(unittest.TestCase):
    def test_every_declared_pass_is_known_here(self):
        declared = re.findall(r"^extern const Pass (\w+);", project.text(
            project.ROOT / "src/passes/pass.h"), re.M)
        self.assertEqual(len(declared), len(passes()), f"{declared} against {sorted(passes())}")

    def test_every_pass_has_cases(self):
        problems = [
            f"{project.name(source)}: no case in tests/passes/{name}.graph"
            for name, source in passes().items()
            if not (path := project.ROOT / f"tests/passes/{name}.graph").is_file()
            or not cases(path)
        ]
        self.assertFalse(problems, project.report(problems))

    def test_every_case_file_is_run(self):
        """The runner takes tests/passes/*.graph; a file elsewhere or of no pass would lie there dead."""
        known, folder = set(passes()) | PIPELINES, project.ROOT / "tests/passes"
        problems = []
        for path in project.files("tests", {".graph"}):
            if path.parent != folder:
                problems.append(f"{project.name(path)}: not in tests/passes, where it would be run")
            elif path.stem not in known:
                problems.append(f"{project.name(path)}: no pass is called {path.stem}")
        self.assertFalse(problems, project.report(problems))

    def test_cases_have_names_of_their_own(self):
        problems = []
        for path in project.files("tests/passes", {".graph"}):
            names = cases(path)
            problems += [f"{project.name(path)}: {name} occurs twice"
                         for name in set(names) if names.count(name) > 1]
        self.assertFalse(problems, project.report(problems))


if __name__ == "__main__":
    unittest.main()
