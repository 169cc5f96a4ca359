"""What one file does for all: printing, asking the system about paths, reading JSON. Elsewhere the
same call would throw what nobody expects, or lose what was printed. And moving a loss scale: elsewhere
the same steps would lead to another one."""

import re
import unittest

import project

# A member of anything, or a variable, of one of these names.
def named(names):
    return rf"(?:\w+(?:\.|->))*(?:{names})\b"


_FACTOR, _COUNT = "(?:growth|backoff)(?:_factor)?", "good_steps|overflow_run|_?growth_tracker"
# what, pattern, the files that may, what to use
RULES = [
    ("prints", r"\bfmt::print\b|\bstd::cout\b|\bstd::cerr\b|\b(?:std::)?f?printf\s*\(|\bputs\s*\(",
     {"src/base/output.cpp"}, "print_result or print_talk of base/output.h"),
    ("asks about a path with a call that throws",
     r"\b(?:fs|filesystem)::(?:exists|is_directory|is_regular_file|file_size)\s*\((?!fs::symlink)(?![^;{]*,)",
     {"src/base/file.cpp"}, "path_exists, is_folder, is_file, size_of_file of base/file.h"),
    ("parses JSON", r"\b[Jj]son::parse\s*\(", {"src/base/json.cpp"}, "parse_json of base/json.h"),
    # A schedule's cycles grow, too; and what an overflow is looked into with is scales of its own.
    ("moves a loss scale, or counts its steps",
     rf"[sS]cale_?\s*[*/]=|\b{_FACTOR}\s*[*/]|[*/]=?\s*{named(_FACTOR)}"
     rf"|\b(?:{_COUNT})\s*(?:\+\+|--|[-+]=)|(?:\+\+|--){named(_COUNT)}"
     rf"|[<>]=?\s*{named('growth_interval|give_up_after')}",
     {"src/scalar/loss_scaler.h", "src/scalar/schedule.h", "src/train/overflow_changes.cpp"},
     "next() or must_give_up() of scalar/loss_scaler.h"),
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
