"""Operators where their formulas break: zeros of both signs, infinities, NaN, subnormal and huge
numbers, ties, empty targets, rows of equal huge logits. Values and gradients by PyTorch.

In float64, and rounded to float32: what lies beyond its range is infinite. Left out is what PyTorch
itself gets wrong (gradients of logsumexp near huge maxima), and mostly what has no right answer
(gradients where the result is NaN already). A case whose attributes say "compute": "bf16" holds numbers that
bf16 holds too; Aloft computes it in bf16.

"terms" is the magnitude of what a result adds up: its rounding errors are relative to that. "row":
the largest magnitude in the result's row.
"""
import itertools

import numpy as np
import torch
import torch.nn.functional as F

from families import Tensors

INF, NAN = float("inf"), float("nan")
POINTS = [0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 2.5, -3.0, 3.0, 6.0, 1e-3,
          -1e-3, 1e-40, -1e-40, 1.2e-38, 1e-20, -1e-20, 1e-8, 9.0, -9.0, 20.5, -20.5, 88.5, 89.5,
          -87.0, -103.0, -104.5, 700.0, -700.0, 1e4, -1e4, 2e19, -2e19, 1e30, -1e30, 3.4e38,
          -3.4e38]
# PyTorch's sign of NaN is 0; Aloft's is NaN, as NumPy's. Softsign's slope there is inf / inf. The
# others lose their tails to 1 - 1, also in float64.
LEFT_OUT = {"abs": [NAN], "sign": [NAN], "softsign": [INF, -INF], "gelu": [-9.0],
            "gelu_tanh": [-9.0], "expm1": [-87.0]}
PAIRED = [0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 1e-40, 1e30]


class Recorder:
    def __init__(self):
        self.arrays, self.cases = {}, []

    def add(self, name, op, attrs, inputs, run, terms=0, length=1, no_grad=(), dy=None):
        """run(*tensors) -> y; gradients are those of <dy, y>, dy all ones where it is not given."""
        tensors, leaves = [], []
        for n, v in inputs.items():
            v = np.asarray(v, np.int64 if n in ("target", "mask") else np.float32)
            t = torch.from_numpy(v.copy())
            if t.is_floating_point():
                t = t.double().requires_grad_(n not in no_grad)
                if n not in no_grad:
                    leaves.append((n, t))
            tensors.append(t)
            self.arrays[f"{name}/in.{n}"] = v
        y = run(*tensors)
        self.arrays[f"{name}/out.y"] = y.detach().float().numpy().copy()
        dy = np.ones(y.shape, np.float32) if dy is None else np.asarray(dy, np.float32)
        self.arrays[f"{name}/dy.y"] = dy
        y.backward(torch.from_numpy(dy).to(y.dtype))
        for n, t in leaves:
            self.arrays[f"{name}/grad.{n}"] = t.grad.float().numpy().copy()
        self.cases.append({"name": name, "op": op, "attrs": attrs, "inputs": list(inputs),
                           "outputs": ["y"], "grads": [n for n, _ in leaves], "direct": True,
                           "terms": terms, "length": length})


def unary(r):
    same = ["neg", "abs", "sign", "square", "sqrt", "rsqrt", "reciprocal", "exp", "expm1", "log",
            "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "erf",
            "floor", "ceil", "round", "relu", "sigmoid"]
    named = {name: getattr(torch, name) for name in same}
    named |= {"relu6": F.relu6, "gelu": F.gelu, "silu": F.silu, "log_sigmoid": F.logsigmoid,
              "softplus": F.softplus, "softsign": F.softsign, "selu": F.selu,
              "hard_sigmoid": F.hardsigmoid, "hard_swish": F.hardswish, "mish": F.mish,
              "gelu_tanh": lambda x: F.gelu(x, approximate="tanh")}
    for name, run in named.items():
        left_out = [repr(p) for p in LEFT_OUT.get(name, [])]
        points = [p for p in POINTS if repr(p) not in left_out]
        r.add(name, name, {}, {"x": points}, run, terms=int(name == "tanh"))
    r.add("elu", "elu", {"alpha": 0.5}, {"x": POINTS}, lambda x: F.elu(x, 0.5))
    r.add("leaky_relu", "leaky_relu", {"alpha": 0.1}, {"x": POINTS},
          lambda x: F.leaky_relu(x, 0.1))
    r.add("clamp", "clamp", {"low": -0.5, "high": 2.0}, {"x": POINTS},
          lambda x: torch.clamp(x, -0.5, 2.0))


