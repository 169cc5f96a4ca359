"""Every family of language models that the catalogue has: a run that stops and goes on, what it writes and how it
is scored; and a folder of Hugging Face whose tensors lie in several files."""
import json
import shutil
import struct
import unittest

from program import ROOT, ProgramTest, main
from tensors import read_tensors, write_tensors

FIXTURES = ROOT / "tests" / "fixtures"
MODELS = sorted(config.parent.name for config in FIXTURES.glob("*/config.json"))
CLASSIFIERS = [name for name in MODELS
               if "ForSequenceClassification" in (FIXTURES / name / "config.json").read_text()]


def tokens_file(path, rows=((1, 2, 3, 4, 5, 6), (6, 5, 4, 3, 2, 1)), labels=None):
    """`labels`: of texts to be classified, one a row."""
    content = struct.pack(f"<{len(rows) * len(rows[0])}i", *(i for row in rows for i in row))
    tensors = {"tokens": ({"dtype": "I32", "shape": [len(rows), len(rows[0])]}, content)}
    if labels:
        tensors["labels"] = {"dtype": "I32", "shape": [len(labels)]}, struct.pack(f"<{len(labels)}i", *labels)
    write_tensors(path, tensors)
    return path


class Families(ProgramTest):
    def writers(self):
        """The families of models that write text, each with its settings."""
        keys = json.loads(self.aloft("recipes", "--json").stdout)["keys"]
        context = next(k for k in keys if k["key"] == "model.context" and "gpt2" in k["families"])
        return {name: {k["key"] for k in keys if name in k.get("families", [name])}
                for name in context["families"]}

    def test_a_resume_is_the_run_that_never_stopped(self):
        tokens = tokens_file(self.folder / "tokens.safetensors")
        writers = self.writers()
        self.assertLessEqual({"gpt2", "llama", "qwen2"}, set(writers))
        for name, keys in writers.items():
            settings = ["--set", f"model.family={name}", "--set", "model.dropout=0.1", "--set", "model.heads=4", "--set",
                        "model.dim=32"]
            if "model.kv_heads" in keys:
                settings += ["--set", "model.kv_heads=2"]
            for mode in ("graph", "eager"):
                whole, halves = f"{name}-{mode}", f"{name}-{mode}-halves"
                self.aloft("train", "tiny.toml", *settings, "--mode", mode, "--out", whole)
                self.aloft("train", "tiny.toml", *settings, "--mode", mode, "--out", halves, "--steps", 2)
                self.aloft("train", "tiny.toml", *settings, "--mode", mode, "--out", halves, "--steps", 4, "--resume")
                for file in ("model.safetensors", "state.safetensors"):
                    self.assertEqual(*((self.folder / run / "checkpoints/step-000004" / file).read_bytes()
                                       for run in (whole, halves)), f"{name} {mode} {file}")
                said = [self.parsed("generate", run, "--prompt", "the", "--tokens", 12, "--json")[0]
                        for run in (whole, halves)]
                self.assertEqual(len(said[0]["tokens"]), 12)
                self.assertEqual(said[0]["tokens"], said[1]["tokens"])
                for run in (whole, halves):
                    self.aloft("score", run, "--tokens", tokens, "--grads", "--precision", "O2:bf16",
                               "--out", f"{run}.safetensors")
                scored = [read_tensors(self.folder / f"{run}.safetensors") for run in (whole, halves)]
                self.assertEqual(scored[0], scored[1], name)
                self.assertGreater(len(scored[0]), 10)
            # An earlier step is scored by its number.
            first = self.aloft("score", halves, "--checkpoint", 2, "--tokens", tokens, "--out", "two").stdout
            last = self.aloft("score", halves, "--checkpoint", 4, "--tokens", tokens, "--out", "four").stdout
            self.assertNotEqual(first.splitlines()[0], last.splitlines()[0])
            self.aloft("score", halves, "--checkpoint", 3, "--tokens", tokens, "--out", "three", exit_code=2)

    def sharded(self, name, cut=3):
        """A copy of a fixture with its tensors dealt out to `cut` files, and the index of them."""
        folder = self.folder / f"{name}-{cut}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        shutil.copy(FIXTURES / name / "config.json", folder)
        (folder / "aloft_tokenizer.json").write_text('{"format": "aloft-tokenizer", "version": 1, "kind": "byte"}')
        tensors = read_tensors(FIXTURES / name / "model.safetensors")
        parts = [{} for _ in range(cut)]
        for i, (tensor, value) in enumerate(sorted(tensors.items())):
            parts[i % cut][tensor] = value
        where = {}
        for i, part in enumerate(parts):
            file = f"model-{i + 1:05}-of-{cut:05}.safetensors"
            write_tensors(folder / file, part)
            where |= {tensor: file for tensor in part}
        (folder / "model.safetensors.index.json").write_text(
            json.dumps({"metadata": {"total_size": 0}, "weight_map": where}))
        return folder

    def test_a_model_in_several_files_is_the_one_in_one(self):
        of_writers = tokens_file(self.folder / "few.safetensors")
        of_classifiers = tokens_file(self.folder / "labelled.safetensors", labels=(1, 0))
        for name in MODELS:
            tokens = of_classifiers if name in CLASSIFIERS else of_writers
            self.aloft("score", FIXTURES / name, "--tokens", tokens, "--grads", "--out", "one")
            folder = self.sharded(name)
            self.aloft("score", folder, "--tokens", tokens, "--grads", "--out", "several")
            self.assertEqual(read_tensors(self.folder / "one"), read_tensors(self.folder / "several"), name)
            if name in CLASSIFIERS:
                continue
            whole = self.sharded(name, 1)
            said = [self.parsed("generate", of, "--prompt", "AB", "--tokens", 8, "--json")[0]["tokens"]
                    for of in (folder, whole)]
            self.assertEqual(said[0], said[1])

    def refused(self, folder, *says):
        said = self.aloft("generate", folder, "--prompt", "A", exit_code=3).stderr.decode()
        for words in ("E0615", *says):
            self.assertIn(words, said)

    def test_files_that_do_not_belong_together_are_refused(self):
        folder = self.sharded("llama-tiny")
        first, second, third = sorted(folder.glob("model-*.safetensors"))
        one, two = read_tensors(first), read_tensors(second)
        some = next(iter(one))
        write_tensors(second, {**two, some: one[some]})
        self.refused(folder, f"'{some}' is in '{first.name}' and in '{second.name}'")
        write_tensors(second, two)
        write_tensors(first, {name: value for name, value in one.items() if name != some})
        self.refused(folder, f"'{some}' is not in '{first.name}', which the index names")
        write_tensors(first, one)
        third.unlink()
        self.refused(folder, f"'{third.name}' is missing, with")
        (folder / "model.safetensors.index.json").write_text("{}")
        self.refused(folder, "no weight_map")


if __name__ == "__main__":
    main()
