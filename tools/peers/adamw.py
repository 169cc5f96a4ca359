#!/usr/bin/env python3
"""torch.optim.AdamW's step alone on GPT-2 124M's parameters, with gradients that lie ready.

  adamw.py --fused
"""
import torch

import timed


def shapes(layers, dim, vocab, context):
    yield (vocab, dim)
    yield (context, dim)
    for _ in range(layers):
        yield from ((dim,), (dim,), (3 * dim, dim), (3 * dim,), (dim, dim), (dim,),
                    (dim,), (dim,), (4 * dim, dim), (4 * dim,), (dim, 4 * dim), (dim,))
    yield from ((dim,), (dim,))


def main():
    parser = timed.parser(__doc__.splitlines()[0], steps=20)
    for name, size in {"layers": 12, "dim": 768, "vocab": 50304, "seq": 256}.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    o = parser.parse_args()
    timed.start(o)
    weights = [torch.nn.Parameter(0.02 * torch.randn(s))
               for s in shapes(o.layers, o.dim, o.vocab, o.seq)]
    for weight in weights:
        weight.grad = 0.01 * torch.randn_like(weight)
    optimizer = torch.optim.AdamW(weights, lr=1e-3, fused=o.fused)
    timed.report(o, timed.median_ms(optimizer.step, o.steps),
                 parameters=sum(w.numel() for w in weights))


if __name__ == "__main__":
    main()
