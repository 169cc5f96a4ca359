"""What is shown fits: 100 columns in a pipe, the terminal's own on a terminal."""
import json
import os
import pty
import subprocess

from program import ALOFT, ROOT, ProgramTest, main

TABLES = [["ops"], ["passes"], ["recipes", ROOT / "recipes"], ["doctor"],
          ["explain", "precision", "tiny.toml"]]
VERBS = ["train", "report", "generate", "score", "bench step", "data build", "data info", "ops", "passes",
         "explain precision", "explain plan", "explain graph", "explain kernels", "recipes", "devices",
         "doctor"]


def widest(text):
    return max(text.decode().replace("\r", "").splitlines(), key=len)


class Terminal(ProgramTest):
    def test_a_pipe_has_100_columns(self):
        helps = [[*verb.split(), "--help"] for verb in VERBS]
        for arguments in [*TABLES, *helps, ["--help"], ["devices", "--no-measure"]]:
            line = widest(self.aloft(*arguments).stdout)
            self.assertLessEqual(len(line), 100, line)

    def test_a_terminal_has_its_own(self):
        for arguments in TABLES:
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

    def test_a_key_is_never_cut(self):
        keys = {key["key"] for key in json.loads(self.aloft("recipes", "--json").stdout)["keys"]}
        for columns in (80, 100):
            shown = self.on_terminal("recipes", columns=columns).decode()
            self.assertEqual({line.split()[0] for line in shown.splitlines() if line.strip()} & keys, keys, columns)

    def test_a_recipe_is_described_in_whole(self):
        folder = self.folder / "described"
        folder.mkdir()
        sentence = "A model of a few kilobytes that learns a sentence about a fox and a dog, and"
        (folder / "long.toml").write_text(f"# {sentence}\n# then writes it.\n#   aloft train long.toml\n"
                                          "# And more.\n[model]\n")
        (folder / "short.toml").write_text("\n# Short.\n\n# Apart.\n")
        (folder / "without.toml").write_text("[model]\n# layers\n")
        listed = json.loads(self.aloft("recipes", folder, "--json").stdout)["recipes"]
        self.assertEqual([r["summary"] for r in listed], [sentence + " then writes it.", "Short.", ""])
        for columns in (60, 80, 200):
            shown = self.on_terminal("recipes", "described", columns=columns).decode()
            words = " ".join(shown[:shown.index("default")].split())
            words = words.replace("described/long.toml ", "")
            self.assertIn(sentence + " then writes it.", words)
            self.assertIn("Short.", words)

    def test_progress_leaves_out_what_a_narrow_terminal_has_no_room_for(self):
        for columns in (40, 80, 200):
            said = self.on_terminal("train", "tiny.toml", "--out", f"wide{columns}", "--steps", 30,
                                    columns=columns, stream="stderr")
            lines = [x.strip() for x in said.decode().replace("\n", "\r").split("\r") if x.startswith("step ")]
            lines = [x for x in lines if "validation" not in x]
            self.assertTrue(lines)
            for line in lines:
                self.assertLess(len(line), columns)
                for field in line.split("  ")[1:]:
                    self.assertRegex(field, r"^(loss \S+ \(mean \S+\)|left \S+|\d+ tok/s|perplexity \S+|lr \S+|"
                                            r"norm \S+|scale \S+|skipped \d+)$")
            self.assertEqual("norm" in lines[-1], columns == 200)

    def test_a_first_step_that_lasts_is_shown_to_run(self):
        ours, its = pty.openpty()
        child = subprocess.Popen([ALOFT, "train", "tiny.toml", "--out", "slow", "--set",
                                  "train.accumulate=1000000"], cwd=self.folder, env=self.environment,
                                 stdout=subprocess.DEVNULL, stderr=its)
        os.close(its)
        said = b""
        try:
            while b" so far" not in said:
                said += os.read(ours, 1 << 16)  # fails where the program has ended
        finally:
            child.kill()
            child.wait()
            os.close(ours)
        self.assertRegex(said, rb"\rstep 1/4 running, \d+ s so far")

    def test_what_is_said_breaks_between_words(self):
        def letters(text):  # times differ, and a path may be wider than the terminal
            text = text[text.index("model  "):text.index("step 1/")]
            # A compilation that took long is kept, and the second run has it from there.
            return "".join(c for c in text if c.isalpha()).replace("takenfromtheplancache", "compiled")
        train = ["train", "tiny.toml", "--set", "precision.level=O0"]  # no rates are measured
        piped = self.aloft(*train, "--out", "piped").stderr.decode()
        shown = self.on_terminal(*train, "--out", "shown", columns=60, stream="stderr").decode()
        banner = shown[shown.index("model  "):shown.index("step 1/")].replace("\r", "")
        for line in banner.splitlines():
            self.assertLessEqual(len(line), 60, line)
        self.assertEqual(letters(shown), letters(piped.replace("piped", "shown")))
        self.assertIn("\n             ", banner)  # below what stands behind the label
        self.assertRegex(banner, r"tokens for\s+validation|training\s+tokens, \S+\s+for validation")
        shown = self.on_terminal("train", "--help", columns=60).decode().replace("\r", "")
        self.assertEqual(shown.split(), self.aloft("train", "--help").stdout.decode().split())
        self.assertLessEqual(len(widest(shown.encode())), 60)


if __name__ == "__main__":
    main()
