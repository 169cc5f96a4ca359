"""What every fault program shares: its arguments, counting tries, showing failures.

A program gives keys, strings of which each says everything about one try ("train/write/5/EIO/once"),
and a function that makes the try of a key. So every failure is repeated by PROGRAM ALOFT --only KEY.

  PROGRAM ALOFT [--short | --share S] [--rounds N] [--seed N] [--only KEY | --like PATTERN] [--jobs N] [--list]

The full form tries every key, --share 0.1 a tenth of them, drawn with the seed, the short form (`make test`)
a draw that takes seconds. The last line is
`NAME: N tries, M failures`; the exit status is 1 with failures, 77 (ctest: skipped) where a tool is missing.
"""
import argparse
import concurrent.futures
import fnmatch
import os
import pathlib
import random
import re
import resource
import signal
import sys
import time
import traceback

import ground

SKIPPED = 77
NOT_TRIED = "not tried"  # what attempt() gives back where there was no time left
ROOT = pathlib.Path(__file__).resolve().parents[2]


class Failure(Exception):
    """A try that ended as it must not. `kind` is short and equal for equal causes: failures are
    counted by it; the detail is for the person who repeats the try."""

    def __init__(self, kind, detail=""):
        super().__init__(kind)
        self.kind, self.detail = kind, detail


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def arguments(extra=None):
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("aloft", help="the program, build/bin/aloft")
    parser.add_argument("--short", action="store_true", help="a sample that takes seconds")
    parser.add_argument("--share", type=float, default=1, help="of the keys, drawn with the seed (1: all)")
    parser.add_argument("--rounds", type=int, default=1, help="times as many drawn tries")
    parser.add_argument("--seed", type=int, help="default: 1 with --short, else drawn")
    parser.add_argument("--only", metavar="KEY", help="this try alone")
    parser.add_argument("--like", metavar="PATTERN", default="*", help="these tries: 'train/write/*'")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true", help="the keys, and stop")
    if extra:
        extra(parser)
    options = parser.parse_args()
    if options.seed is None:  # a test does the same each time
        options.seed = 1 if options.short else time.time_ns() % 1_000_000
    return options


def show(name, seed, tried, failures):
    """failures: list of (key, Failure)."""
    by_kind = {}
    for key, failure in failures:
        by_kind.setdefault(failure.kind, []).append((key, failure))
    program = os.path.relpath(sys.argv[0])
    for kind, found in sorted(by_kind.items(), key=lambda entry: -len(entry[1])):
        key, failure = min(found, key=lambda f: (len(f[0]), f[0]))
        print(f"  {len(found)} x {kind}\n    {program} {sys.argv[1]} --only '{key}'")
        for line in failure.detail.splitlines()[:12]:
            print(f"      {line[:160]}")
    print(f"{name}: {tried} tries, {len(failures)} failures (seed {seed})", flush=True)


def run(name, keys, attempt, short, extra=None):
    """keys(ground, options, draw) -> list of keys; attempt(ground, key) raises Failure or gives back None,
    or NOT_TRIED. The short form takes `short` keys."""
    options = arguments(extra)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in a shell's background ignore it
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    draw = random.Random(options.seed)
    with ground.Ground(pathlib.Path(options.aloft).resolve(), ROOT, options.seed) as here:
        here.options = options
        chosen = [options.only] if options.only else drawn(keys(here, options, draw), options, draw, short)
        if options.list:
            print("\n".join(chosen))
            return
        ends = attempt_all(here, chosen, attempt, options.jobs)
    failures = [(key, end) for key, end in ends if isinstance(end, Failure)]
    show(name, options.seed, sum(end != NOT_TRIED for _, end in ends), failures)
    sys.exit(1 if failures or len(ends) < len(chosen) else 0)


def drawn(keys, options, draw, short):
    keys = fnmatch.filter(keys, options.like)
    number = min(round(len(keys) * options.share), short if options.short else len(keys))
    return keys if number == len(keys) else draw.sample(keys, number)


def attempt_all(here, keys, attempt, jobs):
    """(key, how it ended) of each try; fewer than there are keys where somebody stops it."""
    def one(key):
        try:
            return attempt(here, key)
        except Failure as failure:
            if not here.options.short:  # the end is far
                print(f"{failure.kind}: --only '{key}'", file=sys.stderr, flush=True)
            return failure
        except Exception:  # a program that stumbles has not shown that Aloft does not
            return Failure("the fault program stumbled: " + traceback.format_exc().splitlines()[-1],
                           traceback.format_exc())
        finally:
            here.clear()

    ends = []
    with concurrent.futures.ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
        try:
            for end in zip(keys, pool.map(one, keys)):
                ends.append(end)
        except KeyboardInterrupt:  # what was tried so far is counted
            pool.shutdown(cancel_futures=True)
            print(f"stopped: {len(keys) - len(ends)} tries are left", file=sys.stderr, flush=True)
    return ends


def plain(text):
    """A message without what differs between tries: numbers, folders, temporary names."""
    text = re.sub(r"/\S*/", "", text)
    return re.sub(r"\d+", "N", text)[:100]
