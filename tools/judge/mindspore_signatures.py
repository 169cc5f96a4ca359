"""The arguments that MindSpore's calls take, and its precision lists, read from the sources of the package: what
docs/from-mindspore.md must explain. Nothing of the package runs: it need not be installable here.

  mindspore_signatures.py FOLDER    FOLDER: the package's folder `mindspore`, as its wheel has it

writes tests/fixtures/mindspore.json, or with --check compares it.
"""
import ast
import re

import package_fixture

# The name in the page: the file, and the function or Class.method in it.
CALLS = {
    "mindspore.amp.auto_mixed_precision": ("train/amp.py", "auto_mixed_precision"),
    "mindspore.amp.custom_mixed_precision": ("train/amp.py", "custom_mixed_precision"),
    "mindspore.amp.build_train_network": ("train/amp.py", "build_train_network"),
    "mindspore.amp.get_white_list": ("train/amp.py", "get_white_list"),
    "mindspore.amp.get_black_list": ("train/amp.py", "get_black_list"),
    "mindspore.amp.all_finite": ("amp.py", "all_finite"),
    "mindspore.amp.StaticLossScaler": ("amp.py", "StaticLossScaler.__init__"),
    "mindspore.amp.DynamicLossScaler": ("amp.py", "DynamicLossScaler.__init__"),
    "mindspore.amp.FixedLossScaleManager": ("train/loss_scale_manager.py", "FixedLossScaleManager.__init__"),
    "mindspore.amp.DynamicLossScaleManager": ("train/loss_scale_manager.py", "DynamicLossScaleManager.__init__"),
    "mindspore.value_and_grad": ("ops/function/grad/grad_func.py", "value_and_grad"),
    "mindspore.jit": ("graph/api.py", "jit"),
    "mindspore.set_context": ("context.py", "set_context"),
    "mindspore.train.Model": ("train/model.py", "Model.__init__"),
    "mindspore.train.Model.train": ("train/model.py", "Model.train"),
    "mindspore.train.Model.eval": ("train/model.py", "Model.eval"),
    "mindspore.train.Model.predict": ("train/model.py", "Model.predict"),
    "mindspore.train.LossMonitor": ("train/callback/_loss_monitor.py", "LossMonitor.__init__"),
    "mindspore.train.TimeMonitor": ("train/callback/_time_monitor.py", "TimeMonitor.__init__"),
    "mindspore.train.ModelCheckpoint": ("train/callback/_checkpoint.py", "ModelCheckpoint.__init__"),
    "mindspore.train.CheckpointConfig": ("train/callback/_checkpoint.py", "CheckpointConfig.__init__"),
    "mindspore.nn.DynamicLossScaleUpdateCell": ("nn/wrap/loss_scale.py", "DynamicLossScaleUpdateCell.__init__"),
    "mindspore.nn.FixedLossScaleUpdateCell": ("nn/wrap/loss_scale.py", "FixedLossScaleUpdateCell.__init__"),
    "mindspore.nn.TrainOneStepWithLossScaleCell": ("nn/wrap/loss_scale.py",
                                                   "TrainOneStepWithLossScaleCell.__init__"),
    "mindspore.nn.SoftmaxCrossEntropyWithLogits": ("nn/loss/loss.py", "SoftmaxCrossEntropyWithLogits.__init__"),
}
# Classes of which every method is explained.
METHODS = {
    "mindspore.amp.LossScaler": ("amp.py", ("DynamicLossScaler",)),
    "mindspore.amp.LossScaleManager": ("train/loss_scale_manager.py",
                                       ("FixedLossScaleManager", "DynamicLossScaleManager")),
    "mindspore.train.Model": ("train/model.py", ("Model",)),
    "mindspore.train.Callback": ("train/callback/_callback.py", ("Callback",)),
    "mindspore.train.RunContext": ("train/callback/_callback.py", ("RunContext",)),
}
# What mindspore.nn gives of this folder and of these files.
OPTIMIZERS = "nn/optim"
RATES = ("nn/learning_rate_schedule.py", "nn/dynamic_lr.py")
LISTS = ("AMP_WHITE_LIST", "AMP_BLACK_LIST", "AMP_AUTO_WHITE_LIST", "AMP_AUTO_BLACK_LIST")


