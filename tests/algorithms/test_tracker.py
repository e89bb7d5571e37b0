"""The compiled Tracker: its vectors, its twin, mutants of the twin, scaling, queries, refusals and very long runs."""

import functools
import math
import time
import tracemalloc

import numpy as np
import pytest
from thalweg.lab.studies.tracker import cases, runs

import thalweg as tw
from tests.samples import refused
from tests.twins import tracker as ref
from tests.twins.dynamic import along, everything
from tests.twins.test_tracker_twin import PLANE
from tests.worlds import CountedLoss, CountedSet, flat_polytope, slow_box, tau_of
from thalweg.errors import InputError
from thalweg.lab.streams import measured
from thalweg.learners.contract import core
from thalweg.learners.tracker.kernels import first_row
from thalweg.testing import check_learner

BALL = tw.domains.Ball(2, radius=2.0)


def inside(learner):
    """The state of its machine on the ball."""
    return core(learner._memory.state)


def feed(learner, rounds):
    for g, f in rounds:
        learner.update(np.array(g, dtype=float), f)


def turning(T=400, scale=1.0):
    """Squared losses whose best decision turns around every 50 rounds; they are scaled by the square of `scale`."""
    t = np.arange(1, T + 1)
    a = np.column_stack([np.cos(t), np.sin(2 * t)])
    u = np.where(t[:, None] // 50 % 2 == 0, 1.0, -1.0) * [1.0, -0.5]
    return tw.problems.LinearRegression(scale * a, scale * (np.sum(a * u, axis=1) + 0.5 * np.sin(3 * t)))


# -------------------------------------------------------------------------------------------- the twin, on many streams


def tau(domain):
    if isinstance(domain, tw.domains.Fantope):
        d = domain.shape[0]
        return lambda v: along(np.eye(d).reshape(1, -1))((v.reshape(d, d) + v.reshape(d, d).T).ravel() / 2)
    return tau_of(domain)


def twin_of(learner, kind=ref.Tracker):
    """The twin with the same settings; the library's tolerance is relative to the scale of the set."""
    X = learner.domain
    curved = learner.curvature is True or (learner.curvature == "auto" and X.dim <= 64)
    return kind(
        lambda y: X.project(y.reshape(X.shape)).ravel(),
        learner.surrogate.center.ravel(),
        learner.surrogate.radius,
        tau(X) if learner.flattens else everything,
        intervals=learner.intervals,
        curvature=curved,
        start=None if learner.start is None else np.ravel(learner.start),
        tolerance=lambda y: (X.tolerance * max(X.radius, np.abs(X.center).max())) ** 2,
    )


class Stream:
    """Absolute and squared losses around decisions that jump; some rounds lack a value, a gradient or a loss."""

    def __init__(self, domain, T, seed, *, growth=1.0, kind="mixed", missing=0.0, still=0.0, free=0.0, noise=1.0):
        rng = np.random.default_rng(seed)
        a = rng.normal(size=(T, domain.dim))
        lengths = rng.uniform(0.8, 1.0, size=(T, 1))  # equal ones make ties, of when to join and to mark
        self.a = lengths * a / np.linalg.norm(a, axis=1, keepdims=True)
        places = domain.center + domain.radius * rng.normal(size=(1 + T // 60, *domain.shape))
        u = np.array([domain.project(place).ravel() for place in places]).repeat(60, axis=0)[:T]
        self.b = np.sum(self.a * u, axis=1) + noise * domain.radius * rng.choice([-1, 1], size=T)
        self.size = growth ** np.arange(T)
        self.squared = {"mixed": rng.random(T) < 0.3, "absolute": np.zeros(T, bool), "squared": np.ones(T, bool)}[kind]
        self.missing, self.still, self.free = (rng.random(T) < part for part in (missing, still, free))

    def __len__(self):
        return len(self.b)

    def ask(self, t, x):
        """The gradient at x, and the value or None."""
        error = float(self.a[t] @ x - self.b[t])
        g, f = (error, error**2 / 2) if self.squared[t] else (math.copysign(1.0, error), abs(error))
        g, f = self.size[t] * g * self.a[t] * (not self.still[t]), self.size[t] * f * (not self.free[t])
        return g, None if self.missing[t] else f


def apart(learner, twin, stream):
    """The largest difference of their decisions, relative to the radius. Both see the losses at their own decisions."""
    worst, floor = 0.0, learner.loss_floor or 0.0
    for t in range(len(stream)):
        g, f = stream.ask(t, learner.decision.ravel())
        learner.update(g.reshape(learner.domain.shape), None if f is None else f + floor)
        g, f = stream.ask(t, twin.x)
        twin.update(g, f if learner.uses_loss else None)
        worst = max(worst, float(np.abs(learner.decision.ravel() - twin.x).max()) / learner.domain.radius)
    return worst


DOMAINS = {
    "line": lambda: tw.domains.Box([-2.0], [1.0]),
    "plane": lambda: tw.domains.Ball(2),
    "off-centre ball": lambda: tw.domains.Ball(8, radius=0.7, center=np.linspace(-3, 3, 8)),
    "many dimensions": lambda: tw.domains.Ball(70, radius=4.0),
    "box": lambda: tw.domains.Box([-1.0, -0.5, 0.0], [0.5, 1.0, 2.0]),
    "simplex": lambda: tw.domains.Simplex(5, 2.0),
    "flat polytope": flat_polytope,
    "ellipsoid": lambda: tw.domains.Ellipsoid([0.5, 3.0, 9.0], bound=1.0, center=[-1.0, 2.0, 0.0]),
    "fantope": lambda: tw.domains.Fantope(3, 1),
    "product of balls": lambda: tw.domains.ProductOfBalls((2, 2, 2), [1.0, 0.3]),
    "custom": slow_box,
}
CLOSE = {False: 1e-12, True: 1e-11, "auto": 1e-11}  # P starts 1000 times too large, and so makes rounding larger
SOME = dict(missing=0.1, still=0.05, free=0.1)


@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize(
    ("curvature", "intervals", "floor"),
    [("auto", True, 0.0), (False, True, -3.0), ("auto", False, 2.0), (False, True, None), ("auto", True, None)],
    ids=["all", "no curvature", "no intervals", "no values, no curvature", "no values"],
)
def test_the_twin_plays_the_same(name, curvature, intervals, floor):
    learner = tw.Tracker(DOMAINS[name](), curvature=curvature, intervals=intervals, loss_floor=floor)
    twin = twin_of(learner)
    stream = Stream(learner.domain, 180, seed=len(name), **SOME)
    assert apart(learner, twin, stream) < CLOSE[curvature]
    assert same_inside(learner, twin)
    assert (learner.marker_count > 0) == intervals


def same_inside(learner, twin):
    """Whether the two have the same members and records."""
    s = inside(learner)
    first = int(first_row(s))
    rows = slice(first, s.members.sizes[0])
    descents = [member for member in twin.members if member.k is not None]
    order = [member for member in twin.members if member.k is None] + descents
    place = [twin.members.index(member) for member in order]
    slots = {0: twin.records[0]}
    slots |= {1 if record.slot == math.inf else 2 + record.slot: record for record in twin.records[1:]}
    assert learner.records.keys() == slots.keys()
    assert (learner.marker_count, s.members.sizes[2], s.records.counts[1]) == (twin.m, twin.K, twin.i_min)
    assert learner.changes == twin.changes
    near = functools.partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-11 * learner.domain.radius)
    near(learner.points.reshape(s.members.sizes[0], -1)[first:], [member.point for member in order])
    near(learner.weights[first:], twin.p[place])
    for j, record in slots.items():
        near(s.records.p[j, rows], record.p[place])
        near([s.records.B[j], s.records.V[j]], [record.B, record.V])
        assert s.records.anchors[j] == record.anchor
    return True


@pytest.mark.slow
@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize("curvature", ["auto", False])
@pytest.mark.parametrize("values", [True, False])
@pytest.mark.parametrize("kind", ["absolute", "squared"])
def test_the_twin_plays_the_same_for_long(name, curvature, values, kind):
    """Rounding may decide whether D restarts, or a longer step joins: no stream here comes so near."""
    learner = tw.Tracker(DOMAINS[name](), curvature=curvature, loss_floor=0.0 if values else None)
    stream = Stream(learner.domain, 1000, seed=7, kind=kind, **SOME)
    assert apart(learner, twin_of(learner), stream) < 10 * CLOSE[curvature]


@pytest.mark.parametrize("growth", [1.05, 0.95])
@pytest.mark.parametrize("curvature", [False, True])
def test_the_twin_when_losses_grow_and_fall(growth, curvature):
    learner = tw.Tracker(BALL, curvature=curvature)
    twin = twin_of(learner)
    assert apart(learner, twin, Stream(BALL, 400, seed=3, growth=growth, missing=0.05)) < 1e-12
    anchored = inside(learner).records.counts[2]
    assert anchored > 3 if growth > 1 else anchored == 0
    assert twin.records[0].anchored > 1 or growth < 1


def test_the_twin_when_members_join_many_records():
    learner = tw.Tracker(BALL, curvature=False)
    twin = twin_of(learner)
    stream = Stream(BALL, 900, seed=5, kind="absolute")
    joined = 0
    for t in range(len(stream)):
        members, records = learner.multipliers.size, len(learner.records)
        g, f = stream.ask(t, learner.decision)
        learner.update(g, f)
        twin.update(g, f)
        assert learner.decision == pytest.approx(twin.x, abs=1e-12)
        joined += 0 < members < learner.multipliers.size and records > 1
    assert joined > 1
    assert learner.marker_count > 20
    assert same_inside(learner, twin)


@pytest.mark.parametrize(
    ("domain", "start"),
    [
        (BALL, [1.0, -1.5]),
        (tw.domains.Simplex(3), [0.0, 0.0, 1.0]),
        (tw.domains.Fantope(3, 1), np.diag([1.0, 0.0, 0.0])),
        (slow_box(), [-1.0, 2.0, 0.0]),
    ],
)
def test_the_twin_from_another_start(domain, start):
    learner = tw.Tracker(domain, start=start)
    np.testing.assert_allclose(learner.decision, start, atol=1e-12)
    twin = twin_of(learner)
    assert apart(learner, twin, Stream(domain, 250, seed=2, kind="squared", noise=0.2, missing=0.1)) < CLOSE[True]
    assert any(getattr(member, "starts", 0) for member in twin.members)  # D went back to the start


def settled(domain, T=260, change=200):
    """Squared losses without noise around one decision, then around another."""
    stream, rng = Stream(domain, T, seed=0, kind="squared"), np.random.default_rng(0)
    u = [domain.project(domain.center + domain.radius * rng.normal(size=domain.shape)).ravel() for _ in range(2)]
    stream.b = np.where(np.arange(T) < change, stream.a @ u[0], stream.a @ u[1])
    return stream


@pytest.mark.parametrize("intervals", [True, False])
def test_the_twin_after_an_evident_change(intervals):
    learner = tw.Tracker(tw.domains.Ball(3), intervals=intervals)
    twin = twin_of(learner)
    stream = settled(learner.domain)
    assert apart(learner, twin, stream) < 1e-9  # errors of the calm are rounding, and D's P is made of them
    assert learner.changes == twin.changes
    assert (twin.changes > 0) == intervals
    assert (1 in learner.records) == intervals
    assert (apart(learner.clone(), twin_of(learner, Forgetful), stream) > 1e-6) == intervals


def test_the_twin_when_the_first_value_is_missing():
    """C then uses values where they are given, estimates where not."""
    learner = tw.Tracker(tw.domains.Ball(3))
    stream = Stream(learner.domain, 200, seed=4, kind="squared", noise=0.2, missing=0.3)
    stream.missing[0] = True
    twin = twin_of(learner)
    assert apart(learner, twin, stream) < CLOSE[True]
    assert same_inside(learner, twin)
    assert {type(member) for member in twin.members} == {ref.Descent, ref.Curved, ref.Mixed}


def test_the_twin_in_a_ball_of_ones_own():
    """On a flat set gradients are then used as they are."""
    learner = tw.Tracker(tw.domains.Simplex(3), surrogate=tw.domains.Ball(3, radius=2.0, center=[1.0, 0.0, 0.0]))
    assert apart(learner, twin_of(learner), Stream(learner.domain, 200, seed=1, **SOME)) < 1e-12


# ------------------------------------------------------------------------------ mutants: what equality does not forgive


class Backwards(ref.Tracker):
    """Runs up the hill."""

    def surrogate(self, g):
        return -super().surrogate(g)


class Uncut(ref.Tracker):
    """Records see all of a gain."""

    def seen(self, r, f):
        return r


class Early(ref.Tracker):
    """A new record sees rounds before its birth."""

    def mark(self, f, n):
        m = self.m
        super().mark(f, n)
        if self.m > m:
            self.records[-1].A = self.records[0].A.copy()


class Anchored(ref.Tracker):
    """A record's grid of rates stays where it was at its birth."""

    def weigh(self):
        for record in self.records:
            record.anchor = max(record.anchor, self.i_min - 2)
        super().weigh()


class Homeward(ref.Tracker):
    """Longer steps join at the centre."""

    def admit(self):
        y, self.y = self.y, self.center.copy()
        super().admit()
        self.y = y


class Rare(ref.Tracker):
    """Markers wait for one more of the largest losses."""

    def mark(self, f, n):
        m = self.m
        super().mark(f, n)
        if self.m > m:
            self.acc = -self.F


class Uneven(ref.Tracker):
    """Priors fall a little faster."""

    def log_prior(self, k):
        return 1.01 * super().log_prior(k)


class Uncredited(ref.Tracker):
    """A gain above all before counts in full."""

    def credit(self, Q):
        self.Bt = max(self.Bt, max(map(abs, Q))) if self.B0 else self.Bt
        super().credit(Q)


class Calm(ref.Tracker):
    """D never restarts."""

    def update(self, g, f=None):
        super().update(g, f)
        for member in self.members:
            if isinstance(member, ref.Renewed):
                member.alarm = 0.0


class Standing(ref.Tracker):
    """Walkers suppose that nothing walks."""

    kinds = ref.Curved, ref.Curved, ref.Curved, ref.Renewed


class Forgetful(ref.Tracker):
    """A change is never evident."""

    def recall(self):
        pass


class Askew(ref.Tracker):
    """The reduction is left out."""

    def surrogate(self, g):
        return self.flatten(np.asarray(g, dtype=float))


MUTANTS = [Backwards, Uncut, Early, Anchored, Homeward, Rare, Uneven, Uncredited, Calm, Standing, Askew]


STREAMS = {Anchored: dict(growth=1.05), Uncredited: dict(growth=1.05), Calm: dict(kind="squared", noise=0.2)}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda kind: kind.__name__)
def test_a_mutant_is_told_apart(mutant):
    learner = tw.Tracker(tw.domains.Box([-1.0, -0.5], [0.5, 2.0]))
    stream = Stream(learner.domain, 300, seed=3, **STREAMS.get(mutant, {}))
    assert apart(learner.clone(), twin_of(learner), stream) < CLOSE[True]
    assert apart(learner, twin_of(learner, mutant), stream) > 1e-6


class Even(ref.Mixed):
    """All helpers count alike."""

    def learn(self, *args):
        value = super().learn(*args)
        self.point = self.helpers.mean(axis=0)
        return value


class Twice(ref.Mixed):
    """Losses are taken to be twice as large."""

    def learn(self, *args):
        return 2 * super().learn(*args)


@pytest.mark.parametrize("mutant", [Even, Twice], ids=lambda kind: kind.__name__)
def test_a_mutant_without_values_is_told_apart(mutant, monkeypatch):
    learner = tw.Tracker(tw.domains.Box([-1.0, -0.5], [0.5, 2.0]), loss_floor=None)
    stream = Stream(learner.domain, 60, seed=3, kind="squared", noise=0.2)
    assert apart(learner.clone(), twin_of(learner), stream) < CLOSE[True]
    monkeypatch.setattr(ref, "Mixed", mutant)
    assert apart(learner, twin_of(learner), stream) > 1e-6


# ------------------------------------------------------------------------------------------------------------- scaling


@pytest.mark.parametrize("name", ["plane", "simplex", "ellipsoid", "custom"])
@pytest.mark.parametrize("curvature", [False, True])
def test_scaling_by_a_power_of_two_changes_no_bit(name, curvature):
    decisions = []
    for scale in (1.0, 2.0**20, 2.0**-20):
        learner = tw.Tracker(DOMAINS[name](), curvature=curvature)
        stream, played = Stream(learner.domain, 300, seed=1, growth=1.02, **SOME), []
        for t in range(len(stream)):
            g, f = stream.ask(t, learner.decision)
            learner.update(scale * g, None if f is None else scale * f)
            played.append(learner.decision)
        decisions.append(played)
        assert learner.marker_count > 1
    assert np.array_equal(decisions[0], decisions[1])
    assert np.array_equal(decisions[0], decisions[2])


@pytest.mark.parametrize(("curvature", "floor"), [(False, 0.0), (True, 0.0), (True, None)])
def test_scaling_whole_runs(curvature, floor):
    plain, *scaled = (
        tw.play(tw.Tracker(BALL, curvature=curvature, loss_floor=floor), turning(1500, scale), decisions=True)
        for scale in (1.0, 2.0**10, 2.0**-10, 1e-35, 1e35)
    )
    for run in scaled[:2]:
        assert np.array_equal(run.decisions, plain.decisions)
    for run in scaled[2:]:
        np.testing.assert_allclose(run.decisions, plain.decisions, atol=1e-10)


# ------------------------------------------------------------------------------------------------------------- queries


@pytest.mark.parametrize("exact", [BALL, tw.domains.Simplex(4)], ids=["ball", "simplex"])
def test_one_projection_one_gradient_one_value(exact):
    world = CountedSet(exact)
    learner = tw.Tracker(world.domain)
    world.calls = 0
    rng = np.random.default_rng(0)
    losses = [CountedLoss(tw.losses.Squared(rng.normal(size=exact.dim), 1.0)) for _ in range(50)]
    for loss in losses:
        learner.step(loss)
    assert world.calls == 50
    assert {(loss.gradients, loss.values) for loss in losses} == {(1, 1)}
    assert learner.queries == tw.Queries(50, 50, 50)
    for _ in range(10):  # values that are not given are not counted
        learner.update(rng.normal(size=exact.dim))
    assert world.calls == 60
    assert learner.queries == tw.Queries(60, 60, 50)
    assert learner.decision is learner.decision
    assert world.calls == 61


def test_without_values_none_is_counted():
    learner = tw.Tracker(BALL, loss_floor=None)
    learner.update([1.0, 0.0], 3.0)
    learner.update([1.0, 0.0])
    assert tw.play(learner, turning(30)).queries == tw.Queries(30, 30, 0)
    assert learner.queries == tw.Queries(32, 32, 0)


# ------------------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("gradient", "loss", "message"),
    [
        ([np.nan, 0.0], 1.0, "Tracker, round 4: gradient has entries that are nan or infinite"),
        ([0.0, -np.inf], 1.0, "gradient has entries that are nan or infinite"),
        ([1e146, 0.0], 1.0, "gradient of norm 1e\\+146 is too large for floating point"),
        ([1e200, 1e200], None, "too large for floating point"),
        ([1.0, 0.0, 0.0], 1.0, "gradient has shape"),
        ([1.0, 0.0], -1e-9, "loss is -1e-09, but Tracker assumes .* loss_floor = 0.*or loss_floor=None"),
        ([1.0, 0.0], 1e200, "Tracker, round 4: loss is too large for floating point. Pass losses below 1e150"),
        ([1.0, 0.0], np.nan, "loss must be finite"),
        ([1.0, 0.0], np.inf, "loss must be finite"),
        ([1.0, 0.0], "much", "loss must be a number"),
    ],
)
@pytest.mark.parametrize("read", [False, True], ids=["unread", "read"])
def test_bad_feedback_is_refused_and_nothing_changes(gradient, loss, message, read):
    learner = tw.Tracker(BALL)
    feed(learner, PLANE[:2])
    learner.update(*PLANE[2])
    if read:
        _ = learner.decision
    with refused(learner, message):
        learner.update(gradient, loss)
    learner.update([1.0, 0.0], 1.0)
    assert learner.rounds == 4


