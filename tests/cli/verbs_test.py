"""aloft as a user meets it. Usage: verbs_test.py ALOFT REPOSITORY (the standard library only)."""

import array
import json
import math
import os
import re
import subprocess
from pathlib import Path

from program import ALOFT, ROOT, TINY, ProgramTest, main


class Verbs(ProgramTest):
    RECIPE = TINY.replace("sample_tokens = 0", "eval_every = 2\nsample_tokens = 8")

    def aloft(self, *arguments, exit_code=0):
        done = subprocess.run([ALOFT, *map(str, arguments)], cwd=self.folder, text=True,
                              errors="replace",
                              capture_output=True, env=self.environment, timeout=300)
        self.assertEqual(done.returncode, exit_code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done

    def parsed(self, *arguments):
        return json.loads(self.aloft(*arguments).stdout)

    def test_help_has_an_example(self):
        verbs = [line.split()[0] for line in self.aloft("--help").stdout.splitlines()
                 if line.startswith("  ") and not line.startswith("  -") and line.split()]
        self.assertIn("explain", verbs)
        nested = {"explain": ["precision", "plan", "graph", "kernels"], "data": ["build", "info"]}
        for verb in verbs:
            self.assertIn("Example:", self.aloft(verb, "--help").stdout, verb)
            for inner in nested.get(verb, []):
                self.assertIn("Example:", self.aloft(verb, inner, "--help").stdout, inner)

    def test_train_says_what_a_run_begins_from(self):
        said = " ".join(self.aloft("train", "--help").stdout.split())
        self.assertRegex(said, r"--init \S+ a Hugging Face folder: model, tokenizer and first weights")
        page = (ROOT / "recipes" / "README.md").read_text()
        calls = re.findall(r"\bmodels::(\w+_huggingface\w*)", page)
        header = (ROOT / "src" / "models" / "huggingface.h").read_text()
        self.assertEqual(set(calls), {"open_huggingface", "load_huggingface", "save_huggingface"})
        for call in calls:
            self.assertRegex(header, rf"\b{call}\(")

    def test_wrong_usage_is_2(self):
        for arguments in [("tran",), ("train",), ("ops", "--jsn"), ("explain",),
                          ("explain", "precision", "tiny.toml", "--program", "nothing")]:
            done = self.aloft(*arguments, exit_code=2)
            self.assertEqual(done.stdout, "", arguments)
            self.assertIn("error E07", done.stderr, arguments)

    def test_the_rates_of_products_are_measured_once_and_shown(self):
        file = self.folder / "cache" / "aloft" / "product-rates.json"
        file.unlink(missing_ok=True)
        asked = ("explain", "precision", "tiny.toml", "--set", 'precision.level="auto"')

        def said():
            lines = [line for line in self.aloft(*asked).stderr.splitlines()
                     if line.startswith("products here: ")]
            self.assertEqual(len(lines), 1, lines)
            return lines[0]

        first = said()
        self.assertRegex(first, r"f32 \d+, bf16 \d+ GFLOP/s \([\d.]+x\), measured now"
                                r"(, the machine was busy: repeats differed by \d+ %)?$")
        again = said()
        self.assertIn("as measured before", again)
        self.assertEqual(first.split("),")[0], again.split("),")[0])
        for damage in ("{", "[1]", file.read_text().replace('": {', '": 7, "x": {'),
                       file.read_text().replace("gflops", "flops")):
            file.write_text(damage)
            self.assertIn("measured now", said(), damage)
        file.unlink()
        file.mkdir()  # cannot be read, cannot be written
        self.assertIn("measured now", said())
        file.rmdir()

    def test_the_limit_counts_each_byte_once_and_is_not_beaten(self):
        def timed(precision, *more):
            return self.parsed("bench", "step", "--model", "tiny.toml", "--vocab", 256, "--precision",
                               precision, "--steps", 5, "--json", *more)

        attention, mlp = 16 * 48 + 48 + 16 * 16 + 16, 16 * 64 + 64 + 64 * 16 + 16
        norms = 3 * 2 * 16  # a scale and a bias each
        weights = 256 * 16 + 8 * 16 + attention + mlp
        # fp32: the gradient read; parameter and two moments read and written. With a master the bf16
        # gradient is read, the bf16 weight written, master and moments read and written: 28 as well.
        whole = timed("O0")
        self.assertEqual(whole["update_bytes"], 28 * (weights + norms))
        self.assertEqual(timed("O2:bf16", "--no-limit")["update_bytes"], 28 * (weights + norms))
        # Without masters: gradient, weight read and written in bf16, moments in fp32.
        self.assertEqual(timed("O3:bf16", "--no-limit")["update_bytes"], 22 * (weights + norms))
        for j in (whole, timed("O2:bf16")):
            self.assertGreater(j["limit_fraction"], 0)
            self.assertGreaterEqual(j["profiled_step_ms"], 0.5 * sum(op["ms"] for op in j["ops"]))
            self.assertLessEqual(j["limit_fraction"], 1)
            self.assertLessEqual(j["limit_ms"], j["step_ms"])
            self.assertAlmostEqual(j["limit_ms"], j["matmul_limit_ms"] + j["update_limit_ms"])
        for j, why in ((timed("O2:fp16"), "no f16 product"),
                       (timed("O0", "--set", "train.accumulate=2"), "several programs")):
            for key in ("limit_ms", "limit_fraction", "limit_normal_ms", "limit_normal_fraction"):
                self.assertIsNone(j[key], why)
            self.assertIn(why, j["limit_missing"])
            self.assertNotIn("matmul_limit_ms", j)

    def test_what_was_probably_meant(self):
        for arguments, meant in [(("tran",), "train"), (("explain", "presicion", "tiny.toml"), "precision"),
                                 (("train", "tiny.toml", "--step", 4), "--steps"),
                                 (("train", "tinny.toml"), "tiny.toml"),
                                 (("train", "tiny.toml", "--lr", "1e-3"), "optimizer.lr"),
                                 (("train", "tiny.toml", "--batch-size", 4), "train.batch"),
                                 (("train", "tiny.toml", "--seed", 4), "train.seed"),
                                 (("bench", "step", "--model", "gpt2-125m"), "gpt2-124m")]:
            done = self.aloft(*arguments, exit_code=2)
            self.assertIn(meant, done.stderr.split("try", 1)[1], arguments)
        for option in ("--steps", "--threads"):
            self.assertIn("0 or more", self.aloft("train", "tiny.toml", option, -3, exit_code=2).stderr)
        said = self.aloft("explain", "precision", "tiny.toml", "3", "--stepz", exit_code=2).stderr
        self.assertIn("not expected here: 3 --stepz\n", said)
        self.assertIn("aloft explain precision --help", said)

    def test_the_warm_up_is_judged_by_the_run(self):
        curve = ("--set", "schedule.kind=cosine", "--set", "schedule.warmup=6", "--set", "schedule.steps=3")
        said = self.aloft("train", "tiny.toml", "--out", "over", "--steps", 8, *curve).stderr
        self.assertIn("schedule.warmup is 6 updates and schedule.steps 3: behind the warm-up nothing is", said)
        self.assertNotIn("stays below", said)
        said = self.aloft("train", "tiny.toml", "--out", "under", "--steps", 4, *curve).stderr
        self.assertIn("schedule.warmup is 6 updates and the run 4: the learning rate stays below 0.001", said)

    def test_a_run_too_short_for_its_cycle_or_its_means_is_told_so(self):
        def said(steps, *settings):
            return self.aloft("train", "tiny.toml", "--out", f"short-{steps}-{len(settings)}", "--steps", steps,
                              *(word for s in settings for word in ("--set", s))).stderr

        cycles = ("schedule.kind=cosine-restarts", "schedule.cycle=6", "schedule.warmup=2")
        self.assertIn("schedule.cycle is 6 updates behind 2 of warm-up and the run 7: it ends within the first "
                      "cycle", said(7, *cycles))
        self.assertNotIn("schedule.cycle is", said(8, *cycles))
        means = ("optimizer.average=swa", "optimizer.average_from=4")
        self.assertIn("optimizer.average_from is 4 updates and the run 4: the means are the weights themselves",
                      said(4, *means))
        self.assertNotIn("optimizer.average_from is", said(6, *means))
        self.assertNotIn("optimizer.average_from is", said(3, "optimizer.average=none"))

    def test_a_number_that_must_stay_below_its_end_is_named_by_its_key(self):
        for settings, need in ((("optimizer.average=ema", "optimizer.average_decay=1"),
                                "optimizer.average_decay: need 0 to below 1, got 1"),
                               (("optimizer.kind=rmsprop", "optimizer.alpha=1"),
                                "optimizer.alpha: need 0 to below 1, got 1")):
            said = self.aloft("train", "tiny.toml", "--out", "end", *(word for s in settings for word in ("--set", s)),
                              exit_code=2).stderr
            self.assertIn("E0710", said)
            self.assertIn("--set " + need, said)

    def test_every_mistake_of_a_recipe_at_once(self):
        lines = self.RECIPE.splitlines()
        wrong = [line.replace("layers", "leyers").replace("batch = 2", 'batch = "two"')
                 .replace('level = "O2:bf16"', 'level = "O7"').replace("heads = 2", "heads = -2")
                 for line in lines]
        (self.folder / "wrong.toml").write_text("\n".join(wrong))
        done = self.aloft("train", "wrong.toml", exit_code=2)
        self.assertEqual(done.stdout, "")
        for old, new in zip(lines, wrong):
            if old != new:
                self.assertIn(f"wrong.toml:{wrong.index(new) + 1}", done.stderr, new)
        self.assertIn("layers", done.stderr)  # the nearest name
        self.assertFalse((self.folder / "runs").exists())

    def test_bad_data_is_3(self):
        self.aloft("train", "tiny.toml", "--set", 'data.text=["absent.txt"]', exit_code=3)
        self.aloft("data", "info", "text.txt", exit_code=3)
        self.aloft("report", ".", exit_code=3)

    def test_ops(self):
        table = self.parsed("ops", "--json")
        self.assertGreaterEqual(len(table), 90)
        self.assertEqual(len({op["name"] for op in table}), len(table))
        for op in table:
            self.assertIn(op["numeric"], ("narrow", "follow", "widen", "exact"))
            self.assertIn(op["meaning"], ("eval", "body"))
            self.assertTrue(op["kernels"]["cpu"] or op["meaning"] == "body", op["name"])
        self.assertIn("softmax", self.aloft("ops", "soft*").stdout)

    def test_passes(self):
        names = [p["name"] for p in self.parsed("passes", "--json")]
        self.assertLess(names.index("insert-casts"), names.index("differentiate"))
        self.assertIn("differentiate", self.aloft("passes").stdout)

    def test_passes_on_a_graph(self):
        graph = self.folder / "small.graph"
        graph.write_text('graph g {\n  %0 = input {name="x"} : f32[2]\n  %1 = exp(%0) : f32[2]\n'
                         '  %2 = neg(%0) : f32[2]\n  return y=%2\n}\n')
        shown = self.aloft("passes", "--run", "cse,dce", graph).stdout
        self.assertEqual(shown, 'graph g {\n  %0 = input {name="x"} : f32[2]\n'
                                '  %1 = neg(%0) : f32[2]\n  return y=%1\n}\n')
        self.assertIn("cse", self.aloft("passes", "--run", "csee", graph, exit_code=2).stderr)
        self.aloft("passes", "--run", "cse", exit_code=2)
        graph.write_text(graph.read_text().replace("neg", "softmax_"))
        self.assertIn("E0316", self.aloft("passes", "--run", "dce", graph, exit_code=2).stderr)

    def test_letters_beyond_ascii_in_recipes(self):
        recipe = self.folder / "letters.toml"
        recipe.write_text('# \u0493 "\n[data]\ntext = ["\u0493.txt", \'\u00e4\']\n'
                          'cache = """\n\u0493 \""""\n[train]\nsteps = 5\n', encoding="utf-8")
        self.assertIn("\u0493", self.aloft("train", recipe, "--print-config").stdout)
        recipe.write_text("[train]\nsteps = 5\u0493\n", encoding="utf-8")
        self.assertIn("letters.toml:2",
                      self.aloft("train", recipe, "--print-config", exit_code=2).stderr)

    def test_recipes(self):
        listed = self.parsed("recipes", ROOT / "recipes", "--json")
        self.assertIn("gpt-cpp.toml", [Path(r["path"]).name for r in listed["recipes"]])
        self.assertTrue(all(r["summary"] for r in listed["recipes"]))
        self.assertIn("train.batch", [k["key"] for k in listed["keys"]])
        rates = {kind: k["default"] for k in listed["keys"] if k["key"] == "optimizer.lr" for kind in k["optimizers"]}
        self.assertEqual(rates, {kind["name"]: kind["lr"] for kind in listed["optimizers"]})
        rest = [k for k in listed["keys"] if k["key"] == "optimizer.rest"]
        self.assertEqual([(k["optimizers"], "*wte*" in k["default"]) for k in rest], [(["muon"], True)])
        foreign = [k for k in listed["keys"] if "read_as" in k]
        self.assertEqual({k["key"]: k["read_as"] for k in foreign if k["read_as"]},
                         {"optimizer.max_grad_norm": "optimizer.clip_norm"})
        self.assertLess({"optimizer.foreach", "optimizer.fused", "optimizer.capturable",
                         "optimizer.differentiable"}, {k["key"] for k in foreign if "kinds" not in k})
        self.assertEqual([(k["type"], k["kinds"]) for k in foreign if k["key"] == "optimizer.ns_steps"],
                         [("number", ["muon"])])

    def test_devices_and_doctor(self):
        device = self.parsed("devices", "--json", "--no-measure")[0]
        self.assertIn("avx2", device["instruction_sets"])
        findings = self.parsed("doctor", "--json")
        for f in findings:
            self.assertIn(f["state"], ("ok", "warn"), f)
            self.assertTrue(f["state"] == "ok" or f["advice"], f)

    def test_steps_that_read_all_of_the_text_are_warned_of(self):
        words = "warning: the training text is 1 window of 1024 tokens and a step takes 8"
        wide = ("--steps", 1, "--set", "model.context=1024", "--set", "train.batch=8")
        self.assertIn(words, self.aloft("train", "tiny.toml", "--out", "few", *wide).stderr)
        anywhere = self.aloft("train", "tiny.toml", "--out", "many", *wide, "--set", "data.sampling=random")
        self.assertNotIn(words[:40], anywhere.stderr)

    def test_a_check_that_fails_is_an_error(self):
        (self.folder / "no-folder").write_text("")
        for form in ([], ["--json"]):
            done = subprocess.run([ALOFT, "doctor", *form], capture_output=True, text=True,
                                  env={**self.environment, "XDG_CACHE_HOME": str(self.folder / "no-folder")})
            self.assertEqual(done.returncode, 4)
            self.assertIn("error E0407", done.stderr)
            self.assertIn("saw   cache folder: ", done.stderr)
            self.assertIn("try   set XDG_CACHE_HOME", done.stderr)
            self.assertIn("huge pages", done.stdout)  # the whole table, still

    def test_waiting_threads(self):
        """A short spin, unless the environment says how to wait."""
        for given, words in (({}, "spin 1000 times, then sleep"),
                             ({"GOMP_SPINCOUNT": "7"}, "spin 7 times, then sleep"),
                             ({"OMP_WAIT_POLICY": "passive"}, "OMP_WAIT_POLICY=passive")):
            environment = {k: v for k, v in self.environment.items()
                           if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")} | given
            done = subprocess.run([ALOFT, "doctor", "--json"], env=environment,
                                  capture_output=True, text=True, check=True)
            threads = [f["saw"] for f in json.loads(done.stdout) if f["check"] == "threads"]
            self.assertTrue(threads and threads[0].endswith(words), threads)

    def test_data(self):
        built = self.parsed("data", "build", "tiny.toml", "--json")
        self.assertEqual(built["vocab"], 256)
        self.assertEqual(built["train_tokens"] + built["validation_tokens"],
                         (self.folder / "text.txt").stat().st_size)
        shard = self.parsed("data", "info", built["folder"], "--json")
        self.assertEqual(shard["train_tokens"], built["train_tokens"])
        self.assertEqual(shard["shards"]["train"]["tokens"], built["train_tokens"])
        damaged = bytearray((Path(built["folder"]) / "train.shard").read_bytes())
        damaged[-1] ^= 1
        (self.folder / "damaged.shard").write_bytes(damaged)
        self.assertIn("E0521", self.aloft("data", "info", "damaged.shard", exit_code=3).stderr)

    def test_data_is_shown_to_people_in_rows(self):
        def rows(*arguments):
            text = self.aloft("data", *arguments).stdout
            self.assertNotRegex(text, r'[{}"\[\]]', text)  # no JSON
            return dict(re.split(r"  +", line, maxsplit=1) for line in text.splitlines())

        built = rows("build", "tiny.toml")
        train = "1,408 tokens (80.0 %) of 1.38 KiB of text"
        validation = "352 tokens (20.0 %) of 352 B of text"
        for shown in (built, rows("info", built["folder"])):
            self.assertEqual(shown["training"], train + " in 1 file")
            self.assertEqual(shown["validation"], validation + " in 1 file")
            self.assertEqual((shown["text files"], shown["tokenizer"], shown["vocabulary"]),
                             ("1", "byte", "256"))
        self.assertEqual(shown["kind"], "data folder")
        self.assertRegex(shown["shards"], r"^train\.shard \(.*iB\), validation\.shard \(")
        shard = rows("info", Path(built["folder"]) / "train.shard")
        self.assertEqual((shard["kind"], shard["tokens"], shard["vocabulary"]),
                         ("aloft shard", "1,408", "256"))
        self.assertIn("every id", shard["checked"])
        self.aloft("train", "tiny.toml", "--out", "informed", "--set", "train.eval_every=0")
        run = rows("info", "informed")
        self.assertEqual((run["kind"], run["text"], run["text files"], run["tokenizer"]),
                         ("data of a run", str(self.folder / "text.txt"), "1", "byte"))
        self.assertEqual((run["training"], run["validation"]), (train, validation))
        # Without its record a folder is what its shard says; with another one it is damaged.
        bare = self.folder / "bare"
        bare.mkdir()
        for file in Path(built["folder"]).iterdir():
            (bare / file.name).write_bytes(file.read_bytes())
        record = bare / "dataset.json"
        record.write_text(record.read_text().replace('"train_bytes": 1408', '"train_bytes": 1409'))
        self.assertIn("E0514", self.aloft("data", "info", "bare", exit_code=3).stderr)
        record.unlink()
        self.assertIn("no dataset.json", self.aloft("data", "info", "bare").stderr)
        self.assertEqual(rows("info", "bare")["kind"], "aloft shard")

    def test_explain(self):
        decisions = self.parsed("explain", "precision", "tiny.toml", "--json")
        by_op = {d["op"]: d for d in decisions}
        self.assertEqual(by_op["linear"]["compute"], "bf16")
        self.assertTrue(all(d["reason"] for d in decisions))
        self.assertIn("fp32", by_op["linear"]["reason"])  # in the words of the other keys
        self.assertNotRegex(json.dumps(decisions), r"\bf(16|32)\b")
        self.aloft("train", "tiny.toml", "--out", "decided", "--steps", 1)
        self.assertEqual(self.parsed("explain", "precision", "decided", "--json"), decisions)
        self.assertIn("O2:bf16\n", self.aloft("explain", "precision", "decided").stdout)
        denied = self.aloft("explain", "precision", "tiny.toml", "--set",
                            'precision.deny_params=["wte.*"]').stdout
        self.assertIn("fp32 (deny_params = wte.*, --set)", " ".join(denied.split()))
        # Types as recipes write them, in text and as data.
        half = ("explain", "precision", "tiny.toml", "--precision", "O2:fp16")
        self.assertNotRegex(self.aloft(*half).stdout, r"\bf(16|32)\b")
        self.assertTrue(self.aloft(*half).stdout.startswith("O2:fp16\n"))
        self.assertEqual({d["compute"] for d in self.parsed(*half, "--json")}, {"fp16", "fp32"})
        plan = self.parsed("explain", "plan", "tiny.toml", "--json")
        self.assertEqual({p["name"] for p in plan["programs"]}, {"train", "evaluate"})
        text = self.aloft("explain", "plan", "tiny.toml").stdout
        self.assertIn("most activations at instruction", text)
        # A run's copy of its state for checkpoints is in the forecast, to the byte as in its record.
        self.aloft("train", "tiny.toml", "--out", "copied")
        memory = json.loads((self.folder / "copied/run.json").read_text())["memory"]
        self.assertEqual(memory["arenas"]["checkpoint"], plan["checkpoint_copy_bytes"])
        self.assertTrue(text.startswith("a copy of the state for checkpoints: "))
        waiting = ("explain", "plan", "tiny.toml", "--set", "train.checkpoint_copy=false", "--json")
        self.assertNotIn("checkpoint_copy_bytes", self.parsed(*waiting))
        self.assertIn("graph", self.parsed("explain", "graph", "tiny.toml", "--json"))
        kernels = self.parsed("explain", "kernels", "tiny.toml", "--json")
        train = next(p for p in plan["programs"] if p["name"] == "train")
        self.assertEqual(sum(k["calls"] for k in kernels), len(train["instructions"]))
        each = self.parsed("explain", "kernels", "tiny.toml", "--each", "--json")
        self.assertEqual([k["first"] for k in each],
                         [i["identity"] for i in train["instructions"]])
        by_op = {k["op"]: k for k in kernels}
        for op in ("linear", "matmul"):
            self.assertRegex(by_op[op]["how"], "strips|tiles|in place|where it lies")
        self.assertIn("layer_norm", " ".join(by_op["add_layer_norm"]["members"]))
        self.assertIn("linear", self.aloft("explain", "kernels", "tiny.toml").stdout)

    def test_a_llama_of_few_heads_is_timed(self):
        timed = self.parsed("bench", "step", "--model", "llama", "--heads", 2, "--layers", 1, "--dim", 64,
                            "--vocab", 64, "--steps", 2, "--no-limit", "--json")
        self.assertEqual(timed["settings"]["heads"], 2)

    def test_explains_models_by_name(self):
        text = self.aloft("explain", "kernels", "lenet", "--precision", "O2:bf16").stdout
        self.assertIn("cpu.conv2d ", text)
        self.assertIn("by: the library", text)
        self.assertIn("not fused", text)
        self.assertIn("E0721", self.aloft("explain", "kernels", "gpt2-124", exit_code=2).stderr)

    def test_every_recipe_is_explained_without_its_data(self):
        for recipe in (ROOT / "recipes").glob("*.toml"):
            for subject in ("precision", "plan", "graph", "kernels"):
                is_table = "csv = " in recipe.read_text()
                absent = ["--set", "data.csv=absent.csv" if is_table else 'data.text=["absent.txt"]']
                done = self.aloft("explain", subject, recipe, *absent)
                self.assertTrue(done.stdout)
                if is_table:  # the model's sizes are the data's
                    self.assertIn("data is not there", done.stderr)
                if 'kind = "char"' in recipe.read_text():
                    self.assertIn("--set", done.stderr)  # what to say for the exact answer

    def test_paths_of_set_begin_where_the_user_is(self):
        (self.folder / "elsewhere").mkdir()
        (self.folder / "elsewhere" / "there.toml").write_text(self.RECIPE)
        arguments = ["elsewhere/there.toml", "--json"]
        self.aloft("data", "build", *arguments, exit_code=3)  # text.txt does not lie beside it
        built = self.parsed("data", "build", *arguments, "--set", "data.text=text.txt")
        self.assertEqual(built["files"], 1)

    def test_a_run_that_diverges_is_5_and_leaves_its_report(self):
        done = self.aloft("train", "tiny.toml", "--out", "diverged", "--steps", 1500, "--quiet",
                          "--set", "optimizer.lr=1e6", "--set", "optimizer.clip_norm=0",
                          "--set", "precision.level=O0", "--set", "train.eval_every=0", exit_code=5)
        self.assertIn("E0810", done.stderr)
        self.assertIn("culprit", (self.folder / "diverged" / "metrics.jsonl").read_text())
        self.assertTrue((self.folder / "diverged" / "report.html").exists())
        self.assertFalse(json.loads((self.folder / "diverged" / "run.json").read_text())["finished"])

    def test_token_files(self):
        built = self.parsed("data", "build", "tiny.toml", "--json")
        for name, tokens, extra in [("shard", Path(built["folder"]) / "train.shard", []),
                                    ("bin", "tokens.bin", ["--set", "model.vocab=300"])]:
            (self.folder / "tokens.bin").write_bytes(array.array("H", [i * i % 300 for i in range(999)]))
            self.aloft("train", "tiny.toml", "--out", name, "--set", f"data.train_tokens={tokens}", *extra)
            self.assertNotIn("val_loss", (self.folder / name / "metrics.jsonl").read_text())
        unknown = ["train", "tiny.toml", "--set", "data.train_tokens=tokens.bin"]
        self.assertIn("E0722", self.aloft(*unknown, "--out", "b", exit_code=2).stderr)
        self.assertIn("E0522", self.aloft(*unknown, "--set", "model.vocab=20", "--out", "c",
                                          exit_code=3).stderr)

    def test_what_was_skipped(self):
        texts = self.folder / "texts"
        texts.mkdir()
        (texts / "a.txt").write_text("words " * 20)
        (texts / "broken.txt").write_bytes(b"caf\xe9 \xff\xfe " * 9)
        (texts / "empty.txt").write_text("")
        (texts / "zeros.bin").write_bytes(bytes(99))
        built = self.parsed("data", "build", "tiny.toml", "--set", 'data.text=["texts"]', "--json")
        self.assertEqual({Path(s["path"]).name for s in built["skipped"]}, {"empty.txt", "zeros.bin"})
        self.assertEqual(built["train_tokens"] + built["validation_tokens"], 120 + 72)
        self.assertIn("E0643", self.aloft("data", "info", "texts", exit_code=3).stderr)
        done = self.aloft("data", "info", "texts/a.txt", exit_code=3)
        self.assertNotIn("remove", done.stderr)
        done = self.aloft("train", "tiny.toml", "--set", 'data.text=["texts/empty.txt"]', exit_code=3)
        self.assertRegex(done.stderr, r"E0511.*\n  saw   \S*texts/empty.txt: empty\n")
        # What may be text and cannot be opened is said even to who wants to hear nothing.
        (texts / "circle.txt").symlink_to("circle.txt")
        said = self.aloft("train", "tiny.toml", "--set", 'data.text=["texts"]', "--out", "left-out",
                          "--quiet").stderr
        self.assertRegex(said, "warning: skipped .*circle.txt: a circle of links")
        self.assertNotIn("empty.txt", said)

    def test_train_resume_report(self):
        done = self.aloft("train", "tiny.toml", "--out", "first")
        self.assertIn("run directory first", done.stdout)
        self.aloft("train", "tiny.toml", "--out", "first", exit_code=2)  # holds a run already
        page = (self.folder / "first" / "report.html").read_text()
        self.assertNotIn("{{", page.split("<script>")[0])
        self.assertNotRegex(page.split("<script>")[0], r"(src|href)=")  # nothing is fetched
        data = page.split('id="data">')[1].split("</script>")[0]
        curves = json.loads(data)["curves"]
        self.assertEqual(curves["step"], [1, 2, 3, 4])
        self.assertEqual([e[0] for e in curves["evaluations"]], [2, 4])
        self.aloft("train", "tiny.toml", "--out", "first", "--steps", "6", "--resume")
        page = (self.folder / "first" / "report.html").read_text()
        data = page.split('id="data">')[1].split("</script>")[0]
        self.assertEqual(json.loads(data)["curves"]["step"], [1, 2, 3, 4, 5, 6])
        self.assertEqual(self.parsed("data", "info", "first", "--json")["vocab"], 256)
        run = json.loads((self.folder / "first" / "run.json").read_text())
        self.assertTrue(run["finished"])
        self.assertIn("h.0.attn.c_attn.weight", run["decay"]["decayed"])
        self.assertLessEqual({"ln_f.weight", "ln_f.bias", "h.0.mlp.c_fc.bias"},
                             set(run["decay"]["not_decayed"]))

    def test_a_run_introduces_itself(self):
        done = self.aloft("train", "tiny.toml", "--out", "introduced", "--set", "train.epochs=0.5")
        for said in ("gpt2: layers 1, heads 2, dim 16, hidden 64, context 8, vocab 256", "training tokens",
                     "44 steps of 16 tokens (2 x 8)", "0.503 epochs", "O2:bf16, no loss scale",
                     "asked for by tiny.toml:12", "planned for the step", "introduced: metrics.jsonl",
                     "1.00 bytes a token", "perplexity"):
            self.assertIn(said, done.stderr, said)
        lines = [json.loads(line) for line in
                 (self.folder / "introduced" / "metrics.jsonl").read_text().splitlines()]
        evaluation = lines[-1]
        self.assertEqual(evaluation["step"], 44)
        self.assertAlmostEqual(evaluation["val_perplexity"], math.exp(evaluation["val_loss"]), 6)
        self.assertAlmostEqual(evaluation["val_bits_per_byte"],
                               evaluation["val_loss"] / math.log(2), 6)  # a byte a token
        self.assertIn("bits per byte", done.stdout)
        self.assertEqual(json.loads((self.folder / "introduced" / "run.json").read_text())
                         ["recipe"]["train"]["steps"], 44)
        self.assertIn("tokens/s in the median step", done.stdout)
        self.assertIn("; the newest 3 are kept and the best\n", done.stderr)
        alone = self.aloft("train", "tiny.toml", "--out", "alone", "--set", "data.validation=0").stderr
        self.assertIn("; the newest 3 are kept\n", alone)
        self.assertNotIn("better validation", alone)
        self.assertIn("at every better validation, at the end", done.stderr)
        # Quiet is quiet, and two lengths are one too many.
        quiet = self.aloft("train", "tiny.toml", "--out", "quiet", "--quiet")
        self.assertNotIn("training tokens", quiet.stderr)
        (self.folder / "both.toml").write_text(self.RECIPE + "epochs = 2\n")
        self.assertIn("leave one of them out",
                      self.aloft("train", "both.toml", "--out", "both", exit_code=2).stderr)

    def test_the_first_line_says_what_is_trained(self):
        self.aloft("data", "build", "tiny.toml")  # nothing is left to prepare
        done = self.aloft("train", "tiny.toml", "--out", "first-line")
        said = [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]
        self.assertRegex(said[0], "^model +gpt2: layers 1")
        [products] = [line for line in said if "GFLOP/s" in line]
        self.assertRegex(products, r"^products +f32 \d+, bf16 \d+ GFLOP/s \([\d.]+x\), "
                                   "(measured now|as measured before)")
        for level, low, half in (("O0", False, False), ("O2:fp16", True, True), ("auto", True, False)):
            said = self.aloft("train", "tiny.toml", "--out", level.replace(":", "-"), "--set",
                              f'precision.level="{level}"').stderr
            self.assertEqual("\nproducts " in said, low, said)
            self.assertEqual("what multiplies it here: aloft explain kernels" in said, half, said)
            self.assertRegex(said, "^(warning: .*\n)*model +gpt2")

    def test_low_precision_generates_and_scores_like_fp32(self):
        self.aloft("train", "tiny.toml", "--out", "spoken", "--steps", "120", "--set",
                   "optimizer.lr=1e-2", "--set", "train.eval_every=0")
        said = {p: self.aloft("generate", "spoken", "--prompt", "the quick", "--tokens", 20,
                              "--temperature", 0, "--precision", p).stdout for p in ("O0", "O2:bf16")}
        agreed = os.path.commonprefix(list(said.values()))
        self.assertGreaterEqual(len(agreed), len("the quick") + 6, said)
        header = b'{"tokens":{"dtype":"I32","shape":[1,8],"data_offsets":[0,32]}}'
        ids = b"".join(c.to_bytes(4, "little") for c in b"the quic")
        (self.folder / "in.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + ids)
        logits = {}
        for p in said:
            self.aloft("score", "spoken", "--tokens", "in.safetensors", "--out", "out.safetensors",
                       "--precision", p)
            raw = (self.folder / "out.safetensors").read_bytes()
            length = int.from_bytes(raw[:8], "little")
            entry = json.loads(raw[8:8 + length])["logits"]
            self.assertEqual((entry["dtype"], entry["shape"]), ("F32", [1, 8, 256]))
            first, last = entry["data_offsets"]
            logits[p] = array.array("f", raw[8 + length + first:8 + length + last])
        size = max(map(abs, logits["O0"]))
        difference = max(abs(a - b) for a, b in zip(*logits.values()))
        # One block's 14 roundings to bf16 and 5 others (tests/parity/decoders_test.cpp names them), by
        # chain_tolerance of src/types/tolerance.h.
        self.assertLess(difference, 2 * 2 ** -8 * math.sqrt(14 + 5) * size)
        self.assertGreater(difference, 0)

    def test_an_empty_prompt_begins_a_document(self):
        self.aloft("train", "tiny.toml", "--out", "bytes", "--set", "train.eval_every=0")
        done = self.aloft("generate", "bytes", "--prompt", "", exit_code=2)
        self.assertIn("E0812", done.stderr)
        self.assertIn("byte tokenizer", done.stderr)
        (self.folder / "words").mkdir()
        for name in ("vocab.json", "merges.txt"):
            (self.folder / "words" / name).write_bytes(
                (ROOT / "tests" / "fixtures" / "tokenizer" / name).read_bytes())
        vocab = json.loads((self.folder / "words" / "vocab.json").read_text())
        self.aloft("train", "tiny.toml", "--out", "words-run", "--set", "train.eval_every=0",
                   "--set", "data.tokenizer.kind=gpt2", "--set", "data.tokenizer.path=words")
        begun = {prompt: self.parsed("generate", "words-run", "--prompt", prompt, "--tokens", 6,
                                     "--temperature", 0, "--past-end", "--json") for prompt in ("", "the")}
        self.assertEqual(len(begun[""]["tokens"]), 6)
        # The very logits that the separator alone gives.
        self.assertIn("<|endoftext|>", vocab)
        header = b'{"tokens":{"dtype":"I32","shape":[1,1],"data_offsets":[0,4]}}'
        (self.folder / "one.safetensors").write_bytes(
            len(header).to_bytes(8, "little") + header
            + vocab["<|endoftext|>"].to_bytes(4, "little"))
        self.aloft("score", "words-run", "--tokens", "one.safetensors", "--out", "o.safetensors")
        raw = (self.folder / "o.safetensors").read_bytes()
        length = int.from_bytes(raw[:8], "little")
        first, last = json.loads(raw[8:8 + length])["logits"]["data_offsets"]
        logits = array.array("f", raw[8 + length + first:8 + length + last])
        self.assertEqual(begun[""]["tokens"][0], max(range(len(vocab)), key=logits.__getitem__))

    def test_report_of_hostile_content(self):
        run = self.folder / "hostile"
        run.mkdir()
        (run / "run.json").write_text(json.dumps(
            {"recipe": {"data": {"text": ["</script><script>alert(1)</script>{{charts_script}}"]}}}))
        (run / "metrics.jsonl").write_text(
            '{"step":1,"loss":null,"lr":1,"grad_norm":null,"loss_scale":2,"skipped":true,'
            '"culprit":"<!--","tokens_per_s":1,"time_s":1}\n{"step":2,"lo')
        self.aloft("report", "hostile")
        data = (run / "report.html").read_text().split('id="data">')[1].split("</script>")[0]
        parsed = json.loads(data)
        self.assertEqual(parsed["curves"]["skips"], [[1, "<!--", 2]])
        self.assertEqual(parsed["curves"]["loss"], [None])
        self.assertNotIn("<", data)


if __name__ == "__main__":
    main()
