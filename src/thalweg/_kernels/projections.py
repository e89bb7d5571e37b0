"""Euclidean projections, dispatched on an integer code so that compiled loops can call them.

`project(code, par, y, out, work)` writes the point of the set nearest to `y` into `out`. `y` and `out` may be the
same array. `par` holds the parameters of the set in the layout given at each function; `work` is scratch space of
the same length as `y`. Everything is a flat vector: a matrix is its entries in row-major order.
"""

import numpy as np

from thalweg._kernels.jit import kernel

__all__ = ["BALL", "PYTHON", "project"]

PYTHON = 0  # no compiled projection: call the domain's own method
BALL = 1


@kernel
def _ball(par: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
    """par = [R, c_1..c_d]:  c + (y - c) min(1, R / ||y - c||)."""
    d = y.shape[0]
    square = 0.0
    for j in range(d):
        gap = y[j] - par[1 + j]
        square += gap * gap
    if square <= par[0] * par[0]:
        for j in range(d):
            out[j] = y[j]
    else:
        scale = par[0] / np.sqrt(square)  # square > R^2 >= 0
        for j in range(d):
            out[j] = par[1 + j] + scale * (y[j] - par[1 + j])


@kernel
def project(code: int, par: np.ndarray, y: np.ndarray, out: np.ndarray, work: np.ndarray) -> None:
    """out <- the point nearest to y of the set (code, par). Overwrites out and work."""
    if code == BALL:
        _ball(par, y, out)
