"""Attention that sees the whole text."""
MODULE = "transformer.h.0.attn"
PLACE, KIND = "forward", "Attention"
LINE = "attn"


def plant(model):
    for block in model.transformer.h:
        block.attn.diagonal = model.transformer.wpe.num_embeddings
