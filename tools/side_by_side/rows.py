"""The rows of the comparison: what is run, which figures come out, and what they must reach.

A figure is a function of one round, {program's name: its JSON}. Two targets where they differ: on
processors with AMX and on those without. Ratios of speed are the peer's step over ours, against the
fastest way to run PyTorch in the same round: eager or compiled, images in either layout.
"""
import dataclasses
import json
import typing

from programs import ROOT, Program

GPT2_124M = {"layers": 12, "heads": 12, "dim": 768, "vocab": 50304}
PEERS = ("eager", "compiled", "eager, channels last", "compiled, channels last")


@dataclasses.dataclass
class Target:
    relation: str  # ">=" or "<="
    value: float

    def met(self, got):
        return got >= self.value if self.relation == ">=" else got <= self.value

    def __str__(self):
        return f"{self.relation} {self.value:g}"


@dataclasses.dataclass
class Figure:
    name: str
    unit: str  # "x", "%", "ms"
    of: typing.Callable[[dict], float]
    amx: Target | None = None
    plain: Target | None = None
    plot: str = ""  # which chart shows it: "speed", "memory", "limit"
    most: float | None = None  # no round can be above it: where one is, the figure itself is wrong
    least: float | None = 0  # nor below: a difference alone can be negative


@dataclasses.dataclass
class Row:
    name: str
    title: str
    programs: list  # run in every round
    figures: list
    once: list = dataclasses.field(default_factory=list)  # what no repetition changes


def at_least(value):
    return Target(">=", value)


def at_most(value):
    return Target("<=", value)


def ours(*options, name="aloft", model="gpt2-124m", precision="O0", threads=None, limit=False,
         steps=8):
    command = ["aloft", "bench", "step", "--model", model, "--precision", precision, *options,
               "--steps", steps, "--json"]
    return Program(name, command + (["--threads", threads] if threads else [])
                   + ([] if limit else ["--no-limit"]))


def peers(script, amp, *options, steps=5, fused=True):
    """PyTorch eager and under torch.compile, both with its fused optimizer."""
    command = ["python", f"tools/peers/{script}.py", "--amp", amp, *options, "--steps", steps,
               "--json"] + (["--fused"] if fused else [])
    return [Program("eager", command), Program("compiled", [*command, "--compile"])]


def best(round_):
    found = [round_[p] for p in PEERS if p in round_]
    if not found:
        raise KeyError(PEERS[0])
    return min(found, key=lambda r: r["step_ms"])


def speed(round_, name="aloft"):
    return best(round_)["step_ms"] / round_[name]["step_ms"]


def memory(round_, name="aloft"):
    return round_[name]["peak_rss_bytes"] / best(round_)["peak_rss_bytes"]


def speed_figure(amx, plain):
    return Figure("speed, times the best PyTorch", "x", speed, amx, plain, "speed")


def memory_figure(target, name="aloft", words="peak memory, times the best PyTorch's"):
    return Figure(words, "x", lambda r: memory(r, name), target, target, "memory")


def limit_figures(amx, plain):
    """On zeros, which the targets speak of, and on numbers like those of training."""
    yield Figure("share of the machine's limit", "%",
                 lambda r: 100 * r["aloft"]["limit_fraction"], amx, plain, "limit", most=100)
    yield Figure("share of the limit with products of normal numbers", "%",
                 lambda r: 100 * r["aloft"]["limit_normal_fraction"], most=100)


def flags(**values):
    return [word for key, value in values.items() for word in (f"--{key.replace('_', '-')}", value)]


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


def phase_ms(result, phase):
    return sum(op["ms"] for op in result["ops"] if op["phase"] == phase)


def op_ms(result, prefix):
    return sum(op["ms"] for op in result["ops"] if op["op"].startswith(prefix))


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


@dataclasses.dataclass
class Optimizer:
    """A kind of src/optim/catalog.inc, and what torch.optim has of it."""
    kind: str
    formula: str | None = None  # that optimizer_bench runs: the kind's own name; "" where it is of tensors
    torch: str | None = None  # its class
    options: dict = dataclasses.field(default_factory=dict)  # of both
    is_fused: bool = False  # the class has a fused form on the CPU, else foreach
    own: dict = dataclasses.field(default_factory=dict)  # ours alone: what torch's class computes by itself


