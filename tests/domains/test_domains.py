"""Feasible sets: the shipped check on every set, their facts, their errors, and sets that are wrong on purpose."""

import copy
import itertools
import math
import pickle

import numpy as np
import pytest

from thalweg.domains import (
    Ball,
    Box,
    Custom,
    Domain,
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
from thalweg.errors import InputError, ProjectionError
from thalweg.extend import kernel, pointer
from thalweg.testing._domain import check_domain

SPD = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 2.0]])
TRIANGLE = (np.array([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]]), np.array([0.0, 0.0, 1.0]))


def clip01(y):
    return np.clip(y, 0.0, 1.0)


EXAMPLES = {
    "ball": Ball(3, radius=2.0),
    "ball, matrices, off the origin": Ball((2, 3), radius=1e-3, center=np.full((2, 3), 5.0)),
    "box": Box([-1.0, 0.0, 2.0], [1.0, 0.5, 7.0]),
    "box, numbers": Box(2.0, 3.0, shape=(2, 2)),
    "box, unbounded": Box(0.0, np.inf, shape=3),
    "box, one point": Box(2.0, 2.0, shape=2),
    "simplex": Simplex(5),
    "simplex, total": Simplex(50, total=1e-5),
    "simplex, one point": Simplex(1, total=3.0),
    "l1 ball": L1Ball(6, radius=0.3),
    "l1 ball, matrices, off the origin": L1Ball((2, 3), radius=1e4, center=np.full((2, 3), -1e5)),
    "ellipsoid": Ellipsoid([1.0, 2.0, 4.0], bound=9.0),
    "ellipsoid, ill-conditioned": Ellipsoid(np.geomspace(1.0, 1e8, 7), center=np.arange(7.0)),
    "ellipsoid, full": Ellipsoid(SPD, bound=0.1, center=[1.0, 2.0, 3.0]),
    "half-space": HalfSpace([1.0, -2.0, 0.5], -1.0),
    "half-space, matrices": HalfSpace([[1.0, 0.0], [3.0, 1.0]], 2.0),
    "product of balls": ProductOfBalls((3, 2, 2), [1.0, 0.1, 5.0]),
    "product of balls, sizes": ProductOfBalls(6, 2.0, center=np.arange(6.0), sizes=[1, 3, 2]),
    "spectral balls": SpectralBalls((3, 2, 4), [1.0, 0.1, 5.0]),
    "spectral balls, one": SpectralBalls((3, 3), 2.0),
    "fantope": Fantope(4, 2),
    "fantope, one point": Fantope(3, 3),
    "polytope": Polytope(*TRIANGLE),
    "polytope, matrices": Polytope(np.vstack([np.eye(4), -np.eye(4)]), np.arange(2.0, 10.0), shape=(2, 2)),
    "polytope, tiny, off the origin": Polytope(TRIANGLE[0], 1e-3 * TRIANGLE[1] + TRIANGLE[0] @ [3.0, -1.0]),
    "polytope, unbounded": Polytope([[1.0, 1.0], [-1.0, 2.0]], [-1.0, 3.0]),
    "intersection": Intersection(Ball(3), HalfSpace([1.0, 1.0, 1.0], 0.5)),
    "intersection of three": Intersection(Box(0.0, 1.0, shape=3), HalfSpace([1.0, 2.0, 1.0], 1.0), Ball(3, 0.9)),
    "custom": Custom(clip01, 4, center=0.5, radius=1.0),
}


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "intersection of three"])
def test_check_domain(name):
    check_domain(EXAMPLES[name])


@pytest.mark.parametrize("points", [4, pytest.param(20, marks=pytest.mark.slow)])
def test_check_domain_on_an_intersection_of_three(points):
    check_domain(EXAMPLES["intersection of three"], points=points)


@pytest.mark.parametrize("name", EXAMPLES)
def test_copies_are_equal(name):
    domain = EXAMPLES[name]
    y = domain.center + 2.0
    for twin in (copy.copy(domain), copy.deepcopy(domain), pickle.loads(pickle.dumps(domain))):
        assert repr(twin) == repr(domain)
        np.testing.assert_array_equal(twin.project(y), domain.project(y))


