"""aloft probe compare of a step that msprobe dumped from MindSpore, beside its twin in PyTorch
(tests/fixtures/mindspore_dumps, made by tools/judge/mindspore_dumps.py)."""
import gzip
import json
import shutil

from program import ROOT, ProgramTest, main


class MindSporeDumps(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for packed in (ROOT / "tests/fixtures/mindspore_dumps").glob("*.json.gz"):
            step = cls.folder / packed.name.removesuffix(".json.gz") / "step0/rank"
            step.mkdir(parents=True)
            for name, content in json.loads(gzip.decompress(packed.read_bytes())).items():
                (step / f"{name}.json").write_text(json.dumps(content))

    def compared(self, npu, bench, exit_code=0):
        shutil.rmtree(self.folder / "out", ignore_errors=True)
        self.aloft("probe", "compare", f"{npu}/step0", f"{bench}/step0", "--out", "out", "--strict",
                   exit_code=exit_code)
        return json.loads((self.folder / "out/compare_result.json").read_text())

    def test_a_right_twin_agrees(self):
        for level, least in (("L0", 27), ("L1", 15), ("mix", 42)):
            for names in ((f"mindspore-{level}", "torch-right"), ("torch-right", f"mindspore-{level}")):
                said = self.compared(*names)
                self.assertIsNone(said["divergence"], said["sentence"])
                self.assertGreaterEqual(len(said["compared"]), least, names)

    def test_another_epsilon_is_named(self):
        for level in ("L0", "L1", "mix"):
            for names in ((f"mindspore-{level}", "torch-eps"), ("torch-eps", f"mindspore-{level}")):
                found = self.compared(*names, exit_code=5)["divergence"]
                self.assertEqual(found["module"], "ln", names)
                self.assertIn(found["kind"], ("LayerNorm", "layer_norm"), names)
                # A line of the program, none of the framework in which the call lies.
                self.assertIn("mindspore_dumps.py", found["line"], names)


if __name__ == "__main__":
    main()
