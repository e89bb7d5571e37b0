"""Gradient descents, many side by side, each with its own step size.

    y_{t+1} = Pi(y_t - eta_t h_t)                                                          (1)
    eta_t   = eta,   eta / sqrt(t),   eta / t   or   eta / sqrt(delta + sum_{s<=t} ||h_s||^2)   (2)
    l_t     = <h_t, y_t> + lambda ||y_t - y_{t-1}||                                        (3)

t counts from the expert's own start. lambda, the price of moving, is 0 for all but `Scream`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from thalweg._core.rules import CLOSE, inside, within
from thalweg._core.state import Plan, field, scratch
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_choice, check_nonnegative, check_positive
from thalweg._kernels.jit import generic, implement, inner
from thalweg._kernels.parts import after_projection, move, move_own, start
from thalweg._kernels.pointers import Pointer, call
from thalweg._kernels.projections import BALL, onto_ball
from thalweg._kernels.vectors import copy, dot, square_norm
from thalweg.domains._base import Domain, read_domain
from thalweg.experts._base import Expert

__all__ = ["Descent", "DescentSettings", "DescentState"]

CONSTANT, DECAYING, SCALE_FREE, HARMONIC = 0, 1, 2, 3
RULES = {"constant": CONSTANT, "decaying": DECAYING, "scale_free": SCALE_FREE, "harmonic": HARMONIC}


class DescentState(NamedTuple):
    """K groups of N descents."""

    points: Floats = field("K N d", inside("domain"), called="experts' points")  # y_t
    sums: Floats = field("K N", within(0.0, "squares"), called="sums of squares")  # for scale-free steps
    ages: Ints = field("K N", within(0, "lived"))  # rounds since the start, for steps that shrink
    moved: Floats = field("P N", within(0.0, "far"), called="ways moved")  # ||y_t - y_{t-1}||; P = 0: no price


class OnBall(NamedTuple):
    """A ball as the domain, as in most reductions: no other projection is compiled into the round."""

    ball: Floats  # [R, c]


class OnSet(NamedTuple):
    """Any set."""

    onto: Pointer  # `thalweg._kernels.projections`
    domain: Floats
    work: Floats  # (d,) scratch


class DescentSettings(NamedTuple):
    """Constants and scratch space."""

    steps: Floats  # (K, N) eta
    rule: int  # of (2)
    delta: Floats  # (K, N)
    price: float  # lambda
    ground: OnBall | OnSet  # where they live
    etas: Floats = scratch("K N")  # the steps of the round
    before: Floats = scratch("P N d")  # where they stood, where moving has a price


@generic
def _bring_back(ground: object, point: Floats) -> None:
    """Project a point, in place."""


@implement(_bring_back, OnBall)
def _onto_ball(ground: OnBall, point: Floats) -> None:
    onto_ball(ground.ball, point, point, point)


@implement(_bring_back, OnSet)
def _onto_set(ground: OnSet, point: Floats) -> None:
    call(ground.onto, ground.domain, point, point, ground.work)


@implement(start, DescentState)
def _start(e: DescentState, c: DescentSettings, k: int, i: int, point: Floats) -> None:
    copy(point, e.points[k, i])
    e.sums[k, i] = 0.0
    e.ages[k, i] = 0
    if e.moved.shape[0] > 0:
        e.moved[k, i] = 0.0


@inner
def _take_step(e: DescentState, c: DescentSettings, k: int, i: int, square: float) -> None:
    """etas[k, i] <- (2), after the round's gradient is counted; not for constant steps."""
    if c.rule == SCALE_FREE:
        e.sums[k, i] += square
        c.etas[k, i] = c.steps[k, i] * (1.0 / np.sqrt(c.delta[k, i] + e.sums[k, i]))  # delta > 0
    else:
        e.ages[k, i] += 1
        shrunk = np.sqrt(e.ages[k, i]) if c.rule == DECAYING else 1.0 * e.ages[k, i]
        c.etas[k, i] = c.steps[k, i] * (1.0 / shrunk)


@inner
def _descend(e: DescentState, c: DescentSettings, k: int, i: int, h: Floats) -> None:
    """(1) for one, on any set."""
    eta = c.steps[k, i] if c.rule == CONSTANT else c.etas[k, i]
    if e.moved.shape[0] > 0:
        for j in range(h.shape[0]):
            c.before[k, i, j] = e.points[k, i, j]
    for j in range(h.shape[0]):
        e.points[k, i, j] -= eta * h[j]
    _bring_back(c.ground, e.points[k, i])


@generic
def _descend_all(
    ground: object, e: DescentState, c: DescentSettings, k: int, n: int, h: Floats, scores: Floats
) -> None:
    """(1) and (3) for all."""


