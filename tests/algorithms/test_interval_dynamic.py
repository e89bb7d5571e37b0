"""Interval dynamic regret: Algorithm 3, AOA and its efficient form against twins, identities, counts and the lemma."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import thalweg as tw
from tests.twins import adaptive, dynamic, interval
from tests.twins.adaptive import mu
from tests.worlds import CountedLoss, CountedSet, fixed, flat_polytope, slow_where, tau_of
from thalweg.algorithms import pools, thresholds
from thalweg.learners.one_projection import surrogate_gradient

T, G, L = 120, 12.0, 2.0


DOMAINS = {
    "ball": lambda: tw.domains.Ball(3, radius=1.5),
    "off-centre ball": lambda: tw.domains.Ball(3, radius=1.0, center=[1.0, -2.0, 0.5]),
    "ellipsoid": lambda: tw.domains.Ellipsoid([1.0, 2.0, 5.0], bound=2.0),
    "simplex": lambda: tw.domains.Simplex(3, total=2.0),
    "flat polytope": flat_polytope,
}


def stream(domain, rounds=T, seed=0, jumps=4, noise=0.0):
    """Squared losses with a planted model that jumps; ||a|| = 1, so L = 1."""
    rng = np.random.default_rng(seed)
    models = np.array([domain.project(domain.center + rng.standard_normal(3) * domain.radius) for _ in range(jumps)])
    u = np.repeat(models, math.ceil(rounds / jumps), axis=0)[:rounds]
    a = rng.standard_normal((rounds, 3))
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    b = np.einsum("td,td->t", a, u) + noise * rng.standard_normal(rounds)
    return tw.problems.LinearRegression(a, b, comparators=u)


def test_thresholds_of_theorem_5():
    assert_allclose(
        [thresholds.interval_dynamic(m, T=1000, G=1, L=1, R=1, N=12) for m in (1, 2, 10)],
        [5351.5985, 6377.5042, 8945.6462],
        rtol=1e-6,
    )
    assert pools.small_loss_pool(1000, 1.0, 1.0, 1.0, 1.0).size == 12
    for m in (1, 3, 50):
        expected = interval.interval_threshold(m, 500, 3.0, 2.0, 1.5, 9)
        assert_allclose(thresholds.interval_dynamic(m, T=500, G=3.0, L=2.0, R=1.5, N=9), expected, rtol=1e-13)


# ------------------------------------------------------------------ twins


@pytest.mark.parametrize("restart", ["center", "current"])
@pytest.mark.parametrize("threshold", [0.02, 0.5, 5.0])
@pytest.mark.parametrize("name", DOMAINS)
def test_algorithm_3_equals_its_twin(name, threshold, restart):
    X = DOMAINS[name]()
    problem = stream(X, noise=0.1)
    make = lambda: tw.EfficientIntervalDynamic(X, T, G, L, threshold=fixed(threshold), restart=restart)  # noqa: E731
    learner = make()
    R = learner.surrogate.radius
    etas = dynamic.small_loss_pool(T, R, X.diameter, L, G * X.diameter)
    project_y, tau = learner.surrogate.project, tau_of(X)
    twin = adaptive.efficient_adaptive(
        dynamic.flattened(problem, tau), X.project, X.center, R, gradient_bound=G, threshold=fixed(threshold),
        restart=restart, project_y=project_y, make_expert=interval.small_loss_expert(project_y, R, etas), tau=tau,
    )  # fmt: skip
    run = tw.play(learner, problem, decisions=True)
    assert_allclose(run.decisions, twin.decisions, rtol=0, atol=1e-9 * X.radius)
    assert learner.markers == twin.markers
    assert len(learner.markers) > 3 or threshold > 1
    step = make()
    for t, f in enumerate(problem):
        assert_allclose(step.decision, run.decisions[t], rtol=0, atol=1e-11 * X.radius)
        step.update(f.gradient(step.decision), f.value(step.decision))
    assert step.markers == learner.markers


@pytest.mark.parametrize("name", DOMAINS)
def test_efficient_aoa_equals_its_twin(name):
    X = DOMAINS[name]()
    problem = stream(X)
    run = tw.play(tw.EfficientAOA(X, gradient_bound=G), problem, decisions=True)
    tau = tau_of(X)
    losses = dynamic.flattened(problem, tau)
    twin = interval.efficient_aoa(
        losses, X.project, X.center, X.surrogate.radius, diameter=X.diameter, gradient_bound=G, tau=tau
    )
    assert_allclose(run.decisions, twin.decisions, rtol=0, atol=1e-9 * X.radius)


@pytest.mark.parametrize("gradients", ["own", "shared"])
@pytest.mark.parametrize("name", slow_where(lambda name: "ball" in name, [(name,) for name in DOMAINS]))
def test_aoa_equals_its_twin(name, gradients):
    X = DOMAINS[name]()
    problem = stream(X, rounds=60)
    make = lambda X: tw.AOA(X, gradient_bound=G, loss_bound=8.0, gradients=gradients)  # noqa: E731
    run = tw.play(make(X), problem, decisions=True)
    losses, D = dynamic.flattened(problem, tau_of(X)), X.diameter
    twin = interval.aoa(losses, X.project, X.center, diameter=D, gradient_bound=G, loss_bound=8.0, gradients=gradients)
    assert_allclose(run.decisions, twin.decisions, rtol=0, atol=1e-9 * X.radius)
    assert run.queries == tw.Queries(twin.projections, twin.gradient_queries, twin.value_queries)
    normals = None if X.flat == 0 else X._normals()
    slow = tw.domains.Custom(X.project, X.shape, X.center, X.radius, diameter=X.diameter, normals=normals)
    assert_allclose(tw.play(make(slow), problem, decisions=True).decisions, run.decisions, rtol=0, atol=1e-9)


# ------------------------------------------------------------------ special cases


@pytest.mark.parametrize("name", DOMAINS)
def test_one_marker_is_the_dynamic_learner(name):
    """With a threshold that is never reached there is one expert, Theorem 3's ensemble: the same decisions exactly."""
    X = DOMAINS[name]()
    problem = stream(X)
    interval = tw.play(tw.EfficientIntervalDynamic(X, T, G, L, threshold=fixed(1e9)), problem, decisions=True)
    dynamic = tw.play(tw.EfficientDynamic(X, T, G, L), problem, decisions=True)
    assert_allclose(interval.decisions, dynamic.decisions, rtol=0, atol=1e-13 * X.radius)


