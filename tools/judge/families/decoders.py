"""Tiny Llama, Mistral and Qwen2 checkpoints as save_pretrained writes them, with the float64 judge's verdict.

llama-tiny    grouped keys and values, a head of its own
mistral-tiny  one head of keys and values, no sliding window
qwen2-tiny    biases on queries, keys and values, a tied head, sizes that divide little
"""
import json

import numpy as np
import torch
from transformers import (LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, Qwen2Config,
                          Qwen2ForCausalLM)

import gpt2_model as gpt2
import measure
from families import Tensors
from families.checkpoints import generated, loaded
from in_double import in_double

# name: (class, config, batch, length, seed)
MODELS = {
    "llama-tiny": (LlamaForCausalLM, LlamaConfig(
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, hidden_size=32,
        intermediate_size=56, vocab_size=71, max_position_embeddings=24, rms_norm_eps=1e-5,
        rope_theta=10000.0, tie_word_embeddings=False, architectures=["LlamaForCausalLM"],
        attn_implementation="eager"), 2, 21, 21),
    "mistral-tiny": (MistralForCausalLM, MistralConfig(
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=1, hidden_size=24,
        intermediate_size=51, vocab_size=73, max_position_embeddings=23, rms_norm_eps=1e-5, head_dim=6,
        rope_theta=1000000.0, sliding_window=None, tie_word_embeddings=False,
        architectures=["MistralForCausalLM"], attn_implementation="eager"), 2, 22, 23),
    "qwen2-tiny": (Qwen2ForCausalLM, Qwen2Config(
        num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1, hidden_size=30,
        intermediate_size=43, vocab_size=67, max_position_embeddings=19, rms_norm_eps=1e-6,
        rope_theta=1000000.0, tie_word_embeddings=True, architectures=["Qwen2ForCausalLM"],
        attn_implementation="eager"), 3, 17, 22),
}


def draw_weights(made, config, rng):
    weights = {}
    for name, like in made(config).named_parameters():
        size = tuple(like.shape)
        if "norm" in name:
            value = rng.normal(1.0, 0.2, size)
        elif name.endswith("bias"):
            value = rng.normal(0.0, 0.1, size)
        elif "embed_tokens" in name:
            value = rng.normal(0.0, 0.5, size)
        else:
            value = rng.normal(0.0, 1.2 / np.sqrt(size[1]), size)
        weights[name] = value.astype(np.float32)
    return weights


def written_out(config, weights, tokens, targets):
    """The same model in float64, written out: transformers computes norms, angles and softmax in float32 whatever
    the type of the model. build_one() holds it to transformers' own float32 results, and to its own code in float64,
    which judges the other families (checkpoints.py)."""
    p = {n: torch.from_numpy(w).double().requires_grad_() for n, w in weights.items()}
    heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
    width = config.hidden_size // heads
    batch, length = tokens.shape

    def norm(x, name):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + config.rms_norm_eps) * p[name + ".weight"]

    def linear(x, name):
        return torch.nn.functional.linear(x, p[name + ".weight"], p.get(name + ".bias"))

    rates = config.rope_parameters["rope_theta"] ** -(torch.arange(0, width, 2).double() / width)
    angles = torch.arange(length).double()[:, None] * rates
    turn_cos, turn_sin = torch.cos(angles), torch.sin(angles)

    def turned(x):  # [B, H, T, width]: pairs (i, i + width / 2)
        a, b = x[..., :width // 2], x[..., width // 2:]
        return torch.cat((a * turn_cos - b * turn_sin, b * turn_cos + a * turn_sin), -1)

    def split(x, count):
        return x.view(batch, length, count, width).transpose(1, 2)

    mask = torch.full((length, length), -torch.inf, dtype=torch.float64).triu(1)
    x = p["model.embed_tokens.weight"][torch.from_numpy(tokens)]
    for i in range(config.num_hidden_layers):
        at = f"model.layers.{i}."
        h = norm(x, at + "input_layernorm")
        q = turned(split(linear(h, at + "self_attn.q_proj"), heads))
        k = turned(split(linear(h, at + "self_attn.k_proj"), kv_heads))
        v = split(linear(h, at + "self_attn.v_proj"), kv_heads)
        k, v = (t.repeat_interleave(heads // kv_heads, dim=1) for t in (k, v))
        weight = torch.softmax(q @ k.transpose(2, 3) / width ** 0.5 + mask, -1)
        x = x + linear((weight @ v).transpose(1, 2).reshape(batch, length, -1), at + "self_attn.o_proj")
        h = norm(x, at + "post_attention_layernorm")
        gate = torch.nn.functional.silu(linear(h, at + "mlp.gate_proj"))
        x = x + linear(gate * linear(h, at + "mlp.up_proj"), at + "mlp.down_proj")
    head = p.get("lm_head.weight", p["model.embed_tokens.weight"])
    logits = norm(x, "model.norm") @ head.T
    loss = torch.nn.functional.cross_entropy(
        logits.reshape(-1, config.vocab_size), torch.from_numpy(targets).reshape(-1), ignore_index=-100)
    loss.backward()
    out = {"logits": logits.detach().numpy(), "loss": loss.detach().numpy()}
    return out | {"grad." + n: t.grad.numpy() for n, t in p.items()}


def judge(made, config, weights, tokens, targets, dtype, autocast=None):
    """transformers' own run: {"logits", "loss", "grad.NAME"...} as float64 arrays."""
    model = made(config).to(dtype).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(weights[name]).to(dtype))
    return gpt2.run(model, config.vocab_size, tokens, targets, dtype, autocast)


def build_one(name):
    made, config, batch, length, seed = MODELS[name]
    rng = np.random.default_rng(seed)
    weights = draw_weights(made, config, rng)
    tokens = rng.integers(0, config.vocab_size, (batch, length), dtype=np.int64)
    targets = gpt2.next_token_targets(tokens)
    ask = (made, config, weights, tokens, targets)
    exact = written_out(*ask[1:])
    single = judge(*ask, dtype=torch.float32)
    with in_double():
        double = judge(*ask, dtype=torch.float64)
        said = generated(loaded(made(config), weights, torch.float64), tokens)
    for n, of in exact.items():
        assert measure.error(single[n], of) < 1e-5, (name, n)
        assert measure.error(double[n], of) < 1e-12, (name, n)
    own_error = {"torch_fp32_error": {n: measure.error(single[n], exact[n]) for n in exact}}
    for low_name, low in measure.LOW_TYPES.items():
        runs = [judge(*ask, dtype=torch.float32, autocast=low), judge(*ask, dtype=low)]
        own_error |= measure.low_errors(low_name, runs, exact)
    arrays = {"tokens": tokens, "targets": targets, "loss": exact.pop("loss"), **said}
    arrays |= {n: v.astype(np.float32) for n, v in exact.items()}
    return {
        f"{name}/config.json": json.loads(config.to_json_string()),
        f"{name}/model.safetensors": Tensors(dict(weights), {"format": "pt"}),
        f"{name}/expected.safetensors": Tensors(arrays),
        f"{name}/expected.json": own_error,
    }


def build():
    out = {}
    for name in MODELS:
        out |= build_one(name)
    return out
