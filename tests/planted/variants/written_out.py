"""Norms and GELU by their formulas."""
import math

import torch
from torch import nn


class Gelu(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def plant(model):
    def norm(layer):
        def forward(x):
            d = x - x.mean(-1, keepdim=True)
            return d / torch.sqrt((d * d).mean(-1, keepdim=True) + layer.eps) * layer.weight + layer.bias
        return forward
    body = model.transformer
    for layer in [body.ln_f, *(n for block in body.h for n in (block.ln_1, block.ln_2))]:
        layer.forward = norm(layer)
    for block in body.h:
        block.mlp.act = Gelu()
