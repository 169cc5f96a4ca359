"""aloft data batches: the batches that training is given, for other programs; and one of them given back."""
import json
import struct

from program import TINY, ProgramTest, main
from tensors import read_tensors


def ids(entry, content):
    assert entry["dtype"] == "I64", entry
    return struct.unpack(f"<{len(content) // 8}q", content)


class Batches(ProgramTest):
    RECIPE = TINY.replace("O2:bf16", "O0").replace("batch = 2", "batch = 2\ncheckpoint_every = 1\nkeep_checkpoints = 0")

    def write(self, subject, out, *options, exit_code=0):
        return self.aloft("data", "batches", subject, "--out", out, *options, exit_code=exit_code)

    def test_windows_of_the_text_and_what_follows_each(self):
        said = json.loads(self.write("tiny.toml", "four.safetensors", "--json").stdout)
        self.assertEqual(said, {"file": "four.safetensors", "steps": 4, "micro_batches": 4, "examples": 8,
                                "tensors": {"tokens": [4, 2, 8], "targets": [4, 2, 8]}})
        tensors = read_tensors(self.folder / "four.safetensors")
        tokens, targets = (ids(*tensors[name]) for name in ("tokens", "targets"))
        text = (self.folder / "text.txt").read_text()
        for row in range(8):
            part, next_part = tokens[row * 8:row * 8 + 8], targets[row * 8:row * 8 + 8]
            self.assertEqual(part[1:], next_part[:-1])
            self.assertIn("".join(map(chr, part + next_part[-1:])), text)
        # The micro-batches of a step follow one another; the examples are the same.
        self.write("tiny.toml", "cut.safetensors", "--set", "train.batch=1", "--set", "train.accumulate=2")
        cut = read_tensors(self.folder / "cut.safetensors")
        self.assertEqual(cut["tokens"][0]["shape"], [8, 1, 8])
        self.assertEqual(cut["tokens"][1], tensors["tokens"][1])
        content = (self.folder / "cut.safetensors").read_bytes()
        header = json.loads(content[8:8 + struct.unpack("<Q", content[:8])[0]])
        self.assertEqual(header["__metadata__"], {"accumulate": "2", "seed": "1", "steps": "4"})

    def test_a_step_of_a_run_is_a_pass_over_its_batch(self):
        self.aloft("train", "tiny.toml", "--out", "run")
        self.write("run", "run.safetensors")
        losses = {line["step"]: line["loss"] for line in
                  map(json.loads, (self.folder / "run/metrics.jsonl").read_text().splitlines()) if "loss" in line}
        for made in (1, 3):  # updates before the step
            said = json.loads(self.aloft("probe", "run", f"run/checkpoints/step-{made:06}", "--tokens", "run.safetensors",
                                         "--batch", made, "--out", f"pass{made}", "--json").stdout)
            self.assertAlmostEqual(said["loss"], losses[made + 1], places=6)
        other = json.loads(self.aloft("probe", "run", "run/checkpoints/step-000003", "--tokens", "run.safetensors",
                                      "--out", "other", "--json").stdout)
        self.assertNotAlmostEqual(other["loss"], losses[4], places=4)  # batch 0

    def test_tables_have_their_columns(self):
        (self.folder / "table.csv").write_text("".join(f"{i}.5,{i + 1},{i % 3}\n" for i in range(20)))
        (self.folder / "table.toml").write_text(
            '[model]\nfamily = "mlp"\n[data]\ncsv = "table.csv"\nvalidation = 0\n[train]\nbatch = 2\nsteps = 3\n')
        self.write("table.toml", "table.safetensors", "--steps", 3)
        tensors = read_tensors(self.folder / "table.safetensors")
        shapes = {name: (entry["dtype"], entry["shape"][:2]) for name, (entry, _) in tensors.items()}
        self.assertEqual(set(kind for kind, _ in shapes.values()), {"F32", "I64"})
        self.assertTrue(all(shape == [3, 2] for _, shape in shapes.values()), shapes)

    def test_what_cannot_be(self):
        for options, code in ((("tiny.toml", "a.safetensors", "--steps", 5), b"E0898"),
                              (("tiny.toml", "a.safetensors", "--steps", 2000000, "--set", "train.steps=9000000"), b"E0898"),
                              (("tiny.toml", "tiny.toml"), b"E0700"),
                              (("tiny.toml", "a.safetensors", "--set", "optimizer.lr=1"), b"E0724"),
                              (("tiny.toml", "a.safetensors", "--steps", 0), b"E0700")):
            with self.subTest(options):
                self.assertIn(code, self.write(*options, exit_code=2).stderr)
        self.assertFalse((self.folder / "a.safetensors").exists())
        self.aloft("train", "tiny.toml", "--out", "made")
        self.assertIn(b"E0700", self.write("made", "a.safetensors", "--set", "train.batch=1", exit_code=2).stderr)
        self.write("made", "b.safetensors", "--steps", 2)
        asked = ("probe", "run", "made", "--tokens", "b.safetensors", "--out", "none")
        self.assertIn(b"no batch 2, counted from 0", self.aloft(*asked, "--batch", 2, exit_code=3).stderr)
        self.assertIn(b"E0700", self.aloft("probe", "run", "tiny.toml", "--batch", 0, "--out", "none", exit_code=2).stderr)
        self.assertIn(b"E0719", self.aloft("score", "made", "--tokens", "b.safetensors", "--out", "o", exit_code=3).stderr)


if __name__ == "__main__":
    main()