@pytest.mark.parametrize(
    ("domain", "text"),
    [
        (Ball((2, 3)), "Ball((2, 3), radius=1)"),
        (Ball(2, 2.0, [0.0, 1.0]), "Ball(2, radius=2, center=[0, 1])"),
        (Box(-1, 1, shape=3), "Box(-1, 1, shape=3)"),
        (Box([-1.0, 0.0], 1), "Box([-1, 0], [1, 1])"),
        (Simplex(4), "Simplex(4)"),
        (Simplex(4, total=2), "Simplex(4, total=2)"),
        (L1Ball(9, 0.5), "L1Ball(9, radius=0.5)"),
        (Ellipsoid([1.0, 2.0, 4.0], bound=9.0), "Ellipsoid([1, 2, 4], bound=9)"),
        (HalfSpace([1, 2], 3), "HalfSpace([1, 2], 3)"),
        (ProductOfBalls((2, 3, 3), [1, 2]), "ProductOfBalls((2, 3, 3), [1, 2])"),
        (ProductOfBalls(3, 1.0, sizes=[2, 1]), "ProductOfBalls(3, [1, 1], sizes=[2, 1])"),
        (SpectralBalls((2, 3, 3), 0.5), "SpectralBalls((2, 3, 3), [0.5, 0.5])"),
        (Fantope(5, 2), "Fantope(5, 2)"),
        (Polytope(*TRIANGLE), "Polytope(<3 constraints>, shape=2)"),
        (Intersection(Ball(2), Simplex(2)), "Intersection(Ball(2, radius=1), Simplex(2))"),
        (Custom(clip01, 2, 0.5, 1.0), "Custom(clip01, shape=2, radius=1)"),
    ],
)
def test_repr(domain, text):
    assert repr(domain) == text


# --- facts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("domain", "corner", "other"),
    [
        (Ball(3, 2.0, [1.0, 0.0, 0.0]), [3.0, 0.0, 0.0], [-1.0, 0.0, 0.0]),
        (Box([0.0, -1.0], [4.0, 2.0]), [0.0, -1.0], [4.0, 2.0]),
        (Simplex(3, 2.0), [2.0, 0.0, 0.0], [0.0, 2.0, 0.0]),
        (L1Ball(2, 3.0, [1.0, 1.0]), [4.0, 1.0], [-2.0, 1.0]),
        (Ellipsoid([4.0, 1.0], 9.0), [0.0, 3.0], [0.0, -3.0]),
        (ProductOfBalls(3, [3.0, 4.0], sizes=[1, 2]), [3.0, 4.0, 0.0], [-3.0, -4.0, 0.0]),
        (SpectralBalls((2, 3), 2.0), [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]], [[-2.0, 0.0, 0.0], [0.0, -2.0, 0.0]]),
        (Fantope(3, 1), np.diag([1.0, 0.0, 0.0]), np.diag([0.0, 1.0, 0.0])),
        (Fantope(5, 3), np.diag([1.0, 1.0, 1.0, 0.0, 0.0]), np.diag([1.0, 0.0, 0.0, 1.0, 1.0])),
    ],
    ids=lambda value: repr(value) if isinstance(value, Domain) else "",
)
def test_radius_and_diameter_are_tight(domain, corner, other):
    for x in (corner, other):
        assert domain.contains(x)
        assert np.linalg.norm(x - domain.center) == pytest.approx(domain.radius)
    assert np.linalg.norm(np.subtract(corner, other)) == pytest.approx(domain.diameter)


def test_unbounded_sets_say_so():
    for domain in (HalfSpace([1.0, 1.0], 1.0), Box(0.0, np.inf, shape=2), Polytope([[1.0, 0.0]], [1.0])):
        assert domain.radius == domain.diameter == np.inf
        with pytest.raises(InputError, match=r"unbounded, so no ball contains it. Intersect it with a bounded set"):
            _ = domain.surrogate
    np.testing.assert_allclose(HalfSpace([3.0, 4.0], -5.0).center, [-0.6, -0.8])
    np.testing.assert_allclose(HalfSpace([3.0, 4.0], 5.0).center, 0.0)
    np.testing.assert_allclose(Box(1.0, [np.inf, 2.0]).center, [1.0, 1.0])
    np.testing.assert_allclose(Polytope([[3.0, 4.0]], [-5.0]).center, [-0.6, -0.8])


