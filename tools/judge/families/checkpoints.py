"""Tiny checkpoints of the families of decoders, as save_pretrained writes them, with the verdict of transformers' own
code in float64 (`in_double.py`): logits, loss, every gradient, and what greedy generation says behind a prompt, with a
cache and without, and where one of the prompts has padding on its left. Sizes divide little; sequences are longer than
windows, and than what angles were stretched from.

llama3-tiny       heads wider than dim / heads, angles stretched as Llama 3.1's, biases
mistral-window    a window in every block, angles slowed alike
qwen2-yarn        a window in the last block, angles stretched by yarn
qwen3-tiny        norms of queries and keys, wide heads, dynamic angles
gemma-tiny, gemma2-tiny, gemma3-tiny
phi3-tiny         joined projections, angles by longrope, half of a head turns
smollm3-tiny      one block looks at positions, the other does not
granite-tiny      factors of rows, parts, scores and logits
olmo2-tiny        norms behind the parts
starcoder2-tiny   layer norms, biases, a window
neox-tiny         parallel parts, a quarter of a head turns
neox-serial       serial parts, no biases in attention
"""
import json

import numpy as np
import torch
import transformers

import gpt2_model as gpt2
import measure
from families import Tensors
from in_double import in_double

ALL = {"max_position_embeddings": 28, "num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 24,
       "intermediate_size": 40, "vocab_size": 67, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None,
       "attn_implementation": "eager"}
SHARED = {"num_key_value_heads": 2}

# name: (class, what its config says besides ALL, batch, length, seed). PyTorch's own errors in low types are the
# yardstick: a seed for which they are far below those of nearly the same weights (each a 500th off) is none.
MODELS = {
    "llama3-tiny": ("Llama", SHARED | {
        "head_dim": 10, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True,
        "rope_parameters": {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0,
                            "high_freq_factor": 4.0, "original_max_position_embeddings": 16}}, 2, 21, 31),
    "mistral-window": ("Mistral", SHARED | {
        "sliding_window": 7,
        "rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}}, 2, 21, 32),
    "qwen2-yarn": ("Qwen2", SHARED | {
        "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1,
        "rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0,
                            "original_max_position_embeddings": 7}}, 2, 19, 33),
    "qwen3-tiny": ("Qwen3", SHARED | {
        "head_dim": 8, "tie_word_embeddings": True,
        "rope_parameters": {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}}, 2, 18, 34),
    "gemma-tiny": ("Gemma", {"num_key_value_heads": 1, "head_dim": 10}, 2, 17, 35),
    "gemma2-tiny": ("Gemma2", SHARED | {
        "head_dim": 10, "query_pre_attn_scalar": 14, "sliding_window": 6, "attn_logit_softcapping": 2.0,
        "final_logit_softcapping": 6.0}, 2, 20, 36),
    "gemma3-tiny": ("Gemma3", SHARED | {
        "head_dim": 10, "num_hidden_layers": 3, "query_pre_attn_scalar": 14, "sliding_window": 5,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        "rope_parameters": {"full_attention": {"rope_type": "linear", "rope_theta": 100000.0, "factor": 8.0},
                            "sliding_attention": {"rope_type": "default", "rope_theta": 1000.0}}}, 2, 18, 102),
    "phi3-tiny": ("Phi3", SHARED | {
        "hidden_size": 32, "original_max_position_embeddings": 8,
        "rope_parameters": {"rope_type": "longrope", "rope_theta": 10000.0, "partial_rotary_factor": 0.5,
                            "short_factor": [1.0, 1.1], "long_factor": [1.5, 4.0]}}, 2, 19, 38),
    "smollm3-tiny": ("SmolLM3", SHARED | {"no_rope_layer_interval": 2}, 2, 17, 39),
    "granite-tiny": ("Granite", SHARED | {
        "embedding_multiplier": 3.0, "residual_multiplier": 0.4, "attention_multiplier": 0.3,
        "logits_scaling": 2.0}, 2, 17, 44),
    "olmo2-tiny": ("Olmo2", SHARED | {"attention_bias": True}, 2, 18, 40),
    "starcoder2-tiny": ("Starcoder2", SHARED | {"sliding_window": 6}, 2, 19, 41),
    "neox-tiny": ("GPTNeoX", {"hidden_size": 32, "rotary_pct": 0.25}, 2, 18, 42),
    "neox-serial": ("GPTNeoX", {"hidden_size": 32, "rotary_pct": 0.5, "use_parallel_residual": False,
                                "attention_bias": False}, 2, 17, 43),
}
NEW_TOKENS = 8


def config_of(name):
    kind, own, *_ = MODELS[name]
    config = getattr(transformers, kind + ("TextConfig" if kind == "Gemma3" else "Config"))
    return config(**(ALL | own), architectures=[kind + "ForCausalLM"])


def draw_weights(model, config, rng):
    weights = {}
    for name, like in model.named_parameters():
        size = tuple(like.shape)
        is_norm = "norm" in name
        if name.endswith("bias"):
            value = rng.normal(0.0, 0.1, size)
        elif is_norm:
            value = rng.normal(0.0 if config.model_type.startswith("gemma") else 1.0, 0.2, size)
        elif "embed" in name:
            value = rng.normal(0.0, 0.5, size)
        else:
            value = rng.normal(0.0, 1.2 / np.sqrt(size[1]), size)
        weights[name] = value.astype(np.float32)
    return weights


def loaded(model, weights, dtype):
    model = model.to(dtype).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(weights[name]).to(dtype))
    return model


