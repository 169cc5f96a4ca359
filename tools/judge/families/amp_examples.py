"""The loops of PyTorch's page "Automatic Mixed Precision examples", step by step, on a network of two layers: torch's
scales, the losses and weights that float64 has where the same steps are taken, and how far from them torch's are."""
import contextlib
import functools
import math

import torch
import torch.nn.functional as F

IN, HIDDEN, OUT, ROWS = 3, 4, 2, 8
MOST_NORM, MICRO_BATCHES = 0.5, 2


class Product(torch.autograd.Function):
    """A product with a backward pass of its own, in the types of the region that it is called in."""

    @staticmethod
    @functools.partial(torch.amp.custom_fwd, device_type="cpu")
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a.mm(b)

    @staticmethod
    @functools.partial(torch.amp.custom_bwd, device_type="cpu")
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad.mm(b.t()), a.t().mm(grad)


class Rounded(torch.autograd.Function):
    """Eighths, in float32 wherever it is called, whose gradient passes as if nothing were rounded, doubled."""

    @staticmethod
    @functools.partial(torch.amp.custom_fwd, device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx, x):
        assert x.dtype != torch.float16
        return (x * 8).round() / 8

    @staticmethod
    @functools.partial(torch.amp.custom_bwd, device_type="cpu")
    def backward(ctx, grad):
        return grad * 2


def numbers(rows, columns, seed):
    """Multiples of 1/128 from -1 to 1, which every type holds."""
    draw = torch.Generator().manual_seed(seed)
    return torch.randint(-128, 129, (rows, columns), generator=draw) / 128


class Net(torch.nn.Module):
    def __init__(self, seed, own):
        super().__init__()
        self.own = own
        self.up, self.down = torch.nn.Linear(IN, HIDDEN), torch.nn.Linear(HIDDEN, OUT)
        for i, p in enumerate(self.parameters()):
            rows, columns = p.shape if p.dim() == 2 else (1, p.shape[0])
            p.data = numbers(rows, columns, 100 * seed + i).reshape(p.shape)

    def forward(self, x):
        if not self.own:
            return self.down(torch.tanh(self.up(x)))
        h = Product.apply(x, self.up.weight.t()) + self.up.bias
        return self.down(Rounded.apply(torch.tanh(h)))


class Run:
    """What a loop of the page has around it; in float64 nothing is cast, nothing scaled, and the steps in `skipped`
    are left out."""

    def __init__(self, case, dtype, skipped=None):
        self.case, self.skipped, self.weights = case, skipped, []
        self.wide = torch.float64 if skipped is not None else torch.float32
        self.nets = [Net(k, case["loop"] == "own_functions").to(self.wide) for k in range(case["models"])]
        self.optimizers = [torch.optim.SGD(net.parameters(), lr=case["rate"]) for net in self.nets]
        scaled = skipped is None and case["scaler"] is not None
        self.scaler = torch.amp.GradScaler("cpu", **(case["scaler"] or {}), enabled=scaled)
        low = getattr(torch, dtype) if dtype and skipped is None else None
        self.autocast = lambda: torch.autocast("cpu", dtype=low) if low else contextlib.nullcontext()

    def step(self, i, optimizer):
        if self.skipped is not None and i in self.skipped:
            optimizer.zero_grad()
        else:
            self.scaler.step(optimizer)

    def finish(self):
        if self.scaler.is_enabled():
            self.scaler.update()


def loss_of(run, net, x, y):
    with run.autocast():
        return F.mse_loss(net(x), y)


def typical(run, i, x, y):
    optimizer, = run.optimizers
    optimizer.zero_grad()
    loss = loss_of(run, run.nets[0], x, y)
    run.scaler.scale(loss).backward()
    run.step(i, optimizer)
    run.finish()
    return [loss]


def clipping(run, i, x, y):
    optimizer, = run.optimizers
    optimizer.zero_grad()
    loss = loss_of(run, run.nets[0], x, y)
    run.scaler.scale(loss).backward()
    run.scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(run.nets[0].parameters(), MOST_NORM)
    run.step(i, optimizer)
    run.finish()
    return [loss]


def accumulation(run, i, x, y):
    optimizer, = run.optimizers
    loss = loss_of(run, run.nets[0], x, y) / MICRO_BATCHES
    run.scaler.scale(loss).backward()
    if (i + 1) % MICRO_BATCHES == 0:
        run.step(i, optimizer)
        run.finish()
        optimizer.zero_grad()
    return [loss]


