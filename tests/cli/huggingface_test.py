"""Folders of Hugging Face as a user has them: a run that begins from one, what is shown of one, and one that is
written."""
import json
import math
import re
import shutil
import struct
import subprocess
import time

from program import ALOFT, ProgramTest, main
from tensors import read_tensors, write_tensors


def tokens_file(path, *columns):
    def tensor(rows):
        content = struct.pack(f"<{len(rows) * len(rows[0])}i", *(i for row in rows for i in row))
        return {"dtype": "I32", "shape": [len(rows), len(rows[0])]}, content
    write_tensors(path, dict(zip(("tokens", "targets"), map(tensor, columns))))


class HuggingFace(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.aloft("train", "tiny.toml", "--set", "model.family=llama", "--out", "base")
        cls.aloft("export", "hf", "base", "folder")

    def tensors(self, folder):
        return read_tensors(self.folder / folder / "model.safetensors")

    def config(self, folder):
        return json.loads((self.folder / folder / "config.json").read_text())

    def refused(self, *arguments, exit_code=2):
        return self.aloft(*arguments, exit_code=exit_code).stderr.decode()

    def test_what_is_written_is_the_model_of_the_run(self):
        for option in ("--temperature", "--seed"):
            asked = ["--prompt", "the", "--tokens", 6, option, 3]
            self.assertEqual(self.aloft("generate", "base", *asked).stdout,
                             self.aloft("generate", "folder", *asked).stdout)
        config = self.config("folder")
        self.assertEqual((config["model_type"], config["torch_dtype"]), ("llama", "float32"))
        self.assertEqual((config["eos_token_id"], config["bos_token_id"]), (None, None))  # bytes end nothing
        self.assertTrue(all(name.startswith("model.") for name in set(self.tensors("folder")) - {"lm_head.weight"}))

    def test_types_of_what_is_written(self):
        for dtype, name, size in (("bf16", "bfloat16", 2), ("f16", "float16", 2), ("f32", "float32", 4)):
            [said] = self.parsed("export", "hf", "base", dtype, "--dtype", dtype, "--json")
            tensors = self.tensors(dtype)
            self.assertEqual({entry["dtype"] for entry, _ in tensors.values()}, {dtype.upper()})
            self.assertEqual(sum(len(content) for _, content in tensors.values()), said["bytes"])
            self.assertEqual(said["bytes"] % size, 0)
            self.assertEqual(self.config(dtype)["torch_dtype"], name)
            self.aloft("generate", dtype, "--prompt", "a", "--tokens", 2)

    def test_nothing_is_written_over(self):
        (self.folder / "mine").mkdir()
        (self.folder / "mine" / "notes").write_text("mine")
        self.assertIn("error E0820", self.refused("export", "hf", "base", "mine"))
        self.assertEqual([p.name for p in (self.folder / "mine").iterdir()], ["notes"])
        self.assertIn("error E0718", self.refused("export", "hf", "text.txt", "new"))
        self.assertFalse((self.folder / "new").exists())
        self.assertEqual([], [p.name for p in self.folder.iterdir() if p.name.startswith(("mine.", "new."))])

    def test_only_what_a_killed_export_left_is_removed(self):
        others = [self.folder / name for name in ("beside.partial", "beside.aloft", "beside.tmp4194399.0",
                                                  "another.aloft.tmp4194399.0", "beside.aloft.tmp4194399")]
        left = self.folder / "beside.aloft.tmp4194399.0"  # of a process that no machine has
        for folder in [*others, left]:
            folder.mkdir()
            (folder / "thesis.txt").write_text("mine")
        self.aloft("export", "hf", "base", "beside")
        for folder in others:
            self.assertEqual((folder / "thesis.txt").read_text(), "mine")
        self.assertFalse(left.exists())

    def test_of_two_exports_to_one_name_one_is_there_whole(self):
        self.aloft("train", "tiny.toml", "--set", "model.family=llama", "--set", "model.dim=32", "--set",
                   "optimizer.lr=0.1", "--out", "wide")
        self.aloft("export", "hf", "wide", "wide-folder")

        def files(folder):
            return {p.name: p.read_bytes() for p in (self.folder / folder).iterdir()}
        models = {"base": files("folder"), "wide": files("wide-folder")}
        for _ in range(6):
            exports = {run: subprocess.Popen([ALOFT, "export", "hf", run, "one"], cwd=self.folder,
                                             env=self.environment, stdout=subprocess.DEVNULL,
                                             stderr=subprocess.PIPE) for run in models}
            said = {run: e.communicate(timeout=300)[1].decode() for run, e in exports.items()}
            ends = {run: e.returncode for run, e in exports.items()}
            self.assertEqual(sorted(ends.values()), [0, 2], said)
            [won], [lost] = ([run for run, e in ends.items() if e == status] for status in (0, 2))
            self.assertIn("error E0820", said[lost])
            self.assertEqual(files("one"), models[won])
            shutil.rmtree(self.folder / "one")

    def test_where_a_model_is_written(self):
        """A link is followed; a folder that somebody stands in is not replaced under him; a name is needed."""
        (self.folder / "linked").mkdir()
        (self.folder / "link").symlink_to("linked")
        self.aloft("export", "hf", "base", "link")
        self.assertTrue((self.folder / "linked" / "config.json").exists())
        self.assertTrue((self.folder / "link").is_symlink())
        (self.folder / "broken").symlink_to("nowhere")
        self.assertIn("error E0820", self.refused("export", "hf", "base", "broken"))
        self.assertIn("error E0700", self.refused("export", "hf", "base", ""))
        here = self.folder / "here"
        here.mkdir()
        for name in (".", here, "../here/"):
            done = subprocess.run([ALOFT, "export", "hf", "../base", name], cwd=here, env=self.environment,
                                  capture_output=True, timeout=300)
            self.assertEqual((done.returncode, list(here.iterdir())), (2, []))
            self.assertIn(b"error E0820", done.stderr)

    def test_what_ends_a_text_is_what_the_folder_says(self):
        asked = ["--prompt", "the", "--tokens", 8, "--temperature", 0, "--json"]
        [whole] = self.parsed("generate", "folder", *asked)
        shutil.copytree(self.folder / "folder", self.folder / "ends")
        end = whole["tokens"][-1]
        before = whole["tokens"].index(end)
        (self.folder / "ends" / "generation_config.json").write_text(json.dumps({"eos_token_id": [300, end]}))
        [said] = self.parsed("generate", "ends", *asked)
        self.assertEqual((said["tokens"], said["ended"]), (whole["tokens"][:before], True))
        (self.folder / "ends" / "generation_config.json").write_text('{"eos_token_id": "</s>"}')
        self.assertIn("error E0631", self.refused("generate", "ends", *asked, exit_code=3))
        for broken in ('{"eos_token_id": [106', "[]"):
            (self.folder / "ends" / "generation_config.json").write_text(broken)
            said = self.refused("generate", "ends", *asked, exit_code=3)
            self.assertIn("error E0631", said)
            self.assertIn("generation_config.json", said)

    def folder_with_ids(self, name, eos_token, template="{{ messages }}{{ eos_token }}"):
        """One whose every file names tokens of its tokenizer."""
        folder = self.folder / name
        shutil.copytree(self.folder / "folder", folder)
        ids = {"bos_token_id": 106, "eos_token_id": [101, 107], "pad_token_id": 3}
        (folder / "config.json").write_text(json.dumps(self.config(name) | ids))
        (folder / "generation_config.json").write_text(json.dumps(
            ids | {"temperature": 0.5, "suppress_tokens": [5]}))
        (folder / "tokenizer_config.json").write_text(json.dumps(
            {"eos_token": eos_token, "tokenizer_class": "LlamaTokenizerFast"}))
        (folder / "special_tokens_map.json").write_text(json.dumps({"eos_token": eos_token}))
        (folder / "added_tokens.json").write_text(json.dumps({eos_token: 107}))
        (folder / "chat_template.jinja").write_text(template)
        return folder

    def test_ids_of_a_folder_are_those_of_its_tokenizer(self):
        """A run with a tokenizer of its own takes none of them, and what is exported names none."""
        began = self.folder_with_ids("with-ids", "</s>")
        asked = ["train", "tiny.toml", "--init", "with-ids", "--steps", 1]
        for kind, name in (("char", "charred"), ("byte", "same")):
            self.aloft(*asked, "--set", f'data.tokenizer={{ kind = "{kind}" }}', "--out", name)
        said = self.aloft("export", "hf", "charred", "charred-hf").stderr.decode()
        self.assertIn("chat template", said)
        out = self.folder / "charred-hf"
        config = self.config("charred-hf")
        self.assertEqual([config[name + "_token_id"] for name in ("bos", "eos", "pad")], [None] * 3)
        read = {name: json.loads((out / name).read_text()) for name in
                ("generation_config.json", "tokenizer_config.json")}
        self.assertEqual(read["generation_config.json"], {"temperature": 0.5})
        self.assertEqual(read["tokenizer_config.json"]["tokenizer_class"], "PreTrainedTokenizerFast")
        self.assertNotIn("eos_token", read["tokenizer_config.json"])
        for gone in ("special_tokens_map.json", "added_tokens.json", "chat_template.jinja"):
            self.assertFalse((out / gone).exists(), gone)
        self.assertNotEqual((out / "tokenizer.json").read_bytes(), (began / "tokenizer.json").read_bytes())
        # The folder's own tokenizer: all stays as it was.
        self.aloft("export", "hf", "same", "same-hf")
        for file in ("generation_config.json", "tokenizer_config.json", "special_tokens_map.json",
                     "added_tokens.json", "chat_template.jinja", "tokenizer.json"):
            self.assertEqual((self.folder / "same-hf" / file).read_bytes(), (began / file).read_bytes(), file)
        self.assertEqual(self.config("same-hf")["eos_token_id"], [101, 107])
        # What ends a text, where the model writes every token sooner or later.
        for run, ends in (("charred", False), ("same", True), ("charred-hf", False), ("same-hf", True)):
            [said] = self.parsed("generate", run, "--prompt", "the", "--tokens", 4000, "--temperature", 10,
                                 "--json")
            self.assertEqual(said["ended"], ends, run)

    def test_a_template_stays_whose_tokens_the_tokenizer_has(self):
        self.folder_with_ids("of-letters", "q")
        self.aloft("train", "tiny.toml", "--init", "of-letters", "--steps", 1, "--set",
                   'data.tokenizer={ kind = "char" }', "--out", "letters")
        self.assertNotIn("chat template", self.aloft("export", "hf", "letters", "letters-hf").stderr.decode())
        self.assertEqual((self.folder / "letters-hf" / "chat_template.jinja").read_text(),
                         "{{ messages }}{{ eos_token }}")
        said = json.loads((self.folder / "letters-hf" / "tokenizer_config.json").read_text())
        self.assertEqual(said["eos_token"], "q")

    def test_what_is_frozen_stays(self):
        """To the bit, also where what is trained is kept in a low type beside its f32 masters; and a run goes on."""
        frozen = ["*embed_tokens*", "*mlp*"]
        for precision in ("O0", "O2:bf16"):
            out = "frozen-" + precision[:2]
            asked = ["train", "tiny.toml", "--init", "folder", "--set", f"optimizer.freeze={frozen}", "--set",
                     "optimizer.lr=0.1", "--set", f"precision={precision}", "--out", out]
            for more in ([], ["--resume", "--set", "train.steps=6"]):
                self.aloft(*asked, *more)
                written = f"{out}-{len(more)}"
                self.aloft("export", "hf", out, written, "--dtype", "f32")
                before, after = self.tensors("folder"), self.tensors(written)
                same = {name for name in before if before[name] == after[name]}
                self.assertEqual(same, {name for name in before if "embed_tokens" in name or "mlp" in name}, precision)
        [said] = self.parsed("generate", "frozen-O2", "--prompt", "the", "--tokens", 4, "--json")
        self.assertEqual(len(said["tokens"]), 4)
        self.assertIn("error E0809", self.refused("train", "tiny.toml", "--set", "optimizer.freeze=['h.9.*']", "--out",
                                                  "x"))

    def test_what_is_frozen_may_have_its_name_in_the_folder(self):
        """With the prefix of transformers' names, which are those of the file, or without it."""
        self.assertIn("model.layers.0.mlp.up_proj.weight", self.tensors("folder"))
        plans = [self.aloft("explain", "plan", "tiny.toml", "--init", "folder", "--set",
                            f"optimizer.freeze=['{prefix}layers.0.*']", "--json").stdout
                 for prefix in ("", "model.")]
        self.assertEqual(*plans)
        self.assertNotEqual(plans[0], self.aloft("explain", "plan", "tiny.toml", "--init", "folder", "--json").stdout)
        self.assertIn('"model.layers.9.*"', self.refused("train", "tiny.toml", "--init", "folder", "--set",
                                                         "optimizer.freeze=['model.layers.9.*']", "--out", "x"))

    def test_the_loss_of_a_text(self):
        """By windows of which each but the first predicts its last two tokens, as it is defined."""
        text = "the quick brown fox jumps over it"
        (self.folder / "eval.txt").write_text(text)
        [said] = self.parsed("eval", "folder", "--data", "eval.txt", "--length", 8, "--stride", 2, "--json")
        tokens, nats, predicted = list(text.encode()), 0, 0
        for begin in range(0, len(tokens), 2):
            rows = tokens[begin:begin + 9]
            first = 0 if begin == 0 else 6  # targets that an earlier window has predicted
            if len(rows) - 1 <= first:
                break
            targets = [-100] * first + rows[1 + first:]
            tokens_file(self.folder / "row.safetensors", [rows[:-1]], [targets])
            [scored] = self.parsed("score", "folder", "--tokens", "row.safetensors", "--out", "o.safetensors",
                                   "--json")
            count = len(targets) - first
            nats, predicted = nats + scored["loss"] * count, predicted + count
        self.assertEqual((said["predicted"], said["tokens"]), (predicted, len(tokens)))
        self.assertAlmostEqual(said["loss"], nats / predicted, places=5)
        self.assertAlmostEqual(said["bits_per_byte"], nats / math.log(2) / len(tokens), places=5)
        self.assertAlmostEqual(said["perplexity"], math.exp(nats / predicted), places=2)
        [four] = self.parsed("eval", "folder", "--data", "eval.txt", "--length", 8, "--stride", 2, "--windows", 4,
                             "--json")
        self.assertAlmostEqual(four["loss"], said["loss"], places=5)
        (self.folder / "one.txt").write_text("t")
        self.assertIn("error E0812", self.refused("eval", "folder", "--data", "one.txt"))
        self.assertIn("error E0700", self.refused("eval", "folder", "--data", "eval.txt", "--length", 9))

    def test_a_run_begins_with_the_weights_and_the_tokenizer(self):
        recipe = self.folder / "begins.toml"
        recipe.write_text('[data]\ntext = ["text.txt"]\n[optimizer]\nlr = 0\n[train]\nbatch = 2\nsteps = 1\n'
                          'sample_tokens = 0\n')
        for level in ("O0", "O2:bf16", "O2:fp16"):
            out = "begins-" + level.replace(":", "-")
            self.aloft("train", "begins.toml", "--init", "folder", "--set", f"precision={level}", "--out", out)
            self.aloft("export", "hf", out, out + "-hf")
            self.assertEqual(self.tensors("folder"), self.tensors(out + "-hf"), level)
            self.assertEqual(json.loads((self.folder / out / "run.json").read_text())["recipe"]["model"]["family"],
                             "llama")
            self.assertTrue((self.folder / out / "tokenizer" / "aloft_tokenizer.json").exists())

    def test_a_resume_is_the_run_that_never_stopped_without_the_weights(self):
        shutil.copytree(self.folder / "folder", self.folder / "gone")
        self.aloft("train", "tiny.toml", "--init", "gone", "--out", "whole")
        self.aloft("train", "tiny.toml", "--init", "gone", "--out", "halves", "--steps", 2)
        (self.folder / "gone" / "model.safetensors").unlink()
        self.aloft("train", "tiny.toml", "--init", "gone", "--out", "halves", "--resume")
        for file in ("model.safetensors", "state.safetensors"):
            whole, halves = (read_tensors(self.folder / run / "checkpoints" / "step-000004" / file)
                             for run in ("whole", "halves"))
            self.assertEqual(whole, halves, file)
        said = self.refused("train", "tiny.toml", "--init", "folder", "--out", "halves", "--resume", "--steps", 6)
        self.assertIn("model.init", said)
        self.assertIn("error E0817", said)

    def test_what_the_folder_says_of_itself_comes_back(self):
        folder = self.folder / "known"
        shutil.copytree(self.folder / "folder", folder)
        config = self.config("known")
        config |= {"pad_token_id": 3, "rope_parameters": {"rope_theta": config.pop("rope_theta"),
                                                          "rope_type": "default"}, "dtype": "float32"}
        config.pop("torch_dtype"), config.pop("rope_scaling", None)
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "chat_template.jinja").write_text("{{ messages }}")
        self.aloft("train", "tiny.toml", "--init", "known", "--out", "tuned", "--steps", 1)
        self.aloft("export", "hf", "tuned", "tuned-hf", "--dtype", "bf16")
        self.assertEqual(self.config("tuned-hf"), config | {"dtype": "bfloat16"})
        self.assertEqual((self.folder / "tuned-hf" / "chat_template.jinja").read_text(), "{{ messages }}")

    def test_a_folder_is_shown_without_its_weights(self):
        config = self.config("folder") | {
            "hidden_size": 4096, "intermediate_size": 11008, "num_attention_heads": 32, "num_key_value_heads": 32,
            "head_dim": 128, "num_hidden_layers": 32, "vocab_size": 32000, "max_position_embeddings": 4096}
        (self.folder / "seven").mkdir()
        (self.folder / "seven" / "config.json").write_text(json.dumps(config))
        shown = self.aloft("explain", "plan", "seven", "--set", "data.length=64", "--set", "train.batch=1",
                           "--set", "precision=O2:bf16")
        self.assertRegex(shown.stdout.decode(), r"parameters +1[23],\d{3},\d{3},\d{3}")  # 6.7 billion of 2 bytes
        config |= {"hidden_size": 16, "intermediate_size": 44, "num_attention_heads": 2, "num_key_value_heads": 2,
                   "head_dim": 8, "num_hidden_layers": 1, "vocab_size": 257}
        (self.folder / "seven" / "config.json").write_text(json.dumps(config))
        self.assertIn("model.safetensors", self.refused("train", "tiny.toml", "--init", "seven", "--set", "data.length=8",
                                                 "--out", "x", exit_code=3))
        self.aloft("bench", "step", "folder", "--steps", 1, "--batch", 2, "--no-limit")
        timed, = self.parsed("bench", "step", "folder", "--steps", 1, "--batch", 2, "--seq", 4, "--no-limit", "--json")
        self.assertEqual(timed["tokens_an_example"], 4)

    def test_what_is_trained_from_a_folder_is_shown_and_timed_from_it(self):
        def shown(*words):
            return self.aloft("explain", "plan", "tiny.toml", *words, "--json").stdout
        by_option, by_key = shown("--init", "folder"), shown("--set", "model.init=folder")
        self.assertEqual(by_option, by_key)
        self.assertNotEqual(by_option, shown())
        timed, = self.parsed("bench", "step", "tiny.toml", "--init", "folder", "--steps", 1, "--no-limit", "--json")
        self.assertEqual(timed["tokens_an_example"], 8)
        for words in (("explain", "plan", "gpt2-124m"), ("probe", "run", "folder", "--tokens", "t", "--out", "p")):
            said = self.refused(*words, "--init", "folder")
            self.assertIn("E07", said)
            self.assertIn("--init", said)

    def test_latency_of_text(self):
        before = time.clock_gettime(time.CLOCK_MONOTONIC)
        timed, = self.parsed("bench", "generate", "folder", "--prompt-tokens", 4, "--tokens", 3, "--rounds", 1,
                             "--no-limit", "--json")
        stored = self.tensors("folder")
        table = next(len(data) for name, (_, data) in stored.items() if "embed_tokens" in name)
        every = sum(len(data) for _, data in stored.values())
        # A table that is looked up alone is not read; a tied one is the head, too.
        self.assertIn(timed["read_bytes_a_token"], (every, every - table))
        self.assertGreater(timed["first_token_ms"], timed["open_ms"])
        self.assertGreater(timed["first_token_clock_s"], before + timed["open_ms"] / 1e3)
        self.assertLess(timed["first_token_clock_s"], time.clock_gettime(time.CLOCK_MONOTONIC))
        self.assertGreater(timed["tokens_per_s"], 0)
        self.assertNotIn("share_of_stream", timed)
        beside, = self.parsed("bench", "generate", "folder", "--prompt-tokens", 4, "--tokens", 3, "--rounds", 2, "--json")
        for rate in ("share_of_stream", "stream_gb_s", "read_gb_s"):
            self.assertGreater(beside[rate], 0)
        said = self.refused("bench", "generate", "folder", "--prompt-tokens", 4000, "--tokens", 3)
        self.assertIn("error E0700", said)
        self.assertIn("--prompt-tokens", said)

    def test_keys_that_say_another_model(self):
        recipe = self.folder / "wrong.toml"
        recipe.write_text('[model]\ninit = "folder"\ndim = 32\nheads = 2\nsize = "gpt2-124m"\ndropout = 0.1\n'
                          '[data]\ntext = ["text.txt"]\nlength = 9\n')
        said = self.refused("train", "wrong.toml", "--out", "x")
        self.assertIn("error E0710", said)
        self.assertRegex(said, r"wrong.toml:3 +model.dim: .*config.json has 16, got 32")
        self.assertRegex(said, r"wrong.toml:5 +model.size: model.init says the model")
        self.assertRegex(said, r"wrong.toml:9 +data.length: .*8 tokens")
        self.assertNotRegex(said, "model.(heads|dropout)")
        self.assertIn("model.family: ", self.refused("train", "tiny.toml", "--init", "folder", "--set",
                                                     "model.family=gpt2", "--out", "x"))

    def test_what_no_run_begins_from(self):
        said = self.refused("train", "tiny.toml", "--init", "base", "--out", "x")
        self.assertIn("error E0718", said)
        self.assertIn("aloft export hf", said)
        self.assertIn("error E0718", self.refused("train", "tiny.toml", "--init", "nowhere", "--out", "x"))
        self.assertFalse((self.folder / "x").exists())

    def test_no_run_makes_a_tokenizer_for_weights_that_were_trained_with_another(self):
        """The ids of a new one mean something else to the weights: refused before anything is made."""
        folder = self.folder / "bare"
        shutil.copytree(self.folder / "folder", folder)
        for path in folder.glob("*token*"):
            path.unlink()
        (self.folder / "no-tokenizer.toml").write_text('[data]\ntext = ["text.txt"]\n[train]\nbatch = 2\nsteps = 1\n')
        (self.folder / "lines.jsonl").write_text('{"text": "the quick fox"}\n' * 9)
        lines = ("--set", "data.text=[]", "--set", "data.jsonl=['lines.jsonl']")
        asked = ("no-tokenizer.toml", "--init", "bare")
        for file, remedy in ((None, "tokenizer.json"), ("vocab.txt", "AutoTokenizer.from_pretrained"),
                             ("tekken.json", "tokenizer.json"), ("vocab.json", "merges.txt")):
            if file:
                (folder / file).write_text("{}")
            for verb in (("train", *asked, "--out", "x"), ("train", *asked, *lines, "--out", "x"),
                         ("data", "build", *asked), ("data", "build", *asked, *lines)):
                said = self.refused(*verb)
                self.assertIn("error E0717", said)
                self.assertRegex(said, rf"saw +{file or 'none of these'}")
                self.assertRegex(said, rf"try .*{remedy}")
            self.assertRegex(self.refused("generate", "bare", "--prompt", "a"), rf"E0718[^~]*saw +{file or 'none'}[^~]*try ")
            if file:
                (folder / file).unlink()
        self.assertFalse((self.folder / "x").exists())
        self.aloft("explain", "plan", *asked)  # which needs no word of the text
        self.aloft("train", *asked, "--set", "data.tokenizer.path=folder", "--out", "named")

    def test_the_path_of_a_tokenizer_says_its_kind(self):
        """One that is said and is another is refused."""
        (self.folder / "kindless.toml").write_text('[data]\ntext = ["text.txt"]\n')
        build, path = ("data", "build", "kindless.toml"), ("--set", "data.tokenizer.path=folder")
        for words in (path, ("--init", "folder")):
            self.assertEqual(json.loads(self.aloft(*build, *words, "--json").stdout)["tokenizer"], "byte")
        said = self.refused(*build, *path, "--set", "data.tokenizer.kind=char")
        self.assertRegex(said, r"E0505[^~]*saw +a tokenizer of the kind byte[^~]*need +one of the kind char[^~]*"
                               r"try +data.tokenizer.path without data.tokenizer.kind")

    def test_a_folder_that_lost_its_tokenizer_is_named_when_a_run_goes_on(self):
        """And the run goes on with what it has kept of it."""
        shutil.copytree(self.folder / "folder", self.folder / "losing")
        (self.folder / "loses.toml").write_text('[data]\ntext = ["text.txt"]\n[train]\nbatch = 2\n')
        asked = ("train", "loses.toml", "--init", "losing", "--out", "loses")
        self.aloft(*asked, "--steps", 1)
        for path in (self.folder / "losing").glob("*token*"):
            path.unlink()
        said = self.refused(*asked, "--resume", "--steps", 2)
        self.assertRegex(said, r"E0817[^~]*tokenizer is gone[^~]*at +\S*losing\n[^~]*saw +none of these[^~]*try ")
        own = re.search(r"or the run's own: (--set \S+) (--set \S+)", " ".join(said.split()))
        self.aloft(*asked, "--resume", "--steps", 2, *own[1].split(), *own[2].split())

    def test_what_lies_there_instead_of_a_model_is_said_with_what_makes_one_of_it(self):
        def folder(name, *files):
            (self.folder / name).mkdir(parents=True)
            for file in files:
                (self.folder / name / file).write_text('{"architectures": ["LlamaForCausalLM"]}')
        folder("torch", "config.json", "pytorch_model.bin")
        folder("adapter", "adapter_config.json", "adapter_model.safetensors")
        folder("gguf", "m.gguf")
        folder("weights", "model.safetensors")
        folder("config", "config.json")
        folder("models--a--b/refs")
        shutil.copytree(self.folder / "folder", self.folder / "models--a--b" / "snapshots" / "77")
        cases = {
            "foldr": ("nothing at that path", "folder, which is there"),
            "Qwen/Qwen2.5-0.5B": ("nothing at that path; .*hub", "hf download Qwen/Qwen2.5-0.5B"),
            "torch": ("pytorch_model.bin", "LlamaForCausalLM.from_pretrained.*save_pretrained"),
            "adapter": ("an adapter", "merge_and_unload"),
            "gguf": ("m.gguf", "safetensors"),
            "gguf/m.gguf": ("a file of GGUF", "safetensors"),
            "weights": ("no config.json", "config.json"),
            "config": ("no weights", "model.safetensors"),
            "folder/model.safetensors": ("a file", "its folder: .*folder"),
            "models--a--b": ("folders of models", "snapshots/77"),
        }
        for path, (saw, remedy) in cases.items():
            for verb in (("generate", path, "--prompt", "a"), ("eval", path, "--data", "text.txt"),
                         ("train", "tiny.toml", "--init", path, "--out", "x")):
                if verb[0] == "train" and path in ("torch", "config"):
                    continue  # of a description alone there is a plan; a run needs weights
                said = self.refused(*verb)
                self.assertIn("error E0718", said)
                self.assertRegex(said, rf"saw +.*{saw}", path)
                self.assertRegex(said, rf"try +.*{remedy}", path)
        self.assertIn("--init", self.refused("train", "tiny.toml", "--init", "foldr", "--out", "x"))
        (self.folder / "torch" / "config.json").write_text(
            json.dumps(self.config("folder") | {"architectures": ["LlamaForCausalLM"]}))
        said = self.refused("train", "tiny.toml", "--init", "torch", "--out", "x", exit_code=3)
        self.assertRegex(said, r"error E0632[^~]*saw +pytorch_model.bin[^~]*try .*save_pretrained")


class Lengths(ProgramTest):
    def test_examples_shorter_than_the_context_are_those_of_a_shorter_model(self):
        """Rotary angles do not know how long a context is: the same steps to the bit."""
        rotary = ("--set", "model.family=llama")
        self.aloft("train", "tiny.toml", *rotary, "--out", "short")
        self.aloft("train", "tiny.toml", *rotary, "--set", "model.context=64", "--set", "data.length=8", "--out",
                   "long")
        for run in ("short", "long"):
            self.assertTrue((self.folder / run / "checkpoints" / "step-000004").is_dir())
        short, long = (read_tensors(self.folder / run / "checkpoints" / "step-000004" / "model.safetensors")
                       for run in ("short", "long"))
        self.assertEqual(short, long)


if __name__ == "__main__":
    main()
