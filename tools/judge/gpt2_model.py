"""GPT-2 models drawn from a seed, and PyTorch's verdict on them in any precision.

Weights are drawn much wider than GPT-2's own initialisation (std 0.02 leaves the logits nearly
flat), so that attention is uneven, GELU is used on both sides and every gradient is alive.
"""
import contextlib
import dataclasses

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel

# Conv1D layers: PyTorch's own GPT-2 stores them [in, out]; other exporters write [out, in].
CONV1D = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")


@dataclasses.dataclass(frozen=True)
class Shape:
    layers: int
    heads: int
    dim: int
    vocab: int
    context: int
    inner: int | None = None  # width of the MLP; None: 4 * dim
    epsilon: float = 1e-5


def config(shape):
    return GPT2Config(
        n_layer=shape.layers, n_head=shape.heads, n_embd=shape.dim, vocab_size=shape.vocab,
        n_positions=shape.context, n_inner=shape.inner, layer_norm_epsilon=shape.epsilon,
        activation_function="gelu_new", resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        bos_token_id=0, eos_token_id=0, tie_word_embeddings=True,
        architectures=["GPT2LMHeadModel"], attn_implementation="eager")


def draw_weights(shape, rng):
    """{parameter name as GPT2LMHeadModel spells it: float32 array}; the head is the embedding."""
    weights = {}
    for name, like in GPT2LMHeadModel(config(shape)).named_parameters():
        size = tuple(like.shape)
        if ".ln_" in name:
            value = rng.normal(1.0 if name.endswith("weight") else 0.0, 0.2, size)
        elif name.endswith("bias"):
            value = rng.normal(0.0, 0.1, size)
        elif ".wte." in name or ".wpe." in name:
            value = rng.normal(0.0, 0.5, size)
        else:
            value = rng.normal(0.0, 1.2 / np.sqrt(size[0]), size)
        weights[name] = value.astype(np.float32)
    return weights


def draw_tokens(shape, batch, length, rng):
    return rng.integers(0, shape.vocab, (batch, length), dtype=np.int64)


def next_token_targets(tokens):
    """The default of `aloft score`: each position predicts the next, the last one predicts nothing."""
    targets = np.full_like(tokens, -100)
    targets[:, :-1] = tokens[:, 1:]
    return targets


def judge(shape, weights, tokens, targets, dtype=torch.float64, autocast=None):
    """Runs the model in `dtype` (under torch.autocast to `autocast` where given).

    Returns {"logits", "loss", "grad.NAME"...} as float64 arrays.
    """
    model = GPT2LMHeadModel(config(shape)).to(dtype).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(weights[name]).to(dtype))
    return run(model, shape.vocab, tokens, targets, dtype, autocast)


def run(model, vocab, tokens, targets, dtype, autocast):
    """Logits, loss and gradients of a language model that has its weights, as judge() gives them."""
    cast = torch.autocast("cpu", dtype=autocast) if autocast else contextlib.nullcontext()
    with cast:
        logits = model(torch.from_numpy(tokens)).logits
    wide = logits if dtype == torch.float64 else logits.float()
    loss = torch.nn.functional.cross_entropy(
        wide.reshape(-1, vocab), torch.from_numpy(targets).reshape(-1), ignore_index=-100)
    # float16 gradients underflow without a scale; the factor is exact and is divided out again.
    scale = 1024.0 if torch.float16 in (autocast, dtype) else 1.0
    (loss * scale).backward()
    out = {"logits": wide.detach().double().numpy(), "loss": loss.detach().double().numpy()}
    for name, parameter in model.named_parameters():
        out["grad." + name] = parameter.grad.double().numpy() / scale
    return out


def is_conv1d(name):
    return name.endswith(CONV1D)


def to_linear(tensors):
    """The same tensors as a Linear exporter writes them: Conv1D weights transposed to [out, in]."""
    return {n: np.ascontiguousarray(v.T) if is_conv1d(n) else v for n, v in tensors.items()}
