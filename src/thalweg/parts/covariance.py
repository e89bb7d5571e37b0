"""Weights from the covariance of the experts' errors, after Bates and Granger (1969), and at least 0.

With e_i = x_i - y the error of expert i, or (x_i - y)/|y| for percentages, a_i how much of it is awake, sums over the
rounds that are known and f <= 1 for forgetting, a memory has

    S_ij <- f S_ij + a_i e_i a_j e_j;   n_i <- f n_i + a_i^2                                                        (1)
    M_ij = (S_ij/v + 4 P_ij)/sqrt((n_i + 4)(n_j + 4)),   P_ii = 1, P_ij = 1/2,   v the mean of S_ii/n_i             (2)
    w    = argmin w' M w  over the weights of those awake                                                           (3)

(2) is as if all experts had erred alike for four rounds, half of it in common. Where experts sleep, M underestimates
their common error, but it is always positive definite, so (3) has one solution: u/sum_i u_i, where u >= 0 is the
least of u' M u/2 - sum_i u_i. Those of positive weight solve M u = 1, and the last ones are tried first.

These weights do not depend on earlier decisions. So one memory learns from all answers, also where they come h
rounds late: the forecast of round t knows the rounds up to t - h, whenever their answers came.

References
----------
J. M. Bates, C. W. J. Granger, The combination of forecasts, Operational Research Quarterly 20, 1969.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from thalweg._core.rules import CLOSE, SLACK, magnitude, within, within_bounds
from thalweg._core.state import Past, Plan, field, scratch
from thalweg._core.types import Floats, Ints
from thalweg._kernels.jit import inner, kernel
from thalweg._kernels.vectors import copy

BEFORE = 4.0  # prior rounds with equal errors of all experts
COMMON = 0.5  # of it in common
FLAT_SLOPE = 1e-9  # of 1: slopes up to it are 0
LARGEST_SUM = 1e300
LARGEST_FORECAST = 1e60  # of a forecast: squares of squares of differences can be added up


class MemoriesState(NamedTuple):
    """L memories of K experts, and the h rounds without answers yet."""

    S: Floats = field("L K K", magnitude(LARGEST_SUM))
    n: Floats = field("L K")
    w: Floats = field("L K", within(0.0, 1.0), called="memories")  # the last weights of each expert
    x: Floats = field("h K")  # forecasts: row t mod h is of the last round t
    a: Floats = field("h K")  # how much of each expert is awake
    y: Floats = field("h")
    answered: Ints = field("h", within(0, 1), called="answers")  # whether y is there, and the round is not in S yet


class MemoriesSettings(NamedTuple):
    """Constants and scratch space."""

    keep: Floats  # (L,) f
    relative: bool  # whether errors are percentages
    M: Floats = scratch("Q Q")  # Q = K, or 0 where there is no memory
    G: Floats = scratch("Q Q")
    u: Floats = scratch("Q")
    z: Floats = scratch("Q")
    active: Ints = scratch("Q")


def memories_plan(keep: Floats, experts: int, horizon: int, relative: bool) -> Plan:
    """Return the plan of memories with these discount factors."""
    L, K = keep.size, experts
    sizes = {"L": L, "K": K, "h": horizon, "Q": K if L else 0}
    return Plan(MemoriesState, MemoriesSettings(keep, relative), sizes, holds=_holds, begin=begin_memories)


def begin_memories(s: MemoriesState, c: MemoriesSettings) -> None:
    """Before the first round: equal weights."""
    s.w[:] = 1.0 / max(s.w.shape[1], 1)


def _holds(s: MemoriesState, c: MemoriesSettings, past: Past) -> Iterator[tuple[str, bool]]:
    """Relations that the next round relies on."""
    most = np.array([past.rounds if f == 1.0 else min(past.rounds, 1.0 / (1.0 - f)) for f in c.keep])
    root = np.sqrt(np.maximum(np.einsum("kii->ki", s.S), 0.0))
    largest = root[:, :, None] * root[:, None]
    lost = 1e-150 * (root[:, :, None] + root[:, None]) + 1e-300  # where a square underflows and a product does not
    yield "waiting forecasts", bool(((s.a >= 0) & (s.a <= 1)).all() and (np.abs(s.x) <= LARGEST_FORECAST).all())
    yield "answers", bool((np.abs(s.y) <= LARGEST_FORECAST).all())
    yield "memories", within_bounds(s.n, 0.0, most[:, None])
    yield "memories", bool((np.abs(s.S - s.S.transpose(0, 2, 1)) <= CLOSE * largest + lost).all())
    yield "memories", not root[s.n == 0].any() and bool((np.abs(s.S) <= SLACK * largest + lost).all())


@inner
def _learn(s: MemoriesState, c: MemoriesSettings, row: int) -> None:
    """(1) with the round of this row."""
    e, y = c.z, s.y[row]
    for i in range(e.shape[0]):
        e[i] = s.a[row, i] * (s.x[row, i] - y) / (abs(y) if c.relative else 1.0) if s.a[row, i] > 0.0 else 0.0
    for k in range(c.keep.shape[0]):
        for i in range(e.shape[0]):
            s.n[k, i] = c.keep[k] * s.n[k, i] + s.a[row, i] ** 2
            S, f = s.S[k, i], c.keep[k]
            for j in range(e.shape[0]):
                S[j] = f * S[j] + e[i] * e[j]


@inner
def _moments(s: MemoriesState, c: MemoriesSettings, k: int, a: Floats) -> bool:
    """Compute (2); return whether any expert awake has erred."""
    K, v, known = a.shape[0], 0.0, 0.0
    for i in range(K):
        c.z[i] = 1.0 / np.sqrt(s.n[k, i] + BEFORE)
        if a[i] > 0.0 and s.n[k, i] > 0.0:
            v += s.S[k, i, i] / s.n[k, i]
            known += 1.0
    if not v > 0.0:
        return False
    scale = known / v
    for i in range(K):
        row, S = c.M[i], s.S[k, i]
        for j in range(K):  # not used of sleeping experts
            row[j] = (S[j] * scale + COMMON * BEFORE) * (c.z[i] * c.z[j])
        row[i] = (S[i] * scale + BEFORE) * (c.z[i] * c.z[i])
    return True


@inner
def _solve(c: MemoriesSettings, count: int) -> None:
    """z <- the solution of M z = 1 among the first active ones, by Cholesky: G'G = M."""
    G, z, active = c.G, c.z, c.active
    for i in range(count - 1, -1, -1):  # loops that begin at 0 are vectorised
        row = G[i]
        for j in range(i + 1):
            row[j] = c.M[active[i], active[j]]
        for r in range(i + 1, count):
            below, f = G[r], G[r, i]
            for j in range(i + 1):
                row[j] -= f * below[j]
        f = 1.0 / np.sqrt(max(row[i], 1e-14))  # the least eigenvalue is above it but for rounding
        for j in range(i + 1):
            row[j] *= f
        z[i] = 1.0
    for i in range(count - 1, -1, -1):
        z[i] /= G[i, i]
        for j in range(i):
            z[j] -= G[i, j] * z[i]
    for i in range(count):
        for j in range(i):
            z[i] -= G[i, j] * z[j]
        z[i] /= G[i, i]


