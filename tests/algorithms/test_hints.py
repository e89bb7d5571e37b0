"""EfficientOptimistic: the inequalities of docs/feedback-proofs.md one by one, its bounds with every constant on
random and hostile streams, what hints are worth, and the rules of `hint`.

e = g - m is the error of a hint, E the sum of ||e||^2, S that of ||h||^2, Q that of ||g||^2. rho = R + eta_N G/2,
M = 2N, l = ln M, a = min(5R^2/2 + RP, ||y_1 - u_1||^2/2 + 2RP).
"""

import math

import numpy as np
import pytest

import thalweg as tw
from tests.algorithms.test_theorems_dynamic import DOMAINS
from tests.samples import refused
from tests.twins import dynamic as ref
from tests.twins import optimistic as twins
from tests.worlds import CountedSet, slow_box, stepped, tau_of
from thalweg.errors import InputError
from thalweg.learners.one_projection import surrogate_gradient
from thalweg.theorems import bounds


def generator(*names):
    return np.random.default_rng([sum(map(ord, str(name))) for name in names])


def shortened(v, most):
    return v * min(1.0, most / max(np.linalg.norm(v), 1e-300))


# ------------------------------------------------------------------------------------------- inequalities of the proof


@pytest.mark.parametrize("domain", DOMAINS)
def test_one_member_one_round(domain):
    """(1) to (3): whatever the hint, and however far outside the set y lies."""
    X, rng = DOMAINS[domain](), generator(domain)
    tau, Y, bent = tau_of(X), ref.ball(X.center, X.radius), 0
    for _ in range(300):
        g, m, far = (tau(v) * 10.0 ** rng.uniform(-2, 1) for v in rng.normal(size=(3, X.dim)))
        y = X.center + X.radius * far
        x = X.project(y)
        h = ref.surrogate_gradient(g, y, x, tau=tau)
        u, eta = X.project(X.center + 3 * X.radius * rng.normal(size=X.dim)), 10.0 ** rng.uniform(-3, 1)
        hat = Y(X.center + X.radius * tau(rng.normal(size=X.dim)))
        scale = 1e-9 * (1 + X.radius + eta) * (1 + g @ g + m @ m) * (1 + np.linalg.norm(far))
        bent += not np.array_equal(g, h)
        assert abs(h @ g - h @ h) <= scale  # (1)
        assert g @ (x - u) <= h @ (y - u) + scale
        e, after = g - m, Y(hat - eta * h)
        telescope = ((hat - u) @ (hat - u) - (after - u) @ (after - u)) / (2 * eta)
        lost = h @ (hat - eta * m - u)
        assert lost <= telescope + eta / 2 * (2 * h @ e - h @ h) + scale / eta  # (2)
        for a in (0.1, 0.5, 0.9):
            assert lost <= telescope + eta / 2 * (e @ e / a - (1 - a) * h @ h) + scale / eta / a  # (3)
    assert 30 < bent < 300


def test_hedge_under_rates_of_its_own_ranges():
    """(4): regret to anybody is at most sqrt(l) (C + 2 sqrt(W)); (5): the weights move by (sqrt(l) + l) r/C."""
    rng, tight, near = np.random.default_rng(3), 0.0, 0.0
    for case in range(60):
        M, T, C = int(rng.integers(2, 30)), int(rng.integers(1, 300)), 1.0
        log, hardest = math.log(M), case % 3
        A, W, own, before, r = np.zeros(M), 0.0, 0.0, None, 0.0
        for t in range(T):
            rate = math.sqrt(log / (C * C + W))
            p = ref.softmax(-rate * A)
            if before is not None:
                moved, allowed = np.abs(p - before).sum(), (math.sqrt(log) + log) * r / C
                assert moved <= allowed + 1e-12
                near = max(near, moved / allowed if allowed else 0.0)
            losses = rng.uniform(-1, 1, size=M)
            if hardest == 1:  # against those who are believed
                losses = np.where(np.median(A) >= A, 1.0, -1.0)
            if hardest == 2:  # two sides in turn, after a first calm
                losses = np.where(np.arange(M) % 2 == t % 2, 1.0, -1.0) * (t > 5)
            r = (losses.max() - losses.min()) / 2
            own, before = own + p @ losses, p
            A, W = A + losses, W + r * r
        bound = math.sqrt(log) * (C + 2 * math.sqrt(W))
        tight = max(tight, (own - A.min()) / bound)
        assert own - A.min() <= bound + 1e-9
    assert tight > 0.3
    assert near > 0.1


