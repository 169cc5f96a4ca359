#!/usr/bin/env python3
"""PyTorch's causal flash attention on a CPU, forward and backward, and nothing else.

Queries, keys and values are leaves that lie as the kernel likes them; nothing is split or joined.

  attention.py --batch 1 --seq 4096 --heads 12 --width 64 --amp bf16
"""
import torch
import torch.nn.functional as F

import timed


def main():
    parser = timed.parser(__doc__.splitlines()[0], steps=5)
    for name, size in {"batch": 1, "seq": 4096, "heads": 12, "width": 64}.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    o = parser.parse_args()
    timed.start(o)
    kind = timed.LOW.get(o.amp, torch.float32)
    operands = [torch.randn(o.batch, o.heads, o.seq, o.width).to(kind).requires_grad_()
                for _ in range(3)]
    cotangent = torch.randn(o.batch, o.heads, o.seq, o.width).to(kind)
    attend = torch.compile(F.scaled_dot_product_attention) if o.compile \
        else F.scaled_dot_product_attention

    def both_ways():
        mixed = attend(*operands, is_causal=True)
        torch.autograd.grad(mixed, operands, cotangent)

    timed.report(o, timed.median_ms(both_ways, o.steps))


if __name__ == "__main__":
    main()
