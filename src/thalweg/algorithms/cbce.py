"""CBCE: coin betting for changing environments, Jun, Orabona, Wright, Willett (AISTATS 2017), and with one gradient.

Over the geometric cover, an expert J = [J_1, J_2] is online gradient descent started at J_1, with prior
pi_J ~ 1/(J_1^2 (1 + floor(log2 J_1))). With z, W, n its sum of feedback, its wealth (1 at birth) and its age:

    beta_J = z/(n + 1),  w_J = beta_J W                                                    (1)
    p_J ~ pi_J [w_J]_+ ;  pi_J where all of them vanish                                    (2)
    x_t = sum_J p_J x_{t,J}                                                                (3)
    r_J = (f_t(x_t) - f_t(x_{t,J})) / c;  g_J = r_J if w_J > 0 else [r_J]_+                (4)
    z += g_J;  W += g_J w_J;  n += 1                                                       (5)
    x_{t+1,J} = Pi_X(x_{t,J} - D/(G sqrt(t - J_1 + 1)) g_{t,J})                            (6)

Regret O(sqrt(|I| log T)) on every interval I. With own gradients, floor(log2 t) + 1 projections and gradients a round
and one value more; with one gradient (Wang, Zhao, Zhang, IJCAI 2018) the losses are linearised,
r_J = <g_t, x_t - x_{t,J}>/(2GR), and a round needs 1 gradient and 0 values.
"""

import math
from functools import partial

from thalweg._core.types import Floats
from thalweg._core.validate import check_positive
from thalweg.algorithms._ranges import read_ranges
from thalweg.cards import Card, Variant
from thalweg.domains._base import Domain
from thalweg.experts.descent import Descent
from thalweg.learners.cover import Cover, OnCover
from thalweg.learners.one_projection import OneProjection
from thalweg.metas.coin_betting import CoinBetting
from thalweg.theorems import bounds
from thalweg.theorems._base import CoverTheorem, path_length

__all__ = ["CBCE", "Betting", "EfficientCBCE"]


class CBCE(Cover):
    """Coin betting for changing environments: small regret on every interval at once.

    Parameters
    ----------
    domain : Domain
        X, of diameter D.
    gradient_bound, on_violation
        G, and the treatment of gradients above it, as for every `Learner`.
    gradients : {"shared", "own"}
        "shared" takes one gradient a round. "own" is the published method and needs the loss itself: call `step`.
    loss_bound : float, optional
        c, the largest f_t(x) - f_t(u) over X; G D when left out. Used with own gradients.
    cover : {"geometric", "compact"}
        The published cover, or the compact one, which suffices since the experts need no interval length.
    horizon : int, optional
        Sizes the state; the method needs none.

    Examples
    --------
    >>> import thalweg as tw
    >>> learner = tw.CBCE(tw.domains.Ball(2), gradient_bound=3.0, gradients="own")
    >>> for _ in range(6):
    ...     _ = learner.step(tw.losses.Squared([1.0, 0.0], 2.0))
    >>> learner.active, learner.born.tolist()
    (3, [7, 6, 4])

    References
    ----------
    K.-S. Jun, F. Orabona, S. Wright, R. Willett, Improved strongly adaptive online learning using coin betting,
    AISTATS 2017.
    G. Wang, D. Zhao, L. Zhang, Minimizing adaptive regret with one gradient per iteration, IJCAI 2018.
    """

    card = Card(
        about="coin betting over intervals, each expert its own gradient",
        regret="adaptive",
        bound="sqrt(|I| log T)",
        queries=("n", "n", "n + 1"),
        source="Jun et al. 2017",
        arguments=lambda s: {"loss_bound": s.spread},
        options={"gradients": "own"},
        variants={
            "shared": Variant(
                "CBCE with one gradient",
                options={"gradients": "shared"},
                queries=("n", "1", "0"),
                source="Wang, Zhao & Zhang 2018",
            )
        },
    )

    anytime = True

    def __init__(
        self,
        domain: Domain,
        *,
        gradient_bound: float,
        gradients: str = "shared",
        loss_bound: float | None = None,
        cover: str = "geometric",
        horizon: int | None = None,
        on_violation: str = "raise",
    ) -> None:
        G, D, own, c = read_ranges("CBCE", domain, gradient_bound, gradients, loss_bound)
        super().__init__(
            domain,
            Descent(domain, D / G, step_rule="decaying"),  # (6)
            meta=CoinBetting(c if own else 2 * G * domain.radius),  # (1), (2), (4), (5)
            cover=cover,
            gradients=gradients,
            horizon=horizon,
            gradient_bound=G,
            on_violation=on_violation,
        )


class Betting(CoverTheorem):
    """`EfficientCBCE`: coin betting over descent with steps 2R/(G sqrt n)."""

    name = "coin betting on a cover (Section 3.2)"

    def piece(self, m: int, first: int, last: int, u: Floats, F: float) -> float:
        """With D = 2R a descent loses at most 3/2 D G sqrt n; a comparator that moves adds D P over the last step."""
        n = last - first
        moved = self.G * math.sqrt(n) * path_length(u)
        return bounds.coin_betting(n, last, self.R, self.G) + 3 * self.G * self.R * math.sqrt(n) + moved


class EfficientCBCE(OnCover, OneProjection):
    """CBCE with one gradient inside the reduction: regret O(sqrt(|I| log T)) on every interval, one projection.

    Section 3.2 of the paper of `EfficientDynamic`.

    Parameters
    ----------
    domain, gradient_bound, horizon
        As for `CBCE`.
    surrogate, on_violation
        As for `OneProjection`.

    Examples
    --------
    >>> import thalweg as tw
    >>> learner = tw.EfficientCBCE(tw.domains.Simplex(3), gradient_bound=1.0)
    >>> learner.update([1.0, 0.0, 0.0])
    >>> learner.active
    2
    """

    card = Card(
        about="CBCE with one projection and one gradient",
        regret="adaptive",
        bound="sqrt(|I| log T)",
        queries=("1", "1", "0"),
        source="Zhao et al. 2025, Sec. 3.2",
        theorem=Betting,
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
        G = check_positive("EfficientCBCE", "gradient_bound", gradient_bound)
        make_inner = partial(CBCE, gradient_bound=G, horizon=horizon)
        super().__init__(domain, make_inner, surrogate=surrogate, on_violation=on_violation)
