"""A pool of descents that lean on a hint (`thalweg.hinted`): 2N members on N points.

With m the hint, member i <= N plays yhat_i - eta_i m and member N + i plays yhat_i. A round with the gradient h:

    l_i = <h, yhat_i - y> - eta_i <h, m>,   l_{N+i} = <h, yhat_i - y>;   yhat_i <- Pi_Y(yhat_i - eta_i h)           (1)
    Hedge is fed l and ((max l - min l)/2)^2, which its rate adds up                                               (2)
    p <- its weights;   mean <- sum_i (p_i + p_{N+i}) yhat_i                                                        (3)
    E <- E + ||g - m||^2;   m <- g, the gradient at the decision itself, unless a hint comes                       (4)
    y <- mean - (sum_i p_i eta_i) m                                                                                (5)
"""

from typing import Any, NamedTuple

import numpy as np

from thalweg._kernels.clock import GRADIENTS, PROJECTIONS, ROUNDS
from thalweg._kernels.jit import implement, kernel
from thalweg._kernels.parts import Floats, Ints, feed, move, place, weigh
from thalweg._kernels.vectors import dot
from thalweg.learners.contract import decision, learn, notice, propose

__all__ = ["HintedSettings", "HintedState", "lean"]


class HintedState(NamedTuple):
    """All that changes."""

    members: Any  # one group of N descents
    meta: Any  # one group of 2N members
    weights: Floats  # (2N,) p: of those who lean on the hint, then of those who do not
    mean: Floats  # (d,) the combination without the hint
    hint: Floats  # (d,) m
    y: Floats  # (d,) the decision
    error: Floats  # (1,) E
    clock: Ints  # `thalweg._kernels.clock`


class HintedSettings(NamedTuple):
    """What does not change, and scratch space."""

    members: Any
    meta: Any
    steps: Floats  # (N,) eta
    scores: Floats  # (1, N) scratch
    losses: Floats  # (2N,) scratch


@kernel
def lean(mean: Floats, weights: Floats, steps: Floats, guess: Floats, hint: Floats, y: Floats) -> None:
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
        share, point = s.weights[i] + s.weights[N + i], place(s.members, 0, i)
        for j in range(s.mean.shape[0]):
            s.mean[j] += share * point[j]  # (3)


@implement(notice, HintedState)
def _notice(s: HintedState, c: HintedSettings, g: Floats) -> None:
    for j in range(g.shape[0]):
        s.error[0] += (g[j] - s.hint[j]) * (g[j] - s.hint[j])  # (4)
    lean(s.mean, s.weights, c.steps, g, s.hint, s.y)
