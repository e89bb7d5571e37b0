"""`EfficientDelayed` is what its equations say; its bound, and that of copies, hold with their constants."""

import math

import numpy as np
import pytest

import thalweg as tw
from tests.twins.delayed import arrivals, interleaved, late_pool
from tests.worlds import ellipsoid, flat_polytope, slow_box, tau_of
from thalweg.algorithms.efficient_dynamic import Dynamic
from thalweg.theorems import path_length

G = 4.0
SETS = {
    "ball": lambda: tw.domains.Ball(3, radius=2.0, center=[1.0, 0.0, -1.0]),
    "ellipsoid": ellipsoid,
    "simplex": lambda: tw.domains.Simplex(3),
    "flat": flat_polytope,
    "line": lambda: tw.domains.Box([-1.0], [2.0]),
    "Python": slow_box,
}


def linear(rng, X, count):
    """Linear losses with gradients of length up to G."""
    g = rng.standard_normal((count, X.dim))
    g *= (G * rng.uniform(0.2, 1.0, count) / np.linalg.norm(g, axis=1))[:, None]
    return [tw.losses.Linear(row) for row in g]


@pytest.mark.parametrize("where", SETS)
@pytest.mark.parametrize("fixed", [True, False])
def test_twin(where, fixed):
    X, rng, T, m = SETS[where](), np.random.default_rng(2), 80, 6
    fs = linear(rng, X, T)
    delays = np.full(T, m) if fixed else rng.integers(-1, m + 1, T)
    learner = tw.EfficientDelayed(X, T, G, **{"delay" if fixed else "max_delay": m})
    run = tw.play(learner, fs, delay=delays, decisions=True)
    twin = late_pool(X, T, G, fs, delays, m, m if fixed else 2 * m, tau_of(X))
    np.testing.assert_allclose(run.decisions, twin, rtol=0, atol=1e-12 * max(1.0, X.radius))
    assert learner.queries == tw.Queries(projections=T, gradients=int((delays >= 0).sum()))


@pytest.mark.parametrize("where", SETS)
def test_without_delay_it_is_efficient_dynamic(where):
    X, rng = SETS[where](), np.random.default_rng(3)
    fs = linear(rng, X, 100)
    a = tw.play(tw.EfficientDelayed(X, 100, G, delay=0), fs, decisions=True)
    b = tw.play(tw.EfficientDynamic(X, 100, G), fs, decisions=True)
    np.testing.assert_allclose(a.decisions, b.decisions, rtol=0, atol=1e-12 * max(1.0, X.radius))


def test_overtaken_and_forgotten():
    learner = tw.EfficientDelayed(ellipsoid(), 50, G, max_delay=4)
    f = tw.losses.Linear([1.0, 0.0, 0.0])
    for d in [4, 3, 1, 0, -1, 0, 0, 0, 0, 0, 0, 0]:
        learner.step(f, delay=d)
    assert (learner.overtaken, learner.forgotten) == (2, 1)  # rounds 2 and 3 count before 0 and 1; 4 never does


# --------------------------------------------------------------------------------------------------------------- bounds


