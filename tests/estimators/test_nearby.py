"""Rows of numbers around a rank: quantiles of a window without the whole of it in order."""

import numpy as np
import pytest

from thalweg.estimators import ConformalTracker
from thalweg.parts.conformal import KEPT, RATIOS
from thalweg.parts.nearby import BELOW, COUNT, enter, leave, reaches, refill
from thalweg.parts.ranked import number_at, quantile, rank_of

STREAMS = {
    "steady": lambda rng, n: rng.random(n),
    "rising": lambda rng, n: np.arange(n, dtype=float),
    "falling": lambda rng, n: 1e4 - np.arange(n, dtype=float),
    "ties": lambda rng, n: rng.integers(0, 3, n).astype(float),
    "jumps": lambda rng, n: rng.random(n) * np.where(np.arange(n) // 150 % 2, 1000.0, 1.0),
}


@pytest.mark.parametrize("size", [4, 8, 64])
@pytest.mark.parametrize("name", STREAMS)
def test_a_row_is_a_piece_of_the_sorted_window(name, size):
    rng = np.random.default_rng(size)
    for _ in range(30):
        window, level = int(rng.integers(2, 300)), float(rng.choice([0.05, 0.5, 0.9, 0.99, 0.9999]))
        near, span, numbers, kept = np.full(size, np.nan), np.zeros(2, dtype=np.int64), np.zeros(window), []
        refills = 0
        for new in STREAMS[name](rng, int(rng.integers(5, 700))).tolist():
            if len(kept) == window:
                leave(near, span, kept.pop(0))
            enter(near, span, len(kept), new, rank_of(len(kept) + 1, level))
            kept.append(new)
            n, rank = len(kept), rank_of(len(kept), level)
            if not reaches(span, n, rank):
                numbers[:n] = kept
                refill(near, span, numbers, n, rank)
                refills += 1
                assert sorted(numbers[:n].tolist()) == sorted(kept)
            want = np.sort(kept)
            begin, count = span.tolist()
            assert near[:count].tolist() == want[begin : begin + count].tolist()
            assert number_at(near, begin, n, rank) == quantile(want, n, level)
        assert size < 64 or refills <= 700 / (size / 2 - 2)


def sorted_windows(side):
    """The candidates of a side, from all its scores and ratios in order."""
    s, c = side
    kept, latest = int(s.tally[KEPT]), s.recent[(s.tally[KEPT] - 1 - np.arange(s.recent.size)) % s.recent.size]
    shortest = np.sort(latest[: s.held[c.shortest]])
    top, found = 2 * shortest[max(shortest.size - 2, 0)], []
    for n in s.held.tolist():
        assert n <= kept
        found.append(min(quantile(np.sort(latest[:n]), n, 1 - c.alpha), top))
    for h, n in enumerate(np.minimum(s.ranks, RATIOS).tolist()):
        found.append(min(s.means[h] * (quantile(np.sort(s.ratios[h, :n]), n, 1 - c.alpha) if n else 1.0), top))
    return found


@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.999])
@pytest.mark.parametrize("name", STREAMS)
def test_compiled_candidates_are_quantiles_of_sorted_windows(name, coverage):
    tracker, rng = ConformalTracker(coverage, windows=(150, 20, 700)), np.random.default_rng(0)
    scores = STREAMS[name](rng, 3000)
    for begin in range(0, 3000, 97):
        piece = scores[begin : begin + 97]
        tracker.run(np.zeros(piece.size), piece)
        memory = tracker._memory
        (side,) = tracker._layout.pairs(memory.state, memory.settings)
        np.testing.assert_allclose(side[0].candidates, sorted_windows(side), rtol=1e-15)
        spans = side[1].spans
        assert (spans[:, BELOW] >= 0).all()
        assert (spans[:, COUNT] <= side[1].near.shape[1]).all()


@pytest.mark.parametrize("name", STREAMS)
def test_rows_made_from_a_state_give_the_same_thresholds(name):
    rng = np.random.default_rng(1)
    scores = STREAMS[name](rng, 2500)
    tracker = ConformalTracker(0.9)
    for begin in range(0, 2500, 500):
        other = ConformalTracker(0.9)
        other.restore(tracker.state())
        piece = scores[begin : begin + 500]
        assert np.array_equal(tracker.run(np.zeros(500), piece), other.run(np.zeros(500), piece))
