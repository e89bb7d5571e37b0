"""Ader: adaptive learning for dynamic environment, Zhang, Lu, Zhou (NeurIPS 2018).

    eta_i     = 2^{i-1} (D/G) sqrt(7/(2T)),   N = ceil(log2(1 + 4T/7)/2) + 1               (1)
    prior_i   = (1 + 1/N) / (i (i+1))                                                      (2)
    x_t       = sum_i p_{t,i} x_{t,i}                                                      (3)
    p_{t+1,i} ~ p_{t,i} exp(-alpha l_{t,i})                                                (4)
    x_{t+1,i} = Pi_X(x_{t,i} - eta_i g_{t,i})                                              (5)

Basic: g_{t,i} = grad f_t(x_{t,i}), l_{t,i} = f_t(x_{t,i}), alpha = sqrt(8/(T c^2)) for losses in a range of length c.
Improved: g_{t,i} = g_t = grad f_t(x_t), l_{t,i} = <g_t, x_{t,i} - x_t>, alpha = sqrt(2/(T G^2 D^2)).
Dynamic regret O(sqrt(T (1 + P_T))) for every comparator path of length P_T. N projections a round; N gradients and N
values (basic) or 1 gradient and 0 values (improved).
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.validate import check_count
from thalweg.algorithms._ranges import read_ranges
from thalweg.algorithms.pools import ader_pool
from thalweg.cards import Card, Variant
from thalweg.domains._base import Domain
from thalweg.experts.pool import Pool
from thalweg.learners.alone import Alone
from thalweg.learners.ensemble import Pooled, descents
from thalweg.metas.hedge import Hedge

__all__ = ["Ader", "ader"]


def ader(domain: Domain, T: int, G: float, c: float | None) -> Pool:
    """The members and weights of Ader: basic for losses in a range of length c, improved without."""
    D = domain.diameter
    steps = ader_pool(T, G, D)  # (1)
    i = np.arange(1, steps.size + 1)
    prior = (1 + 1 / steps.size) / (i * (i + 1))  # (2)
    rate = math.sqrt(2 / (T * G**2 * D**2)) if c is None else math.sqrt(8 / (T * c**2))  # (4)
    return descents(domain, steps, meta=Hedge(rate=rate, prior=prior), judge="linear" if c is None else "value")


class Ader(Pooled, Alone):
    """Ader, the first method with optimal dynamic regret; improved (one gradient) or basic (each member its own).

    Parameters
    ----------
    domain : Domain
        X, of diameter D.
    horizon, gradient_bound, on_violation
        T, G, and the treatment of gradients above G, as for every `Learner`.
    gradients : {"shared", "own"}
        "shared" is the improved method; "own" the basic one, which needs the loss itself: call `step`.
    loss_bound : float, optional
        c of the basic method, the largest f_t(x) - f_t(u) over X; G D when left out, which holds for every G-Lipschitz
        loss.
    start : array, optional
        A point of the domain to begin at; the one nearest to its centre when left out.

    Examples
    --------
    >>> import thalweg as tw
    >>> learner = tw.Ader(tw.domains.Ball(2), horizon=1000, gradient_bound=4.0)
    >>> learner.step_sizes.round(4)
    array([0.0296, 0.0592, 0.1183, 0.2366, 0.4733, 0.9466])

    References
    ----------
    L. Zhang, S. Lu, Z.-H. Zhou, Adaptive online learning in dynamic environments, NeurIPS 2018.
    """

    card = Card(
        about="a pool of step sizes, one gradient",
        regret="dynamic",
        bound="sqrt(T (1 + P_T))",
        queries=("N", "1", "0"),
        source="Zhang, Lu & Zhou 2018",
        arguments=lambda s: {"loss_bound": s.spread},
        variants={
            "own": Variant(
                "Ader as first published: each member its own gradient",
                options={"gradients": "own"},
                queries=("N", "N", "N"),
            )
        },
    )

    def __init__(
        self,
        domain: Domain,
        horizon: int,
        gradient_bound: float,
        *,
        gradients: str = "shared",
        loss_bound: float | None = None,
        start: ArrayLike | None = None,
        on_violation: str = "raise",
    ) -> None:
        T = check_count("Ader", "horizon", horizon)
        G, _, own, c = read_ranges("Ader", domain, gradient_bound, gradients, loss_bound)
        pool = ader(domain, T, G, c if own else None)
        super().__init__(pool, gradients=gradients, start=start, horizon=T, gradient_bound=G, on_violation=on_violation)
