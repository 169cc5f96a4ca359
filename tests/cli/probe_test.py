"""The probe: files in msprobe's layout, of steps whose bits it does not change."""
import json
import math
import shutil

from program import ProgramTest, main

RECORD = ["type", "dtype", "shape", "Max", "Min", "Mean", "Norm", "requires_grad", "nan", "inf", "-inf", "zeros",
          "underflowed", "saturated"]


def records(data):
    """Every record of a dump, with the entry and the list that it stands in."""
    for entry, parts in data.items():
        for name, part in parts.items():
            for record in part if isinstance(part, list) else part.values():
                yield entry, name, record


class Probe(ProgramTest):
    def dump(self, folder, step=0, name="dump"):
        def refuse(word):
            raise ValueError(f"{word} is no JSON")
        path = self.folder / folder / f"step{step}" / "rank" / f"{name}.json"
        return json.loads(path.read_text(), parse_constant=refuse)

    def weights(self, run):
        newest = max((self.folder / run / "checkpoints").iterdir())
        return (newest / "model.safetensors").read_bytes()

    def losses(self, run):
        lines = map(json.loads, (self.folder / run / "metrics.jsonl").read_text().splitlines())
        return [(line["step"], line.get("loss"), line.get("grad_norm"), line.get("loss_scale")) for line in lines]

    def test_modules_have_their_numbers(self):
        self.aloft("probe", "run", "tiny.toml", "--out", "probed", "--steps", 2)
        for step in (0, 1):
            dump = self.dump("probed", step)
            self.assertEqual([dump[key] for key in ("task", "level", "framework", "dump_data_dir")],
                             ["statistics", "L0", "pytorch", None])
            data = dump["data"]
            linear = data["Module.h.0.mlp.c_fc.Linear.forward.0"]
            self.assertEqual(list(linear), ["input_args", "input_kwargs", "output", "parameters"])
            self.assertEqual(list(linear["output"][0]), RECORD)
            self.assertEqual(linear["output"][0]["shape"], [2, 8, 64])
            self.assertEqual(linear["output"][0]["dtype"], "torch.bfloat16")
            self.assertEqual(set(linear["parameters"]), {"weight", "bias"})
            back = data["Module.h.0.mlp.c_fc.Linear.backward.0"]
            self.assertEqual([r["shape"] for r in back["input"] + back["output"]], [[2, 8, 64], [2, 8, 16]])
            grads = data["Module.h.0.mlp.c_fc.Linear.parameters_grad.0"]
            self.assertEqual(grads["weight"][0]["shape"], linear["parameters"]["weight"]["shape"])
            for entry, name, record in records(data):
                self.assertTrue(all(math.isfinite(record[key]) for key in ("Max", "Min", "Mean", "Norm")), entry)
                self.assertLessEqual(record["Min"], record["Mean"])
                self.assertLessEqual(record["Mean"], record["Max"])
        self.assertEqual(self.dump("probed", 0, "construct")["Module.h.0.mlp.c_fc.Linear.forward.0"],
                         "Module.h.0.mlp.Module.forward.0")
        stack = self.dump("probed", 0, "stack")
        self.assertIn("Module.h.0.mlp.c_fc.Linear.forward.0", sum((names for names, _ in stack.values()), []))
        # A block's gradient goes on past its norms: through them alone there is no value.
        self.assertTrue(any(name.startswith("call:h.0.ln_1#0.input.gradient")
                            for name in json.loads((self.folder / "probed/missing.json").read_text())))

    def test_no_bit_is_changed(self):
        for precision in ("O0", "O2:bf16", "O2:fp16"):
            said = ["--set", f'precision="{precision}"', "--set", "model.dropout=0.1"]
            self.aloft("train", "tiny.toml", "--out", "off", *said)
            for threads in (1, 2):
                for probe in ("statistics", "statistics:op"):
                    self.aloft("train", "tiny.toml", "--out", "on", "--probe", probe, "--threads", threads, *said)
                    self.assertEqual(self.losses("on"), self.losses("off"))
                    self.assertEqual(self.weights("on"), self.weights("off"))
                    self.assertEqual(len(list((self.folder / "on/probe").glob("step*/rank/dump.json"))), 4)
                    shutil.rmtree(self.folder / "on")
            shutil.rmtree(self.folder / "off")

    def test_ops_are_named_by_their_calls(self):
        self.aloft("probe", "run", "tiny.toml", "--out", "ops", "--level", "op")
        dump = self.dump("ops")
        self.assertEqual(dump["level"], "L1")
        self.assertEqual(self.dump("ops", 0, "construct"), {})
        for k in range(4):
            self.assertEqual(len(dump["data"][f"Torch.linear.{k}.forward"]["output"]), 1)
        self.assertIn("Torch.layer_norm_grad.0.backward", dump["data"])

    def test_steps_are_chosen(self):
        self.aloft("train", "tiny.toml", "--out", "some", "--probe", "statistics", "--set", "probe.at=[1, 3]")
        self.assertEqual({path.name for path in (self.folder / "some/probe").glob("step*")}, {"step1", "step3"})
        self.aloft("train", "tiny.toml", "--out", "some", "--steps", 6, "--resume", "--set", 'probe.task="statistics"',
                   "--set", "probe.at=[5]")
        self.aloft("train", "tiny.toml", "--out", "whole", "--steps", 6, "--probe", "statistics")
        self.assertEqual(self.dump("some/probe", 5), self.dump("whole/probe", 5))

    def test_what_is_not_finite_is_text(self):
        self.aloft("train", "tiny.toml", "--out", "far", "--probe", "statistics", "--steps", 1, "--set",
                   'precision={level = "O2:fp16", loss_scale = {kind = "dynamic", init = 16777216}}')
        found = [r for _, _, r in records(self.dump("far/probe")["data"]) if isinstance(r["Norm"], str)]
        self.assertTrue(found)
        for r in found:
            self.assertEqual(r["Norm"], "nan" if r["nan"] else "inf")
            self.assertGreater(r["nan"] + r["inf"] + r["-inf"], 0)

    def test_eager_runs_are_refused(self):
        said = self.aloft("train", "tiny.toml", "--probe", "statistics", "--mode", "eager", exit_code=2).stderr
        self.assertIn(b"probe.task", said)

    def test_a_bench_says_what_it_costs(self):
        timed = self.parsed("bench", "step", "tiny.toml", "--probe", "statistics", "--json", "--no-limit", "--steps",
                            2)[0]
        self.assertEqual(timed["probe_pairs"], 40)
        self.assertGreater(timed["probe_cost"], 0.5)
        self.assertEqual(timed["parameters_hash"], timed["parameters_hash_off"])


if __name__ == "__main__":
    main()