def test_single_points_have_a_tiny_positive_radius():
    for domain in (Simplex(1, 3.0), Fantope(2, 2), Box(3.0, 3.0, shape=2), Box(0.0, 0.0, shape=2)):
        assert 0 < domain.radius <= 1e-11
        assert 0 < domain.diameter <= 1e-11
        assert domain.surrogate.contains(domain.center)
        np.testing.assert_allclose(domain.project(domain.center + 5.0), domain.center, atol=1e-15)


def test_surrogates():
    for domain in (Ball(3), ProductOfBalls((2, 3), 1.0)):
        assert domain.surrogate is domain
    for domain in (
        Box(0.0, 1.0, shape=2),
        Simplex(3),
        L1Ball(3),
        Ellipsoid([1.0, 2.0]),
        Fantope(3, 1),
        Polytope(*TRIANGLE),
    ):
        ball = domain.surrogate
        assert isinstance(ball, Ball)
        assert ball.radius == domain.radius
        np.testing.assert_array_equal(ball.center, domain.center)
    product = SpectralBalls((2, 3, 4), [1.0, 2.0]).surrogate
    assert isinstance(product, ProductOfBalls)
    np.testing.assert_allclose(product.radii, np.sqrt(3) * np.array([1.0, 2.0]))
    assert SpectralBalls((3, 4), 2.0).surrogate.radius == pytest.approx(2.0 * np.sqrt(3))


def test_intersection_takes_the_smallest_ball():
    both = Intersection(Ball(2, 3.0), Ball(2, 1.0, [2.0, 0.0]), HalfSpace([1.0, 0.0], 2.5))
    assert both.radius == 1.0
    assert both.diameter == 2.0
    np.testing.assert_array_equal(both.center, [2.0, 0.0])
    assert both.contains([2.5, 0.0])
    assert not both.contains([2.6, 0.0])
    assert not both.contains([0.9, 0.0])
    assert Intersection(HalfSpace([1.0], 1.0), HalfSpace([-1.0], 1.0)).radius == np.inf


