"""Common methods, in a few lines each. All are played as the library's learners are: from Pi_X(c), projected onto X.

river's optimisers (river.optim: SGD, AdaGrad, Adam), with river's default rates:

    w <- Pi_X(w - rate g)                                                                                          (1)
    w <- Pi_X(w - rate g / sqrt(sum g^2 + eps))                             entry by entry                          (2)
    w <- Pi_X(w - rate sqrt(1 - b2^t)/(1 - b1^t) m / (sqrt(v) + eps))       m, v: discounted means of g and g^2     (3)

Recursive least squares with forgetting lambda (Haykin, Adaptive Filter Theory, chapter 10), for squared losses; the
decision is Pi_X(w):

    k = P a / (lambda + a'P a),  w <- w - k (a'w - b),  P <- (P - k a'P)/lambda                                      (4)

Coin betting with the KT potential (Orabona and Pal, NIPS 2016), told G and held to X by the reduction of Cutkosky (ICML
2020), with h_t the surrogate gradient of `thalweg.learners.one_projection`:

    y_{t+1} = c + (R - sum_s <h_s/G, y_s - c>) (-sum_s h_s/G) / (t + 1)                                            (5)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thalweg._kernels.jit import allocating
from thalweg._kernels.pointers import Pointer, call
from thalweg.lab.streams import Array, Stream

__all__ = ["ADAGRAD", "ADAM", "SGD", "coin_betting", "least_squares", "optimiser", "persistence", "running_mean"]

SGD, ADAGRAD, ADAM = 0, 1, 2
BETA_1, BETA_2, EPS = 0.9, 0.999, 1e-8  # river's
RIDGE = 0.01  # of the mean squared feature: 1/P at the start of (4)


# --------------------------------------------------------------------------------------------------------- as functions


def optimiser(stream: Stream, rule: int, rate: float) -> Array:
    """The losses of one of river's optimisers, (1) to (3)."""
    losses = np.empty(len(stream.problem))
    _optimise(_world(stream), rule, rate, _start(stream), losses)
    return losses


def coin_betting(stream: Stream) -> Array:
    """The losses of (5)."""
    losses, X = np.empty(len(stream.problem)), stream.domain
    _bet(_world(stream), stream.gradient_bound, X.center.ravel().copy(), X.radius, losses)
    return losses


def least_squares(stream: Stream, forgetting: float) -> Array:
    """The losses of (4)."""
    losses = np.empty(len(stream.problem))
    first = 1 / (RIDGE * float(np.mean(stream.problem.features**2)))
    _least_squares(_world(stream), forgetting, first, _start(stream), losses)
    return losses


def running_mean(stream: Stream) -> Array:
    """The losses of predicting the mean of all labels so far, 0 at first. It need not be a prediction of X."""
    b = stream.problem.labels
    return stream.problem._values(np.r_[0.0, np.cumsum(b)[:-1] / np.arange(1, b.size)])


def persistence(stream: Stream) -> Array:
    """The losses of predicting the last label, 0 at first. It need not be a prediction of X."""
    return stream.problem._values(np.r_[0.0, stream.problem.labels[:-1]])


class World(NamedTuple):
    """The rounds and the set of a stream, for kernels."""

    features: Array
    labels: Array
    value: Pointer
    slope: Pointer
    parameter: float
    onto: Pointer
    par: Array


def _world(stream: Stream) -> World:
    p, X = stream.problem, stream.domain
    return World(p.features, p.labels, p.phi.value, p.phi.slope, p.parameter, X.onto, X.par)


def _start(stream: Stream) -> Array:
    return stream.domain.project(stream.domain.center).ravel()


# ----------------------------------------------------------------------------------------------------------- as kernels


@allocating
def _optimise(world: World, rule: int, rate: float, start: Array, losses: Array) -> None:
    a, b = world.features, world.labels
    T, d = a.shape
    w, m, v, work = start.copy(), np.zeros(d), np.zeros(d), np.zeros(d)
    for t in range(T):
        z = 0.0
        for j in range(d):
            z += a[t, j] * w[j]
        losses[t] = call(world.value, z, b[t], world.parameter)
        s = call(world.slope, z, b[t], world.parameter)
        step = rate * np.sqrt(1 - BETA_2 ** (t + 1)) / (1 - BETA_1 ** (t + 1))
        for j in range(d):
            g = s * a[t, j]
            if rule == SGD:
                w[j] -= rate * g  # (1)
            elif rule == ADAGRAD:
                v[j] += g * g
                w[j] -= rate / np.sqrt(v[j] + EPS) * g  # (2)
            else:
                m[j] = BETA_1 * m[j] + (1 - BETA_1) * g
                v[j] = BETA_2 * v[j] + (1 - BETA_2) * g * g
                w[j] -= step * m[j] / (np.sqrt(v[j]) + EPS)  # (3)
        call(world.onto, world.par, w, w, work)


@allocating
def _least_squares(world: World, forgetting: float, first: float, start: Array, losses: Array) -> None:
    a, b = world.features, world.labels
    T, d = a.shape
    w, x, u, work = start.copy(), start.copy(), np.zeros(d), np.zeros(d)
    P = first * np.eye(d)
    for t in range(T):
        z = error = 0.0
        for j in range(d):
            z += a[t, j] * x[j]
            error += a[t, j] * w[j]
        losses[t] = (z - b[t]) ** 2 / 2
        error -= b[t]
        width = forgetting
        for i in range(d):
            u[i] = 0.0
            for j in range(d):
                u[i] += P[i, j] * a[t, j]
            width += u[i] * a[t, i]
        for i in range(d):
            w[i] -= u[i] / width * error  # (4)
            for j in range(d):
                P[i, j] = (P[i, j] - u[i] / width * u[j]) / forgetting
        if not 0 < width < 1e100:  # wound up in directions that are never seen
            P[:] = first * np.eye(d)
            w[:] = x
        call(world.onto, world.par, w, x, work)


@allocating
def _bet(world: World, G: float, center: Array, R: float, losses: Array) -> None:
    a, b = world.features, world.labels
    T, d = a.shape
    y, x, total, work = center.copy(), center.copy(), np.zeros(d), np.zeros(d)
    wealth = R
    for t in range(T):
        call(world.onto, world.par, y, x, work)
        z = away = against = 0.0
        for j in range(d):
            z += a[t, j] * x[j]
        losses[t] = call(world.value, z, b[t], world.parameter)
        s = call(world.slope, z, b[t], world.parameter)
        for j in range(d):
            away += (y[j] - x[j]) ** 2
            against += s * a[t, j] * (y[j] - x[j])
        turned = against / away if against < 0 and away > 1e-20 * R * R else 0.0
        for j in range(d):
            h = s * a[t, j] - turned * (y[j] - x[j])
            wealth -= h / G * (y[j] - center[j])
            total[j] -= h / G
        for j in range(d):
            y[j] = center[j] + wealth * total[j] / (t + 2)  # (5), rounds counted from 0
