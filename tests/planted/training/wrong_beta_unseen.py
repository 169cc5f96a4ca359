"""The first moment's decay is another in the arithmetic, and not in the settings: it shows from the second update on,
since the first one's correction hides it."""
import torch

PLACE, STEP = "update", 1
LINE = "tables"


class Own(torch.optim.AdamW):
    def step(self, closure=None):
        for group in self.param_groups:
            group["betas"] = (0.5, 0.999)
        super().step(closure)
        for group in self.param_groups:
            group["betas"] = (0.9, 0.999)


Own.__name__ = "AdamW"


def plant(run):
    run.make_optimizer = lambda: Own(run.groups(), lr=run.RATE, betas=run.betas, eps=run.eps)
