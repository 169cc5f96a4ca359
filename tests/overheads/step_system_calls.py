"""What a training step asks of the system: nothing on one thread, and on two threads nothing but that
the threads of the pool wait for and wake each other.

  step_system_calls.py ALOFT

A small model is trained for two numbers of steps under strace; calls that there are more of with
more steps are the steps' own. Exit 77, which ctest shows as skipped: strace is missing or may not
trace here.
"""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FEW, MANY = 4, 24
SKIPPED = 77
MODEL = ("--layers 4 --heads 2 --dim 64 --vocab 96 --seq 32 --batch 4 --precision O2:bf16 "
         "--no-limit --json").split()
# The pool's threads meet at barriers; one that has nothing to do yields.
OF_THE_POOL = {"futex", "sched_yield"}


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def calls(aloft, steps, threads, folder):
    out = pathlib.Path(folder) / f"{threads}-{steps}.strace"
    done = subprocess.run(
        ["strace", "-f", "-o", out, aloft, "bench", "step", *MODEL, "--steps", str(steps),
         "--threads", str(threads)],
        env=dict(os.environ, OMP_WAIT_POLICY="passive"), stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True)
    if done.returncode and "ptrace" in done.stderr:
        skip(done.stderr.strip().splitlines()[0])
    if done.returncode:
        sys.exit(f"the run under strace failed: {done.stderr}")
    names = re.findall(r"^\d+ +(\w+)\(", out.read_text(), re.M)
    return collections.Counter(names)


def main():
    aloft = sys.argv[1]
    if not shutil.which("strace"):
        skip("strace is not installed (tools/setup test)")
    failed = False
    for threads, allowed in ((1, set()), (2, OF_THE_POOL)):
        with tempfile.TemporaryDirectory() as folder:
            few, many = (calls(aloft, n, threads, folder) for n in (FEW, MANY))
        steps = MANY - FEW
        # A call or two may differ between runs: where memory happens to lie, a signal.
        more = {name: (many[name] - few[name]) / steps for name in many
                if many[name] - few[name] >= steps / 2}
        print(f"{threads} threads: {more or 'no system call'} a step")
        if not few["execve"]:
            sys.exit("strace saw nothing")
        failed |= not set(more) <= allowed
    if failed:
        sys.exit("a step calls the system: strace -f -k shows from where")


if __name__ == "__main__":
    main()
