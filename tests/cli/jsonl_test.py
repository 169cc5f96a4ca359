"""Training on JSON lines as a user meets it: what a batch comes to, micro-batches, a run that goes on, refusals, and
the day of a model that comes from Hugging Face and goes back there."""
import json
import math
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess

from program import ALOFT, ROOT, ProgramTest, main
from tensors import read_tensors, write_tensors

FIXTURES = ROOT / "tests" / "fixtures"

RECIPE = """[model]
family = "llama"
layers = 2
dim = 16
heads = 2
context = 16
[data]
jsonl = ["pairs.jsonl"]
tokenizer = { kind = "byte" }
validation = 0
[precision]
level = "O0"
[optimizer]
kind = "sgd"
lr = 0.1
clip_norm = 0
[train]
batch = 2
steps = 3
sample_tokens = 0
"""

PAIRS = [("ab", "c"), ("two plus", " two"), ("x", "yz and more"), ("", "all"), ("half of", " it"), ("a", "bcdefghij"),
         ("the", " lazy dog"), ("quick", "!")]


def write_pairs(path, pairs=PAIRS):
    path.write_text("".join(json.dumps({"prompt": p, "completion": c}) + "\n" for p, c in pairs))


def numbers(entry):
    return struct.unpack(f"<{len(entry[1]) // 4}f", entry[1])


