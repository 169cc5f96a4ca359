"""planted_test.py ALOFT DUMP_MODEL DUMP_TRAINING OWN_GPT2 [passes | loops | ours | own]: what `aloft probe compare` says of models and
training loops in PyTorch beside the same here: nothing of the right ones and of correct variants, of a planted bug the
place that it lies in, and the line of the program that calls it. Without the last word all parts: mistakes in a pass of
PyTorch's, in its loop, on Aloft's side of the loop, and in a model that a person has written in C++.

The lines to be named are marked in the programs, by a comment LINE and a name at their end, which LINE of a mistake
says; where a mistake has none, such as one of a loop's settings, no line may be named.

The dumps of PyTorch are made anew where the Python has torch (JUDGE_PYTHON names one); else they are those of
tests/fixtures/planted, which make_dumps.py writes. At the end each part prints how many were found, and named right.
"""
import ast
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ALOFT, DUMP_MODEL, DUMP_TRAINING, OWN_GPT2 = (Path(path).resolve() for path in sys.argv[1:5])
HERE = Path(__file__).resolve().parent
FIXTURES = HERE.parent / "fixtures"
JUDGE = os.environ.get("JUDGE_PYTHON")
sys.path.insert(0, str(HERE))
import ours  # noqa: E402

# By somebody who had not seen how the comparison works.
UNSEEN = {"detached_gate", "fused_by_head", "padding_row", "positions_by_padding", "residual_behind_norm", "rotary_low",
          "average_left_in", "decay_not_scheduled", "gradients_low", "moments_lost", "padding_targets", "scale_lost"}


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


def marked_lines():
    """{name: "model.py:31"}, of all programs here."""
    lines = {}
    for path in sorted(p for p in HERE.rglob("*") if p.suffix in (".py", ".cpp")):
        for number, text in enumerate(path.read_text().splitlines(), 1):
            for name in re.findall(r"(?:#|//) LINE (\w+)$", text):
                assert name not in lines, f"{path}:{number}: {name} is marked at {lines[name]}, too"
                lines[name] = f"{path.name}:{number}"
    return lines


LINES = marked_lines()


