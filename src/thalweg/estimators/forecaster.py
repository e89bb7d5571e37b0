"""A series forecast one step ahead, next to what one would have got for free.

With lags l_1 < ... < l_k of the series y, and columns c_t that are known before y_t:

    b_t = y_{t - l_1}                                     the newest lag; without lags, the mean so far             (1)
    m_t  a linear model (`thalweg.estimators._linear`) of what y_t is above b_t, from b_t itself, the steps
         y_{t - l_i} - y_{t - l_(i+1)} between lags, and c_t                                                         (2)
    forecast_t = w_0 b_t + w_1 (b_t + m_t)                weights by what each gained: `thalweg.estimators._jury`    (3)

The simple forecast b_t is believed first and as long as the model is no better, so that a forecast is worth little less
than repeating the last value even in the first rounds. Lags that lie before the first value are absent. Nothing looks
ahead, and nothing is to be tuned: everything is in units of what was seen so far.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thalweg._kernels.handle import Handle, parts
from thalweg._kernels.jit import inner, kernel
from thalweg._kernels.parts import Floats, Ints
from thalweg._stateful import inside
from thalweg._types import Array
from thalweg._validate import (
    check_array,
    check_choice,
    check_count,
    check_flag,
    check_items,
    check_text,
    real_number,
    told,
    wrong,
)
from thalweg.errors import InputError
from thalweg.estimators._engine import Engine
from thalweg.estimators._jury import Jury, JuryRoom, begin_jury, judge, look_jury, new_jury
from thalweg.estimators._linear import LinearEngine
from thalweg.estimators._linear.rows import Linear, LinearRoom, learn_row, predict_row

__all__ = ["Forecaster", "read_lags"]

LOSSES = {"squared": "squared_error", "absolute": "absolute_error"}
FREE = 0.8  # what the simple forecast is believed at first
LARGEST = 1e100  # of a number
MOST = 100_000  # of a lag
ROUNDS, ASKED = 0, 1  # of `clock`: rounds, and whether the columns of the present one are known
# of `told`: the forecast, (1), b_t + m_t, m_t (both nan without a model), and the number of features
PLAYED, SIMPLE, SAID, ABOVE, COUNT = range(5)


class Forecast(NamedTuple):
    """All that changes."""

    model: Linear
    jury: Jury
    past: Floats  # (longest lag,) the last values, that of round t at t modulo its length
    mean: Floats  # (1,) of all values
    row: Floats  # columns of the present round
    clock: Ints  # (2,)


class ForecastRoom(NamedTuple):
    """What does not change, and scratch space."""

    model: LinearRoom
    jury: JuryRoom
    lags: Ints
    level: int  # 1 where the newest lag itself is a feature, else 0
    squared: bool
    at: Ints  # positions of the features that are there
    x: Floats  # their values
    told: Floats  # (5,)
    q: Floats  # (2,) gains


@inner
def _design(s: Forecast, c: ForecastRoom) -> int:
    """x, at <- the features of (2) that are there; returns how many, -1 while there is no newest lag."""
    t, K, n = s.clock[ROUNDS], c.lags.shape[0], 0
    if K > 0 and t < c.lags[0]:
        return -1
    for k in range(K):
        if c.lags[k] <= t:
            value = s.past[(t - c.lags[k]) % s.past.shape[0]]
            if k == 0 and c.level == 1:
                c.at[n], c.x[n] = 1, value
                n += 1
            if k + 1 < K and c.lags[k + 1] <= t:
                c.at[n], c.x[n] = c.level + k + 1, value - s.past[(t - c.lags[k + 1]) % s.past.shape[0]]
                n += 1
    for j in range(s.row.shape[0]):
        c.at[n], c.x[n] = c.level + max(K - 1, 0) + j + 1, s.row[j]
        n += 1
    return n


@inner
def _forecast(s: Forecast, c: ForecastRoom) -> None:
    """told <- (1), (2) and (3)."""
    t, lagged = s.clock[ROUNDS], c.lags.shape[0] > 0
    c.told[:] = np.nan
    n = _design(s, c)
    c.told[COUNT] = n
    if t == 0:
        return
    base = s.past[(t - c.lags[0]) % s.past.shape[0]] if lagged and n >= 0 else 0.0
    simple = s.mean[0] if not lagged else (base if n >= 0 else s.past[(t - 1) % s.past.shape[0]])
    c.told[PLAYED] = c.told[SIMPLE] = simple
    if n >= 0 and s.model.clock[0] > 0:
        c.told[ABOVE] = predict_row(s.model, c.model, c.at[:n], c.x[:n])
        c.told[SAID] = base + c.told[ABOVE]
        c.told[PLAYED] = s.jury.weights[0] * simple + s.jury.weights[1] * c.told[SAID]


@inner
def _learn(s: Forecast, c: ForecastRoom, y: float) -> None:
    """See y, after `_forecast`."""
    played, known = c.told[PLAYED], not np.isnan(c.told[SAID])
    if known:
        for i in range(2):
            said = c.told[SIMPLE + i]
            square = (played - said) * ((played - y) + (said - y))
            c.q[i] = square if c.squared else abs(played - y) - abs(said - y)
        judge(s.jury, c.jury, c.q)
    n, t = int(c.told[COUNT]), s.clock[ROUNDS]
    if n >= 0:
        base = s.past[(t - c.lags[0]) % s.past.shape[0]] if c.lags.shape[0] > 0 else 0.0
        said = c.told[ABOVE] if known else predict_row(s.model, c.model, c.at[:n], c.x[:n])
        learn_row(s.model, c.model, c.at[:n], c.x[:n], y - base, 1.0, said)
    s.past[t % s.past.shape[0]] = y
    s.mean[0] += (y - s.mean[0]) / (t + 1)
    s.clock[ROUNDS] += 1
    s.clock[ASKED] = 0


@kernel
def _ask(handle: Handle) -> float:
    """The forecast of the next value, whose columns are there."""
    s, c = parts(handle)
    s.clock[ASKED] = 1
    _forecast(s, c)
    return float(c.told[PLAYED])


@kernel
def _see(handle: Handle, y: float, told: bool) -> None:
    """One value; `told` says whether the room has its forecast from `_ask`."""
    s, c = parts(handle)
    if not told:
        _forecast(s, c)
    _learn(s, c, y)


@kernel
def _play(handle: Handle, rows: Floats, values: Floats, out: Floats, weights: Floats) -> None:
    """out[t] <- the forecast of values[t], which is then seen; weights[t] <- w of (3) in it."""
    s, c = parts(handle)
    for t in range(values.shape[0]):
        for j in range(rows.shape[1]):
            s.row[j] = rows[t, j]
        _forecast(s, c)
        out[t] = c.told[PLAYED]
        for i in range(2):
            weights[t, i] = s.jury.weights[i]
        _learn(s, c, values[t])


class _Calls(NamedTuple):
    """A round by hand."""

    ask: Any
    see: Any
    clock: memoryview


class Forecaster(Engine):
    """Forecast a series from its own past and from columns that are known before, one row at a time.

    Parameters
    ----------
    columns : sequence of str
        Names of columns that are known before the target: temperature, hour, price of yesterday.
    lags : int or sequence of int
        How far back the series itself is looked at: 8 stands for the last 8 values, (1, 2, 24, 168) for these. 0 for
        none.
    loss : {"squared", "absolute"}
        What is kept small.
    difference : bool
        Whether only steps count, and not the level of the series: for series that wander without limit.

    Examples
    --------
    >>> import numpy as np
    >>> from thalweg.estimators import Forecaster
    >>> rng = np.random.default_rng(0)
    >>> series = 100 + np.sin(np.arange(500) / 4) + 0.1 * rng.standard_normal(500)
    >>> forecaster = Forecaster(lags=8)
    >>> errors = []
    >>> for y in series:
    ...     errors.append(y - forecaster.predict())
    ...     forecaster.update(y)
    >>> free = np.abs(np.diff(series)).mean()  # of repeating the last value
    >>> bool(np.nanmean(np.abs(errors)) < 0.7 * free)
    True
    """

    _noun = "forecaster"
    _told = False  # whether the room has the forecast of the present round

    def __init__(
        self,
        columns: Sequence[str] = (),
        *,
        lags: int | Sequence[int] = 1,
        loss: str = "squared",
        difference: bool = False,
    ) -> None:
        name = type(self).__name__
        names = check_items(name, "columns", columns, "a list of names")
        self.columns = tuple(check_text(name, "columns", one) for one in names)
        if len(set(self.columns)) < len(self.columns):
            raise wrong(name, "columns", "a list of different names", columns)
        self.lags = read_lags(name, lags)
        self.loss = check_choice(name, "loss", loss, tuple(LOSSES))
        self.difference = check_flag(name, "difference", difference)
        if not self.columns and not self.lags:
            raise InputError(f"{name} needs lags of the series, or columns to forecast it from. Got neither.")
        K = len(self.lags)
        level = int(K > 0 and not self.difference)
        self._model = LinearEngine(max(1, level + max(0, K - 1) + len(self.columns)), LOSSES[self.loss])
        model, model_room = self._model._parts
        jury, jury_room = new_jury(np.array([FREE, 1.0 - FREE]))
        past, row = np.zeros(max(self.lags, default=1)), np.zeros(len(self.columns))
        room = ForecastRoom(
            model=model_room,
            jury=jury_room,
            lags=np.array(self.lags, dtype=np.int64),
            level=level,
            squared=self.loss == "squared",
            at=np.zeros(K + len(self.columns), dtype=np.int64),
            x=np.zeros(K + len(self.columns)),
            told=np.zeros(5),
            q=np.zeros(2),
        )
        self._adopt(Forecast(model, jury, past, np.zeros(1), row, np.zeros(2, dtype=np.int64)), room)
        self._restart()

    def _restart(self) -> None:
        self._told = False
        for array in self._arrays.values():
            array[...] = 0
        begin_jury(self._parts[0].jury, self._parts[1].jury)
        self._model._restart()

    def _write(self, read: dict[str, NDArray[Any]]) -> None:
        self._told = False
        super()._write(read)

    def _prepare(self) -> _Calls:
        return _Calls(_ask.ready(self._handle), _see.ready(self._handle, 0.0, False), self._parts[0].clock.data)

    # ------------------------------------------------------------------ a round

    def predict(self, row: Mapping[str, Any] | ArrayLike | None = None) -> float:
        """The forecast of the next value; nan before the first one.

        `row` has the columns of this round, by name or in their order. Asked again, the last call counts.
        """
        calls: _Calls = self._calls
        if row is not None or self.columns:
            values = self._read_row(row)
            self._told = False
            self._parts[0].row[:] = values
        said: float = calls.ask.run()
        if said != said:
            calls.ask.entry.read(said)
        self._told = True
        return said

    def update(self, value: float) -> None:
        """See the value that was forecast. Where there are columns, `predict` has to be called before."""
        y, calls = real_number(value), self._calls
        if not abs(y) <= LARGEST:
            raise InputError(
                f"{self._who()}: a value must be a number of at most {LARGEST:g} in size. Got {told(value)}."
            )
        if self.columns and not calls.clock[ASKED]:
            raise InputError(f"{self._who()}: call predict(row) with the columns of this round first.")
        see = calls.see
        see.floats[1], see.integers[2] = y, self._told
        self._told = False
        if status := see.run():
            see.entry.read(status)

    def run(self, values: ArrayLike, rows: ArrayLike | None = None) -> tuple[Array, Array]:
        """Forecasts of all these values, each made before it was seen; the same as `predict` and `update` in turn.

        `rows` has the columns, one row for each value. Returns the forecasts (n,), and in (n, 2) the weights that the
        simple forecast and the model had in them.
        """
        name = f"{type(self).__name__}.run"
        y = check_array(name, "values", values, ndim=1, largest=LARGEST)
        given = np.zeros((y.size, 0)) if rows is None else rows
        X = check_array(name, "rows", given, shape=(y.size, len(self.columns)), largest=LARGEST)
        out, weights = np.empty(y.size), np.empty((y.size, 2))
        self._told = False
        with self._all_or_nothing():
            _play(self._handle, np.ascontiguousarray(X), np.ascontiguousarray(y), out, weights)
        return out, weights

    # ------------------------------------------------------------------ what it tells

    @property
    def weights(self) -> dict[str, float]:
        """How much the simple forecast and the model count."""
        simple, model = self._parts[0].jury.weights.tolist()
        return {"last value" if self.lags else "mean so far": simple, "model": model}

    # ------------------------------------------------------------------ stop and resume

    def __getstate__(self) -> dict[str, Any]:
        return {"given": self._given, "state": self.state()}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        vars(self).update(vars(type(self)(**kept["given"])))
        self.restore(kept["state"])

    def _look(self, read: dict[str, NDArray[Any]]) -> Iterator[tuple[str, bool]]:
        yield from self._model._look(inside(read, "model."))
        yield from look_jury(read)
        t, past = read["clock"][ROUNDS], read["past"]
        yield "counters", read["clock"][ASKED] in (0, 1) and read["jury.heard"][0] <= t >= read["model.clock"][0]
        yield "past", bool((np.abs(past) <= LARGEST).all() and not past[min(t, past.size) :].any())
        yield "columns", bool((np.abs(read["row"]) <= LARGEST).all()) and abs(read["mean"][0]) <= LARGEST

    # ------------------------------------------------------------------ checks

    def _read_row(self, row: Any) -> Array:
        if row is None and not self.columns:
            return np.zeros(0)
        if isinstance(row, Mapping):
            missing = [name for name in self.columns if name not in row]
            if missing:
                raise InputError(f"{self._who()}: row has no column {missing[0]!r}. Give {', '.join(self.columns)}.")
            items = [row[name] for name in self.columns]
        else:
            items = [] if row is None else check_items(f"{type(self).__name__}.predict", "row", row, "a row of numbers")
        if len(items) != len(self.columns):
            raise InputError(f"{self._who()}: row must have the columns {list(self.columns)}. Got {told(row)}.")
        values = np.array([real_number(item) for item in items])
        bad = np.flatnonzero(~(np.abs(values) <= LARGEST))
        if bad.size:
            raise InputError(
                f"{self._who()}: the column {self.columns[bad[0]]!r} must be a number of at most {LARGEST:g} in size. "
                f"Got {told(items[bad[0]])}."
            )
        return values


def read_lags(owner: str, lags: Any) -> tuple[int, ...]:
    """Lags in ascending order; a number n stands for 1..n."""
    if isinstance(lags, int | np.integer) and not isinstance(lags, bool):
        return tuple(range(1, check_count(owner, "lags", lags, least=0, most=MOST) + 1))
    items = check_items(owner, "lags", lags, "a number, or a list of whole numbers")
    found = sorted(check_count(owner, "lags", item, most=MOST) for item in items)
    if len(set(found)) < len(found):
        raise wrong(owner, "lags", "a list of different whole numbers", lags)
    return tuple(found)
