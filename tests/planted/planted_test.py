"""planted_test.py ALOFT DUMP_MODEL: what `aloft probe compare` says of a model in PyTorch beside the same weights
here: nothing of the right one and of correct variants, of a planted bug the module that it lies in.

The dumps of PyTorch are made anew where the Python has torch (JUDGE_PYTHON names one); else they are those of
tests/fixtures/planted, which make_dumps.py writes.
"""
import gzip
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ALOFT, DUMP_MODEL = (Path(path).resolve() for path in sys.argv[1:3])
HERE = Path(__file__).resolve().parent
FIXTURES = HERE.parent / "fixtures"
JUDGE = os.environ.get("JUDGE_PYTHON")


def module_of(path):
    """MODULE of a bug's file, read without running what needs torch."""
    for line in path.read_text().splitlines():
        if line.startswith("MODULE = "):
            return json.loads(line[len("MODULE = "):])
    raise AssertionError(f"{path} has no MODULE")


BUGS = {path.stem: module_of(path) for path in sorted((HERE / "bugs").glob("*.py"))}
VARIANTS = [path.stem for path in sorted((HERE / "variants").glob("*.py"))]


class Planted(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.holder.name)
        for precision in ("O0", "O2:bf16"):
            subprocess.run([DUMP_MODEL, FIXTURES / "gpt2-tiny", cls.folder / precision, precision], check=True)
        cls.packed = FIXTURES / "planted"
        if JUDGE and subprocess.run([JUDGE, "-c", "import torch, safetensors"], capture_output=True).returncode == 0:
            cls.packed = cls.folder / "packed"
            subprocess.run([JUDGE, "-B", HERE / "make_dumps.py", cls.packed], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    def unpacked(self, name):
        path = self.folder / f"{name}.json"
        path.write_bytes(gzip.decompress((self.packed / f"{name}.json.gz").read_bytes()))
        return path

    def compared(self, npu, bench):
        out = self.folder / "compared"
        done = subprocess.run([ALOFT, "probe", "compare", npu, bench, "-o", out], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads((out / "compare_result.json").read_text())
        self.assertEqual(done.stdout, said["sentence"] + "\n")
        return said

    def assert_same(self, npu, bench):
        said = self.compared(npu, bench)
        self.assertIsNone(said["divergence"], said["sentence"])
        # Most of what the other run has was compared, and not passed over.
        self.assertGreater(len(said["compared"]), 100)

    def test_the_same_model_is_the_same(self):
        self.assert_same(self.unpacked("right"), self.folder / "O0")
        self.assert_same(self.folder / "O0", self.unpacked("right"))

    def test_low_precision_is_no_divergence(self):
        self.assert_same(self.folder / "O2:bf16", self.folder / "O0")
        self.assert_same(self.folder / "O2:bf16", self.unpacked("right"))
        self.assert_same(self.folder / "O2:bf16", self.unpacked("bfloat16"))

    def test_variants_are_no_divergence(self):
        for name in VARIANTS:
            with self.subTest(name):
                self.assert_same(self.unpacked(name), self.folder / "O0")

    def test_bugs_are_found_where_they_are(self):
        for name, module in BUGS.items():
            with self.subTest(name):
                said = self.compared(self.unpacked(name), self.folder / "O0")
                self.assertIsNotNone(said["divergence"], said["sentence"])
                self.assertEqual(said["divergence"]["module"], module, said["sentence"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
