"""Dynamic regret with one projection a round: Algorithm 1 of Zhao, Xie, Zhang, Zhou (JMLR 26, 2025).

Y is a ball of radius R around X. With x_t = Pi_X(y_t) and h_t the surrogate gradient (`learners.one_projection`):

    y_{t+1,i} = Pi_Y(y_{t,i} - eta_i h_t)                                  a rescale       (1)
    p_{t+1,i} ~ exp(-epsilon_{t+1} sum_{s<=t} <h_s, y_{s,i}>)                              (2)
    y_{t+1}   = sum_i p_{t+1,i} y_{t+1,i}                                                  (3)
    x_{t+1}   = Pi_X(y_{t+1})                              the only projection onto X      (4)

Theorem 2 (||g_t|| <= G): epsilon = sqrt(ln N / (1 + G^2 R^2 T)); regret O(sqrt(T (1 + P_T))).
Theorem 3 (also f_t >= 0 and L-smooth): epsilon_t = sqrt(ln N / (1 + R^2 sum_{s<t} ||h_s||^2));
regret O(sqrt((F_T + P_T)(1 + P_T))). The pools are in `thalweg.algorithms.pools`.
1 projection, 1 gradient, 0 values a round.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import check_count, check_positive
from thalweg.algorithms.pools import small_loss_pool, worst_case_pool
from thalweg.cards import Card, Variant
from thalweg.domains._base import Domain
from thalweg.learners.base import read_start
from thalweg.learners.ensemble import Ensemble
from thalweg.learners.one_projection import OneProjection
from thalweg.theorems._base import Theorem, path_length, pool_bound

__all__ = ["Dynamic", "EfficientDynamic"]


class Dynamic(Theorem):
    """Bound of `EfficientDynamic` from the first round on: Theorem 2, or Theorem 3 if a smoothness was given."""

    whole = True

    def __init__(self, learner: object, paid: Floats, squares: Floats) -> None:
        super().__init__(learner, paid, squares)
        self.small_loss = self.L > 0
        self.name = "Theorem 3 (small loss)" if self.small_loss else "Theorem 2"

    def bound(self, start: int, stop: int, u: Floats, losses: Floats) -> float:
        """See `Theorem.bound`."""
        first = float(np.linalg.norm(self.inner.machine.origin - u[0]))
        pool, n, F = self.inner.expert, stop - start, float(losses.sum())
        return pool_bound(pool, self.R, self.G, self.L, n, path_length(u), first, F)


class EfficientDynamic(OneProjection):
    """Follow any moving comparator, with one projection and one gradient a round.

    Parameters
    ----------
    domain : Domain
        X, of diameter D_X.
    horizon : int
        T.
    gradient_bound : float
        G.
    smoothness : float, optional
        L. If given, losses must be L-smooth and >= 0, and the small-loss tuning of Theorem 3 is used; else Theorem 2's.
    loss_bound : float, optional
        B >= f_t(x_t), for Theorem 3; G D_X by default, which is valid if every f_t reaches 0 on X.
    start : array, optional
        The first decision; by default the point of the domain nearest to the centre of Y.
    surrogate : Domain, optional
        Y; by default `domain.surrogate`, the tightest ball known. The paper's choice is `Ball(dim, radius=D)`.
    on_violation : {"raise", "clip"}
        Treatment of gradients above the bound.

    Examples
    --------
    >>> import thalweg as tw
    >>> domain = tw.domains.Ellipsoid([1.0, 2.0, 4.0], bound=9.0)
    >>> learner = tw.EfficientDynamic(domain, horizon=1000, gradient_bound=20.0, smoothness=9.0)
    >>> learner.step(tw.losses.Squared([1.0, 0.0, 2.0], 3.0))
    4.5
    >>> learner.queries
    Queries(projections=1, gradients=1, values=0)

    References
    ----------
    P. Zhao, Y.-F. Xie, L. Zhang, Z.-H. Zhou, Efficient methods for non-stationary online learning, JMLR 26, 2025.
    """

    card = Card(
        about="Algorithm 1: one projection (Theorem 2 where losses are not smooth)",
        regret="dynamic",
        bound="sqrt((F_T + P_T)(1 + P_T))",
        queries=("1", "1", "0"),
        source="Zhao et al. 2025, Alg. 1",
        arguments=lambda s: {"smoothness": s.smoothness if s.small_loss else None},
        theorem=Dynamic,
        variants={
            "worst-case": Variant(
                "Algorithm 1 with the step sizes of Theorem 2", options={"smoothness": None}, bound="sqrt(T (1 + P_T))"
            )
        },
    )

    inner: Ensemble

    def __init__(
        self,
        domain: Domain,
        horizon: int,
        gradient_bound: float,
        smoothness: float | None = None,
        *,
        loss_bound: float | None = None,
        start: ArrayLike | None = None,
        surrogate: Domain | None = None,
        on_violation: str = "raise",
    ) -> None:
        name = "EfficientDynamic"
        T = check_count(name, "horizon", horizon)
        G = check_positive(name, "gradient_bound", gradient_bound)
        L = None if smoothness is None else check_positive(name, "smoothness", smoothness)
        B = None if loss_bound is None else check_positive(name, "loss_bound", loss_bound)

        def make_inner(Y: Domain) -> Ensemble:
            R, D = Y.radius, domain.diameter
            home = None if start is None else read_start(name, domain, start)
            if L is None:
                steps = worst_case_pool(T, G, R, D)  # Theorem 2
                rate = math.sqrt(math.log(steps.size) / (1 + G**2 * R**2 * T))
                return Ensemble(Y, steps, meta_rate=rate, start=home)
            steps = small_loss_pool(T, L, G * D if B is None else B, R, D)  # Theorem 3
            return Ensemble(Y, steps, meta_radius=R, nonnegative=True, start=home)

        super().__init__(
            domain, make_inner, surrogate=surrogate, horizon=T, gradient_bound=G, on_violation=on_violation
        )
        self.smoothness = L
