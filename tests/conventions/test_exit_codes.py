"""docs/exit-codes.md has a row for every ExitCode of base/error.h, and no other; its loop ends."""

import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import project


class ExitCodes(unittest.TestCase):
    def test_the_page_is_the_enumeration(self):
        header = project.code(project.ROOT / "src" / "base" / "error.h")
        body = re.search(r"enum class ExitCode : int \{(.*?)\};", header, re.S).group(1)
        sources = dict(re.findall(r"(\w+) = (\d+)", body))
        page = {row["name"]: row["exit"] for row in project.table("docs/exit-codes.md", "exit")}
        self.assertEqual(sources, page)

    def loop(self, *statuses):
        """(exit status, runs) of the page's loop where runs end so, the last of them for ever."""
        script = re.search(r"```sh\n(.*?)```", project.text(project.ROOT / "docs/exit-codes.md"), re.S)[1]
        with tempfile.TemporaryDirectory() as folder:
            runs = Path(folder) / "runs"
            cases = " ".join(f"{n}) return {s} ;;" for n, s in enumerate(statuses[:-1], 1))
            fakes = (f'aloft() {{ echo >> {runs}; case $(wc -l < {runs}) in {cases} '
                     f'*) return {statuses[-1]} ;; esac; }}\nsleep() {{ :; }}\n')
            done = subprocess.run(["sh", "-c", fakes + script], timeout=20)
            return done.returncode, len(runs.read_text().splitlines())

    def test_the_loop_ends(self):
        self.assertEqual(self.loop(0), (0, 1))
        self.assertEqual(self.loop(4, 4, 0), (0, 3))
        self.assertEqual(self.loop(4), (4, 5))  # a full disk
        self.assertEqual(self.loop(4, 130), (130, 2))  # Ctrl-C
        self.assertEqual(self.loop(2), (2, 1))


if __name__ == "__main__":
    unittest.main()
