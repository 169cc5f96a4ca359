"""docs/find-a-nan.md: its table, its recipe and its commands do what the page says."""
import json
import re
import subprocess
import sys

from program import ROOT, ProgramTest, main

PAGE = (ROOT / "docs/find-a-nan.md").read_text()


def block(mark):
    """The code block in which the mark stands."""
    return next(text for _, text in re.findall(r"```(\w*)\n(.*?)```", PAGE, re.DOTALL) if mark in text)


class FindANan(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        subprocess.run([sys.executable, "-c", block("import random")], cwd=cls.folder, check=True)
        (cls.folder / "houses.toml").write_text(block("[model]"))

    def lines(self, run):
        return [json.loads(line) for line in (self.folder / run / "metrics.jsonl").read_text().splitlines()]

    def test_the_loss_is_nan(self):
        said = self.aloft("train", "houses.toml", "--out", "first", exit_code=5).stderr.decode()
        self.assertIn(None, [line.get("loss", 0) for line in self.lines("first")])

        # The line that the end names is that of the page, and finds what the probe of the recipe finds.
        line = re.search(r"try   (aloft probe run first .*)\n", said).group(1)
        self.assertIn(f"  try   {line}\n", PAGE)
        words = line.split(":")[0].replace("DIR", "of-first").split()[1:]
        self.aloft(*words)
        self.aloft("probe", "run", "houses.toml", "--out", "anew", "--task", "overflow", exit_code=5)
        of_first, anew = (json.loads((self.folder / out / "overflow.json").read_text())["found"][0]["first"]
                          for out in ("of-first", "anew"))
        self.assertEqual(of_first, anew)

    def test_the_monitor_says_where_it_shows(self):
        said = self.aloft("train", "houses.toml", "--out", "watched", "--probe", "trends", exit_code=5).stderr.decode()
        alerts = [line for line in self.lines("watched") if "alert" in line]
        self.assertEqual({line["step"] for line in alerts}, {1})
        for line in alerts[:4]:
            where = f" in {line['layer']}" if "layer" in line else ""
            self.assertIn(f"step 1: {line['alert']}{where}: {line['text']}\n", PAGE)
            self.assertIn(f"step 1: {line['alert']}{where}: {line['text']}\n", said)

    def test_the_probe_names_the_op(self):
        self.aloft("probe", "run", "houses.toml", "--out", "probed", "--task", "overflow", exit_code=5)
        found = json.loads((self.folder / "probed/overflow.json").read_text())["found"][0]["first"]
        self.assertTrue(found["operands_are_finite"])
        self.assertIn(found["op"], PAGE)
        self.assertIn(str(found["inf"]), PAGE)
        self.assertNotIn("file", found)  # a line of Aloft's own, as of every recipe

    def test_the_mended_recipe_has_none(self):
        mended = re.search(r"--set (data\.scale=\S+)", PAGE).group(1)
        self.aloft("train", "houses.toml", "--out", "mended", "--set", mended)
        self.aloft("probe", "run", "houses.toml", "--out", "again", "--task", "overflow", "--steps", 5, "--set", mended)
        self.assertEqual(json.loads((self.folder / "again/overflow.json").read_text())["found"], [])


if __name__ == "__main__":
    main()
