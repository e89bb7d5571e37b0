"""Tables in and out: arrays, or data frames of any kind through narwhals, and the same kind comes back.

A frame's columns are read one by one, so that errors name column and row. A time column is checked
for order and never taken for a number.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thalweg._core.extras import need
from thalweg._core.types import Floats
from thalweg._core.validate import real_array, short_repr, wrong
from thalweg.errors import InputError

if TYPE_CHECKING:
    import narwhals

    Frame = narwhals.DataFrame[Any]
    Series = narwhals.Series[Any]
    Backend = ModuleType

Native = Any  # a data frame of the user's library
Flags = NDArray[np.bool_]


class FrameTable(NamedTuple):
    """Numbers with names, and their source."""

    values: Floats  # (n, d); nan where a cell is empty and that is allowed
    names: tuple[str, ...] | None  # of the columns of a frame
    frame: Frame | None = None  # narwhals' view of it
    time: str | None = None

    def like(self, values: Floats, names: Sequence[str]) -> Native:
        """New columns for the same rows: a frame of the same kind, with the index or the time; an array of an array."""
        if self.frame is None:
            return values
        nw = need("narwhals", "frames", "A data frame")
        native = nw.get_native_namespace(self.frame)
        columns = values.reshape(len(values), math.prod(values.shape[1:]))
        made = [nw.new_series(name, columns[:, i].copy(), backend=native) for i, name in enumerate(names)]
        kept = [] if self.time is None or self.time in names else [self.time]
        chosen = self.frame.with_columns(*made).select(*map(nw.col, (*kept, *names)))
        return chosen.to_native()  # pandas keeps the index of the rows


def table(owner: str, name: str, data: object, *, time: str | None = None, empty: bool = False) -> FrameTable:
    """The rows of an array or a data frame, checked; `empty`: whether cells may be, which makes them nan."""
    frame, one = _view(owner, name, data)
    frame = frame if one is None else one.to_frame()
    if frame is None:
        if time is not None:
            raise InputError(f"The 'time' parameter of {owner} names a column, but {name} is no data frame.")
        return FrameTable(_array(owner, name, data, 2, empty), None)
    if time is not None:
        _check_order(owner, name, frame, time)
    names = tuple(key for key in frame.columns if key != time)
    columns = [_column(owner, f"{name}[{key!r}]", frame.get_column(key), empty) for key in names]
    values = np.stack(columns, axis=1) if columns else np.zeros((len(frame), 0))
    return FrameTable(values, names, frame, time)


def named(owner: str, name: str, data: object, names: Sequence[str]) -> Floats | None:
    """Return these columns of a data frame, nan where a cell is empty; None where `data` is none."""
    frame, _ = _view(owner, name, data)
    if frame is None:
        return None
    there = set(frame.columns)
    for key in names:
        if key not in there:
            shown = ", ".join(map(str, frame.columns[:5])) + ", ..." * (len(there) > 5)
            raise InputError(f"{owner}: {name} has no column {key!r}. Its columns are {shown}.")
    return np.stack([_column(owner, f"{name}[{key!r}]", frame.get_column(key), True) for key in names], axis=1)


def column(owner: str, name: str, data: object) -> Floats:
    """One number a row, of an array, a series or a frame with one column."""
    return series(owner, name, data).values[:, 0]


def series(owner: str, name: str, data: object, *, time: str | None = None) -> FrameTable:
    """As `column`, with where it came from: a table of one column, beside the time."""
    if time is not None:
        found = table(owner, name, data, time=time)
        if found.values.shape[1] != 1:
            raise InputError(f"{owner}: {name} must have one column beside {time!r}. Got {found.values.shape[1]}.")
        return found
    frame, one = _view(owner, name, data)
    if one is not None:
        frame = one.alias(name).to_frame()
    elif frame is None:
        return FrameTable(_array(owner, name, data, 1, False)[:, None], None)
    elif len(frame.columns) != 1:
        raise InputError(f"{owner}: {name} must have one column. Got {len(frame.columns)}: {frame.columns[:5]}.")
    return FrameTable(_column(owner, name, frame.get_column(frame.columns[0]), False)[:, None], None, frame)


def _view(owner: str, name: str, data: Native) -> tuple[Frame | None, Series | None]:
    """narwhals' view of a data frame, or of a series; neither of anything else. Imported only where it may help."""
    root, kind = type(data).__module__.partition(".")[0], type(data)
    if root in ("builtins", "numpy", "array", "collections"):
        return None, None
    if not any(hasattr(kind, one) for one in ("columns", "dtype", "column_names")):  # a lazy frame would compute them
        return None, None
    nw = need("narwhals", "frames", f"A table of {root}")
    try:
        found = nw.from_native(data, eager_only=True, allow_series=True)
    except nw.exceptions.DuplicateError:
        twice = [key for key, count in Counter(data.columns).items() if count > 1]
        raise InputError(
            f"{owner}: {name} has two columns called {short_repr(twice[0])}. Give each a name of its own."
        ) from None
    except TypeError:
        return None, None
    return (None, found) if isinstance(found, nw.Series) else (found, None)


