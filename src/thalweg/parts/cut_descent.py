"""Descents on a ball with scale-free steps on a cut loss; longer steps join when the stream is long enough.

The loss of a round is known to be f >= 0 at the decision and at least 0 elsewhere, so among the lower bounds on
f(u) - f is the linear one cut at -2f, l(u) = max(-2f, <h, u - y>). Member k has the multiplier 2^k:

    r_k = <h, y - y_k>                                                  its gain                                (1)
    s_k = min(2^k R / sqrt(S), (2f - r_k)_+ / ||h||^2)                  S = sum of ||h||^2, this round's too    (2)
    y_k <- the ball's point nearest to y_k - s_k h                      the proximal step of l                  (3)
    while 2^(K+1) sqrt(S) <= 2 sum of ||h||: K += 1, member K joins     at the combined decision of this round  (4)

A step that is too long stops by itself, at the cut. With f = inf nothing is cut.
"""

from typing import NamedTuple

import numpy as np

from thalweg._core.rules import magnitude
from thalweg._core.state import Plan, field
from thalweg._core.types import Floats, Ints
from thalweg._kernels.jit import inner
from thalweg._kernels.vectors import copy

CURVED = 4  # rows before the descents, for the members with curvature
BELOW = 2  # steps shorter than 2^k0 that are there from the start
SHORTEST_FIRST, LONGEST_FIRST = -20, -4  # bounds of k0
FIRST_ROWS = CURVED + BELOW + 2 - SHORTEST_FIRST  # the first round begins with that many at most
# (4) lets K exceed log2 sqrt(T) by 1 at most: 55 descents in 2^62 rounds.
MOST_ROWS = CURVED + 56
SQUARES, LENGTHS, SHORTEST, NEXT = 0, 1, 2, 3  # of `sums`
COUNT, LEAST, TOP = 0, 1, 2  # of `sizes`


class Around(NamedTuple):
    """The ball where all members live."""

    center: Floats  # (d,)
    radius: float
    home: Floats  # (d,) where the first members start
    flat: int  # the directions of all gradients: `thalweg._kernels.hulls`
    normals: Floats


class CutDescentState(NamedTuple):
    """Rows 0 to 3 are the members with curvature, row 4 + i the descent with k = k0 - 2 + i. Rows N grow."""

    points: Floats = field("N d")
    sums: Floats = field("4")  # S, the sum of ||h||, 2^(k0 - 2) and 2^(K + 1)
    sizes: Ints = field("3")  # rows up to the last one in use, 0 before the first round; k0; K
    logs: Floats = field("N", magnitude(99.0), called="log-priors")


def members_plan(rows: int, dim: int) -> Plan:
    """Return the plan of a number of rows."""
    return Plan(CutDescentState, (), {"N": rows, "d": dim})


@inner
def _log_prior(k: int, k0: int) -> float:
    return -0.5 * np.log(2.0) * (k - k0) if k >= k0 else np.log(2.0) * (k - k0)


@inner
def begin_members(s: CutDescentState, around: Around, f: float, n: float) -> float:
    """The first round: steps of about the length that reaches the cut. Returns the sum of the priors."""
    k0 = -6
    if 0.0 < f < np.inf:
        k0 = int(min(max(np.floor(np.log2(2.0 * f / (np.sqrt(n) * around.radius))), SHORTEST_FIRST), LONGEST_FIRST))
    s.sizes[LEAST] = k0
    s.sizes[TOP] = 1
    s.sizes[COUNT] = CURVED + 1 - (k0 - BELOW) + 1
    s.sums[SHORTEST] = 2.0 ** (k0 - BELOW)
    s.sums[NEXT] = 4.0
    total = 0.0
    for i in range(CURVED, s.sizes[COUNT]):
        copy(around.home, s.points[i])
        s.logs[i] = _log_prior(k0 - BELOW + i - CURVED, k0)
        total += np.exp(s.logs[i])
    return total


