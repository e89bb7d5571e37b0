"""Scream and EfficientScream: the published constants, a plain twin, its bound with every constant, counted queries.

The bound (7) of `thalweg.algorithms.scream`, for linear losses g_t with ||g_t|| <= G on a set W of diameter D:

(A) A descent with step eta: sum <g_t, w_{t,i} - u_t> <= (D^2 + 2 D P)/(2 eta) + eta G^2 T/2, from ||w - u|| <= D; and
    it moves at most eta G a round, since projecting brings no two points farther apart.
(B) Hedge with rate eps on losses of range r <= (G + lambda) D: sum <p_t - e_i, l_t> <= ln(1/p_i)/eps + eps r^2 T/8.
(C) w_t - w_{t-1} = sum_i p_{t,i} (w_{t,i} - w_{t-1,i}) + sum_i (p_{t,i} - p_{t-1,i}) w_{t-1,i}. The second part is at
    most (D/2) ||p_t - p_{t-1}||_1, and ||p_t - p_{t-1}||_1 <= eps r/2 (along the path from p_{t-1} to p_t its
    derivative is eps times the mean absolute deviation of the losses, at most half their range).
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from tests.twins import dynamic as ref
from tests.worlds import THIN_SETS, CountedLoss, CountedSet, flat_polytope, tau_of
from thalweg.algorithms.scream import EfficientScream, Scream
from thalweg.losses import Linear

DOMAINS = {name: make for name, make in THIN_SETS.items() if name != "interval"} | {
    "flat polytope": flat_polytope,
    "matrices": lambda: tw.domains.SpectralBalls((2, 2, 3), [1.0, 0.5]),
    "blocks": lambda: tw.domains.ProductOfBalls((2, 2), [1.0, 0.3]),
}
every_domain = pytest.mark.parametrize("name", DOMAINS)


def gradients(domain, horizon, bound, rng, kind="random"):
    """T gradients of length at most G; "jumps": one direction for a while; "turns": a direction that flips a lot."""
    g = rng.standard_normal((horizon, domain.dim))
    if kind == "jumps":
        g = np.repeat(g[: -(-horizon // 10)], 10, axis=0)[:horizon]
    if kind == "turns":
        g = g[:1] * np.where(np.arange(horizon) % 3, 1.0, -1.0)[:, None]
    g *= bound / np.maximum(np.linalg.norm(g, axis=1, keepdims=True), 1e-300)
    return (g * rng.uniform(0.2, 1.0, (horizon, 1))).reshape(horizon, *domain.shape)


def twin(G_t, project, center, D, T, G, price):
    """Scream in plain NumPy, as its box: weights multiplied every round."""
    N = math.ceil(math.log2(1 + T) / 2) + 1
    eta = [2**i * math.sqrt(D**2 / ((price * G + G**2) * T)) for i in range(N)]
    p = np.array([(N + 1) / N / ((i + 1) * (i + 2)) for i in range(N)])
    eps = math.sqrt(2 / ((2 * price + G) * (price + G) * D**2 * T))
    now = [project(center) for _ in range(N)]
    before = [w.copy() for w in now]
    decisions, g = [], None
    for see in G_t:
        decisions.append(sum(q * w for q, w in zip(p, now, strict=True)))
        g = see(decisions[-1])
        losses = np.array([np.vdot(g, w) + price * np.linalg.norm(w - old) for w, old in zip(now, before, strict=True)])
        p = p * np.exp(-eps * (losses - losses.min()))
        p /= p.sum()
        before, now = now, [project(w - step * g) for w, step in zip(now, eta, strict=True)]
    return np.array(decisions), p, np.array(now)


def played(learner, G_t):
    decisions = []
    for g in G_t:
        decisions.append(learner.decision)
        learner.update(g)
    return np.array(decisions)


# --------------------------------------------------------------------------------------------------- constants, twins


def test_published_constants():
    learner = Scream(tw.domains.Ball(2), horizon=1000, gradient_bound=4.0, switching_cost=9.0)
    assert learner.step_sizes.size == 6
    assert learner.step_sizes[0] == pytest.approx(0.00877058019, rel=1e-6)
    assert np.allclose(np.diff(np.log2(learner.step_sizes)), 1)
    assert learner.meta_rate == pytest.approx(0.00132221471, rel=1e-6)
    i = np.arange(1, 7)
    assert np.allclose(learner.prior, 7 / 6 / (i * (i + 1)), rtol=1e-14)
    assert learner.prior.sum() == pytest.approx(1, abs=1e-14)


@every_domain
@pytest.mark.parametrize("kind", ["random", "jumps", "turns"])
def test_scream_is_its_box(name, kind):
    X, T, G, price = DOMAINS[name](), 60, 3.0, 5.0
    given_ = gradients(X, T, G, np.random.default_rng(1), kind)
    learner = Scream(X, T, G, switching_cost=price)
    decisions = played(learner, given_)
    tau = tau_of(X)
    slow, p, points = twin([lambda x, g=g: tau(g) for g in given_], X.project, X.center, X.diameter, T, G, price)
    assert np.abs(decisions - slow).max() < 1e-12 * max(1, np.abs(slow).max())
    assert np.abs(learner.weights - p).max() < 1e-12
    assert np.abs(learner.points - points).max() < 1e-12 * max(1, np.abs(points).max())


@every_domain
@pytest.mark.parametrize("kind", ["random", "jumps"])
def test_efficient_scream_is_scream_on_surrogate_gradients(name, kind):
    """Section 2.2 by hand around the twin: x = Pi_X(y), v = (y - x)/||y - x||, h = g - min(0, <g, v>) v."""
    X, T, G, price = DOMAINS[name](), 60, 3.0, 5.0
    Y, tau = X.surrogate, tau_of(X)
    given_ = gradients(X, T, G, np.random.default_rng(2), kind)
    shown, outside = [], 0

    def see(g):
        def surrogate(y):
            nonlocal outside
            x = X.project(y)
            shown.append(x)
            outside += np.linalg.norm(y - x) > 1e-6
            return ref.surrogate_gradient(tau(g.ravel()), y.ravel(), x.ravel(), 1e-9, tau).reshape(g.shape)

        return surrogate

    twin([see(g) for g in given_], Y.project, Y.center, Y.diameter, T, G, price)
    decisions = played(EfficientScream(X, T, G, switching_cost=price), given_)
    assert np.abs(decisions - np.array(shown)).max() < 1e-9 * max(1, np.abs(decisions).max())
    assert outside or X.surrogate is X or kind == "random"  # the reduction had something to do


@pytest.mark.parametrize("name", ["ball", "ellipsoid", "blocks"])
def test_without_a_price_it_is_an_ensemble(name):
    X, T, G = DOMAINS[name](), 50, 2.0
    scream = Scream(X, T, G, switching_cost=0.0)
    plain = tw.Ensemble(X, scream.step_sizes, prior=scream.prior, meta_rate=scream.meta_rate)
    given_ = gradients(X, T, G, np.random.default_rng(3))
    assert np.abs(played(scream, given_) - played(plain, given_)).max() < 1e-13


def test_a_price_moves_weight_to_those_who_sit_still():
    X, T, G = tw.domains.Ball(2), 100, 1.0
    given_ = gradients(X, T, G, np.random.default_rng(4), "turns")
    shares = []
    for price in (0.0, 10.0):
        learner = Scream(X, T, G, switching_cost=price)
        fast = tw.Ensemble(X, learner.step_sizes, prior=learner.prior, meta_rate=learner.meta_rate)
        played(learner, given_)
        played(fast, given_)
        shares.append(learner.weights[-1] / fast.weights[-1])  # with the price, and without it
    assert shares[0] == pytest.approx(1, abs=1e-12)
    assert shares[1] < 0.6


# ------------------------------------------------------------------------------------------------------------- counts


def test_projections_are_counted_by_the_set():
    exact, T = tw.domains.SpectralBalls((2, 2, 3), [1.0, 0.5]), 40
    f = CountedLoss(Linear(np.ones((2, 2, 3)) / 4))
    for make, each in ((Scream, 4), (EfficientScream, 1)):
        counted = CountedSet(exact)
        learner = make(counted.domain, T, 1.0, switching_cost=2.0)
        before = counted.calls  # of the starting point
        f.gradients = 0
        for _ in range(T):
            learner.step(f)
        assert counted.calls - before == each * T
        assert f.gradients == T
        assert learner.queries.gradients == T
        assert learner.queries.projections - (make is Scream) == each * T


# -------------------------------------------------------------------------------------------------------------- bound


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    T=st.integers(1, 200),
    name=st.sampled_from(list(DOMAINS)),
    kind=st.sampled_from(["random", "jumps", "turns"]),
    price=st.sampled_from([0.0, 0.3, 3.0, 100.0]),
    efficient=st.booleans(),
)
def test_regret_with_the_price_of_moving_is_within_its_bound(seed, T, name, kind, price, efficient):
    rng, X, G = np.random.default_rng(seed), DOMAINS[name](), 2.0
    learner = (EfficientScream if efficient else Scream)(X, T, G, switching_cost=price)
    g = gradients(X, T, G, rng, kind)
    w = played(learner, g)
    jumps = np.sort(rng.integers(0, T, 3))
    # the best point of every stretch, which is where -sum g points to
    u = np.empty_like(w)
    for part in np.split(np.arange(T), jumps):
        if part.size:
            u[part] = X.project(X.center - 1e3 * X.radius * g[part].sum(axis=0))
    regret = np.vdot(g, w - u)
    moved = np.linalg.norm(np.diff(w, axis=0).reshape(T - 1, -1), axis=1).sum() if T > 1 else 0.0
    P = tw.regret.path_length(u)
    assert regret + price * moved <= learner.regret_bound(P) * (1 + 1e-9)


def test_the_bound_is_the_formula():
    T, G, price, P = 100, 2.0, 3.0, 4.0
    learner = Scream(tw.domains.Ball(2), T, G, switching_cost=price)  # D = 2
    D, eps = 2.0, math.sqrt(2 / (8 * 5 * 4 * 100))
    members = [
        (D**2 + 2 * D * P) / (2 * eta) + eta * (G**2 / 2 + price * G) * T + math.log(1 / p) / eps
        for eta, p in zip(learner.step_sizes, learner.prior, strict=True)
    ]
    assert learner.regret_bound(P) == pytest.approx(eps * 5 * 11 * 4 * T / 8 + min(members), rel=1e-12)


def test_a_loss_with_memory():
    """f_t(w_{t-1}, w_t) = |w_t - z_t|/2 + 2 |w_t - w_{t-1}|, z_t jumping: far below the cost of ignoring the price."""
    rng, T = np.random.default_rng(0), 2000
    z = np.repeat(rng.uniform(-1, 1, 10), T // 10) + np.where(np.arange(T) % 2, 0.8, -0.8)
    X = tw.domains.Box([-2.0], [2.0])
    total = {}
    for name, learner in {
        "scream": Scream(X, T, 0.5, switching_cost=2.0),
        "ignorant": tw.OGD(X, step_size=0.5),
    }.items():
        w = []
        for target in z:
            w.append(learner.decision[0])
            learner.update([0.5 * np.sign(learner.decision[0] - target)])
        total[name] = np.abs(np.array(w) - z).sum() / 2 + 2 * np.abs(np.diff(w)).sum()
    assert total["scream"] < 0.6 * total["ignorant"]
