"""Learning rates of torch.optim.lr_scheduler, step by step: what the optimizer uses at step i."""
import math

import torch
import transformers


def values(make, steps, base):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=base)
    scheduler = make(optimizer)
    out = []
    for _ in range(steps):
        out.append(float(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        scheduler.step()
    return out


def nanogpt(steps, warmup, base, floor):
    """nanoGPT's get_lr: linear warm-up over (i + 1) / (warmup + 1), then a half cosine to `floor`."""
    out = []
    for i in range(steps):
        if i < warmup:
            out.append(base * (i + 1) / (warmup + 1))
        else:
            ratio = (i - warmup) / (steps - warmup)
            out.append(floor + 0.5 * (1 + math.cos(math.pi * ratio)) * (base - floor))
    return out


def plateau(options, base):
    """ReduceLROnPlateau told of losses that fall, stay and rise: the rate behind each."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=base)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
    losses = [2 + math.cos(i / 4) / (1 + i / 10) + (0.001 * i if i > 30 else 0) for i in range(60)]
    out = []
    for loss in losses:
        scheduler.step(loss)
        out.append(float(optimizer.param_groups[0]["lr"]))
    return losses, out


def inverse_sqrt(steps, warmup, base):
    """transformers' get_inverse_sqrt_schedule, with its usual time scale."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=base)
    scheduler = transformers.get_inverse_sqrt_schedule(optimizer, warmup)
    out = []
    for _ in range(steps):
        out.append(float(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        scheduler.step()
    return out


def build():
    s = torch.optim.lr_scheduler
    cases = [
        {"name": "constant", "torch": "ConstantLR", "base": 0.1, "steps": 20,
         "options": {"factor": 1.0, "total_iters": 0}},
        {"name": "linear", "torch": "LinearLR", "base": 0.1, "steps": 40,
         "options": {"start_factor": 1.0, "end_factor": 0.1, "total_iters": 30}},
        {"name": "cosine", "torch": "CosineAnnealingLR", "base": 0.1, "steps": 40,
         "options": {"T_max": 40, "eta_min": 0.01}},
        {"name": "step", "torch": "StepLR", "base": 0.1, "steps": 35,
         "options": {"step_size": 10, "gamma": 0.5}},
        {"name": "one-cycle", "torch": "OneCycleLR", "base": 0.1, "steps": 40,
         "options": {"max_lr": 0.1, "total_steps": 41, "pct_start": 0.3, "div_factor": 25.0,
                     "final_div_factor": 1e4, "cycle_momentum": False}},
    ]
    cases += [
        {"name": "polynomial", "torch": "PolynomialLR", "base": 0.1, "steps": 40,
         "options": {"total_iters": 30, "power": 2.0}},
        {"name": "exponential", "torch": "ExponentialLR", "base": 0.1, "steps": 40,
         "options": {"gamma": 0.9}},
        {"name": "multi-step", "torch": "MultiStepLR", "base": 0.1, "steps": 40,
         "options": {"milestones": [5, 6, 30], "gamma": 0.5}},
        {"name": "cosine-restarts", "torch": "CosineAnnealingWarmRestarts", "base": 0.1, "steps": 80,
         "options": {"T_0": 5, "T_mult": 2, "eta_min": 0.01}},
        {"name": "cosine-cycles", "torch": "CosineAnnealingWarmRestarts", "base": 0.1, "steps": 40,
         "options": {"T_0": 7, "T_mult": 1, "eta_min": 0.0}},
    ]
    cases += [
        {"name": "linear-rise", "torch": "LinearLR", "base": 0.1, "steps": 20,
         "options": {"start_factor": 0.25, "end_factor": 0.75, "total_iters": 12}},
        {"name": "low-start", "torch": "ConstantLR", "base": 0.1, "steps": 20,
         "options": {"factor": 1 / 3, "total_iters": 5}},
    ]
    cases += [
        {"name": name, "torch": "CyclicLR", "base": 0.1, "steps": 60,
         "options": {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 4, "step_size_down": 9, "mode": mode,
                     "gamma": 0.97, "cycle_momentum": False}}
        for name, mode in (("triangular", "triangular"), ("triangular-2", "triangular2"), ("exp-range", "exp_range"))
    ]
    for case in cases:
        kind = getattr(s, case["torch"])
        case["lr"] = values(lambda o: kind(o, **case["options"]), case["steps"], case["base"])
    for name, make in (
            ("table", lambda o: s.LambdaLR(o, lambda i: 1 / (1 + 0.5 * i))),
            ("multiplied", lambda o: s.MultiplicativeLR(o, lambda i: 1 - 0.5 / (i + 1))),
            ("sequence", lambda o: s.SequentialLR(o, [s.LinearLR(o, 0.25, 1.0, 5), s.CosineAnnealingLR(o, 20),
                                                      s.StepLR(o, 4)], [5, 25])),
            ("product", lambda o: s.ChainedScheduler([s.LinearLR(o, 0.25, 1.0, 5), s.ExponentialLR(o, 0.9)], o))):
        cases.append({"name": name, "torch": make(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)).
                      __class__.__name__, "base": 0.1, "steps": 40, "options": {}, "lr": values(make, 40, 0.1)})
    cases.append({"name": "cosine-warmup", "torch": None, "base": 1e-3, "steps": 60,
                  "options": {"warmup": 10, "floor": 1e-4}, "lr": nanogpt(60, 10, 1e-3, 1e-4)})
    cases.append({"name": "inverse-sqrt", "torch": None, "base": 1e-3, "steps": 60,
                  "options": {"warmup": 10}, "lr": inverse_sqrt(60, 10, 1e-3)})
    for name, options in (("plateau", {"factor": 0.5, "patience": 3}),
                          ("plateau-cooldown", {"factor": 0.1, "patience": 1, "cooldown": 4,
                                                "threshold": 0.05, "min_lr": 1e-3, "eps": 0.0})):
        losses, rates = plateau(options, 0.1)
        cases.append({"name": name, "torch": "ReduceLROnPlateau", "base": 0.1, "steps": 60,
                      "options": options, "losses": losses, "lr": rates})
    return {"schedules.json": {"cases": cases}}
