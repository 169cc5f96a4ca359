"""Fifty steps of the optimizers that torch.optim lacks, or has in another arithmetic, by the equations of their
papers, in float64 with NumPy.

Every case starts from the same parameters and sees the same gradients (`start.*`, `grad.*` with the step as first
dimension, float32); `CASE.p.*` holds the parameters behind the last step and `CASE.STATE.*` what the rule keeps of
them, under Aloft's names; options have the keys of recipes.

Some rules decide: by a sign, by an angle. No decision of these cases is closer than SURE to its limit, as a share of
what is decided on, so that rounding to fp32 decides none otherwise.
"""
import numpy as np

from families import Tensors
from families.optimizer_course import STEPS, draw

SHAPES = {"a": (5, 7), "b": (33,), "c": (8, 3), "d": (3, 2, 2), "zero": (6,)}
SURE = 2e-5


def norm(x):
    return np.sqrt(np.sum(np.square(x)))


def is_below(values, limit, scale):
    """Whether the values are below the limit; an error where rounding could say otherwise."""
    values, scale = np.asarray(values), np.asarray(scale)
    near = (np.abs(values - limit) < SURE * scale) & (scale > 0)
    if near.any():
        raise ValueError("a decision is within rounding: draw other gradients")
    return values < limit


def lion(p, g, s, t, o):
    """Chen et al. 2023, algorithm 2."""
    m, (beta1, beta2) = s.setdefault("exp_avg", np.zeros_like(p)), o["betas"]
    c = beta1 * m + (1 - beta1) * g
    is_below(c, 0, np.abs(beta1 * m) + np.abs((1 - beta1) * g))
    s["exp_avg"] = beta2 * m + (1 - beta2) * g
    return p - o["lr"] * (np.sign(c) + o["weight_decay"] * p)


def adam_moments(p, g, s, o):
    beta1, beta2 = o["betas"]
    m, v = (s.setdefault(k, np.zeros_like(p)) for k in ("exp_avg", "exp_avg_sq"))
    s["exp_avg"] = beta1 * m + (1 - beta1) * g
    s["exp_avg_sq"] = beta2 * v + (1 - beta2) * g ** 2
    return s["exp_avg"], s["exp_avg_sq"]


def lamb(p, g, s, t, o):
    """You et al. 2019, algorithm 2, with phi(z) = z; 1 where a norm is 0."""
    m, v = adam_moments(p, g, s, o)
    r = (m / (1 - o["betas"][0] ** t)) / (np.sqrt(v / (1 - o["betas"][1] ** t)) + o["eps"])
    direction = r + o["weight_decay"] * p
    ratio = norm(p) / norm(direction) if norm(p) and norm(direction) else 1
    return p - o["lr"] * ratio * direction


def fused_lamb(p, g, s, t, o):
    """NVIDIA's FusedLAMB with its own modes, from what apex's documentation and its kernel's names say of them: decay
    in the gradient (adam_w_mode false), moments as they are (bias_correction false), a fading sum of gradients
    (grad_averaging false), and no rate by the norm for what does not decay (use_nvlamb false)."""
    (beta1, beta2), decay = o["betas"], o["weight_decay"]
    m, v = (s.setdefault(k, np.zeros_like(p)) for k in ("exp_avg", "exp_avg_sq"))
    if not o["adam_w_mode"]:
        g = g + decay * p
    m = s["exp_avg"] = beta1 * m + ((1 - beta1) if o["grad_averaging"] else 1) * g
    v = s["exp_avg_sq"] = beta2 * v + (1 - beta2) * g ** 2
    if o["bias_correction"]:
        m, v = m / (1 - beta1 ** t), v / (1 - beta2 ** t)
    direction = m / (np.sqrt(v) + o["eps"]) + (decay * p if o["adam_w_mode"] else 0)
    by_norm = (o["use_nvlamb"] or decay != 0) and norm(p) and norm(direction)
    return p - o["lr"] * (norm(p) / norm(direction) if by_norm else 1) * direction


