"""Pairs of features that lie beside one another are turned, and not those half a head apart."""
import torch

MODEL, MODULE = "llama-tiny", "model.layers.0.self_attn"
PLACE, KIND = "forward", "Attention"
LINE = "llama_attn"


def plant(model):
    def turned(self, x):
        half = self.wide // 2
        angles = torch.arange(x.shape[2])[:, None] * self.base ** (-torch.arange(half) / half)
        a, b = x[..., ::2], x[..., 1::2]
        pairs = torch.stack([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)
        return pairs.flatten(-2)
    for layer in model.model.layers:
        layer.self_attn.turned = turned.__get__(layer.self_attn)
