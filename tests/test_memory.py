"""Declared states: one contiguous block, depth first; growth that shows in no bit; calls that follow the block."""

import contextlib
import copy
import itertools
import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest

import thalweg as tw
from tests import samples
from tests.samples import (
    APPLIED,
    LEARNING,
    QUIET,
    SAMPLES,
    every,
    fields,
    memories,
    memory,
    play,
    played,
    same,
    show,
)  # fmt: skip
from thalweg._core.memory import Fixed, Memory
from thalweg._core.recorded import build
from thalweg._core.state import Block, Plan, field, part, scratch
from thalweg._core.types import Floats, Ints
from thalweg._kernels.handle import parts
from thalweg._kernels.jit import kernel
from thalweg.errors import InputError
from thalweg.testing._learner import _Broken

pytestmark = QUIET


class Small(NamedTuple):
    a: Floats = field("n", start=2.0)
    b: Ints = field("2")


class Whole(NamedTuple):
    first: Floats = field("n 3")
    inside: Any = part()
    clock: Ints = field("1")


class Settings(NamedTuple):
    rate: float
    inside: Any = part()
    work: Floats = scratch("n")


class Inside(NamedTuple):
    work: Floats = scratch("2 n")


def plan(n):
    def begin(s, c):
        s.inside.b[1] = 7

    return Plan(Whole, Settings(0.5), {"n": n}, {"inside": Plan(Small, Inside(), {"n": n})}, begin=begin)


class Growing:
    def sizes(self):
        return {"n": 2}

    def plan(self, sizes):
        return plan(sizes["n"])

    def sizes_of(self, saved):
        return {"n": saved["inside.a"].size}


@kernel
def add(handle, x):
    s = parts(handle)[0]
    s.clock[0] += 1
    for i in range(s.inside.a.shape[0]):
        s.inside.a[i] += x
    return float(s.inside.a[0])


def test_a_block_is_laid_out_depth_first():
    block = Block.fresh(plan(4))
    assert [name for name, _, _ in block.plan.fields()] == ["first", "inside.a", "inside.b", "clock"]
    assert block.plan.words == block.memory.size == 12 + 4 + 2 + 1
    block.memory[:] = np.arange(19)
    assert block.state.inside.b.tolist() == [16, 17]
    assert block.state.clock.tolist() == [18]
    inside = block.part("inside")
    assert np.shares_memory(inside.memory, block.memory)
    assert inside.memory.tolist() == list(range(12, 18))
    assert inside.state.b is block.state.inside.b
    assert inside.settings.work is block.settings.inside.work
    assert (block.settings.work.shape, inside.settings.work.shape) == ((4,), (2, 4))


def test_a_moved_block_has_the_same_numbers_and_first_values():
    block = Block.fresh(plan(2))
    block.state.first[:] = 5.0
    larger = block.moved(plan(3))
    assert larger.state.first.tolist() == [[5.0] * 3] * 2 + [[0.0] * 3]
    assert larger.state.inside.a.tolist() == [2.0, 2.0, 2.0]
    assert larger.state.inside.b.tolist() == [0, 7]
    assert np.array_equal(larger.moved(plan(2)).memory, block.memory)


@pytest.mark.compiles
def test_calls_follow_the_block():
    told = []
    mine = Memory(Growing(), moved=lambda memory: told.append(memory.block))
    call = mine.call(add, 1.0)
    assert mine.call(add) is call
    assert call.entry.read(call.run()) == 3.0
    before = mine.snapshot()
    mine.grow({"n": 5})
    moved = mine.call(add, 10.0)
    assert moved is not call
    assert moved.entry.read(moved.run()) == 13.0
    assert mine.state.inside.a.tolist() == [13.0, 13.0, 12.0, 12.0, 12.0]
    mine.roll_back(before)
    assert (mine.block is before[0], mine.sizes) == (True, {"n": 2})
    again = mine.call(add, 1.0)
    assert again.entry.read(again.run()) == 4.0
    assert told[-1] is mine.block


