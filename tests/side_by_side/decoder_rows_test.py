"""The rows of decoders of Hugging Face: the folders that are made for them, their clocks, their figures."""
import json
import pathlib
import struct
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "side_by_side"))

import decoder_rows  # noqa: E402
import interleaved  # noqa: E402
import peer_python  # noqa: E402
import programs  # noqa: E402
import random_folder  # noqa: E402
import row as parts  # noqa: E402
import rows  # noqa: E402


class InAFolder(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        before = random_folder.FOLDER
        random_folder.FOLDER = self.folder
        self.addCleanup(lambda: setattr(random_folder, "FOLDER", before))


class Folders(InAFolder):
    def test_weights_are_whole_and_small_and_the_same_again(self):
        random_folder.make("tiny", True)
        path = self.folder / "tiny" / "model.safetensors"
        data = path.read_bytes()
        size, = struct.unpack("<Q", data[:8])
        header = json.loads(data[8:8 + size])
        tensors = {name: about for name, about in header.items() if name != "__metadata__"}
        self.assertEqual(header["__metadata__"], {"format": "pt"})
        self.assertEqual(max(about["data_offsets"][1] for about in tensors.values()), len(data) - 8 - size)
        self.assertEqual(size % 8, 0)
        self.assertEqual(tensors["model.layers.1.self_attn.k_proj.weight"]["shape"], [32, 64])
        self.assertIn("model.layers.0.self_attn.q_proj.bias", tensors)
        for name, about in tensors.items():
            begin, end = (8 + size + at for at in about["data_offsets"])
            words = struct.unpack(f"<{(end - begin) // 2}H", data[begin:end])
            values = [struct.unpack("<f", struct.pack("<I", word << 16))[0] for word in words]
            if name.endswith("norm.weight"):
                self.assertEqual(set(values), {1.0}, name)
            else:
                self.assertTrue(all(2 ** -7 <= abs(v) < 2 ** -5 for v in values), name)
                self.assertTrue(min(values) < 0 < max(values), name)
        (self.folder / "tiny" / random_folder.COMPLETE).unlink()  # as if it had been cut off
        path.write_bytes(b"half")
        random_folder.make("tiny", True)
        self.assertEqual(path.read_bytes(), data)

    def test_a_folder_that_is_there_stays(self):
        random_folder.make("tiny", False)
        path = self.folder / "tiny-config" / "config.json"
        self.assertEqual(json.loads(path.read_text())["hidden_size"], 64)
        path.write_text("{}")
        random_folder.make("tiny", False)
        self.assertEqual(path.read_text(), "{}")
        self.assertFalse((self.folder / "tiny").exists())

    def test_shapes_have_as_many_weights_as_the_models(self):
        counts = {shape: sum(random_folder.count(t) for _, t in random_folder.tensors(config))
                  for shape, config in random_folder.SHAPES.items()}
        self.assertEqual(counts["qwen2.5-0.5b"], 494_032_768)
        self.assertEqual(counts["llama-3.2-1b"], 1_235_814_400)


class Clocks(InAFolder):
    def program(self, **said):
        path = self.folder / "pretender"
        path.write_text(f"#!{sys.executable}\nprint({json.dumps(json.dumps(said))})\n")
        path.chmod(0o755)
        return programs.Tools(path, None, 2, 60)

    def test_the_step_is_what_the_row_says(self):
        tools = self.program(token_ms=20, prompt_ms=300)
        asked = programs.Program("aloft", ["aloft"], step="token_ms").on(2)
        self.assertEqual(programs.run(asked, tools)["step_ms"], 20)
        with self.assertRaisesRegex(programs.Missing, "has no step_ms"):
            programs.run(programs.Program("aloft", ["aloft"]), tools)

    def test_folders_are_made_before_the_first_round(self):
        row = rows.Row("r", "R", [programs.Program("aloft", ["aloft"])],
                       [parts.Figure("step", "ms", lambda r: r["aloft"]["step_ms"])], folders=[("tiny", False)])
        got = interleaved.compare(row, self.program(step_ms=1), 1, True, lambda _: None)
        self.assertEqual(got["figures"][0]["median"], 1)
        self.assertTrue((self.folder / "tiny-config" / "config.json").exists())

    def test_an_environment_that_lacks_a_package_is_made_again(self):
        before = peer_python.STAMP
        self.addCleanup(lambda: setattr(peer_python, "STAMP", before))
        peer_python.STAMP = self.folder / "complete"
        self.assertFalse(peer_python.is_complete())
        peer_python.STAMP.write_text("torch\nnumpy\n")
        self.assertFalse(peer_python.is_complete())
        peer_python.STAMP.write_text("\n".join(peer_python.PACKAGES) + "\n")
        self.assertTrue(peer_python.is_complete())


class Figures(unittest.TestCase):
    def figures(self, name, round_):
        row = next(r for r in decoder_rows.decoder_rows() if r.name == name)
        self.assertLessEqual(set(round_), {p.name for p in row.programs})
        return [figure.of(round_) for figure in row.figures]

    def test_a_token_is_held_against_memory_and_both_ways_of_pytorch(self):
        round_ = {"aloft": {"step_ms": 20, "share_of_stream": 0.9, "peak_rss_bytes": 1},
                  "eager": {"step_ms": 50, "peak_rss_bytes": 4}, "compiled": {"step_ms": 30, "peak_rss_bytes": 2}}
        self.assertEqual(self.figures("qwen-token", round_), [90, 2.5, 1.5, 0.5])

    def test_the_first_token_is_timed_from_outside(self):
        round_ = {"aloft": {"step_ms": 1, "started_clock_s": 10, "first_token_clock_s": 10.5},
                  "eager": {"step_ms": 1, "started_clock_s": 20, "first_token_clock_s": 24}}
        self.assertEqual(self.figures("qwen-first", round_), [500, 8])

    def test_tuning_is_held_beside_the_best_with_masters(self):
        round_ = {"aloft": {"step_ms": 10, "peak_rss_bytes": 5}, "eager": {"step_ms": 30, "peak_rss_bytes": 10},
                  "compiled": {"step_ms": 40, "peak_rss_bytes": 9}, "bf16 alone": {"step_ms": 15, "peak_rss_bytes": 6}}
        self.assertEqual(self.figures("llama-tune", round_), [3, 0.5, 1.5])


if __name__ == "__main__":
    unittest.main()