def test_facts_cannot_be_overwritten():
    with pytest.raises(ValueError, match="read-only"):
        Simplex(3).center[0] = 1.0


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Ball(0), r"'shape' parameter of Ball must be a whole number >= 1"),
        (lambda: Ball(3, radius=-1.0), r"'radius' parameter of Ball must be a finite number > 0. Got -1.0"),
        (lambda: Ball(3, center=[1.0]), r"'center' parameter of Ball must have shape \(3,\). Got shape \(1,\)"),
        (lambda: Box(0.0, 1.0), r"Box needs 'shape' when both bounds are numbers: Box\("),
        (lambda: Box([0.0, 0.0], [1.0, 1.0, 1.0]), r"bounds of Box must have the shape of a point or broadcast to it"),
        (lambda: Box([0.0, 0.0], 1.0, shape=3), r"Got lower of shape \(2,\), upper of shape \(\) and shape=3"),
        (lambda: Box(0.0, 1.0, shape=-1), r"'shape' parameter of Box must be a whole number"),
        (lambda: Box([], []), r"'shape' parameter of Box must be a whole number"),
        (lambda: Box([0.0, 2.0], 1.0), r"Box is empty: entry \(1,\) has lower bound 2 and upper bound 1"),
        (lambda: Box([np.inf, 0.0], np.inf), r"Box is empty: entry \(0,\) has lower bound inf"),
        (lambda: Box(np.nan, 1.0, shape=2), r"'lower' parameter of Box must not hold nan"),
        (lambda: Simplex(2.5), r"'dim' parameter of Simplex must be a whole number >= 1. Got 2.5"),
        (lambda: Simplex(3, total=0), r"'total' parameter of Simplex must be a finite number > 0. Got 0"),
        (lambda: L1Ball((2, 0)), r"'shape' parameter of L1Ball"),
        (lambda: L1Ball(2, radius=np.inf), r"'radius' parameter of L1Ball must be a finite number > 0"),
        (lambda: L1Ball(2, center=[0.0, np.nan]), r"'center' parameter of L1Ball must be finite"),
        (lambda: Ellipsoid(3.0), r"must be a vector \(a diagonal\) or a square matrix. Got shape \(\)"),
        (lambda: Ellipsoid(np.ones((2, 3))), r"must be a vector \(a diagonal\) or a square matrix. Got shape \(2, 3\)"),
        (
            lambda: Ellipsoid([1.0, 0.0]),
            r"must have positive entries, or the set is unbounded. Got a smallest one of 0",
        ),
        (lambda: Ellipsoid([[1.0, 2.0], [2.0, 1.0]]), r"must have positive eigenvalues"),
        (lambda: Ellipsoid([[1.0, 0.5], [0.0, 1.0]]), r"must be symmetric. Pass \(E \+ E.T\) / 2"),
        (lambda: Ellipsoid([1.0], bound=0.0), r"'bound' parameter of Ellipsoid must be a finite number > 0"),
        (lambda: Ellipsoid([1.0], center=[1.0, 2.0]), r"'center' parameter of Ellipsoid must have shape \(1,\)"),
        (lambda: HalfSpace([0.0, 0.0], 1.0), r"'normal' parameter of HalfSpace must not be zero"),
        (lambda: HalfSpace([1.0], np.inf), r"'offset' parameter of HalfSpace must be a finite number"),
        (
            lambda: ProductOfBalls(5, 1.0, sizes=[2, 2]),
            r"'sizes' parameter of ProductOfBalls must sum to the 5 entries",
        ),
        (lambda: ProductOfBalls(5, 1.0, sizes=[5, 0]), r"'sizes' parameter of ProductOfBalls must be a whole number"),
        (lambda: ProductOfBalls((3, 2), [1.0, 2.0]), r"'radii' parameter of ProductOfBalls must have shape \(3,\)"),
        (lambda: ProductOfBalls((2, 2), [1.0, 0.0]), r"'radii' parameter of ProductOfBalls must be a number > 0 or an"),
        (lambda: SpectralBalls((3,), 1.0), r"'shape' parameter of SpectralBalls must be \(H, m, n\) or \(m, n\)"),
        (
            lambda: SpectralBalls((2, 3, 3), [1.0, -1.0]),
            r"'caps' parameter of SpectralBalls must be a number > 0 or an",
        ),
        (lambda: Fantope(3, 4), r"'rank' parameter of Fantope must be at most its 'dim' of 3. Got 4"),
        (lambda: Fantope(3, 0), r"'rank' parameter of Fantope must be a whole number >= 1"),
        (lambda: Polytope([1.0], [1.0]), r"'A' parameter of Polytope must have 2 axes"),
        (lambda: Polytope([[1.0]], [1.0, 2.0]), r"'b' parameter of Polytope must have shape \(1,\)"),
        (
            lambda: Polytope([[1.0, 1.0]], [1.0], shape=3),
            r"must have 3 columns and at least one row. Got shape \(1, 2\)",
        ),
        (lambda: Polytope(np.zeros((0, 2)), []), r"must have 2 columns and at least one row. Got shape \(0, 2\)"),
        (lambda: Polytope([[0.0, 0.0]], [1.0]), r"must not be all zeros"),
        (lambda: Polytope([[1.0], [0.0]], [1.0, -1.0]), r"Polytope is empty: a row of zeros"),
        (lambda: Polytope([[1.0], [-1.0]], [0.0, -1.0]), r"Polytope is empty: no point satisfies all constraints"),
        (lambda: Intersection(Ball(2)), r"Intersection needs at least two domains. Got 1"),
        (
            lambda: Intersection(Ball(2), "ball"),
            r"Intersection needs at least two domains. Got an argument of type str",
        ),
        (lambda: Intersection(Ball(2), Ball(3)), r"must hold points of one shape. Got \[\(2,\), \(3,\)\]"),
        (lambda: Intersection(Ball(2), Ball(2), tol=0), r"'tol' parameter of Intersection must be a finite number > 0"),
        (lambda: Intersection(Ball(2), Ball(2), max_iterations=0), r"'max_iterations' parameter of Intersection"),
        (lambda: Custom("f", 2, 0.0, 1.0), r"'project' parameter of Custom must be callable. Got 'f'"),
        (lambda: Custom(clip01, 2, 0.0, 1.0, contains=3), r"'contains' parameter of Custom must be callable. Got 3"),
        (lambda: Custom(clip01, 2, [0.0], 1.0), r"'center' parameter of Custom must have shape \(2,\)"),
        (lambda: Custom(clip01, 2, 0.0, 0.0), r"'radius' parameter of Custom must be a finite number > 0"),
        (
            lambda: Custom(clip01, 2, 0.0, 1.0, diameter=-1),
            r"'diameter' parameter of Custom must be a finite number > 0",
        ),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ([1.0, 2.0], r"Simplex\(3\) holds points of shape \(3,\). Got a point of shape \(2,\)"),
        ([1.0, 2.0, np.nan], r"Simplex\(3\) cannot project a point with nan or infinite entries"),
        ([1.0, 2.0, -np.inf], r"Simplex\(3\) cannot project a point with nan or infinite entries"),
        ([1.0, 2.0, 1e301], r"Simplex\(3\) cannot project a point with entries beyond 1e\+300"),
        ("abc", r"Simplex\(3\) holds arrays of real numbers. Got 'abc'"),
        ([1.0, 2.0, 1j], r"Simplex\(3\) holds arrays of real numbers"),
        ([[1.0, 2.0], [1.0]], r"Simplex\(3\) holds arrays of real numbers"),
    ],
)
def test_bad_points(point, message):
    for method in (Simplex(3).project, Simplex(3).contains, Simplex(3).distance):
        with pytest.raises(InputError, match=message):
            method(point)


