"""docs/from-apex.md explains every argument of apex's calls and of its fork's, and none that there is not; its table of
levels is apex's, and amp::Options has the arguments by their names, in their order."""

import ast
import importlib.util
import json
import pathlib
import re
import tempfile
import unittest

import project
from explained import blocks, differences, explained, is_in_an_example, of_package, tables

PAGE = project.ROOT / "docs" / "from-apex.md"
OPTIONS = project.ROOT / "src" / "frontend" / "amp_options.h"
SCALE_LOSS = project.ROOT / "src" / "frontend" / "scale_loss.h"
SIGNATURES = project.ROOT / "tests" / "fixtures" / "apex_signatures.json"
SCRIPT = project.ROOT / "tools" / "judge" / "apex_signatures.py"
NPU = project.ROOT / "tests" / "fixtures" / "torch_npu.json"
FORK = "Ascend "
WORDS = {"None": "none", "True": "true", "False": "false", "1.0": "1", "torch.float16": "f16", "torch.float32": "f32"}


def members(path, struct):
    """The names of a struct's members, in order."""
    body = re.search(rf"struct {struct} {{\n(.*?)\n}};", path.read_text(), re.S).group(1)
    code = re.sub(r"//[^\n]*", "", body)
    found = []
    for statement in code.split(";"):
        found += re.findall(r"(\w+)\s*=", re.sub(r"\{[^}]*\}", "", statement))
    return found


class FromApex(unittest.TestCase):
    def setUp(self):
        signatures = json.loads(SIGNATURES.read_text())
        self.calls, self.levels = signatures["calls"], signatures["levels"]
        self.tables = tables(PAGE)
        spec = importlib.util.spec_from_file_location("apex_signatures", SCRIPT)
        self.extraction = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.extraction)

    def test_the_loop_stands_in_an_example(self):
        loop = blocks(project.text(PAGE), "cpp")[0]
        self.assertIn("amp::scale_loss(", loop)
        self.assertTrue(is_in_an_example(loop), loop)

    def test_each_source_has_its_hash(self):
        """Of every file that the script reads, by which git finds it; and each call is one of a file's."""
        files = json.loads(SIGNATURES.read_text())["files"]
        for folder in ("apex/amp/", "apex/optimizers/", "apex/" + self.extraction.LARC):
            self.assertTrue(any(file.startswith(folder) for file in files), folder)
        for file, text in files.items():
            self.assertRegex(text, "^[0-9a-f]{40}$", file)

    def test_what_the_script_reads(self):
        """Signatures and levels of sources in the form of apex's, and not what stands beside them."""
        source = ("class O2:\n    def __call__(self, p):\n        p.enabled = True\n        p.loss_scale = 'dynamic'\n"
                  "        return p\ndef initialize(models, optimizers=None, *, enabled=True): pass\n")
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "frontend.py").write_text(source)
            self.assertEqual(self.extraction.levels(pathlib.Path(folder)), {"O2": {"loss_scale": "dynamic"}})
        function = ast.parse(source).body[1]
        self.assertEqual(self.extraction.arguments(function), ["models", "optimizers", "enabled"])

    def test_the_script_goes_by_what_packages_give(self):
        """No name of a call is typed there: of an __init__.py all that it imports, but for what begins with _."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder) / "apex"
            for path, text in {"amp/__init__.py": "from .amp import init, half_function\n"
                                                  "from .state import _hidden, f\n",
                               "amp/amp.py": "def init(enabled=True): pass\ndef half_function(fn): pass\n",
                               "amp/state.py": "_hidden = 1\ndef f(): pass\n",
                               "optimizers/__init__.py": "from .new import Newest\n",
                               "optimizers/new.py": "class Newest:\n    def __init__(self, params, lr=1): pass\n",
                               "parallel/LARC.py": "class LARC:\n    def __init__(self, optimizer): pass\n"}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            self.assertEqual(self.extraction.calls(root / "amp"),
                             {"apex.amp.init": ["enabled"], "apex.amp.half_function": ["fn"], "apex.amp.f": []})
            self.assertEqual(self.extraction.optimizers(root),
                             {"apex.optimizers.Newest": ["lr"], "apex.parallel.LARC": ["optimizer"]})
            self.assertEqual(self.extraction.hashes(root.parent)["apex/amp/state.py"],
                             "aebdd71ad92b29dfa93f2f4d5e5286d13c4f5b3f")

    def test_calls(self):
        calls = {name: arguments for name, arguments in self.calls.items() if not name.startswith(FORK)}
        self.assertGreater(len(calls), 10)
        for name, arguments in calls.items():
            with self.subTest(name):
                self.assertEqual(sorted(explained(self.tables, name, "argument")), sorted(arguments))

    def test_the_fork(self):
        calls = {name: arguments for name, arguments in self.calls.items() if name.startswith(FORK)}
        self.assertEqual(len(calls), 2)
        for name, arguments in calls.items():
            with self.subTest(name):
                own = set(arguments) - set(self.calls[name.removeprefix(FORK)])
                self.assertEqual(sorted(explained(self.tables, name, "argument")), sorted(own))

    def test_optimizers(self):
        optimizers = json.loads(SIGNATURES.read_text())["optimizers"]
        npu = json.loads(NPU.read_text())["optimizers"]
        for package, all_of_it in (("apex.optimizers", optimizers), ("torch_npu.optim", npu)):
            with self.subTest(package):
                calls = of_package(all_of_it, package)
                self.assertGreater(len(calls), 5)
                self.assertEqual(sorted(explained(self.tables, package, "optimizer")), sorted(calls))
                self.assertEqual(differences(self.tables[package, "argument"], calls), [])
        larc = "apex.parallel.LARC"
        self.assertEqual(explained(self.tables, larc, "argument"), optimizers[larc])

    def test_levels(self):
        rows = re.findall(r"^\| `(O\d)` \| (.*) \|$", PAGE.read_text(), re.M)
        self.assertEqual([level for level, _ in rows], sorted(self.levels))
        for level, cells in rows:
            want = [WORDS.get(str(value), value) for value in self.levels[level].values()]
            self.assertEqual(cells.split(" | "), want, level)

    def test_options(self):
        want = self.calls[FORK + "apex.amp.initialize"][2:]  # without models and optimizers
        self.assertEqual(members(OPTIONS, "Options")[:len(want)], want)
        self.assertEqual(members(SCALE_LOSS, "ScaleLossOptions"), self.calls["apex.amp.scale_loss"][2:])


if __name__ == "__main__":
    unittest.main()
