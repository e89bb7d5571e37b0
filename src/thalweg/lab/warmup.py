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


def _forecaster() -> None:
    forecaster = estimators.Forecaster(lags=2)
    forecaster.run(np.arange(5.0))
    forecaster.predict()


ESTIMATORS: dict[str, Callable[[], object]] = {
    "Forecaster": _forecaster,
    "TrackingRegressor": lambda: estimators.TrackingRegressor().fit(*_rows()).predict(_rows()[0]),
}
