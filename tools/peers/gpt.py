#!/usr/bin/env python3
"""A training step of src/models/gpt2.h in PyTorch: forward, backward, clipping at norm 1, AdamW.

The same work as `aloft bench step`: tied head, tanh gelu, causal attention through
scaled_dot_product_attention (PyTorch's flash attention on a CPU), random tokens.

  gpt.py --layers 12 --heads 12 --dim 768 --vocab 50304 --batch 4 --seq 256 --amp bf16 --fused
"""
import torch
import torch.nn.functional as F
from torch import nn

import timed


class Block(nn.Module):
    def __init__(self, dim, heads, bias):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = (nn.LayerNorm(dim, bias=bias) for _ in range(2))
        self.attention = nn.Linear(dim, 3 * dim, bias=bias)
        self.attention_out = nn.Linear(dim, dim, bias=bias)
        self.widen = nn.Linear(dim, 4 * dim, bias=bias)
        self.narrow = nn.Linear(4 * dim, dim, bias=bias)

    def forward(self, x):
        batch, length, dim = x.shape
        heads = self.attention(self.norm_1(x)).view(batch, length, 3, self.heads, -1)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.attention_out(mixed.transpose(1, 2).reshape(batch, length, dim))
        return x + self.narrow(F.gelu(self.widen(self.norm_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, layers, heads, dim, vocab, length, bias):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocab, dim), nn.Embedding(length, dim)
        self.blocks = nn.Sequential(*(Block(dim, heads, bias) for _ in range(layers)))
        self.norm = nn.LayerNorm(dim, bias=bias)
        for weight in self.parameters():
            if weight.dim() == 2:
                nn.init.normal_(weight, std=0.02)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.places.weight[:tokens.shape[1]]
        logits = F.linear(self.norm(self.blocks(x)), self.tokens.weight)
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


def main():
    parser = timed.parser(__doc__.splitlines()[0], steps=6)
    for name, size in {"layers": 12, "heads": 12, "dim": 768, "vocab": 50304, "batch": 4,
                       "seq": 256}.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--no-bias", action="store_true", help="nor in norms, as nanoGPT")
    o = parser.parse_args()
    timed.start(o)
    model = Gpt(o.layers, o.heads, o.dim, o.vocab, o.seq, not o.no_bias)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=o.fused)
    forward = torch.compile(model) if o.compile else model
    tokens, targets = torch.randint(o.vocab, (2, o.batch, o.seq))
    last = {}

    def step():
        optimizer.zero_grad(set_to_none=True)
        with timed.low_precision(o):
            loss = forward(tokens, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        last["loss"] = loss.item()

    step_ms = timed.median_ms(step, o.steps)
    timed.report(o, step_ms, tokens_per_s=1e3 * o.batch * o.seq / step_ms, **last)


if __name__ == "__main__":
    main()
