"""What a run says and keeps when it goes on: its lines, its length, its data, its tokenizer."""
import json
import os
import random
import re
import shutil
import signal
import subprocess

from program import ALOFT, ProgramTest, main

BPE = ("--set", "data.tokenizer.kind=bpe", "--set", "data.tokenizer.vocab=300")


def settings(**keys):
    return [word for key, value in keys.items()
            for word in ("--set", f"{key.replace('__', '.')}={value}")]


class Resume(ProgramTest):
    def setUp(self):
        for path in self.folder.iterdir():
            if path.name not in ("text.txt", "tiny.toml", "cache"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        (self.folder / "text.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 40)

    def train(self, out, *rest, exit_code=0, **keys):
        """What it says."""
        return self.aloft("train", "tiny.toml", "--out", out, *rest, *settings(**keys),
                          exit_code=exit_code).stderr.decode()

    def says(self, text, *words):
        for word in words:
            self.assertIn(word, text)

    def record(self, out="run"):
        return json.loads((self.folder / out / "run.json").read_text())

    def change_record(self, **keys):
        record = self.record()
        for key, value in keys.items():
            record[key] = value
            if value is None:
                del record[key]
        (self.folder / "run" / "run.json").write_text(json.dumps(record))

    def lines(self, out="run"):
        text = (self.folder / out / "metrics.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def shards(self, *words, **keys):
        """A folder of the cache: shards, and the tokenizer that made them."""
        done = self.aloft("data", "build", "tiny.toml", "--json", *words, *settings(**keys))
        return json.loads(done.stdout)["folder"]

    # The record.

    def test_an_evaluation_behind_the_save_is_recorded_once(self):
        self.train("run", "--steps", 12, train__checkpoint_every=6)
        for _ in range(3):
            shutil.rmtree(self.folder / "run" / "checkpoints" / "step-000012")
            self.train("run", "--resume", "--steps", 12, train__eval_every=6, train__keep_best=0,
                       train__checkpoint_every=100)
        self.assertEqual([r["step"] for r in self.lines() if "val_loss" in r], [6, 12])
        events = b"".join(p.read_bytes() for p in (self.folder / "run").glob("events.out*"))
        self.assertEqual(events.count(b"validation/loss"), 2)

    def test_a_record_of_another_run_is_no_reason_to_begin_anew(self):
        self.train("run")
        metrics = self.folder / "run" / "metrics.jsonl"
        kept = metrics.read_bytes()
        for run in ("0123456789abcdef", None):
            self.change_record(run=run)
            before = (self.folder / "run" / "run.json").read_bytes()
            said = self.train("run", "--resume", "--steps", 8, exit_code=2)
            self.says(said, "E0825", "step-000004", "move run.json away")
            self.assertEqual((self.folder / "run" / "run.json").read_bytes(), before)
            self.assertEqual(metrics.read_bytes(), kept)
            for verb in (["generate", "run", "--prompt", "the"],
                         ["score", "run", "--tokens", "none", "--out", "none"]):
                self.says(self.aloft(*verb, exit_code=2).stderr.decode(), "E0825", "move run.json away")
        self.aloft("generate", "run/checkpoints/step-000004", "--prompt", "the", "--tokens", 3)
        (self.folder / "run" / "run.json").write_text('{"run": "0123')
        for verb in (["generate", "run", "--prompt", "the"],
                     ["score", "run", "--tokens", "none", "--out", "none"]):
            self.says(self.aloft(*verb, exit_code=3).stderr.decode(), "E0643", "run/run.json")
        (self.folder / "run" / "run.json").unlink()  # as advised
        self.train("run", "--resume", "--steps", 8)
        self.assertEqual([r["step"] for r in self.lines() if "loss" in r], list(range(1, 9)))

    def test_without_a_checkpoint_nothing_is_said_of_its_weights(self):
        self.train("run")
        shutil.rmtree(self.folder / "run" / "checkpoints")
        self.change_record(saved=None, result=None, finished=False)  # as a kill before the first save
        for change in ({"model__heads": 4}, {"precision__level": "O0"}, {"optimizer__kind": "sgd"}):
            said = self.train("run", "--resume", exit_code=2, **change)
            self.says(said, "E0817", next(iter(change)).split("__")[0], "nothing to go on from yet")
            self.assertNotIn("checkpoint's", said)
            self.assertNotIn("weights would", said)

    def test_where_nothing_healthy_was_kept_that_is_said(self):
        said = self.train("run", "--steps", 1, exit_code=5, optimizer__lr="1e6",
                          precision__level="O0")
        self.says(said, "E0822", "nothing that is healthy", "begins the run anew")
        shutil.copytree(self.folder / "run", self.folder / "lost")
        (self.folder / "lost" / "run.json").unlink()
        for out in ("run", "lost"):
            said = self.train(out, "--resume", "--quiet", "--steps", 2, precision__level="O0")
            self.says(said, "no healthy checkpoint", "begins anew")

    def test_checkpoints_that_are_gone_are_no_reason_to_begin_anew(self):
        self.train("run", train__checkpoint_every=2)
        run, kept = self.folder / "run", {}
        (run / "checkpoints").rename(self.folder / "elsewhere")
        self.assertEqual(self.record()["saved"], 4)
        # As it ends, as a kill leaves it, as a program before wrote it.
        for saved, result in ((4, self.record()["result"]), (4, None), (None, self.record()["result"])):
            self.change_record(finished=result is not None, saved=saved, result=result)
            kept = {name: (run / name).read_bytes() for name in ("run.json", "metrics.jsonl")}
            said = self.train("run", "--resume", "--steps", 8, exit_code=3)
            self.says(said, "E0826", "of step 4 was saved", "--force")
            (run / "checkpoints").mkdir(exist_ok=True)
            for name, content in kept.items():
                self.assertEqual((run / name).read_bytes(), content)
        said = self.train("run", "--resume", "--force", "--steps", 8)
        self.says(said, "the run begins anew")
        self.assertEqual([r["step"] for r in self.lines() if "loss" in r], list(range(1, 9)))

    def test_a_run_that_was_killed_before_it_saved_begins_anew_by_itself(self):
        run = self.start("--steps", "1000000", until="step 1")
        run.kill()
        run.stderr.close()
        run.wait(120)
        self.assertIsNone(self.record()["saved"])
        self.says(self.train("run", "--resume", "--steps", 2), "begins anew")

    def test_a_sample_or_report_that_cannot_be_written_leaves_a_run_finished(self):
        self.train("straight", "--steps", 4, train__sample_tokens=4)
        for name in ("samples/step-000004.txt", "report.html"):
            with self.subTest(name):
                self.train("run", "--steps", 2, train__sample_tokens=4)
                there = self.folder / "run" / name
                there.unlink(missing_ok=True)
                (there / "x").mkdir(parents=True)  # nothing can be put in its place
                said = self.train("run", "--resume", "--steps", 4, train__sample_tokens=4, exit_code=4)
                self.says(said, "cannot be made; the run stands as it is saved", there.name)
                self.assertRegex(said, "(?m)^error E0603")
                self.assertTrue(self.record()["finished"])
                self.assertEqual(self.record()["result"]["steps"], 4)
                shutil.rmtree(there)
                self.train("run", "--resume", "--steps", 4, train__sample_tokens=4)
                self.assertTrue(self.record()["finished"])
                self.assertTrue((self.folder / "run" / "report.html").is_file())
                self.assertEqual(*((self.folder / out / "samples" / "step-000004.txt").read_bytes()
                                   for out in ("straight", "run")))
                shutil.rmtree(self.folder / "run")

    def test_a_report_shows_the_beginning_of_a_long_sample(self):
        self.train("run", train__sample_tokens=4)
        (self.folder / "run" / "samples" / "step-000009.txt").write_text("once " * 300_000)
        self.aloft("report", "run")
        page = (self.folder / "run" / "report.html").read_text()
        self.assertGreater(page.count("once "), 200_000)
        self.says(page, "step-000009.txt has the rest")
        self.train("run", "--resume", "--steps", 6)
        self.assertTrue(self.record()["finished"])

    def test_the_report_says_that_the_metrics_are_gone(self):
        self.train("run")
        (self.folder / "run" / "metrics.jsonl").unlink()
        said = self.aloft("report", "run").stderr.decode()
        self.says(said, "metrics.jsonl is gone", "no curves")
        said = self.aloft("report", "cache", exit_code=3).stderr.decode()
        self.says(said, "E0643", "no run.json", "cache")

    def test_paths_that_are_not_utf8(self):
        there = os.path.join(os.fsencode(self.folder), b"caf\xe9")
        os.mkdir(there)
        for name in (b"text.txt", b"tiny.toml"):
            shutil.copy(os.path.join(os.fsencode(self.folder), name), there)
        for steps in ("4", "8"):
            done = subprocess.run([ALOFT, "train", "tiny.toml", "--out", "run", "--resume", "--steps",
                                   steps, "--set", "data.text=text.txt"], cwd=there,
                                  env=self.environment, capture_output=True, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn(b"starting anew", done.stderr)
        with open(os.path.join(there, b"run", b"run.json"), "rb") as file:
            record = json.load(file)
        self.assertIn("caf\ufffd", record["recipe"]["data"]["text"][0])
        self.assertEqual([entry["changed"] for entry in record["history"]], [{"train.steps": [4, 8]}])

    def test_a_forgotten_size_of_the_vocabulary_is_named(self):
        self.train("run", model__vocab=300)
        said = self.train("run", "--resume", "--steps", 8, exit_code=2)
        self.says(said, "E0817", "model.vocab: 300, now 256", "the values that the run had")
        self.assertNotIn("move", said)
        self.train("run", "--resume", "--steps", 8, model__vocab=300)
        self.train("same")
        self.train("same", "--resume", "--steps", 8, model__vocab=256)

    def test_what_auto_chose_may_be_named(self):
        self.train("run", precision__level="auto")
        chosen = self.record()["recipe"]["precision"]
        self.assertIn("auto_reason", chosen)
        named = f"{chosen['level']}:{chosen['type']}"
        self.train("run", "--resume", "--steps", 6, precision__level=named)
        self.assertEqual(self.record()["history"][-1]["changed"], {"train.steps": [4, 6]})
        self.train("run", "--resume", "--steps", 8, precision__level="auto")
        other = "O1" if chosen["level"] != "O1" else "O2"
        self.says(self.train("run", "--resume", "--steps", 9, precision__level=other, exit_code=2),
                  "E0817", "precision")

    # How long it is.

    def test_epochs_are_seen_whatever_the_batch(self):
        self.train("run", train__epochs=1, train__batch=2, schedule__kind="cosine")
        tokens = json.loads((self.folder / "run" / "data.json").read_text())["train"]["tokens"]
        windows = (tokens - 1) // 8
        first = -(-windows // 2)
        self.assertEqual(self.record()["result"]["steps"], first)
        said = self.train("run", "--resume", train__epochs=2, train__batch=4,
                          schedule__kind="cosine")
        steps = first - (-(2 * windows - 2 * first) // 4)
        self.assertEqual(self.record()["result"]["steps"], steps)
        self.assertGreaterEqual(self.lines()[-2]["tokens"], 2 * windows * 8)
        self.says(said, "another length", f"train.steps: {first} -> {steps}")
        again = self.train("run", "--resume", train__epochs=2, train__batch=4,
                           schedule__kind="cosine")
        self.assertNotIn("another length", again)

    def test_what_changes_the_training_is_said_once(self):
        self.train("run", "--steps", 4, schedule__kind="cosine")
        said = self.train("run", "--resume", "--steps", 8, optimizer__lr="5e-4", train__batch=4,
                          train__eval_every=3, train__seed=9, schedule__kind="cosine")
        head = "warning: from step 5 on the run trains with other settings than before:"
        lines = said[said.index(head):].splitlines()
        self.assertEqual(lines[0], head)
        for line, start in zip(lines[1:], (r"  optimizer\.lr: 0\.001 -> 0\.0005: the peak of the learning",
                                           r"  train\.batch: 2 -> 4: gradients are of more or fewer seq",
                                           r"  train\.seed: 1 -> 9: the samples' order is another: ",
                                           r"  train\.steps: 4 -> 8: another length, .*cosine schedule")):
            self.assertRegex(line, "^" + start)
            self.assertLessEqual(len(line), 100)
        self.assertEqual(lines[5], "  the rate of the next update: 0.000275, and would have been 0.0001")
        self.assertEqual(lines[6], "warning: from step 5 on the run is validated, saved or sampled by other "
                                   "rules than before:")
        self.assertRegex(lines[7], r"^  train\.eval_every: 0 -> 3: validated at other steps")
        self.assertEqual(said.count(" -> "), 5)
        # Behind 4 of 4 updates the old curve is at its end, a tenth of 0.001; the new one is halfway.
        again = self.train("run", "--resume", "--steps", 12, optimizer__lr="5e-4", train__batch=4,
                           train__seed=9, train__eval_every=3, schedule__kind="cosine", schedule__steps=8)
        self.says(again, "  schedule.steps: 0 -> 8")
        self.assertEqual(again.count(" -> "), 1)

    def test_a_rate_that_stays_is_not_said(self):
        self.train("run", "--steps", 4, schedule__kind="constant")
        said = self.train("run", "--resume", "--steps", 8, optimizer__lr="0.00100000001",
                          schedule__kind="constant")
        self.assertIn("optimizer.lr: 0.001 -> ", said)
        self.assertNotIn("the rate of the next update", said)

    def test_the_weights_were_drawn_already(self):
        self.train("run")
        said = self.train("run", "--resume", "--steps", 8, model__init_std=0.5, exit_code=2)
        self.says(said, "E0817", "model.init_std: 0.02, now 0.5", "the weights were drawn with it")
        self.assertEqual(self.record()["recipe"]["model"]["init_std"], 0.02)

    def test_the_banner_counts_what_was_trained_by_other_batches(self):
        self.train("run", "--steps", 6)
        said = self.train("run", "--resume", "--steps", 10, train__batch=4, train__accumulate=2)
        tokens = 6 * 16 + 4 * 64
        self.assertEqual(self.lines()[-2]["tokens"], tokens)
        windows = (json.loads((self.folder / "run" / "data.json").read_text())["train"]["tokens"] - 1) // 8
        self.says(said, "10 steps, from 7 on of 64 tokens (4 x 8 x 2 micro-batches): "
                  f"{tokens} tokens, {tokens / 8 / windows:.3g} epochs; going on behind step 6")

    def test_a_long_change_takes_two_lines(self):
        self.train("run")
        said = self.train("run", "--resume", "--steps", 8,
                          optimizer__no_decay=json.dumps(["h.0.attn.c_attn.*", "h.0.attn.c_proj.*"]))
        lines = said[said.index("  optimizer.no_decay"):].splitlines()
        self.assertRegex(lines[0], r'^  optimizer\.no_decay: \["\*\.bias","bias"\] -> \["h\.0.*\.\.\.:$')
        self.assertEqual(lines[1], "    other parameters are spared weight decay")
        self.assertLessEqual(len(lines[0]), 100)

    def test_a_run_that_begins_anew_does_not_go_on_otherwise(self):
        self.train("run")
        shutil.rmtree(self.folder / "run" / "checkpoints")
        self.change_record(saved=None, result=None, finished=False)
        said = self.train("run", "--resume", "--steps", 8, train__seed=2)
        self.says(said, "the run begins anew, and trains with other settings than before:\n"
                        "  train.seed: 1 -> 2\n")

    def test_what_changes_the_course_alone_is_said(self):
        """When it ends, and what it leaves: a line each. Threads and mode change neither."""
        self.train("run", "--steps", 6, train__eval_every=2)
        rules = {"train__eval_every": 1, "train__patience": 30, "train__checkpoint_every": 5,
                 "train__checkpoint_minutes": 1, "train__keep_checkpoints": 2, "train__keep_best": 0,
                 "train__keep_every": 7, "train__sample_every": 9, "train__sample_tokens": 4}
        said = self.train("run", "--resume", "--steps", 8, train__threads=1, train__mode="eager", **rules)
        head = ("warning: from step 7 on the run is validated, saved or sampled by other rules than "
                "before:\n")
        lines = said[said.index(head) + len(head):].splitlines()
        end = next(i for i, line in enumerate(lines) if not line.startswith("  "))
        said_of = " ".join(line.strip() for line in lines[:end])
        for key, value in rules.items():
            self.assertRegex(said_of, rf"{key.replace('__', '.')}: \d+\.?\d* -> {value}\.?\d*: \w+ \w+")
        self.says(said_of, "30: evaluations without a better loss, past ones too, end the run",
                  "0: the best goes like any other")
        self.assertNotIn("trains with other settings", said)
        self.assertEqual(said.count(" -> "), len(rules))
        for line in lines[:end]:
            self.assertLessEqual(len(line), 100)
        again = self.train("run", "--resume", "--steps", 10, **rules)
        self.assertNotIn(" -> ", again)

    def test_text_is_named_by_where_it_lies(self):
        """That of the file begins at the file, that of the command line where one stands: a message has both."""
        self.train("run")
        (self.folder / "other.txt").write_text("another text than that of the recipe\n" * 40)
        there, other = self.folder / "text.txt", self.folder / "other.txt"
        self.assertEqual(self.record()["recipe"]["data"]["text"], [str(there)])
        said = self.train("run", "--resume", "--steps", 8, data__text="other.txt", exit_code=2)
        self.says(said, f'data.text: ["{there}"], now ["{other}"]'[:120])
        for name in ("./tiny.toml", "tiny.toml"):  # the same text, however it is named
            for text in ([], ["--set", "data.text=text.txt"]):
                self.aloft("train", name, "--out", "run", "--resume", "--steps", 8, *text)
                self.assertNotIn("data.text", self.record()["history"][-1]["changed"])

    def test_other_data_is_said_with_its_meaning(self):
        self.train("run")
        said = self.train("run", "--resume", "--steps", 8, exit_code=2, data__validation="0.4")
        meaning = "what the run has learnt from is validated on, or the other way round"
        self.says(said, "E0818", f"data.validation: 0.2, now 0.4: {meaning}")
        said = self.train("run", "--resume", "--force", "--steps", 8, data__validation="0.4")
        self.says(said, "as --force says:\n  data.validation: 0.2 -> 0.4", meaning)
        for line in said.splitlines():
            if " -> " in line or meaning in line:
                self.assertLessEqual(len(line), 100)

    def test_another_number_of_micro_batches_goes_on(self):
        """Between steps there are no sums of gradients, and a checkpoint has none to fit."""
        for mode in ("graph", "eager"):
            with self.subTest(mode):
                self.train(mode, "--steps", 4, train__mode=mode)
                before = 1
                for steps, parts in ((8, 3), (12, 2), (16, 1)):
                    said = self.train(mode, "--resume", "--steps", steps, train__mode=mode,
                                      train__accumulate=parts)
                    self.says(said, f"\n  train.accumulate: {before} -> {parts}: gradients are of more")
                    self.assertEqual(self.record(mode)["history"][-1]["changed"]["train.accumulate"],
                                     [before, parts])
                    before = parts
                tokens = [0] + [r["tokens"] for r in self.lines(mode) if "loss" in r]
                self.assertEqual([b - a for a, b in zip(tokens, tokens[1:])],
                                 [16] * 4 + [48] * 4 + [32] * 4 + [16] * 4)

    def test_a_run_with_nothing_to_do_says_so_and_stays(self):
        self.train("run", "--steps", 6)
        files = {p: p.read_bytes() for p in (self.folder / "run").rglob("*")
                 if p.is_file() and p.name != "report.html"}
        for steps in (3, 6):
            said = self.train("run", "--resume", "--steps", steps, optimizer__lr="5e-4")
            self.says(said, "nothing to do", f"behind step 6 of {steps}; to go on: --steps above 6")
            self.assertNotIn("other settings", said)
            self.assertNotIn("precision    ", said)  # no banner
            for path, content in files.items():
                self.assertEqual(path.read_bytes(), content, path)

    def test_a_run_of_no_steps_has_no_loss(self):
        self.train("run", "--steps", 0)
        self.assertIsNone(self.record()["result"]["last_loss"])

    # Its data.

    def other_words(self):
        text = self.folder / "text.txt"
        text.write_text(text.read_text().replace("fox", "cat"))

    def test_other_words_of_the_same_length_are_named_by_part_and_hash(self):
        self.train("run")
        self.other_words()
        said = self.train("run", "--resume", "--steps", 8, exit_code=2)
        self.says(said, "E0818", "training tokens: 1408 (hash ", "validation tokens: 352 (hash ")
        self.assertEqual(len(set(re.findall(r'hash "([0-9a-f]{16})"', said))), 4)

    def test_characters_that_the_run_does_not_know_are_other_data(self):
        char = {"data__tokenizer__kind": "char"}
        self.train("run", **char)
        text = self.folder / "text.txt"
        kept = text.read_text()
        for content, words in ((kept + "\u00e9t\u00e9\n", "text.txt had 1760 bytes, now 1766"),
                               (kept.replace("fox", "F_X"), "text.txt has as many bytes, and was")):
            text.write_text(content, encoding="utf-8")
            for force in ([], ["--force"]):
                said = self.train("run", "--resume", "--steps", 8, *force, exit_code=2, **char)
                self.says(said, "error E0818", "does not know", words, "run/tokenizer")
                self.assertRegex(said, r"saw   U\+00(E9|46)\n  saw   \S*text.txt\n")
        text.write_text(kept)
        self.train("run", "--resume", "--steps", 8, **char)

    def test_with_other_data_the_best_loss_is_another_one(self):
        rules = {"train__eval_every": 2, "train__patience": 3, "train__keep_checkpoints": 1}
        self.train("run", "--steps", 8, optimizer__lr=0.01, **rules)
        best = self.record()["result"]["best"]
        draw = random.Random(3)
        (self.folder / "text.txt").write_text("".join(chr(draw.randrange(33, 127)) for _ in range(2000)))
        self.train("run", "--resume", "--force", "--steps", 20, optimizer__lr=0.001, **rules)
        after = self.record()["result"]
        losses = {r["step"]: r["val_loss"] for r in self.lines() if "val_loss" in r and r["step"] > 8}
        self.assertGreater(min(losses.values()), best["val_loss"])  # noise
        self.assertEqual(after["best"]["step"], min(losses, key=losses.get))
        kept = sorted(p.name for p in (self.folder / "run" / "checkpoints").iterdir())
        for step in (best["step"], after["best"]["step"], after["steps"]):
            self.assertIn(f"step-{step:06}", kept)
        # As a kill leaves it before anything was saved on the new data: its record names that already.
        for name in kept:
            if name > "step-000008":
                shutil.rmtree(self.folder / "run" / "checkpoints" / name)
        self.train("run", "--resume", "--steps", 20, optimizer__lr=0.001, **rules)
        self.assertGreater(self.record()["result"]["best"]["step"], best["step"])

    def test_another_number_of_batches_for_validation_is_said(self):
        self.train("run", train__eval_batches=1)
        self.says(self.train("run", "--resume", "--steps", 8, train__eval_batches=2),
                  "train.eval_batches: 1")

    def test_without_the_record_of_the_data_the_checkpoint_knows_it(self):
        self.train("run")
        (self.folder / "run" / "data.json").unlink()
        self.other_words()
        said = self.train("run", "--resume", "--steps", 8, exit_code=2)
        self.says(said, "data.json is gone", "the checkpoint of step 4", "E0818")
        self.assertNotIn("a new file", said)  # it does not say which there were

    def test_without_any_record_of_the_data_its_size_is_compared(self):
        self.train("run")
        (self.folder / "run" / "data.json").unlink()
        manifest = self.folder / "run" / "checkpoints" / "step-000004" / "manifest.json"
        old = json.loads(manifest.read_text())
        for key in ("recipe", "data", "xxh3", "run", "problem", "last_loss", "start_loss",
                    "validation_loss", "best"):
            del old[key]
        manifest.write_text(json.dumps({**old, "format": 1}))
        self.change_record(run=None)
        with (self.folder / "text.txt").open("a") as text:
            text.write("more of it\n" * 9)
        said = self.train("run", "--resume", "--steps", 8, exit_code=2)
        self.says(said, "data.json is gone", "run.json", "E0818", '"train":1408')
        self.train("run", "--resume", "--steps", 8, "--force")

    def test_a_run_goes_on_with_its_own_tokens_when_the_text_is_gone(self):
        self.train("straight", "--steps", 8)
        self.train("run")
        (self.folder / "text.txt").rename(self.folder / "elsewhere.txt")
        self.says(self.train("run", "--resume", "--steps", 8), f"no such text: \"{self.folder / 'text.txt'}\": the run", "its own tokens")
        state = [(self.folder / out / "checkpoints" / "step-000008" / "model.safetensors").read_bytes()
                 for out in ("straight", "run")]
        self.assertTrue(state[0] == state[1])
        # Another one that is not there either is no text of this run that is gone.
        record = (self.folder / "run" / "run.json").read_text()
        typo = ("--set", 'data.text=["nowhere.txt"]')
        for force in ((), ("--force",)):
            said = self.train("run", "--resume", "--steps", 9, *typo, *force, exit_code=3)
            self.says(said, "E0510", "nowhere.txt")
        # And its tokens are divided as they were: another share wants the text.
        for force in ((), ("--force",)):
            said = self.train("run", "--resume", "--steps", 9, *force, exit_code=3, data__validation=0.3)
            self.says(said, "E0510", "data.validation: 0.2, now 0.3", "bring the text back")
        self.assertEqual((self.folder / "run" / "run.json").read_text(), record)
        shutil.rmtree(self.folder / "cache")
        self.says(self.train("run", "--resume", "--steps", 9, exit_code=3), "E0510")

    def test_plain_sgd_has_no_momentum(self):
        """Neither a new run, nor one of a version that recorded a momentum which nothing read."""
        kind = {"optimizer__kind": "sgd"}
        self.train("run", **kind)
        record = self.record()
        self.assertEqual(record["recipe"]["optimizer"]["momentum"], 0)
        record["recipe"]["optimizer"]["momentum"] = 0.9
        self.change_record(recipe=record["recipe"])
        said = self.train("run", "--resume", "--steps", 6, **kind)
        self.assertNotIn("momentum", said)
        before = (self.folder / "run" / "run.json").read_bytes()
        said = self.train("run", "--resume", "--steps", 8, optimizer__momentum=0.9, exit_code=2, **kind)
        self.says(said, "E0817", "optimizer.momentum")
        self.assertEqual((self.folder / "run" / "run.json").read_bytes(), before)
        self.train("moves", optimizer__momentum=0.9, **kind)
        losses = [[r["loss"] for r in self.lines(out) if "loss" in r][:4] for out in ("run", "moves")]
        self.assertEqual(losses[0][0], losses[1][0])
        self.assertNotEqual(losses[0][3], losses[1][3])
        self.train("moves", "--resume", "--steps", 6, optimizer__momentum=0.8, **kind)

    # Its tokenizer.

    def two_tokenizers(self):
        (self.folder / "other.txt").write_text(
            "zebras yawn while wombats and vipers quarrel about xylophones under a mango tree\n" * 40)
        return self.shards(*BPE), self.shards(*BPE, data__text="other.txt")

    def test_tokens_want_the_tokenizer_that_made_them(self):
        one, two = self.two_tokenizers()
        tokens = {"data__train_tokens": f"{one}/train.shard"}
        said = self.train("run", exit_code=3, data__tokenizer__path=two, **tokens)
        self.says(said, "E0523", "train.shard", "beside the shard", one)
        said = self.train("run", exit_code=3, data__validation_tokens=f"{two}/validation.shard",
                          **tokens)
        self.says(said, "E0523", "validation.shard")
        self.train("run", data__validation_tokens=f"{one}/validation.shard", **tokens)
        self.aloft("generate", "run", "--prompt", "the", "--tokens", 3)
        shutil.copy(f"{one}/train.shard", self.folder / "alone.shard")
        said = self.train("alone", data__train_tokens="alone.shard")
        self.says(said, "no tokenizer (data.tokenizer.path)", "`aloft generate`")

    def test_a_tokenizer_that_is_gone_is_replaced_by_the_runs_own(self):
        one, two = self.two_tokenizers()
        for name, keys in (("text", {"data__tokenizer__kind": "bpe"}),
                           ("tokens", {"data__train_tokens": f"{one}/train.shard"})):
            with self.subTest(name):
                shutil.copytree(one, self.folder / "named")
                named = {"data__tokenizer__path": "named", **keys}
                self.train(f"straight-{name}", "--steps", 8, **named)
                self.train(name, **named)
                shutil.rmtree(self.folder / "named")
                self.says(self.train(name, "--resume", "--steps", 8, **named), "data.tokenizer.path",
                          f"goes on with its own, {name}/tokenizer")
                state = [(self.folder / out / "checkpoints" / "step-000008" / "model.safetensors")
                         .read_bytes() for out in (f"straight-{name}", name)]
                self.assertTrue(state[0] == state[1])
                shutil.copytree(two, self.folder / "named")
                said = self.train(name, "--resume", "--steps", 9, exit_code=2, **named)
                self.says(said, "E0817", "its tokenizer is another one")
                shutil.rmtree(self.folder / "named")

    def test_a_model_wants_the_tokenizer_that_it_learnt_with(self):
        self.two_tokenizers()
        self.train("run", *BPE)
        self.train("two", *BPE, data__text="other.txt")
        shutil.rmtree(self.folder / "run" / "tokenizer")
        shutil.copytree(self.folder / "two" / "tokenizer", self.folder / "run" / "tokenizer")
        for command in (["generate", "run", "--prompt", "the"],
                        ["score", "run", "--tokens", "none", "--out", "none"]):
            self.says(self.aloft(*command, exit_code=3).stderr.decode(), "E0523", "run/tokenizer")

    # How it is ended.

    def start(self, *words, until):
        run = subprocess.Popen([ALOFT, "train", "tiny.toml", "--out", "run", *words],
                               cwd=self.folder, env=self.environment, text=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        for line in run.stderr:
            if until in line:
                return run
        self.fail(f"it ended with {run.wait()} before it said {until}")

    def test_a_signal_while_data_is_prepared_leaves_nothing(self):
        (self.folder / "big.txt").write_text("".join(
            f"{n} quick brown foxes jump over {n * n} lazy dogs\n" for n in range(400000)))
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with self.subTest(number.name):
                run = self.start(*BPE, "--set", "data.text=big.txt", until="preparing data: train")
                run.send_signal(number)
                with run.stderr:
                    said = run.stderr.read()
                self.assertEqual(run.wait(120), 130, said)
                self.says(said, f"interrupted by {number.name}")
                self.assertNotIn("error", said)
                self.assertFalse((self.folder / "run").exists())
                self.assertFalse([p for p in (self.folder / "cache" / "aloft").iterdir()
                                  if ".tmp" in p.name])

    def test_an_interrupted_run_says_how_to_go_on(self):
        run = self.start("--steps", "1000000", until="step 1")
        run.send_signal(signal.SIGINT)
        with run.stderr:
            said = run.stderr.read()
        self.assertEqual(run.wait(120), 130)
        self.assertRegex(said, r"SIGINT: finishing step \d+, then saving; Ctrl-C again ends now")
        newest = sorted((self.folder / "run" / "checkpoints").iterdir())[-1].name
        self.says(said, f"run/checkpoints/{newest}", "with --resume goes on")


if __name__ == "__main__":
    main()