# ------------------------------------------------------------------------------------------------ the bounds, in words


def most(learner, P, first, E, Q):
    """(T1) and (T2), every constant as in the text."""
    etas, G, R = learner.inner.steps, learner.gradient_bound, learner.inner.domain.radius
    rho, C = twins.spread(etas, R, G, learner.smoothness)
    log, a = math.log(2 * len(etas)), min(2.5 * R**2 + R * P, first**2 / 2 + 2 * R * P)
    hinted = [a / eta + (math.sqrt(eta * E / 2) + rho * math.sqrt(2 * log / eta)) ** 2 for eta in etas]
    plain = [a / eta + eta * Q / 2 + 2 * rho * math.sqrt(log * Q) for eta in etas]
    B = a + 4 * rho**2 * log
    in_words = 2.5 * math.sqrt(B * E) + 2 * B / etas[-1]
    return C * math.sqrt(log) + min(hinted), C * math.sqrt(log) + min(plain), C * math.sqrt(log) + in_words


STREAMS = ("linear", "flipping", "absolute", "squared", "against", "against the hint", "turns")
HINTS = ("last", "perfect", "noisy", "zero", "opposite", "random", "stale", "long")


def problem(k):
    """Problem k: a domain, a stream, how hints are made, and how many rounds."""
    rng = np.random.default_rng([17, k])
    names = list(DOMAINS)
    return names[k % len(names)], STREAMS[k % len(STREAMS)], HINTS[k % len(HINTS)], int(rng.integers(1, 400)), rng


def losses_of(kind, X, T, rng):
    """One loss a round: an object, or a function of the decision and the hint that gives one."""
    if kind in ("against", "against the hint"):
        axes = ref.unit(rng.normal(size=(T, X.dim)))

        def answer(axis):
            def against(x, m):
                far = -m if kind == "against the hint" and np.linalg.norm(m) > 0.01 else axis
                return ref.Linear(
                    math.copysign(1.0, far @ (x - X.center) if kind == "against" else 1.0) * ref.unit(far)
                )

            return against

        return [answer(axis) for axis in axes], 1.0 + 1e-9
    if kind == "turns":
        w = np.linspace(0, rng.uniform(0, 20), T)
        a, b = ref.unit(rng.normal(size=(2, X.dim)))
        return [ref.Linear(np.cos(v) * a + np.sin(v) * b) for v in w], 2.0
    stream = ref.make_stream(kind, X, T, rng, str(rng.choice(["abrupt", "gradual", "still"])))
    return stream.losses, stream.gradient_bound


def guess(kind, f, x, past, rng, G):
    """A hint, or None for the default."""
    known = f.gradient(x) if hasattr(f, "gradient") else np.zeros_like(x)  # linear: the gradient itself
    if kind == "last":
        return None
    if kind == "stale":
        return past[-9] if len(past) > 9 else 0 * x
    made = {"perfect": 1.0, "noisy": 1.0, "zero": 0.0, "opposite": -1.0, "random": 0.0, "long": 30.0}[kind] * known
    return made + {"noisy": 0.1, "random": 1.0}.get(kind, 0.0) * G * ref.unit(rng.normal(size=x.size))


def play_problem(k, smoothness=None):
    """Everything that happened in problem k."""
    domain, kind, hinted, T, rng = problem(k)
    X = DOMAINS[domain]()
    losses, G = losses_of(kind, X, T, rng)
    learner, tau = tw.EfficientOptimistic(X, T, G, smoothness), tau_of(X)
    x, xs, gs, E, m = X.center, [], [], 0.0, np.zeros(X.dim)
    for f in losses:
        given = guess(hinted, f, x, gs, rng, G)
        if given is not None:
            learner.hint(given)
            m = shortened(tau(given), G)
        x = learner.decision
        f = f(x, m) if callable(f) else f
        g = tau(f.gradient(x))
        learner.update(f.gradient(x))
        E, m = E + (g - m) @ (g - m), g
        xs.append(x)
        gs.append(g)
    return X, learner, np.array(xs), np.array(gs), E


