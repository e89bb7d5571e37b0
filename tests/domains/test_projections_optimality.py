"""Projections by what defines them: optimality, idempotence, non-expansiveness, inside stays put. All to rounding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg._kernels.pca import cap
from thalweg.domains import (
    Ball,
    Box,
    Ellipsoid,
    Fantope,
    HalfSpace,
    L1Ball,
    Polytope,
    ProductOfBalls,
    Simplex,
    SpectralBalls,
)

EPS = np.finfo(float).eps


def random_rotation(rng, n):
    return np.linalg.qr(rng.standard_normal((n, n)))[0]


def product(rng, n, scale):
    sizes = rng.multinomial(n, np.full(3, 1 / 3))
    sizes = [int(k) for k in sizes if k]
    return ProductOfBalls(n, scale * rng.uniform(0.1, 2, len(sizes)), rng.standard_normal(n) * scale, sizes=sizes)


def rotated(rng, n, scale):
    Q = random_rotation(rng, n)
    E = (Q * 10.0 ** rng.uniform(-1, 1, n)) @ Q.T
    return Ellipsoid((E + E.T) / 2, bound=scale**2, center=scale * rng.standard_normal(n))


def matrices(n):
    """A shape of about n entries."""
    side = max(1, int(n**0.5))
    return side, max(1, n // side)


# name -> (random generator, dimension, scale) -> a set of about that size that need not contain the origin
FAMILIES = {
    "Ball": lambda rng, n, s: Ball(n, s * rng.uniform(0.1, 2), s * rng.standard_normal(n)),
    "Box": lambda rng, n, s: Box(*np.sort(s * rng.standard_normal((2, n)), axis=0)),
    "Simplex": lambda rng, n, s: Simplex(n, s * rng.uniform(0.1, 2)),
    "L1Ball": lambda rng, n, s: L1Ball(n, s * rng.uniform(0.1, 2), s * rng.standard_normal(n)),
    "Ellipsoid": lambda rng, n, s: Ellipsoid(10.0 ** rng.uniform(-4, 4, n), s**2, s * rng.standard_normal(n)),
    "Ellipsoid, full": rotated,
    "HalfSpace": lambda rng, n, s: HalfSpace(rng.standard_normal(n), s * rng.standard_normal()),
    "ProductOfBalls": product,
    "SpectralBalls": lambda rng, n, s: SpectralBalls((2, *matrices(n // 2 + 1)), s * rng.uniform(0.1, 2, 2)),
}


@pytest.mark.parametrize("family", FAMILIES)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 50), log_scale=st.floats(-6, 6), log_far=st.floats(-3, 3))
def test_projection(family, seed, n, log_scale, log_far):
    rng = np.random.default_rng(seed)
    scale = 10.0**log_scale
    domain = FAMILIES[family](rng, n, scale)
    size = max(domain.radius if np.isfinite(domain.radius) else scale, np.abs(domain.center).max())
    spread = size * 10.0**log_far
    x, y = domain.center + spread * rng.standard_normal((2, *domain.shape)) * (rng.random((2, *domain.shape)) < 0.8)
    p, q = domain.project(x), domain.project(y)
    inside = [q, 0.5 * (p + q), domain.project(domain.center), domain.project(p + size * rng.standard_normal(p.shape))]
    # rounding: of numbers as large as the set's or the point's, times the number of terms of the sums
    reach = size if np.isfinite(domain.radius) else size + max(np.abs(x).max(), np.abs(y).max())
    tiny = 8 * EPS * (domain.dim + 4) * reach
    slack = tiny + 8 * EPS * np.linalg.norm(x - domain.center)

    for z in inside:
        assert np.vdot(x - p, z - p) <= slack * (np.linalg.norm(x - p) + size), "not the nearest point"
        np.testing.assert_allclose(domain.project(z), z, rtol=0, atol=tiny, err_msg="a point inside moves")
    np.testing.assert_allclose(domain.project(p), p, rtol=0, atol=tiny, err_msg="not idempotent")
    assert np.linalg.norm(p - q) <= np.linalg.norm(x - y) + slack, "expands"
    assert domain.contains(p, tol=tiny / size)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 12), data=st.data())
def test_fantope_projection(seed, n, data):
    rng = np.random.default_rng(seed)
    domain = Fantope(n, data.draw(st.integers(1, n)))
    X, Y = rng.standard_normal((2, n, n)) * 10.0 ** rng.uniform(-2, 3)
    P, Q = domain.project(X), domain.project(Y)
    slack = 1e-14 * n * (1 + np.linalg.norm(X))
    for Z in (Q, 0.5 * (P + Q), domain.center):
        assert np.vdot(X - P, Z - P) <= slack * (1 + np.linalg.norm(X - P))
        np.testing.assert_allclose(domain.project(Z), Z, atol=1e-14 * n)
    assert np.linalg.norm(P - Q) <= np.linalg.norm(X - Y) + slack
    assert np.trace(P) == pytest.approx(domain.rank, rel=1e-14 * n)
    values = np.linalg.eigvalsh(P)
    assert values.min() >= -1e-14 * n
    assert values.max() <= 1 + 1e-14 * n
    np.testing.assert_array_equal(P, P.T)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 8), log_scale=st.floats(-6, 6), log_far=st.floats(-3, 3))
def test_polytope_projection(seed, n, log_scale, log_far):
    rng = np.random.default_rng(seed)
    scale = 10.0**log_scale
    A = np.vstack([rng.standard_normal((2 * n, n)), np.eye(n), -np.eye(n)])  # bounded by a box, cut by random planes
    middle = rng.standard_normal(n)
    domain = Polytope(A, scale * (A @ middle + rng.uniform(0.1, 1, 4 * n)))
    x, y = scale * middle + scale * 10.0**log_far * rng.standard_normal((2, n))
    p, q = domain.project(x), domain.project(y)
    slack = 1e-10 * scale + 1e-14 * np.linalg.norm(x)
    for z in (q, 0.5 * (p + q), scale * middle):
        assert np.vdot(x - p, z - p) <= slack * (np.linalg.norm(x - p) + scale)
        np.testing.assert_allclose(domain.project(z), z, rtol=0, atol=1e-10 * scale)
    assert domain.contains(p, tol=1e-10)
    assert np.linalg.norm(p - q) <= np.linalg.norm(x - y) + slack
    np.testing.assert_allclose(domain.project(x), p, rtol=0, atol=1e-12 * scale + 1e-15 * np.linalg.norm(x))


# --- the sums that must come out right ------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 50), log_total=st.floats(-6, 6), log_far=st.floats(-6, 6))
def test_simplex_sum_is_exact_however_far_the_point(seed, n, log_total, log_far):
    y = 10.0**log_far * np.random.default_rng(seed).standard_normal(n)
    total = 10.0**log_total
    p = Simplex(n, total).project(y)
    assert p.min() >= 0
    assert p.sum() == pytest.approx(total, rel=4 * n * EPS)


@given(y=st.lists(st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0, 3.0]), min_size=1, max_size=12))
def test_simplex_and_l1_ball_with_ties_and_zeros(y):
    y = np.array(y)
    order = np.sort(y)[::-1]  # the textbook's way, with a sort
    taus = (np.cumsum(order) - 1.0) / np.arange(1, len(y) + 1)
    tau = taus[np.flatnonzero(order > taus)[-1]]
    p = Simplex(len(y)).project(y)
    np.testing.assert_allclose(p, np.maximum(y - tau, 0.0), atol=1e-15)
    same = np.equal.outer(y, y)
    assert (p[:, None] == p[None, :])[same].all()  # equal entries stay equal, to the last bit

    q = L1Ball(len(y)).project(y)
    expected = y if np.abs(y).sum() <= 1 else np.sign(y) * Simplex(len(y)).project(np.abs(y))
    np.testing.assert_allclose(q, expected, atol=1e-15)
    assert (q[y == 0.0] == 0.0).all()


def test_simplex_by_hand():
    np.testing.assert_array_equal(Simplex(3).project([0.0, 0.0, 0.0]), np.full(3, 1 / 3))
    np.testing.assert_array_equal(Simplex(3).project([7.0, 0.0, 0.0]), [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(Simplex(3).project([2.0, 2.0, 0.0]), [0.5, 0.5, 0.0])
    np.testing.assert_array_equal(Simplex(2, total=4.0).project([1.0, 5.0]), [0.0, 4.0])
    np.testing.assert_array_equal(Simplex(1, total=4.0).project([-9.0]), [4.0])


def test_l1_ball_by_hand():
    np.testing.assert_array_equal(L1Ball(3).project([0.0, 0.0, 0.0]), 0.0)
    np.testing.assert_array_equal(L1Ball(3).project([0.0, -5.0, 0.0]), [0.0, -1.0, 0.0])
    np.testing.assert_array_equal(L1Ball(4).project([1.0, -1.0, 1.0, 0.0]), [1 / 3, -1 / 3, 1 / 3, 0.0])
    np.testing.assert_allclose(L1Ball(2, 1.0, [10.0, 0.0]).project([12.0, 0.5]), [11.0, 0.0])


# --- the ellipsoid's equation ---------------------------------------------------------------------------------------


def ellipsoid_by_bisection(e, bound, y):
    """The nearest point in extended precision."""
    e, y, bound = (np.asarray(v, dtype=np.longdouble) for v in (e, y, bound))

    def excess(lam):
        return (e * (y / (1 + lam * e)) ** 2).sum() - bound

    low, high = np.longdouble(0), np.sqrt((y * y / e).sum() / bound)
    if excess(low) <= 0:
        return y
    for _ in range(300):
        middle = np.sqrt(low * high) if low > 0 else high * np.longdouble(1e-3)
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        if high - low <= 1e-18 * high:
            break
    return y / (1 + high * e)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 20),
    log_condition=st.floats(0, 8),
    log_scale=st.floats(-6, 6),
    log_outside=st.floats(-12, 6),
)
def test_ellipsoid_to_machine_precision(seed, n, log_condition, log_scale, log_outside):
    rng = np.random.default_rng(seed)
    e = 10.0 ** rng.uniform(0, log_condition, n)
    e[0], e[-1] = 10.0**log_condition, 1.0
    scale = 10.0**log_scale
    y = rng.standard_normal(n) / e ** rng.uniform(0, 1)  # from as long as the set is wide to as round as a ball
    y *= scale * (1 + 10.0**log_outside) / np.sqrt((e * y * y).sum())
    p = Ellipsoid(e, bound=scale**2).project(y)
    exact = ellipsoid_by_bisection(e, scale**2, y).astype(np.float64)
    assert np.linalg.norm(p - exact) <= 8 * EPS * np.linalg.norm(y)
    # relative to the set, too: a far point must not blur it
    assert np.linalg.norm(p - exact) <= 1e-13 * scale
    assert (e * p * p).sum() <= scale**2 * (1 + 1e-14)


@pytest.mark.parametrize("far", [1 + 1e-10, 1.5, 1e3, 1e9])
def test_full_ellipsoid_at_condition_1e8(far):
    rng = np.random.default_rng(0)
    e, Q = np.geomspace(1.0, 1e8, 9), random_rotation(np.random.default_rng(1), 9)
    E = (Q * e) @ Q.T
    domain = Ellipsoid((E + E.T) / 2, bound=4.0)
    for _ in range(20):
        w = rng.standard_normal(9)
        y = Q @ w * far * 2.0 / np.sqrt((e * w * w).sum())
        exact = Q @ ellipsoid_by_bisection(e, 4.0, Q.T @ y).astype(np.float64)
        # e_min is known to eps * e_max only, from the matrix: 1e-8 relative
        np.testing.assert_allclose(domain.project(y), exact, rtol=0, atol=1e-7)


def test_ellipsoid_full_and_diagonal_agree():
    rng = np.random.default_rng(0)
    e, c = np.array([1.0, 3.0, 3.0, 10.0]), np.arange(4.0)
    for y in rng.standard_normal((20, 4)) * 5:
        p = Ellipsoid(e, 2.0, c).project(y)
        np.testing.assert_allclose(Ellipsoid(np.diag(e), 2.0, c).project(y), p, rtol=1e-13)
        ball = Ball(4, np.sqrt(2.0), c).project(y)
        np.testing.assert_allclose(Ellipsoid(np.ones(4), 2.0, c).project(y), ball, rtol=1e-13)


# --- eigenvalues of the Fantope ---------------------------------------------------------------------------------------


def capped(sigma, k):
    out = np.empty(sigma.size)
    cap(sigma, k, out)
    return out


def test_fantope_vectors():
    np.testing.assert_allclose(capped(np.array([-0.3, 0.2, 0.6, 1.5]), 2), [0.0, 0.3, 0.7, 1.0], rtol=1e-12)
    np.testing.assert_allclose(capped(np.array([0.2, 0.4, 0.6, 0.8]), 2), [0.2, 0.4, 0.6, 0.8], rtol=1e-12)
    Q = random_rotation(np.random.default_rng(0), 4)
    P = Fantope(4, 2).project((Q * [1.5, 0.6, 0.2, -0.3]) @ Q.T)
    np.testing.assert_allclose(P, (Q * [1.0, 0.7, 0.3, 0.0]) @ Q.T, atol=1e-14)
    skew = np.array([[0.0, 5.0], [-5.0, 0.0]])  # only the symmetric part counts
    np.testing.assert_allclose(Fantope(2, 1).project(np.diag([0.9, 0.1]) + skew), np.diag([0.9, 0.1]), atol=1e-15)


@given(
    sigma=st.lists(st.sampled_from([-2.0, -0.5, 0.0, 0.5, 1.0, 1.5, 3.0, 1e6]), min_size=1, max_size=9), data=st.data()
)
def test_capped_with_ties(sigma, data):
    k = data.draw(st.integers(1, len(sigma)))
    sigma = np.sort(sigma)
    value = capped(sigma, k)
    assert value.sum() == pytest.approx(k, rel=1e-14)
    assert value.min() >= 0
    assert value.max() <= 1
    # optimality: one shift fits all free entries, entries at 1 lie above it, entries at 0 below
    shift = value - sigma
    low, high = shift[value > 0].max(initial=-np.inf), shift[value < 1].min(initial=np.inf)
    assert low <= high + 1e-9


# --- the compiled functions -------------------------------------------------------------------------------------------

COMPILED = {name: make for name, make in FAMILIES.items() if name != "SpectralBalls"}


@pytest.mark.parametrize("family", COMPILED)
def test_kernel_in_place_and_with_nan(family):
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 33):
        domain = FAMILIES[family](rng, n, 1.0)
        for far in (1e-3, 1.0, 1e3):
            y = domain.center.ravel() + far * rng.standard_normal(n)
            expected = domain.project(y)
            out, work = np.full(n, np.nan), np.full(n, np.nan)
            kept, par = y.copy(), domain.par.copy()
            domain.onto(domain.par, y, out, work)
            np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-13 * far)
            np.testing.assert_array_equal(y, kept)
            np.testing.assert_array_equal(domain.par, par)
            domain.onto(domain.par, y, y, work)
            np.testing.assert_allclose(y, expected, rtol=1e-13, atol=1e-13 * far)  # sums may be ordered otherwise
            y[rng.integers(n)] = np.nan
            domain.onto(domain.par, y, out, work)
            assert np.isnan(out).any(), "a nan got lost"
