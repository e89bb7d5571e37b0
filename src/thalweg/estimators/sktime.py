"""The forecaster for sktime."""

import copy
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sktime.forecasting.base import BaseForecaster, ForecastingHorizon

from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_count
from thalweg.estimators.forecaster import Forecaster
from thalweg.estimators.forecasts import Forecasts, as_columns

__all__ = ["ThalwegForecaster"]

LOWEST_LEVEL, HIGHEST_LEVEL = 0.01, 0.999  # levels of intervals


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

    def _play(self, model: Forecaster, first: int = 0) -> Forecasts:
        """Let a model see the values from `first` on."""
        return model.run(self._values[first:], self._rows[first:] if self._columns else None)

    # ------------------------------------------------------------------ learning

    def fit(self, y: object, X: object = None, fh: object = None) -> Self:
        """See sktime. A call that fails leaves everything as it was."""
        return self._whole(super().fit, y=y, X=X, fh=fh)

    def update(self, y: object, X: object = None, update_params: bool = True) -> Self:
        """See sktime. A call that fails leaves everything as it was."""
        return self._whole(super().update, y=y, X=X, update_params=update_params)

    def _whole(self, call: Callable[..., Self], **arguments: object) -> Self:
        before = dict(vars(self))
        try:
            return call(**arguments)
        except BaseException:
            self.__dict__ = before
            raise

    def _fit(self, y: pd.Series, X: pd.DataFrame | None, fh: ForecastingHorizon | None) -> Self:
        self._name = y.name
        self._columns = () if X is None else tuple(map(str, X.columns))
        self._values, self._rows = np.zeros(0), np.zeros((0, len(self._columns)))
        self._unit = _unit(y.index)
        ahead = 1 if fh is None else int(max(fh.to_relative(self.cutoff).to_numpy(), default=1))
        least = 1 if self.horizon is None else check_count(type(self).__name__, "horizon", self.horizon)
        self._model = self._build(max(least, ahead), self.levels)
        self._append(y, X, None)
        self._play(self._model)
        return self

    def _update(self, y: pd.Series, X: pd.DataFrame | None = None, update_params: bool = True) -> Self:
        known, model = len(self._values), copy.copy(self._model)
        self._append(y if update_params else y * np.nan, X, self._last)
        self._play(model, known)
        self._model = model
        return self

    def _append(self, y: pd.Series, X: pd.DataFrame | None, last: Any) -> None:
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
        self._values, self._rows = np.append(self._values, filled), np.append(self._rows, rows, axis=0)
        self._last = y.index[-1]

    # ------------------------------------------------------------------ forecasts

    def _forecasts(self, fh: ForecastingHorizon, X: pd.DataFrame | None, levels: Sequence[float]) -> Floats:
        """Return, for every step of `fh`, the forecast and the ends of intervals: (steps, 1 + 2 levels)."""
        steps = fh.to_relative(self.cutoff).to_numpy().astype(int)
        ahead, model = int(max(steps.max(), 1)), self._model
        fits = ahead <= model.horizon and set(levels) <= set(model.levels)
        found, later = np.full((steps.size, 1 + 2 * len(levels)), np.nan), steps > 0
        if fits and later.all():
            model = copy.copy(model)
        else:
            model = self._build(max(ahead, model.horizon if fits else 1), model.levels if fits else levels)
            run = self._play(model)
            rounds = len(self._values) - 1 + steps
            inside = ~later & (rounds >= 0)
            found[inside] = np.stack(as_columns(run, levels), axis=-1)[rounds[inside], 0]
        if later.any():
            said = model.forecast(self._future(X, model.horizon))
            found[later] = np.stack(as_columns(said, levels), axis=-1)[steps[later] - 1]
        return found

    def _future(self, X: pd.DataFrame | None, horizon: int) -> Floats | None:
        """Return the columns of the next steps; nan where they are not given."""
        if not self._columns:
            return None
        if X is None:
            return np.full((horizon, len(self._columns)), np.nan)
        index = ForecastingHorizon(np.arange(1, horizon + 1)).to_absolute_index(self.cutoff)
        return np.asarray(X.reindex(index).to_numpy(dtype=np.float64))

    def _predict(self, fh: ForecastingHorizon, X: pd.DataFrame | None) -> pd.Series:
        return pd.Series(self._forecasts(fh, X, ())[:, 0], index=fh.to_absolute_index(self.cutoff), name=self._name)

    def _predict_interval(
        self, fh: ForecastingHorizon, X: pd.DataFrame | None, coverage: Sequence[float]
    ) -> pd.DataFrame:
        chosen = [min(max(float(share), LOWEST_LEVEL), HIGHEST_LEVEL) for share in coverage]
        levels = sorted({level for share, level in zip(coverage, chosen, strict=True) if share > 0})
        found = self._forecasts(fh, X, levels)
        at = [1 + 2 * levels.index(level) if share > 0 else 0 for share, level in zip(coverage, chosen, strict=True)]
        sides = [column for k in at for column in (k, k + 1 if k else 0)]  # coverage 0: the forecast itself
        columns = pd.MultiIndex.from_product([[self._get_varnames()[0]], list(coverage), ["lower", "upper"]])
        return pd.DataFrame(found[:, sides], index=fh.to_absolute_index(self.cutoff), columns=columns)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return arguments that sktime's checks try."""
        return [{}, {"lags": 2, "season": 4, "horizon": 3, "levels": (0.5, 0.9), "loss": "absolute"}]


def _unit(index: pd.Index) -> Any:
    """Return the time between two entries of a regular index of timestamps, also of one with gaps; None: unknown."""
    if not isinstance(index, pd.DatetimeIndex):
        return None
    found = index.freq or (pd.infer_freq(index) if len(index) > 2 else None)
    if found is None and len(index) > 1:
        apart = np.diff(index.asi8)
        least = apart.min()
        found = None if least <= 0 or (apart % least).any() else pd.Timedelta(least, unit=index.unit)
    return None if found is None else pd.tseries.frequencies.to_offset(found)


def _steps(index: pd.Index, last: Any, unit: Any) -> Ints:
    """Return how many steps after `last` the entries of an index are; without a unit they are one after the other."""
    if isinstance(index, pd.PeriodIndex):
        passed: Ints = (index.asi8 - last.ordinal) // index.freq.n
        return passed
    if isinstance(index, pd.DatetimeIndex):
        after = index > last
        if unit is not None:
            steps = pd.date_range(last, max(last, index[-1]), freq=unit).get_indexer(index)
            if (steps[after] > 0).all():
                return np.where(after, steps, 0)
        return np.cumsum(after)
    return np.asarray(index - last, dtype=np.int64)