def lars(p, g, s, t, o):
    """You, Gitman and Ginsburg 2017, algorithm 1; eps is added to the divisor; 1 where a norm is 0."""
    v = s.setdefault("momentum_buffer", np.zeros_like(p))
    local = o["trust"] * norm(p) / (norm(g) + o["weight_decay"] * norm(p) + o["eps"]) if norm(p) and norm(g) else 1
    s["momentum_buffer"] = o["momentum"] * v + o["lr"] * local * (g + o["weight_decay"] * p)
    return p - s["momentum_buffer"]


def bert_adam(p, g, s, t, o):
    """The first BERT trainings of NVIDIA and Hugging Face: clip_grad_norm_ of every tensor, no corrections."""
    if o["max_grad_norm"]:
        g = g * min(1, o["max_grad_norm"] / (norm(g) + 1e-6))
    m, v = adam_moments(p, g, s, o)
    return p - o["lr"] * (m / (np.sqrt(v) + o["eps"]) + o["weight_decay"] * p)


def novograd(p, g, s, t, o):
    """Ginsburg et al. 2019, algorithm 1: v_1 = |g_1|^2 and m_1 = g_1 / |g_1| + d w."""
    size = norm(g) ** 2
    v = size if t == 1 else o["betas"][1] * s["norm_exp_avg_sq"] + (1 - o["betas"][1]) * size
    own = g / (np.sqrt(v) + o["eps"]) + o["weight_decay"] * p
    s["exp_avg"] = own if t == 1 else o["betas"][0] * s["exp_avg"] + own
    s["norm_exp_avg_sq"] = np.asarray(v)
    return p - o["lr"] * s["exp_avg"]


def fused_novograd(p, g, s, t, o):
    """NVIDIA's FusedNovoGrad with its own modes: it keeps the norm, the first step's or 0 before it, of which the
    squares are averaged; where regularisation is beside the momentum the newest norm divides that."""
    beta1, beta2 = o["betas"]
    before = s["#kept"] if t > 1 else 0.0 if o["init_zero"] else norm(g)
    kept = s["#kept"] = np.sqrt(beta2 * before ** 2 + (1 - beta2) * norm(g) ** 2)
    s["norm_exp_avg_sq"] = np.asarray(kept ** 2)
    m_share, v_share = (1 - beta1 ** t, np.sqrt(1 - beta2 ** t)) if o["bias_correction"] else (1, 1)
    size = kept / v_share + o["eps"]
    fresh = (1 - beta1) if o["grad_averaging"] else 1
    decay = o["weight_decay"] * p
    own = g / size + decay if o["reg_inside_moment"] else g
    m = s["exp_avg"] = beta1 * s.setdefault("exp_avg", np.zeros_like(p)) + fresh * own
    m = m / m_share
    return p - o["lr"] * (m if o["reg_inside_moment"] else m / size + decay)


def adamp(p, g, s, t, o):
    """Heo et al. 2020, algorithm 2 and equation 12; eps in norms, and rows before the whole, as in their program."""
    m, v = adam_moments(p, g, s, o)
    ahead = o["betas"][0] * m + (1 - o["betas"][0]) * g if o["nesterov"] else m
    u = ahead / (np.sqrt(v / (1 - o["betas"][1] ** t)) + o["eps"])
    share, taken = 1, "none"
    if p.ndim > 1:
        for view, name in ((p.shape[0], "rows"), (1, "whole")):
            w, d = p.reshape(view, -1), g.reshape(view, -1)
            lengths = [np.linalg.norm(x, axis=1) + o["eps"] for x in (w, d)]
            cosine = np.abs((w * d).sum(1)) / lengths[0] / lengths[1]
            if is_below(cosine.max(), o["delta"] / np.sqrt(w.shape[1]), 1):
                unit = w / lengths[0][:, None]
                step = u.reshape(view, -1)
                u = (step - unit * (unit * step).sum(1, keepdims=True)).reshape(p.shape)
                share, taken = o["decay_ratio"], name
                break
        s["#" + taken] = s.get("#" + taken, 0) + 1  # how often: no state
    return (1 - o["lr"] * o["weight_decay"] * share) * p - o["lr"] / (1 - o["betas"][0] ** t) * u


