"""Flips and cuts in every file that the program reads: it refuses the file or gives the same bits.

  damage.py ALOFT [--short] ...

Which files a verb reads comes from a trace of it. A damaged file of ours is refused with a documented error, made
anew, or the damage was harmless; where an older checkpoint is used instead, a warning says so. Files of
others that hold no hash (recipes, texts, graphs, weights of a Hugging Face folder) may say something else
after a flip; they never crash the program, and the header of such weights never means something else.
"""
import fnmatch
import json
import os
import re
import shutil
import struct

import ground
import models
import tally
import tracing

TRIES = 5000
GENERATE = ("--prompt", "the ", "--tokens", "12", "--seed", "3", "--threads", "1")
CHARS = ("--set", 'data.tokenizer.kind="char"')
LOW = ("--set", 'precision.level="O2"')
SCORE = ("score", "run", "--tokens", "tokens.safetensors", "--out", "scored.safetensors")
# name -> (state, arguments)
SCENARIOS = {
    "train": ("warm", ground.TRAIN),
    "train-char": ("warm-char", ground.TRAIN + CHARS),
    "train-low": ("warm-low", ground.TRAIN + LOW),
    "train-text": ("text-inside", ground.TRAIN),
    "resume": ("half", ground.RESUME),
    "generate": ("done", ("generate", "run") + GENERATE),
    "generate-char": ("done-char", ("generate", "run") + GENERATE),
    "score": ("to-score", SCORE),
    "report": ("done", ("report", "run")),
    "data-info": ("packed", ("data", "info", "packed")),
    "generate-gpt2": ("gpt2", ("generate", "gpt2") + GENERATE),
    "passes": ("graph", ("passes", "--run", "simplify,cse,dce", "step.graph")),
}
# (scenario, file) -> a flip may be another input that is as good; only crashes are failures.
OTHERS = ["*|*.toml", "*|text/*", "score|tokens.safetensors", "generate-gpt2|gpt2/*.json",
          "generate-gpt2|gpt2/merges.txt", "passes|*", "report|*"]
NOT_OURS = re.compile(r"^(home|\.)|report\.html")


def make_warm(*extra):
    """What an earlier run left in the cache, all of it."""
    return lambda place: place.must("train", "tiny.toml", "--out", "earlier", "--quiet", *extra)


