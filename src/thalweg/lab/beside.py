"""Forecasts of other libraries for the same windows, where they are installed."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from thalweg._core.extras import need
from thalweg._core.types import Floats
from thalweg.errors import MissingExtraError
from thalweg.estimators._panel import Panel

if TYPE_CHECKING:
    import polars as pl

Others = Callable[[Panel, int, int, list[int]], dict[str, Floats]]
MODELS = "AutoETS", "AutoTheta", "AutoARIMA"


def of_statsforecast() -> Others:
    """Return a function for AutoETS, AutoTheta and AutoARIMA of statsforecast, fitted for every window."""
    try:
        library, models = (importlib.import_module(name) for name in ("statsforecast", "statsforecast.models"))
    except ImportError:
        raise MissingExtraError(
            "--beside statsforecast needs statsforecast. Install it with: pip install statsforecast"
        ) from None

    def fitted(panel: Panel, horizon: int, windows: int, seasons: list[int]) -> dict[str, Floats]:
        made = {name: np.full((len(panel), windows, horizon), np.nan) for name in MODELS}
        for season in sorted(set(seasons)):
            chosen = [s for s, m in enumerate(seasons) if m == season]
            frame = _filled(panel, chosen)
            fit = library.StatsForecast([getattr(models, name)(season_length=season) for name in MODELS], freq=1)
            with warnings.catch_warnings(action="ignore"):
                found = fit.cross_validation(df=frame, h=horizon, n_windows=windows, step_size=horizon)
            s, cutoff, ds = (np.asarray(found[key], dtype=np.int64) for key in ("unique_id", "cutoff", "ds"))
            window = (cutoff + 1 - (panel.sizes[s] - windows * horizon)) // horizon
            for name in MODELS:
                made[name][s, window, ds - cutoff - 1] = np.asarray(found[name], dtype=np.float64)
        return made

    return fitted


def _filled(panel: Panel, chosen: list[int]) -> pl.DataFrame:
    """Return a frame without missing values, which the models do not take: the last one is repeated."""
    polars = need("polars", "lab", "--beside")
    parts = []
    for s in chosen:
        values = panel.series(s)[0]
        y = polars.Series("y", values, nan_to_null=True).fill_null(strategy="forward").fill_null(strategy="backward")
        parts.append(polars.DataFrame({"unique_id": np.full(values.size, s), "ds": np.arange(values.size), "y": y}))
    frame: pl.DataFrame = polars.concat(parts)
    return frame


BESIDE: dict[str, Callable[[], Others]] = {"statsforecast": of_statsforecast}