def first(flags: Flags) -> int | None:
    """Return the place of the first that is true; None where none is."""
    return int(np.argmax(flags)) if flags.any() else None


def _array(owner: str, name: str, data: object, ndim: int, empty: bool) -> Floats:
    array = real_array(data)
    if array is None:
        raise InputError(f"{owner}: {name} must be an array of real numbers or a data frame. Got {short_repr(data)}.")
    if array.ndim != ndim:
        what = "rows of numbers, an array of two axes" if ndim == 2 else "one number a row, an array of one axis"
        raise InputError(f"{owner}: {name} must be {what}. Got shape {array.shape}.")
    bad = np.isinf(array) if empty else ~np.isfinite(array)
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        where = f"row {place[0]}, column {place[1]}" if ndim == 2 else f"row {place[0]}"
        raise InputError(f"{owner}: {name} has {array[place]} in {where}, counted from 0. Remove it or fill it in.")
    return np.ascontiguousarray(array)


def _column(owner: str, name: str, series: Series, empty: bool) -> Floats:
    if not is_of_numbers(series):
        raise InputError(f"{owner}: {name} must hold numbers. Its type is {series.dtype}. Leave it out or convert it.")
    values = cells(series)
    if (row := first(np.isinf(values) if empty else ~np.isfinite(values))) is not None:
        what = "an empty cell" if np.isnan(values[row]) else str(values[row])
        raise InputError(f"{owner}: {name} has {what} in row {row}, counted from 0. Remove the row or fill it in.")
    return values


def is_of_numbers(series: Series) -> bool:
    """Whether a column holds numbers or truth values."""
    return series.dtype.is_numeric() or series.dtype == need("narwhals", "frames", "A data frame").Boolean


def cells(series: Series) -> Floats:
    """Return the numbers of a column; nan where a cell is empty."""
    nw = need("narwhals", "frames", "A data frame")
    values: Floats = np.array(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    values[series.is_null().to_numpy()] = np.nan
    return values


def _check_order(owner: str, name: str, frame: Frame, time: str) -> None:
    """Refuse a time that is no number, date or duration, that is empty somewhere, or that goes backwards."""
    nw = need("narwhals", "frames", "A data frame")
    if time not in frame.columns:
        raise wrong(owner, "time", f"a column of {name}", time)
    times = frame.get_column(time)
    if not (times.dtype.is_numeric() or times.dtype.is_temporal()) or times.dtype == nw.Time:
        raise InputError(
            f"{owner}: {name}[{time!r}] must hold numbers, dates or durations. Its type is {times.dtype}. Convert it, "
            "for instance with pandas.to_datetime."
        )
    empty = (times.is_null() | ~times.is_finite() if times.dtype.is_float() else times.is_null()).to_numpy()
    if (row := first(empty)) is not None:
        raise InputError(f"{owner}: {name}[{time!r}] has an empty cell in row {row}, counted from 0. Fill it in.")
    before, after = times.head(len(times) - 1), times.tail(len(times) - 1)
    if len(times) > 1 and (row := first((before > after).to_numpy())) is not None:
        raise InputError(
            f"{owner}: {name}[{time!r}] goes backwards in row {row + 1}, counted from 0: from {times[row]} to "
            f"{times[row + 1]}. Sort the rows by time."
        )


def moments(came: FrameTable) -> tuple[float, float]:
    """Return the first and the last time of a table that has times, as numbers."""
    assert came.frame is not None
    assert came.time is not None
    nw = need("narwhals", "frames", "A data frame")
    times = came.frame.get_column(came.time)
    if times.dtype == nw.Duration:
        times = times.dt.total_microseconds()
    elif times.dtype.is_temporal():
        times = (times.cast(nw.Datetime("us")) if times.dtype == nw.Date else times).dt.timestamp("us")
    return float(times[0]), float(times[len(times) - 1])
