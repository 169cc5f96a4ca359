"""planted_test.py ALOFT DUMP_MODEL DUMP_TRAINING: what `aloft probe compare` says of models and training loops in
PyTorch beside the same here: nothing of the right ones and of correct variants, of a planted bug the place that it
lies in.

The dumps of PyTorch are made anew where the Python has torch (JUDGE_PYTHON names one); else they are those of
tests/fixtures/planted, which make_dumps.py writes. At the end it prints how many were found, and named right.
"""
import ast
import gzip
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ALOFT, DUMP_MODEL, DUMP_TRAINING = (Path(path).resolve() for path in sys.argv[1:4])
HERE = Path(__file__).resolve().parent
FIXTURES = HERE.parent / "fixtures"
JUDGE = os.environ.get("JUDGE_PYTHON")
sys.path.insert(0, str(HERE))
import ours  # noqa: E402


def said_in(path):
    """The constants of a file, MODULE and the like, read without running what needs torch."""
    said = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign):
            names = node.targets[0].elts if isinstance(node.targets[0], ast.Tuple) else node.targets
            try:
                values = ast.literal_eval(node.value)
            except ValueError:
                continue
            said.update(zip((n.id for n in names if isinstance(n, ast.Name)), values if len(names) > 1 else (values,)))
    return said


def all_in(folder):
    return {path.stem: said_in(path) for path in sorted((HERE / folder).glob("*.py"))}


