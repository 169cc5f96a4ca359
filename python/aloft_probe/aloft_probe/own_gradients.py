"""Gradients of parameters that no hook has seen: put there by the program itself, as of torch.autograd.grad, or of
parameters that are trained only since the step began."""
import weakref

import torch

from aloft_probe.optimizers import named_parameters


class OwnGradients:
    """Knows what stood in p.grad when a step began, so that what is left of an earlier one is not taken for new."""

    def __init__(self, model):
        self.old = {p: (weakref.ref(p.grad), p.grad._version) for p in model.parameters() if p.grad is not None}

    def is_new(self, p, step):
        old, version = self.old.get(p, (lambda: None, 0))
        if p.grad is not old():
            return True
        # One that is written over, and not one that is scaled or set to 0 beside those of a backward pass.
        return p.grad._version != version and not step.has_pass_gradients

    def look(self, model, step):
        """Writes those that are there now and have no record yet."""
        with torch.no_grad(), torch._C.DisableTorchFunction():
            for p, (entry, own) in named_parameters(model).items():
                if p.grad is not None and not step.has_gradient(entry, own) and self.is_new(p, step):
                    step.parameter_gradient(entry, own, p.grad)