def test_a_pool_of_one_is_plain_gradient_descent():
    """An expert with one step size is OGD: the cover of such experts is the cover of OGDs."""
    X = DOMAINS["ball"]()
    problem = stream(X)
    parts = dict(meta=tw.metas.AdaptMLProd(2 * G * 1.5), threshold=fixed(0.3), nonnegative=True)
    one = tw.experts.Descent(X, 0.3)
    pool = tw.Cover(X, tw.experts.Pool([one], meta=tw.metas.Hedge(rate=7.0)), **parts)
    plain = tw.Cover(X, one, **parts)
    assert np.array_equal(
        tw.play(pool, problem, decisions=True).decisions, tw.play(plain, problem, decisions=True).decisions
    )
    assert len(pool.markers) > 3


# ------------------------------------------------------------------ counted


def test_queries_are_counted_where_they_happen():
    X = DOMAINS["ellipsoid"]()
    problem = stream(X, rounds=64)
    for make, expected in (
        (lambda Z: tw.EfficientIntervalDynamic(Z, 64, G, L, threshold=fixed(0.3)), (1, 1, 1)),
        (lambda Z: tw.EfficientAOA(Z, gradient_bound=G, horizon=64), (1, 1, 0)),
        (lambda Z: tw.AOA(Z, gradient_bound=G, loss_bound=8.0, horizon=64, gradients="own"), None),
    ):
        counted = CountedSet(X, diameter=X.diameter)
        learner = make(counted.domain)
        built, losses = counted.calls, [CountedLoss(f) for f in problem]
        for f in losses:
            learner.step(f)
        asked, gradients = learner.queries, sum(f.gradients for f in losses)
        if expected is not None:
            assert (counted.calls, gradients) == (64, 64)
            assert asked == tw.Queries(*(64 * n for n in expected))
        else:
            assert counted.calls - built == gradients == asked.gradients
            assert sum(f.values for f in losses) == asked.values
            # alive at t: levels 0..floor(log2 t), level k with the members of an Ader of horizon 2^k
            members = [pools.ader_pool(2**k, G, X.diameter).size for k in range(8)]
            assert asked.gradients == sum(sum(members[: t.bit_length()]) for t in range(1, 65))


# ------------------------------------------------------------------ the lemma before Theorem 5


def step_sizes(learner):
    """Of the members of every expert."""
    return np.array([member.step_size for member in learner.inner.level(0).members])


def covering_bound(m, t, N, R, smooth, F, P):
    """The paper's lemma on covering intervals, explicit, with R for D: expert m, comparators of loss F and length P."""
    S = 12 * R * math.sqrt(math.log(1 + 2 * m)) + 4 * R * mu(t) + 6 * R * math.sqrt(math.log(N))
    S += 3 * math.sqrt(2 * (5 * R**2 + 2 * R * P))
    return (
        S * math.sqrt(smooth * F)
        + 1.5 * smooth * S**2
        + 27 * G * R * math.log(1 + 2 * m)
        + 9 * G * R * mu(t)
        + 4.5 * math.sqrt(2 * (5 * R**2 + 2 * R * P))
        + 0.75 * (6 + G**2 * R**2) * math.sqrt(math.log(N))
    )


def covering_intervals(markers, rounds):
    """(m, first round, last round) of every expert: [s_m, s_{m + lowbit(m)} - 1]."""
    for m in range(1, len(markers) + 1):
        end = m + (m & -m)
        yield m, markers[m - 1], min(rounds, markers[end - 1] - 1 if end <= len(markers) else rounds)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", DOMAINS)
