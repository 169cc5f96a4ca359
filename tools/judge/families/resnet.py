"""A tiny ResNet-18 (width 3, odd images) after one training pass: logits, loss, gradients, running
statistics, and the logits in evaluation with those statistics, by the float64 judge."""
import contextlib
import pathlib
import sys

import numpy as np
import torch

import measure
from families import Tensors

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "peers"))
import vision_models  # noqa: E402

WIDTH, CLASSES, BATCH, HEIGHT, BREADTH = 3, 7, 8, 18, 15


def draw(rng):
    """State dict: deviations wide enough that every gradient is alive. What norms add keeps most of a ReLU's
    inputs away from zero, where a rounding decides whether an input's gradient goes on: with a mean of 0,
    PyTorch's own gradients in bf16 are off by up to 0.9 of their length, nearly as far as zeros are."""
    state = {}
    for name, like in vision_models.ResNet(classes=CLASSES, width=WIDTH).state_dict().items():
        size = tuple(like.shape)
        if name.endswith("num_batches_tracked"):
            continue
        if name.endswith("running_var"):
            value = rng.uniform(0.5, 2.0, size)
        elif len(size) == 4 or name == "fc.weight":
            value = rng.normal(0.0, np.sqrt(2 / np.prod(size[1:])), size)
        elif name.endswith("bias") and name != "fc.bias":
            value = rng.normal(1.5, 0.5, size)
        else:
            value = rng.normal(1.0 if name.endswith("weight") else 0.0, 0.2, size)
        state[name] = value.astype(np.float32)
    return state


def judge(state, x, labels, dtype, autocast=None):
    model = vision_models.ResNet(classes=CLASSES, width=WIDTH).to(dtype)
    model.load_state_dict({n: torch.from_numpy(v).to(dtype) for n, v in state.items()},
                          strict=False)
    images = torch.from_numpy(x).to(dtype)
    cast = torch.autocast("cpu", dtype=autocast) if autocast else contextlib.nullcontext()
    with cast:
        logits = model(images)
    wide = logits if dtype == torch.float64 else logits.float()
    loss = torch.nn.functional.cross_entropy(wide, torch.from_numpy(labels))
    scale = 1024.0 if torch.float16 in (autocast, dtype) else 1.0
    (loss * scale).backward()
    out = {"logits": logits, "loss": loss}
    out |= {"grad." + n: p.grad.double() / scale for n, p in model.named_parameters()}
    out |= {"after." + n: b for n, b in model.named_buffers() if b.is_floating_point()}
    with cast:
        out["eval"] = model.eval()(images)
    return {n: v.detach().double().numpy() for n, v in out.items()}


def build():
    rng = np.random.default_rng(22)
    state = draw(rng)
    x = rng.normal(0.0, 1.0, (BATCH, 3, HEIGHT, BREADTH)).astype(np.float32)
    labels = rng.integers(0, CLASSES, BATCH, dtype=np.int64)
    exact = judge(state, x, labels, torch.float64)
    single = judge(state, x, labels, torch.float32)
    own_error = {"torch_fp32_error": {n: measure.error(single[n], exact[n]) for n in exact}}
    for low_name, low in measure.LOW_TYPES.items():
        runs = [judge(state, x, labels, torch.float32, autocast=low), judge(state, x, labels, low)]
        own_error |= measure.low_errors(low_name, runs, exact)
    arrays = {"x": x, "labels": labels, "loss": exact.pop("loss")}
    arrays |= {n: v.astype(np.float32) for n, v in exact.items()}
    return {
        "resnet-tiny/model.safetensors": Tensors(state, {"format": "pt"}),
        "resnet-tiny/expected.safetensors": Tensors(arrays),
        "resnet-tiny/expected.json": own_error,
    }
