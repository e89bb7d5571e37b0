"""Everything that is compiled, as tasks that compile it."""

from collections.abc import Callable

import numpy as np

import thalweg as tw
from thalweg import estimators
from thalweg.lab.catalog import ALGORITHMS, build
from thalweg.lab.streams import draw

__all__ = ["tasks"]


def tasks() -> dict[str, Callable[[], object]]:
    """By name: two rounds of every algorithm, by `play` and by `step`, and a few rows for every estimator."""
    stream = draw("ball-piecewise", horizon=40)

    def algorithm(name: str) -> Callable[[], None]:
        def task() -> None:
            learner = build(name, stream)
            tw.play(learner, stream.problem, rounds=2)
            learner.step(stream.problem[2])

        return task

    found: dict[str, Callable[[], object]] = {name: algorithm(name) for name in ALGORITHMS}
    return found | ESTIMATORS


def _rows(n: int = 6, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).standard_normal((n, d))
    return X, X[:, 0] + 1.0


def _aggregator() -> None:
    X, y = _rows()
    estimators.Aggregator().run(X, y)
    one = estimators.Aggregator()
    one.predict(X[0])
    one.update(1.0)


def _intervals() -> None:
    X, y = _rows()
    tracker = estimators.ConformalTracker()
    tracker.run(X[:, 0], y)
    tracker.predict_interval(1.0)
    tracker.update(1.0)


def _forecaster() -> None:
    forecaster = estimators.Forecaster(lags=2)
    forecaster.run(np.arange(5.0))
    forecaster.predict()


def _subspace() -> None:
    X, _ = _rows()
    estimators.StreamingPCA(2).fit(X).transform(X)


def _river(name: str, label: object) -> Callable[[], None]:
    def task() -> None:
        model = getattr(estimators, name)()
        for x in ({"a": 1.0}, {"a": 2.0, "b": 1.0}):
            model.predict_one(x)
            model.learn_one(x, label)

    return task


ESTIMATORS: dict[str, Callable[[], object]] = {
    "Aggregator": _aggregator,
    "ConformalTracker": _intervals,
    "Forecaster": _forecaster,
    "StreamingPCA": _subspace,
    "TrackingClassifier": lambda: estimators.TrackingClassifier().fit(_rows()[0], [0, 1, 0, 1, 0, 1]),
    "TrackingLogistic": _river("TrackingLogistic", True),
    "TrackingRegression": _river("TrackingRegression", 1.0),
    "TrackingRegressor": lambda: estimators.TrackingRegressor().fit(*_rows()).predict(_rows()[0]),
}
