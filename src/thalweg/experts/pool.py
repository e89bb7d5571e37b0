"""A pool: members with different step sizes, combined by a meta-learner into one expert.

With h_t the gradient (shared by all members, or one for each):

    y_{t+1,i} = member i's own round with h_{t,i},   i = 1..N                              (1)
    r_{t,i}   = <h_t, y_t - y_{t,i}>   or   -f_t(y_{t,i})     feed the meta-learner        (2)
    p_{t+1}   = the meta-learner's weights                                                 (3)
    y_{t+1}   = sum_i p_{t+1,i} y_{t+1,i}                                                  (4)

Pool k is member 0 of its group, and its own members are group k of their part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from thalweg._core.rules import inside, simplex
from thalweg._core.state import Past, Plan, field, part, scratch
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_choice, check_items, wrong
from thalweg._kernels.jit import implement
from thalweg._kernels.parts import (
    admit,
    after_projection,
    clear,
    feed,
    member_decision,
    move,
    move_own,
    point_count,
    projected_points,
    start,
    weigh,
)
from thalweg._kernels.vectors import copy, dot, square_norm
from thalweg.errors import InputError
from thalweg.experts._base import Expert, planned
from thalweg.metas._base import Meta
from thalweg.metas._base import planned as planned_metas
from thalweg.metas.hedge import Hedge

__all__ = ["Pool", "PoolSettings", "PoolState"]


class PoolState(NamedTuple):
    """K pools of up to N members."""

    members: object = part()  # K groups of N experts
    meta: object = part()  # a meta-learner with K groups
    weights: Floats = field("K N", simplex, called="members' weights")  # p_t
    y: Floats = field("K d", inside("domain"), called="experts' points")  # y_t


class PoolSettings(NamedTuple):
    """Constants and scratch space."""

    sizes: Ints  # (K,) number of members of each pool
    by_value: bool  # (2): judge by f_t(y_{t,i}), if each member has its own gradient
    members: object = part()
    meta: object = part()
    scores: Floats = scratch("K N")


@implement(start, PoolState)
def _start(e: PoolState, c: PoolSettings, k: int, i: int, point: Floats) -> None:
    clear(e.meta, c.meta, k)
    for member in range(c.sizes[k]):
        start(e.members, c.members, k, member, point)
        admit(e.meta, c.meta, k, member, member + 1)
    weigh(e.meta, c.meta, k, c.sizes[k], None, e.weights[k])
    copy(point, e.y[k])


@implement(move, PoolState)
def _move(e: PoolState, c: PoolSettings, k: int, n: int, h: Floats, scores: Floats) -> None:
    square = 0.0
    base = 0.0
    for j in range(h.shape[0]):
        square += h[j] * h[j]
        base += h[j] * e.y[k, j]
    scores[k, 0] = base
    move(e.members, c.members, k, c.sizes[k], h, c.scores)  # (1)
    feed(e.meta, c.meta, k, c.sizes[k], None, base, c.scores[k], square)  # (2)


@implement(move_own, PoolState)
def _move_own(e: PoolState, c: PoolSettings, k: int, n: int, H: Floats, values: Floats, g: Floats) -> None:
    for i in range(c.sizes[k]):
        c.scores[k, i] = values[k, i] if c.by_value else dot(g, member_decision(e.members, k, i))  # (2)
    base, square = (0.0, 0.0) if c.by_value else (dot(g, e.y[k]), square_norm(g))
    move_own(e.members, c.members, k, c.sizes[k], H, values, g)  # (1)
    feed(e.meta, c.meta, k, c.sizes[k], None, base, c.scores[k], square)


@implement(after_projection, PoolState)
def _after_projection(e: PoolState, c: PoolSettings, k: int, n: int) -> None:
    size, d = c.sizes[k], e.y.shape[1]
    after_projection(e.members, c.members, k, size)
    weigh(e.meta, c.meta, k, size, None, e.weights[k])  # (3)
    for j in range(d):
        e.y[k, j] = 0.0
    whole = size - size % 4
    for i in range(0, whole, 4):  # four members at a time: a quarter of the loads and stores of y
        p0, p1, p2, p3 = e.weights[k, i], e.weights[k, i + 1], e.weights[k, i + 2], e.weights[k, i + 3]
        y0, y1 = member_decision(e.members, k, i), member_decision(e.members, k, i + 1)
        y2, y3 = member_decision(e.members, k, i + 2), member_decision(e.members, k, i + 3)
        for j in range(d):
            e.y[k, j] += (p0 * y0[j] + p1 * y1[j]) + (p2 * y2[j] + p3 * y3[j])  # (4)
    for i in range(whole, size):
        y0 = member_decision(e.members, k, i)
        for j in range(d):
            e.y[k, j] += e.weights[k, i] * y0[j]


@implement(member_decision, PoolState)
def _member_decision(e: PoolState, k: int, i: int) -> Floats:
    return e.y[k]


@implement(projected_points, PoolState)
def _projected_points(e: PoolState) -> Floats:
    return projected_points(e.members)


@implement(point_count, PoolState)
def _point_count(e: PoolState, c: PoolSettings, k: int) -> int:
    return c.sizes[k]


class Pool(Expert):
    """Members under a meta-learner: one expert made of many.

    Parameters
    ----------
    members : sequence of Expert
        Experts of one kind and on one domain, each with a single point.
    meta : Meta, optional
        The meta-learner that weighs the members; by default `Hedge` with its self-confident rate.
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
        self.members = tuple(check_items("Pool", "members", members, "one or more experts"))
        kinds = {type(member) for member in self.members}
        if len(kinds) != 1 or not all(isinstance(member, Expert) and member.size == 1 for member in self.members):
            raise wrong("Pool", "members", "one or more experts of one kind, each with one point", self.members)
        if len({id(member.domain) for member in self.members}) != 1:
            raise InputError("The 'members' parameter of Pool must be experts on one domain, the same object.")
        self.domain = self.members[0].domain
        self.size = len(self.members)
        if meta is not None and not isinstance(meta, Meta):
            raise wrong("Pool", "meta", "a meta-learner of thalweg.metas", meta)
        self.meta = Hedge(radius=self.domain.radius) if meta is None else meta
        self.judge = check_choice("Pool", "judge", judge, ("linear", "value"))
        self.meta.check(self.size)
        known = getattr(self.meta, "feedback_range", None)
        if isinstance(known, float) and self.judge == "linear":  # |<h, y - y_i>| <= ||h|| diameter
            self.largest_gradient = known / self.domain.diameter

    @classmethod
    def plan(cls, experts: Sequence[Sequence[Pool]]) -> Plan:
        """See `Expert.plan`."""
        pools = [group[0] for group in experts]
        sizes = [pool.size for pool in pools]
        return Plan(
            PoolState,
            PoolSettings(np.array(sizes), pools[0].judge == "value"),
            sizes={"K": len(pools), "N": max(sizes), "d": pools[0].domain.dim},
            parts={
                "members": planned([pool.members for pool in pools]),
                "meta": planned_metas([pool.meta for pool in pools], sizes),
            },
            facts={"domain": pools[0].domain},
            pasts=_pasts,
        )


def _pasts(s: PoolState, c: PoolSettings, past: Past) -> Mapping[str, Past]:
    """Members live as long as their pool."""
    index = np.broadcast_to(np.arange(1, s.weights.shape[1] + 1), s.weights.shape)
    alive = past.alive & (index <= c.sizes[:, None])
    theirs = past._replace(alive=alive, number=index, lived=np.broadcast_to(past.lived, index.shape))
    return {"members": theirs, "meta": theirs, "weights": theirs}
