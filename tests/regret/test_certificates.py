"""Certificates: they hold where the theorem does, and fail where the learner is broken."""

import math

import numpy as np
import pytest

import thalweg as tw
from thalweg.algorithms import thresholds
from thalweg.algorithms.cbce import Betting
from thalweg.algorithms.efficient_adaptive import Theorem4
from thalweg.errors import InputError
from thalweg.regret import certify
from thalweg.theorems import bounds

# --------------------------------------------------------------------------------------- random problems, sound bounds


def random_domain(rng, d):
    kind = rng.integers(5)
    if kind == 0:
        return tw.domains.Ball(d, radius=rng.uniform(0.2, 5.0), center=rng.normal(size=d))
    if kind == 1:
        low = rng.normal(size=d)
        return tw.domains.Box(low, low + rng.uniform(0.1, 3.0, size=d))
    if kind == 2:
        return tw.domains.Simplex(d + 1, total=rng.uniform(0.5, 2.0))
    if kind == 3:
        return tw.domains.Ellipsoid(rng.uniform(0.3, 5.0, size=d), bound=rng.uniform(0.5, 4.0))
    return tw.domains.L1Ball(d, radius=rng.uniform(0.5, 3.0))


def random_problem(rng, small_loss):
    """A domain and a stream: a jumping or walking regression, a drifting classification, or hostile linear losses."""
    X = random_domain(rng, int(rng.integers(1, 5)))
    T = int(rng.integers(40, 200))
    kind = rng.integers(3 if small_loss else 5)
    if kind == 0:
        return X, tw.problems.piecewise_stationary(X, T, int(rng.integers(1, 6)), rng=rng, noise=rng.uniform(0, 1))
    if kind == 1:
        return X, tw.problems.gradual(X, T, step=X.diameter / math.sqrt(T), rng=rng, noise=rng.uniform(0, 0.3))
    features = rng.normal(size=(T, *X.shape)) * rng.uniform(0.1, 3.0)
    if kind == 2:
        weights = np.cumsum(rng.normal(size=(T, *X.shape)), axis=0)
        signs = np.where((features * weights).sum(axis=1) >= 0, 1.0, -1.0)
        return X, tw.problems.LogisticRegression(features, signs)
    if kind == 3:  # the same direction back and forth, in blocks of random lengths
        direction = rng.normal(size=X.shape)
        blocks = np.repeat([1.0, -1.0] * T, rng.integers(1, 40, size=2 * T))[:T]
        return X, tw.problems.LinearLosses(blocks[:, None] * direction)
    return X, tw.problems.AbsoluteRegression(features, rng.normal(size=T))


def small(rng, T, G, L, X):
    """A threshold at which several experts live."""
    scale = 10.0 ** rng.uniform(-5, -2)
    R = X.surrogate.radius
    return lambda m: scale * thresholds.adaptive_paper(m, T=T, G=G, L=L, R=R, delta=1.0) + 1e-3


MAKERS = {
    "EfficientDynamic, Theorem 2": (False, lambda rng, X, T, G, L: tw.EfficientDynamic(X, T, G)),
    "EfficientDynamic, Theorem 3": (True, lambda rng, X, T, G, L: tw.EfficientDynamic(X, T, G, L)),
    "EfficientAdaptive": (True, lambda rng, X, T, G, L: tw.EfficientAdaptive(X, T, G, L)),
    "EfficientAdaptive, many experts": (
        True,
        lambda rng, X, T, G, L: tw.EfficientAdaptive(X, T, G, L, threshold=small(rng, T, G, L, X), restart="current"),
    ),
    "EfficientIntervalDynamic": (True, lambda rng, X, T, G, L: tw.EfficientIntervalDynamic(X, T, G, L)),
    "EfficientIntervalDynamic, many experts": (
        True,
        lambda rng, X, T, G, L: tw.EfficientIntervalDynamic(X, T, G, L, threshold=small(rng, T, G, L, X)),
    ),
    "EfficientCBCE": (False, lambda rng, X, T, G, L: tw.EfficientCBCE(X, gradient_bound=G)),
    "SAOL": (False, lambda rng, X, T, G, L: tw.SAOL(X, gradient_bound=G, gradients="own")),
    "SAOL, shared": (False, lambda rng, X, T, G, L: tw.SAOL(X, gradient_bound=G)),
    "AFLH": (False, lambda rng, X, T, G, L: tw.AFLH(X, T, gradient_bound=G, gradients="own")),
    "AFLH, shared": (False, lambda rng, X, T, G, L: tw.AFLH(X, T, gradient_bound=G)),
    "EfficientAOA": (False, lambda rng, X, T, G, L: tw.EfficientAOA(X, gradient_bound=G, horizon=T)),
    "EfficientCutkosky": (False, lambda rng, X, T, G, L: tw.EfficientCutkosky(X, T, G)),
    "Tracker": (True, lambda rng, X, T, G, L: tw.Tracker(X)),
    "Tracker, without values": (False, lambda rng, X, T, G, L: tw.Tracker(X, loss_floor=None)),
    "OGD": (False, lambda rng, X, T, G, L: tw.OGD(X, horizon=T, gradient_bound=G)),
    "OGD, anytime": (False, lambda rng, X, T, G, L: tw.OGD(X, gradient_bound=G)),
    "SOGD": (False, lambda rng, X, T, G, L: tw.SOGD(X)),
    "Scream": (False, lambda rng, X, T, G, L: tw.Scream(X, T, G, switching_cost=rng.uniform(0, G))),
    "EfficientScream": (False, lambda rng, X, T, G, L: tw.EfficientScream(X, T, G, switching_cost=rng.uniform(0, G))),
}


