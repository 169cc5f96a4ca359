"""Gradients of what calls take and give, seen without touching what autograd sums.

A tensor's hook sees the sum of all gradients that reach it. What flows back through one call alone is the sum over the
nodes of autograd's graph that read the tensor during that call: their sequence numbers lie between those at its
beginning and at its end. They are looked up when a backward pass begins, and what they hand back is added up beside
autograd's own sum, whose order, and so whose last bit, stays.
"""
import dataclasses
import functools
import math

import torch

from aloft_probe.attempts import attempt


DEEPEST = 16  # of lists within lists, of which something is written


def is_plain(v):
    """Whether it is a tensor whose numbers can be asked for: those within torch.func stand for many."""
    return isinstance(v, torch.Tensor) and torch._C._functorch.peek_interpreter_stack() is None


def is_seen(v):
    return is_plain(v) and v.requires_grad and torch.is_grad_enabled()


def edge_of(v):
    """Where its gradient arrives: (node, which of the node's results); None of parameters, which have hooks of their
    own, of what needs no gradient, and of classes of tensors that torch does not know."""
    if not is_seen(v) or v.is_leaf or type(v) is not torch.Tensor:
        return None
    return v.grad_fn, v.output_nr


def is_in_backward():
    """Whether a backward pass runs, in which this is called."""
    return torch._C._current_graph_task_id() != -1


@dataclasses.dataclass(eq=False)
class Look:
    """At the gradient that flows back to a tensor through nodes made from `begin` on, before `end`."""
    begin: int
    see: object  # called with the gradient
    end: float = math.inf
    is_of_result: bool = False  # counts where nodes made before `begin` read the tensor, too
    is_read_within: bool = False  # such nodes are in this backward pass
    awaited: int = 0  # nodes of this backward pass that have not run
    total: object = None

    def add(self, gradient):
        self.total = gradient if self.total is None else self.total + gradient

    def tell(self):
        total, self.total = self.total, None
        if total is not None:
            attempt(self.see, total)


