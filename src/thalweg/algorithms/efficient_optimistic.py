"""Dynamic regret that is small where gradients can be guessed, with one projection a round.

Y is a ball of radius R around X; the hint m_t is a guess of g_t: the last gradient, unless another one is given. With
x_t = Pi_X(y_t), h_t the surrogate gradient (`thalweg.learners.one_projection`), i = 1..N and M = 2N:

    y_{t,i}      = yhat_{t,i} - eta_i m_t,   y_{t,N+i} = yhat_{t,i}        not projected                       (1)
    yhat_{t+1,i} = Pi_Y(yhat_{t,i} - eta_i h_t)                            a rescale                           (2)
    p_{t,i}      ~ exp(-epsilon_t sum_{s<t} l_{s,i}),   l_{s,i} = <h_s, y_{s,i}>,   i = 1..M                   (3)
    epsilon_t    = sqrt(ln M / (C^2 + sum_{s<t} r_s^2)),   r_s = (max_i l_{s,i} - min_i l_{s,i})/2              (4)
    y_t          = sum_i p_{t,i} y_{t,i},   x_t = Pi_X(y_t)                the only projection onto X          (5)

eta_N = R/G, or 1/(8L) if that is less, and halves of it down to R/(G sqrt(T)); hints are no longer than G. With
Rho = R + eta_N G/2, C = Rho G, or 16 L Rho^2 (sqrt(ln M) + ln M) if that is more.

h_t is an orthogonal projection of g_t, so a guess of g_t serves as well as one of h_t would. With E_T = sum ||g_t -
m_t||^2 and B = 5R^2/2 + R P_T + 4 Rho^2 ln M, for ||g_t|| <= G and any comparators in X,

    regret <= 2.5 sqrt(B E_T) + 2B/eta_N + C sqrt(ln M).

For L-smooth losses and m_t = g_{t-1}, E_T may be replaced by (16/15)(G^2 + 2 V_T), V_T = sum_t sup_X ||grad f_t - grad
f_{t-1}||^2, and the 4 in B by 10. The proof is in docs/feedback-proofs.md.
1 projection, 1 gradient, 0 values a round.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import check_count, check_positive
from thalweg._kernels.clock import FRESH
from thalweg._kernels.hulls import flatten
from thalweg.algorithms.pools import hint_pool
from thalweg.cards import Card, Variant
from thalweg.domains._base import Domain
from thalweg.errors import InputError
from thalweg.learners.base import Learner, Shown, read_start
from thalweg.learners.contract import core
from thalweg.learners.one_projection import OneProjection
from thalweg.learners.optimistic import Hinted, HintedSettings, HintedState, take_hint
from thalweg.metas.hedge import rate
from thalweg.theorems import bounds
from thalweg.theorems._base import Theorem, path_length

__all__ = ["EfficientOptimistic", "Guessed"]


class Guessed(Theorem):
    """`EfficientOptimistic`: (T1) and (T2) of docs/feedback-proofs.md. From the first round to any other."""

    name = "(T1), (T2)"
    whole = True

    def bound(self, start: int, stop: int, u: Floats, losses: Floats) -> float:
        """See `Theorem.bound`."""
        inner, Q = self.inner, float(self.squares[start:stop].sum())
        first = float(np.linalg.norm(inner.origin - u[0]))
        distances = bounds.descent(inner.steps, self.R, path_length(u), first)
        return bounds.optimistic(distances, inner.steps, self.R, self.G, inner.spread, self.learner.hint_error, Q)


def _weights(learner: Learner, s: HintedState, c: HintedSettings) -> Floats:
    """p_t: of the N members that lean on the hint, then of the N that do not."""
    return s.weights.copy()


def _meta_rate(learner: Learner, s: HintedState, c: HintedSettings) -> float:
    """epsilon_t, the rate behind the present weights."""
    return float(rate(c.meta.epsilon[0], c.meta.radius[0], s.meta.sums[0]))


def _points(learner: Learner, s: HintedState, c: HintedSettings) -> Floats:
    """yhat_{t,i}, (N, *shape)."""
    found: Floats = s.members.points[0].reshape(-1, *learner.domain.shape).copy()
    return found


def _hint_error(learner: Learner, s: HintedState, c: HintedSettings) -> float:
    """E, the sum of ||g_t - m_t||^2 over the rounds so far: how well the gradients were guessed."""
    return float(s.error[0])


class EfficientOptimistic(OneProjection):
    """Follow any moving comparator, closely where gradients can be guessed, with one projection and gradient a round.

    Parameters
    ----------
    domain : Domain
        X.
    horizon : int
        T.
    gradient_bound : float
        G.
    smoothness : float, optional
        L. Given, steps and rates are short enough for a guarantee in terms of V_T, with the last gradients as hints.
        Without it regret is smaller on most streams, and the guarantee in terms of E_T is the same.
    start : array, optional
        A point of the domain to begin at; that nearest to the centre of Y when left out.
    surrogate : Ball, optional
        Y; the ball around `domain.center` with `domain.radius` when left out.
    on_violation : {"raise", "clip"}
        Treatment of gradients above the bound.

    Notes
    -----
    Half of the members do not look at the hint: where it is useless little is lost.

    Examples
    --------
    >>> import thalweg as tw
    >>> learner = tw.EfficientOptimistic(tw.domains.Simplex(3), horizon=1000, gradient_bound=2.0)
    >>> for t in range(100):
    ...     coming = [1.0, -1.0, 0.0] if t % 2 else [-1.0, 1.0, 0.0]  # known in advance
    ...     learner.hint(coming)
    ...     x = learner.decision
    ...     learner.update(coming)
    >>> x.round(2)
    array([0.13, 0.74, 0.13])
    >>> learner.queries
    Queries(projections=100, gradients=100, values=0)

    References
    ----------
    P. Zhao, Y.-F. Xie, L. Zhang, Z.-H. Zhou, Efficient methods for non-stationary online learning, JMLR 26, 2025: the
    reduction, and whether it admits such a bound as an open question.
    """

    card = Card(
        about="gradients guessed in advance, or slowly varying: one projection",
        regret="dynamic",
        bound="sqrt((1 + P_T + E_T)(1 + P_T))",
        queries=("1", "1", "0"),
        source="this library, docs/feedback-proofs.md",
        arguments=lambda s: {"smoothness": None},
        theorem=Guessed,
        variants={
            "smooth": Variant(
                "the same, tuned for a bound by the variation of gradients",
                arguments=lambda s: {"smoothness": s.smoothness},
                bound="sqrt((1 + P_T + V_T)(1 + P_T))",
            )
        },
    )

    tight_surrogate = False
    makes_ahead = False  # a hint between two rounds changes the decision

    inner: Hinted
    gradient_bound: float
    weights, points = Shown(_weights), Shown(_points)
    meta_rate, hint_error = Shown(_meta_rate), Shown(_hint_error)

    def __init__(
        self,
        domain: Domain,
        horizon: int,
        gradient_bound: float,
        smoothness: float | None = None,
        *,
        start: ArrayLike | None = None,
        surrogate: Domain | None = None,
        on_violation: str = "raise",
    ) -> None:
        name = "EfficientOptimistic"
        T = check_count(name, "horizon", horizon)
        G = check_positive(name, "gradient_bound", gradient_bound)
        L = None if smoothness is None else check_positive(name, "smoothness", smoothness)

        def make_inner(Y: Domain) -> Hinted:
            home = None if start is None else read_start(name, domain, start)
            steps = hint_pool(T, G, Y.radius, L)
            Rho, log = Y.radius + float(steps[-1]) * G / 2, math.log(2 * steps.size)
            spread = max(Rho * G, 16 * (L or 0.0) * Rho**2 * (math.sqrt(log) + log))
            return Hinted(name, Y, steps, G, spread=spread, start=home)

        super().__init__(
            domain, make_inner, surrogate=surrogate, horizon=T, gradient_bound=G, on_violation=on_violation
        )
        self.smoothness = L

    def hint(self, gradient: ArrayLike) -> None:
        """Guess the gradient of this round, before `decision` is read: the decision depends on it.

        It counts for this round only; the next one has the gradient of this one as its hint again. A hint longer than
        `gradient_bound` is shortened to it. Another hint in the same round replaces the first.
        """
        m = self._feedback.shaped("hint", gradient).astype(np.float64).ravel()
        if not np.isfinite(m).all():
            raise InputError(f"{self._who()}: hint has entries that are nan or infinite. Leave it out, or pass zeros.")
        if self._memory.state.clock[FRESH]:
            raise InputError(
                f"{self._who()}: hint came after `decision` was read, which depends on it. Call hint first, then read "
                "`decision`, then update."
            )
        flatten(*self._feedback.hull, m)
        largest = float(np.abs(m).max())
        norm = largest * float(np.linalg.norm(m / largest)) if largest > 0 else 0.0  # where squares would overflow, too
        if norm > self.gradient_bound:
            m *= self.gradient_bound / norm
        self._forget_decision()
        s, c = core(self._memory.state), core(self._memory.settings)
        take_hint(s.mean, s.weights, c.steps, m, s.hint, s.y)  # in one call: Ctrl-C comes before or after
