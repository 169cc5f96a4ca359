"""A weight that the file has by another name keeps its first values."""
import torch

MODULE = "transformer.h.1.mlp.c_proj"
PLACE, KIND = "parameter", "Projection"
LINE = "in_mlp"


def plant(model):
    torch.nn.init.normal_(model.transformer.h[1].mlp.c_proj.weight, std=0.2)