def binary(r):
    a, b = (list(v) for v in zip(*itertools.product(PAIRED, PAIRED)))
    for name, run in {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div,
                      "maximum": torch.maximum, "minimum": torch.minimum,
                      "squared_difference": lambda a, b: (a - b) ** 2}.items():
        r.add(name, name, {}, {"a": a, "b": b}, run)
    # What the others are squared or divided by leaves float32's range.
    usual = [(x, y) for x, y in zip(a, b) if {x, y}.isdisjoint({1e-40, 1e30})]
    for name, run in {"atan2": torch.atan2, "pow": torch.pow, "mod": torch.fmod,
                      "remainder": torch.remainder}.items():
        x, y = (list(v) for v in zip(*usual))
        r.add(name, name, {}, {"a": x, "b": y}, run)
    mask = np.arange(len(a)) % 3 == 0
    r.add("where", "where", {}, {"mask": mask, "a": a, "b": b},
          lambda m, a, b: torch.where(m != 0, a, b))


# Rows that a softmax, a sum or an extremum goes over.
ROWS = [[1, 2, 3, 4, 5], [0, 0, 0, 0, 0], [-1e30] * 5, [1e30] * 5, [3e38, 3e38, 1, 0, -3e38],
        [-1e30, -1e30, 0, 0, 1], [1e6, 1e6 + 0.5, 1e6 - 1, 1e6 + 2, 1e6], [1e4, 1e4, 9999, 9e3, 0],
        [-1e6, -1e6 + 0.5, -1e6, -1e6 + 2, -1e6], [INF, 0, 1, 2, 3], [INF, INF, 0, 0, 0],
        [-INF, 0, 1, 2, 3], [-INF] * 5, [NAN, 0, 1, 2, 3], [0, NAN, INF, -INF, 1],
        [1e-40, 2e-40, 0, -0.0, 3e-40], [2, 2, 2, 2, 1], [0, 2, 3, 4, 5], [0, 0, 3, 4, 5]]
DY = [1, -0.5, 2, 0.25, -1.5]


def shifted_logsumexp(x):
    """torch.logsumexp's gradient is exp(x - y) with a rounded y: 1 for each of five equal 1e30."""
    top = x.amax(-1, keepdim=True).detach()
    top = torch.where(torch.isfinite(top), top, 0)
    return torch.logsumexp(x - top, -1) + top.squeeze(-1)


def rows(r):
    def each(name, run, rows=ROWS, dy=None, terms="row", op=None, **attrs):
        x, dy = np.array(rows, np.float64), None if dy is None else np.array([dy] * len(rows))
        if attrs.get("axis") == 0:
            x, dy = x.T, dy.T
        r.add(name, op or name, attrs or {"axes": [-1]}, {"x": x}, run, terms, x.shape[-1], dy=dy)

    each("softmax", lambda x: F.softmax(x, -1), dy=DY, axis=-1)
    each("softmax-inner", lambda x: F.softmax(x, 0), dy=DY, axis=0, op="softmax")
    each("log_softmax", lambda x: F.log_softmax(x, -1), dy=DY, axis=-1)
    each("log_softmax-inner", lambda x: F.log_softmax(x, 0), dy=DY, axis=0, op="log_softmax")
    dy = [(i % 11 - 5) / 4 for i in range(4097)]
    each("softmax-wide-far", lambda x: F.softmax(x, -1), WIDE["far"], dy, op="softmax", axis=-1)
    each("log_softmax-wide-far", lambda x: F.log_softmax(x, -1), WIDE["far-below"], dy, op="log_softmax",
         axis=-1)
    each("logsumexp", shifted_logsumexp)
    each("max", lambda x: x.amax(-1))
    each("min", lambda x: x.amin(-1))
    added = [row for row in ROWS if 3e38 not in row]
    each("sum", lambda x: x.sum(-1), added)
    each("mean", lambda x: x.mean(-1), added)
    each("cumsum", lambda x: x.cumsum(-1), added, DY, axis=-1)
    tame = [row for row in ROWS if np.all(np.isfinite(row)) and np.max(np.abs(row)) < 2e4]
    each("prod", lambda x: x.prod(-1), tame)
    each("var", lambda x: x.var(-1), tame)
    each("var-one", lambda x: x.var(-1), [[2.0], [0.0]], op="var")
    each("var-far", lambda x: x.var(-1), FAR, terms=0, op="var")
    each("var-infinite", lambda x: x.var(-1), [[INF, 0, 1, 2, 3], [0, 1, -INF, 2, 3]], op="var")
    tame = [row for row in tame if 1e-40 not in row]
    each("norm", lambda x: x.norm(dim=-1), tame)
    each("norm-1", lambda x: x.norm(p=1, dim=-1), tame, op="norm", axes=[-1], order=1)


# Far from 0: an f32 mean is rounded coarsely beside the distances from it.
FAR = [[1e6 + 0.3] * 33, [33333.7] * 33, [1000.1] * 33, [2.0**100] * 33,
       [1e6 + 0.25 * (i * i % 17) for i in range(33)], [-1e5 + i % 7 for i in range(33)],
       [77.0 + 0.01 * (i % 5) for i in range(33)]]

