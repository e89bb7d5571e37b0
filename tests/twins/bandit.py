"""Slow twin of the bandit learner: Algorithm 1 of [Z25], fed with gradients that are made of values.

[Z21]  Zhao, Wang, Zhang, Zhou. Bandit convex optimization in non-stationary environments. JMLR 22, 2021.
"""

import numpy as np

from tests.twins.dynamic import efficient_dynamic, everything


class Estimated:
    """A loss of which only values at x + delta u (and x - delta u) are known."""

    def __init__(self, loss, u, delta, k, points):
        self.loss, self.u, self.delta, self.k, self.points = loss, u, delta, k, points

    def asked(self, x):
        return [self.loss.value(x + sign * self.delta * self.u) for sign in (1, -1)[: self.points]]

    def value(self, x):
        return float(np.mean(self.asked(x)))

    def gradient(self, x):
        v = self.asked(x)
        return self.k / self.delta * (v[0] if self.points == 1 else (v[0] - v[1]) / 2) * self.u


def efficient_bandit(
    losses, directions, project, inside, surrogate, *, delta, share, k, points, bound, horizon, diameter, tau=everything
):
    """`inside` is c, around which X is drawn together by `share`; `surrogate` the centre and radius of Y.

    `bound` is B for one point and G for two.
    """
    c = np.asarray(inside, dtype=float)

    def shrunk(y):
        return c + (1 - share) * (project(c + (y - c) / (1 - share)) - c)

    steep = k * bound / delta if points == 1 else k * bound / np.sqrt(max(1, k - 1))
    rounds = [Estimated(f, u, delta, k, points) for f, u in zip(losses, directions, strict=True)]
    return efficient_dynamic(
        rounds, shrunk, *surrogate, horizon=horizon, diameter=diameter, gradient_bound=steep, tau=tau
    )
