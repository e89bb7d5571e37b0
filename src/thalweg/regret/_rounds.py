"""Losses of a problem as the measures need them: of all rounds, windows of them, sums as one function."""

import hashlib

import numpy as np

from thalweg._core.types import Floats
from thalweg._core.validate import short_repr
from thalweg.domains._base import Domain
from thalweg.errors import InputError
from thalweg.learners.base import bounded
from thalweg.losses._phi import each, each_prox
from thalweg.problems._base import Problem
from thalweg.problems.functions import FromLosses
from thalweg.problems.linear_model import LinearModel
from thalweg.regret._minimize import Objective

__all__ = ["check_problem", "check_window", "digest", "gradients_at", "total"]


def check_problem(owner: str, problem: object, domain: Domain) -> Problem:
    """A finite problem with decisions of the domain's shape, on a bounded domain."""
    bounded(owner, domain)
    if not isinstance(problem, Problem):
        if not isinstance(problem, list | tuple):
            raise InputError(f"{owner} needs a thalweg problem or a list of losses. Got {short_repr(problem)}.")
        problem = FromLosses(problem, shape=domain.shape)
    if problem.horizon is None:
        raise InputError(f"{owner} needs a problem that ends. Slice it: problem[:1000].")
    if problem.shape != domain.shape:
        raise InputError(f"{owner}: the problem has decisions of shape {problem.shape}, the domain {domain.shape}.")
    if isinstance(problem, LinearModel) and problem._kind.barrier:
        lost = np.flatnonzero(np.isposinf(np.minimum(*(problem._values(z) for z in problem._range(domain)))))
        if lost.size:
            raise InputError(
                f"{owner}: the {problem.loss} loss of round {lost[0]} is infinite on all of {domain!r}. Leave the "
                "round out, or choose a domain with positive predictions."
            )
    return problem


def check_window(owner: str, problem: Problem, start: int, stop: int | None) -> tuple[int, int]:
    """Rounds start..stop-1 of the problem, at least one."""
    T = len(problem)
    last = T if stop is None else stop
    whole = all(isinstance(t, int | np.integer) and not isinstance(t, bool | np.timedelta64) for t in (start, last))
    if not (whole and 0 <= start < last <= T):
        raise InputError(
            f"{owner} needs rounds 0 <= start < stop <= {T}. Got start={short_repr(start)}, stop={short_repr(stop)}."
        )
    return int(start), int(last)


def digest(losses: Floats) -> str:
    """Return a digest that tells the losses of one run from those of another."""
    return hashlib.sha256(np.ascontiguousarray(losses).tobytes()).hexdigest()[:16]


def gradients_at(problem: Problem, decisions: Floats) -> Floats:
    """grad f_t(w_t) of every round, flat rows."""
    T = len(problem)
    rows = decisions.reshape(T, -1)
    if isinstance(problem, LinearModel):
        slopes = problem._slopes(np.einsum("td,td->t", problem.features, rows))
        return slopes[:, None] * problem.features
    points = rows.reshape(T, *problem.shape)
    return np.array([np.asarray(f.gradient(x), dtype=np.float64).ravel() for f, x in zip(problem, points, strict=True)])


def total(problem: Problem, smoothing: float = 0.0) -> Objective:
    """The sum of the losses of all rounds as one function of a flat point: value and gradient.

    `smoothing` = m > 0 rounds kinks off: phi becomes its Moreau envelope, the least of phi(x) + (x - z)^2/(2m) over x,
    which is at most m/2 times the square of the largest slope smaller. Of |e| it is e^2/(2m) where |e| < m.
    """
    if not isinstance(problem, LinearModel):
        shape = problem.shape
        losses = list(problem)

        def by_round(x: Floats) -> tuple[float, Floats]:
            point = x.reshape(shape)
            value, gradient = float(sum(float(f.value(point)) for f in losses)), np.zeros(x.size)
            if np.isfinite(value):  # no gradient where a loss is infinite
                for f in losses:
                    gradient += np.asarray(f.gradient(point), dtype=np.float64).ravel()
            return value, gradient

        return by_round
    a, b, phi, par = problem.features, problem.labels, problem.phi, problem.parameter
    slopes = np.empty(len(problem))

    def at_once(x: Floats) -> tuple[float, Floats]:
        z = a @ x
        if smoothing > 0:
            each_prox(phi.prox_slope, z, b, par, smoothing, slopes)
            value = problem._values(z - smoothing * slopes).sum() + smoothing / 2 * float(slopes @ slopes)
            return float(value), a.T @ slopes
        value = problem._values(z).sum()
        if not np.isfinite(value):
            return float(value), np.zeros(x.size)
        each(phi.slope, z, b, par, slopes)
        return float(value), a.T @ slopes

    return at_once
