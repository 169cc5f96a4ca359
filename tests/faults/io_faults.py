"""A system call fails, once or for ever: the program ends well or says what could not be done to which
file, and what it leaves can be gone on with.

  io_faults.py ALOFT [--short] ...

Points: every call of a fresh run, a resumed run, `data build`, `report`, `generate` and `score`, as a trace
lists them, with each error that the call may meet (ERRORS). Allowed is exit 0 with everything as it
must be, or the exit that docs/errors.md gives the code of the message, which names the file and the cause.
Afterwards, without the fault, the same work gives the same bits as if nothing had happened. And:

  sizes    no file may grow beyond N bytes (ulimit -f): writes end short, then fail
  short    every read and write moves fewer bytes than asked for, or is interrupted: same bits
  order    in a clean run each file is on the disk before it gets its name, its folder behind that
"""
import json
import os
import re
import resource

import ground
import tally
import tracing

OPEN = ("EIO", "EMFILE", "EACCES", "ENOSPC", "ENOMEM")
ERRORS = {
    "open": OPEN, "openat": OPEN, "creat": OPEN,
    "read": ("EIO",), "pread64": ("EIO",), "readv": ("EIO",),
    "write": ("EIO", "ENOSPC"), "pwrite64": ("EIO", "ENOSPC"), "writev": ("EIO", "ENOSPC"),
    "fsync": ("EIO", "ENOSPC"), "fdatasync": ("EIO", "ENOSPC"), "close": ("EIO",),
    "ftruncate": ("EIO",), "fallocate": ("ENOSPC",), "lseek": ("EIO",),
    "rename": ("EIO", "EACCES", "ENOSPC"), "renameat2": ("EIO", "EACCES", "ENOSPC"),
    "mkdir": ("ENOSPC", "EACCES"), "rmdir": ("EIO",), "unlink": ("EIO", "EACCES"),
    "unlinkat": ("EIO", "EACCES"), "getdents64": ("EIO",), "newfstatat": ("EIO", "EACCES"),
    "stat": ("EIO", "EACCES"), "mmap": ("ENOMEM",), "mprotect": ("ENOMEM",), "mremap": ("ENOMEM",),
    "clone": ("EAGAIN",), "clone3": ("EAGAIN",), "flock": ("ENOLCK",), "fcntl": ("EIO",),
    "readlink": ("EIO",), "getcwd": ("EACCES",), "access": ("EACCES",),
}
DEFAULT = ("EIO",)
# Failures that only a caller's mistake or a broken kernel gives, and hints that may fail.
NEVER = {"madvise", "ioctl", "umask", "getrandom", "sysinfo", "epoll_wait", "kill", "tgkill", "fadvise64"}
# What the words of an error, or of our own message about it, have in them.
CAUSE = {"ENOMEM": "memory|thread", "EAGAIN": "thread|unavailable|memory", "EACCES": "permission|not readable",
         "EFBIG": "too large|no space"}
# Somebody else's file is the matter, not the machine: exit 3 is as good as 4.
OF_THE_FILE = {"EACCES", "ENOENT"}

SCORE = ("score", "run", "--tokens", "tokens.safetensors", "--out", "scored.safetensors", "--grads")
GENERATE = ("generate", "run", "--prompt", "the ", "--tokens", "12", "--seed", "3", "--threads", "1")
# name -> (state it begins in, arguments, arguments to go on with)
SCENARIOS = {
    "train": ("empty", ground.TRAIN, ground.RESUME),
    "resume": ("half", ground.RESUME, ground.RESUME),
    "data": ("empty", ("data", "build", "tiny.toml"), None),
    "report": ("done", ("report", "run"), None),
    "generate": ("done", GENERATE, None),
    "score": ("to-score", SCORE, None),
}


