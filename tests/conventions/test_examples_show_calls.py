"""What the pages from-apex.md, from-pytorch.md and from-mindspore.md say of a call in C++, a program of examples/ does:
every call, and every option of those whose arguments are members of a struct. Their lists come from the fixtures that
scripts make of the systems' own sources, so that a call that is new there wants an example, or a reason here."""

import json
import re
import unittest

import project

FIXTURES = project.ROOT / "tests" / "fixtures"
# Calls that no program makes here, and why: the pages say what is in their place.
NOT_CALLED = {
    "apex.amp.init": "initialize() calls it",
    "torch.amp.custom_bwd": "gradients need no mark",
    "torch.amp.is_autocast_available": "nothing to ask",
    "torch.nn.utils.clip_grad_norm": "the old name of clip_grad_norm_",
    "torch.optim.swap_in_optimizer_params_and_state": "AveragedWeights",
    "mindspore.train.CheckpointConfig": "the braces of a ModelCheckpoint",
    "mindspore.train.Model.train": "a method, below", "mindspore.train.Model.eval": "a method, below",
    "mindspore.train.Model.predict": "a method, below",
    "mindspore.nn.TrainOneStepWithLossScaleCell": "build_train_network() makes it",
}
# Arguments that are no members: places in a call, or without a word here.
PLACES = {"models", "optimizers", "loss"}
METHODS_NOT_CALLED = {
    "Model": {"build": "the first call compiles", "eval_network": "eval()", "fit": "train() and eval()",
              "infer_predict_layout": "one device", "infer_train_layout": "one device",
              "predict_network": "predict()", "train_network": "a step of build_train_network()"},
    "LossScaleManager": {"get_update_cell": "rule()"},
    "LossScaler": {},
}


def code_of(pattern):
    """The code of the examples that the build makes, comments left out."""
    built = re.findall(r"^aloft_example\((\w+)", (project.ROOT / "examples" / "CMakeLists.txt").read_text(), re.M)
    return "\n".join(project.code(project.ROOT / "examples" / f"{name}.cpp")
                     for name in built if re.match(pattern, name))


def fixture(name):
    return json.loads((FIXTURES / name).read_text())


class ExamplesShowCalls(unittest.TestCase):
    def check(self, code, calls, named):
        for name in calls:
            if name in NOT_CALLED:
                continue
            with self.subTest(name):
                self.assertRegex(code, named(name.rsplit(".", 1)[1]))

    def test_reasons_are_of_calls(self):
        known = set(fixture("apex_signatures.json")["calls"]) | set(fixture("signatures.json")["calls"]) | set(
            fixture("mindspore.json")["calls"])
        self.assertEqual(sorted(set(NOT_CALLED) - known), [])

    def test_apex(self):
        calls = fixture("apex_signatures.json")["calls"]
        code = code_of("apex_|gradient_fusion")
        self.check(code, [name for name in calls if not name.startswith("Ascend ")], r"\bamp::{}\b".format)
        for call in ("Ascend apex.amp.initialize", "Ascend apex.amp.scale_loss"):
            for argument in set(calls[call]) - PLACES:
                with self.subTest(call, argument=argument):
                    self.assertRegex(code, rf"\.{argument} = ")
        self.assertRegex(code, r"\bamp::GradientFusion\b")

    def test_torch(self):
        signatures = fixture("signatures.json")
        code = code_of("amp_|grad_scaler_loop|torch_loops")
        functions = [name for name in signatures["calls"] if not name.startswith("torch.amp.GradScaler.")]
        self.check(code, functions, r"\b{}\b".format)
        for argument in set(signatures["calls"]["torch.amp.GradScaler"]) - {"device"}:
            with self.subTest("GradScaler", argument=argument):
                self.assertRegex(code, rf"\.{argument} = ")
        for method in signatures["methods"]["torch.amp.GradScaler"]:
            with self.subTest("GradScaler", method=method):
                self.assertRegex(code, rf"\.{method}\(")
        self.assertRegex(code, r"scaler\.update\(\d+\)")
        self.assertRegex(code, r"\.enabled = false")

    def test_mindspore(self):
        signatures = fixture("mindspore.json")
        code = code_of("mindspore_|value_and_grad")
        self.check(code, signatures["calls"], r"\b{}\b".format)
        for heading, methods in signatures["methods"].items():
            of = heading.rsplit(".", 1)[1]
            for method in methods:
                if of in METHODS_NOT_CALLED and method not in METHODS_NOT_CALLED[of]:
                    with self.subTest(of, method=method):
                        self.assertRegex(code, rf"\.{method}\(")
        for member in ("white_list", "black_list", "has_aux", "loss_scale_manager", "keep_batchnorm_fp32",
                       "cast_model_type", "mode", "device_target", "metrics", "amp_level", "sparse", "reduction"):
            with self.subTest(member=member):
                self.assertRegex(code, rf"\.{member} = ")


if __name__ == "__main__":
    unittest.main()