class Planted(unittest.TestCase):
    counts = {"bugs": 0, "found": 0, "named": 0, "variants": 0, "false alarms": 0}

    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.holder.name)
        for model in ("gpt2-tiny", "llama-tiny"):
            for precision in ("O0", "O2:bf16"):
                subprocess.run([DUMP_MODEL, FIXTURES / model, cls.folder / model / precision, precision], check=True)
        cls.packed = FIXTURES / "planted"
        if JUDGE and subprocess.run([JUDGE, "-c", "import torch, safetensors"], capture_output=True).returncode == 0:
            cls.packed = cls.folder / "packed"
            subprocess.run([JUDGE, "-B", HERE / "make_dumps.py", cls.packed], check=True)
        cls.loops = {False: cls.trained("right"), True: cls.trained("scaled", "precision.loss_scale=" +
                     '{ kind = "dynamic", init = 1024, growth_interval = 2 }')}

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()
        c = cls.counts
        print(f"\n{c['bugs']} bugs: {c['found']} found, {c['named']} named right; {c['variants']} correct variants: "
              f"{c['false alarms']} false alarms")

    @classmethod
    def trained(cls, name, *changes):
        out = cls.folder / "ours" / name
        subprocess.run([DUMP_TRAINING, FIXTURES / "gpt2-tiny", out, "train.steps=3", *changes], check=True)
        return out

    def unpacked(self, name):
        text = gzip.decompress((self.packed / f"{name}.json.gz").read_bytes())
        if not name.startswith("training-"):
            path = self.folder / f"{name}.json"
            path.write_bytes(text)
            return path
        for step, dump in json.loads(text).items():
            folder = self.folder / name / step / "rank"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "dump.json").write_text(json.dumps(dump))
        return self.folder / name

    def partner(self, said):
        """What a dump of PyTorch is held against."""
        model = said.get("MODEL", "gpt2-tiny")
        return self.unpacked("right_running") if model == "running" else self.folder / model / "O0"

    def compared(self, npu, bench):
        """What is said of each step, in order."""
        out = self.folder / "compared"
        for old in out.glob("*"):
            old.unlink()
        done = subprocess.run([ALOFT, "probe", "compare", npu, bench, "-o", out], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = [json.loads(path.read_text()) for path in sorted(out.glob("*.json"))]
        self.assertEqual(done.stdout.splitlines(), [one["sentence"] for one in said])
        return said

    def assert_same(self, npu, bench, least=100):
        self.counts["variants"] += 1
        for said in self.compared(npu, bench):
            if said["divergence"]:
                self.counts["false alarms"] += 1
            self.assertIsNone(said["divergence"], said["sentence"])
            # Most of what the other run has was compared, and not passed over.
            self.assertGreater(len(said["compared"]), least)

    def assert_found(self, npu, bench, place=None, step=0, module=None):
        self.counts["bugs"] += 1
        all_said = self.compared(npu, bench)
        off = [i for i, said in enumerate(all_said) if said["divergence"]]
        self.assertTrue(off, [said["sentence"] for said in all_said])
        self.counts["found"] += 1
        first = all_said[off[0]]
        self.assertEqual(off[0], step, first["sentence"])
        if place is not None:
            self.assertEqual(first["divergence"]["place"], place, first["sentence"])
        if module is not None:
            self.assertEqual(first["divergence"]["module"], module, first["sentence"])
        self.counts["named"] += 1

    def test_the_same_model_is_the_same(self):
        o0 = self.folder / "gpt2-tiny" / "O0"
        self.assert_same(self.unpacked("right"), o0)
        self.assert_same(o0, self.unpacked("right"))

    def test_low_precision_is_no_divergence(self):
        o0, low = self.folder / "gpt2-tiny" / "O0", self.folder / "gpt2-tiny" / "O2:bf16"
        self.assert_same(low, o0)
        self.assert_same(low, self.unpacked("right"))
        self.assert_same(low, self.unpacked("bfloat16"))
        self.assert_same(self.folder / "llama-tiny" / "O2:bf16", self.unpacked("right_llama"))

    def test_variants_are_no_divergence(self):
        for name, said in all_in("variants").items():
            with self.subTest(name):
                self.assert_same(self.unpacked(name), self.partner(said))

    def test_bugs_are_found_where_they_are(self):
        for name, said in all_in("bugs").items():
            with self.subTest(name):
                self.assert_found(self.unpacked(name), self.partner(said), module=said["MODULE"])

    def test_loops_are_told_apart(self):
        for name, said in all_in("training").items():
            with self.subTest(name):
                npu, bench = self.unpacked(f"training-{name}"), self.loops[said.get("SCALED", False)]
                if said["PLACE"] is None:
                    self.assert_same(npu, bench)
                    self.assert_same(bench, npu)
                else:
                    self.assert_found(npu, bench, said["PLACE"], said["STEP"], said.get("MODULE"))

    def test_the_page_shows_what_is_printed(self):
        page = " ".join((HERE.parents[1] / "docs" / "port-from-pytorch.md").read_text().split())
        model = FIXTURES / "gpt2-tiny"
        tokens = model / "expected.safetensors"
        done = subprocess.run([ALOFT, "probe", "run", model, "--tokens", tokens, "--out", "port"], cwd=self.folder,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(done.stdout.strip(), page)
        port = self.folder / "port"
        [same] = self.compared(port, self.unpacked("right"))
        self.assertIsNone(same["divergence"], same["sentence"])
        self.assertIn(same["sentence"].partition(";")[0], page)
        [wrong] = self.compared(self.unpacked("attention_scale"), port)
        self.assertIn(wrong["sentence"].partition(" is off by")[0], page)

    def test_one_pass_over_a_model_takes_few_options(self):
        model = FIXTURES / "gpt2-tiny"
        tokens = ["--tokens", model / "expected.safetensors"]
        for words in ([*tokens], [*tokens, "--out", "x", "--steps", "2"],
                      [*tokens, "--out", "x", "--task", "acc_check"], ["--out", "x", "--precision", "O2"]):
            done = subprocess.run([ALOFT, "probe", "run", model, *words], cwd=self.folder, capture_output=True,
                                  text=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("E0700", done.stderr)
        for level in ("module", "op"):
            done = subprocess.run([ALOFT, "probe", "run", model, *tokens, "--out", level, "--level", level,
                                   "--precision", "O2:bf16"], cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            dump = json.loads((self.folder / level / "step0" / "rank" / "dump.json").read_text())
            self.assertEqual(dump["level"], {"module": "L0", "op": "L1"}[level])

    def test_modules_begin_and_end_where_those_of_transformers_do(self):
        """A Gemma's table gives rows that are scaled."""
        for name in ("gemma", "gemma2", "gemma3"):
            model = FIXTURES / f"{name}-tiny"
            done = subprocess.run([ALOFT, "probe", "run", model, "--tokens", model / "expected.safetensors", "--out",
                                   name], cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            data = json.loads((self.folder / name / "step0" / "rank" / "dump.json").read_text())["data"]
            rows = data["Module.embed_tokens.Embedding.forward.0"]["output"][0]
            self.assertEqual(rows["Norm"], data["Module.layers.0.Block.forward.0"]["input_args"][0]["Norm"])

    def test_mistakes_here_are_found(self):
        right = self.unpacked("training-right")
        for name, (changes, place, step, module) in ours.BUGS.items():
            with self.subTest(name):
                self.assert_found(self.trained(name, *changes), right, place, step, module)

    def test_correct_changes_here_are_no_divergence(self):
        right = self.unpacked("training-right")
        for name, changes in ours.VARIANTS.items():
            with self.subTest(name):
                self.assert_same(self.trained(name, *changes), right)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
