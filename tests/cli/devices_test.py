"""The command line on the software device: the same files as on the cpu, what a profile decides, and what is
refused before the first step."""
import json
import re
import struct

from program import ROOT, ProgramTest, main, report_data, without_clocks

NARROW = """memory_gib = 1
low_tflops = 10
f32_tflops = 20
types = ["f32"]
"""


class Devices(ProgramTest):
    def train(self, out, *rest, exit_code=0):
        return self.aloft("train", "tiny.toml", "--out", out, *rest, exit_code=exit_code).stderr.decode()

    def files(self, out):
        newest = sorted((self.folder / out / "checkpoints").glob("step-*"))[-1]
        return {name: (newest / name).read_bytes() for name in ("model.safetensors", "state.safetensors")}

    def record(self, out):
        return json.loads((self.folder / out / "run.json").read_text())

    def test_a_run_leaves_the_same_files(self):
        for name, options in {
            "graph": (),
            "eager": ("--set", "train.mode=eager"),
            "half": ("--set", "precision.level=O2", "--set", "precision.type=fp16"),
            "sums": ("--set", "train.accumulate=2", "--set", "model.dropout=0.1"),
        }.items():
            self.train(f"cpu-{name}", "--device", "cpu", *options)
            for device in ("sim", "sim:delays=3"):
                out = f"{device.replace(':', '-')}-{name}"
                self.train(out, "--device", device, *options)
                self.assertEqual(self.files(out), self.files(f"cpu-{name}"), out)

    def test_a_run_goes_on_on_another_device(self):
        self.train("whole", "--steps", 8)
        self.train("moved", "--steps", 4)
        self.train("moved", "--steps", 8, "--resume", "--device", "sim:910B3")
        self.assertEqual(self.files("moved"), self.files("whole"))

    def test_a_run_goes_on_where_the_same_types_are(self):
        (self.folder / "narrow.toml").write_text(NARROW)
        narrow = ("--device", "sim:./narrow.toml")
        for level in ("O1", "O2", "O3"):
            fixed = ("--set", f"precision.level={level}", "--set", "precision.type=bf16")
            for name, device, other in (("low", (), narrow), ("lacking", narrow, ())):
                out = f"{name}-{level}"
                self.train(out, *fixed, *device, "--steps", 2)
                before = self.files(out)
                for record in ("there", "lost"):
                    if record == "lost":
                        (self.folder / out / "run.json").unlink()
                    said = self.train(out, *fixed, *other, "--resume", "--steps", 4, exit_code=2)
                    self.assertIn("E0817", said)
                    self.assertIn("bf16", said)
                    self.assertIn("another --out", said)
                self.assertEqual(self.files(out), before)
                self.train(out, *fixed, *device, "--resume", "--steps", 4)
                self.train(f"whole-{out}", *fixed, *device, "--steps", 4)
                self.assertEqual(self.files(out), self.files(f"whole-{out}"))

    def test_what_is_generated_and_scored_is_the_same(self):
        self.train("model")
        for verb in (("generate", "model", "--prompt", "the", "--tokens", 12, "--seed", 4),
                     ("generate", "model", "--prompt", "the", "--tokens", 12, "--samples", 2)):
            here = self.aloft(*verb).stdout
            self.assertEqual(self.aloft(*verb, "--device", "sim").stdout, here)

        header = b'{"tokens":{"dtype":"I32","shape":[2,8],"data_offsets":[0,64]}}'
        ids = b"".join(c.to_bytes(4, "little") for c in b"the quick brown ")
        (self.folder / "in.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + ids)
        for options in (("--precision", "O0"), ("--precision", "O2:bf16"), ("--precision", "O2:fp16"),
                        ("--precision", "O2:bf16", "--mode", "eager")):
            for device in ("cpu", "sim", "sim:delays=5"):
                self.aloft("score", "model", "--tokens", "in.safetensors", "--grads", *options, "--device", device,
                           "--out", f"{device}.safetensors")
            here = (self.folder / "cpu.safetensors").read_bytes()
            self.assertIn(b"grad.", here)
            for device in ("sim", "sim:delays=5"):
                self.assertEqual((self.folder / f"{device}.safetensors").read_bytes(), here, (options, device))

    def test_the_report_is_the_same(self):
        for mode in ("graph", "eager"):
            shown = {}
            for device in ("cpu", "sim"):
                out = f"shown-{device}-{mode}"
                self.train(out, "--device", device, "--set", f"train.mode={mode}", "--set", "train.eval_every=2",
                           "--set", "train.sample_tokens=4", "--set", "train.checkpoint_copy=false")
                shown[device] = self.without_device(report_data(self.folder / out), device)
            self.assertEqual(len(shown["cpu"]["curves"]["evaluations"]), 2)
            self.assertTrue(shown["cpu"]["sample"])
            self.assertEqual(shown["sim"], shown["cpu"], mode)

    def without_device(self, data, device):
        """A report's data without times, the device's name, and the second homes of a program's inputs."""
        shown = without_clocks(data)
        run = shown["run"]
        self.assertEqual((run.pop("device"), run.pop("device_is_simulated")), (device, device == "sim"))
        self.assertEqual(run["recipe"]["train"].pop("device"), device)
        if memory := run.get("memory"):
            run.pop("signature")  # of the Plan, with these homes
            staging = memory["arenas"].pop("staging")
            for place in memory["over_step"]:
                place["bytes"] -= staging
            memory["peak_bytes"] -= staging
        return shown

    def test_the_recipe_and_the_environment_choose_as_well(self):
        (self.folder / "on-sim.toml").write_text(self.RECIPE + 'device = "sim:memory=64KiB"\n')
        for arguments in (("train", "on-sim.toml", "--out", "recipe"),
                          ("train", "tiny.toml", "--out", "option", "--device", "sim:memory=64KiB")):
            said = self.aloft(*arguments, exit_code=4).stderr.decode()
            self.assertIn("not enough memory on sim:memory=64KiB", said)
            self.assertIn("64.00 KiB in all", said)
            self.assertIn("try", said)
        self.aloft("train", "on-sim.toml", "--out", "beaten", "--device", "cpu")
        # Each verb that reads a recipe runs on its device.
        step = ("bench", "step", "--model", "on-sim.toml", "--steps", 1, "--no-limit")
        self.assertIn("on sim:memory=64KiB", self.aloft(*step, exit_code=4).stderr.decode())
        self.aloft(*step, "--device", "sim")
        plan = self.aloft("explain", "plan", "on-sim.toml").stdout.decode()
        self.assertIn("sim:memory=64KiB", plan)

    def test_what_does_not_fit_is_refused_before_the_first_step(self):
        # Room for the least that such a model needs, and not for its plan.
        said = self.train("tight", "--device", "sim:memory=96KiB", exit_code=4)
        self.assertIn("not enough memory on sim:memory=96KiB", said)
        self.assertFalse((self.folder / "tight" / "metrics.jsonl").exists() and
                         (self.folder / "tight" / "metrics.jsonl").read_text())

    def test_a_step_is_timed_by_the_devices_clock(self):
        def timed(device):
            said = self.aloft("bench", "step", "--model", "tiny.toml", "--steps", 2, "--json", "--device", device)
            return json.loads(said.stdout)
        first, again, slower = timed("sim:910B3"), timed("sim:910B3,delays=5"), timed("sim:A100")
        # The same on any machine, however busy it is.
        for key in ("device_step_ms", "matmul_ms", "update_ms", "ops"):
            self.assertEqual(first[key], again[key], key)
        self.assertGreater(first["device_step_ms"], first["matmul_ms"] + first["update_ms"])
        self.assertNotEqual(first["device_step_ms"], slower["device_step_ms"])
        self.assertIn("clock", first["limit_missing"])
        self.assertNotIn("device_step_ms", timed("cpu"))

    def test_a_profile_decides_types(self):
        (self.folder / "narrow.toml").write_text(NARROW)
        said = self.train("narrow", "--device", "sim:./narrow.toml")
        self.assertIn("precision O2:bf16: the back end does not have the low type: what would be bf16 is f32", said)
        self.assertNotIn("products ", said)  # of no use to what is f32
        self.train("wide", "--set", "precision.level=O0")
        said = self.aloft("explain", "precision", "tiny.toml", "--device", "sim:./narrow.toml",
                          "--json").stdout.decode()
        self.assertIn("the back end does not have the low type", " ".join(said.split()))
        self.train("auto", "--device", "sim:./narrow.toml", "--set", "precision.level=auto")
        self.assertIn("O0", self.record("auto")["choices"]["precision"]["value"])
        # Not what is faster there and cannot be had.
        (self.folder / "eager.toml").write_text(NARROW.replace("low_tflops = 10", "low_tflops = 100"))
        said = self.train("faster", "--device", "sim:./eager.toml", "--set", "precision.level=auto")
        self.assertNotIn("warning", said)
        chosen = self.record("faster")["choices"]["precision"]
        self.assertEqual(chosen, {"asked": "auto", "value": "O0", "because": "the back end does not have the low type"})
        self.train("fast", "--device", "sim:H100", "--set", "precision.level=auto")
        chosen = self.record("fast")["choices"]["precision"]
        self.assertEqual(chosen["value"], "O2:bf16")
        self.assertIn("989000", chosen["because"])

    def test_a_wrong_environment_is_met_where_nothing_else_names_a_device(self):
        self.environment["ALOFT_DEVICE"] = "sim:910B9"
        self.addCleanup(self.environment.pop, "ALOFT_DEVICE")
        (self.folder / "on-cpu.toml").write_text(self.RECIPE + 'device = "cpu"\n')
        self.aloft("train", "tiny.toml", "--out", "env-option", "--steps", 1, "--device", "cpu")
        self.aloft("train", "on-cpu.toml", "--out", "env-recipe", "--steps", 1)
        self.aloft("devices", "--no-measure")
        self.aloft("recipes")
        self.aloft("train", "tiny.toml", "--print-config")
        self.assertIn("910B9", self.train("env-none", exit_code=2))

    def test_a_name_that_is_none_says_which_was_meant_and_where_it_stands(self):
        for name, near in (("910b3", "sim:910B3"), ("A100", "sim:A100"), ("CPU", "cpu"), ("smi", "sim")):
            self.assertIn(f"try   {near};", self.train("none", "--device", name, exit_code=2))
        for name in ("sim:", "sim:,", "sim:910B3,", "sim:memory=1GiB,memory=2GiB", "sim:delays=1,delays=1"):
            self.assertIn("is unclear", self.train("none", "--device", name, exit_code=2), name)
        (self.folder / "empty.toml").write_text("types = []\n")
        self.assertIn("empty.toml:1", self.train("none", "--device", "sim:./empty.toml", exit_code=2))
        said = self.train("none", "--device", "sim:./absent.toml", exit_code=2)
        self.assertIn(str((self.folder / "absent.toml").resolve()), said)
        self.assertIn("try   sim:empty.toml", self.train("none", "--device", "sim:empty", exit_code=2))
        (self.folder / "wrong.toml").write_text(self.RECIPE + 'device = "sim:910X"\n')
        said = self.aloft("train", "wrong.toml", "--out", "none", exit_code=2).stderr.decode()
        self.assertRegex(said, r"at +train.device, wrong.toml:\d+")
        self.environment["ALOFT_DEVICE"] = "cuda"
        self.addCleanup(self.environment.pop, "ALOFT_DEVICE", None)
        self.assertIn("ALOFT_DEVICE", self.train("none", exit_code=2))
        self.environment["ALOFT_DEVICE"] = "sim:A100"
        printed = self.aloft("train", "tiny.toml", "--print-config").stdout.decode()
        self.assertRegex(printed, r'device = "" +# default; ALOFT_DEVICE names "?sim:A100')

    def test_a_run_says_what_it_is_on(self):
        said = self.train("said", "--device", "sim:910B3")
        self.assertRegex(said, "device +sim:910B3; simulated")
        self.assertTrue(self.record("said")["device_is_simulated"])
        said = self.train("said", "--resume", "--steps", 6)
        self.assertRegex(said, "device +cpu; the run was on sim:910B3")
        self.assertNotIn("device  ", self.train("plain"))

    def test_rates_that_nobody_said_decide_nothing(self):
        (self.folder / "half.toml").write_text("f32_tflops = 2\n")
        self.train("half", "--device", "sim:./half.toml", "--set", "precision.level=auto")
        because = self.record("half")["choices"]["precision"]["because"]
        self.assertNotIn("1000", because)
        said = self.aloft("devices", "--device", "sim:./half.toml").stdout.decode()
        self.assertNotIn("TFLOP/s", said)
        said = self.aloft("devices", "--device", "sim:910B3").stdout.decode()
        self.assertIn("its memory 1152 GB/s, from and to the host 26 GB/s", said)
        step = ("bench", "step", "tiny.toml", "--steps", 1, "--no-limit", "--device")
        self.assertIn("nobody said", self.aloft(*step, "sim:./half.toml").stdout.decode())
        self.assertNotIn("nobody said", self.aloft(*step, "sim:910B3").stdout.decode())

    def test_what_there_is_is_listed(self):
        said = self.aloft("devices", "--no-measure").stdout.decode()
        for name in ("cpu", "--device sim", "sim:910B3", "sim:H100"):
            self.assertIn(name, said)
        self.assertTrue(said.endswith("\n"))
        listed = json.loads(self.aloft("devices", "--no-measure", "--json").stdout)
        catalog = (ROOT / "src/backends/catalog.inc").read_text()
        by_name = {d["backend"]: d for d in listed}
        self.assertEqual(list(by_name), re.findall(r"^BACKEND\((\w+)\)$", catalog, re.M))
        self.assertIn("sim:910B4", by_name["sim"]["variants"])
        said = self.aloft("devices", "--device", "sim:910B3").stdout.decode()
        self.assertIn("low types 294.9 TFLOP/s", said)
        self.assertIn("sim:910B3\n", self.train("none", "--device", "sim:910b3", exit_code=2))

    def test_what_there_is_not_is_refused(self):
        for name in ("npu", "sim:910B9", "sim:memory=1", "cpu:0"):
            said = self.train("none", "--device", name, exit_code=2)
            self.assertIn("E0332", said)
            self.assertFalse((self.folder / "none").exists())


if __name__ == "__main__":
    main()
