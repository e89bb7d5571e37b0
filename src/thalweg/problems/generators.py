r"""Regressions whose planted model drifts: the two environments of Zhao, Xie, Zhang, Zhou (JMLR 2025), Section 6.

.. math:: y_t = \langle x_t, w^*_t \rangle + \epsilon_t, \qquad f_t(w) = (\langle x_t, w \rangle - y_t)^2 / 2

Features :math:`x_t` are uniform in a Euclidean ball around the origin. The noise :math:`\epsilon_t` is uniform on
[0, noise], as in the paper: one-sided, so that :math:`w^*_t` pays noise^2 / 6 a round on average, not 0. The planted
:math:`w^*_t` are the problem's `comparators`.

Features and noise are drawn before the path of :math:`w^*_t`. So one seed gives the same ones in both environments,
however many stages there are and however long the steps.
"""

import numpy as np

from thalweg._core.types import Floats
from thalweg._core.validate import (
    check_count,
    check_entries,
    check_nonnegative,
    check_number,
    check_positive,
    check_rng,
    wrong,
)
from thalweg._kernels import projections
from thalweg._kernels.walks import walk
from thalweg.domains._base import Domain, read_domain
from thalweg.domains.ellipsoid import Ellipsoid
from thalweg.errors import InputError
from thalweg.problems.models import LinearRegression

__all__ = ["gradual", "paper_ellipsoid", "piecewise_stationary"]


def paper_ellipsoid(dim: int = 8, diameter: float = 6.0, *, condition: float = 10.0) -> Ellipsoid:
    r"""The feasible set of the paper's experiments.

    .. math:: \{ w : w^\top E w \le \lambda_{\min}(E) (D / 2)^2 \}

    It has diameter D and lies in the ball of radius D / 2. The paper says of E only that it is "a certain diagonal
    matrix". Our choice: a diagonal that grows evenly from 1 to `condition`.

    Parameters
    ----------
    dim : int
        d.
    diameter : float
        D.
    condition : float
        The largest entry of E over the smallest, at least 1.

    Examples
    --------
    >>> from thalweg.problems import paper_ellipsoid
    >>> paper_ellipsoid().diameter
    6.0
    """
    d = check_count("paper_ellipsoid", "dim", dim)
    check_entries("paper_ellipsoid", "dim", dim, d)
    D = check_positive("paper_ellipsoid", "diameter", diameter)
    top = check_number("paper_ellipsoid", "condition", condition)
    if top < 1:
        raise wrong("paper_ellipsoid", "condition", "a finite number >= 1", condition)
    return Ellipsoid(np.linspace(1.0, top, d), bound=(D / 2) ** 2)


def piecewise_stationary(
    domain: Domain,
    horizon: int = 20_000,
    stages: int = 25,
    *,
    rng: np.random.Generator | int | None = None,
    feature_radius: float | None = None,
    noise: float = 0.1,
) -> LinearRegression:
    r"""A regression whose model jumps: :math:`w^*_t` stays put within a stage and is redrawn at the next.

    Parameters
    ----------
    domain : Domain
        Where the :math:`w^*_t` lie, bounded.
    horizon : int
        T, the number of rounds.
    stages : int
        Number of stages, equally long; if they do not divide T, the first ones are one round longer.
    rng : Generator or int, optional
        Source of randomness, or a seed for one.
    feature_radius : float, optional
        Radius of the ball of features, the radius of the domain when left out (the paper's D / 2).
    noise : float
        The noise is uniform on [0, noise].

    Returns
    -------
    LinearRegression
        With the :math:`w^*_t` as `comparators`.

    Notes
    -----
    A :math:`w^*` is drawn uniformly on the sphere around the domain, projected, which gives a point of the boundary,
    and pulled towards the centre by a factor :math:`u^{1/d}`, u uniform on [0, 1]. On a ball that is the uniform
    distribution. On any other set the point lies in the set and can be anywhere in it, but it is not uniform.

    Examples
    --------
    >>> import numpy as np
    >>> from thalweg.domains import Ball
    >>> from thalweg.problems import piecewise_stationary
    >>> problem = piecewise_stationary(Ball(3), horizon=100, stages=4, rng=0)
    >>> len(problem), len(np.unique(problem.comparators, axis=0))
    (100, 4)
    """
    owner = "piecewise_stationary"
    T, features, errors, generator = _data(owner, domain, horizon, rng, feature_radius, noise)
    count = check_count(owner, "stages", stages)
    if count > T:
        raise InputError(f"{owner} needs at least one round a stage. Got {count} stages in {T} rounds.")
    models = np.array([_point(domain, generator) for _ in range(count)])
    lengths = [len(stage) for stage in np.array_split(np.arange(T), count)]
    return _regression(domain, features, np.repeat(models, lengths, axis=0), errors)