def test_a_loss_that_is_too_large_stops_a_compiled_run():
    problem = tw.problems.LinearLosses(np.zeros((5, 2)), [1.0, 1.0, 1e200, 1.0, 1.0])
    learner = tw.Tracker(BALL)
    with pytest.raises(InputError, match="Tracker, round 3: loss is too large"):
        tw.play(learner, problem)
    assert learner.rounds == 2
    assert tw.play(tw.Tracker(BALL, loss_floor=None), problem).rounds == 5  # who needs no values takes any


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(intervals="yes"), "'intervals' parameter of Tracker must be one of True, False. Got 'yes'"),
        (dict(intervals=None), "'intervals' parameter of Tracker"),
        (dict(intervals=1), "'intervals' parameter of Tracker"),
        (dict(curvature="no"), "'curvature' parameter of Tracker must be one of 'auto', True, False. Got 'no'"),
        (dict(curvature=None), "'curvature' parameter of Tracker"),
        (dict(loss_floor="low"), "'loss_floor' parameter of Tracker must be a finite number"),
        (dict(loss_floor=-np.inf), "'loss_floor' parameter of Tracker must be a finite number"),
        (dict(loss_floor=-1e200), "'loss_floor' parameter of Tracker must be at most 1e\\+150 in size"),
        (dict(start=[3.0, 0.0]), r"'start' parameter of Tracker must be a point of Ball\(2"),
        (dict(start=[1.0, 0.0, 0.0]), r"'start' parameter of Tracker must be .* of shape \(2,\)"),
        (dict(start=[np.nan, 0.0]), "'start' parameter of Tracker must be finite"),
        (dict(start="here"), "'start' parameter of Tracker must be an array of real numbers"),
        (dict(surrogate=tw.domains.Box([-3.0] * 2, [3.0] * 2)), "Tracker moves its members on a ball.*as surrogate"),
        (dict(surrogate=tw.domains.Ball(2, radius=1.0)), "'surrogate' parameter of Tracker must contain the domain"),
        (dict(surrogate=5.0), "'surrogate' parameter of Tracker must be a thalweg Domain"),
        (dict(horizon=10), "horizon"),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises((InputError, TypeError), match=message):
        tw.Tracker(BALL, **options)


