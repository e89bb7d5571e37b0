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

A bank of least squares with forgetting and of Kalman filters for a walk, for squared losses: dynamic linear models with
unknown variance (West and Harrison, Bayesian Forecasting and Dynamic Models, chapters 4 and 10). Member k has its mean
w, its covariance P in units of the noise, the noise's variance s (n rounds of it, discounted by 0.99), and before each
round widens P: by 1/lambda, or by q I, in units of features with variance 1:

    e = b - a'w,  v = 1 + a'P a,  w <- w + P a e/v,  P <- P - P a a'P/v,  n <- 0.99 n + 1,  s <- s + (e^2/v - s)/n   (6)

The bank is weighed by dynamic model averaging (Raftery, Karny and Ettler, Technometrics 2010): before each round the
weights are raised to the power 0.99, after it they are multiplied by the density of b, Student's with n degrees of
freedom around a'w with the squared width s v. The decision is Pi_X(sum of weight w).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from thalweg._core.types import Floats
from thalweg._kernels.jit import allocating
from thalweg._kernels.pointers import Pointer, call
from thalweg.lab.streams import Stream

__all__ = [
    "ADAGRAD",
    "ADAM",
    "SGD",
    "coin_betting",
    "filters",
    "least_squares",
    "optimiser",
    "persistence",
    "running_mean",
]

SGD, ADAGRAD, ADAM = 0, 1, 2
BETA_1, BETA_2, EPS = 0.9, 0.999, 1e-8  # river's
RIDGE = 0.01  # of the mean squared feature: 1/P at the start of (4) and (6)
LAMBDAS = np.array([1.0, 0.999, 0.995, 0.99, 0.98, 0.95, 0.9, 1.0, 1.0, 1.0, 1.0, 1.0])  # of (6)
WALKS = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1])  # q of (6)
AVERAGING, STEADY = 0.99, 0.99  # the powers of weights, and the discount of the noise
VAGUE = 1e4  # no variance of (6) grows beyond so many times that of the start
LEAST = 1e-6  # of a weight, so that a member that was out of favour can come back


# --------------------------------------------------------------------------------------------------------- as functions


def optimiser(stream: Stream, rule: int, rate: float) -> Floats:
    """The losses of one of river's optimisers, (1) to (3)."""
    losses = np.empty(len(stream.problem))
    _optimise(_world(stream), rule, rate, _start(stream), losses)
    return losses


def coin_betting(stream: Stream) -> Floats:
    """The losses of (5)."""
    losses, X = np.empty(len(stream.problem)), stream.domain
    _bet(_world(stream), stream.gradient_bound, X.center.ravel().copy(), X.radius, losses)
    return losses


def least_squares(stream: Stream, forgetting: float) -> Floats:
    """The losses of (4)."""
    losses = np.empty(len(stream.problem))
    first = 1 / (RIDGE * float(np.mean(stream.problem.features**2)))
    _least_squares(_world(stream), forgetting, first, _start(stream), losses)
    return losses


def filters(stream: Stream, projected: bool = True) -> Floats:
    """The losses of (6), projected or not."""
    losses, unit = np.empty(len(stream.problem)), float(np.mean(stream.problem.features**2))
    _filter(_world(stream), LAMBDAS, WALKS / unit, 1 / (RIDGE * unit), _start(stream), projected, losses)
    return losses


def running_mean(stream: Stream) -> Floats:
    """The losses of predicting the mean of all labels so far, 0 at first. It need not be a prediction of X."""
    b = stream.problem.labels
    return stream.problem._values(np.r_[0.0, np.cumsum(b)[:-1] / np.arange(1, b.size)])


def persistence(stream: Stream) -> Floats:
    """The losses of predicting the last label, 0 at first. It need not be a prediction of X."""
    return stream.problem._values(np.r_[0.0, stream.problem.labels[:-1]])


class World(NamedTuple):
    """The rounds and the set of a stream, for kernels."""

    features: Floats
    labels: Floats
    value: Pointer
    slope: Pointer
    parameter: float
    onto: Pointer
    par: Floats


def _world(stream: Stream) -> World:
    p, X = stream.problem, stream.domain
    return World(p.features, p.labels, p.phi.value, p.phi.slope, p.parameter, X.onto, X.par)


def _start(stream: Stream) -> Floats:
    return stream.domain.project(stream.domain.center).ravel()


# ----------------------------------------------------------------------------------------------------------- as kernels


@allocating
def _optimise(world: World, rule: int, rate: float, start: Floats, losses: Floats) -> None:
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
def _least_squares(world: World, forgetting: float, first: float, start: Floats, losses: Floats) -> None:
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
def _filter(world: World, lambdas: Floats, walks: Floats, first: float, start: Floats, projected: bool,
            losses: Floats) -> None:  # fmt: skip
    a, b = world.features, world.labels
    (T, d), K = a.shape, lambdas.shape[0]
    x, u, work = start.copy(), np.zeros(d), np.zeros(d)
    w, P, weights = np.zeros((K, d)), np.zeros((K, d, d)), np.full(K, 1.0 / K)
    noise, seen, scores = np.zeros(K), np.zeros(K), np.zeros(K)
    for k in range(K):
        w[k] = start
        P[k] = first * np.eye(d)
    for t in range(T):
        z = 0.0
        for j in range(d):
            z += a[t, j] * x[j]
        losses[t] = (z - b[t]) ** 2 / 2
        total = 0.0
        for k in range(K):
            weights[k] = weights[k] ** AVERAGING + LEAST
            total += weights[k]
        top = -np.inf
        for k in range(K):
            for i in range(d):
                grow = 1.0 / np.sqrt(lambdas[k]) if P[k, i, i] < VAGUE * first else 1.0
                for j in range(d):  # rows and columns alike, so that P stays a covariance
                    P[k, i, j] *= grow
                    P[k, j, i] *= grow
                P[k, i, i] += walks[k]
            e, v = b[t], 1.0
            for i in range(d):
                e -= a[t, i] * w[k, i]
                u[i] = 0.0
                for j in range(d):
                    u[i] += P[k, i, j] * a[t, j]
                v += u[i] * a[t, i]
            for i in range(d):
                w[k, i] += u[i] * e / v  # (6)
                for j in range(d):
                    P[k, i, j] -= u[i] * u[j] / v
            scores[k] = np.log(weights[k] / total)
            if noise[k] > 0.0:
                width, n = noise[k] * v, seen[k]
                log = math.lgamma((n + 1) / 2) - math.lgamma(n / 2) - 0.5 * np.log(n * np.pi * width)
                scores[k] += log - (n + 1) / 2 * np.log1p(e * e / (n * width))
            seen[k] = STEADY * seen[k] + 1.0
            noise[k] += (e * e / v - noise[k]) / seen[k]
            top = max(top, scores[k])
        total = 0.0
        for k in range(K):
            weights[k] = np.exp(scores[k] - top)
            total += weights[k]
        for j in range(d):
            u[j] = 0.0
        for k in range(K):
            weights[k] /= total
            for j in range(d):
                u[j] += weights[k] * w[k, j]
        if projected:
            call(world.onto, world.par, u, x, work)
        else:
            x[:] = u


@allocating
def _bet(world: World, G: float, center: Floats, R: float, losses: Floats) -> None:
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
