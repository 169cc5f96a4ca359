"""Runs a test program on the cpu and on another device (sim) and compares what every instruction and every eager op of
each of its tests computed, to the bit (digest.cpp). With ALOFT_E2E_DIGEST_AT=end programs are handed over whole, and
what is compared is what their updates left. Arguments: the program, the device, tests that are left out."""

import os
import pathlib
import subprocess
import sys
import tempfile


def digests(program, but, device, folder):
    file = pathlib.Path(folder) / device.replace(":", "-")
    environment = {**os.environ, "ALOFT_DEVICE": device, "ALOFT_E2E_DIGEST": str(file), "OMP_WAIT_POLICY": "passive"}
    run = subprocess.run([program, "--gtest_brief=1", f"--gtest_filter=-{but}"], env=environment,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = [line.rsplit(" ", 2) for line in file.read_text().splitlines()]
    return run, {name: (int(results), digest) for name, results, digest in lines}


def main(program, device, but=""):
    with tempfile.TemporaryDirectory() as folder:
        here, cpu = digests(program, but, "cpu", folder)
        there, sim = digests(program, but, device, folder)
    for name, run in (("cpu", here), (device, there)):
        if run.returncode not in (0, 77):
            print(run.stdout[-8000:])
            sys.exit(f"{program} fails on {name}: {run.returncode}")
    different = [name for name in sorted(cpu.keys() | sim.keys()) if cpu.get(name) != sim.get(name)]
    for name in different:
        print(f"{name}: {cpu.get(name)} on the cpu, {sim.get(name)} on {device}")
    results = sum(n for n, _ in cpu.values())
    print(f"same_bits: {len(cpu)} tests, {results} results, {len(different)} tests differ")
    if different or results == 0:
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
