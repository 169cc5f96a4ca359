"""Operators with many conventions, evaluated by PyTorch in float64: outputs and gradients.

Inputs are float32 numbers, so that every precision starts from the same values. A case named N has
`N/in.X`, `N/out.X`, the cotangent `N/dy.X` that was pulled back, and `N/grad.X` for the inputs
that have a gradient. Attributes in ops.json carry PyTorch's names.
"""
import numpy as np
import torch
import torch.nn.functional as F

from families import Tensors


class Recorder:
    def __init__(self):
        self.rng = np.random.default_rng(41)
        self.arrays, self.cases = {}, []

    def normal(self, *shape, scale=1.0, shift=0.0):
        return (self.rng.normal(shift, scale, shape)).astype(np.float32)

    def integers(self, high, *shape):
        return self.rng.integers(0, high, shape, dtype=np.int64)

    def add(self, name, op, attrs, inputs, run, no_grad=()):
        """run(**double tensors) -> {output name: tensor}; integer outputs get no cotangent."""
        tensors = {}
        for n, v in inputs.items():
            t = torch.from_numpy(v)
            if t.is_floating_point():
                t = t.double().clone()
                t.requires_grad_(n not in no_grad)
            tensors[n] = t
            self.arrays[f"{name}/in.{n}"] = v
        outputs = run(**tensors)
        case = {"name": name, "op": op, "attrs": attrs, "inputs": list(inputs),
                "outputs": list(outputs), "grads": []}
        total = 0.0
        for n, y in outputs.items():
            self.arrays[f"{name}/out.{n}"] = y.detach().numpy().copy()
            if y.requires_grad:
                dy = np.asarray(self.normal(*y.shape), np.float32)
                self.arrays[f"{name}/dy.{n}"] = dy
                total = total + (y * torch.from_numpy(dy).double()).sum()
        if isinstance(total, torch.Tensor):
            total.backward()
            for n, t in tensors.items():
                if t.requires_grad and t.grad is not None:
                    self.arrays[f"{name}/grad.{n}"] = t.grad.numpy().copy()
                    case["grads"].append(n)
        self.cases.append(case)


def convolutions(r):
    def conv2d(name, x, w, bias=True, **attrs):
        inputs = {"x": r.normal(*x), "w": r.normal(*w, scale=0.4)}
        if bias:
            inputs["b"] = r.normal(w[0])
        r.add(name, "conv2d", attrs, inputs,
              lambda x, w, b=None: {"y": F.conv2d(x, w, b, **attrs)})

    conv2d("conv2d-plain", (2, 3, 6, 5), (4, 3, 3, 3))
    conv2d("conv2d-pad-stride", (2, 3, 7, 8), (4, 3, 3, 3), stride=[2, 2], padding=[1, 1])
    conv2d("conv2d-uneven", (1, 2, 9, 7), (3, 2, 2, 3), False, stride=[2, 1], padding=[0, 2])
    conv2d("conv2d-dilated", (1, 2, 9, 9), (3, 2, 3, 3), padding=[2, 2], dilation=[2, 2])
    conv2d("conv2d-groups", (2, 4, 5, 5), (6, 2, 3, 3), padding=[1, 1], groups=2)
    conv2d("conv2d-depthwise", (1, 5, 6, 6), (5, 1, 3, 3), False, padding=[1, 1], groups=5)
    conv2d("conv2d-1x1", (2, 3, 4, 4), (5, 3, 1, 1))
    for name, x, w, attrs in [
            ("conv1d-plain", (2, 3, 11), (4, 3, 3), {}),
            ("conv1d-all", (1, 4, 17), (6, 2, 4),
             {"stride": [2], "padding": [3], "dilation": [2], "groups": 2})]:
        r.add(name, "conv1d", attrs,
              {"x": r.normal(*x), "w": r.normal(*w, scale=0.4), "b": r.normal(w[0])},
              lambda x, w, b, a=attrs: {"y": F.conv1d(x, w, b, **a)})


