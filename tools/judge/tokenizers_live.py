#!/usr/bin/env python3
"""Ids of published tokenizers beside those of Hugging Face's `tokenizers` and of OpenAI's `tiktoken`.

Tokenizers of every kind that is in use are trained on a sample of drawn lines, saved as tokenizer.json, and asked for
the ids of all lines: 30 scripts, drawn from a fixed seed, white space and marks of all sorts, some with bytes that are
not UTF-8 (which the other side gets as Python replaces them). Then every character of Unicode 14, which PCRE2 of
Debian 12 knows, goes through every normalizer and pre-tokenizer in some surroundings. A line for each: how many texts
differ, and how many megabytes both sides encode in a second of the processor's time, on one thread. Exit 1 where any
differs, or where Aloft is the slower.

  tools/judge/tokenizers_live.py [--lines 100000] [--only NAME ...] [--bin build/bin]

needs the packages tokenizers, tiktoken and sentencepiece, and the program `encode_texts` of the tests.
"""
import argparse
import base64
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import time
import unicodedata

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

import tokenizers  # noqa: E402
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
MARK = "\u2581"

# Thirty scripts: blocks of which the assigned characters are drawn.
SCRIPTS = {
    "Latin": [(0x41, 0x5A), (0x61, 0x7A), (0xC0, 0x24F), (0x1E00, 0x1EFF)], "Greek": [(0x370, 0x3FF), (0x1F00, 0x1FFF)],
    "Cyrillic": [(0x400, 0x52F)], "Armenian": [(0x531, 0x58F)], "Hebrew": [(0x591, 0x5F4)], "Arabic": [(0x600, 0x6FF)],
    "Syriac": [(0x700, 0x74F)], "Thaana": [(0x780, 0x7B1)], "Devanagari": [(0x900, 0x97F)], "Bengali": [(0x980, 0x9FE)],
    "Gurmukhi": [(0xA01, 0xA76)], "Gujarati": [(0xA81, 0xAFF)], "Oriya": [(0xB01, 0xB77)], "Tamil": [(0xB82, 0xBFA)],
    "Telugu": [(0xC00, 0xC7F)], "Kannada": [(0xC80, 0xCF2)], "Malayalam": [(0xD00, 0xD7F)], "Sinhala": [(0xD81, 0xDF4)],
    "Thai": [(0xE01, 0xE5B)], "Lao": [(0xE81, 0xEDF)], "Tibetan": [(0xF00, 0xFDA)], "Myanmar": [(0x1000, 0x109F)],
    "Georgian": [(0x10A0, 0x10FF), (0x1C90, 0x1CBF)], "Hangul": [(0x1100, 0x11FF), (0xAC00, 0xD7A3)],
    "Ethiopic": [(0x1200, 0x139F)], "Cherokee": [(0x13A0, 0x13FD), (0xAB70, 0xABBF)], "Khmer": [(0x1780, 0x17F9)],
    "Mongolian": [(0x1800, 0x18AA)], "Kana": [(0x3041, 0x30FF), (0xFF66, 0xFF9F)],
    "Han": [(0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0x20000, 0x2A6DF), (0xF900, 0xFA6D)],
}
SPACES = [" "] * 40 + ["  ", "   ", "\t", "\n", "\n\n", "\r\n", " \n ", "\u00a0", "\u3000", "\u2003", "\u200b", "\u180e",
                       "\u0085", "\u2028", "\x0b", "\x1c", MARK]
MARKS = list(".,;:!?-'\"()[]{}<>/\\|@#$%^&*+=~`_") + ["...", "\u2019s", "'s", "'LL", "'ve", "don't", "\u3002", "\uff01",
                                                        "\u00bf", "\u2014", "--", "\u20ac", "<s>", "</s>", "<mask>", "[MASK]"]
