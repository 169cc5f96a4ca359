"""Weights of projections as [out, in]."""
from torch import nn


def plant(model):
    for block in model.transformer.h:
        for owner, name in ((block.attn, "c_attn"), (block.attn, "c_proj"), (block.mlp, "c_fc"), (block.mlp, "c_proj")):
            old = owner._modules[name]
            new = nn.Linear(*old.weight.shape)
            new.weight.data, new.bias.data = old.weight.data.T.contiguous(), old.bias.data
            owner._modules[name] = new