def rivals(X, gs):
    """Comparators: the minimisers of the linear losses of blocks of 1, 4, 16, ... rounds."""
    T, length = len(gs), 1
    while length < 4 * T:
        starts = range(0, T, length)
        u = [ref.far_point(X, gs[i : i + length].sum(axis=0)) for i in starts]
        yield np.repeat(u, length, axis=0)[:T]
        length *= 4


def check_problem(k):
    """How much of the bounds problem k used up."""
    X, learner, xs, gs, E = play_problem(k)
    Q, share = float((gs * gs).sum()), 0.0
    assert learner.hint_error == pytest.approx(E, rel=1e-9, abs=1e-12)
    for u in rivals(X, gs):
        P, first = ref.path_length(u), float(np.linalg.norm(u[0] - X.center))
        regret, allowed = float((gs * (xs - u)).sum()), most(learner, P, first, E, Q)
        assert regret <= min(allowed) + 1e-9 * (1 + abs(regret)), (k, problem(k)[:4])
        assert allowed[0] <= allowed[2] * (1 + 1e-9)  # the theorem in words is no stronger than what is proved
        share = max(share, regret / min(allowed))
    return share


@pytest.mark.parametrize(("count", "least"), [(28, 0.05), pytest.param(400, 0.1, marks=pytest.mark.slow)])
def test_the_bounds_hold(count, least):
    shares = [check_problem(k) for k in range(count)]
    print(f"{count} problems, largest share of the bound {max(shares):.3f}")
    assert max(shares) > least


@pytest.mark.parametrize("flaw", [None, "away", "bent"])
def test_broken_variants_break_the_bound(flaw):
    """Hints on the wrong side, or members that see the gradient itself: perfect hints no longer bound regret."""
    T, X = 1500, tw.domains.Box([-0.1, -1.0], [0.1, 1.0])
    stream = {
        "bent": [ref.Linear(np.array([0.9, 0.3]))] * T,  # members turn away from the corner, where the box is thin
        "away": [ref.Linear((-1.0) ** t * np.array([0.0, 1.0])) for t in range(T)],
    }
    broken = []
    for losses in stream.values():
        slopes = np.array([f.slope for f in losses])
        trace = twins.efficient_optimistic(
            losses, X.project, X.center, X.radius, horizon=T, gradient_bound=1.0, hints=slopes, flaw=flaw
        )
        u = ref.far_point(X, slopes.sum(axis=0)) if slopes[0, 0] else X.center
        learner = tw.EfficientOptimistic(X, T, 1.0)
        regret = float((slopes * (trace.decisions - u)).sum())
        broken.append(regret > min(most(learner, 0.0, np.linalg.norm(u), 0.0, float((slopes**2).sum()))))
    assert broken == {None: [False, False], "away": [False, True], "bent": [True, False]}[flaw]


def test_the_certificate_is_the_theorem():
    X, T = tw.domains.Ellipsoid([1.0, 2.0, 4.0], bound=2.0), 200
    problem = tw.problems.piecewise_stationary(X, horizon=T, stages=4, rng=0)
    learner = tw.EfficientOptimistic(X, T, problem.gradient_bound(X))
    run = tw.play(learner, problem, decisions=True)
    certificate = tw.regret.certify(learner, problem, run)
    assert certificate.holds
    assert not certificate.failed
    assert {"best fixed"} < {row.against for row in certificate.rows}
    allowed = most(learner, 3.0, 1.0, 5.0, 70.0)
    R, G, C = X.radius, learner.gradient_bound, learner.inner.spread
    a = bounds.descent(learner.inner.steps, R, 3.0, 1.0)
    assert bounds.optimistic(a, learner.inner.steps, R, G, C, 5.0, 70.0) == pytest.approx(min(allowed[:2]))


