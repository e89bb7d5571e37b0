"""Gradient descents, many side by side, each with its own step size.

    y_{t+1} = Pi(y_t - eta_t h_t)                                                          (1)
    eta_t   = eta,   eta / sqrt(t)   or   eta / sqrt(delta + sum_{s<=t} ||h_s||^2)         (2)
    l_t     = <h_t, y_t> + lambda ||y_t - y_{t-1}||                                        (3)

t counts from the expert's own start. lambda, the price of moving, is 0 for all but `Scream`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from thalweg._kernels.jit import generic, implement, inner
from thalweg._kernels.parts import Floats, Ints, leaves, move, move_own, place, settle, spots, start
from thalweg._kernels.projections import BALL, onto_ball, project
from thalweg._kernels.vectors import dot, square_norm
from thalweg._validate import check_choice, check_nonnegative, check_positive
from thalweg.domains import Domain
from thalweg.experts._base import Expert

__all__ = ["Descent", "DescentSettings", "DescentState"]

CONSTANT, DECAYING, SCALE_FREE = 0, 1, 2
RULES = {"constant": CONSTANT, "decaying": DECAYING, "scale_free": SCALE_FREE}


class DescentState(NamedTuple):
    """n descents."""

    points: Floats  # (n, d) y_t
    sums: Floats  # (n,) sum of ||h_s||^2 since the start, for scale-free steps
    ages: Ints  # (n,) rounds since the start, for steps that shrink
    moved: Floats  # (n,) ||y_t - y_{t-1}||; no entries where moving is free


class DescentSettings(NamedTuple):
    """What does not change, and scratch space."""

    steps: Floats  # (n,) eta
    rule: int  # of (2)
    delta: Floats  # (n,)
    price: float  # lambda
    ground: Any  # where they live: OnBall or OnSet
    etas: Floats  # (n,) scratch: the steps of the round
    before: Floats  # (n, d) scratch: where they stood, where moving has a price


class OnBall(NamedTuple):
    """A ball where moving is free, which most reductions use: no other projection is compiled into the round."""

    ball: Floats  # [R, c]


class OnSet(NamedTuple):
    """Any set."""

    code: int  # `thalweg._kernels.projections`
    domain: Floats
    work: Floats  # (d,) scratch


@generic
def _bring_back(ground: Any, point: Floats) -> None:
    """Project a point, in place."""


@implement(_bring_back, OnBall)
def _onto_ball(ground: OnBall, point: Floats) -> None:
    onto_ball(ground.ball, point, point, point)


@implement(_bring_back, OnSet)
def _onto_set(ground: OnSet, point: Floats) -> None:
    project(ground.code, ground.domain, point, point, ground.work)


@implement(start, DescentState)
def _start(e: DescentState, c: DescentSettings, k: int, point: Floats) -> None:
    e.points[k, :] = point
    e.sums[k] = 0.0
    e.ages[k] = 0
    if e.moved.shape[0] > 0:
        e.moved[k] = 0.0


@inner
def _take_step(e: DescentState, c: DescentSettings, i: int, square: float) -> None:
    """etas[i] <- (2), after the round's gradient is counted."""
    if c.rule == SCALE_FREE:
        e.sums[i] += square
        c.etas[i] = c.steps[i] * (1.0 / np.sqrt(c.delta[i] + e.sums[i]))  # delta > 0
    elif c.rule == DECAYING:
        e.ages[i] += 1
        c.etas[i] = c.steps[i] * (1.0 / np.sqrt(e.ages[i]))
    else:
        c.etas[i] = c.steps[i]


@inner
def _descend(e: DescentState, c: DescentSettings, i: int, h: Floats) -> None:
    """(1) for one, on any set."""
    if e.moved.shape[0] > 0:
        for j in range(h.shape[0]):
            c.before[i, j] = e.points[i, j]
    for j in range(h.shape[0]):
        e.points[i, j] -= c.etas[i] * h[j]
    _bring_back(c.ground, e.points[i])


@generic
def _descend_all(
    ground: Any, e: DescentState, c: DescentSettings, first: int, n: int, h: Floats, scores: Floats
) -> None:
    """(1) and (3) for all."""


