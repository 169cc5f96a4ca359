"""Dropout behind the activation, in a run that has none."""
from torch import nn

MODULE = "transformer.h.0.mlp"
PLACE, KIND = "forward", "Mlp"
LINE = "mlp"


def plant(model):
    for block in model.transformer.h:
        block.mlp.act = nn.Sequential(block.mlp.act, nn.Dropout(0.1))