# Logits, and the class of each row.
LOGITS = [[1e6, 1e6 + 0.5, 1e6 - 1, 1e6 + 2], [1e4, 1e4 + 0.5, 1e4 - 1, 1e4 + 2], [-1e30] * 4,
          [1e30] * 4, [-1e6, -1e6 + 1, -1e6, -1e6], [3e38, -3e38, 0, 1], [0, 0, 0, 0],
          [-INF, 1, 2, 3], [50, -50, 0, 0], [120, -120, 0, 0]]
CLASSES = [1, 1, 2, 0, 0, 0, 3, 2, 0, 1]
# A vocabulary of logits far from 0: multiples of 1/256, which f32 holds exactly there. The logarithm of the
# sum of their exponentials as one f32 is off by 0.0005.
NEAR = np.array([(i * i * 7 + 13 * i) % 1028 / 256 for i in range(4097)])
WIDE = {"far": [1e4 + NEAR], "far-below": [-1e4 + NEAR]}
NOT_FINITE = [[INF, 0, 1, 2], [NAN, 0, 1, 2], [-INF, 0, 1, 2], [-INF] * 4]


def losses(r):
    def cross(name, logits, classes, **attrs):
        attrs = {"ignore_index": -100, "label_smoothing": 0.0, "reduction": "sum"} | attrs
        for op in ("cross_entropy", "linear_cross_entropy"):
            torch_attrs = {k: v for k, v in attrs.items() if k != "compute"}
            inputs = {"x": logits, "target": classes}
            run = lambda x, t: F.cross_entropy(x, t, **torch_attrs)
            if op == "linear_cross_entropy":
                if not np.all(np.isfinite(logits)) or len(logits[0]) > 100:
                    continue  # 0 * inf; an identity of 64 MiB
                inputs = {"x": logits, "w": np.eye(len(logits[0])), "target": classes}
                run = lambda x, w, t: F.cross_entropy(x @ w.T, t, **torch_attrs)
            r.add(name.replace("cross_entropy", op), op, attrs, inputs, run, no_grad=("w",))

    for i, (row, c) in enumerate(zip(LOGITS, CLASSES)):
        cross(f"cross_entropy-{i}", [row], [c])
        if np.all(np.isfinite(row)):
            cross(f"cross_entropy-smooth-{i}", [row], [c], label_smoothing=0.1)
    cross("cross_entropy-wide-far", WIDE["far"], [4096])
    # The same logits as products: 100 * 100 + 1 * NEAR.
    r.add("linear_cross_entropy-wide-far", "linear_cross_entropy",
          {"ignore_index": -100, "label_smoothing": 0.0, "reduction": "sum"},
          {"x": [[100.0, 1.0]], "w": np.stack([np.full(4097, 100.0), NEAR], 1), "target": [4096]},
          lambda x, w, t: F.cross_entropy(x @ w.T, t, reduction="sum"), no_grad=("x",))
    for i, row in enumerate(NOT_FINITE):
        cross(f"cross_entropy-not-finite-{i}", [row, [0, 1, 2, 3]], [0, 1])
    cross("cross_entropy-all-ignored", [[1, 2, 3, 4]], [-100])
    cross("cross_entropy-bf16", [[2.0**20, 2.0**20, 2.0**20 - 8192, 0],
                                 [-1e30, -1e30, -1e30, -1e30], [1024, 1020, 1016, 1024]], [0, 1, 1],
          compute="bf16")
    for name, run in {"mse_loss": F.mse_loss, "l1_loss": F.l1_loss,
                      "bce_with_logits": F.binary_cross_entropy_with_logits}.items():
        target = [0.0, 1.0, 0.5] if name == "bce_with_logits" else [0.0, 1.0, -3.0]
        x, y = (list(v) for v in zip(*itertools.product(POINTS, target)))
        for i in range(0, len(x), 3):
            if name == "l1_loss" and x[i] != x[i]:
                continue  # its gradient is a sign
            r.add(f"{name}-{i // 3}", name, {"reduction": "sum"},
                  {"x": x[i:i + 3], "y": y[i:i + 3]}, lambda a, b, f=run: f(a, b, reduction="sum"),
                  terms=1, no_grad=("y",))
    r.add("huber_loss", "huber_loss", {"delta": 1.0, "reduction": "sum"},
          {"x": [0.0, 1.0, -1.0, 2.0, 1e30, 1e-30], "y": [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]},
          lambda a, b: F.huber_loss(a, b, reduction="sum"))
    for i, d in enumerate((INF, -INF)):
        r.add(f"huber_loss-infinite-{i}", "huber_loss", {"delta": 2.0, "reduction": "sum"},
              {"x": [d, 1.0], "y": [0.0, 1.5]}, lambda a, b: F.huber_loss(a, b, delta=2.0,
                                                                         reduction="sum"))
    # Of -inf against 1 PyTorch's loss is NaN, 0 * inf; it is infinite.
    r.add("bce_with_logits-infinite", "bce_with_logits", {"reduction": "sum"},
          {"x": [INF, 0.0, -0.0], "y": [0.0, 0.25, 1.0]},
          lambda a, b: F.binary_cross_entropy_with_logits(a, b, reduction="sum"))
    r.add("kl_div", "kl_div", {"reduction": "sum"},
          {"x": [[0.0, -1.0, -200.0, -2.0]], "y": [[0.0, 1.0, 0.0, 0.5]]},
          lambda a, b: F.kl_div(a, b, reduction="sum"), no_grad=("y",))


