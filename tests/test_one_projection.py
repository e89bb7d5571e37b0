"""The reduction: inexact projections, tiny and huge sets, any learner inside."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

import thalweg as tw
from tests.samples import refused, same
from thalweg._kernels.clock import FRESH
from thalweg._kernels.jit import PLAIN


def stream(rounds, d, size, seed=0):
    return np.random.default_rng(seed).standard_normal((rounds, d)) * size


@pytest.mark.parametrize("noise", [0.0, 1e-9, 1e-8])
def test_an_inexact_projection_does_not_become_a_noise_direction(noise):
    """A solver that stops early is off by `noise` everywhere, also inside the set; the run must hardly notice.

    Were the direction of that error taken for the projection's, each round inside the set would lose the part of the
    gradient along a random direction: a change of order one, not of order `noise`.
    """
    rng = np.random.default_rng(1)
    exact = tw.domains.Ball(3, radius=1.0)

    def sloppy(y):
        return exact.project(y) * (1 - 2 * noise) + noise * rng.standard_normal(3) / 3

    X = tw.domains.Custom(sloppy, 3, center=np.zeros(3), radius=1.0)
    a = tw.OneProjection(exact, lambda Y: tw.OGD(Y, step_size=0.05), surrogate=tw.domains.Ball(3, radius=3.0))
    b = tw.OneProjection(X, lambda Y: tw.OGD(Y, step_size=0.05), surrogate=tw.domains.Ball(3, radius=3.0))
    inside = 0
    for g in stream(300, 3, 1.0):
        inside += exact.contains(np.asarray(a.inner.decision))
        a.update(g)
        b.update(g)
        assert_allclose(b.inner.decision, a.inner.decision, atol=1e-15 + 300 * noise)
    assert 30 < inside < 300  # the run was inside and outside


def test_a_tolerance_too_tight_for_the_solver_is_noticed_by_this_test():
    """The check above can fail: with a tolerance below the solver's error the noise direction is used."""
    rng = np.random.default_rng(1)
    exact = tw.domains.Ball(3, radius=1.0)
    X = tw.domains.Custom(
        lambda y: exact.project(y) * (1 - 2e-8) + 1e-8 * rng.standard_normal(3) / 3,
        3,
        center=np.zeros(3),
        radius=1.0,
        tolerance=1e-14,
    )
    a = tw.OneProjection(exact, lambda Y: tw.OGD(Y, step_size=0.05), surrogate=tw.domains.Ball(3, radius=3.0))
    b = tw.OneProjection(X, lambda Y: tw.OGD(Y, step_size=0.05), surrogate=tw.domains.Ball(3, radius=3.0))
    for g in stream(300, 3, 1.0):
        a.update(g)
        b.update(g)
    assert np.abs(b.inner.decision - a.inner.decision).max() > 1e-2


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_reduction_does_not_depend_on_the_unit_of_length(scale):
    """A run in metres and one in micrometres are the same run."""
    unit = tw.domains.Ellipsoid([1.0, 4.0, 9.0], bound=1.0)
    scaled = tw.domains.Ellipsoid([1.0, 4.0, 9.0], bound=scale**2)
    a = tw.EfficientDynamic(unit, 100, 10.0)
    b = tw.Ensemble(scaled.surrogate, a.inner.step_sizes * scale**2, meta_rate=a.inner.meta_rate)
    b = tw.OneProjection(scaled, lambda Y: b)
    for g in stream(100, 3, 1.0):
        a.update(g)
        b.update(g / scale)
        assert_allclose(b.decision / scale, a.decision, rtol=0, atol=1e-9)


def test_every_decision_is_the_projection_of_the_inner_one():
    X = tw.domains.Simplex(5)
    m = tw.EfficientDynamic(X, 100, 5.0)
    for g in stream(100, 5, 1.0):
        m.update(g)
        assert_allclose(m.decision, X.project(m.inner.decision), atol=1e-15)


