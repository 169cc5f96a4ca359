"""The probe of a saved model and some tokens: what a recipe's steps can be asked for, and what not; and what is
refused before it gets in somebody's way."""
import json
import math
import shutil
import struct

from probe_dumps import tensor_of
from program import ROOT, ProgramTest, main

MODEL = ROOT / "tests/fixtures/llama-tiny"


def tokens_file(path, rows=((1, 2, 3, 4, 5, 6), (6, 5, 4, 3, 2, 1))):
    content = struct.pack(f"<{len(rows) * len(rows[0])}i", *(i for row in rows for i in row))
    entry = {"dtype": "I32", "shape": [len(rows), len(rows[0])], "data_offsets": [0, len(content)]}
    header = json.dumps({"tokens": entry}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + content)


def number_file(path, **tensors):
    entries, content = {}, b""
    for name, rows in tensors.items():
        numbers = struct.pack(f"<{len(rows) * len(rows[0])}q", *(i for row in rows for i in row))
        entries[name] = {"dtype": "I64", "shape": [len(rows), len(rows[0])],
                         "data_offsets": [len(content), len(content) + len(numbers)]}
        content += numbers
    header = json.dumps(entries).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + content)


class ProbeModel(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        tokens_file(cls.folder / "tokens.safetensors")

    def probe(self, out, *options, exit_code=0):
        return self.aloft("probe", "run", MODEL, "--tokens", "tokens.safetensors", "--out", out, *options,
                          exit_code=exit_code)

    def dump(self, out, name="dump"):
        return json.loads((self.folder / out / "step0/rank" / f"{name}.json").read_text())

    def test_both_levels_at_once(self):
        for level in ("module", "op", "mix"):
            self.probe(f"level-{level}", "--level", level)
        modules, ops, both = (self.dump(f"level-{level}")["data"] for level in ("module", "op", "mix"))
        self.assertTrue(any(entry.startswith("Torch.") for entry in ops))
        # Ops have their parameters, too, and what the pass is given, where somebody looks at them.
        self.assertEqual({entry: {**parts, "input_args": []} if entry in ops else parts for entry, parts in both.items()},
                         {**modules, **{entry: {**parts, "input_args": []} for entry, parts in ops.items()}})
        for entry, parts in ops.items():
            for own, known in zip(parts.get("input_args", []), both[entry].get("input_args", []), strict=True):
                self.assertIn(own, (None, known), entry)

    def test_quiet_says_nothing(self):
        for task in ("statistics", "overflow"):
            said = self.probe(f"quiet-{task}", "--task", task, "--quiet")
            self.assertEqual((said.stdout, said.stderr), (b"", b""))
        self.assertIn("loss", json.loads(self.probe("quiet-json", "--quiet", "--json").stdout))
        said = self.aloft("probe", "run", "tiny.toml", "--out", "quiet-recipe", "--quiet", "--set", 'precision="O0"')
        self.assertEqual((said.stdout, said.stderr), (b"", b""))

    def test_whole_tensors(self):
        self.probe("tensors", "--task", "tensor", "--set", 'probe.list=["q_proj"]', "--set", "probe.format=npy")
        named = {record["data_name"] for parts in self.dump("tensors")["data"].values() for part in parts.values()
                 for record in (part if isinstance(part, list) else [one for each in part.values() for one in
                                                                     (each if isinstance(each, list) else [each])])
                 if "data_name" in record}
        self.assertGreater(len(named), 4)
        self.assertTrue(all("q_proj" in name for name in named), named)
        files = {path.name for path in (self.folder / "tensors/step0/rank/dump_tensor_data").iterdir()}
        self.assertEqual(files, named)
        self.assertEqual(json.loads((self.folder / "tensors/written.json").read_text())["files"], len(files))
        self.assertIn(b"E0327", self.probe("no-tensors", "--task", "tensor", "--set", 'probe.list=["no.such"]',
                                           exit_code=2).stderr)

    def test_each_record_has_the_name_of_its_file(self):
        for level in ("op", "mix"):
            out = f"named-{level}"
            self.probe(out, "--level", level, "--task", "tensor")
            dump, folder = self.dump(out), self.folder / out / "step0/rank/dump_tensor_data"
            named, given = set(), set()
            for entry, parts in dump["data"].items():
                if ".parameters_" in entry:
                    continue
                for part, list_ in parts.items():
                    of = enumerate(list_) if isinstance(list_, list) else list_.items()
                    for place, record in of:
                        if record is None or "data_name" not in record:
                            continue
                        name = f"{entry}.{part.removesuffix('_args')}.{place}.pt"
                        self.assertEqual(record["data_name"], name)
                        self.assertNotIn(name, named)
                        named.add(name)
                        shape, _, numbers = tensor_of(folder / name)
                        self.assertEqual(math.prod(shape), math.prod(record["shape"]))
                        self.assertEqual(max(numbers), record["Max"])
                        if part.startswith("input") and entry.startswith("Torch."):
                            given.add(name)
            self.assertGreater(len(given), 20)
            files = [path.stat() for path in folder.iterdir()]
            written = json.loads((self.folder / out / "written.json").read_text())
            self.assertEqual(written["files"], len({file.st_ino for file in files}))
            self.assertEqual(written["files"], len(files) - len(given))

    def test_help_says_whose_precision_it_is(self):
        said = self.aloft("probe", "run", "--help").stdout
        self.assertRegex(said, rb"--precision TEXT +of a model, with --tokens: O0 \(default\)")

    # A loss of no target would be 0, and all gradients with it.
    def test_a_row_of_one_token_has_nothing_to_learn(self):
        tokens_file(self.folder / "one.safetensors", ((1,), (2,)))
        talk = self.aloft("probe", "run", MODEL, "--tokens", "one.safetensors", "--out", "one", exit_code=3).stderr
        self.assertIn(b"E0719", talk)
        self.assertFalse((self.folder / "one").exists())
        self.aloft("score", MODEL, "--tokens", "one.safetensors", "--out", "g.safetensors", "--grads", exit_code=3)
        said = self.aloft("score", MODEL, "--tokens", "one.safetensors", "--out", "l.safetensors", "--json").stdout
        self.assertIsNone(json.loads(said)["loss"])
        self.assertGreater((self.folder / "l.safetensors").stat().st_size, 2 * 4)

    def test_structure(self):
        self.probe("whole")
        self.probe("bare", "--task", "structure")
        self.assertEqual(self.dump("bare")["task"], "structure")
        self.assertEqual(list(self.dump("bare")["data"]), list(self.dump("whole")["data"]))
        self.assertEqual(self.dump("bare", "construct"), self.dump("whole", "construct"))

    def test_overflow(self):
        said = self.probe("finite", "--task", "overflow").stdout
        self.assertIn(b"finite", said)
        self.assertEqual(json.loads((self.folder / "finite/overflow.json").read_text())["found"], [])
        model = self.folder / "large"
        shutil.copytree(MODEL, model)
        weights = bytearray((model / "model.safetensors").read_bytes())
        size, = struct.unpack("<Q", weights[:8])
        entries = json.loads(weights[8:8 + size])
        name = next(name for name in entries if "layers.0" in name and "up_proj" in name)
        begin, end = (8 + size + at for at in entries[name]["data_offsets"])
        self.assertEqual(entries[name]["dtype"], "F32")
        weights[begin:end] = struct.pack("<f", 6e4) * ((end - begin) // 4)
        (model / "model.safetensors").write_bytes(weights)
        said = self.aloft("probe", "run", model, "--tokens", "tokens.safetensors", "--out", "too-large", "--task",
                          "overflow", "--precision", "O2:fp16").stdout
        found, = json.loads((self.folder / "too-large/overflow.json").read_text())["found"]
        self.assertEqual((found["first"]["phase"], found["first"]["dtype"]), ("forward", "torch.float16"))
        self.assertIn("layers.0", found["first"]["module"])
        self.assertIn(found["first"]["name"].encode(), said)

    # What transformers is given, and what the same means here.
    def test_a_batch_of_transformers(self):
        ids = [[1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1]]
        labels = [[1, 2, -100, 4, 5, 6], [-100, 5, 4, 3, 2, -100]]
        shifted = [row[1:] + [-100] for row in labels]
        ones, places = [[1] * 6] * 2, [list(range(6))] * 2
        number_file(self.folder / "ours.safetensors", tokens=ids, targets=shifted)
        number_file(self.folder / "theirs.safetensors", input_ids=ids, labels=labels, attention_mask=ones,
                    position_ids=places)
        for name in ("ours", "theirs"):
            self.aloft("probe", "run", MODEL, "--tokens", f"{name}.safetensors", "--out", f"of-{name}")
        self.assertEqual(self.dump("of-theirs"), self.dump("of-ours"))
        self.aloft("probe", "run", MODEL, "--tokens", "tokens.safetensors", "--out", "of-next")
        self.assertNotEqual(self.dump("of-ours"), self.dump("of-next"))

    def test_what_nothing_reads_is_refused_by_name(self):
        ids = [[1, 2, 3, 4], [4, 3, 2, 1]]
        for tensors, said in (({"attention_mask": [[1, 1, 1, 0], [1] * 4]}, "attention_mask i64[2,4], 0 at 3"),
                              ({"position_ids": [[1, 2, 3, 4]] * 2}, "position_ids i64[2,4], 1 at 0"),
                              ({"token_type_ids": [[0] * 4] * 2}, "'token_type_ids' i64[2,4], which nothing reads"),
                              ({"weights": ids}, "'weights' i64[2,4], which nothing reads"),
                              ({"targets": ids, "labels": ids}, "both 'targets' and 'labels'"),
                              ({"input_ids": ids}, "both 'tokens' and 'input_ids'"),
                              ({"labels": [[7, -100, -100, -100]] * 2}, "labels that are all -100")):
            number_file(self.folder / "more.safetensors", tokens=ids, **tensors)
            talk = self.aloft("probe", "run", MODEL, "--tokens", "more.safetensors", "--out", "more",
                              exit_code=3).stderr.decode()
            self.assertIn("E0719", talk)
            self.assertIn(said, talk)
        # What has another shape is none of the batch.
        number_file(self.folder / "else.safetensors", tokens=ids, prompt=[[1, 2]])
        self.aloft("probe", "run", MODEL, "--tokens", "else.safetensors", "--out", "else")

    def test_a_file_that_cannot_be_says_what_can(self):
        (self.folder / "ids.pt").write_bytes(b"PK")
        talk = self.aloft("probe", "run", MODEL, "--tokens", "ids.pt", "--out", "pt", exit_code=3).stderr.decode()
        self.assertIn('save_file({"tokens": ids}, "tokens.safetensors")', talk.replace("\n        ", " "))
        context = json.loads((MODEL / "config.json").read_text())["max_position_embeddings"]
        number_file(self.folder / "long.safetensors", tokens=[[1] * (context + 1)])
        talk = self.aloft("probe", "run", MODEL, "--tokens", "long.safetensors", "--out", "long", exit_code=3).stderr
        self.assertIn(f"at most {context} in a row".encode(), talk)

    def test_the_option_at_fault_is_named(self):
        for options, said in ((["--steps", 3], "--steps 3"), (["--set", "train.batch=4"], "--set train.batch"),
                              (["--set", "precision=O1"], "--precision"), (["--task", "acc_check"], "acc_check"),
                              (["--at", "2"], "step 2")):
            talk = self.probe("refused", *options, exit_code=2).stderr.decode()
            self.assertIn("E0700", talk)
            self.assertIn(said, talk)
            self.assertNotIn("--steps 3, or", talk)  # which is refused, too
        self.assertFalse((self.folder / "refused").exists())

    def test_a_dump_does_not_take_the_place_of_another(self):
        self.probe("once", "--precision", "O2:bf16")
        before = self.dump("once")
        self.assertIn(b"E0811", self.probe("once", exit_code=2).stderr)
        self.assertEqual(self.dump("once"), before)

    def test_a_refused_run_is_not_in_the_way(self):
        for mode in ("graph", "eager"):
            words = ["probe", "run", "tiny.toml", "--out", mode, "--set", f'train.mode="{mode}"', "--set"]
            self.assertIn(b"E0327", self.aloft(*words, 'probe.list=["no.such"]', exit_code=2).stderr)
            self.aloft(*words, 'probe.list=["ln_f"]')
            said = self.aloft(*words, 'probe.list=["ln_f"]', exit_code=2).stderr
            self.assertIn(b"E0811", said)
            self.assertNotIn(b"--resume", said)

    def test_words_of_data_mode(self):
        said = self.aloft("probe", "run", "tiny.toml", "--out", "mode", "--set", 'probe.data_mode=["forwards"]',
                          exit_code=2).stderr
        self.assertIn(b"E0710", said)
        self.assertIn(b"did you mean forward?", said)

    def test_each_of_its_verbs_has_an_example_of_its_own(self):
        for verb in ("compare", "redo", "acc-check", "check-config"):
            help_ = self.aloft("probe", verb, "--help").stdout.decode()
            self.assertIn(f"aloft probe {verb} ", help_.split("Example:")[1])


if __name__ == "__main__":
    main()
