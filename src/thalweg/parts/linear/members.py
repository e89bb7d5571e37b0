"""Members: first-order models with a step for every coefficient, taken implicitly, from tiny steps to huge ones.

Member i has coefficients w for standardised features z, in units of the label. With g = l'(p) z_j and s_y the spread
of labels so far:

    G_j += g_j^2;  s_j = 10 c_i s_y/sqrt(G_j);  w_j -= s_j z_j l'(p+),  p+ = p - l'(p+) sum_j s_j z_j^2              (1)

c_i = 4^-5, ..., 4^2. p+ is where the step ends, so no step overshoots, however long. When the mean or spread of a
feature moves the coefficients move along, so that the function stays the same (`follow_members`). For quantiles every
other member learns the squared loss, and adds the quantile of the residuals (`offsets`).
Arrays have a row for a feature and a column for a member: features that are absent from a row cost nothing.
"""

from typing import NamedTuple

import numpy as np

from thalweg._core.rules import magnitude, within
from thalweg._core.state import Plan, field
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import LARGEST_ENTRY
from thalweg._kernels.jit import inner
from thalweg.parts.linear.losses import QUANTILE, SQUARED, Lesson, pull, slope
from thalweg.parts.linear.offsets import LARGEST_COEFFICIENT, LARGEST_LEFT, bounded, move_offset

RATES = 10.0 * 4.0 ** np.arange(-5, 3)  # 10 c
BELIEVED = np.array([1, 2, 4, 3, 2, 1, 1, 1]) / 15  # at the start: steps that are neither short nor long come first
OFFSET_MEMORY = 0.999  # of offsets
LARGEST_SQUARES = LARGEST_ENTRY**3  # the sum stops here: weights may be as large as labels


class MembersState(NamedTuple):
    """M members, D positions, of which 0 is the intercept."""

    W: Floats = field("D M", magnitude(LARGEST_COEFFICIENT), called="coefficients")
    G: Floats = field("D M", within(0.0, LARGEST_SQUARES), called="squared gradients")
    offset: Floats = field("M", magnitude(LARGEST_COEFFICIENT), called="coefficients")  # added to a prediction
    left: Floats = field("M", within(0.0, LARGEST_LEFT), called="errors left over")  # the mean absolute one


def members_plan(positions: int) -> Plan:
    """Return the plan of members with a number of coefficients each."""
    return Plan(MembersState, (), {"D": positions, "M": RATES.size})


@inner
def learns(kind: int, i: int) -> int:
    """The loss of member i."""
    return SQUARED if kind == QUANTILE and i % 2 == 0 else kind


@inner
def score_members(m: MembersState, at: Ints, z: Floats, n: int, first: int, p: Floats) -> None:
    """p[first + i] += offset + sum_k W[at[k], i] z[k], over the n features that are present."""
    for i in range(m.W.shape[1]):
        p[first + i] += m.offset[i]
    for k in range(n):
        j = at[k]
        for i in range(m.W.shape[1]):
            p[first + i] += m.W[j, i] * z[k]


@inner
def follow_members(m: MembersState, j: int, ratio: float, shift: float) -> None:
    """Feature j has a new spread, `ratio` times the old one, and a new mean, `shift` new spreads further on."""
    for i in range(m.W.shape[1]):
        m.W[j, i] = bounded(m.W[j, i] * ratio)
        m.G[j, i] /= ratio * ratio
        m.W[0, i] = bounded(m.W[0, i] + m.W[j, i] * shift)


@inner
def move_members(
    m: MembersState,
    lesson: Lesson,
    at: Ints,
    z: Floats,
    n: int,
    p: Floats,
    first: int,
    steps: Floats,
    slopes: Floats,
    widths: Floats,
) -> None:
    """(1), where p[first + i] is the prediction of member i; the last three are scratch space."""
    kind, par, y, unit, seen, weight = lesson
    M = m.W.shape[1]
    for i in range(M):
        slopes[i] = slope(learns(kind, i), par, p[first + i] - m.offset[i], y)
        widths[i] = 0.0
    for k in range(n):
        j = at[k]
        for i in range(M):
            g = weight * slopes[i] * z[k]
            m.G[j, i] = min(m.G[j, i] + g * g, LARGEST_SQUARES)
            steps[k, i] = RATES[i] * unit / np.sqrt(m.G[j, i]) if m.G[j, i] > 0.0 else 0.0
            widths[i] += steps[k, i] * z[k] * z[k]
    for i in range(M):
        own, mean = learns(kind, i), p[first + i] - m.offset[i]
        slopes[i] = pull(own, par, mean, y, slopes[i], widths[i], weight) if widths[i] > 0.0 else 0.0
        if own != kind:
            move_offset(m.offset, m.left, i, par, OFFSET_MEMORY, p[first + i] - y, seen)
    for k in range(n):
        j = at[k]
        for i in range(M):
            m.W[j, i] = bounded(m.W[j, i] - steps[k, i] * z[k] * slopes[i])