class Package:
    """The parsed files of the package."""

    def __init__(self, folder):
        self.folder = folder
        self.trees = {}

    def tree(self, name):
        if name not in self.trees:
            self.trees[name] = ast.parse((self.folder / name).read_text(encoding="utf-8"))
        return self.trees[name]

    def find(self, name, path):
        at = self.tree(name)
        for part in path.split("."):
            at = next(node for node in at.body if getattr(node, "name", None) == part)
        return at


def keywords(function):
    """What stands behind **: the names that a decorator lists, or those that the function compares with."""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and decorator.keywords:
            return [keyword.arg for keyword in decorator.keywords]
    return []


def arguments(function):
    a = function.args
    names = [arg.arg for arg in a.posonlyargs + a.args + a.kwonlyargs if arg.arg not in ("self", "params")]
    if a.vararg:
        names.append("*" + a.vararg.arg)
    if a.kwarg:
        names += keywords(function) or ["**" + a.kwarg.arg]
    return names


def checked_keywords(package, name, path):
    """The names that a function takes behind **, where another one checks them: `if arg not in [...]`."""
    for node in ast.walk(package.find(name, path)):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.NotIn):
            return [element.value for element in node.comparators[0].elts]
    raise LookupError(path)


def methods(package, name, classes):
    found = set()
    for one in classes:
        for node in package.find(name, one).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                found.add(node.name)
    return sorted(found)


def lists(package):
    found = {}
    for node in package.tree("train/amp.py").body:
        if isinstance(node, ast.Assign) and node.targets[0].id in LISTS:
            found[node.targets[0].id] = [ast.unparse(element) for element in node.value.elts]
    return found


def levels(package):
    """Of each level what build_train_network takes where nothing is said."""
    for node in package.tree("train/amp.py").body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_config_level":
            return {level.value: {key.value: ast.unparse(value) for key, value in zip(row.keys, row.values)}
                    for level, row in zip(node.value.keys, node.value.values)}
    raise LookupError("_config_level")


def metrics(package):
    for node in package.tree("train/metrics/__init__.py").body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__factory__":
            return sorted(key.value for key in node.value.keys)
    raise LookupError("__factory__")


def names_given(package, name):
    """What a file has in its __all__."""
    for node in package.tree(name).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return [element.value for element in node.value.elts]
    raise LookupError(name)


def call_of(package, name, one):
    """The function of that name, or the __init__ of the class; None where it has none of its own."""
    node = package.find(name, one)
    if isinstance(node, ast.FunctionDef):
        return node
    return next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)


def optimizers(package):
    """Of each that mindspore.nn gives what it takes, but of the class that they are derived from."""
    files = {}
    for node in package.tree(OPTIMIZERS + "/__init__.py").body:
        if isinstance(node, ast.ImportFrom) and node.module.startswith("mindspore.nn.optim."):
            file = node.module.removeprefix("mindspore.").replace(".", "/") + ".py"
            files.update({alias.name: file for alias in node.names})
    return {"mindspore.nn." + name: arguments(call_of(package, file, name))
            for name, file in sorted(files.items()) if name != "Optimizer"}


def rates(package):
    """Functions and classes of learning rates."""
    calls = {name: call_of(package, file, name) for file in RATES for name in names_given(package, file)}
    return {"mindspore.nn." + name: arguments(call) for name, call in calls.items() if call}


def build(folder):
    package = Package(folder)
    version = re.search(r"__version__ = ['\"](.+?)['\"]", (folder / "version.py").read_text())
    calls = {name: arguments(package.find(*place)) for name, place in CALLS.items()}
    for name, place in (("mindspore.amp.build_train_network", ("train/amp.py", "_check_kwargs")),
                        ("mindspore.train.Model", ("train/model.py", "Model._check_kwargs"))):
        calls[name] = [a for a in calls[name] if a != "**kwargs"] + checked_keywords(package, *place)
    return {"mindspore": version.group(1), "calls": calls,
            "optimizers": optimizers(package), "rates": rates(package),
            "methods": {name: methods(package, *place) for name, place in METHODS.items()},
            "lists": lists(package), "levels": levels(package), "metrics": metrics(package)}


if __name__ == "__main__":
    package_fixture.main("mindspore", build, __doc__)
