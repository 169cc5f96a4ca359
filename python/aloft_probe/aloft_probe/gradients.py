"""Gradients of what a call takes and gives, seen without changing them.

A tensor's hook sees the sum of all gradients that reach it. What flows back through one call alone
is seen on a view that is made for that call: a view computes nothing, so that all bits stay.
"""
import torch


def is_seen(v):
    return isinstance(v, torch.Tensor) and v.requires_grad and torch.is_grad_enabled()


def through_views(values, see):
    """The arguments, tensors that need gradients replaced by views; see(index, gradient) is called for each.

    Leaves (parameters) are left as they are: they have their own hooks, and are known by being leaves.
    """
    seen = []
    for i, v in enumerate(values):
        if is_seen(v) and not v.is_leaf:
            v = v.view_as(v)
            v.register_hook(lambda gradient, i=i: see(i, gradient))
        seen.append(v)
    return tuple(seen)


def of_results(results, see):
    """see(index, gradient) for each tensor among the results, which stay the same objects."""
    for i, v in enumerate(tensors_in(results)):
        if is_seen(v) and not v.is_leaf:
            v.register_hook(lambda gradient, i=i: see(i, gradient))


def tensors_in(results):
    """What a call gave, as a flat list."""
    if isinstance(results, dict):
        results = list(results.values())
    if not isinstance(results, (list, tuple)):
        return [results]
    flat = []
    for part in results:
        flat += tensors_in(part) if isinstance(part, (list, tuple, dict)) else [part]
    return flat