def test_a_domain_it_cannot_use():
    with pytest.raises(InputError, match="needs a bounded domain"):
        tw.Tracker(tw.domains.HalfSpace([1.0, 0.0], 1.0))


@pytest.mark.parametrize("problem", ["linear", "portfolio"])
def test_losses_that_may_be_negative(problem):
    rng = np.random.default_rng(0)
    if problem == "linear":
        problem = tw.problems.LinearLosses(rng.normal(size=(50, 3)))
    else:
        problem = tw.problems.Portfolio(np.exp(0.1 * rng.normal(size=(50, 3))))
    learner = tw.Tracker(tw.domains.Simplex(3))
    with pytest.raises(InputError, match=r"loss is -.* loss_floor = 0.*loss_floor=None") as refusal:
        tw.play(learner, problem)
    assert refusal.value.__notes__ == [f"In round {learner.rounds} of the problem, counted from 0."]
    assert tw.play(tw.Tracker(tw.domains.Simplex(3), loss_floor=None), problem).rounds == 50
    low = tw.play(tw.Tracker(tw.domains.Simplex(3), loss_floor=-10.0), problem)
    assert low.rounds == low.queries.values == 50


def test_a_floor_is_a_shift_of_all_losses():
    """Powers of two, so that nothing is lost in adding the floor."""
    one, other = tw.Tracker(BALL), tw.Tracker(BALL, loss_floor=-8.0)
    rng = np.random.default_rng(0)
    for _ in range(60):
        g, f = rng.normal(size=2), float(rng.integers(0, 4))
        one.update(g, f)
        other.update(g, f - 8.0)
        assert np.array_equal(one.decision, other.decision)


