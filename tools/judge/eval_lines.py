#!/usr/bin/env python3
"""The loss that `aloft eval` gives of JSON lines beside that of transformers.

Of a small Qwen2 of random weights and each of the kinds of lines of tests/fixtures/jsonl (texts, prompts with
completions, messages): the mean loss over the labels that are learnt, in float64 by transformers' own model, one line
at a time. They must agree within 1e-5 of it. A line each; exit 1 where one does not.

  tools/judge/eval_lines.py [--aloft build/bin/aloft]

needs the packages torch and transformers.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "jsonl"
BOUND = 1e-5


def mean_loss(model, cases):
    nats = count = 0
    for case in cases:
        ids = torch.tensor([case["ids"]])
        labels = torch.where(torch.tensor([case["learnt"]]).bool(), ids, -100)
        learnt = int((labels[:, 1:] >= 0).sum())
        if learnt:
            with torch.no_grad():
                nats += model(ids, labels=labels).loss.item() * learnt
            count += learnt
    return nats / count, count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--aloft", type=lambda p: pathlib.Path(p).resolve(), default=ROOT / "build" / "bin" / "aloft")
    aloft = parser.parse_args().aloft
    bad = 0
    for name in ("bytes", "fallback"):
        cases = json.loads((FIXTURES / name / "cases.json").read_text())["cases"]
        kinds = {}
        for case in cases:
            if any(case["learnt"][1:]):
                kind = "text" if "text" in case["line"] else "prompt" if "prompt" in case["line"] else "messages"
                kinds.setdefault((kind, case["template"]), []).append(case)
        torch.manual_seed(1)
        config = transformers.Qwen2Config(
            vocab_size=1 + max(max(case["ids"]) for case in cases), hidden_size=32, intermediate_size=64,
            num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512)
        config.vocab_size = max(config.vocab_size, 512)
        model = transformers.Qwen2ForCausalLM(config).eval()
        with tempfile.TemporaryDirectory() as place:
            place = pathlib.Path(place)
            model.save_pretrained(place / "model")
            model = model.double()
            for file in (FIXTURES / name).glob("tokenizer*"):
                shutil.copy(file, place / "model")
            for (kind, template), some in kinds.items():
                (place / "lines.jsonl").write_text("".join(json.dumps(case["line"]) + "\n" for case in some))
                (place / "model" / "chat_template.jinja").write_text(template or "")
                done = subprocess.run([aloft, "eval", "model", "--data", "lines.jsonl", "--json"], cwd=place,
                                      capture_output=True, text=True)
                if done.returncode:
                    raise RuntimeError(f"aloft eval: {done.stderr.strip()}")
                ours, (theirs, count) = json.loads(done.stdout), mean_loss(model, some)
                good = ours["predicted"] == count and abs(ours["loss"] - theirs) <= BOUND * theirs
                bad += not good
                print(f"{name:9} {kind:9} {len(some):2} lines, {count:3} tokens: {ours['loss']:.7f} beside {theirs:.7f}"
                      f"{'' if good else '  WRONG'}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
