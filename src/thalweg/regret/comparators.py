r"""The best decisions in hindsight, one for all rounds or one for each; for paths between the two see `best_path`.

.. math:: \min_{u \in X} \sum_t f_t(u), \qquad \sum_t \min_{u \in X} f_t(u)

Each comes with `gap`: no decision (or path) does better by more than that, which is computed, not hoped for.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import check_array, check_positive
from thalweg._kernels.projections import PYTHON
from thalweg.domains._base import Domain
from thalweg.errors import InputError
from thalweg.problems._base import Problem
from thalweg.problems.functions import FromLosses
from thalweg.problems.linear_model import LinearModel
from thalweg.regret import _hindsight as hindsight
from thalweg.regret._minimize import minimize
from thalweg.regret._rounds import check_problem, check_window, total
from thalweg.regret.windows import STEPS, Windows

__all__ = ["Comparator", "ProximalRounds", "best_fixed", "best_per_round", "path_length"]

SMALLER = 10.0 ** -np.arange(10)  # how the weight of the proximal term falls while a round is minimised


@dataclass(frozen=True)
class Comparator:
    """Decisions to measure a learner against.

    Attributes
    ----------
    decisions : array (rounds, *shape)
        u_t.
    losses : array (rounds,)
        f_t(u_t).
    gap : float
        How much smaller the objective could be at most: the total loss, plus price times path length where there is a
        price.
    price : float
        The cost of a unit of path length in the objective.
    """

    decisions: Floats
    losses: Floats
    gap: float
    price: float = 0.0

    @property
    def loss(self) -> float:
        """F_T, the total loss."""
        return float(self.losses.sum())

    @property
    def path_length(self) -> float:
        """P_T = sum of ||u_t - u_{t-1}||."""
        return path_length(self.decisions)

    def __repr__(self) -> str:
        price = f", price {self.price:g}" if self.price else ""
        return (
            f"Comparator({len(self.losses)} rounds, loss {self.loss:.6g}, path length {self.path_length:.6g}{price}, "
            f"gap {self.gap:.2g})"
        )


def path_length(decisions: ArrayLike) -> float:
    r"""P_T = :math:`\sum_{t \ge 2} \|u_t - u_{t-1}\|`, one decision a row (matrices: the Frobenius norm).

    Examples
    --------
    >>> from thalweg.regret import path_length
    >>> path_length([[0.0, 0.0], [3.0, 4.0], [3.0, 4.0]])
    5.0
    """
    u = check_array("path_length", "decisions", decisions)
    if u.ndim < 2 or u.size == 0:
        raise InputError(f"path_length needs one decision a row, shape (T, d) or (T, *shape). Got shape {u.shape}.")
    return float(np.linalg.norm(np.diff(u.reshape(len(u), -1), axis=0), axis=1).sum())


def best_fixed(
    problem: Problem, domain: Domain, start: int = 0, stop: int | None = None, *, tol: float = 1e-9
) -> Comparator:
    r"""The best fixed decision of rounds start..stop-1: :math:`\arg\min_{u \in X} \sum_t f_t(u)`.

    Squared losses on a built-in set: compiled. Any other convex losses: accelerated projected gradients on their sum,
    with kinks of built-in losses smoothed ever less.

    Parameters
    ----------
    problem : Problem
        The rounds, or a list of losses.
    domain : Domain
        X, bounded.
    start, stop : int
        Which rounds, counted from 0; all when left out.
    tol : float
        The largest accepted gap, relative to the largest possible gap of the centre of X. If that takes too long, for
        instance with kinks, the answer is the best one found and `gap` says how good it is.

    Returns
    -------
    Comparator
        With the decision repeated for every round of the interval.

    Examples
    --------
    >>> import thalweg as tw
    >>> problem = tw.problems.LinearRegression([[1.0], [1.0]], [0.0, 1.0])
    >>> best = tw.regret.best_fixed(problem, tw.domains.Ball(1))
    >>> best.decisions.ravel().round(6), round(best.loss, 6), best.gap < 1e-9
    (array([0.5, 0.5]), 0.25, True)
    """
    problem = check_problem("best_fixed", problem, domain)
    r, s = check_window("best_fixed", problem, start, stop)
    part = problem[r:s]
    w, _, gap = Windows(part, domain, check_positive("best_fixed", "tol", tol)).fit(0, s - r)
    decisions = np.broadcast_to(w.reshape(domain.shape), (s - r, *domain.shape))
    return Comparator(decisions, part.losses_of(decisions), gap)


def best_per_round(problem: Problem, domain: Domain, *, tol: float = 1e-9) -> Comparator:
    r"""The best decision of every round: :math:`u_t \in \arg\min_{u \in X} f_t(u)`.

    Where a round has many, as in regression, the one near the minimiser of the round before is taken, so the path is
    not longer than it has to be for no reason; it is still no shortest one (see `best_path` with a small price).

    Parameters
    ----------
    problem, domain, tol
        As for `best_fixed`; `tol` is for losses that are minimised in Python.

    Examples
    --------
    >>> import thalweg as tw
    >>> problem = tw.problems.LinearRegression([[1.0], [1.0]], [0.0, 3.0])
    >>> best = tw.regret.best_per_round(problem, tw.domains.Ball(1))
    >>> best.decisions.ravel().round(6), round(best.loss, 6)
    (array([0., 1.]), 2.0)
    """
    problem = check_problem("best_per_round", problem, domain)
    rounds = ProximalRounds(problem, domain, check_positive("best_per_round", "tol", tol))
    T, d = len(problem), domain.dim
    start = np.tile(domain._project_flat(domain.center.ravel()), (T, 1))
    Z, lower = rounds.minimise(np.zeros((T, d)), start)
    losses = problem.losses_of(Z)
    return Comparator(Z.reshape(T, *domain.shape), losses, max(0.0, float(losses.sum() - lower.sum())))


class ProximalRounds:
    """Proximal steps of all rounds of a problem: compiled where problem and set are built in."""

    def __init__(self, problem: Problem, domain: Domain, tol: float) -> None:
        self.problem, self.domain, self.tol = problem, domain, tol
        self.compiled = isinstance(problem, LinearModel) and domain.onto is not PYTHON
        self.curvature = np.ones(len(problem))
        if isinstance(problem, LinearModel):
            norms = np.linalg.norm(problem.features, axis=1)
            sizes = norms**2  # the curvature of a squared loss
            if self.compiled and problem.loss != "squared":  # such that a step along the slopes can cross the set
                sizes = problem._steepness(domain) * norms / domain.radius
            positive = sizes[sizes > 0]
            self.curvature = np.maximum(sizes, positive.mean() if positive.size else 1.0)

    def proximal(self, Q: Floats, V: Floats, rho: Floats) -> tuple[Floats, Floats]:
        """z_t = argmin over X of f_t(z) + <q_t, z> + rho_t/2 ||z - v_t||^2, and a lower bound on min f_t + <q_t, .>."""
        T, X = len(self.problem), self.domain
        Z, lower = np.empty_like(V), np.empty(T)
        if self.compiled:
            assert isinstance(self.problem, LinearModel)
            problem, phi = self.problem, self.problem.phi
            kind = hindsight.Kind(phi.slope, phi.prox_slope, phi.tangent, problem.parameter, problem.kinked)
            ground = hindsight.Ground(X.onto, X.par, X.center.ravel(), X.radius)
            terms, scratch = hindsight.Term(Q, V, rho), np.empty((2, Z.shape[1]))
            hindsight.proximal_rounds(kind, problem.features, problem.labels, terms, ground, Z, lower, scratch)
            return Z, lower
        c, R = X.center.ravel(), X.radius
        for t in range(T):
            f = total(FromLosses([self.problem[t]], shape=X.shape))

            def objective(z: Floats, f=f, t=t) -> tuple[float, Floats]:  # type: ignore[no-untyped-def]
                value, gradient = f(z)
                away = z - V[t]
                return value + Q[t] @ z + rho[t] / 2 * away @ away, gradient + Q[t] + rho[t] * away

            Z[t], value, gap = minimize(objective, X, V[t], tol=self.tol, steps=STEPS)
            away = V[t] - Z[t]
            # As in (1) of `thalweg.regret._hindsight`, with the gap of this minimisation.
            lower[t] = value - rho[t] / 2 * away @ away - gap + rho[t] * (away @ (c - Z[t]) - R * np.linalg.norm(away))
        return Z, lower

    def minimise(self, Q: Floats, V: Floats) -> tuple[Floats, Floats]:
        """Minimisers of f_t + <q_t, .> on X near v_t, and lower bounds: proximal steps with ever smaller weights."""
        best = np.full(len(V), -np.inf)
        steps = SMALLER if self.compiled else SMALLER[[3, 6, 9]]
        for smaller in steps:
            V, lower = self.proximal(Q, V, smaller * self.curvature)
            best = np.maximum(best, lower)
        return V, best