def test_empty_intersection():
    apart = Intersection(Ball(2), Ball(2, center=[5.0, 0.0]), max_iterations=50)
    with pytest.raises(ProjectionError, match=r"after 50 rounds .* If they have a point in common, raise 'max_iter"):
        apart.project([0.0, 0.0])


def test_decompositions_that_fail(monkeypatch):
    def fail(*args, **kwargs):
        raise np.linalg.LinAlgError("no")

    monkeypatch.setattr(np.linalg, "svd", fail)
    monkeypatch.setattr(np.linalg, "eigh", fail)
    with pytest.raises(ProjectionError, match=r"SpectralBalls\(\(2, 2\), 1\): the singular value decomposition"):
        SpectralBalls((2, 2), 1.0).project(np.full((2, 2), 9.0))
    with pytest.raises(ProjectionError, match=r"Fantope\(2, 1\): the eigendecomposition did not converge"):
        Fantope(2, 1).project(np.eye(2))


# --- Custom ----------------------------------------------------------------------------------------------------------


def broken(y):
    raise ZeroDivisionError("by zero")


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (
            broken,
            {},
            r"`project` function of Custom\(broken, shape=2, radius=1\) failed with ZeroDivisionError: by zero",
        ),
        (lambda y: y[0], {}, r"returned shape \(\). It must return \(2,\)"),
        (lambda y: None, {}, r"returned shape \(\)|returned nan"),
        (lambda y: "text", {}, r"failed with ValueError.*return an array of that shape"),
        (lambda y: np.full(2, np.nan), {}, r"returned nan or infinite entries. Check its solver's status"),
        (lambda y: y, {}, r"returned a point at distance .* from the centre, outside the radius"),
        (clip01, {"contains": lambda x: False}, r"returned a point that `contains` refuses"),
        (
            clip01,
            {"contains": broken},
            r"`contains` function of .* failed with ZeroDivisionError.*return True or False",
        ),
    ],
)
def test_custom_failures(function, options, message):
    with pytest.raises(ProjectionError, match=message):
        Custom(function, 2, 0.5, 1.0, **options).project([5.0, 5.0])