# ------------------------------------------------------------------------------------------------ the ends of the range


@pytest.mark.parametrize("seed", [*range(30), *(pytest.param(k, marks=pytest.mark.slow) for k in range(100, 500))])
def test_the_ends_of_the_range(seed):
    """Gradients and losses hundreds of orders apart, in balls of any size; nothing may become nan or leave the set."""
    rng = np.random.default_rng(seed)
    T = 80 if seed < 100 else int(np.random.default_rng(seed).choice([5, 60, 400]))
    R, d = 10.0 ** rng.choice([0, 0, 0, -8, 8, -60, 60]), int(rng.integers(1, 4))
    curvature, intervals = rng.random(2) < 0.7
    domain = tw.domains.Simplex(d + 1, R) if rng.random() < 0.2 else tw.domains.Ball(d, radius=R)
    learner = tw.Tracker(domain, curvature=bool(curvature), intervals=bool(intervals))
    missing = 1.0 if seed % 5 == 0 else 0.1
    low, high = -149.0, math.log10(1e145 / max(1, 2 * R)) - 0.01
    style, size, loss = seed % 6, rng.uniform(low, high), rng.uniform(-323, 150)
    for t in range(T):
        if style == 0 or (style == 1 and rng.random() < 0.03):
            size = rng.uniform(low, high)
        elif style in (2, 3):
            size = low + (high - low) * (t if style == 2 else T - t) / T
        elif style == 4 and t == T * 2 // 3:
            size = high
        f = rng.uniform(-323, 150) if style == 0 else loss if style > 3 else size + math.log10(R) + rng.uniform(-3, 3)
        g = rng.normal(size=domain.dim)
        value = rng.choice([0.0, 5e-324]) if rng.random() < 0.05 else 10.0 ** min(max(f, -323), 150)
        learner.update(g * (10.0**size / np.linalg.norm(g)), None if rng.random() < missing else value)
        assert learner.domain.contains(learner.decision, tol=1e-7)
        assert all(np.isfinite(array).all() for array in learner._memory.block.arrays.values())
    saved = learner.state()
    learner.clone().restore(saved)  # a state that a run left is never refused


