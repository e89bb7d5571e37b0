"""Forecasts combined: candidates that weigh the experts, and a jury over them. The kernels of `Aggregator`.

Candidate n has weights w_n over the experts that are awake and so a forecast p_n of its own; it learns from its own
regrets (`thalweg.parts.forecast_rules`). Candidate 0 may be the Tracker on the simplex. Others weigh by how errors go
together (`thalweg.parts.covariance`): one memory for all copies, so its weights are held until the round is answered.
With q the jury's weights:

    w = sum_n q_n w_n;  p = sum_i w_i x_i;  candidate n gained l'(p)(p - p_n)                                       (1)

and in log loss l(p) - l(p_n).

The kernels take a handle of a `Turn`: one copy, its Tracker, and the memories.
"""

from typing import Any, NamedTuple

import numpy as np

from thalweg._core.state import field, part, scratch
from thalweg._core.types import Floats, Ints
from thalweg._kernels.handle import AnyHandle, parts
from thalweg._kernels.jit import inner, kernel
from thalweg._kernels.pointers import call
from thalweg._kernels.vectors import copy
from thalweg.parts.covariance import MemoriesSettings, MemoriesState, foresee
from thalweg.parts.cut_descent import COUNT
from thalweg.parts.forecast_losses import LOG, cost, slope
from thalweg.parts.forecast_rules import BAYES, RulesSettings, RulesState, learn_rule, normalise, weigh_rule
from thalweg.parts.jury import JurySettings, JuryState, judge
from thalweg.parts.records import MARKERS, OTHERS
from thalweg.parts.weigher import Weigher, fits, teach

ANSWERED, PREDICTED = 0, 1  # of the clock: rounds
MEAN_ROUNDING = 1e-13  # relative, of a mean of forecasts


class CopyState(NamedTuple):
    """One of the copies that take turns."""

    rules: RulesState = part()
    jury: JuryState = part()
    held: Floats = field("L K")  # weights by the memories, of the round that waits
    tracker: Any = part()  # nothing, where the Tracker is no candidate


class CopySettings(NamedTuple):
    """Constants and scratch space. N candidates: Tracker or not, M rules, L memories, guests in Python."""

    loss: int
    tau: float
    gradient: bool
    tracked: bool
    rules: RulesSettings = part()
    jury: JurySettings = part()
    tracker: Any = part()
    weights: Floats = scratch("N K")  # of the candidates
    gains: Floats = scratch("N")
    r: Floats = scratch("K")


class Turn(NamedTuple):
    """A copy as kernels take it. Its parts called `tracker` are None: they are behind the weigher."""

    state: CopyState
    settings: CopySettings
    weigher: Weigher
    memories: MemoriesState
    remembering: MemoriesSettings


@inner
def _mean(w: Floats, x: Floats) -> float:
    """sum_i w_i x_i of those with weight: sleeping experts may have nan."""
    total = 0.0
    for i in range(w.shape[0]):
        total += w[i] * x[i] if w[i] > 0.0 else 0.0
    return total


@inner
def _apart(a: float, b: float) -> float:
    """a - b, where that is not only rounding: rounding must not rank experts that agree."""
    return a - b if abs(a - b) > MEAN_ROUNDING * abs(a) else 0.0


@inner
def _has_capacity(turn: Turn) -> bool:
    """Whether there is capacity for one more round."""
    records, c = turn.state.jury.records, turn.settings
    if c.gains.shape[0] > 1 and (records.counts[MARKERS] + 1) >> (records.V.shape[0] - OTHERS) > 0:
        return False
    return not c.tracked or fits(turn.weigher)


@inner
def _read(row: Floats, least: float, largest: float, x: Floats, a: Floats) -> bool:
    """x, a <- forecasts and the experts awake. False if all experts sleep or a forecast is out of range."""
    any_awake = False
    for i in range(row.shape[0]):
        awake = not np.isnan(row[i])
        if awake and not (least <= row[i] <= largest):
            return False
        x[i], a[i] = (row[i], 1.0) if awake else (0.0, 0.0)
        any_awake = any_awake or awake
    return any_awake


