"""A position sees the one that it is to predict."""
MODULE = "transformer.h.0.attn"
PLACE, KIND = "forward", "Attention"
LINE = "attn"


def plant(model):
    for block in model.transformer.h:
        block.attn.diagonal = 1
