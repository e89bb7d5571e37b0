"""Slow twin of diagonal AdaGrad on a ball, with the projection of its own norm found by a root search.

[D11] Duchi, Hazan, Singer. Adaptive subgradient methods for online learning and stochastic optimization. JMLR 12, 2011.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize


def nearest(z, a, center, radius):
    """The point y of the ball with the smallest sum a_j (y_j - z_j)^2.

    Where z lies outside, a_j (y_j - z_j) + lam (y_j - c_j) = 0 with the lam > 0 that puts y on the sphere.
    """

    def point(lam):
        return center + a * (z - center) / (a + lam)

    def excess(lam):
        return np.linalg.norm(point(lam) - center) - radius

    if excess(0.0) <= 0:
        return z
    high = a.max()
    while excess(high) > 0:
        high *= 2
    return point(optimize.brentq(excess, 0.0, high, xtol=1e-300, rtol=4 * np.finfo(float).eps, maxiter=1000))


class AdaGrad:
    """[D11, Figure 1] with proximal steps: A = diag(sqrt(delta + sum h^2)), y <- nearest to y - alpha A^-1 h."""

    def __init__(self, start, center, radius, scale, delta):
        self.point, self.center, self.radius, self.scale, self.delta = np.array(start), center, radius, scale, delta
        self.squares = np.zeros(len(center))

    def update(self, h):
        self.squares = self.squares + h**2
        a = np.sqrt(self.delta + self.squares)
        self.point = nearest(self.point - self.scale * h / a, a, self.center, self.radius)


def adagrad(losses, center, radius, *, scale, delta=1e-8):
    """The decisions of one AdaGrad."""
    expert, decisions = AdaGrad(center, center, radius, scale, delta), []
    for f in losses:
        decisions.append(expert.point)
        expert.update(f.gradient(expert.point))
    return np.array(decisions)


class Pool:
    """Experts under Hedge with the rate sqrt(ln N/(1 + R^2 sum of squares)); together one expert."""

    def __init__(self, members, radius):
        self.members, self.radius = members, radius
        self.losses, self.q = np.zeros(len(members)), 0.0

    @property
    def point(self):
        rate = np.sqrt(np.log(len(self.members)) / (1 + self.radius**2 * self.q))
        w = np.exp(-rate * (self.losses - self.losses.min()))
        return w @ np.array([member.point for member in self.members]) / w.sum()

    def update(self, h):
        self.losses = self.losses + [h @ member.point for member in self.members]
        self.q += h @ h
        for member in self.members:
            member.update(h)
