"""Several losses with a loss scale each, one or two optimizers, in apex's loops: scales, counts and weights step by
step, by what apex's source defines (NVIDIA/apex: apex/amp/scaler.py, handle.py, _process_optimizer.py). No package that
can be installed has it. Numbers are such that fp32 holds all of them exactly."""
import math
import random

RATE = 0.125


class Scaler:
    """apex's LossScaler, with the numbers that its fork for Ascend lets a program choose."""

    def __init__(self, options):
        self.dynamic = options["loss_scale"] == "dynamic"
        self.most = options.get("max_loss_scale", 2.0 ** 24)
        self.least = options.get("min_loss_scale")
        self.window = options.get("scale_window", 2000)
        self.growth = options.get("scale_growth_factor", 2.0)
        self.backoff = options.get("scale_backoff_factor", 0.5)
        init = min(self.most, options.get("dynamic_init_scale", 2.0 ** 16))
        self.scale, self.unskipped = init if self.dynamic else options["loss_scale"], 0

    def update(self, overflow):
        if overflow:
            self.scale = max(self.least or 0.0, self.scale * self.backoff)
            self.unskipped = 0
        else:
            self.unskipped += 1
        if self.unskipped == self.window:
            self.scale, self.unskipped = min(self.most, self.scale * self.growth), 0


def run(case):
    """`steps`: blocks of scale_loss, each with its loss and the gradients that the loss has for the weight of each
    optimizer (None: it is none of the block's); then every optimizer that had a block takes its step."""
    scalers = [Scaler(case["options"]) for _ in range(case["options"]["num_losses"])]
    weights = [[1.0, -2.0] for _ in range(2)]
    out = []
    for blocks in case["steps"]:
        scaled, divided, skip, used = ([[0.0, 0.0] for _ in range(2)], [[0.0, 0.0] for _ in range(2)],
                                       [False, False], [False, False])
        for block in blocks:
            scaler = scalers[block["loss_id"]]
            mine = [k for k in range(2) if block["gradients"][k] is not None]
            for k in mine:
                used[k] = True
                for i in range(2):
                    scaled[k][i] += float(block["gradients"][k][i]) * scaler.scale
            if block.get("delay_unscale"):
                continue
            overflow = any(not math.isfinite(x) for k in mine for x in scaled[k])
            for k in mine:
                skip[k] = skip[k] or overflow
                for i in range(2):
                    divided[k][i] += scaled[k][i] / scaler.scale
                scaled[k] = [0.0, 0.0]
            scaler.update(overflow)
        for k in range(2):
            if used[k] and not skip[k]:
                weights[k] = [w - RATE * g for w, g in zip(weights[k], divided[k])]
        out.append({"scales": [s.scale for s in scalers], "unskipped": [s.unskipped for s in scalers],
                    "a": weights[0], "b": weights[1]})
    return out


def drawn(seed, steps, losses, share, kinds):
    """Steps of some blocks, of which a share overflows."""
    rng = random.Random(seed)
    numbers = ["0.5", "-0.25", "1", "0.125", "-0.5", "0.75"]

    def gradient():
        bad = rng.random() < share
        return [rng.choice(["inf", "nan", "-inf"]) if bad else rng.choice(numbers), rng.choice(numbers)]

    def block():
        both = [gradient(), gradient()]
        kind = rng.choice(kinds)
        if kind == "a":
            both[1] = None
        if kind == "b":
            both[0] = None
        return {"loss_id": rng.randrange(losses), "gradients": both}

    out = []
    for _ in range(steps):
        blocks = [block() for _ in range(rng.choice([1, 2, 3]))]
        for k in range(2):  # each optimizer takes a step
            if all(b["gradients"][k] is None for b in blocks):
                blocks[0]["gradients"][k] = gradient()
        out.append(blocks)
    return out


def delayed(seed, steps):
    """Two backward() by one scale before a block divides both; gradients of another loss beside them."""
    out = []
    for blocks in drawn(seed, steps, 1, 0.15, ["both"]):
        first, other = blocks[0], {**blocks[-1], "loss_id": 1}
        out.append([other, {**first, "delay_unscale": True}, {**first}])
    return out


def build():
    dynamic = {"loss_scale": "dynamic"}
    cases = [
        {"name": "one_scale", "options": {**dynamic, "num_losses": 1, "scale_window": 3},
         "steps": drawn(1, 30, 1, 0.1, ["both"])},
        {"name": "three_losses", "options": {**dynamic, "num_losses": 3, "scale_window": 4},
         "steps": drawn(2, 40, 3, 0.15, ["a", "b", "both"])},
        {"name": "bounded", "options": {**dynamic, "num_losses": 2, "scale_window": 2, "dynamic_init_scale": 64.0,
                                        "min_loss_scale": 16.0, "max_loss_scale": 128.0},
         "steps": drawn(3, 40, 2, 0.25, ["a", "both"])},
        {"name": "of_the_fork", "options": {**dynamic, "num_losses": 2, "scale_window": 2, "dynamic_init_scale": 256.0,
                                            "scale_growth_factor": 4.0, "scale_backoff_factor": 0.125},
         "steps": drawn(4, 30, 2, 0.15, ["both"])},
        {"name": "delayed", "options": {**dynamic, "num_losses": 2, "scale_window": 5}, "steps": delayed(5, 20)},
        {"name": "fixed", "options": {"loss_scale": 128.0, "num_losses": 2}, "steps": drawn(6, 10, 2, 0.0, ["both"])},
    ]
    for case in cases:
        case["out"] = run(case)
    return {"apex_losses.json": {"cases": cases}}