OTHERS = ["\U0001F642", "\U0001F468\u200D\U0001F469\u200D\U0001F467", "\U0001F1E9\U0001F1EA", "e\u0301", "a\u0323\u0308",
          "\ufb01", "\uff21\uff42", "\u2167", "\u00bd", "\u0000", "\u0001", "\ufeff", "\ufffd", "\U0001D54F", "\u1112\u1161\u11ab",
          "\u0130", "\u1e9e", "\u01c5", "\ue000", "\U000E0041", "\uffff"]

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
            r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"""
            r"""|\s*[\r\n]+|\s+(?!\S)|\s+"""]
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def assigned(ranges):
    return [chr(c) for first, last in ranges for c in range(first, last + 1) if unicodedata.category(chr(c)) != "Cn"]


def draw_lines(count, seed=18):
    """Lines as bytes, most of them UTF-8."""
    rng = random.Random(seed)
    alphabets = [assigned(ranges) for ranges in SCRIPTS.values()]
    words = [["".join(rng.choices(a, k=rng.randint(1, 9))) for _ in range(2000)] for a in alphabets]
    lines = []
    for i in range(count):
        own = words[i % len(words)]
        parts = []
        for _ in range(rng.randint(1, 24)):
            kind = rng.random()
            if kind < 0.66:
                parts.append(rng.choice(own))
            elif kind < 0.74:
                parts.append(rng.choice(words[0]))
            elif kind < 0.82:
                parts.append(str(rng.randint(0, 10 ** rng.randint(1, 8))))
            elif kind < 0.94:
                parts.append(rng.choice(MARKS))
            else:
                parts.append(rng.choice(OTHERS))
            if rng.random() < 0.8:
                parts.append(rng.choice(SPACES))
        line = "".join(parts).encode()
        if rng.random() < 0.05:
            broken = bytearray(line)
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(len(broken) + 1)
                if rng.random() < 0.5 and broken:
                    del broken[min(at, len(broken) - 1)]
                else:
                    broken[at:at] = rng.choice([b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x99", b"\xed\xa0\x80", b"\x80",
                                                b"\xc0\xaf", b"\xf4\x90\x80\x80"])
            line = bytes(broken)
        lines.append(line)
    return lines


def text_of(line):
    return line.decode("utf-8", errors="replace")


def trained(tokenizer, sample, trainer):
    tokenizer.train_from_iterator(sample, trainer)
    return tokenizer


def byte_level(split, normalizer=None, ignore_merges=False):
    def make(sample):
        t = Tokenizer(models.BPE(ignore_merges=ignore_merges))
        if normalizer is not None:
            t.normalizer = normalizer
        t.pre_tokenizer = split
        t.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trained(t, sample, trainers.BpeTrainer(vocab_size=6000, initial_alphabet=alphabet, show_progress=False))
        t.add_special_tokens([AddedToken("<s>", special=True), AddedToken("</s>", special=True)])
        t.add_tokens([AddedToken("<mask>", lstrip=True, normalized=False), AddedToken("[MASK]", rstrip=True)])
        return t
    return make


def words_of(*patterns):
    steps = [pre_tokenizers.Split(Regex(p), "isolated") for p in patterns]
    return pre_tokenizers.Sequence(steps + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def sentencepiece_like(normalizer, pre_tokenizer):
    """BPE with byte tokens, trained on words that begin with a mark, used with other parts."""
    def make(sample):
        tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
        t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
        t.pre_tokenizer = pre_tokenizers.Metaspace()
        trained(t, sample, trainers.BpeTrainer(vocab_size=6000, special_tokens=tokens, limit_alphabet=1500,
                                               show_progress=False))
        t.normalizer = normalizer
        t.pre_tokenizer = pre_tokenizer
        t.decoder = decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(),
                                       decoders.Strip(" ", 1, 0)])
        file = json.loads(t.to_str())
        file["added_tokens"] = [a for a in file["added_tokens"] if not a["content"].startswith("<0x")]
        return Tokenizer.from_str(json.dumps(file))
    return make


def bert(lowercase):
    def make(sample):
        t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        t.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
        t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        t.decoder = decoders.WordPiece()
        return trained(t, sample, trainers.WordPieceTrainer(
            vocab_size=8000, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    return make


def unigram(normalizer, byte_fallback=False):
    def make(sample):
        t = Tokenizer(models.Unigram())
        t.normalizer = normalizer() if callable(normalizer) else normalizer
        t.pre_tokenizer = pre_tokenizers.Metaspace()
        t.decoder = decoders.Metaspace()
        tokens = ["<unk>", "<s>", "</s>"] + ([f"<0x{b:02X}>" for b in range(256)] if byte_fallback else [])
        trained(t, sample, trainers.UnigramTrainer(vocab_size=24000, special_tokens=tokens, unk_token="<unk>",
                                                   show_progress=False))
        file = json.loads(t.to_str())
        file["model"]["byte_fallback"] = byte_fallback
        file["added_tokens"] = [a for a in file["added_tokens"] if not a["content"].startswith("<0x")]
        return Tokenizer.from_str(json.dumps(file))
    return make


def clip(sample):
    t = Tokenizer(models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>"))
    t.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(CLIP), "removed", invert=True),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False)])
    t.decoder = decoders.BPEDecoder("</w>")
    return trained(t, sample, trainers.BpeTrainer(
        vocab_size=6000, special_tokens=["<|endoftext|>"], end_of_word_suffix="</w>",
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))


def word_level(pre_tokenizer):
    def make(sample):
        t = Tokenizer(models.WordLevel(unk_token="<unk>"))
        t.pre_tokenizer = pre_tokenizer
        return trained(t, sample, trainers.WordLevelTrainer(vocab_size=20000, special_tokens=["<unk>"], show_progress=False))
    return make


def charsmap():
    """The table of nmt_nfkc, of a model that sentencepiece trains: field 2 of its field 3, a message."""
    import io
    import sentencepiece
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(["a small text"] * 20), model_writer=model,
                                             vocab_size=14, hard_vocab_limit=False, minloglevel=2)

    def fields(data):
        at = 0

        def varint():
            nonlocal at
            value = shift = 0
            while True:
                byte = data[at]
                at += 1
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    return value
        while at < len(data):
            tag = varint()
            if tag & 7 == 2:
                size = varint()
                yield tag >> 3, data[at:at + size]
                at += size
            elif tag & 7 == 5:
                at += 4
            elif tag & 7 == 1:
                at += 8
            else:
                varint()
    spec = next(value for number, value in fields(model.getvalue()) if number == 3)
    return next(value for number, value in fields(spec) if number == 2)


def precompiled():
    return normalizers.Sequence([normalizers.Precompiled(charsmap()), normalizers.Replace(Regex(" {2,}"), " ")])


MARKED = normalizers.Replace(" ", MARK)
KINDS = {
    "gpt2": byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False)),
    "roberta": byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True)),
    "llama3": byte_level(words_of(LLAMA3), ignore_merges=True),
    "qwen2": byte_level(words_of(QWEN2), normalizers.NFC()),
    "o200k": byte_level(words_of(O200K)),
    "deepseek": byte_level(words_of(*DEEPSEEK)),
    "starcoder": byte_level(pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(False)])),
    "llama2": sentencepiece_like(normalizers.Sequence([normalizers.Prepend(MARK), MARKED]), None),
    "gemma": sentencepiece_like(MARKED, pre_tokenizers.Split(" ", "merged_with_previous")),
    "mistral": sentencepiece_like(None, pre_tokenizers.Metaspace(prepend_scheme="first", split=False)),
    "bert-uncased": bert(True),
    "bert-cased": bert(False),
    "t5": unigram(normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])),
    "xlm-roberta": unigram(precompiled),
    "unigram-bytes": unigram(normalizers.NFKD(), byte_fallback=True),
    "clip": clip,
    "words": word_level(pre_tokenizers.Whitespace()),
    "words-split": word_level(pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("contiguous"),
                                                       pre_tokenizers.Digits()])),
}

NORMALIZERS = {
    "NFC": normalizers.NFC(), "NFD": normalizers.NFD(), "NFKC": normalizers.NFKC(), "NFKD": normalizers.NFKD(),
    "Lowercase": normalizers.Lowercase(), "Strip": normalizers.Strip(), "StripAccents": normalizers.StripAccents(),
    "Nmt": normalizers.Nmt(), "Bert": normalizers.BertNormalizer(), "Precompiled": precompiled,
    "Bert-cased": normalizers.BertNormalizer(lowercase=False),
}
PRE_TOKENIZERS = {
    "Whitespace": pre_tokenizers.Whitespace(), "WhitespaceSplit": pre_tokenizers.WhitespaceSplit(),
    "Bert": pre_tokenizers.BertPreTokenizer(), "Digits": pre_tokenizers.Digits(True),
    "Punctuation": pre_tokenizers.Punctuation(),
    **{name: pre_tokenizers.Split(Regex(p), "isolated") for name, p in [
        ("\\s", r"\s+"), ("\\S", r"\S+"), ("\\w", r"\w+"), ("\\d", r"\d+"), ("\\b", r"\b."), ("GPT-2", GPT2),
        ("Llama 3", LLAMA3), ("o200k", O200K), ("DeepSeek", DEEPSEEK[2]), ("(?i)", r"(?i:straSSe|[a-k]+)"),
        ("\\p{M}", r"\p{M}+"), ("\\p{S}", r"\p{S}+"), ("\\p{C}", r"\p{C}+"), ("\\p{Z}", r"\p{Z}+"), ("\\p{Lt}", r"\p{Lt}+"),
        ("\\p{Han}", r"\p{Han}+"), ("\\p{Greek}", r"\p{Greek}+"), ("[^\\S]", r"[^\S\n]+")]},
}


def pack(texts):
    return b"".join(struct.pack("<I", len(t)) + t for t in texts)


def unpack(data):
    at, out = 0, []
    while at < len(data):
        size, = struct.unpack_from("<I", data, at)
        out.append(data[at + 4:at + 4 + size])
        at += 4 + size
    return out


def lists_of(data):
    numbers = memoryview(data).cast("i")
    at, out = 0, []
    while at < len(numbers):
        out.append(numbers[at + 1:at + 1 + numbers[at]].tolist())
        at += 1 + numbers[at]
    return out


def ours(program, tokenizer, texts, folder):
    """Ids and decoded texts of Aloft, and what it printed."""
    (folder / "texts").write_bytes(pack(texts))
    done = subprocess.run([program, tokenizer, folder / "texts", folder / "ids", folder / "decoded"], capture_output=True,
                          text=True)
    if done.returncode:
        return None, None, done.stderr.strip()
    return lists_of((folder / "ids").read_bytes()), unpack((folder / "decoded").read_bytes()), done.stdout.strip()


def compare(name, own, theirs, texts, decoded=None, decode=None):
    """How many texts differ; the first ones are shown."""
    wrong = [i for i in range(len(texts)) if own[i] != theirs[i]]
    for i in wrong[:3]:
        at = next((j for j, (a, b) in enumerate(zip(own[i], theirs[i])) if a != b), min(len(own[i]), len(theirs[i])))
        print(f"    {name}: {texts[i]!r:.200}\n      from id {at}: {own[i][at:at + 8]}, not {theirs[i][at:at + 8]}")
    if decoded is not None:
        for i in range(0, len(texts), 7):
            if i not in wrong and decoded[i].decode("utf-8", "surrogateescape") != decode(theirs[i]):
                wrong.append(i)
                if len(wrong) < 6:
                    print(f"    {name}: decoded {decoded[i]!r:.160}, not {decode(theirs[i])!r:.160}")
    return len(wrong)


# Expressions and special tokens of vocabularies that go by tiktoken's names.
TIKTOKEN = {"cl100k_base": (LLAMA3, {"<|endoftext|>": 100257}), "o200k_base": (O200K, {"<|endoftext|>": 199999}),
            "r50k_base": (GPT2, {"<|endoftext|>": 50256}), "qwen": (QWEN2, {"<|endoftext|>": 151643})}
SENTENCEPIECE = ("sentencepiece-unigram", "sentencepiece-bpe")


def judge_lines(program, names, lines, scratch):
    failures = 0
    sample = [text_of(line) for line in lines[:20000]]
    texts = [text_of(line) for line in lines]
    size = sum(map(len, lines))
    print(f"{'tokenizer':22} {'differ':>7} {'of':>7} {'Aloft':>10} {'again':>10} {'library':>10}   MB in a second of one processor")
    for name, make in KINDS.items():
        if names and name not in names:
            continue
        folder = scratch / name
        folder.mkdir()
        t = make(sample)
        t.save(str(folder / "tokenizer.json"))
        encode = getattr(t, "encode_batch_fast", t.encode_batch)
        start = time.process_time()
        theirs = [e.ids for e in encode(texts, add_special_tokens=False)]
        speed = size / (time.process_time() - start) / 1e6
        own, decoded, said = ours(program, folder, lines, folder)
        if own is None:
            print(f"{name:22} refused: {said}")
            failures += 1
            continue
        wrong = compare(name, own, theirs, lines, decoded, lambda ids: t.decode(ids, skip_special_tokens=False))
        first, again = (float(part.split()[-2]) for part in said.split(" bytes, ")[1].split(", "))
        is_slow = first < speed
        failures += bool(wrong) or is_slow
        print(f"{name:22} {wrong:7} {len(lines):7} {first:10.2f} {again:10.2f} {speed:10.2f}"
              f"{'   SLOWER' if is_slow else ''}", flush=True)
    return failures


def judge_tiktoken(program, names, lines, scratch):
    """Ranks of a byte-level vocabulary under tiktoken's names."""
    import tiktoken
    failures = 0
    base = KINDS["llama3"]([text_of(line) for line in lines[:20000]])
    letters = {chr(c): b for b, c in enumerate(letters_of_bytes())}
    vocab = sorted((i, token) for token, i in base.get_vocab(with_added_tokens=False).items())
    ranks = {bytes(letters[c] for c in token): i for i, token in vocab}
    for name, (pattern, special) in TIKTOKEN.items():
        if names and name not in names:
            continue
        folder = scratch / name
        folder.mkdir()
        path = folder / f"{name}.tiktoken"
        path.write_text("".join(f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in ranks.items()))
        encoding = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
        start = time.process_time()
        theirs = [encoding.encode(text_of(line), allowed_special="all") for line in lines]
        speed = sum(map(len, lines)) / (time.process_time() - start) / 1e6
        own, decoded, said = ours(program, path, lines, folder)
        if own is None:
            print(f"{name:22} refused: {said}")
            failures += 1
            continue
        wrong = compare(name, own, theirs, lines, decoded, encoding.decode)
        first, again = (float(part.split()[-2]) for part in said.split(" bytes, ")[1].split(", "))
        failures += bool(wrong) or first < speed
        print(f"{name:22} {wrong:7} {len(lines):7} {first:10.2f} {again:10.2f} {speed:10.2f}", flush=True)
    return failures


