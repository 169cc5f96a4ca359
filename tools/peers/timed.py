"""What every peer does alike: threads, low precision, timed repetitions, one JSON line."""
import argparse
import contextlib
import json
import resource
import statistics
import time

import torch

LOW = {"bf16": torch.bfloat16, "fp16": torch.float16}


def parser(description, steps):
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--amp", choices=("fp32", "bf16", "fp16"), default="fp32")
    p.add_argument("--compile", action="store_true", help="under torch.compile")
    p.add_argument("--fused", action="store_true", help="the fused form of the optimizer")
    p.add_argument("--steps", type=int, default=steps, help="timed, after two that are not")
    p.add_argument("--json", action="store_true", help="one JSON object instead of words")
    return p


def start(options, seed=0):
    torch.set_num_threads(options.threads)
    torch.manual_seed(seed)


def low_precision(options):
    """autocast as its manual has it; the weights stay fp32."""
    if options.amp == "fp32":
        return contextlib.nullcontext()
    return torch.autocast("cpu", dtype=LOW[options.amp])


def median_ms(work, steps, untimed=2):
    """The median time of `work`; the first two runs compile, allocate and fill caches."""
    for _ in range(untimed):
        work()
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        work()
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times)


def report(options, step_ms, **more):
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    got = {"torch": torch.__version__, "amp": options.amp, "compile": options.compile,
           "fused": options.fused, "threads": options.threads, "step_ms": step_ms,
           "peak_rss_bytes": peak} | more
    print(json.dumps(got) if options.json else "  ".join(f"{k} {v}" for k, v in got.items()))
