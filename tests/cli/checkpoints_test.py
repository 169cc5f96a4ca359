"""What a run saves, keeps and goes on from, as its user and the machine see it.

  checkpoints_test.py ALOFT REPOSITORY (the standard library only)
"""

import array
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ALOFT = os.path.abspath(sys.argv[1])
GONE = 4194305  # no process has a number as high

TINY = """[model]
layers = 1
dim = 16
heads = 2
context = 8
dropout = 0.1
[data]
text = ["text.txt"]
tokenizer = { kind = "byte" }
validation = 0.2
[precision]
level = "O2:fp16"
[train]
batch = 2
steps = 4
eval_batches = 2
sample_tokens = 0
"""


def step(number):
    return f"step-{number:06}"


class Checkpoints(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        (self.folder / "text.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 40)
        (self.folder / "tiny.toml").write_text(TINY)
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache"),
                            "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}

    def words(self, out, *rest, **settings):
        sets = [w for key, value in settings.items()
                for w in ("--set", f"{key.replace('__', '.')}={value}")]
        return [ALOFT, "train", "tiny.toml", "--out", out, "--quiet", *map(str, rest), *sets]

    def aloft(self, *arguments, exit_code=0):
        done = subprocess.run([ALOFT, *map(str, arguments)], cwd=self.folder, text=True, errors="replace",
                              capture_output=True, env=self.environment, timeout=300)
        self.assertEqual(done.returncode, exit_code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done

    def train(self, out, *rest, exit_code=0, **settings):
        return self.aloft(*self.words(out, *rest, **settings)[1:], exit_code=exit_code)

    def start(self, out, *rest, before=None, **settings):
        """A run in the background that has saved its first checkpoint."""
        run = subprocess.Popen(self.words(out, *rest, **settings), cwd=self.folder,
                               env=self.environment, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, preexec_fn=before)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        for _ in range(6000):
            if self.steps(out) or run.poll() is not None:
                break
            time.sleep(0.01)
        self.assertIsNone(run.poll(), "the run has ended by itself")
        return run

    def checkpoints(self, out):
        return self.folder / out / "checkpoints"

    def names(self, out):
        folder = self.checkpoints(out)
        return sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []

    def steps(self, out):
        return [int(n[5:]) for n in self.names(out) if n.startswith("step-") and n[5:].isdigit()]

    def manifest(self, out, number):
        return json.loads((self.checkpoints(out) / step(number) / "manifest.json").read_text())

    def record(self, out):
        return json.loads((self.folder / out / "run.json").read_text())

    def lines(self, out):
        text = (self.folder / out / "metrics.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def same_state(self, a, b, number):
        for file in ("model.safetensors", "state.safetensors"):
            one, other = (self.checkpoints(x) / step(number) / file for x in (a, b))
            self.assertTrue(one.read_bytes() == other.read_bytes(), f"{one} and {other} differ")

    def flip(self, out, number, file):
        path = self.checkpoints(out) / step(number) / file
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)

    # What is read of a checkpoint.

    def test_a_model_is_used_without_its_optimizers_state(self):
        """Gigabytes that nobody asks for are not read: a flipped byte in them is no business of the weights."""
        self.train("run", "--steps", 6, train__checkpoint_every=2, optimizer__average="ema")
        self.aloft("export", "hf", "run", "right")
        self.flip("run", 6, "state.safetensors")
        self.aloft("export", "hf", "run", "again")
        self.aloft("export", "hf", f"run/checkpoints/{step(6)}", "one")
        for other in ("again", "one"):
            self.assertEqual(*((self.folder / name / "model.safetensors").read_bytes() for name in ("right", other)))
        averaged = self.aloft("export", "hf", "run", "mean", "--average").stderr
        self.assertIn("state.safetensors has", averaged)  # where the means are, so that it is passed over
        self.assertIn(step(4), averaged)
        self.assertIn("passed over", self.train("run", "--resume", "--steps", 7, optimizer__average="ema").stderr)

    def test_a_model_of_a_checkpoint_that_is_not_whole_is_not_used(self):
        self.train("run", "--steps", 6, train__checkpoint_every=2)
        for number, harm in ((6, lambda path: os.truncate(path, 100)), (4, os.remove)):
            harm(self.checkpoints("run") / step(number) / "state.safetensors")
            said = self.aloft("export", "hf", "run", f"out-{number}").stderr
            self.assertIn("state.safetensors", said)
            self.assertIn(step(number - 2), said)
        self.flip("run", 2, "model.safetensors")
        self.assertIn("E0641", self.aloft("export", "hf", "run", "none", exit_code=3).stderr)

    # What is worth going on from.

    def test_what_diverges_eats_no_healthy_checkpoint(self):
        self.train("run", "--steps", 20, train__keep_checkpoints=2)
        done = self.train("run", "--resume", "--steps", 60, exit_code=5, optimizer__lr="1e6",
                          train__keep_checkpoints=1, train__checkpoint_every=5,
                          train__keep_best=0)
        self.assertIn("E0822", done.stderr)
        self.assertIn(step(20), done.stderr)
        self.assertEqual(self.steps("run"), [20, 60])
        self.assertEqual(self.manifest("run", 20)["problem"], "")
        self.assertNotEqual(self.manifest("run", 60)["problem"], "")
        self.assertFalse(self.record("run")["finished"])
        self.assertEqual(self.record("run")["error"]["code"], "E0822")
        done = self.train("run", "--resume", "--steps", 30)
        self.assertIn("step 60 is passed over", done.stderr)
        self.assertEqual([r["step"] for r in self.lines("run") if "loss" in r],
                         list(range(1, 31)))
        self.assertEqual(self.manifest("run", 30)["problem"], "")

    def test_a_loss_far_above_its_start_is_no_success(self):
        done = self.train("run", "--steps", 30, exit_code=5, optimizer__lr=50,
                          optimizer__clip_norm=0, precision__level="O0")
        self.assertIn("far above", done.stderr)
        self.assertTrue((self.folder / "run" / "metrics.jsonl").exists())

    def test_a_run_that_ends_above_its_start_says_so(self):
        # One step too long, whose end is the same on every processor: many would end anywhere.
        done = self.train("run", "--steps", 1, optimizer__kind="sgd", optimizer__lr=5,
                          precision__level="O0", optimizer__clip_norm=0, schedule__kind="constant")
        self.assertRegex(done.stderr, r"ends with a validation loss of \S+(, far above the training loss of \S+ that "
                                      r"it began with,| and began with a training loss of \S+: it has learnt nothing)")
        self.assertNotIn("the run ends with", self.train("good", "--steps", 30).stderr)

    def test_a_state_is_judged_by_its_own_weights(self):
        # The first step's loss is that of the untouched weights, whatever the update did to them.
        self.train("run", "--steps", 1, exit_code=5, optimizer__lr="1e6", precision__level="O0")
        self.assertNotEqual(self.manifest("run", 1)["problem"], "")
        self.train("good", "--steps", 1)
        self.assertEqual(self.manifest("good", 1)["problem"], "")

    def test_the_search_of_a_loss_scale_is_healthy(self):
        scale = '{kind = "dynamic", init = 16777216}'
        self.train("run", "--steps", 3, precision__loss_scale=scale)
        self.assertTrue(self.lines("run")[0]["skipped"])
        self.assertEqual(self.manifest("run", 3)["problem"], "")

    # What stays.

    def test_the_best_checkpoint_stays_and_is_named(self):
        # A rate at which the validation loss goes up and down.
        self.train("run", "--steps", 40, train__eval_every=4, optimizer__lr=0.1,
                   train__keep_checkpoints=1, train__keep_every=12)
        losses = {r["step"]: r["val_loss"] for r in self.lines("run") if "val_loss" in r}
        best = min(losses, key=losses.get)
        self.assertEqual(self.steps("run"), sorted({best, 12, 24, 36, 40}))
        self.assertEqual(self.record("run")["result"]["best"],
                         {"step": best, "val_loss": losses[best]})
        self.assertEqual(self.manifest("run", best)["validation_loss"], losses[best])
        self.assertNotEqual(best, 40)
        done = self.aloft("train", "tiny.toml", "--out", "run", "--resume", "--steps", 40)
        self.assertIn(f"best validation loss {losses[best]:.4f} at step {best}: "
                      "aloft generate run --checkpoint best\n", done.stdout)
        talk = self.aloft("generate", "run", "--prompt", "a", "--tokens", 1, "--checkpoint", "best").stderr
        self.assertRegex(talk, rf"reading run/checkpoints/\S*{best}, validation loss "
                         rf"{losses[best]:.4f}\n")
        said = {}
        for which in ("best", str(best), "newest", "40"):
            said[which] = self.aloft("generate", "run", "--prompt", "the", "--tokens", 9,
                                     "--temperature", 0, "--checkpoint", which, "--json").stdout
        tokens = {which: json.loads(text)["tokens"] for which, text in said.items()}
        self.assertEqual(tokens["best"], tokens[str(best)])
        self.assertEqual(tokens["newest"], tokens["40"])
        self.assertIn("E0823", self.aloft("generate", "run", "--prompt", "a", "--checkpoint", "7",
                                          exit_code=2).stderr)

    def test_the_best_stays_where_a_resume_evaluates_it_first(self):
        self.train("run", "--steps", 12, train__checkpoint_every=6)
        shutil.rmtree(self.checkpoints("run") / step(12))
        self.assertIsNone(self.manifest("run", 6)["validation_loss"])
        # From here on no weight changes: of equal losses the first is the best.
        self.train("run", "--resume", "--steps", 30, train__eval_every=6, train__checkpoint_every=3,
                   train__keep_checkpoints=1, optimizer__lr=0, optimizer__weight_decay=0)
        self.assertEqual(self.record("run")["result"]["best"]["step"], 6)
        self.assertEqual(self.steps("run"), [6, 30])

    def test_a_forgotten_rule_costs_no_checkpoint_without_a_word(self):
        often = dict(train__checkpoint_every=2, train__keep_best=0)
        self.train("all", "--steps", 12, train__keep_checkpoints=0, **often)
        self.train("all", "--resume", "--steps", 12)  # nothing to do
        self.assertEqual(self.steps("all"), [2, 4, 6, 8, 10, 12])
        said = self.train("all", "--resume", "--steps", 13, train__keep_best=0).stderr
        self.assertIn("of step 2, 4, 6: train.keep_checkpoints: 0, now 3", said)
        self.assertEqual(self.steps("all"), [10, 12, 13])
        self.train("good", "--steps", 12, train__keep_checkpoints=1, train__keep_every=4, **often)
        said = self.train("good", "--resume", "--steps", 14, train__keep_checkpoints=1, **often).stderr
        self.assertNotIn("removes", said)
        self.assertEqual(self.steps("good"), [4, 8, 12, 14])

    def test_what_a_killed_save_left_to_remove_goes_by_its_own_rules(self):
        one = dict(train__keep_checkpoints=1, train__keep_best=0)
        self.train("run", "--steps", 2, **one)
        shutil.copytree(self.checkpoints("run") / step(2), self.folder / "kept")
        self.train("run", "--resume", "--steps", 4, **one)
        shutil.copytree(self.folder / "kept", self.checkpoints("run") / step(2))
        self.train("run", "--resume", "--steps", 4, train__keep_best=0, train__keep_checkpoints=2)
        self.assertEqual(self.steps("run"), [2, 4])
        self.train("run", "--resume", "--steps", 4, **one)
        self.assertEqual(self.steps("run"), [4])

    def test_patience_ends_a_run_that_learns_nothing(self):
        flat = dict(optimizer__lr=0, optimizer__weight_decay=0, train__eval_every=2,
                    train__patience=2)
        self.train("run", "--steps", 40, **flat)
        self.assertEqual(self.lines("run")[-1]["step"], 6)
        self.assertTrue(self.record("run")["finished"])
        self.assertTrue(self.record("run")["result"]["stopped_early"])
        self.train("run", "--resume", "--steps", 40, **flat)
        self.assertEqual(self.lines("run")[-1]["step"], 6)
        self.assertIn("train.eval_every", self.train("other", exit_code=2,
                                                     train__patience=2).stderr)

    def test_neither_foreign_nor_damaged_ones_count_or_go(self):
        self.train("other", "--steps", 8)
        self.train("run", "--steps", 4)
        folder = self.checkpoints("run")
        shutil.copytree(self.checkpoints("other") / step(8), folder / step(8))
        shutil.copytree(folder / step(4), folder / step(2))
        damaged = folder / step(2) / "model.safetensors"
        damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
        (folder / "mine").mkdir()
        for steps in (6, 8):
            self.train("run", "--resume", "--steps", steps, train__keep_checkpoints=1,
                       train__keep_best=0)
        # The other run's step 8 had a name that was needed: it has stepped aside.
        self.assertEqual(self.names("run"), ["mine", step(2), step(8), step(8) + ".aside-1"])
        self.assertEqual(self.manifest("run", 8)["run"], self.record("run")["run"])

    def test_a_run_without_its_record_goes_on_from_its_checkpoints(self):
        self.train("straight", "--steps", 8)
        self.train("run", "--steps", 4)
        (self.folder / "run" / "run.json").unlink()
        self.train("run", "--steps", 8, exit_code=2)
        self.train("run", "--resume", "--steps", 8, exit_code=2, model__dim=32)
        self.train("run", "--resume", "--steps", 8)
        self.same_state("run", "straight", 8)

    def test_a_run_without_its_record_is_compared_with_its_checkpoints(self):
        self.train("run", "--steps", 4)
        for name in ("run.json", "data.json"):
            (self.folder / "run" / name).unlink()
        resume = ("run", "--resume", "--steps", 8)
        said = self.train(*resume, exit_code=2, model__heads=4).stderr
        for words in ("run.json was lost", "E0817", "model.heads: 2, now 4"):
            self.assertIn(words, said)
        text = self.folder / "text.txt"
        kept = text.read_text()
        text.write_text(kept + "more of it\n" * 40)
        said = self.train(*resume, exit_code=2).stderr
        for words in ("E0818", "training tokens: "):
            self.assertIn(words, said)
        text.write_text(kept)
        said = self.train(*resume, optimizer__lr=0.5e-3).stderr
        self.assertIn("optimizer.lr: 0.001 -> 0.0005", said)
        self.assertEqual(self.record("run")["recipe"]["optimizer"]["lr"], 0.5e-3)

    def test_a_lost_record_and_a_manifest_that_says_little(self):
        self.train("run", "--steps", 4)
        (self.folder / "run" / "run.json").unlink()
        manifest = self.manifest("run", 4)
        for key in ("recipe", "data", "xxh3", "run", "problem", "last_loss", "start_loss",
                    "validation_loss", "best"):
            del manifest[key]
        manifest["format"] = 1
        (self.checkpoints("run") / step(4) / "manifest.json").write_text(json.dumps(manifest))
        said = self.train("run", "--resume", "--steps", 8).stderr
        self.assertIn("no more than its model", said)

    def test_a_run_of_a_program_before_goes_on(self):
        self.train("straight", "--steps", 8)
        self.train("run", "--steps", 4)
        record = self.record("run")
        del record["run"]
        (self.folder / "run" / "run.json").write_text(json.dumps(record))
        manifest = self.manifest("run", 4)
        for key in ("recipe", "data", "xxh3", "run", "problem", "last_loss", "start_loss",
                    "validation_loss", "best"):
            del manifest[key]
        manifest["format"] = 1
        (self.checkpoints("run") / step(4) / "manifest.json").write_text(json.dumps(manifest))
        self.train("run", "--resume", "--steps", 8, train__keep_checkpoints=1)
        self.same_state("run", "straight", 8)
        self.assertIn(8, self.steps("run"))

    # What killed saves leave.

    def test_a_run_that_has_ended_is_not_saved_again(self):
        self.train("run")
        file = self.checkpoints("run") / step(4) / "model.safetensors"
        before, record = file.stat(), self.record("run")
        self.train("run", "--resume")
        self.assertEqual((before.st_ino, before.st_mtime_ns),
                         (file.stat().st_ino, file.stat().st_mtime_ns))
        self.assertEqual(self.record("run")["result"], record["result"])

    def test_a_save_that_was_cut_short_is_finished_or_undone(self):
        self.train("straight")
        whole = self.checkpoints("straight") / step(4)
        for name, left in [("partial", [".partial"]), ("old", [".old"]),
                           ("both", [".old", ".partial"]), ("pruned", [".removed"])]:
            self.train(name, "--steps", 2)
            wanted = [step(2), step(4)]
            if name != "pruned":
                shutil.copy(self.folder / "straight" / "run.json", self.folder / name / "run.json")
                shutil.rmtree(self.checkpoints(name) / step(2))
                wanted = [step(4)]
            for ending in left:
                shutil.copytree(whole, self.checkpoints(name) / f".{step(4)}{ending}")
            (self.checkpoints(name) / f".{step(3)}.partial").mkdir()  # half of one
            self.train(name, "--resume")
            self.same_state(name, "straight", 4)
            self.assertEqual(self.names(name), wanted, name)

    def test_what_killed_programs_leave_goes(self):
        self.train("run")
        cache = self.folder / "cache" / "aloft"
        for path in (self.folder / "run" / f".run.json.{GONE}-0.tmp",
                     cache / f"0123456789abcdef.tmp{GONE}.0" / "train.shard"):
            path.parent.mkdir(exist_ok=True)
            path.write_text("half")
        living = cache / f"0123456789abcdef.tmp{os.getpid()}.0"
        living.mkdir()
        self.train("run", "--resume", "--steps", 6)
        self.assertFalse(list((self.folder / "run").glob(".*")))
        self.assertEqual([p for p in cache.iterdir() if ".tmp" in p.name], [living])

    def test_a_run_saves_by_the_clock_and_loses_nothing_when_killed(self):
        clock = dict(train__checkpoint_minutes="1e-9", optimizer__lr="1e-3")
        run = self.start("run", "--steps", 1000000, **clock)
        run.kill()
        run.wait()
        newest = self.steps("run")[-1]
        self.train("run", "--resume", "--steps", newest + 3, **clock)
        self.train("straight", "--steps", newest + 3, optimizer__lr="1e-3",
                   train__checkpoint_minutes=0)
        self.assertEqual(self.steps("straight"), [newest + 3])
        self.same_state("run", "straight", newest + 3)

    # Who works where.

    def test_one_process_trains_in_a_directory(self):
        run = self.start("run", "--steps", 1000000, train__checkpoint_every=5)
        done = self.train("run", "--resume", exit_code=2)
        self.assertIn("E0821", done.stderr)
        self.assertIn(f"process {run.pid}", done.stderr)
        self.assertIsNone(run.poll())
        run.kill()
        run.wait()
        self.assertTrue((self.folder / "run" / "run.lock").exists())
        self.train("run", "--resume", "--steps", self.steps("run")[-1] + 2)
        self.assertFalse((self.folder / "run" / "run.lock").exists())

    def test_a_folder_of_others_is_refused_untouched(self):
        foreign = self.folder / "foreign"
        for make in (lambda: (foreign / "metrics.jsonl").write_text("{}\n"),
                     lambda: (foreign / "checkpoints" / step(4)).mkdir(parents=True),
                     lambda: (foreign / ".hidden").write_text("mine")):
            foreign.mkdir()
            make()
            os.utime(foreign, (1, 1))
            before = {p: p.stat().st_mtime_ns for p in [foreign, *foreign.rglob("*")]}
            for resume in ([], ["--resume"]):
                self.assertIn("E0820", self.train("foreign", *resume, exit_code=2).stderr)
            self.assertEqual(before, {p: p.stat().st_mtime_ns
                                      for p in [foreign, *foreign.rglob("*")]})
            shutil.rmtree(foreign)
        foreign.mkdir()
        self.train("foreign")  # an empty one will do
        self.assertIn("E0811", self.train("foreign", exit_code=2).stderr)

    def test_a_start_that_fails_leaves_no_folder(self):
        self.train("run", exit_code=3, data__text="missing.txt")
        self.assertFalse((self.folder / "run").exists())

    # How a run ends.

    def test_signals_save_and_leave(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            out = number.name
            run = self.start(out, "--steps", 1000000, train__checkpoint_every=5)
            run.send_signal(number)
            self.assertEqual(run.wait(120), 130)
            last = self.lines(out)[-1]["step"]
            self.assertEqual(self.steps(out)[-1], last)
            self.assertEqual(self.manifest(out, last)["problem"], "")

    def test_a_signal_does_not_wait_for_a_sample(self):
        """Of a million tokens: on the way, and at the end."""
        for out, steps in (("way", 1000), ("end", 2)):
            with self.subTest(out):
                run = self.start(out, "--steps", steps, train__sample_every=2, train__sample_tokens=1 << 20,
                                 train__checkpoint_every=2)
                time.sleep(0.1)
                begun = time.monotonic()
                run.send_signal(signal.SIGTERM)
                self.assertEqual(run.wait(120), 130)
                self.assertLess(time.monotonic() - begun, 20)
                self.assertEqual(self.steps(out), [2])
                self.assertFalse(self.record(out)["finished"])
                sample = self.folder / out / "samples" / f"{step(2)}.txt"
                self.assertFalse(sample.exists())
                self.train(out, "--resume", "--steps", steps // 500 + 2, train__sample_every=2,
                           train__sample_tokens=3)
                self.assertTrue(sample.exists())
                self.assertTrue(self.record(out)["finished"])

    def test_stopped_at_any_moment_it_goes_on_to_the_bit(self):
        settings = dict(train__eval_every=1, train__eval_batches=0, train__checkpoint_every=7,
                        train__steps=60, train__accumulate=2)
        self.train("straight", **settings)
        stops = 0
        for i in range(200):
            run = subprocess.Popen(self.words("run", "--resume", **settings), cwd=self.folder,
                                   env=self.environment, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
            while run.poll() is None and not self.steps("run"):
                time.sleep(0.001)
            time.sleep(0.003 * (i % 11))
            run.send_signal(signal.SIGTERM)
            code = run.wait(120)
            self.assertIn(code, (0, 130, -signal.SIGTERM))  # before it listens, nothing is begun
            stops += code == 130
            if code == 0:
                break
        self.train("run", "--resume", **settings)
        self.same_state("run", "straight", 60)
        for lines in (found := self.lines("run")), (wanted := self.lines("straight")):
            for line in lines:
                line.pop("time_s", None), line.pop("tokens_per_s", None), line.pop("saving_s", None)
        self.assertEqual(found, wanted, f"after {stops} stops")

    def test_a_signal_that_was_ignored_stays_ignored(self):
        def nohup():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        run = self.start("run", "--steps", 1000000, before=nohup, train__checkpoint_every=5)
        run.send_signal(signal.SIGHUP)
        run.send_signal(signal.SIGINT)
        seen = self.steps("run")[-1]
        for _ in range(6000):
            if self.steps("run")[-1] > seen + 10:
                break
            time.sleep(0.01)
        self.assertIsNone(run.poll())
        run.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(120), 130)

    def test_an_error_on_the_way_saves_what_is_healthy(self):
        good = array.array("H", [i * i % 19 for i in range(400)])
        bad = array.array("H", good)
        bad[200] = 60000
        for name, tokens in (("good.bin", good), ("bad.bin", bad)):
            (self.folder / name).write_bytes(tokens.tobytes())
        bad_batch = 0
        for parts in (1, 4):
            settings = dict(model__vocab=20, train__batch=2, train__accumulate=parts, train__seed=5)
            self.train(f"cut{parts}", "--steps", 100, exit_code=3, data__train_tokens="bad.bin",
                       **settings)
            made = self.lines(f"cut{parts}")[-1]["step"]
            bad_batch = bad_batch or made
            self.assertEqual(made, bad_batch // parts)
            self.assertEqual(self.steps(f"cut{parts}"), [made])
            self.assertEqual(self.record(f"cut{parts}")["error"]["code"], "E0522")
            self.train(f"whole{parts}", "--steps", made, data__train_tokens="good.bin", **settings)
            self.same_state(f"cut{parts}", f"whole{parts}", made)
        self.assertNotEqual(bad_batch % 4, 0)  # the error came between micro-batches


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a shell's background
    unittest.main(argv=sys.argv[:1], verbosity=2)
