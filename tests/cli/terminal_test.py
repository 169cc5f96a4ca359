"""Tables fit: 100 columns in a pipe, the terminal's own on a terminal."""
from program import ROOT, ProgramTest, main

TABLES = [["ops"], ["passes"], ["recipes", ROOT / "recipes"], ["doctor"], ["devices", "--no-measure"],
          ["explain", "precision", "tiny.toml"], ["bench", "step", "--help"], ["generate", "--help"]]


def widest(text):
    return max(text.decode().replace("\r", "").splitlines(), key=len)


class Terminal(ProgramTest):
    def test_a_pipe_has_100_columns(self):
        for arguments in TABLES:
            line = widest(self.aloft(*arguments).stdout)
            self.assertLessEqual(len(line), 100, line)

    def test_a_terminal_has_its_own(self):
        for arguments in TABLES:
            if "--help" in arguments or "devices" in arguments:
                continue
            for columns in (80, 132):
                line = widest(self.on_terminal(*arguments, columns=columns))
                self.assertLessEqual(len(line), columns, line)

    def test_a_narrow_table_says_the_same(self):
        def letters(columns):
            shown = self.on_terminal("recipes", ROOT / "recipes", columns=columns).decode()
            return sorted(c for c in shown if c.isalnum()), len(shown.splitlines())
        (narrow, more), (wide, fewer) = letters(80), letters(400)
        self.assertEqual(narrow, wide)
        self.assertGreater(more, fewer)


if __name__ == "__main__":
    main()
