"""The theorems of the adaptive-regret family as tests: every constant explicit, on every interval the proofs speak of.

Notation. Y lies in the ball of radius R about c, X in Y. g_t = grad f_t(x_t), h_t the surrogate gradient fed to the
ensemble on Y, y_t its decision, y_{t,m} that of the expert born at marker m, which lives on I = [s_m, s_{m + lowbit(m)}
- 1]. Sums run from s_m to any t in I. Theorem 1: sum f(x) - f(u) <= sum <g, x - u> <= sum <h, y - u> for u in X.

(M) Meta. r = <h, y - y_m>/(2GR) is in [-1, 1], since ||h|| <= G and the diameter of Y is at most 2R. Let gamma = ln(1 +
    2m), mu_t = ln(1 + (1 + ln(1 + t))/(2e)), V = sum r^2. Adapt-ML-Prod keeps ln w_m >= eta' sum (r - eta r^2), as
    ln(1 + z) >= z - z^2 for z >= -1/2. The weights of the at most 2m experts born before this one dies add up to at
    most (1 + 2m) exp(mu_t): a birth adds 1, a round of an expert (eta/eta' - 1)/e, and those are (1 + ln(1 + t))/(2e)
    for all its rounds together. So
        sum r <= sum eta r^2 + (gamma + mu_t)/eta' <= (3 sqrt(gamma) + mu_t) sqrt(1 + V) + 6 gamma + 2 mu_t.
(B) Base. eta_t = R/sqrt(delta + Q_t), Q_t = sum ||h||^2 with h_t in it. With ||y_m - u|| <= 2R,
        sum <h, y_m - u> <= 4R^2/(2 eta_t) + sum (eta/2) ||h||^2 <= 3R sqrt(delta + Q_t) <= 4R sqrt(delta + Q_t)
    for every u in Y; the paper has the 4.
(C) The covering-interval lemma in terms of the gradients is 2GR (M) + (B).
(F) In terms of F^x = sum f(x): V (2GR)^2 <= 4R^2 Q and Q <= sum ||g||^2 <= 4 L F^x (f >= 0 smooth: even 2 L F^x). With
    S = 3 sqrt(gamma) + mu_t + 2,  a = 4 R S sqrt(L)  and  b = 18 GR gamma + 6 GR mu_t + 4 R sqrt(delta),
        F^x - F^u <= a sqrt(F^x) + b.
    (2GR (3 sqrt(gamma) + mu) + 12 GR gamma + 4 GR mu <= 18 GR gamma + 6 GR mu, as gamma >= ln 3 > 1.)
(U) In terms of F^u: solve (F) for F^x. It is at most a sqrt(F^u) + (3/2)(a^2 + b), the paper's second bound with S for
    its sqrt(gamma) + mu + 2: the printed one drops the factor 3 on its way.
(T) Thresholds: a sqrt(F^u) <= F^u + a^2/4 gives F^x <= 2 F^u + (7/4) a^2 + (3/2) b. With C_m = (7/2) a^2 + 3 b =
    56 R^2 L S^2 + 54 GR gamma + 18 GR mu + 12 R sqrt(delta), a unit interval with F^x > C_m has F^u >= C_m/4.
"""

import functools
import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

import thalweg as tw
from tests.twins import adaptive as ref
from tests.twins import dynamic as streams
from tests.worlds import THIN_SETS, Distance, examples, tau_of

DOMAINS = THIN_SETS
STYLES = ("abrupt", "gradual", "still")
SMOOTH = ("squared", "noiseless")
THRESHOLDS = {
    "every round": lambda s: lambda m: 1e-300,
    "often": lambda s: lambda m: 0.02 * s.loss_bound,
    "seldom": lambda s: lambda m: 0.5 * s.loss_bound,
    "growing": lambda s: lambda m: 0.02 * s.loss_bound * math.log(1 + 2 * m),
}

seeds = st.integers(0, 2**32 - 1)
horizons = st.integers(1, 160)
domains = st.sampled_from(list(DOMAINS))
kinds = st.sampled_from([*streams.STREAMS, "against"])
styles = st.sampled_from(STYLES)
thresholds = st.sampled_from(list(THRESHOLDS))
restarts = st.sampled_from(["center", "current"])


def setting(domain, kind, horizon, seed, style="abrupt"):
    """A domain and a stream on it; "against" is an adversary that always pushes away from where the learner stands."""
    x, rng = DOMAINS[domain](), np.random.default_rng(seed)
    if kind != "against":
        return x, streams.make_stream(kind, x, horizon, rng, style, scale=float(rng.choice([0.3, 1.0, 4.0])))
    axes = streams.unit(rng.normal(size=(horizon, x.dim)))

    def against(axis):
        def loss(decision):
            slope = math.copysign(1.0, axis @ (decision - x.center)) * axis
            return streams.Linear(slope, float(x.radius - slope @ x.center))  # in [0, 2 radius] on X

        return loss

    planted = np.tile(x.center, (horizon, 1))
    return x, streams.Stream([against(axis) for axis in axes], planted, 1.0 + 1e-9, 2 * x.radius, None)


