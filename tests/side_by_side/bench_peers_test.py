"""The comparison of tools/bench_peers, with programs that only pretend (the standard library only)."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.dom.minidom

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "side_by_side"), str(ROOT / "tools" / "peers")]

import charts  # noqa: E402
import interleaved  # noqa: E402
import optimizer_rows  # noqa: E402
import page  # noqa: E402
import programs  # noqa: E402
import results_file  # noqa: E402
import rows  # noqa: E402
import turns  # noqa: E402

# Notes that it ran, then prints the next of the numbers in its list; "fail" and "sleep" do that.
PRETENDER = """#!{python}
import json, os, pathlib, sys, time
if "doctor" in sys.argv:
    sys.exit(1)
folder = pathlib.Path({folder!r})
name = next(w for w in sys.argv[1:] if w.startswith("name="))[5:]
seen = (folder / "log").read_text().split() if (folder / "log").exists() else []
(folder / "log").write_text(" ".join(seen + [name]))
value = json.loads((folder / "numbers").read_text())[name][seen.count(name)]
if value == "fail":
    print("something first", file=sys.stderr)
    sys.exit("error: {root}/secret said no")
if value == "sleep":
    (folder / "pid").write_text(str(os.getpid()))
    time.sleep(100)
print(json.dumps({{"step_ms": value, "peak_rss_bytes": value * 1000, "torch": "9.9"}}))
"""

MACHINE = {"processor": "a processor", "features": ["avx2"], "cores": 2, "memory_gib": 8,
           "has_amx": False, "system": "a system"}


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except OSError:
        return False


class Pretended(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.fake = self.folder / "fake"
        self.fake.write_text(PRETENDER.format(python=sys.executable, folder=str(self.folder),
                                              root=str(ROOT)))
        self.fake.chmod(0o755)
        self.said = []

    def compare(self, numbers, rounds=3, figures=None, has_amx=True):
        (self.folder / "numbers").write_text(json.dumps(numbers))
        row = rows.Row("a-row", "A row", [programs.Program(n, ["aloft", f"name={n}"])
                                          for n in numbers],
                       figures or [rows.speed_figure(rows.at_least(2), rows.at_least(1))])
        tools = programs.Tools(self.fake, None, 2, 60)
        return interleaved.compare(row, tools, rounds, has_amx, self.said.append)

    def test_rounds_alternate_and_ratios_are_within_a_round(self):
        got = self.compare({"aloft": [10, 20, 10], "eager": [30, 50, 20], "compiled": [40, 48, 25]})
        self.assertEqual((self.folder / "log").read_text().split(),
                         ["aloft", "eager", "compiled", "compiled", "eager", "aloft",
                          "aloft", "eager", "compiled"])
        figure = got["figures"][0]
        self.assertEqual(figure["values"], [3, 2.4, 2])  # against the faster one of each round
        self.assertEqual((figure["low"], figure["median"], figure["high"]), (2, 2.4, 3))
        self.assertTrue(figure["met"])
        self.assertEqual(got["torch"], "9.9")

    def test_each_kind_of_processor_has_its_target(self):
        numbers = {"aloft": [10], "eager": [15]}
        self.assertFalse(self.compare(numbers, 1, has_amx=True)["figures"][0]["met"])
        (self.folder / "log").unlink()
        got = self.compare(numbers, 1, has_amx=False)["figures"][0]
        self.assertEqual((got["met"], got["target"]), (True, ">= 1"))

    def test_a_time_that_cannot_be_is_no_figure(self):
        def got(**least):
            less = rows.Figure("start less two steps", "ms", lambda r: 5 - 2 * r["aloft"]["step_ms"],
                               rows.at_most(9), rows.at_most(9), **least)
            return self.compare({"aloft": [10, 1, 1]}, figures=[less])["figures"][0]
        self.assertIn("-15 ms is below 0", got()["missing"])
        (self.folder / "log").unlink()
        self.assertEqual(got(least=None)["low"], -15)  # of what may be

    def test_a_limit_that_is_beaten_is_a_defect_and_no_round_is_left_out(self):
        def round_(limit, step):
            return {"aloft": {"limit_ms": limit, "limit_fraction": limit / step}}

        figure = next(rows.limit_figures(rows.at_least(72), None))
        got = interleaved.verdict(figure, [round_(60, 100), round_(90, 100), round_(70, 100)], {}, True)
        self.assertEqual((got["values"], got["met"]), ([60, 90, 70], False))
        self.assertNotIn("beaten", got)
        got = interleaved.verdict(figure, [round_(120, 100), round_(90, 100)], {}, True)
        self.assertEqual((got["values"], got["beaten"]), ([120, 90], 1))
        self.assertIn("**above what can be in 1 rounds**", page.figure_text(got))

    def test_what_fails_is_said_and_not_tried_again(self):
        figures = [rows.speed_figure(None, None), rows.memory_figure(rows.at_most(1), "other")]
        got = self.compare({"aloft": [10, 10], "eager": [20, 20], "other": ["fail", 5]}, 2, figures)
        self.assertEqual((self.folder / "log").read_text().split().count("other"), 1)
        self.assertEqual(got["figures"][0]["median"], 2)
        self.assertEqual(got["figures"][1]["missing"], "other: exit 1: error: secret said no")
        self.assertNotIn("met", got["figures"][1])
        self.assertIn("missing", page.summary([got]))

    def test_without_a_peer_there_is_no_ratio(self):
        row = rows.Row("r", "R", [programs.Program("aloft", ["aloft", "name=aloft"]),
                                  *rows.peers("gpt", "fp32")], [rows.speed_figure(None, None)])
        (self.folder / "numbers").write_text('{"aloft": [1]}')
        got = interleaved.compare(row, programs.Tools(self.fake, None, 2, 60), 1, True, print)
        self.assertEqual(got["figures"][0]["missing"], "eager: no Python with torch")

    def test_a_program_that_takes_too_long_is_ended(self):
        (self.folder / "numbers").write_text('{"aloft": ["sleep"]}')
        with self.assertRaisesRegex(programs.Missing, "longer than 1 s"):
            programs.run(programs.Program("aloft", ["aloft", "name=aloft"]),
                         programs.Tools(self.fake, None, 2, 1))
        self.assertFalse(is_alive(int((self.folder / "pid").read_text())))

    def test_a_page_and_plots_come_of_it(self):
        got = self.compare({"aloft": [10, 20], "eager": [30, 50], "split": ["fail"]}, 2,
                           [rows.speed_figure(rows.at_least(2), None),
                            rows.memory_figure(rows.at_most(0.1)),
                            rows.memory_figure(rows.at_most(1), "split", "split & <more>")])
        folder = self.folder / "docs" / "benchmarks"
        whole = self.whole_run(got)
        results_file.save(folder / "here.json", whole)
        page.write(folder)
        text = (folder.parent / "benchmarks.md").read_text()
        self.assertIn("1 of 2 targets that were measured", text)
        self.assertIn("2.75 (2.50 to 3.00) | met", text)
        self.assertIn("**missed**", text)
        self.assertIn("split: exit 1", text)
        for file in folder.glob("*.svg"):
            xml.dom.minidom.parse(str(file))
            self.assertIn(f"(benchmarks/{file.name})", text)
        self.assertEqual(len(list(folder.glob("*.svg"))), 2)
        self.assertIn("| gpt2-bf16 | speed, times the best PyTorch | 3.00, 2.50 |", text)
        before = (folder.parent / "benchmarks.md").read_text()
        for change, words in (({"rows": whole["rows"][1:]}, "rows are missing: gpt2-bf16"),
                              ({"run": whole["run"] | {"revision": "abc+"}}, "not a clean revision"),
                              ({"run": whole["run"] | {"quick": True}}, "proves nothing"),
                              ({"run": whole["run"] | {"rounds": 4}}, "too few")):
            results_file.save(folder / "here.json", whole | change)
            with self.assertRaisesRegex(SystemExit, words):
                page.write(folder)
            self.assertEqual((folder.parent / "benchmarks.md").read_text(), before)

    def test_rows_that_came_later_are_said(self):
        got = self.compare({"aloft": [10], "eager": [30]}, 1)
        whole = self.whole_run(got)
        folder = self.folder / "docs" / "benchmarks"
        for table in (whole["run"]["table"][:-2], None):  # older files do not say
            old = whole | {"rows": whole["rows"][:-2], "run": whole["run"] | {"table": table}}
            results_file.save(folder / "here.json", old)
            page.write(folder)
            text = (folder.parent / "benchmarks.md").read_text()
            self.assertIn(f"did not have yet: {', '.join(whole['run']['table'][-2:])}.", text)
        results_file.save(folder / "here.json", whole)
        page.write(folder)
        self.assertNotIn("did not have yet", (folder.parent / "benchmarks.md").read_text())

    def whole_run(self, row):
        """`row` as the first of a run of all rows."""
        others = [{"name": r.name, "title": r.title, "rounds": [], "once": {}, "missing": {},
                   "commands": {}, "figures": []} for r in rows.all_rows()]
        run = {"dates": ["2026-01-02T03:04:05+00:00", "2026-01-02T05:04:05+00:00"], "revision": "abc",
               "compiler": "c++", "oneDNN": "1", "threads": 2, "quick": False, "rounds": 5,
               "table": [r.name for r in rows.all_rows()]}
        return {"schema": 2, "machine": MACHINE, "run": run,
                "rows": [row | {"name": "gpt2-bf16"}, *others[1:]]}

    def test_an_old_page_says_what_it_lacks(self):
        got = self.compare({"aloft": [10, 20], "eager": [30, 50]}, 2)
        limit = {"name": "share of the machine's limit", "unit": "%", "plot": "limit", "median": 1234,
                 "target": None, "low": 1234, "high": 1234, "values": [1234], "met": None}
        stamp = {"date": "2026-01-02T03:04:05+00:00", "compiler": "c++", "threads": 2}
        row = got | stamp | {"name": "gpt2-bf16", "figures": [*got["figures"], limit]}
        folder = self.folder / "docs" / "benchmarks"
        results_file.save(folder / "old.json", {
            "schema": 1, "machine": MACHINE,
            "rows": [row | {"revision": "abc"}, row | {"name": "start", "revision": "def+"}]})
        page.write(folder)
        text = (folder.parent / "benchmarks.md").read_text()
        self.assertIn("These rows are not one run", text)
        self.assertIn("| revision | abc, def+ |", text)
        self.assertNotIn("1,234 %", text)
        self.assertIn("no target counts as met", text)
        self.assertNotIn("| met |", text)
        self.assertNotIn("targets that were measured are met", text)

    def test_what_would_be_no_page_is_refused_before_it_is_measured(self):
        path = ROOT / "docs" / "benchmarks" / "never-written.json"
        run = self.start(path, {"aloft": [7]})
        self.assertIn("this would be no page: it measures the program that is built from the tree",
                      run.communicate()[0])
        self.assertNotEqual(run.returncode, 0)
        some = results_file.new(MACHINE, {"quick": False, "revision": "abc", "rounds": 5})
        self.assertIn("rows are missing", results_file.why_no_page(some, ["gpt2-bf16"]))
        self.assertFalse(path.exists())
        self.assertFalse((self.folder / "log").exists())

    def start(self, path, numbers, *options):
        """The program itself on the row that needs no peer."""
        (self.folder / "numbers").write_text(json.dumps(numbers))
        (self.folder / "aloft").write_text(f'#!/bin/sh\nexec {self.fake} name=aloft "$@"\n')
        (self.folder / "aloft").chmod(0o755)
        return subprocess.Popen(
            [sys.executable, ROOT / "tools" / "bench_peers", "--only", "start", "--json", path,
             "--aloft", self.folder / "aloft", *options], stdout=subprocess.PIPE, text=True,
            stderr=subprocess.STDOUT, env=dict(os.environ, JUDGE_PYTHON=sys.executable))

    def test_without_the_program_nothing_is_measured(self):
        tool = [sys.executable, "-B", ROOT / "tools" / "bench_peers", "--json", self.folder / "r.json",
                "--aloft", self.folder / "nothing"]
        got = subprocess.run(tool, capture_output=True, text=True, timeout=60, check=False,
                             env=dict(os.environ, JUDGE_PYTHON=sys.executable))
        self.assertEqual(got.returncode, 1)
        self.assertIn("is not built: make build", got.stderr)
        self.assertEqual(got.stdout, "")

    def test_a_run_that_is_killed_leaves_the_file_as_it_was(self):
        path = self.folder / "results" / "r.json"
        done = self.start(path, {"aloft": [7]}, "--rounds", "1")
        done.communicate()
        before = path.read_text()
        self.assertEqual([r["name"] for r in json.loads(before)["rows"]], ["start"])
        self.assertEqual(json.loads(before)["run"]["rounds"], 1)
        running = self.start(path, {"aloft": [7, 7, "sleep"]}, "--rounds", "2")
        for _ in range(200):
            if (self.folder / "pid").exists():
                break
            time.sleep(0.05)
        running.send_signal(signal.SIGTERM)
        self.assertIn("stopped", running.communicate()[0])
        self.assertNotEqual(running.returncode, 0)
        self.assertEqual(path.read_text(), before)
        self.assertEqual([p.name for p in path.parent.iterdir()], ["r.json"])
        self.assertFalse(is_alive(int((self.folder / "pid").read_text())))

    def test_foreign_files_are_refused_unchanged(self):
        path = self.folder / "r.json"
        for text, words in (("not json", "no file of results"),
                            ('{"schema": 99, "machine": {}, "rows": []}', "schema 99"),
                            ('{"schema": 1, "machine": {"processor": "z80"}, "rows": []}',
                             "not on this machine")):
            path.write_text(text)
            run = self.start(path, {"aloft": [7]})
            self.assertIn(words, run.communicate()[0])
            self.assertNotEqual(run.returncode, 0)
            self.assertEqual(path.read_text(), text)


class Rows(unittest.TestCase):
    def test_every_optimizer_has_a_row(self):
        catalogue = (ROOT / "src" / "optim" / "catalog.inc").read_text()
        kinds = set(re.findall(r"^OPTIMIZER\((\w+), \w+\)$", catalogue, re.M))
        self.assertGreater(len(kinds), 15)
        self.assertEqual({o.kind for o in optimizer_rows.OPTIMIZERS}, kinds)
        names = {row.name for row in rows.all_rows()}
        self.assertLessEqual({f"optimizer-{kind}" for kind in kinds}, names)

    def test_an_update_is_held_beside_its_like(self):
        ops = [{"op": "grad_stats", "phase": "update", "ms": 10}, {"op": "adamw_update", "phase": "update", "ms": 50},
               {"op": "matmul", "phase": "forward", "ms": 7}]
        round_ = {"aloft": {"step_ms": 67, "ops": ops},
                  "turns": {"step_ms": 48, "ratio": 1.2, "share": 0.9, "peer_share": 0.75},
                  "torch, whole": {"step_ms": 90}}
        row = next(row for row in rows.all_rows() if row.name == "optimizer-adamw")
        self.assertEqual([figure.of(round_) for figure in row.figures], [1.2, 90 / 60, 90, 75])
        self.assertEqual({p.name for p in row.programs}, set(round_))

    def test_a_title_says_what_muon_multiplies_in(self):
        found = {row.name: (row.title, row.programs[0].shown()) for row in rows.all_rows() if "muon" in row.name}
        self.assertEqual(set(found), {"optimizer-muon", "optimizer-muon-fp32"})
        for title, command in found.values():
            self.assertEqual("with products in bf16" in title, "optimizer.bf16_products=true" in command, title)
            self.assertNotEqual("with products in bf16" in title, "with products in fp32" in title, title)

    def test_turns_alternate_and_are_compared_within_a_turn(self):
        log, numbers = [], iter(["9 9", "10 9", "20 20", "40 30"])

        class Sweep:
            def turn(self):
                log.append("ours")
                return tuple(map(float, next(numbers).split()))

        def step():
            log.append("theirs")
            time.sleep(0.03)

        theirs, got = turns.in_turns(step, Sweep(), 3)
        self.assertEqual(log, ["ours", "theirs", "theirs", "ours"] * 2)
        self.assertEqual((got["sweep_ms"], got["share"], got["turns"]), (20, 0.9, 3))  # 10/9, 20/20, 40/30
        self.assertAlmostEqual(got["ratio"], theirs / 20, delta=theirs / 40)
        self.assertGreater(theirs, 29)

    def test_a_program_that_ends_before_its_turn_is_said(self):
        with turns.Sweep([sys.executable, "-c", "print(input() + '1.5 0.75')"], 1) as sweep:
            self.assertEqual(sweep.turn(), (1.5, 0.75))
            with self.assertRaisesRegex(SystemExit, "ended before its turn"):
                sweep.turn()

    def test_a_tensor_formula_is_held_without_check_and_norm(self):
        ops = [{"op": "grad_stats", "phase": "update", "ms": 10}, {"op": "fused", "phase": "update", "ms": 30}]
        round_ = {"aloft": {"step_ms": 67, "ops": ops, "update_bytes": 6e8, "stream_gb_s": 30.0,
                            "update_sweep_gb_s": 40.0},
                  "torch": {"step_ms": 60}, "torch, whole": {"step_ms": 80}}
        row = next(row for row in rows.all_rows() if row.name == "optimizer-adafactor")
        self.assertEqual([figure.of(round_) for figure in row.figures], [2, 2, 50])

    def test_rows_are_whole(self):
        table = rows.all_rows()
        names = [row.name for row in table]
        self.assertEqual(len(names), len(set(names)))
        for row in table:
            used = [p.name for p in [*row.programs, *row.once]]
            self.assertEqual(len(used), len(set(used)), row.name)
            self.assertTrue(all(f.unit in ("x", "%", "ms") for f in row.figures), row.name)
            self.assertTrue(all(f.plot in ("", *charts.KINDS) for f in row.figures), row.name)
            for program in row.programs:
                if program.command[0] == "python":
                    self.assertTrue((ROOT / program.command[1]).is_file(), program.shown())
                self.assertNotIn(str(ROOT), program.shown())  # as a user types it


if __name__ == "__main__":
    unittest.main()
