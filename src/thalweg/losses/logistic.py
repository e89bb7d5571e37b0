"""The logistic loss of a score, log(1 + exp(-b z)), b = -1 or +1."""

import math

import numpy as np

from thalweg._kernels.jit import kernel
from thalweg.losses._base import PredictionLoss
from thalweg.losses._phi import of_kernels

__all__ = ["Logistic"]

NEWTON_STEPS = 100  # of a bracketed search; about 5 are usual
EPS = np.finfo(np.float64).eps


@kernel
def value(z: float, b: float, _: float) -> float:
    """Only negative numbers go into exp: no overflow."""
    margin = b * z
    if margin < 0.0:
        return math.log1p(math.exp(margin)) - margin
    return math.log1p(math.exp(-margin))


@kernel
def slope(z: float, b: float, _: float) -> float:
    """-b / (1 + exp(b z)). The denominators lie in [1, 2]."""
    margin = b * z
    if margin < 0.0:
        return -b / (1.0 + math.exp(margin))
    small = math.exp(-margin)
    return -b * small / (1.0 + small)


@kernel
def prox_slope(z: float, b: float, par: float, width: float) -> float:
    """Newton's steps for x = z - width phi'(x), kept in a bracket: x - z + width phi'(x) rises with slope >= 1."""
    low, high = z, z - width * slope(z, b, par)  # x = z - width s, and |s| is smaller at x than at z
    if low > high:
        low, high = high, low
    x = z - width * slope(z, b, par) / (1.0 + 0.25 * width)
    for _ in range(NEWTON_STEPS):
        s = slope(x, b, par)
        residual = x - z + width * s
        if residual > 0.0:
            high = x
        else:
            low = x
        step = residual / (1.0 + width * abs(s) * (1.0 - abs(s)))
        new = x - step
        if not low <= new <= high:
            new = 0.5 * (low + high)
        if abs(new - x) <= EPS * (abs(x) + abs(z)) or abs(new - x) <= EPS:
            x = new
            break
        x = new
    return slope(x, b, par)


@kernel
def tangent(z: float, b: float, _: float, s: float) -> float:
    """The conjugate of phi at s = -b q is q log q + (1 - q) log(1 - q)."""
    q = -b * s
    line = s * z
    if q > 0.0:
        line -= q * math.log(q)
    if q < 1.0:
        line -= (1.0 - q) * math.log1p(-q)
    return line


class Logistic(PredictionLoss):
    r"""The logistic loss of a score: :math:`f(x) = \log(1 + \exp(-b \langle a, x \rangle))`.

    Parameters
    ----------
    features : array
        a, of the shape of a decision.
    label : float
        b, -1 or +1.

    Examples
    --------
    >>> from thalweg.losses import Logistic
    >>> f = Logistic([1.0, 2.0], -1)
    >>> f.gradient([0.0, 0.0]), f.smoothness
    (array([0.5, 1. ]), 1.25)
    """

    name = "logistic"
    phi = of_kernels(value, slope, prox_slope, tangent)
    curvature = 0.25
    signed = True
