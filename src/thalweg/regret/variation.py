"""How much the losses themselves change from round to round."""

from typing import NamedTuple

import numpy as np

from thalweg._core.types import Floats
from thalweg.domains._base import Domain
from thalweg.problems._base import Problem
from thalweg.problems.linear_model import LinearModel
from thalweg.regret._rounds import check_problem, gradients_at

__all__ = ["Between", "gradient_variation"]


class Between(NamedTuple):
    """A number that lies between two others."""

    low: float
    high: float


def gradient_variation(problem: Problem, domain: Domain) -> Between:
    r"""V_T = :math:`\sum_{t \ge 2} \sup_{x \in X} \|\nabla f_t(x) - \nabla f_{t-1}(x)\|^2`, between two numbers.

    The supremum of a convex function over a set is hard in general. `low` comes from points of X, `high` from the ball
    around X: for squared losses the difference of two gradients is affine, M x - v, and at most ||M c - v|| + ||M|| R
    there; for linear losses both are exact; for others `high` adds the bounds on both gradients.

    Parameters
    ----------
    problem, domain
        As for `best_fixed`.

    Returns
    -------
    Between
        (low, high). `high` is infinite where nothing is known about the losses.

    Examples
    --------
    >>> import thalweg as tw
    >>> problem = tw.problems.LinearLosses([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> tw.regret.gradient_variation(problem, tw.domains.Ball(2))
    Between(low=2.0, high=2.0)
    """
    problem = check_problem("gradient_variation", problem, domain)
    T, d = len(problem), domain.dim
    if T == 1:
        return Between(0.0, 0.0)
    c = domain.center.ravel()
    directions = np.concatenate([np.zeros((1, d)), np.eye(d), -np.eye(d)])
    largest = np.zeros(T - 1)
    for direction in directions[: 1 + 2 * min(d, 50)]:
        point = domain._project_flat(c + domain.radius * direction)
        changes = np.diff(gradients_at(problem, np.tile(point, (T, 1))), axis=0)
        largest = np.maximum(largest, np.einsum("td,td->t", changes, changes))
    low = float(largest.sum())
    if not isinstance(problem, LinearModel):
        return Between(low, np.inf)
    a, b = problem.features, problem.labels
    if problem.loss == "linear":
        return Between(low, low)  # the gradients do not depend on x
    if problem.loss == "squared":
        middle = np.linalg.norm(np.diff((a @ c - b)[:, None] * a, axis=0), axis=1)
        high = middle + domain.radius * _spectral(a[1:], a[:-1])
    else:
        longest = problem._lengths(domain, np.linalg.norm(a, axis=1))
        high = longest[1:] + longest[:-1]
    return Between(low, max(low, float((high**2).sum())))


def _spectral(a: Floats, b: Floats) -> Floats:
    """The operator norm of aa' - bb' for each pair of rows: the larger eigenvalue of a matrix of rank 2."""
    p, q, m = (np.einsum("td,td->t", x, y) for x, y in ((a, a), (b, b), (a, b)))
    root = np.sqrt(np.maximum((p + q) ** 2 / 4 - m**2, 0.0))
    size: Floats = np.abs(p - q) / 2 + root
    return size
