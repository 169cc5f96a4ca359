"""System calls of a run, by strace: which there are, and one of them failing or killing the program.

strace counts calls by name and thread, so a point is (name, number): it strikes in whichever thread
gets so far. Points before the program's own code, where the loader maps libraries, are left out.
"""
import dataclasses
import pathlib
import re
import shutil
import tempfile

import tally


@dataclasses.dataclass(frozen=True)
class Call:
    thread: str
    name: str
    number: int  # of the thread's calls of this name, from 1
    text: str
    own: bool  # the loader had finished


# Calls that no machine lets fail, that end a thread, or that are made by waiting, not by working.
NEVER_FAIL = {"exit", "exit_group", "futex", "sched_yield", "arch_prctl", "set_tid_address", "rseq",
              "set_robust_list", "rt_sigreturn", "gettid", "getpid", "execve", "clock_gettime",
              "restart_syscall", "brk", "sched_getaffinity", "getrusage", "uname", "munmap",
              "rt_sigprocmask", "nanosleep", "clock_nanosleep", "poll", "prlimit64", "rt_sigaction"}


# What leaves files otherwise than it found them; opening does where it may make or cut the file.
CHANGES = {"write", "pwrite64", "writev", "pwritev", "ftruncate", "fallocate", "rename", "renameat",
           "renameat2", "mkdir", "mkdirat", "rmdir", "unlink", "unlinkat", "link", "linkat", "symlink",
           "symlinkat", "fchmod", "chmod", "fchmodat", "utimensat", "copy_file_range", "sendfile",
           "flock", "mknod", "mknodat", "truncate", "creat"}


def changes_files(call):
    if call.name in ("open", "openat"):
        return "O_CREAT" in call.text or "O_TRUNC" in call.text
    if call.name == "fcntl":
        return "LK" in call.text
    return call.name in CHANGES


def need_strace(here):
    """Ends the program as skipped where strace is missing or may not trace."""
    if not shutil.which("strace"):
        tally.skip("strace is not installed (tools/setup test)")
    place = here.empty()
    outcome = place.aloft("--version", under=("strace", "-f", "-o", "/dev/null"))
    if outcome.code:
        tally.skip("strace may not trace here: " + outcome.err.strip()[:200])


def parse(text):
    calls, numbers, loaded, cache = [], {}, set(), None
    lines = text.splitlines()
    unfinished = {}
    for line in lines:
        found = re.match(r"(\d+) +(?:<\.\.\. (\w+) resumed>|(\w+)\()(.*)", line)
        if not found:
            continue
        thread, resumed, name, rest = found.groups()
        if resumed:
            at = unfinished.pop((thread, resumed), None)
            if at is not None:
                old = calls[at]
                calls[at] = dataclasses.replace(old, text=old.text + rest)
            continue
        number = numbers[thread, name] = numbers.get((thread, name), 0) + 1
        if name == "execve":  # the numbers go on, the loader begins anew
            loaded.discard(thread)
        if name == "mmap" and cache == "open":
            cache = rest.rsplit("= ", 1)[-1]
        if name == "openat" and '"/etc/ld.so.cache"' in rest:
            cache = "open"
        # Behind the last library the loader lets go of its list of them.
        own = bool(loaded)
        if name == "munmap" and cache and rest.startswith(cache + ","):
            loaded.add(thread)
        calls.append(Call(thread, name, number, rest, own))
        if "<unfinished" in rest:
            unfinished[thread, name] = len(calls) - 1
    return calls


def trace(place, arguments, **options):
    """The calls of an undisturbed run."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "trace"
        place.must(*arguments, under=("strace", "-f", "-y", "-o", out), **options)
        return parse(out.read_text(errors="replace"))


def points(calls, wanted=lambda call: True):
    """(name, number) of the program's own calls, each once, in order. A number that the loader gets to
    as well, in another thread, would strike there."""
    seen = {}
    loader = {(call.name, call.number) for call in calls if not call.own}
    for call in calls:
        if call.own and call.name not in NEVER_FAIL and wanted(call) \
                and (call.name, call.number) not in loader:
            seen.setdefault((call.name, call.number))
    return list(seen)


def killed(place, arguments, name, number, **options):
    """Runs with SIGKILL when the call is made: it does not happen any more."""
    return place.aloft(*arguments, under=("strace", "-f", "-o", "/dev/null", "-e", f"trace={name}", "-e",
                                          f"inject={name}:signal=SIGKILL:when={number}"), **options)


def failing(place, arguments, name, number, error, for_ever, **options):
    """Runs with the call failing, and those of that name behind it where it is for ever. The outcome,
    and the lines of the trace with the failed calls."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "trace"
        when = f"{number}+" if for_ever else str(number)
        outcome = place.aloft(
            *arguments, **options,
            under=("strace", "-f", "--seccomp-bpf", "-y", "-o", out, "-e", f"trace={name}", "-e",
                   f"inject={name}:error={error}:when={when}"))
        lines = out.read_text(errors="replace").splitlines() if out.exists() else []
        return outcome, [line for line in lines if "(INJECTED)" in line]
