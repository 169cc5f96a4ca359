#!/usr/bin/env python3
"""The step of one of torch.optim's optimizers alone on GPT-2 124M's parameters, with gradients that lie ready.

  optimizer.py --kind AdamW --fused
  optimizer.py --kind SGD --options '{"momentum": 0.9}'
  optimizer.py --kind AdamW --fused --whole
  optimizer.py --kind AdamW --fused --beside build/bin/optimizer_bench --formula adamw

Without --fused the form is foreach. Muon takes matrices alone: AdamW steps the rest in the same time.
--whole is all that ends a step: clip_grad_norm_(..., error_if_nonfinite=True), then the step.
--beside: a step here and a sweep of that program take turns, and with each the stream over the sweep's arrays.
Then `ratio` is this step's time over the sweep's, `share` the stream's over the sweep's, `peer_share` the
stream's over this step's: each the median over the turns of what was measured within one.
"""
import json

import torch

import timed
import turns


def shapes(layers, dim, vocab, context):
    yield (vocab, dim)
    yield (context, dim)
    for _ in range(layers):
        yield from ((dim,), (dim,), (3 * dim, dim), (3 * dim,), (dim, dim), (dim,),
                    (dim,), (dim,), (4 * dim, dim), (4 * dim,), (dim, 4 * dim), (dim,))
    yield from ((dim,), (dim,))


def options():
    parser = timed.parser(__doc__.splitlines()[0], steps=20)
    for name, size in {"layers": 12, "dim": 768, "vocab": 50304, "seq": 256}.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--kind", default="AdamW", help="a class of torch.optim")
    parser.add_argument("--options", type=json.loads, default={}, help="its options, as JSON")
    parser.add_argument("--whole", action="store_true", help="norm, check and clipping before the step")
    parser.add_argument("--beside", metavar="PROGRAM", help="optimizer_bench, which takes turns")
    parser.add_argument("--formula", default="adamw", help="what that one sweeps")
    return parser.parse_args()


def main():
    o = options()
    timed.start(o)
    weights = [torch.nn.Parameter(0.02 * torch.randn(s))
               for s in shapes(o.layers, o.dim, o.vocab, o.seq)]
    for weight in weights:
        weight.grad = 0.01 * torch.randn_like(weight)
    form = {"fused": True} if o.fused else {"foreach": True}
    if o.kind == "Muon":
        rest = [weights[0], weights[1], *(w for w in weights[2:] if w.dim() != 2)]
        own = [w for w in weights[2:] if w.dim() == 2]
        steps = [torch.optim.Muon(own, lr=1e-3, **o.options).step,
                 torch.optim.AdamW(rest, lr=1e-3, fused=True).step]
    else:
        steps = [getattr(torch.optim, o.kind)(weights, lr=1e-3, **form, **o.options).step]

    def end_of_step():
        if o.whole:
            torch.nn.utils.clip_grad_norm_(weights, 1.0, error_if_nonfinite=True, foreach=True)
        for step in steps:
            step()

    more = {}
    if o.beside:
        with turns.Sweep([o.beside, "turns", o.formula, "fp32"], o.threads) as sweep:
            step_ms, more = turns.in_turns(end_of_step, sweep, o.steps)
    else:
        step_ms = timed.median_ms(end_of_step, o.steps)
    timed.report(o, step_ms, kind=o.kind, whole=o.whole, parameters=sum(w.numel() for w in weights), **more)


if __name__ == "__main__":
    main()
