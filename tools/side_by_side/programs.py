"""Runs one program to its end and reads the JSON object that it prints."""
import dataclasses
import json
import os
import pathlib
import resource
import signal
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass
class Program:
    """`aloft` and `python` in the command stand for the built program and the peers' Python; a path there
    for itself."""
    name: str
    command: list
    step: str = "step_ms"  # the key of its JSON that is the step

    def shown(self):
        """As a user types it at the root of the repository."""
        words = {"aloft": "build/bin/aloft", "python": "python3"}
        first, *rest = self.command
        return " ".join([words.get(first, str(first).removeprefix(f"{ROOT}/")), *map(str, rest)])

    def on(self, threads):
        """The same on so many threads, if it does not say how many itself."""
        if "--threads" in self.command:
            return self
        return dataclasses.replace(self, command=[*self.command, "--threads", threads])


class Missing(Exception):
    """A program that cannot be run here, and why."""


@dataclasses.dataclass
class Tools:
    aloft: pathlib.Path
    python: pathlib.Path | None  # an interpreter that has torch
    threads: int
    seconds: int  # that one program may take

    def resolve(self, program):
        first, *rest = program.command
        if first == "aloft":
            if not self.aloft.exists():
                raise Missing(f"{self.aloft.name} is not built")
            return [str(self.aloft), *map(str, rest)]
        if isinstance(first, pathlib.Path):
            return [str(first), *map(str, rest)]
        if self.python is None:
            raise Missing("no Python with torch")
        if not (ROOT / rest[0]).exists():
            raise Missing(f"{rest[0]} is missing")
        return [str(self.python), *map(str, rest)]


def environment(tools):
    """The same threads for everybody; what torch.compile builds is kept between runs."""
    built = ROOT / "build" / "peers"
    return dict(os.environ, OMP_NUM_THREADS=str(tools.threads), PYTHONDONTWRITEBYTECODE="1",
                TORCHINDUCTOR_CACHE_DIR=str(built / "inductor"), TORCHINDUCTOR_COMPILE_THREADS="1",
                CUDA_VISIBLE_DEVICES="")


def last_words(text):
    """The last line of what a failed program said, without this machine's folders."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    line = lines[-1] if lines else "it said nothing"
    return line.replace(str(ROOT) + "/", "").replace(str(pathlib.Path.home()), "~")[:200]


def machine_seconds():
    """Processor time that anybody has used, and what a hypervisor kept for others."""
    fields = [int(v) for v in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    user, nice, system, _, _, irq, soft_irq, stolen = fields
    return (user + nice + system + irq + soft_irq + stolen) / os.sysconf("SC_CLK_TCK")


def child_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Others:
    """The share of all cores' time that went to neither idling nor the program that was run."""
    def __init__(self):
        self.wall, self.all, self.ours = time.monotonic(), machine_seconds(), child_seconds()

    def share(self):
        wall = (time.monotonic() - self.wall) * os.cpu_count()
        foreign = machine_seconds() - self.all - (child_seconds() - self.ours)
        return min(1.0, max(0.0, foreign / wall)) if wall > 0 else 0.0


def run(program, tools):
    """Its JSON object, when it was started on the clock that all processes share, and the share of
    the machine that others took meanwhile."""
    command = tools.resolve(program)
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        others = Others()
        started = time.clock_gettime(time.CLOCK_MONOTONIC)
        child = subprocess.Popen(command, stdout=out, stderr=err, cwd=ROOT,
                                 env=environment(tools), start_new_session=True)
        try:
            code = child.wait(timeout=tools.seconds)
        except BaseException as stopped:  # an interrupt too: no program of ours is left behind
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            if isinstance(stopped, subprocess.TimeoutExpired):
                raise Missing(f"took longer than {tools.seconds} s") from None
            raise
        others_share = others.share()
        out.seek(0), err.seek(0)
        text, words = out.read(), err.read()
    if code:
        raise Missing(f"exit {code}: {last_words(words)}")
    try:
        result = json.loads(text[text.index("{"):])
    except ValueError:
        raise Missing("it printed no JSON object") from None
    if program.step not in result:
        raise Missing(f"its JSON has no {program.step}")
    return result | {"step_ms": result[program.step], "started_clock_s": started, "others_share": others_share}
