"""Angles of positions by the base of another family."""
MODEL, MODULE = "llama-tiny", "model.layers.0.self_attn"
PLACE, KIND = "forward", "Attention"
LINE = "llama_attn"


def plant(model):
    for layer in model.model.layers:
        layer.self_attn.base = 500000.0
