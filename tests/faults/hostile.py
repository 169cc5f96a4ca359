"""Inputs that somebody made to harm, or by mistake: no crash, no hang, and what is ours stays right.

  hostile.py ALOFT [--short] ...

  file      in place of each file that a verb reads (a trace lists them): nothing, deep nesting, another type,
            broken UTF-8, a folder, a pipe, a link to itself ...
  leaf      each value of each JSON file that is read: negative, huge, of another type, deep, doubled
  header    a safetensors file whose ranges overlap, leave gaps, are negative, huge, deep ...
  setting   each key of a recipe (`aloft recipes --json` lists them) set to such values
  option    each option of each verb (`--help` lists them), likewise
  path      odd names, loops, files in the way, as run directory, recipe, model, text
  foreign   files of others in our folders: they stay, and the run is the same
"""
import functools
import json
import os
import re
import resource
import shutil
import struct

import damage
import ground
import models
import tally

DEEP = 100_000
MEMORY = 3 << 30  # what sizes out of bounds may ask for, and not get
DRAWN_LEAVES = 1200
WHOLE = {
    "empty": b"", "zero": b"\0", "zeros": bytes(5000), "null": b"null", "number": b"-1", "text": b'"x"',
    "array": b"[]", "object": b"{}", "true": b"true", "broken-utf8": b'{"a": "\xff\xfe\xc0\x80"}',
    "deep-arrays": b"[" * DEEP, "deep-objects": b'{"a":' * DEEP, "closed-arrays": b"[" * DEEP + b"]" * DEEP,
    "closed-objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP, "deep-braces": b"{" * DEEP,
    "deep-parentheses": b"(" * DEEP, "one-line": b"a" * 2_000_000, "many-lines": b"a\n" * 200_000,
    "nan": b"NaN", "unclosed": b'{"a": "', "deep-key": b"a" + b".a" * DEEP + b" = 1",
    "deep-header": b"[a" + b".a" * DEEP + b"]", "high-length": b"\xff" * 16, "byte-order-mark": b"\xef\xbb\xbf{}",
}
INSTEAD = ("folder", "pipe", "loop", "dangling", "gone", "/dev/null", "/dev/zero")
LEAVES = ["-1", "0", "1e308", "-0.5", "9223372036854775807", "9223372036854775808",
          "18446744073709551616", "1e400", "null", "true", "[]", "{}", '""', '"x"', '"\\u0000"',
          '"' + "x" * 100_000 + '"', "[" * DEEP + "]" * DEEP, '{"a":' * DEEP + "1" + "}" * DEEP]
SETTINGS = ["-1", "0", "1", "3", "1000000", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
            "1e308", "1e-308", "nan", "inf", "-inf", "true", '""', '"x"', '"\\u0000"', "[]", "[-1]", "{}",
            '["a","b"]', "2020-01-01", '"' + "x" * 10_000 + '"', "[" * DEEP, "[" * DEEP + "]" * DEEP,
            "{a=" * DEEP]
# More of these is more work, as asked for.
WORK = {"train.steps", "train.accumulate", "train.sample_tokens", "train.eval_batches"}
OPTIONS = ["", " ", "-1", "0", "1", "100000", "99999999999999999999", "1e400", "nan", "x", "\udcff\udcfe",
           "a\nb", "A" * 100_000, "=", "[" * DEEP,
           "a" + ".a" * 50_000 + "=1", "train.steps=" + "{a=" * 30_000]
MORE_WORK = {"--tokens", "--steps", "--batch", "--seq", "--context", "--rounds"}
VERBS = {
    "train": ("empty", ground.TRAIN), "report": ("done", ("report", "run")),
    "generate": ("done", ("generate", "run") + damage.GENERATE), "score": ("to-score", damage.SCORE),
    "data build": ("empty", ("data", "build", "tiny.toml")),
    "data info": ("packed", ("data", "info", "packed")),
    "explain precision": ("empty", ("explain", "precision", "tiny.toml")),
    "explain plan": ("empty", ("explain", "plan", "tiny.toml")),
    "explain graph": ("empty", ("explain", "graph", "tiny.toml")),
    "explain kernels": ("empty", ("explain", "kernels", "tiny.toml")),
    "ops": ("empty", ("ops",)), "passes": ("graph", damage.SCENARIOS["passes"][1]),
    "recipes": ("empty", ("recipes", ".")), "doctor": ("empty", ("doctor",)),
    "devices": ("empty", ("devices", "--no-measure")),
}
PATHS = {
    "empty": "", "dot": ".", "up": "..", "root": "/", "long-name": "n" * 300, "long-path": "d/" * 3000 + "x",
    "newline": "a\nb", "not-utf8": "caf\udce9", "loop": "loop", "dangling": "dangling", "file": "a-file",
    "below-a-file": "a-file/x", "null": "/dev/null", "full": "/dev/full", "proc": "/proc/self/x",
    "dash": "-", "option": "--", "pipe": "pipe", "folder": "a-folder", "tilde": "~", "quote": "a'b\"c",
    "brace": "{}", "percent": "%s%n", "socket": "/dev/stdin",
}
PATH_USES = {
    "out": ("empty", ("train", "tiny.toml", "--quiet", "--out")),
    "recipe": ("empty", ("train", "--quiet", "--out", "run")), "report": ("done", ("report",)),
    "generate": ("done", ("generate", *damage.GENERATE)), "data-info": ("packed", ("data", "info")),
    "score-out": ("to-score", ("score", "run", "--tokens", "tokens.safetensors", "--out")),
    "score-tokens": ("to-score", ("score", "run", "--out", "scored.safetensors", "--tokens")),
    "passes": ("graph", ("passes", "--run", "dce")), "recipes": ("empty", ("recipes",)),
}


def keys(here, options, draw):
    found = [f"header|{name}" for name in headers()]
    found += [f"foreign|{name}" for name in FOREIGN]
    found += [f"path|{use}|{name}" for use in PATH_USES for name in PATHS]
    for scenario in damage.SCENARIOS:
        for pattern in damage.files_read(here, scenario):
            found += [f"file|{scenario}|{pattern}|{how}" for how in (*WHOLE, *INSTEAD)
                      if not (pattern.endswith(".toml") and how == "pipe")]
    leaves = list(all_leaves(here))
    found += draw.sample(leaves, min(len(leaves), DRAWN_LEAVES * options.rounds))
    found += [f"setting|{key}|{i}" for key in recipe_keys(here) for i in range(len(SETTINGS))
              if key not in WORK or i < 4]
    found += [f"option|{verb}|{option}|{i}" for verb in VERBS for option in options_of(here, verb)
              for i in range(len(OPTIONS)) if option not in MORE_WORK or OPTIONS[i] != "100000"]
    return found


def attempt(here, key):
    kind, *rest = key.split("|")
    if kind == "leaf":  # names in a path may have the separator in them
        rest = [*rest[:2], "|".join(rest[2:-1]), rest[-1]]
    {"file": a_file, "leaf": a_leaf, "header": a_header, "setting": a_setting, "option": an_option,
     "path": a_path, "foreign": foreign}[kind](here, *rest)


def ended(place, arguments, **options):
    outcome = place.aloft(*arguments, preexec_fn=limited, **options)
    ground.check_documented(outcome)
    return outcome


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def still_right(here, place, scenario, pattern, outcome):
    """Where it ended well although a file of ours was replaced, it did what it does without it."""
    if outcome.code == 0 and not damage.others(scenario, pattern, b"\0" * 8, place.folder / "none"):
        damage.compare(here, place, scenario, pattern, outcome)


# -------------------------------------------------------------------------------------- whole files

def a_file(here, scenario, pattern, how):
    state, arguments = damage.SCENARIOS[scenario]
    place = here.place(state)
    path = damage.file_of(place.folder, pattern)
    replace(path, how)
    outcome = ended(place, arguments)
    if "safetensors" not in pattern or "gpt2" not in scenario:
        still_right(here, place, scenario, pattern, outcome)


def replace(path, how):
    if how in WHOLE:
        return path.write_bytes(WHOLE[how])
    path.unlink()
    if how == "folder":
        path.mkdir()
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "loop":
        path.symlink_to(path.name)
    elif how == "dangling":
        path.symlink_to("nothing-there")
    elif how.startswith("/dev"):
        path.symlink_to(how)
    return None


# ------------------------------------------------------------------------------------------- leaves

def all_leaves(here):
    for scenario, (state, _) in damage.SCENARIOS.items():
        for pattern in damage.files_read(here, scenario):
            if pattern.endswith(".json"):
                value = json.loads(damage.file_of(here.state(state), pattern).read_text())
                for path in paths_in(value):
                    for i in range(len(LEAVES) + 1):
                        yield f"leaf|{scenario}|{pattern}|{json.dumps(path)}|{i}"


def paths_in(value, path=()):
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(
        value, list) else ()
    for name, child in children:
        yield [*path, name]
        yield from paths_in(child, (*path, name))


def a_leaf(here, scenario, pattern, path, number):
    state, arguments = damage.SCENARIOS[scenario]
    place = here.place(state)
    file = damage.file_of(place.folder, pattern)
    value = json.loads(file.read_text())
    *outer, last = json.loads(path)
    holder = value
    for name in outer:
        holder = holder[name]
    mark = "a-mark-that-is-replaced"
    if int(number) < len(LEAVES):
        holder[last] = mark
        text = json.dumps(value, indent=2).replace(f'"{mark}"', LEAVES[int(number)])
    elif isinstance(holder, dict):  # the name twice
        holder[mark] = None
        text = json.dumps(value, indent=2).replace(f'"{mark}"', json.dumps(last))
    else:
        holder.append(holder[last])
        text = json.dumps(value, indent=2)
    file.write_text(text + "\n")
    still_right(here, place, scenario, pattern, ended(place, arguments))


# ------------------------------------------------------------------------------------------ headers

@functools.cache
def headers():
    data = b"\0" * 64

    def entry(**changed):
        return {"dtype": "I32", "shape": [2, 8], "data_offsets": [0, 64], **changed}

    def file(header, payload=data, length=None):
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        return struct.pack("<Q", len(text) if length is None else length) + text + payload

    whole = {"tokens": entry()}
    cases = {
        "length-0": file(b"", length=0), "length-beyond": file(whole, length=1 << 20),
        "length-huge": file(whole, length=(1 << 64) - 1), "length-negative": file(whole, length=1 << 63),
        "no-payload": file(whole, b""), "longer-payload": file(whole, data * 2),
        "overlap": file({"tokens": entry(), "b": entry()}),
        "gap": file({"tokens": entry(data_offsets=[8, 72])}, data + b"\0" * 8),
        "backwards": file({"tokens": entry(data_offsets=[64, 0])}),
        "negative": file({"tokens": entry(data_offsets=[-64, 0])}),
        "beyond": file({"tokens": entry(data_offsets=[0, 1 << 62], shape=[1 << 60])}),
        "wraps": file({"tokens": entry(shape=[1 << 33, 1 << 33])}),
        "wraps-to-size": file({"tokens": entry(shape=[1 << 32, 1 << 32, 16])}),
        "negative-extent": file({"tokens": entry(shape=[-2, -8])}),
        "extent-half": file({"tokens": entry(shape=[2.5, 8])}),
        "rank-100000": file({"tokens": entry(shape=[1] * DEEP)}),
        "deep-shape": file(b'{"tokens":' + b"[" * DEEP + b"]" * DEEP + b"}"),
        "deep": file(b'{"a":' * DEEP + b"1" + b"}" * DEEP), "array": file(b"[]"), "null": file(b"null"),
        "dtype-other": file({"tokens": entry(dtype="Q7")}), "dtype-number": file({"tokens": entry(dtype=3)}),
        "twice": file(b'{"tokens":' + json.dumps(entry()).encode() + b',"tokens":' +
                      json.dumps(entry()).encode() + b"}"),
        "no-entry": file({}), "metadata-only": file({"__metadata__": {"a": "b"}}),
        "metadata-wrong": file({"__metadata__": {"a": 1}, **whole}), "entry-null": file({"tokens": None}),
        "broken-utf8": file(b'{"\xff\xfe":' + json.dumps(entry()).encode() + b"}"),
        "name-empty": file({"": entry()}), "name-long": file({"x" * 100_000: entry()}),
        "f64": file({"tokens": entry(dtype="F64", shape=[8])}),
        "no-rows": file({"tokens": entry(shape=[0, 8], data_offsets=[0, 0])}, b""),
        "no-columns": file({"tokens": entry(shape=[2, 0], data_offsets=[0, 0])}, b""),
        "scalar": file({"tokens": entry(shape=[], data_offsets=[0, 4])}, data[:4]),
        "negative-token": file(whole, struct.pack("<16i", *[-1] * 16)),
        "token-beyond": file(whole, struct.pack("<16i", *[1 << 30] * 16)),
        "many-tensors": file({f"t{i}": entry(shape=[0], data_offsets=[0, 0]) for i in range(DEEP)}, b""),
    }
    return cases


def a_header(here, name):
    place = here.place("to-score")
    (place.folder / "tokens.safetensors").write_bytes(headers()[name])
    outcome = ended(place, damage.SCORE)
    if outcome.code == 0 and name not in ("metadata-wrong", "longer-payload"):
        raise tally.Failure("tokens with a hostile header are scored", outcome.text())
    place = here.place("gpt2")
    (place.folder / "gpt2" / "model.safetensors").write_bytes(headers()[name])
    outcome = ended(place, damage.SCENARIOS["generate-gpt2"][1])
    if outcome.code == 0:
        raise tally.Failure("weights with a hostile header are used", outcome.text())


# ------------------------------------------------------------------------------- settings and options

def recipe_keys(here):
    return [key["key"] for key in json.loads(here.empty().must("recipes", "--json").out)["keys"]]


def a_setting(here, key, number):
    value = SETTINGS[int(number)]
    place = here.empty()
    if len(value) > 100_000:  # longer than an argument may be
        section, _, name = key.partition(".")
        with open(place.folder / "tiny.toml", "a") as recipe:
            recipe.write(f"\n[{section}]\n{name} = {value}\n")
        arguments = ground.TRAIN
    else:
        arguments = ground.TRAIN + ("--set", f"{key}={value}")
    steps = () if key == "train.steps" else ("--steps", "2")
    ended(place, arguments + steps)


def options_of(here, verb):
    text = here.empty().must(*verb.split(), "--help").out
    return [f"--{name}" for name in re.findall(r"^ +(?:-\w,)?--([\w-]+) (?:TEXT|U?INT|FLOAT)", text, re.M)]


def an_option(here, verb, option, number):
    state, arguments = VERBS[verb]
    place = here.place(state)
    ended(place, [*arguments, f"{option}={OPTIONS[int(number)]}"])
    place = here.place(state)
    ended(place, [*arguments, option, OPTIONS[int(number)]])


# -------------------------------------------------------------------------------- paths, foreign files

def a_path(here, use, name):
    state, arguments = PATH_USES[use]
    place = here.place(state)
    (place.folder / "loop").symlink_to("loop")
    (place.folder / "dangling").symlink_to("nothing-there")
    (place.folder / "a-file").write_text("somebody's")
    (place.folder / "a-folder").mkdir()
    os.mkfifo(place.folder / "pipe")
    ended(place, [*arguments, PATHS[name]])
    if use != "score-out" and (place.folder / "a-file").read_text() != "somebody's":
        raise tally.Failure("somebody's file is overwritten")


FOREIGN = {
    "files in checkpoints": ["run/checkpoints/notes.txt", "run/checkpoints/step-000099",
                             "run/checkpoints/step-abc", "run/checkpoints/step-"],
    "folders in checkpoints": ["run/checkpoints/step-000100/x", "run/checkpoints/step-old/x",
                               "run/checkpoints/step-99999999999999999999/x",
                               "run/checkpoints/step--00001/x", "run/checkpoints/best/x"],
    "partial folders": ["run/checkpoints/mine.partial/x", "run/checkpoints/.step-000016.partial/x"],
    "files in the run": ["run/notes.txt", "run/run.json.bak",
                         "run/samples/mine.txt", "run/tokenizer/mine.json", "run/.hidden"],
    "files in the cache": ["cache/aloft/notes.txt", "cache/aloft/0123456789abcdef/x", "cache/aloft/x/y",
                           "cache/other/z"],
}
# Our own names of work in progress: what is old there may be cleared away.
MAY_GO = re.compile(r"/\.step-\d+\.partial/")


def foreign(here, name):
    for extra in ((), ("--set", "train.keep_checkpoints=1")):
        place = here.place("half")
        for path in FOREIGN[name]:
            (place.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (place.folder / path).write_text("somebody's")
        outcome = ended(place, ground.RESUME + extra)
        gone = [path for path in FOREIGN[name] if not MAY_GO.search(path)
                and not ((place.folder / path).is_file()
                         and (place.folder / path).read_text() == "somebody's")]
        if gone:
            raise tally.Failure("files of others are gone", "\n".join(gone) + "\n" + outcome.text())
        if outcome.code:
            continue
        for path in FOREIGN[name]:
            top = (place.folder / path)
            while top.parent.name not in ("checkpoints", "run", "samples", "tokenizer", "aloft", "cache"):
                top = top.parent
            shutil.rmtree(top) if top.is_dir() else top.unlink(missing_ok=True)
        clean = here.state("done-keep-1" if extra else "done", make_keep_1 if extra else None)
        ground.check_same(place.run, clean / "run", "resumed among files of others")


def make_keep_1(place):
    place.must(*ground.TRAIN, "--set", "train.keep_checkpoints=1")


if __name__ == "__main__":
    tally.run("hostile", keys, attempt, short=60)