def judge_sentencepiece(program, names, lines, scratch):
    """Models of SentencePiece beside its own package, which takes the bytes as they are. Its versions choose differently
    between cuts that are equally likely: such lines are told and do not count."""
    import sentencepiece
    failures = 0
    for name in SENTENCEPIECE:
        model = name.removeprefix("sentencepiece-")
        if names and name not in names:
            continue
        folder = scratch / name
        folder.mkdir()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(text_of(line).replace("\0", "") for line in lines[:20000]), vocab_size=16000,
            model_prefix=str(folder / "trained"), model_type=model, character_coverage=0.98, byte_fallback=model == "bpe",
            num_threads=1, minloglevel=2)
        path = folder / "trained.model"
        processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
        start = time.process_time()
        theirs = [processor.encode(line) for line in lines]
        speed = sum(map(len, lines)) / (time.process_time() - start) / 1e6
        own, decoded, said = ours(program, path, lines, folder)
        if own is None:
            print(f"{name:22} refused: {said}")
            failures += 1
            continue
        ties = 0
        for i, (a, b) in enumerate(zip(own, theirs)):
            likely = [sum(map(processor.get_score, ids)) for ids in (a, b)]
            if a != b and abs(likely[0] - likely[1]) < 1e-3:
                own[i] = b
                ties += 1
        wrong = compare(name, own, theirs, lines, decoded, processor.decode)
        first, again = (float(part.split()[-2]) for part in said.split(" bytes, ")[1].split(", "))
        failures += bool(wrong)
        print(f"{name:22} {wrong:7} {len(lines):7} {first:10.2f} {again:10.2f} {speed:10.2f}"
              f"{f'   and {ties} cut otherwise, equally likely' if ties else ''}", flush=True)
    return failures


