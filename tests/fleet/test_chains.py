"""Chains: the rows of each stream of a batch in their order, and the memory that is fetched for them ahead of time."""

import math

import numpy as np
import pytest

from thalweg.estimators import ConformalTracker
from thalweg.fleet import seats
from thalweg.fleet.chains import SPARSE, after, chains_of


@pytest.mark.parametrize("top", [1, 5, 40, 40 * SPARSE + 1, 10**6])
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("least", [-1, 0])  # -1: rows of unknown keys are left out
def test_chains_are_those_of_a_dict(top, ordered, least):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        streams = rng.choice(rng.integers(least, top, 12), rng.integers(0, 40))
        order = rng.permutation(streams.size) if ordered else None
        want = {}
        for t in range(streams.size) if order is None else order.tolist():
            if streams[t] >= 0:
                want.setdefault(int(streams[t]), []).append(int(t))
        chains = chains_of(streams, top, order)
        assert chains.owners.tolist() == sorted(want)
        for head, owner in zip(chains.heads.tolist(), chains.owners.tolist(), strict=True):
            rows = [head]
            while (t := after(chains.following, rows[-1])) >= 0:
                rows.append(t)
            assert rows == want[owner]
        assert chains.rows == streams.size
        assert (chains.following.size == 0) == all(len(rows) == 1 for rows in want.values())


def test_sparse_fields_are_not_fetched_and_all_others_are():
    tracker = ConformalTracker(0.9)
    tracker.run(np.zeros(600), np.random.default_rng(0).random(600))
    plan = tracker._memory.block.plan
    width = plan.words + 100  # of which the last ones are spare
    fetched = np.zeros(8 * width, dtype=bool)
    for begin, end in seats._used(plan, width).tolist():
        assert not fetched[begin:end].any()
        fetched[begin:end] = True
    sparse = np.zeros(8 * width, dtype=bool)
    for name, (said, shape, first) in plan.places.fields.items():
        assert said.sparse == (name in ("above.recent", "above.ratios"))
        sparse[8 * first : 8 * first + 8 * math.prod(shape)] = said.sparse
    assert (fetched == ~sparse).all()
    assert fetched.mean() < 0.2
