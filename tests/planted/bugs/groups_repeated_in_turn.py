"""Heads of keys and values are repeated all in turn, and not each beside itself."""
MODEL, MODULE = "llama-tiny", "model.layers.0.self_attn"
PLACE, KIND = "forward", "Attention"
LINE = "llama_attn"


def plant(model):
    for layer in model.model.layers:
        attention = layer.self_attn
        attention.repeated = lambda x: x.repeat(1, attention.heads // attention.groups, 1, 1)