def test_reading_the_decision_twice_projects_once():
    calls = []

    def project(y):
        calls.append(1)
        return np.clip(y, -1, 1)

    m = tw.EfficientDynamic(tw.domains.Custom(project, 2, center=0.0, radius=np.sqrt(2)), 10, 5.0)
    assert calls == []
    _ = m.decision, m.decision, m.state(), m.decision
    assert (len(calls), m.queries.projections) == (1, 0)  # it counts with its round
    m.update([1.0, 0.0])
    assert (len(calls), m.queries.projections) == (1, 1)
    m.update([1.0, 0.0])  # never read: projected all the same, the round is played there
    assert len(calls) == 2 == m.queries.projections


@pytest.mark.parametrize("make", [lambda X: tw.EfficientDynamic(X, 40, 20.0), tw.Tracker], ids=["pool", "Tracker"])
def test_the_next_decision_is_ready_whether_or_not_anybody_looks(make):
    X = tw.domains.Ellipsoid([1.0, 4.0, 9.0], bound=1.0)
    seen, unseen, slow = make(X), make(X), make(X)
    for t, g in enumerate(stream(40, 3, 2.0)):
        _ = seen.decision
        assert seen.queries.projections == t
        seen.update(g, 1.0)
        unseen.update(g, 1.0)
        slow.update(g.tolist(), 1)
        assert seen.queries.projections == t + 1
        assert seen._memory.state.clock[FRESH] == 1
        assert same(seen.state(), unseen.state())
        assert same(seen.state(), slow.state())
        assert np.array_equal(seen.decision, X.project(seen.machine.inner.view(seen._memory.state.inner)))
        assert not seen.decision.flags.writeable


def test_play_leaves_the_state_of_rounds_by_hand():
    X, rng = tw.domains.Ellipsoid([1.0, 4.0, 9.0], bound=1.0), np.random.default_rng(3)
    problem = tw.problems.LinearRegression(rng.standard_normal((50, 3)), rng.standard_normal(50))
    for make in (
        lambda: tw.EfficientDynamic(X, 50, 50.0),
        lambda: tw.Tracker(X),
        lambda: tw.EfficientOptimistic(X, 50, 50.0),
    ):
        played, stepped = make(), make()
        tw.play(played, problem)
        for f in problem:
            stepped.step(f)
        assert same(played.state(), stepped.state())


def test_a_decision_that_a_hint_may_change_is_not_projected_ahead():
    learner = tw.EfficientOptimistic(tw.domains.Simplex(3), 10, 2.0)
    for t in range(3):
        learner.update([1.0, 0.0, -1.0])
        assert learner._memory.state.clock[FRESH] == 0
        learner.hint([-1.0, 0.0, 1.0])
        _ = learner.decision
        assert learner.queries.projections == t + 1


@pytest.mark.parametrize("name", ["EfficientDynamic", "Tracker"])
def test_a_round_by_hand_passes_through_few_functions(name):
    X = tw.domains.Ellipsoid([1.0, 4.0, 9.0], bound=1.0)
    learner, g = tw.Tracker(X) if name == "Tracker" else tw.EfficientDynamic(X, 40, 20.0), np.full(3, 0.1)
    for _ in range(3):
        learner.update(g, 1.0)
    entered = []

    def watch(frame, event, _):
        if event == "call" and "kernel" not in frame.f_code.co_filename:
            entered.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        _ = learner.decision
        learner.update(g, 1.0)
    finally:
        sys.setprofile(before)
    assert entered[:3] == ["decision", "update", "take"]
    assert PLAIN or len(entered) == 3


@pytest.mark.parametrize("make", [lambda X: tw.EfficientDynamic(X, 40, 20.0), tw.Tracker], ids=["pool", "Tracker"])
@pytest.mark.parametrize(
    ("gradient", "loss"),
    [
        (np.ones(2), 1.0),
        (np.ones((3, 1)), 1.0),
        (np.array([1.0, np.nan, 0.0]), 1.0),
        (np.full(3, 1e200), 1.0),
        (np.ones(3, dtype=complex), 1.0),
        (np.ones(3, dtype="M8[s]"), 1.0),
        (np.ones(3, dtype=object), 1.0),
        (np.ones(3), np.inf),
        (np.ones(3), np.nan),
        (np.ones(3), "1"),
    ],
)
def test_a_refused_round_by_hand_changes_nothing(make, gradient, loss):
    learner = make(tw.domains.Ellipsoid([1.0, 4.0, 9.0], bound=1.0))
    for g in stream(5, 3, 1.0):
        _ = learner.decision
        learner.update(g, 1.0)
    x = learner.decision
    with refused(learner):
        learner.update(gradient, loss)
    assert np.array_equal(x, learner.decision)


