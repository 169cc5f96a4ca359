#!/usr/bin/env python3
"""Vocabularies that are in use, which packages on PyPI bring along, beside what their own programs say of them.

- `mistral-common` brings Mistral's: SentencePiece models, and tekken files, which here become a tokenizer.json. Its
  tokenizers are asked for the ids of drawn lines (tokenizers_live.py, of those that are UTF-8).
- The source of `llama-cpp-python` brings GGUF files that hold vocabularies alone, each with texts (`.inp`) and the ids
  (`.out`) that the model's own tokenizer of transformers gave. What GGUF does not keep of a tokenizer.json, the
  expression that cuts a text into words, is taken from the table below by the name that the file gives it.

A line each: how many texts have other ids, and the first ones of them. Exit 1 where any has.

  pip download --no-deps --no-binary :all: llama-cpp-python && tar xzf llama_cpp_python-*.tar.gz
  tools/judge/vocabularies.py --gguf llama_cpp_python-*/vendor/llama.cpp/models [--lines 5000] [--only NAME ...]
                              [--bin build/bin]

needs the packages tokenizers, and mistral-common for its part; and the program `encode_texts` of the tests.
"""
import argparse
import base64
import json
import pathlib
import shutil
import struct
import sys
import tempfile

import tokenizers_live as live
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

BETWEEN = "\n__ggml_vocab_test__\n"
NORMAL, UNKNOWN, CONTROL, OF_USER = 1, 2, 3, 4  # kinds of tokens in GGUF, as in SentencePiece


def digits_then(individual):
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False)])


GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False)
QWEN35 = live.QWEN2.replace(r"?\p{L}+|", r"?[\p{L}\p{M}]+|").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]")
# By tokenizer.ggml.pre: what cuts a text, and what changes it before.
CUTS = {
    "gpt-2": (GPT2, None), "mpt": (GPT2, normalizers.NFC()), "starcoder": (digits_then(True), None),
    "refact": (digits_then(True), None), "command-r": (digits_then(True), normalizers.NFC()),
    "llama-bpe": (live.words_of(live.LLAMA3), None), "qwen2": (live.words_of(live.QWEN2), normalizers.NFC()),
    "qwen35": (live.words_of(QWEN35), None),
    "deepseek-coder": (live.words_of("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+",
                                     r"\p{N}"), None),
    "falcon": (pre_tokenizers.Sequence([
        pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False),
        pre_tokenizers.Digits(False), pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")]), None),
}


class Gguf:
    """The keys of a GGUF file, of which tensors follow."""
    NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

    def __init__(self, path):
        self.data, self.at = path.read_bytes(), 4
        if self.data[:4] != b"GGUF":
            raise ValueError(f"{path} is no GGUF file")
        self.number("I"), self.number("Q")
        self.keys = {}
        for _ in range(self.number("Q")):
            key = self.text()
            self.keys[key] = self.value(self.number("I"))

    def number(self, form):
        found, = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize(form)
        return found

    def text(self):
        size = self.number("Q")
        self.at += size
        return self.data[self.at - size:self.at].decode()

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            of, count = self.number("I"), self.number("Q")
            return [self.value(of) for _ in range(count)]
        return self.number(self.NUMBERS[kind])

    def __getitem__(self, key):
        return self.keys["tokenizer.ggml." + key]


def byte_level(vocab, merges, cut, normalizer, whole_first=False):
    t = Tokenizer(models.BPE(vocab, merges, ignore_merges=whole_first))
    t.pre_tokenizer, t.decoder = cut, decoders.ByteLevel()
    if normalizer is not None:
        t.normalizer = normalizer
    return t


def of_gpt2(gguf):
    kind = gguf["pre"]
    if kind not in CUTS:
        return None
    cut, normalizer = CUTS[kind]
    tokens, kinds = gguf["tokens"], gguf["token_type"]
    vocab = {token: i for i, token in enumerate(tokens)}
    t = byte_level(vocab, [tuple(m.split(" ")) for m in gguf["merges"]], cut, normalizer, kind == "llama-bpe")
    for token, of in zip(tokens, kinds):
        if of in (CONTROL, OF_USER):
            t.add_tokens([AddedToken(token, special=of == CONTROL, normalized=False)])
    return t


def of_bert(gguf):
    """Tokens that begin a word have a mark before them, as SentencePiece has it, instead of ## before the others."""
    def written(token, of):
        if of != NORMAL or (token.startswith("[") and token.endswith("]") and len(token) > 2):
            return token
        return token[1:] if token.startswith(live.MARK) else "##" + token
    vocab = {written(token, of): i for i, (token, of) in enumerate(zip(gguf["tokens"], gguf["token_type"]))}
    t = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    t.normalizer, t.pre_tokenizer = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    return t


def sentencepiece_model(gguf):
    """A file of SentencePiece: its message ModelProto, written field by field."""
    def varint(n):
        out = b""
        while n > 127:
            out, n = out + bytes([n & 127 | 128]), n >> 7
        return out + bytes([n])

    def field(number, content):
        if isinstance(content, int):
            return varint(number << 3) + varint(content)
        if isinstance(content, float):
            return varint(number << 3 | 5) + struct.pack("<f", content)
        return varint(number << 3 | 2) + varint(len(content)) + content
    kinds = gguf["token_type"]
    unknown = kinds.index(UNKNOWN)  # one that there may be; what else is called so is no text either
    kinds = [CONTROL if of == UNKNOWN and i != unknown else of for i, of in enumerate(kinds)]
    pieces = b"".join(field(1, field(1, token.encode()) + field(2, float(score)) + field(3, of))
                      for token, score, of in zip(gguf["tokens"], gguf["scores"], kinds))
    trainer = field(3, 2) + field(35, 1)  # BPE, with a token for each byte
    normalizer = field(1, b"identity") + field(2, b"") + field(3, 1) + field(4, 0) + field(5, 1)
    return pieces + field(2, trainer) + field(3, normalizer)


def judge_gguf(options, folder, scratch):
    failures = 0
    for path in sorted(folder.glob("ggml-vocab-*.gguf")):
        name, asked = path.stem.removeprefix("ggml-vocab-"), path.with_name(path.name + ".inp")
        if not asked.exists() or (options.only and name not in options.only):
            continue
        texts = asked.read_bytes().decode().split(BETWEEN)
        theirs = [list(map(int, line.split())) for line in path.with_name(path.name + ".out").read_text().split("\n")]
        gguf, place = Gguf(path), scratch / name
        place.mkdir()
        kind = gguf["model"]
        made = {"gpt2": of_gpt2, "bert": of_bert}.get(kind, lambda _: None)(gguf)
        if kind == "llama":
            (place / "tokenizer.model").write_bytes(sentencepiece_model(gguf))
        elif made is None:
            print(f"{name:38} not judged: {kind}, {gguf.keys.get('tokenizer.ggml.pre')}")
            continue
        else:
            made.save(str(place / "tokenizer.json"))
        failures += shown(options, name, place / "tokenizer.model" if kind == "llama" else place,
                          [text.encode() for text in texts], theirs[:len(texts)], place)
    return failures


def parts_of(ranks, token, rank):
    """The two tokens that make this one: what merging by ranks leaves of it before its own."""
    parts = [token[i:i + 1] for i in range(len(token))]
    while len(parts) > 2:
        found = min((ranks.get(parts[i] + parts[i + 1], rank), i) for i in range(len(parts) - 1))
        if found[0] >= rank:
            return None
        parts[found[1]:found[1] + 2] = [parts[found[1]] + parts[found[1] + 1]]
    return parts


def of_tekken(path):
    file = json.loads(path.read_text())
    config = file["config"]
    first = config["default_num_special_tokens"]
    kept = file["vocab"][:config["default_vocab_size"] - first]
    ranks = {base64.b64decode(v["token_bytes"]): v["rank"] for v in kept}
    letters = live.letters_of_bytes()

    def written(token):
        return "".join(chr(letters[b]) for b in token)
    merges = [parts_of(ranks, token, rank) for token, rank in ranks.items() if len(token) > 1]
    vocab = {written(token): rank + first for token, rank in ranks.items()}
    return byte_level(vocab, [tuple(map(written, parts)) for parts in merges if parts],
                      live.words_of(config["pattern"]), None, True)


def judge_mistral(options, lines, scratch):
    try:
        import mistral_common
        from mistral_common.tokens.tokenizers.sentencepiece import SentencePieceTokenizer
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer
    except ImportError as e:
        print(f"mistral-common is left out: {e}")
        return 0
    failures = 0
    folder = pathlib.Path(mistral_common.__file__).parent / "data"
    for path in sorted([*folder.glob("*.model.v*"), *folder.glob("tekken_*.json")]):
        if options.only and path.name not in options.only:
            continue
        place = scratch / path.name
        place.mkdir()
        if path.suffix == ".json":
            theirs, ours = Tekkenizer.from_file(path), place
            of_tekken(path).save(str(place / "tokenizer.json"))
        else:
            theirs, ours = SentencePieceTokenizer(path), place / "tokenizer.model"
            shutil.copy(path, ours)
        ids = [theirs.encode(line.decode(), bos=False, eos=False) for line in lines]
        failures += shown(options, path.name, ours, lines, ids, place)
    return failures


def shown(options, name, tokenizer, texts, theirs, place):
    own, _, said = live.ours(options.bin / "encode_texts", tokenizer, texts, place)
    if own is None:
        print(f"{name:38} refused: {said}")
        return 1
    wrong = live.compare(name, own, theirs, texts)
    print(f"{name:38} {wrong:5} of {len(texts):5} texts have other ids{'   WRONG' if wrong else ''}", flush=True)
    return bool(wrong)


def is_text(line):
    """Special tokens are found by Aloft and the library in a text, and by mistral-common never."""
    try:
        return not any(token in line.decode() for token in ("<s>", "</s>", "<unk>"))
    except UnicodeDecodeError:
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gguf", type=pathlib.Path, help="the folder of GGUF files with .inp and .out beside them")
    parser.add_argument("--lines", type=int, default=5000)
    parser.add_argument("--only", nargs="*", metavar="NAME")
    parser.add_argument("--bin", type=lambda p: pathlib.Path(p).resolve(), default=live.ROOT / "build" / "bin")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        lines = [line for line in live.draw_lines(options.lines) if is_text(line)]
        failures = judge_mistral(options, lines, pathlib.Path(scratch))
        if options.gguf:
            failures += judge_gguf(options, options.gguf, pathlib.Path(scratch))
        else:
            print("llama.cpp's are left out: --gguf FOLDER")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
