"""Estimators with familiar interfaces: scikit-learn's and river's, forecasts combined, intervals, subspaces.

They are built on the library's learners and have nothing to tune. Each is loaded when it is first used, and so is the
library whose rules it follows: `pip install 'thalweg[sklearn]'`, `'thalweg[river]'`.
"""

import importlib
from typing import Any

_PLACES = {
    "Aggregator": "aggregator",
    "Combination": "aggregator",
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

__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'thalweg.estimators' has no attribute {name!r}")
    return getattr(importlib.import_module(f"thalweg.estimators.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
