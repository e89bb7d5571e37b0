"""Projections against an independent solver, the interior-point method Clarabel."""

import clarabel
import numpy as np
import pytest
from scipy import sparse

from thalweg.domains import (
    Ball,
    Box,
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


def nearest(y, parts):
    """min ||x - y|| over x with b - A x in the cone, for every (A, b, cone) in parts. x may be longer than y."""
    n = parts[0][0].shape[1]
    P = sparse.csc_matrix((np.ones(len(y)), (range(len(y)), range(len(y)))), shape=(n, n))
    A = sparse.csc_matrix(np.vstack([part[0] for part in parts]))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    b = np.concatenate([part[1] for part in parts])
    unit = max(np.abs(b).max(), np.abs(y).max())  # its tolerances are absolute
    b, q = b / unit, np.concatenate([-y / unit, np.zeros(n - len(y))])
    answer = clarabel.DefaultSolver(P, q, A, b, [part[2] for part in parts], settings).solve()
    assert str(answer.status) in ("Solved", "AlmostSolved", "InsufficientProgress"), answer.status
    return unit * np.array(answer.x)[: len(y)]


def at_most(A, b):
    return np.atleast_2d(A), np.atleast_1d(b), clarabel.NonnegativeConeT(len(np.atleast_1d(b)))


def equal(A, b):
    return np.atleast_2d(A), np.atleast_1d(b), clarabel.ZeroConeT(len(np.atleast_1d(b)))


def norm_at_most(M, c, r):
    """||M (x - c)|| <= r."""
    A = np.vstack([np.zeros((1, M.shape[1])), -M])
    return A, np.concatenate([[r], -M @ c]), clarabel.SecondOrderConeT(len(A))


def triangle(n):
    """Maps a symmetric matrix to the cone's vector (upper triangle by columns, off-diagonal entries times sqrt 2)."""
    rows = []
    for j in range(n):
        for i in range(j + 1):
            row = np.zeros((n, n))
            row[i, j] = 1.0 if i == j else np.sqrt(2)
            rows.append(row.ravel())
    return np.array(rows)


def random_case(seed, scale):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    return rng, n, scale * rng.standard_normal(n) * 10.0 ** rng.uniform(-1, 1)


CASES = [(seed, scale) for seed in range(6) for scale in (1e-3, 1.0, 1e3)]
cases = pytest.mark.parametrize(("seed", "scale"), CASES)


def same(domain, y, parts, lift=lambda p: p):
    """The projected point satisfies all parts, is as near as the solver's answer, and is that answer."""
    flat = y.ravel()
    p, x = domain.project(y).ravel(), nearest(flat, parts)
    unit = max(domain.radius if np.isfinite(domain.radius) else 0.0, np.abs(flat).max())
    for A, b, cone in parts:
        room = b - A @ lift(p)
        kind = type(cone).__name__
        if kind == "NonnegativeConeT":
            assert room.min() >= -1e-10 * unit
        elif kind == "ZeroConeT":
            assert np.abs(room).max() <= 1e-10 * unit
        elif kind == "SecondOrderConeT":
            assert np.linalg.norm(room[1:]) <= room[0] + 1e-10 * unit
    assert np.linalg.norm(p - flat) <= np.linalg.norm(x - flat) + 1e-8 * unit
    # the distance is flat at its minimum: an answer whose distance is right to 1e-9 may be off by the root of that
    np.testing.assert_allclose(p, x, rtol=0, atol=1e-4 * unit)


@cases
def test_box(seed, scale):
    rng, n, y = random_case(seed, scale)
    low, up = np.sort(scale * rng.standard_normal((2, n)), axis=0)
    same(Box(low, up), y, [at_most(np.eye(n), up), at_most(-np.eye(n), -low)])


@cases
def test_simplex(seed, scale):
    _, n, y = random_case(seed, scale)
    same(Simplex(n, scale), y, [equal(np.ones((1, n)), scale), at_most(-np.eye(n), np.zeros(n))])


@cases
def test_l1_ball(seed, scale):
    rng, n, y = random_case(seed, scale)
    c = scale * rng.standard_normal(n)
    eye, zero = np.eye(n), np.zeros((1, n))
    # |x - c| <= t, sum t <= r
    parts = [
        at_most(np.hstack([eye, -eye]), c),
        at_most(np.hstack([-eye, -eye]), -c),
        at_most(np.hstack([zero, zero + 1.0]), scale),
    ]
    same(L1Ball(n, scale, c), y, parts, lift=lambda p: np.concatenate([p, np.abs(p - c)]))


@cases
def test_ellipsoid(seed, scale):
    rng, n, y = random_case(seed, scale)
    c, e = scale * rng.standard_normal(n), 10.0 ** rng.uniform(-1, 1, n)
    same(Ellipsoid(e, scale**2, c), y, [norm_at_most(np.diag(np.sqrt(e)), c, scale)])
    M = rng.standard_normal((n, n)) + 2 * np.eye(n)
    same(Ellipsoid(M.T @ M, scale**2, c), y, [norm_at_most(M, c, scale)])


@cases
def test_half_space_and_polytope(seed, scale):
    rng, n, y = random_case(seed, scale)
    a = rng.standard_normal(n)
    same(HalfSpace(a, -scale), y, [at_most(a, -scale)])
    A = rng.standard_normal((2 * n + 3, n))
    b = scale * (A @ rng.standard_normal(n) + rng.uniform(0, 1, len(A)))
    same(Polytope(A, b), y, [at_most(A, b)])


@cases
def test_product_of_balls(seed, scale):
    rng, n, y = random_case(seed, scale)
    c, radii = scale * rng.standard_normal(n), scale * rng.uniform(0.1, 2, min(n, 2))
    sizes = [n] if n == 1 else [n // 2, n - n // 2]
    starts = np.cumsum([0, *sizes])
    parts = [norm_at_most(np.eye(n)[i:j], c, r) for i, j, r in zip(starts[:-1], starts[1:], radii, strict=True)]
    same(ProductOfBalls(n, radii, c, sizes=sizes), y, parts)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 3), (3, 2), (3, 3)])
