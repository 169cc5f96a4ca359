"""A folder with everything that a fault needs: a small text, a tiny recipe, runs in several states, and
what says whether a program ended as it may.

A run takes some 40 ms: one layer of 16 dimensions, one thread, O0, 12 steps, checkpoints after 4, 8, 12.
"""
import dataclasses
import functools
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import threading

import events
import tally
import tracing

RECIPE = """[model]
layers = 1
dim = 16
heads = 2
context = 8
dropout = 0.1
[data]
text = ["{text}"]
tokenizer = {{ kind = "bpe", vocab = 300 }}
validation = 0.2
[precision]
level = "O0"
[train]
batch = 2
steps = 12
eval_every = 6
checkpoint_every = 4
sample_tokens = 8
threads = 1
"""
WORDS = "the quick brown fox jumps over a lazy dog while seven wizards box".split()
FILES, LINES = 5, 40
TIMEOUT = 300  # seconds; a busy machine may stand still for a minute
TRAIN = ("train", "tiny.toml", "--out", "run", "--quiet")
RESUME = TRAIN + ("--resume",)


@dataclasses.dataclass
class Outcome:
    """How a program ended. `code` is negative for a signal and None where it had to be stopped."""
    arguments: list
    code: int
    out: str
    err: str

    def text(self):
        return f"$ aloft {' '.join(map(str, self.arguments))}\nexit {self.code}\n{self.err[-1500:]}"


@functools.cache
def exits():
    """error code -> exit status, as docs/errors.md has it."""
    page = (tally.ROOT / "docs" / "errors.md").read_text()
    return {m[1]: int(m[2]) for m in re.finditer(r"^\| (E\d{4}) \| (\d+) \|", page, re.M)}


def check_documented(outcome, message=True):
    """Raises Failure unless the program ended with 0 or as docs/errors.md says."""
    code = outcome.code
    if code == 0:
        return
    if code is None:
        raise tally.Failure(f"still running after {TIMEOUT} s", outcome.text())
    if code < 0 or code > 128 and code != 130:
        number = -code if code < 0 else code - 128
        raise tally.Failure(f"killed by {signal.Signals(number).name}", outcome.text())
    found = re.findall(r"^(?:aloft: )?error (E\d{4})", outcome.err, re.M)
    if code == 70:
        first = outcome.err.strip().splitlines() or [""]
        raise tally.Failure(f"exit 70: {tally.plain(first[-1])}", outcome.text())
    if code not in (2, 3, 4, 5, 130):
        raise tally.Failure(f"exit {code}, which means nothing", outcome.text())
    if not message or code > 128:
        return
    if not found:
        raise tally.Failure(f"exit {code} without an error's code", outcome.text())
    if exits().get(found[-1]) != code:
        raise tally.Failure(f"exit {code} for {found[-1]}", outcome.text())


class Place:
    """A folder for one try."""

    def __init__(self, aloft, folder):
        self.program, self.folder = aloft, folder
        self.run, self.cache = folder / "run", folder / "cache"
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TZ": "UTC",
                            "XDG_CACHE_HOME": str(folder / "cache"), "OMP_NUM_THREADS": "1",
                            # A run that finds compiled programs makes other calls than the one before.
                            "ALOFT_PLAN_CACHE": "off",
                            # Without it the program starts itself a second time.
                            "OMP_WAIT_POLICY": "passive"}

    def command(self, arguments, under=()):
        return [*map(str, under), str(self.program), *map(str, arguments)]

    def aloft(self, *arguments, under=(), timeout=TIMEOUT, **options):
        """Runs the program; options as subprocess.run has them."""
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                   "stderr": subprocess.PIPE, "env": self.environment, **options}
        try:
            done = subprocess.run(self.command(arguments, under), cwd=self.folder, timeout=timeout,
                                  **options)
        except subprocess.TimeoutExpired as late:
            return Outcome(list(arguments), None, words(late.stdout), words(late.stderr))
        return Outcome(list(arguments), done.returncode, words(done.stdout), words(done.stderr))

    def start(self, *arguments, under=(), **options):
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL,
                   "stderr": subprocess.PIPE, "env": self.environment, **options}
        return subprocess.Popen(self.command(arguments, under), cwd=self.folder, **options)

    def must(self, *arguments, **options):
        """Runs the program where it has no reason to fail."""
        outcome = self.aloft(*arguments, **options)
        check_documented(outcome)
        if outcome.code:
            first = re.search(r"error.*", outcome.err)
            raise tally.Failure(f"without a fault, {' '.join(map(str, arguments[:1]))} ends with "
                                f"{outcome.code}: {tally.plain(first[0] if first else '')}",
                                outcome.text())
        return outcome


def words(data):
    return (data or b"").decode(errors="replace")


