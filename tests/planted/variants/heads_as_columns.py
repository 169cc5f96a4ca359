"""Weights in memory column by column."""


def plant(model):
    for p in model.parameters():
        if p.dim() == 2:
            p.data = p.data.T.contiguous().T
