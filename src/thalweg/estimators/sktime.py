"""The forecaster for sktime."""

import copy
from array import array
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sktime.forecasting.base import BaseForecaster, ForecastingHorizon

from thalweg._types import Array
from thalweg._validate import check_count
from thalweg.estimators.forecaster import Forecaster

__all__ = ["ThalwegForecaster"]

LEAST, MOST = 0.01, 0.999  # levels of intervals


class ThalwegForecaster(BaseForecaster):  # type: ignore[misc]  # sktime has no types
    """`thalweg.estimators.Forecaster` for sktime: seasons, missing values and intervals, with nothing to tune.

    `update` learns from the new values and nothing is fitted again. Exogenous columns must be numbers; where X is not
    given for some of the next steps, those columns count as not known.

    Parameters
    ----------
    lags, season, loss
        As in `Forecaster`.
    horizon : int, optional
        Steps ahead that it is prepared for. Left out, they are those of `fh` in `fit`, or one. For a `fh` beyond them
        it goes through all values again, at some microseconds each.
    levels : sequence of float
        Coverage of the intervals that it is prepared for. For others it goes through all values again.

    Notes
    -----
    With `update_params=False` the time passes, and the new values count as missing. In-sample forecasts are those that
    were made one step before, so the first one is nan. Gaps in an index that is regular are missing values.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from thalweg.estimators import ThalwegForecaster
    >>> months = pd.period_range("2010-01", periods=120, freq="M")
    >>> sales = pd.Series(50 + 10 * np.sin(np.arange(120) * np.pi / 6), index=months)
    >>> forecaster = ThalwegForecaster(season=12).fit(sales[:-12], fh=[1, 2, 3])
    >>> forecaster.predict().round(1).tolist()
    [50.0, 55.0, 58.7]
    >>> forecaster.update(sales[-12:]).predict().index[0]
    Period('2020-01', 'M')
    """

    _tags: ClassVar[dict[str, Any]] = {
        "authors": "The Thalweg developers",
        "maintainers": "The Thalweg developers",
        "y_inner_mtype": "pd.Series",
        "X_inner_mtype": "pd.DataFrame",
        "requires-fh-in-fit": False,
        "capability:exogenous": True,
        "capability:categorical_in_X": False,
        "capability:insample": True,
        "capability:missing_values": True,
        "capability:pred_int": True,
        "capability:pred_int:insample": True,
        "capability:update": True,
    }
    _config: ClassVar[dict[str, Any]] = {"remember_data": False}  # the forecaster keeps its own

    def __init__(
        self,
        lags: str | int | Sequence[int] = "auto",
        season: str | int | Sequence[int] | None = "auto",
        horizon: int | None = None,
        levels: Sequence[float] = (0.9,),
        loss: str = "squared",
    ) -> None:
        self.lags = lags
        self.season = season
        self.horizon = horizon
        self.levels = levels
        self.loss = loss
        self._y = self._X = None  # kept by sktime if it is configured to remember data
        super().__init__()

    def _build(self, horizon: int, levels: Sequence[float]) -> Forecaster:
        return Forecaster(
            self._columns, lags=self.lags, season=self.season, horizon=horizon, levels=levels, loss=self.loss
        )

    def _play(self, model: Forecaster, first: int = 0) -> Any:
        """Let a model see the values from `first` on."""
        width = len(self._columns)
        rows = np.array(self._rows[first * width :]).reshape(-1, width) if width else None
        return model.run(np.array(self._values[first:]), rows)

    # ------------------------------------------------------------------ learning

    def _fit(self, y: Any, X: Any, fh: Any) -> "ThalwegForecaster":
        self._name = y.name
        self._columns = () if X is None else tuple(map(str, X.columns))
        self._values = array("d")
        self._rows = array("d")  # row after row
        self._unit = _unit(y.index)
        ahead = 1 if fh is None else int(max(fh.to_relative(self.cutoff).to_numpy(), default=1))
        least = 1 if self.horizon is None else check_count(type(self).__name__, "horizon", self.horizon)
        self._model = self._build(max(least, ahead), self.levels)
        self._append(y, X, None)
        self._play(self._model)
        return self

    def _update(self, y: Any, X: Any = None, update_params: bool = True) -> "ThalwegForecaster":
        known = len(self._values)
        self._append(y if update_params else y * np.nan, X, self._last)
        self._play(self._model, known)
        return self

    def _append(self, y: Any, X: Any, last: Any) -> None:
        """Take values that are later than the last one, with gaps in their index as missing values."""
        steps = _steps(y.index, y.index[0] if last is None else last, self._unit) + (last is None)
        values, new = np.asarray(y, dtype=np.float64), steps > 0
        if not new.any():
            return
        count = int(steps.max())
        filled, rows = np.full(count, np.nan), np.full((count, len(self._columns)), np.nan)
        filled[steps[new] - 1] = values[new]
        if self._columns and X is not None:
            rows[steps[new] - 1] = X.reindex(y.index).to_numpy(dtype=np.float64)[new]
        self._values.extend(filled)
        self._rows.extend(rows.ravel())
        self._last = y.index[-1]

    # ------------------------------------------------------------------ forecasts

    def _forecasts(self, fh: Any, X: Any, levels: Sequence[float]) -> tuple[Array, dict[float, tuple[Array, Array]]]:
        """Return the forecasts at `fh` and the ends of intervals by level."""
        steps = fh.to_relative(self.cutoff).to_numpy().astype(int)
        ahead, model = int(max(steps.max(), 1)), self._model
        fits = ahead <= model.horizon and set(levels) <= set(model.levels)
        if fits and (steps > 0).all():
            model = copy.copy(model)
            run = None
        else:
            model = self._build(max(ahead, model.horizon if fits else 1), model.levels if fits else levels)
            run = self._play(model)
        mean = np.full(steps.size, np.nan)
        ends = {level: (mean.copy(), mean.copy()) for level in levels}
        later, before = steps > 0, steps <= 0
        if later.any():
            said = model.forecast(self._future(X, model.horizon))
            mean[later] = said.mean[steps[later] - 1]
            for level in levels:
                ends[level][0][later] = said.lower[level][steps[later] - 1]
                ends[level][1][later] = said.upper[level][steps[later] - 1]
        if run is not None and before.any():
            rounds = len(self._values) - 1 + steps[before]
            inside = rounds >= 0
            at = np.flatnonzero(before)[inside]
            mean[at] = run.mean[rounds[inside], 0]
            for level in levels:
                ends[level][0][at] = run.lower[level][rounds[inside], 0]
                ends[level][1][at] = run.upper[level][rounds[inside], 0]
        return mean, ends

    def _future(self, X: Any, horizon: int) -> Array | None:
        """Return the columns of the next steps; nan where they are not given."""
        if not self._columns:
            return None
        if X is None:
            return np.full((horizon, len(self._columns)), np.nan)
        index = ForecastingHorizon(np.arange(1, horizon + 1)).to_absolute_index(self.cutoff)
        return np.asarray(X.reindex(index).to_numpy(dtype=np.float64))

    def _predict(self, fh: Any, X: Any) -> Any:
        mean, _ = self._forecasts(fh, X, ())
        return pd.Series(mean, index=fh.to_absolute_index(self.cutoff), name=self._name)

    def _predict_interval(self, fh: Any, X: Any, coverage: Sequence[float]) -> Any:
        chosen = {share: min(max(float(share), LEAST), MOST) for share in coverage}
        mean, ends = self._forecasts(fh, X, sorted({level for share, level in chosen.items() if share > 0}))
        name = self._get_varnames()[0]
        columns = pd.MultiIndex.from_product([[name], list(coverage), ["lower", "upper"]])
        sides = [end for share in coverage for end in (ends[chosen[share]] if share > 0 else (mean, mean))]
        return pd.DataFrame(np.column_stack(sides), index=fh.to_absolute_index(self.cutoff), columns=columns)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return arguments that sktime's checks try."""
        return [{}, {"lags": 2, "season": 4, "horizon": 3, "levels": (0.5, 0.9), "loss": "absolute"}]


def _unit(index: Any) -> Any:
    """Return the time between two entries of a regular index of timestamps, also of one with gaps; None: unknown."""
    if not isinstance(index, pd.DatetimeIndex):
        return None
    found = index.freq or (pd.infer_freq(index) if len(index) > 2 else None)
    if found is None and len(index) > 1:
        apart = np.diff(index.asi8)
        least = apart.min()
        found = None if least <= 0 or (apart % least).any() else pd.Timedelta(least, unit=index.unit)
    return None if found is None else pd.tseries.frequencies.to_offset(found)


def _steps(index: Any, last: Any, unit: Any) -> Any:
    """Return how many steps after `last` the entries of an index are; without a unit they are one after the other."""
    if isinstance(index, pd.PeriodIndex):
        return (index.asi8 - last.ordinal) // index.freq.n
    if isinstance(index, pd.DatetimeIndex):
        after = index > last
        if unit is not None:
            steps = pd.date_range(last, max(last, index[-1]), freq=unit).get_indexer(index)
            if (steps[after] > 0).all():
                return np.where(after, steps, 0)
        return np.cumsum(after)
    return np.asarray(index - last, dtype=np.int64)
