"""What `aloft probe` says of what it cannot take, beside what it takes in msprobe's words; its documents."""
import fcntl
import json
import shutil
import struct

from probe_dumps import ProbeTest
from program import ROOT, main

LLAMA = ROOT / "tests/fixtures/llama-tiny"
RUN = ["probe", "run", "tiny.toml", "--out"]


def number_file(path, **shapes):
    entries, end = {}, 0
    for name, shape in shapes.items():
        size = 4 * shape[0] * shape[1]
        entries[name] = {"dtype": "I32", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    header = json.dumps(entries).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(end))


class Messages(ProbeTest):
    def refused(self, *words, exit_code=2):
        done = self.aloft(*words, exit_code=exit_code)
        return done.stderr.decode()

    def test_msprobes_words_are_taken(self):
        self.aloft(*RUN, "ranges", "--at", "0,2-3")
        self.assertEqual({p.name for p in (self.folder / "ranges").glob("step*")}, {"step0", "step2", "step3"})
        for word, level in (("L0", "L0"), ("L1", "L1"), ("module", "L0"), ("op", "L1")):
            self.aloft(*RUN, f"level-{word}", "--level", word)
            self.assertEqual(self.dump(f"level-{word}")["level"], level)
        self.assertEqual(self.dump("level-L1"), self.dump("level-op"))

    def test_a_task_by_set_is_the_task(self):
        self.aloft(*RUN, "by-set", "--set", "probe.task=tensor")
        self.assertEqual(self.dump("by-set")["task"], "tensor")
        said = self.refused(*RUN, "twice", "--task", "statistics", "--set", "probe.task=tensor")
        self.assertIn("E0710", said)

    def test_train_takes_the_tasks_that_write(self):
        self.aloft("train", "tiny.toml", "--out", "tensors", "--steps", 1, "--probe", "tensor:op")
        self.assertEqual(self.dump("tensors/probe")["task"], "tensor")
        self.assertEqual(self.dump("tensors/probe")["level"], "L1")
        self.assertTrue(self.tensors("tensors/probe"))
        self.aloft("train", "tiny.toml", "--out", "calls", "--steps", 1, "--probe", "acc_check")
        self.assertEqual(self.dump("calls/probe")["level"], "L2")
        self.aloft("train", "tiny.toml", "--out", "structure", "--probe", "structure")
        self.assertIn("Module.h.0.mlp.MLP.forward.0", self.dump("structure/probe", 0, "construct"))
        self.refused("bench", "step", "--model", "tiny.toml", "--probe", "tensor")

    def test_a_model_without_text_is_told_of_tokens(self):
        bare = self.folder / "bare"
        bare.mkdir()
        for file in LLAMA.iterdir():
            if not file.name.startswith(("tokenizer", "special_tokens")) and file.is_file():
                shutil.copy(file, bare)
        said = self.refused("probe", "run", "bare", "--out", "of-bare")
        self.assertIn("aloft probe run bare --tokens F.safetensors --out DIR", said)
        self.assertFalse((self.folder / "of-bare").exists())

    def test_a_file_without_tokens_says_what_it_has(self):
        number_file(self.folder / "ids.safetensors", ids=[2, 6], mask=[2, 6])
        said = self.refused("probe", "run", LLAMA, "--tokens", "ids.safetensors", "--out", "no-tokens", exit_code=3)
        self.assertIn("no tensor 'tokens', nor 'input_ids'; there are 'ids' i32[2,6], 'mask' i32[2,6]", said)
        self.assertFalse((self.folder / "no-tokens").exists())

    def test_names_that_are_near(self):
        for words, near in ((["probe.list=[\"h.0.mpl\"]"], '"h.0.mlp" for "h.0.mpl"'),
                            (["probe.list=[\"liner\"]", "probe.level=op"], '"linear" for "liner"'),
                            (["probe.scope=[\"h.0.mlp.c_fc\", \"h.0.mlp.c_fc\"]"],
                             "Module.h.0.mlp.c_fc.Linear.forward.0")):
            said = self.refused(*RUN, "deep/near", *(w for word in words for w in ("--set", word)))
            self.assertIn("E0327", said)
            self.assertIn(near, said.split("  try")[1].replace("\n", " "))
            self.assertFalse((self.folder / "deep").exists())

    def test_a_config_says_what_stands_there_and_what_could(self):
        (self.folder / "config.json").write_text(json.dumps({"task": "nan_check", "levl": "L0", "dump_path": "x"}))
        lines = [line.split(None, 1) for line in
                 self.refused("probe", "run", "tiny.toml", "--config", "config.json").splitlines()[1:]]
        self.assertIn(["saw", 'task: "nan_check"'], lines)
        self.assertIn(["need", "overflow_check, which names the first op that is not finite"], lines)
        self.assertIn(["saw", "levl: there is no such key"], lines)
        self.assertIn(["try", "level"], lines)

    def test_redo_of_what_is_no_run(self):
        self.aloft("train", "tiny.toml", "--out", "houses", "--steps", 1)
        self.aloft("train", "tiny.toml", "--steps", 1)  # runs/tiny
        for named, saw, instead in (("hauses", "nothing at that path", "houses"), ("tiny.toml", "a file", "runs/tiny"),
                                    ("houses/checkpoints", "a folder without run.json", "houses")):
            said = self.refused("probe", "redo", named, "--step", 0)
            self.assertIn("E0862", said)
            self.assertIn(f"saw   {saw}", said)
            if instead:
                self.assertIn(f"try   {instead}\n", said)

    def test_a_folder_of_a_run_points_to_the_run(self):
        self.aloft("train", "tiny.toml", "--out", "pointed", "--steps", 1)
        for inner in ("pointed/checkpoints", "pointed/checkpoints/", "pointed/checkpoints/step-000001"):
            said = self.refused("probe", "run", inner, "--at", 0, "--out", "inner")
            self.assertIn("E0862", said)
            self.assertIn("try   pointed\n", said)

    def test_a_word_that_is_near_an_option_s(self):
        for words in (["train", "tiny.toml", "--probe", "stats"], [*RUN, "near", "--task", "stats"]):
            self.assertIn("did you mean statistics?", self.refused(*words))
        said = self.refused("train", "tiny.toml", "--probe", "statistics", "--probe", "trends")
        self.assertIn("--probe is said more than once", said)
        self.assertIn("--set monitor.on=true", said)

    def test_a_step_behind_the_recipes_last_is_said(self):
        said = self.aloft(*RUN, "behind", "--at", 6).stderr.decode()
        self.assertIn("step 6 lies behind the 4 steps of the recipe: 7 are made", said)
        self.assertEqual(self.aloft(*RUN, "within", "--at", 3).stderr, b"")

    def test_a_config_whose_list_names_nothing_is_named(self):
        (self.folder / "of-list.json").write_text(json.dumps(
            {"task": "statistics", "level": "L0", "statistics": {"list": ["nosuch"]}}))
        said = self.refused(*RUN, "of-list", "--config", "of-list.json")
        self.assertIn("at    of-list.json", said)
        self.assertIn("such as ", said)

    def test_calls_that_a_list_does_not_name(self):
        self.aloft(*RUN, "listed", "--task", "acc_check")
        said = self.refused("probe", "acc-check", "listed", "--list", "layr_norm")
        self.assertIn("E0885", said)
        self.assertIn('"layer_norm" for "layr_norm"', said)
        self.assertIn("such as ", self.refused("probe", "acc-check", "listed", "--list", "nosuch"))

    def test_a_recipe_is_no_dump(self):
        self.aloft(*RUN, "beside")
        said = self.refused("probe", "compare", "tiny.toml", "beside", "-o", "no-dump", exit_code=3)
        self.assertIn("a recipe, which is no dump", said)
        self.assertIn("aloft probe run tiny.toml --out DIR", said)

    def test_a_run_stands_for_its_probe(self):
        for out in ("one", "other"):
            self.aloft("train", "tiny.toml", "--out", out, "--steps", 1, "--probe", "statistics")
        by_run = self.aloft("probe", "compare", "one", "other", "-o", "by-run").stdout
        self.assertEqual(by_run, self.aloft("probe", "compare", "one/probe", "other/probe", "-o", "by-probe").stdout)
        self.aloft("train", "tiny.toml", "--out", "unprobed", "--steps", 1)
        said = self.refused("probe", "compare", "unprobed", "other", "-o", "refused", exit_code=3)
        self.assertIn("aloft probe run unprobed --at N --out DIR", said)

    def test_results_do_not_go_among_the_files_of_others(self):
        self.aloft(*RUN, "dump")
        shutil.copytree(LLAMA, self.folder / "model")
        self.aloft("train", "tiny.toml", "--out", "trained", "--steps", 1)
        for folder in ("model", "trained", "trained/checkpoints/step-000001"):
            before = sorted((self.folder / folder).iterdir())
            self.assertIn("E0820", self.refused("probe", "compare", "dump", "dump", "-o", folder))
            self.assertEqual(sorted((self.folder / folder).iterdir()), before)
        for words in (["probe", "compare", "dump", "dump"], ["probe", "check-config", "tiny.toml", "tiny.toml"],
                      ["probe", "acc-check", "dump"], ["probe", "run", "trained", "--at", 0],
                      ["probe", "run", "tiny.toml"]):
            for folder in ("trained", "trained/checkpoints"):
                before = sorted(self.folder.joinpath(folder).rglob("*"))
                self.assertIn("E0820", self.refused(*words, "--out", folder), words)
                self.assertEqual(sorted(self.folder.joinpath(folder).rglob("*")), before)
        self.aloft("probe", "compare", "dump", "dump", "-o", "dump-compared")
        self.assertFalse((self.folder / "dump-compared/results.lock").exists())

    def test_a_folder_that_another_process_has_stays_as_it_is(self):
        self.aloft(*RUN, "mine")
        theirs = self.folder / "theirs"
        for words in (["probe", "compare", "mine", "mine"], RUN[:-1]):
            theirs.mkdir()
            with open(theirs / "results.lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                self.assertIn("E0821", self.refused(*words, "--out", theirs))
            self.assertEqual([at.name for at in theirs.iterdir()], ["results.lock"])
            shutil.rmtree(theirs)

    def test_a_refused_comparison_leaves_no_folder(self):
        (self.folder / "cut.json").write_text('{"data": []}')
        self.aloft(*RUN, "whole")
        for words, code in ((["cut.json", "whole"], 3), (["nowhere", "whole"], 3),
                            (["whole", "whole", "--map", "text.txt"], 2)):
            self.refused("probe", "compare", *words, "-o", "left/behind", exit_code=code)
            self.assertFalse((self.folder / "left").exists(), words)

    def test_documents_for_programs(self):
        said = json.loads(self.aloft(*RUN, "document", "--steps", 3, "--at", "0,2", "--json").stdout)
        self.assertEqual([said[key] for key in ("out", "task", "steps", "looked_at", "interrupted_by")],
                         ["document", "statistics", 3, [0, 2], None])
        self.assertEqual(said["written"]["dumps"], 2)
        self.assertIsInstance(said["written"]["waited_s"], float)
        said = json.loads(self.aloft(
            *RUN, "far", "--task", "overflow", "--json", "--set",
            'precision={level = "O2:fp16", loss_scale = {kind = "dynamic", init = 16777216}}').stdout)
        self.assertEqual(said["found"], json.loads((self.folder / "far/overflow.json").read_text())["found"])
        self.assertTrue(said["found"][0]["tried"])
        said = json.loads(self.aloft(*RUN, "burst", "--steps", 3, "--set", "optimizer.lr=1e6", "--json",
                                     exit_code=5).stdout)
        self.assertEqual(said["looked_at"], list(range(said["steps"])))
        number_file(self.folder / "tokens.safetensors", tokens=[2, 6])
        said = json.loads(self.aloft("probe", "run", LLAMA, "--tokens", "tokens.safetensors", "--out", "of-model",
                                     "--json").stdout)
        self.assertGreater(said["loss"], 0)

    def test_a_comparison_as_a_document(self):
        for out, options in (("right", []), ("wrong", ["--set", "model.norm_eps=0.1"])):
            self.aloft(*RUN, out, "--steps", 2, *options)
        text = self.aloft("probe", "compare", "wrong", "right", "-o", "text").stdout.decode()
        said = json.loads(self.aloft("probe", "compare", "wrong", "right", "-o", "said", "--json").stdout)
        self.assertTrue(said["diverges"])
        self.assertEqual((said["out"], said["sentence"]), ("said", text.splitlines()[-1]))
        self.assertEqual([step["step"] for step in said["steps"]], ["step0", "step1"])
        self.assertEqual([step["sentence"] for step in said["steps"]], text.splitlines()[:-1])
        one = json.loads(self.aloft("probe", "compare", "right/step0", "right/step0", "-o", "alike", "--json").stdout)
        self.assertFalse(one["diverges"])
        self.assertEqual(one["sentence"], one["steps"][0]["sentence"])


if __name__ == "__main__":
    main()
