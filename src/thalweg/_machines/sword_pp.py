"""The machine of Sword++ (`thalweg.algorithms.sword_pp`, whose equations the lines name): two projections a member."""

from typing import NamedTuple

import numpy as np

from thalweg._kernels.clock import GRADIENTS, PROJECTIONS, ROUNDS
from thalweg._kernels.jit import implement
from thalweg._kernels.parts import Floats, Ints
from thalweg._kernels.pointers import Pointer, call
from thalweg._kernels.vectors import copy, decay, dot
from thalweg.learners.contract import decision, learn, propose

__all__ = ["SwordPPSettings", "SwordPPState"]


class SwordPPState(NamedTuple):
    """All that changes."""

    hats: Floats  # (N, d) xhat_{t,i}
    points: Floats  # (N, d) x_{t,i}
    moved: Floats  # (N,) ||x_{t,i} - x_{t-1,i}||^2
    scores: Floats  # (N,) sum_s l_{s,i}
    weights: Floats  # (N,) p_t
    last: Floats  # (d,) g_{t-1}
    variation: Floats  # (1,) sum_s ||g_s - g_{s-1}||^2
    x: Floats  # (d,) x_t
    clock: Ints  # `thalweg._kernels.clock`


class SwordPPSettings(NamedTuple):
    """What does not change, and scratch space."""

    steps: Floats  # (N,) eta
    onto: Pointer  # the set: `thalweg._kernels.projections`
    domain: Floats
    price: float  # lambda
    highest: float  # of the rate
    root: float  # sqrt(ln N)/D
    fresh: Floats  # (N, d) scratch: x_{t+1,i}
    work: Floats  # (d,) scratch


@implement(decision, SwordPPState)
def _decision(s: SwordPPState, c: SwordPPSettings) -> Floats:
    return s.x


@implement(learn, SwordPPState)
def _learn(s: SwordPPState, c: SwordPPSettings, g: Floats, loss: float) -> bool:
    N, d = s.points.shape
    s.clock[ROUNDS] += 1
    s.clock[GRADIENTS] += 1
    s.clock[PROJECTIONS] += 2 * N
    for j in range(d):
        s.variation[0] += (g[j] - s.last[j]) * (g[j] - s.last[j])
        s.last[j] = g[j]
    base = dot(g, s.x)
    for i in range(N):
        s.scores[i] += dot(g, s.points[i]) - base + c.price * s.moved[i]  # (3)
        for j in range(d):
            s.hats[i, j] -= c.steps[i] * g[j]
        call(c.onto, c.domain, s.hats[i], s.hats[i], c.work)  # (1)
        for j in range(d):
            c.fresh[i, j] = s.hats[i, j] - c.steps[i] * g[j]
        call(c.onto, c.domain, c.fresh[i], c.fresh[i], c.work)  # (2)
    return True


@implement(propose, SwordPPState)
def _propose(s: SwordPPState, c: SwordPPSettings, loss: float) -> None:
    N, d = s.points.shape
    rate = min(c.highest, c.root / np.sqrt(s.variation[0]))  # (6); infinite before the first gradient
    base, top = dot(s.last, s.x), -np.inf
    for i in range(N):
        square = 0.0
        for j in range(d):
            gap = c.fresh[i, j] - s.points[i, j]
            square += gap * gap
        s.moved[i] = square
        copy(c.fresh[i], s.points[i])
        guess = dot(s.last, s.points[i]) - base + c.price * square  # (4)
        s.weights[i] = -rate * (s.scores[i] + guess)
        top = max(top, s.weights[i])
    total = 0.0
    for i in range(N):
        s.weights[i] = decay(s.weights[i] - top)
        total += s.weights[i]
    for j in range(d):
        s.x[j] = 0.0
    for i in range(N):
        s.weights[i] /= total  # (5)
        for j in range(d):
            s.x[j] += s.weights[i] * s.points[i, j]
