"""The softmax runs over the positions that look, not over those that are seen."""
MODULE = "transformer.h.0.attn"
PLACE, KIND = "forward", "Attention"
LINE = "attn"


def plant(model):
    for block in model.transformer.h:
        block.attn.axis = -2
