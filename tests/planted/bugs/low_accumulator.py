"""A product of float32 whose sum is kept in bfloat16, a summand after the other."""
import torch

MODULE = "transformer.h.0.mlp.c_proj"
PLACE, KIND = "forward", "Projection"
LINE = "in_mlp"


def plant(model):
    layer = model.transformer.h[0].mlp.c_proj

    def forward(x):
        total = torch.zeros(*x.shape[:-1], layer.weight.shape[1], dtype=torch.bfloat16)
        for k in range(x.shape[-1]):
            total = (total + x[..., k:k + 1] * layer.weight[k]).bfloat16()
        return total.float() + layer.bias
    layer.forward = forward