@inner
def _descend(c: MemoriesSettings, a: Floats) -> int:
    """u <- the least among those with u > 0, while others leave. Returns how many are left."""
    u, z, active = c.u, c.z, c.active
    while True:
        count = 0
        for i in range(u.shape[0]):
            if a[i] > 0.0 and u[i] > 0.0:
                active[count] = i
                count += 1
        _solve(c, count)
        first, part = -1, 1.0
        for r in range(count):
            if z[r] <= 0.0:
                way = u[active[r]] / (u[active[r]] - z[r])
                if first < 0 or way < part:
                    first, part = r, way
        if first < 0:
            for r in range(count):
                u[active[r]] = z[r]
            return count
        for r in range(count):
            u[active[r]] = max(u[active[r]] + part * (z[r] - u[active[r]]), 0.0)
        u[active[first]] = 0.0


@inner
def _minimise(c: MemoriesSettings, a: Floats) -> None:
    """u <- the least of u' M u/2 - sum u over u >= 0 of those awake, not all 0 (Lawson and Hanson)."""
    u, active = c.u, c.active
    for _ in range(3 * u.shape[0]):
        count = _descend(c, a)
        joins, most = -1, FLAT_SLOPE
        for i in range(u.shape[0]):
            if a[i] > 0.0 and u[i] == 0.0:
                slope = 1.0
                for r in range(count):
                    slope -= c.M[i, active[r]] * u[active[r]]
                if slope > most:
                    joins, most = i, slope
        if joins < 0:
            return
        u[joins] = 1e-12  # to be among those tried


@inner
def _weigh(s: MemoriesState, c: MemoriesSettings, k: int, a: Floats, w: Floats) -> None:
    """w <- the weights of memory k among those awake."""
    K, awake, total = w.shape[0], 0.0, 0.0
    for i in range(K):
        c.u[i], w[i] = 0.0, 0.0
        if a[i] > 0.0:
            awake += 1.0
            c.u[i] = s.w[k, i]
            total += c.u[i]
    for i in range(K):
        if a[i] > 0.0 and total == 0.0:
            c.u[i] = 1.0 / awake
    if _moments(s, c, k, a):
        _minimise(c, a)
        total = 0.0
        for i in range(K):
            total += c.u[i]
        for i in range(K):
            if a[i] > 0.0:
                w[i] = s.w[k, i] = c.u[i] / total
    else:
        for i in range(K):
            w[i] = 1.0 / awake if a[i] > 0.0 else 0.0


@kernel
def foresee(s: MemoriesState, c: MemoriesSettings, row: int, x: Floats, a: Floats, w: Floats) -> None:
    """w (L, K) <- the weights of the next round, which is remembered in this row."""
    if s.answered[row] > 0:
        _learn(s, c, row)
        s.answered[row] = 0
    for k in range(c.keep.shape[0]):
        _weigh(s, c, k, a, w[k])
    copy(x, s.x[row])
    copy(a, s.a[row])


@kernel
def foresee_rounds(s: MemoriesState, c: MemoriesSettings, row: int, X: Floats, A: Floats, Y: Floats, W: Floats) -> None:
    """W (T, L, K) <- the weights of T rounds from this row on. All are answered."""
    for t in range(X.shape[0]):
        foresee(s, c, row, X[t], A[t], W[t])
        s.y[row], s.answered[row] = Y[t], 1
        row = (row + 1) % s.y.shape[0]
