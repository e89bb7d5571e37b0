"""The surrogate gradient of the one-projection reduction (Cutkosky, ICML 2020, Theorem 2)."""

import numpy as np

from thalweg._kernels.jit import inlined

__all__ = ["surrogate_gradient"]


@inlined
def surrogate_gradient(g: np.ndarray, y: np.ndarray, x: np.ndarray, tol: float, h: np.ndarray) -> None:
    """h <- g - min(0, <g, v>) v with v = (y - x)/||y - x||; 0 where ||y - x|| <= tol. Overwrites h."""
    gap = 0.0
    inner = 0.0
    for j in range(g.shape[0]):
        v = y[j] - x[j]
        gap += v * v
        inner += g[j] * v
    scale = 0.0
    if inner < 0.0 and gap > tol * tol:
        scale = inner / gap  # <g, v> v = inner / gap * (y - x), gap > 0
    for j in range(g.shape[0]):
        h[j] = g[j] - scale * (y[j] - x[j])
