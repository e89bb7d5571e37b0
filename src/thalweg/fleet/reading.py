"""Rows of batches: long frames of any kind, or arrays, read and checked before anything is played."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thalweg._core.extras import need
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import LARGEST_ENTRY, real_array, short_repr
from thalweg.errors import InputError
from thalweg.fleet.keys import INTEGERS as WHOLE
from thalweg.fleet.keys import Keys, read_keys

STEP = "step"  # the column that numbers forecasts, as in `Forecast.to_frame`
SHOWN = 3  # bad rows that a message names
INTEGERS, MOMENTS = "integers", "datetimes"  # kinds of times
FARTHEST = 9_214_646_400_000_000  # microseconds from 1970 that fit into 64 bits as nanoseconds: to the end of 2261


class Bad(NamedTuple):
    """A row that cannot be played."""

    row: int
    key: Any
    why: str


class FleetError(InputError):
    """Rows that cannot be played. `rows` lists them: number, key, and reason."""

    def __init__(self, message: str, rows: Sequence[Bad] = ()) -> None:
        super().__init__(message)
        self.rows = list(rows)

    @classmethod
    def of(cls, owner: str, rows: Sequence[Bad], end: str) -> FleetError:
        """Return the error about these rows."""
        shown = "; ".join(f"row {row} (key {key!r}): {why}" for row, key, why in rows[:SHOWN])
        more = f"; and {len(rows) - SHOWN} more, see `rows` of this error" if len(rows) > SHOWN else ""
        return cls(f"{owner}: {shown}{more}. {end}", rows)


class LateRowsError(FleetError):
    """Rows whose times are not after those of the rows before them of the same keys."""


class BatchRows(NamedTuple):
    """A batch as the caller gave it."""

    keys: Keys
    bad: dict[int, str]  # reasons by row
    times: Ints | None
    target: Floats
    columns: Floats  # (n, C)
    frame: Any = None  # narwhals' view
    clock: str = ""  # INTEGERS or MOMENTS, of the times

    def like(self, kept: Sequence[str], names: Sequence[str], values: Floats, steps: Ints | None = None) -> Any:
        """Return new columns (n, len(names)) for the same rows: a frame of the same kind, or an array.

        A frame also gets the numbers `steps`, if given.
        """
        if self.frame is None:
            return values[:, 0].copy() if len(names) == 1 else values
        return _with(self.frame, kept, names, values, steps)

    def like_steps(self, kept: Sequence[str], names: Sequence[str], values: Floats, steps: int) -> Any:
        """Return new columns (n, steps, len(names)): a frame with `steps` rows for each row, or an array."""
        n = self.keys.size
        if self.frame is None:
            whole = values.reshape(n, steps, len(names))
            return whole[:, :, 0].copy() if len(names) == 1 else whole
        rows = self.frame.select(*kept)[np.repeat(np.arange(n), steps).tolist()]
        return _with(rows, kept, names, values.reshape(n * steps, -1), np.tile(np.arange(1, steps + 1), n))

    def by_key(self, owner: str, count: int) -> Ints:
        """Return the rows key by key, each in the order of its times; refuse keys that have not `count` rows."""
        n = self.keys.size
        keys = self.keys.numbers if self.keys.kind == WHOLE else np.array([self.keys.key(r) for r in range(n)])
        _, group, sizes = np.unique(keys, return_inverse=True, return_counts=True)
        wrong = [row for row in np.flatnonzero(sizes[group] != count).tolist() if row not in self.bad]
        if wrong:
            why = f"rows of its key, and a forecast takes {count}"
            found = [Bad(row, self.keys.key(row), f"there are {sizes[group[row]]} {why}") for row in wrong]
            raise FleetError.of(owner, found, "Nothing was forecast.")
        order: Ints = np.lexsort((np.arange(n) if self.times is None else self.times, group))
        return order


def _with(rows: Any, kept: Sequence[str], names: Sequence[str], values: Floats, steps: Ints | None) -> Any:
    """Return these columns of a frame beside new ones."""
    nw = need("narwhals", "frames", "A data frame")
    native = nw.get_native_namespace(rows)
    made = [nw.new_series(name, values[:, i].copy(), backend=native) for i, name in enumerate(names)]
    if steps is not None:
        made.insert(0, nw.new_series(STEP, steps, backend=native))
    chosen = (*kept, *(() if steps is None else (STEP,)), *names)
    return rows.with_columns(*made).select(*chosen).to_native()


def is_frame(data: object) -> bool:
    """Whether this is a data frame: something with columns by name."""
    kind = type(data)
    return kind is not np.ndarray and (hasattr(kind, "columns") or hasattr(kind, "column_names"))


def read_frame(
    owner: str, frame: object, id_col: str, time_col: str | None, target: str | None, columns: Sequence[str]
) -> BatchRows:
    """Return the rows of a long frame. Cells that are missing are nan."""
    nw = need("narwhals", "frames", "A data frame")
    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise InputError(
            f"{owner}: narwhals cannot read {short_repr(frame)}. Give a data frame that is in memory."
        ) from None
    except nw.exceptions.DuplicateError:
        raise InputError(f"{owner}: the frame has two columns of one name. Give each a name of its own.") from None
    wanted = [id_col, *([time_col] if time_col else []), *([target] if target else []), *columns]
    for name in wanted:
        if name not in table.columns:
            there = ", ".join(map(str, table.columns[:8]))
            raise InputError(f"{owner}: the frame has no column {name!r}. It has {there}.")
    keys, bad = read_keys(owner, f"column {id_col!r}", _key_values(nw, table.get_column(id_col)))
    n = len(table)
    times, clock = None, ""
    if time_col:
        times, missing, clock = _frame_times(owner, nw, time_col, table.get_column(time_col))
        for row, why in missing.items():
            bad.setdefault(row, f"column {time_col!r} is {why}")
    y = _numbers(owner, nw, target, table.get_column(target)) if target else np.zeros(n)
    found = [_numbers(owner, nw, name, table.get_column(name)) for name in columns]
    X = np.stack(found, axis=1) if found else np.zeros((n, 0))
    return BatchRows(keys, bad, times, y, X, table, clock)


def _key_values(nw: Any, series: Any) -> Any:
    if _is_word(nw, series.dtype) and not series.is_null().any():
        return series.to_numpy()
    if series.dtype in (nw.Categorical, nw.Enum):
        series = series.cast(nw.String)
    return series.to_list()


def _is_word(nw: Any, dtype: Any) -> bool:
    """Whether these are integers of at most 64 bits."""
    return bool(dtype.is_integer()) and dtype not in (nw.Int128, nw.UInt128)


def _numbers(owner: str, nw: Any, name: str, series: Any) -> Floats:
    if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
        if len(series) and not series.is_null().all():
            raise InputError(f"{owner}: column {name!r} must hold numbers. Its type is {series.dtype}. Convert it.")
        return np.full(len(series), np.nan)
    values: Floats = np.array(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    if series.is_null().any():
        values[series.is_null().to_numpy()] = np.nan
    return values


def _frame_times(owner: str, nw: Any, name: str, series: Any) -> tuple[Ints, dict[int, str], str]:
    null = np.array(series.is_null().to_numpy(), dtype=np.bool_)
    times, clock, bad = np.zeros(len(series), dtype=np.int64), INTEGERS, dict.fromkeys(np.flatnonzero(null), "missing")
    if series.dtype == nw.Date:
        series = series.cast(nw.Datetime("us"))
    if series.dtype.is_temporal() and series.dtype != nw.Duration and series.dtype != nw.Time:
        clock, rows = MOMENTS, np.flatnonzero(~null)
        micro = np.array(series.filter(~series.is_null()).dt.timestamp("us").to_numpy(), dtype=np.int64)
        far = np.abs(micro) > FARTHEST
        bad |= dict.fromkeys(rows[far], "not between 1678 and 2261")
        null[rows[far]] = True
    elif not _is_word(nw, series.dtype):
        raise InputError(
            f"{owner}: column {name!r} must hold dates, datetimes or integers. Its type is {series.dtype}. Convert it."
        )
    kept = series[np.flatnonzero(~null).tolist()] if null.any() else series
    times[~null] = (kept.dt.timestamp("ns") if clock == MOMENTS else kept).to_numpy()
    return times, {int(row): why for row, why in bad.items()}, clock


def read_times(owner: str, given: object, count: int) -> tuple[Ints, str]:
    """Return times of rows, integers or NumPy's datetimes, and which of the two they are."""
    try:
        array, clock = np.asarray(given), INTEGERS
    except Exception:  # of any object's
        raise InputError(f"{owner}: time must be {count} integers or datetimes. Got {short_repr(given)}.") from None
    if array.dtype.kind == "M":
        if np.isnat(array).any():
            raise InputError(f"{owner}: time has NaT in row {int(np.argmax(np.isnat(array)))}.")
        array, clock = array.astype("datetime64[ns]").view(np.int64), MOMENTS
    if array.dtype.kind not in "iu" or array.shape != (count,):
        raise InputError(f"{owner}: time must be {count} integers or datetimes. Got {short_repr(given)}.")
    return array.astype(np.int64), clock


