#!/usr/bin/env python3
"""probe_smallest.py ALOFT [--elements] [--models mlp,gpt] [--json FILE]: how small a mistake `aloft probe compare` names.
A network of linear layers and a GPT-2, as drawn and trained to losses of 0.01 and 0.001, are dumped by
`aloft_probe` with what one module gives, or the gradient that flows back through it, multiplied by 1 + d, and held
against the same in float32 without the mistake: in float32 by other arithmetic, in bfloat16, and under autocast. Prints
for each the smallest d that is named at its module, how far rounding alone is off there, and how many of the right
programs are called wrong.

Run by a Python that has torch. Exit status 1 where a right program is called wrong.
"""
import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python/aloft_probe"), str(ROOT / "tests/planted")]
from aloft_probe import Probe  # noqa: E402
from model import Gpt2, Projection  # noqa: E402

SIZES = (1.0, 3e-1, 1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
LOSSES = (None, 0.01, 0.001)  # None: as drawn
GPT = {"n_embd": 48, "vocab_size": 64, "n_positions": 24, "n_head": 4, "n_layer": 4, "layer_norm_epsilon": 1e-5}


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(part for _ in range(5) for part in (nn.Linear(64, 64), nn.GELU("tanh"))))
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.layers(x))

    def loss(self, x, targets):
        return F.cross_entropy(self(x).float(), targets)


PLACES = {"mlp": "layers.4", "gpt": "transformer.h.1.mlp.c_proj"}  # where the mistakes lie


def made(name):
    """(model, data), drawn from a seed."""
    torch.manual_seed(3)
    if name == "mlp":
        return Mlp(), (torch.randn(64, 64), torch.randint(10, (64,)))
    model = Gpt2(GPT)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.1)
    for part in model.modules():
        if isinstance(part, Projection):
            nn.init.zeros_(part.bias)
    tokens = torch.randint(64, (2, 25))
    return model, (tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())


def trained(model, data, loss):
    """Until its loss is no more than that."""
    if loss is None:
        return
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(3000):
        now = model.loss(*data)
        if now.item() <= loss:
            return
        optimizer.zero_grad()
        now.backward()
        optimizer.step()
    raise RuntimeError(f"the loss stays at {now.item()}, not {loss}")


# Other arithmetic for the same: sums in another order, formulas written out.
def linear(module, x):
    return x.flip(-1) @ module.weight.flip(-1).t() + module.bias if module.bias is not None else \
        x.flip(-1) @ module.weight.flip(-1).t()


def projection(module, x):
    return x.flip(-1) @ module.weight.flip(0) + module.bias


def gelu(module, x):
    return x * torch.sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))


def norm(module, x):
    middle = x - x.mean(-1, keepdim=True)
    return middle / torch.sqrt((middle * middle).mean(-1, keepdim=True) + module.eps) * module.weight + module.bias


def fused(module, x):
    batch, length, dim = x.shape
    q, k, v = (part.view(batch, length, module.heads, -1).transpose(1, 2) for part in module.c_attn(x).split(dim, 2))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=module.scale)
    return module.c_proj(out.transpose(1, 2).reshape(batch, length, dim))


def written_out(model):
    for module in model.modules():
        for kind, forward in ((nn.Linear, linear), (Projection, projection), (nn.GELU, gelu), (nn.LayerNorm, norm)):
            if isinstance(module, kind):
                module.forward = forward.__get__(module)


def with_fused_attention(model):
    for module in model.modules():
        if hasattr(module, "diagonal"):
            module.forward = fused.__get__(module)


