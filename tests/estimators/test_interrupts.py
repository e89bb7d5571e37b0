"""Ctrl-C at any time: a row, a batch or a fit has been learned whole, or not at all."""

import itertools
import signal
import time

import numpy as np
import pytest

from thalweg.estimators import Forecaster, TrackingClassifier, TrackingRegression, TrackingRegressor


def rows(rng):
    """Features that come and go, and more and more of them."""
    for t in itertools.count():
        yield {f"x{rng.integers(5 + t // 3)}": float(rng.normal()) for _ in range(3)}, float(rng.normal())


def batches(rng):
    while True:
        yield rng.normal(size=(20, 3)), np.r_[0, 1, 2, rng.integers(0, 3, size=17)]


def classes():
    return TrackingClassifier("hinge").partial_fit(np.eye(3), [0, 1, 2], classes=[0, 1, 2])


CASES = {
    "river": (TrackingRegression, lambda model, given: model.learn_one(*given), rows),
    "question": (lambda: Forecaster(("a", "b", "c")), lambda model, given: model.predict(given[0][0]), batches),
    "value": (lambda: Forecaster(lags=3), lambda model, given: model.update(given[1]), rows),
    "run": (lambda: Forecaster(lags=3), lambda model, given: model.run(given[0][0]), batches),
    "three classes": (classes, lambda model, given: model.partial_fit(*given), batches),
    "fit": (classes, lambda model, given: model.fit(*given), batches),
    "constrained": (
        lambda: TrackingRegressor(constraint="ball"),
        lambda model, given: model.partial_fit(given[0], given[1] * 1.0),
        batches,
    ),
}


def same(one, two):
    return one.keys() == two.keys() and all(np.array_equal(one[key], two[key]) for key in one)


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
@pytest.mark.parametrize("count", [12, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CASES)
def test_interrupted_calls_are_whole_or_were_not(name, count):
    make, play, world = CASES[name]
    model, twin = make(), make()
    rng, reach, interrupted = np.random.default_rng(4), 1e-4, 0
    for given in world(rng):
        before = model.state()
        try:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.1, 1.0) * reach)
            play(model, given)
            while signal.getitimer(signal.ITIMER_REAL)[0]:  # the call was quicker
                pass
            time.sleep(0.002)  # a signal that just came, to another thread perhaps, is heard here
        except KeyboardInterrupt:
            interrupted += 1
        play(twin, given)
        if same(model.state(), twin.state()):
            reach /= 1.05
        else:
            assert same(model.state(), before)
            reach *= 1.05  # such that half of them come too late: most are near where the state moves
            play(model, given)
        assert same(model.state(), twin.state())
        if interrupted == count:
            break