def read_moment(owner: str, given: Any) -> tuple[int, str]:
    """Return one time, an integer or a datetime, and which of the two it is."""
    if isinstance(given, datetime.datetime) and given.tzinfo is not None:
        given = given.astimezone(datetime.UTC).replace(tzinfo=None)
    if isinstance(given, str | datetime.date):
        try:
            given = np.datetime64(given, "ns")
        except ValueError:
            raise InputError(f"{owner}: {given!r} is no time.") from None
    try:
        one = np.reshape(given, 1)
    except Exception:  # several, or of any object's
        raise InputError(f"{owner}: a time is an integer or a datetime. Got {short_repr(given)}.") from None
    found, clock = read_times(owner, one, 1)
    return int(found[0]), clock


def values_of(owner: str, name: str, given: object, shape: tuple[int, ...], *, copy: bool = True) -> Floats:
    """Return numbers of this shape as an array, by default one of one's own."""
    array = real_array(given)
    if array is None:
        raise InputError(f"{owner}: {name} must be real numbers. Got {short_repr(given)}.")
    if array.shape != shape:
        raise InputError(f"{owner}: {name} must have shape {shape}. Got {array.shape}.")
    return np.array(array, dtype=np.float64, order="C", copy=True if copy else None)


def check_numbers(bad: dict[int, str], name: str, values: NDArray[Any], *, missing: bool) -> None:
    """Note the rows with a number that is too large; or not there, unless that is allowed."""
    fine = np.abs(values) <= LARGEST_ENTRY
    if missing:
        fine |= np.isnan(values)
    if fine.all():
        return
    for row in np.flatnonzero(~fine).tolist():
        value = values[row]
        bad.setdefault(row, f"{name} is {'missing' if np.isnan(value) else f'{value:g}'}; numbers are at most 1e100")