@pytest.mark.parametrize("wrong", [0, 30])
def test_the_certificate_knows_the_errors_of_the_hints(wrong):
    """Where hints are right (T1) is the least, and E is part of it."""
    X, T, g = tw.domains.Ball(2), 2000, np.array([0.6, 0.8])
    learner = tw.EfficientOptimistic(X, T, 1.0)
    for t in range(T):
        learner.hint(-g if t < wrong else g)
        learner.update(g)
    E, u = 4.0 * wrong, np.tile([0.3, 0.0], (T, 1))
    allowed = most(learner, 0.0, 0.3, E, float(T))
    theorem = learner.card.theorem(learner, np.zeros(T), np.ones(T))
    assert allowed[0] < 0.9 * allowed[1]
    assert theorem.bound(0, T, u, np.zeros(T)) == pytest.approx(allowed[0], rel=1e-9)


# --------------------------------------------------------------------------------- gradients that vary slowly, unhinted


def check_variation(k):
    """(T3) on problem k: smooth losses whose gradients vary by V in all, the same everywhere."""
    rng = np.random.default_rng([23, k])
    names = [name for name in DOMAINS if name != "simplex"]
    X, T = DOMAINS[names[k % len(names)]](), int(rng.integers(2, 400))
    root = rng.normal(size=(X.dim, X.dim))
    A = 10.0 ** rng.uniform(-2, 1) * root @ root.T / np.linalg.norm(root @ root.T, 2)
    L, walk = float(np.linalg.norm(A, 2)), rng.normal(size=(T, X.dim)).cumsum(axis=0) / math.sqrt(T)
    jumps = rng.normal(size=(T, X.dim)) * (rng.random((T, 1)) < 0.02)
    b = X.center + X.radius * (rng.uniform(0, 2) * walk + 10.0 ** rng.uniform(-3, 0) * jumps.cumsum(axis=0))
    G = max(np.linalg.norm(A @ (X.center - v)) for v in b) + L * X.radius
    learner = tw.EfficientOptimistic(X, T, G, L)
    xs, gs, S = [], [], 0.0
    for v in b:
        xs.append(learner.decision)
        gs.append(A @ (xs[-1] - v))
        h = surrogate_gradient(gs[-1], learner._memory.state.inner.y, xs[-1], tol=1e-12)
        S += float(h @ h)
        learner.update(gs[-1])
    xs, gs = np.array(xs), np.array(gs)
    V = float((((b[1:] - b[:-1]) @ A) ** 2).sum())
    etas, R = learner.inner.steps, X.radius
    rho, C = twins.spread(etas, R, G, L)
    log, share = math.log(2 * len(etas)), 0.0
    assert etas[-1] <= 1 / (8 * L)
    assert learner.hint_error <= (16 / 15 * (G**2 + 2 * V) + 0.15 * S) * (1 + 1e-9)  # (6)
    for u in rivals(X, gs):
        P, first = ref.path_length(u), float(np.linalg.norm(u[0] - X.center))
        a = min(2.5 * R**2 + R * P, first**2 / 2 + 2 * R * P)
        allowed = C * math.sqrt(log) + min((a + 10 * rho**2 * log) / etas + 16 / 15 * etas * (G**2 + 2 * V))
        B = a + 10 * rho**2 * log
        in_words = C * math.sqrt(log) + 2.5 * math.sqrt(16 / 15 * B * (G**2 + 2 * V)) + 2 * B / etas[-1]
        regret = float((gs * (xs - u)).sum())
        assert regret <= allowed + 1e-9
        assert allowed <= in_words * (1 + 1e-9)
        share = max(share, regret / allowed)
    return share


@pytest.mark.parametrize("count", [14, pytest.param(200, marks=pytest.mark.slow)])
def test_the_bound_by_variation_holds(count):
    shares = [check_variation(k) for k in range(count)]
    print(f"{count} problems, largest share of the bound {max(shares):.3f}")
    assert max(shares) > 0.01


# -------------------------------------------------------------------------------------------------- the rules of `hint`


