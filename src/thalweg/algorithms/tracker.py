"""The Tracker: nothing to set but the domain.

Y is a ball around X with centre c and radius R. Play x_t = Pi_X(y_t); let h_t be the surrogate gradient of
`thalweg.one_projection` and f = f_t(x_t) - loss_floor >= 0, inf where it is not given.

    l_t(u) = max(-2f, <h_t, u - y_t>) <= f_t(u) - f_t(x_t) for u in X        the linear loss, cut                   (1)
    member k:  y_k <- Pi_Y(y_k - s_k h_t)                                   the proximal step of l_t,
               s_k = min(2^k R / sqrt(S_t), (2f - r_k)_+ / ||h_t||^2)        r_k = <h_t, y_t - y_k>                 (2)
               for k = k0 - 4, ..., K; K grows while 2^(K+1) sqrt(S_t) <= 2 sum_s ||h_s||
    members C, D:  a step of recursive least squares on l_t; D starts anew when its errors grow                    (3)
    record j:  Hedge on the gains min(r_i, 2f) seen since its birth, rate 1/sqrt(B^2 + V)                          (4)
    y_{t+1} = sum_j w_j sum_i p_i^(j) y_i                                   w_j by what record j gained             (5)

with S_t = sum_{s<=t} ||h_s||^2. One record begins at the start, the others at the markers of a compact cover.
(2) is in `thalweg._machines.cut_descent`, (3) in `curvature`, (4) and (5) in `records`.

For every T and every path in X of length P, regret is of order R sqrt(S_T (1 + P/R)), up to logarithms; on every
interval I of order R sqrt(S_I (1 + P_I/R) log^2 T). For smooth f_t >= 0 sqrt(S_I) is of order sqrt(L F_I). No constant
is known beforehand. 1 projection, 1 gradient, 1 value a round.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from thalweg._kernels.clock import VALUES
from thalweg._machines.tracker import LARGEST as LARGEST_LOSS
from thalweg.cards import Card
from thalweg.domains import Domain
from thalweg.one_projection import OneProjection
from thalweg.tracking import Tracking, read_start

__all__ = ["Tracker"]


class Tracker(OneProjection):
    """Keep up with a moving optimum, knowing nothing but the set: no horizon, no gradient bound, no step size.

    Parameters
    ----------
    domain : Domain
        X, any bounded convex set.
    intervals : bool
        Whether to keep up on every stretch of time as well, and not only on the whole run. Costs scalars only.
    curvature : {"auto", True, False}
        Whether two members follow the curvature of the losses, at d^2 numbers; "auto": where a decision has at most 64.
    loss_floor : float or None
        A known lower bound of the losses on the domain; a tight one helps. None: do without their values.
    start : array, optional
        A point of the domain to begin at, such as last week's weights, or the persistence forecast; Pi_X(c) when left
        out.
    surrogate : Ball, optional
        Y; the ball around `domain.center` with `domain.radius` when left out.

    Notes
    -----
    Scaling all losses changes no decision. Values may be left out in some rounds or in all: `update(gradient)`. Then
    nothing is cut and members with curvature rest; where the set is much too large the loss may grow a lot.

    Examples
    --------
    >>> import numpy as np, thalweg as tw
    >>> rng = np.random.default_rng(0)
    >>> learner = tw.Tracker(tw.domains.Ball(2, radius=5.0))
    >>> for t in range(300):
    ...     a, w = rng.normal(size=2), np.array([1.0, -1.0]) if t < 150 else np.array([-2.0, 1.0])
    ...     paid = learner.step(tw.losses.Squared(a, a @ w))
    >>> np.round(learner.decision, 3) + 0.0
    array([-2.,  1.])
    >>> learner.queries
    Queries(projections=300, gradients=300, values=300)
    """

    card = Card(
        about="nothing to set but the domain",
        regret="interval dynamic",
        bound="sqrt(S_I (1 + P_I) log^2 T)",
        queries=("1", "1", "1"),
        source="this library, docs/why-the-tracker-works.md",
        arguments=lambda s: {"loss_floor": 0.0 if s.nonnegative else None},
    )

    inner: Tracking

    def __init__(
        self,
        domain: Domain,
        *,
        intervals: bool = True,
        curvature: bool | str = "auto",
        loss_floor: float | None = 0.0,
        start: ArrayLike | None = None,
        surrogate: Domain | None = None,
    ) -> None:
        name = type(self).__name__

        def make_inner(Y: Domain) -> Tracking:
            home = None if start is None else read_start(name, domain, start).reshape(domain.shape)
            return Tracking(
                Y,
                intervals=intervals,
                curvature=curvature,
                loss_floor=loss_floor,
                start=home,
                directions=None if surrogate is not None else (domain.flat, domain.flat_par),
                owner=name,
            )

        super().__init__(domain, make_inner, surrogate=surrogate)

    @staticmethod
    def _around(domain: Domain) -> Domain:
        return domain._enclosing_ball()

    @property
    def _floor(self) -> float:
        return self.inner._floor

    def _round(self, loss: float | None) -> bool:
        clipped = super()._round(loss)
        self._clock[VALUES] -= int(self.uses_loss and loss is None)  # counted, but not there
        return clipped

    def _read_paid(self, loss: Any) -> float:
        value = super()._read_paid(loss)
        if self.uses_loss and value - self._floor > LARGEST_LOSS:
            raise self._beyond_range()
        return value

    def _why_floor(self) -> str:
        return self.inner._why_floor()

    @property
    def weights(self) -> Any:
        """p_i: of the two members with curvature (0 where there are none), then of the descents `multipliers`."""
        return self.inner.weights

    @property
    def multipliers(self) -> Any:
        """2^k of the descents that are there, the first after 2 members with curvature."""
        return self.inner.multipliers

    @property
    def marker_count(self) -> int:
        """Markers of the cover so far."""
        return self.inner.marker_count