def test_custom_keeps_the_cause():
    with pytest.raises(ProjectionError) as caught:
        Custom(broken, 2, 0.5, 1.0).project([5.0, 5.0])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_custom_allows_what_a_solver_leaves_over():
    slightly_out = Custom(lambda y: [1.0 + 5e-7, 0.0], 2, 0.0, 1.0)
    assert slightly_out.project([3.0, 0.0])[0] > 1.0
    with pytest.raises(ProjectionError, match="outside the radius"):
        Custom(lambda y: [1.0 + 5e-6, 0.0], 2, 0.0, 1.0).project([3.0, 0.0])


def test_custom_shares_no_memory_with_the_function():
    shelf = np.zeros(2)

    def careless(y):
        y *= 0.0  # overwrites its argument and returns its own memory
        return shelf

    domain = Custom(careless, 2, 0.0, 1.0)
    y = np.array([3.0, 4.0])
    p = domain.project(y)
    flat = y.copy()
    assert not np.shares_memory(domain._project_flat(flat), shelf)
    shelf += 7.0
    for given in (y, flat):
        np.testing.assert_array_equal(given, [3.0, 4.0])
    np.testing.assert_array_equal(p, 0.0)


def test_custom_facts_and_contains():
    domain = Custom(clip01, (2, 2), 0.5, 1.0)
    assert domain.diameter == 2.0
    assert domain.contains(np.zeros((2, 2)))
    assert not domain.contains(np.full((2, 2), 2.0))
    domain = Custom(clip01, (2, 2), 0.5, 1.0, diameter=1.9, contains=lambda x: (x >= 0).all() and (x <= 1).all())
    assert domain.diameter == 1.9
    assert domain.contains(np.zeros((2, 2))) is True
    assert domain.contains(np.full((2, 2), 1.0 + 1e-12)) is False
    with pytest.raises(InputError, match="shape"):
        domain.contains(np.zeros(2))


def test_a_subclass_must_bring_a_projection():
    class Unfinished(Domain):
        def __init__(self):
            self._state_facts((2,), np.zeros(2), 1.0, 2.0)

    with pytest.raises(NotImplementedError, match=r"Unfinished must override `_project_flat`"):
        Unfinished().project([1.0, 2.0])


# --- check_domain sees what is wrong ---------------------------------------------------------------------------------


def stating(domain, **own):
    """A set with other facts or methods than its own."""
    vars(domain).update(own)
    return domain


def by_the_1_norm(y):
    """As one often sees."""
    return np.abs(y) / np.abs(y).sum()


def aliasing(point):
    y = np.asarray(point, dtype=np.float64)
    return y if np.linalg.norm(y) <= 1 else Ball(3).project(y)


def overwriting(point):
    y = np.asarray(point)
    y[...] = Ball(3).project(y)
    return y.copy()


BUFFER, CALLS = np.empty(3), itertools.count(1)


def into_one_buffer(y):
    BUFFER[:] = np.clip(y, 0.0, 1.0)
    return BUFFER


def forgetful(y):
    """Different every time."""
    return Ball(3)._project_flat(y) * (1 - 1e-3 * np.sin(next(CALLS)) ** 2)


def of_any_numbers(point):
    return np.nan_to_num(np.asarray(point, dtype=np.float64))


class BadSurrogate(Simplex):
    @property
    def surrogate(self):
        return Ball(self.shape, radius=0.5, center=self.center)


class Nameless(Ball):
    def __repr__(self):
        return ""