def test_random_hints_play_what_the_twin_plays():
    for domain in ("box", "off-centre ellipsoid", "simplex", "interval"):
        X, rng = DOMAINS[domain](), generator(domain)
        stream = ref.make_stream("squared", X, 80, rng)
        G, tau = stream.gradient_bound, tau_of(X)
        hints = np.array([shortened(tau(v), G) for v in G * rng.normal(size=(80, X.dim))])
        twin = twins.efficient_optimistic(
            ref.flattened(stream.losses, tau), X.project, X.center, X.radius, horizon=80, gradient_bound=G, hints=hints,
            tau=tau,
        )  # fmt: skip
        learner, played = tw.EfficientOptimistic(X, 80, G), []
        for f, m in zip(stream.losses, hints, strict=True):
            learner.hint(5 * G * m / np.linalg.norm(m))  # too long
            learner.hint(m)  # the last one counts
            played.append(learner.decision)
            learner.update(f.gradient(played[-1]))
        np.testing.assert_allclose(played, twin.decisions, rtol=0, atol=1e-12 * (1 + np.abs(X.center).max()))
        np.testing.assert_allclose(learner.hint_error, ((twin.gradients - hints) ** 2).sum(), rtol=1e-12)


def test_the_last_gradient_is_the_default_and_a_hint_counts_once():
    X = tw.domains.Ball(2)
    one, two, other = (tw.EfficientOptimistic(X, 50, 1.0) for _ in range(3))
    rng, last = np.random.default_rng(1), np.zeros(2)
    for _ in range(20):
        g = shortened(rng.normal(size=2), 0.9)
        two.hint(last)
        other.hint([0.6, 0.8])
        np.testing.assert_allclose(one.decision, two.decision, rtol=0, atol=1e-14)
        assert np.abs(one.decision - other.decision).max() > 1e-3
        for learner in (one, two, other):
            learner.update(g)
        last = g
    assert one.hint_error == pytest.approx(two.hint_error, rel=1e-12)
    assert abs(other.hint_error / one.hint_error - 1) > 0.01
    other.reset()
    assert np.array_equal(other.decision, [0.0, 0.0])


def test_a_hint_must_come_before_the_decision():
    learner = tw.EfficientOptimistic(tw.domains.Ball(2), 50, 1.0)
    learner.update([1.0, 0.0])
    learner.hint([0.0, 1.0])
    seen = learner.decision
    with pytest.raises(InputError, match=r"round 2: hint came after `decision` was read.*Call hint first"):
        learner.hint([1.0, 0.0])
    assert learner.decision is seen
    saved = learner.state()
    learner.update([1.0, 0.0])
    learner.restore(saved)
    with pytest.raises(InputError, match="hint came after"):
        learner.hint([1.0, 0.0])


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        ([1.0], r"hint has shape \(1,\), the domain has shape \(2,\)"),
        ([np.nan, 0.0], "hint has entries that are nan or infinite"),
        ([np.inf, 0.0], "hint has entries that are nan or infinite"),
        ("north", "hint must be an array of real numbers"),
        (None, "hint must be an array of real numbers"),
        ([1j, 0.0], "hint must be an array of real numbers"),
    ],
)
def test_wrong_hints_are_refused_and_change_nothing(hint, words):
    learner = tw.EfficientOptimistic(tw.domains.Ball(2), 50, 1.0)
    learner.update([1.0, 0.0])
    with refused(learner, words):
        learner.hint(hint)


def test_long_hints_are_shortened():
    for size in (1.0, 7.0, 1e200, 1e308):
        learner = tw.EfficientOptimistic(tw.domains.Ball(2), 50, 1.0)
        learner.hint(size * np.array([0.6, 0.8]))
        np.testing.assert_allclose(learner.state()["inner.hint"], [0.6, 0.8], rtol=1e-12)


def test_a_hint_is_copied_and_part_of_the_state(tmp_path):
    learner = tw.EfficientOptimistic(tw.domains.Simplex(3), 50, 2.0)
    learner.update([1.0, 0.0, -1.0])
    given = np.array([0.0, 1.5, 0.5])
    learner.hint(given)
    given[:] = 9.0
    learner.save(tmp_path / "hinted.npz")
    again = tw.load(tmp_path / "hinted.npz")
    plain = tw.EfficientOptimistic(tw.domains.Simplex(3), 50, 2.0)
    plain.update([1.0, 0.0, -1.0])
    assert np.array_equal(learner.decision, again.decision)
    assert not np.array_equal(learner.decision, plain.decision)
    for one in (learner, again):
        one.update([0.5, 0.5, 0.0])
    assert np.array_equal(learner.decision, again.decision)


