"""The profile: steps of a run timed op by op, in a file that viewers of traces read, a table and the report."""
import json
import shutil

from program import ProgramTest, main, report_data


class Profile(ProgramTest):
    def trace(self, run):
        return json.loads((self.folder / run / "profile.json").read_text())

    def slices(self, run, track):
        """Events of the tracks whose names begin so."""
        events = self.trace(run)["traceEvents"]
        tracks = {e["tid"] for e in events
                  if e["ph"] == "M" and e["name"] == "thread_name" and e["args"]["name"].startswith(track)}
        return [e for e in events if e["ph"] == "X" and e["tid"] in tracks]

    def kept(self, run):
        """What a run leaves that depends on each bit of its steps."""
        newest = max((self.folder / run / "checkpoints").iterdir())
        lines = map(json.loads, (self.folder / run / "metrics.jsonl").read_text().splitlines())
        return ([(newest / name).read_bytes() for name in ("model.safetensors", "state.safetensors")],
                [(line["step"], line.get("loss"), line.get("grad_norm"), line.get("val_loss")) for line in lines])

    def test_each_instruction_is_timed_and_no_bit_is_changed(self):
        for mode in ("graph", "eager"):
            for precision in ("O0", "O2:bf16", "O2:fp16"):
                said = ["--steps", 7, "--mode", mode, "--set", f'precision="{precision}"', "--set", "model.dropout=0.1"]
                off = self.aloft("train", "tiny.toml", "--out", "off", *said).stdout
                on = self.aloft("train", "tiny.toml", "--out", "on", "--profile", 2, *said).stdout
                self.assertEqual(self.kept("on"), self.kept("off"))
                self.assertFalse((self.folder / "off/profile.json").exists())
                self.assertNotIn(b"where the time goes", off)
                self.assertIn(b"where the time goes, a step: the mean of 2 steps on cpu", on)
                self.check_trace("on", mode == "graph")
                for run in ("off", "on"):
                    shutil.rmtree(self.folder / run)

    def check_trace(self, run, is_compiled):
        steps, calls = self.slices(run, "steps"), self.slices(run, "stream ")
        self.assertEqual([s["args"]["step"] for s in steps], [4, 5])  # behind three others
        for one in steps:
            own = [c for c in calls if c["args"]["step"] == one["args"]["step"]]
            self.assertGreater(len(own), 30)
            self.assertAlmostEqual(min(c["ts"] for c in own), one["ts"], delta=0.01)
            self.assertAlmostEqual(max(c["ts"] + c["dur"] for c in own), one["ts"] + one["dur"], delta=0.01)
            by_time = sorted(own, key=lambda c: c["ts"])
            for before, behind in zip(by_time, by_time[1:]):  # the cpu has one stream: one behind the other
                self.assertLessEqual(before["ts"] + before["dur"], behind["ts"] + 0.01)
            if is_compiled:
                self.assertEqual([c["args"]["instruction"] for c in own], list(range(len(own))))
        linear = next(c for c in calls if c["name"] == "linear" and c["args"]["module"] == "h.0.mlp.c_fc")
        self.assertEqual(linear["cat"], "forward")
        # [16, 16] x [16, 64], and a bias
        self.assertGreaterEqual(linear["args"]["flops"], 2 * 16 * 16 * 64)
        self.assertEqual([type_[type_.index("["):] for type_ in linear["args"]["in"][:2]], ["[2,8,16]", "[64,16]"])
        self.assertEqual(linear["args"]["out"][0][-8:], "[2,8,64]")
        size = {"f": 4, "b": 2}[linear["args"]["out"][0].replace("f16", "b")[0]]
        self.assertGreaterEqual(linear["args"]["bytes"], size * (16 * 16 + 64 * 16 + 16 * 64))
        self.assertEqual({c["cat"] for c in calls}, {"forward", "backward", "update"})
        # The table is the sum of the calls.
        summary = self.trace(run)["aloft"]
        self.assertEqual([s["step"] for s in summary["steps"]], [4, 5])
        for op in summary["ops"]:
            own = [c for c in calls if (c["name"], c["cat"]) == (op["op"], op["phase"])]
            self.assertEqual(op["calls"], len(own))
            self.assertAlmostEqual(op["ms"], sum(c["dur"] for c in own) / 1000, delta=1e-6 + 1e-6 * op["ms"])
            self.assertAlmostEqual(op["bytes"], sum(c["args"]["bytes"] for c in own))
        self.assertEqual(summary["ops"], sorted(summary["ops"], key=lambda op: -op["ms"]))
        self.assertEqual(sum(op["calls"] for op in summary["ops"]), len(calls))
        self.assertGreater(summary["timer_us"], 0)
        self.assertLess(summary["timer_us"], 1000)
        self.assertGreater(summary["rates"]["memory_gb_s"], 0)
        for op in summary["ops"]:
            self.assertGreater(op["ms_at_rates"], 0, op)

    def test_the_report_has_the_table(self):
        self.aloft("train", "tiny.toml", "--out", "told", "--set", "profile.steps=1", "--set", "profile.start=2")
        table, summary = report_data(self.folder / "told")["profile"], self.trace("told")["aloft"]
        self.assertEqual((table["steps"], table["device"]), (1, "cpu"))
        self.assertEqual([row[:2] for row in table["ops"]], [[op["op"], op["phase"]] for op in summary["ops"]])
        self.assertAlmostEqual(sum(row[4] for row in table["ops"]), 1)
        for row, op in zip(table["ops"], summary["ops"]):
            self.assertAlmostEqual(row[3], op["ms"])
            self.assertEqual(row[5] is not None, op["has_products"])
            self.assertAlmostEqual(row[6], op["bytes"] / op["ms"] / 1e6)
        self.aloft("train", "tiny.toml", "--out", "untold")
        self.assertIsNone(report_data(self.folder / "untold")["profile"])
        # A file that was damaged is left out, and no reason to lose the report.
        (self.folder / "told/profile.json").write_text('{"aloft": {"steps": [1], "ops": [7, {"ms": "x"}]}}')
        self.aloft("report", "told")
        self.assertEqual(report_data(self.folder / "told")["profile"]["ops"], [])
        (self.folder / "told/profile.json").write_text("[" * 100000)
        self.aloft("report", "told")
        self.assertIsNone(report_data(self.folder / "told")["profile"])

    def test_micro_batches_are_told_apart(self):
        self.aloft("train", "tiny.toml", "--out", "parts", "--profile", 1, "--set", "profile.start=1", "--set",
                   "train.batch=1", "--set", "train.accumulate=2")
        parts = {(c["args"]["program"], c["args"].get("micro_batch", 0)) for c in self.slices("parts", "stream ")}
        self.assertEqual(len(parts), 2)
        self.assertEqual(len({program for program, _ in parts}), 2)

    def test_a_run_that_goes_on_is_timed_from_there(self):
        self.aloft("train", "tiny.toml", "--out", "whole", "--steps", 8)
        self.aloft("train", "tiny.toml", "--out", "parts-of-it", "--steps", 3)
        done = self.aloft("train", "tiny.toml", "--out", "parts-of-it", "--steps", 8, "--resume", "--profile", 2,
                          "--set", "profile.start=1")
        self.assertEqual([s["args"]["step"] for s in self.slices("parts-of-it", "steps")], [5, 6])
        self.assertEqual(self.kept("parts-of-it")[0], self.kept("whole")[0])
        self.assertNotIn(b"profile.", done.stderr)  # it changes nothing of the run

    def test_a_run_too_short_says_so(self):
        done = self.aloft("train", "tiny.toml", "--out", "short", "--steps", 2, "--profile", 5)
        self.assertIn(b"no step was timed: profile.start is 3, and the run has made 2 steps", done.stderr)
        self.assertFalse((self.folder / "short/profile.json").exists())
        done = self.aloft("train", "tiny.toml", "--out", "cut", "--steps", 4, "--profile", 5)
        self.assertEqual(len(self.trace("cut")["aloft"]["steps"]), 1)
        self.assertIn(b"the mean of 1 step ", done.stdout)

    def test_a_recipe_asks_for_it(self):
        (self.folder / "asks.toml").write_text(self.RECIPE + "[profile]\nsteps = 1\nstart = 0\n")
        self.aloft("train", "asks.toml", "--out", "asked")
        self.assertEqual([s["args"]["step"] for s in self.slices("asked", "steps")], [1])
        self.aloft("train", "asks.toml", "--out", "not-asked", "--profile", 0)
        self.assertFalse((self.folder / "not-asked/profile.json").exists())
        self.assertIn(b"[profile]", self.aloft("train", "asks.toml", "--print-config").stdout)
        self.assertIn(b"profile.steps", self.aloft("recipes").stdout)
        idle = self.aloft("train", "tiny.toml", "--out", "idle", "--set", "profile.start=1", exit_code=None)
        self.assertIn(b"profile.steps is 0", idle.stderr)

    def test_a_device_that_works_on_its_own_has_its_own_clock(self):
        self.aloft("train", "tiny.toml", "--out", "on-device", "--device", "sim:910B3", "--profile", 1)
        self.aloft("train", "tiny.toml", "--out", "unwatched", "--device", "sim:910B3")
        self.assertEqual(self.kept("on-device"), self.kept("unwatched"))
        summary = self.trace("on-device")["aloft"]
        self.assertEqual(summary["device"], "sim:910B3")
        self.assertEqual(summary["timer_us"], 0)  # its time is counted, not taken
        self.assertEqual(summary["rates"]["memory_gb_s"], json.loads(
            self.aloft("devices", "--device", "sim:910B3", "--json").stdout)["memory_gb_s"])


if __name__ == "__main__":
    main()
