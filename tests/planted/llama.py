"""A Llama in plain PyTorch, with names and layouts of Hugging Face's files: what can be got wrong is an attribute."""
import math

import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self, dim, epsilon):
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.ones(dim)), epsilon

    def forward(self, x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.epsilon) * self.weight


class Attention(nn.Module):
    def __init__(self, dim, heads, groups, wide, base):
        super().__init__()
        self.heads, self.groups, self.wide, self.base = heads, groups, wide, base
        self.q_proj, self.o_proj = nn.Linear(dim, heads * wide, bias=False), nn.Linear(heads * wide, dim, bias=False)
        self.k_proj, self.v_proj = (nn.Linear(dim, groups * wide, bias=False) for _ in range(2))

    def turned(self, x):
        """Pairs of features, half a head apart, turned by angles that grow with the position."""
        half = self.wide // 2
        angles = torch.arange(x.shape[2])[:, None] * self.base ** (-torch.arange(half) / half)
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1).to(x.dtype)

    def repeated(self, x):
        """Each head of keys for the heads of queries in its group, which follow one another."""
        return x.repeat_interleave(self.heads // self.groups, 1)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (proj(x).view(batch, length, -1, self.wide).transpose(1, 2)
                   for proj in (self.q_proj, self.k_proj, self.v_proj))
        q, k, v = self.turned(q), self.repeated(self.turned(k)), self.repeated(v)
        scores = q @ k.transpose(2, 3) / math.sqrt(self.wide)
        seen = torch.ones(length, length, dtype=torch.bool).tril()
        weights = scores.masked_fill(~seen, torch.finfo(scores.dtype).min).softmax(-1)
        return self.o_proj((weights @ v).transpose(1, 2).reshape(batch, length, -1))


class Mlp(nn.Module):
    def __init__(self, dim, inner):
        super().__init__()
        self.gate_proj, self.up_proj = (nn.Linear(dim, inner, bias=False) for _ in range(2))
        self.down_proj, self.act_fn = nn.Linear(inner, dim, bias=False), nn.SiLU()

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        dim, epsilon = c["hidden_size"], c["rms_norm_eps"]
        self.input_layernorm = Norm(dim, epsilon)
        self.self_attn = Attention(dim, c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"],
                                   c["rope_parameters"]["rope_theta"])
        self.post_attention_layernorm = Norm(dim, epsilon)
        self.mlp = Mlp(dim, c["intermediate_size"])

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))  # LINE llama_attn
        return x + self.mlp(self.post_attention_layernorm(x))  # LINE llama_mlp


class Body(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed_tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.layers = nn.ModuleList(Block(c) for _ in range(c["num_hidden_layers"]))
        self.norm = Norm(c["hidden_size"], c["rms_norm_eps"])

    def forward(self, tokens):
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class Llama(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.model = Body(config)
        self.lm_head = nn.Linear(config["hidden_size"], config["vocab_size"], bias=False)

    def loss(self, tokens, targets):
        logits = self.lm_head(self.model(tokens))
        return nn.functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), ignore_index=-100)
