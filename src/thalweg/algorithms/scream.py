"""Scream: losses with memory, and any loss with a price on moving. Zhao, Yan, Wang, Zhou (AISTATS 2022; JMLR 24, 2023).

A loss with memory f_t(w_{t-m}, .., w_t) is played through its unary form f_t(w) = f_t(w, .., w): if f_t changes by at
most L for each unit that one of its m + 1 arguments moves, the rest costs at most lambda = m^2 L for each unit that the
decision moves. With g_t the gradient of the unary loss at w_t, G >= ||g_t|| and D the diameter of the set W:

    eta_i     = 2^{i-1} sqrt(D^2 / ((lambda G + G^2) T)),   N = ceil(log2(1 + T)/2) + 1    (1)
    p_{1,i}   = (1 + 1/N) / (i (i + 1))                                                    (2)
    w_t       = sum_i p_{t,i} w_{t,i}                                                      (3)
    l_{t,i}   = <g_t, w_{t,i}> + lambda ||w_{t,i} - w_{t-1,i}||                            (4)
    p_{t+1,i} ~ p_{t,i} exp(-epsilon l_{t,i}),  epsilon = sqrt(2 / ((2 lambda + G)(lambda + G) D^2 T))    (5)
    w_{t+1,i} = Pi_W(w_{t,i} - eta_i g_t)                                                  (6)

A member pays in (4) for its own movement, so that the weights lean towards members that sit still. Dynamic regret with
the price of moving is O(sqrt(lambda T (1 + P_T))); with constants, for any u_1..u_T in W of path length P:

    sum <g_t, w_t - u_t> + lambda sum ||w_t - w_{t-1}|| <= epsilon (G + lambda)(G + 3 lambda) D^2 T / 8
        + min_i { (D^2 + 2 D P)/(2 eta_i) + eta_i (G^2/2 + lambda G) T + ln(1/p_{1,i})/epsilon }          (7)

`Scream` makes N projections a round and uses 1 gradient, 0 values. `EfficientScream` is the same inside
`learners.one_projection`, 1 projection: projecting brings no two points farther apart, so the movement cost on X is at
most that on the surrogate, and (7) holds with D the surrogate's diameter.
"""

import math
from functools import partial

import numpy as np

from thalweg._core.types import Floats
from thalweg._core.validate import check_count, check_nonnegative, check_positive
from thalweg.algorithms.pools import geometric
from thalweg.cards import Card
from thalweg.domains._base import Domain
from thalweg.learners.alone import Alone
from thalweg.learners.base import bounded
from thalweg.learners.ensemble import Pooled, descents
from thalweg.learners.one_projection import OneProjection
from thalweg.metas.hedge import Hedge
from thalweg.theorems._base import Theorem, path_length

__all__ = ["EfficientScream", "Priced", "Scream"]


class Priced(Theorem):
    """(7) without its second sum: the movement cost is not negative, so regret alone is within the bound too."""

    name = "regret with a price on moving (Zhao et al. 2023)"
    whole = True

    def bound(self, start: int, stop: int, u: Floats, losses: Floats) -> float:
        """See `Theorem.bound`."""
        allowed: float = self.learner.regret_bound(path_length(u), stop - start)
        return allowed


