"""The probe costs a step nothing where it is off, and next to nothing in steps that it does not look at.

  probe_instructions.py ALOFT

A model so small that its kernels have next to nothing to compute is trained under callgrind, on one thread: as its
recipe says, which does not speak of the probe; with `--probe none`; and with `--probe statistics` in every third step.
callgrind writes down what it has counted each time a step was made (StepMaker::make), so that the file of step n holds
that step and what listeners did with the one before. Of the probe's listener that is ProbeFiles::step_done. The same
step of two runs has the same data and the same weights, and what is counted is instructions of the processor: it takes
the same number, but for the few by which a copy is dearer where memory happens to lie otherwise (another command line
moves it). The first step also makes what all others keep, and is not counted beside the others.

callgrind knows nothing newer than AVX2, so every processor runs the same code. Exit 77, which ctest shows as skipped:
callgrind is missing.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

from probe_steps import ENVIRONMENT, RECIPE
from step_instructions import call_costs, skip

EVERY = 3
STEPS = EVERY + 1  # 3 is looked at, as is 0; 1 and 2 are not
MAKE, LISTEN = "aloft::StepMaker::make(", "aloft::ProbeFiles::step_done("
# By how much a step may differ where nothing is done: of memory that lies otherwise up to 110 of 286,000 were seen. To
# see that a step is not to be looked at takes 70, once to choose its program, once to write nothing. To look at the
# smallest model takes six million.
SLACK = 300


def inclusive(path, function):
    """Instructions in calls of `function` and in what they call."""
    return sum(cost for (_, callee), cost in call_costs(path).items() if function in callee)


def steps_of(aloft, folder, name, options):
    """[(made, listened)] a step, the last of `listened` with what came behind it."""
    out = folder / f"{name}.callgrind"
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", f"--dump-after={MAKE}*", aloft, "train",
         "tiny.toml", "--out", name, "--steps", str(STEPS), *options],
        cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"exit {done.returncode} under callgrind\n{done.stderr[-2000:]}")
    files = [folder / f"{out.name}.{n + 1}" for n in range(STEPS)] + [out]
    if missing := [file.name for file in files if not file.exists()]:
        sys.exit(f"callgrind has not written {missing}: was {MAKE}...) renamed?")
    made = [inclusive(file, MAKE) for file in files[:-1]]
    listened = [inclusive(file, LISTEN) for file in files[1:]]
    if not all(made):
        sys.exit(f"callgrind shows no {MAKE}...): was it renamed?")
    return list(zip(made, listened))


def main():
    aloft = sys.argv[1]
    if not shutil.which("valgrind"):
        skip("valgrind is not installed (tools/setup test)")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "text.txt").write_text("some words and some more of them, again and again. " * 40)
        (folder / "tiny.toml").write_text(RECIPE)
        plain, none, some = (steps_of(aloft, folder, what, options) for what, options in (
            ("plain", []), ("none", ["--probe", "none"]),
            ("some", ["--probe", "statistics", "--set", f"probe.every={EVERY}"])))
    failed = False
    for step in range(1, STEPS):
        made, listened = some[step]
        more = made + listened - plain[step][0]
        is_looked_at = step % EVERY == 0
        print(f"step {step}: {plain[step][0]:,} instructions without the probe, {none[step][0]:,} with none, "
              f"{more:,} more {'where it looks' if is_looked_at else 'where it does not look'}")
        if abs(plain[step][0] - none[step][0]) > SLACK or plain[step][1] or none[step][1]:
            print("  off, the probe costs a step something")
            failed = True
        if is_looked_at and not (made > plain[step][0] + SLACK and listened > SLACK):
            print(f"  a step that is looked at costs no more: is nothing counted? {LISTEN}...) may have been renamed")
            failed = True
        if not is_looked_at and (more > SLACK or not listened):
            print(f"  a step that is not looked at may cost {SLACK} more, of which some are those of {LISTEN}...)")
            failed = True
    if failed:
        sys.exit("callgrind_annotate shows where")


if __name__ == "__main__":
    main()
