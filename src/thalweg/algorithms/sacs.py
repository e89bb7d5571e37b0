"""SACS: strongly adaptive algorithm for convex and smooth functions, Zhang, Liu, Zhou (ICML 2019).

Over a compact cover, an expert is scale-free gradient descent with its own gradients, started when its interval starts;
AdaNormalHedge combines those alive. With Phi(R, C) = exp([R]_+^2/(3C)) and losses in [0, B]:

    p_{t,i} ~ Phi(R_i + 1, C_i + 1) - Phi(R_i - 1, C_i + 1);  uniform where all vanish     (1)
    x_t = sum_i p_{t,i} x_{t,i}                                                            (2)
    r_i = (f_t(x_t) - f_t(x_{t,i}))/B;  R_i += r_i;  C_i += |r_i|                          (3)
    x_{t+1,i} = scale-free step with grad f_t(x_{t,i})                                     (4)

Cover "compact": a marker every round; regret O(sqrt(F_I log T log |I|)) on every interval I. Cover "problem": a marker
when the newest expert has paid more than C = 20 L D^2 + 2 D sqrt(2 delta) since it was born; then log F for log T.
With n experts alive, n projections, n gradients and n + 1 values a round.
"""

import math
from functools import partial

from thalweg._core.validate import check_choice, check_positive
from thalweg.algorithms import thresholds
from thalweg.cards import Card, Variant
from thalweg.domains._base import Domain
from thalweg.experts.descent import Descent
from thalweg.learners.base import bounded
from thalweg.learners.cover import Cover
from thalweg.metas.ada_normal_hedge import AdaNormalHedge

__all__ = ["SACS"]

EAGER = 1e-2  # of the threshold: several experts live on the paper's stream (docs/thresholds.md)


class SACS(Cover):
    """SACS with the compact or the problem-dependent cover.

    Parameters
    ----------
    domain : Domain
        X, of diameter D.
    loss_bound : float
        B with 0 <= f_t <= B on X.
    smoothness : float
        L.
    gradients : {"shared", "own"}
        "own" is the published method and needs the loss itself: call `step`. "shared" takes one gradient and the loss a
        round: the losses are linearised, r_i = <g_t, x_t - x_{t,i}>/(G D), and markers go by the loss of the decision.
    cover : {"problem", "compact"}
        Problem-dependent with a fixed threshold, or a marker every round.
    threshold : "paper", float or callable
        C; 20 L D^2 + 2 D sqrt(2 delta), as the theory asks for, or another one.
    delta : float
        delta of the scale-free steps.
    horizon : int, optional
        Sizes the state; the method needs none.
    gradient_bound, on_violation
        G: refuse (or clip) longer gradients. The published method needs none; with shared gradients it is sqrt(2LB)
        when left out, which holds for losses that are L-smooth and >= 0 on the whole space.

    Examples
    --------
    >>> import thalweg as tw
    >>> learner = tw.SACS(tw.domains.Ball(2), loss_bound=4.5, smoothness=1.0, cover="compact", gradients="own")
    >>> for _ in range(5):
    ...     _ = learner.step(tw.losses.Squared([1.0, 0.0], 2.0))
    >>> learner.active, learner.born.tolist()      # round 6: binary 110
    (2, [6, 4])

    References
    ----------
    L. Zhang, T.-Y. Liu, Z.-H. Zhou, Adaptive regret of convex and smooth functions, ICML 2019.
    """

    card = Card(
        about="scale-free experts on intervals that end by loss",
        regret="adaptive",
        bound="sqrt(F_I log F_I log F_T)",
        queries=("n", "n", "n + 1"),
        source="Zhang, Liu & Zhou 2019",
        arguments=lambda s: {"gradient_bound": None},
        options={"gradients": "own"},
        smooth=True,
        variants={
            "eager": Variant(
                "SACS with 1/100 of its threshold: experts come sooner",
                arguments=lambda s: {
                    "threshold": EAGER * thresholds.sacs(L=s.smoothness or 0.0, D=s.domain.diameter, delta=1.0)
                },
                bound="none proved",
            ),
            "compact": Variant(
                "SACS with a new expert every round", options={"cover": "compact"}, bound="sqrt(F_I log T log |I|)"
            ),
        },
    )

    anytime = True

    def __init__(
        self,
        domain: Domain,
        *,
        loss_bound: float,
        smoothness: float,
        gradients: str = "shared",
        cover: str = "problem",
        threshold: thresholds.Threshold = "paper",
        delta: float = 1.0,
        horizon: int | None = None,
        gradient_bound: float | None = None,
        on_violation: str = "raise",
    ) -> None:
        D = bounded("SACS", domain).diameter
        gradients = check_choice("SACS", "gradients", gradients, ("shared", "own"))
        B = check_positive("SACS", "loss_bound", loss_bound)
        L = check_positive("SACS", "smoothness", smoothness)
        dependent = check_choice("SACS", "cover", cover, ("problem", "compact")) == "problem"
        delta = check_positive("SACS", "delta", delta)
        G = None if gradient_bound is None else check_positive("SACS", "gradient_bound", gradient_bound)
        if gradients == "shared" and G is None:
            G = math.sqrt(2 * L * B)
        paper = partial(thresholds.fixed, C=thresholds.sacs(L=L, D=D, delta=delta))
        super().__init__(
            domain,
            Descent(domain, D / math.sqrt(2), step_rule="scale_free", delta=delta),  # (4)
            meta=AdaNormalHedge(B if gradients == "own" else (G or 0.0) * D),  # (3)
            cover="compact",
            threshold=thresholds.read("SACS", threshold, paper=paper) if dependent else None,
            gradients=gradients,
            nonnegative=True,
            horizon=horizon,
            gradient_bound=G,
            on_violation=on_violation,
        )
