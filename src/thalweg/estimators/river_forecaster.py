"""The forecaster for river."""

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import ClassVar

import numpy as np
from river.time_series.base import Forecaster as RiverForecaster

from thalweg._core.memory import Memory
from thalweg._core.saving import read
from thalweg._core.types import Floats
from thalweg._core.validate import check_count, check_items, real_number, short_repr, wrong
from thalweg.errors import InputError
from thalweg.estimators._fitted import FactReaders, Facts, Fitted, SavedModels, read_names
from thalweg.estimators.forecaster import Forecaster, is_missing
from thalweg.parts.forecast.model import ASKED
from thalweg.parts.forecast.past import ABSENT

__all__ = ["TrackingForecaster"]

Features = Mapping[Hashable, object]


class _Series:
    """A model as `thalweg.estimators._fitted` takes it."""

    def __init__(self, forecaster: Forecaster) -> None:
        self.forecaster = forecaster

    @property
    def memory(self) -> Memory:
        """That of the forecaster."""
        return self.forecaster._memory

    @property
    def rounds(self) -> int:
        """Rows learned so far."""
        return self.forecaster.rounds


def _asked(model: Forecaster, row: Floats) -> bool:
    """Whether the present round was forecast with these columns."""
    s = model._memory.state
    return bool(s.clock[ASKED] and np.array_equal(s.columns.row, np.where(np.isnan(row), ABSENT, row)))


class TrackingForecaster(Fitted, RiverForecaster):
    """A series forecast up to `horizon` steps ahead, for river: seasons, missing values, and nothing to tune.

    It is `thalweg.estimators.Forecaster`. The features of the first row that are numbers are its columns: one that is
    missing later counts as not known, and others that come later are left out.

    Parameters
    ----------
    horizon
        Steps ahead that may be asked for.
    season
        The number of rounds after which the series repeats itself, several of them, None, or "auto".
    lags
        Past values that one of the candidates looks at; "auto" is the last 4.
    loss
        "squared" or "absolute": the errors by which candidates are compared.

    Examples
    --------
    >>> from river import datasets
    >>> from thalweg.estimators import TrackingForecaster
    >>> model = TrackingForecaster(season=12)
    >>> for x, y in datasets.AirlinePassengers():
    ...     model.learn_one(y)
    >>> [round(said) for said in model.forecast(3)]
    [45..., 42..., 46...]
    """

    _facts: ClassVar[FactReaders] = {"_names": read_names}
    _prefix = "forecaster."
    _models: tuple[_Series, ...]
    _names: Mapping[Hashable, object]  # of the columns, in their order

    def __init__(
        self,
        horizon: int = 12,
        season: str | int | Sequence[int] | None = "auto",
        lags: str | int | Sequence[int] = "auto",
        loss: str = "squared",
    ) -> None:
        self.horizon = horizon
        self.season = season
        self.lags = lags
        self.loss = loss

    def _build(self, names: Collection[Hashable]) -> Forecaster:
        words = [str(name) for name in names]
        if len(set(words)) < len(words):  # 1 and "1"
            words = [f"{k}: {word}" for k, word in enumerate(words)]
        return Forecaster(words, lags=self.lags, season=self.season, horizon=self.horizon, loss=self.loss)

    def _restored(self, facts: Facts, saved: SavedModels) -> tuple[_Series, ...]:
        model = self._build(facts["_names"])
        model._memory.adopt(*read(self, model._memory.layout, saved(0)))
        return (_Series(model),)

    def learn_one(self, y: float | None, x: Features | None = None) -> None:
        """See a value, and the features of its round; None or nan: it is missing, and the time passes."""
        x = self._features("learn_one", "x", x)
        if self._is_fitted():
            self._learn(self._models[0].forecaster, self._names, y, x)
            return
        names = dict.fromkeys(name for name, value in x.items() if not math.isnan(real_number(value)))
        model = self._build(names)
        self._learn(model, names, y, x)
        self._learned(self, _models=(_Series(model),), _names=names)

    def _learn(self, model: Forecaster, names: Collection[Hashable], y: float | None, x: Features) -> None:
        if not names:
            model.update(y)
            return
        row = self._row(names, x)
        with model._memory.all_or_nothing():
            if not _asked(model, row):
                model.predict(row)
            model.update(y)

    def forecast(self, horizon: int, xs: list[dict[Hashable, object]] | None = None) -> list[float]:
        """Return forecasts of the next `horizon` values, 0 before the first; `xs` has the features of their rounds."""
        steps = check_count(f"{type(self).__name__}.forecast", "horizon", horizon)
        rows_ahead = []
        if xs is not None:
            rows_ahead = check_items(f"{type(self).__name__}.forecast", "xs", xs, "a list of features by name")
            if len(rows_ahead) != steps:
                raise InputError(
                    f"{type(self).__name__}.forecast needs as many rows in 'xs' as steps. Got {len(rows_ahead)}."
                )
            rows_ahead = [self._features("forecast", "xs", x) for x in rows_ahead]
        if steps > self.horizon:
            raise InputError(
                f"{type(self).__name__} was built to forecast up to {self.horizon} steps. Got horizon={steps}. "
                f"Build it with horizon={steps}."
            )
        if not self._is_fitted():
            return [0.0] * steps
        model, rows = self._models[0].forecaster, None
        if self._names:
            rows = np.full((model.horizon, len(self._names)), np.nan)
            for h, x in enumerate(rows_ahead):
                rows[h] = self._row(self._names, x)
        said = model.forecast(rows).mean[:steps]
        found: list[float] = np.nan_to_num(said).tolist()
        return found

    def _features(self, call: str, argument: str, x: object) -> Features:
        if x is None:
            return {}
        if not isinstance(x, Mapping):
            raise wrong(f"{type(self).__name__}.{call}", argument, "features by name", x)
        return x

    def _row(self, names: Collection[Hashable], x: Features) -> Floats:
        """Return the features that are columns; nan where one is not known."""
        found = [x.get(name) for name in names]
        row = np.array([np.nan if is_missing(value) else real_number(value) for value in found])
        bad = [value for value, number in zip(found, row, strict=True) if np.isnan(number) and not is_missing(value)]
        if bad:
            raise InputError(f"{type(self).__name__}: features must be numbers. Got {short_repr(bad[0])}.")
        return row
