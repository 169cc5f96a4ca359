"""The mean of the loss as a sum over its targets, divided by their number."""
from torch import nn


def plant(model):
    def loss(tokens, targets):
        logits = model(tokens).flatten(0, 1)
        total = nn.functional.cross_entropy(logits, targets.flatten(), ignore_index=-100, reduction="sum")
        return total / (targets != -100).sum()
    return loss
