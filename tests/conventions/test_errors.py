"""Error codes: what sources throw and what docs/errors.md explains are the same set."""

import collections
import re
import unittest

import project

EXIT_OF = {
    "UserError": "2",
    "DataError": "3",
    "EnvironmentError": "4",
    "DivergedError": "5",
    "InternalError": "70",
}


def codes_in_sources():
    """code -> list of (place, class or '' where the class is not beside it)."""
    found = collections.defaultdict(list)
    pattern = re.compile(r'(?:\b(' + "|".join(EXIT_OF) + r')\s*[({]\s*)?"(E\d{4})"')
    for path in project.files("src") + project.files("include"):
        source = project.code(path)
        for match in pattern.finditer(source):
            place = f"{project.name(path)}:{project.line_of(source, match.start(2))}"
            found[match.group(2)].append((place, match.group(1) or ""))
    return found


def documented():
    return project.table("docs/errors.md", "code")


class Errors(unittest.TestCase):
    def test_every_code_is_documented(self):
        known = {row["code"] for row in documented()}
        problems = [
            f"{uses[0][0]}: {code} has no row in docs/errors.md (code, exit, meaning, what to do)"
            for code, uses in sorted(codes_in_sources().items())
            if code not in known
        ]
        self.assertFalse(problems, project.report(problems))

    def test_every_documented_code_is_thrown(self):
        thrown = codes_in_sources()
        problems = [
            f"docs/errors.md: nothing throws {row['code']}"
            for row in documented()
            if row["code"] not in thrown
        ]
        self.assertFalse(problems, project.report(problems))

    def test_rows_are_whole_and_in_order(self):
        rows = documented()
        codes = [row["code"] for row in rows]
        self.assertEqual(codes, sorted(set(codes)), "one row a code, in order")
        for row in rows:
            self.assertRegex(row["code"], r"^E\d{4}$")
            self.assertIn(row["exit"], EXIT_OF.values(), row)
            self.assertTrue(row["meaning"] and row["what to do"], row)

    def test_one_code_one_kind(self):
        exit_of_code = {row["code"]: row["exit"] for row in documented()}
        problems = []
        for code, uses in sorted(codes_in_sources().items()):
            for place, kind in uses:
                if kind and code in exit_of_code and EXIT_OF[kind] != exit_of_code[code]:
                    problems.append(f"{place}: {code} is thrown as {kind} (exit {EXIT_OF[kind]}); "
                                    f"docs/errors.md says exit {exit_of_code[code]}")
        self.assertFalse(problems, project.report(problems))


if __name__ == "__main__":
    unittest.main()
