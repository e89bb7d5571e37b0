"""AFLH: follow the leading history with few experts, Hazan, Seshadhri (ICML 2009); Zhang, Yang, Jin, Zhou (ICML 2018).

An expert starts in every round t and lives for as many rounds as the largest power of 2 in t (the ending times of Zhang
et al. with base 2), so floor(log2 t) + 1 are alive at most. With l_i the loss of expert i:

    p_t     = the newborn 1/t, the others (1 - 1/t) q_t                                    (1)
    x_t     = sum_i p_{t,i} x_{t,i}                                                        (2)
    q_{t+1,i} ~ p_{t,i} exp(-alpha l_{t,i}) over those that live on                        (3)
    x_{t+1,i} = Pi_X(x_{t,i} - eta_n g_{t,i}),  n the age of expert i                      (4)

The guarantee is for losses with concave exp(-alpha f). For lambda-strongly convex losses alpha = lambda/G^2 and
eta_n = 1/(lambda n) give regret O(log(T) log|I| G^2/lambda) on every interval I. For general convex losses
alpha = sqrt(8 ln(1 + T)/T)/c and scale-free steps eta_n = D/sqrt(2 (1 + sum ||g||^2)) give O(sqrt(T log T) log|I|),
which says nothing of intervals much shorter than T. Any expert with regret O(sqrt n) would do there.
"""

import math

from thalweg._core.types import Floats
from thalweg._core.validate import check_count, check_positive
from thalweg.algorithms._ranges import read_ranges
from thalweg.cards import Card, Variant
from thalweg.domains._base import Domain
from thalweg.errors import InputError
from thalweg.experts.descent import Descent
from thalweg.learners.cover import Cover
from thalweg.metas.leading_history import LeadingHistory
from thalweg.theorems import bounds
from thalweg.theorems._base import CoverTheorem, path_length

__all__ = ["AFLH", "LeadingHistories"]


class LeadingHistories(CoverTheorem):
    """`AFLH`: exponential weights with a share for every newborn, over descents with steps of their age."""

    name = "follow the leading history on a compact cover (Hazan & Seshadhri 2009)"

    def piece(self, m: int, first: int, last: int, u: Floats, F: float) -> float:
        """The newborn's share and those given to others since; Hoeffding's lemma where exp(-alpha f) is not concave."""
        n, P, meta = last - first, path_length(u), self.inner.meta
        steps: float = self.inner.expert.step_size
        if meta.feedback_range is None:  # lambda = 1/steps
            expert = self.G**2 * steps / 2 * (1 + math.log(n)) + n * self.D * P / steps
        else:
            expert = math.sqrt(2 * (1 + self.G**2 * n)) * (self.D + P)
        weights: float = bounds.leading_history(n, last, meta.rate, meta.feedback_range or 0.0)
        return weights + expert


class AFLH(Cover):
    """Follow the leading history: logarithmic regret on every interval where losses are strongly convex.

    Parameters
    ----------
    domain : Domain
        X, of diameter D.
    horizon : int, optional
        T; needed where no strong convexity is given.
    gradient_bound, on_violation
        G, and the treatment of gradients above it, as for every `Learner`.
    gradients : {"shared", "own"}
        "shared" takes one gradient a round and linearises the losses. "own" is the published method and needs the loss
        itself: call `step`.
    strong_convexity : float, optional
        lambda, with own gradients: every f_t is lambda-strongly convex on X.
    loss_bound : float, optional
        c, the largest f_t(x) - f_t(u) over X; G D when left out. Used with own gradients and no strong convexity.

    Examples
    --------
    >>> import thalweg as tw
    >>> learner = tw.AFLH(tw.domains.Ball(2), 100, gradient_bound=3.0, gradients="own")
    >>> for _ in range(6):
    ...     _ = learner.step(tw.losses.Squared([1.0, 0.0], 2.0))
    >>> learner.born.tolist()
    [7, 6, 4]

    Notes
    -----
    Hazan and Seshadhri keep experts longer; Zhang et al. have ending times for any base, of which this is base 2.
    For losses that are exp-concave but not strongly convex the papers use Newton steps, with a projection in the norm
    of a matrix; `Cover` takes any expert, with `metas.LeadingHistory(alpha)`.

    References
    ----------
    E. Hazan, C. Seshadhri, Efficient learning algorithms for changing environments, ICML 2009.
    L. Zhang, T. Yang, R. Jin, Z.-H. Zhou, Dynamic regret of strongly adaptive methods, ICML 2018.
    """

    card = Card(
        about="exponential weights with a share for every newborn, each expert its own gradient",
        regret="adaptive",
        bound="sqrt(T log T) log |I|",
        queries=("n", "n", "n + 1"),
        source="Hazan & Seshadhri 2009",
        arguments=lambda s: {"loss_bound": s.spread},
        options={"gradients": "own"},
        theorem=LeadingHistories,
        variants={
            "shared": Variant("AFLH with one gradient", options={"gradients": "shared"}, queries=("n", "1", "0")),
        },
    )

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        *,
        gradient_bound: float,
        gradients: str = "shared",
        strong_convexity: float | None = None,
        loss_bound: float | None = None,
        on_violation: str = "raise",
    ) -> None:
        G, D, own, c = read_ranges("AFLH", domain, gradient_bound, gradients, loss_bound)
        if strong_convexity is not None:
            strong_convexity = lam = check_positive("AFLH", "strong_convexity", strong_convexity)
            if not own:
                raise InputError(
                    "AFLH with a strong convexity needs the losses themselves, since one gradient makes them linear. "
                    "Got gradients='shared'; write gradients='own'."
                )
            expert, meta = Descent(domain, 1 / lam, step_rule="harmonic"), LeadingHistory(lam / G**2)
        elif horizon is not None:
            T = check_count("AFLH", "horizon", horizon)
            c = c if own else G * D
            expert = Descent(domain, D / math.sqrt(2), step_rule="scale_free")
            meta = LeadingHistory(math.sqrt(8 * math.log(1 + T) / T) / c, c)
        else:
            raise InputError("AFLH needs a horizon or a strong convexity: give horizon=... or strong_convexity=...")
        super().__init__(
            domain,
            expert,  # (4)
            meta=meta,  # (1), (3)
            cover="compact",
            gradients=gradients,
            anytime=strong_convexity is not None,
            horizon=horizon,
            gradient_bound=G,
            on_violation=on_violation,
        )
        self.strong_convexity = strong_convexity
