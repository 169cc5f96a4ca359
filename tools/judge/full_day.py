#!/usr/bin/env python3
"""A user's day at full size: a random model of Qwen2.5-0.5B's shape with its 151,936 rows, written by transformers in
bf16, is opened, fine-tuned for five steps on conversations, exported and opened by transformers again.

Its logits must be those that `aloft score` gives for the run within 1e-5 of the largest, the tokenizer's ids and the
conversation's form those of the folder it began as, and the largest resident memory of `aloft` at most 8 GiB. A line
a step of the day; exit 1 where one is not so. --small takes a model of the same kind that is trained in a second.

  tools/judge/full_day.py [--aloft build/bin/aloft] [--small]

needs the packages torch, transformers and tokenizers; 10 GiB of memory and of disk, some minutes.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT_GIB, BOUND = 8, 1e-5
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
FORM = ("{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% if m['role'] == 'assistant' %}{% generation %}"
        "{{ m['content'] }}<|im_end|>\n{% endgeneration %}{% else %}{{ m['content'] }}<|im_end|>\n{% endif %}"
        "{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
RECIPE = """[data]
jsonl = ["chats.jsonl"]
length = {length}
validation = 0
[precision]
level = "O2:bf16"
[optimizer]
lr = 1e-5
[train]
batch = 2
steps = 5
sample_tokens = 0
checkpoint_minutes = 0
"""


def write_folder(folder, is_small):
    words = (ROOT / "docs").glob("*.md")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator((path.read_text() for path in sorted(words)), trainers.BpeTrainer(
        vocab_size=8000, special_tokens=list(SPECIAL), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False))
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=SPECIAL[2], pad_token=SPECIAL[0],
                                         chat_template=FORM).save_pretrained(folder)
    shape = {"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
             "num_key_value_heads": 2, "vocab_size": 151936}
    if is_small:
        shape = {"hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 4,
                 "num_key_value_heads": 2, "vocab_size": 8192}
    torch.manual_seed(0)
    model = transformers.Qwen2ForCausalLM(transformers.Qwen2Config(
        **shape, max_position_embeddings=4096, tie_word_embeddings=True, eos_token_id=2, bos_token_id=0,
        pad_token_id=0))
    model.to(torch.bfloat16).save_pretrained(folder)


def write_chats(path):
    paragraphs = [part for page in sorted((ROOT / "docs").glob("*.md")) for part in page.read_text().split("\n\n")]
    with path.open("w") as out:
        for asked, answered in zip(paragraphs[::2], paragraphs[1::2], strict=False):
            out.write(json.dumps({"messages": [{"role": "user", "content": asked},
                                               {"role": "assistant", "content": answered}]}) + "\n")


def largest_gib(process):
    try:
        text = pathlib.Path("/proc", str(process), "status").read_text()
    except OSError:  # it has ended
        return 0.0
    return next((int(line.split()[1]) / 2**20 for line in text.splitlines() if line.startswith("VmHWM:")), 0.0)


class Day:
    """Runs `aloft` and keeps the largest memory that a call has had."""

    def __init__(self, aloft, place):
        self.aloft, self.place, self.gib = aloft, place, 0.0

    def run(self, *arguments):
        begin = time.monotonic()
        with open(self.place / "said", "w+b") as said:
            process = subprocess.Popen([self.aloft, *map(str, arguments)], cwd=self.place, stdout=said, stderr=said)
            gib = 0.0
            while process.poll() is None:  # the usage that wait gives counts this program's own memory before exec
                gib = max(gib, largest_gib(process.pid))
                time.sleep(0.02)
            if process.returncode:
                said.seek(0)
                sys.exit(f"aloft {arguments[0]}: {said.read().decode(errors='replace')}")
        self.gib = max(self.gib, gib)
        print(f"{' '.join(map(str, arguments[:2])):28} {time.monotonic() - begin:7.1f} s  {gib:5.2f} GiB", flush=True)


def logits_of(folder, tokens):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    with torch.no_grad():
        return model.eval()(tokens).logits


def judge(aloft, is_small, place):
    write_folder(place / "model", is_small)
    write_chats(place / "chats.jsonl")
    length = 64 if is_small else 512
    (place / "tune.toml").write_text(RECIPE.format(length=length))
    day = Day(aloft, place)
    day.run("explain", "plan", "tune.toml", "--init", "model")
    day.run("generate", "model", "--message", "What is a plan?", "--tokens", 8, "--precision", "O2:bf16")
    day.run("train", "tune.toml", "--init", "model", "--out", "run")
    day.run("export", "hf", "run", "tuned")
    losses = [line["loss"] for line in map(json.loads, (place / "run" / "metrics.jsonl").read_text().splitlines())
              if "loss" in line]
    tokens = torch.randint(0, 8000, (1, min(length, 64)), generator=torch.Generator().manual_seed(1))
    save_file({"tokens": tokens.int()}, place / "tokens.safetensors")
    day.run("score", "run", "--tokens", "tokens.safetensors", "--out", "scored.safetensors")
    ours, theirs = load_file(place / "scored.safetensors")["logits"], logits_of(place / "tuned", tokens)
    error = ((ours - theirs).abs().max() / theirs.abs().max()).item()
    moved = (logits_of(place / "model", tokens) - theirs).abs().max().item() > 0
    before, after = (transformers.AutoTokenizer.from_pretrained(place / name) for name in ("model", "tuned"))
    text = (ROOT / "README.md").read_text()
    asked = [{"role": "user", "content": text}, {"role": "assistant", "content": "a"}]
    same = (before.encode(text) == after.encode(text) and
            before.apply_chat_template(asked, tokenize=False) == after.apply_chat_template(asked, tokenize=False))
    print(f"losses {', '.join(f'{x:.4f}' for x in losses)}; logits {'' if moved else 'NOT '}moved, off by {error:.1e} "
          f"of the largest (bound {BOUND:.0e}); tokenizer {'' if same else 'NOT '}the same; at most {day.gib:.2f} GiB "
          f"(bound {LIMIT_GIB})")
    return error <= BOUND and moved and same and day.gib <= LIMIT_GIB and len(losses) == 5


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--aloft", type=lambda p: pathlib.Path(p).resolve(), default=ROOT / "build" / "bin" / "aloft")
    parser.add_argument("--small", action="store_true", help="a model that is trained in a second")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        sys.exit(not judge(options.aloft, options.small, pathlib.Path(place)))


if __name__ == "__main__":
    main()
