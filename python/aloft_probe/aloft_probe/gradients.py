"""Gradients of what a call takes and gives, seen without changing them.

A tensor's hook sees the sum of all gradients that reach it. What flows back through one call alone
is seen on a view that is made for that call: a view computes nothing, so that all bits stay.
"""
import dataclasses

import torch


def is_plain(v):
    """Whether it is a tensor whose numbers can be asked for: those within torch.func stand for many."""
    return isinstance(v, torch.Tensor) and torch._C._functorch.peek_interpreter_stack() is None


def is_seen(v):
    return is_plain(v) and v.requires_grad and torch.is_grad_enabled()


def through_views(values, see):
    """The arguments, tensors that need gradients replaced by views, also within tuples; see(index, gradient) is
    called for each, with the place of the tensor among the arguments, "1.0" within the second.

    Leaves (parameters) are left as they are: they have their own hooks, and are known by being leaves. So is what
    lies in lists and dictionaries, which a call may keep or change, and classes of tensors that torch does not know.

    A tensor that is passed twice stays one object, since calls ask for that (`q is k`): its gradient, the sum, is seen
    at the first place.
    """
    views = {}  # of each tensor, by its id

    def viewed(v, place):
        if is_seen(v) and not v.is_leaf and type(v) is torch.Tensor:
            if id(v) not in views:
                views[id(v)] = v.view_as(v)
                views[id(v)].__dict__.update(v.__dict__)  # what the program has hung on it
                views[id(v)].register_hook(lambda gradient: see(place, gradient))
            v = views[id(v)]
        elif isinstance(v, tuple) and any(is_seen(part) or isinstance(part, tuple) for part in v):
            parts = [viewed(part, (*as_tuple(place), i)) for i, part in enumerate(v)]
            v = type(v)._make(parts) if hasattr(v, "_make") else tuple(parts) if type(v) is tuple else v
        return v
    return tuple(viewed(v, i) for i, v in enumerate(values))


def as_tuple(place):
    return place if isinstance(place, tuple) else (place,)


def of_results(results, see):
    """see(index, gradient) for each tensor among the results, which stay the same objects."""
    for i, v in enumerate(tensors_in(results)):
        if is_seen(v) and not v.is_leaf:
            v.register_hook(lambda gradient, i=i: see(i, gradient))


def tensors_in(results):
    """What a call gave, as a flat list."""
    if isinstance(results, dict):
        results = list(results.values())
    elif dataclasses.is_dataclass(results) and not isinstance(results, type):
        results = [getattr(results, f.name, None) for f in dataclasses.fields(results)]
    if not isinstance(results, (list, tuple)):
        return [results]
    flat = []
    for part in results:
        is_nested = isinstance(part, (list, tuple, dict)) or dataclasses.is_dataclass(part)
        flat += tensors_in(part) if is_nested else [part]
    return flat
