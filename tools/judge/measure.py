"""How far two tensors are apart, and what the judge was made of."""
import platform

import numpy as np


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


def versions():
    """What made the figures: interpreter and package versions."""
    import safetensors
    import tokenizers
    import torch
    import transformers

    return {
        "python": platform.python_version(),
        "torch": torch.__version__.split("+")[0],
        "transformers": transformers.__version__,
        "tokenizers": tokenizers.__version__,
        "safetensors": safetensors.__version__,
        "numpy": np.__version__,
    }
