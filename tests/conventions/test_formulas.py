"""Formulas of elements stand in src/scalar: kernels made of them, and the ops' meanings, name them and
compute nothing by hand."""

import re
import unittest

import project

BY_HAND = (r"\bhn::\w+\s*\(|\bstd::(?:abs|sqrt|exp2?|expm1|log|log1p|pow|fmod|sin|cos|tan|asin|acos|"
           r"atan2?|sinh|cosh|tanh|erfc?|floor|ceil|nearbyint|fma)\s*\(")
MEANINGS = ("activation", "binary", "unary")


class Formulas(unittest.TestCase):
    def test_elements_are_computed_by_formulas(self):
        kernels = [path for path in project.files("src/backends/cpu/kernels")
                   if "elements/formula_tiles-inl.h" in path.read_text()]
        self.assertGreaterEqual({path.stem for path in kernels}, {*MEANINGS, "clamp"})
        problems = []
        for path in kernels + [project.ROOT / f"src/ops/{stem}.cpp" for stem in MEANINGS]:
            source = project.code(path)
            for match in re.finditer(BY_HAND, source):
                problems.append(f"{project.name(path)}:{project.line_of(source, match.start())}: "
                                f"{match.group(0)}...): a formula of src/scalar says it once")
        self.assertFalse(problems, project.report(problems))


if __name__ == "__main__":
    unittest.main()
