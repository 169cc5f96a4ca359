"""The course that every optimizer is judged on: where parameters start, and the gradients of each step."""
import numpy as np

STEPS = 50


def draw(seed, shapes, at_zero=(), at_four=()):
    """Float32; gradients with the step as first dimension. What is named in `at_zero` starts there; a tensor of one
    number in `at_four`: nothing beside it says how large it is, so that it must not end near 0, where the rounding
    errors of all steps are larger than what is left."""
    rng = np.random.default_rng(seed)
    start = {n: np.zeros(s, np.float32) if n in at_zero else rng.normal(0, 1, s).astype(np.float32)
             for n, s in shapes.items()}
    for n in at_four:
        start[n] = np.full(shapes[n], 4, np.float32)
    size = np.exp(np.linspace(-3, 1, STEPS) + rng.normal(0, 0.7, STEPS))
    grad = {n: np.stack([rng.normal(0, 1, s) * size[i] for i in range(STEPS)]).astype(np.float32)
            for n, s in shapes.items()}
    grad["b"][:, 3] = 0.0   # a weight that never gets a gradient: only decay moves it
    grad["b"][5:9, :] = 0.0  # and steps without any
    return start, grad
