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

from thalweg._core.types import Floats
from thalweg._core.validate import check_array, check_choice, wrong
from thalweg.domains._base import Domain
from thalweg.experts.descent import RULES, Descent
from thalweg.experts.pool import Pool
from thalweg.learners.alone import Alone
from thalweg.learners.base import Learner, Shown, bounded
from thalweg.metas.hedge import Hedge, rate


def descents(
    domain: Domain,
    step_sizes: Floats,
    *,
    step_rule: str = "constant",
    delta: float = 1.0,
    price: float | None = None,
    meta: Hedge | None = None,
    judge: str = "linear",
) -> Pool:
    """Return a pool of descents; under Hedge with its self-confident rate unless another meta-learner is given."""
    members = [Descent(domain, float(step), step_rule=step_rule, delta=delta, price=price) for step in step_sizes]
    return Pool(members, meta=meta, judge=judge)


def _weights(learner: Learner, s: Any, c: object) -> Floats:
    """p_t, how much each member counts in the present decision."""
    found: Floats = s.experts.weights[0].copy()
    return found


def _meta_rate(learner: Learner, s: Any, c: Any) -> float:
    """epsilon_t, the rate behind the present weights."""
    hedge = c.experts.meta
    return float(rate(hedge.epsilon[0], hedge.radius[0], s.experts.meta.sums[0]))


class Pooled:
    """Attributes of learners whose expert is a pool of descents under Hedge."""

    expert: Any  # a `Pool` of descents
    weights, meta_rate = Shown(_weights), Shown(_meta_rate)

    @property
    def step_sizes(self) -> Floats:
        """eta_i."""
        return np.array([member.step_size for member in cast(Sequence[Descent], self.expert.members)])

    @property
    def prior(self) -> Floats:
        """The members' weights before the first round."""
        return cast(Hedge, self.expert.meta).weights(self.expert.size)


class Ensemble(Pooled, Alone):
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

    lasts = True  # its steps are given

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
        super().__init__(
            descents(domain, steps, step_rule=step_rule, delta=delta, price=switching_cost, meta=meta, judge=judge),
            gradients=gradients,
            nonnegative=nonnegative,
            start=start,
            horizon=horizon,
            gradient_bound=gradient_bound,
            on_violation=on_violation,
        )
