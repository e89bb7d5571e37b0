"""Slow twin of the additive levels of Cutkosky, published, inside the reduction, and as printed in an appendix.

    [C20]  Cutkosky. Parameter-free, dynamic, and strongly-adaptive online learning. ICML 2020.
    [CO18] Cutkosky, Orabona. Black-box reductions for parameter-free online learning in Banach spaces. COLT 2018.
    [Z25]  Zhao, Xie, Zhang, Zhou. Efficient methods for non-stationary online learning. JMLR 26, 2025.

Lengths are lengths here, measured from the origin o of W: a bet is a vector (y, R z), psi is a length, z is found by
bisection. One level is one object; nothing of the package is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from tests.twins.dynamic import ball, everything, surrogate_gradient


class Coin:
    """[CO18, Algorithm 1] Bet a fraction v of the wealth; v is chosen by online Newton steps."""

    def __init__(self, psi):
        self.wealth, self.v, self.A = psi, 0.0, 1.0

    @property
    def bet(self):
        return self.v * self.wealth

    def feed(self, s):
        self.wealth = self.wealth - s * self.bet
        zeta = s / (1 - s * self.v)
        self.A += zeta**2
        self.v = float(np.clip(self.v - 2 / (2 - math.log(3)) * zeta / self.A, -0.5, 0.5))


class Direction:
    """Scale-free gradient descent on the unit ball."""

    def __init__(self, dim):
        self.u, self.total = np.zeros(dim), 0.0

    def feed(self, g):
        self.total += float(g @ g)
        if self.total > 0:
            u = self.u - math.sqrt(2) * g / math.sqrt(self.total)
            self.u = u / max(1.0, float(np.linalg.norm(u)))


class ParameterFree:
    """[CO18, Algorithm 2] The bet in the direction. `coins` are all outcomes it has seen."""

    def __init__(self, dim, psi):
        self.coin, self.direction, self.coins = Coin(psi), Direction(dim), []

    @property
    def point(self):
        return self.coin.bet * self.direction.u

    def feed(self, g):
        s = float(g @ self.direction.u)
        self.coins.append(s)
        self.coin.feed(s)
        self.direction.feed(g)


def lifted(project, a, R, p, q):
    """The point of V = {(y, R z) : (1 - z) a + y in W, 0 <= z <= 1} nearest to (p, q), with `project` onto W."""

    def rest(z):
        s = p + (1 - z) * a
        return s - project(s)

    def half_slope(z):  # of ||rest(z)||^2 + (R z - q)^2, as a function of z
        return -a @ rest(z) + R * (R * z - q)

    if half_slope(0.0) >= 0:
        z = 0.0
    elif half_slope(1.0) <= 0:
        z = 1.0
    else:
        low, high = 0.0, 1.0
        while low < (low + high) / 2 < high:
            low, high = ((low + high) / 2, high) if half_slope((low + high) / 2) < 0 else (low, (low + high) / 2)
        z = (low + high) / 2
    return p - rest(z), R * z


@dataclass
class Record:
    """What happened in every round."""

    decisions: list = field(default_factory=list)  # x_t
    inner: list = field(default_factory=list)  # y_t, before the projection onto X
    points: list = field(default_factory=list)  # (levels, d): x^(N)..x^(1)
    wealth: list = field(default_factory=list)  # (levels,), in units of R
    fed: list = field(default_factory=list)  # what the levels learned from
    coins: list = field(default_factory=list)  # every s

    def arrays(self):
        for name in ("decisions", "inner", "points", "wealth", "fed", "coins"):
            setattr(self, name, np.array(getattr(self, name)))
        return self


class Levels:
    """[C20] with the set W of each level given by a projection, longest intervals first."""

    def __init__(self, projections, o, R, gradient_bound, horizon, epsilon, tolerances):
        self.projections, self.o, self.R, self.G = projections, o, R, gradient_bound
        self.N = 0
        while horizon > 2**self.N:
            self.N += 1
        self.numbers = [self.N, *range(self.N - 1, 0, -1)]
        self.horizon, self.epsilon, self.tolerances, self.t = horizon, epsilon, tolerances, 0
        self.learners = [self.newborn(i) for i in self.numbers]
        self.coins = []

    def newborn(self, i):
        if i == self.N:
            return ParameterFree(self.o.size, self.epsilon * self.R)
        return ParameterFree(self.o.size + 1, self.epsilon / math.ceil(self.horizon / 2**i) * self.R)

    def propose(self):
        """x^(N)..x^(1), as points of the domain."""
        self.before, self.raw, self.placed, points = [], [], [], []
        x = np.zeros(self.o.size)
        for i, learner, project in zip(self.numbers, self.learners, self.projections, strict=True):

            def onto(w, project=project):
                return project(self.o + w) - self.o

            w = learner.point
            self.before.append(x)
            self.raw.append(w)
            if i == self.N:
                x = onto(w)
                self.placed.append(x)
            else:
                y, z = lifted(onto, x, self.R, w[:-1], w[-1])
                self.placed.append(np.append(y, z))
                x = onto((1 - z / self.R) * x + y)
            points.append(self.o + x)
        return np.array(points)

    def feed(self, g):
        self.t += 1
        for k, i in enumerate(self.numbers):
            loss = g / self.G
            if i < self.N:
                loss = np.append(loss, -(loss @ self.before[k]) / self.R) / math.sqrt(2)
            gap = self.raw[k] - self.placed[k]
            n = np.linalg.norm(gap)
            if n > self.tolerances[k] * self.R and loss @ gap < 0:
                loss = loss - (loss @ gap) / n**2 * gap
            self.learners[k].feed(loss)
            self.coins.append(self.learners[k].coins[-1])
            if i < self.N and self.t % 2**i == 0:
                self.learners[k] = self.newborn(i)


def levels_of(horizon):
    return max(1, math.ceil(math.log2(horizon)))


def cutkosky(losses, project, o, R, gradient_bound, horizon, epsilon=1.0, tolerance=1e-12):
    """[C20] on the set that `project` projects onto; o is a point of it, and no other is further from o than R."""
    K = levels_of(horizon)
    levels = Levels([project] * K, o, R, gradient_bound, horizon, epsilon, [tolerance] * K)
    return _play(levels, losses, lambda y: y)


def printed(losses, project, o, R, gradient_bound, horizon, epsilon=1.0, tolerance=1e-12):
    """[Z25, appendix] All levels but the last on the ball Y around o, the last one on X; all learn from g_t."""
    K = levels_of(horizon)
    projections, tolerances = [ball(o, R)] * (K - 1) + [project], [1e-12] * (K - 1) + [tolerance]
    return _play(Levels(projections, o, R, gradient_bound, horizon, epsilon, tolerances), losses, lambda y: y)


def efficient(losses, project, o, R, gradient_bound, horizon, epsilon=1.0, tolerance=1e-12, tau=everything):
    """[C20] on the ball Y around o, inside the reduction of [Z25]."""
    K = levels_of(horizon)
    levels = Levels([ball(o, R)] * K, o, R, gradient_bound, horizon, epsilon, [1e-12] * K)
    return _play(levels, losses, project, tolerance * R, tau)


def _play(levels, losses, project, tol=0.0, tau=everything):
    record = Record()
    for f in losses:
        points = levels.propose()
        y = points[-1]
        x = project(y)
        g = f.gradient(x)
        h = surrogate_gradient(g, y, x, tol, tau)
        record.decisions.append(x)
        record.inner.append(y)
        record.points.append(points)
        record.wealth.append([learner.coin.wealth / levels.R for learner in levels.learners])
        record.fed.append(h)
        levels.feed(h)
    record.coins = levels.coins
    return record.arrays()