def test_spectral_balls(seed, m, n):
    rng = np.random.default_rng(seed)
    y, caps = rng.standard_normal((2, m, n)) * 2, rng.uniform(0.5, 2, 2)
    side = m + n
    T = triangle(side)
    # [[c I, M], [M^T, c I]] is positive semi-definite; entry (i, j) of M sits at (i, m + j)
    place = np.zeros((side * side, m * n))
    for i in range(m):
        for j in range(n):
            place[i * side + m + j, i * n + j] = 1.0
    blocks = []
    for h in range(2):
        A = np.zeros((len(T), 2 * m * n))
        A[:, h * m * n : (h + 1) * m * n] = -T @ place
        blocks.append((A, T @ (caps[h] * np.eye(side)).ravel(), clarabel.PSDTriangleConeT(side)))
    same(SpectralBalls((2, m, n), caps), y, blocks)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("d", "k"), [(1, 1), (2, 1), (4, 2), (5, 1), (5, 4), (3, 3)])
def test_fantope(seed, d, k):
    Y = np.random.default_rng(seed).standard_normal((d, d)) * 2
    T, size = triangle(d), d * (d + 1) // 2
    trace = np.eye(d).ravel() @ T.T
    parts = [
        (-np.eye(size), np.zeros(size), clarabel.PSDTriangleConeT(d)),
        (np.eye(size), T @ np.eye(d).ravel(), clarabel.PSDTriangleConeT(d)),
        equal(trace, float(k)),
    ]
    x = nearest(T @ (0.5 * (Y + Y.T)).ravel(), parts)  # the cone's vector keeps lengths
    np.testing.assert_allclose(T @ Fantope(d, k).project(Y).ravel(), x, atol=1e-4)


@cases
def test_intersection(seed, scale):
    rng, n, y = random_case(seed, scale)
    c, a = 0.3 * scale * rng.standard_normal(n), rng.standard_normal(n)
    domain = Intersection(Ball(n, scale), Box(c - scale, c + scale), HalfSpace(a, 0.1 * scale))
    parts = [
        norm_at_most(np.eye(n), np.zeros(n), scale),
        at_most(np.eye(n), c + scale),
        at_most(-np.eye(n), scale - c),
        at_most(a, 0.1 * scale),
    ]
    same(domain, y, parts)


