"""Forecasts as they are handed out: of the next steps, and of a whole run."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thalweg._core.extras import need
from thalweg._core.html import row_table
from thalweg._core.types import Floats, Ints
from thalweg.estimators._frames import Native

__all__ = ["Forecast", "Forecasts", "column_names"]


def column_names(levels: Mapping[float, Floats] | tuple[float, ...], name: str = "thalweg") -> list[tuple[str, str]]:
    """Return the names of the lower and upper columns for every level: thalweg-lo-80, thalweg-hi-80."""
    return [(f"{name}-lo-{100 * level:g}", f"{name}-hi-{100 * level:g}") for level in levels]


@dataclass(frozen=True)
class Forecast:
    """Forecasts of the next H values.

    Attributes
    ----------
    mean : array (H,)
        The forecasts; mean[0] is that of the next value. nan before the first value.
    lower, upper : dict of arrays (H,)
        Ends of the intervals, by level. nan before the first answers.
    answers : array (H,) of int
        How many errors the interval of each step rests on. With 0, it is that of a shorter step, made wider.
    """

    mean: Floats
    lower: dict[float, Floats]
    upper: dict[float, Floats]
    answers: Ints

    def _repr_html_(self) -> str:
        heads, rows = ["step", "forecast"], [[k + 1, float(value)] for k, value in enumerate(self.mean)]
        for level in self.lower:
            heads += [f"{100 * level:g} % from", "to"]
            for row, low, high in zip(rows, self.lower[level], self.upper[level], strict=True):
                row += [float(low), float(high)]
        return row_table(f"Forecast, {self.mean.size} steps ahead", heads, rows)

    def to_frame(self, backend: str = "polars") -> Native:
        """Return a data frame with the columns step, thalweg, and thalweg-lo-80, thalweg-hi-80 for every level.

        `backend` is "polars", "pandas" or "pyarrow".
        """
        nw = need("narwhals", "frames", "Forecast.to_frame")
        columns: dict[str, NDArray[np.generic]] = {"step": np.arange(1, self.mean.size + 1), "thalweg": self.mean}
        for level, (low, high) in zip(self.lower, column_names(tuple(self.lower)), strict=True):
            columns[low], columns[high] = self.lower[level], self.upper[level]
        return nw.from_dict(columns, backend=backend).to_native()


@dataclass(frozen=True)
class Forecasts:
    """Forecasts of a whole run of T values.

    Attributes
    ----------
    mean : array (T, H)
        mean[t, h - 1] is the forecast of values[t + h - 1] made before values[t] was seen.
    lower, upper : dict of arrays (T, H)
        Ends of the intervals, by level.
    weights : array (T, K)
        Share of each candidate in mean[t, 0].
    candidates : tuple of str
        Their names.
    """

    mean: Floats
    lower: dict[float, Floats]
    upper: dict[float, Floats]
    weights: Floats
    candidates: tuple[str, ...]