def norms(r):
    x = [[2, 2, 2, 2], [0, 0, 0, 0], [1e10, -1e10, 1e10, 3e10], [1e6, 1e6 + 1, 1e6 + 2, 1e6],
         [1e-20, -1e-20, 3e-20, 0], [INF, 0, 1, 2], [NAN, 0, 1, 2], [1, 2, 3, 4]]
    dy = [[1, -0.5, 2, 0.25]] * len(x)
    one, zero = [1.0, 2.0, 0.5, -1.0], [0.0, 1.0, 0.0, 0.0]
    for name, rows in (("layer_norm", x), ("layer_norm-huge", [[1e18, -1e18, 1e18, 3e18]])):
        r.add(name, "layer_norm", {"eps": 1e-5}, {"x": rows, "w": one, "b": zero},
              lambda x, w, b: F.layer_norm(x, (4,), w, b, 1e-5), "row", 4,
              dy=dy[:len(rows)], no_grad=("w", "b"))
        r.add(name.replace("layer", "rms"), "rms_norm", {"eps": 1e-6}, {"x": rows, "w": one},
              lambda x, w: F.rms_norm(x, (4,), w, 1e-6), "row", 4, dy=dy[:len(rows)],
              no_grad=("w",))
    far, ones = np.array(FAR, np.float32), np.ones(len(FAR))
    dy = np.array([[(i * 5 + n) % 11 - 5 for i in range(33)] for n in range(len(FAR))]) / 4
    r.add("layer_norm-far", "layer_norm", {"eps": 1e-5}, {"x": far},
          lambda x: F.layer_norm(x, (33,), eps=1e-5), 20, 33, dy=dy)
    far, dy, ones = far[3:], dy[3:], ones[3:]  # its own rounding shows in the others
    r.add("group_norm-far", "group_norm", {"groups": 4, "eps": 1e-5},
          {"x": far[None], "w": ones, "b": 0 * ones},
          lambda x, w, b: F.group_norm(x, 4, w, b, 1e-5), 20, 33, dy=dy[None])
    r.add("batch_norm-far", "batch_norm", {"training": True, "momentum": 0.1, "eps": 1e-5},
          {"x": far[None], "w": ones, "b": 0 * ones, "m": 0 * ones, "v": ones},
          lambda x, w, b, m, v: F.batch_norm(x, m.detach(), v.detach(), w, b, True, 0.1, 1e-5),
          20, 33, dy=dy[None], no_grad=("m", "v"))


def attention(r):
    q = np.array([[[[1, 0]], [[2, 1]], [[-1, 1]]]], np.float32)  # [B, T, H, D]
    for name, scale, causal in [("attention-flat", 0.0, False), ("attention-far", 1e3, False),
                                ("attention-far-causal", 1e3, True), ("attention", 1.0, True)]:
        k = np.array([[[[1, 1]], [[3, 1]], [[3, 1]]]], np.float32) * scale
        v = np.array([[[[1, 2]], [[3, -1]], [[0.5, 1]]]], np.float32)
        # Weights are exponentials of rounded scores.
        r.add(name, "attention", {"causal": causal}, {"q": q, "k": k, "v": v},
              lambda q, k, v, c=causal: F.scaled_dot_product_attention(
                  q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=c
              ).transpose(1, 2), max(3.0, 3 * scale), no_grad=("q",) if scale > 10 else ())


def pools(r):
    x = [[[[NAN, 0, 1, 2], [3, 4, 5, 6], [-INF, -INF, INF, 1], [-INF, -INF, 2, 2]]]]
    attrs = {"kernel": [2, 2], "stride": [2, 2]}
    r.add("max_pool2d", "max_pool2d", attrs, {"x": x}, lambda x: F.max_pool2d(x, 2, 2))
    r.add("avg_pool2d", "avg_pool2d", attrs, {"x": x}, lambda x: F.avg_pool2d(x, 2, 2))


def build():
    r = Recorder()
    for family in (unary, binary, rows, losses, norms, attention, pools):
        family(r)
    return {"points.safetensors": Tensors(r.arrays), "points.json": {"cases": r.cases}}