def test_the_covering_lemma_step_by_step(name, seed):
    """Data-dependent form, from the run itself: meta regret and base regret of every expert, at every time.

    Meta (Adapt-ML-Prod), in units of 2GR with V = sum r^2:  (3 sqrt(gamma) + mu_t) sqrt(1 + V) + 6 gamma + 2 mu_t.
    Base (Hedge, then gradient descent): 3 sqrt(ln N (1 + R^2 Q)) + G^2 R^2 sqrt(ln N)/2
      + min_j 5R^2/(2 eta_j) + R P/eta_j + eta_j Q/2, with Q = sum ||h||^2.
    """
    X = DOMAINS[name]()
    problem = stream(X, rounds=200, seed=seed, jumps=8, noise=0.05)
    learner = tw.EfficientIntervalDynamic(X, 200, G, L, threshold=fixed(0.3))
    R, etas, u = learner.surrogate.radius, step_sizes(learner), problem.comparators
    N = etas.size
    regret, meta, base, V, Q, P, born_at = {}, {}, {}, {}, {}, {}, {}
    checked = 0
    for t, f in enumerate(problem, start=1):
        x, y = learner.decision, learner.inner.decision
        g = f.gradient(x)
        h = surrogate_gradient(g, y, x, tol=1e-12)
        for m, point in zip(learner.inner.born.tolist(), learner.inner.points, strict=True):
            first = born_at.setdefault(m, t) == t
            for book in (regret, meta, base, V, Q, P):
                book.setdefault(m, 0.0)
            regret[m] += f.value(x) - f.value(u[t - 1])
            meta[m] += h @ (y - point)
            base[m] += h @ (point - u[t - 1])
            V[m] += (h @ (y - point) / (2 * G * R)) ** 2
            Q[m] += h @ h
            P[m] += 0.0 if first else np.linalg.norm(u[t - 1] - u[t - 2])
            gamma = math.log(1 + 2 * m)
            meta_bound = 2 * G * R * ((3 * math.sqrt(gamma) + mu(t)) * math.sqrt(1 + V[m]) + 6 * gamma + 2 * mu(t))
            base_bound = (
                3 * math.sqrt(math.log(N) * (1 + R**2 * Q[m]))
                + G**2 * R**2 * math.sqrt(math.log(N)) / 2
                + (5 * R**2 / (2 * etas) + R * P[m] / etas + etas * Q[m] / 2).min()
            )
            assert meta[m] <= meta_bound
            assert base[m] <= base_bound
            assert regret[m] <= meta[m] + base[m] + 1e-9
            checked += 1
        learner.update(g, f.value(x))
    assert len(learner.markers) > 8
    assert checked > 200


@pytest.mark.parametrize("seed", range(3))
def test_the_covering_lemma_in_closed_form(seed):
    X = DOMAINS["ellipsoid"]()
    rounds = 5000
    problem = stream(X, rounds=rounds, seed=seed, jumps=25)
    learner = tw.EfficientIntervalDynamic(X, rounds, G, 1.0, threshold=fixed(1.0))
    run = tw.play(learner, problem)
    assert len(learner.markers) > 8
    R, N = learner.surrogate.radius, step_sizes(learner).size
    assert worst_ratio(run.losses, problem, learner.markers, R, N) <= 1


def worst_ratio(losses, problem, markers, R, N):
    """The largest regret / bound over all covering intervals, against the planted path (its loss is 0)."""
    u, worst = problem.comparators, -np.inf
    for m, first, last in covering_intervals(markers, len(losses)):
        inside = slice(first - 1, last)
        F = float(problem.losses_of(u)[inside].sum())
        P = float(np.linalg.norm(np.diff(u[inside], axis=0), axis=1).sum())
        worst = max(worst, (losses[inside].sum() - F) / covering_bound(m, last, N, R, 1.0, F, P))
    return worst


def test_a_learner_that_runs_the_wrong_way_breaks_the_lemma():
    """The lemma's check can fail: uphill on noiseless losses, the regret is linear and the bound is not."""

    class Uphill(tw.EfficientIntervalDynamic):
        def update(self, gradient, loss=None):
            super().update(-gradient, loss)

        def _rounds(self, *args):
            return None  # no compiled run: it would not go through `update`

    X = DOMAINS["ellipsoid"]()
    rounds = 20_000
    problem = stream(X, rounds=rounds, jumps=1)
    learner = Uphill(X, rounds, G, 1.0, threshold=fixed(1e9))
    run = tw.play(learner, problem)
    R, N = learner.surrogate.radius, step_sizes(learner).size
    assert worst_ratio(run.losses, problem, learner.markers, R, N) > 1


def test_it_recovers_after_every_jump():
    """On a noiseless stream that jumps, the loss right before a jump is small: the learner had caught up each time."""
    X = DOMAINS["ball"]()
    problem = stream(X, rounds=4000, jumps=8)
    run = tw.play(tw.EfficientIntervalDynamic(X, 4000, G, 1.0, threshold=fixed(1.0)), problem)
    stages = run.losses.reshape(8, 500)
    assert stages[:, 400:].mean() < 0.02 * stages[1:, :10].mean()
