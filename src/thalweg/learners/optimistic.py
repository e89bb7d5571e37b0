"""A pool of descents on a ball that lean on a hint, under Hedge: the machine `Hinted`.

N points have 2N members. With m the hint, member i <= N plays yhat_i - eta_i m and member N + i plays yhat_i. A round
with the gradient h:

    l_i = <h, yhat_i - y> - eta_i <h, m>,   l_{N+i} = <h, yhat_i - y>;   yhat_i <- Pi_Y(yhat_i - eta_i h)           (1)
    Hedge is fed l and ((max l - min l)/2)^2, which its rate adds up                                               (2)
    p <- its weights;   mean <- sum_i (p_i + p_{N+i}) yhat_i                                                        (3)
    E <- E + ||g - m||^2;   m <- g, the gradient at the decision itself, unless a hint comes                       (4)
    y <- mean - (sum_i p_i eta_i) m                                                                                (5)

`thalweg.algorithms.efficient_optimistic` has the method as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from thalweg._core.rules import CLOSE, SLACK, counter_field, inside, simplex, within_bounds
from thalweg._core.state import Past, Plan, field, part, scratch
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import short_repr
from thalweg._kernels.clock import GRADIENTS, PROJECTIONS, ROUNDS
from thalweg._kernels.jit import implement, kernel
from thalweg._kernels.parts import admit, clear, feed, member_decision, move, start, weigh
from thalweg._kernels.projections import BALL
from thalweg._kernels.vectors import dot
from thalweg.domains._base import Domain
from thalweg.errors import InputError
from thalweg.experts.descent import Descent, DescentSettings, DescentState
from thalweg.learners.contract import decision, learn, propose, see_gradient
from thalweg.learners.machine import Machine
from thalweg.metas.hedge import Hedge, HedgeSettings, HedgeState


class HintedState(NamedTuple):
    """N points and M = 2N members."""

    members: DescentState = part()  # one group of N descents
    meta: HedgeState = part()  # one group of M members
    weights: Floats = field("M", simplex)  # p: of those that lean on the hint, then of those that do not
    mean: Floats = field("d", inside("domain"))  # the combination without the hint
    hint: Floats = field("d")  # m
    y: Floats = field("d", called="decision")  # may lie outside the ball
    error: Floats = field("1", called="errors of hints")  # E
    clock: Ints = counter_field()


class HintedSettings(NamedTuple):
    """Constants and scratch space."""

    steps: Floats  # (N,) eta
    members: DescentSettings = part()
    meta: HedgeSettings = part()
    scores: Floats = scratch("1 N")
    losses: Floats = scratch("M")


# --------------------------------------------------------------------------------------------------------------- rounds


@kernel
def take_hint(mean: Floats, weights: Floats, steps: Floats, guess: Floats, hint: Floats, y: Floats) -> None:
    """m <- the guess, and (5)."""
    pull = 0.0
    for i in range(steps.shape[0]):
        pull += weights[i] * steps[i]
    for j in range(y.shape[0]):
        hint[j] = guess[j]
        y[j] = mean[j] - pull * guess[j]


@implement(decision, HintedState)
def _decision(s: HintedState, c: HintedSettings) -> Floats:
    return s.y


@implement(learn, HintedState)
def _learn(s: HintedState, c: HintedSettings, h: Floats, loss: float) -> bool:
    N = c.steps.shape[0]
    s.clock[ROUNDS] += 1
    s.clock[GRADIENTS] += 1
    s.clock[PROJECTIONS] += N
    base, along = dot(h, s.y), dot(h, s.hint)
    move(s.members, c.members, 0, N, h, c.scores)
    least, most = np.inf, -np.inf
    for i in range(N):
        c.losses[N + i] = c.scores[0, i] - base
        c.losses[i] = c.losses[N + i] - c.steps[i] * along  # (1)
        least = min(least, c.losses[i], c.losses[N + i])
        most = max(most, c.losses[i], c.losses[N + i])
    half = (most - least) / 2
    feed(s.meta, c.meta, 0, 2 * N, None, 0.0, c.losses, half * half)  # (2)
    return True


@implement(propose, HintedState)
def _propose(s: HintedState, c: HintedSettings, loss: float) -> None:
    N = c.steps.shape[0]
    weigh(s.meta, c.meta, 0, 2 * N, None, s.weights)
    for j in range(s.mean.shape[0]):
        s.mean[j] = 0.0
    for i in range(N):
        share, point = s.weights[i] + s.weights[N + i], member_decision(s.members, 0, i)
        for j in range(s.mean.shape[0]):
            s.mean[j] += share * point[j]  # (3)


@implement(see_gradient, HintedState)
def _see_gradient(s: HintedState, c: HintedSettings, g: Floats) -> None:
    for j in range(g.shape[0]):
        s.error[0] += (g[j] - s.hint[j]) * (g[j] - s.hint[j])  # (4)
    take_hint(s.mean, s.weights, c.steps, g, s.hint, s.y)


# -------------------------------------------------------------------------------------------------------------- machine


class Hinted(Machine[HintedState, HintedSettings]):
    """Descents on a ball around the domain that lean on a hint. The decision may lie outside the ball.

    Parameters
    ----------
    owner : str
        The name in error messages: the method that this machine is a part of.
    domain : Ball
        Y.
    step_sizes : array of N numbers > 0
        eta_i, ascending.
    gradient_bound : float
        G; hints are no longer either.
    spread : float
        C, at least the most that two members can differ by in a round, halved.
    start : array or None
        A point of the domain where members begin; None for the centre.
    """

    def __init__(
        self,
        owner: str,
        domain: Domain,
        step_sizes: Floats,
        gradient_bound: float,
        *,
        spread: float,
        start: Floats | None,
    ) -> None:
        if domain.onto is not BALL:
            raise InputError(
                f"{owner} moves its members on a ball around the domain. Got {short_repr(domain)} as surrogate."
            )
        self.domain, self.bound, self.spread = domain, gradient_bound, spread
        self.steps = np.array(step_sizes)
        self.members = [Descent(domain, float(step)) for step in step_sizes]
        log = math.log(2 * len(self.members))
        self.meta = Hedge(rate=math.sqrt(log) / spread, radius=1 / spread)
        self.origin = (domain.center if start is None else start).ravel().copy()

    def plan(self, sizes: Mapping[str, int]) -> Plan:
        """See `Machine.plan`."""
        N = len(self.members)
        return Plan(
            HintedState,
            HintedSettings(self.steps),
            sizes={"N": N, "M": 2 * N, "d": self.domain.dim},
            parts={"members": Descent.plan([self.members]), "meta": Hedge.plan([self.meta], [2 * N])},
            facts={"domain": self.domain},
            holds=self.holds,
            pasts=self._pasts,
            begin=self._begin,
        )

    def _begin(self, s: HintedState, c: HintedSettings) -> None:
        clear(s.meta, c.meta, 0)
        for i in range(s.weights.size):
            admit(s.meta, c.meta, 0, i, i + 1)
        for i in range(c.steps.size):
            start(s.members, c.members, 0, i, self.origin)
        weigh(s.meta, c.meta, 0, s.weights.size, None, s.weights)
        s.mean[:] = s.y[:] = self.origin
        s.clock[PROJECTIONS] = 1  # of the starting point

    def _pasts(self, s: HintedState, c: HintedSettings, past: Past) -> Mapping[str, Past]:
        """Return the pasts of N descents and of 2N members; the rate of Hedge adds up other squares."""

        def shaped(n: int, square: float) -> Past:
            one = np.ones((1, n), dtype=np.int64)
            return Past(one > 0, one.cumsum(axis=1), past.rounds * one, past.rounds, square)

        return {"members": shaped(c.steps.size, past.square), "meta": shaped(s.weights.size, self.spread**2)}

    def holds(self, s: HintedState, c: HintedSettings, past: Past) -> Iterator[tuple[str, bool]]:
        """See `Machine.holds`."""
        yield from super().holds(s, c, past)
        N, G = c.steps.size, self.bound
        yield "hint", bool(np.linalg.norm(s.hint) <= G * SLACK)
        yield "hint", past.rounds > 0 or not s.error[0]
        yield "errors of hints", within_bounds(s.error, 0.0, 4 * past.rounds * G**2)
        y = s.mean - s.weights[:N] @ c.steps * s.hint
        yield "decision", bool((np.abs(s.y - y) <= CLOSE * self.domain._scale(self.domain.center)).all())