@implement(_descend_all, OnSet)
def _descend_in_set(
    ground: OnSet, e: DescentState, c: DescentSettings, k: int, n: int, h: Floats, scores: Floats
) -> None:
    for i in range(n):
        scores[k, i] = dot(h, e.points[k, i])
        if e.moved.shape[0] > 0:
            scores[k, i] += c.price * e.moved[k, i]  # (3)
        _descend(e, c, k, i, h)


@implement(_descend_all, OnBall)
def _descend_in_ball(
    ground: OnBall, e: DescentState, c: DescentSettings, k: int, n: int, h: Floats, scores: Floats
) -> None:
    """One pass, and one over those outside."""
    d, ball = h.shape[0], ground.ball
    etas = c.steps if c.rule == CONSTANT else c.etas
    for i in range(n):
        eta = etas[k, i]
        inner = 0.0
        square = 0.0
        for j in range(d):
            before = e.points[k, i, j]
            moved = before - eta * h[j]
            gap = moved - ball[1 + j]
            inner += h[j] * before
            square += gap * gap
            e.points[k, i, j] = moved
        scores[k, i] = inner
        c.etas[k, i] = square
    for i in range(n):
        c.etas[k, i] = ball[0] / np.sqrt(c.etas[k, i])  # infinite in the centre
    for i in range(n):
        scale = c.etas[k, i]
        if scale < 1.0:
            for j in range(d):
                e.points[k, i, j] = ball[1 + j] + scale * (e.points[k, i, j] - ball[1 + j])


@implement(move, DescentState)
def _move(e: DescentState, c: DescentSettings, k: int, n: int, h: Floats, scores: Floats) -> None:
    if c.rule != CONSTANT:
        square = square_norm(h)
        for i in range(n):
            _take_step(e, c, k, i, square)
    _descend_all(c.ground, e, c, k, n, h, scores)


@implement(move_own, DescentState)
def _move_own(e: DescentState, c: DescentSettings, k: int, n: int, H: Floats, values: Floats, g: Floats) -> None:
    for i in range(n):
        if c.rule != CONSTANT:
            _take_step(e, c, k, i, square_norm(H[k, i]))
        _descend(e, c, k, i, H[k, i])


@implement(after_projection, DescentState)
def _after_projection(e: DescentState, c: DescentSettings, k: int, n: int) -> None:
    if e.moved.shape[0] > 0:
        for i in range(n):
            square = 0.0
            for j in range(e.points.shape[2]):
                gap = e.points[k, i, j] - c.before[k, i, j]
                square += gap * gap
            e.moved[k, i] = np.sqrt(square)


class Descent(Expert):
    """Gradient descent as an expert.

    Parameters
    ----------
    domain : Domain
        Where it lives.
    step_size : float
        eta.
    step_rule : {"constant", "decaying", "scale_free", "harmonic"}
        eta_t of (2); harmonic is eta/t, for strongly convex losses.
    delta : float
        delta of the scale-free rule.
    price : float, optional
        lambda of (3). Left out, moving is free and not measured.

    Examples
    --------
    >>> import thalweg as tw
    >>> learner = tw.Alone(tw.experts.Descent(tw.domains.Ball(2), 0.5))
    >>> learner.update([1.0, 0.0])
    >>> learner.decision
    array([-0.5,  0. ])
    """

    def __init__(
        self,
        domain: Domain,
        step_size: float,
        *,
        step_rule: str = "constant",
        delta: float = 1.0,
        price: float | None = None,
    ) -> None:
        self.domain = read_domain("Descent", domain)
        self.step_size = check_positive("Descent", "step_size", step_size)
        self.step_rule = check_choice("Descent", "step_rule", step_rule, tuple(RULES))
        self.delta = check_positive("Descent", "delta", delta)
        self.price = None if price is None else check_nonnegative("Descent", "price", price)

    @classmethod
    def plan(cls, experts: Sequence[Sequence[Descent]]) -> Plan:
        """See `Expert.plan`."""
        one, X = experts[0][0], experts[0][0].domain
        steps, delta = cls.table(experts, "step_size"), cls.table(experts, "delta")
        (K, N), free = steps.shape, one.price is None
        ground = OnBall(X.par) if X.onto is BALL and free else OnSet(X.onto, X.par, np.empty(X.dim))
        return Plan(
            DescentState,
            DescentSettings(steps, RULES[one.step_rule], delta, one.price or 0.0, ground),
            sizes={"K": K, "N": N, "d": X.dim, "P": 0 if free else K},
            facts={"domain": X, "far": X.diameter + CLOSE * X._scale(X.center)},
        )
