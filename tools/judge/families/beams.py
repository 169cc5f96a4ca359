"""Texts that transformers finds by beam search with the tiny checkpoints of tests/fixtures.

Each search is made in float32 and float64, which must find the same: no close call.
"""
import pathlib

import torch
import transformers

FIXTURES = pathlib.Path(__file__).resolve().parents[3] / "tests" / "fixtures"
MODELS = ("gpt2-tiny", "llama-tiny", "mistral-window", "qwen2-tiny", "gemma2-tiny")
NEW_TOKENS = 9


def found(model, prompt, ends, beams, length_penalty):
    ids = torch.tensor([prompt])
    model.generation_config.eos_token_id = model.config.eos_token_id = ends or None
    out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=NEW_TOKENS, num_beams=beams,
                         do_sample=False, length_penalty=length_penalty, pad_token_id=0)[0, len(prompt):].tolist()
    for i, token in enumerate(out):  # what stands behind an end is padding
        if token in ends:
            return out[:i], True
    return out, False


def cases_of(name):
    made = transformers.AutoModelForCausalLM
    single, double = (made.from_pretrained(FIXTURES / name, dtype=dtype, attn_implementation="eager").eval()
                      for dtype in (torch.float32, torch.float64))
    draw = torch.Generator().manual_seed(5)
    cases = []
    for length in (1, 5):
        prompt = torch.randint(single.config.vocab_size, (length,), generator=draw).tolist()
        often = found(single, prompt, [], 4, 1.0)[0]
        several = torch.randint(single.config.vocab_size, (9,), generator=draw).tolist()
        for ends in ([], [often[4]], [often[2], often[6]], sorted(set(several))):
            for beams, length_penalty in ((2, 1.0), (3, 0.0), (4, 2.0), (5, -1.0)):
                tokens, ended = found(single, prompt, ends, beams, length_penalty)
                if found(double, prompt, ends, beams, length_penalty) != (tokens, ended):
                    continue  # a close call
                cases.append({"model": name, "prompt": prompt, "ends": ends, "beams": beams,
                              "length_penalty": length_penalty, "tokens": tokens, "ended": ended})
    return cases


def build():
    cases = [case for name in MODELS for case in cases_of(name)]
    assert len(cases) > 120 and 20 < sum(c["ended"] for c in cases) < len(cases) - 20
    return {"beams.json": {"new_tokens": NEW_TOKENS, "cases": cases}}
