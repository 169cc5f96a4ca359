"""What a run was measured on: processor, features, memory, compilers, libraries, revision."""
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess

from programs import ROOT

FEATURES = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_bf16", "amx_int8",
            "amx_fp16", "asimd", "bf16", "i8mm", "sve")


def said(*command):
    """The first line that a command prints, or nothing."""
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.DEVNULL, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().split("\n")[0] if done.returncode == 0 else ""


def cpu_info():
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return {}
    return dict((k.strip(), v.strip()) for k, _, v in
                (line.partition(":") for line in text.split("\n\n")[0].splitlines()))


def features():
    have = set(cpu_info().get("flags", "").split()) | set(cpu_info().get("Features", "").split())
    return [name for name in FEATURES if name in have]


def memory_bytes():
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def compiler():
    """Of the build that is measured."""
    cache = ROOT / "build" / "CMakeCache.txt"
    found = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", cache.read_text(), re.M) \
        if cache.exists() else None
    return said(found[1] if found else "c++", "--version")


def libraries(aloft):
    try:
        out = subprocess.run([aloft, "doctor", "--json"], stdout=subprocess.PIPE, text=True,
                             stderr=subprocess.DEVNULL, timeout=60).stdout
        checks = {c["check"]: c["saw"] for c in json.loads(out)}
    except (OSError, ValueError, KeyError, TypeError, subprocess.TimeoutExpired):
        return {}
    return {name: checks[name] for name in ("aloft", "oneDNN") if name in checks}


def is_stale(program):
    """Whether a source is younger than the program: then it is not what the commit says."""
    built = program.stat().st_mtime if program.exists() else 0
    return any(p.stat().st_mtime > built for p in (ROOT / "src").rglob("*.[ch]*"))


def revision(aloft):
    """The commit; a plus where the working tree differs from it outside of results, and a question
    mark where the program is older than its sources."""
    commit = said("git", "rev-parse", "--short=12", "HEAD")
    changed = said("git", "status", "--porcelain", "--untracked-files=no", "--",
                   ":!docs/benchmarks", ":!docs/benchmarks.md", ":!docs/results",
                   ":!docs/results.md")
    return (commit or "unknown") + "+" * bool(changed) + "?" * is_stale(aloft)


def system():
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def machine():
    """What does not change from row to row of one file."""
    info = cpu_info()
    name = info.get("model name") or platform.processor() or platform.machine()
    if "model" in info and "model name" in info:
        name += f" (family {info.get('cpu family', '?')}, model {info['model']})"
    have = features()
    return {"processor": name, "features": have, "cores": len(os.sched_getaffinity(0)),
            "memory_gib": round(memory_bytes() / 2**30, 1), "has_amx": "amx_bf16" in have,
            "system": system()}


def stamp(aloft):
    """What may differ between rows that were measured one after the other."""
    return {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "revision": revision(aloft), "compiler": compiler(), **libraries(aloft)}
