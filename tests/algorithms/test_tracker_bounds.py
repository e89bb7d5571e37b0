"""What is proved about the Tracker holds for the compiled one; numbers come from its own state."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import thalweg as tw
from tests.twins import tracker_bounds as bounds
from tests.twins.dynamic import Linear
from tests.twins.test_tracker_bounds import ROUNDING, attack
from tests.worlds import slow_where
from thalweg.algorithms.tracker import Tracked
from thalweg.learners.contract import core
from thalweg.learners.tracker.kernels import first_row
from thalweg.parts.records import ANCHORED, GAINED, MARKERS, SEEN


class Seen:
    """A compiled Tracker under the names of its twin.

    Its state has all that the bounds ask for but two things: how often each record was anchored again, and the squares
    of record 0 since its birth, over all anchors. These are counted here, from the states before and after a round.
    """

    def __init__(self, domain, **options):
        self.learner = tw.Tracker(domain, **options)
        self.radius, self.center = domain.radius, domain.center
        self.kept = {}  # (slot, marker of its birth): what is known of a record

    state = property(lambda self: core(self.learner._memory.state))  # moves when it grows
    x = property(lambda self: self.learner.decision)
    y = property(lambda self: self.state.y.copy())
    S = property(lambda self: self.state.members.sums[0])
    H = property(lambda self: self.state.members.sums[1])
    k0 = property(lambda self: int(self.state.members.sizes[1]))
    K = property(lambda self: int(self.state.members.sizes[2]))
    m = property(lambda self: int(self.state.records.counts[MARKERS]))
    changes = property(lambda self: self.learner.changes)
    Bt = property(lambda self: self.state.records.totals[SEEN])
    rows = property(lambda self: slice(int(first_row(self.state)), self.state.members.sizes[0]))

    def surrogate(self, g):
        X = self.learner.domain
        h, e = X.directions(g), X.directions(self.y - self.x)
        if e @ e > (X.tolerance * max(X.radius, np.abs(X.center).max())) ** 2 and h @ e < 0:
            h = X.directions(h - (h @ e) / (e @ e) * e)
        return h

    @property
    def members(self):
        multipliers = np.log2(self.learner.multipliers).astype(int).tolist()
        points = self.state.members.points[self.rows].copy()
        steps = [*[None] * 4, *multipliers][self.rows]
        return [SimpleNamespace(k=k, point=point) for k, point in zip(steps, points, strict=True)]

    @property
    def records(self):
        """Record 0 first; the same object as long as it is the same record."""
        s = self.state.records
        if not self.members:
            return []
        alive = [(0, 0), *((j, int(s.born[j - 1])) for j in self.learner.records if j)]
        new = {key: SimpleNamespace(anchor=s.anchors[key[0]], anchored=0, squares=0.0) for key in alive}
        self.kept = {key: self.kept.get(key, new[key]) for key in alive}
        for (j, _), record in self.kept.items():
            record.anchored += int(record.anchor != s.anchors[j])
            record.anchor = s.anchors[j]
        zero = self.kept[0, 0]
        zero.A, zero.U, zero.gain = s.A[0, self.rows].copy(), s.B[0] ** 2 + s.V[0], s.totals[GAINED]
        return list(self.kept.values())

    def update(self, g, f):
        s, h, y = self.state.records, self.surrogate(g), self.y
        q = np.minimum([h @ (y - member.point) for member in self.members], 2 * (math.inf if f is None else f))
        Q = np.array([s.p[j, self.rows] @ q for j, _ in self.kept])
        before = self.Bt
        self.learner.update(g, f)
        if before > 0 and np.abs(Q).max() > 0:
            self.kept[0, 0].squares += (Q[0] * min(1.0, before / np.abs(Q).max())) ** 2
        elif self.Bt > 0:
            self.kept[0, 0].squares += Q[0] ** 2


def all_bounds_hold(seed, T, *, all_members=False):
    made = []

    def make(domain, **options):
        made.append(Seen(domain, **options))
        return made[0]

    parts = attack(seed, T, make=make, all_members=all_members)
    assert max(parts.values()) <= ROUNDING
    assert not all_members or first_row(made[0].state) == 0  # the rows of the walkers are in use


FEW = [(seed, 64) for seed in range(20, 32)] + [(3, 256), (11, 256)]


@pytest.mark.parametrize(
    ("seed", "T"), slow_where(lambda seed, T: seed >= 1000, FEW + [(seed, 256) for seed in range(1000, 1300)])
)
def test_bounds(seed, T):
    """(T1), (T1'); (4), (4'), (T2) and (T2*) on all dyadic intervals, against paths from 0 to the longest."""
    all_bounds_hold(seed, T)


@pytest.mark.parametrize(
    ("seed", "T"),
    slow_where(lambda seed, T: T == 256, [(k, 64) for k in range(2200, 2206)] + [(k, 256) for k in range(2000, 2200)]),
)
def test_bounds_with_all_members(seed, T):
    """The same where losses are given and four members follow curvature."""
    all_bounds_hold(seed, T, all_members=True)


def test_what_is_counted_here():
    """Records anchored again are as many as the state says, and squares are W where none was."""
    rng = np.random.default_rng(0)
    for growth, again in ((1.0, False), (1.05, True)):
        seen = Seen(tw.domains.Ball(2), curvature=False)
        losses = [
            Linear(growth**t * np.array([np.sign(np.sin(t / 20)), 0.3 * rng.normal()]), 2 * growth**t)
            for t in range(300)
        ]
        log = bounds.play(seen, losses)
        assert log.anchorings(0, 300)[0] == seen.state.records.counts[ANCHORED]
        assert (seen.kept[0, 0].anchored > 0) == again
        assert seen.m > 5
        if not again:
            assert seen.kept[0, 0].squares == pytest.approx(seen.state.records.W[0])


class Backwards(Seen):
    """Runs up the hill."""

    def surrogate(self, g):
        return -super().surrogate(g)

    def update(self, g, f):
        super().update(-g, f)


class Deaf(Seen):
    """Hears nothing for as long as it likes; its state then says little, and (T1) must notice."""

    def update(self, g, f):
        super().update(g if len(self.kept) == 0 else 1e-6 * g, f)


@pytest.mark.parametrize(
    ("kind", "curvature"), [(Seen, False), (Backwards, False), (Deaf, False), (Seen, True), (Backwards, True)]
)
def test_the_bounds_can_fail(kind, curvature):
    rng = np.random.default_rng(0)
    losses = [Linear(np.array([1.0, 0.0]) + 0.1 * rng.normal(size=2), 2.0) for _ in range(400)]
    u = np.tile([-1.0, 0.0], (400, 1))
    log = bounds.play(kind(tw.domains.Ball(2), curvature=curvature), losses)
    lost = bounds.regret(log, u).sum()
    for how in ("ledger", "record", "lemmas"):
        assert (lost <= bounds.whole_run(log, 400, 0.0, how)) == (kind is Seen)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Seen, Backwards])
def test_the_bound_on_intervals_can_fail(kind):
    T = 30_000
    losses = [Linear(np.array([1.0, 0.0]), 2.0)] * T
    log = bounds.play(kind(tw.domains.Ball(2), curvature=False), losses)
    lost = bounds.regret(log, np.tile([-1.0, 0.0], (T, 1)))[T // 2 :].sum()
    for bound in (bounds.interval, bounds.interval_at_once):
        assert (lost <= bound(log, T // 2, T, 0.0)) == (kind is Seen)


def sides(T, stages):
    """Slopes +1 and -1 on [-1, 1] in turns, losses >= 1, and the better end in each round: 2 (stages - 1) of path."""
    slopes = np.repeat(np.resize([1.0, -1.0], stages), T // stages)[:, None]
    return slopes, -slopes


def lines(slopes):
    """Losses 2 + <g, x>."""
    return tw.problems.FromLosses([Linear(g, 2.0) for g in slopes], shape=(1,))


@pytest.mark.parametrize("sign", [1, -1])
def test_the_certificate_on_intervals_can_fail(sign):
    """A learner that runs up the hill exceeds (T2*) on a moving path; (T2), with its 59 pieces, would allow it."""
    X, T, stages = tw.domains.Box([-1.0], [1.0]), 24_000, 60
    slopes, u = sides(T, stages)
    learner = tw.Tracker(X, curvature=False)
    fed = tw.play(learner, lines(sign * slopes), decisions=True)
    paid = 2 + (fed.decisions * slopes).sum(axis=1)
    theorem = Tracked(learner, paid, np.ones(T))
    start, P = T // 2, 2.0 * (stages // 2 - 1)
    lost = float((paid - 2 - (u * slopes).sum(axis=1))[start:].sum())
    assert (lost <= theorem.interval(start, T, P)) == (sign == 1)


@pytest.mark.parametrize("values", [True, False])
def test_the_certificate_has_the_smaller_of_two_bounds(values):
    """`Tracked` has the numbers of the twin: on a ball whose border is never reached h is the gradient."""
    rng = np.random.default_rng(4)
    seen = Seen(tw.domains.Ball(2, radius=9.0), curvature=False)
    slopes = rng.normal(size=(600, 2))
    losses = [Linear(g / np.linalg.norm(g), 60.0) for g in slopes]
    log = bounds.play(seen, losses, values)
    log.rounds[-1].N += 4  # the certificate counts the places of four members with curvature,
    log.curved = 2.0  # without values their priors,
    log.anchorings = lambda start, stop: (seen.learner.anchored,) * 2  # and all anchorings as those of one record
    assert log.markers(0, 600) > 10
    theorem = Tracked(seen.learner, np.array([r.paid for r in log.rounds]), log.squares)
    smaller = set()
    for start in (0, 100, 300, 590, 598):
        for P in (0.0, 3.0, 12.0, 300.0):
            both = [f(log, start, 600, P, blind=not values) for f in (bounds.interval, bounds.interval_at_once)]
            smaller.add(int(np.argmin(both)))
            assert theorem.interval(start, 600, P) == pytest.approx(min(both), rel=1e-12)
    assert smaller == {0, 1}
