"""The jury: weights over candidates, the same whatever the unit of gains, and good on every stretch."""

import math

import numpy as np
import pytest

from thalweg._core.state import Block
from thalweg._kernels.handle import bind, parts
from thalweg._kernels.jit import kernel
from thalweg.parts.jury import judge, jury_plan
from thalweg.parts.records import ANCHORED, MARKERS, slots_for


@kernel
def hear(handle, q):
    s, c = parts(handle)
    judge(s, c, q)


def new_jury(priors, rounds=1200):
    block = Block.fresh(jury_plan(np.asarray(priors, dtype=float), slots_for(rounds)))
    return block.state, block.settings


def weigh(losses, priors, scale=1.0):
    """The weights before each round of these losses of the candidates, and the jury."""
    jury, room = new_jury(priors)
    handle = bind((jury, room))
    shown = []
    for lost in losses * scale:
        w = jury.weights.copy()
        shown.append(w)
        hear(handle, w @ lost - lost)
    return np.array(shown), jury


@pytest.fixture
def losses():
    rng = np.random.default_rng(3)
    lost = rng.standard_normal((1200, 4))
    lost[:600, 1] -= 0.5
    lost[600:, 3] -= 0.5
    return lost


def test_weights_are_a_distribution_and_start_at_the_priors(losses):
    w, _ = weigh(losses, [1, 2, 3, 2])
    assert np.allclose(w[0], np.array([1, 2, 3, 2]) / 8)
    assert (w >= 0).all()
    assert np.allclose(w.sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("k", [-40, 7, 60])
def test_the_unit_of_gains_does_not_matter(losses, k):
    assert np.array_equal(weigh(losses, np.ones(4))[0], weigh(losses, np.ones(4), 2.0**k)[0])


def test_whoever_is_best_on_a_stretch_is_followed(losses):
    w, _ = weigh(losses, np.ones(4))
    assert w[400:600, 1].mean() > 0.9
    assert w[1000:, 3].mean() > 0.8


def test_the_regret_since_the_start_is_of_second_order():
    """A_i <= (2 (e - 2) + ln(1/prior_i)) sqrt(B^2 + V) + B, by the lemma on a record, whatever the gains."""
    rng = np.random.default_rng(5)
    for trial in range(40):
        N = int(rng.integers(2, 6))
        drawn = rng.standard_normal((300, N)) * rng.choice([0.0, 1.0, 1e3], size=(300, 1)) * rng.random(N)
        if trial % 2:  # an adversary: whoever weighs most pays
            jury, room = new_jury(np.ones(N))
            for _ in range(300):
                lost = (jury.weights == jury.weights.max()) * 1.0
                judge(jury, room, jury.weights @ lost - lost)
        else:
            jury = weigh(drawn, np.ones(N))[1]
        r = jury.records
        root = np.sqrt(r.B[0] ** 2 + r.V[0])
        assert r.A[0].max() <= (2 * (np.e - 2) + np.log(N)) * root + r.B[0]


def test_rounds_in_which_nobody_gains_change_nothing(losses):
    _, jury = weigh(losses[:50], np.ones(4))
    before = jury.weights.copy()
    room = new_jury(np.ones(4))[1]
    for _ in range(1000):
        judge(jury, room, np.zeros(4))
    assert np.array_equal(before, jury.weights)


def heard(gains, T, N):
    """Play gains(t, weights); the gains of every round, and how many markers there were after it."""
    jury, room = new_jury(np.ones(N), T)
    handle = bind((jury, room))
    q, markers = np.empty((T, N)), np.empty(T, dtype=int)
    for t in range(T):
        q[t] = gains(t, jury.weights)
        q[t] -= max(float(jury.weights @ q[t]), 0.0)  # together they never gain
        hear(handle, q[t])
        markers[t] = jury.records.counts[MARKERS]
    return q, markers, int(jury.records.counts[ANCHORED])


def allowed(q, markers, anchored, start, stop):
    """(1) with its constants: (T2*) of docs/why-the-tracker-works.md without members that move."""
    sizes = np.abs(q[:stop]).max(axis=1)
    F, X, m = sizes.max(), float((sizes[start:] ** 2).sum()), int(markers[stop - 1])
    inside = m - (int(markers[start - 1]) if start else 0)
    if inside == 0:
        return 16 * F, 0.0
    n, L = 1 + math.floor(math.log2(inside)), math.log(8 * m / 3 * (4 + 3 * math.log(m) + 3 * anchored))
    root = math.sqrt(5) * (2 * (math.e - 2) + math.log(q.shape[1])) + 2.5 * math.sqrt((1 + anchored) * L)
    return 17 * F + (20.1 * n * L + 1) * F, math.sqrt(n * X) * root


@pytest.mark.parametrize("style", ["random", "against", "one", "scales", "turns"])
def test_gains_on_every_interval(style):
    rng, T, N = np.random.default_rng(7), 1024, 3
    scale = 10.0 ** np.repeat(rng.uniform(-2, 2, 16), T // 16)
    gains = {
        "random": lambda t, w: rng.standard_normal(N),
        "against": lambda t, w: np.eye(N)[np.argmin(w)] - 0.5,
        "one": lambda t, w: np.array([1.0, 0.0, -1.0]),
        "scales": lambda t, w: scale[t] * rng.standard_normal(N),
        "turns": lambda t, w: np.roll([1.0, 0.0, -1.0], t // 200),
    }
    q, markers, anchored = heard(gains[style], T, N)
    assert markers[-1] >= 4
    for size in (1, 4, 16, 64, 256, 1024):
        for start in range(0, T, size):
            most = sum(allowed(q, markers, anchored, start, start + size))
            assert q[start : start + size].sum(axis=0).max() <= most


def test_after_a_large_gain_small_ones_count_little():
    """(1) needs its second term: one candidate gains in round 0, the other a millionth of that in each later one."""
    T = 40_000
    q, markers, anchored = heard(lambda t, w: (-1.0 if t == 0 else 1e-6) * np.array([-w[1], w[0]]), T, 2)
    gained = q[1:, 1].sum()
    root = math.sqrt((q[1:] ** 2).max(axis=1).sum()) * math.log(T)
    assert gained > 8 * root
    assert gained <= sum(allowed(q, markers, anchored, 1, T))
