"""Online gradient descent, Zinkevich (ICML 2003).

    x_{t+1} = Pi_X(x_t - eta_t g_t)                                                        (1)

With ||g_t|| <= G and X of diameter D: eta = D/(G sqrt T) gives static regret D G sqrt T, and eta_t = D/(G sqrt t) gives
3/2 D G sqrt T for every T at once. 1 projection, 1 gradient, 0 values a round.
"""

import math

from thalweg._validate import check_count, check_positive
from thalweg.alone import Alone
from thalweg.domains import Domain
from thalweg.errors import InputError
from thalweg.experts import Descent
from thalweg.learner import bounded

__all__ = ["OGD"]


class OGD(Alone):
    """Online gradient descent: one step size, no ensemble.

    Good for a world that stands still; on a moving one its step is either too short or too long, which is what the
    ensembles are for.

    Parameters
    ----------
    domain : Domain
        X.
    horizon : int, optional
        T.
    gradient_bound : float, optional
        G; needed where there is no step size.
    step_size : float, optional
        eta, constant. Left out: D/(G sqrt T) with a horizon T, else D/(G sqrt t).
    on_violation : {"raise", "clip"}
        What to do with a gradient above the bound.

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

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        gradient_bound: float | None = None,
        *,
        step_size: float | None = None,
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
                f"D/(G sqrt T), without it for D/(G sqrt t)). Got horizon={horizon!r} only."
            )
        super().__init__(
            Descent(domain, eta, step_rule=rule),
            horizon=horizon,
            gradient_bound=gradient_bound,
            on_violation=on_violation,
        )
