"""The head on parts of the batch."""
import torch


def plant(model):
    head = model.lm_head
    head.forward = lambda x: torch.cat([x[i:i + 1] @ head.weight.T for i in range(len(x))])
