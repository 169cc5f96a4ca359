#!/usr/bin/env python3
"""Aloft against PyTorch on one machine, alternating: one GPT-2 training step, tokens/s and memory.

Each round runs both programs once, never at the same time, in an order that flips from round to
round; the verdict is the median of the rounds' ratios, because machines drift by more than the
difference between programs. Peak memory is the kernel's own count for each process (wait4), the
same for both. The peer is any script that takes --layers --heads --dim --vocab --batch --seq
--steps --threads --amp {fp32,bf16,fp16} --fused --json and prints one JSON object with
`tokens_per_s` (peers.md says how each peer is set up).

  bench.py --precision fp32 bf16 fp16 --rounds 5 --peer ../shared/bench/torch_gpt.py
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEVEL = {"fp32": "O0", "bf16": "O2:bf16", "fp16": "O2:fp16"}
GPT2_124M = {"layers": 12, "heads": 12, "dim": 768, "vocab": 50304}


def run(command, environment=None):
    """Runs to the end and returns (its JSON object, peak resident bytes of that one process)."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = subprocess.Popen([str(c) for c in command], stdout=out, stderr=err, cwd=ROOT,
                                 env=environment)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        if child.returncode:
            sys.exit(f"{' '.join(map(str, command))}: exit {child.returncode}\n{err.read()[-2000:]}")
        text = out.read()
    return json.loads(text[text.index("{"):]), usage.ru_maxrss * 1024


def commands(options, precision):
    shape = [f"--{k}={v}" for k, v in options.shape.items()]
    work = [f"--batch={options.batch}", f"--seq={options.seq}", f"--steps={options.steps}",
            f"--threads={options.threads}", "--json"]
    ours = [options.aloft, "bench", "step", "--model", options.model, *shape, *work,
            "--precision", LEVEL[precision]]
    if not options.limit:
        ours.append("--no-limit")
    peer_shape = [f"--{k}={v}" for k, v in (GPT2_124M | options.shape).items()]
    theirs = [options.python, options.peer, *peer_shape, *work, "--amp", precision, "--fused"]
    if options.compile:
        theirs.append("--compile")
    return ours, theirs


def compare(options, precision):
    ours, theirs = commands(options, precision)
    peer_environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads))
    print(f"\n{precision} ({LEVEL[precision]}): {' '.join(map(str, ours))}\n  against "
          f"{' '.join(map(str, theirs))}")
    print(f"{'round':>5} {'aloft tok/s':>12} {'peer tok/s':>12} {'ratio':>7} "
          f"{'aloft MiB':>10} {'peer MiB':>10} {'ratio':>7} {'of limit':>8}")
    rounds = []
    for i in range(options.rounds):
        got = {}
        for who in (("aloft", "peer") if i % 2 == 0 else ("peer", "aloft")):
            got[who] = run(ours) if who == "aloft" else run(theirs, peer_environment)
        (a, a_rss), (p, p_rss) = got["aloft"], got["peer"]
        row = {"aloft_tokens_per_s": a["tokens_per_s"], "peer_tokens_per_s": p["tokens_per_s"],
               "speed_ratio": a["tokens_per_s"] / p["tokens_per_s"],
               "aloft_peak_rss": a_rss, "peer_peak_rss": p_rss, "memory_ratio": a_rss / p_rss,
               "limit_fraction": a.get("limit_fraction"), "compile_ms": a.get("compile_ms"),
               "planned_peak_bytes": a.get("planned_peak_bytes"), "peer_version": p.get("torch")}
        rounds.append(row)
        print(f"{i + 1:5} {row['aloft_tokens_per_s']:12.1f} {row['peer_tokens_per_s']:12.1f} "
              f"{row['speed_ratio']:7.2f} {a_rss / 2**20:10.0f} {p_rss / 2**20:10.0f} "
              f"{row['memory_ratio']:7.2f} {row['limit_fraction'] or float('nan'):8.2f}", flush=True)

    def median(key):
        return statistics.median(r[key] for r in rounds)

    result = {"precision": precision, "speed_ratio": median("speed_ratio"),
              "memory_ratio": median("memory_ratio"),
              "aloft_tokens_per_s": median("aloft_tokens_per_s"),
              "peer_tokens_per_s": median("peer_tokens_per_s"), "rounds": rounds}
    print(f"median of {len(rounds)} rounds: {result['speed_ratio']:.2f} x the tokens/s, "
          f"{result['memory_ratio']:.2f} x the peak memory")
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--aloft", default=ROOT / "build/bin/aloft", type=pathlib.Path)
    parser.add_argument("--peer", default=ROOT / "../shared/bench/torch_gpt.py", type=pathlib.Path)
    parser.add_argument("--python", default=sys.executable, help="interpreter that has torch")
    parser.add_argument("--precision", nargs="+", default=["fp32", "bf16", "fp16"], choices=LEVEL)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=6, help="a run; the first is not counted")
    parser.add_argument("--model", default="gpt2-124m")
    for name in GPT2_124M:
        parser.add_argument(f"--{name}", type=int, help="override, for both programs")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--seq", type=int, default=256)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--compile", action="store_true", help="the peer under torch.compile")
    parser.add_argument("--limit", action="store_true",
                        help="aloft also measures the machine's limit (its memory counts then)")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures here")
    options = parser.parse_args()
    options.shape = {k: v for k in GPT2_124M if (v := getattr(options, k)) is not None}
    for path in (options.aloft, options.peer):
        if not path.exists():
            sys.exit(f"{path} is missing")
    options.aloft, options.peer = options.aloft.resolve(), options.peer.resolve()
    results = [compare(options, p) for p in options.precision]
    print(f"\n{'precision':10} {'tokens/s':>9} {'peer':>9} {'speed':>7} {'memory':>7}")
    for r in results:
        print(f"{r['precision']:10} {r['aloft_tokens_per_s']:9.1f} {r['peer_tokens_per_s']:9.1f} "
              f"{r['speed_ratio']:6.2f}x {r['memory_ratio']:6.2f}x")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