@inner
def bring_back(around: Around, point: Floats, square: float) -> None:
    """Rescale a point at this squared distance from the centre into the ball."""
    if square > around.radius * around.radius:
        scale = around.radius / np.sqrt(square)
        for j in range(point.shape[0]):
            point[j] = around.center[j] + scale * (point[j] - around.center[j])


@inner
def gain_of(h: Floats, y: Floats, point: Floats) -> float:
    """(1): the gain of a member at this point over y."""
    gain = 0.0
    for j in range(h.shape[0]):
        gain += h[j] * (y[j] - point[j])
    return gain


@inner
def see_gains(s: CutDescentState, h: Floats, y: Floats, first: int, gains: Floats) -> None:
    """(1) for the rows from `first` on, four at a time."""
    last = s.sizes[COUNT]
    for block in range((last - first) // 4):
        i = first + 4 * block
        a, b, c, e = s.points[i], s.points[i + 1], s.points[i + 2], s.points[i + 3]
        of_a = of_b = of_c = of_e = 0.0
        for j in range(h.shape[0]):
            of_a += h[j] * (y[j] - a[j])
            of_b += h[j] * (y[j] - b[j])
            of_c += h[j] * (y[j] - c[j])
            of_e += h[j] * (y[j] - e[j])
        gains[i], gains[i + 1], gains[i + 2], gains[i + 3] = of_a, of_b, of_c, of_e
    for i in range(last - (last - first) % 4, last):
        gains[i] = gain_of(h, y, s.points[i])


@inner
def move_descents(s: CutDescentState, around: Around, h: Floats, n: float, f: float, gains: Floats) -> None:
    """(2), (3)."""
    length = around.radius / np.sqrt(s.sums[SQUARES]) * s.sums[SHORTEST]
    for i in range(CURVED, s.sizes[COUNT]):
        step = min(length, max(2.0 * f - gains[i], 0.0) / n)  # (2)
        length *= 2.0
        square = 0.0
        for j in range(h.shape[0]):
            moved = s.points[i, j] - step * h[j]
            s.points[i, j] = moved
            square += (moved - around.center[j]) * (moved - around.center[j])
        bring_back(around, s.points[i], square)  # (3)


@inner
def combine(s: CutDescentState, p: Floats, first: int, y: Floats) -> None:
    """y <- sum_i p_i y_i over the rows from `first` on, four at a time."""
    last = s.sizes[COUNT]
    for j in range(y.shape[0]):
        y[j] = 0.0
    for block in range((last - first) // 4):
        i = first + 4 * block
        a, b, c, e = s.points[i], s.points[i + 1], s.points[i + 2], s.points[i + 3]
        for j in range(y.shape[0]):
            y[j] += p[i] * a[j] + p[i + 1] * b[j] + p[i + 2] * c[j] + p[i + 3] * e[j]
    for i in range(last - (last - first) % 4, last):
        for j in range(y.shape[0]):
            y[j] += p[i] * s.points[i, j]


@inner
def join(s: CutDescentState, y: Floats) -> None:
    """(4)."""
    while s.sums[NEXT] * np.sqrt(s.sums[SQUARES]) <= 2.0 * s.sums[LENGTHS] and s.sizes[COUNT] < s.points.shape[0]:
        s.sizes[TOP] += 1
        s.sums[NEXT] *= 2.0
        copy(y, s.points[s.sizes[COUNT]])
        s.logs[s.sizes[COUNT]] = _log_prior(s.sizes[TOP], s.sizes[LEAST])
        s.sizes[COUNT] += 1


@inner
def rows_needed(s: CutDescentState) -> int:
    """Return the rows that the next round may use, after the first one.

    With q = (sum of ||h||)^2 / S, a round adds 1 to q at most (Cauchy-Schwarz), and 2^(K+1) > 2 sqrt(q) >= 2 after (4).
    So one descent joins at most, and none unless 2^(K+1) <= 2 sqrt(q) + 1.
    """
    root = np.sqrt(s.sums[SQUARES])
    may_join = s.sums[NEXT] * root <= 2.0 * s.sums[LENGTHS] + root
    return min(s.sizes[COUNT] + (1 if may_join else 0), MOST_ROWS)