def test_play_uses_the_hint_at_hand_then_the_default():
    X = tw.domains.Ellipsoid([1.0, 3.0], bound=2.0)
    problem = tw.problems.piecewise_stationary(X, horizon=60, stages=3, rng=1)
    G = problem.gradient_bound(X)
    played, single = (tw.EfficientOptimistic(X, 60, G) for _ in range(2))
    for learner in (played, single):
        learner.hint([G, 0.0])
    assert np.array_equal(tw.play(played, problem, decisions=True).decisions, stepped(single, problem))


@pytest.mark.parametrize("exact", [tw.domains.Box([-1.0, 0.0], [1.0, 0.5]), tw.domains.Simplex(3)])
def test_one_projection_a_round_counted_by_the_set(exact):
    counted, rng, T = CountedSet(exact), np.random.default_rng(5), 40
    learner = tw.EfficientOptimistic(counted.domain, T, 1.0)
    before = counted.calls
    for t in range(T):
        if t % 3:
            learner.hint(rng.normal(size=exact.dim))
            learner.hint(rng.normal(size=exact.dim))
        if t % 2:
            _ = learner.decision
        learner.update(shortened(rng.normal(size=exact.dim), 1.0))
    assert counted.calls - before == T
    assert learner.queries == tw.Queries(projections=T, gradients=T, values=0)


def test_a_set_that_only_python_projects_onto_takes_hints():
    X = slow_box()
    exact = tw.domains.Box(np.full(3, -1.0), np.full(3, 2.0))
    rng, one, two = np.random.default_rng(6), tw.EfficientOptimistic(X, 30, 2.0), tw.EfficientOptimistic(exact, 30, 2.0)
    for _ in range(30):
        m, g = rng.normal(size=3), shortened(rng.normal(size=3), 2.0)
        for learner in (one, two):
            learner.hint(m)
        np.testing.assert_allclose(one.decision, two.decision, rtol=0, atol=1e-12)
        one.update(g)
        two.update(g)


def test_members_need_a_ball():
    with pytest.raises(InputError, match="moves its members on a ball"):
        tw.EfficientOptimistic(tw.domains.Simplex(3), 10, 1.0, surrogate=tw.domains.Box([-1.0] * 3, [1.0] * 3))


# ----------------------------------------------------------------------------------------------- what hints are worth

CORNERS = {
    "ball": lambda: tw.domains.Ball(3),
    "box": lambda: tw.domains.Box([-1.0, -0.2, -0.5], [1.0, 0.2, 0.5]),
    "simplex": lambda: tw.domains.Simplex(4),
    "ellipsoid": lambda: tw.domains.Ellipsoid([1.0, 4.0, 16.0], bound=1.0),
}


def turning(X, T):
    """Slopes of length at most 1 that turn once, and the best decision of every round: a path of a fixed length."""
    a, b, c = np.linalg.qr(np.random.default_rng(0).normal(size=(X.dim, X.dim)))[0][:3]
    w = np.linspace(0, 2 * np.pi, T)[:, None]
    slopes = np.cos(w) * a + np.sin(w) * b + 0.5 * np.sin(3 * w) * c
    slopes /= np.linalg.norm(slopes, axis=1).max()
    return slopes, np.array([ref.far_point(X, slope) for slope in slopes])


def hinted(X, slopes, hints):
    """The decisions of a learner that is given these hints."""
    learner, xs = tw.EfficientOptimistic(X, len(slopes), 1.0), np.empty_like(slopes)
    for t, (g, m) in enumerate(zip(slopes, hints, strict=True)):
        learner.hint(m)
        xs[t] = learner.decision
        learner.update(g)
    return xs


def unhinted(learner, slopes):
    return tw.play(learner, tw.problems.LinearLosses(slopes), decisions=True).decisions


