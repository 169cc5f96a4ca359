"""What a training step costs the host, counted in processor instructions instead of seconds.

  step_instructions.py ALOFT COMPILER [--update]      COMPILER: a key of baseline.json, "GNU 12"

A model so small that its kernels have next to nothing to compute is trained for two numbers of steps
under callgrind, on one thread; the difference between both runs is what the steps cost and nothing
else. Two counts are held to baseline.json:

  host   instructions per instruction of the Plan that is dispatched, kernels left out: what the
         trainer and the executor do
  step   instructions of a whole step, kernels included: what they cost before they compute

A count may exceed its baseline by the tolerance beside it. callgrind knows nothing newer than AVX2,
so every processor runs the same code. Exit 77, which ctest shows as skipped: callgrind is missing, or
the compiler has no baseline (--update makes one).
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BASELINE = pathlib.Path(__file__).with_name("baseline.json")
FEW, MANY = 4, 14
SKIPPED = 77
TINY = "--layers 4 --heads 1 --dim 8 --vocab 16 --seq 4 --batch 1 --precision O2:bf16".split()
STEP, EXECUTOR, KERNEL = "aloft::Runner::step(", "aloft::Executor::run", "::run(aloft::RunArgs"


def call_costs(path):
    """{(caller, callee): inclusive instructions} of callgrind's file."""
    names, costs = {}, {}
    caller = callee = None
    is_call = False
    for line in path.read_text().splitlines():
        if found := re.match(r"(c?fn)=\((\d+)\)(?: (.*))?$", line):
            kind, number, name = found.groups()
            if name:
                names[number] = name
            if kind == "fn":
                caller = names[number]
            else:
                callee = names[number]
        elif line.startswith("calls="):
            is_call = True  # the next line holds what the calls cost
        elif is_call:
            costs[caller, callee] = costs.get((caller, callee), 0) + int(line.split()[-1])
            is_call = False
    return costs


def counts(aloft, steps, folder):
    """(whole steps, kernels in them, instructions of the Plan)."""
    out = folder / f"{steps}.callgrind"
    environment = dict(os.environ, OMP_NUM_THREADS="1", ALOFT_MAX_ISA="avx2",
                       OMP_WAIT_POLICY="passive")  # else aloft starts itself anew, uncounted
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", aloft, "bench", "step", *TINY,
         "--steps", str(steps), "--no-limit", "--json"],
        env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"exit {done.returncode} under callgrind\n{done.stderr[-2000:]}")
    costs = call_costs(out)
    whole = sum(c for (_, callee), c in costs.items() if STEP in callee)
    kernels = sum(c for (caller, callee), c in costs.items()
                  if caller.startswith(EXECUTOR) and KERNEL in callee)
    dispatched = sum(op["count"] for op in json.loads(done.stdout)["ops"])
    if not (whole > kernels > 0 and dispatched > 0):
        sys.exit(f"callgrind shows no {STEP}...) that runs kernels through {EXECUTOR}...): "
                 "was one of them renamed?")
    return whole, kernels, dispatched


def measure(aloft):
    with tempfile.TemporaryDirectory() as name:
        few, many = (counts(aloft, n, pathlib.Path(name)) for n in (FEW, MANY))
    whole, kernels = ((b - a) / (MANY - FEW) for a, b in zip(few[:2], many[:2]))
    print(f"{many[2]} instructions of the Plan a step; {whole:,.0f} of the processor a step, "
          f"{whole - kernels:,.0f} of them outside of kernels")
    return {"host": (whole - kernels) / many[2], "step": whole}


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def main():
    aloft, compiler = sys.argv[1:3]
    if not shutil.which("valgrind"):
        skip("valgrind is not installed (tools/setup test)")
    kept = json.loads(BASELINE.read_text())
    if "--update" in sys.argv:
        kept["compilers"][compiler] = {k: round(v, 1) for k, v in measure(aloft).items()}
        BASELINE.write_text(json.dumps(kept, indent=2) + "\n")
        return
    if compiler not in kept["compilers"]:
        skip(f"{BASELINE.name} has no counts of {compiler}; --update adds them")
    got, failed = measure(aloft), False
    for name, wanted in kept["compilers"][compiler].items():
        most = wanted * (1 + kept["tolerance"][name])
        print(f"{name}: {got[name]:,.1f} instructions, baseline {wanted:,.1f}, at most {most:,.1f}")
        failed |= got[name] > most
        if got[name] < wanted * (1 - kept["tolerance"][name]):
            print(f"  {name} has become cheaper: hold it there with --update")
    if failed:
        sys.exit("a step has become more expensive for the host. callgrind_annotate shows where; if "
                 "it must be so, run this test's command with --update and say why in the commit")


if __name__ == "__main__":
    main()
