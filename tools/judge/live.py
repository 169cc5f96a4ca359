#!/usr/bin/env python3
"""Runs `aloft score` beside PyTorch: the committed GPT-2 fixtures and models drawn just now; before
them, what the committed fixtures say of this build: optimizers, schedules and loss scalers, every family
of decoders and encoders, both spellings of config.json, tokens of greedy generation and of beams,
chat templates.

For every model and precision: logits, loss and all gradients of Aloft against the float64 judge
(largest difference over largest magnitude of each tensor), with PyTorch's own error in the same
precision beside it. Exit 1 where a tensor is outside its limit:

  O0          1e-5, or 2 times PyTorch's own float32 error where that is more
  low types   LOW_FLOOR of the type, or 4 times PyTorch's own error. That is autocast's; at O2 and O3,
              which keep weights and activations narrow, the worse of it and of a model cast as a
              whole; and at any level not less than what one rounding of each weight, drawn at
              random, does to the judge itself: norms of a model of width 4 make a hundred times
              more of a rounding, and one run of PyTorch may be lucky
"""
import argparse
import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers
from safetensors.numpy import load_file, save_file

import gpt2_model as gpt2
import measure
from families import gpt2 as committed

ROOT = pathlib.Path(__file__).resolve().parents[2]
NUDGES = 4  # roundings of the weights that a model is tried with
# 8 and 16 units in the last place of the stored type, for logits and gradients.
LOW_FLOOR = {"bf16": {"logits": 2**-5, "grad": 2**-4}, "fp16": {"logits": 2**-8, "grad": 2**-7}}


@dataclasses.dataclass
class Model:
    name: str
    shape: gpt2.Shape
    weights: dict  # as GPT2LMHeadModel names them
    tokens: np.ndarray
    targets: np.ndarray | None  # None: the next token
    linear: bool = False        # [out, in] on disk
    bare: bool = False          # no `transformer.` prefix on disk

    def on_disk(self, tensors):
        tensors = gpt2.to_linear(tensors) if self.linear else tensors
        return committed.bare(tensors) if self.bare else tensors

    def judged(self, **how):
        """What gpt2_model.judge() says of it, by the names on disk."""
        tokens = self.tokens.astype(np.int64)
        targets = gpt2.next_token_targets(tokens) if self.targets is None else self.targets
        return self.on_disk(gpt2.judge(self.shape, self.weights, tokens, targets, **how))

    def own_errors(self, precision, exact):
        """Of PyTorch in a level's types, tensor by tensor: the worst of its ways to compute in them,
        and of the judge with weights that are off by a rounding."""
        level, _, name = precision.partition(":")
        low = measure.LOW_TYPES.get(name)
        runs = [self.judged(dtype=torch.float32, autocast=low)]
        if low:
            runs += [self.nudged(torch.finfo(low).eps / 2, seed).judged() for seed in range(NUDGES)]
        if low and level in ("O2", "O3"):
            runs.append(self.judged(dtype=low))
        return {n: max(measure.error(run[n], exact[n]) for run in runs) for n in exact}

    def nudged(self, size, seed):
        """With each weight off by a share of it, drawn up to `size`."""
        rng = np.random.default_rng(seed)
        weights = {n: w * (1 + rng.uniform(-size, size, w.shape)) for n, w in self.weights.items()}
        return dataclasses.replace(self, weights=weights)


def fixture(name):
    """A committed directory, read by transformers itself where transformers can read it."""
    shape, *_ = committed.MODELS[name]
    folder = ROOT / "tests" / "fixtures" / name
    expected = load_file(folder / "expected.safetensors")
    linear, is_bare = name == "gpt2-linear", name == "gpt2-odd"
    if linear:
        weights = gpt2.to_linear(load_file(folder / "model.safetensors"))  # its own inverse
    else:
        read = gpt2.GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager")
        weights = {n: p.detach().numpy() for n, p in read.named_parameters()}
    return Model(name, shape, weights, expected["tokens"], expected["targets"], linear, is_bare)


def drawn(index, rng):
    heads = int(rng.integers(1, 7))
    context = int(rng.integers(2, 70))
    shape = gpt2.Shape(
        layers=int(rng.integers(1, 5)), heads=heads, dim=heads * int(rng.integers(1, 25)),
        vocab=int(rng.integers(17, 300)), context=context,
        inner=None if rng.random() < 0.7 else int(rng.integers(1, 90)))
    tokens = gpt2.draw_tokens(shape, int(rng.integers(1, 6)), int(rng.integers(2, context + 1)), rng)
    targets = None
    if rng.random() < 0.5:
        targets = rng.integers(0, shape.vocab, tokens.shape, dtype=np.int64)
        targets[rng.random(tokens.shape) < 0.2] = -100
        targets[0, 0] = 1  # at least one counts
    if rng.random() < 0.5:
        tokens = tokens.astype(np.int32)
    return Model(f"drawn-{index}", shape, gpt2.draw_weights(shape, rng), tokens, targets,
                 linear=rng.random() < 0.3, bare=rng.random() < 0.5)


def write(model, folder):
    folder.mkdir()
    config = json.loads(gpt2.config(model.shape).to_json_string())
    (folder / "config.json").write_text(json.dumps(config))
    save_file(model.on_disk(model.weights), folder / "model.safetensors", {"format": "pt"})
    return folder


def score(aloft, folder, tokens_file, out, precision, mode):
    command = [aloft, "score", folder, "--tokens", tokens_file, "--out", out, "--grads",
               "--precision", precision, "--mode", mode]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr}")
    return load_file(out)