@pytest.mark.parametrize(
    "horizons",
    [(100, 300, 4000), pytest.param((100, 1000, 10_000, 100_000, 1_000_000), marks=pytest.mark.slow)],
    ids=["short", "long"],
)
@pytest.mark.parametrize("domain", CORNERS)
def test_with_perfect_hints_regret_does_not_grow(domain, horizons):
    """With perfect hints and a path of one length regret does not grow with T, and stays within the theorem's bound."""
    X, ours, others = CORNERS[domain](), [], []
    for T in horizons:
        slopes, u = turning(X, T)
        ours.append(float((slopes * (hinted(X, slopes, slopes) - u)).sum()))
        others.append(float((slopes * (unhinted(tw.EfficientDynamic(X, T, 1.0), slopes) - u)).sum()))
        P, first = ref.path_length(u), float(np.linalg.norm(u[0] - X.center))
        assert ours[-1] <= most(tw.EfficientOptimistic(X, T, 1.0), P, first, 0.0, 0.0)[0]
    print(domain, [round(r, 2) for r in ours], [round(r, 2) for r in others])
    assert ours[-1] <= 1.25 * max(ours[:2])
    if domain in ("box", "simplex"):
        assert others[-1] > 2.5 ** math.log10(horizons[-1] / horizons[0]) * others[0]


def test_with_perfect_hints_regret_grows_with_the_path():
    """The best decision jumps from end to end in every round: P = 2 (T - 1). Against a fixed one regret stays small."""
    X, found = tw.domains.Box([-1.0], [1.0]), {}
    for T in (100, 1000, 10_000):
        slopes = 0.1 * (-1.0) ** np.arange(T)[:, None]
        decisions = hinted(X, slopes, slopes)
        found[T] = float((slopes * decisions).sum() + 0.1 * T)
        P = 2.0 * (T - 1)
        assert found[T] <= most(tw.EfficientOptimistic(X, T, 1.0), P, 1.0, 0.0, 0.0)[0]
        assert float((slopes * decisions).sum()) <= most(tw.EfficientOptimistic(X, T, 1.0), 0.0, 0.0, 0.0, 0.0)[0]
    assert [round(r) for r in found.values()] == [10, 97, 953]


@pytest.mark.parametrize("domain", CORNERS)
def test_small_losses_bound_regret_too(domain):
    """(T2) with Q <= 2 L sum f(x): squared losses that a drifting u explains up to noise, under hints of any kind."""
    X, T, rng = CORNERS[domain](), 600, generator(domain, "small")
    features = rng.normal(size=(T, X.dim))
    features /= np.linalg.norm(features, axis=1, keepdims=True)  # L = 1
    u = np.array([X.project(X.center + 0.5 * X.radius * np.sin(t / 100 + np.arange(X.dim))) for t in range(T)])
    labels = (features * u).sum(axis=1) + 0.05 * rng.normal(size=T)
    P, first = ref.path_length(u), float(np.linalg.norm(u[0] - X.center))
    F = float((((features * u).sum(axis=1) - labels) ** 2).sum() / 2)
    for opposite in (False, True):
        learner, paid, squares = tw.EfficientOptimistic(X, T, 2 * X.radius + 1.0), 0.0, 0.0
        for a, b in zip(features, labels, strict=True):
            if opposite:
                learner.hint((b - a @ X.center) * a)
            error = a @ learner.decision - b
            paid, squares = paid + error**2 / 2, squares + error**2
            learner.update(error * a)
        assert squares <= 2 * paid * (1 + 1e-12)
        assert paid - F <= most(learner, P, first, 0.0, 2 * paid)[1]


USELESS = ("zero", "random", "stale", "opposite", "sideways", "now and then")