def test_a_state_larger_than_the_memory_is_told():
    with pytest.raises(MemoryError, match=r"needs 6\.71e\+07 GB, more memory than there is"):  # 2^53 numbers
        Block.fresh(Plan(Small, (), {"n": 2**53}))


def test_all_or_nothing():
    mine = Memory(Growing())
    block, words = mine.block, mine.block.memory.copy()

    def fail():
        with mine.all_or_nothing():
            mine.state.first[:] = 3.0
            mine.grow({"n": 9})
            mine.state.first[:] = 4.0
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert (mine.block is block, mine.sizes) == (True, {"n": 2})
    assert np.array_equal(mine.block.memory, words)
    assert Memory(Fixed(plan(3))).sizes == {}


# ------------------------------------------------------------------------------------------------------------ everybody


@every
def test_names_and_words_follow_from_the_declaration(name):
    made = played(name)
    mine = memory(made)
    block, at = mine.block, 0
    for (field_name, said, shape), array in zip(block.plan.fields(), block.arrays.values(), strict=True):
        leaf = block.state
        for word in field_name.split("."):
            leaf = leaf[int(word)] if word.isdecimal() else getattr(leaf, word)
        if leaf.size:
            assert leaf.ctypes.data == array.ctypes.data == block.memory.ctypes.data + 8 * at
        assert (leaf.shape, leaf.dtype) == (shape, said.dtype)
        at += leaf.size
    assert at == block.memory.size
    found = [key for key, _, _ in fields(made)]
    arrays = {key for key, value in made.state().items() if isinstance(value, np.ndarray)}
    arrays = {key for key in arrays if "settings." not in key and not key.startswith("facts.")}
    assert (set(found), len(found)) == (arrays, len(arrays))


def equal(one, two):
    """Whether rounds were decided alike, bit for bit."""
    return all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


@every
@pytest.mark.parametrize("split", [0, 1, 17, 40])
def test_it_goes_on_bit_for_bit(name, split, tmp_path):
    """From a saved state, in one that is new and in one that is larger; from a file, a copy and a pickle."""
    whole, made = play(name, samples.make(name), 0, 60)[split:], played(name, split)
    saved = made.state()
    twins = {"copied": copy.copy(made), "deep": copy.deepcopy(made)}
    twins |= {how: restored(name, saved, rounds) for how, rounds in (("new", 0), ("larger", 70))}
    made.save(tmp_path / "it.npz")
    twins["loaded"] = tw.load(tmp_path / "it.npz", **SAMPLES[name].again)
    try:
        twins["pickled"] = pickle.loads(pickle.dumps(made))
    except (pickle.PicklingError, AttributeError):
        assert name in LEARNING  # parts of its may be functions
    for how, twin in twins.items():
        assert same(twin.state(), saved), how
        assert not any(np.shares_memory(a.block.memory, memory(made).block.memory) for _, a in memories(twin)), how
        assert equal(play(name, twin, split, 60), whole), how
        assert same(made.state(), saved), how
    assert equal(play(name, made, split, 60), whole)
    for how, twin in twins.items():
        if memory(twin).sizes == memory(made).sizes:  # an Aggregator may keep more room after its first round
            assert same(twin.state(), made.state()), how
        assert getattr(twin, "queries", None) == getattr(made, "queries", None), how


def restored(name, state, rounds=0):
    """One that has played rounds of its own before."""
    made = played(name, rounds)
    made.restore(state)
    return made


@every
def test_a_clone_and_a_reset_are_as_new(name):
    made = played(name)
    fresh = samples.make(name)
    news = [build(type(made), made._arguments()), *([made.clone()] if hasattr(made, "clone") else [])]
    if hasattr(made, "reset"):
        made.reset()
        assert memory(made).sizes == memory(fresh).sizes
        news.append(made)
    whole = play(name, samples.make(name), 0, 20)
    for new in news:
        assert (new.rounds, type(new)) == (0, type(fresh))
        assert same(new.state(), fresh.state())
        assert equal(play(name, new, 0, 20), whole)


