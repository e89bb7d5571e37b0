"""Experts on the intervals of a cover, under a meta-learner for members that come and go.

A round, with h the gradient and val the loss (order as the proofs need it):

    r_k = <h, y - y_k> (or f(y) - f(y_k)); feed the meta-learner                                    (1)
    y_k <- expert's own round with h                                                                (2)
    loss since the last marker += val; above the threshold C_m: marker m + 1 starts next round      (3)
    p <- weights of those alive next round; y <- sum_k p_k y_k                                      (4)

Slot k holds the expert of level k (`thalweg._kernels.covers`).
"""

from typing import Any, NamedTuple

from thalweg._kernels.clock import GRADIENTS, PROJECTIONS, ROUNDS, VALUES
from thalweg._kernels.covers import level, place_marker, slots_in_use
from thalweg._kernels.jit import implement
from thalweg._kernels.parts import Floats, Ints, admit, feed, fits, leaves, move, move_own, place, settle, start, weigh
from thalweg._kernels.vectors import square_norm
from thalweg._machines._contract import Own, asks, charged, decision, learn, learn_own, propose, room

__all__ = ["CoverSettings", "CoverState"]


class CoverState(NamedTuple):
    """K slots."""

    experts: Any  # K experts
    meta: Any  # one group of K members
    born: Ints  # (K,) the marker at which the expert of a slot started; 0: the slot is empty
    weights: Floats  # (K,) p
    y: Floats  # (d,) the combination
    paid: Floats  # (1,) loss since the last marker
    markers: Ints  # (1,) m, markers so far
    marks: Ints  # (capacity,) marks[i % capacity]: the round at which marker i + 1 starts; none without thresholds
    clock: Ints  # `thalweg._kernels.clock`


class CoverSettings(NamedTuple):
    """What does not change, and scratch space."""

    experts: Any
    meta: Any
    thresholds: Floats  # C_m at index m; empty where every round is a marker
    origin: Floats  # (d,) where a newborn starts,
    current: bool  # unless that is the present combination
    kind: int  # of the cover
    losses: Floats  # (K,) scratch
    scores: Floats  # (K, 1) scratch


@implement(decision, CoverState)
def _decision(s: CoverState, c: CoverSettings) -> Floats:
    return s.y


@implement(room, CoverState)
def _room(s: CoverState, c: CoverSettings) -> bool:
    m = s.markers[0]
    return (m + 1) >> s.born.shape[0] == 0 and (c.thresholds.shape[0] == 0 or m < c.thresholds.shape[0])


@implement(learn, CoverState)
def _learn(s: CoverState, c: CoverSettings, h: Floats, loss: float) -> bool:
    K = slots_in_use(s.markers[0])
    for k in range(K):
        c.losses[k] = 0.0  # relative to the combination's, so that nothing is lost where they are nearly the same
        if s.born[k] > 0:
            gain, point = 0.0, place(s.experts, k, 0)
            for j in range(h.shape[0]):
                gain += h[j] * (s.y[j] - point[j])
            c.losses[k] = -gain
    if not fits(s.meta, c.meta, 0, K, s.born, c.losses):
        return False
    s.clock[ROUNDS] += 1
    s.clock[GRADIENTS] += 1
    s.clock[VALUES] += 1 if c.thresholds.shape[0] > 0 else 0
    feed(s.meta, c.meta, 0, K, s.born, 0.0, c.losses, square_norm(h))  # (1)
    for k in range(K):
        if s.born[k] > 0:
            s.clock[PROJECTIONS] += leaves(s.experts, c.experts, k)
            move(s.experts, c.experts, k, 1, h, c.scores)  # (2)
    return True


@implement(learn_own, CoverState)
def _learn_own(s: CoverState, c: CoverSettings, own: Own, g: Floats, loss: float) -> bool:
    K = slots_in_use(s.markers[0])
    for k in range(K):
        c.losses[k] = own.judged[k] - loss if s.born[k] > 0 else 0.0
    if not fits(s.meta, c.meta, 0, K, s.born, c.losses):
        return False
    s.clock[ROUNDS] += 1
    s.clock[VALUES] += 1
    feed(s.meta, c.meta, 0, K, s.born, 0.0, c.losses, 0.0)  # (1)
    for k in range(K):
        if s.born[k] > 0:
            n = leaves(s.experts, c.experts, k)
            s.clock[PROJECTIONS] += n
            s.clock[GRADIENTS] += n
            s.clock[VALUES] += n + 1 if n > 1 else 1  # a single member's value is its expert's
            move_own(s.experts, c.experts, k, 1, own.H, own.values, g)  # (2)
    return True


@implement(asks, CoverState)
def _asks(s: CoverState, k: int) -> bool:
    return s.born[k] > 0


@implement(charged, CoverState)
def _charged(s: CoverState, own: Own, loss: float) -> float:
    return own.judged[level(s.markers[0])]  # markers go by the loss of the newest expert


@implement(propose, CoverState)
def _propose(s: CoverState, c: CoverSettings, loss: float) -> None:
    for k in range(slots_in_use(s.markers[0])):
        if s.born[k] > 0:
            settle(s.experts, c.experts, k, 1)
    s.paid[0] += loss
    if c.thresholds.shape[0] == 0 or s.paid[0] > c.thresholds[s.markers[0]]:  # (3)
        if s.marks.shape[0] > 0:
            s.marks[s.markers[0] % s.marks.shape[0]] = s.clock[ROUNDS] + 1
        s.markers[0] += 1
        s.paid[0] = 0.0
        top = place_marker(c.kind, s.markers[0], s.born)
        for k in range(top + 1):
            if s.born[k] > 0:
                start(s.experts, c.experts, k, 0, s.y if c.current else c.origin)
                admit(s.meta, c.meta, 0, k, s.markers[0])
    K = slots_in_use(s.markers[0])
    weigh(s.meta, c.meta, 0, K, s.born, s.weights)
    # Around the heaviest expert: where all are in one place, so is y, to the bit. Coin betting asks whether r > 0.
    top = 0
    for k in range(K):
        top = k if s.weights[k] > s.weights[top] else top
    heaviest = place(s.experts, top, 0)
    for j in range(s.y.shape[0]):
        s.y[j] = heaviest[j]
    for k in range(K):
        if s.born[k] > 0 and k != top:
            point = place(s.experts, k, 0)
            for j in range(s.y.shape[0]):
                s.y[j] += s.weights[k] * (point[j] - heaviest[j])  # (4)
