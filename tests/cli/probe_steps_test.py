"""A probe run of a recipe makes its steps, and nothing of a training's: no evaluation, no sample, no checkpoint."""
import json
import shutil

from probe_dumps import ProbeTest
from program import main

RUN = ["probe", "run", "tiny.toml", "--out"]
# What a training of that recipe would do, at every step and at its end.
TRAINING = ["--set", "train.eval_every=1", "--set", "train.checkpoint_every=1", "--set", "train.sample_every=1",
            "--set", "train.sample_tokens=4"]


class ProbeSteps(ProbeTest):
    def lines(self, run):
        return [json.loads(line) for line in (self.folder / run / "metrics.jsonl").read_text().splitlines()]

    def test_nothing_is_made_but_steps(self):
        said = self.aloft(*RUN, "steps", "--steps", 3, *TRAINING)
        self.assertEqual(len(list((self.folder / "steps").glob("step*"))), 3)
        self.assertEqual([line["step"] for line in self.lines("steps/run")], [1, 2, 3])
        self.assertTrue(all("loss" in line for line in self.lines("steps/run")))
        for folder in ("checkpoints", "samples"):
            self.assertEqual(list((self.folder / "steps/run").glob(f"{folder}/*")), [])
        record = json.loads((self.folder / "steps/run/run.json").read_text())
        self.assertTrue(record["finished"])
        self.assertIsNone(record["saved"])
        # The steps are those of the training.
        self.aloft("train", "tiny.toml", "--out", "trained", "--steps", 3, *TRAINING)
        losses = [line["loss"] for line in self.lines("trained") if "loss" in line]
        self.assertEqual([line["loss"] for line in self.lines("steps/run")], losses)
        self.assertEqual(said.stderr, b"")

    def test_the_task_of_the_recipe_is_taken(self):
        (self.folder / "asks.toml").write_text(self.RECIPE + '[probe]\ntask = "overflow"\n[profile]\nsteps = 1\n')
        for out, words, task in (("own", [], "overflow"), ("other", ["--task", "statistics"], "statistics"),
                                 ("set", ["--set", 'probe.task="tensor"'], "tensor")):
            done = self.aloft("probe", "run", "asks.toml", "--out", out, "--json", *words)
            self.assertEqual(json.loads(done.stdout)["task"], task)
            # Nor is anything timed that the training would time, whose first step that is comes later.
            self.assertEqual(done.stderr, b"")
        (self.folder / "none.toml").write_text(self.RECIPE + '[probe]\ntask = "none"\n')
        said = self.aloft("probe", "run", "none.toml", "--out", "none", "--json").stdout
        self.assertEqual(json.loads(said)["task"], "statistics")

    def test_how_often_without_what_says_what_to_try(self):
        (self.folder / "often.toml").write_text(self.RECIPE + "[probe]\nevery = 3\n")
        said = self.aloft("train", "often.toml", "--out", "often", exit_code=2).stderr
        self.assertIn(b'probe.every does nothing where probe.task is none; try task = "statistics"', said)

    def test_choices_with_commas_in_them_are_apart(self):
        said = self.aloft("train", "tiny.toml", "--probe", "stats", exit_code=2).stderr
        self.assertIn(b"stats not in {overflow, trends, none, ", said)
        self.assertIn(b"statistics:op,attention, ", said)
        self.assertIn(b"did you mean statistics?", said)
        self.aloft("train", "tiny.toml", "--out", "attended", "--probe", "statistics:op,attention")

    def test_no_line_of_help_is_long(self):
        for verb in ("run", "check-config"):
            for line in self.aloft("probe", verb, "--help").stdout.decode().splitlines():
                self.assertLessEqual(len(line), 110, line)

    # Schedules that go by the run's length have that of the training.
    def test_its_rates_are_those_of_the_training(self):
        for schedule in ('{kind="cosine", warmup=2}', '{kind="linear"}'):
            with self.subTest(schedule):
                words = ["--set", f"schedule={schedule}"]
                self.aloft("train", "tiny.toml", "--out", "whole", *words)
                said = self.aloft(*RUN, "two", "--steps", 2, *words)
                self.assertEqual(said.stderr, b"")
                rates = [[line["lr"] for line in self.lines(run) if "lr" in line] for run in ("whole", "two/run")]
                self.assertEqual(len(rates[1]), 2)
                self.assertEqual(rates[0][:2], rates[1])
                self.assertEqual(len(rates[0]), 4)
                self.assertNotEqual(*rates[1])
                # More steps than the recipe has are no mistake.
                self.aloft(*RUN, "longer", "--steps", 5, *words)
                self.assertEqual(len(self.lines("longer/run")), 5)
                for run in ("whole", "two", "longer"):
                    shutil.rmtree(self.folder / run)

    # Each as it would be said of a training of one step.
    def test_nothing_is_advised_on_training(self):
        words = ["--set", "schedule.warmup=10", "--steps", 2, "--set", "optimizer.lr=5"]
        trained = self.aloft("train", "tiny.toml", "--out", "advised", *words, exit_code=None).stderr
        self.assertIn(b"schedule.warmup is 10 updates and the run 2", trained)
        said = self.aloft(*RUN, "unadvised", *words, exit_code=None)
        self.assertNotIn(b"warm", said.stderr)
        self.assertNotIn(b"learn", said.stderr)

    def test_its_steps_are_made_again_without_a_checkpoint(self):
        self.aloft(*RUN, "first", "--steps", 4, "--at", 3)
        self.aloft("probe", "run", "first/run", "--at", 3, "--out", "again")
        self.assertEqual(self.dump("again", 3), self.dump("first", 3))
        self.aloft("probe", "redo", "first/run", "--step", 2)

    # Where losses of validation decide on the rate there is no step without them.
    def test_a_rate_that_goes_by_evaluations_has_them(self):
        plateau = ["--set", 'schedule={kind="plateau", patience=0, threshold=0.9}', "--steps", 5, "--set",
                   "train.eval_every=1"]
        self.aloft("train", "tiny.toml", "--out", "falling", *plateau)
        self.aloft(*RUN, "fallen", *plateau)
        rates = [[line["lr"] for line in self.lines(run) if "lr" in line] for run in ("falling", "fallen/run")]
        self.assertLess(rates[0][-1], rates[0][0])
        self.assertEqual(*rates)

    def test_a_run_that_may_go_back_has_where_to(self):
        wild = ["--set", 'precision={level="O2:fp16", loss_scale={kind="static", init=1}}', "--set",
                "optimizer.lr=3000", "--set", 'train.on_nonfinite="rollback"']
        said = self.aloft(*RUN, "back", "--steps", 3, *wild, exit_code=5)
        self.assertIn(b"goes back to step 0", said.stderr)


if __name__ == "__main__":
    main()
