"""SAOL: strongly adaptive online learning, Daniely, Gonen, Shalev-Shwartz (ICML 2015).

Over the geometric cover, the expert of an interval I is online gradient descent tuned to |I|. With losses in units of
their range c, and eta_I = min(1/2, 1/sqrt|I|):

    p_{t,I} ~ eta_I w_I,   w_I = 1 at birth                                                (1)
    x_t = sum_I p_{t,I} x_{t,I}                                                            (2)
    r_I = (f_t(x_t) - f_t(x_{t,I})) / c;   w_I <- w_I (1 + eta_I r_I)                      (3)
    x_{t+1,I} = Pi_X(x_{t,I} - D/(G sqrt|I|) g_{t,I})                                      (4)

Regret O(sqrt(|I|) log T) on every interval I. With own gradients, floor(log2 t) + 1 projections and gradients a round
and one value more; with one gradient the losses are linearised, r_I = <g_t, x_t - x_{t,I}>/(GD).
"""

import math
from functools import partial

import numpy as np

from thalweg._core.types import Floats
from thalweg.algorithms._ranges import read_ranges
from thalweg.cards import Card, Variant
from thalweg.domains._base import Domain
from thalweg.experts.descent import Descent
from thalweg.learners.cover import Cover
from thalweg.metas.prod import Prod
from thalweg.theorems import bounds
from thalweg.theorems._base import CoverTheorem, path_length

__all__ = ["SAOL", "StronglyAdaptive"]


class StronglyAdaptive(CoverTheorem):
    """`SAOL`: Prod over descents, each tuned to the length of its interval."""

    name = "Prod on a geometric cover (Daniely et al. 2015)"

    def piece(self, m: int, first: int, last: int, u: Floats, F: float) -> float:
        """The expert of the shortest interval that starts at m and reaches the end."""
        n = last - first
        level = min((n - 1).bit_length(), (m & -m).bit_length() - 1)
        c: float = self.inner.meta.feedback_range
        eta: float = self.inner.level(level).step_size
        away = float(np.linalg.norm(self.inner.machine.origin - u[0]))
        expert = (away**2 / 2 + self.D * path_length(u)) / eta + eta / 2 * self.G**2 * n
        return c * bounds.prod(n, last, 2**level) + expert


class SAOL(Cover):
    """Strongly adaptive online learning: small regret on every interval at once.

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
    horizon : int, optional
        Sizes the state; the method needs none.

    Examples
    --------
    >>> import thalweg as tw
    >>> learner = tw.SAOL(tw.domains.Ball(2), gradient_bound=3.0, gradients="own")
    >>> for _ in range(6):
    ...     _ = learner.step(tw.losses.Squared([1.0, 0.0], 2.0))
    >>> learner.born.tolist()
    [7, 6, 4]

    Notes
    -----
    The paper draws one expert with probability p; for convex losses their mean is played here.

    References
    ----------
    A. Daniely, A. Gonen, S. Shalev-Shwartz, Strongly adaptive online learning, ICML 2015.
    """

    card = Card(
        about="Prod over intervals, each expert its own gradient and a step for its length",
        regret="adaptive",
        bound="sqrt(|I|) log T",
        queries=("n", "n", "n + 1"),
        source="Daniely et al. 2015",
        arguments=lambda s: {"loss_bound": s.spread},
        options={"gradients": "own"},
        theorem=StronglyAdaptive,
        variants={
            "shared": Variant("SAOL with one gradient", options={"gradients": "shared"}, queries=("n", "1", "0")),
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
        horizon: int | None = None,
        on_violation: str = "raise",
    ) -> None:
        G, D, own, c = read_ranges("SAOL", domain, gradient_bound, gradients, loss_bound)
        super().__init__(
            domain,
            partial(_tuned, domain, D / G),  # (4)
            meta=Prod(c if own else G * D),  # (1), (3)
            cover="geometric",
            gradients=gradients,
            horizon=horizon,
            gradient_bound=G,
            on_violation=on_violation,
        )


def _tuned(domain: Domain, scale: float, length: int) -> Descent:
    """Descent for an interval of a given length."""
    return Descent(domain, scale / math.sqrt(length))