def gradient_penalty(run, i, x, y):
    net, (optimizer,) = run.nets[0], run.optimizers
    optimizer.zero_grad()
    loss = loss_of(run, net, x, y)
    scaled = torch.autograd.grad(run.scaler.scale(loss), list(net.parameters()), create_graph=True)
    gradients = [g * (1 / run.scaler.get_scale()) for g in scaled]
    with run.autocast():
        norm = sum(g.pow(2).sum() for g in gradients).sqrt()
        loss = loss + norm
    run.scaler.scale(loss).backward()
    run.step(i, optimizer)
    run.finish()
    return [loss]


def several(run, i, x, y):
    for optimizer in run.optimizers:
        optimizer.zero_grad()
    with run.autocast():
        out0, out1 = (net(x) for net in run.nets)
        loss0 = F.mse_loss(2 * out0 + 3 * out1, y)
        loss1 = F.mse_loss(3 * out0 - 5 * out1, y)
    run.scaler.scale(loss0).backward(retain_graph=True)
    run.scaler.scale(loss1).backward()
    run.scaler.unscale_(run.optimizers[0])
    for optimizer in run.optimizers:
        run.step(i, optimizer)
    run.finish()
    return [loss0, loss1]


LOOPS = {"typical": typical, "clipping": clipping, "accumulation": accumulation, "gradient_penalty": gradient_penalty,
         "several": several, "own_functions": typical}


def weights_of(run):
    return [float(f"{v:.9g}") for net in run.nets for p in net.parameters() for v in p.detach().flatten().tolist()]


def error(values, exact):
    """The largest difference over the largest magnitude; none of values that are not finite."""
    if not all(map(math.isfinite, values)):
        return None
    return float(f"{max(abs(v - e) for v, e in zip(values, exact)) / max(map(abs, exact)):.3g}")


def course(case, dtype, skipped=None):
    run = Run(case, dtype, skipped)
    loop, out = LOOPS[case["loop"]], []
    for i in range(case["steps"]):
        before = weights_of(run)
        x, y = (numbers(ROWS, n, 1000 + 2 * i + k).to(run.wide) for k, n in enumerate((IN, OUT)))
        losses = [float(f"{loss.item():.9g}") for loss in loop(run, i, x, y)]
        after = weights_of(run)
        out.append({"losses": losses, "scale": run.scaler.get_scale(), "weights": after, "moved": after != before})
    return out


def build():
    # The first scale overflows fp16 far beyond doubt, the second is far from it.
    falls = {"init_scale": 2.0 ** 22, "backoff_factor": 2.0 ** -14, "growth_interval": 3}
    grows = {"init_scale": 1024.0, "growth_interval": 2}
    cases = []
    for loop in LOOPS:
        for dtype, scaler in ((None, None), (None, grows), ("bfloat16", None), ("float16", falls)):
            case = {"name": f"{loop}_{dtype or 'float32'}{'_scaled' if scaler else ''}", "loop": loop, "dtype": dtype,
                    "scaler": scaler, "models": 2 if loop == "several" else 1, "steps": 6,
                    "rate": 1 / 128 if loop == "several" else 1 / 8}
            out = course(case, dtype)
            skipped = [i for i, step in enumerate(out) if not step["moved"]]
            wide = course(case, dtype, skipped)
            for step, exact in zip(out, wide):
                assert step["moved"] == exact["moved"]
                for what in ("losses", "weights"):
                    step[f"torch_{what}_error"] = error(step[what], exact[what])
                    step[what] = exact[what]
            cases.append({**case, "out": out})
    assert any(not step["moved"] for c in cases if c["loop"] != "accumulation" for step in c["out"])
    batches = [{"x": numbers(ROWS, IN, 1000 + 2 * i).flatten().tolist(),
                "y": numbers(ROWS, OUT, 1001 + 2 * i).flatten().tolist()} for i in range(6)]
    starts = [[v for p in Net(k, False).parameters() for v in p.detach().flatten().tolist()] for k in range(2)]
    return {"amp_examples.json": {"batches": batches, "starts": starts, "most_norm": MOST_NORM,
                                  "micro_batches": MICRO_BATCHES, "cases": cases}}
