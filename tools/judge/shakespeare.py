#!/usr/bin/env python3
"""nanoGPT's CPU recipe on tiny Shakespeare in PyTorch: what recipes/shakespeare-char.toml is held beside.

  tools/judge/shakespeare.py input.txt [--seeds 1 2 3] [--gelu tanh] [--json out.json]

An independent program: model, data order, schedule and evaluation are written from the published
recipe (4 layers, 4 heads, width 128, context 64, batch 12, 2,000 steps, lr 1e-3 to 1e-4, warm-up
100, betas 0.9 and 0.99, weight decay 0.1 on matrices, clip 1.0, no biases, no dropout). It prints
the mean loss over the whole validation split (consecutive windows of 64) and the estimate from 20
random batches that nanoGPT itself prints.
"""
import argparse
import json
import math
import statistics
import sys

import torch
import torch.nn.functional as F
from torch import nn

LAYERS, HEADS, DIM, CONTEXT, BATCH, STEPS = 4, 4, 128, 64, 12, 2000
LR, FINAL_LR, WARMUP = 1e-3, 1e-4, 100


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = (nn.LayerNorm(DIM, bias=False) for _ in range(2))
        self.c_attn = nn.Linear(DIM, 3 * DIM, bias=False)
        self.c_proj = nn.Linear(DIM, DIM, bias=False)
        self.c_fc = nn.Linear(DIM, 4 * DIM, bias=False)
        self.c_out = nn.Linear(4 * DIM, DIM, bias=False)

    def forward(self, x, gelu):
        batch, length, _ = x.shape
        q, k, v = (part.view(batch, length, HEADS, DIM // HEADS).transpose(1, 2)
                   for part in self.c_attn(self.ln_1(x)).split(DIM, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).reshape(batch, length, DIM))
        return x + self.c_out(F.gelu(self.c_fc(self.ln_2(x)), approximate=gelu))


class Gpt(nn.Module):
    def __init__(self, vocab, gelu):
        super().__init__()
        self.gelu = gelu
        self.wte, self.wpe = nn.Embedding(vocab, DIM), nn.Embedding(CONTEXT, DIM)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.ln_f = nn.LayerNorm(DIM, bias=False)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                residual = name.endswith(("c_proj.weight", "c_out.weight"))
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * LAYERS) if residual else 0.02)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x, self.gelu)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def learning_rate(step):
    if step < WARMUP:
        return LR * (step + 1) / (WARMUP + 1)
    share = (step - WARMUP) / (STEPS - WARMUP)
    return FINAL_LR + 0.5 * (1 + math.cos(math.pi * share)) * (LR - FINAL_LR)


def random_batch(split, generator):
    starts = torch.randint(len(split) - CONTEXT, (BATCH,), generator=generator)
    windows = torch.stack([split[i:i + CONTEXT + 1] for i in starts])
    return windows[:, :-1], windows[:, 1:]


@torch.no_grad()
def whole_split(model, split):
    count = (len(split) - 1) // CONTEXT
    tokens = split[:count * CONTEXT].view(count, CONTEXT)
    targets = split[1:count * CONTEXT + 1].view(count, CONTEXT)
    losses = [model(tokens[i:i + 64], targets[i:i + 64]).item() * len(tokens[i:i + 64])
              for i in range(0, count, 64)]
    return sum(losses) / count


@torch.no_grad()
def estimate(model, split, generator):
    return statistics.mean(model(*random_batch(split, generator)).item() for _ in range(20))


def train(text, seed, gelu):
    letters = sorted(set(text))
    codes = torch.tensor([letters.index(c) for c in text])
    cut = int(0.9 * len(codes))
    training, validation = codes[:cut], codes[cut:]
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = Gpt(len(letters), gelu)
    groups = [{"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": 0.1},
              {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=LR, betas=(0.9, 0.99), fused=True)
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        loss = model(*random_batch(training, generator))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return {"seed": seed, "validation": whole_split(model, validation),
            "estimate": estimate(model, validation, generator)}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--gelu", choices=("tanh", "none"), default="none",
                        help="none: exact, as published")
    parser.add_argument("--json")
    options = parser.parse_args()
    with open(options.text, encoding="utf-8") as file:
        text = file.read()
    rows = []
    for seed in options.seeds:
        rows.append(train(text, seed, options.gelu))
        print(json.dumps(rows[-1]), flush=True)
    mean = statistics.mean(row["validation"] for row in rows)
    print(f"torch {torch.__version__}, gelu {options.gelu}: mean {mean:.4f}", file=sys.stderr)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"torch": torch.__version__, "gelu": options.gelu, "rows": rows}, file)


if __name__ == "__main__":
    main()
