"""AOA: adaptive online learning for any interval and any path, Zhang, Lu, Yang (AISTATS 2020), and with one projection.

Three layers over the geometric cover. The expert of an interval I is Ader tuned to the horizon |I| (`algorithms.ader`);
AdaNormalHedge combines those alive:

    p_{t,I} ~ Phi(R_I + 1, C_I + 1) - Phi(R_I - 1, C_I + 1),  Phi(R, C) = exp([R]_+^2/(3C))   (1)
    x_t = sum_I p_{t,I} x_{t,I}                                                               (2)
    r_I = (f_t(x_t) - f_t(x_{t,I}))/c;  R_I += r_I;  C_I += |r_I|                             (3)
    x_{t+1,I} = Ader's round on f_t                                                           (4)

Dynamic regret O(sqrt(|I| (log T + P_I))) on every interval I, for every path of length P_I. The basic Ader queries the
gradient and the value at each of its members: O(log^2 t) projections, gradients and values a round.

Efficient form (Zhao, Xie, Zhang, Zhou, JMLR 2025, Section 4.2): the same on linearised losses, on a ball Y around X,
r_I = <h_t, y_t - y_{t,I}>/(2GR), experts with the pool of Theorem 2 for T = |I|. 1 projection, 1 gradient, 0 values.
"""

import math
from functools import partial

import numpy as np

from thalweg._core.types import Floats
from thalweg._core.validate import check_positive
from thalweg.algorithms._ranges import read_ranges
from thalweg.algorithms.ader import ader
from thalweg.algorithms.pools import worst_case_pool
from thalweg.cards import Card
from thalweg.domains._base import Domain
from thalweg.experts.pool import Pool
from thalweg.learners.base import bounded
from thalweg.learners.cover import Cover, OnCover
from thalweg.learners.ensemble import descents
from thalweg.learners.one_projection import OneProjection
from thalweg.metas.ada_normal_hedge import AdaNormalHedge
from thalweg.metas.hedge import Hedge
from thalweg.theorems import bounds
from thalweg.theorems._base import CoverTheorem, path_length, pool_bound

__all__ = ["AOA", "EfficientAOA", "Intervals"]


class AOA(Cover):
    """AOA as published: keeps up with any moving comparator on any interval; O(log^2 t) of every query a round.

    Parameters
    ----------
    domain : Domain
        X, of diameter D.
    gradient_bound, loss_bound, horizon, on_violation
        As for `CBCE`.
    gradients : {"shared", "own"}
        "own" is the published method and needs the loss itself: call `step`. "shared" takes one gradient a round: the
        losses are linearised and the experts are the improved Ader.

    Examples
    --------
    >>> import thalweg as tw
    >>> learner = tw.AOA(tw.domains.Ball(2), gradient_bound=3.0, horizon=100, gradients="own")
    >>> for _ in range(5):
    ...     _ = learner.step(tw.losses.Squared([1.0, 0.0], 2.0))
    >>> learner.born.tolist()
    [6, 6, 4]

    References
    ----------
    L. Zhang, S. Lu, T. Yang, Minimizing dynamic regret and adaptive regret simultaneously, AISTATS 2020.
    """

    card = Card(
        about="Ader on every interval of a cover",
        regret="interval dynamic",
        bound="sqrt(|I| (log T + P_I))",
        queries=("O(n N)", "O(n N)", "O(n N)"),
        source="Zhang, Lu & Yang 2020",
        arguments=lambda s: {"loss_bound": s.spread},
        options={"gradients": "own"},
    )

    anytime = True

    def __init__(
        self,
        domain: Domain,
        *,
        gradient_bound: float,
        gradients: str = "shared",
        loss_bound: float | None = None,
        horizon: int | None = None,
        on_violation: str = "raise",
    ) -> None:
        G, D, own, c = read_ranges("AOA", domain, gradient_bound, gradients, loss_bound)
        super().__init__(
            domain,
            partial(ader, domain, G=G, c=c if own else None),  # (4)
            meta=AdaNormalHedge(c if own else G * D),  # (1), (3)
            cover="geometric",
            gradients=gradients,
            horizon=horizon,
            gradient_bound=G,
            on_violation=on_violation,
        )


class Intervals(CoverTheorem):
    """`EfficientAOA`: AdaNormalHedge over Theorem 2's ensembles, each tuned to the length of its interval."""

    name = "AdaNormalHedge on a geometric cover (Section 4.2)"

    def piece(self, m: int, first: int, last: int, u: Floats, F: float) -> float:
        """The expert of the shortest interval that starts at m and reaches the end."""
        n = last - first
        level = min((n - 1).bit_length(), (m & -m).bit_length() - 1)
        away = float(np.linalg.norm(self.center - u[0]))
        expert = pool_bound(self.inner.level(level), self.R, self.G, 0.0, n, path_length(u), away, F)
        return bounds.ada_normal_hedge(n, last, self.R, self.G) + expert


class EfficientAOA(OnCover, OneProjection):
    """AOA on linearised losses inside the reduction: the same guarantee with one projection and one gradient a round.

    Section 4.2 of the paper of `EfficientDynamic`.

    Parameters
    ----------
    domain, gradient_bound, horizon
        As for `AOA`.
    surrogate, on_violation
        As for `OneProjection`.

    Examples
    --------
    >>> import thalweg as tw
    >>> learner = tw.EfficientAOA(tw.domains.Simplex(3), gradient_bound=1.0, horizon=100)
    >>> learner.update([1.0, 0.0, 0.0])
    >>> learner.queries
    Queries(projections=1, gradients=1, values=0)
    """

    card = Card(
        about="AOA with one projection and one gradient",
        regret="interval dynamic",
        bound="sqrt(|I| (log T + P_I))",
        queries=("1", "1", "0"),
        source="Zhao et al. 2025, Sec. 4.2",
        theorem=Intervals,
    )

    def __init__(
        self,
        domain: Domain,
        *,
        gradient_bound: float,
        horizon: int | None = None,
        surrogate: Domain | None = None,
        on_violation: str = "raise",
    ) -> None:
        G = check_positive("EfficientAOA", "gradient_bound", gradient_bound)
        D = bounded("EfficientAOA", domain).diameter
        super().__init__(
            domain,
            lambda Y: Cover(
                Y,
                partial(_linear, Y, G, D),
                meta=AdaNormalHedge(2 * G * Y.radius),
                cover="geometric",
                anytime=True,
                owner="EfficientAOA",
                horizon=horizon,
            ),
            surrogate=surrogate,
            gradient_bound=G,
            on_violation=on_violation,
        )


def _linear(Y: Domain, G: float, D: float, length: int) -> Pool:
    """Theorem 2's ensemble for an interval of a given length, around a set of diameter D."""
    R = Y.radius
    steps = worst_case_pool(length, G, R, D)
    rate = math.sqrt(math.log(steps.size) / (1 + G**2 * R**2 * length))
    return descents(Y, steps, meta=Hedge(rate=rate))
