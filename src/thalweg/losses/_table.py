"""The table of losses: their codes, and their kernels dispatched on the code so that compiled loops can call them.

Every loss is f(w) = phi(z, b) with z = <a, w>, features a and label b. So its value is phi(z, b) and its gradient is
phi'(z, b) a, the slope taken in z. `par` is the one number that a loss may have besides, 0 where it has none.

    code        phi(z, b)                                     phi'(z, b)
    SQUARED     (z - b)^2 / 2                                 z - b
    LOGISTIC    log(1 + exp(-b z))                            -b / (1 + exp(b z))         b = -1 or +1
    ABSOLUTE    |z - b|                                       sign(z - b), 0 at z = b
    LINEAR      z + b                                         1
    HUBER       e^2/2 for |e| <= par, else par |e| - par^2/2  e = z - b cut to [-par, par]
    PINBALL     par (b - z)_+ + (1 - par) (z - b)_+           -par or 1 - par, 0 at z = b
    HINGE       (1 - b z)_+                                   -b or 0, 0 at b z = 1       b = -1 or +1
    LOG         -log(z + b), inf where z + b <= 0             -1 / (z + b)

Comparators need two functions more. `prox_slope(z, width)` is the slope of phi at the proximal point
x = argmin phi(x) + (x - z)^2 / (2 width), which is x = z - width prox_slope. `tangent(z, s)` is the value at z of the
line of slope s that touches phi from below; s must lie between the slopes at -inf and +inf.

A new loss is a file with these four kernels and a class, and a line in each of the tables here.
"""

import numpy as np

from thalweg._kernels.jit import inlined, kernel
from thalweg.losses import absolute, hinge, huber, linear, log, logistic, pinball, squared
from thalweg.losses._base import PredictionLoss

__all__ = ["KINDS", "prox_slope", "prox_slopes", "slope", "slopes", "tangent", "value", "values"]

SQUARED, LOGISTIC, ABSOLUTE, LINEAR, HUBER, PINBALL, HINGE, LOG = range(1, 9)

CLASSES: dict[int, type[PredictionLoss]] = {
    SQUARED: squared.Squared,
    LOGISTIC: logistic.Logistic,
    ABSOLUTE: absolute.Absolute,
    LINEAR: linear.Linear,
    HUBER: huber.Huber,
    PINBALL: pinball.Pinball,
    HINGE: hinge.Hinge,
    LOG: log.Log,
}
for _code, _kind in CLASSES.items():
    _kind.code = _code
KINDS = {kind.name: kind for kind in CLASSES.values()}


@inlined
def value(code: int, z: float, b: float, par: float) -> float:
    """phi(z, b)."""
    if code == SQUARED:
        return squared.value(z, b, par)
    if code == LOGISTIC:
        return logistic.value(z, b, par)
    if code == ABSOLUTE:
        return absolute.value(z, b, par)
    if code == HUBER:
        return huber.value(z, b, par)
    if code == PINBALL:
        return pinball.value(z, b, par)
    if code == HINGE:
        return hinge.value(z, b, par)
    if code == LOG:
        return log.value(z, b, par)
    return linear.value(z, b, par)


@inlined
def slope(code: int, z: float, b: float, par: float) -> float:
    """The derivative of phi(z, b) in z."""
    if code == SQUARED:
        return squared.slope(z, b, par)
    if code == LOGISTIC:
        return logistic.slope(z, b, par)
    if code == ABSOLUTE:
        return absolute.slope(z, b, par)
    if code == HUBER:
        return huber.slope(z, b, par)
    if code == PINBALL:
        return pinball.slope(z, b, par)
    if code == HINGE:
        return hinge.slope(z, b, par)
    if code == LOG:
        return log.slope(z, b, par)
    return linear.slope(z, b, par)


@kernel
def prox_slope(code: int, z: float, b: float, par: float, width: float) -> float:
    """The slope of phi at argmin over x of phi(x, b) + (x - z)^2 / (2 width), for width > 0."""
    if code == SQUARED:
        return squared.prox_slope(z, b, par, width)
    if code == LOGISTIC:
        return logistic.prox_slope(z, b, par, width)
    if code == ABSOLUTE:
        return absolute.prox_slope(z, b, par, width)
    if code == HUBER:
        return huber.prox_slope(z, b, par, width)
    if code == PINBALL:
        return pinball.prox_slope(z, b, par, width)
    if code == HINGE:
        return hinge.prox_slope(z, b, par, width)
    if code == LOG:
        return log.prox_slope(z, b, par, width)
    return linear.prox_slope(z, b, par, width)


@kernel
def tangent(code: int, z: float, b: float, par: float, s: float) -> float:
    """At z, the largest line of slope s below phi(., b)."""
    if code == SQUARED:
        return squared.tangent(z, b, par, s)
    if code == LOGISTIC:
        return logistic.tangent(z, b, par, s)
    if code == ABSOLUTE:
        return absolute.tangent(z, b, par, s)
    if code == HUBER:
        return huber.tangent(z, b, par, s)
    if code == PINBALL:
        return pinball.tangent(z, b, par, s)
    if code == HINGE:
        return hinge.tangent(z, b, par, s)
    if code == LOG:
        return log.tangent(z, b, par, s)
    return linear.tangent(z, b, par, s)


@kernel
def values(code: int, z: np.ndarray, b: np.ndarray, par: float, out: np.ndarray) -> None:
    """out <- phi(z_t, b_t) for every t. Overwrites out."""
    for t in range(z.shape[0]):
        out[t] = value(code, z[t], b[t], par)


@kernel
def slopes(code: int, z: np.ndarray, b: np.ndarray, par: float, out: np.ndarray) -> None:
    """out <- the slope of phi at z_t, b_t for every t. Overwrites out."""
    for t in range(z.shape[0]):
        out[t] = slope(code, z[t], b[t], par)


@kernel
def prox_slopes(code: int, z: np.ndarray, b: np.ndarray, par: float, width: float, out: np.ndarray) -> None:
    """out <- the slope of phi at the proximal point of z_t for every t. Overwrites out."""
    for t in range(z.shape[0]):
        out[t] = prox_slope(code, z[t], b[t], par, width)
