"""Loss scales: torch.amp.GradScaler over two weights with an optimizer each, step by step; the rules of apex and
MindSpore by their definitions."""
import math

import numpy as np
import torch


def run(case):
    """`steps`: what the losses' gradients of a and b are (None: no step), what happens in between."""
    options = case["options"]
    a, b = (torch.nn.Parameter(torch.tensor([1.0, -2.0])) for _ in range(2))
    optimizers = [torch.optim.SGD([w], lr=0.125) for w in (a, b)]
    scaler = torch.amp.GradScaler("cpu", **options)
    out = []
    for i, step in enumerate(case["steps"]):
        if case.get("resumed_at") == i:
            state = scaler.state_dict()
            case["state"] = dict(state)
            scaler = torch.amp.GradScaler("cpu")
            scaler.load_state_dict(state)
        for optimizer in optimizers:
            optimizer.zero_grad()
        norm = None
        for weight, gradient in zip((a, b), step["gradients"]):
            if gradient is not None:
                factor = torch.tensor([float(x) for x in gradient])
                scaler.scale((weight * factor).sum()).backward()
        for weight, optimizer, gradient in zip((a, b), optimizers, step["gradients"]):
            if gradient is None:
                continue
            if "clip" in step:
                scaler.unscale_(optimizer)
                norm = float(torch.nn.utils.clip_grad_norm_([weight], step["clip"]))
            if "cut" in step:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_value_([weight], step["cut"])
            scaler.step(optimizer)
        scaler.update(step.get("new_scale"))
        out.append({"scale": scaler.get_scale(), "a": a.tolist(), "b": b.tolist(),
                    "tracker": scaler.state_dict().get("_growth_tracker", 0),
                    "norm": norm if norm is None or math.isfinite(norm) else None})
    return out


def apex(overflows, loss_scale="dynamic", init=2.0 ** 16, window=2000, least=None, most=2.0 ** 24):
    """apex's LossScaler, from what its documentation and source define (NVIDIA/apex, apex/amp/scaler.py)."""
    scale, clean, out = min(most, init) if loss_scale == "dynamic" else loss_scale, 0, []
    for overflow in overflows:
        if overflow and loss_scale == "dynamic":
            scale = max(least, scale / 2) if least else scale / 2
            clean = 0
        else:
            clean += 1
        if clean == window and loss_scale == "dynamic":
            scale, clean = min(most, scale * 2), 0
        out.append(scale)
    return out


def mindspore_manager(overflows, init=2.0 ** 24, factor=2, window=2000):
    """DynamicLossScaleManager (mindspore/train/loss_scale_manager.py)."""
    scale, last, out = init, 0, []
    for step, overflow in enumerate(overflows, 1):
        if overflow:
            scale, last = max(scale / factor, 1.0), step
        elif (step - last) % window == 0:
            scale *= factor
        out.append(scale)
    return out


def mindspore_scaler(overflows, init, factor, window):
    """DynamicLossScaler (mindspore/amp.py), in fp32."""
    scale, counter, out = np.float32(init), 0, []
    for overflow in overflows:
        if overflow:
            scale = max(np.float32(1), np.float32(scale / np.float32(factor)))
        elif counter == window - 1 and np.isfinite(scale * np.float32(factor)):
            scale = np.float32(scale * np.float32(factor))
        counter = 0 if overflow else (counter + 1) % window
        out.append(float(scale))
    return out


def sequences():
    """Overflows and the scale behind each step, of rules that no installed package can be asked for."""
    rng = np.random.default_rng(7)
    rare, frequent = (rng.random(120) < share for share in (0.02, 0.3))
    out = []
    for name, overflows in (("rare", rare), ("frequent", frequent)):
        o = [bool(x) for x in overflows]
        text = "".join("x" if overflow else "." for overflow in o)
        out += [
            {"system": "apex", "overflows": text, "options": {"window": 20}, "scales": apex(o, window=20)},
            {"system": "apex", "overflows": text, "options": {"window": 5, "least": 128.0, "most": 4096.0},
             "scales": apex(o, window=5, least=128.0, most=4096.0)},
            {"system": "manager", "overflows": text, "options": {"window": 20}, "scales": mindspore_manager(o, window=20)},
            {"system": "manager", "overflows": text, "options": {"init": 64.0, "factor": 4, "window": 3},
             "scales": mindspore_manager(o, 64.0, 4, 3)},
            {"system": "scaler", "overflows": text, "options": {"init": 1024.0, "factor": 2, "window": 50},
             "scales": mindspore_scaler(o, 1024.0, 2, 50)},
            {"system": "scaler", "overflows": text, "options": {"init": 16.0, "factor": 3, "window": 2},
             "scales": mindspore_scaler(o, 16.0, 3, 2)},
        ]
    return out


def build():
    def both(x, y, **more):
        return {"gradients": [x, y], **more}

    small, other, wide = ["0.5", "-0.25"], ["0.125", "1.5"], ["3", "-4"]
    inf, nan, large = ["inf", "0.5"], ["0.25", "nan"], ["1e15", "1"]
    plain = [both(small, other), both(small, inf), both(other, small), both(small, small), both(nan, nan),
             both(small, None), both(None, small), both(other, other), both(inf, None), both(small, small)]
    clipped = [both(wide, small, clip=1.0), both(wide, wide, cut=0.5), both(inf, wide, clip=0.5),
               both(inf, wide, cut=0.5), both(small, small, clip=100.0), both(large, small, clip=2.0)]
    cases = [
        {"name": "defaults", "options": {}, "steps": plain},
        {"name": "quick", "options": {"init_scale": 4.0, "growth_interval": 2}, "steps": plain * 2},
        {"name": "odd", "options": {"init_scale": 3.0, "growth_factor": 1.5, "backoff_factor": 0.3,
                                    "growth_interval": 1}, "steps": plain},
        {"name": "disabled", "options": {"enabled": False}, "steps": [both(small, other), both(other, small)]},
        {"name": "clipped", "options": {"init_scale": 1024.0, "growth_interval": 3}, "steps": clipped * 2},
        {"name": "given", "options": {"growth_interval": 2},
         "steps": [both(small, small), both(small, small, new_scale=8.0), both(small, small),
                   both(inf, small, new_scale=32.0), both(small, small), both(small, small)]},
        {"name": "resumed", "options": {"init_scale": 16.0, "growth_interval": 3}, "steps": plain,
         "resumed_at": 5},
    ]
    for case in cases:
        case["out"] = run(case)
    return {"scaler.json": {"cases": cases, "sequences": sequences()}}