def muon(p, g, s, t, o):
    """Jordan et al. 2024, with the damped momentum of torch.optim.Muon; `match_adamw`: Liu et al. 2025, equation 4. What
    is no matrix: AdamW, Loshchilov and Hutter 2017."""
    if p.ndim != 2 or s["name"] in o["rest"]:
        lr = o["lr"] * o["rest_rate"]
        m, v = adam_moments(p, g, s, o)
        step = (m / (1 - o["betas"][0] ** t)) / (np.sqrt(v / (1 - o["betas"][1] ** t)) + o["eps"])
        return p - lr * (step + o["weight_decay"] * p)
    m = s.setdefault("exp_avg", np.zeros_like(p))
    m = s["exp_avg"] = o["momentum"] * m + (1 - o["momentum"]) * g
    u = (1 - o["momentum"]) * g + o["momentum"] * m if o["nesterov"] else m
    height, width = p.shape
    # The quintic of five iterations acts on singular values alone: x -> 3.4445 x - 4.775 x^3 + 2.0315 x^5.
    left, sizes, right = np.linalg.svd(u, full_matrices=False)
    x = sizes / max(norm(u), 1e-7)
    for _ in range(5):
        x = 3.4445 * x - 4.7750 * x ** 3 + 2.0315 * x ** 5
    size = 0.2 * max(height, width) ** 0.5 if o["match_adamw"] else max(1, height / width) ** 0.5
    return p - o["lr"] * (size * (left * x) @ right + o["weight_decay"] * p)


def rmsprop(p, g, s, t, o):
    """tf.compat.v1.train.RMSPropOptimizer's documentation: mean squares begin at 1; weight decay is L2."""
    g = g + o["weight_decay"] * p
    square = s["square_avg"] = o["alpha"] * s.get("square_avg", 1.0) + (1 - o["alpha"]) * g ** 2
    if o["centered"]:
        mean = s["grad_avg"] = o["alpha"] * s.get("grad_avg", 0.0) + (1 - o["alpha"]) * g
        square = square - mean ** 2
    step = o["lr"] * g / np.sqrt(square + o["eps"])
    if o["momentum"]:
        step = s["momentum_buffer"] = o["momentum"] * s.get("momentum_buffer", 0.0) + step
    return p - step


RULES = {"lion": lion, "lamb": lamb, "fused_lamb": fused_lamb, "lars": lars, "bert_adam": bert_adam,
         "novograd": novograd, "fused_novograd": fused_novograd, "adamp": adamp, "muon": muon, "rmsprop": rmsprop}

LR = {"lr": 0.015625, "weight_decay": 0.125, "maximize": False}
ADAM = {**LR, "betas": (0.875, 0.96875), "eps": 1e-6}
MUON = {**ADAM, "momentum": 0.9375, "nesterov": True, "match_adamw": False, "rest_rate": 0.5, "rest": []}
ADAMP = {**ADAM, "delta": 0.5, "decay_ratio": 0.125, "nesterov": False}
TF = {**LR, "alpha": 0.9375, "eps": 0.0009765625, "momentum": 0.0, "centered": False, "tensorflow": True}
LAMB = {**ADAM, "adam_w_mode": True, "bias_correction": True, "grad_averaging": True, "use_nvlamb": False}
NOVOGRAD = {**ADAM, "eps": 1e-8, "reg_inside_moment": False, "bias_correction": True, "grad_averaging": True,
            "init_zero": False}
