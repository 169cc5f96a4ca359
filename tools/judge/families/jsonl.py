"""What lines of JSON come to in tokens, and which of them are learnt, by transformers' own tokenizers and templates.
Two small tokenizers are made for it, one of bytes with marks of turns (as Qwen's), one with a token that begins a text
and bytes to fall back on (as Llama's).
"""
import collections
import json
import pathlib
import tempfile

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

TEXT = ["the quick brown fox jumps over the lazy dog", "What is two plus two? Four.", "Name a colour: blue.",
        "Answer the question in one word.", "naïve café, 你好, and 12345 more", "  indented\n\n  lines\n"]

MARKED = ("{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' }}{%- if message.role == 'assistant' %}"
          "{%- generation %}{{ message.content + '<|im_end|>' }}{% endgeneration %}{%- else %}"
          "{{- message.content + '<|im_end|>' }}{%- endif %}{{- '\\n' }}{%- endfor %}"
          "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
PLAIN = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "
         "'\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
TURNS = ("{% for message in messages %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + "
         "message['content'].strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ ' ' + "
         "message['content'].strip() + ' ' + eos_token }}{% endif %}{% endfor %}")

LINES = [
    {"text": "the quick brown fox"}, {"text": ""}, {"text": "naïve 你好\n\n  lines "},
    {"text": "it ends itself<|endoftext|>"},
    {"prompt": "What is two plus two?", "completion": " Four."},
    {"prompt": "Q: colour\nA:", "completion": " blue"}, {"prompt": "", "completion": "the lazy dog"},
    {"prompt": "the qui", "completion": "ck brown fox"}, {"prompt": "the fox", "completion": ""},
    {"prompt": "你", "completion": "好"}, {"prompt": "a b ", "completion": " c"},
    {"messages": [{"role": "user", "content": "Name a colour"}, {"role": "assistant", "content": "blue"}]},
    {"messages": [{"role": "system", "content": "Answer in one word."}, {"role": "user", "content": "你好?"},
                  {"role": "assistant", "content": "naïve\n\n  lines"}, {"role": "user", "content": "more"},
                  {"role": "assistant", "content": "\n\nfour"}]},
    {"messages": [{"role": "user", "content": "nobody answers"}]},
    {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": ""}]},
]


def merges_of(words, count):
    """The pairs that are joined, the most frequent first; the library's own trainer breaks ties at random."""
    words, merges = [list(word) for word in words], []
    while len(merges) < count:
        pairs = collections.Counter(pair for word in words for pair in zip(word, word[1:]))
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        for word in words:
            for at in range(len(word) - 2, -1, -1):
                if tuple(word[at:at + 2]) == best:
                    word[at:at + 2] = ["".join(best)]
    return merges


def of_bytes():
    split = pre_tokenizers.ByteLevel(add_prefix_space=False)
    merges = merges_of([word for text in TEXT for word, _ in split.pre_tokenize_str(text)], 60)
    tokens = sorted(pre_tokenizers.ByteLevel.alphabet()) + ["".join(pair) for pair in merges]
    made = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = split
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(t, special=True, normalized=False)
                             for t in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")])
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|endoftext|>")


def with_fallback():
    texts = ["▁" + text.replace(" ", "▁") for text in TEXT]
    merges = merges_of([text for text in texts if text.isascii() or "你" not in text], 60)
    letters = sorted(set("".join(texts)) - set("你好ï\n"))
    tokens = (["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + letters +
              ["".join(pair) for pair in merges])
    made = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(dict.fromkeys(tokens))}, byte_fallback=True,
                                merges=[pair for pair in merges if "\n" not in "".join(pair)], unk_token="<unk>",
                                fuse_unk=True))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                      decoders.Strip(" ", 1, 0)])
    made.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in ("<unk>", "<s>", "</s>")])
    made.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B",
                                                        special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def words_of(tokenizer, template, messages):
    """Bounds, in characters, of what each of the assistant's messages adds behind the prompt for an answer."""
    def text_of(part, has_prompt):
        return tokenizer.apply_chat_template(part, chat_template=template, tokenize=False,
                                             add_generation_prompt=has_prompt) if part else ""
    return [(len(text_of(messages[:i], True)), len(text_of(messages[:i + 1], False)))
            for i, message in enumerate(messages) if message["role"] == "assistant"]


def of_line(tokenizer, template, line):
    end = tokenizer.eos_token_id
    if "text" in line:
        ids = tokenizer(line["text"])["input_ids"]
        ids += [end] * (ids[-1:] != [end])
        return ids, [True] * len(ids)
    if "prompt" in line:
        prompt = tokenizer(line["prompt"])["input_ids"]
        ids = tokenizer(line["prompt"] + line["completion"])["input_ids"] + [end]
        return ids, [i >= len(prompt) for i in range(len(ids))]
    if "endgeneration" in template:
        said = tokenizer.apply_chat_template(line["messages"], chat_template=template, tokenize=True,
                                             return_dict=True, return_assistant_tokens_mask=True)
        return said["input_ids"], [bool(m) for m in said["assistant_masks"]]
    text = tokenizer.apply_chat_template(line["messages"], chat_template=template, tokenize=False)
    said = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    words = words_of(tokenizer, template, line["messages"])
    return said["input_ids"], [any(b < last and e > first for first, last in words)
                               for b, e in said["offset_mapping"]]


def build():
    files = {}
    for name, tokenizer, templates in (("bytes", of_bytes(), (MARKED, PLAIN)), ("fallback", with_fallback(), (TURNS,))):
        cases = []
        for at, template in enumerate(templates):
            for line in LINES:
                roles = [m["role"] for m in line.get("messages", [])]
                if (at > 0 and "messages" not in line) or (template == TURNS and "system" in roles):
                    continue
                ids, learnt = of_line(tokenizer, template, line)
                prompt = tokenizer(line.get("prompt", ""))["input_ids"] if "prompt" in line else []
                cases.append({"line": line, "joined": prompt != ids[:len(prompt)], "template": template if "messages" in line else None, "ids": ids,
                              "learnt": [int(x) for x in learnt]})
        with tempfile.TemporaryDirectory() as folder:
            tokenizer.save_pretrained(folder)
            for file in ("tokenizer.json", "tokenizer_config.json"):
                files[f"jsonl/{name}/{file}"] = json.loads((pathlib.Path(folder) / file).read_text(encoding="utf-8"))
        files[f"jsonl/{name}/cases.json"] = {"cases": cases}
    return files