def limit(name, precision, own):
    if precision == "O0":
        return max(1e-5, 2 * own)
    floor = LOW_FLOOR[precision.split(":")[1]]
    return max(floor["grad" if name.startswith("grad.") else "logits"], 4 * own)


def verdict(got, exact, own, precision):
    """Rows {tensor: (error, PyTorch's own error, limit)} and what is missing or too much."""
    rows, wrong = {}, [f"no tensor {n}" for n in sorted(exact.keys() - got.keys())]
    wrong += [f"unexpected tensor {n}" for n in sorted(got.keys() - exact.keys())]
    for n in exact.keys() & got.keys():
        if got[n].dtype != np.float32 or got[n].shape != exact[n].shape:
            wrong.append(f"{n}: {got[n].dtype} {got[n].shape}, not float32 {exact[n].shape}")
            continue
        rows[n] = (measure.error(got[n], exact[n]), own[n], limit(n, precision, own[n]))
        if not rows[n][0] <= rows[n][2]:
            wrong.append(f"{n}: {rows[n][0]:.2e} over {rows[n][2]:.2e}")
    return rows, wrong


def row_text(model, precision, mode, rows, wrong):
    grads = {n: r for n, r in rows.items() if n.startswith("grad.")}
    worst = max(grads, key=lambda n: grads[n][0] / grads[n][2], default=None)
    size = f"{model.shape.layers}x{model.shape.dim}/{model.shape.heads} V{model.shape.vocab} " \
           f"B{model.tokens.shape[0]} T{model.tokens.shape[1]}"
    cells = [f"{model.name:12} {size:28} {precision:8} {mode:5}"]
    for n in ("logits", "loss", worst):
        cells.append(f"{rows[n][0]:8.1e} ({rows[n][1]:8.1e})" if n in rows else f"{'-':>19}")
    return " ".join(cells) + f"  {'FAIL' if wrong else 'ok':4} {worst or ''}"


# Programs of the tests that print a row for each rule: what it is, the largest error, its bound.
PARITIES = ["parity_optimizer_rules", "parity_schedules", "parity_scaler", "e2e_apex", "parity_decoders",
            "parity_encoders", "parity_beams", "models", "data_chat"]


def rules(programs):
    """Prints the rows of these programs beside the fixtures; how many of the programs failed."""
    failures = 0
    print(f"{'kind':10} {'rule':64} {'error':>8} {'bound':>7}")
    for name in PARITIES:
        if not (programs / name).exists():
            print(f"{name} is not built: cmake --preset rel -D ALOFT_TESTS=ON, then its target")
            failures += 1
            continue
        done = subprocess.run([programs / name], cwd=ROOT, capture_output=True, text=True)
        for line in done.stdout.splitlines():
            if line.startswith("parity  "):
                _, kind, rule, error, bound = line.split("  ")
                print(f"{kind:10} {rule:64} {error:>8} {bound.removeprefix('of '):>7}")
        if done.returncode != 0:
            print(f"{name} failed:", *done.stdout.splitlines()[-6:], sep="\n    ")
            failures += 1
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--aloft", default=ROOT / "build/bin/aloft", type=pathlib.Path)
    parser.add_argument("--models", type=int, default=8, help="how many to draw")
    parser.add_argument("--seed", type=int, default=None, help="of the drawn models (random)")
    parser.add_argument("--precision", nargs="+", default=["O0", "O1:bf16", "O2:bf16", "O2:fp16"])
    parser.add_argument("--mode", nargs="+", default=["graph"], choices=["graph", "eager"])
    options = parser.parse_args()
    if not options.aloft.exists():
        sys.exit(f"{options.aloft} is missing: build Aloft first (make build)")
    failed_rules = rules(options.aloft.resolve().parent)
    torch.set_num_threads(2)
    transformers.utils.logging.disable_progress_bar()
    seed = options.seed if options.seed is not None else int(np.random.SeedSequence().entropy % 2**31)
    rng = np.random.default_rng(seed)
    print(f"seed {seed}; errors against float64; in brackets PyTorch's own, or what roundings of the "
          "weights alone make")
    print(f"{'model':12} {'size':28} {'level':8} {'mode':5} {'logits':>19} {'loss':>19} "
          f"{'worst gradient':>19}")
    models = [fixture(n) for n in committed.MODELS]
    models += [drawn(i, rng) for i in range(options.models)]
    failures = 0
    with tempfile.TemporaryDirectory() as scratch:
        for model in models:
            folder = ROOT / "tests/fixtures" / model.name
            if not folder.exists():
                folder = write(model, pathlib.Path(scratch, model.name))
            given = {"tokens": model.tokens}
            if model.targets is not None:
                given["targets"] = model.targets
            tokens_file = pathlib.Path(scratch, model.name + ".tokens")
            save_file(given, tokens_file)
            exact = model.judged()
            for precision in options.precision:
                own = model.own_errors(precision, exact)
                for mode in options.mode:
                    try:
                        got = score(options.aloft, folder, tokens_file,
                                    pathlib.Path(scratch, "out"), precision, mode)
                        rows, wrong = verdict(got, exact, own, precision)
                    except (RuntimeError, OSError) as problem:
                        rows, wrong = {}, [str(problem)]
                    print(row_text(model, precision, mode, rows, wrong), flush=True)
                    for w in wrong[:6]:
                        print(f"    {w}")
                    failures += bool(wrong)
    print("every tensor within its limit" if not failures else f"{failures} rows failed")
    return 1 if failures or failed_rules else 0


if __name__ == "__main__":
    sys.exit(main())
