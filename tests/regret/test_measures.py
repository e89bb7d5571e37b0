"""Regret on whole runs and on intervals, against the definitions spelt out as loops."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from tests.regret.cases import DISC, ENDLESS, FINE, KINDS, wrapped
from thalweg import domains, problems
from thalweg.errors import InputError
from thalweg.regret import (
    Between,
    Comparator,
    Regret,
    WorstInterval,
    adaptive,
    best_fixed,
    best_path,
    best_per_round,
    dynamic,
    gradient_variation,
    interval_dynamic,
    path_length,
    static,
)

SETS = {
    "ball": domains.Ball(3, 1.5, [0.5, -1.0, 0.0]),
    "box": domains.Box([-1.0, 0.0, 2.0], [1.0, 0.5, 2.5]),
    "simplex": domains.Simplex(3, 2.0),
    "ellipsoid": domains.Ellipsoid([1.0, 4.0, 9.0], 4.0),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def example(kind="squared", T=12, seed=0, domain=SETS["ball"]):
    """A problem whose optimum moves, and what somebody paid who played at random."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((T, domain.dim))
    aims = (
        domain.center.ravel() + domain.radius * np.repeat(rng.uniform(-1, 1, (T // 4 + 1, domain.dim)), 4, axis=0)[:T]
    )
    b = rng.choice([-1.0, 1.0], T) if kind == "logistic" else np.einsum("td,td->t", a, aims)
    problem = KINDS[kind](a.reshape(T, *domain.shape), b)
    decisions = np.array([domain.project(domain.center + rng.standard_normal(domain.shape)) for _ in range(T)])
    return problem, problem.losses_of(decisions)


def bills(paid):
    """A problem whose losses are zero whatever is decided: the regret of an interval is what was paid on it."""
    return problems.LinearLosses(np.zeros((len(paid), 2))), domains.Ball(2)


# --------------------------------------------------------------------------------------------------------- whole runs


@kinds
@pytest.mark.parametrize("name", SETS)
def test_no_fixed_decision_has_less_than_no_static_regret(name, kind):
    domain = SETS[name]
    problem, _ = example(kind, domain=domain)
    rng, tol = np.random.default_rng(1), 1e-5 if kind == "absolute" else 1e-6
    for _ in range(5):
        u = domain.project(domain.center + domain.radius * rng.standard_normal(3))
        regret = static(problem.losses_of(u), problem, domain, tol=tol)
        assert regret.value >= -regret.gap - 1e-12
        assert regret.value == pytest.approx(regret.loss - regret.comparator.loss)
        assert regret.loss == pytest.approx(problem.losses_of(u).sum())
    best = best_fixed(problem, domain, tol=tol)
    regret = static(best.losses, problem, domain, tol=tol)
    assert regret.value == 0.0
    assert regret.gap == best.gap


def test_static_regret_by_hand():
    """The mean 1/2 of the labels is the best fixed decision and pays 1/8 a round."""
    problem, domain = problems.LinearRegression(np.ones((4, 1)), [0.0, 1.0, 0.0, 1.0]), domains.Ball(1)
    regret = static([0.0, 0.5, 0.0, 0.5], problem, domain)
    assert float(regret) == pytest.approx(1.0 - 0.5)
    assert regret.gap <= 1e-12
    assert "Regret(0.5: paid 1, comparator 0.5" in repr(regret)
    assert "up to" not in repr(regret)
    assert "(up to 0.25 more)" in repr(Regret(1.0, 0.25, 2.0, regret.comparator))
    # who knows the labels beats every fixed decision
    assert static(np.zeros(4), problem, domain).value == pytest.approx(-0.5)


@kinds
def test_every_way_to_say_what_was_paid(kind):
    domain = SETS["ball"]
    problem, _ = example(kind, T=5)
    run = tw.play(tw.OGD(domain, step_size=0.1), problem)
    planted = KINDS[kind](problem.features, problem.labels, comparators=np.zeros((5, 3)))
    for paid in (run.losses, run.losses.tolist(), tuple(run.losses)):
        assert static(paid, problem, domain, tol=1e-4).value == static(run, problem, domain, tol=1e-4).value
        assert dynamic(paid, planted).value == dynamic(run, planted).value
        assert adaptive(paid, problem, domain, tol=1e-2) == adaptive(run, problem, domain, tol=1e-2)
        assert interval_dynamic(paid, planted) == interval_dynamic(run, planted)
    same = static(run.losses, list(problem), domain, tol=1e-4)  # the rounds as a list of losses
    assert abs(same.value - static(run, problem, domain, tol=1e-4).value) <= same.gap + 1e-3 * max(1.0, same.loss)


@kinds
def test_a_run_shorter_than_its_problem_is_measured_on_its_rounds(kind):
    domain = SETS["ball"]
    problem, paid = example(kind, T=12)
    planted = KINDS[kind](problem.features, problem.labels, comparators=np.tile(domain.center, (12, 1)))
    first = planted[:7]
    assert static(paid[:7], planted, domain, tol=1e-4).value == static(paid[:7], first, domain, tol=1e-4).value
    assert dynamic(paid[:7], planted).value == dynamic(paid[:7], first).value
    assert dynamic(paid[:7], planted).comparator.losses.shape == (7,)
    assert adaptive(paid[:7], planted, domain, tol=1e-4) == adaptive(paid[:7], first, domain, tol=1e-4)
    assert interval_dynamic(paid[:7], planted) == interval_dynamic(paid[:7], first)
    short = tw.play(tw.OGD(domain, step_size=0.1), planted, rounds=7)
    assert static(short, planted, domain, tol=1e-4).comparator.losses.shape == (7,)


def test_a_problem_without_an_end_is_measured_on_the_rounds_played():
    endless = problems.FromFunctions(lambda t, x: float(t * x[0]), lambda t, x: np.array([t, 0.0]), 2)
    regret = dynamic(np.ones(4), endless, [1.0, 0.0])
    assert regret.value == 4 - (0 + 1 + 2 + 3)
    assert interval_dynamic(np.ones(4), endless, np.tile([1.0, 0.0], (4, 1)), lengths=[4])[0].regret == -2


def test_dynamic_regret_against_anyone():
    domain = SETS["ball"]
    problem, paid = example(T=8)
    u = np.random.default_rng(3).standard_normal((8, 3))
    against = problem.losses_of(u).sum()
    for given_ in (u, u.tolist(), Comparator(u, problem.losses_of(u), 0.0)):
        regret = dynamic(paid, problem, given_)
        assert regret.value == pytest.approx(paid.sum() - against)
        assert regret.gap == 0.0
        assert regret.comparator.path_length == pytest.approx(path_length(u))
    fixed = dynamic(paid, problem, u[0])  # one decision stands for all rounds
    assert fixed.value == pytest.approx(paid.sum() - problem.losses_of(u[0]).sum())
    assert fixed.comparator.path_length == 0
    planted = problems.LinearRegression(problem.features, problem.labels, comparators=u)
    assert dynamic(paid, planted).value == pytest.approx(paid.sum() - against)
    assert dynamic(paid, planted, u[0]).value == fixed.value  # given ones go before planted ones
    for computed in (
        best_fixed(problem, domain),
        best_per_round(problem, domain),
        best_path(problem, domain, budget=1.0),
    ):
        regret = dynamic(paid, problem, computed)
        assert regret.value == pytest.approx(paid.sum() - computed.loss)
        assert regret.gap == computed.gap
    assert dynamic(paid, problem, best_fixed(problem, domain)).value == static(paid, problem, domain).value


def test_matrix_decisions():
    """Shapes are kept, flat rows are understood, lengths are Frobenius norms."""
    domain = domains.SpectralBalls((2, 3), 1.0)
    rng = np.random.default_rng(0)
    u = rng.standard_normal((5, 2, 3))
    problem = problems.LinearRegression(rng.standard_normal((5, 2, 3)), rng.standard_normal(5), comparators=u)
    paid = problem.losses_of(np.zeros((2, 3)))
    regret = dynamic(paid, problem)
    assert regret.comparator.decisions.shape == (5, 2, 3)
    assert regret.comparator.path_length == pytest.approx(sum(np.linalg.norm(u[t] - u[t - 1]) for t in range(1, 5)))
    assert dynamic(paid, problem, u.reshape(5, 6)).value == regret.value
    assert static(paid, problem, domain).comparator.decisions.shape == (5, 2, 3)
    rows = adaptive(paid, problem, domain, lengths=[2, 5])
    assert [row.intervals for row in rows] == [4, 1]
    assert rows[-1].regret == pytest.approx(static(paid, problem, domain).value, abs=1e-8)
    own = problems.FromLosses(list(problem))
    assert dynamic(paid, own, u).value == pytest.approx(regret.value)
    assert dynamic(paid, own, u).comparator.decisions.shape == (5, 2, 3)


# ---------------------------------------------------------------------------------------------------------- intervals


def naive(paid, problem, domain, tau):
    """The largest static regret of the intervals of a length: every window on its own."""
    found = []
    for r in range(len(paid) - tau + 1):
        part = best_fixed(problem[r : r + tau], domain, tol=1e-6)
        found.append((paid[r : r + tau].sum() - part.loss, part.gap))
    return np.array(found).T


@pytest.mark.parametrize(
    ("kind", "name", "T"),
    [(k, n, 9) for k in ("squared", "logistic", "linear") for n in ("ball", "simplex")] + [("absolute", "ball", 4)],
)
def test_adaptive_regret_is_what_a_double_loop_finds(kind, name, T):
    domain = SETS[name]
    problem, paid = example(kind, T, domain=domain)
    for row in adaptive(paid, problem, domain, lengths="all", tol=1e-5 if kind == "absolute" else 1e-9):
        regrets, gaps = naive(paid, problem, domain if kind == "absolute" else wrapped(domain), row.length)
        slack = max(row.gap, gaps.max()) + 1e-9
        assert row.regret == pytest.approx(regrets.max(), abs=slack)
        assert regrets[row.start] == pytest.approx(row.regret, abs=slack)
        assert row.stop == row.start + row.length
        assert row.intervals == len(regrets)
        assert row.exact
        assert 0 <= row.gap <= 1e-4


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_adaptive_regret_of_random_problems(seed):
    """Windows by a tree of sums, against each window as a problem of its own, minimised through the projection."""
    rng = np.random.default_rng(seed)
    domain = list(SETS.values())[rng.integers(len(SETS))]
    problem, paid = example("squared", int(rng.integers(1, 20)), seed, domain)
    tau = int(rng.integers(1, len(paid) + 1))
    (row,) = adaptive(paid, problem, domain, lengths=[tau])
    regrets, gaps = naive(paid, problem, wrapped(domain), tau)
    slack = max(row.gap, gaps.max()) + 1e-11 * (1 + paid.sum())
    assert row.regret == pytest.approx(regrets.max(), abs=slack)
    # no fixed decision of any interval pays less than the regret and its gap allow
    for r in range(len(regrets)):
        u = domain.project(domain.center + domain.radius * rng.standard_normal(3))
        window = paid[r : r + tau].sum() - problem[r : r + tau].losses_of(u).sum()
        assert window <= row.regret + row.gap + 1e-11 * (1 + paid.sum())


@pytest.mark.parametrize("name", SETS)
def test_the_gap_of_a_length_covers_all_its_intervals(name):
    """With comparators that are far from the best, another interval may be the worst one in truth."""
    domain = SETS[name]
    problem, paid = example(T=24, seed=4, domain=domain)
    rough = adaptive(paid, problem, domain, lengths="all", tol=1.0)
    exact = adaptive(paid, problem, domain, lengths="all", tol=1e-9)
    for loose, tight in zip(rough, exact, strict=True):
        assert loose.regret - 1e-9 <= tight.regret + tight.gap
        assert tight.regret <= loose.regret + loose.gap + 1e-9


@pytest.mark.parametrize(
    ("T", "lengths", "expected"),
    [
        (1, "dyadic", [1]),
        (2, "dyadic", [1, 2]),
        (7, "dyadic", [1, 2, 4, 7]),
        (8, "dyadic", [1, 2, 4, 8]),
        (9, "dyadic", [1, 2, 4, 8, 9]),
        (4, "all", [1, 2, 3, 4]),
        (9, [5], [5]),
        (9, [9, 2, 2, 1], [1, 2, 9]),
        (9, (3.0, 4), [3, 4]),
        (9, np.array([8, 3]), [3, 8]),
        (9, range(2, 5), [2, 3, 4]),
    ],
)
def test_lengths(T, lengths, expected):
    paid = np.arange(float(T))
    problem, domain = bills(paid)
    found = adaptive(paid, problem, domain, lengths=lengths)
    assert [row.length for row in found] == expected
    assert [row.length for row in interval_dynamic(paid, problem, [0.0, 0.0], lengths=lengths)] == expected
    for row in found:  # bills grow, so the last interval is the worst one
        assert (row.start, row.stop) == (T - row.length, T)
        assert row.regret == pytest.approx(paid[T - row.length :].sum())
        assert row.exact


@pytest.mark.parametrize("stride", [1, 2, 3, 5, 7, 50, None, np.int64(3), 2.0])
@pytest.mark.parametrize("tau", [1, 2, 4, 9, 10])
def test_strides(tau, stride):
    """The intervals that start at multiples of the stride, and the last one."""
    T = 10
    step = tau if stride is None else int(stride)
    looked_at = sorted({*range(0, T - tau + 1, step), T - tau})
    for spike in range(T):  # the spike is found exactly where an interval that is looked at holds it
        paid = np.zeros(T)
        paid[spike] = 1.0
        problem, domain = bills(paid)
        (row,) = adaptive(paid, problem, domain, lengths=[tau], stride=stride)
        assert row.intervals == len(looked_at)
        assert row.exact == (len(looked_at) == T - tau + 1)
        seen = [r for r in looked_at if r <= spike < r + tau]
        assert row.regret == (1.0 if seen else 0.0)
        assert row.start in (seen or looked_at)
        assert row.stop == row.start + tau


def test_a_grid_says_that_it_is_one():
    domain = SETS["ball"]
    problem, paid = example(T=40, seed=3)
    grid = adaptive(paid, problem, domain, stride=None)
    assert "of 10 looked at" in repr(grid)
    assert "looked at" not in repr(adaptive(paid, problem, domain))
    assert [row.exact for row in grid] == [True, False, False, False, False, False, True]


def test_interval_dynamic_regret_is_what_a_double_loop_finds():
    rng = np.random.default_rng(2)
    problem, paid = example(T=13)
    u = rng.standard_normal((13, 3))
    excess = paid - problem.losses_of(u)
    found = interval_dynamic(paid, problem, u, lengths="all")
    for row in found:
        regrets = [excess[r : r + row.length].sum() for r in range(13 - row.length + 1)]
        assert row.regret == pytest.approx(max(regrets))
        assert regrets[row.start] == pytest.approx(max(regrets))
        assert (row.stop - row.start, row.intervals, row.exact) == (row.length, len(regrets), True)
    assert found[-1].regret == pytest.approx(dynamic(paid, problem, u).value)
    assert found.worst.regret >= dynamic(paid, problem, u).value - 1e-12
    assert found.worst.regret == max(row.regret for row in found)
    assert found.kind == "interval dynamic"


def test_interval_regrets_are_a_sequence():
    problem, paid = example(T=8)
    found = adaptive(paid, problem, SETS["ball"])
    assert found.kind == "adaptive"
    assert len(found) == 4
    assert list(found) == list(found.rows) == [found[0], *found[1:]]
    assert isinstance(found[0], WorstInterval)
    assert found[0] in found
    assert found.worst == max(found, key=lambda row: row.regret)
    lines = repr(found).splitlines()
    assert lines[0].startswith("adaptive regret")
    assert len(lines) == 6
    assert lines[-1].split()[0] == "8"
    assert "[0, 8)" in lines[-1]


@pytest.mark.parametrize(("a", "y"), [(0.3, 1.0), (1 / 3, 0.7), (1.1, 1.3)])
def test_the_gap_covers_the_rounding_of_long_sums(a, y):
    """The same round 20000 times, at no cost to the learner: exact arithmetic knows the regret of every length."""
    T = 20_000
    problem, domain = problems.LinearRegression(np.full((T, 1), a), np.full(T, y)), domains.Ball(1)
    u = min(Fraction(y) / Fraction(a), Fraction(1))
    best = (Fraction(a) * u - Fraction(y)) ** 2 / 2
    for row in adaptive(np.zeros(T), problem, domain, lengths=[1, 1000, T], stride=500):
        assert abs(row.regret + float(row.length * best)) <= row.gap * (1 + 1e-9)


def exact_regret(paid, a, y, reach, r, s):
    """The static regret of rounds r..s-1 on [-reach, reach], in fractions: no rounding anywhere."""
    a, y = [Fraction(v) for v in a[r:s]], [Fraction(v) for v in y[r:s]]
    S, b = sum(v * v for v in a), sum(v * w for v, w in zip(a, y, strict=True))
    u = min(max(b / S, -Fraction(reach)), Fraction(reach))
    return sum(map(Fraction, paid[r:s])) - sum((v * u - w) ** 2 for v, w in zip(a, y, strict=True)) / 2


def rescaled(scale, T, seed=0):
    """Rounds 20..39 and 90..93 are of another size than the others, and cost who played nothing."""
    rng = np.random.default_rng(seed)
    a, y = rng.standard_normal((T, 1)), rng.standard_normal(T)
    large = np.isin(np.arange(T), [*range(20, 40), *range(90, 94)])
    a[large] *= np.sqrt(scale)
    y[large] *= scale
    problem, domain = problems.LinearRegression(a, y), domains.Ball(1)
    paid = problem.losses_of(domain.radius * rng.uniform(-1, 1, (T, 1)))
    paid[large] = 0.0
    return problem, domain, paid


@pytest.mark.parametrize("scale", [1e6, 1e8, 1e12, 1e-8])
@pytest.mark.parametrize("T", [130, pytest.param(1000, marks=pytest.mark.slow)])
def test_regret_after_rounds_of_another_size(T, scale):
    """All intervals, against fractions: as accurate as if the others were not there."""
    problem, domain, paid = rescaled(scale, T)
    for row in adaptive(paid, problem, domain, lengths=[1, 2, 5, 16, 37, 64]):
        truth = [
            float(exact_regret(paid, problem.features[:, 0], problem.labels, 1, r, r + row.length))
            for r in range(T - row.length + 1)
        ]
        own = 1e-12 * row.length * (1 + np.abs(problem.labels[row.start : row.stop]).max() ** 2)
        assert truth[row.start] == pytest.approx(row.regret, rel=0, abs=own)
        assert row.regret - own <= max(truth) <= row.regret + row.gap
        assert row.gap <= 100 * own


@pytest.mark.parametrize("scale", [1e6, 1e8, 1e12, 1e-8])
def test_interval_dynamic_regret_after_rounds_of_another_size(scale):
    problem, domain, paid = rescaled(scale, 130)
    against = best_fixed(problem, domain)
    for row in interval_dynamic(paid, problem, against, lengths=[1, 5, 37, 64]):
        terms = [Fraction(p) - Fraction(q) for p, q in zip(paid, against.losses, strict=True)]
        truth = [float(sum(terms[r : r + row.length])) for r in range(131 - row.length)]
        own = 1e-13 * max(against.losses[row.start : row.stop].sum(), paid[row.start : row.stop].sum())
        assert row.regret == pytest.approx(max(truth), rel=0, abs=own)
        assert max(truth) <= row.regret + row.gap + own


def test_losses_that_do_not_depend_on_the_decision():
    paid = np.array([1.0, 2.0, 0.5])
    for kind, make in KINDS.items():
        problem = make(np.zeros((3, 2)), np.array([1.0, -1.0, 1.0]))
        losses = problem.losses_of([0.0, 0.0])
        found = adaptive(paid, problem, domains.Ball(2), lengths="all")
        expected = [max((paid - losses)[r : r + tau].sum() for r in range(4 - tau)) for tau in (1, 2, 3)]
        assert [row.regret for row in found] == pytest.approx(expected), kind
        assert all(row.gap <= 1e-12 for row in found), kind


def test_all_intervals_of_all_dyadic_lengths_of_a_long_run():
    domain = problems.paper_ellipsoid()
    problem = problems.piecewise_stationary(domain, horizon=20_000, rng=0)
    run = tw.play(tw.SOGD(domain), problem)
    found = adaptive(run, problem, domain)
    assert [row.length for row in found] == [2**k for k in range(15)] + [20_000]
    assert all(row.exact and row.intervals == 20_001 - row.length for row in found)
    assert all(0 <= row.gap <= 1e-6 * run.total_loss for row in found)
    sums = np.concatenate([[0.0], np.cumsum(run.losses)])
    for row in found:
        best = best_fixed(problem, domain, row.start, row.stop)
        paid = run.losses[row.start : row.stop].sum()
        assert row.regret == pytest.approx(paid - best.loss, abs=row.gap + best.gap + 1e-9 * run.total_loss)
        # one decision for an interval of any length pays at least nothing
        assert row.regret <= (sums[row.length :] - sums[: -row.length]).max() + 1e-6
    assert found[-1].regret == pytest.approx(static(run, problem, domain).value, abs=1e-9 * run.total_loss)


# ------------------------------------------------------------------------------------------------- gradient variation


@kinds
@pytest.mark.parametrize("name", SETS)
def test_gradient_variation_lies_between_its_bounds(name, kind):
    """Against the largest difference of gradients at many points of the set, which is at most the true one."""
    domain = SETS[name]
    problem, _ = example(kind, T=7, domain=domain)
    found = gradient_variation(problem, domain)
    rng = np.random.default_rng(0)
    points = [domain.project(domain.center + 3 * domain.radius * rng.standard_normal(3)) for _ in range(400)]
    gradients = np.array([[f.gradient(x) for f in problem] for x in points])
    sampled = (np.diff(gradients, axis=1) ** 2).sum(axis=2).max(axis=0).sum()
    assert isinstance(found, Between)
    assert sampled <= found.high * (1 + 1e-12)
    assert found.low <= found.high
    if kind == "squared":  # the difference is affine and its norm convex: the largest is on the boundary, near a sample
        assert found.low <= 1.2 * sampled
    if kind == "linear":
        assert found.low == found.high == pytest.approx(sampled)


def test_gradient_variation_by_hand():
    """On [-1, 1]: f_1 = x^2/2, f_2 = (2x - 2)^2/2, whose slopes x and 4x - 4 differ most at x = -1, by 7."""
    domain = domains.Box([-1.0], [1.0])
    low, high = gradient_variation(problems.LinearRegression([[1.0], [2.0]], [0.0, 2.0]), domain)
    assert low == pytest.approx(49.0)
    assert high == pytest.approx(49.0)
    assert gradient_variation(problems.LinearRegression([[1.0]], [0.0]), domain) == (0.0, 0.0)
    assert gradient_variation(problems.LinearRegression([[1.0], [1.0]], [3.0, 3.0]), domain) == (0.0, 0.0)
    assert gradient_variation(problems.LinearLosses([[1.0], [-2.0], [0.0]]), domain) == (9.0 + 4.0, 9.0 + 4.0)


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_gradient_variation_of_squared_losses_on_a_ball(seed):
    """On a ball of two dimensions the supremum is that of a convex function on a circle, sampled densely."""
    rng = np.random.default_rng(seed)
    domain = domains.Ball(2, 10.0 ** rng.uniform(-2, 2), rng.standard_normal(2))
    a, b = rng.standard_normal((4, 2)), rng.standard_normal(4)
    low, high = gradient_variation(problems.LinearRegression(a, b), domain)
    angles = np.linspace(0, 2 * np.pi, 2001)
    circle = domain.center + domain.radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    gradients = (circle @ a.T - b)[:, :, None] * a
    true = (np.diff(gradients, axis=1) ** 2).sum(axis=2).max(axis=0).sum()
    assert low <= true * (1 + 1e-5)
    assert true <= high * (1 + 1e-12)
    assert high <= 4 * true  # (||M c - v|| + ||M|| R)^2 against the larger of the two, squared


def test_gradient_variation_of_losses_of_the_user():
    """Nothing is known about them beyond the points that were asked."""

    def value(t, x):
        return float(np.sum((x - t) ** 2))

    def gradient(t, x):
        return 2 * (x - t)

    domain = domains.Box(np.zeros((2, 2)), np.ones((2, 2)))
    low, high = gradient_variation(problems.FromFunctions(value, gradient, (2, 2), 3), domain)
    assert low == pytest.approx(2 * 4 * 4)
    assert high == np.inf
    rng = np.random.default_rng(0)
    matrices = problems.LinearLosses(rng.standard_normal((3, 2, 2)))
    assert gradient_variation(matrices, domain).low == pytest.approx((np.diff(matrices.costs, axis=0) ** 2).sum())


# ---------------------------------------------------------------------------------------------------------- bad input

LIST = problems.FromLosses(list(FINE))
PAID = np.ones(6)
SHORT = best_per_round(FINE[:3], DISC)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: static(PAID, FINE, domains.Ball(3)),
            r"static: the problem has decisions of shape \(2,\), the domain \(3,\)",
        ),
        (lambda: static(PAID, FINE, domains.HalfSpace([1.0, 0.0], 1.0)), "static needs a bounded domain"),
        (lambda: static(PAID, FINE, None), "must be a thalweg Domain"),
        (lambda: static(PAID, None, DISC), "static needs a thalweg problem or a list of losses"),
        (lambda: static(PAID, ENDLESS, DISC), "static needs a problem that ends"),
        (lambda: static(np.ones(7), FINE, DISC), "static got 7 losses paid for a problem of 6 rounds"),
        (lambda: static([], FINE, DISC), "static got 0 losses paid"),
        (lambda: static(np.ones((6, 1)), FINE, DISC), "'run' parameter of static must have 1 axes"),
        (lambda: static([1.0, np.nan], FINE, DISC), "'run' parameter of static must be finite"),
        (lambda: static(None, FINE, DISC), "'run' parameter of static must be an array of real numbers"),
        (lambda: static(PAID, FINE, DISC, tol=0.0), "'tol'"),
        (lambda: dynamic(PAID, FINE), r"none planted. Pass decisions of shape \(6, 2\), or compute them: best_fixed"),
        (lambda: dynamic(PAID, LIST), "none planted"),
        (lambda: dynamic(PAID, None), "dynamic needs a thalweg problem"),
        (lambda: dynamic(np.ones(9), FINE, [0.0, 0.0]), "9 losses paid for a problem of 6 rounds"),
        (lambda: dynamic(PAID, FINE, SHORT), "dynamic: the comparator has 3 rounds, the run 6"),
        (lambda: dynamic(PAID[:2], FINE, SHORT), "the comparator has 3 rounds, the run 2"),
        (lambda: dynamic(PAID, FINE, np.zeros((5, 2))), r"shape \(6, 2\). Got shape \(5, 2\)"),
        (lambda: dynamic(PAID, FINE, np.zeros((2, 6))), r"shape \(6, 2\). Got shape \(2, 6\)"),
        (lambda: dynamic(PAID, FINE, np.zeros(3)), r"Got shape \(3,\)"),
        (lambda: dynamic(PAID, FINE, [np.nan, 0.0]), "must be finite"),
        (lambda: dynamic(PAID, FINE, "best"), "array of real numbers"),
        (lambda: dynamic(PAID, LIST, np.zeros((5, 2))), r"shape \(6, 2\). Got shape \(5, 2\)"),
        (lambda: dynamic(PAID, LIST, np.zeros(12)), r"shape \(6, 2\). Got shape \(12,\)"),
        (lambda: dynamic(PAID, LIST, [np.nan, 0.0]), "must be finite"),
        (lambda: interval_dynamic(PAID, FINE), "interval_dynamic needs comparators: this problem has none planted"),
        (lambda: interval_dynamic(PAID, FINE, SHORT), "interval_dynamic: the comparator has 3 rounds"),
        (lambda: interval_dynamic(PAID, FINE, [0.0, 0.0], lengths=[7]), "from 1 to 6, the rounds. Got"),
        (lambda: interval_dynamic(PAID, FINE, [0.0, 0.0], lengths="half"), "must be 'dyadic', 'all' or whole numbers"),
        (lambda: adaptive(PAID, FINE, domains.Ball(3)), "adaptive: the problem has decisions of shape"),
        (lambda: adaptive(PAID, ENDLESS, DISC), "adaptive needs a problem that ends"),
        (lambda: adaptive(np.ones(7), FINE, DISC), "7 losses paid for a problem of 6 rounds"),
        (lambda: adaptive(PAID, FINE, DISC, lengths=[7]), "from 1 to 6, the rounds. Got"),
        (lambda: adaptive(PAID, FINE, DISC, lengths=[0]), "'lengths' parameter of adaptive"),
        (lambda: adaptive(PAID, FINE, DISC, lengths=[]), "'lengths'"),
        (lambda: adaptive(PAID, FINE, DISC, lengths="short"), "'dyadic', 'all' or whole numbers. Got 'short'"),
        (lambda: adaptive(PAID, FINE, DISC, lengths=5), "'lengths'"),
        (lambda: adaptive(PAID, FINE, DISC, stride=0), "'stride' parameter of adaptive must be a whole number >= 1"),
        (lambda: adaptive(PAID, FINE, DISC, tol=-1.0), "'tol' parameter of adaptive"),
        (lambda: gradient_variation(FINE, domains.Ball(3)), "gradient_variation: the problem has decisions of shape"),
        (lambda: gradient_variation(ENDLESS, DISC), "gradient_variation needs a problem that ends"),
        (lambda: gradient_variation(FINE, domains.HalfSpace([1.0, 0.0], 1.0)), "needs a bounded domain"),
        (lambda: gradient_variation(DISC, FINE), "Domain"),
    ],
)
def test_bad_input_is_told(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_nothing_given_is_changed():
    """Arrays that come in stay as they are, and what comes out does not point into them."""
    problem, paid = example(T=8)
    u = np.zeros((8, 3))
    before = paid.copy()
    regret = dynamic(paid, problem, u)
    adaptive(paid, problem, SETS["ball"])
    interval_dynamic(paid, problem, u)
    u += 1.0
    np.testing.assert_array_equal(paid, before)
    assert not regret.comparator.decisions.any()
