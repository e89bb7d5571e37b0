"""The jury: weights over candidates, the same whatever the unit of gains, and good on every stretch."""

import numpy as np
import pytest

from thalweg._core.state import Block
from thalweg._kernels.handle import bind, parts
from thalweg._kernels.jit import kernel
from thalweg.parts.jury import judge, jury_plan
from thalweg.parts.records import slots_for


@kernel
def hear(handle, q):
    s, c = parts(handle)
    judge(s, c, q)


def new_jury(priors, rounds=1200):
    block = Block.fresh(jury_plan(np.asarray(priors, dtype=float), slots_for(rounds)))
    return block.state, block.settings


def weigh(losses, priors, scale=1.0, compiled=True):
    """The weights before each round of these losses of the candidates, and the jury."""
    jury, room = new_jury(priors)
    handle = bind((jury, room))
    shown = []
    for lost in losses * scale:
        w = jury.weights.copy()
        shown.append(w)
        q = w @ lost - lost
        hear(handle, q) if compiled else judge(jury, room, q)
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


def test_compiled_and_plain_agree(losses):
    a, b = (weigh(losses[:200], np.ones(4), compiled=compiled)[0] for compiled in (True, False))
    assert np.allclose(a, b, rtol=1e-12, atol=1e-15)


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
