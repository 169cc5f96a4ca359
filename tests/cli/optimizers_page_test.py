"""docs/optimizers.md beside the records that it is made from, and what it says beside what the program does."""
import importlib.machinery
import importlib.util
import re
import subprocess
import sys
import unittest

from program import ALOFT, ROOT, ProgramTest, main

TOOL = ROOT / "tools" / "optimizers_page"


def page_tool():
    loader = importlib.machinery.SourceFileLoader("optimizers_page", str(TOOL))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("optimizers_page", loader))
    loader.exec_module(module)
    return module


def written_out(lines):
    """Of each state and of p what the lines say it is, without names for parts and without brackets."""
    known = {}
    for line in lines:
        name, value = line.split(" = ", 1)
        for part, meaning in known.items():
            value = re.sub(rf"(?<![\w']){re.escape(part)}(?![\w'])", lambda _: meaning, value)
        known[name] = value.replace("(", "").replace(")", "")
    return {name: value for name, value in known.items() if name.endswith("'")}


class OptimizersPage(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        sys.dont_write_bytecode = True
        cls.tool = page_tool()
        cls.kinds = cls.tool.recipes(ALOFT)["optimizers"]

    def test_it_says_what_the_records_say(self):
        run = subprocess.run([sys.executable, "-B", TOOL, ALOFT, "--check"], capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_formulas_are_the_same_with_names_for_their_parts(self):
        shorter = 0
        for kind in self.kinds:
            for formula in kind["formulas"]:
                if formula["is_of_tensors"]:
                    continue
                with self.subTest(formula["name"]):
                    named = self.tool.with_named_parts(formula["text"])
                    self.assertEqual(written_out(named), written_out(formula["text"]))
                    shorter += sum(map(len, named)) < sum(map(len, formula["text"]))
        self.assertGreater(shorter, 5)

    def test_every_kind_has_equations_and_advice(self):
        for kind in self.kinds:
            self.assertTrue(kind["use"] and kind["rates"], kind["name"])
            for formula in kind["formulas"]:
                named = {line.split(" = ")[0] for line in formula["text"]}
                self.assertLessEqual({f"{state}'" for state in formula["states"]} | {"p'"}, named, formula["name"])

    def test_formats_of_states_are_those_that_recipes_may_ask_for(self):
        for kind in self.kinds:
            taken = kind["formulas"][0]["state_bytes"]
            for form in ("f32", "bf16", "8bit"):
                with self.subTest(kind=kind["name"], form=form):
                    self.aloft("train", "tiny.toml", "--print-config", "--set", f"optimizer.kind={kind['name']}",
                               "--set", f"optimizer.states={form}", exit_code=0 if form in taken else 2)


if __name__ == "__main__":
    main()