def test_intersection_does_not_stop_where_dykstra_rests():
    """From (0, 30) the point rests at the corner (-1, 1) for a dozen rounds before it moves to the answer."""
    half, box, y = HalfSpace([1.0, 2.0], 0.0), Box(-1.0, 1.0, shape=2), np.array([0.0, 30.0])
    x, steps, seen = y.copy(), np.zeros((2, 2)), []
    for _ in range(12):  # Dykstra's algorithm without a stopping rule
        for domain, step in zip((half, box), steps, strict=True):
            start = x + step
            x = domain.project(start)
            step[:] = start - x
        seen.append(x)
    np.testing.assert_allclose(seen, [[-1.0, 1.0]] * 12)
    np.testing.assert_allclose(Intersection(half, box).project(y), [-1.0, 0.5], atol=1e-9)
    np.testing.assert_allclose(Intersection(box, half).project(y), [-1.0, 0.5], atol=1e-9)


@pytest.mark.parametrize("far", [5.0, 1e12, 1e200])
def test_polytope_repeats_itself(far):
    """The answer is the same to the last bit, whatever was projected before."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 8))
    b = A @ rng.standard_normal(8) + rng.uniform(0.1, 1, 30)
    domain, other, points = Polytope(A, b), Polytope(A, b), rng.standard_normal((15, 8)) * far
    first = [domain.project(y) for y in points]
    for y, p in zip(points[::-1], first[::-1], strict=True):
        np.testing.assert_array_equal(domain.project(y), p)
        np.testing.assert_array_equal(other.project(y), p)


@pytest.mark.parametrize("far", [1.0, 1e9, 1e100])
def test_polytope_when_the_guess_errs(monkeypatch, far):
    """From any point of the set the walk arrives at the answer."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((12, 4))
    b = A @ rng.standard_normal(4) + rng.uniform(0.1, 1, 12)
    domain, y = Polytope(A, b), rng.standard_normal(4) * 5 * far
    p, real = domain.project(y), domain._guess
    starts = [real(v, domain._sides) for v in 5 * rng.standard_normal((6, 4))]
    assert len({tuple(sorted(active)) for _, active in starts}) > 1
    for x, active in [*starts, (np.mean([x for x, _ in starts], axis=0), [])]:
        monkeypatch.setattr(domain, "_guess", lambda v, sides, x=x, active=active: (x, list(active)))
        np.testing.assert_allclose(domain.project(y), p, atol=1e-12)


def test_polytope_leaves_a_constraint_that_pulls_the_wrong_way(monkeypatch):
    square = Polytope([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], np.ones(4))
    # the corner (1, 1) satisfies all constraints, but (1, 0) is nearer
    corner = np.ones(2) / square.radius
    monkeypatch.setattr(square, "_guess", lambda v, sides: (corner, [0, 2]))
    np.testing.assert_allclose(square.project([3.0, 0.0]), [1.0, 0.0], atol=1e-12)


def test_polytope_keeps_its_constraints_however_far_the_point():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((12, 4))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    b = rng.uniform(0.5, 1, 12)
    domain = Polytope(A, b)
    for y in 1e9 * rng.standard_normal((20, 4)):
        assert (A @ domain.project(y) - b).max() <= 1e-13 * domain.radius


def test_polytope_with_equalities_and_repeated_rows():
    A = np.vstack([np.ones((1, 4)), -np.ones((1, 4)), np.repeat(-np.eye(4), 3, axis=0), np.zeros((1, 4))])
    b = np.concatenate([[1.0, -1.0], np.zeros(12), [5.0]])
    domain = Polytope(A, b)
    for y in np.random.default_rng(0).standard_normal((30, 4)) * 3:
        np.testing.assert_allclose(domain.project(y), Simplex(4).project(y), atol=1e-12)


def test_polytope_gives_up_aloud(monkeypatch):
    domain = Polytope([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], np.ones(4))
    monkeypatch.setattr(domain, "_walk", lambda v, sides, x, active: None)
    with pytest.raises(Exception, match="no point was found that satisfies all constraints") as caught:
        domain.project([3.0, 0.0])
    assert type(caught.value).__name__ == "ProjectionError"
