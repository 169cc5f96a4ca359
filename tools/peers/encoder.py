#!/usr/bin/env python3
"""A training step of a BERT that classifies texts, by transformers: forward, backward, clipping at norm 1, AdamW.

The same work as `aloft bench step --model bert-base`: texts as long as --seq, their mask with them, dropout of 0.1 at
transformers' places, attention as transformers chooses it (scaled_dot_product_attention on a CPU).

  encoder.py --batch 16 --seq 128 --amp bf16 --fused
"""
import torch
from torch import nn
from transformers import BertConfig, BertForSequenceClassification

import timed


def main():
    parser = timed.parser(__doc__.splitlines()[0], steps=6)
    for name, size in {"layers": 12, "heads": 12, "dim": 768, "vocab": 30522, "classes": 2, "batch": 16,
                       "seq": 128}.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--dropout", type=float, default=0.1)
    o = parser.parse_args()
    timed.start(o)
    model = BertForSequenceClassification(BertConfig(
        num_hidden_layers=o.layers, num_attention_heads=o.heads, hidden_size=o.dim, intermediate_size=4 * o.dim,
        vocab_size=o.vocab, num_labels=o.classes, max_position_embeddings=max(512, o.seq),
        hidden_dropout_prob=o.dropout, attention_probs_dropout_prob=o.dropout)).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=o.fused)
    forward = torch.compile(model) if o.compile else model
    tokens, labels = torch.randint(o.vocab, (o.batch, o.seq)), torch.randint(o.classes, (o.batch,))
    mask = torch.ones_like(tokens)
    last = {}

    def step():
        optimizer.zero_grad(set_to_none=True)
        with timed.low_precision(o):
            loss = forward(input_ids=tokens, attention_mask=mask, labels=labels).loss
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        last["loss"] = loss.item()

    step_ms = timed.median_ms(step, o.steps)
    timed.report(o, step_ms, tokens_per_s=1e3 * o.batch * o.seq / step_ms, **last)


if __name__ == "__main__":
    main()
