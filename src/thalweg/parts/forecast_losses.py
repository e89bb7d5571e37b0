"""Losses of forecasts p of y, and their slopes: those of forecast combination.

square (p - y)^2       absolute |p - y|       percentage |p - y|/|y|                                          (1)
pinball max(tau (y - p), (1 - tau)(p - y))    log -ln p where y = 1, -ln(1 - p) where y = 0                     (2)
"""

import numpy as np

from thalweg._kernels.jit import inner

SQUARE, ABSOLUTE, PERCENTAGE, PINBALL, LOG = range(5)
CODES = {"square": SQUARE, "absolute": ABSOLUTE, "percentage": PERCENTAGE, "pinball": PINBALL, "log": LOG}
CLOSEST = 1e-9  # that a probability comes to 0 and 1


@inner
def cost(kind: int, tau: float, p: float, y: float) -> float:
    """The loss."""
    if kind == LOG:
        return -np.log(p) if y > 0.5 else -np.log1p(-p)
    e = p - y
    if kind == SQUARE:
        return e * e
    if kind == ABSOLUTE:
        return abs(e)
    if kind == PERCENTAGE:
        return abs(e / y)
    return (1.0 - tau) * e if e > 0.0 else -tau * e


@inner
def slope(kind: int, tau: float, p: float, y: float) -> float:
    """Its derivative by p; 0 where p = y."""
    if kind == LOG:
        return -1.0 / p if y > 0.5 else 1.0 / (1.0 - p)
    e = p - y
    if kind == SQUARE:
        return 2.0 * e
    if kind == ABSOLUTE:
        return np.sign(e)
    if kind == PERCENTAGE:
        return np.sign(e) / abs(y)
    return (1.0 - tau if e > 0.0 else -tau) if e != 0.0 else 0.0
