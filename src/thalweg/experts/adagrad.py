r"""Diagonal AdaGrad on a ball: Duchi, Hazan, Singer (JMLR 2011), with the projection of its own norm.

    Q_j      += h_{t,j}^2;   A = diag(sqrt(delta + Q_j))                                   (1)
    z         = y_t - alpha A^{-1} h_t                                                     (2)
    y_{t+1}   = argmin_{||y - c|| <= R} <y - z, A (y - z)>                                 (3)

(3) on a Euclidean ball: y = c + A (A + lam)^{-1} (z - c), with lam >= 0 the root of ||y - c|| = R where z lies outside.
For every u in the ball, with D_inf = 2 R and Q, A after T rounds, regret is at most

    sum_j (D_inf^2/(2 alpha) + alpha) sqrt(delta + Q_j)                                    (4)

which for sparse gradients is smaller than the bound with one step size for all coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from thalweg._core.rules import inside, within
from thalweg._core.state import Plan, field
from thalweg._core.types import Floats
from thalweg._core.validate import check_array, check_positive, short_repr, wrong
from thalweg._kernels.jit import implement, inner
from thalweg._kernels.parts import move, move_own, start
from thalweg._kernels.vectors import copy, dot
from thalweg.domains.ball import Ball
from thalweg.errors import InputError
from thalweg.experts._base import Expert

__all__ = ["AdaGradDescent", "AdaGradSettings", "AdaGradState"]

NEWTON_STEPS = 60  # of Newton at most; 4 to 8 are usual
NEWTON_ACCURACY = 1e-14  # of the radius


class AdaGradState(NamedTuple):
    """K groups of N."""

    points: Floats = field("K N d", inside("domain"), called="experts' points")  # y_t
    squares: Floats = field("K N d", within(0.0, "squares"), called="sums of squares")  # Q


class AdaGradSettings(NamedTuple):
    """Constants."""

    scales: Floats  # (K, N) alpha
    delta: Floats  # (K, N)
    ball: Floats  # [R, c]


@implement(start, AdaGradState)
def _start(e: AdaGradState, c: AdaGradSettings, k: int, i: int, point: Floats) -> None:
    copy(point, e.points[k, i])
    for j in range(point.shape[0]):
        e.squares[k, i, j] = 0.0


@inner
def _back(e: AdaGradState, c: AdaGradSettings, k: int, i: int) -> None:
    """(3): Newton on 1/||y(lam) - c|| = 1/R, which is concave and increasing: from 0 it never passes the root."""
    d, R = e.points.shape[2], c.ball[0]
    lam = 0.0
    for _ in range(NEWTON_STEPS):
        square, slope = 0.0, 0.0
        for j in range(d):
            a = np.sqrt(c.delta[k, i] + e.squares[k, i, j])
            gap = (e.points[k, i, j] - c.ball[1 + j]) * a / (a + lam)
            square += gap * gap
            slope += gap * gap / (a + lam)
        size = np.sqrt(square)
        if not size > R * (1.0 + NEWTON_ACCURACY):  # inside, or nan
            break
        lam += (size / R - 1.0) * square / slope  # slope > 0
    if lam > 0.0:
        for j in range(d):
            a = np.sqrt(c.delta[k, i] + e.squares[k, i, j])
            e.points[k, i, j] = c.ball[1 + j] + (e.points[k, i, j] - c.ball[1 + j]) * a / (a + lam)


@inner
def _step(e: AdaGradState, c: AdaGradSettings, k: int, i: int, h: Floats) -> None:
    """(1)-(3)."""
    for j in range(h.shape[0]):
        e.squares[k, i, j] += h[j] * h[j]
        e.points[k, i, j] -= c.scales[k, i] * h[j] / np.sqrt(c.delta[k, i] + e.squares[k, i, j])  # delta > 0
    _back(e, c, k, i)


@implement(move, AdaGradState)
def _move(e: AdaGradState, c: AdaGradSettings, k: int, n: int, h: Floats, scores: Floats) -> None:
    for i in range(n):
        scores[k, i] = dot(h, e.points[k, i])
        _step(e, c, k, i, h)


@implement(move_own, AdaGradState)
def _move_own(e: AdaGradState, c: AdaGradSettings, k: int, n: int, H: Floats, values: Floats, g: Floats) -> None:
    for i in range(n):
        _step(e, c, k, i, H[k, i])


class AdaGradDescent(Expert):
    """Diagonal AdaGrad as an expert, on a ball (the surrogate of every reduction is one).

    Parameters
    ----------
    domain : Ball
        Where it lives.
    scale : float, optional
        alpha; sqrt(2) times the radius when left out, which is best for (4).
    delta : float
        delta > 0.

    Examples
    --------
    Five of them under Hedge, with one projection a round onto a set of your choice:

    >>> import thalweg as tw
    >>> def pool(Y):
    ...     scales = [Y.radius * 2.0**-k for k in range(5)]
    ...     return tw.Alone(tw.experts.Pool([tw.experts.AdaGradDescent(Y, scale=s) for s in scales]))
    >>> learner = tw.OneProjection(tw.domains.Box(0.0, 1.0, shape=3), pool)
    >>> for _ in range(100):
    ...     learner.update([1.0, -1.0, 0.0])
    >>> learner.decision.round(2)
    array([0. , 1. , 0.5])

    References
    ----------
    J. Duchi, E. Hazan, Y. Singer, Adaptive subgradient methods for online learning and stochastic optimization, JMLR
    12, 2011.
    """

    def __init__(self, domain: Ball, *, scale: float | None = None, delta: float = 1e-8) -> None:
        if not isinstance(domain, Ball):
            raise InputError(
                f"AdaGradDescent lives on a Ball. Got {short_repr(domain)}. "
                "Inside OneProjection every set has a ball around it."
            )
        self.domain = domain
        self.scale = np.sqrt(2) * domain.radius if scale is None else check_positive("AdaGradDescent", "scale", scale)
        self.delta = check_positive("AdaGradDescent", "delta", delta)

    @classmethod
    def plan(cls, experts: Sequence[Sequence[AdaGradDescent]]) -> Plan:
        """See `Expert.plan`."""
        scales, delta, X = cls.table(experts, "scale"), cls.table(experts, "delta"), experts[0][0].domain
        sizes = {"K": scales.shape[0], "N": scales.shape[1], "d": X.dim}
        return Plan(AdaGradState, AdaGradSettings(scales, delta, X.par), sizes, facts={"domain": X})

    def regret_bound(self, squares: Floats) -> float:
        """(4), from the sums Q_j of the squared entries of the gradients that it saw."""
        reach = (2 * self.domain.radius) ** 2 / (2 * self.scale) + self.scale
        sums = check_array("AdaGradDescent.regret_bound", "squares", squares)
        if not (sums >= 0).all():
            raise wrong("AdaGradDescent.regret_bound", "squares", "sums of squares, so >= 0", squares)
        return float(reach * np.sqrt(self.delta + sums).sum())