def transposed_convolutions(r):
    for name, x, w, bias, attrs in [
            ("plain", (2, 3, 4, 3), (3, 4, 3, 3), True, {}),
            ("pad-stride", (2, 3, 4, 5), (3, 2, 4, 4), True, {"stride": [2, 2], "padding": [1, 1]}),
            ("output-padding", (1, 2, 4, 3), (2, 3, 2, 3), False,
             {"stride": [2, 3], "padding": [0, 1], "output_padding": [1, 2]}),
            ("dilated", (1, 2, 5, 4), (2, 3, 3, 3), True,
             {"padding": [2, 1], "output_padding": [1, 0], "dilation": [2, 2]}),
            ("groups", (2, 4, 3, 3), (4, 3, 3, 3), True,
             {"stride": [2, 1], "padding": [1, 1], "output_padding": [1, 0], "groups": 2})]:
        inputs = {"x": r.normal(*x), "w": r.normal(*w, scale=0.4)}
        if bias:
            inputs["b"] = r.normal(w[1] * attrs.get("groups", 1))
        r.add(f"conv_transpose2d-{name}", "conv_transpose2d", attrs, inputs,
              lambda x, w, b=None, a=attrs: {"y": F.conv_transpose2d(x, w, b, **a)})


def pooling(r):
    for name, x, attrs in [
            ("max_pool2d-plain", (2, 3, 6, 6), {"kernel_size": [2, 2], "stride": [2, 2]}),
            ("max_pool2d-overlap", (1, 2, 8, 7),
             {"kernel_size": [3, 3], "stride": [2, 2], "padding": [1, 1]}),
            ("max_pool2d-uneven", (1, 2, 7, 9), {"kernel_size": [3, 2], "stride": [1, 2]})]:
        # Distinct values far apart: no tie, and the same winner in every precision.
        values = r.rng.permutation(int(np.prod(x))).astype(np.float32).reshape(x) / 8 - 5
        r.add(name, "max_pool2d", attrs, {"x": values},
              lambda x, a=attrs: {"y": F.max_pool2d(x, **a)})
    r.add("max_pool2d-negative", "max_pool2d",  # padding counts as -inf, not as 0
          a := {"kernel_size": [2, 2], "stride": [2, 2], "padding": [1, 1]},
          {"x": -1 - np.abs(r.normal(1, 2, 4, 4))}, lambda x: {"y": F.max_pool2d(x, **a)})
    for name, x, attrs in [
            ("avg_pool2d-plain", (2, 3, 6, 6), {"kernel_size": [2, 2], "stride": [2, 2]}),
            ("avg_pool2d-pad", (1, 2, 7, 6), {"kernel_size": [3, 3], "stride": [2, 2],
                                              "padding": [1, 1], "count_include_pad": True}),
            ("avg_pool2d-pad-excluded", (1, 2, 7, 6),
             {"kernel_size": [3, 3], "stride": [2, 2], "padding": [1, 1],
              "count_include_pad": False})]:
        r.add(name, "avg_pool2d", attrs, {"x": r.normal(*x)},
              lambda x, a=attrs: {"y": F.avg_pool2d(x, **a)})


def batch_norm(r, name, shape, training, momentum, eps):
    channels = shape[1]

    def run(x, weight, bias, running_mean, running_var):
        mean, var = running_mean.clone(), running_var.clone()
        y = F.batch_norm(x, mean, var, weight, bias, training, momentum, eps)
        return {"y": y, "running_mean": mean, "running_var": var}  # variance: unbiased
    r.add(name, "batch_norm", {"training": training, "momentum": momentum, "eps": eps},
          {"x": r.normal(*shape, shift=0.7), "weight": r.normal(channels, shift=1.0),
           "bias": r.normal(channels), "running_mean": r.normal(channels),
           "running_var": np.abs(r.normal(channels)) + np.float32(0.5)},
          run, no_grad=("running_mean", "running_var"))


