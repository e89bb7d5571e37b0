"""Estimators with familiar interfaces: scikit-learn's and river's, forecasts combined, intervals, subspaces.

They are built on the library's learners and have nothing to tune. Each is loaded when it is first used, and so is the
library whose rules it follows: `pip install 'thalweg[sklearn]'`, `'thalweg[river]'`.
"""

import importlib
from typing import Any

from thalweg._extras import missing
from thalweg.errors import MissingExtraError

_PLACES = {
    "Aggregator": "aggregator",
    "Combination": "aggregator",
    "ConformalBands": "conformal_bands",
    "ConformalForecaster": "conformal_forecaster",
    "ConformalTracker": "conformal",
    "Forecaster": "forecaster",
    "Mixture": "mixture",
    "Oracle": "aggregator",
    "StreamingPCA": "streaming_pca",
    "ThalwegForecaster": "sktime",
    "TrackingClassifier": "classifier",
    "TrackingForecaster": "river_forecaster",
    "TrackingLogistic": "river_models",
    "TrackingRegression": "river_models",
    "TrackingRegressor": "regressor",
    "backtest": "long_frames",
    "forecast": "long_frames",
    "oracle": "aggregator",
}  # the file of each name
_NEEDS = {
    "classifier": "sklearn",
    "regressor": "sklearn",
    "river_forecaster": "river",
    "river_models": "river",
    "sktime": "sktime",
    "streaming_pca": "sklearn",
}  # the library, and extra, of a file


def __getattr__(name: str) -> Any:
    if name == "__all__":  # of a star import: names whose libraries are installed
        return [one for one in sorted(_PLACES) if _installed(one)]
    if name not in _PLACES:
        raise AttributeError(f"module 'thalweg.estimators' has no attribute {name!r}")
    place = _PLACES[name]
    try:
        return getattr(importlib.import_module(f"thalweg.estimators.{place}"), name)
    except ImportError as error:
        if place not in _NEEDS:
            raise
        raise missing(_NEEDS[place], _NEEDS[place], name) from error


def _installed(name: str) -> bool:
    try:
        __getattr__(name)
    except MissingExtraError:
        return False
    return True


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_PLACES))