class Ground:
    """Makes places: copies of a state that the program made undisturbed."""

    def __init__(self, aloft, root, seed):
        self.program, self.root, self.seed = aloft, root, seed
        self.numbers = itertools.count()
        self.of_thread = threading.local()
        self.making = threading.RLock()  # a state may need another one

    def __enter__(self):
        memory = pathlib.Path("/dev/shm")
        in_memory = "TMPDIR" not in os.environ and os.access(memory, os.W_OK)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="aloft-faults-",
                                                    dir=memory if in_memory else None))
        draw = random.Random(7)
        self.text = self.folder / "text"
        self.text.mkdir()
        for number in range(FILES):
            lines = [" ".join(draw.choice(WORDS) for _ in range(9)) for _ in range(LINES)]
            (self.text / f"{number}.txt").write_text("\n".join(lines) + "\n")
        self.recipe = RECIPE.format(text=self.text)
        (self.folder / "states").mkdir()
        self.states = {}
        return self

    def __exit__(self, *error):
        shutil.rmtree(self.folder, ignore_errors=True)

    def new_folder(self):
        """A name of its own; clear() removes the folder."""
        folder = self.folder / f"try-{next(self.numbers)}"
        self.of_thread.folders = [*getattr(self.of_thread, "folders", ()), folder]
        return folder

    def empty(self):
        folder = self.new_folder()
        (folder / "cache").mkdir(parents=True)
        (folder / "tiny.toml").write_text(self.recipe)
        return Place(self.program, folder)

    def state(self, name, make=None):
        """The folder of a state; make(place) makes it where it is asked for the first time."""
        with self.making:
            if name not in self.states:
                place = self.empty()
                (make or STATES[name])(place)
                self.states[name] = place.folder.rename(self.folder / "states" / name)
            return self.states[name]

    def place(self, state, make=None):
        folder = self.new_folder()
        shutil.copytree(self.state(state, make), folder, symlinks=True)
        return Place(self.program, folder)

    def remove(self, place):
        shutil.rmtree(place.folder, ignore_errors=True)

    def clear(self):
        """Removes the places that this thread made since it last did."""
        for folder in getattr(self.of_thread, "folders", ()):
            shutil.rmtree(folder, ignore_errors=True)
        self.of_thread.folders = []


def make_half(place):
    """A run that was killed when its checkpoint of step 12 was to get its name."""
    place.must("data", "build", "tiny.toml")
    calls = tracing.trace(place, TRAIN)
    shutil.rmtree(place.run)
    name, number = next((c.name, c.number) for c in calls
                        if c.name.startswith("rename") and "checkpoints/step-000012" in c.text)
    tracing.killed(place, TRAIN, name, number)
    if (place.run / "checkpoints" / "step-000012").exists():
        raise tally.Failure("the run was not killed where it was to be")


STATES = {
    "empty": lambda place: None,
    "packed": lambda place: place.must("data", "build", "tiny.toml"),
    "done": lambda place: place.must(*TRAIN),
    "half": make_half,
}


# ------------------------------------------------------------------------- what two runs must share

def metrics_of(run):
    """The lines without what was measured."""
    kept = []
    for line in (run / "metrics.jsonl").read_text().splitlines():
        kept.append({k: v for k, v in json.loads(line).items()
                     if not k.endswith("_s") and not k.endswith("_ms")})
    return kept


def checkpoints_of(run):
    return {p.name: p for p in sorted((run / "checkpoints").glob("step-*"))}


def manifest_of(checkpoint):
    manifest = json.loads((checkpoint / "manifest.json").read_text())
    return {k: manifest.get(k) for k in ("step", "data_position", "tokens", "files", "model", "policy")}


def checkpoint_differs(found, wanted):
    """What of the checkpoint is not as it must be, or None."""
    for name in sorted({file.name for file in [*wanted.glob("*.safetensors"), *found.glob("*.safetensors")]}):
        if not (found / name).is_file() or not (wanted / name).is_file():
            return f"{name} is missing"
        if (found / name).read_bytes() != (wanted / name).read_bytes():
            return f"{name} has other bytes"
    if not (found / "manifest.json").is_file():
        return "manifest.json is missing"
    try:
        if manifest_of(found) != manifest_of(wanted):
            return "manifest.json says something else"
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        return f"manifest.json: {error}"
    return None


def differences(found, wanted):
    """What a run that was disturbed has otherwise than one that was not: to be an empty list."""
    problems = []
    a, b = checkpoints_of(found), checkpoints_of(wanted)
    if not a.keys() >= b.keys():  # one more may wait for the next to be saved
        problems.append(f"checkpoints {list(a)}, not {list(b)}")
    for name in a.keys() & b.keys():
        if what := checkpoint_differs(a[name], b[name]):
            problems.append(f"checkpoint {name}: {what}")
    for name, of in (("metrics.jsonl", metrics_of), ("events", events.scalars)):
        try:
            if of(found) != of(wanted):
                problems.append(f"{name}: {first_difference(of(found), of(wanted))}")
        except (OSError, ValueError, LookupError, struct.error) as error:
            problems.append(f"{name}: {error}")
    problems += [f"{folder}/{file.name} differs" for folder in ("tokenizer", "samples")
                 for file in sorted((wanted / folder).iterdir())
                 if not same_bytes(found / folder / file.name, file)]
    records = [json.loads((run / "run.json").read_text()).get("result", {}) for run in (found, wanted)]
    for key in ("steps", "last_loss", "val_loss", "skipped"):
        if records[0].get(key) != records[1].get(key):
            problems.append(f"run.json: result.{key} is {records[0].get(key)}, not {records[1].get(key)}")
    if not (found / "report.html").is_file():
        problems.append("report.html is missing")
    return problems


def first_difference(found, wanted):
    found, wanted = list(found), list(wanted)
    for i, (a, b) in enumerate(zip(found, wanted)):
        if a != b:
            return f"entry {i} is {a}, not {b}"
    return f"{len(found)} entries, not {len(wanted)}"


def same_bytes(a, b):
    return a.is_file() and a.read_bytes() == b.read_bytes()


def check_same(found, wanted, doing):
    problems = differences(found, wanted)
    if problems:
        kinds = sorted({re.sub(r"[:,].*", "", re.sub(r"step-\d+", "N", p)) for p in problems})
        raise tally.Failure(f"{doing}: differs in {'; '.join(kinds)}", "\n".join(problems))


def left_over(folder):
    """Files that only a program at work may have."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*")
                  if re.search(r"\.partial$|\.tmp", p.name))
