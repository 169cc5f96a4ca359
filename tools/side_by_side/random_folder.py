"""Folders of Hugging Face with weights that nobody has learnt: what a model costs does not depend on what it says."""
import json
import os
import random
import shutil
import struct

from programs import ROOT

FOLDER = ROOT / "build" / "peers" / "models"
COMPLETE = "complete"  # written last: a half-made folder is made again

ALL = {"hidden_act": "silu", "torch_dtype": "bfloat16", "tie_word_embeddings": True, "initializer_range": 0.02,
       "bos_token_id": None, "eos_token_id": None, "pad_token_id": None, "attention_dropout": 0.0}
# Their config.json says so (Qwen/Qwen2.5-0.5B, meta-llama/Llama-3.2-1B); "tiny" is nobody's: does everything run?
SHAPES = {
    "qwen2.5-0.5b": ALL | {
        "model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "vocab_size": 151936, "hidden_size": 896,
        "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2,
        "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "use_sliding_window": False},
    "llama-3.2-1b": ALL | {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 128256, "hidden_size": 2048,
        "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8,
        "head_dim": 64, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "attention_bias": False,
        "mlp_bias": False, "rope_theta": 500000.0,
        "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                         "original_max_position_embeddings": 8192}},
    "tiny": ALL | {
        "model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "vocab_size": 512, "hidden_size": 64,
        "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "use_sliding_window": False}}

BF16_ONE = 0x3F80
# Of random 16 bits: the sign, the lowest bit of the exponent and the mantissa; the rest makes it 2^-7 to 2^-5, about
# what training begins with.
RANDOM_BITS, EXPONENT = 0x80FF, 0x3C00
CHUNK = 1 << 19  # words at a time


def tensors(config):
    """(name, shape) in the order of the file."""
    dim, wide = config["hidden_size"], config["intermediate_size"]
    head = config.get("head_dim", dim // config["num_attention_heads"])
    queries, keys = (head * config[f"num_{kind}_heads"] for kind in ("attention", "key_value"))
    yield "model.embed_tokens.weight", (config["vocab_size"], dim)
    for i in range(config["num_hidden_layers"]):
        block = f"model.layers.{i}"
        yield f"{block}.input_layernorm.weight", (dim,)
        for name, rows, columns in (("q", queries, dim), ("k", keys, dim), ("v", keys, dim), ("o", dim, queries)):
            yield f"{block}.self_attn.{name}_proj.weight", (rows, columns)
            if config["model_type"] == "qwen2" and name != "o":
                yield f"{block}.self_attn.{name}_proj.bias", (rows,)
        yield f"{block}.post_attention_layernorm.weight", (dim,)
        for name, rows, columns in (("gate", wide, dim), ("up", wide, dim), ("down", dim, wide)):
            yield f"{block}.mlp.{name}_proj.weight", (rows, columns)
    yield "model.norm.weight", (dim,)


def count(shape):
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def words_of(name, shape, draw):
    """bf16: 1 in norms, else random."""
    left = count(shape)
    if name.endswith("norm.weight"):
        yield struct.pack("<H", BF16_ONE) * left
        return
    masks = [int.from_bytes(struct.pack("<H", word) * CHUNK, "little") for word in (RANDOM_BITS, EXPONENT)]
    while left > 0:
        size = min(left, CHUNK)
        drawn = int.from_bytes(draw.randbytes(2 * CHUNK), "little") & masks[0] | masks[1]
        yield drawn.to_bytes(2 * CHUNK, "little")[:2 * size]
        left -= size


def write_weights(path, config):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors(config):
        end = at + 2 * count(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    draw = random.Random(1)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in tensors(config):
            for words in words_of(name, shape, draw):
                file.write(words)


def place(shape, has_weights):
    """Without weights config.json alone says enough to train."""
    return FOLDER / (shape if has_weights else f"{shape}-config")


def make(shape, has_weights):
    """The folder, where it is not there yet."""
    folder = place(shape, has_weights)
    if (folder / COMPLETE).exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(SHAPES[shape], indent=1) + "\n")
    if has_weights:
        write_weights(folder / "model.safetensors", SHAPES[shape])
        os.sync()
    (folder / COMPLETE).touch()
