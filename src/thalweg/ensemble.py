"""A pool of gradient-descent learners under Hedge: the two-layer ensemble behind most methods here.

With h_t the gradient (one for all members, or each its own) and Pi the projection onto the domain:

    y_{t+1,i} = Pi(y_{t,i} - eta_{t,i} h_{t,i}),                   i = 1..N                (1)
    A_{t,i}   = sum_{s<=t} l_{s,i},   l_{s,i} = <h_s, y_{s,i}>  or  f_s(y_{s,i})           (2)
    p_{t+1,i} ~ prior_i exp(-epsilon_{t+1} A_{t,i})                                        (3)
    y_{t+1}   = sum_i p_{t+1,i} y_{t+1,i}                                                  (4)

Rates multiply the cumulative loss, never the last weights: with rates that change, the second can have linear regret
(Zhao, Zhang, Zhang, Zhou, JMLR 2024, Remark 9).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thalweg._kernels import ensemble
from thalweg._kernels.clock import CLIPPED, ENTRIES, GRADIENTS, PROJECTIONS, ROUNDS, VALUES
from thalweg._kernels.projections import PYTHON
from thalweg._validate import check_array, check_choice, check_positive
from thalweg.domains import Domain
from thalweg.errors import InputError
from thalweg.learner import Learner, Stage
from thalweg.losses import Loss

__all__ = ["Ensemble", "refuse_update"]

Array = NDArray[np.float64]

kernels: Any = ensemble  # called with the state unpacked, which type checkers cannot follow

STEP_RULES = {"constant": kernels.CONSTANT, "decaying": kernels.DECAYING, "scale_free": kernels.SCALE_FREE}


def refuse_update(learner: Learner, points: str) -> InputError:
    """Why a learner that queries many gradients a round cannot take just one."""
    return InputError(
        f"{type(learner).__name__} with gradients='own' asks for the gradient at the points of {points}, so one "
        "gradient is not enough. Call step(f) with an object that has f.value(x) and f.gradient(x), or build the "
        "learner with gradients='shared'."
    )


class Ensemble(Learner):
    """N gradient-descent learners with different step sizes, combined by Hedge.

    `OGD`, `SOGD`, `Ader` and `Sword` are this class with the constants of their papers; `EfficientDynamic` is this
    class inside `OneProjection`. Use it directly to try constants of your own.

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
    gradients : {"shared", "own"}
        One gradient at the combined decision for all, or one at each member's own point (then call `step`).
    judge : {"linear", "value"}
        Members are judged by <gradient at the combined decision, y_i>, or by their own values f(y_i).
    nonnegative : bool
        Refuse negative losses.
    horizon, gradient_bound, on_violation
        As for every `Learner`.

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
        gradients: str = "shared",
        judge: str = "linear",
        nonnegative: bool = False,
        horizon: int | None = None,
        gradient_bound: float | None = None,
        on_violation: str = "raise",
    ) -> None:
        super().__init__(domain, horizon=horizon, gradient_bound=gradient_bound, on_violation=on_violation)
        name = type(self).__name__
        self.step_sizes = check_array(name, "step_sizes", step_sizes, ndim=1)
        N = self.step_sizes.size
        if N == 0 or not (self.step_sizes > 0).all():
            raise InputError(
                f"The 'step_sizes' parameter of {name} must be one or more numbers > 0. Got {step_sizes!r}."
            )
        weights = np.ones(N) if prior is None else check_array(name, "prior", prior, shape=(N,))
        if not (weights > 0).all():
            raise InputError(f"The 'prior' parameter of {name} must be numbers > 0. Got {prior!r}.")
        self.prior = weights / weights.sum()
        self.gradients = check_choice(name, "gradients", gradients, ("shared", "own"))
        self.judge = check_choice(name, "judge", judge, ("linear", "value"))
        if self.judge == "value" and self.gradients == "shared":
            raise InputError(f"{name} judges members by value only where each has its own gradient: gradients='own'.")
        self.one_gradient = self.gradients == "shared"
        self.nonnegative = bool(nonnegative)

        self.step_rule = check_choice(name, "step_rule", step_rule, tuple(STEP_RULES))
        confident = meta_rate is None
        epsilon = np.sqrt(np.log(N)) if meta_rate is None else check_positive(name, "meta_rate", meta_rate)
        R = domain.radius if meta_radius is None else check_positive(name, "meta_radius", meta_radius)
        self._rules = np.array([STEP_RULES[self.step_rule], kernels.SELF_CONFIDENT if confident else kernels.FIXED])
        self._par = np.array([check_positive(name, "delta", delta), epsilon, R])
        self._log_prior = np.log(self.prior)
        self._work = np.empty((3, domain.dim))

        # One slot of the kernels' arrays, all its own.
        self._points = np.empty((1, N, domain.dim))
        self._scores = np.empty((1, N))
        self._weights = np.empty((1, N))
        self._y = np.empty((1, domain.dim))
        self._sums = np.empty((1, 1))
        self._constants = (
            self.step_sizes[None, :], self._log_prior[None, :], self._par[None, :], self._rules,
            domain.code, domain.par,
        )  # fmt: skip
        self._arrays |= {
            "points": self._points,
            "scores": self._scores,
            "weights": self._weights,
            "y": self._y,
            "sums": self._sums,
        }
        self._start = domain.project(domain.center).ravel()
        self._restart()

    def _restart(self) -> None:
        self._points[:] = self._start
        self._scores[:] = 0.0
        self._weights[:] = self.prior
        self._y[:] = self._start
        self._sums[:] = 0.0
        self._clock[PROJECTIONS] = 1  # of the starting point

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | {
            "step_sizes": self.step_sizes,
            "prior": self.prior,
            "rules": self._rules,
            "constants": self._par,
        }

    @property
    def points(self) -> Array:
        """y_{t,i}, the members' points, (N, *shape)."""
        points: Array = self._points.reshape(-1, *self.domain.shape).copy()
        return points

    @property
    def weights(self) -> Array:
        """p_t, how much each member counts in the present decision."""
        weights: Array = self._weights[0].copy()
        return weights

    @property
    def meta_rate(self) -> float:
        """epsilon_t, the rate behind the present weights."""
        return float(kernels.meta_rate(self._rules[1], self._par[1], self._par[2], self._sums[0, 0]))

    def _propose(self) -> Array:
        return self._peek().copy()

    def _peek(self) -> Array:
        y: Array = self._y[0]
        return y

    def _move(self, gradient: Array, loss: float | None) -> None:
        del loss
        if self.domain.code == PYTHON:
            losses = (self._points[0] - self._y[0]) @ gradient
            self._points_step(gradient[None, :], losses, float(gradient @ gradient))
            self._clock[GRADIENTS] += 1
            return
        kernels.play_round(
            *self._state(), gradient, False, gradient, 0.0, gradient, self._clock, *self._constants, self._work[2]
        )

    def _move_reduced(self, g: Array, loss: float | None, x: Array, tol: float, h: Array, outer: Any) -> None:
        if self.domain.code == PYTHON:
            super()._move_reduced(g, loss, x, tol, h, outer)
            return
        kernels.play_round(*self._state(), g, True, x, tol, h, outer, *self._constants, self._work[2])

    def _state(self) -> tuple[Any, ...]:
        """The state in the order in which every kernel takes it."""
        return (self._points, self._scores, self._weights, self._y, self._sums, self._clock)

    def _points_step(self, H: Array, losses: Array, square: float) -> None:
        """(1)-(4) where only Python can project. All projections come first: if one fails, nothing has changed."""
        t, q = self._clock[ROUNDS] + 1, self._sums[0, 0] + square
        factor = kernels.step_factor(self._rules[0], t, q, self._par[0])
        moved = self._points[0] - (self.step_sizes * factor)[:, None] * H
        for i, point in enumerate(moved):
            moved[i] = self.domain._project_flat(point)  # (1)
        self._points[0] = moved
        self._scores[0] += losses  # (2)
        self._sums[0, 0] = q
        self._clock[ROUNDS] += 1
        self._clock[PROJECTIONS] += len(moved)
        kernels.settle(*self._state()[:5], 0, len(moved), *self._constants[1:4])  # (3), (4)

    # ------------------------------------------------------------------ members with their own gradients

    def update(self, gradient: ArrayLike, loss: float | None = None) -> None:
        """One round from one gradient; see `Learner.update`. Members with their own gradients refuse it."""
        if not self.one_gradient:
            raise refuse_update(self, f"all its {self.step_sizes.size} members")
        super().update(gradient, loss)

    def step(self, f: Loss) -> float:
        """One round from the loss itself; returns the loss paid at the decision."""
        if self.one_gradient:
            return super().step(f)
        self._check_loss_object(f)
        N, shape = self.step_sizes.size, self.domain.shape
        x = self.decision
        paid = self._read_paid(f.value(x))
        queried = np.zeros(ENTRIES, dtype=np.int64)
        H = np.empty_like(self._points[0])
        losses = np.empty(N)
        square = 0.0
        if self.judge == "linear":
            queried[CLIPPED] += self._read_gradient(f.gradient(x))
            queried[GRADIENTS] += 1
            losses = (self._points[0] - self._y[0]) @ self._gradient
            square = float(self._gradient @ self._gradient)
        for i, point in enumerate(self.points):
            if self.judge == "value":
                losses[i] = self._read_paid(f.value(point))
                queried[VALUES] += 1
            queried[CLIPPED] += self._read_gradient(f.gradient(point.reshape(shape)))
            queried[GRADIENTS] += 1
            H[i] = self._gradient
        if self.domain.code == PYTHON:
            self._points_step(H, losses, square)
        else:
            kernels.play_own_round(*self._state(), H[None], losses[None], square, *self._constants, self._work[2])
        self._clock += queried
        self._shown = None
        self._watch_horizon()
        return paid

    # ------------------------------------------------------------------ whole runs

    _has_loop = True

    def _loop(self, stage: Stage, first: int, last: int) -> int:
        if self.one_gradient:
            return int(kernels.play_shared(self._state(), self._constants, *stage, first, last, self._work))
        H, by_value = np.empty_like(self._points), self.judge == "value"
        return int(kernels.play_own(self._state(), self._constants, stage[0], first, last, by_value, H, self._work[2]))
