"""What is inside attentions, on request of the probe: of recipes and of models of Hugging Face, beside a computation
by hand; and no bit of a run changes."""
import json
import math
import shutil
import struct

from program import ROOT, ProgramTest, main

FIXTURES = ROOT / "tests/fixtures"


def tokens_file(path, rows):
    content = struct.pack(f"<{len(rows) * len(rows[0])}i", *(i for row in rows for i in row))
    entry = {"dtype": "I32", "shape": [len(rows), len(rows[0])], "data_offsets": [0, len(content)]}
    header = json.dumps({"tokens": entry}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + content)


class Inside(ProgramTest):
    def dump(self, folder, step=0):
        return json.loads((self.folder / folder / f"step{step}/rank/dump.json").read_text())

    def kept(self, run):
        newest = max((self.folder / run / "checkpoints").iterdir())
        return [(newest / name).read_bytes() for name in ("model.safetensors", "state.safetensors")]

    def tensors(self, folder):
        """Shape and numbers of each value of an op that is written, by its tap."""
        dump, found = self.dump(folder), {}
        for entry, taps in dump["taps"].items():
            for tap, record in zip(taps, dump["data"][entry]["output"]):
                if "data_name" not in record:
                    continue
                raw = (self.folder / folder / "step0/rank/dump_tensor_data" / record["data_name"]).read_bytes()
                length = struct.unpack("<Q", raw[:8])[0]
                numbers = raw[8 + length:]
                found[tap] = (record["shape"], struct.unpack(f"<{len(numbers) // 4}f", numbers))
        return found

    def test_no_bit_is_changed(self):
        for mode in ("graph", "eager"):
            for precision in ("O0", "O2:bf16", "O2:fp16"):
                said = ["--mode", mode, "--set", f'precision="{precision}"', "--set", "model.dropout=0.1"]
                self.aloft("train", "tiny.toml", "--out", "off", *said)
                self.aloft("train", "tiny.toml", "--out", "on", "--probe", "statistics:op,attention", *said)
                self.aloft("train", "tiny.toml", "--out", "ops", "--probe", "statistics:op", *said)
                self.assertEqual(self.kept("on"), self.kept("off"))
                # Beside the two all is as it was, under the names that it had.
                on, ops = (self.dump(f"{run}/probe", 3)["data"] for run in ("on", "ops"))
                new = ["Torch.attention_scores.0.forward", "Torch.attention_probabilities.0.forward"]
                self.assertEqual(list(on), [*ops, *new])
                self.assertEqual({entry: on[entry] for entry in ops}, ops)
                (scores,), (shares,) = (on[entry]["output"] for entry in new)
                for record in (scores, shares):
                    self.assertEqual((record["shape"], record["dtype"]), ([2, 2, 8, 8], "torch.float32"))
                self.assertEqual((scores["-inf"], shares["zeros"]), (4 * 28, 4 * 28))
                self.assertTrue(all(math.isfinite(scores[key]) for key in ("Max", "Min", "Mean", "Norm")))
                self.assertAlmostEqual(shares["Mean"], 1 / 8, places=6)  # a row adds up to 1
                for run in ("off", "on", "ops"):
                    shutil.rmtree(self.folder / run)

    def expect_inside(self, q, k, scores, shares, window=0):
        """q and k: shape [batch, length, heads, width] and numbers."""
        (batch, length, heads, width), q = q
        (_, _, groups, _), k = k
        self.assertEqual((scores[0], shares[0]), ([batch, heads, length, length],) * 2)
        at = 0
        for b in range(batch):
            for h in range(heads):
                for i in range(length):
                    row = []
                    for j in range(length):
                        key = ((b * length + j) * groups + h // (heads // groups)) * width
                        query = ((b * length + i) * heads + h) * width
                        s = math.fsum(q[query + d] * k[key + d] for d in range(width)) / math.sqrt(width)
                        row.append(s if j <= i and (not window or j > i - window) else -math.inf)
                    total = math.fsum(map(math.exp, row))
                    for s in row:
                        if math.isinf(s):
                            self.assertEqual((scores[1][at], shares[1][at]), (s, 0))
                        else:
                            self.assertAlmostEqual(scores[1][at], s, delta=1e-5 * (1 + abs(s)))
                            self.assertAlmostEqual(shares[1][at], math.exp(s) / total, delta=1e-5)
                        at += 1

    def test_a_recipe_whose_heads_lie_side_by_side(self):
        self.aloft("probe", "run", "tiny.toml", "--out", "gpt", "--task", "tensor", "--level", "op", "--set",
                   'precision="O0"', "--set", "probe.format=safetensors", "--set",
                   'probe.list=["h.0.attn/attention_*", "h.0.attn.c_attn"]')
        found = self.tensors("gpt")
        (shape, numbers) = found["h.0.attn.c_attn/linear#0"]
        self.assertEqual(shape, [2, 8, 48])
        rows = [numbers[at:at + 48] for at in range(0, len(numbers), 48)]
        q, k = (([2, 8, 2, 8], [x for row in rows for x in row[part:part + 16]]) for part in (0, 16))
        self.expect_inside(q, k, found["h.0.attn/attention_scores#0"], found["h.0.attn/attention_probabilities#0"])

    def test_models_of_hugging_face(self):
        for name in ("llama-tiny", "mistral-window"):
            config = json.loads((FIXTURES / name / "config.json").read_text())
            window = config.get("sliding_window") or 0
            heads, groups = config["num_attention_heads"], config["num_key_value_heads"]
            self.assertGreater(heads, groups)
            self.assertEqual(window > 0, name == "mistral-window")
            vocabulary, length = config["vocab_size"], max(8, window + 3)
            tokens_file(self.folder / "tokens.safetensors",
                        [[(7 * i + 3 * row) % vocabulary for i in range(length)] for row in range(2)])
            self.aloft("probe", "run", FIXTURES / name, "--tokens", "tokens.safetensors", "--out", name, "--task", "tensor",
                       "--level", "op", "--precision", "O0", "--set", "probe.format=safetensors", "--set",
                       "probe.attention=true")
            found = self.tensors(name)
            scores = sorted(tap for tap in found if "attention_scores" in tap)
            self.assertEqual(len(scores), config["num_hidden_layers"])
            for tap in scores:
                module = tap[:tap.index("/")]
                q, k = (next(found[rotated] for rotated in found if rotated.startswith(f"{module}/rotary")
                             and ".backward" not in rotated and found[rotated][0][2] == count)
                        for count in (heads, groups))
                self.expect_inside(q, k, found[tap], found[tap.replace("scores", "probabilities")], window)

    def test_what_asks_in_vain_is_told(self):
        for said in (["--set", "probe.attention=true"],
                     ["--set", "probe.attention=true", "--set", 'probe.task="statistics"']):
            refused = self.aloft("train", "tiny.toml", "--out", "vain", *said, exit_code=None)
            self.assertIn(b"probe.attention", refused.stderr)
            shutil.rmtree(self.folder / "vain", ignore_errors=True)


if __name__ == "__main__":
    main()
