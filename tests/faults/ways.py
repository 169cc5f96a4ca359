"""Every way to train, killed: whatever optimizer, format of states and masters, schedule, mean of weights, precision,
accumulation and answer to trouble, a run that is killed and goes on ends as one that was never stopped, to the bit.

  ways.py ALOFT [--short] ...

What there is to choose is asked of `aloft recipes --json`: a new optimizer, a new choice of a key and a new key with
choices are met without being listed. A try is a way, such as "optimizer.kind=lion schedule.kind=wsd", and the seed of
its kills. The short form meets every choice once, the full form every pair of choices that can stand together; which
cannot, the program says (exit 2).
"""
import hashlib
import itertools
import json
import random
import shutil
import time

import ground
import tally

COURSE = ("--steps", 24, "--set", "train.checkpoint_every=3", "--set", "train.eval_every=4", "--set",
          "train.sample_tokens=4", "--set", "train.keep_checkpoints=0")
SECTIONS = ("optimizer", "schedule", "train")
# What `aloft recipes` does not list as choices, and what other keys choose between no states or kinds of steps.
MORE = {"precision": ("O0", "O1:bf16", "O1:fp16", "O2:bf16", "O2:fp16", "O3:bf16", "adaptive"),
        "train.accumulate": ("1", "2"), "model.dropout": ("0.1", "0.0"), "optimizer.clip_norm": ("1.0", "0"),
        "schedule.warmup": ("0", "3")}
# A choice that says nothing in 24 steps without more, or stands only beside another one.
BESIDE = {
    "schedule.kind=step": {"schedule.step_size": "5"},
    "schedule.kind=multi-step": {"schedule.milestones": "[5, 11]"},
    "schedule.kind=cosine-restarts": {"schedule.cycle": "5"},
    "schedule.kind=plateau": {"schedule.patience": "0", "schedule.threshold": "0.5"},
    "optimizer.average=ema": {"optimizer.average_decay": "0.8"},
    "optimizer.average=swa": {"optimizer.average_from": "7"},
    "optimizer.kind=sgd optimizer.nesterov=true": {"optimizer.momentum": "0.9"},
    "optimizer.master=split": {"precision": "O2:bf16"},
    "optimizer.rounding=stochastic": {"precision": "O3:bf16"},
    "optimizer.update=early": {"optimizer.clip_norm": "0"},
    "optimizer.maximize=true": {"optimizer.lr": "1e-6"},  # the loss may not get far
    "train.on_spike=rollback": {"train.spike_window": "3", "train.rollbacks": "12"},
}
# How far above the median a spike is: the least that a run comes to its end with.
SPIKES = ("1.02", "1.05", "1.1", "1.3", "2")
RATES = "aloft/product-rates.json"  # in the cache
PATIENCE = 24  # ways that a choice, or a pair, is tried in before it is said not to go


class Ways:
    """The keys and their choices, and which of them stand together."""

    def __init__(self, here):
        self.here, self.known = here, {}
        listed = json.loads(here.empty().must("recipes", "--json").out)
        self.choices = {}
        for key in listed["keys"]:
            if key["key"].split(".")[0] in SECTIONS and not {"optimizers", "read_as"} & set(key):
                if key.get("choices"):
                    self.choices[key["key"]] = [usual(key)] + [c for c in key["choices"] if c != usual(key)]
                elif key["type"] == "boolean":
                    self.choices[key["key"]] = [usual(key), json.dumps(not key["default"])]
        self.choices["optimizer.kind"] += [
            f"{kind} {key['key']}={json.dumps(not key['default'])}" for key in listed["keys"]
            if key["type"] == "boolean" for kind in key.get("optimizers", ())]
        self.choices |= {key: list(choices) for key, choices in MORE.items()}

    def all(self):
        return [(key, choice) for key, choices in self.choices.items() for choice in choices]

    def pairs(self):
        return [frozenset(pair) for pair in itertools.combinations(self.all(), 2) if pair[0][0] != pair[1][0]]

    def filled(self, wanted, draw):
        """A way with the wanted choices, the others drawn; None where they contradict each other."""
        way = {}
        for key, choice in wanted:
            for k, c in choice_and_beside(key, choice).items():
                if way.setdefault(k, c) != c:
                    return None
        for key in draw.sample(list(self.choices), len(self.choices)):
            if key in way:
                continue
            more = choice_and_beside(key, draw.choice(self.choices[key]))
            if any(way.get(k, c) != c for k, c in more.items()):
                more = choice_and_beside(key, self.choices[key][0])
            if all(way.get(k, c) == c for k, c in more.items()):
                way |= more
        return way

    def text_of(self, way):
        """What is otherwise than usual."""
        return ";".join(f"{key}={choice}" for key, choice in sorted(way.items())
                        if choice != self.choices.get(key, (None,))[0]) or "precision=O0"

    def goes(self, way):
        text = self.text_of(way)
        if text not in self.known:
            place = self.here.empty()
            outcome = place.aloft(*ground.TRAIN, *arguments_of(text), "--steps", 1)
            ground.check_documented(outcome)
            self.known[text] = outcome.code != 2
            self.here.remove(place)
        return self.known[text]

    def that_meet(self, wanted, draw):
        """Ways that together meet all of what is wanted, sets of choices; and what goes in none."""
        ways, left, never = [], dict.fromkeys(wanted), []
        while left:
            first = next(iter(left))
            for tried in range(PATIENCE):
                # Others that are still to be met come along, as long as that goes.
                drawn = draw.sample(list(left), min(len(left), 12)) if tried < PATIENCE // 2 else []
                together = set(first)
                for more in drawn:
                    if len({key for key, _ in together | more}) == len(together | more):
                        together |= more
                way = self.filled(sorted(together), draw) or self.filled(sorted(first), draw)
                if way and self.goes(way):
                    break
            else:
                del left[first]
                never.append(first)
                continue
            met = set(way.items())
            left = {w: None for w in left if not w <= met}
            ways.append(self.text_of(way))
        return ways, never