def test_numbers_of_another_type_play_the_same_rounds():
    X = tw.domains.Ellipsoid([1.0, 4.0, 9.0], bound=1.0)
    plain, other = tw.Tracker(X), tw.Tracker(X)
    kinds = ["f4", "i8", ">f8", "f2", "i1"]
    for t, g in enumerate(np.rint(stream(30, 3, 3.0))):
        _ = plain.decision, other.decision
        plain.update(g, 2.0)
        other.update(g.astype(kinds[t % 5]) if t % 2 else np.repeat(g, 2)[::2], np.float32(2.0) if t % 3 else 2)
        assert same(plain.state(), other.state())


def test_a_single_point_is_a_domain_too():
    m = tw.EfficientDynamic(tw.domains.Simplex(1, total=3.0), 10, 5.0)
    for _ in range(5):
        m.update([1.0])
        assert_allclose(m.decision, [3.0])


class Wanderer:
    """An inner learner that steps across the flat of X as well, and keeps what it was shown."""

    def __init__(self, Y):
        self.Y, self.rng, self.shown = Y, np.random.default_rng(0), []
        self.y = np.array(Y.center)

    @property
    def decision(self):
        return self.y

    def update(self, gradient, loss=None):
        self.shown.append(gradient)
        self.y = self.Y.project(self.y - 0.3 * gradient + 0.2 * self.rng.standard_normal(self.y.shape))

    def state(self):
        return {"y": self.y}

    def restore(self, saved):
        self.y = saved["y"]

    def reset(self):
        self.y = np.array(self.Y.center)


@pytest.mark.parametrize("surrogate", [None, tw.domains.Ball(4, radius=2.0)], ids=["its own", "given"])
def test_theorem_1_holds_for_an_inner_learner_that_leaves_the_flat(surrogate):
    """<g, x - u> <= <h, y - u> for every u in X, and ||h|| <= ||g||, g being what is left of the gradient."""
    X, rng = tw.domains.Simplex(4), np.random.default_rng(1)
    learner = tw.OneProjection(X, Wanderer, surrogate=surrogate)
    corrected = 0
    for _ in range(300):
        x, y, given = np.array(learner.decision), learner.inner.y, rng.standard_normal(4)
        learner.update(given)
        g, h = given if surrogate else X.directions(given), learner.inner.shown[-1]
        assert np.linalg.norm(h) <= np.linalg.norm(g) * (1 + 1e-12)
        for u in np.eye(4):  # the corners
            assert g @ (x - u) <= h @ (y - u) + 1e-12
        corrected += np.linalg.norm(h - g) > 1e-3
    assert corrected > 50


def test_compiled_and_python_rounds_are_the_same_where_the_inner_learner_leaves_the_flat():
    """AdaGrad's steps have parts across the simplex, though its gradients have none."""
    X, rng = tw.domains.Simplex(4), np.random.default_rng(2)
    hidden = tw.domains.Custom(X.project, 4, X.center, X.radius, diameter=X.diameter, normals=np.ones((1, 4)))

    def make(Z):
        return tw.OneProjection(Z, lambda Y: tw.Alone(tw.experts.AdaGradDescent(Y)))

    fast, slow = make(X), make(hidden)
    across = 0.0
    for _ in range(100):
        g = rng.standard_normal(4)
        assert_allclose(fast.decision, slow.decision, rtol=0, atol=1e-12)
        across = max(across, abs(fast.inner.decision.sum() - 1))
        fast.update(g)
        slow.update(g)
    assert across > 1e-2
