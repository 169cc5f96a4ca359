"""Some training steps of a GPT-2 in plain PyTorch, as a person writes the loop who ports a run: what can be got wrong
is a method or an attribute of its own. dump_training.cpp makes the same steps here."""
import math
import sys
from pathlib import Path

import torch

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "python/aloft_probe")]
from aloft_probe import Probe  # noqa: E402

ROWS, LENGTH, VOCAB = 4, 24, 96


def made_up(batch):
    """(tokens, targets) of a batch, i64[ROWS, LENGTH] each: the numbers of dump_training.cpp."""
    at, row = torch.arange(LENGTH + 1), torch.arange(ROWS)[:, None]
    tokens = (31 * batch + 17 * row + 7 * at * at + 3 * at * row + 5 * at) % VOCAB
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


class Training:
    """A run; `scaled`: with a loss scale that grows every second step."""

    STEPS, MICRO_BATCHES = 3, 2
    RATE, WARMUP, TOTAL = 1e-3, 2, 8

    def __init__(self, model, scaled=False):
        self.model = model
        self.betas, self.eps, self.decay, self.clip_norm = (0.9, 0.999), 1e-8, 0.1, 1.0
        self.options = {}  # of AdamW
        self.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2) if scaled else None

    def decays(self, name, parameter):
        return parameter.dim() > 1

    def groups(self):
        named = list(self.model.named_parameters())
        return [{"params": [p for n, p in named if self.decays(n, p)], "weight_decay": self.decay},
                {"params": [p for n, p in named if not self.decays(n, p)], "weight_decay": 0.0}]

    def make_optimizer(self):
        return torch.optim.AdamW(self.groups(), lr=self.RATE, betas=self.betas, eps=self.eps, **self.options)

    def factor(self, update):
        """On the rate of this update: a linear warm-up, then half a cosine down to a tenth."""
        if update < self.WARMUP:
            return (update + 1) / self.WARMUP
        share = (update - self.WARMUP) / (self.TOTAL - self.WARMUP)
        return 0.1 + 0.9 * (1 + math.cos(math.pi * min(share, 1))) / 2

    def batch(self, number):
        return made_up(number)

    def loss(self, tokens, targets):
        return self.model.loss(tokens, targets)

    def backward(self, loss):
        loss = loss / self.MICRO_BATCHES
        (self.scaler.scale(loss) if self.scaler else loss).backward()

    def between(self, part):
        """Behind a micro-batch."""

    def clip(self):
        if self.scaler:
            self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm)

    def update(self):
        if not self.scaler:
            return self.optimizer.step()
        self.scaler.step(self.optimizer)
        self.update_scale()

    def update_scale(self):
        self.scaler.update()

    def run(self, out):
        self.optimizer = self.make_optimizer()
        schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self.factor)
        probe = Probe(self.model, out, optimizer=self.optimizer, scaler=self.scaler)
        number = 0
        for _ in range(self.STEPS):
            with probe.step():
                for part in range(self.MICRO_BATCHES):
                    self.backward(probe.loss(self.loss(*self.batch(number))))
                    self.between(part)
                    number += 1
                self.clip()
                self.update()
            schedule.step()
            self.optimizer.zero_grad()
