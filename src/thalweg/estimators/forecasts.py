"""Forecasts as they are handed out: of the next steps, and of a whole run."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from thalweg._core.extras import need
from thalweg._core.html import row_table
from thalweg._core.types import Floats, Ints
from thalweg.estimators._frames import Native

__all__ = ["Forecast", "Forecasts", "as_columns", "column_names"]


def column_names(levels: Iterable[float]) -> list[str]:
    """Return the names of the mean and of the ends for every level: thalweg, thalweg-lo-80, thalweg-hi-80."""
    return ["thalweg", *(f"thalweg-{side}-{100 * level:g}" for level in levels for side in ("lo", "hi"))]


def as_columns(said: "Forecast | Forecasts", levels: Iterable[float] | None = None) -> list[Floats]:
    """Return the mean and the ends for these levels, by default for all, in the order of their names."""
    chosen = said.lower if levels is None else levels
    return [said.mean, *(ends[level] for level in chosen for ends in (said.lower, said.upper))]


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
        ends = (head for level in self.lower for head in (f"{100 * level:g} % from", "to"))
        rows = [[k, *map(float, row)] for k, row in enumerate(zip(*as_columns(self), strict=True), 1)]
        return row_table(f"Forecast, {self.mean.size} steps ahead", ["step", "forecast", *ends], rows)

    def to_frame(self, backend: str = "polars") -> Native:
        """Return a data frame with the columns step, thalweg, and thalweg-lo-80, thalweg-hi-80 for every level.

        `backend` is "polars", "pandas" or "pyarrow".
        """
        nw = need("narwhals", "frames", "Forecast.to_frame")
        made = [np.arange(1, self.mean.size + 1), *as_columns(self)]
        names = ["step", *column_names(self.lower)]
        return nw.from_dict(dict(zip(names, made, strict=True)), backend=backend).to_native()


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
