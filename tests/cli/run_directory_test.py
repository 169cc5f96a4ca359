"""docs/metrics.md, tensorboard.md and run-directory.md beside what runs really leave."""
import fnmatch
import json
import re
import shutil

from arrays import CLASSES, NUMBERS, write_tables
from program import ROOT, ProgramTest, main


def table(page, head):
    """The first cells of the rows of the table that begins with `head`, and whole rows by them."""
    rows, inside = {}, False
    for line in (ROOT / "docs" / page).read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            inside = False
        elif cells[0] == head:
            inside = True
        elif inside and not set(cells[0]) <= {"-"}:
            rows[cells[0].strip("`")] = cells
    return rows


class RunDirectory(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.aloft("train", "tiny.toml", "--out", "plain", "--set", "train.eval_every=2", "--set",
                  "train.sample_tokens=4")
        cls.aloft("train", "tiny.toml", "--out", "plain", "--resume", "--steps", 6)
        cls.aloft("train", "tiny.toml", "--out", "eager", "--mode", "eager")
        cls.aloft("train", "tiny.toml", "--out", "split", "--set", "precision=O0 matmul=bf16x6")
        cls.aloft("train", "tiny.toml", "--out", "probed", "--probe", "statistics", "--profile", 1)
        # Rules that anything breaks.
        cls.aloft("train", "tiny.toml", "--out", "watched", "--probe", "trends", "--set", "monitor.every=1", "--set",
                  "monitor.dead_layer={threshold=0.0, window=1}", "--set",
                  "monitor.loss_spike={threshold=1.0, window=2}", "--set", "optimizer.lr=0.1")
        # A device whose rates are known: on another machine no layer may be measured.
        cls.aloft("train", "tiny.toml", "--out", "adaptive", "--device", "sim:H100", "--set", "precision.level=adaptive")
        write_tables(cls.folder)
        for name, recipe in (("classes", CLASSES), ("numbers", NUMBERS)):
            (cls.folder / f"{name}.toml").write_text(recipe)
            cls.aloft("train", f"{name}.toml", "--out", name, "--set", "optimizer.average=ema")
        # A scale at its ceiling overflows, and this one gives up.
        cls.aloft("train", "tiny.toml", "--out", "lost", "--steps", 40, "--set",
                  'precision={level = "O2:fp16", loss_scale = {kind = "dynamic", init = 16777216, '
                  'min = 16777216, give_up_after = 9}}', "--set", "optimizer.lr=1e6", exit_code=5)
        # Every step overflows here: going back does not help.
        cls.aloft("train", "tiny.toml", "--out", "back", "--set", "train.on_nonfinite=rollback", "--set",
                  'precision={level = "O2:fp16", loss_scale = {kind = "static", init = 1e30}}', exit_code=5)
        cls.aloft("export", "hf", "plain", "folder")
        cls.aloft("train", "tiny.toml", "--init", "folder", "--out", "begun")
        cls.runs = [cls.folder / name for name in
                    ("plain", "eager", "split", "probed", "watched", "adaptive", "classes", "numbers", "lost", "back",
                     "begun")]

    def same(self, documented, seen, page):
        self.assertEqual(set(documented) - set(seen), set(), f"docs/{page} says, and no run shows")
        self.assertEqual(set(seen) - set(documented), set(), f"runs show, and docs/{page} lacks")

    def test_every_key_of_the_metrics(self):
        kinds = {"step": set(), "evaluation": set(), "rollback": set(), "look": set(), "alert": set()}
        marks = {"val_loss": "evaluation", "rollback": "rollback", "trends": "look", "alert": "alert"}
        for run in self.runs:
            for line in (run / "metrics.jsonl").read_text().splitlines():
                record = json.loads(line)
                kind = next((kind for mark, kind in marks.items() if mark in record), "step")
                kinds[kind] |= set(record)
                self.assertEqual("culprit" in record, record.get("skipped") is True, record)
        rows = table("metrics.md", "key")
        for kind, seen in kinds.items():
            said = {key for key, cells in rows.items() if cells[1].startswith((kind, "all"))}
            self.same(said, seen, "metrics.md")

    def test_the_machine_is_its_processor_and_threads(self):
        self.assertIn("name, and how many threads", table("run-directory.md", "key")["machine"][2])
        record = json.loads((self.runs[0] / "run.json").read_text())
        self.assertRegex(record["machine"], r"^.+, \d+ threads$")

    def test_lines_that_are_gone_are_said(self):
        for name, keep in (("whole", 99), ("cut", 3), ("none", 0)):
            with self.subTest(name):
                shutil.copytree(self.folder / "plain", self.folder / name)
                metrics = self.folder / name / "metrics.jsonl"
                lines = metrics.read_text().splitlines(keepends=True)[:keep]
                metrics.write_text("".join(lines)) if lines else metrics.unlink()
                left = sum("loss" in json.loads(line) for line in lines)
                said = self.aloft("train", "tiny.toml", "--out", name, "--resume", "--quiet", "--steps",
                                  7).stderr.decode()
                self.assertEqual(f"has no line of {6 - left} of the 6 steps so far" in said, left < 6, said)
                self.assertEqual("has no line" in said, left < 6, said)

    def test_evaluations_that_are_gone_are_said(self):
        shutil.copytree(self.folder / "plain", self.folder / "unjudged")
        metrics = self.folder / "unjudged" / "metrics.jsonl"
        lines = metrics.read_text().splitlines(keepends=True)
        steps = [line for line in lines if "loss" in json.loads(line)]
        gone = len(lines) - len(steps)
        self.assertGreater(gone, 0)
        metrics.write_text("".join(steps))
        said = self.aloft("train", "tiny.toml", "--out", "unjudged", "--resume", "--quiet", "--steps",
                          7).stderr.decode()
        self.assertIn(f"has no line of {gone} of the {gone} evaluations so far", said)
        self.assertNotIn("steps so far", said)

    def test_an_evaluation_said_twice_is_not_two(self):
        run = self.folder / "twice"
        shutil.copytree(self.folder / "plain", run)
        lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
        judged = [i for i, line in enumerate(lines) if "val_loss" in json.loads(line)]
        lines.insert(judged[0], lines[judged[0]])
        del lines[judged[1] + 1]
        (run / "metrics.jsonl").write_text("".join(lines))
        said = self.aloft("train", "tiny.toml", "--out", run.name, "--resume", "--quiet", "--steps", 7)
        self.assertIn("has no line of 1 of the", said.stderr.decode())

    def test_lines_that_say_another_step_are_said(self):
        """A digit that rotted, up or down."""
        lines = (self.folder / "plain" / "metrics.jsonl").read_text().splitlines(keepends=True)
        for number, line in enumerate(lines):
            step = json.loads(line)["step"]
            for other in sorted({0, step - 1, step + 1, 9} - {step}):
                run = self.folder / f"rotten-{number}-{other}"
                shutil.copytree(self.folder / "plain", run)
                rotten = line.replace(f'"step":{step},', f'"step":{other},')
                self.assertNotEqual(rotten, line)
                (run / "metrics.jsonl").write_text("".join(lines[:number] + [rotten] + lines[number + 1:]))
                said = self.aloft("train", "tiny.toml", "--out", run.name, "--resume", "--quiet", "--steps",
                                  7).stderr.decode()
                self.assertRegex(said, "has no line of 1 of the . (steps|evaluations) so far", rotten)

    def test_every_number_of_the_trends(self):
        names = re.search(r"kTrendNames = \{(.*?)\}", (ROOT / "src/types/trends.h").read_text(), re.DOTALL).group(1)
        self.assertEqual(list(table("trends.md", "number")), re.findall(r'"(\w+)"', names))
        for line in (self.folder / "watched" / "metrics.jsonl").read_text().splitlines():
            for layer, numbers in json.loads(line).get("trends", {}).items():
                self.assertLessEqual(set(numbers), set(table("trends.md", "number")), layer)

    def test_every_tag_of_tensorboard(self):
        seen = set()
        for run in self.runs:
            for events in run.glob("events.out.tfevents.*"):
                data = events.read_bytes()
                seen |= set(re.findall(rb"(?:train|validation)/[a-z_]+", data))
                seen |= {re.sub(rb"(?<=alerts/).*", b"RULE", tag) for tag in re.findall(rb"alerts/[a-z_]+", data)}
                for tag in re.findall(rb"trends/[a-z_]+/", data):
                    name = tag.decode().split("/")[1]
                    is_number = name in table("trends.md", "number")
                    seen.add(f"trends/{'NUMBER' if is_number else name}/LAYER".encode())
        self.same(table("tensorboard.md", "tag"), {tag.decode() for tag in seen}, "tensorboard.md")

    def test_every_file(self):
        patterns = table("run-directory.md", "file")
        seen = set()
        for run in self.runs:
            for path in run.rglob("*"):
                if path.is_file():
                    name = path.relative_to(run).as_posix()
                    fits = [p for p in patterns if fnmatch.fnmatch(name, p)]
                    self.assertTrue(fits, f"docs/run-directory.md says nothing of {name}")
                    seen.update(fits)
        self.same(patterns, seen, "run-directory.md")

    def test_every_key_of_the_record(self):
        rows = table("run-directory.md", "key")
        records = {run.name: json.loads((run / "run.json").read_text()) for run in self.runs}
        self.same(rows, set().union(*records.values()), "run-directory.md")
        always = {key for key, cells in rows.items() if cells[1] == "always"}
        for name, record in records.items():
            self.assertLessEqual(always, set(record), name)
        graph = {key for key, cells in rows.items() if cells[1] == "graph mode"}
        self.assertLessEqual(graph, set(records["plain"]))
        self.assertFalse(graph & set(records["eager"]))
        self.assertIn("error", records["lost"])
        for key in records["plain"]["result"]:
            self.assertTrue(f"`{key}`" in rows["result"][2] or key in table("metrics.md", "key"), key)


if __name__ == "__main__":
    main()