@kernel
def propose(handle: AnyHandle, x: Floats, a: Floats, held: Floats, w: Floats) -> float:
    """w <- the weights of a round for those awake; the guests' are there. Returns the forecast."""
    turn = parts(handle)
    s, c, tracker = turn.state, turn.settings, turn.weigher
    K, first, M = w.shape[0], 1 if c.tracked else 0, c.rules.kinds.shape[0]
    if c.tracked:
        call(tracker.ready, tracker.handle)
        for i in range(K):
            c.weights[0, i] = max(tracker.x[i], 0.0)
        normalise(a, c.weights[0])
    for m in range(M):
        weigh_rule(s.rules, c.rules, m, a, c.weights[first + m])
    for k in range(held.shape[0]):
        copy(held[k], c.weights[first + M + k])
        normalise(a, c.weights[first + M + k])
    for i in range(K):
        w[i] = 0.0
    for n in range(c.gains.shape[0]):
        for i in range(K):
            w[i] += s.jury.weights[n] * c.weights[n, i]
    return _mean(w, x)


@kernel
def ask(handle: AnyHandle, row: int, x: Floats, a: Floats, w: Floats, clock: Ints) -> float:
    """Make `propose` for the next round, which then waits in this row, and advance the clock."""
    turn = parts(handle)
    foresee(turn.memories, turn.remembering, row, x, a, turn.state.held)
    clock[PREDICTED] += 1
    return propose(handle, x, a, turn.state.held, w)


@kernel
def take(
    handle: AnyHandle,
    row: int,
    least: float,
    largest: float,
    given: Floats,
    x: Floats,
    a: Floats,
    w: Floats,
    clock: Ints,
) -> float:
    """As `ask`, for raw forecasts, nan where an expert sleeps. Returns nan, and plays no round, for invalid ones."""
    if not _read(given, least, largest, x, a):
        return np.nan
    return ask(handle, row, x, a, w, clock)


@kernel
def recall(handle: AnyHandle, row: int, w: Floats) -> float:
    """`propose` once more for the round that waits in this row."""
    turn = parts(handle)
    return propose(handle, turn.memories.x[row], turn.memories.a[row], turn.state.held, w)


@kernel
def _learn(handle: AnyHandle, x: Floats, a: Floats, p: float, y: float) -> None:
    """One round, after `propose`; there is capacity for it."""
    turn = parts(handle)
    s, c, tracker = turn.state, turn.settings, turn.weigher
    K, M, d = x.shape[0], c.rules.kinds.shape[0], slope(c.loss, c.tau, p, y)
    for n in range(c.gains.shape[0]):
        q = _mean(c.weights[n], x)
        paid, tilt = cost(c.loss, c.tau, q, y), slope(c.loss, c.tau, q, y)
        c.gains[n] = cost(c.loss, c.tau, p, y) - paid if c.loss == LOG else d * _apart(p, q)  # (1)
        m = n - c.tracked
        linear = c.gradient and not (0 <= m < M and c.rules.kinds[m] == BAYES)
        for i in range(K):
            r = tilt * _apart(q, x[i]) if linear else _apart(paid, cost(c.loss, c.tau, x[i], y))
            c.r[i] = a[i] * r if a[i] > 0.0 else 0.0
        if n == 0 and c.tracked:
            for i in range(K):
                tracker.g[i] = -c.r[i]
                if not c.gradient:  # sum_i u_i l_i, where a sleeping expert loses as much as the combination
                    paid -= tracker.x[i] * c.r[i]
            teach(tracker, max(paid, 0.0))
        elif m < M:
            learn_rule(s.rules, c.rules, m, a, c.r)
    if c.gains.shape[0] > 1:
        judge(s.jury, c.jury, c.gains)


@kernel
def answer(handle: AnyHandle, row: int, y: float, said: float, clock: Ints) -> bool:
    """Learn the answer to the round in this row, given its forecast by `propose`; advance the clock.

    False, with nothing changed, where there is no capacity for it.
    """
    turn = parts(handle)
    if not _has_capacity(turn):
        return False
    memories = turn.memories
    _learn(handle, memories.x[row], memories.a[row], said, y)
    memories.y[row], memories.answered[row] = y, 1
    clock[ANSWERED] += 1
    return True


@kernel
def rounds(
    handle: AnyHandle,
    X: Floats,
    A: Floats,
    Y: Floats,
    held: Floats,
    first: int,
    step: int,
    wait: bool,
    W: Floats,
    P: Floats,
) -> int:
    """The rounds first, first + step, ...; weights and forecasts into W and P. Returns the first that was not played.

    It stops before a round for which there is no capacity, and where it shall `wait`, also when its Tracker has begun
    and still has the capacity for that.
    """
    turn = parts(handle)
    for t in range(first, Y.shape[0], step):
        begun = turn.settings.tracked and turn.weigher.first and turn.weigher.members[COUNT] > 0
        if (wait and begun) or not _has_capacity(turn):
            return t
        P[t] = propose(handle, X[t], A[t], held[t], W[t])
        _learn(handle, X[t], A[t], P[t], Y[t])
    return int(Y.shape[0])
