"""The directions of affine hulls, and what bounds gain from them."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.worlds import examples
from thalweg import domains, losses, problems
from thalweg._kernels.hulls import FULL, MEAN, NORMALS, TRACE, flatten
from thalweg.domains import Ball, Box, Custom, Fantope, HalfSpace, Intersection, Polytope, Simplex
from thalweg.errors import InputError
from thalweg.testing import check_domain

SEEDS = st.integers(0, 2**32 - 1)
ONES = np.ones((1, 4))
POSITIVE = (-np.eye(4), np.zeros(4))


def on_simplex(y):
    return Simplex(4, 2.0).project(y)


# name: the set, its code, the dimension of its affine hull
FLATS = {
    "ball": (Ball(4), FULL, 4),
    "box": (Box(-1.0, [0.0, 1.0, 2.0]), FULL, 3),
    "box with a fixed entry": (Box([1.0, -1.0, 5.0], [2.0, 1.0, 5.0]), NORMALS, 2),
    "box of matrices": (Box([[1.0, 0.0], [0.0, 3.0]], [[1.0, 1.0], [1.0, 3.0]]), NORMALS, 2),
    "simplex": (Simplex(5, 3.0), MEAN, 4),
    "simplex of one entry": (Simplex(1), MEAN, 0),
    "fantope": (Fantope(3, 1), TRACE, 5),
    "fantope 4": (Fantope(4, 2), TRACE, 9),
    "product of balls": (domains.ProductOfBalls(4, [1.0, 2.0], sizes=[3, 1]), FULL, 4),
    "spectral balls": (domains.SpectralBalls((2, 2)), FULL, 4),
    "polytope": (Polytope(np.vstack([np.eye(3), -np.eye(3)]), np.ones(6)), FULL, 3),
    "polytope, a pair": (Polytope(np.vstack([-np.eye(4), ONES, -ONES]), [0, 0, 0, 0, 3, -3]), NORMALS, 3),
    "polytope, given": (Polytope(*POSITIVE, A_eq=[[1, 2, 3, 4], [2, 4, 6, 8]], b_eq=[2, 4]), NORMALS, 3),
    "polytope, implied": (Polytope(np.vstack([-np.eye(3), [[1, 1, 0], [0, 0, 1]]]), [0, 0, 0, 0, 2]), NORMALS, 1),
    "polytope, both": (Polytope(np.vstack([-np.eye(4), [[1, 1, 0, 0]]]), np.zeros(5), A_eq=ONES, b_eq=[1]), NORMALS, 1),
    "polytope, a point": (Polytope(np.vstack([np.eye(2), -np.eye(2)]), [1, 2, -1, -2]), NORMALS, 0),
    "polytope, unbounded": (Polytope([[1.0, 1.0], [-1.0, -1.0]], [1.0, -1.0]), NORMALS, 1),
    "polytope of matrices": (Polytope(-np.eye(4), np.zeros(4), (2, 2), A_eq=ONES, b_eq=[1]), NORMALS, 3),
    "custom": (Custom(on_simplex, 4, 0.9, 2.5, normals=[[2, 2, 2, 2], [-1, -1, -1, -1]]), NORMALS, 3),
    "ball and simplex": (Intersection(Simplex(4), Ball(4, 0.9)), MEAN, 3),
    "box and simplex": (Intersection(Simplex(3), Box([0.2, 0, 0], [0.2, 1, 1])), NORMALS, 1),
    "half-spaces": (Intersection(Ball(3), HalfSpace([0, 2, 0], 0.5), HalfSpace([0, -2, 0], -0.5)), NORMALS, 2),
    "fantope and simplex-like": (Intersection(Fantope(2, 1), Custom(lambda y: y, (2, 2), 0.0, 3.0)), TRACE, 2),
}
each = pytest.mark.parametrize("name", FLATS)


def tau(domain):
    """The projection onto the directions as a matrix."""
    return np.array([domain.directions(e.reshape(domain.shape)).ravel() for e in np.eye(domain.dim)]).T


def points(domain, rng, count=60):
    size = domain.radius if np.isfinite(domain.radius) else 1.0
    return [domain.project(domain.center + 3 * size * rng.standard_normal(domain.shape)) for _ in range(count)]


@each
def test_directions_are_the_span_of_differences(name):
    domain, code, dimension = FLATS[name]
    assert domain.flat == code
    P = tau(domain)
    np.testing.assert_allclose(P, P.T, atol=1e-12)
    np.testing.assert_allclose(P @ P, P, atol=1e-12)
    found = np.array(points(domain, np.random.default_rng(0))).reshape(60, -1)
    differences = found - found[0]
    scale = domain._scale(found[0])
    np.testing.assert_allclose(differences @ P, differences, atol=1e-8 * scale)  # nothing of the set is lost
    assert np.linalg.matrix_rank(differences, tol=1e-6 * scale) == round(np.trace(P)) == dimension  # and nothing added
    np.testing.assert_allclose(
        P @ (domain.center.ravel() - found[0]), domain.center.ravel() - found[0], atol=1e-8 * scale
    )


@each
def test_the_kernel_is_the_projection(name):
    domain, _, _ = FLATS[name]
    rng = np.random.default_rng(1)
    for _ in range(5):
        v = rng.standard_normal(domain.dim)
        h = v.copy()
        flatten(domain.flat, domain.flat_par, h)
        np.testing.assert_allclose(h, tau(domain) @ v, atol=1e-12)
        np.testing.assert_allclose(domain.directions(v.reshape(domain.shape)).ravel(), h, atol=1e-14)


def test_the_kernel_against_formulas():
    rng = np.random.default_rng(2)
    M, N = rng.standard_normal((2, 3, 3))
    h = M.ravel().copy()
    flatten(TRACE, np.zeros(0), h)
    np.testing.assert_allclose(h.reshape(3, 3), (M + M.T) / 2 - np.trace(M) / 3 * np.eye(3), atol=1e-14)
    h = M.ravel().copy()
    flatten(MEAN, np.zeros(0), h)
    np.testing.assert_allclose(h, M.ravel() - M.mean(), atol=1e-14)
    Q = np.linalg.qr(N)[0].T[:2]
    h = M[0].copy()
    flatten(NORMALS, Q.ravel().copy(), h)
    np.testing.assert_allclose(h, M[0] - Q.T @ (Q @ M[0]), atol=1e-14)
    h = M[0].copy()
    flatten(FULL, np.zeros(0), h)
    np.testing.assert_array_equal(h, M[0])


@each
def test_check_domain_looks_at_directions(name):
    check_domain(FLATS[name][0])


def test_check_domain_finds_wrong_directions():
    with pytest.raises(AssertionError, match="`directions` changes the difference"):
        check_domain(Custom(on_simplex, 4, 0.5, 2.5, normals=[[1.0, 0.0, 0.0, 0.0]]))


@pytest.mark.parametrize("width", [1e-2, 1e-5, 1e-7, 1e-8, 1e-9, 1e-10])
def test_thin_sets_are_not_flat(width):
    """A slab, and a wedge, of a thickness that solvers take for nothing."""
    for rows, sides in (
        ([[0, -1], [0, 1], [1, 0], [-1, 0]], [0, width, 1, 0]),
        ([[0, -1], [-width, 1], [1, 0], [-1, 0]], [0, 0, 1, 0]),
    ):
        assert Polytope(rows, sides).flat == FULL


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("shift", [0.0, 1.0, 1000.0])
def test_flats_are_found_at_every_scale(scale, shift):
    """The simplex in a random position, by inequalities alone."""
    rng = np.random.default_rng(3)
    Q = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    move = scale * shift * rng.standard_normal(4)
    A, b = np.vstack([-np.eye(4), ONES, -ONES]) @ Q, scale * np.array([0, 0, 0, 0, 1, -1.0])
    polytope = Polytope(A, b + A @ move)
    assert (polytope.flat, len(polytope._normals())) == (NORMALS, 1)
    simplex = Simplex(4, scale)
    for _ in range(20):
        y = 3 * scale * rng.standard_normal(4)
        expected = Q.T @ simplex.project(Q @ y) + move
        np.testing.assert_allclose(polytope.project(y + move), expected, rtol=0, atol=1e-10 * scale * (1 + shift))


def test_the_ball_moves_into_the_flat_and_shrinks():
    box = Polytope(np.vstack([-np.eye(4), np.eye(4)]), np.r_[np.zeros(4), np.ones(4)])
    flat = Polytope(*POSITIVE, A_eq=ONES, b_eq=[1.0])
    assert flat.radius < box.radius
    np.testing.assert_allclose(flat.center, np.full(4, 0.25), atol=1e-9)
    custom = FLATS["custom"][0]
    np.testing.assert_allclose(custom.center, np.full(4, 0.5), atol=1e-12)
    assert custom.radius == pytest.approx(np.sqrt(2.5**2 - 4 * 0.4**2))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Custom(on_simplex, 4, 0.5, 2.0, normals=np.ones(4)), r"'normals' parameter of Custom.*shape \(m, 4\)"),
        (lambda: Custom(on_simplex, 4, 0.5, 2.0, normals=np.ones((1, 3))), r"'normals'.*Got shape \(1, 3\)"),
        (lambda: Custom(on_simplex, 4, 0.5, 2.0, normals=np.zeros((1, 4))), "'normals' of Custom must not be zero"),
        (lambda: Custom(on_simplex, 4, 0.5, 2.0, normals=[[np.nan] * 4]), "'normals' parameter of Custom must be fin"),
        (lambda: Polytope(*POSITIVE, A_eq=ONES), "both 'A_eq' and 'b_eq'"),
        (lambda: Polytope(*POSITIVE, A_eq=np.ones((1, 3)), b_eq=[1.0]), "'A_eq' parameter of Polytope must have 4"),
        (
            lambda: Polytope(*POSITIVE, A_eq=ONES, b_eq=[1.0, 2.0]),
            r"'b_eq' parameter of Polytope must have shape \(1,\)",
        ),
        (lambda: Polytope(*POSITIVE, A_eq=0 * ONES, b_eq=[1.0]), "empty: a row of zeros in 'A_eq'"),
        (lambda: Polytope(*POSITIVE, A_eq=ONES, b_eq=[-1.0]), "Polytope is empty"),
        (lambda: Simplex(3).directions([1.0, 2.0]), r"points of shape \(3,\)"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(InputError, match=message):
        make()


# ---------------------------------------------------------------------------------------------------------- bounds


def random_loss(kind, rng, shape):
    label = rng.choice([-1.0, 1.0]) if kind in (losses.Logistic, losses.Hinge) else rng.normal()
    features = rng.normal(size=shape) + rng.normal()  # a part along ones, which a simplex does not see
    return kind(features, label if kind is not losses.Log else 40.0)


@pytest.mark.parametrize("kind", losses.KINDS.values())
@pytest.mark.parametrize(
    "name", ["simplex", "fantope", "box with a fixed entry", "polytope, a pair", "ball and simplex"]
)
@given(seed=SEEDS)
@settings(max_examples=examples(12, slow=100))
def test_bounds_on_flats_hold_and_are_tighter(kind, name, seed):
    domain = FLATS[name][0]
    rng = np.random.default_rng(seed)
    loss = random_loss(kind, rng, domain.shape)
    whole = Custom(domain.project, domain.shape, domain.center, domain.radius)  # the same without its flat
    G, B, L = loss.gradient_bound(domain), loss.loss_bound(domain), loss.smoothness_on(domain)
    inside = points(domain, rng, 6)
    for x, u in itertools.pairwise(inside):
        gx, gu = domain.directions(loss.gradient(x)), domain.directions(loss.gradient(u))
        assert np.linalg.norm(gx) <= G * (1 + 1e-9)
        assert loss.value(x) <= B + 1e-9 * (1 + abs(B))
        assert abs(loss.value(x) - loss.value(u)) <= G * np.linalg.norm(x - u) + 1e-9
        if L is not None:
            assert np.linalg.norm(gx - gu) <= L * np.linalg.norm(x - u) * (1 + 1e-9) + 1e-9
    assert loss.gradient_bound(whole) * (1 + 1e-12) >= G
    if loss.smoothness is not None:
        assert loss.smoothness * (1 + 1e-12) >= L


def test_bounds_on_a_simplex_forget_what_all_entries_share():
    a, shared = np.array([1.0, -1.0, 0.0]), 100.0
    near, far = losses.Squared(a, 0.0), losses.Squared(a + shared, shared)  # the same loss on the simplex
    simplex = Simplex(3)
    assert far.gradient_bound(simplex) == pytest.approx(near.gradient_bound(simplex))
    assert far.loss_bound(simplex) == pytest.approx(near.loss_bound(simplex))
    assert far.smoothness_on(simplex) == pytest.approx(2.0)
    assert far.smoothness > 1e4


@pytest.mark.parametrize("loss", losses.KINDS)
def test_problems_take_the_largest_of_their_rounds(loss):
    rng = np.random.default_rng(5)
    labels = rng.choice([-1.0, 1.0], 9) if loss in ("logistic", "hinge") else rng.uniform(3, 4, 9)
    problem = problems.LinearModel(rng.uniform(-1, 3, (9, 5)), labels, loss)
    domain = Simplex(5)
    assert problem.gradient_bound(domain) == pytest.approx(max(f.gradient_bound(domain) for f in problem))
    smooth = [f.smoothness_on(domain) for f in problem]
    if None in smooth:
        assert problem.smoothness_on(domain) is None
        assert loss in ("absolute", "pinball", "hinge")
    else:
        assert problem.smoothness_on(domain) == pytest.approx(max(smooth))


def test_the_log_loss_is_smooth_where_it_stays_finite():
    loss = losses.Log([1.0, 3.0])
    assert loss.smoothness is None
    assert loss.smoothness_on(Simplex(2)) == pytest.approx(2.0)  # phi'' = 1 at the corner, ||tau a||^2 = 2
    assert losses.Log([0.0, 1.0]).smoothness_on(Simplex(2)) is None


# ------------------------------------------------------------------------------------------------- support functions


SUPPORTED = {
    **{name: domain for name, (domain, _, _) in FLATS.items() if np.isfinite(domain.radius)},
    "l1 ball": domains.L1Ball(3, 2.0, [1.0, 0.0, -1.0]),
    "ellipsoid": domains.Ellipsoid([1.0, 4.0, 9.0], 2.0, [1.0, 0.0, -1.0]),
    "rotated ellipsoid": domains.Ellipsoid([[2.0, 1.0], [1.0, 3.0]], 2.0, [1.0, -1.0]),
}
BOUNDS = {"custom", "ball and simplex", "box and simplex", "half-spaces", "fantope and simplex-like"}


@pytest.mark.parametrize("name", SUPPORTED)
def test_support_functions(name):
    """Attained, by a long projected step; or for sets that know their members only, not below that."""
    domain, rng = SUPPORTED[name], np.random.default_rng(6)
    rows = rng.standard_normal((5, domain.dim))
    best = domain._support(rows)
    far = (1e6 if name not in BOUNDS else 10.0) * domain._scale(domain.center)
    attained = np.array([row @ domain.project((far * row).reshape(domain.shape)).ravel() for row in rows])
    scale = domain._scale(domain.center)
    assert (attained <= best + 1e-6 * scale).all()
    if name not in BOUNDS:
        np.testing.assert_allclose(attained, best, atol=2e-5 * scale)


def test_support_functions_of_unbounded_sets():
    box = Box([-1.0, 0.0], [np.inf, 1.0])
    np.testing.assert_array_equal(box._support(np.array([[1.0, 0.0], [-1.0, 2.0], [0.0, -1.0]])), [np.inf, 3.0, 0.0])
    half = HalfSpace([3.0, 4.0], 10.0)
    np.testing.assert_allclose(
        half._support(np.array([[3.0, 4.0], [1.0, 0.0], [-3.0, -4.0], [0.0, 0.0]])), [10, np.inf, np.inf, 0]
    )
