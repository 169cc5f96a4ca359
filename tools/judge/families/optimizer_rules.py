"""Fifty steps of every rule of torch.optim on small tensors with given gradients, in float64.

Every case starts from the same parameters and sees the same gradients (`start.*`, `grad.*` with the
step as first dimension, float32); `CASE.p.*` holds the parameters behind the last step and
`CASE.STATE.*` what the rule keeps of them, under torch's names.
"""
import numpy as np
import torch

from families import Tensors
from families.optimizer_course import STEPS, draw

SHAPES = {"a": (5, 7), "b": (33,), "c": (1,)}

DECAY = {"weight_decay": 0.125}
# name: kind, options under torch.optim's names
CASES = {
    "sgd": ("SGD", {"lr": 0.0625, **DECAY}),
    "momentum": ("SGD", {"lr": 0.0625, "momentum": 0.875, "dampening": 0.25, **DECAY}),
    "nesterov": ("SGD", {"lr": 0.0625, "momentum": 0.875, "nesterov": True, "maximize": True}),
    "adam": ("Adam", {"lr": 0.015625, **DECAY}),
    "adam-amsgrad": ("Adam", {"lr": 0.015625, "betas": (0.875, 0.75), "amsgrad": True, **DECAY}),
    "adamw": ("AdamW", {"lr": 0.015625, "betas": (0.875, 0.96875), **DECAY}),
    "adamw-amsgrad": ("AdamW", {"lr": 0.015625, "betas": (0.875, 0.75), "amsgrad": True,
                                "maximize": True, **DECAY}),
    "adamax": ("Adamax", {"lr": 0.015625, "betas": (0.875, 0.75), **DECAY}),
    "nadam": ("NAdam", {"lr": 0.015625, **DECAY}),
    "nadam-decoupled": ("NAdam", {"lr": 0.015625, "momentum_decay": 0.125,
                                  "decoupled_weight_decay": True, **DECAY}),
    "radam": ("RAdam", {"lr": 0.015625, **DECAY}),
    "radam-decoupled": ("RAdam", {"lr": 0.015625, "betas": (0.875, 0.9375),
                                  "decoupled_weight_decay": True, **DECAY}),
    "adagrad": ("Adagrad", {"lr": 0.0625, "lr_decay": 0.125, "initial_accumulator_value": 0.5,
                            **DECAY}),
    "adadelta": ("Adadelta", {"lr": 1.0, "rho": 0.875, **DECAY}),
    "rmsprop": ("RMSprop", {"lr": 0.015625, "alpha": 0.9375, **DECAY}),
    "rmsprop-momentum": ("RMSprop", {"lr": 0.015625, "momentum": 0.875, **DECAY}),
    "rmsprop-centered": ("RMSprop", {"lr": 0.015625, "alpha": 0.875, "eps": 0.0009765625,
                                     "centered": True, "maximize": True, **DECAY}),
    "rmsprop-both": ("RMSprop", {"lr": 0.015625, "alpha": 0.875, "eps": 0.0009765625,
                                 "momentum": 0.5, "centered": True}),
    "adafactor": ("Adafactor", {"lr": 0.0625, "eps": (1e-8, 1e-3), **DECAY}),
    "adafactor-clip": ("Adafactor", {"lr": 0.5, "beta2_decay": -0.5, "eps": (1e-8, 0.25), "d": 1.5,
                                     "maximize": True}),
    "rprop": ("Rprop", {"lr": 0.015625, "etas": (0.5, 1.25), "step_sizes": (0.001953125, 0.5)}),
}


def trajectory(kind, options, start, grad):
    parameters = {n: torch.nn.Parameter(torch.from_numpy(v.astype(np.float64)))
                  for n, v in start.items()}
    optimizer = getattr(torch.optim, kind)(list(parameters.values()), foreach=False, **options)
    for step in range(STEPS):
        for n, p in parameters.items():
            p.grad = torch.from_numpy(grad[n][step].astype(np.float64))
        optimizer.step()
    seen = {f"p.{n}": p.detach().numpy() for n, p in parameters.items()}
    for n, p in parameters.items():
        seen |= {f"{k}.{n}": v.numpy() for k, v in optimizer.state[p].items()
                 if torch.is_tensor(v) and k not in ("step", "mu_product")}
    return seen


def build():
    torch.set_default_dtype(torch.float64)  # of the numbers that NAdam keeps beside tensors
    try:
        return build_in_double()
    finally:
        torch.set_default_dtype(torch.float32)


def build_in_double():
    start, grad = draw(22, SHAPES, at_four=("c",))
    arrays = {f"start.{n}": v for n, v in start.items()}
    arrays |= {f"grad.{n}": v for n, v in grad.items()}
    cases = []
    for name, (kind, options) in CASES.items():
        seen = trajectory(kind, options, start, grad)
        arrays |= {f"{name}.{n}": v for n, v in seen.items()}
        cases.append({"name": name, "kind": kind, "options": dict(options)})
    return {
        "optimizer_rules.safetensors": Tensors(arrays),
        "optimizer_rules.json": {"steps": STEPS, "parameters": list(SHAPES), "cases": cases},
    }
