"""Forecasts of long frames: one or many series by name and time, in any data frame, and the same kind comes back.

Columns are those of Nixtla's libraries: unique_id, ds, y, and cutoff for the last time that a forecast knew. Every
series is played by a `Forecaster` of its own.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from thalweg._core.progress import progress_bar
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_count
from thalweg.errors import InputError
from thalweg.estimators._frames import Native
from thalweg.estimators._panel import Panel, read_future, read_panel
from thalweg.estimators.forecaster import AUTO, LONGEST_HORIZON, Forecaster
from thalweg.estimators.forecasts import Forecast, Forecasts, as_columns, column_names

__all__ = ["as_backtest", "as_forecast", "at_cutoffs", "backtest", "cutoffs", "forecast", "maker", "play_panel"]

MEAN = "thalweg"


def forecast(
    frame: object,
    horizon: int = 1,
    levels: Sequence[float] = (),
    *,
    id_col: str | None = "unique_id",
    time_col: str | None = "ds",
    target_col: str = "y",
    columns: Sequence[str] | None = None,
    future: object = None,
    freq: object = "infer",
    season: str | int | Sequence[int] | None = AUTO,
    lags: str | int | Sequence[int] = AUTO,
    loss: str = "squared",
    progress: bool = False,
) -> Native:
    """Forecast every series of a long frame `horizon` steps beyond its last row.

    Parameters
    ----------
    frame : data frame
        Of pandas, polars, pyarrow or another library that narwhals knows: a row for each series and time. Rows may be
        in any order.
    horizon : int
        Steps ahead.
    levels : sequence of float
        Coverage of the intervals, such as (0.8, 0.95).
    id_col, time_col, target_col : str
        Names of columns. `id_col=None`: there is one series. `time_col=None`: rows are in order of time, which is then
        the number of the row, from 0. Times are dates, datetimes, integers, or text such as 2025-01-31 14:00.
    columns : sequence of str, optional
        Further columns to forecast from: all others when left out, () for none. They must be known in advance.
    future : data frame, optional
        These columns for the next `horizon` steps of every series.
    freq : "infer", str, int or timedelta
        The step of time: "15min", "h", "D", "B", "W", "MS", "QS", "YS" and others of pandas or polars, a number for
        integer times. "infer" is the most common one. A time without a row is a missing value, which is reported in one
        `GapWarning`; a time between two steps is an error.
    season : "auto", None, int or sequence of int
        As for `Forecaster`. "auto" goes by the step of time: 24 and 168 for hours, 7 and 365 for days, 5 and 261 for
        business days, 52 for weeks, 12 for months, 4 for quarters. Where it says nothing, as with integers, seasons are
        looked for in each series.
    lags, loss
        As for `Forecaster`.
    progress : bool
        Whether to show a bar.

    Returns
    -------
    data frame
        Of the kind of `frame`, with the columns unique_id, ds, thalweg, and thalweg-lo-80, thalweg-hi-80 for each
        level; sorted by series and time.

    Examples
    --------
    >>> import polars as pl, thalweg as tw
    >>> months = [f"{2020 + k // 12}-{k % 12 + 1:02}-01" for k in range(60)]
    >>> sales = pl.DataFrame({"unique_id": ["tea"] * 60, "ds": months, "y": [100.0 + k % 12 for k in range(60)]})
    >>> ahead = tw.forecast(sales, horizon=3, levels=(0.8,))
    >>> ahead.columns
    ['unique_id', 'ds', 'thalweg', 'thalweg-lo-80', 'thalweg-hi-80']
    >>> ahead["ds"].dt.date().cast(str).to_list(), ahead["thalweg"].round(1).to_list()
    (['2025-01-01', '2025-02-01', '2025-03-01'], [100.0, 101.0, 102.0])
    """
    H = check_count("forecast", "horizon", horizon, most=LONGEST_HORIZON)
    panel = read_panel("forecast", frame, id_col, time_col, target_col, columns, freq)
    if panel.columns and future is None:
        raise InputError(
            f"forecast: frame has the columns {', '.join(panel.columns)}; give future= with them for the next {H} "
            "steps of every series, or columns=() to leave them out."
        )
    if future is not None and not panel.columns:
        raise InputError("forecast: future= is for further columns, and frame has none. Leave it out.")
    ahead = read_future("forecast", future, panel, time_col, H) if panel.columns else None
    make = maker(panel, season, horizon=H, levels=levels, lags=lags, loss=loss)
    return as_forecast(panel, [said for _, said in play_panel(panel, make, ahead, progress, "forecast")])


def backtest(
    frame: object,
    horizon: int = 1,
    levels: Sequence[float] = (),
    *,
    step_size: int = 1,
    n_windows: int | None = None,
    id_col: str | None = "unique_id",
    time_col: str | None = "ds",
    target_col: str = "y",
    columns: Sequence[str] | None = None,
    freq: object = "infer",
    season: str | int | Sequence[int] | None = AUTO,
    lags: str | int | Sequence[int] = AUTO,
    loss: str = "squared",
    progress: bool = False,
) -> Native:
    """Forecast every value of a long frame from the rows before it, 1 to `horizon` steps ahead.

    A forecast knows the values up to its cutoff and nothing after it: nothing is fitted to the whole. Further columns
    count as known in advance, for all steps.

    Parameters
    ----------
    step_size : int
        Steps from one cutoff to the next, counted back from the last cutoff with `horizon` answers. 1: all cutoffs.
    n_windows : int, optional
        The number of cutoffs, the last ones with `horizon` answers. When left out: all of them from the first row on,
        and those near the end with fewer answers.
    frame, horizon, levels, id_col, time_col, target_col, columns, freq, season, lags, loss, progress
        As for `forecast`.

    Returns
    -------
    data frame
        Of the kind of `frame`, with the columns unique_id, ds, cutoff, y, thalweg, and thalweg-lo-80, thalweg-hi-80 for
        each level. Values that are missing have no row.

    Examples
    --------
    >>> import pandas as pd, thalweg as tw
    >>> frame = pd.DataFrame({"unique_id": "a", "ds": range(50), "y": [k % 5 for k in range(50)]})
    >>> past = tw.backtest(frame, horizon=2, season=5)
    >>> past.shape, list(past.columns)
    ((97, 5), ['unique_id', 'ds', 'cutoff', 'y', 'thalweg'])
    >>> float((past["y"] - past["thalweg"]).abs().tail(20).max().round(2))
    0.0
    """
    H = check_count("backtest", "horizon", horizon, most=LONGEST_HORIZON)
    step = check_count("backtest", "step_size", step_size)
    windows = None if n_windows is None else check_count("backtest", "n_windows", n_windows)
    panel = read_panel("backtest", frame, id_col, time_col, target_col, columns, freq)
    make = maker(panel, season, horizon=H, levels=levels, lags=lags, loss=loss)
    if windows is not None and (short := np.flatnonzero(panel.sizes <= H + (windows - 1) * step)).size:
        s = int(short[0])
        raise InputError(
            f"backtest: series {panel.labels[s]!r} has {panel.sizes[s]} rows; {windows} windows of {H} steps need more "
            f"than {H + (windows - 1) * step}. Ask for fewer windows, or leave the series out."
        )
    rows = [cutoffs(panel.series(s)[0], H, step, windows) for s in range(len(panel))]
    runs = (run for run, _ in play_panel(panel, make, None, progress, "backtest"))
    return as_backtest(panel, rows, [at_cutoffs(run, at) for run, at in zip(runs, rows, strict=True)], make().levels)


Places = tuple[Ints, Ints]


def cutoffs(values: Floats, horizon: int, step: int = 1, windows: int | None = None) -> Places:
    """Return (t, h): forecast h + 1 steps ahead, made before values[t], whose answer is known."""
    T, first = values.size, int(np.argmax(~np.isnan(values)))
    last = T - horizon
    begin = last - step * ((last - first - 1) // step) if last > first else last + step * -(-(first + 1 - last) // step)
    origins = np.arange(begin, T, step)
    if windows is not None:
        origins = origins[origins <= last][-windows:]
    t, h = np.repeat(origins, horizon), np.tile(np.arange(horizon), origins.size)
    known = t + h < T
    known[known] = ~np.isnan(values[(t + h)[known]])
    return t[known], h[known]


def at_cutoffs(run: Forecasts, at: Places) -> list[Floats]:
    """Return forecasts at these places, and lower and upper ends for each level."""
    return [column[at] for column in as_columns(run)]


def maker(panel: Panel, season: str | int | Sequence[int] | None, **options: Any) -> Callable[[], Forecaster]:
    """Return a function that builds the forecaster of a series; "auto" is the season of the frequency, if any."""
    if isinstance(season, str) and season == AUTO:
        season = panel.frequency.seasons or AUTO
    return functools.partial(Forecaster, panel.columns, season=season, **options)


def play_panel(
    panel: Panel, make: Callable[[], Forecaster], ahead: Floats | None, progress: bool, owner: str
) -> Iterator[tuple[Forecasts, Forecast]]:
    """Yield, for every series, forecasts of all its values and those after the last; `ahead` has columns of these."""
    with progress_bar(owner, int(panel.ends[-1]), progress, "row") as tick:
        for s in range(len(panel)):
            values, rows = panel.series(s)
            forecaster, X = make(), None
            run = forecaster.run(values, rows if panel.columns else None)
            if panel.columns:
                X = np.full((forecaster.horizon, len(panel.columns)), np.nan) if ahead is None else ahead[s]
            yield run, forecaster.forecast(X)
            tick(values.size)


def as_forecast(panel: Panel, said: list[Forecast]) -> Native:
    """Return forecasts after the last row of every series as a frame."""
    H = said[0].mean.size
    series = np.repeat(np.arange(len(panel)), H)
    places = panel.sizes[series] + np.tile(np.arange(H), len(panel))
    found = _joined([as_columns(one) for one in said], said[0].lower)
    return panel.frame(series, {panel.names[1]: places}, found, "forecast")


def as_backtest(panel: Panel, rows: list[Places], parts: list[list[Floats]], levels: Sequence[float]) -> Native:
    """Return forecasts of past values as a frame: of places (t, h), and columns in the order of `column_names`."""
    series = np.repeat(np.arange(len(panel)), [t.size for t, _ in rows])
    t, h = (np.concatenate([one[k] for one in rows]) for k in range(2))
    found = {panel.names[2]: panel.values[panel.ends[series] + t + h]} | _joined(parts, levels)
    return panel.frame(series, {panel.names[1]: t + h, "cutoff": t - 1}, found, "backtest")


def _joined(parts: list[list[Floats]], levels: Iterable[float]) -> dict[str, Floats]:
    """Return the columns of all series by name."""
    return {name: np.concatenate([part[k] for part in parts]) for k, name in enumerate(column_names(levels))}
