"""The arguments that calls of PyTorch take, as the installed package says: what the pages for its users must explain."""
import inspect

import torch
from torch.optim import lr_scheduler, swa_utils

CALLS = {
    "torch.amp.GradScaler": torch.amp.GradScaler.__init__,
    "torch.amp.GradScaler.step": torch.amp.GradScaler.step,
    "torch.amp.GradScaler.update": torch.amp.GradScaler.update,
    "torch.autocast": torch.autocast.__init__,
    "torch.amp.custom_fwd": torch.amp.custom_fwd,
    "torch.amp.custom_bwd": torch.amp.custom_bwd,
    "torch.autograd.grad": torch.autograd.grad,
    "torch.nn.utils.clip_grad_norm_": torch.nn.utils.clip_grad_norm_,
    "torch.nn.utils.clip_grad_value_": torch.nn.utils.clip_grad_value_,
}
OPTIMIZERS = ("SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Adagrad", "Adadelta", "RMSprop", "Rprop",
              "Adafactor", "Muon")


def arguments(call):
    names = [name for name in inspect.signature(call).parameters if name not in ("self", "args", "kwargs", "params")]
    return names


def given(module):
    """Of what a module gives, but for what its classes are derived from."""
    calls = {name: getattr(module, name) for name in module.__all__ if name != "LRScheduler"}
    return {f"{module.__name__}.{name}": arguments(call.__init__ if inspect.isclass(call) else call)
            for name, call in calls.items()}


def build():
    calls = {name: arguments(call) for name, call in CALLS.items()}
    for name in OPTIMIZERS:
        calls["torch.optim." + name] = arguments(getattr(torch.optim, name).__init__)
    methods = [name for name, value in vars(torch.amp.GradScaler).items()
               if not name.startswith("_") and callable(value)]
    return {"signatures.json": {"torch": torch.__version__.split("+")[0], "calls": calls,
                                "rates and means": given(lr_scheduler) | given(swa_utils),
                                "methods": {"torch.amp.GradScaler": sorted(methods)}}}
