"""Norms with the epsilon of another family."""
MODULE = "transformer.h.0.ln_1"
PLACE, KIND = "forward", "LayerNorm"
LINE = "attn"


def plant(model):
    for block in model.transformer.h:
        block.ln_1.eps = block.ln_2.eps = 1e-6
