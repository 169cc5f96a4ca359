"""What the probe asks of the system in steps that it looks at: files, but no memory, and no wait for the disk. They are
written by a thread of its own, which may give memory back.
That off it costs nothing is held by probe_instructions.py: the same instructions of the processor.

  probe_steps.py ALOFT

A small model is trained for two numbers of steps; the difference between both runs is what the steps cost.
Exit 77, which ctest shows as skipped: strace is missing or may not trace here.
"""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from step_instructions import skip

FEW, MANY = 4, 24
RECIPE = """[model]
layers = 1
dim = 8
heads = 1
context = 4
[data]
text = ["text.txt"]
tokenizer = { kind = "byte" }
[precision]
level = "O0"
[train]
batch = 1
threads = 1
sample_tokens = 0
"""
STATISTICS = ["--probe", "statistics"]
ENVIRONMENT = dict(os.environ, OMP_NUM_THREADS="1", ALOFT_MAX_ISA="avx2", ALOFT_PLAN_CACHE="off",
                   OMP_WAIT_POLICY="passive")  # else aloft starts itself anew, uncounted
ELSEWHERE = " elsewhere"
# What a step that is looked at does not do: ask for memory, wait for the disk, sleep.
NEVER = {"brk", "mmap", "munmap", "mremap", "madvise", "fsync", "fdatasync", "sync_file_range",
         "nanosleep", "clock_nanosleep"}


def system_calls(aloft, folder, name, options):
    """Of a step, by name."""
    few, many = collections.Counter(), collections.Counter()
    for steps, counts in ((FEW, few), (MANY, many)):
        out = folder / f"{name}-{steps}.strace"
        done = subprocess.run(["strace", "-f", "-o", out, aloft, "train", "tiny.toml", "--out", f"{name}-{steps}",
                               "--steps", str(steps), *options], cwd=folder, env=ENVIRONMENT, capture_output=True,
                              text=True)
        if done.returncode and "ptrace" in done.stderr:
            skip(done.stderr.strip().splitlines()[0])
        if done.returncode:
            sys.exit(f"the run under strace failed: {done.stderr[-2000:]}")
        calls = re.findall(r"^(\d+) +(\w+)\(", out.read_text(), re.M)
        # Of the thread that trains, and of others.
        counts.update(call if thread == calls[0][0] else call + ELSEWHERE for thread, call in calls)
    if not few["execve"]:
        sys.exit("strace saw nothing")
    return {call: (many[call] - few[call]) / (MANY - FEW) for call in many}


def main():
    aloft = sys.argv[1]
    if not shutil.which("strace"):
        skip("strace is not installed (tools/setup test)")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "text.txt").write_text("some words and some more of them, again and again. " * 40)
        (folder / "tiny.toml").write_text(RECIPE)
        plain, own = (system_calls(aloft, folder, what, options) for what, options in
                      (("plain", []), ("on", STATISTICS)))
        more = {call: count - plain.get(call, 0) for call, count in own.items()
                if count - plain.get(call, 0) >= 0.5}
        print(f"system calls of a step that is looked at: {more}")
        never = NEVER | {call + ELSEWHERE for call in NEVER - {"madvise"}}
        if never & set(more) or "openat" + ELSEWHERE not in more:
            sys.exit("the probe costs a step what it should not: strace -f -k shows where")


if __name__ == "__main__":
    main()