def make_text_inside(place):
    inside = place.folder / "text"
    inside.mkdir()
    for number in range(3):
        (inside / f"{number}.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 20)
    recipe = place.folder / "tiny.toml"
    recipe.write_text(re.sub(r"(?m)^text = .*", 'text = ["text"]', recipe.read_text()))


def make_gpt2(place):
    models.make_gpt2_folder(place.folder / "gpt2")


def make_graph(place):
    (place.folder / "step.graph").write_text(place.must("explain", "graph", "tiny.toml").out)


def make_to_score(place):
    place.must(*ground.TRAIN)
    (place.folder / "tokens.safetensors").write_bytes(models.tokens_to_score())


def make_packed(place):
    place.must("data", "build", "tiny.toml")
    shutil.copytree(next(place.cache.glob("aloft/*/train.shard")).parent, place.folder / "packed")


ground.STATES.update({
    "warm": make_warm(), "warm-char": make_warm(*CHARS), "warm-low": make_warm(*LOW),
    "text-inside": make_text_inside, "done-char": lambda p: p.must(*ground.TRAIN, *CHARS),
    "gpt2": make_gpt2, "graph": make_graph, "to-score": make_to_score, "packed": make_packed})


def files_read(here, scenario):
    """Patterns, relative to the place, of the files that were there and are read."""
    state, arguments = SCENARIOS[scenario]
    place, template = here.place(state), here.state(state)
    found = set()
    for call in tracing.trace(place, arguments):
        if not call.own or call.name not in ("open", "openat") or "O_RDONLY" not in call.text:
            continue
        opened = re.search(r"= \d+<([^>]*)>", call.text)
        inside = opened and opened[1].startswith(str(place.folder) + "/")
        name = opened[1][len(str(place.folder)) + 1:] if inside else ""
        if name and (template / name).is_file() and not NOT_OURS.search(name):
            found.add(pattern_of(name))
    # Event files are read by others; that resuming meets damaged ones is a case all the same.
    if scenario == "resume":
        found.add("run/events.out.tfevents.*")
    return sorted(found)


def pattern_of(name):
    name = re.sub(r"\b[0-9a-f]{16}\b", "*", name)
    return re.sub(r"tfevents\..*", "tfevents.*", name)


def file_of(folder, pattern):
    return next(p for p in sorted(folder.rglob("*")) if p.is_file()
                and fnmatch.fnmatch(str(p.relative_to(folder)), pattern))


def keys(here, options, draw):
    tracing.need_strace(here)
    pairs = [(name, pattern) for name in SCENARIOS for pattern in files_read(here, name)]
    sizes = {}
    for name, pattern in pairs:
        state = SCENARIOS[name][0]
        sizes[name, pattern] = file_of(here.state(state), pattern).stat().st_size
    found = []
    for number in range(TRIES * options.rounds):
        name, pattern = pairs[number % len(pairs)]
        found.append(f"{name}|{pattern}|{one_damage(draw, sizes[name, pattern])}")
    return found


def one_damage(draw, size):
    at = draw.randrange(max(size, 1))
    # The headers of large files are small: half of the damage goes to the first 2,000 bytes.
    if size > 4000 and draw.random() < 0.5:
        at = draw.randrange(2000)
    kind = draw.random()
    if kind < 0.6:
        return f"flip {at}.{draw.randrange(8)}"
    if kind < 0.75:
        return f"byte {at}={draw.randrange(256)}"
    if kind < 0.85:
        return f"zeros {at}+{draw.randint(1, 64)}"
    if kind < 0.9:
        return f"repeat {at}+{draw.randint(1, 64)}"
    return f"cut {at}"


def harm(path, how):
    data = bytearray(path.read_bytes())
    kind, _, where = how.partition(" ")
    numbers = [int(n) for n in re.findall(r"\d+", where)]
    at = min(numbers[0], max(len(data) - 1, 0))
    if kind == "flip" and data:
        data[at] ^= 1 << numbers[1]
    elif kind == "byte" and data:
        data[at] = numbers[1]
    elif kind == "zeros":
        data[at:at + numbers[1]] = bytes(len(data[at:at + numbers[1]]))
    elif kind == "repeat":
        data[at:at] = data[at:at + numbers[1]]
    elif kind == "cut":
        del data[at:]
    times = path.stat()
    path.write_bytes(data)
    # As bits rot: the file's time stays what it was.
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def attempt(here, key):
    scenario, pattern, how = key.split("|")
    state, arguments = SCENARIOS[scenario]
    place = here.place(state)
    path = file_of(place.folder, pattern)
    before = path.read_bytes()
    harm(path, how)
    if path.read_bytes() == before:
        return
    outcome = place.aloft(*arguments)
    ground.check_documented(outcome)
    if outcome.code == 0 and not others(scenario, pattern, before, path):
        compare(here, place, scenario, pattern, outcome)


def others(scenario, pattern, before, path):
    if any(fnmatch.fnmatch(f"{scenario}|{pattern}", entry) for entry in OTHERS):
        return True
    if scenario == "generate-gpt2" and pattern.endswith(".safetensors"):
        header = 8 + struct.unpack("<Q", before[:8])[0]
        return path.exists() and path.read_bytes()[:header] == before[:header]
    return False


def compare(here, place, scenario, pattern, outcome):
    said = "passed over" in outcome.err or "warning" in outcome.err
    file = pattern.rsplit("/", 1)[-1]
    if scenario.startswith("train"):
        clean = here.state("clean-" + scenario, lambda p: trained(here, p, scenario))
        return ground.check_same(place.run, clean / "run", f"trained with a damaged {file}")
    if scenario == "resume":
        clean = here.state("done") / "run"
        problems = ground.differences(place.run, clean)
        # An older checkpoint that was harmed stays as it is; what the run goes on from does not.
        harmed = re.search(r"checkpoints/(step-\d+)/", pattern)
        if harmed and harmed[1] < max(ground.checkpoints_of(place.run), default=""):
            problems = [p for p in problems if not p.startswith(f"checkpoint {harmed[1]}:")]
        if file == "metrics.jsonl" or "tfevents" in file:
            problems = [p for p in problems
                        if not re.match(r"events|metrics\.jsonl: (entry \d|\d+ entries)", p)]
            if lines_lost(place.run, clean) and not said:
                problems.append("lines of metrics.jsonl are gone, and nothing said so")
        if problems:
            raise tally.Failure(f"resumed with a damaged {file}, exit 0: not the same run",
                                "\n".join(problems) + "\n" + outcome.err)
        return None
    wanted = here.state("clean-" + scenario, lambda p: kept_output(here, p, scenario))
    same = outcome.out == (wanted / "output").read_text(errors="replace")
    if scenario == "score":
        same &= ground.same_bytes(place.folder / "scored.safetensors", wanted / "scored.safetensors")
    if not same and not said:
        raise tally.Failure(f"{scenario} with a damaged {file}: other output, nothing said",
                            outcome.text() + outcome.out[-300:])
    return None


def lines_lost(found, wanted):
    def steps(run):
        kept = set()
        for line in (run / "metrics.jsonl").read_text(errors="replace").splitlines():
            try:
                entry = json.loads(line)
                kept.add((entry.get("step"), "val_loss" in entry))
            except (ValueError, AttributeError):
                pass
        return kept
    return bool(steps(wanted) - steps(found))


def trained(here, place, scenario):
    from_state(here, place, scenario)
    place.must(*SCENARIOS[scenario][1])


def kept_output(here, place, scenario):
    from_state(here, place, scenario)
    (place.folder / "output").write_text(place.must(*SCENARIOS[scenario][1]).out)


def from_state(here, place, scenario):
    here.remove(place)
    state = SCENARIOS[scenario][0]
    here.place(state).folder.rename(place.folder)


if __name__ == "__main__":
    tally.run("damage", keys, attempt, short=120)
