"""What every learner has from its block: refusals, growth, copies, resets, windows and interrupted rounds."""

import copy
import itertools
import pathlib
import pickle
import sys
import warnings
from typing import NamedTuple

import numpy as np
import pytest

import thalweg as tw
from tests.worlds import LEARNERS, ball, ellipsoid, fixed, slow_box
from thalweg._kernels.jit import PLAIN
from thalweg.errors import HorizonWarning, InputError, StateError
from thalweg.learners.in_python import Floats, InPython, Ints, counter_field, field, inside

PACKAGE = str(pathlib.Path(tw.__file__).parent)
G, L, B = 6.0, 2.0, 60.0

pytestmark = pytest.mark.filterwarnings("ignore::thalweg.errors.HorizonWarning")


class MineState(NamedTuple):
    x: Floats = field("d", inside("domain"))
    clock: Ints = counter_field()


class Mine(tw.Learner):
    """Descent in plain Python."""

    def __init__(self, domain):
        self.domain = domain
        super().__init__(InPython(domain, MineState, self.learn, begin=self.begin))

    def begin(self, s):
        s.x[:] = self.domain.project(self.domain.center).ravel()

    def learn(self, s, gradient, loss):
        s.x[:] -= 0.1 * gradient
        s.x[:] = self.domain._project_flat(s.x.copy())


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
OTHERS = {
    "Alone": lambda: tw.SOGD(ball()),
    "Alone, only Python projects": lambda: tw.OGD(slow_box(), step_size=0.1),
    "pool, own gradients": lambda: tw.Ader(slow_box(), 50, G, gradients="own"),
    "pool in the reduction": lambda: tw.EfficientDynamic(ellipsoid(), 50, G),
    "hints": lambda: tw.EfficientOptimistic(ellipsoid(), 50, G),
    "levels": lambda: tw.CutkoskyAdaptive(ball(), 50, G),
    "levels, only Python projects": lambda: tw.CutkoskyAdaptive(slow_box(), 50, G),
    "Sword++, only Python projects": lambda: tw.SwordPP(slow_box(), 50, G, L),
    "values": lambda: tw.EfficientBandit(ball(), 50, G, points=2, rng=0),
    "matrices": lambda: tw.SOGD(tw.domains.Ball((3, 1))),
    "in Python": lambda: Mine(slow_box()),
    "in Python, in the reduction": lambda: tw.OneProjection(ellipsoid(), Mine),
}
EVERY = GROWING | OTHERS
WINDOWED = [name for name in EVERY if "reduction" in name or name == "hints"]
every = pytest.mark.parametrize("name", EVERY)


