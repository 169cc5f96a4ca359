"""The rows of the comparison: what is run, which figures come out, and what they must reach."""
from decoder_rows import decoder_rows
from optimizer_rows import optimizer_rows
from programs import Program
from row import (Figure, Row, at_least, at_most, best, flags, limit_figures, memory_figure, op_ms, ours, peers,
                 phase_ms, speed_figure)

GPT2_124M = {"layers": 12, "heads": 12, "dim": 768, "vocab": 50304}


def gpt2_rows():
    work = flags(batch=4, seq=256)
    shape = flags(**GPT2_124M) + work
    half = flags(**{"set": "optimizer.master=split"})
    # The models' tokens/s stand for steps: both programs take the same tokens a step.
    yield Row("gpt2-bf16", "GPT-2 124M, 4 x 256 tokens, O2:bf16",
              [ours(*work, precision="O2:bf16", limit=True),
               ours(*work, *half, precision="O2:bf16", name="split", steps=3),
               *peers("gpt", "bf16", *shape)],
              [speed_figure(at_least(2.0), at_least(1.3)),
               *limit_figures(at_least(72), at_least(85)),
               memory_figure(at_most(0.75)),
               memory_figure(at_most(0.65), "split", 'peak memory with master = "split"')])
    yield Row("gpt2-fp32", "GPT-2 124M, 4 x 256 tokens, O0",
              [ours(*work, limit=True, steps=6), *peers("gpt", "fp32", *shape, steps=4)],
              [speed_figure(at_least(1.0), at_least(1.0)),
               *limit_figures(at_least(88), at_least(88)),
               memory_figure(at_most(0.75))])
    yield Row("gpt2-fp16", "GPT-2 124M, 4 x 256 tokens, O2:fp16",
              [ours(*work, precision="O2:fp16", steps=6),
               ours(*work, name="fp32", steps=4), *peers("gpt", "fp16", *shape, steps=4)],
              [speed_figure(at_least(2.5), None),
               Figure("speed, times our own O0", "x",
                      lambda r: r["fp32"]["step_ms"] / r["aloft"]["step_ms"], None, at_least(0.9)),
               memory_figure(None)])  # no limit: the library has no f16 product to hold it against


def without_products_ms(result):
    return sum(op["ms"] for op in result["ops"]) - result["matmul_ms"]


def start_ms(result):
    """From the moment before the process was created, as seen from outside of it."""
    return 1e3 * (result["first_step_clock_s"] - result["started_clock_s"])


def cost_rows():
    work = flags(batch=4, seq=256)
    yield Row("optimizer", "The whole update, beside torch's fused AdamW step alone",
              [ours(*work, precision="O2:bf16"),
               Program("adamw", ["python", "tools/peers/optimizer.py", "--fused", "--json"])],
              [Figure("check, norm, clip and AdamW, times AdamW alone", "x",
                      lambda r: phase_ms(r["aloft"], "update") / r["adamw"]["step_ms"],
                      at_most(1.3), at_most(1.3))])
    yield Row("start", "Process start to the first finished step, O2:bf16",
              [ours(*work, precision="O2:bf16", steps=5)],
              [Figure("start to first finished step, less two steps", "ms",
                      lambda r: start_ms(r["aloft"]) - 2 * r["aloft"]["step_ms"],
                      at_most(1500), at_most(1500), least=None),
               Figure("compile", "ms", lambda r: r["aloft"]["compile_ms"], at_most(500),
                      at_most(500))])
    yield Row("threads", "Two threads beside one, O2:bf16",
              [ours(*work, precision="O2:bf16", threads=2, name="two"),
               ours(*work, precision="O2:bf16", threads=1, name="one")],
              [Figure("speed of the whole step, times one thread's", "x",
                      lambda r: r["one"]["step_ms"] / r["two"]["step_ms"], at_least(1.85),
                      at_least(1.85)),
               Figure("speed of what has no products (memory-bound), times one thread's", "x",
                      lambda r: without_products_ms(r["one"]) / without_products_ms(r["two"]),
                      at_least(1.7), at_least(1.7))])


