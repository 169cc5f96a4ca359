"""Statistics of tensors that stay where the tensors are until a step is over.

Taking them never waits for a device: each is a tensor of float64 of its own, and all of a step are
fetched at once.
"""
import torch

NUMBERS = ("Max", "Min", "Mean", "Norm", "nan", "inf", "-inf", "zeros", "underflowed", "saturated")
COUNTS = NUMBERS[4:]
NORMAL_AND_LARGEST = {
    dtype: (torch.finfo(dtype).smallest_normal, torch.finfo(dtype).max)
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16)
}


def of_floats(t):
    """f64[10], the numbers of NUMBERS, of a tensor of one of the four types of floats that has elements."""
    normal, largest = NORMAL_AND_LARGEST[t.dtype]
    size = t.abs()
    low, high = torch.aminmax(t)
    numbers = [high, low, t.mean(dtype=torch.float64), torch.linalg.vector_norm(t, dtype=torch.float64),
               t.isnan().sum(), t.isposinf().sum(), t.isneginf().sum(), (t == 0).sum(),
               ((size > 0) & (size < normal)).sum(), (size == largest).sum()]
    return torch.stack([n.to(torch.float64) for n in numbers])


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
        return of_floats(t)
    if t.is_complex() or t.is_floating_point():
        return None
    return of_others(t)


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
