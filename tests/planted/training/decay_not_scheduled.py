"""Weights decay by the peak of the learning rate and not by the rate of the step."""
import torch

PLACE, STEP = "update", 0
LINE = "tables"


class AdamW(torch.optim.AdamW):
    @torch.no_grad()
    def step(self):
        decays = [group["weight_decay"] for group in self.param_groups]
        for group, decay in zip(self.param_groups, decays):
            for parameter in group["params"]:
                parameter.mul_(1 - group["initial_lr"] * decay)
            group["weight_decay"] = 0.0
        super().step()
        for group, decay in zip(self.param_groups, decays):
            group["weight_decay"] = decay


def plant(run):
    run.make_optimizer = lambda: AdamW(run.groups(), lr=run.RATE, betas=run.betas, eps=run.eps)
