"""What rows of the comparison are made of: programs, figures, targets.

A figure is a function of one round, {program's name: its JSON}. Two targets where they differ: on
processors with AMX and on those without. Ratios of speed are the peer's step over ours, against the
fastest way to run PyTorch in the same round: eager or compiled, images in either layout.
"""
import dataclasses
import typing

from programs import Program

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
    folders: list = dataclasses.field(default_factory=list)  # of random_folder.make, which its programs read


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


def phase_ms(result, phase):
    return sum(op["ms"] for op in result["ops"] if op["phase"] == phase)


def op_ms(result, prefix):
    return sum(op["ms"] for op in result["ops"] if op["op"].startswith(prefix))
