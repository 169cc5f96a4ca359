"""A bias that is used, and not trained."""
MODULE = "transformer.h.1.mlp.c_fc"
PLACE, KIND = "gradient", "Projection"
LINE = "in_mlp"


def plant(model):
    layer = model.transformer.h[1].mlp.c_fc
    layer.forward = lambda x: x @ layer.weight + layer.bias.detach()
