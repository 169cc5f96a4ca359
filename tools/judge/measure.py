"""How far two tensors are apart, and what the judge was made of."""
import platform

import numpy as np
import torch

LOW_TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def error(got, want):
    """Largest difference over largest magnitude of the judge's tensor; the measure of every table.

    Where the judge's tensor is all zero, the largest magnitude of `got` itself: a zero must be met.
    Non-finite differences count as infinite.
    """
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    if got.shape != want.shape:
        raise ValueError(f"shape {got.shape} against the judge's {want.shape}")
    if want.size == 0:
        return 0.0
    worst = np.max(np.abs(got - want))
    if not np.isfinite(worst):
        return float("inf")
    scale = np.max(np.abs(want))
    return float(worst / scale) if scale > 0 else float(worst)


def norm_error(got, want):
    """Length of the difference over the length of the judge's tensor: what all are off by together."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    off = float(np.linalg.norm((got - want).ravel()))
    size = float(np.linalg.norm(want.ravel()))
    return off / size if size > 0 else off


def element_error(got, want):
    """The worst element: its difference over its own magnitude and what its row and its column lead one to
    expect, the product of their root mean squares over that of the tensor. A gradient of weights is a sum of
    products of a row's and a column's numbers, and its rounding errors are of that size. What has one row or
    one column is judged by the root mean square of the tensor."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    got, want = (a.reshape(-1, a.shape[-1] if a.ndim else 1) for a in (got, want))
    rms = np.sqrt(np.mean(want**2))
    if rms == 0:
        return float(np.max(np.abs(got)))
    expected = rms
    if min(want.shape) > 1:
        expected = np.sqrt(np.mean(want**2, 1, keepdims=True) * np.mean(want**2, 0, keepdims=True)) / rms
    scale = np.abs(want) + expected
    return float(np.max(np.abs(got - want) / np.where(scale > 0, scale, rms)))


def low_errors(low, runs, exact):
    """What a model's expected.json holds of PyTorch's own runs in the type `low`: the worse run's errors."""
    def worst(error):
        return {n: float(f"{max(error(run[n], exact[n]) for run in runs):.4g}") for n in exact}
    return {f"torch_{low}_norm_error": worst(norm_error),
            f"torch_{low}_element_error": worst(element_error)}


def versions():
    """What made the figures: interpreter and package versions."""
    import safetensors
    import tokenizers
    import transformers

    return {
        "python": platform.python_version(),
        "torch": torch.__version__.split("+")[0],
        "transformers": transformers.__version__,
        "tokenizers": tokenizers.__version__,
        "safetensors": safetensors.__version__,
        "numpy": np.__version__,
    }
