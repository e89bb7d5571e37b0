"""Points as far away as a double can say: what comes back is the nearest point of the set, or an error is raised.

Membership is checked by the definition of each set, the nearest point by the support function: p is nearest to y if
<g, x> <= <g, p> for all x of the set, g = (y - p)/||y - p||.
"""

import numpy as np
import pytest

import thalweg as tw
from tests.domains.test_projections_optimality import FAMILIES
from thalweg.domains import (
    Ball,
    Box,
    Custom,
    Ellipsoid,
    Fantope,
    HalfSpace,
    Intersection,
    L1Ball,
    Polytope,
    ProductOfBalls,
    Simplex,
    SpectralBalls,
)
from thalweg.errors import ProjectionError


def size(v):
    top = np.abs(v).max()
    return top * np.linalg.norm(v / top) if top else 0.0


def polytope(rng, n, s):
    A = np.vstack([rng.standard_normal((2 * n, n)), np.eye(n), -np.eye(n)])
    middle = rng.standard_normal(n)
    return Polytope(A, s * (A @ middle + rng.uniform(0.1, 1, 4 * n)))


def flat_polytope(rng, n, s):
    """With equalities; in one dimension without."""
    x, k = rng.uniform(0, 1, n), n // 3
    E = rng.standard_normal((k, n))
    return Polytope(np.vstack([np.eye(n), -np.eye(n)]), s * np.repeat([1.0, 0.0], n), A_eq=E, b_eq=s * (E @ x))


def wall(rng, n, x):
    """A half-space with x inside."""
    a = rng.standard_normal(n)
    return HalfSpace(a, a @ x + np.linalg.norm(a) * rng.uniform(0.01, 0.3))


def members(*kinds):
    """Sets of these kinds around a common point, at which they do not just touch."""

    def build(rng, n, s):
        x = rng.uniform(0.5, 1.5, n) / n
        x /= x.sum()
        make = {
            "ball": lambda: Ball(n, 0.3, x + 0.25 * rng.uniform(-1, 1, n) / np.sqrt(n)),
            "box": lambda: Box(x - rng.uniform(0.1, 0.5, n), x + rng.uniform(0.1, 0.5, n)),
            "simplex": lambda: Simplex(n),
            "wall": lambda: wall(rng, n, x),
        }
        return Intersection(*(make[kind]() for kind in kinds))

    return build


