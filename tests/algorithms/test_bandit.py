"""Values only: points that never leave the set, gradients that are right in the mean, regret as the theorem has it."""

import math
import pickle
from functools import partial

import numpy as np
import pytest

import thalweg as tw
from tests.samples import refused
from tests.twins import bandit as twins
from tests.twins.dynamic import Linear, Squared
from tests.worlds import CountedLoss, CountedSet, flat_polytope, slow_box, tau_of
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
from thalweg.domains._shrunk import Shrunk
from thalweg.errors import HorizonWarning, InputError

TURN = np.linalg.qr(np.random.default_rng(3).standard_normal((3, 3)))[0]
ROTATED = TURN @ np.diag([1.0, 30.0, 1000.0]) @ TURN.T
FACES = np.vstack([np.eye(3), -np.eye(3)]), np.array([1.0, 1.0, 2.0, 1.0, 0.5, 1.0])


def polytope(P):
    return (FACES[1] >= P @ FACES[0].T).all() and np.abs(P @ [1.0, 2.0, -1.0] - 0.5).max() < 1e-12


def blocks(P, sizes):
    return np.sqrt(np.add.reduceat(P**2, np.cumsum((0, *sizes[:-1])), axis=1))


def fantope(P):
    M = P.reshape(-1, 3, 3)
    s = np.linalg.eigvalsh(M)
    return s.min() >= 0 and s.max() <= 1 and np.abs(s.sum(axis=1) - 1).max() < 1e-12 and (M.mT == M).all()


def half_disc(P):
    return (np.linalg.norm(P, axis=1) <= 1).all() and (P @ [3.0, 4.0] <= 0.5).all()


FAR = np.array([1e6, -1e6, 3e6])
# the set; whether rows of points lie in it, inequalities without any tolerance; how many of a million rounds
SETS = {
    "ball": (Ball(3), lambda P: (np.linalg.norm(P, axis=1) <= 1).all(), 80),
    "line": (Box([2.0], [2.5]), lambda P: P.min() >= 2 and P.max() <= 2.5, 60),
    "small ball": (Ball(2, 1e-6), lambda P: (np.linalg.norm(P, axis=1) <= 1e-6).all(), 60),
    "far ball": (Ball(3, 10.0, FAR), lambda P: (np.linalg.norm(P - FAR, axis=1) <= 10).all(), 60),
    "large box": (Box(0.0, [1e6, 1e8]), lambda P: (P >= 0).all() and (P <= [1e6, 1e8]).all(), 60),
    "long box": (Box(0.0, [1e-3, 1e3]), lambda P: (P >= 0).all() and (P <= [1e-3, 1e3]).all(), 60),
    "thin box": (
        Box([0.0, 1.0, -1.0], [1.0, 1.0, 1.0]),
        lambda P: (P[:, [0, 2]] >= [0, -1]).all() and (P[:, [0, 2]] <= 1).all() and (P[:, 1] == 1).all(),
        60,
    ),
    "L1 ball": (L1Ball(5, 2.0), lambda P: (np.abs(P).sum(axis=1) <= 2).all(), 80),
    "ellipsoid": (Ellipsoid([1.0, 1e4], 4.0), lambda P: (P**2 @ [1.0, 1e4] <= 4).all(), 80),
    "rotated": (Ellipsoid(ROTATED), lambda P: (np.sum(P @ ROTATED * P, axis=1) <= 1).all(), 60),
    "simplex": (Simplex(5), lambda P: P.min() >= 0 and np.abs(P.sum(axis=1) - 1).max() < 1e-12, 100),
    "product": (
        ProductOfBalls(3, [5.0, 0.1], sizes=[2, 1]),
        lambda P: (blocks(P, (2, 1)) <= [5.0, 0.1]).all(),
        60,
    ),
    "spectral": (
        SpectralBalls((2, 2, 3), [1.0, 0.5]),
        lambda P: (np.linalg.svd(P.reshape(-1, 2, 2, 3), compute_uv=False).max(axis=(0, 2)) <= [1.0, 0.5]).all(),
        60,
    ),
    "Fantope": (Fantope(3, 1), fantope, 40),
    "polytope": (flat_polytope(), polytope, 20),
    "intersection": (Intersection(Ball(2), HalfSpace([3.0, 4.0], 0.5)), half_disc, 20),
    "custom": (slow_box(), lambda P: P.min() >= -1 and P.max() <= 2, 40),
}
CUSTOM = {"custom": (np.full(3, 0.5), 1.5)}


