"""Twenty steps of torch.optim on small tensors with given gradients, in float32.

Every case starts from the same parameters and sees the same gradients (`start.*`, `grad.*` with the
step as first dimension); `CASE.*` holds the parameters after every step. The single-tensor
implementation of PyTorch is used (foreach and fused off), whose arithmetic is the documented one.
"""
import numpy as np
import torch

from families import Tensors

STEPS = 20
SHAPES = {"a": (5, 7), "b": (33,), "c": (1,)}  # odd ends for vector loops; one scalar-like tensor

# name: kind, options under torch.optim's names, and optionally clip (max_norm), a schedule and
# groups: parameters with options of their own; the rest have the options of the case
CASES = {
    "sgd": ("SGD", {"lr": 0.1}, {}),
    "sgd-decay": ("SGD", {"lr": 0.1, "weight_decay": 0.05}, {}),
    "sgd-clip": ("SGD", {"lr": 0.1}, {"clip": 1.0}),
    "momentum": ("SGD", {"lr": 0.05, "momentum": 0.9}, {}),
    "momentum-decay": ("SGD", {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.05}, {}),
    "nesterov": ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True}, {}),
    "nesterov-decay": ("SGD", {"lr": 0.05, "momentum": 0.8, "nesterov": True,
                               "weight_decay": 0.02}, {}),
    "adam": ("Adam", {"lr": 1e-2}, {}),
    "adam-betas": ("Adam", {"lr": 1e-2, "betas": (0.8, 0.95)}, {}),
    "adam-eps": ("Adam", {"lr": 1e-2, "eps": 1e-2}, {}),
    "adam-l2": ("Adam", {"lr": 1e-2, "weight_decay": 0.1}, {}),
    "adamw": ("AdamW", {"lr": 1e-2, "weight_decay": 0.01}, {}),
    "adamw-gpt": ("AdamW", {"lr": 1e-2, "betas": (0.9, 0.99), "weight_decay": 0.1}, {}),
    "adamw-eps": ("AdamW", {"lr": 1e-2, "eps": 1e-3, "weight_decay": 0.1}, {}),
    "adamw-clip": ("AdamW", {"lr": 1e-2, "betas": (0.9, 0.95), "weight_decay": 0.1},
                   {"clip": 1.0}),
    "adamw-schedule": ("AdamW", {"lr": 1e-2, "betas": (0.9, 0.95), "weight_decay": 0.1},
                       {"schedule": {"warmup": 5, "total": STEPS, "min_factor": 0.1}}),
    "adamw-groups": ("AdamW", {"lr": 1e-2, "weight_decay": 0.1}, {
        "clip": 1.0, "schedule": {"warmup": 5, "total": STEPS, "min_factor": 0.1},
        "groups": [{"parameters": ["b"], "lr": 2e-3, "weight_decay": 0.3},
                   {"parameters": ["c"], "weight_decay": 0.0}]}),
    "momentum-groups": ("SGD", {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.05}, {
        "groups": [{"parameters": ["a", "c"], "lr": 0.2}]}),
}


def draw():
    rng = np.random.default_rng(21)
    start = {n: rng.normal(0, 1, s).astype(np.float32) for n, s in SHAPES.items()}
    # Scales that drift, so that moments lag behind; norms on both sides of the clipping threshold.
    size = np.exp(np.linspace(-3, 1, STEPS) + rng.normal(0, 0.7, STEPS))
    grad = {}
    for n, s in SHAPES.items():
        steps = [rng.normal(0, 1, s) * size[i] for i in range(STEPS)]
        grad[n] = np.stack(steps).astype(np.float32)
    grad["b"][:, 3] = 0.0   # a weight that never gets a gradient: only decay moves it
    grad["b"][5:9, :] = 0.0  # and steps without any
    return start, grad


def linear_with_warmup(step, warmup, total, min_factor):
    if step < warmup:
        return (step + 1) / warmup
    return 1 - (1 - min_factor) * (step - warmup) / (total - warmup)


def param_groups(parameters, groups):
    """torch's form of the groups, the one with the options of the case first."""
    taken = {n for g in groups for n in g["parameters"]}
    out = [{"params": [p for n, p in parameters.items() if n not in taken]}]
    for g in groups:
        own = {k: v for k, v in g.items() if k != "parameters"}
        out.append({"params": [parameters[n] for n in g["parameters"]], **own})
    return out


def trajectory(kind, options, extra, start, grad):
    parameters = {n: torch.nn.Parameter(torch.from_numpy(v.copy())) for n, v in start.items()}
    options = dict(options, foreach=False, fused=False)
    optimizer = getattr(torch.optim, kind)(
        param_groups(parameters, extra.get("groups", [])), **options)
    rates = [group["lr"] for group in optimizer.param_groups]
    seen = {n: [] for n in start}
    norms = []
    for step in range(STEPS):
        for n, p in parameters.items():
            p.grad = torch.from_numpy(grad[n][step].copy())
        if "clip" in extra:
            norms.append(float(torch.nn.utils.clip_grad_norm_(
                list(parameters.values()), extra["clip"], foreach=False)))
        if "schedule" in extra:
            factor = linear_with_warmup(step, **extra["schedule"])
            for group, rate in zip(optimizer.param_groups, rates):
                group["lr"] = rate * factor
        optimizer.step()
        for n, p in parameters.items():
            seen[n].append(p.detach().numpy().copy())
    return {n: np.stack(v) for n, v in seen.items()}, norms


def build():
    start, grad = draw()
    arrays = {f"start.{n}": v for n, v in start.items()}
    arrays |= {f"grad.{n}": v for n, v in grad.items()}
    cases = []
    for name, (kind, options, extra) in CASES.items():
        seen, norms = trajectory(kind, options, extra, start, grad)
        arrays |= {f"{name}.{n}": v for n, v in seen.items()}
        case = {"name": name, "kind": kind, "options": dict(options), **extra}
        if norms:
            case["grad_norm"] = norms
        cases.append(case)
    return {
        "optimizers.safetensors": Tensors(arrays),
        "optimizers.json": {"steps": STEPS, "parameters": list(SHAPES), "cases": cases},
    }
