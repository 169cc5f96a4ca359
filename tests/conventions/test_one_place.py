"""What one file does for all: printing, asking the system about paths, reading JSON. Elsewhere the
same call would throw what nobody expects, or lose what was printed."""

import re
import unittest

import project

# what, pattern, the files that may, what to use
RULES = [
    ("prints", r"\bfmt::print\b|\bstd::cout\b|\bstd::cerr\b|\b(?:std::)?f?printf\s*\(|\bputs\s*\(",
     {"src/base/output.cpp"}, "print_result or print_talk of base/output.h"),
    ("asks about a path with a call that throws",
     r"\b(?:fs|filesystem)::(?:exists|is_directory|is_regular_file|file_size)\s*\((?!fs::symlink)(?![^;{]*,)",
     {"src/base/file.cpp"}, "path_exists, is_folder, is_file, size_of_file of base/file.h"),
    ("parses JSON", r"\b[Jj]son::parse\s*\(", {"src/base/json.cpp"}, "parse_json of base/json.h"),
]


class OnePlace(unittest.TestCase):
    def test_what_has_one_place_is_used_from_there(self):
        problems = []
        for path in project.files("src"):
            source = project.code(path)
            for what, pattern, allowed, instead in RULES:
                if project.name(path) in allowed:
                    continue
                for match in re.finditer(pattern, source):
                    line = project.line_of(source, match.start())
                    problems.append(f"{project.name(path)}:{line}: {what}: use {instead}")
        self.assertFalse(problems, project.report(problems))


if __name__ == "__main__":
    unittest.main()
