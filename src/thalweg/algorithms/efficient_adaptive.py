"""Adaptive regret with one projection a round: Algorithm 2 of Zhao, Xie, Zhang, Zhou (JMLR 26, 2025), corrected.

Y is a ball of radius R around X; x_t = Pi_X(y_t) and h_t the surrogate gradient (`learners.one_projection`). Expert i
is scale-free descent on Y; it starts at marker i and lives until marker i + lowbit(i):

    r_{t,i} = <h_t, y_t - y_{t,i}>/(2GR);  V_i += r^2;  eta'_i = min(1/2, sqrt(ln(1 + 2i)/(1 + V_i)))        (1)
    ln w_i <- (eta'_i/eta_i) (ln w_i + ln(1 + eta_i r_{t,i}));  eta_i <- eta'_i                              (2)
    y_{t+1,i} = Pi_Y(y_{t,i} - R h_t / sqrt(delta + sum_{s_i<=s<=t} ||h_s||^2))                              (3)
    loss since marker m += f_t(x_t); above C_m: marker m + 1 starts at t + 1, with a new expert              (4)
    p_{t+1,i} ~ eta_i w_i over those alive;  y_{t+1} = sum_i p_{t+1,i} y_{t+1,i}                             (5)

For L-smooth f_t >= 0 with ||grad f_t|| <= G, regret on every interval I is of order
min{sqrt(F_I log F_I log F_T), sqrt(|I| log T)} (Theorem 4). 1 projection, 1 gradient, 1 value a round.
"""

import math
from functools import partial

from thalweg._core.types import Floats
from thalweg._core.validate import check_choice, check_count, check_positive
from thalweg.algorithms import thresholds
from thalweg.cards import Card, Setting, Variant
from thalweg.domains._base import Domain
from thalweg.experts.descent import Descent
from thalweg.learners.cover import Cover, OnCover
from thalweg.learners.one_projection import OneProjection
from thalweg.metas.adapt_ml_prod import AdaptMLProd
from thalweg.theorems import bounds
from thalweg.theorems._base import Marked

__all__ = ["EfficientAdaptive", "Theorem4"]

EAGER = 1e-3  # of the thresholds: several experts live on the paper's stream (docs/thresholds.md)


def _eager(s: Setting) -> dict[str, object]:
    T, G, L, R = s.horizon, s.gradient_bound, s.smoothness or 0.0, s.domain.surrogate.radius
    C = partial(thresholds.adaptive_paper, T=T, G=G, L=L, R=R, delta=1.0)
    return {"threshold": partial(thresholds.scaled, by=EAGER, C=C), "feedback_range": "observed"}


class Theorem4(Marked):
    """Regret of `EfficientAdaptive` on every interval, against fixed decisions."""

    name = "Theorem 4"
    still = True

    def piece(self, m: int, first: int, last: int, u: Floats, F: float) -> float:
        """Adapt-ML-Prod and scale-free descent."""
        a, k = bounds.adapt_ml_prod(m, last, self.R, self.G)
        more, slope = bounds.scale_free(self.R, self.inner.level(0).delta)
        return bounds.small_loss(F, a + more, (k + slope) * math.sqrt(2 * self.L))


class EfficientAdaptive(OnCover, OneProjection):
    """Small regret on every interval at once, with one projection, one gradient and one value a round.

    Algorithm 2 of the paper of `EfficientDynamic`.

    Parameters
    ----------
    domain : Domain
        X.
    horizon : int
        T; it enters the thresholds as ln ln T and sizes the state.
    gradient_bound : float
        G.
    smoothness : float
        L; the losses must be L-smooth and >= 0.
    threshold : "paper", "proof", float or callable
        C_m: Theorem 4 as printed; re-derived (the printed one lost two factors); a number; or any m -> C_m > 0. The
        theory's values are large: with them long stretches pass before a second expert is born. Smaller ones adapt
        sooner.
    delta : float
        delta of the scale-free steps.
    restart : {"center", "current"}
        Where a newborn expert starts: the surrogate's centre, or the combined decision y_t.
    feedback_range : {"bound", "observed"}
        Scale the feedback by 2GR, as the paper does, or by the largest |<h, y - y_i>| seen so far (ours).
    surrogate, on_violation
        As for `OneProjection`.

    Notes
    -----
    Deviations from the printed box, all needed by its proof: the marker that round t triggers starts at t + 1 and its
    expert never sees h_t; the first expert exists before the first round; an expert dies with marker i + lowbit(i).

    `feedback_range="observed"` is ours; `thalweg.metas.adapt_ml_prod` has its rates. Not guaranteed: the weights of a
    round in which the range grows were set with rates for the smaller one, so its feedback is not covered by the
    potential argument and adds to the regret; and Theorem 4's thresholds were derived for 2GR.

    Examples
    --------
    >>> import thalweg as tw
    >>> domain = tw.domains.Ellipsoid([1.0, 4.0], bound=1.0)
    >>> learner = tw.EfficientAdaptive(domain, 1000, gradient_bound=4.0, smoothness=1.0, threshold=lambda m: 1.5)
    >>> for _ in range(6):
    ...     _ = learner.step(tw.losses.Squared([1.0, 0.0], 2.0))
    >>> learner.markers, learner.active
    ([1, 2, 3, 5, 6], 2)
    >>> learner.queries
    Queries(projections=6, gradients=6, values=6)
    """

    card = Card(
        about="Algorithm 2: one projection, thresholds as printed",
        regret="adaptive",
        bound="min(sqrt(F_I log F_I log F_T), sqrt(|I| log T))",
        queries=("1", "1", "1"),
        source="Zhao et al. 2025, Alg. 2",
        theorem=Theorem4,
        smooth=True,
        variants={
            "eager": Variant(
                "Algorithm 2 with 1/1000 of its thresholds: experts come sooner", arguments=_eager, bound="none proved"
            )
        },
    )

    lasts = True  # thresholds of the markers so far are right for the rounds before; later ones know the new horizon

    def __init__(
        self,
        domain: Domain,
        horizon: int,
        gradient_bound: float,
        smoothness: float,
        *,
        threshold: thresholds.Threshold = "paper",
        delta: float = 1.0,
        restart: str = "center",
        feedback_range: str = "bound",
        surrogate: Domain | None = None,
        on_violation: str = "raise",
    ) -> None:
        name = "EfficientAdaptive"
        T = check_count(name, "horizon", horizon)
        G = check_positive(name, "gradient_bound", gradient_bound)
        L = check_positive(name, "smoothness", smoothness)
        check_positive(name, "delta", delta)
        check_choice(name, "feedback_range", feedback_range, ("bound", "observed"))

        def make_inner(Y: Domain) -> Cover:
            R = Y.radius
            paper, proof = (
                partial(C, T=T, G=G, L=L, R=R, delta=delta)
                for C in (thresholds.adaptive_paper, thresholds.adaptive_proof)
            )
            return Cover(
                Y,
                Descent(Y, R, step_rule="scale_free", delta=delta),  # (3)
                meta=AdaptMLProd(2 * G * R if feedback_range == "bound" else "observed"),  # (1), (2)
                threshold=thresholds.read(name, threshold, paper=paper, proof=proof),  # (4)
                restart=restart,
                nonnegative=True,
                owner=name,
                horizon=T,
            )

        super().__init__(domain, make_inner, surrogate=surrogate, gradient_bound=G, on_violation=on_violation)
        self.smoothness = L