def letters_of_bytes():
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [b if b in plain else next(others) for b in range(256)]


def judge_characters(program, names, scratch):
    """Every character of planes 0, 1 and 14 that Unicode 14 has, through each part. Words are told apart by a suffix of
    their last character."""
    codes = [c for c in [*range(0x20000), *range(0xE0000, 0xE01F0)] if not 0xD800 <= c < 0xE000]
    tokens = [chr(c) for c in codes] + [chr(c) + "</w>" for c in codes]
    texts = [f"a{chr(c)}b {chr(c)}{chr(c)} 1{chr(c)}" for c in codes if unicodedata.category(chr(c)) != "Cn"]
    lines = [t.encode() for t in texts]
    failures = 0
    base = json.loads(Tokenizer(models.BPE({"a": 0}, [], end_of_word_suffix="</w>")).to_str())
    base["model"]["vocab"] = {token: i for i, token in enumerate(tokens)}
    parts = [("normalizer", n, p) for n, p in NORMALIZERS.items()]
    parts += [("pre_tokenizer", n, p) for n, p in PRE_TOKENIZERS.items()]
    for where, name, part in parts:
        if names and name not in names:
            continue
        folder = scratch / f"{where}-{len(list(scratch.iterdir()))}"
        folder.mkdir()
        part = part() if part is precompiled else part
        base[where] = json.loads(part.__getstate__())
        (folder / "tokenizer.json").write_text(json.dumps(base))
        t = Tokenizer.from_str(json.dumps(base))
        base[where] = None
        theirs = [e.ids for e in t.encode_batch(texts, add_special_tokens=False)]
        own, _, said = ours(program, folder, lines, folder)
        if own is None:
            print(f"{where:14} {name:12} refused: {said}")
            failures += 1
            continue
        wrong = [i for i in range(len(texts)) if own[i] != theirs[i]]
        shown = ", ".join(f"U+{ord(texts[i][1]):04X}" for i in wrong[:12])
        failures += bool(wrong)
        print(f"{where:14} {name:12} {len(wrong):6} of {len(texts)} characters differ {shown}", flush=True)
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=ROOT / "build/bin", type=pathlib.Path)
    parser.add_argument("--lines", type=int, default=100000)
    parser.add_argument("--only", nargs="+", default=[], help="names of rows")
    parser.add_argument("--characters", action="store_true", help="the characters alone")
    options = parser.parse_args()
    program = options.bin / "encode_texts"
    if not program.exists():
        sys.exit(f"{program} is missing: build the tests, target encode_texts")
    print(f"tokenizers {tokenizers.__version__}, Unicode {unicodedata.unidata_version} of Python")
    failures, rows = 0, [*KINDS, *TIKTOKEN, *SENTENCEPIECE, *NORMALIZERS, *PRE_TOKENIZERS]
    if unknown := sorted(set(options.only) - set(rows)):
        sys.exit(f"no such rows: {', '.join(unknown)}; there are {', '.join(rows)}")
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        if not options.characters:
            lines = draw_lines(options.lines)
            failures += judge_lines(program, options.only, lines, scratch)
            failures += judge_tiktoken(program, options.only, lines, scratch)
            failures += judge_sentencepiece(program, options.only, lines, scratch)
        failures += judge_characters(program, options.only, scratch)
    print("everything agrees" if not failures else f"{failures} rows differ or are slower")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
