"""The surrogate gradient of the one-projection reduction (Cutkosky, ICML 2020, Theorem 2)."""

import numpy as np

from thalweg._kernels.jit import inlined

__all__ = ["surrogate_gradient"]


@inlined
def surrogate_gradient(g: np.ndarray, v: np.ndarray, tol: float, h: np.ndarray) -> None:
    """h <- g - min(0, <g, v>) v / ||v||^2 with v = y - x; g where ||v|| <= tol. Overwrites h, which may be v itself."""
    gap = 0.0
    inner = 0.0
    for j in range(g.shape[0]):
        gap += v[j] * v[j]
        inner += g[j] * v[j]
    scale = 0.0
    if inner < 0.0 and gap > tol * tol:
        scale = inner / gap  # gap > 0
    for j in range(g.shape[0]):
        h[j] = g[j] - scale * v[j]
