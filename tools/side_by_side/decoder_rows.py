"""The rows of decoders of Hugging Face: fine-tuning, a prompt, a token, the first token, beside transformers."""
import random_folder
from programs import ROOT, Program
from row import Figure, Row, at_least, at_most, flags, memory_figure, ours, speed_figure

QWEN, LLAMA = "qwen2.5-0.5b", "llama-3.2-1b"
SPLIT = ["--set", "optimizer.master=split"]


def place(shape, has_weights=True):
    """As a user types it; made before the row is run (row.folders)."""
    return str(random_folder.place(shape, has_weights).relative_to(ROOT))


def transformers(what, folder, *options, name="eager", compiled=True):
    """The peer eager, and under torch.compile."""
    command = ["python", "tools/peers/decoder.py", what, folder, "--amp", "bf16", *options, "--json"]
    programs = [Program(name, command)]
    return programs + ([Program("compiled", [*command, "--compile"])] if compiled else [])


def texts(folder, *options, clock):
    """Ours; `clock` is what of its times is the step."""
    return Program("aloft", ["aloft", "bench", "generate", folder, "--precision", "O2:bf16", *options, "--json"],
                   step=clock)


def tuning_row(name, shape, title, batch, least, most):
    folder = place(shape, has_weights=False)
    work = flags(batch=batch, seq=512)
    alone = transformers("train", folder, *work, "--fused", "--alone", "--steps", 2, name="bf16 alone", compiled=False)
    return Row(name, f"{title}'s shape, full fine-tune, {batch} x 512 tokens, O2:bf16 with split masters",
               [ours(*work, *SPLIT, model=folder, precision="O2:bf16", steps=3),
                *transformers("train", folder, *work, "--fused", "--steps", 2), *alone],
               [speed_figure(at_least(least), at_least(least)), memory_figure(at_most(most)),
                Figure("speed, times PyTorch with weights and moments in bf16 alone", "x",
                       lambda r: r["bf16 alone"]["step_ms"] / r["aloft"]["step_ms"])],
               folders=[(shape, False)])


def text_rows():
    folder, folders = place(QWEN), [(QWEN, True)]
    title = "Qwen2.5-0.5B's shape, bf16: "
    yield Row("qwen-prompt", title + "a prompt of 512 tokens, logits of the last one",
              [texts(folder, "--prompt-tokens", 512, "--tokens", 1, "--rounds", 3, "--no-limit", clock="prompt_ms"),
               *transformers("prompt", folder, "--seq", 512, "--steps", 3)],
              [speed_figure(at_least(1.8), at_least(1.3)), memory_figure(None)], folders=folders)
    yield Row("qwen-token", title + "a token behind 128",
              [texts(folder, "--prompt-tokens", 128, "--tokens", 32, "--rounds", 3, clock="token_ms"),
               *transformers("token", folder, "--seq", 128, "--steps", 32)],
              [Figure("share of the rate at which memory is read, of the weights' bytes", "%",
                      lambda r: 100 * r["aloft"]["share_of_stream"], at_least(85), at_least(85), "limit", most=105),
               Figure("speed, times PyTorch eager", "x",
                      lambda r: r["eager"]["step_ms"] / r["aloft"]["step_ms"], at_least(2), at_least(2)),
               Figure("speed, times PyTorch compiled, with a static cache", "x",
                      lambda r: r["compiled"]["step_ms"] / r["aloft"]["step_ms"], at_least(1.1), at_least(1.1)),
               memory_figure(None)], folders=folders)
    yield Row("qwen-first", title + "the program's start to the first token behind a prompt of 32, files in the page cache",
              [texts(folder, "--prompt-tokens", 32, "--tokens", 1, "--rounds", 1, "--no-limit", clock="first_token_ms"),
               *transformers("first", folder, "--seq", 32, compiled=False)],
              [Figure("start to the first token", "ms", first_token_ms, at_most(1000), at_most(1000)),
               Figure("speed, times PyTorch", "x",
                      lambda r: first_token_ms(r, "eager") / first_token_ms(r))], folders=folders)


def first_token_ms(round_, name="aloft"):
    """From the moment before the process was created, as seen from outside of it."""
    return 1e3 * (round_[name]["first_token_clock_s"] - round_[name]["started_clock_s"])


def decoder_rows():
    return [tuning_row("qwen-tune", QWEN, "Qwen2.5-0.5B", 2, 2.3, 0.65),
            tuning_row("llama-tune", LLAMA, "Llama-3.2-1B", 1, 2.0, 0.6), *text_rows()]
