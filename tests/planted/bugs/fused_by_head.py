"""What c_attn gives is read as (query, key, value) of each head in turn, which is how others store it."""
import torch

MODULE = "transformer.h.0.attn"
PLACE, KIND = "forward", "Attention"
LINE = "attn"


def plant(model):
    def reader(attention):
        def forward(x):
            batch, length, dim = x.shape
            parts = attention.c_attn(x).view(batch, length, attention.heads, 3, dim // attention.heads)
            q, k, v = (part.transpose(1, 2) for part in parts.unbind(3))
            scores = q @ k.transpose(2, 3) * attention.scale
            seen = torch.ones(length, length, dtype=torch.bool).tril()
            weights = scores.masked_fill(~seen, torch.finfo(scores.dtype).min).softmax(-1)
            return attention.c_proj((weights @ v).transpose(1, 2).reshape(batch, length, dim))
        return forward
    for block in model.transformer.h:
        block.attn.forward = reader(block.attn)
