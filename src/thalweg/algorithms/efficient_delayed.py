"""Dynamic regret with delayed gradients and one projection: Mild-OGD of Wan, Yao, Song, Zhang (ICML 2024), reduced.

Y is a ball of radius R around X, D the diameter of X. In round t play x_t = Pi_X(y_t). The gradient of round s comes
when the point of the members is z_i, not y_{s,i} any more. With h_s the surrogate gradient from the remembered
x_s, y_s and all y_{s,i} (`learners.one_projection`), each one that comes makes a step, in the order of rounds
where several come at once:

    z_i     <- Pi_Y(z_i - eta_i h_s)                                                       (1)
    A_i     <- A_i + <h_s, y_{s,i} - y_s>                  judged where it stood then      (2)
    y_{t,i} = z_i,   p_{t,i} ~ exp(-epsilon A_i),   y_t = sum_i p_{t,i} y_{t,i}            (3)
    x_t     = Pi_X(y_t)                                    the only projection onto X      (4)

With tau = d for a fixed delay d, 2m for delays of at most m, and T' = (1 + 2 tau) T the steps and the rate are

    eta_i   = 2^{i-1} (R/G) sqrt(5/(2T')),   N = ceil(log2(1 + 2DT/(5R))/2) + 1            (5)
    epsilon = sqrt(ln N / (1 + G^2 R^2 T'))                                                (6)

Theorem. Let ||g_t|| <= G. Against any u_t in X whose path has length P, after n rounds, of which M never got feedback,
and with at most B earlier rounds still waiting when the feedback of a round counted (0 if all comes in order):

    regret <= ln N/epsilon + epsilon R^2 Q/2 + min_i (a/eta_i + eta_i Q/2) + G min(2BP, nD) + M G D                 (7)
    Q = (1 + 2 tau) n G^2 with tau = m if B = 0, else 2m,   a = min(5R^2/2 + RP, ||y_1 - u_1||^2/2 + 2RP)

which is of order G sqrt((1 + tau) T R (R + P)). The proof is in docs/feedback-proofs.md. The same method with a
price on moving is Efficient-Smelt-DOGD of Yang, Yang, Jiang, Wan, Zhang (IJCAI 2025). 1 projection, 1 gradient, 0
values a round.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.rules import SLACK, counter_field, counters, inside
from thalweg._core.state import Block, Past, Plan, field, part, scratch
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_count, check_positive
from thalweg._kernels.clock import FRESH, GRADIENTS, PROJECTIONS, ROUNDS
from thalweg._kernels.parts import projected_points
from thalweg._kernels.parts import start as begin
from thalweg.algorithms import _delayed_pool
from thalweg.algorithms.pools import geometric
from thalweg.cards import Card
from thalweg.domains._base import Domain
from thalweg.experts.pool import Pool, PoolSettings, PoolState
from thalweg.learners.alone import read_origin
from thalweg.learners.base import bounded
from thalweg.learners.delayed_feedback import DelayedFeedback, Waiting, read_delays
from thalweg.learners.ensemble import descents
from thalweg.metas.hedge import Hedge
from thalweg.theorems import bounds
from thalweg.theorems._base import Theorem, path_length, step_sizes

__all__ = ["EfficientDelayed", "LateDynamic"]

OVERTAKEN, FORGOTTEN = 0, 1  # B and M of (7)


class DelayedPoolState(NamedTuple):
    """R rounds that are remembered, and a pool of N members."""

    x: Floats = field("R d")  # decisions
    due: Ints = field("R", start=-1)  # the round at whose end the feedback of a row counts; -1: none came
    points: Floats = field("R N d", inside("around"))  # those of the members in each round
    y: Floats = field("R d", inside("around"), called="points")
    gradients: Floats = field("R d")
    tally: Ints = field("2", counters)
    pool: PoolState = part()
    clock: Ints = counter_field()


class DelayedPoolSettings(NamedTuple):
    """Constants and scratch space."""

    pool: PoolSettings = part()
    h: Floats = scratch("d")


class DelayedPoolMachine(Waiting):
    """The rounds of `EfficientDelayed`, and its pool on Y, a ball around the domain."""

    def __init__(self, domain: Domain, delay: int, around: Domain, pool: Pool, origin: Floats, bound: float) -> None:
        super().__init__(domain, delay)
        self.around, self.pool, self.origin, self.bound = around, pool, origin, bound

    def plan(self, sizes: Mapping[str, int]) -> Plan:
        """See `Machine.plan`."""
        return Plan(
            DelayedPoolState,
            DelayedPoolSettings(),
            {"R": self.rows, "N": self.pool.size, "d": self.domain.dim},
            {"pool": Pool.plan([[self.pool]])},
            {"around": self.around},
            holds=self.holds,
            begin=self._begin,
        )

    def _begin(self, s: DelayedPoolState, c: DelayedPoolSettings) -> None:
        s.points[:] = s.y[:] = self.origin  # rows of no round yet
        begin(s.pool, c.pool, 0, 0, self.origin)
        s.y[0], s.points[0] = s.pool.y[0], projected_points(s.pool)[0]

    def holds(self, s: DelayedPoolState, c: DelayedPoolSettings, past: Past) -> Iterator[tuple[str, bool]]:
        """See `Machine.holds`."""
        yield from super().holds(s, c, past)
        rounds, answered = int(s.clock[ROUNDS]), int(s.clock[GRADIENTS])
        waits = int(np.count_nonzero(s.due[: min(self.rows, rounds + 1)] < 0))
        yield "counters", bool(s.clock[PROJECTIONS] == rounds)
        yield "counters", bool(s.tally[OVERTAKEN] < self.rows and s.tally[FORGOTTEN] == rounds + 1 - answered - waits)
        within = self.domain._directions(s.gradients)  # the part across a flat is kept, and cannot matter
        yield "feedback", bool((np.linalg.norm(within, axis=1) <= self.bound * SLACK).all())


class LateDynamic(Theorem):
    """`EfficientDelayed`: (7). From the first round to any other."""

    name, whole = "(7)", True

    def __init__(self, learner: Any, paid: Floats, squares: Floats) -> None:
        super().__init__(learner, paid, squares)
        self.R = learner.surrogate.radius

    def bound(self, start: int, stop: int, u: Floats, losses: Floats) -> float:
        """See `Theorem.bound`."""
        learner, n, G = self.inner, stop - start, self.G
        steps, P, B = step_sizes(learner.pool), path_length(u), learner.overtaken
        Q = (1 + (2 if B == 0 else 4) * learner.max_delay) * n * G**2
        a = bounds.descent(steps, self.R, P, float(np.linalg.norm(learner.machine.origin - u[0])))
        apart = G * min(2 * B * P, n * self.D) + G * self.D * min(learner.forgotten, n)
        weights = bounds.hedge(steps.size, learner.pool.meta.rate, self.R, Q)
        return float(weights + np.min(a + steps * Q / 2) + apart)


class EfficientDelayed(DelayedFeedback):
    """Follow any moving comparator with delayed gradients, one projection and one gradient a round.

    Parameters
    ----------
    domain : Domain
        X.
    horizon : int
        T.
    gradient_bound : float
        G.
    delay : int, optional
        Feedback always comes this many rounds later, and in order.
    max_delay : int, optional
        It comes at most this many rounds later, in any order, or never. One of the two is given.
    start : array, optional
        A point of the domain to begin at; that nearest to the centre of Y when left out.
    on_violation : {"raise", "clip"}
        Treatment of gradients above the bound.

    Notes
    -----
    The calls are those of `Delayed`. All rounds feed one learner, where `Delayed` has copies: so every
    round helps the next. With `delay=0` it is `EfficientDynamic` without smoothness. The points of all members are
    remembered for every round that waits: (max_delay + 1) N d numbers.

    Examples
    --------
    >>> import thalweg as tw
    >>> learner = tw.EfficientDelayed(tw.domains.Ball(2), horizon=100, gradient_bound=2.0, delay=1)
    >>> learner.advance()                              # the first round ends without feedback
    >>> x = learner.decision_at(0)
    >>> learner.update(x - [1.0, 0.0])                 # that of round 0
    >>> learner.advance()
    >>> learner.decision[0] > 0
    np.True_

    References
    ----------
    Y. Wan, C. Yao, M. Song, L. Zhang, Non-stationary online convex optimization with arbitrary delays, ICML 2024.
    S. Yang, W. Yang, W. Jiang, Y. Wan, L. Zhang, Smoothed online convex optimization with delayed feedback, IJCAI 2025.
    """

    card = Card(
        about="gradients that come late, one projection",
        regret="dynamic",
        bound="sqrt((1 + d) T (1 + P_T)), gradients d rounds late",
        queries=("1", "1", "0"),
        source="Wan et al. 2024 in the reduction",
        options={"delay": 2},
        theorem=LateDynamic,
    )
    reduced = True

    def __init__(
        self,
        domain: Domain,
        horizon: int,
        gradient_bound: float,
        *,
        delay: int | None = None,
        max_delay: int | None = None,
        start: ArrayLike | None = None,
        on_violation: str = "raise",
    ) -> None:
        name = "EfficientDelayed"
        T = check_count(name, "horizon", horizon)
        G = check_positive(name, "gradient_bound", gradient_bound)
        Y = self.surrogate = bounded(name, domain).surrogate
        m = read_delays(name, domain, delay, max_delay)
        tau = 2 * m if delay is None else m
        more = (1 + 2 * tau) * T  # T'
        N = math.ceil(0.5 * math.log2(1 + 2 * domain.diameter * T / (5 * Y.radius))) + 1
        steps = geometric(Y.radius / G * math.sqrt(5 / (2 * more)), N)  # (5)
        rate = math.sqrt(math.log(N) / (1 + G**2 * Y.radius**2 * more))  # (6)
        read_delays(name, domain, delay, max_delay, N)
        self.pool = descents(Y, steps, meta=Hedge(rate=rate))
        origin = read_origin(name, domain, start, Y)
        self._tol = domain.tolerance * domain._scale(domain.center)
        machine = DelayedPoolMachine(domain, m, Y, self.pool, self.pool.origin if origin is None else origin, G)
        super().__init__(machine, delay, horizon=T, gradient_bound=G, on_violation=on_violation)

    def _tree(self, block: Block) -> Any:
        s, c = block.state, block.settings
        return _delayed_pool.DelayedPool(s.pool, c.pool, *self._feedback.hull, self._tol, c.h)

    # ------------------------------------------------------------------ a round

    def _make_decision(self) -> Floats:
        x, s = np.empty(self.domain.dim), self._memory.state
        self.domain._project_into(s.y[self.rounds % self._rows], x, self._memory.settings.h)  # (4)
        return x

    def _commit(self, s: int, due: int | None, loss: float | None, clipped: bool, *, end: bool) -> None:
        """See `DelayedFeedback._commit`."""
        with self._memory.all_or_nothing():
            if due is not None:
                self._answer(s, due, loss, clipped)
                self._memory.state.gradients[s % self._rows] = self._feedback.g
            if end:
                self._end()

    def _end(self) -> None:
        """Learn from the feedback that is due, and begin the next round, whose row is free."""
        s, t = self._memory.state, self.rounds
        self._shown = None
        for due in sorted(t - (t - row) % self._rows for row in np.flatnonzero(s.due == t).tolist()):
            self._apply(due)
        row = (t + 1) % self._rows
        s.clock[ROUNDS], s.clock[FRESH] = t + 1, 0
        s.clock[PROJECTIONS] += 1  # that of the round that ends
        s.tally[FORGOTTEN] += t + 1 >= self._rows and s.due[row] < 0
        s.due[row], s.gradients[row] = -1, 0.0
        _delayed_pool.reweigh(self._memory.handle)  # (3)
        s.y[row], s.points[row] = s.pool.y[0], projected_points(s.pool)[0]

    def _apply(self, s: int) -> None:
        state, t, row = self._memory.state, self.rounds, s % self._rows
        whose = t - (t - np.arange(self._rows)) % self._rows  # the round of each row
        waiting = np.count_nonzero((whose >= 0) & (whose < s) & ((state.due < 0) | (state.due > t)))
        state.tally[OVERTAKEN] = max(state.tally[OVERTAKEN], waiting)
        kept = state.gradients[row].copy(), state.x[row], state.y[row], state.points[row]
        _delayed_pool.learn(self._memory.handle, *kept)  # (1), (2)

    # ------------------------------------------------------------------ inspection

    @property
    def overtaken(self) -> int:
        """B, the most earlier rounds that still waited when the feedback of a round counted."""
        return int(self._memory.state.tally[OVERTAKEN])

    @property
    def forgotten(self) -> int:
        """M, the rounds whose feedback did not come in time."""
        return int(self._memory.state.tally[FORGOTTEN])

    @property
    def weights(self) -> Floats:
        """p_t, how much each member counts in the present decision."""
        weights: Floats = self._memory.state.pool.weights[0].copy()
        return weights
