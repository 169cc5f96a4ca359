"""`probe run RUN --at N`: recorded steps of a run, made again, hold what they held."""
import json
import shutil

from probe_dumps import ProbeTest
from program import TINY, main

KEPT = ["--set", "train.checkpoint_every=2", "--set", "train.keep_checkpoints=0", "--set", "model.dropout=0.1"]


class Recorded(ProbeTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.aloft("train", "tiny.toml", "--out", "run", "--steps", 6, *KEPT)

    def files(self, folder):
        return {str(p.relative_to(self.folder / folder)): p.read_bytes()
                for p in (self.folder / folder).rglob("*") if p.is_file()}

    def test_a_step_holds_what_it_held(self):
        before = self.files("run")
        for number, words in enumerate((["--task", "statistics"], ["--level", "L1"], ["--level", "mix"])):
            out, whole = f"again{number}", f"whole{number}"
            level = {"L1": "op"}.get(words[1], words[1])
            probe = "statistics" if words[0] == "--task" else f"statistics:{level}"
            self.aloft("train", "tiny.toml", "--out", whole, "--steps", 6, "--probe", probe, *KEPT)
            said = self.aloft("probe", "run", "run", "--at", "3,5", "--out", out, *words).stdout.decode()
            self.assertIn("made again from the state behind 2 steps; what they held is in " + out, said)
            self.assertEqual({p.name for p in (self.folder / out).glob("step*")}, {"step3", "step5"})
            for step in (3, 5):
                for name in ("dump", "construct", "stack"):
                    self.assertEqual(self.dump(out, step, name), self.dump(whole + "/probe", step, name))
        self.assertEqual(self.files("run"), before)

    def test_whole_tensors_and_structure(self):
        tensors = ["--set", 'probe.list=["h.0.mlp"]']
        self.aloft("train", "tiny.toml", "--out", "written", "--steps", 6, "--set", "probe.task=tensor", *tensors, *KEPT)
        self.aloft("probe", "run", "run", "--at", "4", "--out", "tensors", "--task", "tensor", *tensors)
        found = self.tensors("tensors", 4)
        self.assertEqual(found, self.tensors("written/probe", 4))
        self.assertTrue(found)
        place = "step4/rank/dump_tensor_data"
        self.assertEqual(self.files(f"tensors/{place}"), self.files(f"written/probe/{place}"))
        said = self.aloft("probe", "run", "run", "--out", "structure", "--task", "structure").stdout
        self.assertIn(b"no step was made", said)
        self.assertIn("Module.h.0.mlp.MLP.forward.0", self.dump("structure", 0, "construct"))

    def test_an_eager_run(self):
        self.aloft("train", "tiny.toml", "--out", "eager", "--set", 'train.mode="eager"', *KEPT)
        self.aloft("train", "tiny.toml", "--out", "graph", "--probe", "statistics", *KEPT)
        self.aloft("probe", "run", "eager", "--at", "2-3", "--out", "of-eager")
        self.assertEqual(self.dump("of-eager", 3), self.dump("graph/probe", 3))

    def test_overflows_of_a_run_that_did_not_look(self):
        far = ["--set", 'precision={level = "O2:fp16", loss_scale = {kind = "dynamic", init = 16777216}}']
        self.aloft("train", "tiny.toml", "--out", "far", *far)
        self.aloft("probe", "run", "tiny.toml", "--out", "looked", "--task", "overflow", "--steps", 4, *far)
        said = self.aloft("probe", "run", "far", "--at", "0-3", "--out", "found", "--task", "overflow").stdout.decode()
        self.assertRegex(said, r"step 0 \(in metrics 1\), loss scale 16777216, skipped: ")
        self.assertIn("works: precision.loss_scale = ", said)
        found, looked = (json.loads((self.folder / out / "overflow.json").read_text()) for out in ("found", "looked"))
        self.assertEqual(found, looked)
        self.aloft("probe", "run", "far", "--at", "3", "--out", "calls", "--task", "acc_check")
        self.assertTrue(self.dump("calls", 3)["data"])

    def test_a_document_for_programs(self):
        said = json.loads(self.aloft("probe", "run", "run", "--at", "3", "--out", "said", "--json").stdout)
        line = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()][3]
        self.assertEqual([said[key] for key in ("out", "task", "run", "begins_at", "steps", "looked_at", "losses",
                                                "parted_at", "differences")],
                         ["said", "statistics", "run", 2, 2, [3], [line["loss"]], None, []])
        self.assertEqual(said["written"]["dumps"], 1)

    def test_other_numbers_than_the_record_are_said(self):
        shutil.copytree(self.folder / "run", self.folder / "changed")
        path = self.folder / "changed/metrics.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        lines[2]["loss"] *= 1 + 2e-7
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        said = self.aloft("probe", "run", "changed", "--at", "3", "--out", "parted").stderr.decode()
        self.assertIn("step 2 (in metrics 3) has other numbers than the run recorded: loss was", said)
        self.assertIn("aloft probe redo changed --step 2", said)

    def test_what_leads_nowhere_is_refused_and_leaves_nothing(self):
        for words, code, said in (
                ([], "E0700", "--at N, counted from 0"),
                (["--at", "9"], "E0862", "a step from 0 to 5"),
                (["--at", "1", "--steps", 3], "E0700", "--steps 3"),
                (["--at", "1", "--precision", "O1"], "E0700", "--precision"),
                (["--at", "1", "--set", "train.batch=1"], "E0700", "--set train.batch"),
                (["--at", "1", "--set", 'probe.list=["no.such"]'], "E0327", "no.such"),
                (["--set", 'probe.task="none"'], "E0700", 'saw   probe.task = "none"'),
                (["--at", "3-1"], "E0700", "4-6"), (["--at", "one"], "E0700", "4-6"),
                (["--at", "0-999999999"], "E0700", "at most 100000 steps")):
            talk = self.aloft("probe", "run", "run", "--out", "no/where/at-all", *words, exit_code=2).stderr.decode()
            self.assertIn(code, talk)
            self.assertIn(said, talk)
            self.assertFalse((self.folder / "no").exists(), words)
        self.aloft("probe", "run", "run", "--at", "1", "--out", "once")
        self.assertIn(b"E0811", self.aloft("probe", "run", "run", "--at", "2", "--out", "once", exit_code=2).stderr)

    def test_no_checkpoint_leads_across_a_change_of_the_recipe(self):
        self.aloft("train", "tiny.toml", "--out", "resumed", "--set", "train.steps=3")
        self.aloft("train", "tiny.toml", "--out", "resumed", "--set", "train.steps=6", "--resume", "--set",
                   "optimizer.lr=0.01")
        shutil.rmtree(self.folder / "resumed/checkpoints/step-000003")
        talk = self.aloft("probe", "run", "resumed", "--at", "4", "--out", "across", exit_code=2).stderr.decode()
        self.assertIn("E0862", talk)
        self.assertIn("train.keep_checkpoints = 0", talk)
        self.assertFalse((self.folder / "across").exists())


