"""The losses of a linear model: values and slopes of a score or a prediction.

All but the log loss have the slope of a cut error, with curvature k and ends [low, high]; e is the prediction minus
the label. Labels of classes are -1 and +1.

    squared   k = 1, no ends             huber  k = 1, -delta, delta
    quantile  k = 0, -tau, 1 - tau       hinge  k = 0, [-1, 0] for +1 and [0, 1] for -1
    slope = cut(e/k);  slope where an implicit step of width w ends = cut(e/(k + w))                                (1)
"""

import math
from typing import NamedTuple

from thalweg._kernels.jit import inner

SQUARED, HUBER, QUANTILE, HINGE, LOG = range(5)
LARGEST_GAIN = 1e140  # its square is still a number


class Lesson(NamedTuple):
    """The data of a row to be learned, except its features."""

    kind: int
    par: float  # delta or tau
    y: float
    unit: float  # of labels
    seen: float  # rows, this one among them
    weight: float


@inner
def chance(score: float) -> float:
    """1/(1 + exp(-score)), the probability of the label +1."""
    if score < 0.0:
        small = math.exp(score)
        return small / (1.0 + small)
    return 1.0 / (1.0 + math.exp(-score))


@inner
def slope(kind: int, par: float, p: float, y: float) -> float:
    """Of the loss of a prediction or score p. `par` is delta or tau."""
    e = p - y
    if kind == SQUARED:
        return e
    if kind == HUBER:
        return min(max(e, -par), par)
    if kind == QUANTILE:
        return (1.0 - par) if e > 0.0 else (-par if e < 0.0 else 0.0)
    if kind == HINGE:
        return -y if y * p < 1.0 else 0.0
    return -y * chance(-y * p)


@inner
def pull(kind: int, par: float, p: float, y: float, at: float, width: float, weight: float) -> float:
    """The slope of weight times the loss where an implicit step of this width > 0 ends; `at` is the slope at p."""
    e, w = p - y, width * weight
    if kind == SQUARED:
        return weight * e / (1.0 + w)
    if kind == HUBER:
        return weight * min(max(e / (1.0 + w), -par), par)
    if kind == QUANTILE:
        return weight * min(max(e / w, -par), 1.0 - par)
    if kind == HINGE:
        return weight * (max(e / w, -1.0) if at < 0.0 else (min(e / w, 1.0) if at > 0.0 else 0.0))
    return weight * at / (1.0 + 0.25 * w)


@inner
def _cost(kind: int, par: float, e: float) -> float:
    size = abs(e)
    if kind == HUBER:
        return 0.5 * size * size if size <= par else par * (size - 0.5 * par)
    return (1.0 - par) * e if e > 0.0 else -par * e


@inner
def gain(kind: int, par: float, played: float, p: float, y: float, unit: float) -> float:
    """The gain of p over the prediction played, in units of the label; never nan. Log loss: of probabilities."""
    if kind == LOG:
        more = math.log(p if y > 0.0 else 1.0 - p) - math.log(played if y > 0.0 else 1.0 - played)
    elif kind == SQUARED:
        more = ((played - p) / unit) * ((played - y) / unit + (p - y) / unit)
    elif kind == HINGE:
        more = max(0.0, 1.0 - y * played) - max(0.0, 1.0 - y * p)
    else:
        delta = par / unit if kind == HUBER else par
        more = _cost(kind, delta, (played - y) / unit) - _cost(kind, delta, (p - y) / unit)
    return min(max(more, -LARGEST_GAIN), LARGEST_GAIN)