def bandit(name, T, points, seed=0, **options):
    options = {"interior": CUSTOM.get(name), "loss_bound": 3.0} | options
    return tw.EfficientBandit(SETS[name][0], T, 1.0, points=points, rng=seed, **options)


# ------------------------------------------------------------------------------------------------- balls inside sets


@pytest.mark.parametrize(
    ("domain", "radius"),
    [
        (Ball(3, 2.0), 2.0),
        (Box([0.0, 1.0, 5.0], [1.0, 5.0, 5.0]), 0.5),
        (Box([0.0, -np.inf], [1.0, np.inf]), 0.5),
        (L1Ball((2, 2), 3.0), 1.5),
        (Ellipsoid([1.0, 4.0], bound=9.0), 1.5),
        (Ellipsoid(ROTATED), 1000**-0.5),
        (Simplex(2, total=3.0), 3.0 / math.sqrt(2)),  # half the length of a segment
        (Simplex(3), math.sqrt(2) * math.sqrt(3) / 6),  # the incircle of a triangle of side sqrt(2)
        (Fantope(2, 1), math.sqrt(0.5)),  # a disc
        (SpectralBalls((2, 2, 3), [1.0, 0.5]), 0.5),
        (ProductOfBalls(3, [5.0, 0.1], sizes=[2, 1]), 0.1),
        (HalfSpace([3.0, 4.0], 5.0), 1.0),
        (Polytope([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]], [0.0, 0.0, 1.0]), 1 - math.sqrt(0.5)),
        (Polytope(-np.eye(3), np.zeros(3), A_eq=np.ones((1, 3)), b_eq=[1.0]), math.sqrt(1 / 6)),
        (Intersection(Ball(2), HalfSpace([1.0, 0.0], 0.0)), 0.5),
        (Intersection(Simplex(3), Box(0.0, [0.5, 1.0, 1.0])), None),
        (Intersection(Ball(4), Ball(4, center=np.full(4, 0.5))), 0.5),
        (Intersection(Ball(5), Box(-0.1, 1.0, shape=5)), (1 + 0.1 * math.sqrt(5)) / (1 + math.sqrt(5))),
        (Intersection(Ball(3, 0.1, center=[1 / 3] * 3), Simplex(3)), 0.1),
        (Intersection(Ellipsoid([1.0, 4.0]), L1Ball(2), ProductOfBalls(2, 1.0)), 0.5),
        (Intersection(SpectralBalls((2, 2)), HalfSpace(np.eye(2), 0.0)), None),
        (Intersection(Fantope(3, 1), Ball((3, 3), 0.3, center=np.diag([0.5, 0.25, 0.25]))), 0.3),
    ],
    ids=str,
)
def test_a_ball_inside(domain, radius):
    """Its points lie in the set, in every direction of the hull; the radius is the largest, computed by hand."""
    c, r = domain.interior
    if radius is not None:
        assert r == pytest.approx(radius, rel=1e-6)
    rng = np.random.default_rng(0)
    for v in (*np.eye(domain.dim), *-np.eye(domain.dim), *rng.standard_normal((200, domain.dim))):
        u = domain.directions(v.reshape(domain.shape))
        if np.linalg.norm(u) > 1e-9:
            assert domain.contains(c + r * u / np.linalg.norm(u), tol=1e-9)
    assert not c.flags.writeable


