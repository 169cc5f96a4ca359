"""The decay goes through the moments: Adam, and not AdamW."""
import torch

PLACE, STEP = "optimizer", 0


def plant(run):
    run.make_optimizer = lambda: torch.optim.Adam(run.groups(), lr=run.RATE, betas=run.betas, eps=run.eps)
