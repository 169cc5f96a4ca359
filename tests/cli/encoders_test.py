"""Classifiers of texts as a user has them: a folder of Hugging Face that is trained on texts with labels, judged, gone
on with, asked and written."""
import json
import math
import shutil
import struct

from program import ROOT, ProgramTest, main
from tensors import read_tensors, write_tensors

RECIPE = """[data]
labelled = "train.jsonl"
validation = 0.25
length = 12
[optimizer]
lr = 3e-3
clip_norm = 1
[train]
batch = 8
steps = 120
eval_every = 30
checkpoint_minutes = 0
"""
GOOD, BAD, REST = ("fine", "lovely", "great"), ("poor", "dull", "awful"), ("a", "the", "film", "book", "was", "and", "it")


def tokenizer(padding, pair=True):
    """A tokenizer.json of whole words, with what BERT's puts around one text and two."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    order = special[1:3] + special[:1] + special[3:] if padding == 2 else special
    vocab = {word: i for i, word in enumerate([*order, *GOOD, *BAD, *REST])}

    def fixed(name, type_id):
        return {"SpecialToken": {"id": name, "type_id": type_id}}

    def text(name, type_id):
        return {"Sequence": {"id": name, "type_id": type_id}}
    second = int(pair)
    return {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": {"type": "Lowercase"},
        "added_tokens": [{"id": vocab[word], "content": word, "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True} for word in special],
        "pre_tokenizer": {"type": "Whitespace"}, "decoder": None,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": vocab},
        "post_processor": {
            "type": "TemplateProcessing", "single": [fixed("[CLS]", 0), text("A", 0), fixed("[SEP]", 0)],
            "pair": [fixed("[CLS]", 0), text("A", 0), fixed("[SEP]", 0), text("B", second), fixed("[SEP]", second)],
            "special_tokens": {word: {"id": word, "ids": [vocab[word]], "tokens": [word]}
                               for word in ("[CLS]", "[SEP]")}}}


def texts(count, with_pairs=False):
    """Of which one word says the label, at any place; numbers without a library."""
    lines = []
    for i in range(count):
        label = i % 2
        words = [REST[(i * 5 + 3 * k) % len(REST)] for k in range(3 + i % 4)]
        words.insert(i % len(words), (GOOD if label else BAD)[i // 2 % 3])
        line = {"text": " ".join(words), "label": label}
        if with_pairs:
            line["text_pair"] = "it was a film"
        lines.append(json.dumps(line))
    return "\n".join(lines) + "\n"


class Encoders(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, padding in (("bert-tiny", 0), ("roberta-tiny", 2)):
            shutil.copytree(ROOT / "tests" / "fixtures" / name, cls.folder / name)
            (cls.folder / name / "tokenizer.json").write_text(json.dumps(tokenizer(padding, name == "bert-tiny")))
        (cls.folder / "train.jsonl").write_text(texts(96))
        (cls.folder / "pairs.jsonl").write_text(texts(96, with_pairs=True))
        (cls.folder / "classify.toml").write_text(RECIPE)

    def refused(self, *arguments, exit_code=2):
        return self.aloft(*arguments, exit_code=exit_code).stderr.decode()

    def evaluations(self, run):
        lines = map(json.loads, (self.folder / run / "metrics.jsonl").read_text().splitlines())
        return [line for line in lines if "val_loss" in line]

    def bare(self, name, prefix):
        """The folder without a head, as it is published before anybody trained one."""
        shutil.copytree(self.folder / name, self.folder / f"{name}-bare")
        tensors = read_tensors(self.folder / name / "model.safetensors")
        write_tensors(self.folder / f"{name}-bare" / "model.safetensors",
                      {n.removeprefix(prefix): t for n, t in tensors.items() if not n.startswith("classifier")})
        config = json.loads((self.folder / name / "config.json").read_text())
        for key in ("id2label", "label2id", "problem_type"):
            config.pop(key)
        config["architectures"] = [config["architectures"][0].removesuffix("ForSequenceClassification") + "Model"]
        (self.folder / f"{name}-bare" / "config.json").write_text(json.dumps(config))
        return f"{name}-bare"

    def question(self, path, **rows):
        def tensor(values):
            flat = [i for row in values for i in (row if isinstance(row, list) else [row])]
            shape = [len(values), len(values[0])] if isinstance(values[0], list) else [len(values)]
            return {"dtype": "I32", "shape": shape}, struct.pack(f"<{len(flat)}i", *flat)
        write_tensors(self.folder / path, {name: tensor(values) for name, values in rows.items()})

    def test_texts_are_learnt_and_what_was_learnt_is_written(self):
        for name in ("bert-tiny", "roberta-tiny"):
            run = f"run-{name}"
            self.aloft("train", "classify.toml", "--init", name, "--out", run)
            self.assertGreater(self.evaluations(run)[-1]["val_accuracy"], 0.9, name)
            record = json.loads((self.folder / run / "run.json").read_text())
            self.assertEqual((record["task"], record["unit"], record["examples"]),
                             ("classification", "examples", {"train": 72, "validation": 24}))
            self.aloft("export", "hf", run, f"out-{name}")
            self.question("q.safetensors", tokens=[[2, 5, 11, 3], [2, 8, 3, 0]], lengths=[4, 3], labels=[1, 0])
            logits = {}
            for model in (run, f"out-{name}"):
                self.aloft("score", model, "--tokens", "q.safetensors", "--out", "a.safetensors", "--grads")
                logits[model] = read_tensors(self.folder / "a.safetensors")["logits"]
            self.assertEqual(*logits.values())
            self.assertTrue((self.folder / f"out-{name}" / "tokenizer.json").exists())

    def test_a_run_that_goes_on_is_the_run(self):
        self.aloft("train", "classify.toml", "--init", "bert-tiny", "--out", "whole", "--steps", 6)
        self.aloft("train", "classify.toml", "--init", "bert-tiny", "--out", "halves", "--steps", 3)
        self.aloft("train", "classify.toml", "--init", "bert-tiny", "--out", "halves", "--steps", 6, "--resume")
        last = [max((self.folder / run / "checkpoints").iterdir()) / "model.safetensors" for run in ("whole", "halves")]
        self.assertEqual(last[0].read_bytes(), last[1].read_bytes())

    def test_a_tokenizer_that_is_another_is_refused(self):
        """As of every source: by its name in the recipe, when a run goes on."""
        shutil.copytree(self.folder / "bert-tiny", self.folder / "own")
        recipe = (self.folder / "classify.toml").read_text().replace("[data]\n", '[data]\ntokenizer = { path = "own" }\n')
        (self.folder / "own.toml").write_text(recipe)
        asked = "train", "own.toml", "--init", "bert-tiny", "--out", "named", "--steps"
        self.aloft(*asked, 1)
        self.aloft(*asked, 2, "--resume")
        other = tokenizer(0)
        other["normalizer"] = None
        (self.folder / "own" / "tokenizer.json").write_text(json.dumps(other))
        said = self.refused(*asked, 3, "--resume")
        self.assertIn("error E0817", said)
        self.assertIn("leave data.tokenizer as it was", said)
        # Of the folder that the run began from, which no key of [data] names.
        shutil.copytree(self.folder / "bert-tiny", self.folder / "begun")
        asked = "train", "classify.toml", "--init", "begun", "--out", "begun-from", "--steps"
        self.aloft(*asked, 1)
        (self.folder / "begun" / "tokenizer.json").write_text(json.dumps(other))
        said = self.refused(*asked, 3, "--resume")
        self.assertIn("error E0817", said)
        self.assertIn("bring the tokenizer of that folder", said)
        self.assertNotIn("data.tokenizer", said)

    def test_a_few_texts_leave_one_for_validation(self):
        (self.folder / "few.jsonl").write_text(texts(5))
        few = ("train", "classify.toml", "--init", "bert-tiny", "--set", "data.validation=0.05", "--steps", 1)
        self.aloft(*few, "--set", "data.labelled=few.jsonl", "--out", "few")
        record = json.loads((self.folder / "few" / "run.json").read_text())
        self.assertEqual(record["examples"], {"train": 4, "validation": 1})
        (self.folder / "one.jsonl").write_text(texts(1))
        said = self.refused(*few, "--set", "data.labelled=one.jsonl", "--out", "x")
        self.assertRegex(said, r"E0512[^~]*at +.*one.jsonl[^~]*try .*data.validation=0.*data.validation_labelled")

    def test_a_folder_without_a_head_gets_one_by_the_data(self):
        for name, prefix in (("bert-tiny", "bert."), ("roberta-tiny", "roberta.")):
            bare = self.bare(name, prefix)
            said = self.aloft("train", "classify.toml", "--init", bare, "--out", f"run-{bare}", "--steps", 2)
            self.assertIn("begin as those of a new model", said.stderr.decode())
            self.assertIn("classifier", said.stderr.decode())
            record = json.loads((self.folder / f"run-{bare}" / "run.json").read_text())
            self.assertEqual(record["model"]["classes"], 2)
            self.assertIn("aloft train", self.refused("score", bare, "--tokens", "none", "--out", "x", exit_code=3))
            self.aloft("explain", "plan", bare, "--set", "data.length=8")
            self.aloft("export", "hf", f"run-{bare}", f"out-{bare}")
            config = json.loads((self.folder / f"out-{bare}" / "config.json").read_text())
            self.assertTrue(config["architectures"][0].endswith("ForSequenceClassification"))

    def ids_of(self, line, vocab):
        words = [vocab.get(word, vocab["[UNK]"]) for word in line["text"].split()]
        return [vocab["[CLS]"], *words, vocab["[SEP]"]]

    def test_an_evaluation_is_of_the_labels(self):
        """As the logits of each text, padded with others, say it: `score` gives them, as transformers does."""
        lines = [json.loads(line) for line in texts(23).splitlines()]
        (self.folder / "asked.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.aloft("train", "classify.toml", "--init", "bert-tiny", "--out", "half", "--steps", 4)
        for model, padding in (("bert-tiny", 0), ("roberta-tiny", 2), ("half", 0)):
            vocab = tokenizer(padding)["model"]["vocab"]
            rows = [self.ids_of(line, vocab) for line in lines]
            longest = max(map(len, rows))
            self.question("q.safetensors", tokens=[row + [0] * (longest - len(row)) for row in rows],
                          lengths=[len(row) for row in rows], labels=[line["label"] for line in lines])
            self.aloft("score", model, "--tokens", "q.safetensors", "--out", "a.safetensors")
            entry, content = read_tensors(self.folder / "a.safetensors")["logits"]
            flat = struct.unpack(f"<{len(content) // 4}f", content)
            logits = [flat[i:i + entry["shape"][1]] for i in range(0, len(flat), entry["shape"][1])]
            nats = sum(math.log(sum(map(math.exp, row))) - row[line["label"]] for row, line in zip(logits, lines))
            right = sum(row.index(max(row)) == line["label"] for row, line in zip(logits, lines))
            for at_a_time in (1, 5, 16, 100):
                [said] = self.parsed("eval", model, "--data", "asked.jsonl", "--windows", at_a_time, "--json")
                self.assertAlmostEqual(said["loss"], nats / len(lines), places=5)
                self.assertEqual((said["right"], said["texts"], said["cut"]), (right, len(lines), 0))
                self.assertEqual(said["accuracy"], right / len(lines))
        shown = self.aloft("eval", "half", "--data", "asked.jsonl", "asked.jsonl").stdout.decode()
        self.assertRegex(shown, rf"^loss \S+  accuracy \S+ %\n{right} of {len(lines)} texts right\n$")

    def test_an_evaluation_is_of_what_the_training_evaluates(self):
        shutil.copy(self.folder / "train.jsonl", self.folder / "held.jsonl")
        (self.folder / "watched.toml").write_text(RECIPE.replace("validation = 0.25", 'validation_labelled = "held.jsonl"'))
        self.aloft("train", "watched.toml", "--init", "bert-tiny", "--out", "watched", "--steps", 30, "--set",
                   "data.length=6")
        last = self.evaluations("watched")[-1]
        [said] = self.parsed("eval", "watched", "--data", "held.jsonl", "--length", 6, "--json")
        self.assertGreater(said["cut"], 0)
        self.assertAlmostEqual(said["loss"], last["val_loss"], places=5)
        self.assertAlmostEqual(said["accuracy"], last["val_accuracy"], places=6)

    def test_an_evaluation_that_cannot_be_is_refused(self):
        (self.folder / "odd.jsonl").write_text(texts(4) + '{"text": "a", "label": 700}\n')
        said = self.refused("eval", "bert-tiny", "--data", "odd.jsonl")
        self.assertIn("error E0716", said)
        self.assertIn("label 700, of text 5", said)
        (self.folder / "plain.txt").write_text("a text\n")
        self.assertIn("error E0515", self.refused("eval", "bert-tiny", "--data", "plain.txt", exit_code=3))
        self.assertIn("error E0510", self.refused("eval", "bert-tiny", "--data", "none.jsonl", exit_code=3))
        for wrong in (["--stride", 2], ["--length", 1000], ["--chat-template", "bert-tiny"]):
            self.assertIn("error E0700", self.refused("eval", "bert-tiny", "--data", "train.jsonl", *wrong))

    def test_pairs_and_texts_that_are_cut(self):
        for name in ("bert-tiny", "roberta-tiny"):
            said = self.aloft("train", "classify.toml", "--init", name, "--out", f"pairs-{name}", "--steps", 2, "--set",
                              "data.labelled=pairs.jsonl", "--set", "data.length=9")
            self.assertIn("of 96 texts are longer than 9 tokens and are cut", said.stderr.decode())
        (self.folder / "bert-tiny-bad").mkdir()
        for file in ("config.json", "model.safetensors"):
            shutil.copy(self.folder / "roberta-tiny" / file, self.folder / "bert-tiny-bad" / file)
        (self.folder / "bert-tiny-bad" / "tokenizer.json").write_text(json.dumps(tokenizer(2)))
        said = self.refused("train", "classify.toml", "--init", "bert-tiny-bad", "--out", "x", "--set",
                            "data.labelled=pairs.jsonl")
        self.assertIn("E0727", said)
        self.assertIn("types below 1", said)

    def test_what_cannot_be_read_is_refused(self):
        for line, says in (('{"text": "a"}', 'no "label"'), ('{"label": 1}', 'no "text"'), ("words", "not JSON"),
                           ('{"text": "a", "label": "good"}', '"label" that is "good"'),
                           ('{"text": 1, "label": 1}', '"text" that is a number'),
                           ('{"text": "a", "label": -1}', '"label" that is -1')):
            (self.folder / "bad.jsonl").write_text('{"text": "a", "label": 0}\n' + line + "\n")
            said = self.refused("train", "classify.toml", "--init", "bert-tiny", "--out", "x", "--set",
                                "data.labelled=bad.jsonl", exit_code=3)
            self.assertIn("bad.jsonl:2", said)
            self.assertIn(says, said)
        (self.folder / "many.jsonl").write_text(texts(8) + '{"text": "a", "label": 70}\n')
        self.assertIn("E0716", self.refused("train", "classify.toml", "--init", "bert-tiny", "--out", "x", "--set",
                                            "data.labelled=many.jsonl"))
        self.assertIn("E0717", self.refused("train", "classify.toml", "--init", "bert-tiny", "--out", "x", "--set",
                                            "data.labelled="))
        self.assertIn("E0718", self.refused("generate", "bert-tiny", "--prompt", "a"))
        self.assertIn("data.length", self.refused("train", "classify.toml", "--init", "roberta-tiny", "--out", "x",
                                                  "--set", "data.length=20"))

    def test_a_mask_of_a_file_is_not_passed_over(self):
        self.question("masked.safetensors", tokens=[[2, 5, 11, 3], [2, 8, 3, 0]],
                      attention_mask=[[1, 1, 1, 1], [1, 1, 1, 0]])
        said = self.refused("score", "bert-tiny", "--tokens", "masked.safetensors", "--out", "a.safetensors", exit_code=3)
        self.assertRegex(said, r"E0719[^~]*saw +'attention_mask'[^~]*need +lengths \[B\]")

    def test_norms_have_other_names_in_files_of_2018(self):
        self.question("q.safetensors", tokens=[[2, 5, 11, 3], [2, 8, 3, 0]], lengths=[4, 3], labels=[1, 0])
        for name in ("bert-tiny", "roberta-tiny"):
            old = f"old-{name}"
            shutil.copytree(self.folder / name, self.folder / old)
            tensors = read_tensors(self.folder / name / "model.safetensors")
            renamed = {n.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): t
                       for n, t in tensors.items()}
            self.assertEqual(len(renamed.keys() - tensors.keys()), 10)
            write_tensors(self.folder / old / "model.safetensors", renamed)
            scores = []
            for model in (name, old):
                self.aloft("score", model, "--tokens", "q.safetensors", "--out", "a.safetensors")
                scores.append(read_tensors(self.folder / "a.safetensors"))
            self.assertEqual(*scores)
            self.aloft("export", "hf", old, f"out-{old}")
            self.assertEqual(read_tensors(self.folder / f"out-{old}" / "model.safetensors"), tensors)
            # Both names of one tensor: which is meant?
            write_tensors(self.folder / old / "model.safetensors", tensors | renamed)
            self.assertIn("LayerNorm.beta", self.refused("score", old, "--tokens", "q.safetensors", "--out",
                                                          "a.safetensors", exit_code=3))

    def test_keys_of_other_models_are_refused_by_name(self):
        shutil.copytree(self.folder / "bert-tiny", self.folder / "other")
        plain = json.loads((self.folder / "bert-tiny" / "config.json").read_text())
        for key, value in (("position_embedding_type", "relative_key"), ("is_decoder", True), ("hidden_act", "tanhexp"),
                           ("add_cross_attention", True), ("problem_type", "regression"),
                           ("problem_type", "multi_label_classification"), ("embedding_size", 8)):
            (self.folder / "other" / "config.json").write_text(json.dumps(plain | {key: value}))
            said = self.refused("explain", "plan", "other", exit_code=3)
            self.assertIn("E0631", said)
            self.assertIn(key, said)
        one = plain | {"id2label": {"0": "x"}}
        (self.folder / "other" / "config.json").write_text(json.dumps(one))
        self.assertIn("num_labels", self.refused("explain", "plan", "other", exit_code=3))
        # One answer is a number, which transformers would learn as such.
        (self.folder / "other" / "config.json").write_text(
            json.dumps({**{k: v for k, v in plain.items() if k not in ("id2label", "label2id")}, "num_labels": 1}))
        self.assertIn("num_labels is", self.refused("explain", "plan", "other", exit_code=3))
        # Positions are counted behind the padding: transformers fails where there is none.
        rows = json.loads((self.folder / "roberta-tiny" / "config.json").read_text())
        (self.folder / "other" / "config.json").write_text(json.dumps(rows | {"pad_token_id": None}))
        said = self.refused("explain", "plan", "other", exit_code=3)
        self.assertIn("pad_token_id: null", said)
        self.assertIn("1 in RoBERTa's own files", said)
        (self.folder / "other" / "config.json").write_text(json.dumps(plain | {"pad_token_id": None}))
        self.aloft("explain", "plan", "other", "--set", "data.length=8")  # BERT's are not

    def test_a_folder_with_half_a_tokenizer_is_told_what_it_lacks(self):
        folder = self.folder / "words-alone"
        shutil.copytree(self.folder / "bert-tiny", folder)
        (folder / "tokenizer.json").unlink()
        (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n")
        said = self.refused("train", "classify.toml", "--init", "words-alone", "--out", "x")
        self.assertRegex(said, r"E0717[^~]*saw +vocab.txt[^~]*try +in transformers: AutoTokenizer.*save_pretrained")
        self.assertFalse((self.folder / "x").exists())


if __name__ == "__main__":
    main()
