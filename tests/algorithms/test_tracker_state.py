"""A Tracker resumes in the middle of a compiled run, and its state is as small as its members and markers are few."""

import numpy as np
import pytest

import thalweg as tw
from tests.samples import same


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
