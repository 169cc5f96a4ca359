"""msprobe's config.json: what it asks for is done, as msprobe takes it, or refused by name."""
import json
import re
import struct

from probe_dumps import ProbeTest, records, tensor_of
from program import main


class MsprobeConfig(ProbeTest):
    def config(self, **keys):
        (self.folder / "config.json").write_text(json.dumps(keys))
        return ["probe", "run", "tiny.toml", "--config", "config.json"]

    def test_configs_of_msprobe_are_read(self):
        usual = {"dump_path": "dumped", "rank": [], "step": [0, "2-3"], "level": "L0", "async_dump": False,
                 "extra_info": True, "precision": "low"}
        self.aloft(*self.config(task="statistics", **usual,
                                statistics={"scope": [], "list": [], "tensor_list": [], "data_mode": ["all"],
                                            "summary_mode": "statistics"}), "--steps", 4)
        self.assertEqual({path.name for path in (self.folder / "dumped").glob("step*")}, {"step0", "step2", "step3"})
        tensor = {"scope": [], "list": ["Module.h.0.mlp.c_fc.Linear"], "data_mode": ["output"], "file_format": "npy"}
        self.aloft(*self.config(task="tensor", **{**usual, "step": []}, tensor=tensor), "--out", "named")
        self.assertEqual({name for name in self.tensors("named")},
                         {f"Module.h.0.mlp.c_fc.Linear.{way}.0.output.0.npy" for way in ("forward", "backward")})
        self.aloft(*self.config(task="overflow_check", **{**usual, "dump_path": "checked"}))
        self.assertTrue((self.folder / "checked/overflow.json").exists())
        said = self.aloft(*self.config(task="exception_dump", level="L2", stepp=[1], tensor={}, step=["x"]),
                          exit_code=2).stderr.decode()
        self.assertIn("E0729", said)
        for key in ("task:", "level:", "stepp:", "step:"):
            self.assertIn(key, said)
        self.aloft(*self.config(task="statistics", **{**usual, "step": [], "level": "mix"},
                                statistics={"list": ["h.0.mlp.c_fc."], "data_mode": ["all"]}), "--out", "some-of-mix")
        self.assertEqual(self.dump("some-of-mix")["level"], "mix")
        # As msprobe has it at level mix: the module, and what it calls.
        entries = self.dump("some-of-mix")["data"]
        self.assertTrue(all("h.0.mlp.c_fc." in entry or entry.startswith("Torch.") for entry in entries))
        self.assertEqual([entry for entry in entries if entry.endswith(".forward")], ["Torch.linear.2.forward"])
        self.assertTrue(any(entry.startswith("Torch.") and entry.endswith(".backward") for entry in entries))
        said = self.aloft(*self.config(task="statistics", statistics={"list": ["a"], "tensor_list": ["b"]}),
                          exit_code=2).stderr.decode()
        self.assertIn("statistics.tensor_list", said)
        said = self.aloft(*self.config(task="statistics", statistics={"lists": []}), exit_code=2).stderr.decode()
        self.assertIn("statistics.lists", said)
        (self.folder / "config.json").write_text("[1")
        self.assertIn(b"E0729", self.aloft("probe", "run", "tiny.toml", "--config", "config.json", exit_code=2).stderr)

    def test_options_beat_a_config_of_msprobe(self):
        said = self.config(task="tensor", level="L0", tensor={"list": ["h.0.mlp.c_fc."], "file_format": "npy"},
                           statistics={"list": ["ln_f"]})
        talk = self.aloft(*said, "--out", "two-tasks", "--task", "statistics").stderr.decode()
        self.assertIn("task tensor is not done", talk)
        dump = self.dump("two-tasks")
        self.assertEqual(dump["task"], "statistics")
        self.assertTrue(dump["data"] and all("ln_f" in entry for entry in dump["data"]))
        self.aloft(*said, "--out", "two-tasks-checked", "--task", "overflow")
        self.assertTrue((self.folder / "two-tasks-checked/overflow.json").exists())
        talk = self.aloft(*said, "--out", "one-task", "--set", 'probe.list=["h.0.mlp.c_proj."]', "--level", "mix").stderr
        self.assertEqual(self.dump("one-task")["level"], "mix")
        self.assertNotIn(b"not done", talk)
        self.assertTrue(all("c_proj" in name or name.startswith("Torch.") for name in self.tensors("one-task")))

    def test_lists_of_msprobe_name_functions(self):
        """At level L1 a list names calls of functions, as PyTorch has them, or parts of their names."""
        usual = {"level": "L1", "rank": [], "step": []}
        self.aloft(*self.config(task="statistics", **usual), "--out", "each-op")
        every = self.dump("each-op")["data"]
        self.assertTrue(all(entry.startswith("Torch.") for entry in every))
        lists = {"Functional.linear.1.forward": ["Torch.linear.1.forward"], "Torch.addmm.1.forward": ["Torch.linear.1.forward"],
                 "gelu.0.forward": ["Torch.gelu_tanh.0.forward"],
                 "scaled_dot_product_attention": [e for e in every if e.startswith("Torch.attention")],
                 "layer_norm": [e for e in every if "layer_norm" in e], "backward": [e for e in every if "backward" in e]}
        for number, (word, meant) in enumerate(lists.items()):
            self.assertTrue(meant, word)
            self.aloft(*self.config(task="statistics", statistics={"list": [word]}, **usual), "--out", f"word-{number}")
            self.assertEqual(self.dump(f"word-{number}")["data"], {entry: every[entry] for entry in meant}, word)
            self.aloft(*self.config(task="tensor", tensor={"list": [word], "data_mode": ["all"]}, **usual), "--out",
                       f"whole-word-{number}")
            self.assertEqual({re.split(r"\.(?:in|out)put", name)[0] for name in self.tensors(f"whole-word-{number}")},
                             set(meant), word)
        scope = ["Functional.linear.0.forward", "Torch.addmm.1.forward"]
        self.aloft(*self.config(task="statistics", statistics={"scope": scope}, **usual), "--out", "scope-of-ops")
        between = list(self.dump("scope-of-ops")["data"])
        self.assertEqual((between[0], between[-1]), ("Torch.linear.0.forward", "Torch.linear.1.forward"))
        said = self.aloft(*self.config(task="statistics", statistics={"list": ["Functional.silu.7"]}, **usual), "--out",
                          "no-such", exit_code=2).stderr
        self.assertIn(b"E0327", said)
        self.aloft(*self.config(task="statistics", risk_level="CORE", **usual), "--out", "core")
        core = self.dump("core")["data"]
        self.assertTrue(any("linear" in entry for entry in core) and len(core) < len(every))
        self.assertFalse(any("gelu" in entry for entry in core))
        # Of a module at level mix what it computes, whole.
        self.aloft(*self.config(task="tensor", level="mix", tensor={"list": ["h.0.mlp.MLP"]}), "--out", "whole-mlp")
        names = self.tensors("whole-mlp")
        for entry in ("Module.h.0.mlp.c_fc.Linear.forward.0.output.0", "Torch.gelu_tanh.0.forward.output.0"):
            self.assertIn(entry + ".pt", names)
        self.assertFalse(any("attn" in name or "ln_1" in name for name in names))

    def test_checksums_of_msprobes_other_kind(self):
        list_ = {"list": ["ln_f", "h.0.mlp.c_fc."], "data_mode": ["all"]}
        self.aloft(*self.config(task="tensor", level="L0", tensor=list_), "--out", "words")
        said = self.aloft(*self.config(task="statistics", level="L0", extra_info=False,
                                       statistics={**list_, "summary_mode": "xor"}), "--out", "xor")
        self.assertIn(b"extra_info", said.stderr)
        folder = self.folder / "words/step0/rank/dump_tensor_data"
        expected = []
        for name in self.tensors("words"):
            data = tensor_of(folder / name)[1]
            data += b"\0" * (-len(data) % 8)
            sum_ = 0
            for (word,) in struct.iter_unpack("<Q", data):
                sum_ ^= word
            expected.append(f"0x{sum_:016x}")
        # msprobe compares no checksums of a dump that says it has files.
        self.assertEqual((self.dump("xor")["task"], self.dump("xor")["dump_data_dir"]), ("statistics", None))
        self.assertFalse((self.folder / "xor/step0/rank/dump_tensor_data").exists())
        found = [record["md5"] for _, _, record in records(self.dump("xor")["data"]) if "md5" in record]
        self.assertEqual(sorted(found), sorted(expected))


if __name__ == "__main__":
    main()
