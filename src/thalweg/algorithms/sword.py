"""Sword, small-loss form: Zhao, Zhang, Zhang, Zhou (NeurIPS 2020), and its one-gradient form (JMLR 2024).

    x_t       = sum_i p_{t,i} x_{t,i}                                                      (1)
    x_{t+1,i} = Pi_X(x_{t,i} - eta_i g_{t,i})                                              (2)
    p_{t+1,i} ~ exp(-epsilon_{t+1} sum_{s<=t} <grad f_s(x_s), x_{s,i}>)                    (3)
    epsilon_t = sqrt(ln N / (1 + D^2 sum_{s<t} ||grad f_s(x_s)||^2))                       (4)

Own gradients: g_{t,i} = grad f_t(x_{t,i}), eta_i = min(2^{i-1} sqrt(D/(16LGT)), 1/(4L)), N = ceil(log2(GT/(DL))/2) + 1.
One gradient: g_{t,i} = grad f_t(x_t) and the pool of Theorem 3 with R = D.
For L-smooth f_t >= 0, dynamic regret O(sqrt((1 + P_T + F_T)(1 + P_T))): small where the comparators' loss F_T is.
N projections a round, N + 1 gradients (own) or 1, and 0 values.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.validate import check_count, check_positive
from thalweg.algorithms._ranges import read_ranges
from thalweg.algorithms.pools import geometric, small_loss_pool
from thalweg.cards import Card, Variant
from thalweg.domains._base import Domain
from thalweg.learners.alone import Alone
from thalweg.learners.ensemble import Pooled, descents
from thalweg.metas.hedge import Hedge

__all__ = ["Sword"]


class Sword(Pooled, Alone):
    """Sword for small losses, as published (own gradients) or with one gradient a round.

    Parameters
    ----------
    domain : Domain
        X, of diameter D.
    horizon, gradient_bound, on_violation
        T, G, and the treatment of gradients above G, as for every `Learner`.
    smoothness : float
        L; the losses must be L-smooth and >= 0.
    gradients : {"shared", "own"}
        "shared" takes one gradient a round. "own" is the method as first published and needs the loss itself: call
        `step`.
    loss_bound : float, optional
        B >= f_t(x_t), used by the one-gradient pool; G D when left out (right where every f_t reaches 0 on X).
    start : array, optional
        A point of the domain to begin at; the one nearest to its centre when left out.

    Notes
    -----
    The meta rate of the published own-gradient method is not available to us in its exact constant; (4) is the
    self-confident rate of the same form.

    Examples
    --------
    >>> import thalweg as tw
    >>> learner = tw.Sword(tw.domains.Ball(2), horizon=1000, gradient_bound=4.0, smoothness=1.0, gradients="own")
    >>> learner.step(tw.losses.Squared([1.0, 0.0], 2.0))
    2.0
    >>> learner.queries
    Queries(projections=8, gradients=8, values=0)

    References
    ----------
    P. Zhao, Y.-J. Zhang, L. Zhang, Z.-H. Zhou, Dynamic regret of convex and smooth functions, NeurIPS 2020.
    P. Zhao, Y.-J. Zhang, L. Zhang, Z.-H. Zhou, Adaptivity and non-stationarity, JMLR 25, 2024.
    """

    card = Card(
        about="a pool for small losses, each member its own gradient",
        regret="dynamic",
        bound="sqrt((1 + P_T + F_T)(1 + P_T))",
        queries=("N", "N + 1", "0"),
        source="Zhao et al. 2020",
        options={"gradients": "own"},
        smooth=True,
        variants={
            "shared": Variant(
                "Sword with one gradient",
                options={"gradients": "shared"},
                queries=("N", "1", "0"),
                source="Zhao et al. 2024",
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
        gradients: str = "shared",
        loss_bound: float | None = None,
        start: ArrayLike | None = None,
        on_violation: str = "raise",
    ) -> None:
        T = check_count("Sword", "horizon", horizon)
        L = check_positive("Sword", "smoothness", smoothness)
        G, D, own, B = read_ranges("Sword", domain, gradient_bound, gradients, loss_bound)
        if own:
            N = max(1, math.ceil(0.5 * math.log2(G * T / (D * L))) + 1)
            steps = np.minimum(geometric(math.sqrt(D / (16 * L * G * T)), N), 1 / (4 * L))
        else:
            steps = small_loss_pool(T, L, B, R=D, D=D)
        super().__init__(
            descents(domain, steps, meta=Hedge(radius=D)),  # (4)
            gradients=gradients,
            nonnegative=True,
            start=start,
            horizon=T,
            gradient_bound=G,
            on_violation=on_violation,
        )
