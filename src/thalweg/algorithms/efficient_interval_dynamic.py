"""Interval dynamic regret with one projection a round: Algorithm 3 of Zhao, Xie, Zhang, Zhou (JMLR 2025), corrected.

Algorithm 2 (`algorithms.efficient_adaptive`) with Theorem 3's ensemble in the place of scale-free descent. On a ball Y
of radius R around X, with h_t the surrogate gradient, expert i, born at marker i, runs

    y_{t+1,i,j} = Pi_Y(y_{t,i,j} - eta_j h_t),  j = 1..N                                          (1)
    p'_{t+1,i,j} ~ exp(-epsilon_{i,t+1} sum_{s_i<=s<=t} <h_s, y_{s,i,j}>)                         (2)
    epsilon_{i,t} = sqrt(ln N/(1 + R^2 sum_{s_i<=s<t} ||h_s||^2));  y_{t,i} = sum_j p'_{t,i,j} y_{t,i,j}   (3)

Adapt-ML-Prod combines the experts alive, and the loss since the last marker places the next one, with

    C_m = 7L (12R sqrt(ln(1+2m)) + 4R mu + 6R sqrt(ln N))^2 + 54GR ln(1+2m) + 18GR mu
          + 3/2 (6 + G^2 R^2) sqrt(ln N) + (630L + 23) R^2 + 9.                                   (4)

For L-smooth f_t >= 0, any interval I and any path in it, regret is of order
sqrt((F_I + P_I)(P_I + log(F_T + P_T)) log(F_I + P_I)) (Theorem 5). 1 projection, 1 gradient, 1 value a round.
"""

import math
from functools import partial

import numpy as np

from thalweg._core.types import Floats
from thalweg._core.validate import check_choice, check_count, check_positive
from thalweg.algorithms import thresholds
from thalweg.algorithms.pools import small_loss_pool
from thalweg.cards import Card, Setting, Variant
from thalweg.domains._base import Domain
from thalweg.learners.cover import Cover, OnCover
from thalweg.learners.ensemble import descents
from thalweg.learners.one_projection import OneProjection
from thalweg.metas.adapt_ml_prod import AdaptMLProd
from thalweg.theorems import bounds
from thalweg.theorems._base import Marked, path_length, step_sizes

__all__ = ["EfficientIntervalDynamic", "Theorem5"]

EAGER = 1e-4  # of the thresholds: several experts live on the paper's stream (docs/thresholds.md)


def _eager(s: Setting) -> dict[str, object]:
    T, G, L, R = s.horizon, s.gradient_bound, s.smoothness or 0.0, s.domain.surrogate.radius
    N = small_loss_pool(T, L, s.loss_bound, R, s.domain.diameter).size
    C = partial(thresholds.interval_dynamic, T=T, G=G, L=L, R=R, N=N)
    return {"threshold": partial(thresholds.scaled, by=EAGER, C=C), "feedback_range": "observed"}


class Theorem5(Marked):
    """Regret of `EfficientIntervalDynamic` on every interval, against any path."""

    name = "Theorem 5"

    def piece(self, m: int, first: int, last: int, u: Floats, F: float) -> float:
        """Adapt-ML-Prod, Hedge and descent."""
        a, k = bounds.adapt_ml_prod(m, last, self.R, self.G)
        steps = step_sizes(self.inner.level(0))
        more, slope = bounds.confident_hedge(steps.size, self.R, self.G)
        away = float(np.linalg.norm(self.center - u[0])) if self.inner.restart == "center" else 2 * self.R
        drift = bounds.descent(steps, self.R, path_length(u), away)
        return bounds.small_loss(F, a + more + drift, (k + slope) * math.sqrt(2 * self.L), steps * self.L)


class EfficientIntervalDynamic(OnCover, OneProjection):
    """Follow any moving comparator on any interval, with one projection, one gradient and one value a round.

    Algorithm 3 of the paper of `EfficientDynamic`.

    Parameters
    ----------
    domain, horizon, gradient_bound, smoothness, restart, feedback_range, surrogate, on_violation
        As for `EfficientAdaptive`.
    loss_bound : float, optional
        B >= f_t(x_t), for the pool; as for `EfficientDynamic`.
    threshold : "paper", float or callable
        C_m: Theorem 5's (4), a number, or any m -> C_m > 0. The theory's values are large; smaller ones adapt sooner.

    Notes
    -----
    N uses the horizon T, not the length of an interval, which is unknown while it runs. Markers and births follow the
    proof, as in `EfficientAdaptive`.

    Examples
    --------
    >>> import thalweg as tw
    >>> learner = tw.EfficientIntervalDynamic(tw.domains.Simplex(2), 1000, 4.0, smoothness=1.0, threshold=1.5)
    >>> for _ in range(6):
    ...     _ = learner.step(tw.losses.Squared([1.0, 0.0], 2.0))
    >>> learner.queries
    Queries(projections=6, gradients=6, values=6)
    """

    card = Card(
        about="Algorithm 3: one projection, thresholds as printed",
        regret="interval dynamic",
        bound="sqrt((F_I + P_I)(P_I + log(F_T + P_T)) log(F_I + P_I))",
        queries=("1", "1", "1"),
        source="Zhao et al. 2025, Alg. 3",
        theorem=Theorem5,
        smooth=True,
        variants={
            "eager": Variant(
                "Algorithm 3 with 1/10 000 of its thresholds: experts come sooner",
                arguments=_eager,
                bound="none proved",
            )
        },
    )

    def __init__(
        self,
        domain: Domain,
        horizon: int,
        gradient_bound: float,
        smoothness: float,
        *,
        loss_bound: float | None = None,
        threshold: thresholds.Threshold = "paper",
        restart: str = "center",
        feedback_range: str = "bound",
        surrogate: Domain | None = None,
        on_violation: str = "raise",
    ) -> None:
        name = "EfficientIntervalDynamic"
        T = check_count(name, "horizon", horizon)
        G = check_positive(name, "gradient_bound", gradient_bound)
        L = check_positive(name, "smoothness", smoothness)
        B = None if loss_bound is None else check_positive(name, "loss_bound", loss_bound)
        check_choice(name, "feedback_range", feedback_range, ("bound", "observed"))

        def make_inner(Y: Domain) -> Cover:
            R, D = Y.radius, domain.diameter
            steps = small_loss_pool(T, L, G * D if B is None else B, R, D)
            paper = partial(thresholds.interval_dynamic, T=T, G=G, L=L, R=R, N=steps.size)  # (4)
            return Cover(
                Y,
                descents(Y, steps),  # (1)-(3)
                meta=AdaptMLProd(2 * G * R if feedback_range == "bound" else "observed"),
                threshold=thresholds.read(name, threshold, paper=paper),
                restart=restart,
                nonnegative=True,
                owner=name,
                horizon=T,
            )

        super().__init__(domain, make_inner, surrogate=surrogate, gradient_bound=G, on_violation=on_violation)
        self.smoothness = L
