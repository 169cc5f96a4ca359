"""The angles of rotary positions are bfloat16, because the model's buffers were converted; all else is float32."""
import torch

MODEL = "llama-tiny"
MODULE = "model.layers.0.self_attn"
PLACE, KIND = "forward", "Attention"
LINE = "llama_attn"


def plant(model):
    def turner(attention):
        half = attention.wide // 2
        rates = (attention.base ** (-torch.arange(half) / half)).bfloat16()

        def turned(x):
            angles = torch.arange(x.shape[2], dtype=rates.dtype)[:, None] * rates
            cos, sin = angles.cos(), angles.sin()
            a, b = x[..., :half], x[..., half:]
            return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
        return turned
    for layer in model.model.layers:
        layer.self_attn.turned = turner(layer.self_attn)
