"""docs/exit-codes.md has a row for every ExitCode of base/error.h, and no other."""

import re
import unittest

import project


class ExitCodes(unittest.TestCase):
    def test_the_page_is_the_enumeration(self):
        header = project.code(project.ROOT / "src" / "base" / "error.h")
        body = re.search(r"enum class ExitCode : int \{(.*?)\};", header, re.S).group(1)
        sources = dict(re.findall(r"(\w+) = (\d+)", body))
        page = {row["name"]: row["exit"] for row in project.table("docs/exit-codes.md", "exit")}
        self.assertEqual(sources, page)


if __name__ == "__main__":
    unittest.main()