@pytest.mark.parametrize(
    ("gradient", "loss"),
    [(1e-149, 1e10), (1e140, 1e-10), (1e140, 1e150), (1e-149, 5e-324), (1e10, 5e-324), (1e-160, 1.0), (1.0, 1e149)],
)
def test_losses_and_gradients_that_do_not_fit(gradient, loss):
    learner = tw.Tracker(BALL)
    rng = np.random.default_rng(0)
    for _ in range(200):
        g = rng.normal(size=2)
        learner.update(gradient * g / np.linalg.norm(g), loss)
        assert BALL.contains(learner.decision)
    state = learner.state()
    assert all(np.isfinite(array).all() for array in state.values() if isinstance(array, np.ndarray))
    learner.restore(state)
    assert (learner.multipliers.size > 0) == (gradient > 1e-150)


def test_gradients_up_to_its_limit_in_large_sets():
    for R in (1e-3, 1.0, 1e3, 1e60):
        learner = tw.Tracker(tw.domains.Ball(2, radius=R))
        limit = 1e145 / max(1.0, 2 * R)
        with pytest.raises(InputError, match="too large"):
            learner.update([1.01 * limit, 0.0], 1.0)
        learner.update([0.99 * limit, 0.0], 1.0)
        assert learner.rounds == 1


