"""A byte-level BPE vocabulary (GPT-2's kind) and what GPT2TokenizerFast makes of awkward strings."""
import itertools
import json
import pathlib
import tempfile

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2TokenizerFast

VOCAB = 512

# Written for this purpose; a vocabulary needs repetition, not literature.
TEXT = """
A training step reads a batch, runs the model forward, measures the loss, runs it backward and
moves the weights a little. It doesn't care what the numbers mean, and that's the point: we'll feed
it prose, code or digits, and it'll learn whatever repeats. They've asked whether half the bits are
enough. I'm convinced they are, where the sums stay wide; I'd still check, because you can't see a
rounding error by looking at it. The gradient's size tells you more than the loss's.
template <class T> struct vector { T* begin(); T* end(); std::size_t size() const noexcept; };
for (int i = 0; i < 1024; ++i) { sum += weights[i] * inputs[i]; }
    if (value != nullptr) return value->next;
\tcase 0: case 1: case 2: return 3.14159e-05;
The naïve café owner's résumé: 12,345 pages, 67.89 % blank. Straße, Größe, Übermut. Привет, мир!
你好，世界。 こんにちは、世界。 🙂🚀 The weights, the weights, and again the weights and the loss.
"""

BASIC = [
    "", " ", "  ", "   ", "\n", "\n\n", "\t", " \n", "\n ", "\r\n", "a", " a", "a ", "  a", "a  b",
    "a   b    c", "a\nb", "a \n b", "a\n\n\nb", "\ta\tb\t", "trailing   ", "   leading",
    "mid      dle", "line one\n  line two\n    line three\n", " \t \n \r ", "x\u00a0y", "x\u3000y",
    "x\u2003 y", "\u2028", "a\u2029b", "\u0085", "a\u0085b", "\ufeffbom", "zero\u200bwidth",
    "the weights", "The Weights", "THE WEIGHTS", " the  weights ", "thetheweights",
    "don't", "DON'T", "it's", "we'll", "they've", "I'd", "I'm", "you're", "'s", "'t", "'re", "''s",
    "it's's", "'", "''", "'''", "rock 'n' roll", "o'clock", "don\u2019t", "'S", "'LL", "'ve been",
    "s'", "'d'm'll", "x'y", " 's", "can't've",
    "0", "1", "12", "123", "1234567890", "3.14159", "1e-05", "-42", "1,234.56", "0x1F", "a1b2",
    "1a", " 1", "  1", "1 2  3", "\u0661\u0662\u0663", "\u00b2\u00bd\u2167", "x\u00b2+y\u00b3",
    "!", "!!", "?!", "...", "\u2026", "a.b", "a, b; c: d", "(x)", "[[x]]", "{\"k\": 1}", "a->b",
    "++i;", "x != y", "<<=", "// note", "/* a */", "#include <vector>", "std::vector<int> v{1, 2};",
    "$5.00", "50%", "a@b.example", "https://example.org/a?b=c&d=e#f", "snake_case", "CamelCase",
    "__init__", "-", "--", "\u2014", "a\u2014b", "\u00ab x \u00bb", "\u201cquoted\u201d",
    "caf\u00e9", "cafe\u0301", "na\u00efve", "Stra\u00dfe", "\u00dcbermut", "\u0130stanbul", "\u0131",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!", "\u0395\u03bb\u03bb\u03ac\u03b4\u03b1",
    "\u05e9\u05dc\u05d5\u05dd", "\u0645\u0631\u062d\u0628\u0627", "\u0928\u092e\u0938\u094d\u0924\u0947",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "\u4f60\u597d\uff0c\u4e16\u754c\u3002",
    "\u3053\u3093\u306b\u3061\u306f", "\uc548\ub155", "mixed\u4e2d\u6587text",
    "\U0001f642", "\U0001f642\U0001f680", "a\U0001f642b", " \U0001f680 ", "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\U0001f1e9\U0001f1ea", "\u270c\U0001f3fd", "\U00020000", "\U0001d54f = 1", "\U0010fffd",
    "\x00", "a\x00b", "\x01\x02\x03", "\x1b[31mred\x1b[0m", "\x7f", "\x80\x9f", "bell\x07", "\x1c \x1d",
    "\x0b\x0c", "\ufffd", "\ue000", "\u0301", " \u0301", "<|end|>x",
    "a" * 100, " " * 33, "\n" * 9, "ab" * 40, "=" * 40, "1" * 30, "the " * 12,
]


def train():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator([TEXT], trainers.BpeTrainer(
        vocab_size=VOCAB, min_frequency=1, special_tokens=["<|endoftext|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer


def mixed(rng, pieces, count):
    """Random concatenations of the basic strings: borders are where tokenizers differ."""
    return ["".join(rng.choice(pieces, rng.integers(2, 7))) for _ in range(count)]


def build():
    with tempfile.TemporaryDirectory() as folder:
        train().model.save(folder)
        vocab = json.loads(pathlib.Path(folder, "vocab.json").read_text(encoding="utf-8"))
        merges = pathlib.Path(folder, "merges.txt").read_text(encoding="utf-8")
        judge = GPT2TokenizerFast.from_pretrained(folder)
        if len(judge) != VOCAB:
            raise SystemExit(f"the judge read {len(judge)} pieces, not {VOCAB}")
        short = [t for t in BASIC if t and len(t) < 24]
        texts = BASIC + mixed(np.random.default_rng(31), short, 60)
        cases = []
        for text in dict.fromkeys(texts):
            ids = judge(text, add_special_tokens=False)["input_ids"]
            if judge.decode(ids, clean_up_tokenization_spaces=False) != text:
                raise SystemExit(f"the judge itself does not restore {text!r}")
            cases.append({"text": text, "ids": ids})
        if len(set(itertools.chain(*(c["ids"] for c in cases)))) < 200:
            raise SystemExit("the cases use too little of the vocabulary")
    return {"tokenizer/vocab.json": vocab, "tokenizer/merges.txt": merges,
            "tokenizer/cases.json": {"cases": cases}}
