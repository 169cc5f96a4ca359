"""Blocks that are computed again in the backward pass."""
from torch.utils.checkpoint import checkpoint


def plant(model):
    def again(block):
        forward = block.forward
        return lambda x: checkpoint(forward, x, use_reentrant=False)
    for block in model.transformer.h:
        block.forward = again(block)
