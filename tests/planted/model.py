"""A GPT-2 in plain PyTorch, as a person writes it who ports one: what can be got wrong is an attribute or a
module of its own. Names and layouts of weights are those of Hugging Face's files."""
import math

import torch
from torch import nn


class Projection(nn.Module):
    """x W + b, with W [in, out]."""

    def __init__(self, wide, out):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(wide, out)), nn.Parameter(torch.empty(out))

    def forward(self, x):
        return nn.functional.linear(x, self.weight.T, self.bias)


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.scale = 1 / math.sqrt(dim // heads)
        self.diagonal = 0  # how far ahead a position sees
        self.axis = -1     # over which the weights of a position are 1
        self.order = (0, 1, 2)  # of query, key and value in what c_attn gives
        self.c_attn, self.c_proj = Projection(dim, 3 * dim), Projection(dim, dim)

    def forward(self, x):
        batch, length, dim = x.shape
        parts = self.c_attn(x).split(dim, 2)
        q, k, v = (parts[i].view(batch, length, self.heads, dim // self.heads).transpose(1, 2) for i in self.order)
        scores = q @ k.transpose(2, 3) * self.scale  # LINE scores
        seen = torch.ones(length, length, dtype=torch.bool).tril(self.diagonal)
        weights = scores.masked_fill(~seen, torch.finfo(scores.dtype).min).softmax(self.axis)  # LINE weights
        return self.c_proj((weights @ v).transpose(1, 2).reshape(batch, length, dim))  # LINE attn_out


class Mlp(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.c_fc, self.c_proj = Projection(dim, 4 * dim), Projection(4 * dim, dim)
        self.act = nn.GELU("tanh")

    def forward(self, x):
        return self.c_proj(self.act(self.c_fc(x)))  # LINE in_mlp


class Block(nn.Module):
    def __init__(self, dim, heads, epsilon):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(dim, epsilon), Attention(dim, heads)
        self.ln_2, self.mlp = nn.LayerNorm(dim, epsilon), Mlp(dim)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))  # LINE attn
        return x + self.mlp(self.ln_2(x))  # LINE mlp


class Body(nn.Module):
    def __init__(self, c):
        super().__init__()
        dim = c["n_embd"]
        self.wte, self.wpe = nn.Embedding(c["vocab_size"], dim), nn.Embedding(c["n_positions"], dim)
        self.h = nn.ModuleList(Block(dim, c["n_head"], c["layer_norm_epsilon"]) for _ in range(c["n_layer"]))
        self.ln_f = nn.LayerNorm(dim, c["layer_norm_epsilon"])

    def forward(self, tokens):
        positions = torch.arange(tokens.shape[1])
        x = self.wte(tokens) + self.wpe(positions)  # LINE tables
        for block in self.h:
            x = block(x)  # LINE block
        return self.ln_f(x)  # LINE last_norm


class Gpt2(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.transformer = Body(config)
        self.lm_head = nn.Linear(config["n_embd"], config["vocab_size"], bias=False)
        self.lm_head.weight = self.transformer.wte.weight

    def forward(self, tokens):
        return self.lm_head(self.transformer(tokens))  # LINE body

    def loss(self, tokens, targets):
        return nn.functional.cross_entropy(self(tokens).flatten(0, 1).float(), targets.flatten(), ignore_index=-100)
