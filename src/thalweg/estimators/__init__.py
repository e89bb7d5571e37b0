"""Estimators with familiar interfaces: scikit-learn's and river's, forecasts combined, intervals, subspaces.

They are built on the library's learners and have nothing to tune. Each is loaded when it is first used, and so is the
library whose rules it follows: `pip install 'thalweg[sklearn]'`, `'thalweg[river]'`.
"""

import importlib
from typing import Any

from thalweg._core.extras import missing
from thalweg.errors import MissingExtraError

_PLACES = {  # the file of each name, and the library, and extra, that it needs
    "Aggregator": ("aggregator", ""),
    "Combination": ("aggregator", ""),
    "ConformalBands": ("conformal_bands", ""),
    "ConformalForecaster": ("conformal_forecaster", ""),
    "ConformalTracker": ("conformal", ""),
    "Forecaster": ("forecaster", ""),
    "Mixture": ("mixture", ""),
    "Oracle": ("aggregator", ""),
    "StreamingPCA": ("streaming_pca", "sklearn"),
    "ThalwegForecaster": ("sktime", "sktime"),
    "TrackingClassifier": ("classifier", "sklearn"),
    "TrackingForecaster": ("river_forecaster", "river"),
    "TrackingLogistic": ("river_models", "river"),
    "TrackingRegression": ("river_models", "river"),
    "TrackingRegressor": ("regressor", "sklearn"),
    "backtest": ("long_frames", ""),
    "forecast": ("long_frames", ""),
    "oracle": ("aggregator", ""),
}


def __getattr__(name: str) -> Any:
    if name == "__all__":  # of a star import: names whose libraries are installed
        return [one for one in sorted(_PLACES) if _installed(one)]
    if name not in _PLACES:
        raise AttributeError(f"module 'thalweg.estimators' has no attribute {name!r}")
    place, library = _PLACES[name]
    try:
        return getattr(importlib.import_module(f"thalweg.estimators.{place}"), name)
    except ImportError as error:
        if not library:
            raise
        raise missing(library, library, name) from error


def _installed(name: str) -> bool:
    try:
        __getattr__(name)
    except MissingExtraError:
        return False
    return True


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_PLACES))
