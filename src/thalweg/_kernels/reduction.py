"""The surrogate gradient of the one-projection reduction (Cutkosky, ICML 2020, Theorem 2)."""

import numpy as np

from thalweg._kernels.jit import kernel

EPS = np.finfo(np.float64).eps


@kernel
def surrogate_gradient(g: np.ndarray, v: np.ndarray, tol: float, h: np.ndarray) -> None:
    """h <- g - min(0, <g, v>) v / ||v||^2 with v = y - x; g where ||v|| <= tol. Overwrites h, which may be v itself.

    Where g points straight against v, as it must in one dimension, h is exactly 0: its rounding error is removed,
    because a learner that scales with the gradients seen would follow it.
    """
    d = g.shape[0]
    gap, inner, size = 0.0, 0.0, 0.0
    for j in range(d):
        gap += v[j] * v[j]
        inner += g[j] * v[j]
        size += g[j] * g[j]
    scale = 0.0
    if inner < 0.0 and gap > tol * tol:
        scale = inner / gap  # gap > 0
    left = 0.0
    for j in range(d):
        h[j] = g[j] - scale * v[j]
        left += h[j] * h[j]
    noise = (d + 8) * EPS
    if left < noise * noise * size:  # not where the squares underflow
        for j in range(d):
            h[j] = 0.0
