"""SIGKILL, then the run goes on: it ends as one that was never stopped, to the bit, and no whole
checkpoint is lost.

  kills.py ALOFT [--short] ...

Points: every system call that changes files, and a draw of the others (between the same two changes
every kill finds the same files), of a fresh run, of one that is resumed, of one that is resumed although
it had ended, of one that keeps a single checkpoint; and moments drawn at random, several kills one after
another, with a longer run in which they meet the steps.
"""
import os
import random
import shutil
import time

import ground
import tally
import tracing

LONG = ("--steps", 96, "--set", "train.checkpoint_every=8", "--set", "train.eval_every=16",
        "--set", "train.sample_every=24")
ONE = ("--set", "train.keep_checkpoints=1")
# name -> (state it begins in, arguments, whether a run was there before)
SCENARIOS = {
    "fresh": ("empty", ground.TRAIN),
    "warm": ("packed", ground.TRAIN),
    "resumed": ("half", ground.RESUME),
    "ended": ("done", ground.RESUME),
    "fresh-keep-1": ("empty", ground.TRAIN + ONE),
    "resumed-keep-1": ("half", ground.RESUME + ONE),
    "ended-keep-1": ("done-keep-1", ground.RESUME + ONE),
}
MOMENTS = 500
OTHER_CALLS = 60  # of a scenario
WEEK = 7 * 86400


def make_keep_1(place):
    place.must(*ground.TRAIN, *ONE)


def make_long(place):
    place.must(*ground.TRAIN, *LONG)


ground.STATES.update({"done-keep-1": make_keep_1, "done-long": make_long})


def keys(here, options, draw):
    tracing.need_strace(here)
    found = []
    for name, (state, arguments) in SCENARIOS.items():
        calls = tracing.trace(here.place(state), arguments)
        changes = tracing.points(calls, tracing.changes_files)
        others = sorted({*tracing.points(calls)} - {*changes})
        changes += draw.sample(others, min(len(others), OTHER_CALLS * options.rounds))
        found += [f"{name}/{call}/{number}" for call, number in changes]
    found += [f"moments/{draw.randrange(1 << 30)}" for _ in range(MOMENTS * options.rounds)]
    return found


def attempt(here, key):
    scenario, *rest = key.split("/")
    if scenario == "moments":
        return at_moments(here, int(rest[0]))
    state, arguments = SCENARIOS[scenario]
    place = here.place(state)
    before = whole_checkpoints(here, place, "done")
    tracing.killed(place, arguments, rest[0], int(rest[1]))
    resume_and_compare(here, place, before, "done-keep-1" if "keep-1" in scenario else "done",
                       tuple(arguments[len(ground.RESUME):] if "--resume" in arguments
                             else arguments[len(ground.TRAIN):]))


def at_moments(here, seed):
    """Kills a longer run one to three times, at moments of its expected time."""
    draw = random.Random(seed)
    place = here.empty()
    wanted = here.state("done-long", make_long)
    for _ in range(draw.randint(1, 3)):
        before = whole_checkpoints(here, place, "done-long")
        process = place.start(*ground.RESUME, *LONG)
        time.sleep(draw.uniform(0, 0.12))
        process.kill()
        process.communicate()
        check_kept(here, place, before, "done-long")
    place.must(*ground.RESUME, *LONG)
    ground.check_same(place.run, wanted / "run", "resumed after kills")


def clean_steps(here, clean):
    """step folder -> the checkpoint as an undisturbed run writes it. A run keeps but the newest: one that
    keeps all is made for the comparison."""
    extra = LONG if clean == "done-long" else ()
    folder = here.state(clean + "-all", lambda place: place.must(
        *ground.TRAIN, *extra, "--set", "train.keep_checkpoints=1000"))
    return ground.checkpoints_of(folder / "run")


def whole_checkpoints(here, place, clean):
    """Names of the checkpoints that are as they must be. Of one that is on its way out parts may be there,
    but only beside a newer one that is whole."""
    wanted, whole, torn = clean_steps(here, clean), [], []
    for name, folder in ground.checkpoints_of(place.run).items():
        what = ground.checkpoint_differs(folder, wanted[name])
        (torn if what else whole).append(name)
    if torn and (not whole or torn[-1] > whole[-1]):
        raise tally.Failure("a torn checkpoint under its final name", torn[-1])
    return whole


def check_kept(here, place, before, clean):
    after = whole_checkpoints(here, place, clean)
    if before and (not after or after[-1] < before[-1]):
        raise tally.Failure("a whole checkpoint is lost", f"there were {before}, there are {after}")


def resume_and_compare(here, place, before, clean, extra):
    if before:
        # A checkpoint of the same step may be between two names: then resuming finds it again.
        after = whole_checkpoints(here, place, "done")
        if not after and not list((place.run / "checkpoints").glob(".*")):
            raise tally.Failure("a whole checkpoint is lost", f"there were {before}")
    else:
        whole_checkpoints(here, place, "done")
    age(place)
    outcome = place.must(*ground.RESUME, *extra)
    if before and "starting anew" in outcome.err:
        raise tally.Failure("a run with a checkpoint starts anew", outcome.text())
    ground.check_same(place.run, here.state(clean) / "run", "resumed after a kill")
    for folder in (place.run, place.cache):
        if found := ground.left_over(folder):
            raise tally.Failure(f"left over in the {folder.name} folder", "\n".join(found))


def age(place):
    """What was left is old: whoever waits for it to be stale need not wait."""
    long_ago = time.time() - WEEK
    for name in ground.left_over(place.folder):
        os.utime(place.folder / name, (long_ago, long_ago))


if __name__ == "__main__":
    tally.run("kills", keys, attempt, short=60)
