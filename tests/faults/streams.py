"""Every verb with its standard streams closed, full or gone: it says so with its exit, and nothing that is
written for a person lands in a file.

  streams.py ALOFT [--short] ...

The verbs are those that `aloft --help` lists. Each stream, alone and together with others, is
  closed    not open at all: a file that is opened next would get its number
  full      /dev/full: every write fails
  gone      a pipe that nobody reads
  reading   open, but not for writing
A verb that loses what it has to say ends with 4; a run that loses only its progress may end well.
"""
import itertools
import os
import re
import subprocess

import damage
import ground
import hostile
import tally

HOW = ("closed", "full", "gone", "reading")
NAMES = ("in", "out", "err")
MORE = {
    "train --print-config": ("empty", ("train", "tiny.toml", "--print-config")),
    "train loudly": ("empty", ("train", "tiny.toml", "--out", "run")),
    "resume": ("half", ground.RESUME),
    "--help": ("empty", ("--help",)), "--version": ("empty", ("--version",)), "": ("empty", ()),
    "generate --json": ("done", ("generate", "run", "--json") + damage.GENERATE),
    "ops --json": ("empty", ("ops", "--json")), "explain plan --json":
        ("empty", ("explain", "plan", "tiny.toml", "--json")),
    "devices --json": ("empty", ("devices", "--no-measure", "--json")),
    "bench step": ("empty", ("bench", "step", "--layers", "1", "--heads", "2", "--dim", "16", "--vocab", "96",
                             "--seq", "8", "--batch", "2", "--precision", "O0", "--no-limit", "--steps", "3",
                             "--threads", "1")),
    "wrong": ("empty", ("tran",)), "no recipe": ("empty", ("train", "absent.toml")),
}
# More than a pipe holds, so that the reader's going is noticed.
SLOW_TO_NOTICE = {"gone"}


def verbs(here):
    """name -> (state, arguments): every verb of the program, and some of its ways."""
    found = dict(hostile.VERBS)
    listed = re.findall(r"^  ([a-z]+) ", here.empty().must("--help").out, re.M)
    for verb in listed:
        known = [name for name in (*found, *MORE) if name.split()[:1] == [verb]]
        if not known:  # a verb that is new: its help says something, that much is sure
            found[verb] = ("empty", (verb, "--help"))
        found[f"{verb} --help"] = ("empty", (verb, "--help"))
    return {**found, **MORE}


def keys(here, options, draw):
    found = []
    for verb in verbs(here):
        for how in HOW:
            for count in (1, 2, 3):
                for which in itertools.combinations(NAMES, count):
                    if how != "closed" and "in" in which:
                        continue
                    found.append(f"{verb}|{how}|{'+'.join(which)}")
    return found


def attempt(here, key):
    verb, how, which = key.split("|")
    which = which.split("+")
    state, arguments = verbs(here)[verb]
    place = here.place(state)
    usual = here.place(state).aloft(*arguments)
    outcome = with_streams(place, arguments, how, which)
    help_as_usual = outcome.code == usual.code and "error E" not in usual.err
    if not help_as_usual:
        ground.check_documented(outcome, message="err" not in which)
    if "out" in which and usual.out and outcome.code == 0:
        raise tally.Failure(f"stdout is {how}, and the exit says that all is well", outcome.text())
    if usual.code and outcome.code not in (usual.code, 4):
        raise tally.Failure(f"exit {outcome.code} instead of {usual.code}", outcome.text())
    check_files(here, place, verb, outcome)


def with_streams(place, arguments, how, which):
    """Runs the program with the streams `which` broken; what still can be heard is heard."""
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    opened, closing = [], []
    for name in which:
        if how == "closed":
            closing.append(NAMES.index(name))
            options["std" + name] = subprocess.DEVNULL
            continue
        if how == "gone":
            reader, writer = os.pipe()
            os.close(reader)
        else:
            writer = os.open("/dev/full" if how == "full" else "/dev/null",
                             os.O_WRONLY if how == "full" else os.O_RDONLY)
        opened.append(writer)
        options["std" + name] = writer
    if closing:
        shell = " ".join(f"{fd}{'<' if fd == 0 else '>'}&-" for fd in closing)
        options["under"] = ("sh", "-c", f'exec "$0" "$@" {shell}')
    try:
        return place.aloft(*arguments, **options)
    finally:
        for writer in opened:
            os.close(writer)


def check_files(here, place, verb, outcome):
    """A run has the files of any run, whatever became of its talk; a report is a report."""
    if verb in ("train", "train loudly", "resume"):
        if outcome.code:
            place.must(*ground.RESUME)
        ground.check_same(place.run, here.state("done") / "run", "with broken streams")
    for file in place.folder.rglob("*"):
        if file.is_file() and file.suffix in (".json", ".html", ".shard", ".model", ".safetensors"):
            data = file.read_bytes()
            for word in (b"preparing data", b"tok/s  left", b"error E0"):
                if word in data and file.name not in ("run.json", "report.html"):
                    raise tally.Failure(f"talk in a data file ({file.suffix})", f"{file}: {word}")


if __name__ == "__main__":
    tally.run("streams", keys, attempt, short=60)
