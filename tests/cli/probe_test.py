"""The probe: files in msprobe's layout, of steps whose bits it does not change."""
import ast
import json
import math
import shutil
import signal
import struct
import subprocess
import time
import zlib

from probe_dumps import ProbeTest, records, tensor_of, values
from program import ALOFT, main, report_data

RECORD = ["type", "dtype", "shape", "Max", "Min", "Mean", "Norm", "requires_grad", "nan", "inf", "-inf", "zeros",
          "underflowed", "saturated"]


class Probe(ProbeTest):
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
            updates = data["Module.h.0.mlp.c_fc.Linear.parameters_update.0"]
            self.assertEqual(updates["weight"][0]["shape"], linear["parameters"]["weight"]["shape"])
            self.assertGreater(updates["weight"][0]["Norm"], 0)
            for entry, name, record in records(data):
                self.assertTrue(all(math.isfinite(record[key]) for key in ("Max", "Min", "Mean", "Norm")), entry)
                self.assertLessEqual(record["Min"], record["Mean"])
                self.assertLessEqual(record["Mean"], record["Max"])
        self.assertEqual(self.dump("probed", 0, "construct")["Module.h.0.mlp.c_fc.Linear.forward.0"],
                         "Module.h.0.mlp.MLP.forward.0")
        self.assertEqual(self.dump("probed", 0, "stack"), {})  # Aloft itself calls a recipe's model
        # A block's gradient goes on past its norms: what comes through them alone is computed for the look.
        self.assertEqual(json.loads((self.folder / "probed/missing.json").read_text()), {})
        for norm in ("h.0.ln_1", "h.0.ln_2", "ln_f"):
            self.assertEqual(len(data[f"Module.{norm}.LayerNorm.backward.0"]["output"]), 1)

    def test_no_bit_is_changed(self):
        for precision in ("O0", "O2:bf16", "O2:fp16"):
            said = ["--set", f'precision="{precision}"', "--set", "model.dropout=0.1"]
            self.aloft("train", "tiny.toml", "--out", "off", *said)
            for threads in (1, 2, 4):
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
        # The logits alone are never whole, and are computed for who names them.
        self.assertEqual(list(json.loads((self.folder / "ops/missing.json").read_text())), ["head/linear#0"])
        self.aloft("probe", "run", "tiny.toml", "--out", "head", "--level", "op", "--set", 'probe.list=["head/linear"]')
        self.assertEqual(self.dump("head")["taps"], {"Torch.linear.4.forward": ["head/linear#0"]})
        self.assertEqual(json.loads((self.folder / "head/missing.json").read_text()), {})

    def test_ops_have_what_they_take(self):
        taken = {}
        for mode in ("graph", "eager"):
            self.aloft("probe", "run", "tiny.toml", "--out", f"taken-{mode}", "--level", "op", "--set",
                       f'train.mode="{mode}"')
            taken[mode] = self.dump(f"taken-{mode}")
        data, taps = taken["graph"]["data"], taken["graph"]["taps"]
        given = {tap: record for entry, names in taps.items() for tap, record in zip(names, data[entry]["output"])}

        def takes(tap, dump=taken["graph"]):
            entry = next(entry for entry, names in dump["taps"].items() if tap in names)
            return dump["data"][entry]["input_args" if entry.endswith("forward") else "input"]
        # In the op's order; null where it is an integer, or nobody looks at it at this level.
        self.assertEqual(takes("wte/embedding#0"), [None, None])
        self.assertEqual(takes("/add#0"), [given["wte/embedding#0"], given["wpe/embedding#0"]])
        self.assertEqual(takes("h.0.attn.c_attn/linear#0"), [given["h.0.ln_1/layer_norm#0"], None, None])
        self.assertEqual(takes("h.0.attn/attention_qkv#0"), [given["h.0.attn.c_attn/linear#0"]])
        # Of two ops that run as one, what each of them takes.
        self.assertEqual(takes("h.0/add#0"), [given["/add#0"], given["h.0.attn.c_proj/linear#0"]])
        self.assertEqual(takes("h.0.ln_2/layer_norm#0"), [given["h.0/add#0"], None, None])
        self.assertEqual(takes("h.0.mlp/gelu_tanh#0"), [given["h.0.mlp.c_fc/linear#0"]])
        # Of the backward pass gradients: not the activations that they meet.
        self.assertEqual(takes("h.0.mlp/gelu_tanh_grad.backward#0"),
                         [{**given["h.0.mlp.c_proj/matmul.backward#0"], "requires_grad": False}])
        self.assertEqual(takes("h.0.mlp.c_proj/matmul.backward#1"),
                         [given[next(tap for tap in ("h.0.mlp.c_proj/reshape.backward#0",
                                                     "h.0.mlp.c_proj/reshape.backward#1",
                                                     "h.0.mlp.c_proj/reshape.backward#2")
                                     if given[tap]["Norm"] == given["ln_f/layer_norm_grad.backward#0"]["Norm"])]])
        # An eager step takes the same, and has all of it.
        for names in taps.values():
            if "cross_entropy" in names[0]:
                continue  # fused with the head
            own, other = takes(names[0]), takes(names[0], taken["eager"])
            if "sum.backward" in names[0]:  # a sum in a loop takes what it is a reshape of
                own, other = ([{**r, "shape": math.prod(r["shape"])} for r in of] for of in (own, other))
            if "add.backward" in names[0]:  # in either order
                own, other = ([r for r in of if r is not None] for of in (own, other))
                self.assertTrue(all(record in other for record in own), names)
            else:
                self.assertEqual(own, other, names)
        self.assertNotIn(None, takes("wte/add.backward#0", taken["eager"]))

    def test_operands_are_chosen(self):
        def entries(out, *said, task="statistics"):
            self.aloft("probe", "run", "tiny.toml", "--out", out, "--level", "op", "--task", task,
                       *(word for key in said for word in ("--set", "probe." + key)))
            return self.dump(out)["data"]
        whole = entries("all-taken")["Torch.gelu_tanh.0.forward"]
        alone = entries("taken-alone", 'list=["op:gelu_tanh"]', 'data_mode=["input"]')
        self.assertEqual(alone, {"Torch.gelu_tanh.0.forward": {**whole, "output": []}})
        given = entries("given-alone", 'list=["op:gelu_tanh"]', 'data_mode=["output"]')
        self.assertEqual(given, {"Torch.gelu_tanh.0.forward": {**whole, "input_args": []}})
        # The file of an operand is that of what gives it, where that is written, by the operand's own name: msprobe
        # calls a record as its file. It is counted once.
        for form in ("pt", "npy"):
            out = f"taken-{form}"
            files = entries(out, 'list=["op:gelu_tanh", "h.0.mlp.c_fc/linear"]', f'format="{form}"', task="tensor")
            taken = files["Torch.gelu_tanh.0.forward"]["input_args"][0]
            given = files["Torch.linear.2.forward"]["output"][0]
            self.assertEqual([record.pop("data_name") for record in (taken, given)],
                             [f"Torch.gelu_tanh.0.forward.input.0.{form}", f"Torch.linear.2.forward.output.0.{form}"])
            self.assertEqual(taken, given)
            self.assertNotIn("data_name", files["Torch.linear.2.forward"]["input_args"][0])
            folder = self.folder / out / "step0/rank/dump_tensor_data"
            ours = [folder / f"Torch.{name}.0.{form}" for name in ("gelu_tanh.0.forward.input", "linear.2.forward.output")]
            self.assertTrue(ours[0].samefile(ours[1]))
            written = json.loads((self.folder / out / "written.json").read_text())
            inodes = {path.stat().st_ino: path.stat().st_size for path in folder.iterdir()}
            self.assertEqual(written["files"], len(inodes))
            self.assertEqual({path.name for path in folder.iterdir()}, set(self.tensors(out)))

    def test_steps_are_chosen(self):
        self.aloft("train", "tiny.toml", "--out", "some", "--probe", "statistics", "--set", "probe.at=[1, 3]")
        self.assertEqual({path.name for path in (self.folder / "some/probe").glob("step*")}, {"step1", "step3"})
        said = self.aloft("probe", "run", "tiny.toml", "--out", "two", "--at", "0,1").stdout
        self.assertIn(b"2 steps", said)
        self.assertEqual({path.name for path in (self.folder / "two").glob("step*")}, {"step0", "step1"})
        self.aloft("train", "tiny.toml", "--out", "some", "--steps", 6, "--resume", "--set", 'probe.task="statistics"',
                   "--set", "probe.at=[5]")
        self.aloft("train", "tiny.toml", "--out", "whole", "--steps", 6, "--probe", "statistics")
        self.assertEqual(self.dump("some/probe", 5), self.dump("whole/probe", 5))

    def test_a_run_that_goes_on_keeps_no_dump_of_steps_that_it_has_not_made(self):
        probe = self.folder / "back/probe"
        self.aloft("train", "tiny.toml", "--out", "back", "--steps", 4, "--probe", "statistics",
                   "--set", "train.checkpoint_every=2")
        kept = self.dump("back/probe", 1)
        shutil.rmtree(self.folder / "back/checkpoints/step-000004")
        (probe / ".missing.json.999999999-0.tmp").write_text("of a process that was killed")
        (probe / "step77").mkdir()  # no dump
        said = self.aloft("train", "tiny.toml", "--out", "back", "--steps", 5, "--resume",
                          "--set", 'probe.task="statistics"', "--set", "probe.at=[4]")
        self.assertIn(b"the dumps of 2 steps behind it are removed", said.stderr)
        self.assertEqual({path.name for path in probe.iterdir() if path.is_dir()}, {"step0", "step1", "step4", "step77"})
        self.assertEqual(self.dump("back/probe", 1), kept)
        self.assertEqual(list(probe.glob(".*.tmp")), [])

    def test_steps_between_run_a_program_that_does_not_look(self):
        said = ["--set", "model.dropout=0.1", "--steps", 6]
        self.aloft("train", "tiny.toml", "--out", "unseen-steps", *said)
        self.aloft("train", "tiny.toml", "--out", "each-step", "--probe", "statistics", *said)
        self.aloft("train", "tiny.toml", "--out", "third-step", "--probe", "statistics", "--set", "probe.every=3", *said)
        self.assertEqual({path.name for path in (self.folder / "third-step/probe").glob("step*")}, {"step0", "step3"})
        self.assertEqual(self.dump("third-step/probe", 3), self.dump("each-step/probe", 3))
        for run in ("each-step", "third-step"):
            self.assertEqual(self.losses(run), self.losses("unseen-steps"))
            self.assertEqual(self.weights(run), self.weights("unseen-steps"))

    def test_exponents_are_counted_where_asked(self):
        said = ["--steps", 5, "--probe", "statistics"]
        self.aloft("train", "tiny.toml", "--out", "uncounted", *said)
        self.aloft("train", "tiny.toml", "--out", "counted", *said, "--set", "probe.histograms=true", "--set",
                   "probe.histogram_every=4")
        self.assertEqual(self.weights("counted"), self.weights("uncounted"))
        for step in range(5):
            plain, counted = (self.dump(f"{run}/probe", step)["data"] for run in ("uncounted", "counted"))
            found = 0
            for entry, name, record in records(counted):
                exponents = record.pop("exponents", None)
                if exponents is None:
                    continue
                found += 1
                self.assertEqual(sum(exponents.values()), math.prod(record["shape"]))
                largest = max(abs(record["Max"]), abs(record["Min"]))
                self.assertEqual(max(map(int, exponents)), math.frexp(largest)[1] - 1 if largest else -127)
            self.assertEqual(found > 50, step % 4 == 0)
            self.assertEqual(counted, plain)
        self.aloft("train", "tiny.toml", "--out", "rare", *said, "--set", "probe.histograms=true", "--set",
                   "probe.every=3")
        for step, is_counted in ((0, True), (3, False)):
            found = ["exponents" in record for _, _, record in records(self.dump("rare/probe", step)["data"])]
            self.assertEqual(any(found), is_counted)

    def test_gradients_are_those_of_the_whole_step(self):
        split = ["--probe", "statistics", "--set", "train.batch=1", "--set", "train.accumulate=2"]
        self.aloft("train", "tiny.toml", "--out", "one-batch", "--steps", 2, "--probe", "statistics")
        self.aloft("train", "tiny.toml", "--out", "two-batches", "--steps", 2, *split)
        whole, parts = (self.dump(f"{run}/probe")["data"] for run in ("one-batch", "two-batches"))
        compared = 0
        for entry, grads in whole.items():
            if "parameters_grad" not in entry:
                continue
            for name, (record,) in grads.items():
                # The loss is a mean: of two micro-batches the sum is twice that of both together.
                sum_ = parts[entry][name][0]
                self.assertEqual(sum_["shape"], record["shape"])
                self.assertAlmostEqual(sum_["Norm"], 2 * record["Norm"], delta=0.02 * record["Norm"])
                compared += 1
        self.assertEqual(compared, 16)

    def test_what_is_not_finite_is_as_msprobe_writes_it(self):
        self.aloft("train", "tiny.toml", "--out", "far", "--probe", "statistics", "--steps", 1, "--set",
                   'precision={level = "O2:fp16", loss_scale = {kind = "dynamic", init = 16777216}}')
        found = [r for _, _, r in records(self.dump("far/probe")["data"]) if not math.isfinite(r["Norm"])]
        self.assertTrue(found)
        # msprobe refuses a dump with text that begins with '-': bare words, as of Python's json.
        text = (self.folder / "far/probe/step0/rank/dump.json").read_text().split('"training"')[0]
        self.assertRegex(text, r'"Norm": (NaN|Infinity),')
        for word in ("nan", "inf", "-inf"):
            self.assertNotIn(f': "{word}"', text)
        for r in found:
            self.assertEqual(str(r["Norm"]), "nan" if r["nan"] else "inf")
            self.assertGreater(r["nan"] + r["inf"] + r["-inf"], 0)

    def test_a_run_that_diverges_says_where_its_dump_is(self):
        said = self.aloft("probe", "run", "tiny.toml", "--out", "burst", "--steps", 3, "--set", "optimizer.lr=1e6",
                          exit_code=5)
        self.assertIn(b"E0884", said.stderr)
        made = len(list((self.folder / "burst").glob("step*")))
        self.assertIn(f"{made} steps; what they held is in burst", said.stdout.decode())
        self.assertIn(b"--task overflow", said.stdout)

    def test_the_first_op_that_overflows_is_named(self):
        # A gradient of the scaled loss, in the backward phase.
        scale = 'precision={level = "O2:fp16", loss_scale = {kind = "dynamic", init = 16777216}}'
        said = self.aloft("probe", "run", "tiny.toml", "--out", "backward", "--task", "overflow", "--set", scale)
        found = json.loads((self.folder / "backward/overflow.json").read_text())
        self.assertEqual(found["steps"], 1)
        (step,) = found["found"]
        self.assertEqual((step["step"], step["skipped"], step["loss_scale"]), (0, True, 16777216))
        first = step["first"]
        self.assertEqual((first["phase"], first["dtype"]), ("backward", "torch.float16"))
        self.assertTrue(first["operands_are_finite"] and first["operands"])
        self.assertGreater(first["inf"] + first["-inf"] + first["nan"], 0)
        for operand in first["operands"]:
            self.assertEqual(operand["inf"] + operand["-inf"] + operand["nan"], 0)
        self.assertIn(first["name"].encode(), said.stdout)
        self.assertIn(b"loss scale 16777216, skipped", said.stdout)
        # Weights that an update made too large, in the forward phase of the step behind it.
        wild = ["--set", scale.replace("16777216", "1024"), "--set", "optimizer.lr=3000"]
        said = self.aloft("probe", "run", "tiny.toml", "--out", "forward", "--task", "overflow", "--steps", 3, *wild,
                          exit_code=5)
        self.assertIn(b"h.0.attn.c_attn/linear#0", said.stdout)
        found = json.loads((self.folder / "forward/overflow.json").read_text())
        self.assertEqual(found["steps"], 3)
        first = next(step for step in found["found"] if step["step"] > 0)["first"]
        self.assertEqual((first["phase"], first["dtype"]), ("forward", "torch.float16"))
        self.assertTrue(first["module"].startswith("h.0"), first["name"])
        self.assertTrue(first["operands_are_finite"])
        self.aloft("probe", "run", "tiny.toml", "--out", "well", "--task", "overflow", "--steps", 2)
        self.assertEqual(json.loads((self.folder / "well/overflow.json").read_text())["found"], [])

    def test_looking_for_overflows_changes_no_bit(self):
        said = ["--set", 'precision="O2:fp16"']
        self.aloft("train", "tiny.toml", "--out", "unseen", *said)
        self.aloft("train", "tiny.toml", "--out", "seen", "--probe", "overflow", *said)
        self.assertEqual(self.losses("seen"), self.losses("unseen"))
        self.assertEqual(self.weights("seen"), self.weights("unseen"))

    def test_tensors_are_written_whole(self):
        list_ = ["--task", "tensor", "--set", 'probe.list=["h.0.mlp.c_fc.", "ln_f"]']
        self.aloft("train", "tiny.toml", "--out", "untapped", "--steps", 2)
        said = self.aloft("probe", "run", "tiny.toml", "--out", "tensors", "--steps", 2, *list_)
        self.aloft("train", "tiny.toml", "--out", "tapped", "--steps", 2, "--probe", "tensor", *list_[2:])
        self.assertEqual(self.weights("tapped"), self.weights("untapped"))
        files = size = 0
        for step in (0, 1):
            self.assertEqual(self.dump("tensors", step)["task"], "tensor")
            folder = self.folder / f"tensors/step{step}/rank/dump_tensor_data"
            self.assertEqual(self.dump("tensors", step)["dump_data_dir"], str(folder.resolve()))
            tensors = self.tensors("tensors", step)
            self.assertEqual(set(tensors), {path.name for path in folder.iterdir()})
            for stem in ("forward.0.input.0", "forward.0.output.0", "forward.0.parameters.weight",
                         "backward.0.input.0", "backward.0.output.0", "parameters_grad.0.weight"):
                self.assertIn(f"Module.h.0.mlp.c_fc.Linear.{stem}.pt", tensors)
            self.assertIn("Module.ln_f.LayerNorm.forward.0.output.0.pt", tensors)
            for name, record in tensors.items():
                self.assertTrue("h.0.mlp.c_fc." in name or "ln_f" in name, name)
                shape, data, numbers = tensor_of(folder / name)
                self.assertEqual(shape, record["shape"], name)
                self.assertEqual((max(numbers), min(numbers)), (record["Max"], record["Min"]), name)
                norm = math.sqrt(sum(x * x for x in numbers))
                self.assertAlmostEqual(norm, record["Norm"], delta=2.7e-7 * norm)
                files, size = files + 1, size + len(data)
        written = json.loads((self.folder / "tensors/written.json").read_text())
        self.assertEqual((written["files"], written["bytes"]), (files, size))
        json_files = [path for path in (self.folder / "tensors").glob("step*/rank/*.json")]
        self.assertEqual((written["dumps"], written["dump_bytes"], written["dropped"]),
                         (2, sum(path.stat().st_size for path in json_files), 0))
        self.assertIn(f"2 steps, ".encode(), said.stdout)
        self.assertIn(f" and {files} tensors, ".encode(), said.stdout)
        self.assertIn(b"nothing was dropped", said.stdout)

        # In other formats the same numbers; of a checksum the same bytes.
        first = self.folder / "tensors/step0/rank/dump_tensor_data"
        for form in ("npy", "safetensors"):
            self.aloft("probe", "run", "tiny.toml", "--out", form, *list_, "--set", f'probe.format="{form}"')
            for name, record in self.tensors(form).items():
                raw = (self.folder / form / "step0/rank/dump_tensor_data" / name).read_bytes()
                shape, data, numbers = tensor_of(first / (name[:-len(form)] + "pt"))
                if form == "npy":
                    length = struct.unpack("<H", raw[8:10])[0]
                    head = ast.literal_eval(raw[10:10 + length].decode())
                    self.assertEqual((raw[:8], head["descr"], head["shape"], (10 + length) % 64),
                                     (b"\x93NUMPY\1\0", "<f4", tuple(shape), 0))
                    self.assertEqual(values("f", raw[10 + length:]), numbers)
                else:
                    self.assertTrue(raw.endswith(data))
                    head = json.loads(raw[8:8 + struct.unpack("<Q", raw[:8])[0]])
                    self.assertEqual(head[name[:-len(".safetensors")]]["shape"], shape)
        self.aloft("probe", "run", "tiny.toml", "--out", "sums", *list_, "--set", 'probe.summary="md5"')
        self.assertEqual(self.tensors("sums"), {})
        # As msprobe has it: a dump of statistics, without a folder of tensors.
        self.assertEqual([self.dump("sums")[key] for key in ("task", "dump_data_dir")], ["statistics", None])
        self.assertFalse((self.folder / "sums/step0/rank/dump_tensor_data").exists())
        plain = {name: tensor_of(first / name)[1] for name in self.tensors("tensors")}
        found = sorted(record["md5"] for _, _, record in records(self.dump("sums")["data"]) if "md5" in record)
        self.assertEqual(found, sorted(f"{zlib.crc32(data):08x}" for data in plain.values()))

    def test_the_report_says_how_much_was_written(self):
        said = self.aloft("probe", "run", "tiny.toml", "--out", "counted-probe", "--steps", 2).stdout
        written = json.loads((self.folder / "counted-probe/written.json").read_text())
        self.assertEqual([written[key] for key in ("dumps", "files", "dropped")], [2, 0, 0])
        self.assertIn(b"2 steps, ", said)
        self.assertIn(b"nothing was dropped", said)
        self.aloft("report", "counted-probe/run")
        self.assertEqual(report_data(self.folder / "counted-probe/run")["probe"], written)
        self.aloft("train", "tiny.toml", "--out", "counted-run", "--steps", 2, "--probe", "statistics")
        in_run = json.loads((self.folder / "counted-run/probe/written.json").read_text())
        self.assertEqual(report_data(self.folder / "counted-run")["probe"], in_run)
        self.assertGreater(in_run["dump_bytes"], 10000)

    def test_tensors_are_chosen(self):
        def names(out, *said):
            self.aloft("probe", "run", "tiny.toml", "--out", out, "--task", "tensor",
                       *(word for key in said for word in ("--set", "probe." + key)))
            return {name.removesuffix(".pt") for name in self.tensors(out)}
        self.assertEqual(names("mode", 'list=["h.0.mlp.c_fc."]', 'data_mode=["forward", "output"]'),
                         {"Module.h.0.mlp.c_fc.Linear.forward.0.output.0"})
        scoped = names("scope", 'scope=["Module.h.0.mlp.c_fc.Linear.forward.0", "Module.h.0.mlp.c_proj.Linear.forward.0"]',
                       'data_mode=["output"]')
        self.assertIn("Module.h.0.mlp.c_proj.Linear.forward.0.output.0", scoped)
        self.assertTrue(all(".forward.0.output" in name and "mlp" in name for name in scoped), scoped)
        ops = names("ops-chosen", 'level="op"', 'list=["op:gelu_tanh", "backward:op:layer_norm_grad"]')
        self.assertTrue(ops)
        self.assertTrue(all("gelu_tanh" in name or "layer_norm_grad" in name for name in ops), ops)
        for out, said in (("none", 'probe.list=["no.such"]'), ("nothing", 'probe.scope=["a"]')):
            refused = self.aloft("probe", "run", "tiny.toml", "--out", out, "--task", "tensor", "--set", said,
                                 exit_code=2).stderr
            self.assertIn(b"E0327", refused)

    def test_structure_needs_no_step(self):
        self.aloft("probe", "run", "tiny.toml", "--out", "stats")
        self.aloft("probe", "run", "tiny.toml", "--out", "structure", "--task", "structure")
        for name in ("construct", "stack"):
            self.assertEqual(self.dump("structure", 0, name), self.dump("stats", 0, name))
        whole, bare = self.dump("stats"), self.dump("structure")
        self.assertEqual(bare["task"], "structure")
        self.assertEqual(list(whole["data"]), list(bare["data"]))
        for (_, _, record), (_, _, known) in zip(records(bare["data"]), records(whole["data"]), strict=True):
            self.assertEqual(record, {key: known[key] for key in ("type", "dtype", "shape", "requires_grad")})
        self.assertEqual([path.name for path in (self.folder / "structure").glob("step*")], ["step0"])

    def test_eager_steps_have_the_numbers_of_the_compiled_ones(self):
        for precision in ("O0", "O2:bf16", "O2:fp16"):
            said = ["--set", f'precision="{precision}"', "--steps", 2]
            parts = ["--set", "train.batch=1", "--set", "train.accumulate=2"]
            for of, more in (("whole", []), ("parts", parts)):
                for mode in ("graph", "eager"):
                    self.aloft("train", "tiny.toml", "--out", f"{of}-{mode}", "--mode", mode, "--probe", "statistics",
                               *said, *more)
                graph, eager = (self.dump(f"{of}-{mode}/probe", 1)["data"] for mode in ("graph", "eager"))
                self.assertEqual(list(graph), [entry for entry in eager if entry in graph])
                others = {(entry, name, place): record for entry, parts in eager.items() for name, list_ in parts.items()
                          for place, record in enumerate(list_ if isinstance(list_, list) else list_.values())}
                places = {}
                for entry, name, record in records(graph):
                    place = places[entry, name] = places.get((entry, name), -1) + 1
                    other = others[entry, name, place]
                    if of == "whole":
                        self.assertEqual(other, record, (precision, entry, name))
                    else:  # where a sum over micro-batches is fused it is added up in another order
                        self.assertEqual(other["shape"], record["shape"], (precision, entry, name))
                        self.assertAlmostEqual(other["Norm"], record["Norm"], delta=1e-5 * record["Norm"] + 1e-9)
                for mode in ("graph", "eager"):
                    shutil.rmtree(self.folder / f"{of}-{mode}")

    def test_looking_at_eager_steps_changes_no_bit(self):
        for precision in ("O0", "O2:bf16", "O2:fp16"):
            said = ["--mode", "eager", "--set", f'precision="{precision}"', "--set", "model.dropout=0.1"]
            self.aloft("train", "tiny.toml", "--out", "eager-off", *said)
            for threads in (1, 2, 4):
                self.aloft("train", "tiny.toml", "--out", "eager-on", "--probe", "statistics:mix", "--threads", threads,
                           "--set", "probe.histograms=true", "--set", "probe.histogram_every=2", *said)
                self.assertEqual(self.losses("eager-on"), self.losses("eager-off"))
                self.assertEqual(self.weights("eager-on"), self.weights("eager-off"))
                self.assertEqual(len(list((self.folder / "eager-on/probe").glob("step*/rank/dump.json"))), 4)
                shutil.rmtree(self.folder / "eager-on")
            shutil.rmtree(self.folder / "eager-off")

    def test_eager_tensors_are_those_of_the_compiled_step(self):
        said = ["--task", "tensor", "--set", 'probe.list=["h.0.mlp.c_fc."]']
        for mode in ("graph", "eager"):
            self.aloft("probe", "run", "tiny.toml", "--out", f"whole-{mode}", *said, "--set", f'train.mode="{mode}"')
        graph, eager = (self.tensors(f"whole-{mode}") for mode in ("graph", "eager"))
        self.assertEqual(set(graph), set(eager))
        self.assertGreater(len(graph), 5)
        for name in graph:
            one, other = (tensor_of(self.folder / f"whole-{mode}/step0/rank/dump_tensor_data" / name)
                          for mode in ("graph", "eager"))
            self.assertEqual(one, other, name)

    def test_the_first_op_of_eager_steps_that_overflows_is_named(self):
        scale = 'precision={level = "O2:fp16", loss_scale = {kind = "dynamic", init = 16777216}}'
        wild = ["--set", scale.replace("16777216", "1024"), "--set", "optimizer.lr=3000", "--steps", 3]
        for what, said, code in (("loss", ["--set", scale], 0), ("weights", wild, 5)):
            firsts = {}
            for mode in ("graph", "eager"):
                self.aloft("probe", "run", "tiny.toml", "--out", f"{what}-{mode}", "--task", "overflow", *said, "--set",
                           f'train.mode="{mode}"', exit_code=code)
                found = json.loads((self.folder / f"{what}-{mode}/overflow.json").read_text())
                firsts[mode] = [(step["step"], step["skipped"], step["first"]["phase"], step["first"]["dtype"],
                                 step["first"]["operands_are_finite"]) for step in found["found"]]
            self.assertEqual(firsts["eager"], firsts["graph"])
            self.assertIn("call", found["found"][0]["first"])

    def test_looking_for_overflows_of_eager_steps_changes_no_bit(self):
        said = ["--set", 'precision="O2:fp16"', "--mode", "eager"]
        self.aloft("train", "tiny.toml", "--out", "eager-unseen", *said)
        self.aloft("train", "tiny.toml", "--out", "eager-seen", "--probe", "overflow", *said)
        self.assertEqual(self.losses("eager-seen"), self.losses("eager-unseen"))
        self.assertEqual(self.weights("eager-seen"), self.weights("eager-unseen"))

    def test_what_would_look_at_nothing_is_refused(self):
        tiny = (self.folder / "tiny.toml").read_text()
        (self.folder / "calls.toml").write_text(tiny + '\n[probe]\ntask = "acc_check"\n')
        said = self.aloft("train", "calls.toml", "--out", "no-calls", "--mode", "eager", exit_code=2).stderr
        self.assertIn(b"probe.task", said)
        for options in (["--at", "0,5", "--steps", 5], ["--set", "probe.at=[7]", "--steps", 7]):
            said = self.aloft("probe", "run", "tiny.toml", "--out", "no-step", *options, exit_code=2).stderr
            self.assertIn(b"E0700", said)
        self.assertFalse((self.folder / "no-step").exists())
        said = self.aloft("train", "tiny.toml", "--out", "late", "--probe", "statistics", "--set", "probe.at=[9, 8]")
        self.assertIn(b"probe.at begins with step 8", said.stderr)

    def test_a_task_of_the_command_line_leaves_histograms_behind(self):
        tiny = (self.folder / "tiny.toml").read_text()
        (self.folder / "counts.toml").write_text(tiny + '\n[probe]\ntask = "statistics"\nhistograms = true\n')
        scale = 'precision={level = "O2:fp16", loss_scale = {kind = "dynamic", init = 16777216}}'
        self.aloft("train", "counts.toml", "--out", "counts", "--probe", "overflow", "--steps", 1, "--set", scale)
        (step,) = json.loads((self.folder / "counts/probe/overflow.json").read_text())["found"]
        self.assertEqual(step["step"], 0)

    def test_a_kill_in_the_middle_of_a_step_leaves_whole_files(self):
        statistics = ("--probe", "statistics:mix")
        tensors = ("--set", 'probe.task="tensor"', "--set", 'probe.list=["h.0"]')
        for number, (mode, probe, delay) in enumerate(
                (mode, probe, delay) for mode, probe in (("graph", statistics), ("eager", statistics), ("graph", tensors))
                for delay in (0, 0.003, 0.007, 0.011)):
            folder = self.folder / f"killed-{number}/probe"
            run = subprocess.Popen([ALOFT, "train", "tiny.toml", "--out", f"killed-{number}", "--mode", mode, "--steps",
                                    "100000", *probe], cwd=self.folder, env=self.environment,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                end = time.monotonic() + 60
                while not (folder / "step3/rank/dump.json").exists() and time.monotonic() < end:
                    time.sleep(0.002)
                time.sleep(delay)
            finally:
                run.send_signal(signal.SIGKILL)
                run.wait()
            steps = sorted(folder.glob("step*"), key=lambda path: int(path.name[4:]))
            self.assertGreater(len(steps), 3)
            for step in steps:
                files = {path.name for path in (step / "rank").glob("*.json")}
                for name in files:
                    self.assertTrue(json.loads((step / "rank" / name).read_text()) or name == "stack.json", step)
                # At most the step that was being written is not there.
                if step != steps[-1]:
                    self.assertEqual(files, {"dump.json", "construct.json", "stack.json"}, step)
            if probe is statistics:  # which all steps have that the run has on record
                recorded = (folder.parent / "metrics.jsonl").read_text().splitlines(keepends=True)
                over = [json.loads(line)["step"] for line in recorded if line.endswith("\n") and '"loss"' in line]
                for step in over:
                    self.assertTrue((folder / f"step{step - 1}/rank/dump.json").exists(), step)
            shutil.rmtree(self.folder / f"killed-{number}")

    def test_both_levels_at_once(self):
        for level in ("module", "op", "mix"):
            self.aloft("probe", "run", "tiny.toml", "--out", f"level-{level}", "--level", level)
        modules, ops, both = (self.dump(f"level-{level}") for level in ("module", "op", "mix"))
        self.assertEqual(both["level"], "mix")
        # Ops have their parameters, too, and what the step is given, where somebody looks at them.
        alike = {entry: {**parts, "input_args": both["data"][entry]["input_args"]} if "input_args" in parts else parts
                 for entry, parts in ops["data"].items()}
        self.assertEqual(both["data"], {**modules["data"], **alike})
        for entry, parts in ops["data"].items():
            for own, known in zip(parts.get("input_args", []), both["data"][entry].get("input_args", []), strict=True):
                self.assertIn(own, (None, known), entry)
        linear = both["data"]["Torch.linear.2.forward"]["input_args"]
        module = both["data"]["Module.h.0.mlp.c_fc.Linear.forward.0"]
        self.assertEqual(linear, [*module["input_args"], module["parameters"]["weight"], module["parameters"]["bias"]])
        construct = self.dump("level-mix", 0, "construct")
        self.assertEqual(construct["Module.h.0.mlp.c_fc.Linear.forward.0"], "Module.h.0.mlp.MLP.forward.0")
        self.assertEqual(construct["Torch.gelu_tanh.0.forward"], "Module.h.0.mlp.MLP.forward.0")

    def test_statistics_of_some_alone(self):
        whole = ["probe", "run", "tiny.toml"]
        self.aloft(*whole, "--out", "all-of-them")
        everything = self.dump("all-of-them")["data"]
        self.aloft(*whole, "--out", "listed", "--set", 'probe.list=["h.0.mlp.c_fc."]')
        listed = self.dump("listed")["data"]
        self.assertEqual(listed, {entry: parts for entry, parts in everything.items() if "h.0.mlp.c_fc." in entry})
        self.assertEqual(len(listed), 4)
        self.aloft(*whole, "--out", "between", "--set", 'probe.data_mode=["forward"]', "--set",
                   'probe.scope=["Module.h.0.mlp.c_fc.Linear.forward.0", "Module.h.0.mlp.c_proj.Linear.forward.0"]')
        between = self.dump("between")["data"]
        self.assertEqual(list(between), ["Module.h.0.mlp.c_fc.Linear.forward.0", "Module.h.0.mlp.c_proj.Linear.forward.0"])
        self.aloft(*whole, "--out", "some-ops", "--level", "op", "--set", 'probe.list=["op:gelu_tanh"]')
        self.aloft(*whole, "--out", "all-ops", "--level", "op")
        ops = self.dump("some-ops")["data"]
        self.assertEqual(list(ops), ["Torch.gelu_tanh.0.forward"])
        self.assertEqual(ops["Torch.gelu_tanh.0.forward"], self.dump("all-ops")["data"]["Torch.gelu_tanh.0.forward"])
        refused = self.aloft(*whole, "--out", "nobody", "--set", 'probe.list=["no.such"]', exit_code=2).stderr
        self.assertIn(b"E0327", refused)

    def test_a_bench_says_what_it_costs(self):
        timed = self.parsed("bench", "step", "tiny.toml", "--probe", "statistics", "--json", "--no-limit", "--steps",
                            2)[0]
        self.assertEqual(timed["probe_pairs"], 40)
        self.assertGreater(timed["probe_cost"], 0.5)
        self.assertEqual(timed["parameters_hash"], timed["parameters_hash_off"])
        timed = self.parsed("bench", "step", "tiny.toml", "--probe", "statistics", "--probe-every", 10, "--json",
                            "--no-limit", "--steps", 2)[0]
        self.assertEqual((timed["probe_looks"], timed["probe_pairs"]), (4, 40))
        self.assertEqual(timed["parameters_hash"], timed["parameters_hash_off"])

    def test_a_bench_looks_where_the_recipe_says(self):
        """Whatever is said of the probe is timed, and the other side has none of it."""
        step = ["bench", "step", "tiny.toml", "--probe", "statistics", "--json", "--no-limit", "--steps", 2]
        (self.folder / "every.toml").write_text((self.folder / "tiny.toml").read_text() +
                                                "[probe]\nevery = 4\n[monitor]\non = true\nevery = 2\n")
        for asked, looks, pairs in ((["--set", "probe.every=5"], 8, 40), (["--set", "probe.histograms=true"], 64, 64),
                                    (["--set", "probe.every=8", "--set", "probe.histograms=true"], 8, 64)):
            [timed] = self.parsed(*step, *asked)
            self.assertEqual((timed["probe_looks"], timed["probe_pairs"]), (looks, pairs), asked)
            self.assertEqual(timed["parameters_hash"], timed["parameters_hash_off"])
        [timed] = self.parsed(*step[:2], "every.toml", *step[3:])
        self.assertEqual((timed["probe_looks"], timed["probe_pairs"]), (20, 40))
        # Where the recipe alone asks for it, too; `--probe none` asks for nothing.
        (self.folder / "asks.toml").write_text((self.folder / "every.toml").read_text().replace(
            "[probe]", '[probe]\ntask = "statistics"'))
        plain = ["bench", "step", "asks.toml", "--json", "--no-limit", "--steps", 2]
        [timed] = self.parsed(*plain)
        self.assertEqual((timed["probe"], timed["probe_looks"], timed["probe_pairs"]), ("statistics", 20, 40))
        [timed] = self.parsed(*plain, "--set", "probe.task=tensor", "--set", "monitor.on=false")
        self.assertEqual((timed["probe"], timed["probe_looks"], timed["probe_pairs"]), ("tensor", 10, 40))
        self.assertIn(b" x the step without the probe (40 pairs of steps), parameters the same to the bit",
                      self.aloft(*plain[:3], *plain[4:]).stdout)
        for nothing in (["--probe", "none"], ["--set", "probe.task=none", "--set", "monitor.on=false"]):
            self.assertNotIn("probe_cost", self.parsed(*plain, *nothing)[0])


if __name__ == "__main__":
    main()
