"""What compiling costs grows with the layers of a model, not with their square.

  compile_instructions.py ALOFT

A GPT's training step is compiled with a number of layers, and with twice as many, under callgrind:
instructions from tracing to kernels that are ready to run. Twice the layers may cost 2.3 times as
much. Exit 77, which ctest shows as skipped: callgrind is missing.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from step_instructions import call_costs, skip

LAYERS, MOST = 40, 2.3
TINY = "--heads 1 --dim 8 --vocab 16 --seq 4 --batch 1 --precision O2:bf16 --steps 1".split()
PARTS = ("aloft::Programs::add(", "aloft::Programs::finish(")


def compiling(aloft, layers, folder):
    out = folder / f"{layers}.callgrind"
    environment = dict(os.environ, OMP_NUM_THREADS="1", ALOFT_MAX_ISA="avx2",
                       ALOFT_PLAN_CACHE="off",
                       OMP_WAIT_POLICY="passive")  # else aloft starts itself anew, uncounted
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", aloft, "bench", "step", *TINY,
         "--layers", str(layers), "--no-limit"], env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"exit {done.returncode} under callgrind\n{done.stderr[-2000:]}")
    costs = call_costs(out)
    parts = [sum(c for (_, callee), c in costs.items() if part in callee) for part in PARTS]
    if not all(parts):
        sys.exit(f"callgrind shows no {' and no '.join(PARTS)}...): was one of them renamed?")
    return sum(parts)


def main():
    if not shutil.which("valgrind"):
        skip("valgrind is not installed (tools/setup test)")
    with tempfile.TemporaryDirectory() as name:
        once, twice = (compiling(sys.argv[1], n * LAYERS, pathlib.Path(name)) for n in (1, 2))
    print(f"{LAYERS} layers: {once:,} instructions; {2 * LAYERS}: {twice:,}, {twice / once:.2f} times "
          f"as many, at most {MOST}")
    if twice > MOST * once:
        sys.exit("compiling takes more than its share for each layer: callgrind_annotate "
                 "--inclusive=yes of both shows what grows")


if __name__ == "__main__":
    main()
