"""A series forecast one step ahead, next to what one would have got for free.

With lags l_1 < ... < l_k of the series y, and columns c_t that are known before y_t:

    b_t = y_{t - l_1}                                     the newest lag; without lags, the mean so far             (1)
    m_t  a linear model (`thalweg.parts.linear`) of what y_t is above b_t, from b_t itself, the steps
         y_{t - l_i} - y_{t - l_(i+1)} between lags, and c_t                                                         (2)
    forecast_t = w_0 b_t + w_1 (b_t + m_t)                weights by what each gained: `thalweg.parts.jury`          (3)

The simple forecast b_t is believed first and as long as the model is no better, so that a forecast is worth little less
than repeating the last value even in the first rounds. Lags that lie before the first value are absent. Nothing looks
ahead, and nothing is to be tuned: everything is in units of what was seen so far.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thalweg._core.memory import Memory
from thalweg._core.rules import counter_field, magnitude
from thalweg._core.saving import Kept
from thalweg._core.state import Floats, Ints, Past, Plan, field, part, scratch
from thalweg._kernels.handle import Handle, parts
from thalweg._kernels.jit import Call, inner, kernel
from thalweg._recorded import Recorded
from thalweg._types import Array
from thalweg._validate import (
    LARGEST_ENTRY,
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
from thalweg.parts.jury import begin_jury, judge, jury_plan
from thalweg.parts.linear.plan import LinearLayout, begin_linear
from thalweg.parts.linear.rows import learn_row, predict_row
from thalweg.parts.records import has_room, rounds_for, slots_for, slots_of

__all__ = ["Forecaster", "read_lags"]

LOSSES = {"squared": "squared_error", "absolute": "absolute_error"}
FREE = 0.8  # what the simple forecast is believed at first
MOST = 100_000  # of a lag
ROUNDS, ASKED = 0, 1  # of `clock`: rounds, and whether the columns of the present one are known
# of `told`: the forecast, (1), b_t + m_t, m_t (both nan without a model), and the number of features
PLAYED, SIMPLE, SAID, ABOVE, COUNT = range(5)
SEEN, FULL = 0, 1  # of a value


class ForecastState(NamedTuple):
    """A model, the weights of (3), and the past of the series."""

    model: Any = part()
    jury: Any = part()
    past: Floats = field("L", magnitude(LARGEST_ENTRY))  # the last values, that of round t at t modulo the longest lag
    mean: Floats = field("1", magnitude(LARGEST_ENTRY))  # of all values
    row: Floats = field("C", magnitude(LARGEST_ENTRY), called="columns")  # of the present round
    clock: Ints = counter_field(2)


class ForecastSettings(NamedTuple):
    """Constants and scratch space."""

    lags: Ints
    level: int  # 1 where the newest lag itself is a feature, else 0
    squared: bool
    model: Any = part()
    jury: Any = part()
    at: Ints = scratch("X")  # positions of the features that are there
    x: Floats = scratch("X")  # their values
    given: Floats = scratch("C")  # columns of the next round
    told: Floats = scratch("5")
    q: Floats = scratch("2")  # gains


@dataclass(frozen=True)
class ForecastLayout:
    """A forecaster with room for some rounds: `slots` of both juries grow with them."""

    columns: int
    lags: tuple[int, ...]
    loss: str
    difference: bool

    def sizes(self) -> dict[str, int]:
        """Return the sizes of a fresh state."""
        return {"slots": slots_for(0)}

    def sizes_of(self, saved: Mapping[str, NDArray[Any]]) -> dict[str, int]:
        """Return the sizes of a saved state."""
        return {"slots": slots_of(saved["jury.records.born"])}

    def plan(self, sizes: Mapping[str, int]) -> Plan:
        """Return the plan for these sizes."""
        return _plan(self, sizes["slots"])


@lru_cache(256)  # every size is planned once for all forecasters of a kind
def _plan(layout: ForecastLayout, slots: int) -> Plan:
    K = len(layout.lags)
    level = int(K > 0 and not layout.difference)
    model = LinearLayout(max(1, level + max(0, K - 1) + layout.columns), LOSSES[layout.loss])
    return Plan(
        ForecastState,
        ForecastSettings(np.array(layout.lags, dtype=np.int64), level, layout.loss == "squared"),
        {"L": max(layout.lags, default=1), "C": layout.columns, "X": K + layout.columns},
        {
            "model": model.plan({**model.sizes(), "slots": slots}),
            "jury": jury_plan(np.array([FREE, 1.0 - FREE]), slots),
        },
        holds=_holds,
        pasts=lambda s, c, past: {"model": Past.whole(int(s.model.clock[0]))},
        begin=_begin,
    )


def _begin(s: ForecastState, c: ForecastSettings) -> None:
    begin_linear(s.model, c.model)
    begin_jury(s.jury, c.jury)


def _holds(s: ForecastState, c: ForecastSettings, past: Past) -> Iterator[tuple[str, bool]]:
    t = int(s.clock[ROUNDS])
    yield "counters", bool(s.clock[ASKED] in (0, 1) and s.jury.heard[0] <= t >= s.model.clock[0])
    yield "past", not s.past[min(max(t, 0), s.past.size) :].any()


@inner
def _design(s: ForecastState, c: ForecastSettings) -> int:
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
def _forecast(s: ForecastState, c: ForecastSettings) -> None:
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
def _learn(s: ForecastState, c: ForecastSettings, y: float) -> None:
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
    """The forecast of the next value, whose columns are given."""
    s, c = parts(handle)
    s.clock[ASKED] = 1
    for j in range(s.row.shape[0]):
        s.row[j] = c.given[j]
    _forecast(s, c)
    return float(c.told[PLAYED])


@kernel
def _see(handle: Handle, y: float, told: bool) -> int:
    """One value; `told` says whether scratch space has its forecast from `_ask`. Returns FULL without room."""
    s, c = parts(handle)
    if not has_room(s.jury.records, s.clock[ROUNDS] + 1):
        return FULL
    if not told:
        _forecast(s, c)
    _learn(s, c, y)
    return SEEN


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


class Forecaster(Kept, Recorded):
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
    _asked = False  # whether scratch space has the forecast of the present round

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
        layout = ForecastLayout(len(self.columns), self.lags, self.loss, self.difference)
        self._memory = Memory(layout, moved=self._forget)

    def _forget(self, memory: Memory) -> None:
        self._asked = False
        self._calls: tuple[Call, Call] | None = None  # to ask, and to see

    def _ready(self) -> tuple[Call, Call]:
        """Return the bound calls of a round."""
        calls = self._calls = self._memory.call(_ask), self._memory.call(_see, 0.0, False)
        return calls

    def _reserve(self, rounds: int) -> None:
        """See to it that there is room for further rounds."""
        needed = self.rounds + rounds
        if needed > rounds_for(self._memory.sizes["slots"]):
            self._memory.grow({"slots": slots_for(needed)})

    # ------------------------------------------------------------------ a round

    def predict(self, row: Mapping[str, Any] | ArrayLike | None = None) -> float:
        """The forecast of the next value; nan before the first one.

        `row` has the columns of this round, by name or in their order. Asked again, the last call counts.
        """
        values = None if row is None and not self.columns else self._read_row(row)
        ask = (self._calls or self._ready())[0]
        if values is not None:
            self._memory.settings.given[:] = values
        said: float = ask.run()
        if said != said:
            ask.entry.read(said)
        self._asked = True
        return said

    def update(self, value: float) -> None:
        """See the value that was forecast. Where there are columns, `predict` has to be called before."""
        y = real_number(value)
        if not abs(y) <= LARGEST_ENTRY:
            raise InputError(
                f"{self._who()}: a value must be a number of at most {LARGEST_ENTRY:g} in size. Got {told(value)}."
            )
        if self.columns and not self._memory.state.clock[ASKED]:
            raise InputError(f"{self._who()}: call predict(row) with the columns of this round first.")
        see = (self._calls or self._ready())[1]
        see.floats[1], see.integers[2] = y, self._asked
        self._asked = False
        if status := see.run():
            see.entry.read(status)
            with self._memory.all_or_nothing():  # it was not played: there is no room for it
                self._reserve(1)
                self.update(value)

    def run(self, values: ArrayLike, rows: ArrayLike | None = None) -> tuple[Array, Array]:
        """Forecasts of all these values, each made before it was seen; the same as `predict` and `update` in turn.

        `rows` has the columns, one row for each value. Returns the forecasts (n,), and in (n, 2) the weights that the
        simple forecast and the model had in them.
        """
        name = f"{type(self).__name__}.run"
        y = check_array(name, "values", values, ndim=1, largest=LARGEST_ENTRY)
        given = np.zeros((y.size, 0)) if rows is None else rows
        X = check_array(name, "rows", given, shape=(y.size, len(self.columns)), largest=LARGEST_ENTRY)
        out, weights = np.empty(y.size), np.empty((y.size, 2))
        self._asked = False
        with self._memory.all_or_nothing():
            self._reserve(y.size)
            _play(self._memory.handle, np.ascontiguousarray(X), np.ascontiguousarray(y), out, weights)
        return out, weights

    # ------------------------------------------------------------------ what it tells

    @property
    def weights(self) -> dict[str, float]:
        """How much the simple forecast and the model count."""
        simple, model = self._memory.state.jury.weights.tolist()
        return {"last value" if self.lags else "mean so far": simple, "model": model}

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
        bad = np.flatnonzero(~(np.abs(values) <= LARGEST_ENTRY))
        if bad.size:
            raise InputError(
                f"{self._who()}: the column {self.columns[bad[0]]!r} must be a number of at most {LARGEST_ENTRY:g} in "
                f"size. Got {told(items[bad[0]])}."
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
