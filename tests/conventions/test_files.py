"""Sizes, names and marks: what makes a tree readable and can be counted."""

import re
import unittest

import project

HARD_LIMIT = 600
COLUMNS = 100
BANNED_WORDS = {"util", "utils", "helper", "helpers", "common", "misc", "manager", "impl"}
TEXT_SUFFIXES = project.SOURCE_SUFFIXES | {".py", ".cmake", ".sh", ".js", ".css", ".html"}
# What a user of MindSpore looks for.
NAMES_OF_OTHERS = {"FixedLossScaleManager", "DynamicLossScaleManager", "LossScaleManager"}


def hand_written():
    found = []
    for top in project.HAND_WRITTEN:
        if (project.ROOT / top).is_dir():
            found += project.files(top, TEXT_SUFFIXES)
    return [p for p in found if "__pycache__" not in p.parts and "fixtures" not in p.parts]


class Files(unittest.TestCase):
    def test_sizes(self):
        sizes = sorted(((project.text(p).count("\n"), p) for p in hand_written()), reverse=True)
        print("the ten largest files:")
        for lines, path in sizes[:10]:
            print(f"  {lines:4d}  {project.name(path)}")
        over = [f"{project.name(p)}: {n} lines, at most {HARD_LIMIT}" for n, p in sizes if n > HARD_LIMIT]
        self.assertFalse(over, project.report(over))

    def test_line_length(self):
        problems = []
        for path in hand_written():
            if path.suffix not in project.SOURCE_SUFFIXES:
                continue
            for number, line in enumerate(project.text(path).splitlines(), 1):
                if len(line) > COLUMNS and "http" not in line:
                    problems.append(f"{project.name(path)}:{number}: {len(line)} columns")
        self.assertFalse(problems, project.report(problems))

    def test_names_say_what_is_inside(self):
        problems = []
        for path in hand_written():
            if BANNED_WORDS & set(re.split(r"[_.\-]", path.name.lower())):
                problems.append(f"{project.name(path)}: a name that says nothing")
            if path.suffix not in project.SOURCE_SUFFIXES:
                continue
            source = project.code(path)
            for match in re.finditer(r"\b(?:class|struct)\s+([A-Z]\w*)", source):
                words = {w.lower() for w in re.findall(r"[A-Z][a-z]+", match.group(1))}
                if words & BANNED_WORDS and match.group(1) not in NAMES_OF_OTHERS:
                    line = project.line_of(source, match.start())
                    problems.append(f"{project.name(path)}:{line}: {match.group(1)} says nothing")
        self.assertFalse(problems, project.report(problems))

    def test_nothing_is_left_for_later(self):
        marks = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b")
        problems = [
            f"{project.name(p)}:{project.line_of(project.text(p), m.start())}: {m.group(1)}"
            for p in hand_written()
            for m in marks.finditer(project.text(p))
        ]
        self.assertFalse(problems, project.report(problems))

    def test_headers_have_a_guard_and_a_sentence(self):
        problems = []
        for path in project.files("src", {".h"}) + project.files("include", {".h"}):
            source = project.text(path)
            if not source.startswith("//"):
                problems.append(f"{project.name(path)}: no sentence at its head says what is here")
            if "#pragma once" not in source and "foreach_target" not in source \
                    and "HWY_TARGET_TOGGLE" not in source:
                problems.append(f"{project.name(path)}: no #pragma once")
            if re.search(r"^using namespace", project.code(path), re.M):
                problems.append(f"{project.name(path)}: using namespace in a header")
        self.assertFalse(problems, project.report(problems))

    def test_a_source_includes_its_own_header_first(self):
        """Which proves, by compiling the source, that the header compiles alone."""
        problems = []
        for path in project.files("src", {".cpp"}):
            own = path.with_suffix(".h")
            if not own.is_file():
                continue
            found = project.includes(path)
            wanted = own.relative_to(project.ROOT / "src").as_posix()
            # Highway sources define their target list and include themselves before anything.
            if "foreach_target.h" in project.text(path):
                continue
            if not found or found[0][2] != wanted:
                problems.append(f"{project.name(path)}: its first include is not \"{wanted}\"")
        self.assertFalse(problems, project.report(problems))

    def test_the_build_lists_things_once(self):
        """Two branches that add the same line merge without a conflict."""
        problems = []
        for path in sorted(project.ROOT.glob("*/**/CMakeLists.txt")):
            if path.relative_to(project.ROOT).parts[0] not in project.HAND_WRITTEN:
                continue
            source = re.sub(r"#[^\n]*", "", project.text(path))
            made = []
            for command, words in re.findall(r"^[ \t]*(\w+)\s*\(([^()]*)\)", source, re.M):
                listed = words.split()
                made += [listed[0]] if re.fullmatch(r"aloft_\w+|add_(executable|library)", command) else []
                problems += [f"{project.name(path)}: {command} names {word} twice"
                             for word in set(listed)
                             if word.endswith((".cpp", ".py", ".h")) and listed.count(word) > 1]
            problems += [f"{project.name(path)}: {target} is made twice"
                         for target in set(made) if made.count(target) > 1 and "$" not in target]
        self.assertFalse(problems, project.report(problems))


if __name__ == "__main__":
    unittest.main()
