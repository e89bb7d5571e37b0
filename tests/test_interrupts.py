"""Ctrl-C at any moment: the learner stands exactly before the round or exactly after it, and shows its decision."""

import itertools
import signal
import time

import numpy as np
import pytest

import thalweg as tw
from tests.worlds import LEARNERS, slow_box
from thalweg import control, pca


def instances(d=6):
    rng = np.random.default_rng(1)
    while True:
        x = rng.standard_normal(d)
        yield x / (1.01 * np.linalg.norm(x))


def losses(shape):
    rng = np.random.default_rng(2)
    while True:
        a = rng.standard_normal(shape)
        yield tw.losses.Squared(a / np.linalg.norm(a), 0.3 * rng.standard_normal())


def step(learner, f):
    learner.step(f)


def instance(learner, x):
    learner.update(x)


def observe(controller, w):
    controller.observe(COST, SYSTEM.A @ X0 + SYSTEM.B @ controller.state()["u"] + w)


SYSTEM = control.LinearSystem([[0.9, 0.2], [0.0, 0.7]], [[0.0], [1.0]])
COST = control.Quadratic(np.eye(2), np.eye(1))
X0 = np.array([1.0, -1.0])


def disturbances():
    rng = np.random.default_rng(3)
    while True:
        yield 0.1 * rng.standard_normal(2)


OURS = (
    "OGD",
    "OGD custom",
    "Sword custom",
    "Ader own, custom",
    "EfficientDynamic",
    "EfficientOptimistic",
    "SwordPP",
    "EfficientAdaptive",
    "EfficientIntervalDynamic",
    "CBCE",
    "SACS",
    "CutkoskyAdaptive",
    "EfficientCutkosky",
    "Tracker",
    "Delayed Tracker",
    "Delayed OGD custom",
    "EfficientDelayed",
)

# Who plays, how a round is played, and what the rounds are.
FAMILIES = {name: (LEARNERS[name], step, None) for name in OURS} | {
    "Tracker, only Python projects": (lambda: tw.Tracker(slow_box()), step, None),
    "EfficientPCA": (lambda: pca.EfficientPCA(6, 2, rng=0), instance, instances),
    "AdaptivePCA": (lambda: pca.AdaptivePCA(6, 2, rng=0), instance, instances),
    "DescentPCA": (lambda: pca.DescentPCA(6, 2, 1000, rng=0), instance, instances),
    "YuanLamperskiPCA": (lambda: pca.YuanLamperskiPCA(6, 2, 1000, rng=0), instance, instances),
    "OjaPCA": (lambda: pca.OjaPCA(6, 2, step_size=0.1, rng=0), instance, instances),
    "GPC": (lambda: control.GPC(SYSTEM, 1000), observe, disturbances),
    "EfficientControl": (lambda: control.EfficientControl(SYSTEM, 1000), observe, disturbances),
}


def same(one, two):
    return one.keys() == two.keys() and all(np.array_equal(one[key], two[key]) for key in one)


def shown(learner):
    """What it does in this round: a learner's decision may be projected for it, a controller acts."""
    return learner.act(X0) if isinstance(learner, control.Controller) else np.array(learner.decision)


@pytest.fixture
def _alarm():
    """An alarm that is a Ctrl-C, even if the tests run in the background."""
    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGINT, usual)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("_alarm")
@pytest.mark.filterwarnings("ignore::thalweg.errors.HorizonWarning")
@pytest.mark.parametrize("count", [12, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FAMILIES)
def test_interrupted_rounds_are_whole_or_were_not(name, count):
    make, play, rounds = FAMILIES[name]
    learner, twin = make(), make()
    world = losses(learner.domain.shape) if rounds is None else rounds()
    for given in itertools.islice(world, 40):  # compiled, and past the first rounds
        assert np.array_equal(shown(learner), shown(twin))
        play(learner, given)
        play(twin, given)
    reach, rng, interrupted, played = 1e-4, np.random.default_rng(4), 0, 0
    for given in world:
        assert np.array_equal(shown(learner), shown(twin))
        before = learner.state()
        try:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.3, 1.0) * reach)
            play(learner, given)
            while signal.getitimer(signal.ITIMER_REAL)[0]:  # the round was quicker
                pass
            time.sleep(0.002)  # a signal that just came, to another thread perhaps, is heard here
        except KeyboardInterrupt:
            interrupted += 1
        if learner.rounds == twin.rounds:
            assert same(learner.state(), before)
            reach *= 1.05  # such that half of them come too late: most are near where the state moves
            play(learner, given)
        else:
            reach /= 1.05
            played += 1
        play(twin, given)
        assert same(learner.state(), twin.state())
        if interrupted == count:
            break
    assert 0 < played < interrupted or count < 100
