"""Several programs at one run, one cache, one file: each does its work or says who is in its way.

  two_at_once.py ALOFT [--short] ...

Each case is tried with moments drawn from the seed in its key.
"""
import os
import random
import signal
import time

import damage
import ground
import tally
import tracing

LONG = ("--steps", "400", "--set", "train.checkpoint_every=10", "--set", "train.eval_every=25")
TIMES = 12  # tries a case and round


def case(function):
    CASES[function.__name__] = function
    return function


CASES = {}


def keys(here, options, draw):
    return [f"{name}/{draw.randrange(1 << 20)}" for _ in range(TIMES * options.rounds) for name in CASES]


def attempt(here, key):
    name, seed = key.split("/")
    CASES[name](here, random.Random(int(seed)))


def ended(process, arguments):
    """The outcome of a started program."""
    try:
        out, err = process.communicate(timeout=ground.TIMEOUT)
    except Exception:
        process.kill()
        process.communicate()
        return ground.Outcome(list(arguments), None, "", "")
    return ground.Outcome(list(arguments), process.returncode, ground.words(out), ground.words(err))


def together(place, commands, draw, most=0.06):
    """Starts the commands moments apart; their outcomes."""
    started = []
    for arguments in commands:
        started.append((place.start(*arguments), arguments))
        time.sleep(draw.uniform(0, most))
    return [ended(*one) for one in started]


def check_all(outcomes, at_least_one=True):
    for outcome in outcomes:
        ground.check_documented(outcome)
    if at_least_one and all(o.code for o in outcomes):
        raise tally.Failure("several at once, and none of them did it",
                            "\n".join(o.text() for o in outcomes))


def long_run(here):
    return here.state("done-long", lambda p: p.must(*ground.TRAIN, *LONG)) / "run"


@case
def two_fresh(here, draw):
    """Two runs into one new folder: one has it, the other is told."""
    place = here.place("packed" if draw.random() < 0.5 else "empty")
    outcomes = together(place, [ground.TRAIN] * 2, draw)
    check_all(outcomes)
    if [o.code for o in outcomes].count(0) > 1:
        raise tally.Failure("two runs wrote into one folder", "\n".join(o.text() for o in outcomes))
    ground.check_same(place.run, here.state("done") / "run", "two fresh runs at once")


@case
def two_resumed(here, draw):
    place = here.place("half")
    check_all(together(place, [ground.RESUME] * 2, draw))
    ground.check_same(place.run, here.state("done") / "run", "resumed twice at once")


@case
def resumed_while_running(here, draw):
    """The one that runs is not harmed; the other says who holds the run."""
    place = here.place("packed")
    first = place.start(*ground.TRAIN, *LONG)
    time.sleep(draw.uniform(0.01, 0.12))
    alive = first.poll() is None
    second = place.aloft(*ground.RESUME, *LONG)
    still = first.poll() is None
    outcome = ended(first, ground.TRAIN + LONG)
    check_all([outcome, second])
    # Said at the start alone: the second was there first, and holds the run or has ended it.
    if "E0821" in outcome.err or ("E0811" in outcome.err and second.code == 0):
        ground.check_same(place.run, long_run(here), "with a second program that was there first")
        return
    if outcome.code:
        raise tally.Failure("a second program kills the run", outcome.text())
    if alive and still and second.code == 0:
        raise tally.Failure("a run is resumed while it runs", second.text())
    if second.code and str(first.pid) not in second.err and "not a run" not in second.err:
        raise tally.Failure("the refusal does not name who holds the run", second.text())
    ground.check_same(place.run, long_run(here), "with a second program")


@case
def killed_then_resumed(here, draw):
    """What a killed program held is free at once, whether its number was given to another or not."""
    place = here.place("packed")
    first = place.start(*ground.TRAIN, *LONG)
    time.sleep(draw.uniform(0.01, 0.12))
    first.kill()
    # Not waited for before the other starts: a zombie still has its number.
    outcome = place.aloft(*ground.RESUME, *LONG)
    first.communicate()
    ground.check_documented(outcome)
    if outcome.code:
        raise tally.Failure("a killed run still holds its folder", outcome.text())
    ground.check_same(place.run, long_run(here), "resumed at once")


