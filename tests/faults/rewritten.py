"""Entries of the plan cache, rewritten, with lengths and hash right again: nothing crashes.

  rewritten.py ALOFT [--short] ...

A key is SCENARIO/SEED: the seed draws what changes in which entry. What a rewritten program computes is its writer's
business (docs/plan-cache.md), so its numbers are not looked at: the program may train, or end with a documented
error, such as a loss that is no number.
"""
import copy
import json
import random
import re
import subprocess

import ground
import tally

TRIES = 3000
SHORT = 24
SCENARIOS = {
    "f32": (),
    "bf16": ("--set", 'precision.level="O2"'),
    "sim": ("--device", "sim", "--set", 'precision.level="O2"'),
}
GRAPH, PLAN, NOTES = range(3)  # an entry's parts
# What stands in a plan where something else belongs.
STRANGERS = (0, 1, -1, 2**31 - 1, 2**31, 2**32, 2**63 - 1, -2**63, 2**64 - 1, 1e308, -1.5, "", None, True, False, [],
             {}, "cpu", "x" * 100)


def keys(here, options, draw):
    tool(here)
    names = list(SCENARIOS)
    return [f"{names[n % len(names)]}/{draw.randrange(1 << 30)}" for n in range(TRIES * options.rounds)]


def tool(here):
    program = here.program.parent / "faults_cache_entry"
    if not program.exists():
        tally.skip(f"{program} is not built")
    return program


def attempt(here, key):
    scenario, seed = key.split("/")
    draw = random.Random(int(seed))
    place = with_cache(here.place(f"kept-{scenario}", lambda p: with_cache(p).must(*arguments(scenario, "earlier"))))
    entries = sorted(place.folder.glob("plans/*.plan"))
    if not entries:
        raise tally.Failure("a run kept no compiled program")
    entry = draw.choice(entries)
    what = rewrite(here, entry, draw)
    outcome = place.aloft(*arguments(scenario, "run"))
    try:
        ground.check_documented(outcome)
    except tally.Failure as failure:
        failure.detail = f"{entry.name}: {what}\n{failure.detail}"
        raise


def with_cache(place):
    place.environment["ALOFT_PLAN_CACHE"] = str(place.folder / "plans")
    return place


def arguments(scenario, out):
    return ("train", "tiny.toml", "--out", out, "--quiet", *SCENARIOS[scenario])


def rewrite(here, entry, draw):
    """Changes one thing in the entry; what."""
    rest = entry.read_bytes().split(b"\n", 2)[2]
    parts = []
    while rest:
        length, rest = rest.split(b"\n", 1)
        parts.append(rest[:int(length)])
        rest = rest[int(length):]
    where = draw.random()
    if where < 0.7:
        plan, what = changed(json.loads(parts[PLAN]), draw)
        parts[PLAN] = json.dumps(plan, separators=(",", ":")).encode()
    elif where < 0.9:
        parts[GRAPH], what = changed_lines(parts[GRAPH].decode(), draw)
    else:
        notes, what = changed(json.loads(parts[NOTES]), draw)
        parts[NOTES] = json.dumps(notes, separators=(",", ":")).encode()
    text = b"".join(b"%d\n%s" % (len(part), part) for part in parts)
    subprocess.run([tool(here), entry], input=text, check=True)
    return what


def places(value, path=()):
    """Every place in nested JSON, as paths."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, held in inner:
        yield path + (key,)
        yield from places(held, path + (key,))


def kind_of(path):
    return tuple("#" if isinstance(key, int) else key for key in path)


def changed(value, draw):
    # By kind first: there are more operands than bounds.
    kinds = {}
    for path in places(value):
        kinds.setdefault(kind_of(path), []).append(path)
    alike = draw.choice(list(kinds.values()))
    path = draw.choice(alike)
    holder = held(value, path[:-1])
    key, old, way = path[-1], holder[path[-1]], draw.random()
    if way < 0.15:
        del holder[key]
        return value, f"{path} gone"
    if way < 0.3 and isinstance(holder, list) and len(holder) > 1:
        other = draw.randrange(len(holder))
        holder[key], holder[other] = holder[other], holder[key]
        return value, f"{path} and {other} swapped"
    if way < 0.4 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(old))
        return value, f"{path} twice"
    if way < 0.7 and type(old) is int:
        holder[key] = old + draw.choice((-1, 1, 2, -2, 4, 64, -64, 128, 1024))
    elif draw.random() < 0.5:
        holder[key] = copy.deepcopy(held(value, draw.choice(alike)))
    else:
        holder[key] = draw.choice(STRANGERS)
    return value, f"{path}: {str(old)[:60]} -> {str(holder[key])[:60]}"


def held(value, path):
    for key in path:
        value = value[key]
    return value


def changed_lines(text, draw):
    lines = text.split("\n")
    at, way = draw.randrange(len(lines)), draw.random()
    line = lines[at]
    if way < 0.3:
        del lines[at]
    elif way < 0.5:
        other = draw.randrange(len(lines))
        lines[at], lines[other] = lines[other], line
    elif way < 0.8:
        number = draw.choice(re.findall(r"\d+", line) or ["0"])
        lines[at] = line.replace(number, draw.choice(("0", "1", "9" * 20, "-1", "4294967295", "7")), 1)
    else:
        lines.insert(at, line)
    return "\n".join(lines).encode(), f"line {at} of the graph: {line[:80]}"


if __name__ == "__main__":
    tally.run("rewritten", keys, attempt, SHORT)