def adaptive(x, stream, threshold, horizon, **more):
    return tw.EfficientAdaptive(
        x, horizon, stream.gradient_bound, stream.smoothness or 1.0, threshold=THRESHOLDS[threshold](stream), **more
    )


def play(learner, losses):
    """Everything that happened; `experts[m]` are the rounds (from 0) and points of the expert born at marker m.

    In a geometric cover several start at one marker and move as one: together they are the longest-lived of them.
    """
    inner = getattr(learner, "inner", learner)
    tau = tau_of(learner.domain) if learner.flattens else streams.everything  # what it makes of a gradient on a flat
    run = SimpleNamespace(x=[], g=[], f=[], y=[], h=[], losses=[], experts={})
    for t, f in enumerate(losses):
        x = np.array(learner.decision)
        loss = f(x) if callable(f) else f
        g = tau(loss.gradient(x))
        y = np.array(inner.decision) if inner is not learner else x
        run.x.append(x)
        run.y.append(y)
        run.g.append(g)
        run.h.append(streams.surrogate_gradient(g, y, x, 1e-12, tau) if inner is not learner else g)
        run.f.append(loss.value(x))
        run.losses.append(loss)
        points = inner.points
        for k, m in enumerate(inner.born.tolist()):
            rounds = run.experts.setdefault(m, {})
            rounds[t] = points[k]
        learner.step(loss)
    for name in ("x", "g", "f", "y", "h"):
        setattr(run, name, np.array(getattr(run, name)))
    run.experts = {m: (np.array(list(rounds)), np.array(list(rounds.values()))) for m, rounds in run.experts.items()}
    run.markers = learner.markers
    return run


def assert_at_most(values, bounds):
    """Elementwise, up to rounding."""
    values, bounds = np.broadcast_arrays(np.asarray(values, dtype=float), np.asarray(bounds, dtype=float))
    over = values - bounds - 1e-9 * (1 + np.abs(bounds))
    assert (over <= 0).all(), f"{values.ravel()[over.argmax()]} > {bounds.ravel()[over.argmax()]}"


def worst(h, points, domain):
    """For every prefix the largest sum <h_t, p_t - u> over u in the domain, a ball or a box: its far end is known."""
    done = np.cumsum(np.sum(h * points, axis=1))
    slope = np.cumsum(h, axis=0)
    if isinstance(domain, tw.domains.Ball):
        return done - slope @ domain.center + domain.radius * np.linalg.norm(slope, axis=1)
    lower, upper = domain.project(domain.center - 1e9), domain.project(domain.center + 1e9)
    return done - np.sum(np.minimum(slope * lower, slope * upper), axis=1)


def data(losses):
    """(A, b) of squared losses (<a, x> - b)^2 / 2."""
    return np.array([f.features for f in losses]), np.array([f.label for f in losses])


def total(u, A, b):
    return float(np.sum((A @ u - b) ** 2)) / 2


def best_fixed(x_set, start, A, b, steps=150):
    """argmin over X of the sum of squared losses, by accelerated projected gradient with restarts."""
    H, q = A.T @ A, A.T @ b
    L = max(np.linalg.eigvalsh(H)[-1], 1e-12)
    u, z, k = x_set.project(start), x_set.project(start), 1.0
    for _ in range(steps):
        new = x_set.project(z - (H @ z - q) / L)
        if (z - new) @ (new - u) > 0:
            k = 1.0
        following = (1 + math.sqrt(1 + 4 * k * k)) / 2
        z, u, k = new + (k - 1) / following * (new - u), new, following
    return u


# ---------------------------------------------------------------------------------------------------- explicit bounds


def mu(t):
    return np.log(1 + (1 + np.log(1 + np.asarray(t, dtype=float))) / (2 * math.e))


def meta_bound(m, t, V):
    """(M), in units of 2GR."""
    gamma = math.log(1 + 2 * m)
    return (3 * math.sqrt(gamma) + mu(t)) * np.sqrt(1 + V) + 6 * gamma + 2 * mu(t)


def covering_bound(m, t, V, Q, G, R, delta):
    """(C)."""
    return 2 * G * R * meta_bound(m, t, V) + 4 * R * np.sqrt(delta + Q)


def small_loss_constants(m, t, G, R, L, delta):
    """a and b of (F)."""
    gamma = math.log(1 + 2 * m)
    a = 4 * R * (3 * math.sqrt(gamma) + mu(t) + 2) * math.sqrt(L)
    return a, 18 * G * R * gamma + 6 * G * R * mu(t) + 4 * R * math.sqrt(delta)


def small_loss_bound(m, t, comparator, G, R, L, delta):
    """(U), solved exactly: F^x = F^u + a sqrt(F^x) + b."""
    a, b = small_loss_constants(m, t, G, R, L, delta)
    root = (a + np.sqrt(a * a + 4 * (comparator + b))) / 2
    return root**2 - comparator