class Scream(Pooled, Alone):
    """Follow a moving comparator when every move has a cost.

    Parameters
    ----------
    domain : Domain
        W, of diameter D.
    horizon, gradient_bound, on_violation
        T, G for the gradients of the unary loss, and the treatment of gradients above G, as for every `Learner`.
    switching_cost : float
        lambda, the cost of a unit of movement: m^2 L for a loss with memory m. 0 makes moving free.

    Notes
    -----
    The published method plays any point in its first m rounds and then starts. Here rounds count from the start: give
    the learner its first gradient when the loss has its memory.

    The printed N covers comparators whose path is at most D T/2 long; one more member would cover all.

    Examples
    --------
    Squared error plus a price of 2 on every unit of movement:

    >>> import thalweg as tw
    >>> learner = Scream(tw.domains.Ball(2), horizon=100, gradient_bound=4.0, switching_cost=2.0)
    >>> for _ in range(100):
    ...     _ = learner.step(tw.losses.Squared([1.0, 0.0], 0.5))
    >>> learner.decision.round(2)
    array([0.5, 0. ])

    References
    ----------
    P. Zhao, Y.-H. Yan, Y.-X. Wang, Z.-H. Zhou, Non-stationary online learning with memory and non-stochastic control,
    JMLR 24, 2023.
    """

    card = Card(
        about="a pool of step sizes that pays for moving (here 1 a unit)",
        regret="dynamic",
        bound="sqrt(lambda T (1 + P_T)), movement cost included",
        queries=("N", "1", "0"),
        source="Zhao et al. 2023",
        options={"switching_cost": 1.0},
        theorem=Priced,
    )

    def __init__(
        self, domain: Domain, horizon: int, gradient_bound: float, *, switching_cost: float, on_violation: str = "raise"
    ) -> None:
        name = "Scream"
        T = check_count(name, "horizon", horizon)
        G = check_positive(name, "gradient_bound", gradient_bound)
        price = check_nonnegative(name, "switching_cost", switching_cost)
        D = bounded(name, domain).diameter
        N = math.ceil(0.5 * math.log2(1 + T)) + 1
        i = np.arange(1, N + 1)
        steps = geometric(math.sqrt(D**2 / ((price * G + G**2) * T)), N)  # (1)
        prior = (1 + 1 / N) / (i * (i + 1))  # (2)
        meta = Hedge(rate=math.sqrt(2 / ((2 * price + G) * (price + G) * D**2 * T)), prior=prior)  # (5)
        super().__init__(
            descents(domain, steps, price=price, meta=meta),  # (4)
            horizon=T,
            gradient_bound=G,
            on_violation=on_violation,
        )
        self.switching_cost = price

    def regret_bound(self, path_length: float, rounds: int | None = None) -> float:
        """(7): regret and price of moving of all T rounds, or the first ones, against any path of this length."""
        who = "Scream.regret_bound"
        T = self.horizon or 0 if rounds is None else check_count(who, "rounds", rounds)
        G, D, P = self.gradient_bound or 0.0, self.domain.diameter, check_nonnegative(who, "path_length", path_length)
        price, epsilon, eta = self.switching_cost, self.meta_rate, self.step_sizes
        members = (D**2 + 2 * D * P) / (2 * eta) + eta * (G**2 / 2 + price * G) * T - np.log(self.prior) / epsilon
        return float(epsilon * (G + price) * (G + 3 * price) * D**2 * T / 8 + members.min())


class EfficientScream(OneProjection):
    """`Scream` with one projection a round: the learner of Algorithm 4 of the paper of `EfficientDynamic`.

    Parameters
    ----------
    domain, horizon, gradient_bound, switching_cost
        As for `Scream`.
    surrogate, on_violation
        As for `OneProjection`.

    Examples
    --------
    >>> import thalweg as tw
    >>> X = tw.domains.SpectralBalls((3, 2, 2), caps=[1.0, 0.5, 0.25])
    >>> learner = EfficientScream(X, horizon=100, gradient_bound=4.0, switching_cost=2.0)
    >>> for _ in range(100):
    ...     _ = learner.step(tw.losses.Linear(np.ones((3, 2, 2))))
    >>> learner.queries
    Queries(projections=100, gradients=100, values=0)
    """

    card = Card(
        about="Scream with one projection",
        regret="dynamic",
        bound="sqrt(lambda T (1 + P_T)), movement cost included",
        queries=("1", "1", "0"),
        source="Zhao et al. 2025, Alg. 4",
        options={"switching_cost": 1.0},
        theorem=Priced,
    )

    inner: Scream

    def __init__(
        self,
        domain: Domain,
        horizon: int,
        gradient_bound: float,
        *,
        switching_cost: float,
        surrogate: Domain | None = None,
        on_violation: str = "raise",
    ) -> None:
        name = "EfficientScream"
        T = check_count(name, "horizon", horizon)
        G = check_positive(name, "gradient_bound", gradient_bound)
        price = check_nonnegative(name, "switching_cost", switching_cost)
        make_inner = partial(Scream, horizon=T, gradient_bound=G, switching_cost=price)
        super().__init__(domain, make_inner, surrogate=surrogate, on_violation=on_violation)
        self.switching_cost = price

    def regret_bound(self, path_length: float, rounds: int | None = None) -> float:
        """(7) on the surrogate: as `Scream.regret_bound`."""
        return self.inner.regret_bound(path_length, rounds)
