"""A Tracker stops and resumes bit for bit, at any round; damaged states are refused, or can still be played."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from tests.samples import same
from tests.worlds import examples, slow_box

WORLDS = {
    "ball": lambda: tw.Tracker(tw.domains.Ball(2, radius=2.0, center=[5.0, 0.0])),
    "simplex": lambda: tw.Tracker(tw.domains.Simplex(3), start=[0.0, 0.5, 0.5]),
    "no curvature": lambda: tw.Tracker(tw.domains.Box([-1.0, 0.0], [1.0, 3.0]), curvature=False),
    "no intervals": lambda: tw.Tracker(tw.domains.Ellipsoid([1.0, 2.0], bound=1.0), intervals=False),
    "no values": lambda: tw.Tracker(tw.domains.Ball((2, 2)), loss_floor=None),
    "custom": lambda: tw.Tracker(slow_box()),
}
T = 160


def rounds(learner, seed=0, growth=1.0):
    """Absolute losses whose best decision jumps; some rounds lack a value."""
    rng = np.random.default_rng(seed)
    for t in range(T):
        a = rng.normal(size=learner.domain.shape)
        b = float(np.sum(a * learner.domain.center)) + (1.0 if t // 50 % 2 else -1.0)
        yield growth**t * a, growth**t * b, rng.random() < 0.1 * (t > 0)


def advance(learner, feedback):
    """Decisions, and the one after the last round."""
    played = []
    for a, b, missing in feedback:
        played.append(learner.decision)
        error = float(np.sum(a * learner.decision)) - b
        learner.update(np.sign(error) * a, None if missing else abs(error))
    return np.array([*played, learner.decision])


WAYS = {
    "restore": lambda learner, fresh: (fresh.restore(learner.state()), fresh)[1],
    "restore from a pickle": lambda learner, fresh: (fresh.restore(pickle.loads(pickle.dumps(learner.state()))), fresh)[
        1
    ],
    "deepcopy": lambda learner, fresh: copy.deepcopy(learner),
    "pickle": lambda learner, fresh: pickle.loads(pickle.dumps(learner)),
}


@given(
    split=st.integers(0, T), name=st.sampled_from(sorted(WORLDS)), way=st.sampled_from(sorted(WAYS)), read=st.booleans()
)
@settings(max_examples=examples(40, 1000))
def test_it_goes_on_from_any_round(split, name, way, read):
    learner = WORLDS[name]()
    if way == "pickle" and name == "custom":
        return  # a lambda does not pickle
    feedback = list(rounds(learner, growth=1.03))
    whole = advance(learner.clone(), feedback)
    advance(learner, feedback[:split])
    if not read:  # the decision of this round is not made yet
        learner._shown = None
    fresh = learner.clone()
    advance(fresh, list(rounds(fresh, seed=1))[:70])  # somebody with a past of its own
    other = WAYS[way](learner, fresh)
    assert same(other.state(), learner.state())
    assert np.array_equal(advance(other, feedback[split:]), whole[split:])
    assert np.array_equal(advance(learner, feedback[split:]), whole[split:])
    assert same(other.state(), learner.state())
    assert other.queries == learner.queries


@pytest.mark.parametrize("split", [0, 1, 2, 63, 500, 1500])
def test_whole_runs_go_on(split):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(1500, 3))
    b = a @ [1.0, -1.0, 0.5] * np.where(np.arange(1500) // 200 % 2, 1.0, -1.0) + rng.choice([-1.0, 1.0], size=1500)

    def problem(rows):
        return tw.problems.AbsoluteRegression(a[rows], b[rows])

    def make():
        return tw.Tracker(tw.domains.Ball(3, radius=2.0))

    learner = make()
    whole = tw.play(learner, problem(slice(None)), decisions=True).decisions
    assert learner.marker_count > 10
    one, other = make(), make()
    if split:
        tw.play(one, problem(slice(split)))
    other.restore(one.state())
    if split < 1500:
        assert np.array_equal(tw.play(other, problem(slice(split, None)), decisions=True).decisions, whole[split:])
    assert same(other.state(), learner.state())


# -------------------------------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize("kind", ["squared", "absolute", "linear"])
@pytest.mark.parametrize("floor", [0.0, None])
def test_the_state_is_small(kind, floor):
    """Capacity follows the markers and members there are."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(16_384, 4))
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    w = np.cumsum(0.01 * rng.normal(size=a.shape), axis=0)
    b = np.sum(a * w / np.maximum(1.0, np.linalg.norm(w, axis=1, keepdims=True)), axis=1) + 0.3 * rng.normal(
        size=16_384
    )

    def problem(rows):
        if kind == "linear":
            return tw.problems.LinearLosses(a[rows], np.ones(a[rows].shape[0]))
        made = tw.problems.LinearRegression if kind == "squared" else tw.problems.AbsoluteRegression
        return made(a[rows], b[rows])

    learner = tw.Tracker(tw.domains.Ball(4), loss_floor=floor)
    tw.play(learner, problem(slice(128)))
    assert learner._memory.block.memory.nbytes <= 4000
    tw.play(learner, problem(slice(128, None)))
    assert learner._memory.block.memory.nbytes <= 7500


def test_rows_and_slots_come_two_at_a_time():
    learner, rng, seen = tw.Tracker(tw.domains.Ball(4)), np.random.default_rng(0), []
    for _ in range(3000):
        sizes = tuple(learner._memory.sizes.values())
        seen += [sizes] if not seen or seen[-1] != sizes else []
        learner.update(rng.normal(size=4))
    rows, slots, *_ = np.array(seen[1:]).T  # the first round decides how many there are
    assert set(np.diff(rows)) | set(np.diff(slots)) == {0, 2}
    assert (rows[-1] > rows[0] + 2, slots[-1] > slots[0] + 4) == (True, True)


# ----------------------------------------------------------------------------------------------------- damaged states
