"""Directions of affine hulls: what is left of a gradient on a set that lies in a flat."""

import numpy as np

from thalweg._kernels.jit import inlined

__all__ = ["FULL", "MEAN", "NORMALS", "TRACE", "flatten"]

FULL, MEAN, NORMALS, TRACE = 0, 1, 2, 3


@inlined
def flatten(code: int, par: np.ndarray, h: np.ndarray) -> None:
    """Placeholder."""
