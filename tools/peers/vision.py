#!/usr/bin/env python3
"""Peer of `aloft bench step --model lenet` and `--model resnet18`: the same training step in PyTorch
on the CPU, SGD with momentum on made-up images of 32 x 32 pixels. Prints steps/s.

    vision.py --model lenet|resnet18 --batch 32 --steps 10 --amp fp32|bf16 [--compile]
              [--channels-last] [--fused] [--threads 2] [--json]
"""
import argparse
import json
import resource
import time

import torch

import vision_models


def options():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", choices=("lenet", "resnet18"), default="lenet")
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--steps", type=int, default=10)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--amp", choices=("fp32", "bf16"), default="fp32")
    p.add_argument("--compile", action="store_true", help="torch.compile the model")
    p.add_argument("--channels-last", action="store_true", help="NHWC images and weights")
    p.add_argument("--fused", action="store_true", help="SGD(fused=True)")
    p.add_argument("--json", action="store_true")
    return p.parse_args()


def main():
    o = options()
    torch.manual_seed(0)
    torch.set_num_threads(o.threads)
    model = vision_models.LeNet() if o.model == "lenet" else vision_models.ResNet()
    x = torch.rand(o.batch, 1 if o.model == "lenet" else 3, 32, 32) * 2 - 1
    if o.channels_last:
        model = model.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
    labels = torch.arange(o.batch) % 10
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9,
                                fused=True if o.fused else None)
    forward = torch.compile(model) if o.compile else model
    times = []
    for _ in range(o.steps + 2):  # the first two compile, allocate and choose
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=o.amp == "bf16"):
            loss = torch.nn.functional.cross_entropy(forward(x), labels)
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    step = sorted(times[2:])[o.steps // 2]
    got = {"torch": torch.__version__, "model": o.model, "amp": o.amp, "compile": o.compile,
           "channels_last": o.channels_last, "fused": o.fused, "batch": o.batch,
           "loss": loss.item(), "step_ms": step * 1e3, "steps_per_s": 1 / step,
           "images_per_s": o.batch / step,
           "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
    if o.json:
        print(json.dumps(got))
    else:
        kind = " ".join(w for w in ("compile", "channels_last", "fused") if got[w]) or "eager"
        print(f"torch {got['torch']} {o.model} {o.amp} {kind}: {1 / step:.2f} steps/s, "
              f"step {step * 1e3:.2f} ms, loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
