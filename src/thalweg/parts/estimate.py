"""Estimates of losses from gradients alone: helpers that each suppose another curvature.

Helper j supposes that losses are nonnegative and have the curvature 1/s_j along h, s_j = 2^(1-j) R/G with G the longest
gradient so far. Then the loss was s_j ||h||^2 / 2, and a helper knows its own gradient, which points along h, too:

    e_j = ||h|| - <h, y - z_j> / (||h|| s_j);   z_j <- the ball's point nearest to z_j - s_j e_j h/||h||            (1)
    E_j <- 0.999 E_j + e_j^2;   t <- 0.999 t + 1;   w_j ~ s_j^(-1/4) E_j^(-t/2)                                    (2)
    2f = ||h||^2 2^(sum_j w_j (1-j)) R/G                                      the estimate of twice the loss        (3)

Wrong suppositions meet larger gradients than others. (2) are the likelihoods of Gaussian errors of unknown width,
with a prior that likes short steps. For f = e^2/2, h = e a with ||a||^2 = 1/s_j, (1) makes this round's error 0.
"""

from typing import NamedTuple

import numpy as np

from thalweg._core.rules import within
from thalweg._core.state import Plan, field
from thalweg._core.types import Floats
from thalweg._kernels.jit import inner
from thalweg._kernels.vectors import copy
from thalweg.parts.cut_descent import Around, bring_back

HELPERS = 12
KEEP = 0.999  # of E_j and t, in a round
LEAN = 0.25 * np.log(2.0)
LOST = 100.0  # with E_j > exp(100/t) of the least, w_j is below exp(11 LEAN - 50) = 1.3e-21 of the largest
LONGEST, AGE = 0, 1  # of `seen`
LARGEST_SUM = 1e306


class EstimateState(NamedTuple):
    """Twelve helpers, or none."""

    points: Floats = field("H d")  # z_j
    errors: Floats = field("H", within(0.0, LARGEST_SUM), called="estimate")  # E_j
    seen: Floats = field(
        "2", within(0.0, LARGEST_SUM), called="estimate"
    )  # G; gradients, 0 if the first loss was given


def estimate_plan(helpers: int, dim: int) -> Plan:
    """Return the plan of `HELPERS`, or of none."""
    return Plan(EstimateState, (), {"H": helpers, "d": dim})


@inner
def begin_estimate(s: EstimateState, around: Around) -> None:
    """Before the first round."""
    for j in range(HELPERS):
        copy(around.home, s.points[j])


@inner
def estimate(s: EstimateState, around: Around, h: Floats, n: float, y: Floats, mixed: Floats, weights: Floats) -> float:
    """(1)-(3); weights <- w_j, mixed <- sum_j w_j z_j. Returns the loss."""
    d, length = h.shape[0], np.sqrt(n)
    s.seen[LONGEST] = max(s.seen[LONGEST], length)
    s.seen[AGE] += 1.0
    size, least = 2.0 * (around.radius / s.seen[LONGEST]), np.inf
    for j in range(HELPERS):
        gap = 0.0
        for i in range(d):
            gap += h[i] / length * (y[i] - s.points[j, i])
        error = length - gap / size
        s.errors[j] = KEEP * s.errors[j] + error * error
        least = min(least, s.errors[j])
        step, square = size * error, 0.0
        for i in range(d):
            s.points[j, i] -= step * (h[i] / length)  # (1)
            square += (s.points[j, i] - around.center[i]) * (s.points[j, i] - around.center[i])
        bring_back(around, s.points[j], square)
        size *= 0.5
    age = (1.0 - KEEP ** s.seen[AGE]) / (1.0 - KEEP)
    total = power = 0.0
    most = least * np.exp(LOST / age)  # a helper with larger errors has no weight in floating point
    for j in range(HELPERS):
        weights[j] = 0.0
        if s.errors[j] <= most:
            weights[j] = np.exp(LEAN * j - 0.5 * age * np.log(s.errors[j] / least))  # (2)
        total += weights[j]
    for i in range(d):
        mixed[i] = 0.0
    for j in range(HELPERS):
        weights[j] /= total
        power += weights[j] * (1.0 - j)
        for i in range(d):
            mixed[i] += weights[j] * s.points[j, i]
    return 0.5 * n * 2.0**power * (around.radius / s.seen[LONGEST])  # (3)
