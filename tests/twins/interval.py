"""Slow twins of the interval-dynamic-regret algorithms: three layers, the middle one an object with a point.

[Z20] Zhang, Lu, Yang. Minimizing dynamic regret and adaptive regret simultaneously. AISTATS 2020.    (AOA)
[Z25] Zhao, Xie, Zhang, Zhou. Efficient methods for non-stationary online learning. JMLR 26, 2025.    (Alg. 3)
"""

from __future__ import annotations

import math

import numpy as np

from tests.twins.adaptive import AdaNormalHedge, every_round, mu, reduced
from tests.twins.dynamic import (
    ader_pool,
    ader_prior,
    ader_rate,
    ball,
    everything,
    minimax_pool,
    minimax_rate,
    small_loss_rate,
    softmax,
)


class Pool:
    """N gradient descents under Hedge on cumulative losses; `rate(q)` gives epsilon from the sum of squared norms."""

    def __init__(self, start, project, etas, prior, rate):
        self.etas, self.project, self.rate, self.prior = etas, project, rate, np.asarray(prior)
        self.points = np.array([start] * len(etas))
        self.losses, self.q = np.zeros(len(etas)), 0.0

    @property
    def point(self):
        p = softmax(np.log(self.prior) - self.rate(self.q) * self.losses)
        main = self.points[int(np.argmax(p))]
        return main + sum(p_i * (point - main) for p_i, point in zip(p, self.points, strict=True))

    def update(self, h):
        """One gradient for all, linear losses."""
        self.move([h] * len(self.etas), self.points @ h, h @ h)

    def learn(self, f):
        """Each member its own gradient and value."""
        self.move([f.gradient(point) for point in self.points], np.array([f.value(point) for point in self.points]))

    def move(self, gradients, losses, square=0.0):
        self.losses = self.losses + losses
        self.q += square
        self.points = np.array(
            [self.project(x - eta * g) for x, eta, g in zip(self.points, self.etas, gradients, strict=True)]
        )


def small_loss_expert(project_y, radius, etas):
    """[Z25, eq. 9-10]: Theorem 3's ensemble; `newborn(start)` builds one."""
    N = len(etas)
    return lambda start: Pool(start, project_y, etas, np.full(N, 1 / N), lambda q: small_loss_rate(N, radius, q))


def aoa(losses, project, center, *, diameter, gradient_bound, loss_bound, gradients="own"):
    """[Z20, Algorithm 3]: AdaNormalHedge over the geometric cover, experts are basic Aders of the interval's length.

    With one gradient for all the losses are linearised and the experts are improved Aders.
    """
    span = loss_bound if gradients == "own" else gradient_bound * diameter

    def make(J, start):
        length = J[1] - J[0] + 1
        etas = ader_pool(length, diameter, gradient_bound)
        rate = ader_rate(length, span if gradients == "own" else 2 * span)
        return Pool(start, project, etas, ader_prior(len(etas)), lambda q: rate)

    return every_round(losses, project, center, "geometric", AdaNormalHedge(), make, span, gradients)


def efficient_aoa(losses, project, center, radius, *, diameter, gradient_bound, tau=everything):
    """[Z25, Section 4.2]: linearised AOA on Y = {y : ||y - c|| <= R}, one projection onto X."""
    project_y = ball(center, radius)

    def make(J):
        length = J[1] - J[0] + 1
        etas = minimax_pool(length, radius, diameter, gradient_bound)
        N = len(etas)
        rate = minimax_rate(N, length, radius, gradient_bound)
        return Pool(center, project_y, etas, np.full(N, 1 / N), lambda q: rate)

    return reduced(losses, project, AdaNormalHedge(), make, 2 * gradient_bound * radius, 1e-12, tau)


def interval_threshold(m, T, G, L, R, N):
    """[Z25, Theorem 5] with R for D."""
    s = math.sqrt(math.log(1 + 2 * m))
    return (
        7 * L * (12 * R * s + 4 * R * mu(T) + 6 * R * math.sqrt(math.log(N))) ** 2
        + 54 * G * R * s**2
        + 18 * G * R * mu(T)
        + 3 * (6 + G**2 * R**2) * math.sqrt(math.log(N)) / 2
        + (630 * L + 23) * R**2
        + 9
    )