@pytest.mark.parametrize(
    ("domain", "message"),
    [
        (stating(Simplex(4), _project_flat=by_the_1_norm), "not the nearest"),
        (stating(Ball(3), project=aliasing), "returned memory of its argument"),
        (stating(Ball(3), project=overwriting), "changed its argument"),
        (stating(Box(0.0, 1.0, shape=3), _project_flat=into_one_buffer), "a later call of `project` changed"),
        (stating(Simplex(4), radius=0.9 * Simplex(4).radius), "from the centre, radius"),
        (stating(Simplex(4), diameter=0.9 * Simplex(4).diameter), "apart, diameter"),
        (stating(Ball(3), _project_flat=lambda y: 0.5 * (y + Ball(3)._project_flat(y))), "moves when projected again"),
        (stating(Ball(3), _project_flat=lambda y: 0.9 * Ball(3)._project_flat(y)), "moves when projected again"),
        (stating(Ball(3), _project_flat=forgetful), "projecting twice gives two answers"),
        (stating(Ball(3), contains=lambda point, tol=0.0: True), "`contains` accepts a point far outside"),
        (stating(Ball(3), contains=lambda point, tol=0.0: False), "`contains` refuses a projected point"),
        (stating(Ball(3), distance=lambda point: 2 * Ball(3).distance(point)), "`distance` is not"),
        (BadSurrogate(3), "outside its surrogate"),
        (stating(Ball(3), _read=of_any_numbers), "accepts a point with nan|accepts a point with a wrong shape"),
        (stating(Ball(3), project=lambda point: np.float32(Ball(3).project(point))), "did not return a float64 array"),
        (
            stating(Ball((2, 2)), project=lambda point: Ball((2, 2)).project(point).ravel()),
            r"returned shape \(4,\) instead of \(2, 2\)",
        ),
        (
            stating(Box(-2.0, 2.0, shape=2), _project_flat=lambda y: np.clip(y, -1.0, 1.0)),
            "compiled projection gives another answer",
        ),
        (Nameless(2), "repr is empty"),
        (stating(Simplex(3), center=np.zeros(4)), "`center` has shape"),
        (Custom(lambda y: np.clip(y, 0, 1) ** 2, 3, 0.5, 1.0), "Point:"),
        (Custom(clip01, 3, 0.5, 0.87, diameter=1.5), "apart, diameter"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_check_domain_sees(domain, message):
    with pytest.raises(AssertionError, match=message):
        check_domain(domain)


@kernel
def onto_cube_of_a_long_par(par, y, out, work):
    for j in range(y.shape[0]):
        out[j] = y[j] if y[j] != y[j] else min(max(y[j], 0.0), par[5])


@kernel
def past_the_end(work):
    return work[work.shape[0]]


@kernel
def onto_cube_past_the_end(par, y, out, work):
    for j in range(y.shape[0]):
        out[j] = y[j] if y[j] != y[j] else min(max(y[j], 0.0), 1.0)
    work[0] = past_the_end(work)


@kernel
def onto_cube_without_nan(par, y, out, work):
    for j in range(y.shape[0]):
        v = y[j]
        out[j] = 1.0 if v > 1.0 else (v if v > 0.0 else 0.0)


@kernel
def onto_cube_that_changes_par(par, y, out, work):
    par[0] = 2.0
    for j in range(y.shape[0]):
        out[j] = y[j] if y[j] != y[j] else min(max(y[j], 0.0), 1.0)


@pytest.mark.parametrize(
    ("onto", "message"),
    [
        (onto_cube_of_a_long_par, r"reads or writes outside of an array.* `par` has 1 entries"),
        (onto_cube_past_the_end, "reads or writes outside of an array"),
        (onto_cube_without_nan, "turns a nan into numbers"),
        (onto_cube_that_changes_par, "changes `par`"),
    ],
)
def test_check_domain_sees_what_a_kernel_does(onto, message):
    pytest.importorskip("numba", reason="compiles kernels of its own")

    class Cube(Domain):
        def __init__(self):
            self._state_facts((3,), np.full(3, 0.5), math.sqrt(0.75), math.sqrt(3.0))
            self.par = np.ones(1)
            self.onto = pointer(onto)

        def __repr__(self):
            return "Cube()"

    with pytest.raises(AssertionError, match=message):
        check_domain(Cube())


def test_check_domain_sees_that_a_built_in_kernel_lacks_entries_of_par():
    class Short(Domain):
        onto = Ball(2).onto

        def __init__(self):
            self._state_facts((2,), np.zeros(2), 1.0, 2.0)
            self.par = np.ones(1)

        def __repr__(self):
            return "Short()"

    with pytest.raises(AssertionError, match="reads or writes outside of an array"):
        check_domain(Short())


def test_check_domain_takes_a_tolerance():
    sloppy = Custom(lambda y: np.clip(y, 0, 1) + 1e-7, 3, 0.5, 1.0)
    with pytest.raises(AssertionError):
        check_domain(sloppy)
    check_domain(sloppy, tol=1e-5)


def one_point(rng, kind):
    """Inequalities that only one point satisfies, up to rounding of the right-hand sides; and that point."""
    n = int(rng.integers(1, 7))
    p = np.round(rng.standard_normal(n), 2) * 10.0 ** rng.integers(-2, 3)
    A = rng.standard_normal((3 * n, n))
    if kind == "pairs":
        A = np.vstack([A, -A])
    elif kind == "sum":
        A = np.vstack([A, -A.sum(axis=0)])
    else:  # a cone and a plane through its tip
        v = rng.standard_normal(n)
        A[A @ v > 0] *= -1
        A = np.vstack([A, -A.sum(axis=0)])
    b = A @ p
    return A, b + 2.0**-52 * np.abs(b) * rng.integers(-1, 2, b.size), p


@pytest.mark.parametrize("kind", ["pairs", "sum", "cone"])
def test_a_polytope_of_one_point_projects_onto_it(kind):
    rng = np.random.default_rng(0)
    for _ in range(60):
        A, b, p = one_point(rng, kind)
        size = max(np.abs(p).max(), 1e-2)
        # what rounding of b does to the point
        near = 1e-12 * size * np.linalg.norm(np.linalg.pinv(A), 2) * np.linalg.norm(A, 2) * len(A)
        polytope = Polytope(A, b)
        for y in (p, np.zeros(p.size), p + rng.standard_normal(p.size), 1e3 * size * rng.standard_normal(p.size)):
            assert np.abs(polytope.project(y) - p).max() <= near


def test_a_polytope_that_is_empty_by_a_little_is_refused_when_it_is_built():
    rng = np.random.default_rng(1)
    for _ in range(20):
        A, b, p = one_point(rng, "sum")
        b[-1] -= 1e-9 * np.linalg.norm(A[-1]) * max(np.abs(p).max(), 1e-2)
        with pytest.raises(InputError, match="empty"):
            Polytope(A, b)


def test_the_tip_of_a_cone_is_projected_onto_from_afar():
    """The set is 1e-13 across: what the optimality conditions say of it is rounding."""
    rng = np.random.default_rng(3)
    for _ in range(60):
        n = int(rng.integers(2, 7))
        p, A, v = rng.standard_normal(n), rng.standard_normal((3 * n, n)), rng.standard_normal(n)
        A[A @ v > 0] *= -1
        A = np.vstack([A, -A.sum(axis=0)])
        b = A @ p + 1e-13 * rng.random(len(A))
        polytope = Polytope(A, b)
        for y in p + 10.0 ** rng.uniform(0, 4, (12, 1)) * rng.standard_normal((12, n)):
            assert (A @ polytope.project(y) - b).max() <= 1e-10 * np.abs(A).max() * np.abs(p).max()


def test_bounds_that_an_earlier_answer_attains_need_no_linear_programme(monkeypatch):
    """The box is the same as that of one programme for every entry and side."""
    asked, least = [], Polytope._least

    def count(self, direction):
        asked.append(direction)
        return least(self, direction)

    monkeypatch.setattr(Polytope, "_least", count)
    rng, n = np.random.default_rng(0), 12
    sides = np.vstack([np.eye(n), -np.eye(n)])
    climb = np.vstack([-np.diff(np.eye(n), axis=0), 2 * sides])  # x_1 <= x_2 <= ...
    for A, b, most in (
        (sides, rng.uniform(1, 2, 2 * n), 2),
        (climb, np.r_[np.zeros(n - 1), np.ones(2 * n)], 2),
        (np.vstack([rng.normal(size=(30, n)), sides]), np.r_[np.full(30, 0.5), np.ones(2 * n)], 2 * n + 2),
    ):
        asked.clear()
        polytope = Polytope(A, b)
        assert len(asked) <= most
        found = [[sign * least(polytope, sign * np.eye(n)[j])[0] for j in range(n)] for sign in (1.0, -1.0)]
        assert np.allclose(polytope.center, np.mean(found, axis=0), rtol=0, atol=1e-9)
        assert np.isclose(polytope.diameter, np.linalg.norm(found[1] - np.array(found[0])), rtol=0, atol=1e-9)