@implement(_descend_all, OnSet)
def _descend_in_set(
    ground: OnSet, e: DescentState, c: DescentSettings, first: int, n: int, h: Floats, scores: Floats
) -> None:
    for i in range(first, first + n):
        scores[i] = dot(h, e.points[i])
        if e.moved.shape[0] > 0:
            scores[i] += c.price * e.moved[i]  # (3)
        _descend(e, c, i, h)


@implement(_descend_all, OnBall)
def _descend_in_ball(
    ground: OnBall, e: DescentState, c: DescentSettings, first: int, n: int, h: Floats, scores: Floats
) -> None:
    """One pass, and one over those outside."""
    d, ball = h.shape[0], ground.ball
    for i in range(first, first + n):
        eta = c.etas[i]
        inner = 0.0
        square = 0.0
        for j in range(d):
            before = e.points[i, j]
            moved = before - eta * h[j]
            gap = moved - ball[1 + j]
            inner += h[j] * before
            square += gap * gap
            e.points[i, j] = moved
        scores[i] = inner
        c.etas[i] = square
    for i in range(first, first + n):
        c.etas[i] = ball[0] / np.sqrt(c.etas[i])  # infinite in the centre
    for i in range(first, first + n):
        scale = c.etas[i]
        if scale < 1.0:
            for j in range(d):
                e.points[i, j] = ball[1 + j] + scale * (e.points[i, j] - ball[1 + j])


@implement(move, DescentState)
def _move(e: DescentState, c: DescentSettings, first: int, n: int, h: Floats, scores: Floats) -> None:
    square = square_norm(h) if c.rule == SCALE_FREE else 0.0
    for i in range(first, first + n):
        _take_step(e, c, i, square)
    _descend_all(c.ground, e, c, first, n, h, scores)


@implement(move_own, DescentState)
def _move_own(e: DescentState, c: DescentSettings, first: int, n: int, H: Floats, values: Floats, g: Floats) -> None:
    for i in range(first, first + n):
        _take_step(e, c, i, square_norm(H[i]))
        _descend(e, c, i, H[i])


@implement(settle, DescentState)
def _settle(e: DescentState, c: DescentSettings, first: int, n: int) -> None:
    if e.moved.shape[0] > 0:
        for i in range(first, first + n):
            square = 0.0
            for j in range(e.points.shape[1]):
                gap = e.points[i, j] - c.before[i, j]
                square += gap * gap
            e.moved[i] = np.sqrt(square)


@implement(place, DescentState)
def _place(e: DescentState) -> Floats:
    return e.points


@implement(spots, DescentState)
def _spots(e: DescentState) -> Floats:
    return e.points


@implement(leaves, DescentState)
def _leaves(e: DescentState, c: DescentSettings, k: int) -> tuple[int, int]:
    return k, 1


class Descent(Expert):
    """Gradient descent as an expert.

    Parameters
    ----------
    domain : Domain
        Where it lives.
    step_size : float
        eta.
    step_rule : {"constant", "decaying", "scale_free"}
        eta_t of (2).
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
        self.domain = domain
        self.step_size = check_positive("Descent", "step_size", step_size)
        self.step_rule = check_choice("Descent", "step_rule", step_rule, tuple(RULES))
        self.delta = check_positive("Descent", "delta", delta)
        self.price = None if price is None else check_nonnegative("Descent", "price", price)

    @classmethod
    def assemble(cls, experts: Sequence[Descent]) -> tuple[DescentState, DescentSettings]:
        """See `Expert.assemble`."""
        n, one = len(experts), experts[0]
        d, priced = one.domain.dim, n if one.price is not None else 0
        state = DescentState(np.zeros((n, d)), np.zeros(n), np.zeros(n, dtype=np.int64), np.zeros(priced))
        settings = DescentSettings(
            np.array([expert.step_size for expert in experts]),
            RULES[one.step_rule],
            np.array([expert.delta for expert in experts]),
            one.price or 0.0,
            OnSet(one.domain.code, one.domain.par, np.empty(d))
            if priced or one.domain.code != BALL
            else OnBall(one.domain.par),
            np.empty(n),
            np.empty((priced, d)),
        )
        return state, settings