def norms(r):
    batch_norm(r, "batch_norm-train", (4, 3, 3, 5), True, 0.1, 1e-5)
    batch_norm(r, "batch_norm-train-2d", (7, 5), True, 0.3, 1e-3)
    batch_norm(r, "batch_norm-eval", (3, 4, 2, 3), False, 0.1, 1e-5)
    for name, shape, eps in [("layer_norm", (3, 5, 17), 1e-5), ("layer_norm-eps", (4, 9), 1e-1)]:
        r.add(name, "layer_norm", {"normalized_shape": [shape[-1]], "eps": eps},
              {"x": r.normal(*shape, shift=2.0), "weight": r.normal(shape[-1], shift=1.0),
               "bias": r.normal(shape[-1])},
              lambda x, weight, bias, e=eps: {"y": F.layer_norm(x, x.shape[-1:], weight, bias, e)})
    r.add("rms_norm", "rms_norm", {"normalized_shape": [13], "eps": 1e-6},
          {"x": r.normal(4, 3, 13, shift=0.5), "weight": r.normal(13, shift=1.0)},
          lambda x, weight: {"y": F.rms_norm(x, x.shape[-1:], weight, 1e-6)})
    for name, shape, groups in [("group_norm", (2, 6, 3, 4), 3), ("group_norm-1", (3, 4, 7), 1)]:
        r.add(name, "group_norm", {"num_groups": groups, "eps": 1e-5},
              {"x": r.normal(*shape, shift=-1.0), "weight": r.normal(shape[1], shift=1.0),
               "bias": r.normal(shape[1])},
              lambda x, weight, bias, g=groups: {"y": F.group_norm(x, g, weight, bias, 1e-5)})


def softmax_rows(x):
    e = np.exp(x.astype(np.float64))  # float32 exp differs between processors
    return (e / e.sum(-1, keepdims=True)).astype(np.float32)


def log_rows(x):
    return np.log(softmax_rows(x).astype(np.float64)).astype(np.float32)


def losses(r):
    for name, attrs, holes in [
            ("cross_entropy", {"ignore_index": -100, "label_smoothing": 0.0, "reduction": "mean"}, 0),
            ("cross_entropy-ignore",
             {"ignore_index": -100, "label_smoothing": 0.0, "reduction": "mean"}, 4),
            ("cross_entropy-ignore-7",
             {"ignore_index": 7, "label_smoothing": 0.0, "reduction": "mean"}, 3),
            ("cross_entropy-smooth",
             {"ignore_index": -100, "label_smoothing": 0.1, "reduction": "mean"}, 0),
            ("cross_entropy-smooth-ignore",
             {"ignore_index": -100, "label_smoothing": 0.3, "reduction": "mean"}, 5),
            ("cross_entropy-sum",
             {"ignore_index": -100, "label_smoothing": 0.0, "reduction": "sum"}, 2)]:
        target = r.integers(17, 11)
        target[:holes] = attrs["ignore_index"]
        r.add(name, "cross_entropy", attrs,
              {"x": r.normal(11, 17, scale=3.0), "target": target},
              lambda x, target, a=attrs: {"loss": F.cross_entropy(x, target, **a)})
    for name, op in [("mse_loss", F.mse_loss), ("l1_loss", F.l1_loss)]:
        r.add(name, name, {"reduction": "mean"}, {"x": r.normal(5, 7), "y": r.normal(5, 7)},
              lambda x, y, op=op: {"loss": op(x, y)})
    r.add("huber_loss", "huber_loss", {"delta": 0.7, "reduction": "mean"},
          {"x": r.normal(5, 7), "y": r.normal(5, 7)},
          lambda x, y: {"loss": F.huber_loss(x, y, delta=0.7)})
    r.add("kl_div", "kl_div", {"reduction": "batchmean", "log_target": False},
          {"x": log_rows(r.normal(5, 7)), "y": softmax_rows(r.normal(5, 7))},
          lambda x, y: {"loss": F.kl_div(x, y, reduction="batchmean")}, no_grad=("y",))
    r.add("nll_loss", "nll_loss", {"ignore_index": -100, "reduction": "mean"},
          {"x": log_rows(r.normal(6, 9)), "target": np.array([3, -100, 0, 8, 8, -100])},
          lambda x, target: {"loss": F.nll_loss(x, target)})
    r.add("bce_with_logits", "bce_with_logits", {"reduction": "mean"},
          {"x": r.normal(5, 7, scale=4.0), "y": r.rng.random((5, 7)).astype(np.float32)},
          lambda x, y: {"loss": F.binary_cross_entropy_with_logits(x, y)}, no_grad=("y",))


