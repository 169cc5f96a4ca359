"""Backward passes of a step, seen where they begin."""
import torch

from aloft_probe.gradients import is_in_backward


class BackwardPasses:
    """While it is entered, torch.autograd.backward, which Tensor.backward calls, and torch.autograd.grad let `reads`
    follow what flows. A pass that runs within another one (a checkpoint's) belongs to that."""

    NAMES = {"backward": "tensors", "grad": "outputs"}  # and what the argument of the roots is called

    def __init__(self, reads):
        self.reads = reads
        self.own = {}

    def __enter__(self):
        self.own = {name: getattr(torch.autograd, name) for name in self.NAMES}
        for name, argument in self.NAMES.items():
            setattr(torch.autograd, name, self.followed(self.own[name], argument))
        return self

    def __exit__(self, *of_exception):
        for name, function in self.own.items():
            setattr(torch.autograd, name, function)

    def followed(self, function, argument):
        def call(*args, **kwargs):
            roots = args[0] if args else kwargs.get(argument)
            if is_in_backward():
                return function(*args, **kwargs)
            return self.reads.backward(nodes_of(roots), lambda: function(*args, **kwargs))
        call.__wrapped__ = function
        return call


def nodes_of(roots):
    """The nodes of tensors, one or several, or of torch's GradientEdge, from which a backward pass begins."""
    if isinstance(roots, torch.Tensor) or hasattr(roots, "node"):
        roots = [roots]
    try:
        nodes = [getattr(root, "node", None) or getattr(root, "grad_fn", None) for root in roots]
    except TypeError:  # torch says what is wrong with it
        return []
    return [node for node in nodes if node is not None]