def printed_small_loss_bound(m, t, comparator, G, R, L, delta):
    """(U) as in the paper, with the 3 it needs."""
    gamma = math.log(1 + 2 * m)
    S = 3 * math.sqrt(gamma) + mu(t) + 2
    return (
        4 * R * S * np.sqrt(L * comparator)
        + 27 * G * R * gamma
        + 9 * G * R * mu(t)
        + 6 * R * math.sqrt(delta)
        + 24 * R**2 * L * S**2
    )


# ---------------------------------------------------------------------- EfficientAdaptive, on every covering interval


def check_covering_intervals(x_set, y_set, stream, run, delta=1.0):
    """(M), (B), (C) for all comparators at once and every prefix; (F), (U) where the losses are smooth."""
    G, R = stream.gradient_bound, y_set.radius
    for m, (rounds, points) in run.experts.items():
        first, last = rounds[0], rounds[-1] + 1
        assert run.markers[m - 1] == first + 1
        np.testing.assert_array_equal(rounds, np.arange(first, last))
        t = rounds + 1
        h, y = run.h[first:last], run.y[first:last]
        r = np.sum(h * (y - points), axis=1) / (2 * G * R)
        assert np.abs(r).max() <= 1 + 1e-9
        V, Q = np.cumsum(r**2), np.cumsum(np.sum(h**2, axis=1))
        assert_at_most(np.cumsum(r), meta_bound(m, t, V))  # (M)
        base = worst(h, points, y_set)
        assert_at_most(base, 3 * R * np.sqrt(delta + Q))  # (B)
        limit = covering_bound(m, t, V, Q, G, R, delta)
        assert_at_most(worst(h, y, y_set), limit)  # (C)
        planted = stream.planted[first:last]
        for u in (planted[0], planted[len(planted) // 2], planted[-1]):
            linear = np.cumsum(np.sum(run.g[first:last] * (run.x[first:last] - u), axis=1))
            assert_at_most(linear, np.cumsum(np.sum(h * (y - u), axis=1)))  # Theorem 1
            assert_at_most(linear, limit)
    if stream.smoothness is not None:
        check_small_loss(x_set, y_set, stream, run, delta)


def check_small_loss(x_set, y_set, stream, run, delta):
    G, R, L = stream.gradient_bound, y_set.radius, stream.smoothness
    features, labels = data(stream.losses)
    for m, (rounds, _) in run.experts.items():
        first, last = rounds[0], rounds[-1] + 1
        A, b, t = features[first:last], labels[first:last], last
        paid = run.f[first:last].sum()
        assert_at_most(np.sum(run.g[first:last] ** 2), 2 * L * paid)
        rivals = [stream.planted[first], stream.planted[last - 1], x_set.center]
        if len(rounds) >= 4:  # on shorter intervals hardly anything can go wrong, and there are many
            rivals.append(best_fixed(x_set, stream.planted[first], A, b))
            assert total(rivals[-1], A, b) <= min(total(u, A, b) for u in rivals) + 1e-6 * stream.loss_bound
        slope, constant = small_loss_constants(m, t, G, R, L, delta)
        for u in rivals:
            comparator = total(u, A, b)
            assert_at_most(paid - comparator, slope * math.sqrt(paid) + constant)  # (F)
            limit = small_loss_bound(m, t, comparator, G, R, L, delta)
            assert_at_most(paid - comparator, limit)  # (U)
            assert_at_most(limit, printed_small_loss_bound(m, t, comparator, G, R, L, delta))


@given(
    seed=seeds,
    horizon=horizons,
    domain=domains,
    kind=kinds,
    style=styles,
    threshold=thresholds,
    restart=restarts,
    wide=st.booleans(),
)
@settings(max_examples=examples(20, slow=60))
def test_efficient_adaptive_on_every_covering_interval(seed, horizon, domain, kind, style, threshold, restart, wide):
    x_set, stream = setting(domain, kind, horizon, seed, style)
    y_set = tw.domains.Ball(x_set.dim, x_set.diameter, x_set.center) if wide else x_set.surrogate
    delta = float(np.random.default_rng(seed).choice([0.01, 1.0]))
    learner = adaptive(x_set, stream, threshold, horizon, restart=restart, surrogate=y_set, delta=delta)
    run = play(learner, stream.losses)
    check_covering_intervals(x_set, y_set, stream, run, delta)


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("kind", SMOOTH)
def test_efficient_adaptive_with_many_markers(domain, kind):
    x_set, stream = setting(domain, kind, 200, 5)
    learner = adaptive(x_set, stream, "often", 200)
    run = play(learner, stream.losses)
    assert len(run.experts) >= 8
    assert max(len(rounds) for rounds, _ in run.experts.values()) >= 16
    check_covering_intervals(x_set, x_set.surrogate, stream, run)


@pytest.mark.slow
@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize("kind", [*streams.STREAMS, "against"])
@pytest.mark.parametrize("domain", DOMAINS)
def test_long_runs_stay_under_the_bounds(domain, kind, threshold):
    x_set, stream = setting(domain, kind, 1000, 11)
    learner = adaptive(x_set, stream, threshold, 1000)
    check_covering_intervals(x_set, x_set.surrogate, stream, play(learner, stream.losses))


def test_the_solver_finds_the_best_fixed_point():
    """By its optimality condition, and against scipy where the set is a box, so that bounds are all it needs."""
    for domain in DOMAINS:
        x_set, stream = setting(domain, "squared", 40, 3)
        A, b = data(stream.losses)
        u = best_fixed(x_set, x_set.center, A, b, steps=300)
        np.testing.assert_allclose(x_set.project(u - 0.01 * A.T @ (A @ u - b)), u, rtol=0, atol=1e-7)
        assert total(u, A, b) == pytest.approx(sum(f.value(u) for f in stream.losses), rel=1e-12)
        if domain in ("box", "interval"):
            lower, upper = x_set.project(x_set.center - 1e9), x_set.project(x_set.center + 1e9)
            found = optimize.minimize(total, x_set.center, args=(A, b), bounds=list(zip(lower, upper, strict=True)))
            assert total(u, A, b) <= found.fun + 1e-9


# ---------------------------------------------------------------------- EfficientAdaptive, on all intervals of rounds


@pytest.mark.parametrize("threshold", ["often", "growing"])
@pytest.mark.parametrize("domain", ["ball", "box", "simplex"])
def test_efficient_adaptive_on_every_interval(domain, threshold):
    """Theorem 4 with its constants: [r, s] is the rest of a unit interval and a few covering intervals.

    Up to the first marker after r, the loss is at most C + B (B a bound on one loss, where the paper has GD). The rest
    is cut as in the proof, and (C) is added up.
    """
    horizon = 90
    x_set, stream = setting(domain, "squared", horizon, 8)
    learner = adaptive(x_set, stream, threshold, horizon)
    C = THRESHOLDS[threshold](stream)
    run = play(learner, stream.losses)
    G, R = stream.gradient_bound, x_set.surrogate.radius
    markers = [s - 1 for s in run.markers if s <= horizon]  # rounds from 0
    ends = ref.longest(ref.compact_cover(len(markers)))
    limit = {}  # limit[m][k]: (C) for the first k + 1 rounds of expert m
    for m, (rounds, points) in run.experts.items():
        h = run.h[rounds]
        r = np.sum(h * (run.y[rounds] - points), axis=1) / (2 * G * R)
        limit[m] = covering_bound(m, rounds + 1, np.cumsum(r**2), np.cumsum(np.sum(h**2, axis=1)), G, R, 1.0)

    A, b = data(stream.losses)
    rivals = [x_set.center, *stream.planted[::10]]
    for first, last in itertools.product(range(0, 80, 20), (10, 20, horizon)):
        rivals.append(best_fixed(x_set, x_set.center, A[first : first + last], b[first : first + last]))
    table = np.array([[f.value(u) for f in stream.losses] for u in rivals])
    regret = np.cumsum(run.f - table, axis=1)
    regret = np.concatenate([np.zeros((len(rivals), 1)), regret], axis=1)
    pieces = 0
    for r in range(horizon):
        p = next((m for m, s in enumerate(markers, start=1) if s >= r), None)
        for s in range(r, horizon):
            q = sum(start <= s for start in markers)
            bound = 0.0
            if p is None or markers[p - 1] > r:
                bound += C(q if p is None else p - 1) + stream.loss_bound
            if p is not None and p <= q:
                parts = ref.decompose(ends, p, q)
                pieces = max(pieces, len(parts))
                assert len(parts) <= math.ceil(math.log2(q - p + 2))
                for start, _ in parts:
                    rounds = run.experts[start][0]
                    bound += limit[start][min(s, rounds[-1]) - rounds[0]]
            assert_at_most((regret[:, s + 1] - regret[:, r]).max(), bound)
    assert pieces >= 3


# --------------------------------------------------------------------------------------------- thresholds of Theorem 4


@functools.cache
def noisy_stream(horizon):
    """Squared losses of order 1 around a point that jumps: enough loss for the proof's thresholds to fire."""
    rng = np.random.default_rng(1)
    features = streams.unit(rng.normal(size=(horizon, 2)))
    angle = rng.uniform(0, 2 * np.pi, size=40)[np.arange(horizon) * 40 // horizon]
    planted = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    labels = np.einsum("td,td->t", features, planted) + rng.choice([-1.0, 1.0], size=horizon)
    return features, labels


@pytest.mark.parametrize("scale", [1.0, 0.05])
def test_a_unit_interval_costs_every_comparator_a_quarter_of_its_threshold(scale):
    """(T), on markers that the derived thresholds set. Scaled ones show that it is the algorithm, not the constant."""
    horizon = 30_000
    features, labels = noisy_stream(horizon)
    x_set, G, L = tw.domains.Ball(2), 3.0, 1.0  # |residual| <= 1 + 1 + 1

    def threshold(m):
        return scale * ref.derived_threshold(m, horizon, G, L, 1.0, 1.0)

    learner = tw.EfficientAdaptive(x_set, horizon, G, L, threshold="proof" if scale == 1 else threshold)
    run = tw.play(learner, tw.problems.LinearRegression(features, labels))
    markers = learner.markers
    assert len(markers) >= 4
    least = 0.0
    for m, (start, end) in enumerate(itertools.pairwise(markers), start=1):
        rounds = slice(start - 1, end - 1)
        paid = run.losses[rounds].sum()
        assert paid > threshold(m)  # the loss of [s_m, s_{m+1} - 1] exceeds C_m ...
        assert run.losses[start - 1 : end - 2].sum() <= threshold(m)  # ... and without its last round it does not
        A, b = features[rounds], labels[rounds]
        comparator = total(best_fixed(x_set, x_set.center, A, b), A, b)
        assert comparator >= threshold(m) / 4
        least += comparator
    assert len(markers) <= 1 + 4 / threshold(1) * least  # Lemma 7: m = O(F)


@pytest.mark.parametrize("name", ["piecewise_stationary", "gradual"])
@pytest.mark.parametrize("threshold", ["paper", "proof"])
def test_on_the_experiment_of_the_paper_its_thresholds_never_fire(name, threshold):
    """So there Algorithm 2 is scale-free descent under the reduction: the first threshold is far above all the loss."""
    x_set = tw.problems.paper_ellipsoid()
    problem = getattr(tw.problems, name)(x_set, 20_000, rng=7)
    G, L = problem.gradient_bound(x_set), problem.smoothness
    learner = tw.EfficientAdaptive(x_set, 20_000, G, L, threshold=threshold)
    run = tw.play(learner, problem, decisions=True)
    assert learner.markers == [1]
    assert learner.active == 1
    formula = ref.printed_threshold if threshold == "paper" else ref.derived_threshold
    assert run.losses.sum() < formula(1, 20_000, G, L, 3.0, 1.0) / 10
    plain = tw.play(tw.OneProjection(x_set, lambda y: tw.SOGD(y, scale=y.radius)), problem, decisions=True)
    np.testing.assert_allclose(run.decisions, plain.decisions, rtol=0, atol=1e-9)
    # A threshold that knows how much loss there is does fire.
    lower = tw.EfficientAdaptive(x_set, 20_000, G, L, threshold=lambda m: run.losses.sum() / 10)
    tw.play(lower, problem)
    assert len(lower.markers) >= 3


# ------------------------------------------------------------------------------------------- the bounds can be broken


def two_stages(length, after):
    """On [-1, 1]: the slope is 1 for `length` rounds, then -1. f_t(x) = 1 + slope x, in [0, 2]."""
    slopes = np.ones((length + after, 1))
    slopes[length:] = -1.0
    return tw.problems.LinearLosses(slopes, np.ones(length + after))


def test_learners_that_never_restart_break_the_bound_on_a_covering_interval():
    """After N rounds of slope 1 a scale-free learner is at -1 with steps of at most R/sqrt(N).

    So on n rounds of slope -1 it pays 2 - k/sqrt(N) at least in the k-th, k = 0, 1, ..., where u = 1 pays 0: in all
    2n - n(n-1)/(2 sqrt(N)), which for n = 2 sqrt(N) is n. The bound (C), with V <= n and Q <= n, is of order sqrt(n).
    """
    N, n = 250_000, 1000
    x_set = tw.domains.Box([-1.0], [1.0])
    problem = two_stages(N, n + 50)
    learner = tw.EfficientAdaptive(x_set, N + n + 50, 1.0, 1.0, threshold=lambda m: 5.0)
    mine = tw.play(learner, problem).losses
    m = 1 + sum(s <= N for s in learner.markers)  # the first marker after the change
    start = learner.markers[m - 1] - 1
    assert N < start <= N + 10
    # Its expert must live for n rounds: then the bound speaks of this interval.
    length = next((s - 1 for i, s in enumerate(learner.markers, start=1) if i == m + (m & -m)), N + n + 50) - start
    length = min(length, n)
    assert length >= 900
    limit = covering_bound(m, N + n, length, length, 1.0, 1.0, 1.0)
    interval = slice(start, start + length)
    assert mine[interval].sum() <= limit / 4
    for static in (
        tw.SOGD(x_set, scale=1.0),
        tw.OneProjection(x_set, lambda y: tw.SOGD(y, scale=y.radius)),
        tw.OGD(x_set, horizon=4 * N, gradient_bound=1.0),  # steps D/(G sqrt(4N)) = 1/sqrt(N) throughout
        tw.EfficientAdaptive(x_set, N + n + 50, 1.0, 1.0, threshold=lambda m: 1e9),
    ):
        late = tw.play(static, problem).losses
        assert late[:N].sum() <= 3 * math.sqrt(N)  # over the first stage it is as good as it should be
        assert late[interval].sum() > 1.2 * limit, type(static).__name__
    lower = 2 * length - length * (length - 1) / (2 * math.sqrt(N)) - 10 * 2
    assert lower > 1.2 * limit


def test_learners_that_never_restart_break_the_bound_of_efficient_cbce():
    """The same, with the change at a power of 2, where a dyadic interval starts."""
    N, n = 2**18, 1024
    x_set = tw.domains.Box([-1.0], [1.0])
    problem = two_stages(N - 1, n)  # rounds N, ..., N + n - 1 have slope -1
    limit = coin_bound(n, N + n - 1, 1.0, 1.0)
    interval = slice(N - 1, N + n - 1)
    assert (
        tw.play(tw.EfficientCBCE(x_set, gradient_bound=1.0, horizon=N + n), problem).losses[interval].sum() <= limit / 4
    )
    for static in (tw.SOGD(x_set, scale=1.0), tw.OGD(x_set, horizon=4 * N, gradient_bound=1.0)):
        assert tw.play(static, problem).losses[interval].sum() > 1.2 * limit


def test_a_smaller_unit_of_feedback_breaks_the_meta_bound():
    """With GR for 2GR an expert may have r = -2, and 1 + eta r = 0: its weight is gone for ever.

    Two experts at the ends of [-1, 1], the combination at the other end from one of them, slope 1.
    """
    meta = ref.AdaptMLProd()
    meta.admit((2, 3))
    meta.feed({(2, 3): -1.0})
    assert meta.w[2, 3] == 0.5
    meta.feed({(2, 3): -2.0})
    assert meta.w[2, 3] == 0.0


# -------------------------------------------------------------------------------------- CBCE, on every dyadic interval


def coin_meta_bound(n, t):
    """sqrt(n (7 ln t + 5)): what the bettor of an expert of age n allows in round t, in units of the range.

    Wealth is never created: sum pi_J W_J <= sum pi_J < pi^2/6, as at most 1 + floor(log2 s) intervals start at s. The
    KT bettor has ln W >= z^2/(2n) - ln(n)/2 - ln(e sqrt(pi)), z >= sum r. With n <= J_1 <= t,
        z^2 <= 2n (ln(pi^2/6) + ln(e sqrt(pi)) + 2 ln J_1 + ln(1 + log2 J_1) + ln(n)/2) <= n (7 ln t + 5).
    """
    return np.sqrt(n * (7 * np.log(t) + 5))


def sharp_coin_meta_bound(n, first):
    inside = math.log(math.pi**2 / 6) + math.log(math.e * math.sqrt(math.pi))
    inside += 2 * math.log(first) + math.log(1 + math.floor(math.log2(first)))
    return np.sqrt(2 * n * (inside + np.log(n) / 2))


def coin_bound(n, t, G, R):
    """Meta in units of 2GR, and OGD with steps 2R/(G sqrt(age)): (3/2)(2R) G sqrt(n)."""
    return 2 * G * R * coin_meta_bound(n, t) + 3 * R * G * np.sqrt(n)


@given(seed=seeds, horizon=horizons, domain=domains, kind=kinds, style=styles, wide=st.booleans())
@settings(max_examples=examples(20, slow=40))
def test_efficient_cbce_on_every_dyadic_interval(seed, horizon, domain, kind, style, wide):
    x_set, stream = setting(domain, kind, horizon, seed, style)
    y_set = tw.domains.Ball(x_set.dim, x_set.diameter, x_set.center) if wide else x_set.surrogate
    learner = tw.EfficientCBCE(x_set, gradient_bound=stream.gradient_bound, surrogate=y_set)
    run = play(learner, stream.losses)
    G, R = stream.gradient_bound, y_set.radius
    for m, (rounds, points) in run.experts.items():
        t, n = rounds + 1, rounds - rounds[0] + 1
        assert t[0] == m
        h = run.h[rounds]
        r = np.cumsum(np.sum(h * (run.y[rounds] - points), axis=1)) / (2 * G * R)
        assert_at_most(r, sharp_coin_meta_bound(n, m))
        assert_at_most(sharp_coin_meta_bound(n, m), coin_meta_bound(n, t))
        assert_at_most(worst(h, points, y_set), 3 * R * G * np.sqrt(n))
        assert_at_most(worst(h, run.y[rounds], y_set), coin_bound(n, t, G, R))
        u = stream.planted[rounds[0]]
        linear = np.cumsum(np.sum(run.g[rounds] * (run.x[rounds] - u), axis=1))
        assert_at_most(linear, coin_bound(n, t, G, R))
    # And so on every interval [i 2^k, (i + 1) 2^k - 1] with the bound of its expert.
    for start, end in ref.geometric_cover(horizon):
        if end <= horizon:
            rounds = np.arange(start - 1, end)
            regret = worst(run.h[rounds], run.y[rounds], y_set)[-1]
            assert_at_most(regret, coin_bound(end - start + 1, end, G, R))


@given(seed=seeds, horizon=horizons, domain=domains, kind=kinds, cover=st.sampled_from(["geometric", "compact"]))
@settings(max_examples=25)
def test_cbce_with_own_gradients_on_every_dyadic_interval(seed, horizon, domain, kind, cover):
    """Meta in units of the range GD of the losses; OGD with D/(G sqrt(age)) on its own gradients: (3/2) D G sqrt(n)."""
    x_set, stream = setting(domain, kind, horizon, seed)
    learner = tw.CBCE(x_set, gradient_bound=stream.gradient_bound, cover=cover, gradients="own")
    run = play(learner, stream.losses)
    G, D = stream.gradient_bound, x_set.diameter
    for m, (rounds, points) in run.experts.items():
        t, n = rounds + 1, rounds - rounds[0] + 1
        values = np.array([run.losses[k].value(p) for k, p in zip(rounds, points, strict=True)])
        meta = np.cumsum(run.f[rounds] - values)
        assert_at_most(meta, G * D * sharp_coin_meta_bound(n, m))
        g = np.array([run.losses[k].gradient(p) for k, p in zip(rounds, points, strict=True)])
        u = streams.far_point(x_set, g.sum(axis=0))
        assert_at_most(np.sum(g * (points - u)), 1.5 * D * G * math.sqrt(n[-1]))
        paid = np.array([run.losses[k].value(u) for k in rounds])
        assert_at_most(np.cumsum(run.f[rounds] - paid), G * D * coin_meta_bound(n, t) + 1.5 * D * G * np.sqrt(n))


# ----------------------------------------------------------------------- SAOL and AFLH, on every interval of theirs


def saol_bound(n, t, G, D):
    """Of an interval of n rounds until round t: Prod in units of GD, and descent with the step D/(G sqrt n).

    Fewer than 2t experts have started by then, and their weights sum to at most as many, so with |r| <= 1
        ln(2t) >= sum ln(1 + eta r) >= eta sum r - eta^2 n,   eta = min(1/2, 1/sqrt n).
    """
    eta = min(1 / 2, 1 / math.sqrt(n))
    return G * D * (eta * n + math.log(2 * t) / eta) + D * G * math.sqrt(n)


@given(
    seed=seeds, horizon=horizons, domain=domains, kind=kinds, style=styles, gradients=st.sampled_from(["own", "shared"])
)
@settings(max_examples=examples(20, slow=200))
def test_saol_on_every_dyadic_interval(seed, horizon, domain, kind, style, gradients):
    x_set, stream = setting(domain, kind, horizon, seed, style)
    G, D = stream.gradient_bound, x_set.diameter
    run = play(tw.SAOL(x_set, gradient_bound=G, gradients=gradients), stream.losses)
    for start, end in ref.geometric_cover(horizon):
        if end <= horizon:
            rounds = slice(start - 1, end)
            for u in (streams.far_point(x_set, run.g[rounds].sum(axis=0)), stream.planted[start - 1]):
                regret = sum(f.value(x) - f.value(u) for f, x in zip(run.losses[rounds], run.x[rounds], strict=True))
                assert_at_most(regret, saol_bound(end - start + 1, end, G, D))


@given(
    seed=seeds, horizon=horizons, domain=domains, kind=kinds, style=styles, gradients=st.sampled_from(["own", "shared"])
)
@settings(max_examples=examples(20, slow=200))
def test_aflh_on_every_covering_interval(seed, horizon, domain, kind, style, gradients):
    """ln(t)/alpha + alpha c^2 n/8 to the expert, with c = GD, which loses sqrt(2) D sqrt(1 + G^2 n)."""
    x_set, stream = setting(domain, kind, horizon, seed, style)
    G, D = stream.gradient_bound, x_set.diameter
    run = play(tw.AFLH(x_set, horizon, gradient_bound=G, gradients=gradients), stream.losses)
    alpha = math.sqrt(8 * math.log(1 + horizon) / horizon) / (G * D)
    for m, (rounds, points) in run.experts.items():
        t, n = rounds + 1, rounds - rounds[0] + 1
        assert t[0] == m
        meta = np.log(t) / alpha + alpha * (G * D) ** 2 * n / 8
        if gradients == "own":
            values = np.array([run.losses[k].value(p) for k, p in zip(rounds, points, strict=True)])
            assert_at_most(np.cumsum(run.f[rounds] - values), meta)
        else:
            assert_at_most(np.cumsum(np.sum(run.g[rounds] * (run.x[rounds] - points), axis=1)), meta)
        for u in (streams.far_point(x_set, run.g[rounds].sum(axis=0)), stream.planted[rounds[0]]):
            paid = np.array([run.losses[k].value(u) for k in rounds])
            assert_at_most(np.cumsum(run.f[rounds] - paid), meta + D * np.sqrt(2 * (1 + G**2 * n)))


@given(seed=seeds, horizon=horizons, domain=domains, curvature=st.sampled_from([0.01, 1.0, 30.0]))
@settings(max_examples=examples(20, slow=200))
def test_aflh_is_logarithmic_where_losses_are_strongly_convex(seed, horizon, domain, curvature):
    """On every covering interval G^2/lambda ln(t), and G^2/(2 lambda) (1 + ln n) of its expert; so certify says."""
    rng, x_set = np.random.default_rng(seed), DOMAINS[domain]()
    target = np.repeat(
        [x_set.project(x_set.center + x_set.radius * rng.normal(size=x_set.shape)) for _ in "abc"], 54, 0
    )
    losses = [Distance(u, curvature) for u in (target[:horizon] + 0.1 * rng.normal(size=(horizon, x_set.dim)))]
    G = curvature * (x_set.diameter + max(x_set.distance(f.target) for f in losses))
    learner = tw.AFLH(x_set, gradient_bound=G, gradients="own", strong_convexity=curvature)
    run = play(learner, losses)
    for rounds, _ in run.experts.values():
        t, n = rounds[-1] + 1, len(rounds)
        u = x_set.project(np.mean([losses[k].target for k in rounds], axis=0))  # the best of all, by hand
        regret = sum(losses[k].value(run.x[k]) - losses[k].value(u) for k in rounds)
        assert_at_most(regret, G**2 / curvature * (math.log(t) + (1 + math.log(n)) / 2))
    problem = tw.problems.FromLosses(losses, x_set.shape)
    certificate = tw.regret.certify(
        learner, problem, run.f, intervals=[(0, horizon), (horizon // 2, horizon)][:horizon]
    )
    assert certificate.holds
    assert not certificate.failed


def test_strong_convexity_needs_own_gradients_and_is_seen_to_be_missing():
    X = tw.domains.Ball(2)
    with pytest.raises(tw.errors.InputError, match=r"needs the losses themselves.*gradients='own'"):
        tw.AFLH(X, gradient_bound=1.0, strong_convexity=1.0)
    with pytest.raises(tw.errors.InputError, match="needs a horizon or a strong convexity"):
        tw.AFLH(X, gradient_bound=1.0)
    problem = tw.problems.piecewise_stationary(X, 50, 2, rng=0)
    learner = tw.AFLH(X, gradient_bound=problem.gradient_bound(X), gradients="own", strong_convexity=1.0)
    certificate = tw.regret.certify(learner, problem, tw.play(learner, problem))
    assert [a.name for a in certificate.failed] == ["losses strongly convex with lambda = 1"]


# ------------------------------------------------------------------------------------- SACS, on every covering interval


@given(
    seed=seeds,
    horizon=horizons,
    domain=domains,
    kind=st.sampled_from(SMOOTH),
    style=styles,
    share=st.sampled_from([None, 1e-300, 0.02, 0.5]),
)
@settings(max_examples=30)
def test_sacs_on_every_covering_interval(seed, horizon, domain, kind, style, share):
    """AdaNormalHedge: exp([R_i]_+^2/(3 C_i)) <= sum over all experts so far of 1 + (3/2)(1 + ln(1 + C)), so

        sum (f(x) - f(x_i))/B = R_i <= sqrt(3 C_i ln(m (5/2 + (3/2) ln(1 + t)))),  m the markers so far, C_i <= age.

    SOGD on its own gradients: sqrt(2) D sqrt(delta + Q_i), as in the dynamic family; Q_i <= 2 L sum f(x_i).
    """
    x_set, stream = setting(domain, kind, horizon, seed, style)
    B, D, L = stream.loss_bound, x_set.diameter, stream.smoothness
    choice = {"cover": "compact"} if share is None else {"threshold": share * B}
    learner = tw.SACS(x_set, loss_bound=B, smoothness=L, gradients="own", **choice)
    run = play(learner, stream.losses)
    for m, (rounds, points) in run.experts.items():
        assert run.markers[m - 1] == rounds[0] + 1
        t = rounds + 1
        so_far = np.searchsorted(run.markers, t, side="right")
        values = np.array([run.losses[k].value(p) for k, p in zip(rounds, points, strict=True)])
        r = (run.f[rounds] - values) / B
        assert np.abs(r).max() <= 1 + 1e-9
        meta = np.sqrt(3 * np.cumsum(np.abs(r)) * np.log(so_far * (2.5 + 1.5 * np.log1p(t))))
        assert_at_most(np.cumsum(r), meta)
        g = np.array([run.losses[k].gradient(p) for k, p in zip(rounds, points, strict=True)])
        Q = np.cumsum(np.sum(g**2, axis=1))
        assert_at_most(Q, 2 * L * np.cumsum(values))
        for u in (streams.far_point(x_set, g.sum(axis=0)), stream.planted[rounds[0]], x_set.center):
            paid = np.array([run.losses[k].value(u) for k in rounds])
            assert_at_most(np.cumsum(values - paid), math.sqrt(2) * D * np.sqrt(1 + Q))
            assert_at_most(np.cumsum(run.f[rounds] - paid), B * meta + math.sqrt(2) * D * np.sqrt(1 + Q))
