"""Texts around the first length of longrope, in transformers: each by itself, greedily continued, and its loss.

The model is tests/fixtures/phi3-tiny with a longer context and first length; what is written is the same with
transformers' cache and without, and no close call.
"""
import pathlib

import torch
import transformers

FIXTURES = pathlib.Path(__file__).resolve().parents[3] / "tests" / "fixtures"
MODEL, CONTEXT, FIRST_LENGTH, NEW_TOKENS = "phi3-tiny", 256, 100, 12
PROMPTS = (3, 70, 94, 100, 101, 125, 170)
TEXTS = (30, 101, 102, 150)  # one is of as many inputs as the first length


def opened():
    config = transformers.AutoConfig.from_pretrained(FIXTURES / MODEL)
    config.max_position_embeddings = CONTEXT
    config.original_max_position_embeddings = FIRST_LENGTH
    config.rope_parameters["original_max_position_embeddings"] = FIRST_LENGTH
    return transformers.AutoModelForCausalLM.from_pretrained(FIXTURES / MODEL, config=config, dtype=torch.float32,
                                                             attn_implementation="eager").eval()


def written(model, prompt):
    """What follows, and whether a choice was close."""
    ids = torch.tensor([prompt])
    close = False
    for _ in range(NEW_TOKENS):
        logits = model(ids, use_cache=False).logits[0, -1]
        best = logits.topk(2).values
        close = close or best[0] - best[1] < 1e-3 * logits.abs().max()
        ids = torch.cat((ids, logits.argmax().reshape(1, 1)), 1)
    start = torch.tensor([prompt])
    cached = model.generate(start, attention_mask=torch.ones_like(start), max_new_tokens=NEW_TOKENS, do_sample=False,
                            use_cache=True, pad_token_id=0)
    assert close or torch.equal(ids, cached)
    return ids[0, len(prompt):].tolist(), close


@torch.no_grad()
def build():
    model = opened()
    draw = torch.Generator().manual_seed(11)

    def tokens(count):
        return torch.randint(model.config.vocab_size, (count,), generator=draw).tolist()

    cases = []
    for count in PROMPTS:
        close = True
        while close:
            prompt = tokens(count)
            new, close = written(model, prompt)
        cases.append({"prompt": prompt, "tokens": new})
    for count in TEXTS:
        text = tokens(count)
        ids = torch.tensor(text)
        logits = model(ids[None, :-1]).logits[0]
        cases.append({"text": text, "loss": torch.nn.functional.cross_entropy(logits.double(), ids[1:]).item()})
    return {"text_lengths.json": {"model": MODEL, "context": CONTEXT, "first_length": FIRST_LENGTH,
                                  "cases": cases}}