OPTIMIZERS = (
    Optimizer("sgd", torch="SGD", is_fused=True),
    Optimizer("momentum", torch="SGD", options={"momentum": 0.9}, is_fused=True),
    Optimizer("adam", torch="Adam", is_fused=True), Optimizer("adamw", torch="AdamW", is_fused=True),
    Optimizer("adagrad", torch="Adagrad", is_fused=True), Optimizer("adamax", torch="Adamax"),
    Optimizer("nadam", torch="NAdam"), Optimizer("radam", torch="RAdam"),
    Optimizer("adadelta", torch="Adadelta"), Optimizer("rmsprop", torch="RMSprop"),
    Optimizer("rprop", torch="Rprop"), Optimizer("adafactor", "", "Adafactor"),
    Optimizer("muon", "", "Muon", own={"bf16_products": "true"}), Optimizer("lion"), Optimizer("lamb"),
    Optimizer("lars"), Optimizer("bert_adam"), Optimizer("novograd", ""), Optimizer("adamp", ""))


def own_update_ms(result):
    """The update alone, without the check and the norm before it."""
    return phase_ms(result, "update") - op_ms(result, "grad_stats")


def optimizer_row(o):
    """The update alone beside torch.optim's step alone, the whole end of a step beside what does the same
    in torch, and the share of the rate at which memory is streamed."""
    chosen = flags(**{"set": f"optimizer.kind={o.kind}"})
    for key, value in {**o.options, **o.own}.items():
        chosen += flags(**{"set": f"optimizer.{key}={value}"})
    sweeps = o.formula != ""
    programs = [ours(*flags(batch=1, seq=64), *chosen, steps=6, limit=not sweeps)]
    figures = []
    if sweeps:
        programs.append(Program("sweep", [ROOT / "build/bin/optimizer_bench", 5, o.formula or o.kind, "fp32"]))
    if o.torch:
        peer = ["python", "tools/peers/optimizer.py", "--kind", o.torch, "--options", json.dumps(o.options),
                "--json"] + (["--fused"] if o.is_fused else [])
        programs += [Program("torch", peer), Program("torch, whole", [*peer, "--whole"])]
        own = (lambda r: r["sweep"]["step_ms"]) if sweeps else (lambda r: own_update_ms(r["aloft"]))
        figures += [
            Figure("speed of the update alone, times torch.optim's step alone", "x",
                   lambda r: r["torch"]["step_ms"] / own(r), at_least(1), at_least(1)),
            Figure("speed of check, norm, clip and update, times the same in torch", "x",
                   lambda r: r["torch, whole"]["step_ms"] / phase_ms(r["aloft"], "update"),
                   at_least(1), at_least(1))]
    if sweeps:
        figures.append(Figure("share of the stream rate", "%", lambda r: 100 * r["sweep"]["share"],
                              at_least(85), at_least(85)))
    elif o.kind == "muon":
        figures.append(Figure("products, nearly all Muon's, share of their speed alone in the library", "%",
                              lambda r: 100 * r["aloft"]["matmul_limit_ms"] / r["aloft"]["matmul_ms"],
                              at_least(80), at_least(80)))
    else:
        figures.append(Figure("share of the stream rate", "%", lambda r: 100 * stream_share(r["aloft"])))
    beside = f"{o.torch}, beside torch.optim's {'fused' if o.is_fused else 'foreach'} form" if o.torch else (
        "which torch.optim does not have")
    return Row(f"optimizer-{o.kind}", f"{o.kind} on GPT-2 124M, fp32: {beside}", programs, figures)


def stream_share(result):
    """Of the bytes that an update cannot avoid, which passes over tensors read more often."""
    return result["update_bytes"] / own_update_ms(result) / 1e6 / result["stream_gb_s"]


# How an 8-bit state is kept is work beside the bytes: its share is reported, and has no target.
STATE_FORMS = {"bf16-states": "bf16", "8bit-states": "8 bits"}


def state_rows():
    sweeps = {form: Program(form, [ROOT / "build/bin/optimizer_bench", 5, "adamw", form])
              for form in ("fp32", *STATE_FORMS)}
    figures = []
    for form, words in STATE_FORMS.items():
        figures += [Figure(f"states in {words}: share of the stream rate", "%",
                           lambda r, form=form: 100 * r[form]["share"],
                           *((at_least(85), at_least(85)) if form == "bf16-states" else ())),
                    Figure(f"states in {words}: speed, times f32 states' of f32 weights", "x",
                           lambda r, form=form: r["fp32"]["step_ms"] / r[form]["step_ms"],
                           at_least(1), at_least(1))]
    yield Row("optimizer-states", "AdamW's states in fewer bits, bf16 weights with f32 masters",
              list(sweeps.values()), figures)


def optimizer_rows():
    return [*map(optimizer_row, OPTIMIZERS), *state_rows()]


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
            *encoder_rows()]