def gradual(
    domain: Domain,
    horizon: int = 20_000,
    *,
    step: float | None = None,
    rng: np.random.Generator | int | None = None,
    feature_radius: float | None = None,
    noise: float = 0.1,
) -> LinearRegression:
    r"""A regression whose model walks: :math:`w^*_{t+1} = \Pi_X(w^*_t + s \, u_t)`, each u_t a random unit vector.

    Parameters
    ----------
    domain : Domain
        X, where the walk stays, bounded.
    horizon : int
        T, the number of rounds.
    step : float, optional
        s, the diameter of the domain over T when left out (the paper: "proportional to D/T").
    rng, feature_radius, noise
        As for `piecewise_stationary`.

    Returns
    -------
    LinearRegression
        With the :math:`w^*_t` as `comparators`. Their path length is at most s (T - 1).

    Notes
    -----
    The walk starts at a point drawn as in `piecewise_stationary`. A random walk of T steps of D/T moves about D/sqrt(T)
    in all, so with the default step a fixed decision does nearly as well as the planted one; a step of D/sqrt(T) lets
    the walk cross the domain.

    Examples
    --------
    >>> import numpy as np
    >>> from thalweg.domains import Ball
    >>> from thalweg.problems import gradual
    >>> problem = gradual(Ball(3), horizon=100, rng=0)
    >>> path = np.linalg.norm(np.diff(problem.comparators, axis=0), axis=1)
    >>> bool(path.max() <= 2 / 100 + 1e-12)
    True
    """
    T, features, errors, generator = _data("gradual", domain, horizon, rng, feature_radius, noise)
    s = domain.diameter / T if step is None else check_nonnegative("gradual", "step", step)
    path = np.empty((T, domain.dim))
    path[0] = _point(domain, generator)
    moves = s * _directions(generator, T - 1, domain.dim)
    if domain.onto is projections.PYTHON:
        for t in range(T - 1):
            path[t + 1] = domain.project((path[t] + moves[t]).reshape(domain.shape)).ravel()
    else:
        walk(path, moves, domain.onto, domain.par, np.empty(domain.dim))
    return _regression(domain, features, path, errors)


def _data(
    owner: str, domain: Domain, horizon: int, rng: object, feature_radius: float | None, noise: float
) -> tuple[int, Floats, Floats, np.random.Generator]:
    """Check the common arguments; draw features and noise."""
    if not np.isfinite(read_domain(owner, domain).radius):
        raise InputError(f"{owner} needs a bounded domain. Got {domain!r}. Intersect it with a bounded set.")
    T = check_count(owner, "horizon", horizon)
    check_entries(owner, "horizon", horizon, T * domain.dim)
    radius = domain.radius if feature_radius is None else check_positive(owner, "feature_radius", feature_radius)
    width = check_nonnegative(owner, "noise", noise)
    generator = check_rng(owner, rng)
    lengths = radius * generator.random((T, 1)) ** (1 / domain.dim)
    return T, lengths * _directions(generator, T, domain.dim), width * generator.random(T), generator


def _regression(domain: Domain, features: Floats, models: Floats, errors: Floats) -> LinearRegression:
    """The regression with labels <x_t, w*_t> + eps_t."""
    labels = np.einsum("td,td->t", features, models) + errors
    return LinearRegression(features.reshape(-1, *domain.shape), labels, comparators=models)


def _directions(rng: np.random.Generator, count: int, dim: int) -> Floats:
    """Uniform points of the unit sphere, one a row."""
    rows = rng.standard_normal((count, dim))
    unit: Floats = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def _point(domain: Domain, rng: np.random.Generator) -> Floats:
    """A random point of the domain, flat (see the notes of `piecewise_stationary`)."""
    direction = _directions(rng, 1, domain.dim).reshape(domain.shape)
    edge = domain.project(domain.center + domain.radius * direction)
    middle = domain.project(domain.center)
    point: Floats = (middle + rng.random() ** (1 / domain.dim) * (edge - middle)).ravel()
    return point
