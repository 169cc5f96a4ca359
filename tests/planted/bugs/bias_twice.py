"""A fused product adds the bias, and the layer does so again."""
MODULE = "transformer.h.0.attn.c_proj"
PLACE, KIND = "forward", "Projection"
LINE = "attn_out"


def plant(model):
    for block in model.transformer.h:
        layer = block.attn.c_proj
        layer.register_forward_hook(lambda module, args, y: y + module.bias)