def useless(kind, slopes, rng):
    """Hints of length at most 1 that are worth nothing, or less."""
    noise = ref.unit(rng.normal(size=slopes.shape))
    sideways = noise - (noise * slopes).sum(axis=1, keepdims=True) * slopes
    return {
        "zero": 0 * slopes,
        "random": noise,
        "stale": np.roll(slopes, 37, axis=0),
        "opposite": -ref.unit(slopes),
        "sideways": sideways / max(1.0, np.abs(sideways).max()),
        "now and then": np.where(np.arange(len(slopes))[:, None] // 100 % 2, -1.0, 0.0) * slopes,
    }[kind]


def check_useless(k):
    """Regret of problem k over that of EfficientDynamic, or over a fifth of G R sqrt(T) where that was luckier."""
    rng = np.random.default_rng([31, k])
    X, T = list(CORNERS.values())[k % 4](), int(rng.choice([300, 1000, 3000]))
    pieces, noise, turns = int(rng.choice([1, 2, 8])), rng.choice([0.1, 1.0, 3.0]), rng.choice([0.0, 0.0, 2.0])
    slopes = np.repeat(rng.normal(size=(pieces, X.dim)), -(-T // pieces), axis=0)[:T]
    slopes = slopes + noise * rng.normal(size=(T, X.dim)) + turns * (-1.0) ** np.arange(T)[:, None]
    slopes = tau_rows(X, slopes)
    slopes /= np.linalg.norm(slopes, axis=1).max()
    ours = hinted(X, slopes, useless(USELESS[k // 4 % len(USELESS)], slopes, rng))
    others = unhinted(tw.EfficientDynamic(X, T, 1.0), slopes)
    worst = 0.0
    for blocks in {1, pieces}:
        u = [ref.far_point(X, part.sum(axis=0)) for part in np.array_split(slopes, blocks)]
        u = np.repeat(u, [len(part) for part in np.array_split(slopes, blocks)], axis=0)
        mine, theirs = (float((slopes * (xs - u)).sum()) for xs in (ours, others))
        worst = max(worst, mine / max(theirs, 0.2 * X.radius * math.sqrt(T)))
    return worst


def tau_rows(X, rows):
    return np.apply_along_axis(tau_of(X), 1, rows)


@pytest.mark.parametrize("count", [16, pytest.param(480, marks=pytest.mark.slow)])
def test_useless_hints_cost_at_most_twice(count):
    ratios = [check_useless(k) for k in range(count)]
    print(f"useless hints: median {np.median(ratios):.2f}, worst {max(ratios):.2f} times EfficientDynamic")
    assert max(ratios) <= 2.0


def test_members_without_hints_are_worth_their_cost():
    """Hints against every gradient, one learner as it is and one whose every member leans on them."""
    X, T = tw.domains.Ball(3), 1000
    slopes = shortened_rows(np.random.default_rng(0).normal(size=(T, 3)))
    u = ref.far_point(X, slopes.sum(axis=0))
    twin = twins.efficient_optimistic(
        [ref.Linear(g) for g in slopes], X.project, X.center, 1.0, horizon=T, gradient_bound=1.0, hints=-slopes
    )
    n = len(twins.hint_pool(T, 1.0, 1.0))
    regret = float((slopes * (twin.decisions - u)).sum())
    leaning = min(
        (slopes * (twin.points[:, i] + eta * slopes - u)).sum() for i, eta in enumerate(twins.hint_pool(T, 1.0, 1.0))
    )
    assert twin.weights[-1][n:].sum() > 0.9
    assert regret < 0.8 * leaning


def shortened_rows(rows):
    return rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))


@pytest.mark.parametrize("domain", ["box", "simplex"])
def test_where_gradients_vary_slowly_regret_goes_with_their_variation(domain):
    """Slopes that turn once, and noise of 0 to 0.3. EfficientDynamic loses sqrt(T) throughout."""
    X, T = CORNERS[domain](), 10_000
    drift, u = turning(X, T)
    noise = ref.unit(np.random.default_rng(1).normal(size=drift.shape))
    lost = {}
    for sigma in (0.0, 0.03, 0.1, 0.3):
        slopes = 0.5 * drift + sigma * noise
        L = 1 / (8 * X.radius)  # any, for linear losses
        for learner in (tw.EfficientOptimistic(X, T, 1.0), tw.SwordPP(X, T, 1.0, L), tw.EfficientDynamic(X, T, 1.0)):
            xs = unhinted(learner, slopes)
            lost.setdefault(type(learner).__name__, []).append(float((slopes * (xs - u)).sum()))
    ours, theirs, dynamic = lost["EfficientOptimistic"], lost["SwordPP"], lost["EfficientDynamic"]
    assert ours[0] < 0.15 * dynamic[0]
    assert ours[1] < 0.2 * dynamic[1]
    assert 1.5 < ours[3] / ours[2] < 6.0  # 3 times the noise: sqrt(V) is 3 times as large
    assert max(a / b for a, b in zip(ours, theirs, strict=True)) < 1.25  # with one projection where it makes 2N
    assert max(dynamic) < 2 * min(dynamic)
