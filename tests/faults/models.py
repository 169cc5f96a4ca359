"""Small model folders and files that the fault programs read or harm, made on the fly."""
import json
import random
import shutil
import struct

import tally

LAYERS, DIM, HEADS, CONTEXT = 1, 16, 2, 16


def safetensors(tensors):
    """The bytes of a file; tensors: name -> (type, shape, bytes)."""
    header, at = {}, 0
    for name, (kind, shape, data) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values())


def make_gpt2_folder(folder):
    """A folder as Hugging Face has them: config.json, model.safetensors, vocab.json, merges.txt."""
    folder.mkdir()
    for name in ("vocab.json", "merges.txt"):
        shutil.copy(tally.ROOT / "tests" / "fixtures" / "tokenizer" / name, folder / name)
    vocab = len(json.loads((folder / "vocab.json").read_text()))
    draw = random.Random(5)

    def values(*shape):
        count = 1
        for extent in shape:
            count *= extent
        return ("F32", list(shape), struct.pack(f"<{count}f", *(draw.gauss(0, 0.1) for _ in range(count))))

    tensors = {"wte.weight": values(vocab, DIM), "wpe.weight": values(CONTEXT, DIM)}
    for layer in range(LAYERS):
        at = f"h.{layer}."
        for norm in ("ln_1", "ln_2"):
            tensors |= {f"{at}{norm}.weight": values(DIM), f"{at}{norm}.bias": values(DIM)}
        for name, rows, columns in (("attn.c_attn", DIM, 3 * DIM), ("attn.c_proj", DIM, DIM),
                                    ("mlp.c_fc", DIM, 4 * DIM), ("mlp.c_proj", 4 * DIM, DIM)):
            tensors |= {f"{at}{name}.weight": values(rows, columns), f"{at}{name}.bias": values(columns)}
    tensors |= {"ln_f.weight": values(DIM), "ln_f.bias": values(DIM)}
    (folder / "model.safetensors").write_bytes(safetensors(tensors))
    (folder / "config.json").write_text(json.dumps({
        "model_type": "gpt2", "activation_function": "gelu_new", "n_embd": DIM, "n_head": HEADS,
        "n_inner": None, "n_layer": LAYERS, "n_positions": CONTEXT, "vocab_size": vocab,
        "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True, "attn_pdrop": 0.0, "embd_pdrop": 0.0,
        "resid_pdrop": 0.0, "scale_attn_weights": True}, indent=1))


def tokens_to_score(vocab_at_least=80):
    """What `aloft score --tokens` reads."""
    ids = [i + 40 for i in range(16)]
    assert max(ids) < vocab_at_least
    return safetensors({"tokens": ("I32", [2, 8], struct.pack("<16i", *ids)),
                        "targets": ("I32", [2, 8], struct.pack("<16i", *reversed(ids)))})
