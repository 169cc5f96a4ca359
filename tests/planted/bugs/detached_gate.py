"""The gate of one layer is right and cut off: nothing behind it gets a gradient through it."""
MODEL = "llama-tiny"
MODULE = "model.layers.0.mlp"
PLACE, KIND = "backward", "Mlp"
LINE = "llama_mlp"


def plant(model):
    mlp = model.model.layers[0].mlp
    mlp.forward = lambda x: mlp.down_proj(mlp.act_fn(mlp.gate_proj(x)).detach() * mlp.up_proj(x))