class JsonLines(ProgramTest):
    RECIPE = RECIPE

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        write_pairs(cls.folder / "pairs.jsonl")

    def losses(self, run):
        return [line["loss"] for line in map(json.loads, (self.folder / run / "metrics.jsonl").read_text().splitlines())
                if "loss" in line and "step" in line]

    def weights(self, run, step=3):
        return read_tensors(self.folder / run / "checkpoints" / f"step-{step:06}" / "model.safetensors")

    def refused(self, *arguments, exit_code=3):
        return self.aloft(*arguments, exit_code=exit_code).stderr.decode()

    def score(self, model, rows, targets, *options):
        def tensor(of):
            content = struct.pack(f"<{len(of) * len(of[0])}i", *(i for row in of for i in row))
            return {"dtype": "I32", "shape": [len(of), len(of[0])]}, content
        write_tensors(self.folder / "q.safetensors", {"tokens": tensor(rows), "targets": tensor(targets)})
        [said] = self.parsed("score", model, "--tokens", "q.safetensors", "--out", "a.safetensors", "--json", *options)
        return said["loss"], read_tensors(self.folder / "a.safetensors")

    def test_the_loss_is_the_mean_over_the_completions_of_the_batch(self):
        """As of each line alone, without padding, by a model that stays as it begins."""
        self.aloft("train", "tiny.toml", "--set", "optimizer.lr=0", "--set", "train.batch=8", "--steps", 1, "--out",
                   "still")
        self.aloft("export", "hf", "still", "still-hf")
        nats = count = tokens = 0
        for prompt, completion in PAIRS:
            ids = list((prompt + completion).encode())
            targets = [i if at >= len(prompt) else -100 for at, i in enumerate(ids)][1:]
            learnt = sum(t >= 0 for t in targets)
            tokens += len(targets)
            if learnt:
                nats += self.score("still-hf", [ids[:-1]], [targets])[0] * learnt
                count += learnt
        [loss] = self.losses("still")
        self.assertAlmostEqual(loss, nats / count, places=5)
        [last] = [line for line in map(json.loads, (self.folder / "still" / "metrics.jsonl").read_text().splitlines())
                  if "tokens" in line]
        self.assertEqual(last["tokens"], tokens)  # and no padding

    def test_padding_changes_no_gradient(self):
        self.aloft("train", "tiny.toml", "--steps", 1, "--out", "padded")
        self.aloft("export", "hf", "padded", "padded-hf")
        for precision in ("O0", "O2:bf16"):
            options = "--grads", "--precision", precision
            ids, targets = [3, 7, 9, 11, 5], [-100, 9, 11, 5, 6]
            loss, alone = self.score("padded-hf", [ids], [targets], *options)
            with_padding, padded = self.score("padded-hf", [ids + [0] * 9], [targets + [-100] * 9], *options)
            self.assertAlmostEqual(loss, with_padding, places=5)
            other_padding, other = self.score("padded-hf", [ids + [200] * 9], [targets + [-100] * 9], *options)
            self.assertEqual(with_padding, other_padding)
            for name, entry in alone.items():
                if not name.startswith("grad."):
                    continue
                want, got = numbers(entry), numbers(padded[name])
                largest = max(map(abs, want))
                bound = (1e-5 if precision == "O0" else 0.02) * largest
                self.assertLessEqual(max(abs(a - b) for a, b in zip(want, got)), bound, (precision, name))
                self.assertEqual(got, numbers(other[name]), name)

    def test_micro_batches_are_one_batch(self):
        """Of lines with from 1 to 11 targets, in both modes: by their targets, not by their means."""
        for mode in ("graph", "eager"):
            whole, parts = f"whole-{mode}", f"parts-{mode}"
            self.aloft("train", "tiny.toml", "--set", "train.batch=4", "--mode", mode, "--out", whole)
            self.aloft("train", "tiny.toml", "--set", "train.batch=1", "--set", "train.accumulate=4", "--mode", mode,
                       "--out", parts)
            for a, b in zip(self.losses(whole), self.losses(parts)):
                self.assertAlmostEqual(a, b, places=5)
            for name, entry in self.weights(whole).items():
                for a, b in zip(numbers(entry), numbers(self.weights(parts)[name])):
                    self.assertAlmostEqual(a, b, delta=2e-6, msg=name)

    def test_a_run_that_goes_on_is_the_run_that_never_stopped(self):
        for mode, options in (("graph", ()), ("eager", ()), ("graph", ("--set", "train.accumulate=2"))):
            name = mode + str(len(options))
            all_options = [*options, "--mode", mode, "--set", "data.validation=0.2", "--set", "model.dropout=0.1"]
            self.aloft("train", "tiny.toml", *all_options, "--out", name, "--steps", 5)
            self.aloft("train", "tiny.toml", *all_options, "--out", name + "-halves", "--steps", 2)
            self.aloft("train", "tiny.toml", *all_options, "--out", name + "-halves", "--resume", "--steps", 5,
                       "--threads", 2)
            self.assertEqual(self.weights(name, 5), self.weights(name + "-halves", 5))
            self.assertEqual(self.losses(name), self.losses(name + "-halves"))

    def test_other_lines_are_other_data(self):
        write_pairs(self.folder / "moved.jsonl")
        self.aloft("train", "tiny.toml", "--set", "data.jsonl=['moved.jsonl']", "--out", "moved", "--steps", 1)
        write_pairs(self.folder / "moved.jsonl", PAIRS[:-1] + [("quick", "?")])
        asked = ["train", "tiny.toml", "--set", "data.jsonl=['moved.jsonl']", "--out", "moved", "--resume", "--steps", 2]
        said = self.refused(*asked, exit_code=2)
        self.assertIn("error E0818", said)
        self.assertIn("moved.jsonl", said)
        self.assertIn("going on with the new data", self.aloft(*asked, "--force").stderr.decode())

    def test_lines_of_their_own_are_for_validation(self):
        write_pairs(self.folder / "held.jsonl", PAIRS[:3])
        (self.folder / "apart.toml").write_text(RECIPE.replace("validation = 0\n", 'validation_jsonl = ["held*.jsonl"]\n'))
        self.aloft("train", "apart.toml", "--set", "optimizer.lr=0", "--set", "train.eval_every=1", "--out", "apart")
        data = json.loads((self.folder / "apart" / "data.json").read_text())
        self.assertEqual((data["train"]["examples"], data["validation"]["examples"]), (8, 3))
        shown = json.loads(self.aloft("data", "build", "apart.toml", "--set", "data.length=16", "--json").stdout)
        self.assertEqual((shown["train_examples"], shown["train_tokens"], shown["validation_tokens"]),
                         (8, *(sum(len(p + c) - 1 for p, c in of) for of in (PAIRS, PAIRS[:3]))))
        self.aloft("data", "batches", "apart.toml", "--steps", 2, "--out", "apart.safetensors")
        self.aloft("data", "batches", "tiny.toml", "--steps", 2, "--out", "whole.safetensors")
        self.assertEqual(*(read_tensors(self.folder / f"{name}.safetensors") for name in ("apart", "whole")))
        self.aloft("train", "tiny.toml", "--set", "optimizer.lr=0", "--set", "train.batch=3", "--set",
                   "data.jsonl=['held.jsonl']", "--steps", 1, "--out", "held")
        records = map(json.loads, (self.folder / "apart" / "metrics.jsonl").read_text().splitlines())
        measured = [line["val_loss"] for line in records if "val_loss" in line]
        self.assertAlmostEqual(measured[0], self.losses("held")[0], places=5)
        write_pairs(self.folder / "held.jsonl", PAIRS[:2])
        said = self.refused("train", "apart.toml", "--out", "apart", "--resume", "--steps", 9, "--set", "optimizer.lr=0",
                            "--set", "train.eval_every=1", exit_code=2)
        self.assertRegex(said, r"E0818[^~]*validation examples: 3 .*, now 2")
        write_pairs(self.folder / "held.jsonl", [("nothing", "")])
        said = self.refused("train", "apart.toml", "--out", "x")
        self.assertRegex(said, r"E0511[^~]*data.validation_jsonl[^~]*held.jsonl[^~]*1 line, of which nothing is learnt")
        for named in ("pairs.jsonl", "p*.jsonl"):
            said = self.refused("train", "apart.toml", "--set", f"data.validation_jsonl=['{named}']", "--out", "x",
                                exit_code=2)
            self.assertRegex(said, r"E0950[^~]*at +.*pairs.jsonl[^~]*saw[^~]*need[^~]*try")
        (self.folder / "text.jsonl").write_text('{"text": "a b"}\n')
        said = self.refused("train", "apart.toml", "--set", "data.validation_jsonl=['text.jsonl']", "--out", "x")
        self.assertRegex(said, "E0534[^~]*text.jsonl:1")
        said = self.refused("train", "tiny.toml", "--set", "train.eval_every=1", "--out", "x", exit_code=2)
        self.assertRegex(said, "E0710[^~]*data.validation_jsonl")
        for recipe, *keys in (("apart", "data.validation=0.1"),
                              ("tiny", "data.validation_jsonl=['held.jsonl']", "data.jsonl=[]", "data.text=['text.txt']")):
            said = self.refused("train", f"{recipe}.toml", *(w for key in keys for w in ("--set", key)), "--out", "x",
                                exit_code=2)
            self.assertRegex(said, "E0710[^~]*data.validation_jsonl")

    def test_the_length_of_a_run_counts_no_padding(self):
        def said(*words):
            return self.aloft("train", "tiny.toml", "--out", "counted", *words).stderr.decode()
        tokens = sum(len(p + c) - 1 for p, c in PAIRS)
        for more in (("--steps", 4), ("--steps", 8, "--resume")):  # an epoch each
            epochs = more[1] // 4
            self.assertIn(f"{more[1]} steps of 2 examples of up to 16 tokens: about {tokens * epochs} tokens without "
                          f"padding, {epochs} epochs", said(*more))
        last = [json.loads(line) for line in (self.folder / "counted" / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual([line["tokens"] for line in last if "tokens" in line][-1], 2 * tokens)

    def test_a_tokenizer_is_made_of_the_lines(self):
        self.aloft("train", "tiny.toml", "--set", "data.tokenizer.kind=char", "--out", "chars", "--steps", 1)
        info = json.loads(self.aloft("data", "info", "chars", "--json").stdout)
        self.assertEqual(info["tokenizer"], "char")
        self.assertLess(info["vocab"], 60)

    def test_what_lines_come_to_is_shown(self):
        shown = json.loads(self.aloft("data", "build", "tiny.toml", "--set", "data.length=16", "--json").stdout)
        kept = [p + c for p, c in PAIRS]
        self.assertEqual(shown["train_examples"], len(kept))
        self.assertEqual(shown["train_tokens"], sum(len(text) - 1 for text in kept))

    def test_what_is_cut_or_left_out_is_counted_once(self):
        write_pairs(self.folder / "long.jsonl", PAIRS + [("a" * 30, "b"), ("a", "b" * 30), ("nothing", "")])
        said = self.aloft("train", "tiny.toml", "--set", "data.jsonl=['long.jsonl']", "--out", "long", "--steps",
                          1).stderr.decode()
        self.assertIn("1 line cut behind 17 tokens", said)
        self.assertIn("1 line left out: all that is learnt", said)
        self.assertIn("1 line left out: nothing of them is learnt", said)
        self.assertIn("no token that ends a text", said)

    def test_what_is_refused(self):
        (self.folder / "bad.jsonl").write_text('{"prompt": "a", "completion": "b"}\n{"text": "c"}\n')
        said = self.refused("train", "tiny.toml", "--set", "data.jsonl=['bad.jsonl']", "--out", "x")
        self.assertIn("error E0534", said)
        self.assertIn("bad.jsonl:2", said)
        self.assertIn("error E0510", self.refused("train", "tiny.toml", "--set", "data.jsonl=['none.jsonl']", "--out",
                                                  "x"))
        said = self.refused("train", "tiny.toml", "--set", "data.jsonl=[]", "--out", "x", exit_code=2)
        self.assertIn("error E0717", said)
        self.assertIn("data.jsonl, files of JSON lines", said)
        (self.folder / "chat.jsonl").write_text('{"messages": [{"role": "user", "content": "a"}]}\n')
        said = self.refused("train", "tiny.toml", "--set", "data.jsonl=['chat.jsonl']", "--out", "x")
        self.assertIn("error E0540", said)
        self.assertIn("data.tokenizer.path or model.init", said)
        write_pairs(self.folder / "one.jsonl", PAIRS[:1])
        one = "train", "tiny.toml", "--set", "data.jsonl=['one.jsonl']", "--steps", 1, "--out"
        said = self.refused(*one, "x", "--set", "data.validation=0.1", exit_code=2)
        self.assertIn("error E0512", said)
        self.assertIn("one.jsonl", said)
        self.aloft(*one, "one")  # it is no mistake without validation
        for key in ("data.text=['text.txt']", "data.sampling=random"):
            self.assertIn("error E0710", self.refused("train", "tiny.toml", "--set", key, "--out", "x", exit_code=2))
        self.assertFalse((self.folder / "x").exists())

    def test_a_plan_reads_no_line(self):
        shown = self.aloft("explain", "plan", "tiny.toml", "--set", "data.jsonl=['none.jsonl']", "--set",
                           "train.accumulate=2").stdout.decode()
        self.assertIn("parameters", shown)
        self.aloft("bench", "step", "tiny.toml", "--steps", 1, "--no-limit", "--set", "train.accumulate=2")

    def test_configurations_are_compared_by_their_lines(self):
        write_pairs(self.folder / "same.jsonl")
        write_pairs(self.folder / "other.jsonl", PAIRS[1:] + PAIRS[:1])
        for name in ("pairs", "same", "other"):
            (self.folder / f"{name}.toml").write_text(RECIPE.replace("pairs.jsonl", f"{name}.jsonl"))
        self.aloft("probe", "check-config", "pairs.toml", "same.toml")
        self.aloft("probe", "check-config", "pairs.toml", "other.toml", exit_code=5)


class FromHuggingFace(ProgramTest):
    """A day with a small Qwen2 of random weights that speaks ChatML."""
    RECIPE = RECIPE

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        write_pairs(cls.folder / "pairs.jsonl")
        cls.aloft("train", "tiny.toml", "--set", "model.family=qwen2", "--set", "model.vocab=330", "--set",
                  "model.context=128", "--steps", 1, "--out", "made")
        cls.aloft("export", "hf", "made", "qwen")
        folder = cls.folder / "qwen"
        for file in ("aloft_tokenizer.json", "tokenizer.json"):
            (folder / file).unlink(missing_ok=True)
        for file in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(FIXTURES / "jsonl" / "bytes" / file, folder / file)
        cases = json.loads((FIXTURES / "jsonl" / "bytes" / "cases.json").read_text())["cases"]
        cls.chats = [case for case in cases if "messages" in case["line"] and "endgeneration" in case["template"]]
        (folder / "chat_template.jinja").write_text(cls.chats[0]["template"])
        (cls.folder / "chats.jsonl").write_text("".join(json.dumps(case["line"]) + "\n" for case in cls.chats))
        (cls.folder / "tune.toml").write_text(
            '[data]\njsonl = ["chats.jsonl"]\nlength = 100\nvalidation = 0\n[precision]\nlevel = "O2:bf16"\n'
            '[optimizer]\nlr = 0.01\n[train]\nbatch = 2\naccumulate = 2\nsteps = 4\nsample_tokens = 0\n')

    def test_the_day(self):
        self.assertIn("parameters", self.aloft("explain", "plan", "tune.toml", "--set", "model.init=qwen").stdout.decode())
        said = self.aloft("train", "tune.toml", "--init", "qwen", "--out", "tuned").stderr.decode()
        self.assertIn("1 line left out: nothing of them is learnt", said)  # nobody answers
        self.aloft("train", "tune.toml", "--init", "qwen", "--out", "halves", "--steps", 2)
        self.aloft("train", "tune.toml", "--init", "qwen", "--out", "halves", "--resume", "--steps", 4)
        last = "checkpoints/step-000004/model.safetensors"
        self.assertEqual(read_tensors(self.folder / "tuned" / last), read_tensors(self.folder / "halves" / last))
        self.aloft("export", "hf", "tuned", "tuned-hf", "--dtype", "bf16")
        for file in ("tokenizer.json", "chat_template.jinja"):
            self.assertEqual((self.folder / "qwen" / file).read_bytes(), (self.folder / "tuned-hf" / file).read_bytes())
        [answer] = self.parsed("generate", "tuned-hf", "--prompt", "<|im_start|>user\nName a colour<|im_end|>\n"
                               "<|im_start|>assistant\n", "--tokens", 4, "--temperature", 0, "--json")
        self.assertTrue(answer["tokens"] or answer["ended"])

    def test_a_sample_answers_a_question(self):
        """The first one of the lines that are validated on, as the chat template writes it; of the model as it
        began, the answer that is drawn to the same message is the same."""
        (self.folder / "asked.jsonl").write_text(json.dumps({"messages": [
            {"role": "user", "content": "the fox"}, {"role": "assistant", "content": "jumps"},
            {"role": "user", "content": "again"}, {"role": "assistant", "content": "no"}]}) + "\n")
        begun = "<|im_start|>user\nthe fox<|im_end|>\n<|im_start|>assistant\n"
        (self.folder / "ask.toml").write_text((self.folder / "tune.toml").read_text().replace(
            "validation = 0\n", 'validation_jsonl = ["asked.jsonl"]\n'))
        shown = self.aloft("train", "ask.toml", "--init", "qwen", "--steps", 1, "--set", "optimizer.lr=0", "--set",
                           "precision=O0", "--set", "train.sample_tokens=6", "--out", "said")
        sample = (self.folder / "said" / "samples" / "step-000001.txt").read_text()
        self.assertTrue(sample.startswith(begun), sample)
        self.assertIn("sample:\n" + begun, shown.stdout.decode())
        [answer] = self.parsed("generate", "qwen", "--message", "the fox", "--tokens", 6, "--temperature", 0.8,
                               "--top-k", 40, "--seed", 1, "--json")
        self.assertEqual(sample, begun + answer["text"])
        self.aloft("train", "tiny.toml", "--steps", 1, "--set", "train.sample_tokens=4", "--out", "completed")
        self.assertTrue((self.folder / "completed" / "samples" / "step-000001.txt").read_bytes().startswith(b"ab"))

    def test_another_chat_template_is_named_when_a_run_goes_on(self):
        shutil.copytree(self.folder / "qwen", self.folder / "reworded")
        asked = ["train", "tune.toml", "--init", "reworded", "--out", "worded", "--steps"]
        self.aloft(*asked, 1)
        template = self.folder / "reworded" / "chat_template.jinja"
        text = template.read_text()
        template.write_text("{{ 'New. ' }}" + text)
        said = self.aloft(*asked, 2, "--resume", exit_code=2).stderr.decode()
        self.assertRegex(said, r"E0818[^~]*saw +the chat template: .*, now [^~]*try .*chat template")
        template.write_text(text)
        self.aloft(*asked, 2, "--resume")

    def test_an_evaluation_is_of_what_is_learnt(self):
        """The mean over all tokens that transformers marks, of messages, texts, and prompts with completions."""
        all_cases = json.loads((FIXTURES / "jsonl" / "bytes" / "cases.json").read_text())["cases"]
        kinds = {"messages": self.chats, "text": [c for c in all_cases if "text" in c["line"]],
                 "prompt and completion": [c for c in all_cases if "completion" in c["line"]]}
        for kind, cases in kinds.items():
            (self.folder / "judge.jsonl").write_text("".join(json.dumps(case["line"]) + "\n" for case in cases))
            nats = count = windows = 0
            for case in cases:
                targets = [i if learnt else -100 for i, learnt in zip(case["ids"], case["learnt"])][1:]
                learnt = sum(t >= 0 for t in targets)
                if learnt:
                    nats += self.score_of(case["ids"][:-1], targets) * learnt
                    count, windows = count + learnt, windows + 1
            self.assertGreater(count, 3, kind)
            for batch in (1, 3):
                [said] = self.parsed("eval", "qwen", "--data", "judge.jsonl", "--windows", batch, "--json")
                self.assertEqual((said["kind"], said["predicted"], said["windows"], said["lines"], said["left_out"]),
                                 (kind, count, windows, windows, len(cases) - windows))
                self.assertAlmostEqual(said["loss"], nats / count, places=5)
                self.assertAlmostEqual(said["perplexity"], math.exp(nats / count), places=2)
            self.assertEqual("bits_per_byte" in said, kind == "text")
        # What is longer than a window is read in several, and each target counts once.
        [parts] = self.parsed("eval", "qwen", "--data", "judge.jsonl", "--length", 4, "--stride", 2, "--json")
        self.assertEqual(parts["predicted"], count)
        self.assertGreater(parts["windows"], windows)
        self.assertIn("that are learnt", self.aloft("eval", "qwen", "--data", "judge.jsonl").stdout.decode())
        for wrong in (["chats.jsonl", "--data", "text.txt"], ["text.txt", "--chat-template", "qwen"],
                      ["judge.jsonl", "--chat-template", "qwen"]):
            self.assertIn(b"error E0700", self.aloft("eval", "qwen", "--data", *wrong, exit_code=2).stderr)

    def test_a_text_begins_as_the_tokenizer_says(self):
        """One of a file, too, and once: files stand one behind the other. Nothing is put behind them."""
        shutil.copytree(self.folder / "qwen", self.folder / "begins")
        tokenizer = json.loads((self.folder / "begins" / "tokenizer.json").read_text())
        form, before, end = tokenizer["post_processor"], 317, 316
        form["special_tokens"]["<|im_start|>"] = {"id": "<|im_start|>", "ids": [before], "tokens": ["<|im_start|>"]}
        for at in (0, 2):
            form["single"].insert(at, {"SpecialToken": {"id": "<|im_start|>", "type_id": 0}})
        (self.folder / "begins" / "tokenizer.json").write_text(json.dumps(tokenizer))
        text, ids = "the quick brown fox", [83, 259, 280, 313, 220, 69, 78, 87]
        (self.folder / "fox.txt").write_text(text)
        [said] = self.parsed("eval", "begins", "--data", "fox.txt", "--json")
        self.assertEqual((said["tokens"], said["predicted"]), (len(ids) + 1, len(ids)))
        loss = self.score_of([before] + ids[:-1], ids)
        self.assertAlmostEqual(said["loss"], loss, places=5)
        self.assertAlmostEqual(said["bits_per_byte"], loss * len(ids) / math.log(2) / len(text), places=5)
        (self.folder / "it.txt").write_text(text)
        [said] = self.parsed("eval", "begins", "--data", "fox.txt", "--data", "it.txt", "--json")
        self.assertEqual(said["tokens"], 2 * len(ids) + 2)
        self.assertAlmostEqual(said["loss"], self.score_of([before, *ids, end] + ids[:-1], ids + [end] + ids), places=5)
        # Of JSON lines, bits are of all that is learnt, over the bytes of the texts.
        (self.folder / "fox.jsonl").write_text(json.dumps({"text": text}) + "\n")
        [said] = self.parsed("eval", "begins", "--data", "fox.jsonl", "--json")
        self.assertEqual(said["bytes"], len(text))
        nats = said["loss"] * said["predicted"]
        self.assertAlmostEqual(said["bits_per_byte"], nats / math.log(2) / len(text), places=5)

    def test_targets_that_are_none_are_refused(self):
        entry = {"dtype": "I32", "shape": [1, 2]}
        write_tensors(self.folder / "none.safetensors", {"tokens": (entry, struct.pack("<2i", 3, 4)),
                                                         "targets": (entry, struct.pack("<2i", -100, -100))})
        said = self.aloft("score", "qwen", "--tokens", "none.safetensors", "--out", "none",
                          exit_code=3).stderr.decode()
        self.assertIn("error E0719", said)
        self.assertIn("nothing to predict", said)
        self.assertFalse((self.folder / "none").exists())

    def refused(self, *arguments, exit_code=3):
        return self.aloft("eval", "qwen", "--data", *arguments, exit_code=exit_code).stderr.decode()

    def test_an_evaluation_takes_what_training_takes(self):
        """Whatever the names of files of JSON lines are; and what it refuses is not about training."""
        lines = "".join(json.dumps({"text": text}) + "\n" for text in ("the quick brown fox", "jumps"))
        (self.folder / "lines").mkdir()
        losses = set()
        for name in ("t.jsonl", "t.json", "t.ndjson", "T.JSONL", "t.txt", "lines/t.jsonl"):
            (self.folder / name).write_text(lines)
            asked = "lines/*.jsonl" if "/" in name else name
            [said] = self.parsed("eval", "qwen", "--data", asked, "--json")
            self.assertEqual((said["kind"], said["lines"]), ("text", 2), name)
            losses.add(said["loss"])
        self.assertEqual(len(losses), 1)
        (self.folder / "noone.jsonl").write_text('{"messages": [{"role": "human", "content": "a"}, '
                                                 '{"role": "gpt", "content": "b"}]}\n')
        (self.folder / "two.jsonl").write_text('{"text": "a"}\n{"prompt": "a", "completion": "b"}\n')
        shutil.copytree(self.folder / "qwen", self.folder / "plain")
        (self.folder / "plain" / "chat_template.jinja").unlink()
        said = {name: self.refused(name) for name in ("lines", "noone.jsonl", "two.jsonl", "/dev/null")}
        said["plain"] = self.aloft("eval", "plain", "--data", "chats.jsonl", exit_code=3).stderr.decode()
        for words in said.values():
            for wrong in ("train on", "data.text", "data.jsonl", "--prompt ", "python3"):
                self.assertNotIn(wrong, words)
        self.assertIn("E0511: there is no text to predict", said["lines"])
        self.assertIn("lines/t.jsonl: JSON lines", said["lines"])
        self.assertIn("--data 'FOLDER/*.jsonl'", said["lines"])
        self.assertIn("write what it gives to a file first", said["/dev/null"])
        self.assertIn("E0511: there is no token to predict", said["noone.jsonl"])
        self.assertIn('1 line, of which nothing is learnt, with the roles "gpt", "human"', said["noone.jsonl"])
        self.assertIn('the role "assistant"', said["noone.jsonl"])
        self.assertIn("--chat-template FILE", said["plain"])

    def test_an_evaluation_shows_how_far_it_is(self):
        (self.folder / "many.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 2000)
        shown = self.on_terminal("eval", "qwen", "--data", "text.txt", "--length", 32, stream="stderr").decode()
        self.assertRegex(shown, r"window 1/\d+  loss \d+\.\d+  left ")
        last = re.findall(r"window ([\d,]+)/([\d,]+)  loss", shown)[-1]
        self.assertEqual(*last)
        ours, its = pty.openpty()
        child = subprocess.Popen([ALOFT, "eval", "qwen", "--data", "many.txt", "--length", "32", "--stride", "1"],
                                 cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=its)
        said = b""
        while b"window 1/" not in said:
            said += os.read(ours, 4096)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=120)
        while select.select([ours], [], [], 0.2)[0]:
            said += os.read(ours, 1 << 16)
        os.close(ours)
        os.close(its)
        self.assertEqual((child.returncode, out), (130, b""))
        self.assertRegex(said.decode(), r"interrupted by SIGINT: behind window [\d,]+ of [\d,]+: loss \d+\.\d+ so far")

    def test_a_report_says_how_much_is_learnt(self):
        self.aloft("train", "tune.toml", "--init", "qwen", "--steps", 1, "--out", "counted")
        tokens = json.loads((self.folder / "counted" / "run.json").read_text())["tokens"]
        learnt = [case["learnt"][1:] for case in self.chats if any(case["learnt"][1:])]
        self.assertEqual((tokens["train"], tokens["learnt"]), (sum(map(len, learnt)), sum(map(sum, learnt))))
        self.assertIn("of them learnt", (self.folder / "counted" / "report.html").read_text())

    def score_of(self, ids, targets):
        entry = {"dtype": "I32", "shape": [1, len(targets)]}
        content = [struct.pack(f"<{len(targets)}i", *row) for row in (ids, targets)]
        write_tensors(self.folder / "q.safetensors", {"tokens": (entry, content[0]), "targets": (entry, content[1])})
        [said] = self.parsed("score", "qwen", "--tokens", "q.safetensors", "--out", "a.safetensors", "--json")
        return said["loss"]

    def test_the_loss_is_of_the_assistants_words(self):
        """Of the tokens and marks that transformers gives."""
        self.aloft("train", "tune.toml", "--init", "qwen", "--set", "optimizer.lr=0", "--set", "precision=O0", "--steps",
                   1, "--out", "still")
        cases = [case for case in self.chats if any(case["learnt"][1:])]
        nats = count = 0
        # A step of four examples, of three that there are: one of them comes twice.
        losses = []
        for case in cases:
            targets = [i if learnt else -100 for i, learnt in zip(case["ids"], case["learnt"])][1:]
            learnt = sum(t >= 0 for t in targets)
            losses.append((self.score_of(case["ids"][:-1], targets) * learnt, learnt))
        first = json.loads((self.folder / "still" / "metrics.jsonl").read_text().splitlines()[0])
        nats, count = map(sum, zip(*losses))
        twice = [(nats + n) / (count + c) for n, c in losses]
        self.assertEqual(len(cases), 3)
        self.assertLess(min(math.fabs(first["loss"] - t) for t in twice), 1e-5)


if __name__ == "__main__":
    main()