@pytest.mark.parametrize("problems", [10, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", MAKERS)
def test_hold_on_random_problems(name, problems):
    small_loss, make = MAKERS[name]
    for seed in range(problems):
        rng = np.random.default_rng([seed, len(name)])
        X, problem = random_problem(rng, small_loss)
        learner = make(rng, X, len(problem), problem.gradient_bound(X), problem.smoothness)
        run = tw.play(learner, problem, decisions=True)
        path = X.center + np.zeros((len(problem), *X.shape))
        path = np.array([X.project(p) for p in path + rng.normal(size=path.shape) * X.radius])
        path = np.repeat(path[:: len(path) // 4], 1 + len(path) // 3, axis=0)[: len(path)]  # a few jumps
        u = {"jumps": path}
        if problem.comparators is not None:
            u["planted"] = problem.comparators
        certificate = certify(learner, problem, run, comparators=u)
        assert certificate.holds, f"seed {seed}: {certificate}"
        assert not certificate.failed, f"seed {seed}: {certificate}"


# ----------------------------------------------------------------------------------------------------- broken learners


class Backwards(tw.EfficientDynamic):
    """A sign error."""

    def update(self, gradient, loss=None):
        super().update(-np.asarray(gradient), loss)


def jumps(T, stages=4, dim=2):
    X = tw.domains.Ball(dim)
    return X, tw.problems.piecewise_stationary(X, T, stages, rng=3)


def test_a_sign_error_is_found():
    X, problem = jumps(4000, stages=1)
    G, L = problem.gradient_bound(X), problem.smoothness
    for smoothness in (None, L):
        broken = Backwards(X, len(problem), G, smoothness)
        losses = [broken.step(f) for f in problem]
        certificate = certify(broken, problem, losses)
        assert not certificate.holds
        assert certificate.violated
        assert certificate.slack < 0
        assert "VIOLATED" in repr(certificate)


@pytest.mark.parametrize("kind", [tw.EfficientCBCE, tw.EfficientAOA, tw.SAOL, tw.AFLH])
def test_no_restart_is_found(kind):
    """Losses <g, x> with g = -1 for a long time, then +1: without restarts, regret lasts as long after the change."""
    T = 60_000
    X = tw.domains.Box([-1.0], [1.0])
    sign = np.where(np.arange(T) < T // 2, -1.0, 1.0)
    problem = tw.problems.LinearLosses(sign[:, None])
    sound = kind(X, gradient_bound=1.0, horizon=T)
    run = tw.play(sound, problem)
    whole_half = [(T // 2, T)]
    assert certify(sound, problem, run, intervals=whole_half).holds

    sums = np.concatenate([[0.0], np.cumsum(sign)[:-1]])
    leader = np.clip(-sums / 100.0, -1.0, 1.0)  # descent with steps of 1/100 on all rounds, projected at the end
    stale = sign * leader
    certificate = certify(sound, problem, stale, intervals=whole_half)
    assert not certificate.holds
    assert certificate.tightest.start == T // 2


class Doubled(tw.OGD):
    """States a step and takes twice as long ones."""

    def update(self, gradient, loss=None):
        super().update(2 * np.asarray(gradient), loss)


def test_a_doubled_step_is_found():
    """Against gradients that alternate, descent with step e pays e/2 a round to its starting point: just its bound."""
    T = 100
    X = tw.domains.Ball(1)
    problem = tw.problems.LinearLosses(np.where(np.arange(T) % 2, -1.0, 1.0)[:, None])
    for kind, holds in ((tw.OGD, True), (Doubled, False)):
        learner = kind(X, step_size=0.1)
        decisions = []
        losses = []
        for f in problem:
            decisions.append(learner.decision.copy())
            losses.append(learner.step(f))
        run = tw.Run(np.array(losses), learner.queries, 0.0, decisions=np.array(decisions))
        certificate = certify(learner, problem, run, comparators=np.zeros((T, 1)))
        row = next(row for row in certificate.rows if row.against == "given")
        assert row.bound == pytest.approx(0.1 * T / 2)
        assert row.regret == pytest.approx((0.1 if holds else 0.2) * T / 2)
        assert certificate.holds is holds


def test_a_doubled_step_is_found_in_an_ensemble():
    """The same with a pool: the shortest step is the best one, and Hedge has little to say."""
    T = 4096
    X = tw.domains.Ball(1)
    problem = tw.problems.LinearLosses(np.where(np.arange(T) % 2, -1.0, 1.0)[:, None])
    learner = tw.EfficientDynamic(X, T, 1.0)
    tw.play(learner, problem)
    pool, rate = learner.inner.step_sizes, learner.inner.meta_rate
    for factor, holds in ((1, True), (2, False)):
        broken = tw.OneProjection(X, lambda Y, f=factor: tw.Ensemble(Y, f * pool, meta_rate=rate))
        run = tw.play(broken, problem)
        certificate = certify(learner, problem, run.losses, comparators=np.zeros((T, 1)))
        assert certificate.holds is holds


# --------------------------------------------------------------------------------------------------------- assumptions


def sound_run(**changes):
    X, problem = jumps(100)
    settings = dict(G=problem.gradient_bound(X), L=problem.smoothness, T=100) | changes
    learner = tw.EfficientDynamic(X, settings["T"], settings["G"], settings["L"], on_violation="clip")
    return learner, problem


def failed(certificate):
    return [assumption.name.split(" =")[0] for assumption in certificate.failed]


@pytest.mark.parametrize("decisions", [True, False])  # without them, gradients are those that it did not refuse
def test_all_assumptions_hold_on_a_sound_run(decisions):
    learner, problem = sound_run()
    certificate = certify(learner, problem, tw.play(learner, problem, decisions=decisions))
    assert {a.held for a in certificate.assumptions} == {True}
    assert failed(certificate) == []


@pytest.mark.parametrize(
    ("changes", "decisions", "named", "seen"),
    [
        ({"G": 0.01}, True, "gradients at most G", "clipped"),
        ({"L": 1e-3}, False, "losses smooth with L", "L = "),
        ({"T": 50}, False, "at most T", "100 rounds"),
    ],
)
@pytest.mark.filterwarnings("ignore::thalweg.errors.HorizonWarning", "ignore::thalweg.errors.ClippingWarning")
def test_a_setting_that_does_not_hold_is_named(changes, decisions, named, seen):
    learner, problem = sound_run(**changes)
    certificate = certify(learner, problem, tw.play(learner, problem, decisions=decisions))
    assert failed(certificate) == [named]
    assert seen in certificate.failed[0].seen


def test_a_kink_is_named():
    X, problem = jumps(100)
    kinked = tw.problems.AbsoluteRegression(problem.features, problem.labels)
    learner = tw.EfficientDynamic(X, 100, kinked.gradient_bound(X), 1.0)
    certificate = certify(learner, kinked, tw.play(learner, kinked))
    assert failed(certificate) == ["losses smooth with L"]
    assert "kink" in repr(certificate)


def test_negative_losses_are_named():
    learner, problem = sound_run()
    run = tw.play(learner, problem)
    certificate = certify(learner, problem, run.losses - 1.0)
    assert failed(certificate) == ["losses >= 0"]
    assert f"in round {np.argmin(run.losses)}" in repr(certificate)


def test_comparators_outside_are_named():
    learner, problem = sound_run()
    run = tw.play(learner, problem)
    certificate = certify(learner, problem, run, comparators=np.full((100, 2), 5.0))
    assert [a.name for a in certificate.failed] == ["comparators in the domain: given"]


def test_an_observed_range_is_named():
    X, problem = jumps(100)
    learner = tw.EfficientAdaptive(
        X, 100, problem.gradient_bound(X), problem.smoothness, feedback_range="observed", threshold=lambda m: 1.0
    )
    assert failed(certify(learner, problem, tw.play(learner, problem))) == ["feedback within 2GR"]


def test_gradients_are_as_long_as_the_learner_saw_them():
    """On a simplex only the part along it counts, unless the learner was given a surrogate of its own."""
    X = tw.domains.Simplex(3)
    problem = tw.problems.LinearLosses(np.tile([6.0, 4.0, 5.0], (20, 1)))
    for surrogate, longest in ((None, math.sqrt(2)), (tw.domains.Ball(3), math.sqrt(77))):
        learner = tw.EfficientDynamic(X, 20, longest, surrogate=surrogate)
        certificate = certify(learner, problem, tw.play(learner, problem, decisions=True))
        seen = next(a for a in certificate.assumptions if a.name.startswith("gradients"))
        assert (seen.held, seen.seen) == (True, f"longest {longest:.4g}")
        assert learner.flattens is (surrogate is None)


def test_smoothness_is_that_along_the_flat():
    X = tw.domains.Simplex(2)
    problem = tw.problems.LinearRegression(np.tile([6.0, 4.0], (20, 1)), np.full(20, 5.0))  # 52 in all, 2 along X
    for surrogate, held in ((None, True), (tw.domains.Ball(2), False)):
        learner = tw.EfficientDynamic(X, 20, 100.0, 2.0, surrogate=surrogate)
        certificate = certify(learner, problem, tw.play(learner, problem))
        assert [a.held for a in certificate.assumptions if a.name.startswith("losses smooth")] == [held]


@pytest.mark.parametrize("decisions", [True, False])
def test_losses_that_are_negative_outside_the_domain_accuse_nobody(decisions):
    """Theorem 3 uses ||g||^2 <= 2 L f, which f >= 0 on X alone does not give: here f may have any regret."""
    X, T = tw.domains.Box([-1.0], [1.0]), 400
    # 1 + s x: >= 0 on [-1, 1], negative outside. As a straight line it is smooth with any L.
    problem = tw.problems.FromLosses([tw.losses.Linear([(-1.0) ** t], 1.0) for t in range(T)])
    learner = tw.EfficientDynamic(X, T, 1.0, 1e-6)
    certificate = certify(learner, problem, tw.play(learner, problem, decisions=decisions))
    assert not certificate.holds  # the bound, without what it assumes, is a small number
    assert not certificate.violated
    assert "VIOLATED" not in repr(certificate)
    outside = next(a for a in certificate.assumptions if "outside the domain" in a.name)
    assert outside.held is (False if decisions else None)
    assert (outside in certificate.failed) is decisions
    assert ("promises nothing" if decisions else "unless an unknown assumption failed") in repr(certificate)


FALLING = {
    "Tracker": lambda X: tw.Tracker(X, curvature=False),
    "Tracker, floor": lambda X: tw.Tracker(X, curvature=False, loss_floor=-1.0),
    "Tracker, without values": lambda X: tw.Tracker(X, curvature=False, loss_floor=None),
    "EfficientDynamic": lambda X: tw.EfficientDynamic(X, 1000, 1.0, 1e6),
}


@pytest.mark.parametrize("name", FALLING)
def test_losses_below_the_floor_at_a_comparator_accuse_nobody(name):
    """Every loss paid is above the floor, that of the comparator is not: the proof says nothing."""
    X, losses = tw.domains.Box([-1.0], [1.0]), []
    learner = FALLING[name](X)
    for _ in range(1000):  # 1e-6 at the learner's decision, and less to its right
        losses.append(tw.losses.Linear([-1.0], learner.decision[0] + 1e-6))
        assert learner.step(losses[-1]) == pytest.approx(1e-6)
    problem = tw.problems.FromLosses(losses)
    again = FALLING[name](X)
    certificate = certify(again, problem, tw.play(again, problem, decisions=True))
    assert not certificate.violated
    assert "VIOLATED" not in repr(certificate)
    floors = [a for a in certificate.assumptions if a.name.startswith("losses >= ") and "outside" not in a.name]
    if name == "Tracker, without values":
        assert floors == []
        assert certificate.holds
        return
    least = min(loss.value([1.0]) for loss in losses)
    floor = -1.0 if "floor" in name else 0.0
    assert [(a.name, a.held) for a in floors] == [(f"losses >= {floor:g}", least >= floor)]
    assert certificate.holds is (name != "Tracker")
    if least < floor:
        assert f"least {least:.4g}, of 'best fixed' in round 0" in floors[0].seen


def test_the_floor_is_looked_at_where_comparators_move_too():
    X = tw.domains.Box([-1.0], [1.0])
    problem = tw.problems.LinearLosses(np.ones((40, 1)))
    learner = tw.Tracker(X, loss_floor=-1.0)
    run = tw.play(learner, problem, decisions=True)
    for far, held in ((-1.0, True), (-1.5, False)):
        u = np.where(np.arange(40) == 7, far, 0.5)[:, None]
        certificate = certify(learner, problem, run, comparators={"mine": u}, intervals=[(4, 12)])
        floor = next(a for a in certificate.assumptions if a.name == "losses >= -1")
        assert floor.held is held
        assert held or floor.seen == "least -1.5, of 'mine' in round 7"


def test_losses_of_ones_own_that_are_never_negative_pass():
    X, T = tw.domains.Ball(2), 100
    losses = [tw.losses.Squared([1.0, 0.5], b) for b in np.linspace(-1, 1, T)]
    problem = tw.problems.FromLosses(losses, shape=(2,))
    learner = tw.EfficientDynamic(X, T, 10.0, 1.25)
    certificate = certify(learner, problem, tw.play(learner, problem, decisions=True))
    assert certificate.holds
    assert [a.held for a in certificate.assumptions if "outside" in a.name] == [True]


def test_more_markers_than_the_learner_keeps():
    """The bound of early intervals needs markers that were overwritten: they follow from the losses."""
    T = 70_000
    X = tw.domains.Ball(1)
    problem = tw.problems.LinearRegression(np.ones((T, 1)), np.where(np.arange(T) % 7 < 3, 1.0, -1.0))
    learner = tw.EfficientAdaptive(X, T, problem.gradient_bound(X), problem.smoothness, threshold=lambda m: 0.1)
    run = tw.play(learner, problem)
    assert learner.marker_count > len(learner.markers) == 65_536
    intervals = [(0, T), (0, 100), (1000, 3000), (T - 3000, T)]
    certificate = certify(learner, problem, run, intervals=intervals)
    assert certificate.holds, certificate
    theorem = Theorem4(learner, run.losses, np.ones(T))
    paid = [part.sum() for part in np.split(run.losses, theorem.markers[1:])]
    assert theorem.markers.size == learner.marker_count
    assert min(paid[:-1]) > 0.1  # each unit interval ends where its loss exceeds C
    assert (theorem.markers[-65_536:] + 1).tolist() == learner.markers
    with pytest.raises(InputError, match="the losses that the learner was given"):
        certify(learner, problem, 2 * run.losses, intervals=intervals)


# ----------------------------------------------------------------------------------------------------------- bad input


def test_bad_input():
    learner, problem = sound_run()
    run = tw.play(learner, problem)
    sogd = tw.SOGD(learner.domain)
    of_sogd = tw.play(sogd, problem)
    for given, options, message in (
        ((tw.Ader(learner.domain, 100, 1.0), problem, run), {}, "knows the theorems of"),
        ((learner, problem, run.losses[:50]), {}, "has played 100 rounds, the run has 50"),
        ((learner, problem, run), {"intervals": "dyadic"}, "start with the run"),
        ((learner, problem, run), {"intervals": "weekly"}, "'dyadic', 'whole' or pairs"),
        ((learner, problem, run), {"intervals": [(0, 101)]}, "0 <= start < stop <= 100"),
        ((learner, problem, run), {"intervals": []}, "at least one interval"),
        ((sogd, problem, of_sogd), {}, "decisions=True"),
    ):
        with pytest.raises(InputError, match=message):
            certify(*given, **options)


def test_table_and_repr():
    learner, problem = sound_run()
    certificate = certify(learner, problem, tw.play(learner, problem))
    rows = certificate.table()
    assert [row["against"] for row in rows] == ["best fixed", "planted"]
    assert all(row["slack"] == row["bound"] - row["regret"] for row in rows)
    assert certificate.slack == min(row["slack"] for row in rows)
    assert "Theorem 3" in repr(certificate)
    assert "held: losses >= 0" in repr(certificate)


# ------------------------------------------------------------------------------------------------- the parts of bounds


def test_small_loss_solves_its_inequality():
    rng = np.random.default_rng(0)
    for _ in range(200):
        F, a, b, c = rng.uniform(0, 100), rng.uniform(0, 50), rng.uniform(0, 20), rng.uniform(0, 0.99)
        X = F + bounds.small_loss(F, a, b, c)
        assert pytest.approx(a + b * math.sqrt(X) + c * X, rel=1e-9) == X - F
        more = X * 1.01 + 1e-6
        assert more - F > a + b * math.sqrt(more) + c * more
    assert bounds.small_loss(1.0, 1.0, 1.0, 1.0) == math.inf


@pytest.mark.parametrize("size", [0.1, 1.0, 1.4])
@pytest.mark.parametrize("wealth", [1.0, 1e-4])
@pytest.mark.parametrize("Q", [0.5, 3.0, 400.0])
def test_parameter_free_is_the_maximum_it_says(size, wealth, Q):
    cost = math.log1p(4 * Q) / (2 * bounds.NEWTON) + bounds.NEWTON / 8
    X = np.linspace(0, 40 * math.sqrt(Q) + 100, 200_001)
    f = np.where(X <= Q, X**2 / (4 * Q), X / 2 - Q / 4)
    best = wealth + (X * size - wealth * np.exp(np.minimum(f - cost, 500.0))).max()
    assert bounds.parameter_free(size, wealth, Q) == pytest.approx(best + 2 * math.sqrt(2 * Q) * size, rel=1e-6)


def test_printed_constants_of_the_paper_are_larger():
    """Lemma 3 with 4L in the place of 2L, at a few values: our bound of the same thing is never larger."""
    for m in (1, 5, 100):
        for t in (10, 10_000):
            for G, R, L, X in ((1.0, 1.0, 1.0, 10.0), (5.0, 3.0, 9.0, 500.0)):
                gamma, mu = math.log(1 + 2 * m), thresholds.mu(t)
                printed = 4 * R * (3 * math.sqrt(gamma) + mu) * math.sqrt(L * X) + 18 * G * R * gamma + 6 * G * R * mu
                a, k = bounds.adapt_ml_prod(m, t, R, G)
                assert a + k * math.sqrt(2 * L * X) <= printed


class Marked:
    """Just enough of a learner for the pieces of a cover."""

    gradient_bound, smoothness, markers, marker_count = 1.0, 1.0, [1, 4, 5, 9, 10, 20, 21], 7
    domain = tw.domains.Ball(1)
    threshold = staticmethod(lambda m: 100.0 * m)

    def __init__(self):
        self.inner = self


def test_pieces_of_a_problem_dependent_cover():
    theorem = Theorem4(Marked(), np.full(30, 2.0), np.ones(30))
    # Markers 1..7 stand at rounds 0, 3, 4, 8, 9, 19, 20; expert m lives until marker m + lowbit(m).
    assert list(theorem.pieces(0, 30)) == [(1, 0, 3), (2, 3, 8), (4, 8, 30)]
    assert list(theorem.pieces(1, 30)) == [(0, 1, 3), (2, 3, 8), (4, 8, 30)]
    assert list(theorem.pieces(5, 7)) == [(0, 5, 7)]
    assert list(theorem.pieces(9, 25)) == [(5, 9, 19), (6, 19, 25)]
    assert list(theorem.pieces(25, 30)) == [(0, 25, 30)]
    assert theorem.before(5, 7) == 4.0  # two rounds of the largest loss
    assert theorem.before(25, 30) == 10.0


def test_pieces_of_a_cover_of_rounds():
    X = tw.domains.Ball(1)
    theorem = Betting(tw.EfficientCBCE(X, gradient_bound=1.0), np.ones(20), np.ones(20))
    assert list(theorem.pieces(0, 12)) == [(1, 0, 1), (2, 1, 3), (4, 3, 7), (8, 7, 12)]
    assert list(theorem.pieces(4, 6)) == [(5, 4, 5), (6, 5, 6)]