CLOSED = {
    **FAMILIES,
    "Box, unbounded": lambda rng, n, s: Box(s * rng.standard_normal(n), np.inf),
    "Fantope": lambda rng, n, s: Fantope(k := int(n**0.5) + 1, int(rng.integers(1, k + 1))),
    "Custom": lambda rng, n, s: Custom(lambda y: np.clip(y, 0.0, s), n, 0.5 * s, s * np.sqrt(n)),
}
SOLVED = {
    "Polytope": polytope,
    "Polytope, flat": flat_polytope,
    "Polytope, unbounded": lambda rng, n, s: Polytope(rng.standard_normal((n // 2 + 1, n)), s * np.ones(n // 2 + 1)),
    "Ball, Box": members("ball", "box"),
    "Ball, HalfSpace": members("ball", "wall"),
    "Ball, Ball": members("ball", "ball"),
    "Box, HalfSpace": members("box", "wall"),
    "Simplex, Box": members("simplex", "box"),
    "Simplex, HalfSpace": members("simplex", "wall"),
    "Simplex, Ball": members("simplex", "ball"),
    "Ball, Box, HalfSpace": members("ball", "box", "wall"),
    "Simplex, Box, Ball, HalfSpace": members("simplex", "box", "ball", "wall"),
}


def excess(X, p):
    """How far p is outside, by the definition of the set."""
    x = p.ravel()
    match X:
        case Intersection():
            return max(excess(member, p) for member in X.domains)
        case Ball():
            return np.linalg.norm(p - X.center) - X.radius
        case Box():
            return max((X.lower - p).max(), (p - X.upper).max())
        case Simplex():
            return max(-x.min(), abs(x.sum() - X.total) / np.sqrt(X.dim))
        case L1Ball():
            return (np.abs(p - X.center).sum() - X.radius) / np.sqrt(X.dim)
        case Ellipsoid():
            w = x - X.center
            return (np.sqrt(w @ (X.weights * w if X.weights.ndim == 1 else X.weights @ w) / X.bound) - 1) * size(w)
        case HalfSpace():
            return (X.normal.ravel() @ x - X.offset) / np.linalg.norm(X.normal)
        case ProductOfBalls():
            blocks = np.split(x - X.center.ravel(), np.cumsum(X.sizes)[:-1])
            return max(np.linalg.norm(block) - r for block, r in zip(blocks, X.radii, strict=True))
        case SpectralBalls():
            return (np.linalg.svd(p.reshape(X._blocks), compute_uv=False)[:, 0] - X.caps).max()
        case Fantope():
            values = np.linalg.eigvalsh(p)
            return max(-values.min(), values.max() - 1, abs(values.sum() - X.rank), np.abs(p - p.T).max())
        case Polytope():
            return max((X._A @ x - X._b).max(), np.abs(X._E @ x - X._e).max(initial=0.0))
    return max(-x.min(), (x - 2 * X.center.ravel()).max())  # Custom, the box above


def campaign(family, count, seed=0, batch=50):
    """Project `count` points; how many were projected and how many refused."""
    rng = np.random.default_rng([seed, *map(ord, family)])
    done = refused = 0
    while done + refused < count:
        n = int(rng.integers(1, 51)) if batch > 50 or rng.random() < 0.2 else int(rng.integers(1, 11))
        X = {**CLOSED, **SOLVED}[family](rng, n, 10.0 ** rng.uniform(-2, 2))
        bounded, exact = np.isfinite(X.radius), family in CLOSED and np.isfinite(X.radius)
        for _ in range(batch):
            u = rng.standard_normal(X.dim) * (rng.random(X.dim) < 0.8)
            if rng.random() < 0.3 or not u.any():
                u = np.eye(X.dim)[rng.integers(X.dim)] * rng.choice([-1.0, 1.0])
            top = 299 if rng.random() < 0.5 else 20
            y = X.center + (10.0 ** rng.uniform(0, top) * u / size(u)).reshape(X.shape)
            try:
                p = X.project(y)
            except ProjectionError:
                refused += 1
                continue
            done += 1
            scale = max(X.radius, np.abs(X.center).max()) if bounded else max(1.0, size(p))
            # rounding: of sums of as many terms
            assert excess(X, p) <= (max(X.tolerance, 1e-12) + 4e-16 * X.dim) * scale, (X, y)
            gap = y - p
            if exact and family != "Custom" and size(gap) > 1e-6 * scale:
                g = (gap / size(gap)).reshape(1, -1)
                assert X._support(g)[0] - (g @ p.ravel())[0] <= 1e-9 * scale, ("not the nearest point", X, y)
    return done, refused


@pytest.mark.parametrize(("count", "batch"), [(100, 10), pytest.param(90_000, 100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("family", CLOSED)
def test_far_points_of_closed_forms(family, count, batch):
    done, refused = campaign(family, count, batch=batch)
    assert refused == 0
    assert done >= count


@pytest.mark.parametrize(("count", "batch"), [(30, 10), pytest.param(5_000, 100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("family", SOLVED)
def test_far_points_of_solvers(family, count, batch):
    done, refused = campaign(family, count, batch=batch)
    assert refused <= 0.001 * count
    assert done + refused >= count


# --- what went wrong once --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("log_far", [0, 2, 9, 14, 16, 30, 200, 299])
@pytest.mark.parametrize(
    ("domain", "same"),
    [
        (Polytope(np.vstack([np.eye(5), -np.eye(5)]), np.ones(10)), Box(-1.0, 1.0, shape=5)),
        (Intersection(Simplex(5), Box(0.0, 2.0, shape=5)), Simplex(5)),
        (Intersection(Ball(5, 3.0), Box(-1.0, 1.0, shape=5)), Box(-1.0, 1.0, shape=5)),
        (Intersection(Ball(5), Box(-2.0, 2.0, shape=5)), Ball(5)),
        (Intersection(Box(0.0, 9.0, shape=5), HalfSpace(np.ones(5), 1.0), HalfSpace(-np.ones(5), -1.0)), Simplex(5)),
    ],
    ids=lambda domain: repr(domain) if not isinstance(domain, int) else None,
)
def test_two_descriptions_of_one_set(domain, same, log_far):
    rng = np.random.default_rng(0)
    for u in [*rng.standard_normal((6, 5)), *np.eye(5), -np.eye(5)[2]]:
        y = 10.0**log_far * u
        np.testing.assert_allclose(domain.project(y), same.project(y), rtol=0, atol=1e-9)


def test_ball_and_box_far_away_by_hand():
    """At 100 and beyond: the face x_1 = 0.6 of the box, and there the ball of radius 0.8."""
    both = Intersection(Ball(3), Box(-0.6, 0.6, shape=3))
    for far in (1e2, 1e4, 1e8, 1e12):
        np.testing.assert_allclose(both.project([far, 0.3, -0.1]), [0.6, 0.3, -0.1], atol=1e-9 + 1e-14 * far)
        np.testing.assert_allclose(both.project([far, 2.0 * far, 2.0 * far]), [0.28**0.5, 0.6, 0.6], atol=1e-9)
        assert both.contains(both.project([far, far, far]), 1e-9)


@pytest.mark.parametrize("far", [1.0, 1e3, 1e9])
def test_the_certificate_refuses_what_is_not_nearest(far):
    """The half-disc {||x|| <= 1, x_1 <= 0} and y = far (1, 1): (0, 1) with normals far (1, 0) and (0, far - 1)."""
    half = Intersection(Ball(2), HalfSpace([1.0, 0.0], 0.0))
    y, x = np.array([far, 1.0 + far]), np.array([0.0, 1.0])
    normals = np.array([[0.0, far], [far, 0.0]])
    assert half._accepts(y, x, np.array([x, x]), normals)
    assert not half._accepts(y, x, np.array([x, x]), normals * (1 + 1e-8))  # they do not add up
    lower = np.array([0.0, 1.0 - 1e-8])
    assert not half._accepts(y, lower, np.array([x, lower]), np.array([[0.0, 1e-8 + far], [far, 0.0]]))


def test_fantope_far_away():
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    for far in (1e16, 1e100, 1e290):
        P = Fantope(6, 2).project(far * (Q * [6.0, 5.0, 1.0, 0.0, -1.0, -9.0]) @ Q.T)
        np.testing.assert_allclose(P, Q[:, :2] @ Q[:, :2].T, atol=1e-13)


def test_comparators_on_a_ball_and_a_box():
    """The steps of the minimisation are long, so points to project lie far away."""
    rng = np.random.default_rng(0)
    a, domain = rng.standard_normal((6, 2)), Intersection(Ball(2), Box(-0.5, 0.8, shape=2))
    b = np.sign(a @ rng.standard_normal(2) * 3 + rng.standard_normal(6))
    u = tw.regret.best_per_round(tw.problems.LogisticRegression(a[:1], b[:1]), domain).decisions[0]
    assert domain.contains(u)
    # the loss falls with b <a, u>: as large as on the boundary, up to the distance of neighbours on it
    angles, direction = np.linspace(0, 2 * np.pi, 2001), b[0] * a[0]
    around = np.clip(np.column_stack([np.cos(angles), np.sin(angles)]), -0.5, 0.8)
    assert direction @ u >= (around @ direction).max() - 1e-3 * np.linalg.norm(direction)