class OnTheWayBack(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return (gradient.double() * ctx.factor).to(gradient.dtype), None


def plant(model, place, direction, d):
    module = model.get_submodule(place)
    right = module.forward

    def wrong(x):
        y = right(x)
        if direction == "backward":
            return OnTheWayBack.apply(y, 1 + d)
        return (y.double() * (1 + d)).to(y.dtype)
    module.forward = wrong


# How a program may be right: (type of the model, type under autocast, changes).
RIGHT = {"float32, other arithmetic": (None, None, written_out), "float32, one kernel of attention":
         (None, None, with_fused_attention), "float64": (torch.float64, None, None),
         "bfloat16": (torch.bfloat16, None, None), "bfloat16, other arithmetic": (torch.bfloat16, None, written_out),
         "bfloat16, one kernel of attention": (torch.bfloat16, None, with_fused_attention),
         "autocast to bfloat16": (None, torch.bfloat16, None), "autocast to float16": (None, torch.float16, None)}
HELD = ("float32, other arithmetic", "bfloat16", "autocast to bfloat16")  # with mistakes, too


def dumped(out, name, weights, data, form=(None, None, None), mistake=None, task="statistics"):
    dtype, low, change = form
    model, _ = made(name)
    model.load_state_dict(weights)
    if any(out.rglob("dump.json")):
        return out  # of an earlier run
    if change:
        change(model)
    if mistake:
        plant(model, *mistake)
    if dtype:
        model.to(dtype)
        data = tuple(part.to(dtype) if part.is_floating_point() else part for part in data)
    probe = Probe(model, out, task=task)
    with probe.step():
        with torch.autocast("cpu", low) if low else contextlib.nullcontext():
            loss = probe.loss(model.loss(*data))
        loss.backward()
    probe.remove()
    return out


def compared(aloft, npu, bench, out):
    """What compare_result.json says."""
    done = subprocess.run([aloft, "probe", "compare", npu, bench, "-o", out], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(next(out.glob("compare_result*.json")).read_text())


def noise_of(said, place, direction):
    """The largest difference of what the module gives in that direction, and the limit there."""
    rows = [row for row in said["compared"] if f".{place}." in row["call"] and f".{direction}." in row["call"]
            and ".output." in row["npu"]["name"]]
    return max((row["difference"] for row in rows), default=0.0), max((row["allowed"] for row in rows), default=0.0)


def tell(row):
    named = "-" if row["named"] is None else f"{row['named']:.0e}"
    print(f"{row['model']:5} {row['loss']:8.2g}  {row['run']:27} {row['pass']:9} {row['module']:30} {named:>10} "
          f"{row['noise']:9.1e} {row['limit']:9.1e}", flush=True)


def measured(aloft, folder, name, loss, task):
    """Rows of a table, and sentences about right programs that are called wrong."""
    model, data = made(name)
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "weights").exists():
        trained(model, data, loss)
        torch.save(model.state_dict(), folder / "weights")
    model.load_state_dict(torch.load(folder / "weights"))
    weights, real = model.state_dict(), model.loss(*data).item()
    bench = dumped(folder / "bench", name, weights, data, task=task)
    rows, alarms, variants = [], [], 0
    for kind, form in RIGHT.items():
        if form[2] is with_fused_attention and name != "gpt":
            continue
        said = compared(aloft, dumped(folder / f"right {kind}", name, weights, data, form, task=task), bench,
                        folder / "said")
        variants += 1
        if said["divergence"]:
            alarms.append(f"{name}, loss {real:.2g}, {kind}: {said['sentence']}")
        if kind not in HELD:
            continue
        for direction in ("forward", "backward"):
            place = PLACES[name]
            met, allowed = noise_of(said, place, direction)
            named = None
            for d in SIZES:  # from the largest on
                at = dumped(folder / f"{kind} {direction} {place} {d}", name, weights, data, form,
                            (place, direction, d), task)
                found = compared(aloft, at, bench, folder / "said")["divergence"]
                if not found or found["module"] != place:
                    break
                named = d
            rows.append({"model": name, "loss": real, "run": kind, "pass": direction, "module": place,
                         "named": named, "noise": met, "limit": allowed})
            tell(rows[-1])
    return rows, alarms, variants


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("aloft", type=Path)
    parser.add_argument("--elements", action="store_true", help="dumps of whole tensors")
    parser.add_argument("--models", default="mlp,gpt")
    parser.add_argument("--keep", type=Path, help="a folder for the dumps; what lies there is not made again")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'model':5} {'loss':>8}  {'run':27} {'pass':9} {'module':30} {'named from':>10} {'noise':>9} "
          f"{'limit':>9}")
    rows, alarms, variants = [], [], 0
    for name in args.models.split(","):
        for loss in LOSSES:
            task = "tensor" if args.elements else "statistics"
            with tempfile.TemporaryDirectory() as folder:
                at = Path(args.keep or folder) / f"{name} {loss} {task}"
                new = measured(args.aloft.resolve(), at, name, loss, task)
            rows, alarms, variants = rows + new[0], alarms + new[1], variants + new[2]
    print(*alarms, f"{variants} right programs: {len(alarms)} false alarms", sep="\n")
    if args.json:
        args.json.write_text(json.dumps({"rows": rows, "alarms": alarms, "variants": variants}, indent=1))
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