@pytest.mark.parametrize("name", samples.ESTIMATORS)
def test_what_comes_later_changes_nothing(name, monkeypatch):
    """Learners: `check_prefix`."""
    whole = play(name, samples.make(name), 0, 40)
    assert len(np.unique(np.concatenate(whole))) > 20  # it does something
    for rows, other in ((samples.ROWS, 1e3), (samples.VALUES, -50.0)):
        kept = rows[40:].copy()
        try:
            rows[40:] = other
            assert equal(play(name, samples.make(name), 0, 40), whole)
        finally:
            rows[40:] = kept


# --------------------------------------------------------------------------------------------------------------- growth

LONG = 150
GROWING = [name for name, sample in LEARNING.items() if memory(sample.make()).sizes] + list(APPLIED)


class Steep:
    """A loss whose gradient is too long."""

    def value(self, x):
        return 0.0

    def gradient(self, x):
        return 1e160 * np.arange(1.0, 1 + np.size(x)).reshape(np.shape(x))


@pytest.mark.parametrize("name", GROWING)
def test_growth_shows_in_no_bit(name):
    """A run across several sizes is the one that had the largest capacity from the start."""
    small, grown = samples.make(name), []
    play(name, small, 0, 1)
    if not memory(small).sizes or "open" in name:
        pytest.skip("it has one size, or features that come by their names")
    if name == "Forecaster":
        pytest.skip("its sizes are seasons that it has found, no capacity")
    decided = []
    for t in range(1, LONG):
        if not grown or grown[-1] != memory(small).sizes:
            grown.append(dict(memory(small).sizes))
        decided += play(name, small, t, t + 1)
    most = {key: max(sizes[key] for sizes in grown) for key in grown[0]}
    large = samples.make(name)
    play(name, large, 0, 1)
    memory(large).grow(most)
    close = 1e-9 if "cover, Hedge" in name else 0.0  # its prior is uniform on the slots that there are
    assert all(
        np.allclose(a, b, rtol=close, atol=close) for a, b in zip(play(name, large, 1, LONG), decided, strict=True)
    )
    if not close and memory(large).sizes == memory(small).sizes:
        assert same(large.state(), small.state())


def test_some_samples_grow_and_some_several_times():
    found = []
    for name in GROWING:
        made, sizes = samples.make(name), set()
        for t in range(LONG):
            play(name, made, t, t + 1)
            sizes.add(str(dict(memory(made).sizes)))
        found.append(len(sizes))
    assert sum(n > 1 for n in found) > 20
    assert sum(n > 2 for n in found) > 5


@pytest.mark.parametrize("loss", [_Broken(value=False), Steep()])
@pytest.mark.parametrize("name", [name for name in GROWING if name in LEARNING])
def test_a_refused_round_leaves_no_room_behind(name, loss):
    made = samples.make(name)
    for t in range(70):
        show(name, made)
        block = memory(made).block
        with samples.refused(made, error=(RuntimeError, InputError)):
            made.step(loss)
        assert memory(made).block is block
        SAMPLES[name].rounds(made, t)
    made.reset()
    assert same(made.state(), made.clone().state())  # it is as small as a new one


def windows(made):
    """Learners whose state is a part of another's, and that part."""
    for one in getattr(made, "_inside", ()):
        yield memory(one).block, memory(made).block.part("inner"), one
        yield from windows(one)


