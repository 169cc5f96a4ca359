"""A square weight is loaded the wrong way round."""
MODULE = "transformer.h.0.attn.c_proj"
PLACE, KIND = "forward", "Projection"
LINE = "attn_out"


def plant(model):
    weight = model.transformer.h[0].attn.c_proj.weight
    weight.data = weight.data.T.contiguous()
