#!/usr/bin/env python3
"""probe_right_models.py ALOFT [COUNT] [SEED]: that `aloft probe compare` calls no right model wrong. GPT-2 models of
random shapes and weights (12 unless told otherwise), each run here at O0, O1:bf16 and O2:bf16 and in PyTorch in
float32, in bfloat16 and under autocast, all held against each other: nine comparisons a model. Prints what each says
that finds a divergence, and which share of its limit the nearest value of all came to; exit 1 where there is one.

Run by a Python that has torch, transformers and safetensors.
"""
import contextlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import gpt2_model as gpt2
import numpy as np
import torch
from safetensors.numpy import save_file
from transformers import GPT2LMHeadModel

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python" / "aloft_probe")]
from aloft_probe import Probe  # noqa: E402
from live import drawn  # noqa: E402

HERE = ("O0", "O1:bf16", "O2:bf16")
THERE = {"float32": (torch.float32, None), "bfloat16": (torch.bfloat16, None),
         "autocast": (torch.float32, torch.bfloat16)}


def in_pytorch(folder, shape, weights, tokens, targets, dtype, low):
    model = GPT2LMHeadModel(gpt2.config(shape)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(weights[name]))
    model.to(dtype)
    probe = Probe(model, folder)
    with probe.step():
        with torch.autocast("cpu", low) if low else contextlib.nullcontext():
            logits = model(torch.from_numpy(tokens)).logits
        loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), torch.from_numpy(targets).flatten(),
                                                 ignore_index=-100)
        probe.loss(loss).backward()
    probe.remove()


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr}")


def main():
    aloft = Path(sys.argv[1]).resolve()
    count, seed = (int(word) for word in (sys.argv[2:] + ["12", "1"][len(sys.argv[2:]):])[:2])
    torch.set_num_threads(1)
    comparisons, alarms, nearest = 0, 0, (0, "")
    for index in range(count):
        made = drawn(index, np.random.default_rng(seed + index))
        shape, weights, tokens = made.shape, made.weights, made.tokens.astype(np.int64)
        targets = gpt2.next_token_targets(tokens)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            model = GPT2LMHeadModel(gpt2.config(shape))
            with torch.no_grad():
                for key, parameter in model.named_parameters():
                    parameter.copy_(torch.from_numpy(weights[key]))
            model.save_pretrained(folder / "model")
            save_file({"tokens": tokens, "targets": targets}, folder / "data.safetensors")
            for level in HERE:
                run(aloft, "probe", "run", folder / "model", "--tokens", folder / "data.safetensors", "--precision",
                    level, "--out", folder / level)
            for kind, (dtype, low) in THERE.items():
                in_pytorch(folder / kind, shape, weights, tokens, targets, dtype, low)
            for level in HERE:
                for kind in THERE:
                    run(aloft, "probe", "compare", folder / level, folder / kind, "-o", folder / "said")
                    said = json.loads(next((folder / "said").glob("compare_result*.json")).read_text())
                    comparisons += 1
                    if said["divergence"] or said["coverage"]["lacks"]:
                        alarms += 1
                        print(f"{shape}, {level} beside {kind}: {said['sentence']}", flush=True)
                    for row in said["compared"]:
                        if row["allowed"] and isinstance(row["difference"], float):
                            share = row["difference"] / row["allowed"]
                            nearest = max(nearest, (share, f"{row['npu']['name']}, {level} beside {kind}"))
    print(f"{comparisons} comparisons of {count} right models: {alarms} false alarms; the nearest to its limit comes "
          f"to {nearest[0]:.2f} of it ({nearest[1]})")
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