class Reads:
    """What the calls of a step took, and the nodes that read it."""

    def __init__(self):
        self.looks = {}  # {edge: [Look]}, in the order in which calls began
        self.is_followed = False  # a backward pass runs whose nodes are known
        self.was_missed = False  # one ran whose nodes are not
        self.behind_pass = {}  # what is called when it has ended, by whom it is for

    def begin(self, values, see):
        """A call takes the values: see(place, gradient) for each tensor among them, also within tuples, with its place
        among the arguments, (1, 0) within the second. Gives what `end` needs.

        A tensor that is passed twice is seen at the first place. What lies in lists and dictionaries is not looked at.
        """
        begun, number = {}, torch.autograd._get_sequence_nr()

        def look(v, place):
            edge = edge_of(v)
            if edge is not None and edge not in begun:
                begun[edge] = Look(number, functools.partial(see, place))
                self.looks.setdefault(edge, []).append(begun[edge])
            elif isinstance(v, tuple):
                for i, part in enumerate(v):
                    look(part, (*as_tuple(place), i))
        for i, v in enumerate(values):
            look(v, i)
        return begun

    @staticmethod
    def forget(begun):
        """The call has failed: nothing flows through it."""
        for look in begun.values():
            look.end = look.begin

    def end(self, begun, results, see):
        """The call is over: see(index, gradient) for each tensor among the results.

        A result that the call took (dropout gives it back in evaluation) is read where the call's result is: from here
        on all that reads it counts as a reader of what the call gives, and flows through the call. Of one that the
        call itself has read (the mean of a distribution that it draws from) what flows in is what comes from nodes
        made from here on.
        """
        number = torch.autograd._get_sequence_nr()
        for look in begun.values():
            look.end = number
        given = set()
        for i, v in enumerate(tensors_in(results)):
            edge = edge_of(v)
            if edge is not None and edge in begun:
                begun[edge].end = math.inf
                if edge not in given:
                    self.looks[edge].append(Look(number, functools.partial(see, i)))
                given.add(edge)
            elif is_seen(v) and not v.is_leaf:
                look = None
                if edge is not None and v.grad_fn._sequence_nr() + 1 < number:  # the call may have read it
                    look = Look(number, functools.partial(see, i), is_of_result=True)
                    self.looks.setdefault(edge, []).append(look)
                v.register_hook(functools.partial(self.arrived, see, i, look))

    def arrived(self, see, place, look, gradient):
        """The whole gradient of a tensor; `look` tells what came from outside the call where the call has read it."""
        self.was_missed |= bool(self.looks) and not self.is_followed
        if look is None or not look.is_read_within:
            attempt(see, place, gradient)

    def readers(self, roots):
        """{node: [(which of its operands, Look)]} of all nodes below the roots that a look is for."""
        found, seen = {}, set(roots)
        waiting = list(seen)
        while waiting:
            node = waiting.pop()
            for operand, edge in enumerate(node.next_functions):
                if edge[0] is None:
                    continue
                if edge[0] not in seen:
                    seen.add(edge[0])
                    waiting.append(edge[0])
                # The call within has begun last, and is told of first.
                for look in reversed(self.looks.get(edge, ())):
                    if look.begin <= node._sequence_nr() < look.end:
                        found.setdefault(node, []).append((operand, look))
                    elif look.is_of_result:
                        look.is_read_within = True
        wanted = {node: [(operand, look) for operand, look in read if look.is_read_within or not look.is_of_result]
                  for node, read in found.items()}
        return {node: read for node, read in wanted.items() if read}

    def backward(self, roots, run):
        """Runs a backward pass, and tells the looks what flows; gives what `run` gives. `roots`: {edge: gradient} of
        the tensors from which it begins, None of what is not known."""
        for of_edge in self.looks.values():
            for look in of_edge:
                look.awaited, look.total, look.is_read_within = 0, None, False
        readers = attempt(self.readers, [node for node, _ in roots]) or {}
        looks = {look: None for read in readers.values() for _, look in read}
        for edge, gradient in roots.items():  # no node hands it back
            for look in self.looks.get(edge, ()):
                if look.is_read_within and gradient is not None:
                    look.total = gradient
                    looks[look] = None
        for read in readers.values():
            for look in {look for _, look in read}:
                look.awaited += 1
        handles = [node.register_hook(functools.partial(self.flowed, read)) for node, read in readers.items()]
        self.is_followed, self.behind_pass = True, {}
        try:
            result = run()
        finally:
            self.is_followed = False
            for handle in handles:
                handle.remove()
        with torch._C.DisableTorchFunction(), torch.no_grad():
            for look in looks:  # some of whose nodes the pass had no need of
                look.tell()
            for see in self.behind_pass.values():
                attempt(see)
        return result

    @staticmethod
    def flowed(read, of_operands, _):
        """A node has run: the gradients of its operands."""
        with torch._C.DisableTorchFunction(), torch.no_grad():
            for operand, look in read:
                if of_operands[operand] is not None:
                    attempt(look.add, of_operands[operand])
            for look in dict.fromkeys(look for _, look in read):
                look.awaited -= 1
                if look.awaited == 0:
                    look.tell()


def as_tuple(place):
    return place if isinstance(place, tuple) else (place,)


def tensors_in(results, depth=0):
    """What a call gave, as a flat list; what nests deeper than records do is left out."""
    if isinstance(results, dict):
        results = list(results.values())
    elif dataclasses.is_dataclass(results) and not isinstance(results, type):
        results = [getattr(results, f.name, None) for f in dataclasses.fields(results)]
    if not isinstance(results, (list, tuple)):
        return [results]
    flat = []
    for part in results:
        is_nested = isinstance(part, (list, tuple, dict)) or dataclasses.is_dataclass(part)
        if is_nested and depth < DEEPEST:
            flat += tensors_in(part, depth + 1)
        elif not is_nested:
            flat.append(part)
    return flat