# name: rule (of a kind of its name, or of NVIDIA's form of it), options
CASES = {
    "lion": ("lion", {**LR, "betas": (0.875, 0.96875)}),
    "lion-maximize": ("lion", {**LR, "betas": (0.9375, 0.75), "maximize": True}),
    "lamb": ("lamb", ADAM),
    "lamb-plain": ("lamb", {**ADAM, "betas": (0.75, 0.96875), "weight_decay": 0.0, "maximize": True}),
    "lamb-fused": ("fused_lamb", LAMB),
    "lamb-fused-plain": ("fused_lamb", {**LAMB, "weight_decay": 0.0}),
    "lamb-fused-l2": ("fused_lamb", {**LAMB, "adam_w_mode": False}),
    "lamb-fused-sums": ("fused_lamb", {**LAMB, "bias_correction": False, "grad_averaging": False,
                                       "use_nvlamb": True}),
    "lars": ("lars", {**LR, "lr": 0.5, "momentum": 0.875, "trust": 0.015625, "eps": 1e-8}),
    "lars-plain": ("lars", {**LR, "lr": 0.25, "momentum": 0.5, "trust": 0.0625, "eps": 1e-8,
                            "weight_decay": 0.0, "maximize": True}),
    "bert_adam": ("bert_adam", {**ADAM, "max_grad_norm": 1.0}),
    "bert_adam-unclipped": ("bert_adam", {**ADAM, "max_grad_norm": 0.0, "maximize": True}),
    "novograd": ("novograd", {**ADAM, "eps": 1e-8}),
    "novograd-maximize": ("novograd", {**ADAM, "betas": (0.5, 0.5), "maximize": True}),
    "novograd-fused": ("fused_novograd", NOVOGRAD),
    "novograd-fused-inside": ("fused_novograd", {**NOVOGRAD, "reg_inside_moment": True}),
    "novograd-fused-zero": ("fused_novograd", {**NOVOGRAD, "init_zero": True}),
    "novograd-fused-sums": ("fused_novograd", {**NOVOGRAD, "bias_correction": False, "grad_averaging": False,
                                               "init_zero": True}),
    "adamp": ("adamp", ADAMP),
    "adamp-wide": ("adamp", {**ADAMP, "delta": 2.0, "maximize": True}),
    "adamp-nesterov": ("adamp", {**ADAMP, "delta": 1.0, "nesterov": True}),
    "muon": ("muon", MUON),
    "muon-match": ("muon", {**MUON, "momentum": 0.875, "nesterov": False, "match_adamw": True,
                            "maximize": True}),
    "muon-rest": ("muon", {**MUON, "rest": ["c"]}),
    "rmsprop-tf": ("rmsprop", TF),
    "rmsprop-tf-momentum": ("rmsprop", {**TF, "momentum": 0.875}),
    "rmsprop-tf-centered": ("rmsprop", {**TF, "centered": True, "maximize": True}),
    "rmsprop-tf-both": ("rmsprop", {**TF, "alpha": 0.875, "momentum": 0.5, "centered": True}),
}


def trajectory(rule, options, start, grad):
    p = {n: v.astype(np.float64) for n, v in start.items()}
    states = {n: {"name": n} for n in p}
    for t in range(1, STEPS + 1):
        seen = {}
        for n in p:
            g = grad[n][t - 1].astype(np.float64) * (-1 if options["maximize"] else 1)
            p[n] = rule(p[n], g, states[n], t, options)
            seen[f"p.{n}"] = p[n]
            seen |= {f"{k}.{n}": v for k, v in states[n].items() if isinstance(v, np.ndarray)}
    taken = {k for s in states.values() for k in s if k.startswith("#") and k != "#kept"}
    return seen, taken


def build():
    start, grad = draw(23, SHAPES, at_zero=("zero",))
    arrays = {f"start.{n}": v for n, v in start.items()}
    arrays |= {f"grad.{n}": v for n, v in grad.items()}
    cases, taken = [], set()
    for name, (kind, options) in CASES.items():
        seen, ways = trajectory(RULES[kind], options, start, grad)
        taken |= ways
        arrays |= {f"{name}.{n}": v for n, v in seen.items()}
        cases.append({"name": name, "kind": kind.removeprefix("fused_"), "options": dict(options)})
    if taken != {"#rows", "#whole", "#none"}:
        raise ValueError(f"steps of AdamP lose {taken}")
    return {
        "optimizer_papers.safetensors": Tensors(arrays),
        "optimizer_papers.json": {"steps": STEPS, "parameters": list(SHAPES), "cases": cases},
    }
