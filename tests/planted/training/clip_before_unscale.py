"""Gradients are clipped while the loss scale is still in them."""
import torch

PLACE, STEP = "gradient norm", 0
SCALED = True


def plant(run):
    def clip():
        torch.nn.utils.clip_grad_norm_(run.model.parameters(), run.clip_norm)
    run.clip = clip
