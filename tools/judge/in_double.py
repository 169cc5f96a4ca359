"""transformers' own models in float64.

They compute norms, angles and softmax in float32 whatever the type of the model, so that a model in float64 is no
judge of one in float32. While `InDouble` is entered, every mention of float32 is float64: what runs is their code,
in double throughout. `families/decoders.py` holds it to models that are written out.
"""
import contextlib

import torch
from torch.overrides import TorchFunctionMode


class InDouble(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        def wide(x):
            return torch.float64 if x is torch.float32 else x

        if func == torch.Tensor.float:
            return args[0].double()
        return func(*map(wide, args), **{k: wide(v) for k, v in (kwargs or {}).items()})


@contextlib.contextmanager
def in_double():
    """New tensors are float64 too."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with InDouble():
            yield
    finally:
        torch.set_default_dtype(before)
