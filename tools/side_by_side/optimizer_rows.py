"""The rows of optimizers: one a kind, beside torch.optim's, and the formats of states."""
import dataclasses
import json

from programs import ROOT, Program
from row import Figure, Row, at_least, flags, op_ms, ours, phase_ms

BENCH = "build/bin/optimizer_bench"
SHARE = "share of a stream over the same arrays that computes nothing"
MOST = 105  # %: a sweep reaches no more of it, but for what two moments differ in


@dataclasses.dataclass
class Optimizer:
    """A kind of src/optim/catalog.inc, and what torch.optim has of it."""
    kind: str
    is_sweep: bool = True  # over elements, which optimizer_bench runs; else of tensors, as ops
    torch: str | None = None  # its class
    options: dict = dataclasses.field(default_factory=dict)  # of both
    is_fused: bool = False  # the class has a fused form on the CPU, else foreach
    own: dict = dataclasses.field(default_factory=dict)  # ours alone: what torch's class computes by itself
    name: str = ""  # of the row, where a kind has more than one
    types: str = "fp32"  # what is computed in which
    is_like_torch: bool = True  # else the peer computes in lower precision: a figure without a target


OPTIMIZERS = (
    Optimizer("sgd", torch="SGD", is_fused=True),
    Optimizer("momentum", torch="SGD", options={"momentum": 0.9}, is_fused=True),
    Optimizer("adam", torch="Adam", is_fused=True), Optimizer("adamw", torch="AdamW", is_fused=True),
    Optimizer("adagrad", torch="Adagrad", is_fused=True), Optimizer("adamax", torch="Adamax"),
    Optimizer("nadam", torch="NAdam"), Optimizer("radam", torch="RAdam"),
    Optimizer("adadelta", torch="Adadelta"), Optimizer("rmsprop", torch="RMSprop"),
    Optimizer("rprop", torch="Rprop"), Optimizer("adafactor", False, "Adafactor"),
    Optimizer("muon", False, "Muon", own={"bf16_products": "true"},
              types="fp32 with products in bf16, as torch has them"),
    Optimizer("muon", False, "Muon", name="muon-fp32", types="fp32 with products in fp32, which torch has in bf16",
              is_like_torch=False),
    Optimizer("lion"), Optimizer("lamb"), Optimizer("lars"), Optimizer("bert_adam"),
    Optimizer("novograd", False), Optimizer("adamp", False))


def own_update_ms(result):
    """The update alone, without the check and the norm before it."""
    return phase_ms(result, "update") - op_ms(result, "grad_stats")


def peer_of(o, *options):
    """The step of torch.optim's class."""
    form = ["--fused"] if o.is_fused else []
    return ["python", "tools/peers/optimizer.py", "--kind", o.torch, "--options", json.dumps(o.options),
            "--json", *form, *options]


def optimizer_row(o):
    """The update alone beside torch.optim's step alone, the whole end of a step beside what does the same
    in torch, and the share of what memory alone would take. Sweeps and torch's steps take turns within one
    program: memory is faster in one minute than in the next."""
    chosen = flags(**{"set": f"optimizer.kind={o.kind}"})
    for key, value in {**o.options, **o.own}.items():
        chosen += flags(**{"set": f"optimizer.{key}={value}"})
    programs = [ours(*flags(batch=1, seq=64), *chosen, steps=6, limit=not o.is_sweep)]
    figures = []
    if o.torch:
        alone = Program("turns", peer_of(o, "--beside", BENCH, "--formula", o.kind)) if o.is_sweep else (
            Program("torch", peer_of(o)))
        programs += [alone, Program("torch, whole", peer_of(o, "--whole"))]
        figures += against_torch(o)
    elif o.is_sweep:
        programs.append(Program("turns", [ROOT / BENCH, 5, o.kind, "fp32"]))
    if o.is_sweep:
        figures.append(Figure(SHARE, "%", lambda r: 100 * r["turns"]["share"], at_least(85), at_least(85), most=MOST))
    elif o.kind == "muon":
        figures.append(Figure("products, nearly all Muon's, share of their speed alone in the library", "%",
                              lambda r: 100 * r["aloft"]["matmul_limit_ms"] / r["aloft"]["matmul_ms"],
                              at_least(80), at_least(80)))
    else:
        figures.append(Figure("share of the stream rate", "%", lambda r: 100 * stream_share(r["aloft"])))
    if o.torch and o.is_sweep:
        figures.append(Figure(f"the same share of torch.optim's {form_of(o)} step", "%",
                              lambda r: 100 * r["turns"]["peer_share"]))
    beside = f"{o.torch}, beside torch.optim's {form_of(o)} form" if o.torch else "which torch.optim does not have"
    return Row(f"optimizer-{o.name or o.kind}", f"{o.kind} on GPT-2 124M, {o.types}: {beside}", programs, figures)


def form_of(o):
    return "fused" if o.is_fused else "foreach"


def against_torch(o):
    target = at_least(1) if o.is_like_torch else None
    yield Figure("speed of the update alone, times torch.optim's step alone", "x",
                 (lambda r: r["turns"]["ratio"]) if o.is_sweep else
                 (lambda r: r["torch"]["step_ms"] / own_update_ms(r["aloft"])), target, target)
    yield Figure("speed of check, norm, clip and update, times the same in torch", "x",
                 lambda r: r["torch, whole"]["step_ms"] / phase_ms(r["aloft"], "update"), target, target)


def stream_share(result):
    """Of the bytes that an update cannot avoid, which passes over tensors read more often."""
    rate = max(result["stream_gb_s"], result["update_sweep_gb_s"])
    return result["update_bytes"] / own_update_ms(result) / 1e6 / rate


# How an 8-bit state is kept is work beside the bytes: its share is reported, and has no target.
STATE_FORMS = {"bf16-states": "bf16", "8bit-states": "8 bits"}


def state_rows():
    sweeps = {form: Program(form, [ROOT / BENCH, 5, "adamw", form])
              for form in ("fp32", *STATE_FORMS)}
    figures = []
    for form, words in STATE_FORMS.items():
        figures += [Figure(f"states in {words}: {SHARE}", "%",
                           lambda r, form=form: 100 * r[form]["share"],
                           *((at_least(85), at_least(85)) if form == "bf16-states" else ()), most=MOST),
                    Figure(f"states in {words}: speed, times f32 states' of f32 weights", "x",
                           lambda r, form=form: r["fp32"]["step_ms"] / r[form]["step_ms"],
                           at_least(1), at_least(1))]
    yield Row("optimizer-states", "AdamW's states in fewer bits, bf16 weights with f32 masters",
              list(sweeps.values()), figures)


def optimizer_rows():
    return [*map(optimizer_row, OPTIMIZERS), *state_rows()]