# ------------------------------------------------------------------------------------------------------ without values


@pytest.mark.parametrize("size", [0.3, 1.0])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_the_estimate_finds_the_losses(size, noise):
    """Squared losses with features of one length: the loss is ||h||^2 / (2 size^2), and s = 1/size^2."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(400, 3))
    a *= size / np.linalg.norm(a, axis=1, keepdims=True)
    learner = tw.Tracker(tw.domains.Ball(3), loss_floor=None)
    tw.play(learner, tw.problems.LinearRegression(a, a @ [0.6, -0.6, 0.3] + size * noise * rng.normal(size=400)))
    weights = core(learner._memory.settings).trust
    found = 2.0 ** (weights @ (1.0 - np.arange(12))) / inside(learner).estimate.seen[0]
    assert 2**-0.75 < found * size**2 < 2**0.75  # the grid has a factor of 2


def ratio(name, group="", rep=0, **options):
    """The Tracker's loss over that of gradient descent with the best step, after a calm on the change alone."""
    stream, C = cases.draw(name, group, None, rep), cases.ALL[group][name].calm
    best, _ = runs.best_step(measured(name, stream.domain, stream.problem[C:]))
    return tw.play(tw.Tracker(stream.domain, **options), stream.problem).losses[C:].sum() / best


def test_where_a_good_decision_pays_nothing():
    """Targets of docs/tracker-study.md on the streams where they are hardest to reach."""
    assert ratio("noiseless", loss_floor=None) < 1.5 < ratio("noiseless", loss_floor=None, curvature=False)
    calm = "noiseless jump", cases.CALM
    assert ratio(*calm) < 1.4 < ratio(*calm, intervals=False)


