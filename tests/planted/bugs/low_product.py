"""A product in float16 amid float32."""
MODULE = "transformer.h.0.mlp.c_proj"
PLACE, KIND = "forward", "Projection"
LINE = "in_mlp"


def plant(model):
    layer = model.transformer.h[0].mlp.c_proj
    layer.forward = lambda x: (x.half() @ layer.weight.half()).float() + layer.bias
