"""A step here and one of another program, in turns: memory is faster in one minute than in the next, and what takes
turns meets the same minutes."""
import os
import statistics
import subprocess
import sys
import time

SETTLE_S = 0.02  # until the threads of who had the turn sleep


class Sweep:
    """optimizer_bench, which does a round for each line that it gets."""
    def __init__(self, command, threads):
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                      env=dict(os.environ, OMP_NUM_THREADS=str(threads)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.stdin.close()
        self.child.stdout.close()
        self.child.wait()

    def turn(self):
        """Milliseconds of the sweep, and of the stream over its arrays."""
        try:
            self.child.stdin.write("\n")
            self.child.stdin.flush()
        except BrokenPipeError:
            pass  # what it said first, if anything, is read
        said = self.child.stdout.readline().split()
        if len(said) != 2:
            sys.exit(f"{self.child.args[0]} ended before its turn")
        return tuple(map(float, said))


def in_turns(step, sweep, turns):
    """The median time of `step`, and what the turns say of both: `ratio`, its time over the sweep's, `share` and
    `peer_share`, the stream's time over the sweep's and over the step's, each the median of what was measured within
    a turn. Who begins changes from turn to turn; the first does not count."""
    def theirs():
        begin = time.perf_counter()
        step()
        return 1e3 * (time.perf_counter() - begin)

    found = []
    for turn in range(turns + 1):
        got = {}
        for work in (theirs, sweep.turn) if turn % 2 else (sweep.turn, theirs):
            time.sleep(SETTLE_S)
            got[work] = work()
        if turn > 0:
            found.append((got[theirs], *got[sweep.turn]))
    ratios = sorted(their / own for their, own, _ in found)
    return statistics.median(their for their, _, _ in found), {
        "sweep_ms": statistics.median(own for _, own, _ in found), "turns": len(found),
        "ratio": statistics.median(ratios), "ratio_quartiles": [ratios[len(found) // 4], ratios[3 * len(found) // 4]],
        "share": statistics.median(stream / own for _, own, stream in found),
        "peer_share": statistics.median(stream / their for their, _, stream in found)}