def make_to_score(place):
    place.must(*ground.TRAIN)
    tokens = bytes(t for i in range(16) for t in (i + 40, 0, 0, 0))
    header = b'{"tokens":{"dtype":"I32","shape":[2,8],"data_offsets":[0,64]}}  '
    (place.folder / "tokens.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + tokens)


ground.STATES["to-score"] = make_to_score


def keys(here, options, draw):
    tracing.need_strace(here)
    found = []
    for name, (state, arguments, _) in SCENARIOS.items():
        calls = tracing.trace(here.place(state), arguments)
        for call, number in tracing.points(calls, may_fail):
            for error in ERRORS.get(call, DEFAULT):
                found += [f"{name}/{call}/{number}/{error}/{how}" for how in ("once", "ever")]
        found += [f"{name}/{call}/{number}/EINTR/once"
                  for call, number in tracing.points(calls, lambda c: c.name in ("read", "write"))]
        found += [f"sizes/{name}/{size}" for size in sizes(calls)]
        found += [f"order/{name}"]
        if short_calls(here):
            found += [f"short/{name}/{draw.randrange(1 << 20)}" for _ in range(10 * options.rounds)]
    return found


def may_fail(call):
    # Of what fcntl does with a file of one's own only locking can fail.
    return call.name not in NEVER and (call.name != "fcntl" or "LK" in call.text)


def sizes(calls):
    """Limits that cut each file that was written: at its start, inside, before its last byte."""
    written = {}
    for call in calls:
        if call.own and call.name in ("write", "pwrite64"):
            fd = call.text.split(",")[0]
            put = re.search(r"= (\d+)", call.text)
            written[fd] = written.get(fd, 0) + int(put[1] if put else 0)
    return sorted({size for total in written.values() for size in (0, total // 2, max(total - 1, 0))})


def attempt(here, key):
    kind, *rest = key.split("/")
    if kind == "order":
        return check_order(here, rest[0])
    if kind == "short":
        return transfer_less(here, rest[0], rest[1])
    scenario = rest[0] if kind == "sizes" else kind
    state, arguments, again = SCENARIOS[scenario]
    place = here.place(state)
    if kind == "sizes":
        limit = int(rest[1])
        outcome = place.aloft(*arguments, preexec_fn=lambda: limit_files(limit))
        struck, error = [], "EFBIG"
    else:
        call, number, error, how = rest
        outcome, struck = tracing.failing(place, arguments, call, int(number), error, how == "ever")
    check_end(outcome, struck, error)
    check_record(place, outcome)
    left_out = error in OF_THE_FILE and "not readable" in outcome.err
    if outcome.code == 0 and not left_out:
        compare(here, place, scenario, outcome, "although a call failed, exit 0")
    elif outcome.code:
        after = place.must(*(again or arguments))
        compare(here, place, scenario, after, "done again after a failed call")


def limit_files(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def check_end(outcome, struck, error):
    talk = any(re.search(r"\bwrite(v)?\(2<", line) for line in struck)
    ground.check_documented(outcome, message=not talk)
    if outcome.code == 0 or talk:
        return
    if outcome.code not in ((3, 4) if error in OF_THE_FILE else (4,)):
        raise tally.Failure(f"exit {outcome.code} for {error}", outcome.text())
    cause = CAUSE.get(error, re.escape(os.strerror(getattr(__import__("errno"), error))))
    if not re.search(cause, outcome.err, re.I):
        raise tally.Failure(f"the message does not name the cause ({error})", outcome.text())
    names = [name for line in struck for name in file_names(line)]
    if names and not any(name in outcome.err for name in names):
        raise tally.Failure("the message does not name the file",
                            f"one of {sorted(set(names))}\n{outcome.text()}")


def check_record(place, outcome):
    """The error that run.json has is the one that the program ended with."""
    record = place.run / "run.json"
    noted = json.loads(record.read_text()).get("error") if record.exists() else None
    if noted and "error E" in outcome.err and noted["code"] not in outcome.err:
        raise tally.Failure(f"run.json notes {noted['code']} for another error", outcome.text())


def file_names(line):
    """What a failed call was about: the names in it, as a person would know them."""
    found = re.findall(r'"([^"]*)"', line) if not re.search(r"\b(write|read)\(", line) else []
    found += re.findall(r"\d+<([^>]*)>", line)
    plain = []
    for path in found:
        folder, _, name = path.rstrip("/").rpartition("/")
        if "stat" in line.split("(")[0]:  # looking for it is looking into its folder
            plain += [folder.rpartition("/")[2]] if folder else []
        name = re.sub(r"(\.\d+-\d+)?\.tmp[\d.]*$|\.partial$", "", name)
        if path.startswith(("/dev/pts", "/dev/null", "/dev/full", "pipe:")):
            name = "out"
        if re.fullmatch(r"try-\d+", name):  # where the program runs
            name = "file  .\n"
        if name.strip("."):
            plain.append(name.removeprefix("."))
    return plain


def compare(here, place, scenario, outcome, doing):
    clean = here.state("done")
    if scenario in ("train", "resume"):
        ground.check_same(place.run, clean / "run", doing)
    elif scenario == "data":
        check_folders(place.cache, here.state("packed") / "cache", doing)
    elif scenario == "report":
        wanted = here.state("reported", lambda p: reported(here, p)) / "run" / "report.html"
        if (place.run / "report.html").read_bytes() != wanted.read_bytes():
            raise tally.Failure(f"{doing}: another report")
    elif outcome.out != clean_output(here, scenario):
        raise tally.Failure(f"{doing}: another output", outcome.text())
    if scenario == "score":
        wanted = here.state("scored", lambda p: scored(here, p)) / "scored.safetensors"
        if not ground.same_bytes(place.folder / "scored.safetensors", wanted):
            raise tally.Failure(f"{doing}: other scores")


def check_folders(found, wanted, doing):
    def all_of(folder):
        return {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    a, b = all_of(found), all_of(wanted)
    if a != b:
        raise tally.Failure(f"{doing}: another data set",
                            f"differ: {sorted(k for k in a.keys() | b.keys() if a.get(k) != b.get(k))}")


def reported(here, place):
    copy_state(here, "done", place)
    place.must("report", "run")


def scored(here, place):
    copy_state(here, "to-score", place)
    (place.folder / "output").write_text(place.must(*SCORE).out)


def generated(here, place):
    copy_state(here, "done", place)
    (place.folder / "output").write_text(place.must(*GENERATE).out)


def copy_state(here, state, place):
    here.remove(place)
    here.place(state).folder.rename(place.folder)


def clean_output(here, scenario):
    make = scored if scenario == "score" else generated
    return (here.state(scenario + "d", lambda p: make(here, p)) / "output").read_text()


# ------------------------------------------------------------------------------- fewer bytes, order

def short_calls(here):
    """The library that shortens reads and writes, where it was built."""
    library = here.program.parent.parent / "tests" / "faults" / "libshort_calls.so"
    return library if library.exists() else None


def transfer_less(here, scenario, seed):
    state, arguments, _ = SCENARIOS[scenario]
    place = here.place(state)
    place.environment |= {"LD_PRELOAD": str(short_calls(here)), "SHORT_CALLS_SEED": seed}
    outcome = place.must(*arguments)
    del place.environment["LD_PRELOAD"]
    compare(here, place, scenario, outcome, "with short reads and writes")


def check_order(here, scenario):
    """fsync of the file between its last write and its rename, fsync of the folder behind that."""
    state, arguments, _ = SCENARIOS[scenario]
    place = here.place(state)
    dirty, named = {}, {}
    for call in (c for c in tracing.trace(place, arguments) if c.own):
        paths = [os.path.join(place.folder, p) for p in re.findall(r"<(/[^>]*)>", call.text)[:1]]
        if call.name in ("write", "pwrite64") and paths:
            dirty[paths[0]] = True
        elif call.name in ("fsync", "fdatasync") and paths:
            dirty.pop(paths[0], None)
            named = {to: True for to in named if os.path.dirname(to) != paths[0].rstrip("/")}
        elif call.name.startswith("rename"):
            start, to = (os.path.join(place.folder, p) for p in re.findall(r'"([^"]*)"', call.text)[:2])
            late = [path for path in dirty if path == start or path.startswith(start + "/")]
            if late:
                raise tally.Failure("renamed before it was on the disk", "\n".join(late))
            named[to] = True
        elif call.name in ("rmdir", "unlink", "unlinkat"):  # what is gone needs no name
            gone = re.search(r'^(?:\w+<([^>]*)>, )?"([^"]*)"', call.text)
            named.pop(gone and os.path.join(place.folder, gone[1] or "", gone[2]), None)
    if named:
        raise tally.Failure("renamed, and the folder never synced", "\n".join(named))


if __name__ == "__main__":
    tally.run("io_faults", keys, attempt, short=90)
