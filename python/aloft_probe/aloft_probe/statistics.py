"""Statistics of tensors that stay where the tensors are until a step is over.

Taking them never waits for a device: each is a tensor of float64 of its own, and all of a step are
fetched at once. On a processor, where nothing is waited for, a tensor is gone through in pieces that
stay in its cache, and rare things are counted only where they can be.
"""
import math

import torch

from aloft_probe.gradients import is_plain

NUMBERS = ("Max", "Min", "Mean", "Norm", "nan", "inf", "-inf", "zeros", "underflowed", "saturated")
COUNTS = NUMBERS[4:]
NORMAL_AND_LARGEST = {
    dtype: (torch.finfo(dtype).smallest_normal, torch.finfo(dtype).max)
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16)
}
PIECE = 1 << 18  # elements
# torch can hardly compute with them, and has them since 2.3 alone; of the largest, int64 has not all values.
UNSIGNED = [getattr(torch, name) for name in ("uint16", "uint32") if hasattr(torch, name)]
HARDLY = [torch.uint64] if hasattr(torch, "uint64") else []


def power_near(size):
    """The power of two at or below a size, as a tensor of float64 where it is; 1 of 0, inf and NaN."""
    return torch.where(torch.isfinite(size) & (size > 0), torch.ldexp(torch.ones_like(size), torch.frexp(size)[1] - 1), 1)


def of_floats(t):
    """f64[10], the numbers of NUMBERS, of a tensor of one of the four types of floats that has elements."""
    normal, largest = NORMAL_AND_LARGEST[t.dtype]
    size = t.abs()
    low, high = torch.aminmax(t)
    # Of float64 squares, and sums, may be no numbers: they are made of what is near 1.
    scale = power_near(torch.maximum(high.abs(), low.abs())) if t.dtype == torch.float64 else 1
    near = t / scale if t.dtype == torch.float64 else t
    numbers = [high, low, near.mean(dtype=torch.float64) * scale,
               torch.linalg.vector_norm(near, dtype=torch.float64) * scale,
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


def magnitudes(t):
    """Of complex numbers, which are neither large nor small: msprobe takes their figures of these, too."""
    return (t.to(torch.complex64) if t.dtype == torch.complex32 else t).abs()  # torch has none of float16


def of_others(t):
    """f64[2], Max and Min, of integers and truth values, of which msprobe has these alone."""
    whole = {torch.bool: torch.uint8, **{of: torch.int64 for of in UNSIGNED}}.get(t.dtype, t.dtype)
    low, high = torch.aminmax(t.to(whole))
    return torch.stack([high.to(torch.float64), low.to(torch.float64)])


def has_elements(t):
    """Whether its elements lie in memory, one by one, to be read here."""
    return (t.device.type != "meta" and t.layout == torch.strided and not t.is_quantized and not t.is_nested
            and is_plain(t) and torch._C._has_storage(t))


def taken(t):
    """The statistics of any tensor, on its device, or None where it has none."""
    t = t.detach()
    if t.numel() == 0 or not has_elements(t) or t.dtype in HARDLY:
        return None
    if t.is_complex():
        t = magnitudes(t)
    if t.dtype in NORMAL_AND_LARGEST:
        return on_processor(t) if t.device.type == "cpu" and t.dtype != torch.float64 else of_floats(t)
    if t.is_floating_point():
        return None
    return of_others(t)


def sum_of_bits(t):
    """Of a tensor in the processor's memory, modulo 2^64: read many times faster than its statistics are taken. None
    where its elements do not lie side by side."""
    row = in_a_row(t.detach())
    if row.data_ptr() != t.data_ptr() or not row.is_contiguous():
        return None
    if row.numel() * t.element_size() % 8 == 0 and row.storage_offset() * t.element_size() % 8 == 0:
        return row.view(torch.int64).sum().item()
    return row.view({1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[t.element_size()]).sum().item()


class Recent:
    """The statistics of the tensors that were seen last: what a module gives, the next one takes.

    A program may write to a tensor without raising its version (`t.data`, numpy), so that its bits are summed, too. On
    other devices that would wait for them, and statistics are taken anew.
    """

    KEPT = 4  # which live as much longer

    def __init__(self):
        self.seen = []  # (tensor, its version, the sum of its bits, statistics)

    def taken(self, t):
        if (t.dtype not in NORMAL_AND_LARGEST or not has_elements(t) or t.device.type != "cpu" or t.is_inference()
                or t.numel() == 0 or isinstance(t, torch.nn.Parameter)):
            return taken(t)
        bits = sum_of_bits(t)
        for other, version, known, numbers in self.seen:
            if (other.data_ptr() == t.data_ptr() and other.shape == t.shape and other.stride() == t.stride()
                    and other.dtype == t.dtype and version == other._version == t._version and known == bits):
                return numbers
        numbers = taken(t)
        if bits is not None:
            self.seen = [*self.seen[1 - self.KEPT:], (t.detach(), t._version, bits, numbers)]
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
