"""Least squares with a ridge in units of the features, from sums over all rows.

    A = sum x x',  c = sum x r,  w = (A + kappa diag(A)/n)^-1 c                                                     (1)

The lower triangle of A is kept row by row; (1) is solved by Cholesky's method when forecasts are made, so a row costs
d^2/2 to learn and d^3/6 to use.
"""

import numpy as np

from thalweg._core.types import Floats
from thalweg._kernels.jit import inner

TINY = 1e-12  # of a diagonal entry: below it features are taken as dependent
LEAST = 1e-300
LARGEST_SUM = 1e250
ROUNDING = 1e-6


def packed(d: int) -> int:
    """Return the number of entries of a lower triangle."""
    return d * (d + 1) // 2


def are_sums(A: Floats, c: Floats) -> bool:
    """Whether A (..., packed(d)) and c (..., d) can be sums (1): all A are positive semidefinite up to rounding."""
    d = c.shape[-1]
    low = np.tril_indices(d)
    full = np.zeros((*A.shape[:-1], d, d))
    full[..., low[0], low[1]] = full[..., low[1], low[0]] = A
    diagonal = np.diagonal(full, axis1=-2, axis2=-1)
    if not (np.abs(c) <= LARGEST_SUM).all() or not ((diagonal >= 0) & (diagonal <= LARGEST_SUM)).all():
        return False
    size = np.sqrt(diagonal) + (diagonal == 0)
    scaled = full / size[..., :, None] / size[..., None, :]
    return bool((np.abs(scaled) <= 1 + ROUNDING).all() and (np.linalg.eigvalsh(scaled) >= -ROUNDING).all())


@inner
def learn_ridge(A: Floats, c: Floats, x: Floats, d: int, r: float) -> None:
    """A row x with the answer r."""
    at = 0
    for i in range(d):
        xi = x[i]
        c[i] += xi * r
        for j in range(i + 1):
            A[at + j] += xi * x[j]
        at += i + 1


@inner
def solve_ridge(A: Floats, c: Floats, d: int, n: float, kappa: float, root: Floats, w: Floats) -> None:
    """w <- (1), with `root` for the Cholesky factor; its diagonal holds inverses."""
    more = 1.0 + kappa / max(n, 1.0) + TINY
    row = 0
    for i in range(d):
        other, v = 0, c[i]
        for j in range(i):
            a = A[row + j]
            for k in range(j):
                a -= root[row + k] * root[other + k]
            a *= root[other + j]
            root[row + j] = a
            v -= a * w[j]
            other += j + 1
        diagonal = A[row + i]
        a = more * diagonal
        for k in range(i):
            a -= root[row + k] * root[row + k]
        inverse = 1.0 / np.sqrt(max(a, TINY * diagonal + LEAST))
        root[row + i] = inverse
        w[i] = v * inverse
        row += i + 1
    for i in range(d - 1, -1, -1):
        row -= i + 1
        v = w[i] * root[row + i]
        w[i] = v
        for k in range(i):
            w[k] -= root[row + k] * v