@pytest.mark.parametrize("name", LEARNING)
def test_learners_inside_are_windows_on_the_state(name):
    made = played(name, 3)
    if not list(windows(made)):
        pytest.skip("nobody is inside")
    saved = played(name, 70).state()
    ways = {
        "rounds": lambda: play(name, made, 3, 70),
        "restored": lambda: made.restore(saved),
        "refused": lambda: refused(made),
        "rolled back": lambda: rolled_back(made),
        "reset": made.reset,
        "grown": lambda: play(name, made, 0, 40),
    }
    for how, way in ways.items():
        way()
        for mine, theirs, one in windows(made):
            assert mine.memory.ctypes.data == theirs.memory.ctypes.data, how
            assert one.rounds == made.rounds, how
            assert np.array_equal(one.decision.ravel(), one.machine.view(theirs.state)), how


BUILT = {name: sample for name, sample in LEARNING.items() if not getattr(sample.make(), "takes_late", False)}


@pytest.mark.parametrize("name", BUILT)
def test_a_block_is_made_at_the_first_use(name):
    """And learners inside have a part of it, whoever is used first."""
    first, other = BUILT[name].make(), BUILT[name].make()
    assert not any("_memory" in vars(one) for one in (first, *first._windows))
    for one in reversed((first, *first._windows)):  # the innermost is used first
        _ = one.rounds
        assert "_memory" in vars(first)
    for mine, theirs, _ in windows(first):
        assert mine.memory.ctypes.data == theirs.memory.ctypes.data
    assert same(first.state(), other.state())
    assert same(copy.deepcopy(BUILT[name].make()).state(), other.state())


def test_a_learner_that_was_used_before_it_is_inside_starts_with_the_outer_one():
    used = tw.OGD(tw.domains.Ball(2), step_size=0.5)
    used.update([1.0, 0.0])
    outer = tw.OneProjection(tw.domains.Ball(2), lambda Y: used)
    assert used.rounds == 0
    outer.update([0.0, 1.0])
    assert used.rounds == 1
    assert np.array_equal(used.decision, outer.decision)


def test_a_block_that_is_interrupted_while_it_is_made_is_made_again(monkeypatch):
    learner, usual = tw.EfficientDynamic(tw.domains.Ball(2), 100, 1.0), Block.part

    def interrupted(*arguments):
        monkeypatch.setattr(Block, "part", usual)
        raise KeyboardInterrupt

    monkeypatch.setattr(Block, "part", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _ = learner.decision
    learner.update([1.0, 0.0])
    twin = tw.EfficientDynamic(tw.domains.Ball(2), 100, 1.0)
    twin.update([1.0, 0.0])
    assert same(learner.state(), twin.state())
    assert learner.inner.rounds == 1


def refused(made):
    with pytest.raises((RuntimeError, InputError)):
        made.step(_Broken(value=made.values_only))


def rolled_back(made):
    with contextlib.suppress(KeyError), memory(made).all_or_nothing():
        memory(made).grow(memory(made).sizes)
        raise KeyError


def test_a_ring_of_marks_that_wrapped_before_it_was_full_is_refused():
    """No run leaves it: the ring grows before it wraps."""
    learner = tw.SACS(tw.domains.Ball(2), loss_bound=10.0, smoothness=1.0, threshold=1e-3)
    for t in range(40):
        learner.step(tw.losses.Squared([1.0, 0.0], 2.0 + t % 2))
    saved = learner.state()
    m, marks = int(saved["markers"][0]), saved["marks"]
    assert m > 20
    ring = np.zeros(16, dtype=np.int64)
    for i in range(m - 16, m):
        ring[i % 16] = marks[i]
    with pytest.raises(tw.errors.StateError, match="keeps 16 of"):
        learner.restore(saved | {"marks": ring})


def test_feedback_that_waits_survives_growth():
    """Copies of `Delayed` grow each by itself."""
    learner = samples.make("Delayed CBCE")
    for t in itertools.count():
        play("Delayed CBCE", learner, t, t + 1)
        if len({copy.deepcopy(memory(one).sizes["K"]) for one in learner._copies}) > 1:
            break
    twin = restored("Delayed CBCE", learner.state())
    a, b = (play("Delayed CBCE", one, 0, 30) for one in (learner, twin))
    assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))
