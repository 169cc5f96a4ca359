"""Tiny GPT-2 checkpoints as Hugging Face directories, with the float64 judge's verdict beside them.

gpt2-tiny    as save_pretrained writes it: `transformer.` prefix, Conv1D weights [in, out]
gpt2-odd     sizes that divide nothing, names without prefix and the causal-mask buffers of the first
             published checkpoints, a narrower MLP, targets with holes (-100)
gpt2-linear  weights as Linear layers [out, in], and a config.json with the bare minimum
"""
import json

import numpy as np
import torch

import gpt2_model as gpt2
import measure
from families import Tensors
from families.checkpoints import generated, loaded
from in_double import in_double

# name: (shape, batch, length, seed)
MODELS = {
    "gpt2-tiny": (gpt2.Shape(layers=2, heads=4, dim=32, vocab=96, context=24), 2, 24, 11),
    "gpt2-odd": (gpt2.Shape(layers=3, heads=3, dim=15, vocab=101, context=19, inner=37,
                            epsilon=1e-6), 3, 17, 12),
    "gpt2-linear": (gpt2.Shape(layers=1, heads=2, dim=16, vocab=67, context=13), 2, 11, 13),
}
PREFIX = "transformer."


def bare(tensors):
    """Names without the `transformer.` prefix, behind `grad.` too."""
    return {n.replace(PREFIX, "", 1): v for n, v in tensors.items()}


def mask_buffers(shape):
    mask = np.tril(np.ones((1, 1, shape.context, shape.context), np.float32))
    return {f"h.{i}.attn.bias": mask for i in range(shape.layers)}


def config_json(name, shape):
    made = gpt2.config(shape)
    if name == "gpt2-linear":
        keys = ("model_type", "vocab_size", "n_positions", "n_embd", "n_layer", "n_head")
        return {k: getattr(made, k) for k in keys}
    return json.loads(made.to_json_string(use_diff=name == "gpt2-tiny"))


def build_one(name):
    shape, batch, length, seed = MODELS[name]
    rng = np.random.default_rng(seed)
    weights = gpt2.draw_weights(shape, rng)
    tokens = gpt2.draw_tokens(shape, batch, length, rng)
    plain = gpt2.next_token_targets(tokens)
    targets = plain
    if name == "gpt2-odd":
        targets = gpt2.draw_tokens(shape, batch, length, rng)
        targets[rng.random(targets.shape) < 0.3] = -100
        targets[1, :] = -100  # a whole sequence without a target

    exact = gpt2.judge(shape, weights, tokens, targets)
    single = gpt2.judge(shape, weights, tokens, targets, dtype=torch.float32)
    loss_next = gpt2.judge(shape, weights, tokens, plain)["loss"]
    own_error = {"torch_fp32_error": {n: measure.error(single[n], exact[n]) for n in exact}}
    for low_name, low in measure.LOW_TYPES.items():
        runs = [gpt2.judge(shape, weights, tokens, targets, dtype=torch.float32, autocast=low),
                gpt2.judge(shape, weights, tokens, targets, dtype=low)]
        own_error |= measure.low_errors(low_name, runs, exact)

    with in_double():
        said = generated(loaded(gpt2.GPT2LMHeadModel(gpt2.config(shape)), weights, torch.float64), tokens)
    files = dict(weights)
    if name == "gpt2-odd":
        files, exact = bare(files), bare(exact)
        own_error = {of: bare(errors) for of, errors in own_error.items()}
        files |= mask_buffers(shape)
    if name == "gpt2-linear":
        files, exact = gpt2.to_linear(files), gpt2.to_linear(exact)

    # The float64 results rounded once to float32: 6e-8 against a tolerance of 1e-5, half the bytes.
    arrays = {"tokens": tokens, "targets": targets, "loss": exact.pop("loss"),
              "loss_next": loss_next, **said}
    arrays |= {n: v.astype(np.float32) for n, v in exact.items()}
    return {
        f"{name}/config.json": config_json(name, shape),
        f"{name}/model.safetensors": Tensors(files, {"format": "pt"}),
        f"{name}/expected.safetensors": Tensors(arrays),
        f"{name}/expected.json": own_error,
    }


def build():
    out = {}
    for name in MODELS:
        out |= build_one(name)
    return out
