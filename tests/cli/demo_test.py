"""The demo, of a model of a few kilobytes: what it says was measured by it, and nothing but the program and
Python is needed for it."""
import json
import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

from program import ALOFT, ROOT, ProgramTest, main

TOOLS = ["valgrind", "strace", "gdb", "perf"]
STEPS, ROUNDS = 12, 3


class Demo(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        recipe = cls.RECIPE.replace('"text.txt"', json.dumps(str(cls.folder / "text.txt")))
        recipe += '[schedule]\nkind = "cosine"\n'
        (cls.folder / "demo.toml").write_text(recipe.replace("steps = 4", "steps = 30"))
        # Nothing is found but Python; the program notes how it was called, and becomes the real one.
        (cls.folder / "bin").mkdir()
        (cls.folder / "bin" / "python3").symlink_to(os.path.realpath(sys.executable))
        cls.environment["PATH"] = str(cls.folder / "bin")
        noted = cls.folder / "calls"
        program = cls.folder / "aloft"
        program.write_text(f"#!{os.path.realpath(sys.executable)}\nimport json, os, sys\n"
                           f"open({str(noted)!r}, 'a').write(json.dumps(sys.argv[1:]) + '\\n')\n"
                           f"os.execv({str(ALOFT)!r}, ['aloft', *sys.argv[1:]])\n")
        program.chmod(0o755)
        done = subprocess.run(
            [sys.executable, "-B", ROOT / "tools" / "demo", "--program", program, "--recipe",
             cls.folder / "demo.toml", "--steps", str(STEPS), "--rounds", str(ROUNDS), "--out",
             cls.folder / "demo"],
            env=cls.environment, capture_output=True, text=True, errors="replace", timeout=300)
        cls.out, cls.talk = done.stdout, done.stderr
        if done.returncode:
            raise AssertionError(f"{done.returncode}\n{done.stdout}\n{done.stderr}")
        cls.calls = [json.loads(line) for line in noted.read_text().splitlines()]

    def run_of(self, name):
        folder = self.folder / name
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        return json.loads((folder / "run.json").read_text()), lines

    def test_no_test_tool_was_there(self):
        for tool in TOOLS:
            self.assertIsNone(shutil.which(tool, path=self.environment["PATH"]))

    def test_precisions_run_in_turn(self):
        rounds = re.findall(r"^round (\d+): O0 ([\d,]+) ms, O2:bf16 ([\d,]+) ms a step$", self.talk, re.M)
        self.assertEqual([int(r[0]) for r in rounds], [1, 2, 3])
        levels = [call[call.index("--precision") + 1] for call in self.calls if call[0] == "bench"]
        self.assertEqual(levels, ["O0", "O2:bf16", "O2:bf16", "O0", "O0", "O2:bf16"])
        said = re.search(r"^A step in O2:bf16 is ([\d.]+) times as fast as in fp32 "
                         r"\(([\d.]+) to ([\d.]+) over (\d+) rounds\)\.$", self.out, re.M)
        median, least, most = map(float, said.groups()[:3])
        self.assertTrue(0 < least <= median <= most, said[0])
        self.assertEqual(int(said[4]), ROUNDS)

    def test_the_table_says_what_the_runs_recorded(self):
        rows = {}
        for line in self.out.rpartition("\nAfter 30 steps")[2].splitlines():  # behind what the model wrote
            cells = re.split(r" {2,}", line.strip())
            if len(cells) == 3:
                rows[cells[0]] = cells[1:]
        self.assertEqual(list(rows), ["time of a step", "tokens per second", "planned memory",
                                      "resident at the peak", f"loss of steps 3 to {STEPS}",
                                      f"perplexity, step {STEPS}"])
        for column, name in enumerate(("demo-O0", "demo-O2-bf16")):
            run, lines = self.run_of(name)
            losses = [r["loss"] for r in lines if "loss" in r and r["step"] <= STEPS]
            self.assertEqual(len(losses), STEPS)
            self.assertEqual(rows[f"loss of steps 3 to {STEPS}"][column], f"{sum(losses[2:]) / 10:.4f}")
            self.assertEqual(rows["planned memory"][column],
                             f"{run['memory']['peak_bytes'] / 2**20:,.0f} MiB")
            self.assertEqual(rows[f"perplexity, step {STEPS}"][column],
                             f"{run['result']['val_perplexity']:.2f}")

    def test_both_precisions_are_validated_alike(self):
        """On the same text behind the same steps, which are the first ones of the whole run."""
        runs = {name: self.run_of(name) for name in ("demo", "demo-O0", "demo-O2-bf16")}
        short = [runs[name][0]["recipe"] for name in ("demo-O0", "demo-O2-bf16")]
        for recipe in short:
            self.assertNotEqual(recipe.pop("precision"), {})
        self.assertEqual(*short)
        perplexities = []
        for name in ("demo-O0", "demo-O2-bf16"):
            [evaluated] = [line for line in runs[name][1] if "val_loss" in line]
            self.assertEqual(evaluated["step"], STEPS)
            perplexities.append(evaluated["val_perplexity"])
        self.assertNotEqual(*perplexities)
        self.assertAlmostEqual(*perplexities, delta=0.02 * perplexities[0])
        first, again = ([r["loss"] for r in runs[name][1] if "loss" in r and r["step"] <= STEPS]
                        for name in ("demo", "demo-O2-bf16"))
        self.assertEqual(first, again)
        self.assertIn("of the same validation text", self.out)

    def test_it_ends_with_perplexity_and_a_report(self):
        run, _ = self.run_of("demo")
        result = run["result"]
        self.assertIn(f"After 30 steps, on files that it never saw: loss {result['val_loss']:.4f}, perplexity "
                      f"{result['val_perplexity']:.2f} of 256, {result['val_bits_per_byte']:.3f} bits per byte",
                      self.out)
        self.assertTrue((self.folder / "demo" / "report.html").is_file())
        self.assertIn(f"run directory  {self.folder / 'demo'}\n", self.out)

    def test_it_shows_three_samples(self):
        shown = self.talk.index("What it writes, three times:")
        self.assertRegex(self.talk[shown:], r"(?s)generate \S+ --prompt .*--samples 3")
        samples = self.out[:self.out.index("After 30 steps")].split("\n---\n")
        self.assertEqual(len(samples), 3, samples)
        for text in samples:
            self.assertGreater(len(text.strip()), 20)

    def test_no_figure_is_of_another_time(self):
        """What is printed is made of what runs: the demo's text holds no number with a unit, no ratio."""
        text = Path(ROOT / "tools" / "demo").read_text()
        self.assertNotRegex(text, r"\d[\d.,]*\s*(tokens/s|ms\b|MiB|GiB|x\b|times)")
        self.assertNotRegex(self.out + self.talk, r"release before|tokens/s before|faster than before")


del ProgramTest  # has no tests of its own

if __name__ == "__main__":
    main()