class Against:
    """An adversary who sees the decision: the loss goes up where it is, seen from a point that moves."""

    def __init__(self, rng, X, T, d):
        self.rng, self.X, self.d = rng, X, d
        self.kind = rng.choice(["flip", "follow", "random", "blocks"])
        self.period = int(rng.integers(1, 3 * d + 3))
        v = rng.standard_normal(X.dim)
        self.v = v / np.linalg.norm(v)
        self.blocks = rng.standard_normal((T // self.period + 1, X.dim))

    def gradient(self, t, x):
        if self.kind == "flip":
            g = self.v * (1 if t // self.period % 2 else -1)
        elif self.kind == "follow":
            g = x - self.X.center.ravel() + 1e-3 * self.v
        elif self.kind == "random":
            g = self.rng.standard_normal(self.X.dim)
        else:
            g = self.blocks[t // self.period] + 0.5 * self.rng.standard_normal(self.X.dim)
        return G * g / max(1e-12, np.linalg.norm(g))


def comparators(X, g, period):
    """The best fixed decision, the best of every block of some lengths, and the best of every round."""
    T = len(g)
    for length in sorted({1, period, 4 * period, T}):
        u = np.empty_like(g)
        for first in range(0, T, length):
            total = g[first : first + length].sum(axis=0)
            far = X.center.ravel() - 1e6 * X.radius * total / max(1e-12, np.linalg.norm(total))
            u[first : first + length] = X.project(far.reshape(X.shape)).ravel()
        yield u


def rounds(learner, adversary, delays):
    """The gradients, and the decisions, of a game in which feedback comes as late as it comes."""
    g, x = [], []
    for t, d in enumerate(delays):
        x.append(np.array(learner.decision))
        g.append(adversary.gradient(t, x[-1]))
        learner.step(tw.losses.Linear(g[-1]), delay=d)
    return np.array(g), np.array(x)


def problem(seed):
    rng = np.random.default_rng(seed)
    X = SETS[["ball", "ellipsoid", "line", "simplex"][seed % 4]]()
    T, d = int(rng.integers(20, 400)), int(rng.choice([0, 1, 2, 5, 20, 60]))
    kind = ["fixed", "random", "bursts", "lossy"][seed // 4 % 4]
    if kind == "fixed":
        delays = np.full(T, d)
    elif kind == "random":
        delays = rng.integers(0, d + 1, T)
    elif kind == "bursts":  # all feedback of a stretch comes at its end
        delays = d - np.arange(T) % (d + 1)
    else:
        delays = np.where(rng.random(T) < 0.1, -1, rng.integers(0, d + 1, T))
    return rng, X, T, d, kind, delays


COUNTS = [12, pytest.param(200, marks=pytest.mark.slow)]


@pytest.mark.parametrize("count", COUNTS)
def test_the_bound_of_one_learner_holds(count):
    closest = 0.0
    for seed in range(count):
        rng, X, T, d, kind, delays = problem(seed)
        learner = tw.EfficientDelayed(X, T, G, **{"delay" if kind == "fixed" else "max_delay": d})
        adversary = Against(rng, X, T, d)
        g, x = rounds(learner, adversary, delays)
        theorem = learner.card.theorem(learner, np.einsum("td,td->t", g, x), np.full(T, G**2))
        for u in comparators(X, g, adversary.period):
            for stop in (T, T // 2):
                regret = float(((x - u) * g)[:stop].sum())
                closest = max(closest, regret / theorem.bound(0, stop, u[:stop], np.zeros(stop)))
    assert 0.05 < closest <= 1, closest
    print(f"regret at most {closest:.3f} of what is allowed")


@pytest.mark.parametrize("count", COUNTS)
def test_the_bound_of_copies_holds(count):
    closest = 0.0
    for seed in range(count):
        rng, X, T, d, kind, delays = problem(seed)
        n = math.ceil(T / (d + 1)) if kind == "fixed" else T
        learner = tw.Delayed(X, lambda X, n=n: tw.EfficientDynamic(X, n, G), max_delay=d)
        adversary = Against(rng, X, T, d)
        g, x = rounds(learner, adversary, delays)
        # who played comes from the twin; (2) of thalweg.delayed, and what never comes costs G D
        twin, who = interleaved(
            lambda X=X, n=n: tw.EfficientDynamic(X, n, G), [tw.losses.Linear(row) for row in g], delays, d
        )
        assert np.array_equal(twin, x)
        who, answered = np.array(who), np.zeros(T, dtype=bool)
        answered[[s for rounds in arrivals(delays, d) for s in rounds]] = True
        answered |= (delays >= 0) & (np.arange(T) + delays >= T)  # comes after the end: it was asked for all the same
        for u in comparators(X, g, adversary.period):
            allowed = G * X.diameter * np.count_nonzero(~answered)
            for k in range(learner.copies):
                turn = np.flatnonzero((who == k) & answered)
                if turn.size:
                    theorem = Dynamic(learner._copies[k], np.zeros(turn.size), np.full(turn.size, G**2))
                    assert path_length(u[turn]) <= path_length(u) + 1e-9
                    allowed += theorem.bound(0, turn.size, u[turn], np.zeros(turn.size))
            closest = max(closest, float(((x - u) * g).sum()) / allowed)
    assert 0.05 < closest <= 1, closest
    print(f"regret at most {closest:.3f} of what is allowed")


@pytest.mark.parametrize("d", [1, 5])
def test_who_pretends_that_nothing_is_late_breaks_the_bound(d):
    """A loss that flips its sign as late as the feedback comes: it is always on the wrong side, and stays there."""
    X, T = tw.domains.Ball(2), 800 * (d + 1)
    adversary = Against(np.random.default_rng(0), X, T, d)
    adversary.kind, adversary.period = "flip", d + 1  # what is new in round t came about d + 1 rounds before

    def regret(learner, late):
        g, total = [], 0.0
        for t in range(T):
            x = np.array(learner.decision)
            g.append(adversary.gradient(t, x))
            total += g[-1] @ x
            if late and t >= d:
                learner.update(g[t - d])  # as if it were that of the present round
            elif not late:
                learner.step(tw.losses.Linear(g[-1]))
        return total  # against standing still at 0

    late = tw.EfficientDelayed(X, T, G, delay=d)
    theorem = late.card.theorem(late, np.zeros(T), np.full(T, G**2))
    allowed = theorem.bound(0, T, np.zeros((T, 2)), np.zeros(T))
    assert regret(late, late=False) <= allowed
    assert regret(tw.Delayed(X, lambda X: tw.EfficientDynamic(X, 800, G), delay=d), late=False) <= allowed
    assert regret(tw.EfficientDynamic(X, T, G), late=True) > 1.2 * allowed


@pytest.mark.parametrize(("delays", "B", "M"), [([4, 3, 1, 0, -1, 0, 0, 0, 0, 0, 0, 0], 2, 1), ([4] * 12, 0, 0)])
def test_the_certificate_is_the_theorem(delays, B, M):
    """(7) by hand."""
    X, m, T, n = ellipsoid(), 4, 50, 12
    learner = tw.EfficientDelayed(X, T, G, max_delay=m)
    for d in delays:
        learner.step(tw.losses.Linear([1.0, 0.0, 0.0]), delay=d)
    R, D = X.surrogate.radius, X.diameter
    more = (1 + 4 * m) * T
    N = math.ceil(math.log2(1 + 2 * D * T / (5 * R)) / 2) + 1
    epsilon = math.sqrt(math.log(N) / (1 + G**2 * R**2 * more))
    etas = [2**i * R / G * math.sqrt(5 / (2 * more)) for i in range(N)]
    Q = (1 + 2 * (2 * m if B else m)) * n * G**2
    theorem = learner.card.theorem(learner, np.zeros(n), np.full(n, G**2))
    for step in (0.0, 0.01, 0.9):  # short paths, and one where n D is less than 2 B P
        u = np.outer((-1.0) ** np.arange(n), [step, 0.0, 0.0])
        P, first = 2 * step * (n - 1), float(np.linalg.norm(X.center - u[0]))
        a = min(5 * R**2 / 2 + R * P, first**2 / 2 + 2 * R * P)
        allowed = math.log(N) / epsilon + epsilon * R**2 * Q / 2 + min(a / eta + eta * Q / 2 for eta in etas)
        allowed += G * min(2 * B * P, n * D) + M * G * D
        assert theorem.bound(0, n, u, np.zeros(n)) == pytest.approx(allowed, rel=1e-12)


def test_certified():
    X, rng = ellipsoid(), np.random.default_rng(0)
    stream = tw.problems.piecewise_stationary(X, horizon=400, stages=4, rng=1)
    for delays, given in ((None, {"delay": 10}), (rng.integers(-1, 11, 400), {"max_delay": 10})):
        learner = tw.EfficientDelayed(X, 400, stream.gradient_bound(X), **given)
        run = tw.play(learner, stream, delay=delays, decisions=True)
        certificate = tw.regret.certify(learner, stream, run)
        assert certificate.holds
        assert not certificate.failed
        assert (learner.overtaken > 0) == (learner.forgotten > 0) == (delays is not None)