def small_rows():
    recipe = ours("--vocab", 65, model="recipes/shakespeare-char.toml", steps=150, limit=True).command
    shape = flags(layers=4, heads=4, dim=128, vocab=65, batch=12, seq=64) + ["--no-bias"]
    for amp, level, targets in (("fp32", "O0", (1.8, 1.8)), ("bf16", "O2:bf16", (3.0, 1.8))):
        command = [level if word == "O0" else word for word in recipe]
        yield Row(f"char-{amp}", f"nanoGPT's character recipe, {level}",
                  [Program("aloft", command), *peers("gpt", amp, *shape, steps=120)],
                  [speed_figure(*map(at_least, targets)), *limit_figures(None, None)])
    shape = flags(layers=6, heads=8, dim=256, vocab=4096, batch=8, seq=256)
    yield Row("small-bf16", "6 layers x 256, vocabulary 4,096, 8 x 256 tokens, O2:bf16",
              [ours(*shape, precision="O2:bf16", limit=True, steps=20),
               *peers("gpt", "bf16", *shape, steps=16)],
              [speed_figure(at_least(2.5), None), *limit_figures(None, at_least(75))])


def long_rows():
    def long(length, steps):
        return ours(*flags(layers=4, heads=12, dim=768, vocab=50304, batch=1, seq=length),
                    precision="O2:bf16", name=f"T {length}", steps=steps)

    def growth(r):
        peak = {n: r[f"T {n}"]["planned_peak_bytes"] for n in (2048, 4096, 16384)}
        return (peak[16384] - peak[4096]) / (peak[4096] - peak[2048])

    layers = 4
    yield Row("long", "4 layers x 768, one sequence of 4,096 and 16,384 tokens, O2:bf16",
              [long(4096, 4), *peers("attention", "bf16", *flags(seq=4096, heads=12, width=64),
                                     fused=False)],
              [Figure("attention at T 4,096, forward and backward, times PyTorch's", "x",
                      lambda r: best(r)["step_ms"] * layers / op_ms(r["T 4096"], "attention"),
                      at_least(1.8), at_least(1.8), "speed"),
               Figure("growth of the planned peak from 4,096 to 16,384 over 2,048 to 4,096", "x",
                      growth, at_most(6.6), at_most(6.6))],
              once=[long(2048, 1), long(16384, 1)])


# The peers' optimizer: SGD with momentum, without decay or clipping.
SGD = [word for key in ("kind=momentum", "lr=0.01", "weight_decay=0", "clip_norm=0")
       for word in ("--set", f"optimizer.{key}")]


def vision_rows():
    for model, title, least in (("lenet", "The 3x3 LeNet", 1.5), ("resnet18", "ResNet-18", 1.2)):
        steps = 60 if model == "lenet" else 8
        for amp, level in (("fp32", "O0"), ("bf16", "O2:bf16")):
            torch = peers("vision", amp, "--model", model, "--batch", 32, steps=steps - 2)
            nhwc = [Program(f"{p.name}, channels last", [*p.command, "--channels-last"])
                    for p in torch]
            yield Row(f"{model}-{amp}", f"{title}, 32 images of 32 x 32, {level}",
                      [ours("--batch", 32, *SGD, model=model, precision=level, steps=steps),
                       *torch, *nhwc],
                      [speed_figure(at_least(least), at_least(least))])


def encoder_rows():
    work = flags(batch=16, seq=128)
    yield Row("bert-bf16", "BERT-base for classification, 16 x 128 tokens, dropout 0.1, O2:bf16",
              [ours(*work, *flags(vocab=30522), model="bert-base", precision="O2:bf16", limit=True),
               *peers("encoder", "bf16", *work)],
              [speed_figure(None, None), *limit_figures(None, None), memory_figure(None)])


def all_rows():
    return [*gpt2_rows(), *cost_rows(), *optimizer_rows(), *small_rows(), *long_rows(), *vision_rows(),
            *decoder_rows(), *encoder_rows()]
