"""The recipe in a report, as a browser shows it: what the run read, and nothing else."""
import json
import re
import shutil
import subprocess
import unittest

from arrays import CLASSES, write_tables
from program import ProgramTest, main

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Recipes(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        write_tables(cls.folder)
        (cls.folder / "classes.toml").write_text(CLASSES)
        cls.aloft("train", "classes.toml", "--out", "images", "--steps", 2)
        cls.aloft("train", "tiny.toml", "--out", "text", "--steps", 2, "--set", "train.sample_tokens=4")

    def shown(self, run):
        """The keys in the tables of a run's recipe: {"data": ["csv", ...], ...}."""
        if not BROWSER:
            self.skipTest("no chromium is installed")
        page = self.folder / run / "report.html"
        done = subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                               f"--user-data-dir={self.folder / 'browser'}", "--dump-dom", page.as_uri()],
                              capture_output=True, text=True, timeout=120)
        if not done.stdout.strip():
            self.skipTest(f"{BROWSER} does not start")
        groups = re.findall(r'<h3[^>]*>(\w+)</h3><table[^>]*>(.*?)</table>', done.stdout)
        self.assertEqual([name for name, _ in groups],
                         ["model", "data", "precision", "optimizer", "schedule", "train"])
        return {name: re.findall(r"<tr[^>]*><td[^>]*>([^<]*)", table) for name, table in groups}

    def test_what_does_not_apply_is_hidden(self):
        images, text = self.shown("images"), self.shown("text")
        hidden = {"data": {"images", "outputs", "labels", "text", "train_tokens", "cache", "sampling"},
                  "train": {"sample_every", "sample_tokens"}, "precision": {"type"}}
        for section, keys in hidden.items():
            self.assertEqual(keys & set(images[section]), set(), section)
            self.assertTrue(images[section])
        self.assertLessEqual({"csv", "shape", "validation"}, set(images["data"]))
        self.assertEqual({"csv", "images", "outputs"} & set(text["data"]), set())
        self.assertLessEqual({"sample_every", "sample_tokens"}, set(text["train"]))

    def test_a_key_is_unused_once(self):
        for run in ("images", "text"):
            unused = json.loads((self.folder / run / "run.json").read_text())["unused"]
            self.assertEqual(len(unused), len(set(unused)), unused)

    def test_samples_of_who_writes_no_text_are_refused(self):
        for key in ("train.sample_every=2", "train.sample_tokens=50"):
            said = self.aloft("train", "classes.toml", "--out", "none", "--set", key, exit_code=2).stderr.decode()
            self.assertIn(f"--set {key.split('=')[0]} is of models that write text", said)


if __name__ == "__main__":
    main()
