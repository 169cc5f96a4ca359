"""Every fault program, whole: what `make faults` runs. The sum is to be 0 failures.

  run_all.py ALOFT [--rounds N] [--seed N] [--minutes M] [--only PROGRAM ...] [--short | --share S]

Seeds that are not given are drawn; the lines say which, so that a run is repeated by --seed.
"""
import argparse
import pathlib
import random
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = ("kills", "ways", "io_faults", "damage", "hostile", "streams", "two_at_once", "rewritten", "soak")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("aloft")
    parser.add_argument("--rounds", type=int, default=1, help="times as many drawn tries")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--minutes", type=float, default=60, help="of soak")
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, default=PROGRAMS)
    parser.add_argument("--short", action="store_true", help="a sample of each")
    parser.add_argument("--share", type=float, default=1, help="of the tries, drawn with the seed (1: all)")
    options = parser.parse_args()
    print(f"faults: seed {options.seed}, {options.rounds} rounds, {options.minutes:g} minutes of soak")
    tries = failures = broken = 0
    for name in options.only:
        command = [sys.executable, "-B", HERE / f"{name}.py", options.aloft, "--seed", str(options.seed),
                   "--rounds", str(options.rounds), "--share", str(options.share)]
        command += ["--short"] if options.short else []
        command += ["--minutes", str(options.minutes)] if name == "soak" and not options.short else []
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        print(done.stdout, end="", flush=True)
        found = re.search(rf"^{name}: (\d+) tries, (\d+) failures", done.stdout, re.M)
        broken += not found
        tries += int(found[1]) if found else 0
        failures += int(found[2]) if found else 0
    print(f"all: {tries} tries, {failures} failures" + (f", {broken} programs did not run" if broken else ""))
    sys.exit(1 if failures or broken else 0)


if __name__ == "__main__":
    main()