@pytest.mark.slow
@pytest.mark.parametrize("rep", range(1, 5))
def test_where_a_good_decision_pays_nothing_on_further_draws(rep):
    assert ratio("noiseless", rep=rep, loss_floor=None) < 1.5
    assert ratio("noiseless jump", cases.CALM, rep=rep) < 1.4


# ------------------------------------------------------------------------------------------------------ very long runs


@pytest.mark.parametrize(("T", "block"), [(100_000, 10_000), pytest.param(10_000_000, 100_000, marks=pytest.mark.slow)])
def test_long_runs(T, block):
    """The turning world again and again, in compiled blocks; returns seconds of the first and the last tenth."""
    learner = tw.Tracker(BALL)
    problem = turning(block)
    tw.play(learner, problem)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    seconds, paid = [], []
    for _ in range(T // block - 1):
        began = time.perf_counter()
        run = tw.play(learner, problem)
        seconds.append(time.perf_counter() - began)
        paid.append(run.total_loss / block)
        assert np.isfinite(run.losses).all()
        del run
        assert BALL.contains(learner.decision)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 100_000
    assert learner._memory.block.memory.nbytes < 10_000
    assert len(learner.markers) <= 64
    assert learner.rounds == T
    assert learner.weights.sum() == pytest.approx(1.0)
    assert sum(learner.records.values()) == pytest.approx(1.0)
    assert learner.multipliers[-1] <= math.sqrt(T) * 2
    learner.clone().restore(learner.state())
    tenth = max(1, len(paid) // 10)
    assert np.mean(paid[-tenth:]) < 1.05 * np.mean(paid[:tenth])  # it does not grow tired
    if T > 1_000_000:  # more members and records, but not slower and slower
        assert np.median(seconds[-tenth:]) < 2 * np.median(seconds[:tenth])


def test_members_stay_in_the_flat():
    """Across a flat P keeps its first size, a thousand times too large, and would let rounding carry members away."""
    domain, rng = tw.domains.Simplex(5), np.random.default_rng(0)
    a = 10 * rng.normal(size=(20_000, 5))
    learner = tw.Tracker(domain)
    tw.play(learner, tw.problems.AbsoluteRegression(a, a @ domain.center + 0.1 * rng.normal(size=20_000)))
    assert learner.points.sum(axis=1) == pytest.approx(1.0, abs=1e-13)


@pytest.mark.slow
def test_p_stays_sound_in_many_dimensions():
    """64 entries and no noise: P has eigenvalues that differ a lot, and rounding could spoil it."""
    domain = tw.domains.Ball(64, radius=10.0)
    rng = np.random.default_rng(0)
    for spread in (0.0, 3.0):
        scale = 10.0 ** rng.uniform(-spread, 0, 64)
        a = rng.normal(size=(20_000, 64)) * scale
        problem = tw.problems.LinearRegression(a, a @ rng.normal(size=64))
        run = tw.play(tw.Tracker(domain), problem)
        assert np.isfinite(run.losses).all()
        assert run.losses[-1000:].mean() < 1e-3 * run.losses[:100].mean()


def test_the_promises_of_every_learner_without_values():
    """With values: `LEARNERS`."""
    check_learner(lambda: tw.Tracker(tw.domains.Fantope(3, 2), loss_floor=None))


def test_what_it_tells():
    learner = tw.Tracker(BALL)
    assert (learner.weights.size, learner.multipliers.size, learner.marker_count) == (0, 0, 0)
    tw.play(learner, turning())
    assert learner.multipliers.tolist() == (2.0 ** np.arange(-6, 5)).tolist()
    assert learner.weights.size == learner.multipliers.size + 4
    assert learner.weights @ learner.points == pytest.approx(inside(learner).y)
    assert inside(tw.Tracker(tw.domains.Ball(64))).curvature.P.shape == (4, 64, 64)
    assert inside(tw.Tracker(tw.domains.Ball(65))).curvature.P.shape == (0, 65, 65)
    assert inside(tw.Tracker(tw.domains.Ball(65), curvature=True)).curvature.P.shape == (4, 65, 65)
