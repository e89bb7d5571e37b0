"""AdaGrad: its projection, its twin alone and in every place an expert can have, and its regret bound."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import thalweg as tw
from tests.twins import adagrad as ref
from tests.twins import adaptive, dynamic
from tests.worlds import assert_plays, built, tau_of
from thalweg._kernels.parts import move, start
from thalweg.errors import InputError
from thalweg.experts import AdaGradDescent, Pool
from thalweg.metas import AdaptMLProd

HORIZON = 60
seeds = st.integers(0, 2**32 - 1)


def ball():
    return tw.domains.Ball(3, radius=1.5, center=[0.5, -1.0, 2.0])


def stream(domain, kind="squared", horizon=HORIZON, seed=3, scale=2.0):
    return dynamic.make_stream(kind, domain, horizon, np.random.default_rng(seed), scale=scale)


# ---------------------------------------------------------------------------------------------------- the projection


def stepped(rng):
    """An expert somewhere in its ball, one step of it in plain Python, and what that step projected."""
    d = int(rng.integers(1, 6))
    center, radius = rng.standard_normal(d), 10.0 ** rng.uniform(-2, 2)
    domain = tw.domains.Ball(d, radius=radius, center=center)
    expert = AdaGradDescent(domain, scale=radius * 10.0 ** rng.uniform(-2, 2), delta=10.0 ** rng.uniform(-8, 0))
    state, settings = built(AdaGradDescent.plan([[expert]]))
    y = domain.project(center + radius * rng.standard_normal(d))
    start(state, settings, 0, 0, y)
    state.squares[0, 0] = rng.uniform(0, 10, d) * rng.choice([0.0, 1.0], d)
    h = rng.standard_normal(d) * 10.0 ** rng.uniform(-3, 3)
    a = np.sqrt(expert.delta + state.squares[0, 0] + h**2)
    move(state, settings, 0, 1, h, np.zeros((1, 1)))
    return domain, a, y - expert.scale * h / a, state.points[0, 0]


@given(seed=seeds)
@pytest.mark.compiles  # functions that only kernels call are called one by one
def test_no_point_of_the_ball_is_nearer_in_its_norm(seed):
    """n = A (z - y) has its largest product over the ball at y: <n, y> = <n, c> + R ||n||; inside nothing moves."""
    domain, a, z, y = stepped(np.random.default_rng(seed))
    c, R = domain.center, domain.radius
    assert np.linalg.norm(y - c) <= R * (1 + 1e-13)
    if np.linalg.norm(z - c) <= R:
        np.testing.assert_array_equal(y, z)
    n = a * (z - y)
    assert n @ (y - c) >= (R - 1e-12 * R) * np.linalg.norm(n) - 1e-12 * R * np.linalg.norm(a * (np.abs(z) + np.abs(c)))
    unit = np.abs(c).max() + R + np.abs(z).max()
    assert_allclose(y, ref.nearest(z, a, c, R), rtol=0, atol=1e-12 * unit)


def test_it_is_not_the_euclidean_projection():
    domain = tw.domains.Ball(2)
    z, a = np.array([1.5, 1.5]), np.array([10.0, 1.0])
    y = ref.nearest(z, a, np.zeros(2), 1.0)
    assert abs(y[0] - z[0]) < abs(y[1] - z[1])  # what costs more is changed less
    assert np.abs(y - domain.project(z)).max() > 0.05


# -------------------------------------------------------------------------------------------------------------- twins


@pytest.mark.parametrize("options", [{}, {"scale": 0.3}, {"scale": 5.0, "delta": 0.1}], ids=str)
def test_alone(options):
    domain = ball()
    losses = stream(domain).losses
    settings = {"scale": math.sqrt(2) * domain.radius, **options}
    twin = ref.adagrad(losses, domain.center, domain.radius, **settings)
    on_sphere = np.linalg.norm(twin - domain.center, axis=1) > domain.radius * (1 - 1e-9)
    assert 5 < on_sphere.sum() < HORIZON or "scale" in options  # the projection had something to do
    assert_plays(lambda: tw.Alone(AdaGradDescent(domain, **options)), losses, twin)


SCALES = [4.0 * 2.0**-k for k in range(5)]


def pool_of(domain):
    return Pool([AdaGradDescent(domain, scale=s) for s in SCALES])


def twin_pool(start, domain):
    members = [ref.AdaGrad(start, domain.center, domain.radius, s, 1e-8) for s in SCALES]
    return ref.Pool(members, domain.radius)


def test_in_a_pool_under_hedge():
    domain = ball()
    losses = stream(domain).losses
    twin, decisions = twin_pool(domain.center, domain), []
    for f in losses:
        decisions.append(twin.point)
        twin.update(f.gradient(decisions[-1]))
    assert_plays(lambda: tw.Alone(pool_of(domain)), losses, np.array(decisions))


@pytest.mark.parametrize("kind", ["one", pytest.param("pool", marks=pytest.mark.slow)])
@pytest.mark.parametrize("feedback_range", ["bound", "observed"])
def test_on_a_cover(kind, feedback_range):
    """On a ball the reduction of the twin has nothing to do."""
    domain = ball()
    s = stream(domain)
    C = 0.05 * s.loss_bound
    scale = math.sqrt(2) * domain.radius

    def newborn(start):
        if kind == "pool":
            return twin_pool(start, domain)
        return ref.AdaGrad(start, domain.center, domain.radius, scale, 1e-8)

    twin = adaptive.efficient_adaptive(
        s.losses, domain.project, domain.center, domain.radius, gradient_bound=s.gradient_bound,
        threshold=lambda m: C, feedback_range=feedback_range, make_expert=newborn,
    )  # fmt: skip
    expert = pool_of(domain) if kind == "pool" else AdaGradDescent(domain)
    B = 2 * s.gradient_bound * domain.radius if feedback_range == "bound" else "observed"
    assert_plays(lambda: tw.Cover(domain, expert, meta=AdaptMLProd(B), threshold=lambda m: C), s.losses, twin.decisions)
    assert len(twin.markers) > 6


@pytest.mark.parametrize("kind", ["one", pytest.param("pool", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "make",
    [lambda: tw.domains.Ellipsoid([1.0, 9.0, 36.0], bound=2.0), lambda: tw.domains.Simplex(4, 2.0)],
    ids=["ellipsoid", "simplex"],
)
def test_inside_the_reduction(make, kind):
    """On the simplex its steps leave the flat, and the reduction must not mind."""
    X = make()
    s, Y, tau = stream(X), X.surrogate, tau_of(X)
    scale = math.sqrt(2) * Y.radius
    twin = twin_pool(Y.center, Y) if kind == "pool" else ref.AdaGrad(Y.center, Y.center, Y.radius, scale, 1e-8)
    decisions, outside = [], 0
    for f in dynamic.flattened(s.losses, tau):
        y = twin.point
        x = X.project(y)
        decisions.append(x)
        outside += np.linalg.norm(y - x) > 1e-3
        twin.update(dynamic.surrogate_gradient(f.gradient(x), y, x, 1e-12, tau))
    assert outside > 10
    inner = pool_of if kind == "pool" else AdaGradDescent
    assert_plays(lambda: tw.OneProjection(X, lambda Y: tw.Alone(inner(Y))), s.losses, np.array(decisions))


# -------------------------------------------------------------------------------------------------------------- bound


def gradients(rng, horizon, d, kind, y=None):
    """Random, sparse, drifting ones; or at y the one that hurts most."""
    if kind == "against":
        return np.sign(y) + (y == 0)
    g = rng.standard_normal(d)
    if kind == "sparse":
        g *= rng.random(d) < 2.0 ** -np.arange(d)
    if kind == "drift":
        g += 2.0
    return g


def regret_and_bound(step, expert, horizon, kind, seed):
    """Of any `step(h) -> next point`, against the best point of the ball in hindsight."""
    rng, c = np.random.default_rng(seed), expert.domain.center
    y, G, paid = np.array(c), [], 0.0
    for _ in range(horizon):
        g = gradients(rng, horizon, len(c), kind, y - c)
        paid += g @ (y - c)
        G.append(g)
        y = step(g)
    G = np.array(G)
    best = -expert.domain.radius * np.linalg.norm(G.sum(axis=0))
    return paid - best, expert.regret_bound((G**2).sum(axis=0))


class Steps:
    """AdaGrad by the learner, or with something broken."""

    def __init__(self, expert, broken=None):
        self.learner, self.broken = tw.Alone(expert), broken
        self.twin = ref.AdaGrad(expert.domain.center, expert.domain.center, expert.domain.radius, expert.scale, 1e-8)

    def __call__(self, h):
        if self.broken is None:
            self.learner.update(h)
            return np.array(self.learner.decision)
        if self.broken == "uphill":
            self.twin.update(-h)
            return self.twin.point
        self.twin.squares = self.twin.squares + h**2  # nothing brings it back into the ball
        self.twin.point = self.twin.point - self.twin.scale * h / np.sqrt(1e-8 + self.twin.squares)
        return self.twin.point


@pytest.mark.parametrize("kind", ["random", "sparse", "drift", "against"])
def test_regret_is_within_its_bound(kind):
    @given(seed=seeds, horizon=st.integers(1, 150), scale=st.sampled_from([None, 0.1, 10.0]))
    def check(seed, horizon, scale):
        domain = tw.domains.Ball(4, radius=2.0, center=[1.0, 0.0, -1.0, 3.0])
        expert = AdaGradDescent(domain, scale=scale)
        regret, bound = regret_and_bound(Steps(expert), expert, horizon, kind, seed)
        assert regret <= bound * (1 + 1e-9)

    check()


@pytest.mark.parametrize(("broken", "kind"), [("uphill", "drift"), ("unbounded", "flip")])
def test_broken_variants_break_the_bound(broken, kind):
    """So the check above can fail. Unbounded, it runs far off and pays for the way back."""
    expert = AdaGradDescent(tw.domains.Ball(2), scale=1.0)
    if broken == "uphill":
        regret, bound = regret_and_bound(Steps(expert, broken), expert, 400, kind, 0)
    else:
        steps, y, paid, G = Steps(expert, broken), np.zeros(2), 0.0, []
        for t in range(2000):
            g = np.array([-1.0 if t < 1000 else 1.0, 0.0])
            paid += g @ y
            G.append(g)
            y = steps(g)
        regret = paid + np.linalg.norm(np.sum(G, axis=0))
        bound = expert.regret_bound((np.array(G) ** 2).sum(axis=0))
    assert regret > bound


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AdaGradDescent(tw.domains.Box(0.0, 1.0, shape=2)), "AdaGradDescent lives on a Ball.*OneProjection"),
        (lambda: AdaGradDescent(tw.domains.Ball(2), scale=0.0), "'scale' parameter of AdaGradDescent"),
        (lambda: AdaGradDescent(tw.domains.Ball(2), delta=-1.0), "'delta' parameter of AdaGradDescent"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_the_default_scale_makes_the_bound_smallest():
    domain, squares = tw.domains.Ball(3, radius=2.5), np.array([1.0, 4.0, 0.1])
    best = AdaGradDescent(domain).regret_bound(squares)
    for factor in (0.7, 0.99, 1.01, 1.5):
        assert AdaGradDescent(domain, scale=factor * math.sqrt(2) * 2.5).regret_bound(squares) > best
