"""The door to compiled code: copies are independent, growth is noticed, and nothing is kept that is no longer used."""

import gc
import struct
import sys
import weakref
from typing import Any, NamedTuple

import numpy as np
import pytest

import thalweg as tw
from tests.worlds import ball, ellipsoid, fixed, stepped
from thalweg._kernels import kinds
from thalweg._kernels.handle import bind

G = 6.0
MAKERS = {
    "Alone": lambda: tw.SOGD(ball()),
    "Ensemble": lambda: tw.EfficientDynamic(ellipsoid(), 100, G),
    "Cover": lambda: tw.EfficientAdaptive(ellipsoid(), 100, G, 2.0, threshold=fixed(4.0)),
    "levels": lambda: tw.EfficientCutkosky(ellipsoid(), 100, G),
}


def gradients(rounds, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (rounds, 3))


def words(learner):
    """All that changes: one array."""
    return learner._memory.block.memory


def long_run(threshold=None):
    X = ellipsoid()
    if threshold is None:
        return tw.EfficientCBCE(X, gradient_bound=G)
    return tw.EfficientAdaptive(X, 1000, G, 2.0, threshold=threshold)


@pytest.mark.parametrize("threshold", [None, fixed(0.05)], ids=["every round", "thresholds"])
def test_a_cover_that_outgrows_its_slots_and_thresholds_inside_the_reduction(threshold):
    """The block moves in mid-run: no handle may play on with the old arrays."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((300, 3))
    problem = tw.problems.LinearRegression(a / np.linalg.norm(a, axis=1, keepdims=True), rng.standard_normal(300))
    small, roomy, steps = (long_run(threshold) for _ in range(3))
    slots, table = small._memory.sizes["K"], small.inner.machine.thresholds.size
    roomy._memory.grow({"K": 12, "M": 512 * (threshold is not None)})
    one, two = tw.play(small, problem, decisions=True), tw.play(roomy, problem, decisions=True)
    by_step = stepped(steps, problem)
    assert small._memory.sizes["K"] > slots + 3
    assert small.markers == roomy.markers == steps.markers
    if threshold is not None:
        assert small.marker_count > table  # more markers than thresholds were known for
    assert np.array_equal(one.decisions, two.decisions)
    assert np.array_equal(by_step, one.decisions)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.filterwarnings("ignore::thalweg.errors.HorizonWarning")
def test_rounds_keep_nothing(name):
    """Of 2000 rounds no reference to the block is left."""
    learner, g = MAKERS[name](), np.array([0.1, -0.2, 0.3])
    for _ in range(200):
        learner.update(g, 0.001)
    block, held = words(learner), sys.getrefcount(words(learner))
    for k in range(2_000):
        learner.update(g if k % 3 else -g, 0.001)
    assert words(learner) is block
    assert sys.getrefcount(words(learner)) - 1 == held


@pytest.mark.parametrize("name", MAKERS)
def test_a_learner_that_is_gone_leaves_no_array_behind(name):
    learner = MAKERS[name]()
    for g in gradients(5):
        learner.update(g, 1.0)
    left = weakref.ref(words(learner))
    del learner
    gc.collect()
    assert left() is None


class Pair(NamedTuple):
    first: Any
    second: Any


def test_the_kind_of_a_tree_is_found_by_everything_that_it_depends_on():
    """Kinds are remembered by a key; trees that differ in one respect follow each other here, and come again."""
    a = np.arange(6.0)
    frozen = a.copy()
    frozen.flags.writeable = False
    leaves = [a, a.reshape(2, 3), a[::2], frozen, a.astype(np.int64), a.astype(np.float32), 1.0, 1, True, None]
    leaves += [
        np.float64(1.0),
        np.int64(1),
        (a,),
        (a, a),
        (a, 1.0),
        ((a,), a),
        Pair(a, 1.0),
        Pair(1.0, a),
        Pair((), ()),
    ]
    trees = [made for one in leaves for made in ((one, 1.0), Pair(one, 1.0), Pair(a, one), (one,))]
    for tree in trees * 2:
        row = []
        kinds.words(tree, row)
        handle = bind(tree)
        assert handle.kind == f"*{kinds.kind(tree)}"
        assert bytes(handle._row)[: 8 * len(row)] == struct.pack(kinds.formats(kinds.kind(tree)), *row)
