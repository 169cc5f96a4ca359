#!/usr/bin/env python3
"""Tokenizers that Aloft makes itself, in folders that `aloft export hf` writes, opened by transformers.

Of each kind and setting a run is trained on this project's own pages and sources, exported and opened with
AutoTokenizer: the ids of thousands of texts in UTF-8 (lines and files of the project, characters of all scripts, runs
of few letters, where pieces overlap in all ways) must be those that Aloft gives, and so must the text of these ids. A
line each; exit 1 where one differs.

  tools/judge/own_tokenizers.py [--bin build/bin]

needs the package transformers, and the program `encode_texts` of the tests.
"""
import argparse
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]
KINDS = {"bpe of 600": ("kind=bpe", "vocab=600"), "bpe of 4096": ("kind=bpe", "vocab=4096"), "byte": ("kind=byte",),
         "char with bytes": ("kind=char", "byte_fallback=true"), "char": ("kind=char",)}
RECIPE = """[model]
family = "llama"
layers = 1
dim = 16
heads = 2
context = 8
[data]
text = ["text.txt"]
validation = 0
[train]
batch = 2
steps = 1
sample_tokens = 0
"""


def corpus():
    files = sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("src/data/**/*.cpp")])
    return "".join(file.read_text() for file in files)


def texts(whole, only_known):
    draw = random.Random(7)
    known = sorted(set(whole))
    lines = whole.split("\n")
    found = [*lines, *(whole[at:at + draw.randrange(3000)] for at in range(0, len(whole), 7001)), "", "\n\n\n", "\r\n\t ",
             " " * 5000, "a" * 5000, "<unk> <0x41> <s>"]
    for letters in ("ab", "a ", "-=", " \n", "the", known):
        found += ["".join(draw.choices(letters, k=draw.randrange(200))) for _ in range(500)]
    if only_known:
        return [text for text in found if set(text) <= set(known)]
    scripts = [chr(draw.choice((draw.randrange(0x80, 0xD800), draw.randrange(0xE000, 0x110000)))) for _ in range(30000)]
    return found + ["".join(scripts[at:at + 30]) for at in range(0, len(scripts), 30)]


def ids_of(program, folder, all_texts, place):
    """What Aloft gives: each text's ids, and these as bytes."""
    (place / "texts").write_bytes(b"".join(struct.pack("<I", len(b)) + b for b in (t.encode() for t in all_texts)))
    subprocess.run([program, folder, place / "texts", place / "ids", place / "decoded"], check=True, capture_output=True)
    found, data, at = [], (place / "ids").read_bytes(), 0
    while at < len(data):
        count = struct.unpack_from("<i", data, at)[0]
        found.append(list(struct.unpack_from(f"<{count}i", data, at + 4)))
        at += 4 + 4 * count
    return found


def judge(options, settings, whole, place):
    (place / "text.txt").write_text(whole)
    (place / "r.toml").write_text(RECIPE)
    sets = [word for s in settings for word in ("--set", "data.tokenizer." + s)]
    for arguments in (["train", "r.toml", *sets, "--out", "run", "--quiet"], ["export", "hf", "run", "out"]):
        done = subprocess.run([options.bin / "aloft", *arguments], cwd=place, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"aloft {arguments[0]}: {done.stderr.strip()}")
    theirs = transformers.AutoTokenizer.from_pretrained(place / "out")
    all_texts = texts(whole, settings == ("kind=char",))
    ours = ids_of(options.bin / "encode_texts", place / "out", all_texts, place)
    other = sum(theirs.encode(text, add_special_tokens=False) != ids for text, ids in zip(all_texts, ours, strict=True))
    back = sum(theirs.decode(ids) != text for text, ids in zip(all_texts, ours))
    return len(all_texts), len(theirs), other, back


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=lambda p: pathlib.Path(p).resolve(), default=ROOT / "build" / "bin")
    options = parser.parse_args()
    bad, whole = 0, corpus()
    for name, settings in KINDS.items():
        with tempfile.TemporaryDirectory() as place:
            count, size, other, back = judge(options, settings, whole, pathlib.Path(place))
        bad += other + back
        print(f"{name:16} {size:5} ids, {count} texts: {other} with other ids, {back} that do not come back"
              f"{'  WRONG' if other or back else ''}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
