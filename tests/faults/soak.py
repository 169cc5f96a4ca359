"""Many short runs, resumes, kills and readers in one folder, and API loops in one process: memory,
descriptors and left-over files do not grow.

  soak.py ALOFT [--minutes M] [--short] ...

Half of the time goes to the program (`runs`: each try is a chain of runs in one folder), half to a C++
program that makes, trains, saves, loads and drops models (`api`: build/bin/faults_api_soak).
"""
import random
import re
import signal
import subprocess
import time

import damage
import ground
import tally

SECONDS = 3600
SHORT = 10
CHAIN = 12  # programs in one folder
LIMIT_BYTES = 48 << 20  # of a tiny run; it takes some 25 MiB


def options(parser):
    parser.add_argument("--minutes", type=float, default=None, help="how long (default 60)")


def keys(here, options, draw):
    here.seconds = SHORT if options.short else SECONDS
    if options.minutes is not None:
        here.seconds = options.minutes * 60
    here.until = time.monotonic() + here.seconds
    # One at a time, each has half of the time, else all of it.
    here.api_seconds = here.seconds / (2 if options.jobs < 2 else 1)
    api = ["api"] if api_program(here).exists() else []
    # More than there is time for: a chain that would begin too late is not tried.
    return api + [f"runs/{draw.randrange(1 << 30)}" for _ in range(int(here.seconds * 2) + 1)]


def api_program(here):
    return here.program.parent / "faults_api_soak"


def attempt(here, key):
    if key == "api":
        return soak_api(here)
    if not hasattr(here, "until"):  # this key alone
        here.until = time.monotonic() + ground.TIMEOUT
    if time.monotonic() > here.until:
        return tally.NOT_TRIED
    return chain(here, random.Random(int(key.split("/")[1])))


def soak_api(here):
    seconds = getattr(here, "api_seconds", SHORT)
    done = subprocess.run([api_program(here), str(seconds)], capture_output=True, text=True,
                          timeout=seconds * 2 + 120, env=here.empty().environment)
    if done.returncode:
        raise tally.Failure("the API loop grows or fails", done.stdout + done.stderr)
    return None


def chain(here, draw):
    """Runs that each go some steps further, stopped in every way there is, and readers between them."""
    place = here.empty()
    steps, last, folders = 12, 12 * CHAIN, None
    while steps < last:
        arguments = ground.RESUME + ("--steps", str(steps), "--set", "train.keep_checkpoints=2")
        how = draw.choice(["end", "end", "kill", "term", "read"])
        if how in ("kill", "term"):
            process = place.start(*arguments)
            time.sleep(draw.uniform(0, 0.06))
            process.send_signal(signal.SIGKILL if how == "kill" else signal.SIGTERM)
            process.communicate()
        elif how == "read" and (place.run / "run.json").exists():
            place.must("report", "run")
            if ground.checkpoints_of(place.run):
                place.must("generate", "run", *damage.GENERATE)
        else:
            check_memory(place, arguments)
            steps += 12
            folders = check_folders(here, place, folders)
    place.must(*ground.RESUME, "--steps", str(last), "--set", "train.keep_checkpoints=2")
    clean = here.state("long-chain", lambda p: p.must(
        *ground.TRAIN, "--steps", str(last), "--set", "train.keep_checkpoints=2"))
    newest = list(ground.checkpoints_of(place.run).values())[-1]
    wanted = list(ground.checkpoints_of(clean / "run").values())[-1]
    if what := ground.checkpoint_differs(newest, wanted):
        raise tally.Failure("a chain of runs ends elsewhere", what)


def check_memory(place, arguments):
    with_time = place.aloft(*arguments, under=("/bin/sh", "-c", 'ulimit -v 4000000; exec "$0" "$@"'))
    ground.check_documented(with_time)
    if with_time.code:
        raise tally.Failure("a run of a chain fails", with_time.text())
    record = re.search(r'"peak_rss_bytes": (\d+)', (place.run / "run.json").read_text())
    if record and int(record[1]) > LIMIT_BYTES:
        raise tally.Failure("a run takes more memory than a tiny run may", record[0])


def check_folders(here, place, before):
    """How many files there are after a run that ended, which must not grow with the number of runs
    (but for the event file of each session)."""
    kept = [p for folder in (place.run, place.cache) for p in folder.rglob("*")
            if p.is_file() and "tfevents" not in p.name and p.parent.name != "samples"]
    if before is not None and len(kept) > before + 2:
        raise tally.Failure("files are left over in a chain of runs",
                            "\n".join(sorted(str(p.relative_to(place.folder)) for p in kept)))
    return len(kept) if before is None else before


if __name__ == "__main__":
    tally.run("soak", keys, attempt, short=1 << 30, extra=options)
