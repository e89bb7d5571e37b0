"""Inner products and norms."""

import numpy as np

from thalweg._kernels.jit import inlined

__all__ = ["dot", "square_norm"]


@inlined
def dot(a: np.ndarray, b: np.ndarray) -> float:
    """<a, b>."""
    total = 0.0
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total


@inlined
def square_norm(a: np.ndarray) -> float:
    """||a||^2: inf where it overflows, nan where a has one."""
    return dot(a, a)
