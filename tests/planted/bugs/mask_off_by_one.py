"""A position sees the one that it is to predict."""
MODULE = "transformer.h.0.attn"


def plant(model):
    for block in model.transformer.h:
        block.attn.diagonal = 1
