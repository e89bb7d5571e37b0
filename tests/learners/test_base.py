"""Capacity of covers, warnings about horizons, and the depth of classes."""

import warnings

import numpy as np
import pytest

import thalweg as tw
from tests.samples import refused
from tests.worlds import LEARNERS, ball, ellipsoid, fixed, slow_box, stepped
from thalweg.errors import HorizonWarning, StateError

G, L, B = 6.0, 2.0, 60.0

pytestmark = pytest.mark.filterwarnings("ignore::thalweg.errors.HorizonWarning")


GROWING = {
    "Cover": lambda: tw.CBCE(ball(), gradient_bound=G),
    "Cover, own gradients": lambda: tw.CBCE(ball(), gradient_bound=G, gradients="own"),
    "Cover, thresholds": lambda: tw.SACS(ellipsoid(), loss_bound=B, smoothness=L, threshold=fixed(0.01)),
    "Cover, only Python projects": lambda: tw.CBCE(slow_box(), gradient_bound=G, gradients="own"),
    "Cover in the reduction": lambda: tw.EfficientCBCE(ellipsoid(), gradient_bound=G),
    "thresholds in the reduction": lambda: tw.EfficientAdaptive(ellipsoid(), 50, G, L, threshold=fixed(0.01)),
    "pools in the reduction": lambda: tw.EfficientIntervalDynamic(ellipsoid(), 50, G, L, threshold=fixed(0.01)),
    "reduction onto a set of Python": lambda: tw.EfficientCBCE(slow_box(), gradient_bound=G),
    "two reductions": lambda: tw.OneProjection(ellipsoid(), lambda Y: tw.EfficientCBCE(Y, gradient_bound=G)),
}


def losses(learner, count, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        a = rng.standard_normal(learner.domain.shape)
        yield tw.losses.Squared(0.5 * a / np.linalg.norm(a), 0.3 * rng.standard_normal())


def test_slots_come_four_at_a_time_and_marks_twice_as_many():
    """m markers need m.bit_length() slots; the ring of marks grows with the slots where both are used up."""
    plain, marked = GROWING["Cover"](), tw.SACS(ball(), loss_bound=B, smoothness=L, threshold=fixed(1e-9))
    seen = {id(plain): [], id(marked): []}
    for learner in (plain, marked):
        for _ in range(300):
            sizes = tuple(learner._memory.sizes.values())
            seen[id(learner)] += [sizes] if sizes not in seen[id(learner)] else []
            learner.step(tw.losses.Squared([1.0, 0.0, 0.0], 3.0))
        assert learner.marker_count == 301
    assert seen[id(plain)] == [(4, 0), (8, 0), (12, 0)]
    assert seen[id(marked)] == [(4, 16), (8, 32), (8, 64), (8, 128), (8, 256), (12, 512)]


@pytest.mark.parametrize("name", GROWING)
def test_a_state_with_room_that_no_run_has_is_refused(name):
    learner = GROWING[name]()
    stepped(learner, losses(learner, 5))
    saved = learner.state()
    born = next(key for key in saved if key.endswith("born"))
    with refused(learner, "40 slots", StateError):
        learner.restore(saved | {born: np.zeros(40, dtype=np.int64)})


@pytest.mark.parametrize("name", GROWING)
def test_a_reset_before_any_growth_keeps_what_is_bound(name):
    """The block stays where that is possible; whoever holds the decision before keeps it."""
    learner, fresh = GROWING[name](), GROWING[name]()
    rows = list(losses(learner, 9))
    first, block, shown = stepped(learner, rows), learner._memory.block, learner.decision
    kept = shown.copy()
    learner.reset()
    assert (learner._memory.block is block) == learner.machine.looped
    assert np.array_equal(shown, kept)
    assert np.array_equal(learner.decision, fresh.decision)
    np.testing.assert_array_equal(stepped(learner, rows), first)
    assert all(one.rounds == 9 for one in learner._windows)
    learner.reset()
    for one, other in zip(learner._windows, fresh._windows, strict=True):
        assert np.array_equal(one.decision, other.decision)


# ------------------------------------------------------------------------------------------------------------- windows


@pytest.mark.parametrize("name", GROWING)
def test_what_a_cover_tells_is_what_its_state_says(name):
    learner = GROWING[name]()
    for f in losses(learner, 40):
        learner.step(f)
        state = learner.state()
        born = next(value for key, value in state.items() if key.endswith("born"))
        if hasattr(type(learner), "active"):
            assert learner.active == np.count_nonzero(born)
            assert learner.marker_count == born.max()


def test_the_horizon_is_watched_however_rounds_are_stepped():
    for make in (
        lambda: tw.EfficientDynamic(ellipsoid(), 50, G),
        lambda: tw.Ader(slow_box(), 50, G, gradients="own"),
        lambda: tw.SwordPP(slow_box(), 50, G, L),
    ):
        learner = make()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", HorizonWarning)
            stepped(learner, losses(learner, 60))
        assert [w.category for w in told] == [HorizonWarning]


@pytest.mark.parametrize("name", LEARNERS)
def test_no_class_of_ours_is_deeper_than_four(name):
    """`Recorded` and `Kept` are 1, `Learner` is 2."""
    if "Delayed" in name:
        pytest.skip("late feedback")
    kinds = [k for k in type(LEARNERS[name]()).__mro__ if issubclass(k, tw.Learner)]
    assert len(kinds) <= 3
