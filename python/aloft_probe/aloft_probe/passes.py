"""Backward passes of a step, seen where they begin."""
import torch

from aloft_probe.attempts import attempt
from aloft_probe.gradients import is_in_backward


class BackwardPasses:
    """While it is entered, torch.autograd.backward, which Tensor.backward calls, and torch.autograd.grad let `reads`
    follow what flows. A pass that runs within another one (a checkpoint's) belongs to that."""

    # What the arguments of the roots and of their gradients are called, and where the second stands.
    NAMES = {"backward": ("tensors", "grad_tensors", 1), "grad": ("outputs", "grad_outputs", 2)}

    def __init__(self, reads):
        self.reads = reads
        self.own = {}

    def __enter__(self):
        self.own = {name: getattr(torch.autograd, name) for name in self.NAMES}
        for name, arguments in self.NAMES.items():
            setattr(torch.autograd, name, self.followed(self.own[name], *arguments))
        return self

    def __exit__(self, *of_exception):
        for name, function in self.own.items():
            setattr(torch.autograd, name, function)

    def followed(self, function, argument, gradients, gradients_at):
        def call(*args, **kwargs):
            if is_in_backward():
                return function(*args, **kwargs)
            roots = args[0] if args else kwargs.get(argument)
            given = args[gradients_at] if len(args) > gradients_at else kwargs.get(gradients)
            with torch._C.DisableTorchFunction(), torch.no_grad():  # this is no call of the model
                edges = attempt(edges_of, roots, given) or {}
            return self.reads.backward(edges, lambda: function(*args, **kwargs))
        call.__wrapped__ = function
        return call


def edges_of(roots, gradients):
    """{(node, which of its results): gradient} of tensors, one or several, or of torch's GradientEdge, from which a
    backward pass begins; the gradient of a single number is 1 where none is given."""
    if isinstance(roots, torch.Tensor) or hasattr(roots, "node"):
        roots = [roots]
    if gradients is None or isinstance(gradients, torch.Tensor):
        gradients = [gradients] * len(roots)
    edges = {}
    for root, gradient in zip(roots, gradients):
        edge = (getattr(root, "node", None) or getattr(root, "grad_fn", None), getattr(root, "output_nr", 0))
        if edge[0] is None:
            continue
        if gradient is None and isinstance(root, torch.Tensor):
            gradient = torch.ones_like(root)
        is_known = gradient is not None and edges.get(edge, 0) is not None
        edges[edge] = gradient + edges.get(edge, 0) if is_known else None
    return edges