def generated(model, tokens):
    """What greedy generation says behind the first half of the tokens, with and without padding on their left."""
    prompt = tokens[:, :tokens.shape[1] // 2]
    starts = np.arange(len(tokens), dtype=np.int32) * 3 % prompt.shape[1]
    return {"prompt": prompt, "greedy": greedy(model, prompt, 0 * starts),
            "starts": starts, "padded": greedy(model, prompt, starts)}


def greedy(model, prompt, starts):
    """What follows the prompts, token by token, of which each begins at its start: the same with a cache and without,
    and no close call."""
    ids = torch.from_numpy(prompt)
    mask = (torch.arange(ids.shape[1])[None] >= torch.from_numpy(starts)[:, None]).long()
    start_mask = mask
    model.generation_config.eos_token_id = None  # as many tokens of each
    with torch.no_grad():
        for _ in range(NEW_TOKENS):
            places = (mask.cumsum(-1) - 1).clamp(min=0)
            logits = model(ids, attention_mask=mask, position_ids=places, use_cache=False).logits[:, -1]
            best = logits.topk(2).values
            assert (best[:, 0] - best[:, 1]).min() > 1e-4 * logits.abs().max(), "a close call: another seed"
            ids = torch.cat((ids, logits.argmax(-1, keepdim=True)), 1)
            mask = torch.cat((mask, torch.ones_like(mask[:, :1])), 1)
        cached = model.generate(torch.from_numpy(prompt), attention_mask=start_mask, max_new_tokens=NEW_TOKENS,
                                do_sample=False, use_cache=True)
    assert torch.equal(ids, cached)
    return ids[:, prompt.shape[1]:].numpy()


def build_one(name):
    kind, _, batch, length, seed = MODELS[name]
    made, config = getattr(transformers, kind + "ForCausalLM"), config_of(name)
    rng = np.random.default_rng(seed)
    weights = draw_weights(made(config), config, rng)
    tokens = rng.integers(0, config.vocab_size, (batch, length), dtype=np.int64)
    targets = gpt2.next_token_targets(tokens)
    with in_double():
        model = loaded(made(config), weights, torch.float64)
        exact = gpt2.run(model, config.vocab_size, tokens, targets, torch.float64, None)
        said = generated(model, tokens)

    def judge(dtype, autocast=None):
        return gpt2.run(loaded(made(config), weights, dtype), config.vocab_size, tokens, targets, dtype, autocast)

    single = judge(torch.float32)
    for n, of in exact.items():
        assert measure.error(single[n], of) < 2e-5, (name, n)
    own_error = {"torch_fp32_error": {n: measure.error(single[n], exact[n]) for n in exact}}
    for low_name, low in measure.LOW_TYPES.items():
        own_error |= measure.low_errors(low_name, [judge(torch.float32, low), judge(low)], exact)
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
