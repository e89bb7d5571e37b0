"""Scale-free online gradient descent, Orabona and Pal (TCS 2018); Zhang, Liu, Zhou (ICML 2019), equation 4.

    eta_t   = alpha / sqrt(delta + sum_{s<=t} ||g_s||^2)            (the sum holds the present gradient)   (1)
    x_{t+1} = Pi_X(x_t - eta_t g_t)                                                                        (2)

With alpha = D/sqrt(2) static regret is at most sqrt(2) D sqrt(delta + sum ||g_t||^2); for L-smooth losses f >= 0 that
is of order sqrt(F_T), small where the comparator's loss is. Needs neither a horizon nor a gradient bound. 1 projection,
1 gradient, 0 values a round.
"""

import math

from numpy.typing import ArrayLike

from thalweg._core.validate import check_positive
from thalweg.algorithms.ogd import Telescoping
from thalweg.cards import Card
from thalweg.domains._base import Domain
from thalweg.experts.descent import Descent
from thalweg.learners.alone import Alone
from thalweg.learners.base import bounded

__all__ = ["SOGD"]


class SOGD(Alone):
    """Gradient descent whose step adapts to the gradients it has seen.

    Parameters
    ----------
    domain : Domain
        X.
    scale : float, optional
        alpha; diameter / sqrt(2) when left out.
    delta : float
        delta > 0.
    start : array, optional
        A point of the domain to begin at; the one nearest to its centre when left out.
    gradient_bound, on_violation
        Refuse (or clip) longer gradients, as for every `Learner`. The method itself needs no bound.

    Examples
    --------
    >>> import thalweg as tw
    >>> learner = tw.SOGD(tw.domains.Ball(2), scale=1.0)
    >>> learner.update([3.0, 4.0])
    >>> learner.decision.round(4)
    array([-0.5883, -0.7845])

    References
    ----------
    F. Orabona, D. Pal, Scale-free online learning, Theoretical Computer Science 716, 2018.
    L. Zhang, T.-Y. Liu, Z.-H. Zhou, Adaptive regret of convex and smooth functions, ICML 2019.
    """

    card = Card(
        about="scale-free gradient descent, needs no constants",
        regret="static",
        bound="sqrt(F_T)",
        queries=("1", "1", "0"),
        source="Orabona & Pál 2018",
        arguments=lambda s: {"gradient_bound": None},
        theorem=Telescoping,
    )

    def __init__(
        self,
        domain: Domain,
        *,
        scale: float | None = None,
        delta: float = 1.0,
        start: ArrayLike | None = None,
        gradient_bound: float | None = None,
        on_violation: str = "raise",
    ) -> None:
        D = bounded("SOGD", domain).diameter
        alpha = D / math.sqrt(2) if scale is None else check_positive("SOGD", "scale", scale)
        super().__init__(
            Descent(domain, alpha, step_rule="scale_free", delta=check_positive("SOGD", "delta", delta)),
            start=start,
            gradient_bound=gradient_bound,
            on_violation=on_violation,
        )
