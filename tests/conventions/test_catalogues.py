"""catalog.inc files: one line a source, and no source that offers something without its line."""

import re
import unittest

import project


def catalogues():
    return sorted((project.ROOT / "src").rglob("catalog.inc"))


def entries(catalogue):
    return re.findall(r"^[A-Z_]+\((\w+)(?:, \w+)?\)\s*$", project.code(catalogue), re.M)


class Catalogues(unittest.TestCase):
    def test_lines_are_names(self):
        for catalogue in catalogues():
            for line in project.code(catalogue).splitlines():
                if line.strip():
                    self.assertRegex(line, r"^[A-Z_]+\(\w+(, \w+)?\)\s*$", project.name(catalogue))

    def test_sorted_and_once(self):
        for catalogue in catalogues():
            found = entries(catalogue)
            self.assertEqual(found, sorted(set(found)), project.name(catalogue))

    def test_every_line_has_its_source(self):
        problems = []
        for catalogue in catalogues():
            problems += [
                f"{project.name(catalogue)}: neither {entry}.cpp nor a folder {entry} is beside it"
                for entry in entries(catalogue)
                if not catalogue.with_name(entry + ".cpp").is_file()
                and not catalogue.with_name(entry).is_dir()
            ]
        self.assertFalse(problems, project.report(problems))

    def test_every_offer_has_its_line(self):
        """A source STEM.cpp that defines STEM_ops() or STEM_kernels() offers something."""
        problems = []
        for catalogue in catalogues():
            known = set(entries(catalogue))
            for path in sorted(catalogue.parent.glob("*.cpp")):
                offers = re.search(
                    rf"^[^\n;=]*\b{re.escape(path.stem)}_(?:ops|kernels|passes|verbs)\s*\(\s*\)\s*\{{",
                    project.code(path), re.M)
                if offers and path.stem not in known:
                    problems.append(f"{project.name(path)}: no line in {project.name(catalogue)}")
        self.assertFalse(problems, project.report(problems))

    def test_users_get_what_catalogues_offer(self):
        """<aloft/aloft.h> reaches the header of every op that programs call, of every family of models and
        of every task, through one that the build writes."""
        public, reached = project.ROOT / "include" / "aloft" / "aloft.h", []
        todo = [public]
        while todo:
            path = todo.pop()
            if path in reached:
                continue
            reached.append(path)
            if path.is_relative_to(project.ROOT / "include"):
                todo += [p for _, _, header in project.includes(path) for p in project.named_by(header)]
        for folder in ("ops", "models", "tasks"):
            stems = project.offered(folder)
            self.assertIsNotNone(stems, f"src/{folder}/CMakeLists.txt asks for no header of its catalogue")
            self.assertGreater(len(stems), 2)
            for stem in stems:
                self.assertIn(project.ROOT / "src" / folder / f"{stem}.h", reached)


if __name__ == "__main__":
    unittest.main()
