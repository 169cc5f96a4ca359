"""Statistics of tensors that stay where the tensors are until a step is over.

Taking them never waits for a device: each is a tensor of float64 of its own, and all of a step are
fetched at once. On a processor, where nothing is waited for, a tensor is gone through in pieces that
stay in its cache, and rare things are counted only where they can be.
"""
import math

import torch

NUMBERS = ("Max", "Min", "Mean", "Norm", "nan", "inf", "-inf", "zeros", "underflowed", "saturated")
COUNTS = NUMBERS[4:]
NORMAL_AND_LARGEST = {
    dtype: (torch.finfo(dtype).smallest_normal, torch.finfo(dtype).max)
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16)
}
PIECE = 1 << 18  # elements


def of_floats(t):
    """f64[10], the numbers of NUMBERS, of a tensor of one of the four types of floats that has elements."""
    normal, largest = NORMAL_AND_LARGEST[t.dtype]
    size = t.abs()
    low, high = torch.aminmax(t)
    numbers = [high, low, t.mean(dtype=torch.float64), torch.linalg.vector_norm(t, dtype=torch.float64),
               t.isnan().sum(), t.isposinf().sum(), t.isneginf().sum(), (t == 0).sum(),
               ((size > 0) & (size < normal)).sum(), (size == largest).sum()]
    return torch.stack([n.to(torch.float64) for n in numbers])


def in_a_row(t):
    """Its elements as a vector, in some order: a view where they lie side by side."""
    order = sorted(range(t.dim()), key=lambda i: -t.stride(i))
    return t.permute(order).reshape(-1)


def on_processor(t):
    """The same numbers of a tensor in the memory of the processor; f64 apart, whose squares may overflow."""
    normal, largest = NORMAL_AND_LARGEST[t.dtype]
    high, low, total, squares = -math.inf, math.inf, 0.0, 0.0
    counts = [0] * len(COUNTS)
    is_nan = False
    for piece in in_a_row(t).split(PIECE):
        least, most = (v.item() for v in torch.aminmax(piece))
        wide = piece.double()
        total += wide.sum().item()
        own = wide.dot(wide).item()
        squares += own
        if not math.isfinite(own):
            counts[0] += piece.isnan().sum().item()
            counts[1] += piece.isposinf().sum().item()
            counts[2] += piece.isneginf().sum().item()
            is_nan = is_nan or counts[0] > 0
        else:
            high, low = max(high, most), min(low, least)
        small = (piece.abs() < normal).sum().item()
        if small:
            zeros = piece.numel() - torch.count_nonzero(piece).item()
            counts[3] += zeros
            counts[4] += small - zeros
        if most == largest or least == -largest or not math.isfinite(own):
            counts[5] += (piece.abs() == largest).sum().item()
        if not math.isfinite(own) and not is_nan:
            high, low = max(high, most), min(low, least)
    if is_nan:
        high = low = math.nan
    return torch.tensor([high, low, total / t.numel(), math.sqrt(squares), *counts], dtype=torch.float64)


def of_others(t):
    """f64[2], Max and Min, of integers and truth values, of which msprobe has these alone."""
    low, high = torch.aminmax(t.to(torch.uint8) if t.dtype == torch.bool else t)
    return torch.stack([high.to(torch.float64), low.to(torch.float64)])


def taken(t):
    """The statistics of any tensor, on its device, or None where it has none."""
    t = t.detach()
    if t.numel() == 0 or t.device.type == "meta" or t.is_sparse or t.layout != torch.strided:
        return None
    if t.dtype in NORMAL_AND_LARGEST:
        return on_processor(t) if t.device.type == "cpu" and t.dtype != torch.float64 else of_floats(t)
    if t.is_complex() or t.is_floating_point():
        return None
    return of_others(t)


class Recent:
    """The statistics of the tensors that were seen last: what a module gives, the next one takes."""

    KEPT = 4  # which live as much longer

    def __init__(self):
        self.seen = []  # (tensor, its version, statistics)

    def taken(self, t):
        if t.is_inference():
            return taken(t)
        for other, version, numbers in self.seen:
            if (other.data_ptr() == t.data_ptr() and other.shape == t.shape and other.stride() == t.stride()
                    and other.dtype == t.dtype and version == other._version == t._version):
                return numbers
        numbers = taken(t)
        if t.layout == torch.strided and t.device.type != "meta" and not isinstance(t, torch.nn.Parameter):
            self.seen = [*self.seen[1 - self.KEPT:], (t.detach(), t._version, numbers)]
        return numbers


def fetched(all_taken):
    """Lists of numbers, None for None, of what `taken` gave: one transfer a device."""
    lists = [None] * len(all_taken)
    places = {}
    for i, numbers in enumerate(all_taken):
        if numbers is not None:
            places.setdefault(numbers.device, []).append(i)
    for indices in places.values():
        flat = torch.cat([all_taken[i] for i in indices]).tolist()
        at = 0
        for i in indices:
            size = all_taken[i].numel()
            lists[i] = flat[at:at + size]
            at += size
    return lists