def attention(r, name, batch, heads, groups, queries, head_dim, causal=True):
    shape_q, shape_k = (batch, heads, queries, head_dim), (batch, groups, queries, head_dim)
    r.add(name, "attention", {"causal": causal, "heads": heads, "groups": groups},
          {"q": r.normal(*shape_q), "k": r.normal(*shape_k), "v": r.normal(*shape_k)},
          lambda q, k, v: {"y": F.scaled_dot_product_attention(
              q, k, v, is_causal=causal, enable_gqa=groups != heads)})


def rotary(r):
    """Angles t * base^(-2i/d) for t = 0, 1, ...; the two published ways to pair the coordinates."""
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    base, d = 10000.0, 8
    angle = torch.arange(6).double()[:, None] * base ** (-torch.arange(0, d, 2).double() / d)

    def half(x):  # Llama in transformers: coordinate i with i + d/2
        both = torch.cat([angle, angle], -1)[None]
        return {"y": apply_rotary_pos_emb(x, x, both.cos(), both.sin())[0]}

    def interleaved(x):  # GPT-J, Meta's Llama: coordinate 2i with 2i + 1
        a, b = x[..., 0::2], x[..., 1::2]
        y = torch.stack([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)
        return {"y": y.flatten(-2)}

    for name, run in [("rotary-half", half), ("rotary-interleaved", interleaved)]:
        r.add(name, "rotary", {"base": base, "interleaved": run is interleaved},
              {"x": r.normal(2, 3, 6, d)}, run)


def sequences(r):
    attention(r, "attention-causal", 2, 3, 3, 7, 4)
    attention(r, "attention-one", 1, 2, 2, 1, 5)
    attention(r, "attention-gqa", 1, 6, 2, 9, 4)
    attention(r, "attention-mqa", 2, 4, 1, 5, 3)
    attention(r, "attention-full", 1, 2, 2, 6, 4, causal=False)
    rotary(r)
    r.add("embedding", "embedding", {},
          {"weight": r.normal(9, 5), "index": np.array([[0, 3, 3, 8], [3, 0, 1, 3]], np.int64)},
          lambda weight, index: {"y": F.embedding(index, weight)})
    r.add("softmax", "softmax", {"axis": 1}, {"x": r.normal(3, 17, 2, scale=4.0)},
          lambda x: {"y": F.softmax(x, 1)})
    r.add("log_softmax", "log_softmax", {"axis": -1}, {"x": r.normal(4, 19, scale=4.0)},
          lambda x: {"y": F.log_softmax(x, -1)})


def activations(r):
    x = np.concatenate([r.normal(40, scale=2.5), np.array([-30, -9, 9, 30], np.float32)])
    for name, op in [("gelu", F.gelu), ("gelu_tanh", lambda x: F.gelu(x, approximate="tanh")),
                     ("silu", F.silu), ("sigmoid", torch.sigmoid), ("softplus", F.softplus),
                     ("tanh", torch.tanh), ("erf", torch.erf)]:
        r.add(name, name, {}, {"x": x}, lambda x, op=op: {"y": op(x)})


def build():
    r = Recorder()
    # Numbers are drawn in this order: what is new goes behind the rest.
    for family in (convolutions, pooling, norms, losses, sequences, activations,
                   transposed_convolutions):
        family(r)
    return {"ops.safetensors": Tensors(r.arrays), "ops.json": {"cases": r.cases}}
