#!/usr/bin/env python3
"""Folders that `aloft export hf` writes, opened by transformers.

Of every language model among the fixtures: exported as it is, its logits, and the tensors of the same names, must be
those of the fixture to the bit; trained for a step with `aloft train --init`, exported and opened, its logits must be
those that `aloft score` gives for the run, within 1e-5 of the largest. A line each; exit 1 where one is not.

  tools/judge/reopen.py [--aloft build/bin/aloft]

needs the packages torch, transformers and safetensors.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
BOUND = 1e-5
NOT_OPENED = {"gpt2-linear"}  # by transformers itself: projections lie there as other programs keep them
RECIPE = """[data]
train_tokens = "tokens.bin"
length = 8
[optimizer]
lr = 1e-2
[train]
batch = 2
steps = 1
checkpoint_minutes = 0
"""


def logits_of(folder, tokens):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    with torch.no_grad():
        return model.eval()(tokens).logits


def judge(aloft, fixture, place):
    def run(*arguments):
        done = subprocess.run([aloft, *map(str, arguments)], cwd=place, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"aloft {arguments[0]}: {done.stderr.strip()}")

    config = json.loads((fixture / "config.json").read_text())
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(0, config["vocab_size"], (2, 8), generator=generator)
    run("export", "hf", fixture, "same")
    before, after = load_file(fixture / "model.safetensors"), load_file(place / "same" / "model.safetensors")
    # A file may have other names for some, and projections as [out, in].
    same = all(torch.equal(one, after[name]) or one.dim() == 2 and torch.equal(one.mT, after[name])
               for name, one in ((name, t.float()) for name, t in before.items()) if name in after)
    start = logits_of(place / "same", tokens)
    if fixture.name not in NOT_OPENED:
        same &= torch.equal(logits_of(fixture, tokens), start)
    (place / "r.toml").write_text(RECIPE)
    (place / "tokens.bin").write_bytes(
        torch.randint(0, config["vocab_size"], (64,), generator=generator, dtype=torch.int32).numpy()
        .astype("uint16").tobytes())
    run("train", "r.toml", "--init", fixture, "--out", "run")
    run("export", "hf", "run", "tuned")
    save_file({"tokens": tokens.int()}, place / "tokens.safetensors")
    run("score", "run", "--tokens", "tokens.safetensors", "--out", "scored.safetensors")
    ours, theirs = load_file(place / "scored.safetensors")["logits"], logits_of(place / "tuned", tokens)
    moved = (theirs - start).abs().max() > 0
    return same, moved, ((ours - theirs).abs().max() / theirs.abs().max()).item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--aloft", type=pathlib.Path, default=ROOT / "build" / "bin" / "aloft")
    aloft = parser.parse_args().aloft.resolve()
    bad = 0
    for config in sorted((ROOT / "tests" / "fixtures").glob("*/config.json")):
        with tempfile.TemporaryDirectory() as place:
            same, moved, error = judge(aloft, config.parent, pathlib.Path(place))
        good = same and moved and error <= BOUND
        bad += not good
        print(f"{config.parent.name:20} {'equal' if same else 'NOT equal'} as it is; trained "
              f"{'' if moved else 'NOT '}and opened again, off by {error:.1e}{'' if good else '  WRONG'}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
