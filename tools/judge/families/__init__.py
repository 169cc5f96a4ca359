"""Fixture families. Each module has build() -> {path below tests/fixtures: content}, where content
is Tensors, a JSON value, or text. Inputs come from seeded NumPy generators: reruns are equal."""
import dataclasses

import numpy as np


@dataclasses.dataclass
class Tensors:
    arrays: dict[str, np.ndarray]
    metadata: dict[str, str] | None = None
