"""Scores are divided by the width of a head, not by its root."""
MODULE = "transformer.h.0.attn"
PLACE, KIND = "forward", "Attention"
LINE = "attn"


def plant(model):
    for block in model.transformer.h:
        block.attn.scale **= 2
