"""Tiny checkpoints of encoders for classification, as save_pretrained writes them, with the verdict of transformers'
own code in float64 (`in_double.py`): logits, loss and every gradient of texts of several lengths, padded on their right,
under a mask, with both kinds of tokens.

bert-tiny     two kinds of tokens, gelu
bert-tanh     three heads, GELU by tanh, another epsilon
bert-relu     relu, one head
roberta-tiny  positions behind the padding token's number, a head of two layers

A text has one answer, and all gradients come through its classes: of two or three, a run's errors in a low type are so
few draws that a right run is often twice as far off as PyTorch's two (1 in 50 tensors; 1 in 4 of the head's bias). With
some 30 classes and 30 texts it is 1 in 100 and less, as of decoders, and the same limits hold.
"""
import contextlib
import json

import numpy as np
import torch
import transformers

import measure
from families import Tensors
from in_double import in_double

ALL = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40, "vocab_size": 67,
       "bos_token_id": None, "eos_token_id": None, "problem_type": "single_label_classification",
       "attn_implementation": "eager"}

# name: (class, what its config says besides ALL, lengths, seed)
MODELS = {
    "bert-tiny": ("Bert", {"max_position_embeddings": 20, "num_labels": 32, "pad_token_id": 0}, [17, 9, 4, 13, 12, 6, 15, 8, 11, 3], 51),
    "bert-tanh": ("Bert", {"max_position_embeddings": 16, "num_labels": 29, "num_attention_heads": 3,
                           "hidden_act": "gelu_new", "layer_norm_eps": 1e-5, "classifier_dropout": 0.3,
                           "pad_token_id": 0}, [16, 5, 11, 7, 14, 9, 4, 12, 6, 10], 52),
    "bert-relu": ("Bert", {"max_position_embeddings": 18, "num_labels": 30, "num_attention_heads": 1,
                           "hidden_act": "relu", "pad_token_id": 0}, [13, 5, 18, 7, 9, 4, 15, 6, 10, 12], 54),
    "roberta-tiny": ("Roberta", {"max_position_embeddings": 22, "num_labels": 31, "pad_token_id": 2,
                                 "type_vocab_size": 1, "layer_norm_eps": 1e-5}, [19, 8, 14, 6, 11, 4, 16, 9, 13, 5], 53),
}
ROUNDS = 3  # so many texts of each length


def config_of(name):
    kind, own, *_ = MODELS[name]
    return getattr(transformers, kind + "Config")(**(ALL | own), architectures=[kind + "ForSequenceClassification"])


def draw_weights(model, rng):
    weights = {}
    for name, like in model.named_parameters():
        size = tuple(like.shape)
        if name.endswith("LayerNorm.weight"):
            value = rng.normal(1.0, 0.2, size)
        elif name.endswith("bias"):
            value = rng.normal(0.0, 0.1, size)
        elif "embeddings" in name:
            value = rng.normal(0.0, 0.5, size)
        else:
            value = rng.normal(0.0, 1.2 / np.sqrt(size[1]), size)
        weights[name] = value.astype(np.float32)
    return weights


def draw_texts(config, lengths, rng):
    """Tokens that are no padding, of which those behind a place are the second text's."""
    longest = max(lengths)
    tokens = np.full((len(lengths), longest), config.pad_token_id, np.int64)
    types = np.zeros_like(tokens)
    for row, length in enumerate(lengths):
        tokens[row, :length] = rng.integers(config.pad_token_id + 1, config.vocab_size, length)
        if config.type_vocab_size > 1:
            types[row, length // 2:length] = 1
    return {"tokens": tokens, "types": types, "lengths": np.array(lengths, np.int32),
            "labels": rng.integers(0, config.num_labels, len(lengths), dtype=np.int64)}


def judge(made, config, weights, texts, dtype, autocast=None):
    model = made(config).to(dtype).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(weights[name]).to(dtype))
    tokens, types, lengths, labels = (torch.from_numpy(texts[n]) for n in ("tokens", "types", "lengths", "labels"))
    mask = (torch.arange(tokens.shape[1])[None] < lengths[:, None]).long()
    with torch.autocast("cpu", dtype=autocast) if autocast else contextlib.nullcontext():
        logits = model(tokens, attention_mask=mask, token_type_ids=types).logits
    loss = torch.nn.functional.cross_entropy(logits if dtype == torch.float64 else logits.float(), labels)
    scale = 1024.0 if torch.float16 in (autocast, dtype) else 1.0
    (loss * scale).backward()
    out = {"logits": logits, "loss": loss}
    out |= {"grad." + n: p.grad.double() / scale for n, p in model.named_parameters()}
    return {n: v.detach().double().numpy() for n, v in out.items()}


def exact_of(made, config, weights, texts):
    """What is added to every key alike changes no weight of a softmax: that gradient is 0, and what is computed of it is
    rounding alone. Its errors are absolute."""
    with in_double():
        exact = judge(made, config, weights, texts, torch.float64)
    for n in exact:
        if n.endswith("key.bias"):
            assert np.max(np.abs(exact[n])) < 1e-14
            exact[n] = np.zeros_like(exact[n])
    return exact


def build_one(name):
    kind, _, lengths, seed = MODELS[name]
    made, config = getattr(transformers, kind + "ForSequenceClassification"), config_of(name)
    rng = np.random.default_rng(seed)
    weights = draw_weights(made(config), rng)
    texts = draw_texts(config, lengths * ROUNDS, rng)
    exact = exact_of(made, config, weights, texts)
    single = judge(made, config, weights, texts, torch.float32)
    for n, of in exact.items():
        assert measure.error(single[n], of) < 2e-5, (name, n, measure.error(single[n], of))
    own_error = {"torch_fp32_error": {n: measure.error(single[n], exact[n]) for n in exact}}
    for low_name, low in measure.LOW_TYPES.items():
        runs = [judge(made, config, weights, texts, torch.float32, low), judge(made, config, weights, texts, low)]
        own_error |= measure.low_errors(low_name, runs, exact)
    arrays = texts | {"loss": exact.pop("loss")} | {n: v.astype(np.float32) for n, v in exact.items()}
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
