"""The fused projection is split as query, value, key."""
MODULE = "transformer.h.0.attn"
PLACE, KIND = "forward", "Attention"
LINE = "attn"


def plant(model):
    for block in model.transformer.h:
        block.attn.order = (0, 2, 1)
