"""Random walks that stay in a set."""

import numpy as np

from thalweg._kernels.jit import kernel
from thalweg._kernels.pointers import Pointer, call


@kernel
def walk(points: np.ndarray, moves: np.ndarray, onto: Pointer, par: np.ndarray, work: np.ndarray) -> None:
    """points[t + 1] <- the projection of points[t] + moves[t] onto the set (onto, par), from points[0] on.

    Overwrites points, except the first, and work.
    """
    for t in range(moves.shape[0]):
        for j in range(moves.shape[1]):
            points[t + 1, j] = points[t, j] + moves[t, j]
        call(onto, par, points[t + 1], points[t + 1], work)
