"""The arguments that calls of PyTorch take, as the installed package says: what the pages for its users must explain.

No call is named here but `torch.autograd.grad`, whose module gives much else: what a module gives is what its
`__all__` lists, so that one that a new version adds comes by itself and wants a row on the page."""
import inspect

import torch
from torch.nn.utils import clip_grad
from torch.optim import lr_scheduler, swa_utils


def arguments(call):
    of = call.__init__ if inspect.isclass(call) else call
    return [name for name in inspect.signature(of).parameters if name not in ("self", "args", "kwargs", "params")]


def given(module, base=None):
    """What the module gives, by name: functions and classes, but for the class that the others are derived from."""
    found = {name: getattr(module, name) for name in module.__all__}
    return {f"{module.__name__}.{name}": call for name, call in found.items()
            if callable(call) and call is not base}


def methods(name, of):
    """Those that its users call."""
    return {f"{name}.{method}": call for method, call in vars(of).items()
            if inspect.isfunction(call) and not method.startswith("_")}


def clipping():
    """What torch.nn.utils gives of the file that clips gradients."""
    return {name: call for name, call in given(torch.nn.utils).items()
            if getattr(call, "__module__", "") == clip_grad.__name__}


def build():
    amp, optim = given(torch.amp), given(torch.optim, torch.optim.Optimizer)
    of_classes = {name: methods(name, of) for name, of in amp.items() if inspect.isclass(of)}
    optimizers = {name: of for name, of in optim.items()
                  if inspect.isclass(of) and issubclass(of, torch.optim.Optimizer)}
    calls = amp | {name: call for of in of_classes.values() for name, call in of.items() if arguments(call)}
    calls |= clipping() | {name: call for name, call in optim.items() if name not in optimizers}
    calls["torch.autograd.grad"] = torch.autograd.grad
    rates = given(lr_scheduler, lr_scheduler.LRScheduler) | given(swa_utils)
    return {"signatures.json": {
        "torch": torch.__version__.split("+")[0],
        "calls": {name: arguments(call) for name, call in calls.items()},
        "optimizers": {name: arguments(call) for name, call in optimizers.items()},
        "rates and means": {name: arguments(call) for name, call in rates.items()},
        "methods": {name: sorted(method.removeprefix(name + ".") for method in of)
                    for name, of in of_classes.items() if of}}}