def test_random_intersections_are_as_deep_as_their_members():
    """Against a search: no point of a cloud around the centre is deeper."""
    rng = np.random.default_rng(1)
    for _ in range(10):
        balls = [(0.5 * v / np.linalg.norm(v), rng.uniform(0.7, 1.0)) for v in rng.standard_normal((3, 2))]
        a = rng.standard_normal(2)
        X = Intersection(*(Ball(2, R, b) for b, R in balls), HalfSpace(a, 0.1))
        c, r = X.interior
        cloud = c + rng.uniform(-0.3, 0.3, size=(4000, 2))
        deep = np.min([R - np.linalg.norm(cloud - b, axis=1) for b, R in balls], axis=0)
        assert r >= np.minimum(deep, (0.1 - cloud @ a) / np.linalg.norm(a)).max() - 1e-6


@pytest.mark.parametrize(
    ("domain", "k"),
    [(Ball((2, 3)), 6), (Simplex(4), 3), (Fantope(3, 2), 5), (SETS["thin box"][0], 2), (flat_polytope(), 2)],
)
def test_the_dimension_of_the_hull(domain, k):
    assert domain.freedom == k == np.linalg.matrix_rank(domain._directions(np.eye(domain.dim)))


@pytest.mark.parametrize(
    "domain",
    [
        Simplex(1),
        Box(1.0, 1.0, shape=2),
        Fantope(2, 2),
        Intersection(Ball(2), HalfSpace([1.0, 0.0], -1.0)),
        Polytope([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [0.0, 0.0, 1.0, -1.0]),
    ],
    ids=str,
)
def test_a_single_point_has_no_interior(domain):
    with pytest.raises(InputError, match="has no interior"):
        _ = domain.interior
    with pytest.raises(InputError, match="has no interior"):
        tw.EfficientBandit(domain, 10, 1.0, points=2)


def test_a_custom_set_needs_a_ball():
    for domain in (slow_box(), Intersection(slow_box(), Ball(3))):
        with pytest.raises(InputError, match=r"does not know a ball inside it.*interior=\(point, radius\)"):
            tw.EfficientBandit(domain, 10, 1.0, points=2)
    make = partial(tw.EfficientBandit, slow_box(), 10, 1.0, points=2)
    assert make(interior=([0.0, 0.5, 0.5], 1.0)).interior[1] == 1.0
    with pytest.raises(InputError, match=r"A point at distance 1\.1 from"):
        make(interior=([0.0, 0.5, 0.5], 1.1))
    with pytest.raises(InputError, match="A point at distance 0 from"):
        make(interior=([3.0, 0.0, 0.0], 0.1))
    with pytest.raises(InputError, match=r"must be a point and a radius"):
        make(interior=1.0)
    with pytest.raises(InputError, match="points are known to"):
        make(interior=([0.5, 0.5, 0.5], 1e-6))


@pytest.mark.parametrize("name", SETS)
def test_the_projection_onto_the_shrunk_set(name):
    """The optimality condition, against points of the shrunk set."""
    X, _, _ = SETS[name]
    rng = np.random.default_rng(0)
    c, _ = CUSTOM.get(name) or X.interior
    small, scale = Shrunk(X, c, 0.3), X._scale(X.center)
    spread = X.radius * rng.standard_normal((40, X.dim))
    points = [np.ravel(c + 0.7 * (X.project(X.center + z.reshape(X.shape)) - c)) for z in spread]
    for y in (X.center.ravel() + 3 * spread)[:10]:
        p = small.project(y.reshape(X.shape)).ravel()
        assert X.contains(c + (p.reshape(X.shape) - c) / 0.7, tol=1e-9)
        for z in points:
            assert (y - p) @ (z - p) <= 1e-9 * scale * max(scale, np.linalg.norm(y - p))


def test_a_shrunk_ball_is_a_ball():
    y = np.array([3.0, -4.0])
    np.testing.assert_allclose(
        Shrunk(Ball(2, 2.0, [1.0, 0.0]), [1.0, 0.0], 0.25).project(y), Ball(2, 1.5, [1.0, 0.0]).project(y)
    )


# --------------------------------------------------------------------------------------- points asked lie in the set


def tried(name, T, points, seed):
    """All points asked while values pull into corners, flip their sign, or are the largest allowed."""
    learner, rng = bandit(name, T, points, seed), np.random.default_rng(seed)
    B = 3.0 if points == 1 else learner.exploration
    pull = rng.standard_normal(learner.domain.dim)
    asked = np.empty((T, points, learner.domain.dim))
    for t in range(T):
        if t % 500 == 0:
            pull = rng.standard_normal(learner.domain.dim) * 10.0 ** rng.uniform(-1, 1)
        asked[t] = learner.queries_at.reshape(points, -1)
        kind = t // 50 % 4
        if kind == 0:
            v = rng.choice([-B, 0.0, B], size=points)
        elif kind == 1:
            v = np.array([B, -B][:points])  # always the same way, as far as it goes
        else:
            offsets = asked[t] - learner.domain.center.ravel()
            v = np.clip(offsets @ pull, -3.0, 3.0)
            v = v if points == 1 else v.mean() + np.clip(v - v.mean(), -B, B)
        learner.update(np.clip(v, -3.0, 3.0))
    return asked.reshape(-1, learner.domain.dim), learner


@pytest.mark.parametrize("size", [2, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", SETS)
def test_every_point_asked_lies_in_the_set(name, size):
    """The shares add up to 1000: a million rounds in all where slow tests run. No inequality has a tolerance."""
    _, lies_in, share = SETS[name]
    T = share * size // 2
    for points in (1, 2):
        for seed, n in enumerate((T - T // 4, T // 4)):
            asked, learner = tried(name, n, points, seed)
            assert lies_in(asked)
            assert learner.queries == tw.Queries(n, 0, points * n)
            # and they are not all in the middle: the values pull as far as the set allows
            c = learner.interior[0]
            assert np.linalg.norm(asked - np.ravel(c), axis=1).max() >= learner.exploration


def test_the_shares_are_a_million():
    assert sum(share for _, _, share in SETS.values()) == 1000


# --------------------------------------------------------------------------------------------- gradients from values


class Quadratic:
    """f(x) = x'Qx/2 + b'x: smoothing adds a constant, so its gradient is that of the smoothed loss."""

    def __init__(self, Q, b):
        self.Q, self.b = Q, b

    def value(self, x):
        x = x.ravel()
        return float(x @ self.Q @ x / 2 + self.b @ x)

    def gradient(self, x):
        return (self.Q @ x.ravel() + self.b).reshape(x.shape)


@pytest.mark.parametrize("points", [1, 2])
@pytest.mark.parametrize("name", ["ball", "line", "simplex", "Fantope", "thin box"])
def test_the_estimate_is_unbiased(name, points):
    """sum_t (estimate - gradient of the smoothed loss) is a martingale: its mean is 0 within 5 standard errors."""
    T, X = 2000, SETS[name][0]
    rng = np.random.default_rng(0)
    A = rng.standard_normal((X.dim, X.dim)) / X.dim
    f = Quadratic(A @ A.T, rng.standard_normal(X.dim) / X.dim)
    learner = tw.EfficientBandit(X, T, 30.0, 30.0, points=points, rng=1, exploration=X.interior[1] / 4)
    off, truths = np.empty((2, T, X.dim))
    for t in range(T):
        truths[t] = X.directions(f.gradient(np.array(learner.decision))).ravel()
        learner.step(f)
        off[t] = learner._feedback.g - truths[t]
    error = off.std(axis=0) / math.sqrt(T)
    assert (np.abs(off.mean(axis=0)) <= 5 * error + 1e-12).all()
    if points == 2:  # so much that a wrong factor would be seen
        assert np.abs(truths.mean(axis=0)).max() > 10 * error.max()


@pytest.mark.parametrize("name", ["ball", "simplex", "far ball"])
def test_two_points_on_a_linear_loss(name):
    """g = k <b, u> u, exactly."""
    X = SETS[name][0]
    b = X.directions(np.linspace(-0.3, 0.3, X.dim))
    learner = bandit(name, 100, 2, loss_bound=None)
    for _ in range(30):
        u = (learner.queries_at[0] - learner.decision) / learner.exploration
        assert np.linalg.norm(u) == pytest.approx(1.0, rel=1e-6)
        learner.step(tw.losses.Linear(b, -float(b @ X.center)))
        size = X._scale(X.center) * 1e-15 / learner.exploration
        np.testing.assert_allclose(learner._feedback.g, X.freedom * (b @ u) * u, atol=1e-9 + 100 * size)


@pytest.mark.parametrize("dim", [1, 2, 3, 8])
def test_the_mean_square_of_two_points(dim):
    """(6): at most k^2 G^2/(k - 1), by Poincare's inequality; more than k/2 G^2 where the loss is steep everywhere."""
    T = 2000
    learner = tw.EfficientBandit(Ball(dim), T, 1.0, points=2, rng=0)
    p = np.full(dim, 0.5 / math.sqrt(dim))
    squares = np.empty(T)
    for t in range(T):
        v = [float(np.linalg.norm(x - p)) for x in learner.queries_at]
        learner.update(v)
        squares[t] = learner._feedback.g @ learner._feedback.g
    error = squares.std() / math.sqrt(T)
    assert learner._mean_square == pytest.approx(dim**2 / max(1, dim - 1))
    assert dim / 4 <= squares.mean() <= learner._mean_square + 5 * error
    assert squares.max() <= (dim * (1 + 1e-6)) ** 2


# ------------------------------------------------------------------------------------------------------------ the twin


@pytest.mark.parametrize("points", [1, 2])
@pytest.mark.parametrize("name", ["ball", "long box", "ellipsoid", "simplex", "polytope", "custom"])
def test_twin(name, points):
    T, X = 60, SETS[name][0]
    rng = np.random.default_rng(5)
    A = rng.standard_normal((T, X.dim))
    A /= np.linalg.norm(A, axis=1, keepdims=True) * max(1.0, X.radius)
    losses = [Linear(a, 0.3) if t % 2 else Squared(0.5 * a, 0.1) for t, a in enumerate(A)]
    learner = bandit(name, T, points)
    directions, decisions, paid = [], [], []
    for f in losses:
        decisions.append(np.array(learner.decision))
        directions.append((learner.queries_at[0] - learner.decision) / learner.exploration)
        np.testing.assert_allclose(directions[-1], learner._direction(), atol=1e-9)
        directions[-1] = learner._direction().copy()
        paid.append(learner.step(f))
    c, r = learner.interior
    blur = X.tolerance * max(X.radius, float(np.abs(X.center).max()))
    Y = X.surrogate
    twin = twins.efficient_bandit(
        losses,
        directions,
        X.project,
        c,
        (Y.center, Y.radius),
        delta=learner.exploration,
        share=(learner.exploration + blur) / r,
        k=X.dim - (name in ("simplex", "polytope")),
        points=points,
        bound=3.0 if points == 1 else 1.0,
        horizon=T,
        diameter=X.diameter,
        tau=tau_of(X),
    )
    scale = max(1.0, X.radius)
    np.testing.assert_allclose(decisions, twin.decisions, atol=1e-12 * scale)
    np.testing.assert_allclose(paid, twin.losses, rtol=1e-10, atol=1e-12)
    assert np.ptp(decisions, axis=0).max() > 1e-4 * X.radius


def test_the_tuned_exploration():
    """(5) and (6) by hand: on the unit disc k = 2, rho = r = R = 1."""
    one = tw.EfficientBandit(Ball(2), 10**6, 2.0, 3.0)
    assert one.exploration == pytest.approx(math.sqrt(1.5 * math.sqrt(2.5) * 2 * 3.0 / (2.0 * 2)) * 10**-1.5)
    assert tw.EfficientBandit(Ball(2), 10**6, 2.0, points=2).exploration == pytest.approx(1 / (2 * 1000))
    assert tw.EfficientBandit(Ball(2), 1, 1.0, 9.0).exploration == pytest.approx(0.5)  # half of the disc is left


# -------------------------------------------------------------------------------------------------------------- regret


class Cone:
    """f(x) = G ||x - p||."""

    def __init__(self, p, G=1.0):
        self.p, self.G = p, G

    def value(self, x):
        return self.G * math.dist(x, self.p)

    def gradient(self, x):
        raise AssertionError("nobody asks for it")


def world(rng, T):
    """A random problem: a set, losses of slope at most G, comparators, B."""
    X = [Ball(2), Box(0.0, [1.0, 3.0]), Simplex(4), Ellipsoid([1.0, 9.0, 4.0]), L1Ball(3)][rng.integers(5)]
    G, moves = 10.0 ** rng.uniform(-1, 1), int(rng.integers(0, 4))
    stops = [X.project(X.center + X.radius * rng.standard_normal(X.dim)) for _ in range(moves + 1)]
    u = np.array([stops[t * (moves + 1) // T] for t in range(T)])
    kind = rng.integers(3)
    if kind == 0:
        losses = [Cone(p, G) for p in u]
        B = G * X.diameter
    else:  # linear, by chance or by an adversary who changes sides
        g = rng.standard_normal((T, X.dim))
        if kind == 2:
            g = g[np.arange(T) * (moves + 1) // T]
        g *= G / np.linalg.norm(g, axis=1, keepdims=True)
        losses = [tw.losses.Linear(row, -float(row @ X.center)) for row in g]
        B = G * X.radius
    return X, G, losses, u, B


@pytest.mark.parametrize("count", [4, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("points", [1, 2])
def test_expected_regret_is_within_the_bound(points, count):
    """(4) with its constants: the mean over seeds, less two standard errors of it, may not exceed the bound."""
    rng, T, seeds = np.random.default_rng(7), 1000, 4
    closest = 0.0
    for _ in range(count):
        X, G, losses, u, B = world(rng, T)
        best = sum(f.value(p) for f, p in zip(losses, u, strict=True))
        bound = tw.EfficientBandit(X, T, G, B, points=points).regret_bound(
            float(np.linalg.norm(np.diff(u, axis=0), axis=1).sum())
        )
        found = [
            tw.play(tw.EfficientBandit(X, T, G, B, points=points, rng=seed), losses).total_loss - best
            for seed in range(seeds)
        ]
        assert np.mean(found) - 2 * np.std(found) / math.sqrt(seeds) <= bound
        closest = max(closest, float(np.mean(found) / bound))
    assert closest > 0.05  # the bound is about these runs


@pytest.mark.parametrize("points", [1, 2])
def test_the_bound_by_hand(points):
    """(4) on the unit disc: k = 2, rho = r = R = 1."""
    T, G, B, P = 10_000, 2.0, 3.0, 0.7
    learner = tw.EfficientBandit(Ball(2), T, G, B, points=points)
    delta = learner.exploration
    M = 2 * B / delta if points == 1 else 2 * G
    N = math.ceil(math.log2(1 + 4 * T / 5) / 2) + 1
    epsilon = math.sqrt(math.log(N) / (1 + M**2 * T))
    etas = [2**i / M * math.sqrt(5 / (2 * T)) for i in range(N)]
    away = min(2.5 + (1 - delta) * P, 0.5 + 2 * (1 - delta) * P)
    pool = math.log(N) / epsilon + epsilon * M**2 * T / 2 + min(away / eta + eta * M**2 * T / 2 for eta in etas)
    assert learner.regret_bound(P) == pytest.approx(pool + T * G * 2 * delta, rel=1e-6)


def test_the_bound_can_be_broken():
    """By a learner that is told the opposite."""
    T, f = 2000, tw.losses.Linear([1.0, 0.0])
    learner = tw.EfficientBandit(Ball(2), T, 1.0, points=2, rng=0)
    paid = 0.0
    for _ in range(T):
        v = np.array([f.value(x) for x in learner.queries_at])
        paid += v.mean()
        learner.update(-v)
    assert paid + T > 2 * learner.regret_bound()


def slope(points, drifting, horizons, seeds):
    """Of log regret in log T, against p_t, which pays nothing.

    A cone of slope 1 on the disc, whose tip stands still or goes once round a circle, whatever T. All that (4) adds up
    is there: delta is paid in every round, since the loss is as steep around its least point as elsewhere, and so is
    what noisy steps cost. On a smooth loss both would be squares, and regret of a lower order.
    """
    mean = []
    for T, count in zip(horizons, seeds, strict=True):
        angles = 2 * np.pi * np.arange(T) / T if drifting else np.full(T, 0.3)
        losses = [Cone(p) for p in 0.6 * np.column_stack([np.cos(angles), np.sin(angles)])]
        make = partial(tw.EfficientBandit, Ball(2), T, 1.0, 1.6, points=points)
        mean.append(np.mean([tw.play(make(rng=seed), losses).total_loss for seed in range(count)]))
    return float(np.polyfit(np.log(horizons), np.log(mean), 1)[0])


@pytest.mark.parametrize(
    ("horizons", "seeds", "close"),
    [
        ((100, 1000, 5000), (8, 2, 1), 0.1),
        pytest.param((1000, 10_000, 100_000, 10**6), (8, 4, 2, 1), 0.05, marks=pytest.mark.slow),
    ],
    ids=["short", "long"],
)
@pytest.mark.parametrize("drifting", [False, True], ids=["still", "drifting"])
@pytest.mark.parametrize(("points", "rate"), [(1, 0.75), (2, 0.5)])
def test_the_order_of_regret(points, rate, drifting, horizons, seeds, close):
    assert slope(points, drifting, horizons, seeds) == pytest.approx(rate, abs=close)


# ------------------------------------------------------------------------------------------------- queries and refusals


@pytest.mark.parametrize("points", [1, 2])
def test_one_projection_no_gradient(points):
    exact = Box(-1.0, 2.0, shape=3)
    counted = CountedSet(exact)
    learner = tw.EfficientBandit(
        counted.domain, 50, 1.0, 9.0, points=points, interior=(exact.center, exact.interior[1]), rng=0
    )
    counted.calls = 0
    losses = [CountedLoss(tw.losses.Linear([0.5, 0.1, -0.2], 1.0)) for _ in range(50)]
    run = tw.play(learner, losses, decisions=True)
    assert counted.calls == 50
    assert run.queries == tw.Queries(50, 0, 50 * points)
    assert [(f.values, f.gradients) for f in losses] == [(points, 0)] * 50
    assert all(exact.contains(x) for x in run.decisions)


class Bill:
    """A loss without a gradient."""

    def value(self, x):
        return 0.1 * float(x[0])


def test_losses_without_gradients_can_be_played():
    one, two = bandit("ball", 20, 2), bandit("ball", 20, 2)
    run = tw.play(one, [Bill() for _ in range(20)])
    assert run.losses.tolist() == [two.step(Bill()) for _ in range(20)]
    with pytest.raises(InputError, match=r"Round 1 .* the method value\(x\). Got 3"):
        tw.play(one, [Bill(), 3])
    with pytest.raises(InputError, match=r"the methods value\(x\) and gradient\(x\)"):
        tw.play(tw.SOGD(Ball(3)), [Bill()])


def test_what_is_paid_is_the_mean_of_what_was_tried():
    learner, f = bandit("ball", 50, 2), tw.losses.Squared([0.4, 0.2, 0.1], 0.3)
    values = [f.value(x) for x in learner.queries_at]
    assert learner.step(f) == pytest.approx(np.mean(values), rel=1e-15)
    learner = bandit("ball", 50, 1)
    value = f.value(learner.queries_at[0])
    assert learner.step(f) == value


def test_update_is_step():
    a, b, f = bandit("simplex", 50, 2), bandit("simplex", 50, 2), tw.losses.Squared(np.linspace(0, 0.5, 5), 0.3)
    for t in range(20):
        a.step(f)
        v = [f.value(x) for x in b.queries_at]
        b.update([v, tuple(v), np.array(v), np.array(v)[None][0]][t % 4])
        np.testing.assert_array_equal(a.decision, b.decision)


@pytest.mark.parametrize(
    ("points", "values", "message"),
    [
        (1, 3.1, "a value has size 3.1, above loss_bound = 3"),
        (1, -3.1, "a value has size 3.1"),
        (1, [0.1, 0.2], "update takes one number"),
        (1, np.nan, "must be finite"),
        (1, np.inf, "must be finite"),
        (1, "a", "update takes one number"),
        (1, None, "update takes one number"),
        (2, 0.5, "update takes two numbers"),
        (2, [[0.5, 0.5]], "update takes two numbers"),
        (2, [0.5, np.nan], "must be finite"),
        (2, [0.5, 4.0], "above loss_bound"),
        (2, [0.0, 1.0], "the two values differ by 1; so near to each other, gradient_bound = 1 allows"),
        (2, [1.7e308, -1.7e308], "must be finite"),
    ],
)
def test_refusals_change_nothing(points, values, message):
    learner = bandit("ball", 50, points)
    for _ in range(3):
        learner.update([0.1, 0.11][:points])
    x = learner.queries_at
    with refused(learner, message):
        learner.update(values)
    with refused(learner, r"step needs a loss with f.value"):
        learner.step(lambda x: 0.0)
    np.testing.assert_array_equal(learner.queries_at, x)


def test_arguments():
    with pytest.raises(InputError, match=r"with one point needs 'loss_bound'.*Or points=2"):
        tw.EfficientBandit(Ball(2), 10, 1.0)
    with pytest.raises(InputError, match=r"'points' .* at most 2\. Got 3"):
        tw.EfficientBandit(Ball(2), 10, 1.0, 1.0, points=3)
    with pytest.raises(InputError, match=r"'exploration' .* must be at most 0.5, half the radius"):
        tw.EfficientBandit(Ball(2), 10, 1.0, points=2, exploration=0.6)
    with pytest.raises(InputError, match="bounded"):
        tw.EfficientBandit(HalfSpace([1.0], 0.0), 10, 1.0, points=2)
    with pytest.raises(InputError, match="one gradient a round"):
        tw.OneProjection(Ball(2), partial(tw.EfficientBandit, horizon=10, gradient_bound=1.0, points=2))


# ---------------------------------------------------------------------------------------------------------- randomness


def test_directions_come_from_the_seed_and_the_round():
    make = partial(tw.EfficientBandit, Ball(2), 5000, 1.0, points=2)
    a, b = make(rng=1), make(rng=2)
    assert not np.array_equal(a.queries_at, b.queries_at)
    np.testing.assert_array_equal(a.queries_at, a.queries_at)
    a.update([0.0, 0.0])
    assert not np.array_equal(a.queries_at, make(rng=1).queries_at)
    source = np.random.default_rng(4)
    first, second = make(rng=source), make(rng=source)
    assert not np.array_equal(first.queries_at, second.queries_at)
    np.testing.assert_array_equal(first.clone().queries_at, first.queries_at)
    for copied in (pickle.loads(pickle.dumps(first)), first.clone()):
        assert copied.state()["seed"] == first.state()["seed"]


@pytest.mark.parametrize("rng", [3, None])
def test_saved_and_loaded_in_mid_run(tmp_path, rng):
    """Beyond a block of directions, too."""
    f = tw.losses.Linear([0.6, -0.4], 0.1)
    learner = tw.EfficientBandit(Ball(2), 5000, 1.0, 2.0, rng=rng)
    for _ in range(2040):
        learner.step(f)
    learner.save(tmp_path / "bandit.npz")
    again = tw.load(tmp_path / "bandit.npz")
    for _ in range(20):
        np.testing.assert_array_equal(again.queries_at, learner.queries_at)
        assert again.step(f) == learner.step(f)
    other = tw.EfficientBandit(Ball(2), 5000, 1.0, 2.0, rng=99)
    other.restore(learner.state())
    np.testing.assert_array_equal(other.queries_at, learner.queries_at)


def test_a_longer_horizon_begins_anew_where_it_stands():
    learner = tw.EfficientBandit(Ball(2), 10, 1.0, points=2, rng=0)
    for _ in range(10):
        learner.step(tw.losses.Linear([0.6, -0.4]))
    with pytest.warns(HorizonWarning):
        learner.step(tw.losses.Linear([0.6, -0.4]))
    longer = learner.extended(1000)
    assert (longer.horizon, longer.rounds) == (989, 0)
    np.testing.assert_allclose(longer.decision, learner.decision)
    assert longer.state()["seed"] != learner.state()["seed"]