def losses(learner, count, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        a = rng.standard_normal(learner.domain.shape)
        yield tw.losses.Squared(0.5 * a / np.linalg.norm(a), 0.3 * rng.standard_normal())


def played(learner, rows):
    decisions = []
    for f in rows:
        decisions.append(np.array(learner.decision))
        learner.step(f)
    return np.array([*decisions, learner.decision])


def same(one, two):
    return one.keys() == two.keys() and all(np.array_equal(one[key], two[key]) for key in one)


def guest(learner):
    """Whether the learner inside is not a part of this one's block."""
    return bool(learner._memory.guests)


# ------------------------------------------------------------------------------------------------------------ refusals


@every
def test_a_refusal_changes_nothing(name):
    learner = EVERY[name]()
    rows = list(losses(learner, 30))
    straight = played(EVERY[name](), rows)
    played(learner, rows[:15])
    block, before = learner._memory.block, learner.state()
    shape = learner.domain.shape
    broken = learner.state()
    broken["clock"][0] = -1
    more = [] if learner.values_only else [0.1]
    calls = {
        "nan": lambda: learner.update(np.full(shape, np.nan), *more),
        "shape": lambda: learner.update(np.zeros((2, 2, 2)), *more),
        "loss": lambda: learner.update(*([np.nan] if learner.values_only else [np.zeros(shape), np.nan])),
        "no loss": lambda: learner.step(None),
        "damaged": lambda: learner.restore(broken),
        "of another class": lambda: learner.restore(tw.Ensemble(ball(), [0.1]).state()),
        "cut": lambda: learner.restore({k: v for k, v in learner.state().items() if k != "clock"}),
    }
    for what, call in calls.items():
        with pytest.raises((InputError, StateError)):
            call()
        assert learner._memory.block is block, what
        assert same(learner.state(), before), what
    np.testing.assert_array_equal(played(learner, rows[15:]), straight[15:])


@every
def test_a_loss_that_raises_changes_nothing(name):
    class Failing:
        def value(self, x):
            return 0.5 if not EVERY[name]().values_only else 1 / 0

        def gradient(self, x):
            raise ZeroDivisionError

    learner = EVERY[name]()
    rows = list(losses(learner, 20))
    straight = played(EVERY[name](), rows)
    for t, f in enumerate(rows):  # one of these rounds needs a larger block
        np.testing.assert_array_equal(learner.decision, straight[t])
        before, sizes, words = learner.state(), dict(learner._memory.sizes), learner._memory.block.memory.size
        with pytest.raises(ZeroDivisionError):
            learner.step(Failing())
        assert same(learner.state(), before)
        assert (dict(learner._memory.sizes), learner._memory.block.memory.size) == (sizes, words)
        learner.step(f)


# -------------------------------------------------------------------------------------------------------------- growth


@pytest.mark.parametrize("name", GROWING)
def test_growth_changes_no_bit(name):
    """A learner that grows round by round, and one that has room from the start, however it is asked to."""
    small, large, asked = GROWING[name](), GROWING[name](), GROWING[name]()
    first = small._memory.block.memory.size
    large._memory.grow({"K": 9, "M": 256 if large._memory.sizes["M"] else 0})
    rows = list(losses(small, 140))
    mine = played(small, rows)
    np.testing.assert_array_equal(mine, played(large, rows))
    assert small._memory.block.memory.size > first
    for t, f in enumerate(rows):
        if t % 3 == 0:
            asked._grow()  # sizes that fit are kept
        asked.step(f)
        assert np.array_equal(asked.decision, mine[t + 1])
    assert same(asked.state(), small.state())
    assert small.queries == large.queries == asked.queries


def test_slots_come_four_at_a_time_and_marks_four_times_as_many():
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
    assert seen[id(marked)] == [(4, 16), (8, 64), (8, 256), (12, 1024)]


@pytest.mark.parametrize("name", GROWING)
def test_a_saved_state_carries_its_sizes(name):
    learner, other = GROWING[name](), GROWING[name]()
    rows = list(losses(learner, 60))
    played(learner, rows[:40])
    saved = learner.state()
    rest = played(learner, rows[40:])
    played(other, rows[:3])
    other.restore(saved)
    np.testing.assert_array_equal(played(other, rows[40:]), rest)
    assert same(other.state(), learner.state())
    other.restore(GROWING[name]().state())  # and back to the first sizes
    np.testing.assert_array_equal(played(other, rows[:40]), played(GROWING[name](), rows[:40]))


@pytest.mark.parametrize("name", GROWING)
def test_a_state_with_room_that_no_run_has_is_refused(name):
    learner = GROWING[name]()
    played(learner, losses(learner, 5))
    before = learner.state()
    prefix = next(key for key in before if key.endswith("born")).removesuffix("born")
    saved = learner.state() | {f"{prefix}born": np.zeros(40, dtype=np.int64)}
    with pytest.raises(StateError, match="40 slots"):
        learner.restore(saved)
    assert same(learner.state(), before)


# ------------------------------------------------------------------------------------------------------ copies, resets


@every
def test_copies_share_nothing(name):
    learner = EVERY[name]()
    rows, others = list(losses(learner, 40)), list(losses(learner, 20, seed=1))
    played(learner, rows[:20])
    copies = [copy.copy(learner), copy.deepcopy(learner)]
    if not isinstance(learner.domain, tw.domains.Custom) and "two" not in name:
        copies.append(pickle.loads(pickle.dumps(learner)))
    for twin in copies:
        assert same(twin.state(), learner.state())
        assert not np.shares_memory(twin._memory.block.memory, learner._memory.block.memory)
        played(twin, others)
    late = copy.deepcopy(learner)
    straight = played(learner, rows[20:])
    np.testing.assert_array_equal(played(late, rows[20:]), straight)
    assert same(late.state(), learner.state())


@every
def test_a_reset_is_the_first_round_with_the_first_sizes(name):
    learner, fresh = EVERY[name](), EVERY[name]()
    rows = list(losses(learner, 40))
    first, start = played(learner, rows), fresh.state()
    learner.reset()
    assert learner.rounds == 0
    assert same(learner.state(), start)
    assert learner._memory.sizes == fresh._memory.sizes
    np.testing.assert_array_equal(played(learner, rows), first)


@every
def test_a_reset_before_any_growth_keeps_what_is_bound(name):
    """The block stays where that is possible; whoever holds the decision before keeps it."""
    learner, fresh = EVERY[name](), EVERY[name]()
    rows = list(losses(learner, 9))
    first, block, shown = played(learner, rows), learner._memory.block, learner.decision
    kept = shown.copy()
    learner.reset()
    assert (learner._memory.block is block) == learner.machine.looped
    assert np.array_equal(shown, kept)
    assert np.array_equal(learner.decision, fresh.decision)
    np.testing.assert_array_equal(played(learner, rows), first)
    assert all(one.rounds == 9 for one in learner._windows)
    learner.reset()
    for one, other in zip(learner._windows, fresh._windows, strict=True):
        assert np.array_equal(one.decision, other.decision)


# ------------------------------------------------------------------------------------------------------------- windows


def check_window(outer):
    """The learner inside is a window on a part of the outer one's block."""
    inner, whole = outer.inner, outer.state()
    part = inner.state()
    for key, value in part.items():
        if isinstance(value, np.ndarray) and not key.startswith("settings."):
            assert np.array_equal(whole[f"inner.{key}"], value), key
    assert np.shares_memory(inner._memory.block.memory, outer._memory.block.memory)
    assert inner.rounds == outer.rounds
    np.testing.assert_allclose(outer.decision, outer.domain.project(inner.decision), rtol=0, atol=1e-9)
    if hasattr(inner, "inner"):
        check_window(inner)


@pytest.mark.parametrize("name", [name for name in WINDOWED if "in Python" not in name])
def test_windows_follow(name):
    learner = EVERY[name]()
    check_window(learner)
    rows = list(losses(learner, 70))
    for t, f in enumerate(rows[:40]):
        learner.step(f)
        if t % 5 == 0:
            check_window(learner)
    saved = learner.state()
    played(learner, rows[40:])
    check_window(learner)
    learner.restore(saved)
    check_window(learner)
    with pytest.raises(StateError):
        learner.restore(saved | {"clock": np.zeros(6, dtype=np.int64)})
    check_window(learner)
    with pytest.raises(InputError), learner._memory.all_or_nothing():
        played(learner, [*rows[40:], "no loss"])
    assert learner.rounds == 40
    check_window(learner)
    check_window(copy.deepcopy(learner))
    learner.reset()
    check_window(learner)
    assert learner.inner.rounds == 0


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


# ---------------------------------------------------------------------------------------------------------- interrupts


def interrupted(call, at):
    """Make a call with a Ctrl-C before its line number `at` in this package; whether there was such a line."""
    seen = 0

    def trace(frame, event, argument):
        nonlocal seen
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            seen += 1
            if seen == at:
                raise KeyboardInterrupt
        return trace

    usual = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(usual)
    return False


@pytest.mark.skipif(PLAIN, reason="compiled code cannot be interrupted, Python can")
@pytest.mark.parametrize("stride", [17, pytest.param(1, marks=pytest.mark.slow)])
@every
def test_an_interrupted_round_is_whole_or_was_not(name, stride):
    """At every so many lines that a round goes through. Round 15 of a cover needs a larger block."""
    learner = EVERY[name]()
    rows = list(losses(learner, 17))
    straight = EVERY[name]()
    decisions = played(straight, rows)
    begun = EVERY[name]()
    played(begun, rows[:12])
    after = copy.deepcopy(begun)
    for f in rows[12:15]:
        _ = after.decision
        after.step(f)
    outcomes = set()
    for at in itertools.count(1, stride):
        one = copy.deepcopy(begun)
        for f in rows[12:14]:
            _ = one.decision
            one.step(f)
        assert np.array_equal(one.decision, decisions[14])
        before = one.state()
        if not interrupted(lambda one=one: one.step(rows[14]), at):
            break
        now = one.state()
        outcomes.add(one.rounds)
        assert same(now, before) if one.rounds == 14 else same(now, after.state()), at
        assert np.array_equal(one.decision, decisions[one.rounds]), at
        if hasattr(one, "inner") and not guest(one):
            check_window(one)
        played(one, rows[one.rounds :])
        assert same(one.state(), straight.state()), at
    assert outcomes <= {14, 15}
    assert 14 in outcomes


@pytest.mark.skipif(PLAIN, reason="compiled code cannot be interrupted, Python can")
@pytest.mark.parametrize("stride", [97, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("what", ["reset", "restore"])
@pytest.mark.parametrize("name", ["Cover in the reduction", "levels", "values", "in Python, in the reduction"])
def test_an_interrupted_reset_is_whole_or_was_not(name, what, stride):
    learner, fresh = EVERY[name](), EVERY[name]()
    rows = list(losses(learner, 20))
    if what == "restore":
        played(fresh, rows[:1])
    target, expected = fresh.state(), played(copy.deepcopy(fresh), rows[1:])
    played(learner, rows)
    before, end = learner.state(), np.array(learner.decision)
    for at in itertools.count(1, stride):
        one = copy.deepcopy(learner)
        _ = one.decision
        if not interrupted(one.reset if what == "reset" else lambda one=one: one.restore(target), at):
            break
        now = one.state()
        assert same(now, before) or same(now, target), at
        if same(now, before):
            assert np.array_equal(one.decision, end)
        else:
            np.testing.assert_array_equal(played(one, rows[1:]), expected)


# ------------------------------------------------------------------------------------------------------------ warnings


def test_the_horizon_is_watched_however_rounds_are_played():
    for make in (
        EVERY["pool in the reduction"],
        EVERY["pool, own gradients"],
        lambda: tw.SwordPP(slow_box(), 50, G, L),
    ):
        learner = make()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", HorizonWarning)
            played(learner, losses(learner, 60))
        assert [w.category for w in told] == [HorizonWarning]


@pytest.mark.parametrize("name", LEARNERS)
def test_no_class_of_ours_is_deeper_than_four(name):
    """`Recorded` and `Kept` are 1, `Learner` is 2."""
    if "Delayed" in name:
        pytest.skip("late feedback")
    kinds = [k for k in type(LEARNERS[name]()).__mro__ if issubclass(k, tw.Learner)]
    assert len(kinds) <= 3