class Planted(unittest.TestCase):
    """What the parts have in common."""
    DUMPS = ()  # of PyTorch, by the names of make_dumps.py

    @classmethod
    def setUpClass(cls):
        assert UNSEEN <= {*all_in("bugs"), *all_in("training")}, "each has its file"
        cls.counts = dict.fromkeys(("bugs", "found", "named", "lines", "variants", "false alarms"), 0)
        cls.unseen = dict.fromkeys(("bugs", "found", "named", "lines"), 0)
        cls.holder = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.holder.name)
        cls.packed = FIXTURES / "planted"
        if JUDGE and subprocess.run([JUDGE, "-c", "import torch, safetensors"], capture_output=True).returncode == 0:
            cls.packed = cls.folder / "packed"
            subprocess.run([JUDGE, "-B", HERE / "make_dumps.py", cls.packed, *cls.DUMPS], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()
        c, few = cls.counts, cls.unseen

        def told(of):
            return (f"{of['bugs']} bugs: {of['found']} found, {of['named']} named right, {of['lines']} of them with their "
                    "source line")
        print(f"\n{cls.__name__}: {told(c)}; {c['variants']} correct variants: {c['false alarms']} false alarms")
        if few["bugs"]:
            print(f"{cls.__name__}, by somebody who had not seen it: {told(few)}")

    @classmethod
    def trained(cls, name, *changes):
        out = cls.folder / "ours" / name
        subprocess.run([DUMP_TRAINING, FIXTURES / "gpt2-tiny", out, "train.steps=3", *changes], check=True)
        return out

    def unpacked(self, name):
        packed = json.loads(gzip.decompress((self.packed / f"{name}.json.gz").read_bytes()))
        steps = packed if name.startswith("training-") else {"": packed}
        for step, files in steps.items():
            folder = self.folder / name / (f"{step}/rank" if step else "")
            folder.mkdir(parents=True, exist_ok=True)
            self.assert_is_of_these_programs(name, files["stack"])
            for file, content in files.items():
                (folder / f"{file}.json").write_text(json.dumps(content))
        return self.folder / name

    def assert_is_of_these_programs(self, name, stack):
        """A dump that was made before a program changed has other lines."""
        for _, lines in stack.values():
            for line in lines:
                file, number, text = re.match(r"File (\S+), line (\d+), in [^\n]*\n (.*)", line).groups()
                now = (HERE.parents[1] / file).read_text().splitlines()
                self.assertEqual(now[int(number) - 1].strip() if int(number) <= len(now) else "", text,
                                 f"{name} was made by another {file}: make_dumps.py makes it anew")

    def compared(self, npu, bench):
        """What is said of each step, in order."""
        out = self.folder / "compared"
        for old in out.glob("*"):
            old.unlink()
        done = subprocess.run([ALOFT, "probe", "compare", npu, bench, "-o", out], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        # Of several steps compare_result.json says what they say together, in a line behind theirs.
        said = [json.loads(path.read_text()) for path in sorted(out.glob("*.json"))]
        together = said.pop(0) if len(said) > 1 else None
        self.assertEqual(done.stdout.splitlines(), [one["sentence"] for one in said + [together] if one])
        return said

    def assert_same(self, npu, bench, least=100):
        self.counts["variants"] += 1
        for said in self.compared(npu, bench):
            if said["divergence"]:
                self.counts["false alarms"] += 1
            self.assertIsNone(said["divergence"], said["sentence"])
            # Most of what the other run has was compared, and not passed over.
            self.assertGreater(len(said["compared"]), least)
            self.assertEqual(said["coverage"]["lacks"], "", said["sentence"])

    def assert_found(self, npu, bench, place=None, step=0, module=None, kind=None, line=None):
        name = npu.stem.removeprefix("training-")
        tallies = (self.counts, self.unseen) if name in UNSEEN else (self.counts,)

        def count(what):
            for tally in tallies:
                tally[what] += 1
        count("bugs")
        all_said = self.compared(npu, bench)
        off = [i for i, said in enumerate(all_said) if said["divergence"]]
        self.assertTrue(off, [said["sentence"] for said in all_said])
        count("found")
        first = all_said[off[0]]
        self.assertEqual(off[0], step, first["sentence"])
        if place is not None:
            self.assertEqual(first["divergence"]["place"], place, first["sentence"])
        if module is not None:
            self.assertEqual(first["divergence"]["module"], module, first["sentence"])
        if kind is not None:
            self.assertEqual(first["divergence"]["kind"], kind, first["sentence"])
        count("named")
        self.assertEqual(first["divergence"]["line"], LINES[line] if line else "", first["sentence"])
        if line:
            self.assertIn(f"; called at {LINES[line]}", first["sentence"])
            count("lines")


class Passes(Planted):
    LEVELS = said_in(HERE / "make_dumps.py")["WITH_FUNCTIONS"]
    DUMPS = ("right", "right_running", *all_in("bugs"), *all_in("variants"),
             *(f"{name}-{level}" for level, names in LEVELS.items() for name in names))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for model in ("gpt2-tiny", "llama-tiny"):
            for precision in ("O0", "O2:bf16"):
                subprocess.run([DUMP_MODEL, FIXTURES / model, cls.folder / model / precision, precision], check=True)
        for level in cls.LEVELS:
            model = FIXTURES / "gpt2-tiny"
            subprocess.run([ALOFT, "probe", "run", model, "--tokens", model / "expected.safetensors", "--level", level,
                            "--out", cls.folder / f"ours-{level}"], check=True, capture_output=True)
        subprocess.run([ALOFT, "probe", "run", model, "--tokens", model / "expected.safetensors", "--level", "mix",
                        "--set", "probe.attention=true", "--out", cls.folder / "ours-inside"], check=True,
                       capture_output=True)

    def partner(self, said):
        """What a dump of PyTorch is held against."""
        model = said.get("MODEL", "gpt2-tiny")
        return self.unpacked("right_running") if model == "running" else self.folder / model / "O0"

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
                self.assert_found(self.unpacked(name), self.partner(said), said["PLACE"], 0, said["MODULE"],
                                  said["KIND"], said.get("LINE"))

    def test_what_names_something_else_is_not_right(self):
        """A comparison that finds each mistake and says of it what is not so."""
        compared, counts = self.compared, dict(self.counts)
        planted, said = self.unpacked("attention_scale"), all_in("bugs")["attention_scale"]
        for what in ("place", "module", "kind", "line"):
            def other(npu, bench, what=what):
                found = compared(npu, bench)
                for one in found:
                    one["divergence"][what] = "another"
                return found
            self.compared = other
            with self.subTest(what), self.assertRaises(AssertionError):
                self.assert_found(planted, self.partner(said), said["PLACE"], 0, said["MODULE"], said["KIND"],
                                  said["LINE"])
        self.counts.update(counts)

    def test_what_is_inside_of_attention_is_named(self):
        module = ("transformer.h.0.attn", "h.0.attn")
        scores, weights = ("masked_fill", "attention_scores"), ("softmax", "attention_probabilities")
        inside = self.folder / "ours-inside"
        for npu, bench in ((self.unpacked("right-mix"), inside), (inside, self.unpacked("right-mix"))):
            self.assert_same(npu, bench)
            [said] = self.compared(npu, bench)
            kinds = [pair["call"].split(".")[1] for pair in said["compared"] if "output" in pair["npu"]["name"]]
            ours = npu == inside
            self.assertEqual([kinds.count(kind[ours]) for kind in (scores, weights)], [2, 2])
        for name, kinds in (("attention_scale", scores), ("no_mask", scores), ("mask_off_by_one", weights),
                            ("softmax_axis", weights)):
            with self.subTest(name):
                planted = self.unpacked(f"{name}-mix")
                self.assert_found(planted, inside, "forward", 0, module[0], kinds[0], "weights")
                self.assert_found(inside, planted, "forward", 0, module[1], kinds[1], "weights")

    def test_functions_are_named_where_dumps_have_them(self):
        # Of each mistake the function, or the module that computes between two, as either run calls it.
        mlp, norm = ("h.0.mlp", "gelu_tanh"), ("h.0.ln_1", "layer_norm")
        there = {"exact_gelu": ("transformer.h.0.mlp.act", "gelu"), "wrong_eps": ("transformer.h.0.ln_1", "layer_norm"),
                 "residual_dropped": ("transformer.h.1", "Block"), "attention_scale": ("transformer.h.0.attn", "Attention")}
        named = {"op": {"exact_gelu": ((mlp[0], "gelu"), mlp), "wrong_eps": (norm, norm)},
                 "mix": {"exact_gelu": (there["exact_gelu"], mlp), "wrong_eps": (there["wrong_eps"], norm),
                         "residual_dropped": (there["residual_dropped"], ("h.1", "Block")),
                         "attention_scale": (there["attention_scale"], ("h.0.attn", "MultiHeadAttention"))}}
        for level, bugs in named.items():
            for name, ((theirs, their_kind), (here, kind)) in bugs.items():
                with self.subTest(level=level, name=name):
                    planted, right = self.unpacked(f"{name}-{level}"), self.folder / f"ours-{level}"
                    # Its own line, and not that of the module that calls it.
                    line = "in_mlp" if name == "exact_gelu" else all_in("bugs")[name]["LINE"]
                    self.assert_found(planted, right, "forward", 0, theirs, their_kind, line)
                    self.assert_found(right, planted, "forward", 0, here, kind, line)

    def test_functions_agree_at_whatever_level(self):
        for ours_level in ("op", "mix"):
            for level in ("op", "mix"):
                ours_, theirs = self.folder / f"ours-{ours_level}", self.unpacked(f"right-{level}")
                least = 100 if ours_level == level == "mix" else 20
                for npu, bench in ((ours_, theirs), (theirs, ours_)):
                    with self.subTest(npu=npu.name, bench=bench.name):
                        self.assert_same(npu, bench, least)
                        [said] = self.compared(npu, bench)
                        one = "mix" in npu.name, "mix" in bench.name
                        self.assertEqual("modules are in the" in said["sentence"], one[0] != one[1], said["sentence"])
                        if one[0] != one[1]:
                            self.assertIn("first" if one[0] else "second", said["sentence"].split("modules are in")[1])
                        calls = {record["call"] for record in said["compared"] if ".forward" in record["call"]}
                        self.assertGreaterEqual(sum(not call.startswith("Module.") for call in calls), 20)

    def test_the_page_shows_what_is_printed(self):
        page = " ".join((HERE.parents[1] / "docs" / "port-from-pytorch.md").read_text().split())
        model = FIXTURES / "gpt2-tiny"
        tokens = model / "expected.safetensors"
        done = subprocess.run([ALOFT, "probe", "run", model, "--tokens", tokens, "--out", "port"], cwd=self.folder,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(done.stdout.strip().partition(", ")[0], page)  # without its bytes
        self.assertIn("nothing was dropped", done.stdout)
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

class Loops(Planted):
    DUMPS = tuple("training-" + name for name in all_in("training"))

    def test_loops_are_told_apart(self):
        loops = {False: self.trained("right"), True: self.trained("scaled", "precision.loss_scale=" +
                 '{ kind = "dynamic", init = 1024, growth_interval = 2 }')}
        for name, said in all_in("training").items():
            with self.subTest(name):
                npu, bench = self.unpacked(f"training-{name}"), loops[said.get("SCALED", False)]
                if said["PLACE"] is None:
                    self.assert_same(npu, bench)
                    self.assert_same(bench, npu)
                else:
                    self.assert_found(npu, bench, said["PLACE"], said["STEP"], said.get("MODULE"),
                                      line=said.get("LINE"))


class Ours(Planted):
    DUMPS = ("training-right",)

    def test_mistakes_here_are_found(self):
        right = self.unpacked("training-right")
        for name, (changes, place, step, module, line) in ours.BUGS.items():
            with self.subTest(name):
                self.assert_found(self.trained(name, *changes), right, place, step, module, line=line)

    def test_correct_changes_here_are_no_divergence(self):
        right = self.unpacked("training-right")
        for name, changes in ours.VARIANTS.items():
            with self.subTest(name):
                self.assert_same(self.trained(name, *changes), right)


class Own(Planted):
    """A model in C++ that a person has written: the lines of that program, and of the other where it is the first."""
    DUMPS = ("right-mix", "twice-mix")

    def made(self, *words):
        out = self.folder / "-".join(["own", *words])
        subprocess.run([OWN_GPT2, FIXTURES / "gpt2-tiny", out, *words], check=True)
        return out / "step0" / "rank"

    def test_mistakes_here_are_found_with_their_lines(self):
        theirs = self.unpacked("right-mix")
        for name, (place, module, line, their_line) in ours.OWN.items():
            for mode in ([], ["--eager"]):
                with self.subTest(name, mode=mode):
                    own = self.made(*mode, name)
                    self.assert_found(own, theirs, place, 0, module, line=line)
                    self.assert_found(theirs, own, place, 0, "transformer." + module, line=their_line)

    def test_two_passes_in_a_step_are_two_calls(self):
        theirs = self.unpacked("twice-mix")
        for mode in ([], ["--eager"]):
            with self.subTest(mode=mode):
                own = self.made("--twice", *mode)
                self.assert_same(own, theirs, 200)
                self.assert_same(theirs, own, 200)
                [said] = self.compared(own, theirs)
                calls = {pair["npu"]["name"].rsplit(".", 2)[0] for pair in said["compared"] if pair["npu"]}
                # Of each direction both, and what both have of parameters.
                for call in ("Module.h.1.mlp.Mlp.forward", "Module.h.1.mlp.Mlp.backward"):
                    self.assertTrue({f"{call}.0", f"{call}.1"} <= {c[:len(call) + 2] for c in calls}, call)

    def test_the_right_program_is_the_same(self):
        for mode in ([], ["--eager"]):
            own = self.made(*mode)
            self.assert_same(own, self.unpacked("right-mix"))
            self.assert_same(self.unpacked("right-mix"), own)


if __name__ == "__main__":
    parts = sys.argv[5:] or ["passes", "loops", "ours", "own"]
    unittest.main(argv=[sys.argv[0], *(part.title() for part in parts)], verbosity=2)
