"""Online gradient descent, Zinkevich (ICML 2003).

    x_{t+1} = Pi_X(x_t - eta_t g_t)                                                        (1)

With ||g_t|| <= G and X of diameter D: eta = D/(G sqrt T) gives static regret D G sqrt T, and eta_t = D/(G sqrt t) gives
3/2 D G sqrt T for every T at once. 1 projection, 1 gradient, 0 values a round.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import check_count, check_positive, short_repr
from thalweg.cards import Card
from thalweg.domains._base import Domain
from thalweg.errors import InputError
from thalweg.experts.descent import Descent
from thalweg.learners.alone import Alone
from thalweg.learners.base import bounded
from thalweg.theorems._base import Theorem, path_length

__all__ = ["OGD", "Telescoping"]


class Telescoping(Theorem):
    r"""`OGD` and `SOGD`, from the first round on, with eta the last step and the gradients that were seen:

    .. math:: \frac{\|x_1 - u_1\|^2 \text{ or } D^2}{2 \eta} + \frac{D P}{\eta} + \frac12 \sum_t \eta_t \|g_t\|^2
    """

    name = "telescoping sum (Zinkevich 2003)"
    whole = True

    def bound(self, start: int, stop: int, u: Floats, losses: Floats) -> float:
        """See `Theorem.bound`."""
        expert: Descent = self.inner.expert
        squares = self.squares[start:stop]
        scale, rule = expert.step_size, expert.step_rule
        Q, P, n = float(squares.sum()), path_length(u), stop - start
        first = float(np.linalg.norm(self.inner.machine.origin - u[0])) if rule == "constant" else self.D
        if rule == "scale_free":
            last = scale / math.sqrt(expert.delta + Q)
            steps = scale * math.sqrt(Q)  # at least the sum of eta_t ||g_t||^2 / 2
        elif rule == "decaying":
            last = scale / math.sqrt(n)
            steps = float(scale / np.sqrt(1 + np.arange(n)) @ squares) / 2
        else:
            last, steps = scale, scale * Q / 2
        return (first**2 / 2 + self.D * P) / last + steps


class OGD(Alone):
    """Online gradient descent: one step size, no ensemble.

    Good for a world that does not change; in a changing one its step is either too short or too long, hence the
    ensembles.

    Parameters
    ----------
    domain : Domain
        X.
    horizon : int, optional
        T.
    gradient_bound, on_violation
        G, needed where there is no step size, and the treatment of gradients above it, as for every `Learner`.
    step_size : float, optional
        eta, constant. Left out: D/(G sqrt T) with a horizon T, else D/(G sqrt t).
    start : array, optional
        A point of the domain to begin at; the one nearest to its centre when left out.

    Examples
    --------
    >>> import thalweg as tw
    >>> learner = tw.OGD(tw.domains.Ball(2), step_size=0.5)
    >>> learner.update([1.0, 0.0])
    >>> learner.decision
    array([-0.5,  0. ])

    References
    ----------
    M. Zinkevich, Online convex programming and generalized infinitesimal gradient ascent, ICML 2003.
    """

    card = Card(
        about="gradient descent with one step size",
        regret="static",
        bound="sqrt(T)",
        queries=("1", "1", "0"),
        source="Zinkevich 2003",
        theorem=Telescoping,
    )

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        gradient_bound: float | None = None,
        *,
        step_size: float | None = None,
        start: ArrayLike | None = None,
        on_violation: str = "raise",
    ) -> None:
        rule = "constant"
        bounded("OGD", domain)
        if step_size is not None:
            eta = check_positive("OGD", "step_size", step_size)
        elif gradient_bound is not None:
            G = check_positive("OGD", "gradient_bound", gradient_bound)
            eta = domain.diameter / G
            if horizon is None:
                rule = "decaying"
            else:
                eta /= math.sqrt(check_count("OGD", "horizon", horizon))
        else:
            raise InputError(
                "OGD needs a step: give step_size=..., or gradient_bound (with horizon for a constant step "
                f"D/(G sqrt T), without it for D/(G sqrt t)). Got horizon={short_repr(horizon)} only."
            )
        super().__init__(
            Descent(domain, eta, step_rule=rule),
            start=start,
            horizon=horizon,
            gradient_bound=gradient_bound,
            on_violation=on_violation,
        )

    @property
    def lasts(self) -> bool:  # type: ignore[override]  # it depends on the arguments
        """Whether the horizon has no part in its steps."""
        return self._given.get("step_size") is not None
