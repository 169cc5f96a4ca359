"""aloft probe check-config: two recipes, runs and files of settings, before they run."""
import json
import re
import unittest

from program import ProgramTest, main


class CheckConfig(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.folder / "other.toml").write_text(
            cls.RECIPE.replace("steps = 4", "steps = 4\nseed = 2").replace("layers = 1", "layers = 1\ndropout = 0.5"))

    def check(self, *arguments, exit_code=0):
        return self.aloft("probe", "check-config", *arguments, exit_code=exit_code)

    def findings(self, *arguments, exit_code=0):
        said = json.loads(self.check(*arguments, "--json", exit_code=exit_code).stdout)
        return said["verdict"], {check["name"]: {(f["a_name"] or f["b_name"]): f for f in check["findings"]}
                                 for check in said["checks"]}

    def test_a_recipe_is_like_itself(self):
        verdict, checks = self.findings("tiny.toml", "tiny.toml")
        self.assertEqual(verdict, "pass")
        self.assertEqual(list(checks), ["hyperparameters", "random", "env", "pip", "dataset", "weights"])
        self.assertEqual(len(checks["dataset"]), 8)  # tokens and targets of four batches
        self.assertIn("step 0, h.0.attn.c_attn.weight", checks["weights"])
        self.assertIn(b"pass: ", self.check("tiny.toml", "tiny.toml").stdout)

    def test_another_seed_is_other_data_and_weights(self):
        verdict, checks = self.findings("tiny.toml", "other.toml", exit_code=5)
        self.assertEqual(verdict, "error")
        self.assertEqual(checks["hyperparameters"]["train.seed"]["level"], "error")
        self.assertEqual(checks["hyperparameters"]["model.dropout"]["level"], "error")
        self.assertEqual(checks["hyperparameters"]["optimizer.lr"]["level"], "pass")
        self.assertEqual(checks["random"]["first numbers drawn"]["level"], "error")
        self.assertEqual(checks["dataset"]["step 0, tokens"]["level"], "error")
        self.assertEqual(checks["weights"]["step 0, h.0.mlp.c_fc.weight"]["level"], "error")
        said = self.check("tiny.toml", "other.toml", exit_code=5)
        self.assertIn(b"E0843", said.stderr)
        self.assertIn(b"train.seed", said.stdout)

    def test_a_run_is_what_its_recipe_was(self):
        self.aloft("train", "tiny.toml", "--out", "run")
        verdict, checks = self.findings("run", "tiny.toml")
        self.assertEqual(verdict, "pass", {k: [f for f in v.values() if f["level"] != "pass"] for k, v in checks.items()})
        self.assertEqual(len(checks["dataset"]), 8)
        self.findings("run", "other.toml", exit_code=5)
        # A checkpoint has weights, the optimizer's state and the random one.
        [first, *_, last] = sorted((self.folder / "run/checkpoints").iterdir()) * 2
        verdict, checks = self.findings(first, last)
        self.assertEqual((verdict, list(checks)), ("pass", ["random", "weights"]))
        self.assertIn("step 0, optim.exp_avg.wte.weight", checks["weights"])
        self.assertEqual(checks["random"]["random state"]["a_value"], "step 4, micro-batch 0")
        found = self.findings(first, "tiny.toml", exit_code=5)[1]["weights"]
        self.assertEqual(found["step 0, wte.weight"]["level"], "error")

    def in_environment(self, variables, *arguments):
        kept = self.environment
        type(self).environment = {**kept, **variables}
        try:
            self.aloft(*arguments)
        finally:
            type(self).environment = kept

    def test_runs_are_held_to_the_environments_that_they_had(self):
        for out, variables in (("plain", {}), ("alike", {}),
                               ("other", {"MKL_CBWR": "AVX2", "ALOFT_AMX": "0", "OMP_PROC_BIND": "true", "HOME": "/"})):
            self.in_environment(variables, "train", "tiny.toml", "--out", out)
        verdict, checks = self.findings("plain", "alike")
        self.assertEqual(verdict, "pass", checks["env"])
        record = json.loads((self.folder / "other/run.json").read_text())
        self.assertEqual({name: record["environment"].get(name) for name in ("MKL_CBWR", "ALOFT_AMX", "HOME")},
                         {"MKL_CBWR": "AVX2", "ALOFT_AMX": "0", "HOME": None})
        found = self.findings("plain", "other", exit_code=5)[1]["env"]
        self.assertEqual({name: (found[name]["a_value"], found[name]["b_value"], found[name]["level"])
                          for name in ("MKL_CBWR", "ALOFT_AMX", "OMP_PROC_BIND")},
                         {"MKL_CBWR": ("not set", "AVX2", "error"), "ALOFT_AMX": ("not set", "0", "error"),
                          "OMP_PROC_BIND": ("not set", "true", "warning")})
        # A resume keeps that of the beginning, and says its own.
        self.in_environment({"ALOFT_AMX": "0"}, "train", "tiny.toml", "--resume", "--out", "other", "--steps", 6)
        record = json.loads((self.folder / "other/run.json").read_text())
        self.assertEqual(record["environment"]["MKL_CBWR"], "AVX2")
        self.assertNotIn("MKL_CBWR", record["history"][0]["environment"])
        found = self.findings("plain", "other", exit_code=5)[1]["env"]
        self.assertEqual(found["MKL_CBWR"]["b_value"], "AVX2, from step 4 on not set")
        self.assertEqual(found["ALOFT_AMX"]["b_value"], "0")
        # Of a run that recorded nothing, nothing is said.
        del record["environment"]
        (self.folder / "other/run.json").write_text(json.dumps(record))
        self.assertNotIn("MKL_CBWR", self.findings("plain", "other", exit_code=None)[1].get("env", {}))

    def test_weights_are_those_that_the_recipe_begins_with(self):
        self.aloft("train", "tiny.toml", "--out", "begun")
        self.aloft("export", "hf", "begun", "begun-hf")
        (self.folder / "init.toml").write_text(
            '[model]\ninit = "begun-hf"\n[data]\n' + self.RECIPE.split("[data]\n")[1])
        # transformers' GPT-2 has its projections as [in, out]: they are the same all the same.
        weights = ["--checks", "weights"]
        verdict, checks = self.findings("init.toml", "begun-hf", *weights)
        self.assertEqual((verdict, len(checks["weights"])), ("pass", 16))
        self.check("init.toml", "--pack", "init.zip", *weights)
        # A pack does not say how they lie: all the other way, as a whole.
        verdict, checks = self.findings("init.zip", "begun-hf", *weights)
        found = checks["weights"]
        self.assertEqual((verdict, found["step 0, h.0.attn.c_proj.weight"]["level"]), ("pass", "pass"))
        self.assertEqual(found["step 0, wte.weight"]["level"], "pass")
        turned = (self.folder / "begun-hf/model.safetensors").read_bytes()
        start = 8 + int.from_bytes(turned[:8], "little")
        tensor = json.loads(turned[8:start])["transformer.wte.weight"]["data_offsets"][0] + start
        (self.folder / "begun-hf/model.safetensors").write_bytes(
            turned[:tensor] + bytes(4) + turned[tensor + 4:])
        verdict, checks = self.findings("init.toml", "begun", *weights, exit_code=5)
        self.assertEqual(checks["weights"]["step 0, wte.weight"]["level"], "error")

    def test_a_pack_takes_the_place_of_packs_alone(self):
        recipe = (self.folder / "tiny.toml").read_bytes()
        (self.folder / "notes.txt").write_text("mine")
        only = ["--checks", "hyperparameters"]
        for target in ("tiny.toml", "notes.txt", "./tiny.toml", "."):
            said = self.check("tiny.toml", "--pack", target, *only, exit_code=2)
            self.assertIn(b"error E0700: --pack would write over", said.stderr)
        self.assertEqual((self.folder / "tiny.toml").read_bytes(), recipe)
        self.assertEqual((self.folder / "notes.txt").read_text(), "mine")
        self.check("tiny.toml", "--pack", "again.zip", *only)
        self.check("other.toml", "--pack", "again.zip", *only)
        self.check("again.zip", "--pack", "again.zip", *only, exit_code=2)
        self.assertEqual(self.findings("again.zip", "other.toml", *only)[0], "pass")

    def test_no_more_batches_than_training_has(self):
        said = self.check("tiny.toml", "tiny.toml", "--checks", "dataset", "--batches", 1000000000)
        self.assertIn(b"4 of the 1000000000 batches asked for are looked at: training has no more", said.stderr)
        self.assertIn(b"pass: dataset 8 of 8 alike", said.stdout)

    def test_advice_is_what_the_other_side_can_do(self):
        (self.folder / "ds.json").write_text(json.dumps(
            {"optimizer": {"params": {"lr": "auto"}}, "num_train_epochs": 1,
             "scheduler": {"params": {"warmup_num_steps": 0}}}))
        found = self.findings("tiny.toml", "ds.json", "--checks", "hyperparameters")[1]["hyperparameters"]
        self.assertEqual(found["optimizer.lr"]["level"], "warning")
        self.assertIn("B takes it from the program that starts it", found["optimizer.lr"]["advice"])
        self.assertEqual(found["num_train_epochs"]["advice"], "A does not say it: check what it is there")
        self.assertEqual(found["schedule.warmup"]["b_name"], "scheduler.params.warmup_num_steps")

    def test_only_what_both_say_is_alike(self):
        (self.folder / "one.yaml").write_text("lr: 0.001\nfoo: 1\n")
        said = self.check("tiny.toml", "one.yaml", "--all").stdout.decode()
        self.assertRegex(said, r"hyperparameters \d of \d alike and \d+ on one side alone")
        self.assertNotIn("optimizer.betas", said)  # a default that the other side does not name
        for name in ("empty.yaml", "empty.sh", "empty.json"):
            (self.folder / name).write_text("{}" if name.endswith("json") else "")
            said = self.check("tiny.toml", name, exit_code=3).stderr.decode()
            self.assertIn("E0651", said)
        self.check("one.yaml", "empty.yaml", exit_code=3)

    def test_what_was_set_stands_before_what_follows_from_it(self):
        text = self.check("tiny.toml", "other.toml", exit_code=5).stdout.decode()
        self.assertLess(text.index("seed"), text.index("dataset"))
        self.assertLess(text.index("dataset"), text.index("weights"))
        self.assertLess(text.count("\n"), 50)  # one tensor stands for all that are others
        self.assertRegex(text, r" more\b")
        self.assertIn("set A's train.seed", " ".join(text.split()))
        self.assertNotIn("norm ", text)
        whole = self.check("tiny.toml", "other.toml", "--all", exit_code=5).stdout.decode()
        self.assertNotIn(" more", whole)
        self.assertIn('class="scroll whole"', (self.folder / "checked/result.html").read_text())

    def test_a_vocabulary_is_that_of_the_tokens(self):
        known = self.findings("tiny.toml", "tiny.toml")[1]["hyperparameters"]["model.vocab"]["a_value"]
        self.assertGreater(int(known), 1)
        for ids, level in ((known, "pass"), ("7", "error")):
            (self.folder / "vocab.sh").write_text(f"python t.py --vocab_size {ids} --n_layer 1\n")
            found = self.findings("tiny.toml", "vocab.sh", exit_code=None)[1]["hyperparameters"]
            self.assertEqual((found["model.vocab"]["b_name"], found["model.vocab"]["level"]), ("vocab_size", level))
        # Where the data is not looked at nobody knows it, and the one of another tokenizer says nothing.
        found = self.findings("tiny.toml", "vocab.sh", "--checks", "hyperparameters", exit_code=None)[1]
        self.assertEqual(found["hyperparameters"]["vocab_size"]["level"], "warning")

    def test_other_programs_words_for_what_a_recipe_says(self):
        tiny = (self.folder / "tiny.toml").read_text()
        self.assertIn('"O2:bf16"', tiny)
        (self.folder / "low.toml").write_text(tiny.replace("O2:bf16", "O2:fp16"))
        (self.folder / "high.toml").write_text(tiny.replace("O2:bf16", "O0"))

        def found(recipe, options):
            (self.folder / "words.sh").write_text(f"python t.py {options}\n")
            return self.findings(recipe, "words.sh", "--checks", "hyperparameters", exit_code=None)[1]["hyperparameters"]

        for recipe, options, key, level in (
                ("low.toml", "--max_grad_norm 0.5", "optimizer.clip_norm", "error"),
                ("low.toml", "--max_grad_norm 1", "optimizer.clip_norm", "pass"),
                ("low.toml", "--adam_beta1 0.8 --adam_beta2 0.9", "optimizer.betas[0]", "error"),
                ("low.toml", "--optim adamw_torch", "optimizer.kind", "pass"),
                ("low.toml", "--optim sgd", "optimizer.kind", "error"),
                ("low.toml", "--bf16", "precision.level", "error"),
                ("low.toml", "--fp16", "precision.level", "pass"),
                ("low.toml", "--precision 16-mixed", "precision.level", "pass"),
                ("high.toml", "--precision 16-mixed", "precision.level", "error"),
                ("high.toml", "--mixed_precision no", "precision.level", "pass")):
            with self.subTest(options, recipe=recipe):
                self.assertEqual(found(recipe, options)[key]["level"], level)

    def test_settings_of_others(self):
        (self.folder / "train.sh").write_text("export OMP_NUM_THREADS=7\npython t.py --lr 5e-4 --num-layers 1 --foo 1\n")
        verdict, checks = self.findings("tiny.toml", "train.sh", exit_code=5)
        found = checks["hyperparameters"]
        self.assertEqual(found["optimizer.lr"]["b_name"], "lr")
        self.assertEqual(found["model.layers"]["matched"], "synonym")
        self.assertEqual(found["model.layers"]["level"], "pass")
        self.assertEqual(found["foo"]["level"], "warning")
        self.assertEqual(checks["env"]["threads in use"]["b_value"], "7")
        self.assertEqual(checks["env"]["threads in use"]["level"], "warning")
        self.assertEqual(checks["env"]["OMP_NUM_THREADS"]["a_value"],
                         self.environment.get("OMP_NUM_THREADS", "not set"))  # no more than is set
        self.assertNotIn("dataset", checks)
        (self.folder / "same.yaml").write_text("num_layers: 1\nextra: 2\n")
        (self.folder / "same.json").write_text('{"num-layers": 1}')
        self.assertEqual(self.findings("same.yaml", "same.json")[0], "warning")
        self.check("same.yaml", "same.json", "--strict", exit_code=5)

    def test_of_thousands_of_findings_the_first_are_printed(self):
        for name, value in (("a.json", 1), ("b.json", 2)):
            (self.folder / name).write_text(json.dumps({f"key_{k}": value for k in range(1000)}))
        said = self.check("a.json", "b.json", exit_code=5).stdout.decode().splitlines()
        self.assertEqual(len(said), 2 + 300 + 2)  # head, rows, how many more, verdict
        self.assertEqual(said[-2], "and 700 rows more: --all prints them, result.html has them")
        self.assertEqual(len(self.check("a.json", "b.json", "--all", exit_code=5).stdout.splitlines()), 2 + 1000 + 1)

    def expect(self, key, level, word, change, both="", before="steps = 4"):
        """What is said of `key` of two recipes, [train] with `before` and with `change`, `both` behind each."""
        for name, train in (("one.toml", before), ("two.toml", change)):
            (self.folder / name).write_text(self.RECIPE.replace("steps = 4", train) + both)
        found = self.findings("one.toml", "two.toml", "--checks", "hyperparameters",
                              exit_code=5 if level == "error" else 0)[1]["hyperparameters"][key]
        self.assertEqual(found["level"], level, both)
        self.assertIn(word, found["advice"], both)

    def test_lengths_are_learnt_where_the_rate_goes_by_them(self):
        cosine = '[schedule]\nkind = "cosine"\n'
        self.expect("train.steps", "warning", "may end before", "steps = 8")
        self.expect("train.steps", "error", "schedule", "steps = 8", cosine)
        self.expect("train.steps", "warning", "may end before", "steps = 8", cosine + "steps = 8\n")

    def test_what_evaluations_and_checkpoints_decide(self):
        every = "steps = 4\neval_every = 2"
        self.expect("train.eval_every", "pass", "nothing that is learnt", every)
        self.expect("train.eval_every", "error", "goes by evaluations", every, '[schedule]\nkind = "plateau"\n',
                    "steps = 4\neval_every = 1")
        every = "steps = 4\ncheckpoint_every = 2"
        self.expect("train.checkpoint_every", "pass", "nothing that is learnt", every)
        self.expect("train.checkpoint_every", "error", "set A's train.checkpoint_every", every + '\non_spike = "rollback"')

    def test_what_changes_nothing_is_no_finding(self):
        """A program's folders, logs and pushes: no error, no warning, not even of --strict; --all lists them."""
        (self.folder / "mine.yaml").write_text("lr: 1\nout_dir: a\npush_to_hub: false\nddp_timeout: 1800\n")
        (self.folder / "yours.yaml").write_text("lr: 1\nout_dir: b\npush_to_hub: true\nddp_timeout: 3600\n")
        said = self.check("mine.yaml", "yours.yaml", "--strict").stdout.decode()
        self.assertEqual(said, "pass: hyperparameters 1 of 4 alike (3 others change nothing)\n")
        said = self.check("mine.yaml", "yours.yaml", "--all").stdout.decode()
        self.assertRegex(" ".join(said.split()), "pass out_dir a b nothing that is learnt depends on it")

    def test_a_group_that_one_recipe_alone_has(self):
        group = '[[optimizer.groups]]\nparameters = ["wte.*"]\nlr = 1e-4\n'
        (self.folder / "group.toml").write_text(self.RECIPE + group)
        (self.folder / "slow.toml").write_text(self.RECIPE + group.replace("1e-4", "1e-5"))
        for other, what in (("tiny.toml", "has none"), ("slow.toml", "set A's optimizer.groups.0.lr")):
            found = self.findings("group.toml", other, "--checks", "hyperparameters", exit_code=5)[1]
            finding = found["hyperparameters"]["optimizer.groups.0.lr"]
            self.assertEqual(finding["level"], "error")
            self.assertIn(what, finding["advice"])
        self.findings("group.toml", "group.toml", "--checks", "hyperparameters")
        # A program may have such a group and not say it.
        (self.folder / "t.sh").write_text("python t.py --lr 0.001\n")
        found = self.findings("group.toml", "t.sh", "--checks", "hyperparameters")[1]["hyperparameters"]
        self.assertEqual(found["optimizer.lr"]["b_name"], "lr")
        self.assertEqual(found["optimizer.groups.0.lr"]["level"], "warning")

    def test_data_that_lies_elsewhere(self):
        (self.folder / "copy.txt").write_bytes((self.folder / "text.txt").read_bytes())
        (self.folder / "copy.toml").write_text(self.RECIPE.replace("text.txt", "copy.txt"))
        found = self.findings("tiny.toml", "copy.toml")[1]["hyperparameters"]["data.text"]
        self.assertEqual(found["level"], "warning")
        self.assertIn("batches", found["advice"])
        found = self.findings("tiny.toml", "copy.toml", "--checks", "hyperparameters", exit_code=5)[1]
        self.assertEqual(found["hyperparameters"]["data.text"]["level"], "error")

    def test_the_same_examples_in_other_micro_batches(self):
        for name, batch, accumulate in (("small.toml", 2, 4), ("large.toml", 4, 2), ("more.toml", 4, 4)):
            (self.folder / name).write_text(re.sub(r"batch = \d+", f"batch = {batch}\naccumulate = {accumulate}",
                                                   self.RECIPE).replace("steps = 4", "steps = 1"))
        verdict, checks = self.findings("small.toml", "large.toml", "--batches", 8)
        self.assertEqual(verdict, "warning")
        wrong = {key: f for check in checks.values() for key, f in check.items() if f["level"] != "pass"}
        self.assertEqual(set(wrong), {"train.batch", "train.accumulate"})
        for finding in wrong.values():
            self.assertIn("8 examples an update on both sides, cut into other micro-batches", finding["advice"])
        self.assertIn("the same examples in the same order, cut into other micro-batches: 8 a step",
                      checks["dataset"]["all steps, tokens"]["advice"])
        checks = self.findings("large.toml", "more.toml", exit_code=5)[1]
        self.assertEqual(checks["hyperparameters"]["train.accumulate"]["level"], "error")

    def test_a_length_that_hugging_face_leaves_to_its_epochs(self):
        (self.folder / "hf.json").write_text(json.dumps(
            {"max_steps": -1, "num_train_epochs": 3, "max_grad_norm": 1.0, "warmup_steps": 0, "data_seed": None}))
        found = self.findings("tiny.toml", "hf.json", "--checks", "hyperparameters")[1]["hyperparameters"]
        self.assertEqual((found["train.steps"]["level"], found["train.steps"]["b_name"]), ("warning", "max_steps"))
        self.assertEqual(found["train.steps"]["advice"],
                         "B's max_steps is not set, num_train_epochs = 3 decides: see that it comes to 4")
        self.assertNotIn("data_seed", found)
        self.assertIn("transformers takes 5e-5", found["optimizer.lr"]["advice"])

    def test_only_what_is_asked_for(self):
        self.assertEqual(list(self.findings("tiny.toml", "tiny.toml", "--checks", "env,random")[1]), ["random", "env"])
        self.check("tiny.toml", "tiny.toml", "--checks", "colour", exit_code=2)

    def test_data_that_is_not_there_is_said(self):
        (self.folder / "gone.toml").write_text(self.RECIPE.replace("text.txt", "gone.txt"))
        done = self.check("gone.toml", "gone.toml")
        self.assertIn(b"its data is not there", done.stderr)

    def test_settings_of_python(self):
        (self.folder / "gpt.py").write_text("import time\nlearning_rate = 5e-4\nn_layer = 1\nname = str(time.time())\n")
        found = self.findings("tiny.toml", "gpt.py", exit_code=5)[1]["hyperparameters"]
        self.assertEqual((found["optimizer.lr"]["b_name"], found["optimizer.lr"]["level"]), ("learning_rate", "error"))
        self.assertEqual(found["model.layers"]["level"], "pass")
        (self.folder / "open.py").write_text("a = 1\nb = [\n")
        self.assertIn(b"open.py:2", self.check("tiny.toml", "open.py", exit_code=3).stderr)

    def test_two_levels_are_one_error(self):
        for name, level in (("none.toml", "O0"), ("half.toml", "O2:fp16")):
            (self.folder / name).write_text(self.RECIPE.replace("O2:bf16", level))
        found = self.findings("none.toml", "half.toml", "--checks", "hyperparameters", exit_code=5)[1]["hyperparameters"]
        wrong = [key for key, f in found.items() if f["level"] == "error"]
        self.assertEqual(wrong, ["precision.level"])

    def test_levels_have_colours_on_a_terminal(self):
        (self.folder / "some.yaml").write_text("lr: 0.001\nfoo: 1\n")
        (self.folder / "else.yaml").write_text("lr: 0.002\nfoo: 1\nbar: 1\n")
        quiet = self.environment.pop("NO_COLOR", None)
        try:
            arguments = ["probe", "check-config", "tiny.toml", "some.yaml", "--all"]
            shown = self.on_terminal(*arguments)
            self.assertIn(b"\x1b[33mwarning\x1b[0m", shown)
            self.assertNotIn(b"\x1b[31m", shown)
            self.assertIn(b"\npass ", shown)  # plain
            self.assertNotIn(b"\x1b[", self.aloft(*arguments).stdout)
            wrong = self.on_terminal("probe", "check-config", "some.yaml", "else.yaml", exit_code=5)
            self.assertIn(b"\x1b[31merror\x1b[0m    lr", wrong)
            self.assertIn(b"\x1b[31merror\x1b[0m: ", wrong)
            self.environment["NO_COLOR"] = "1"
            self.assertNotIn(b"\x1b[", self.on_terminal(*arguments))
        finally:
            self.environment.pop("NO_COLOR", None)
            if quiet is not None:
                self.environment["NO_COLOR"] = quiet
        self.assertIn('warning: "var(--second)"', (self.folder / "checked/result.html").read_text())

    def test_what_is_nothing_is_refused(self):
        (self.folder / "bad.yaml").write_text("a: [1,\n")
        self.assertIn(b"E0844", self.check("bad.yaml", "tiny.toml", exit_code=3).stderr)
        self.assertIn(b"E0718", self.check("text.txt", "tiny.toml", exit_code=2).stderr)


if __name__ == "__main__":
    main()
