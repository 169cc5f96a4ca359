"""The arguments that calls of PyTorch take, as the installed package says: what the pages for its users must explain."""
import inspect

import torch

CALLS = {
    "torch.amp.GradScaler": torch.amp.GradScaler.__init__,
    "torch.amp.GradScaler.step": torch.amp.GradScaler.step,
    "torch.amp.GradScaler.update": torch.amp.GradScaler.update,
    "torch.autocast": torch.autocast.__init__,
    "torch.amp.custom_fwd": torch.amp.custom_fwd,
    "torch.amp.custom_bwd": torch.amp.custom_bwd,
    "torch.nn.utils.clip_grad_norm_": torch.nn.utils.clip_grad_norm_,
    "torch.nn.utils.clip_grad_value_": torch.nn.utils.clip_grad_value_,
}
OPTIMIZERS = ("SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Adagrad", "Adadelta", "RMSprop", "Rprop",
              "Adafactor", "Muon")


def arguments(call):
    names = [name for name in inspect.signature(call).parameters if name not in ("self", "args", "kwargs", "params")]
    return names


def build():
    calls = {name: arguments(call) for name, call in CALLS.items()}
    for name in OPTIMIZERS:
        calls["torch.optim." + name] = arguments(getattr(torch.optim, name).__init__)
    methods = [name for name, value in vars(torch.amp.GradScaler).items()
               if not name.startswith("_") and callable(value)]
    return {"signatures.json": {"torch": torch.__version__.split("+")[0], "calls": calls,
                                "methods": {"torch.amp.GradScaler": sorted(methods)}}}