def usual(key):
    return json.dumps(key["default"]) if key["type"] == "boolean" else key["default"]


def choice_and_beside(key, choice):
    return {key: choice} | BESIDE.get(f"{key}={choice}", {})


def arguments_of(text):
    words = []
    for setting in text.split(";"):
        first, *more = setting.split(" ") if setting.startswith("optimizer.kind") else [setting]
        for word in (first, *more):
            words += ["--set", word]
    return words


def keys(here, options, draw):
    ways = Ways(here)
    chosen, never = ways.that_meet([frozenset([choice]) for choice in ways.all()], draw)
    if never:
        raise SystemExit(f"no way takes {sorted(sum(map(sorted, never), []))}")
    if not options.short:
        met, _ = ways.that_meet(ways.pairs(), draw)
        chosen += met
    return [f"{draw.randrange(1 << 30)}/{way}" for _ in range(options.rounds) for way in chosen]


def attempt(here, key):
    seed, text = key.split("/", 1)
    draw = random.Random(int(seed))
    name = "way-" + hashlib.sha256(text.encode()).hexdigest()[:16]
    wanted = here.state(name, lambda place: run_through(place, text))
    settings, seconds = json.loads((wanted / "way.json").read_text())
    place = here.empty()
    take_rates(place, wanted)
    for _ in range(draw.randint(1, 3)):
        process = place.start(*ground.RESUME, *COURSE, *settings)
        wait_for_steps(place, process)
        time.sleep(draw.uniform(0, seconds))
        process.kill()
        process.communicate()
    place.must(*ground.RESUME, *COURSE, *settings)
    ground.check_same(place.run, wanted / "run", "resumed after kills")


def run_through(place, text):
    """The run that nobody stops, how it is called, and how long its steps took."""
    goes_back = "train.on_spike=rollback" in text
    for factor in SPIKES if goes_back else SPIKES[:1]:
        settings = arguments_of(text) + (["--set", f"train.spike_factor={factor}"] if goes_back else [])
        process = place.start(*ground.RESUME, *COURSE, *settings)
        wait_for_steps(place, process)
        begin = time.monotonic()
        err = process.communicate()[1].decode(errors="replace")
        if process.returncode != 5 or "E0835" not in err:
            break
        shutil.rmtree(place.run)
    outcome = ground.Outcome(settings, process.returncode, "", err)
    ground.check_documented(outcome)
    if process.returncode:
        raise tally.Failure(f"a way that goes ends with {process.returncode}", outcome.text())
    (place.folder / "way.json").write_text(json.dumps([settings, time.monotonic() - begin]))


def take_rates(place, wanted):
    """What the machine multiplies at, as the other run measured it: `adaptive` goes by it, and a busy machine measures
    something else each time. Nothing is left to be measured again."""
    measured = wanted / "cache" / RATES
    if not measured.exists():
        return
    rates = json.loads(measured.read_text())
    for entry in rates.values():
        entry.pop("unsettled_at", None)
    (place.cache / RATES).parent.mkdir(exist_ok=True)
    (place.cache / RATES).write_text(json.dumps(rates))


def wait_for_steps(place, process):
    """Until the process has written a line of its own, or has ended."""
    metrics = place.run / "metrics.jsonl"
    before = metrics.read_bytes() if metrics.exists() else b""
    while process.poll() is None:
        if metrics.exists() and metrics.read_bytes() not in (b"", before):
            return
        time.sleep(0.001)


if __name__ == "__main__":
    tally.run("ways", keys, attempt, short=1 << 30)