@case
def stopped_then_resumed(here, draw):
    """SIGTERM, SIGHUP, SIGINT: what was done is saved, the exit says that more was to come."""
    place = here.place("packed")
    number = draw.choice([signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
    first = place.start(*ground.TRAIN, *LONG)
    time.sleep(draw.uniform(0.02, 0.12))
    first.send_signal(number)
    outcome = ended(first, ground.TRAIN + LONG)
    early = not (place.run / "metrics.jsonl").exists()
    if outcome.code not in (0, 130) and not (early and outcome.code == -number):
        raise tally.Failure(f"{signal.Signals(number).name} ends with {outcome.code}", outcome.text())
    place.must(*ground.RESUME, *LONG)
    ground.check_same(place.run, long_run(here), f"resumed after {signal.Signals(number).name}")


@case
def one_cache(here, draw):
    """The same data set built by several at once."""
    place = here.empty()
    build = ("data", "build", "tiny.toml")
    outcomes = together(place, [build] * 4, draw, most=0.02)
    check_all(outcomes)
    if any(o.code for o in outcomes):
        raise tally.Failure("one of several builders fails", "\n".join(o.text() for o in outcomes))
    check_cache(here, place)


@case
def damaged_cache(here, draw):
    """Several find the data set damaged, and each mends it while the others read."""
    place = here.place("packed")
    name = draw.choice(["train.shard", "dataset.json", "tokenizer.model", "validation.shard"])
    path = next(place.cache.glob(f"aloft/*/{name}"))
    damage.harm(path, f"cut {draw.randrange(path.stat().st_size)}")
    runs = [("train", "tiny.toml", "--quiet", "--out", f"run-{i}") for i in range(3)]
    outcomes = together(place, runs, draw, most=0.02)
    check_all(outcomes)
    if any(o.code for o in outcomes):
        raise tally.Failure("one of several that mend a data set fails",
                            "\n".join(o.text() for o in outcomes))
    for i in range(3):
        ground.check_same(place.folder / f"run-{i}", here.state("done") / "run", "with a mended data set")
    check_cache(here, place)


def check_cache(here, place):
    if found := ground.left_over(place.cache):
        raise tally.Failure("left over in the cache", "\n".join(found))
    wanted = here.state("packed") / "cache"
    for file in wanted.glob("aloft/*/*"):
        if not ground.same_bytes(place.cache / file.relative_to(wanted), file):
            raise tally.Failure(f"the cache holds another {file.name}")


def pausing(place, arguments, change, draw, most):
    """Starts the program, halts it at a moment, makes the change, lets it go on."""
    process = place.start(*arguments)
    time.sleep(draw.uniform(0, most))
    process.send_signal(signal.SIGSTOP)
    change()
    process.send_signal(signal.SIGCONT)
    outcome = ended(process, arguments)
    ground.check_documented(outcome)
    return outcome


def cut(path, draw):
    if path.exists():
        os.truncate(path, draw.choice([0, 1, path.stat().st_size // 2]))


@case
def tokens_cut_while_training(here, draw):
    place = here.place("packed")
    shard = next(place.cache.glob(f"aloft/*/{draw.choice(['train', 'validation'])}.shard"))
    outcome = pausing(place, ground.TRAIN + LONG, lambda: cut(shard, draw), draw, 0.12)
    if outcome.code == 0:
        ground.check_same(place.run, long_run(here), "with tokens cut meanwhile")


@case
def text_cut_while_packing(here, draw):
    place = here.place("own-text", make_own_text)
    pausing(place, ("data", "build", "tiny.toml"), lambda: cut(place.folder / "text" / "0.txt", draw),
            draw, 0.15)


def make_own_text(place):
    damage.make_text_inside(place)
    (place.folder / "text" / "0.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 20_000)


@case
def checkpoint_cut_while_read(here, draw):
    verb = draw.choice(["generate", "score", "resume"])
    state, arguments = damage.SCENARIOS[verb]
    place = here.place(state)
    newest = list(ground.checkpoints_of(place.run).values())[-1]
    file = newest / draw.choice(["model.safetensors", "state.safetensors", "manifest.json"])
    pausing(place, arguments, lambda: cut(file, draw), draw, 0.05)


@case
def reported_while_running(here, draw):
    """Reading a run does not disturb it, and finds something at every moment behind its start."""
    place = here.place("packed")
    first = place.start(*ground.TRAIN, *LONG)
    while first.poll() is None and not list(place.run.glob("checkpoints/step-*")):
        time.sleep(0.002)
    others = []
    while first.poll() is None and len(others) < 8:
        others.append(place.aloft(*draw.choice([("report", "run"), ("generate", "run") + damage.GENERATE])))
    outcome = ended(first, ground.TRAIN + LONG)
    check_all([outcome, *others])
    if outcome.code:
        raise tally.Failure("a reader kills the run", outcome.text())
    if any(o.code for o in others):
        raise tally.Failure("a run that is written cannot be read",
                            "\n".join(o.text() for o in others if o.code))
    ground.check_same(place.run, long_run(here), "with readers")


@case
def pruned_while_read(here, draw):
    """The checkpoint that a reader has chosen goes before its weights are opened: another is there."""
    tracing.need_strace(here)
    place = here.place("done")
    newest = place.run / "checkpoints" / max(ground.checkpoints_of(place.run))
    weights = newest.relative_to(place.folder) / "model.safetensors"  # as the program names it
    slow = ("strace", "-f", "-o", "/dev/null", "-P", weights, "-e", "trace=openat", "-e",
            "inject=openat:delay_enter=1500000")
    reader = place.start("generate", "run", *damage.GENERATE, under=slow)
    said = b""
    while b"reading run" not in said and reader.poll() is None:
        said += os.read(reader.stderr.fileno(), 4096)
    time.sleep(draw.uniform(0, 0.3))
    newest.rename(place.folder / "pruned")
    outcome = ended(reader, ("generate", "run"))
    ground.check_documented(outcome)
    if outcome.code:
        raise tally.Failure("a checkpoint that goes while it is read ends the reader", outcome.text())


@case
def pruned_while_chosen(here, draw):
    """All that a reader has listed go before it looks into them, and the one that it wants is there."""
    tracing.need_strace(here)
    place = here.place("done")
    stored = place.run / "checkpoints"
    *others, wanted = sorted(ground.checkpoints_of(place.run))
    for name in (*others[1:], wanted):
        (stored / name).rename(place.folder / name)
    manifest = (stored / others[0]).relative_to(place.folder) / "manifest.json"
    slow = ("strace", "-f", "-o", "/dev/null", "-P", manifest, "-e", "trace=openat", "-e",
            "inject=openat:delay_enter=1500000")
    step = str(int(wanted.removeprefix("step-")))
    reader = place.start("generate", "run", *damage.GENERATE, "--checkpoint", step, under=slow)
    said = b""
    while b"resolved into" not in said and reader.poll() is None:  # strace, when it begins
        said += os.read(reader.stderr.fileno(), 4096)
    time.sleep(draw.uniform(0.6, 0.9))
    (place.folder / wanted).rename(stored / wanted)
    (stored / others[0]).rename(place.folder / "pruned")
    outcome = ended(reader, ("generate", "run"))
    ground.check_documented(outcome)
    if outcome.code:
        raise tally.Failure("checkpoints that go while one is chosen end the reader", outcome.text())


@case
def folder_removed_while_running(here, draw):
    place = here.place("packed")
    what = draw.choice([place.run, place.run / "checkpoints", place.cache, place.run / "run.json"])

    def remove():
        if what.exists():
            what.rename(place.folder / "moved-away")

    pausing(place, ground.TRAIN + LONG, remove, draw, 0.12)


if __name__ == "__main__":
    tally.run("two_at_once", keys, attempt, short=30)
