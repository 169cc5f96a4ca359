"""The heads are laid side by side in another order."""
# Statistics of what the projection takes are those of any order of the same numbers.
MODULE = "transformer.h.0.attn.c_proj"
PLACE, KIND = "forward", "Projection"
LINE = "attn_out"


def plant(model):
    for block in model.transformer.h:
        proj, heads = block.attn.c_proj, block.attn.heads
        proj.register_forward_pre_hook(
            lambda module, args: (args[0].unflatten(2, (heads, -1)).transpose(2, 3).flatten(2),))
