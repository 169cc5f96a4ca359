#!/usr/bin/env python3
"""A decoder of Hugging Face in transformers, from a folder: a training step, a prompt, a token, the first token.

  decoder.py train DIR --amp bf16 --batch 2 --seq 512 --fused      fp32 weights under autocast, clipping at norm 1, AdamW
  decoder.py train DIR --amp bf16 --alone --fused                  bf16 weights and moments, no masters
  decoder.py prompt DIR --amp bf16 --seq 512                       logits of the last token alone, keys and values kept
  decoder.py token DIR --amp bf16 --seq 128                        the likeliest one at a time behind --seq tokens
  decoder.py first DIR --amp bf16 --seq 32                         the process's start to the first token

Weights of `train` are made here, config.json of DIR is enough. Under --compile a token has a static cache, whose shapes
do not grow; else transformers' usual one.
"""
import os
import sys
import time

import torch
import transformers

import timed


def options():
    parser = timed.parser(__doc__.splitlines()[0], steps=3)
    parser.add_argument("what", choices=("train", "prompt", "token", "first"))
    parser.add_argument("folder")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seq", type=int, default=512, help="tokens of an example, or of the prompt")
    parser.add_argument("--alone", action="store_true", help="weights of the low type, without masters")
    return parser.parse_args()


def available_bytes():
    with open("/proc/meminfo", encoding="utf8") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))


def need_memory(o, config):
    """Weights, gradients and two moments, what autocast casts, logits and their gradient in fp32: what is surely
    needed is asked for before the machine is out of it."""
    with torch.device("meta"):
        parameters = transformers.AutoModelForCausalLM.from_config(config).num_parameters()
    of_weight = 8 if o.alone else 16 + (2 if o.amp != "fp32" else 0)
    need = parameters * of_weight + 2 * 4 * o.batch * o.seq * config.vocab_size
    if need > available_bytes():
        sys.exit(f"needs {need / 2**30:.1f} GiB, of which {available_bytes() / 2**30:.1f} are free")


def training(o):
    config = transformers.AutoConfig.from_pretrained(o.folder)
    need_memory(o, config)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=timed.LOW[o.amp] if o.alone else torch.float32)
    model.train()
    model.config.use_cache = False
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=o.fused)
    forward = torch.compile(model) if o.compile else model
    tokens = torch.randint(config.vocab_size, (o.batch, o.seq))
    last = {}

    def step():
        optimizer.zero_grad(set_to_none=True)
        if o.alone:
            loss = forward(input_ids=tokens, labels=tokens).loss
        else:
            with timed.low_precision(o):
                loss = forward(input_ids=tokens, labels=tokens).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        last["loss"] = loss.item()

    step_ms = timed.median_ms(step, o.steps, untimed=1)
    return step_ms, {"tokens_per_s": 1e3 * o.batch * o.seq / step_ms} | last


def opened(o):
    model = transformers.AutoModelForCausalLM.from_pretrained(o.folder, dtype=timed.LOW.get(o.amp, torch.float32))
    return model.eval(), torch.randint(model.config.vocab_size, (1, o.seq))


def likeliest(output):
    return output.logits[:, -1:].argmax(-1)


def prompt(o):
    model, tokens = opened(o)
    forward = torch.compile(model) if o.compile else model
    return timed.median_ms(lambda: likeliest(forward(tokens, use_cache=True, logits_to_keep=1)), o.steps), {}


def token(o):
    model, tokens = opened(o)
    forward, cache = model, transformers.DynamicCache(config=model.config)
    if o.compile:
        forward = torch.compile(model)
        cache = transformers.StaticCache(config=model.config, max_cache_len=o.seq + o.steps + 4)
    state = {"next": likeliest(model(tokens, past_key_values=cache, use_cache=True, logits_to_keep=1))}

    def one():
        state["next"] = likeliest(forward(state["next"], past_key_values=cache, use_cache=True))

    return timed.median_ms(one, o.steps), {}


def started_s():
    """When the kernel made this process, on the clock that all share."""
    with open("/proc/self/stat", encoding="utf8") as file:
        ticks = int(file.read().rsplit(")", 1)[1].split()[19])
    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_MONOTONIC) - since_boot


def first(o):
    model, tokens = opened(o)
    likeliest(model(tokens, use_cache=True, logits_to_keep=1)).item()
    now = time.clock_gettime(time.CLOCK_MONOTONIC)
    return 1e3 * (now - started_s()), {"first_token_clock_s": now}


def main():
    o = options()
    timed.start(o)
    transformers.logging.set_verbosity_error()
    if o.what == "train":
        step_ms, more = training(o)
    else:
        with torch.inference_mode():
            step_ms, more = {"prompt": prompt, "token": token, "first": first}[o.what](o)
    timed.report(o, step_ms, what=o.what, transformers=transformers.__version__, **more)


if __name__ == "__main__":
    main()
