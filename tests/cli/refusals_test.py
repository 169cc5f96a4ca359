"""What is refused before anything is made of it, and what the command line decides. Usage:
refusals_test.py ALOFT REPOSITORY (the standard library only)."""

import array
import json
import os
import pickle
import random
import re
import resource
import subprocess
import tempfile
import unittest
from pathlib import Path

from program import ALOFT, IS_SANITIZED, TINY, ProgramTest, main


class Refusals(ProgramTest):
    RECIPE = TINY.replace("validation = 0.2", 'cache = "cache"')

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls("aloft").aloft("train", "tiny.toml", "--out", "run", "--quiet")

    def aloft(self, *arguments, exit_code=0, says=(), preexec_fn=None):
        done = subprocess.run([ALOFT, *map(str, arguments)], cwd=self.folder, text=True,
                              errors="replace", capture_output=True, env=self.environment,
                              timeout=300, preexec_fn=preexec_fn)
        self.assertEqual(done.returncode, exit_code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        for words in says:
            self.assertIn(words, done.stderr, arguments)
        return done

    def config(self, *arguments):
        """key -> value of the resolved recipe, as text."""
        shown = self.aloft("train", "tiny.toml", "--print-config", *arguments).stdout
        section, values = "", {}
        for line in shown.splitlines():
            if line.startswith("["):
                section = line.strip("[]")
            elif " = " in line and not line.startswith("#"):
                key, value = line.split(" = ", 1)
                values[f"{section}.{key}"] = value.split("#")[0].strip()
        return values

    def test_nesting(self):
        deep, many = "[" * 100000 + "]" * 100000, 100000
        objects = '{"a":' * many + "1" + "}" * many
        run = self.folder / "run"
        newest = sorted((run / "checkpoints").iterdir())[-1]
        for path, command in ((newest / "manifest.json", ["generate", newest, "--prompt", "a"]),
                              (run / "tokenizer" / "aloft_tokenizer.json", ["data", "info", "run"]),
                              (run / "run.json", ["report", "run"]),
                              (run / "run.json", ["data", "info", "run"])):
            kept = path.read_text()
            for text in (deep, objects, kept.replace('"format"', '"x":' + objects + ',"format"', 1)):
                if text != kept:
                    path.write_text(text)
                    self.aloft(*command, exit_code=3)
            path.write_text(kept)
        metrics = run / "metrics.jsonl"
        kept = metrics.read_text()
        metrics.write_text(kept + deep + "\n" + objects + "\n")
        self.aloft("report", "run")
        metrics.write_text(kept)
        folder = self.folder / "hf"
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(b"\0" * 8)
        for name in ("config.json", "vocab.json"):
            (folder / "config.json").write_text('{"model_type": "gpt2"}')
            (folder / "vocab.json").write_text("{}")
            (folder / "merges.txt").write_text("")
            (folder / name).write_text(objects)
            self.aloft("generate", "hf", "--prompt", "a", exit_code=3)
        (self.folder / "deep.toml").write_text("a" + ".a" * many + " = 1\n")
        self.aloft("train", "deep.toml", "--print-config", exit_code=2, says=["E0714"])
        for text in ("x = " + deep, "x" * 3 + " = " + "{a=" * many, "[" + "a." * many + "a]"):
            (self.folder / "deep.toml").write_text(text)
            self.aloft("train", "deep.toml", "--print-config", exit_code=2)
        for value in ("[" * 20000, "{a=" * 20000, "{a" + ".a" * 20000 + "=1}"):
            self.aloft("train", "tiny.toml", "--print-config", "--set", f"train={value}", exit_code=2)
        self.aloft("train", "tiny.toml", "--print-config", "--set", "a" + ".a" * 20000 + "=1",
                   exit_code=2)

    def test_records_that_are_json_of_other_types(self):
        run = self.folder / "run"
        again = ["train", "tiny.toml", "--out", "run", "--resume"]
        record, data = run / "run.json", run / "data.json"
        kept = {path: path.read_text() for path in (record, data)}
        for recipe in (5, None, [1], "x"):
            record.write_text(json.dumps({**json.loads(kept[record]), "recipe": recipe}))
            for command in (["data", "info", "run"], ["report", "run"], again,
                            [*again, "--set", 'precision.level="auto"']):
                self.aloft(*command, exit_code=3, says=["E0643", "run.json"])
        record.write_text(kept[record])
        for text in ("5", "null", "[]", "{"):
            data.write_text(text)
            self.aloft(*again, exit_code=3, says=["E0643", "data.json"])
        for part in ("train", "validation", "tokenizer"):
            for value, files in ((5, 5), ([1], [5]), ("x", [[1, 2, 3]]),
                                 ({"tokens": {}}, [["text.txt", {"a": 1}, 3]])):
                data.write_text(json.dumps({**json.loads(kept[data]), part: value,
                                            "files": files}))
                name = {"train": "training tokens:", "validation": "validation tokens:",
                        "tokenizer": "the tokenizer:"}[part]
                self.aloft(*again, exit_code=2, says=["E0818", name])
        data.write_text(kept[data])

    def test_the_command_line_beats_the_file(self):
        gpt2 = self.config("--set", "model.size=gpt2")
        self.assertEqual([gpt2[f"model.{k}"] for k in ("layers", "heads", "dim", "context")],
                         ["12", "12", "768", "1024"])
        self.assertEqual(self.config("--set", "model.size=gpt2", "--set", "model.layers=2")
                         ["model.layers"], "2")
        done = self.aloft("explain", "precision", "tiny.toml", "--precision", "O0")
        self.assertEqual(done.stdout.splitlines()[0], "O0")
        (self.folder / "sum.toml").write_text(self.RECIPE.replace("batch = 2", "batch = 2\naccumulate = 3"))
        timed = json.loads(self.aloft("bench", "step", "--model", "sum.toml", "--steps", 2, "--json",
                                      "--no-limit").stdout)
        self.assertEqual(timed["accumulate"], 3)
        self.assertEqual(timed["settings"]["vocab"], 256)  # of the recipe's tokenizer
        tokens = timed["tokens_per_s"] * timed["step_ms"] / 1e3
        self.assertAlmostEqual(tokens, 3 * 2 * 8, delta=0.01)
        plan = json.loads(self.aloft("explain", "plan", "tiny.toml", "--json").stdout)
        table = next(s for s in plan["state"] if s["name"] == "wte.weight")
        self.assertIn("[256,16]", table["type"].replace(" ", ""))

    def test_what_does_not_apply_is_refused(self):
        for command in (["train", "tiny.toml", "--set", "optimizer.kind=sgd", "--set",
                         "optimizer.eps=1e-3"],
                        ["train", "tiny.toml", "--set", "schedule.gamma=0.5"],
                        ["train", "tiny.toml", "--set", "data.validation_tokens=t.bin"],
                        ["train", "tiny.toml", "--force"],
                        ["bench", "step", "--model", "lenet", "--seq", "8"],
                        ["bench", "step", "--model", "llama", "--set", "schedule.gamma=0.5"],
                        ["bench", "step", "--model", "tiny.toml", "--set", "train.mode=eager"],
                        ["explain", "plan", "tiny.toml", "--set", "train.mode=eager"]):
            self.aloft(*command, exit_code=2)
        # What the file says of a kind that the command line replaces is left in peace.
        (self.folder / "betas.toml").write_text(self.RECIPE + "[optimizer]\nbetas = [0.8, 0.9]\n")
        shown = self.aloft("train", "betas.toml", "--print-config", "--set", "optimizer.kind=sgd")
        (self.folder / "shown.toml").write_text(shown.stdout)
        self.aloft("train", "shown.toml", "--print-config")

    def test_numbers_that_are_none(self):
        for option, value in (("--temperature", "nan"), ("--temperature", "inf"), ("--top-p", "nan"),
                              ("--top-p", "-1"), ("--top-p", "0.5x"), ("--seed", "-1")):
            self.aloft("generate", "run", "--prompt", "a", option, value, exit_code=2,
                       says=["E0700", option, "need a", value])
        self.aloft("generate", "run", "--prompt", "a", "--tokens", 2, "--temperature", "0.5",
                   "--top-p", "0.5", "--seed", 2)

    def test_slips_are_met_with_names(self):
        self.aloft("explain", "precision", "tiny.tml", exit_code=2, says=["E0721", "try   tiny.toml"])
        self.aloft("explain", "plan", "run", exit_code=2,
                   says=["E0721", "run directory", "llama", "lenet", "resnet18"])
        self.aloft("explain", "precision", "run", "--precision", "O0", exit_code=2, says=["E0724"])
        self.aloft("bench", "step", "--model", "lenett", exit_code=2, says=["E0721", "try   lenet"])
        self.aloft("recipes", "tiny.toml", exit_code=2, says=["E0721", "--print-config"])
        self.aloft("train", "run", exit_code=2,
                   says=["this is a run directory, not a recipe", "--resume --out run"])
        self.aloft("train", "cache", exit_code=2, says=["this is a folder, not a recipe"])
        self.aloft("train", "tiny.toml", "--out", "tiny.toml", exit_code=2,
                   says=["E0820", "the run directory is a file"])
        self.aloft("train", "tiny.toml", "--out", "no", "--set", 'optimizer.no_decay=["wtee.*"]',
                   exit_code=2, says=["E0809", "optimizer.no_decay (--set)"])
        self.aloft("recipes", "nowhere", exit_code=2, says=["E0721"])
        done = self.aloft(exit_code=2, says=["error E0700"])
        self.assertIn("train", done.stdout)
        self.assertIn("Usage: aloft [OPTIONS]", done.stdout)
        for words, saw, meant in ((["trian"], "trian", "train"), (["print-config", "tiny.toml"], "print-config", ""),
                                  (["explain", "plam", "tiny.toml"], "plam", "plan"), (["explain"], "", "")):
            done = self.aloft(*words, exit_code=2, says=["error E0700: there is no such verb", "need  one of "])
            self.assertIn(f'saw   "{saw}"' if saw else "saw   none", done.stderr)
            self.assertEqual(f"did you mean {meant}?" in done.stderr, bool(meant), done.stderr)
            self.assertEqual("generate" in done.stderr, words[0] != "explain")
        self.aloft("--quiet", "train", "tiny.toml", exit_code=2,
                   says=["error E0700: an option stands before the verb", 'saw   "--quiet"', "need  one of "])

    def test_what_would_not_go_on(self):
        again = ["train", "tiny.toml", "--out", "run", "--resume", "--set"]
        for setting, why in (("optimizer.kind=sgd", "moments"), ("precision.level=O0", "precision"),
                             ("model.heads=4", "weights"), ("data.tokenizer.kind=char", "id")):
            done = self.aloft(*again, setting, exit_code=2, says=["E0817", why])
            self.assertEqual("weights would mean" in done.stderr, setting.startswith("model"))

    def test_an_out_with_detours(self):
        """What is left again is not made: run/x/.. is run, and none/./x/../.. is not there."""
        self.aloft("train", "tiny.toml", "--out", "detour/./x/../y/../z", "--quiet", "--steps", 1)
        self.assertEqual([p.name for p in (self.folder / "detour").iterdir()], ["z"])
        self.assertTrue((self.folder / "detour/z/run.json").is_file())
        self.aloft("train", "tiny.toml", "--out", "run/x/..", exit_code=2, says=["E0811"])
        self.assertFalse((self.folder / "run/x").exists())

    def test_a_zero_byte_in_a_value(self):
        self.aloft("train", "tiny.toml", "--set", 'model.size="x\\u0000y"', exit_code=2,
                   says=["E0710", "gpt2-124m", 'got "x\\u0000y"'])

    def test_a_text_without_a_name(self):
        for text in ('[""]', '["text.txt", ""]'):
            self.aloft("train", "tiny.toml", "--out", "nameless", "--set", f"data.text={text}", exit_code=3,
                       says=["E0510", "a text has no name", '"." is the whole folder'])
        self.assertFalse((self.folder / "nameless").exists())

    def test_what_is_no_text(self):
        for name, content in (("a.parquet", b"PAR1\x15\x04" + b"x" * 99 + b"PAR1"),
                              ("b.jsonl", b'{"text": "one"}\n{"text": "two"}\n' * 20),
                              ("c.txt", b'{"text": "one"}\n{"text": "two"}\n' * 20),
                              ("d.gz", b"\x1f\x8b\x08" + b"y" * 99),
                              ("e.tar", b"x" * 257 + b"ustar\x0000" + b"z" * 999),
                              ("f.txt", ("\ufeff" + "one and two\n" * 40).encode("utf-16-le"))):
            (self.folder / name).write_bytes(content)
            done = self.aloft("train", "tiny.toml", "--out", "kinds", "--set", f"data.text={name}",
                              exit_code=3, says=["E0516", name, "try"])
            self.assertEqual("iconv -f UTF-16 -t UTF-8" in done.stderr, name == "f.txt")
            if name == "c.txt":
                self.run_advice(done.stderr)
        self.assertFalse((self.folder / "kinds").exists())

    def run_advice(self, said):
        """What is advised for JSON lines works on what counts as such: with a byte order mark, blank lines,
        record separators, half of a surrogate pair, a byte of Latin-1. At a line that was cut Python stops."""
        advised = re.search(r"PYTHONIO\S+ python3 -c .* > text\.txt", said.replace("\n", " ")).group()
        lines = ('\ufeff{"text": "caf\u00e9"}\n\n{"text": "two"}\r\n \n\x1e{"text": "\\ud83d"}\n').encode()
        lines += b'{"x": NaN, "text": "\xe9"}\n'
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "FILE").write_bytes(lines)
            subprocess.run(advised, shell=True, check=True, cwd=folder,
                           env={**os.environ, "LC_ALL": "C"})
            text = Path(folder, "text.txt").read_text(encoding="utf-8")
            self.assertEqual(text, "caf\u00e9\ntwo\n?\n\ufffd\n")

    def test_what_may_be_no_text_is_taken_and_said(self):
        """Bytes can be learnt: a named file of no known kind is taken. Said once by each start, not by one
        of plain text."""
        drawn = random.Random(3).randbytes(20000)
        objects = json.dumps([{"text": "the quick brown fox"}] * 99)
        for name, content, why in (
                ("drawn.bin", drawn, f"byte {drawn.index(0)} is zero"),
                ("kept.pkl", pickle.dumps(["one", "two"] * 99), "is zero"),
                ("koi.txt", ("\u0432\u043e\u0434\u0430 " * 200).encode("koi8-r"),
                 "80 % of its first 1000 bytes are no UTF-8"),
                ("list.json", objects.encode(), "it begins as JSON"),
                ("strings.json", json.dumps(["the quick brown fox"] * 99).encode(), "it begins as JSON"),
                ("utf16.txt", ("one and two\n" * 40).encode("utf-16-le"), "UTF-16LE .*iconv -f UTF-16LE"),
                ("text.txt", None, None)):
            if content:
                (self.folder / name).write_bytes(content)
            given = ["tiny.toml", "--set", f"data.text={name}"]
            run = ["train", *given, "--out", f"odd-{name}", "--quiet"]
            for command in (run, [*run, "--resume", "--steps", 5], ["data", "build", *given]):
                done = self.aloft(*command)
                lines = [line for line in done.stderr.splitlines() if "may be no text" in line]
                self.assertEqual(len(lines), 1 if why else 0, (command, done.stderr))
                if why:
                    self.assertRegex(lines[0], f"^warning: .*{re.escape(name)} may be no text: .*{why}")
                    self.assertRegex(lines[0], r"if that is not meant: \w+")
            listed = json.loads(self.aloft("data", "build", *given, "--json").stdout)["doubtful"]
            self.assertEqual([Path(f["path"]).name for f in listed], [name] if why else [])

    def test_what_is_no_token_file(self):
        """A file without a header may hold tokens or anything: what is plainly no tokens is refused."""
        text = "What is written once is read many times.\n" * 40
        draw = random.Random(7).randrange
        gpt2 = [min(int(draw(1, 50257) ** 0.9), 50256) for _ in range(4000)]
        for name, content, advice in (
                ("plain.txt", text.encode(), "data.text"),
                ("cyrillic.bin", ("\u0432\u043e\u0434\u0430 " * 200).encode(), "data.text"),
                ("latin.bin", (text * 3 + "caf\u00e9 " * 3).encode("latin-1") + b"x" * 1, "data.text"),
                ("a.parquet", b"PAR1\x15\x04" + bytes(range(256)) + b"PAR1", "text column"),
                ("b.npy", b"\x93NUMPY\x01\x00" + bytes(300), "data.train_tokens"),
                ("c.gz", b"\x1f\x8b\x08\x00" + bytes(range(256)), "gunzip")):
            content += b"\n" * (len(content) % 2)  # an odd number of bytes is refused anyway
            (self.folder / name).write_bytes(content)
            done = self.tokens(name, exit_code=3)
            for words in ("E0620", name, advice):
                self.assertIn(words, done.stderr)
        for name, ids in (("gpt2.bin", gpt2), ("characters.bin", [draw(65) for _ in range(4000)]),
                          ("bytes.bin", list(text.encode())), ("zeros.bin", [0] * 4000)):
            (self.folder / name).write_bytes(array.array("H", ids).tobytes())
            self.tokens(name)

    def tokens(self, name, exit_code=0):
        return self.aloft("train", "tiny.toml", "--out", "of-" + name, "--quiet", "--steps", 1, "--set",
                          f"data.train_tokens={name}", "--set", "data.text=[]", "--set",
                          "model.vocab=50257", exit_code=exit_code)

    @unittest.skipIf(IS_SANITIZED, "a sanitizer needs more memory than the limit")
    def test_a_plan_that_does_not_fit(self):
        """Between what a recipe needs at least and what its plan needs: refused before any weight."""
        recipe = ["--set", "model.dim=256", "--set", "model.layers=4", "--set", "model.context=512",
                  "--set", "train.batch=16", "--set", "data.text=text.txt"]
        plan = json.loads(self.aloft("explain", "plan", "tiny.toml", *recipe, "--json").stdout)
        needed = sum(plan["arenas"].values())
        least = 100 << 20
        self.assertGreater(needed, 2 * least)
        def limited():
            resource.setrlimit(resource.RLIMIT_DATA, (needed - (16 << 20), needed))
        for command in (["train", "tiny.toml", "--out", "tight", *recipe],
                        ["bench", "step", "--model", "tiny.toml", "--no-limit", *recipe]):
            done = self.aloft(*command, exit_code=4, preexec_fn=limited)
            for words in ("E0401", "the plan of a step", "activations", "ulimit -d", "train.batch"):
                self.assertIn(words, done.stderr)
        self.assertFalse((self.folder / "tight").exists())
        shown = self.aloft("explain", "plan", "tiny.toml", *recipe, preexec_fn=limited)
        self.assertIn("this machine cannot run it", shown.stderr)
        self.assertIn("arenas", shown.stdout)
        self.assertRegex(shown.stdout, r"(?m)^does not fit: .* of .*$")
        self.assertIn("data.length", shown.stderr)  # a folder of --init says model.context itself
        summary = self.aloft("explain", "plan", "tiny.toml", "--summary").stdout
        self.assertRegex(summary, r"(?m)^fits: .* of .*$")
        self.assertIn("most activations at instruction", summary)
        self.assertNotRegex(summary, r"(?m)^  (instructions|buffers)$")
        whole = self.aloft("explain", "plan", "tiny.toml").stdout
        self.assertRegex(whole, r"(?m)^  instructions$")
        self.assertLess(len(summary.splitlines()), len(whole.splitlines()) / 3)
        named = self.aloft("bench", "step", "--model", "lenet", "--batch", 100000, "--no-limit",
                           exit_code=4, preexec_fn=limited)
        self.assertIn("--batch", named.stderr)

    @unittest.skipIf(IS_SANITIZED, "a sanitizer needs more memory than the limit")
    def test_a_model_that_does_not_fit_is_not_used(self):
        """Of 19 million parameters: weights, keys and values, the plan of a score."""
        self.aloft("train", "tiny.toml", "--out", "wide", "--set", "model.dim=512", "--set",
                   "model.layers=6", "--set", "model.context=256", "--set", "train.batch=1", "--set",
                   "data.validation=0", "--steps", 0)
        header = b'{"tokens":{"dtype":"I32","shape":[64,256],"data_offsets":[0,65536]}} '
        (self.folder / "many.safetensors").write_bytes(
            len(header).to_bytes(8, "little") + header + bytes(65536))
        generate = ["generate", "wide", "--prompt", "a", "--tokens", 1]
        score = ["score", "wide", "--tokens", "many.safetensors", "--out", "wide.s"]
        for command, mib, words in (
                (generate, 64, ["the weights of the model", "more memory"]),
                (score, 64, ["the weights of the model"]),
                ([*generate, "--samples", 256], 1024, ["keys and values of 256 texts", "--samples"]),
                (score, 250, ["the plan of a step", "--tokens"])):
            def limited(most=mib << 20):
                resource.setrlimit(resource.RLIMIT_DATA, (most, most))
            self.aloft(*command, exit_code=4, preexec_fn=limited, says=["E0401", *words])
        self.aloft(*generate)

    def test_what_is_said_before_anything_is_prepared(self):
        cache = ["--set", "data.cache=fresh"]
        taken = self.aloft("train", "tiny.toml", "--out", "run", *cache, exit_code=2)
        self.assertIn("E0811", taken.stderr)
        huge = self.aloft("train", "tiny.toml", "--out", "huge", *cache, "--set",
                          "model.context=1000000", "--set", "train.batch=100000", exit_code=4)
        for words in ("E0401", "TiB", "in all", "free", "train.batch"):
            self.assertIn(words, huge.stderr)
        self.assertFalse((self.folder / "fresh").exists())
        self.assertFalse((self.folder / "huge").exists())
        self.aloft("train", "tiny.toml", "--out", "long", "--set", "model.context=5000", exit_code=3,
                   says=["E0531", "context 5000"])
        self.assertFalse((self.folder / "long").exists())
        for setting in ("data.tokenizer.kind=gpt2", 'data.tokenizer={kind="bpe",vocab=20}'):
            done = self.aloft("train", "tiny.toml", "--out", "long", "--set", setting, exit_code=2,
                              says=["E0710", "data.tokenizer."])
            self.assertNotIn("preparing", done.stderr)
        warm = self.aloft("train", "tiny.toml", "--out", "warm", "--set", "schedule.warmup=50")
        self.assertIn("schedule.warmup is 50", warm.stderr)

    def test_a_token_file_that_is_cut(self):
        """Between the listing and the last step it loses its end: an error, and no signal."""
        tokens = self.folder / "tokens.bin"
        tokens.write_bytes(bytes(2 * 400000))
        command = [ALOFT, "train", "tiny.toml", "--out", "cut", "--set", "data.train_tokens=tokens.bin",
                   "--set", "model.vocab=300", "--set", "data.text=[]", "--steps", "1000000",
                   "--set", "train.eval_every=0"]
        run = subprocess.Popen(command, cwd=self.folder, env=self.environment, text=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for line in run.stderr:
            if line.startswith("step "):
                break
        os.truncate(tokens, 5000)
        with run.stderr:
            text = run.stderr.read()
        self.assertEqual(run.wait(timeout=120), 4, text)
        self.assertIn("E0608", text)
        self.assertIn("tokens.bin", text)


if __name__ == "__main__":
    main()
