"""The directions in which a set extends: the orthogonal projection onto them, dispatched on an integer code.

The affine hull of a set X is x + V for any x in X and a linear space V of directions, the span of all x - u. The part
of a gradient orthogonal to V only adds a constant to the loss on X. `flatten(code, par, h)` removes it.

    code       directions                                        par
    FULL       all of them                                       empty
    MEAN       entries that sum to 0                             empty
    NORMALS    orthogonal to m orthonormal normals               the normals, row by row
    TRACE      symmetric square matrices of trace 0              empty
"""

import numpy as np

from thalweg._kernels.jit import kernel

FULL, MEAN, NORMALS, TRACE = 0, 1, 2, 3


@kernel
def flatten(code: int, par: np.ndarray, h: np.ndarray) -> None:
    """h <- its part in the directions (code, par). Overwrites h."""
    d = h.shape[0]
    if code == MEAN:
        total = 0.0
        for j in range(d):
            total += h[j]
        for j in range(d):
            h[j] -= total / d
    elif code == NORMALS:
        for i in range(par.shape[0] // d):
            inner = 0.0
            for j in range(d):
                inner += par[i * d + j] * h[j]
            for j in range(d):
                h[j] -= inner * par[i * d + j]
    elif code == TRACE:
        n = int(np.sqrt(d) + 0.5)
        trace = 0.0
        for i in range(n):
            trace += h[i * n + i]
            for j in range(i):
                middle = 0.5 * (h[i * n + j] + h[j * n + i])
                h[i * n + j] = middle
                h[j * n + i] = middle
        for i in range(n):
            h[i * n + i] -= trace / n


@kernel
def flatten_rows(code: int, par: np.ndarray, rows: np.ndarray) -> None:
    """Every row <- its part in the directions (code, par). Overwrites rows."""
    for t in range(rows.shape[0]):
        flatten(code, par, rows[t])
