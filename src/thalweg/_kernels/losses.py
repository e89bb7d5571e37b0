"""Losses of a linear prediction, dispatched on an integer code so that compiled loops can call them.

Every loss is f(w) = phi(z, b) with z = <a, w>, features a and label b. So its value is phi(z, b) and its gradient is
phi'(z, b) a, the slope taken in z.

    code        phi(z, b)                 phi'(z, b)
    SQUARED     (z - b)^2 / 2             z - b
    LOGISTIC    log(1 + exp(-b z))        -b / (1 + exp(b z))         b = -1 or +1
    ABSOLUTE    |z - b|                   sign(z - b), 0 at z = b
    LINEAR      z + b                     1
"""

import math

import numpy as np

from thalweg._kernels.jit import inlined, kernel

__all__ = ["ABSOLUTE", "LINEAR", "LOGISTIC", "SQUARED", "slope", "slopes", "value", "values"]

SQUARED = 1
LOGISTIC = 2
ABSOLUTE = 3
LINEAR = 4


@inlined
def value(code: int, z: float, b: float) -> float:
    """phi(z, b)."""
    if code == SQUARED:
        return 0.5 * (z - b) * (z - b)
    if code == LOGISTIC:
        margin = b * z
        if margin < 0.0:
            return math.log1p(math.exp(margin)) - margin  # only negative numbers go into exp: no overflow
        return math.log1p(math.exp(-margin))
    if code == ABSOLUTE:
        return abs(z - b)
    return z + b


@inlined
def slope(code: int, z: float, b: float) -> float:
    """The derivative of phi(z, b) in z."""
    if code == SQUARED:
        return z - b
    if code == LOGISTIC:
        margin = b * z
        if margin < 0.0:
            return -b / (1.0 + math.exp(margin))  # the denominators lie in [1, 2]
        small = math.exp(-margin)
        return -b * small / (1.0 + small)
    if code == ABSOLUTE:
        if z > b:
            return 1.0
        if z < b:
            return -1.0
        return 0.0
    return 1.0


@kernel
def values(code: int, z: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """out <- phi(z_t, b_t) for every t. Overwrites out."""
    for t in range(z.shape[0]):
        out[t] = value(code, z[t], b[t])


@kernel
def slopes(code: int, z: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """out <- the slope of phi at z_t, b_t for every t. Overwrites out."""
    for t in range(z.shape[0]):
        out[t] = slope(code, z[t], b[t])
