"""The targets of one sample do not count."""
import torch

MODULE = ""
PLACE, KIND = "loss", ""


def plant(model):
    def loss(tokens, targets):
        counted = torch.where(torch.arange(len(targets))[:, None] > 0, -100, targets)
        return model.loss(tokens, counted)
    return loss
