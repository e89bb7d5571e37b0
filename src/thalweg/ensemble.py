"""A pool of gradient descents under Hedge: the two-layer ensemble behind most methods here.

With h_t the gradient (one for all members, or each its own) and Pi the projection onto the domain:

    y_{t+1,i} = Pi(y_{t,i} - eta_{t,i} h_{t,i}),                   i = 1..N                (1)
    A_{t,i}   = sum_{s<=t} l_{s,i},   l_{s,i} = <h_s, y_{s,i}>  or  f_s(y_{s,i})           (2)
    p_{t+1,i} ~ prior_i exp(-epsilon_{t+1} A_{t,i})                                        (3)
    y_{t+1}   = sum_i p_{t+1,i} y_{t+1,i}                                                  (4)

(1) is `thalweg.experts.Descent`, (2) and (3) `thalweg.metas.Hedge`, (4) `thalweg.experts.Pool`.
"""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from thalweg._types import Array
from thalweg._validate import check_array, check_choice, wrong
from thalweg.alone import Alone
from thalweg.domains import Domain
from thalweg.experts import Descent, Pool
from thalweg.experts.descent import RULES
from thalweg.learner import bounded
from thalweg.metas import Hedge
from thalweg.metas.hedge import rate

__all__ = ["Ensemble", "Pooled", "descents"]


def descents(domain: Domain, step_sizes: Array, *, meta: Hedge | None = None, judge: str = "linear") -> Pool:
    """A pool of descents with constant steps; under Hedge with its self-confident rate where no other is given."""
    return Pool([Descent(domain, float(step)) for step in step_sizes], meta=meta, judge=judge)


class Pooled(Alone):
    """A pool of descents under Hedge, alone: what `Ensemble` and the methods that know their own pool share."""

    expert: Pool

    def __init__(self, expert: Pool, **options: Any) -> None:
        super().__init__(expert, **options)
        members = cast(Sequence[Descent], expert.members)
        self.step_sizes = np.array([member.step_size for member in members])
        self.prior = cast(Hedge, expert.meta).weights(expert.size)

    @property
    def weights(self) -> Array:
        """p_t, how much each member counts in the present decision."""
        weights: Array = self._parts[0].experts.weights[0].copy()
        return weights

    @property
    def meta_rate(self) -> float:
        """epsilon_t, the rate behind the present weights."""
        state, settings = self._parts
        hedge = settings.experts.meta
        return float(rate(hedge.epsilon[0], hedge.radius[0], state.experts.meta.sums[0]))


class Ensemble(Pooled):
    """N gradient-descent learners with different step sizes, combined by Hedge.

    `Ader` and `Sword` are this class with the constants of their papers; `EfficientDynamic` is this class inside
    `OneProjection`. Use it directly to try constants of your own.

    Parameters
    ----------
    domain : Domain
        Where the members live; each round projects onto it N times.
    step_sizes : array of N numbers > 0
        eta_i.
    step_rule : {"constant", "decaying", "scale_free"}
        eta_{t,i} = eta_i, eta_i / sqrt(t), or eta_i / sqrt(delta + sum_{s<=t} ||h_s||^2).
    delta : float
        The delta of the scale-free rule.
    prior : array of N numbers > 0, optional
        Weights before the first round, uniform when left out. Normalised here.
    meta_rate : float, optional
        epsilon, a fixed rate. Left out, the rate is self-confident:
        epsilon_t = sqrt(ln N / (1 + R^2 sum_{s<t} ||h_s||^2)) with R = `meta_radius`.
    meta_radius : float, optional
        R, the domain's radius when left out.
    switching_cost : float, optional
        lambda: members also pay lambda ||y_{t,i} - y_{t-1,i}|| in (2). Left out, moving is free.
    judge : {"linear", "value"}
        Members are judged by <gradient at the combined decision, y_i>, or by their own values f(y_i).
    gradients, nonnegative, start, horizon, gradient_bound, on_violation
        As for `Alone`.

    Examples
    --------
    >>> import thalweg as tw
    >>> learner = tw.Ensemble(tw.domains.Ball(2), step_sizes=[0.1, 1.0])
    >>> learner.update([1.0, 0.0])
    >>> learner.points
    array([[-0.1,  0. ],
           [-1. ,  0. ]])
    """

    def __init__(
        self,
        domain: Domain,
        step_sizes: ArrayLike,
        *,
        step_rule: str = "constant",
        delta: float = 1.0,
        prior: ArrayLike | None = None,
        meta_rate: float | None = None,
        meta_radius: float | None = None,
        switching_cost: float | None = None,
        gradients: str = "shared",
        judge: str = "linear",
        nonnegative: bool = False,
        start: ArrayLike | None = None,
        horizon: int | None = None,
        gradient_bound: float | None = None,
        on_violation: str = "raise",
    ) -> None:
        name = type(self).__name__
        steps = check_array(name, "step_sizes", step_sizes, ndim=1)
        if steps.size == 0 or not (steps > 0).all():
            raise wrong(name, "step_sizes", "one or more numbers > 0", step_sizes)
        check_choice(name, "step_rule", step_rule, tuple(RULES))
        radius = bounded(name, domain).radius if meta_radius is None else meta_radius
        meta = Hedge(rate=meta_rate, radius=None if meta_rate is not None else radius, prior=prior)
        members = [
            Descent(domain, float(step), step_rule=step_rule, delta=delta, price=switching_cost) for step in steps
        ]
        super().__init__(
            Pool(members, meta=meta, judge=judge),
            gradients=gradients,
            nonnegative=nonnegative,
            start=start,
            horizon=horizon,
            gradient_bound=gradient_bound,
            on_violation=on_violation,
        )

    @property
    def _lasts(self) -> bool:
        return super()._lasts or type(self) is Ensemble  # its steps are given