SWITCHED_ON = """[optimizer]
kind = "adamw"
betas = [0.9, 0.95]
[schedule]
kind = "cosine"
steps = 9
[monitor]
on = true
every = 2
[profile]
steps = 1
start = 1
[probe]
task = "tensor"
every = 2
level = "mix"
attention = true
format = "npy"
"""
SWITCHED_OFF = ["--set", 'optimizer.kind="sgd"', "--set", 'schedule.kind="constant"', "--set", "monitor.on=false",
                "--profile", "0"]


class SwitchedOff(ProbeTest):
    """What the command line switched off of a recipe is in the record, and does nothing there either."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.folder / "on.toml").write_text(TINY + SWITCHED_ON)
        cls.aloft("train", "on.toml", "--out", "off", "--probe", "none", *SWITCHED_OFF)

    def test_its_steps_are_made_again(self):
        self.assertIn(b"same", self.aloft("probe", "redo", "off", "--step", 3).stdout)
        for task in ("statistics", "overflow", "acc_check"):
            self.aloft("probe", "run", "off", "--at", 3, "--task", task, "--out", f"off-{task}")
        self.aloft("probe", "run", "off", "--at", 3, "--level", "module", "--out", "off-module")

    def test_others_read_its_recipe(self):
        self.aloft("data", "batches", "off", "--out", "off.safetensors")
        self.aloft("probe", "check-config", "off", "off")
        differs = self.aloft("probe", "check-config", "off", "on.toml", exit_code=5).stdout.decode()
        self.assertIn("optimizer.kind", differs)

    def test_a_probed_run_of_it(self):
        for number, words in enumerate((["--task", "overflow"], ["--task", "acc_check"],
                                        ["--task", "statistics", "--level", "module"])):
            out = f"probed{number}"
            self.aloft("probe", "run", "on.toml", "--out", out, *words)
            self.aloft("probe", "redo", f"{out}/run", "--step", 0)


if __name__ == "__main__":
    main()
