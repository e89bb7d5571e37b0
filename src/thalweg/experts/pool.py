"""A pool: members with different step sizes under a meta-learner, which together are one expert.

With h_t the gradient (one for all members, or each its own):

    y_{t+1,i} = member i's own round with h_{t,i},   i = 1..N                              (1)
    r_{t,i}   = <h_t, y_t - y_{t,i}>   or   -f_t(y_{t,i})     feed the meta-learner        (2)
    p_{t+1}   = the meta-learner's weights                                                 (3)
    y_{t+1}   = sum_i p_{t+1,i} y_{t+1,i}                                                  (4)

Member i of pool k is row k N + i of the members' arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from thalweg._kernels.jit import implement
from thalweg._kernels.parts import (
    Floats,
    Ints,
    admit,
    clear,
    feed,
    leaves,
    move,
    move_own,
    place,
    settle,
    spots,
    start,
    weigh,
)
from thalweg._kernels.vectors import dot, square_norm
from thalweg._validate import check_choice
from thalweg.errors import InputError
from thalweg.experts._base import Expert
from thalweg.metas import Hedge, Meta

__all__ = ["Pool", "PoolSettings", "PoolState"]


class PoolState(NamedTuple):
    """K pools of up to N members."""

    members: Any  # the state of K N experts
    meta: Any  # the state of a meta-learner with K groups
    weights: Floats  # (K, N) p_t
    y: Floats  # (K, d) y_t


class PoolSettings(NamedTuple):
    """What does not change, and scratch space."""

    members: Any
    meta: Any
    sizes: Ints  # (K,) how many members each pool has
    born: Ints  # (N,) ones: members never sleep
    by_value: bool  # (2): f_t(y_{t,i}), where each has its own gradient
    scores: Floats  # (K N,) scratch
    r: Floats  # (N,) scratch


@implement(start, PoolState)
def _start(e: PoolState, c: PoolSettings, k: int, point: Floats) -> None:
    N = c.born.shape[0]
    clear(e.meta, c.meta, k)
    for i in range(c.sizes[k]):
        start(e.members, c.members, k * N + i, point)
        admit(e.meta, c.meta, k, i, i + 1)
    weigh(e.meta, c.meta, k, c.sizes[k], c.born, e.weights[k])
    e.y[k, :] = point


@implement(move, PoolState)
def _move(e: PoolState, c: PoolSettings, first: int, n: int, h: Floats, scores: Floats) -> None:
    N = c.born.shape[0]
    for k in range(first, first + n):
        square = 0.0
        base = 0.0
        for j in range(h.shape[0]):
            square += h[j] * h[j]
            base += h[j] * e.y[k, j]
        scores[k] = base
        move(e.members, c.members, k * N, c.sizes[k], h, c.scores)  # (1)
        for i in range(c.sizes[k]):
            c.r[i] = base - c.scores[k * N + i]  # (2)
        feed(e.meta, c.meta, k, c.sizes[k], c.born, c.r, square)


@implement(move_own, PoolState)
def _move_own(e: PoolState, c: PoolSettings, first: int, n: int, H: Floats, values: Floats, g: Floats) -> None:
    N = c.born.shape[0]
    points = spots(e.members)
    for k in range(first, first + n):
        square = 0.0 if c.by_value else square_norm(g)
        base = dot(g, e.y[k])
        for i in range(c.sizes[k]):
            row = k * N + i
            c.r[i] = -values[row] if c.by_value else base - dot(g, points[row])  # (2)
        move_own(e.members, c.members, k * N, c.sizes[k], H, values, g)  # (1)
        feed(e.meta, c.meta, k, c.sizes[k], c.born, c.r, square)


@implement(settle, PoolState)
def _settle(e: PoolState, c: PoolSettings, first: int, n: int) -> None:
    N, d = c.born.shape[0], e.y.shape[1]
    points = place(e.members)
    for k in range(first, first + n):
        size, row = c.sizes[k], k * N
        settle(e.members, c.members, row, size)
        p = e.weights[k]
        weigh(e.meta, c.meta, k, size, c.born, p)  # (3)
        for j in range(d):
            e.y[k, j] = 0.0
        whole = size - size % 4
        for i in range(0, whole, 4):  # four rows at a time: a quarter of the loads and stores of y
            p0, p1, p2, p3 = p[i], p[i + 1], p[i + 2], p[i + 3]
            at = row + i
            for j in range(d):
                e.y[k, j] += (p0 * points[at, j] + p1 * points[at + 1, j]) + (
                    p2 * points[at + 2, j] + p3 * points[at + 3, j]
                )  # (4)
        for i in range(whole, size):
            for j in range(d):
                e.y[k, j] += p[i] * points[row + i, j]


@implement(place, PoolState)
def _place(e: PoolState) -> Floats:
    return e.y


@implement(spots, PoolState)
def _spots(e: PoolState) -> Floats:
    return spots(e.members)


@implement(leaves, PoolState)
def _leaves(e: PoolState, c: PoolSettings, k: int) -> tuple[int, int]:
    return k * c.born.shape[0], c.sizes[k]


class Pool(Expert):
    """Members under a meta-learner: one expert made of many.

    Parameters
    ----------
    members : sequence of Expert
        Of one kind and on one domain; each keeps one point.
    meta : Meta, optional
        Whom to believe; `Hedge` with its self-confident rate when left out.
    judge : {"linear", "value"}
        How members with gradients of their own are judged: by <gradient at the combined decision, y_i>, or by their own
        values.

    Examples
    --------
    >>> import thalweg as tw
    >>> ball = tw.domains.Ball(2)
    >>> pool = tw.experts.Pool([tw.experts.Descent(ball, step) for step in (0.1, 1.0)])
    >>> learner = tw.Alone(pool)
    >>> learner.update([1.0, 0.0])
    >>> learner.points
    array([[-0.1,  0. ],
           [-1. ,  0. ]])
    """

    def __init__(self, members: Sequence[Expert], *, meta: Meta | None = None, judge: str = "linear") -> None:
        self.members = tuple(members)
        kinds = {type(member) for member in self.members}
        if len(kinds) != 1 or not all(isinstance(member, Expert) and member.size == 1 for member in self.members):
            raise InputError(
                "The 'members' parameter of Pool must be one or more experts of one kind, each with one point. "
                f"Got {self.members!r}."
            )
        if len({id(member.domain) for member in self.members}) != 1:
            raise InputError("The 'members' parameter of Pool must be experts on one domain, the same object.")
        self.domain = self.members[0].domain
        self.size = len(self.members)
        self.meta = Hedge(radius=self.domain.radius) if meta is None else meta
        self.judge = check_choice("Pool", "judge", judge, ("linear", "value"))
        self.meta.check(self.size)

    @classmethod
    def assemble(cls, experts: Sequence[Pool]) -> tuple[PoolState, PoolSettings]:
        """See `Expert.assemble`. A pool with fewer members than others has rows that are never used."""
        K, N, d = len(experts), max(pool.size for pool in experts), experts[0].domain.dim
        rows = [pool.members[min(i, pool.size - 1)] for pool in experts for i in range(N)]
        members = type(rows[0]).assemble(rows)
        meta = type(experts[0].meta).assemble([pool.meta for pool in experts], [pool.size for pool in experts])
        state = PoolState(members[0], meta[0], np.zeros((K, N)), np.zeros((K, d)))
        settings = PoolSettings(
            members[1],
            meta[1],
            np.array([pool.size for pool in experts]),
            np.ones(N, dtype=np.int64),
            experts[0].judge == "value",
            np.zeros(K * N),
            np.zeros(N),
        )
        return state, settings
