"""Long frames: rows of one or many series, by name and time, as arrays on a regular grid of time.

Rows may come in any order. A time that has no row is a missing value. Whatever is wrong is named by series and row.
"""

from __future__ import annotations

import datetime
import warnings
import zoneinfo
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thalweg._extras import need
from thalweg._types import Array
from thalweg._validate import LARGEST_ENTRY, check_items, check_text, short_repr, visible
from thalweg.errors import GapWarning, InputError
from thalweg.estimators._frames import cells
from thalweg.estimators._frequencies import COUNTED, Anchors, Frequency, infer, read_frequency, time_text

__all__ = ["Clock", "Panel", "goes_back", "instant", "read_future", "read_moment", "read_panel", "repeats", "said"]

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

DENSEST = 100  # grid times for each row: beyond, the frequency is taken to be wrong
SHOWN = 8  # names of columns in a message
ZONE = "", " (where clocks go back, use times with a time zone)"  # advice for dates without a zone


@dataclass(frozen=True)
class Clock:
    """How a frame tells the time: type and time zone of its column, and whether the grid is that of local time."""

    dtype: Any
    counted: bool
    zone: str | None = None
    offset: int = 0  # of local time in the first row, in microseconds
    local: bool = False
    native: Any = None  # pandas' own type, where narwhals has no name for it

    def column(self, name: str, times: Ints, backend: Any) -> Any:
        """Return times as a column of the type that came."""
        nw = need("narwhals", "frames", "A data frame")
        if self.counted:
            whole = nw.new_series(name, times, backend=backend)
            return whole if self.dtype is None else whole.cast(self.dtype)
        if self.local and self.zone is not None:
            unique, back = np.unique(times, return_inverse=True)
            times = np.array([self._instant(int(time)) for time in unique], dtype=np.int64)[back]
        made = nw.new_series(name, times.astype("M8[us]"), nw.Datetime("us"), backend=backend)
        if self.zone is not None:
            made = made.dt.replace_time_zone("UTC").dt.convert_time_zone(self.zone)
        if self.dtype == nw.Unknown:  # see `_aware`
            return nw.from_native(made.to_native().astype(self.native), series_only=True)
        return made.cast(self.dtype)

    def _instant(self, time: int) -> int:
        """Return the instant of a local time; one that is skipped when clocks go forward is an hour later."""
        try:
            zone = zoneinfo.ZoneInfo(self.zone or "UTC")
        except (zoneinfo.ZoneInfoNotFoundError, ValueError):  # an offset that has no name
            return time - self.offset
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=time)
        away = moment.replace(tzinfo=zone).utcoffset() or datetime.timedelta()
        return time - away // datetime.timedelta(microseconds=1)

    def text(self, time: int) -> str:
        """Return a time for a message."""
        return time_text(time, self.counted)


@dataclass(frozen=True)
class Panel:
    """Series on a regular grid, one behind the other in flat arrays.

    Attributes
    ----------
    names : tuple of str
        Columns for the name of a series (None where there is none), time and target.
    ids, labels : Series, list
        The names of series: as a column, and as plain values.
    ends : array (S + 1,)
        The grid of series s lies between ends[s] and ends[s + 1].
    values : array (N,)
        The target; nan where it is missing.
    columns, rows : tuple of str, array (N, d)
        Further columns, with nan where a cell is empty.
    """

    names: tuple[str | None, str, str]
    ids: Any
    labels: list[Any]
    ends: Ints
    values: Array
    columns: tuple[str, ...]
    rows: Array
    frequency: Frequency
    anchors: Anchors
    clock: Clock
    backend: Any
    absent: int  # grid times without a row

    def __len__(self) -> int:
        return len(self.labels)

    def series(self, s: int) -> tuple[Array, Array]:
        """Return values and columns of one series."""
        part = slice(self.ends[s], self.ends[s + 1])
        return self.values[part], self.rows[part]

    @property
    def sizes(self) -> Ints:
        """Return the lengths of all series."""
        return np.diff(self.ends)

    def times(self, series: Ints, places: Ints) -> Ints:
        """Return times on the grids of these series."""
        return self.frequency.times(places, self.anchors.of(series))

    def frame(self, series: Ints, places: dict[str, Ints], columns: dict[str, Array], name: str) -> Any:
        """Return a native frame: names, times at places of the grids, and columns. Empty cells are null, or nan."""
        nw = need("narwhals", "frames", name)
        made = [] if self.ids is None else [self.ids[series].alias(str(self.names[0]))]
        made += [self.clock.column(key, self.times(series, at), self.backend) for key, at in places.items()]
        made += [nw.new_series(key, numbers, nw.Float64, backend=self.backend) for key, numbers in columns.items()]
        keys = [one.name for one in made]
        whole = nw.from_dict(dict(zip(keys, made, strict=True)))
        if self.ids is not None and hasattr(whole.to_native(), "reset_index"):  # names brought the index of their rows
            whole = nw.from_native(whole.to_native().reset_index(drop=True))
        filled = [nw.when(~nw.col(key).is_nan()).then(nw.col(key)).alias(key) for key in columns]
        return whole.with_columns(*filled).to_native()


def said(label: Any) -> str:
    """Return a series for a message."""
    return "the series" if label is None else f"series {visible(short_repr(label))}"


class _Rows:
    """The rows of a frame: names, times, and the position of a row for error messages."""

    def __init__(self, owner: str, what: str, frame: Any, first_row: int) -> None:
        self.owner, self.what, self.first_row = owner, what, first_row
        nw = need("narwhals", "frames", owner)
        try:
            self.frame = nw.from_native(frame, eager_only=True)
            self.keys = list(self.frame.columns)
        except Exception as error:  # of any library's
            lazy = "collect() it first" if hasattr(frame, "collect") else "give one of pandas, polars or pyarrow"
            why = "" if isinstance(error, TypeError) else f" ({str(error).strip().partition(chr(10))[0]})"
            raise InputError(
                f"{owner}: {what} must be a data frame; {lazy}. Got {type(frame).__module__}."
                f"{type(frame).__name__}{why}."
            ) from None
        if len(self.frame) == 0:
            raise InputError(f"{owner}: {what} has no rows. Give at least one for each series.")
        self.labels: list[Any] | None = None

    def place(self, row: int) -> str:
        """Return where a row is."""
        label = f"{said(self.labels[row])}, " if self.labels is not None else ""
        counted = "" if self.first_row else ", counted from 0"
        return f"{self.owner}: {self.what}, {label}row {row + self.first_row}{counted}"

    def get(self, argument: str, key: str, hint: str = "") -> Any:
        """Return a column."""
        if key not in self.keys:
            shown = ", ".join(visible(str(one)) for one in self.keys[:SHOWN]) + ", ..." * (len(self.keys) > SHOWN)
            index = getattr(getattr(self.frame.to_native(), "index", None), "names", ())
            hint = "It is the index: call reset_index() before." if key in index else hint
            there = f"{self.owner}: {self.what} has no column {key!r} for {argument}. Its columns are {shown}."
            raise InputError(f"{there} {hint}".strip())
        return self.frame.get_column(key)

    def read_ids(self, id_col: str | None) -> Any:
        """Return the column with the names of series, and keep them."""
        if id_col is None:
            return None
        nw = need("narwhals", "frames", self.owner)
        ids = self.get("id_col", id_col, "For a single series give id_col=None.")
        empty = ids.is_null().to_numpy()
        if ids.dtype.is_float():
            empty = empty | np.isnan(cells(ids))
        if empty.any():
            raise InputError(
                f"{self.place(int(np.argmax(empty)))}: {id_col!r} is empty. Name the series, or remove the row."
            )
        if ids.dtype in (nw.List, nw.Struct, nw.Array):
            raise InputError(f"{self.owner}: {id_col!r} must name series by text or numbers. Its type is {ids.dtype}.")
        self.labels = ids.to_list()
        return ids

    def read_times(self, time_col: str | None) -> tuple[Ints, Ints, Clock]:
        """Return instants, local times, and their text form."""
        if time_col is None:
            rows = np.arange(len(self.frame), dtype=np.int64)
            return rows, rows, Clock(None, True)
        nw = need("narwhals", "frames", self.owner)
        times = self.get("time_col", time_col, "For rows without times give time_col=None.")
        empty = times.is_null().to_numpy()
        if empty.any():
            raise InputError(
                f"{self.place(int(np.argmax(empty)))}: {time_col!r} is empty. Fill it in, or remove the row."
            )
        dtype = times.dtype
        if dtype.is_integer():
            whole = times.to_numpy().astype(np.int64)
            self._check_range(time_col, whole)
            return whole, whole, Clock(dtype, True)
        if dtype in (nw.String, nw.Object, nw.Categorical):
            instants, zone = self._parse(time_col, times.to_list())
            return instants, instants, Clock(nw.Datetime("us", zone), False, zone)
        if dtype == nw.Date:
            days = times.cast(nw.Datetime("us")).dt.timestamp("us").to_numpy().astype(np.int64)
            return days, days, Clock(dtype, False)
        native = _aware(times) if dtype == nw.Unknown else None
        if native is not None:
            instants, local = (_microseconds(one) for one in (native.dt.tz_convert("UTC"), native))
            return instants, local, Clock(
                dtype, False, str(native.dtype.tz), int(local[0] - instants[0]), native=native.dtype
            )  # fmt: skip
        if dtype != nw.Datetime:
            raise InputError(
                f"{self.owner}: {time_col!r} must hold dates, datetimes or integers. Its type is {dtype}. Convert it."
            )
        instants = times.dt.timestamp("us").to_numpy().astype(np.int64)
        zone = dtype.time_zone
        if zone is None:
            return instants, instants, Clock(dtype, False)
        local = times.dt.replace_time_zone(None).dt.timestamp("us").to_numpy().astype(np.int64)
        return instants, local, Clock(dtype, False, zone, int(local[0] - instants[0]))

    def _check_range(self, time_col: str, whole: Ints) -> None:
        wide = np.abs(whole) > 2**53
        if wide.any():
            raise InputError(
                f"{self.place(int(np.argmax(wide)))}: {time_col!r} is {whole[np.argmax(wide)]}; integer times are at "
                "most 2^53 in size. Convert it to datetimes."
            )

    def _parse(self, time_col: str, texts: list[Any]) -> tuple[Ints, str | None]:
        """Return the instants of times as text, and their zone: UTC where they have offsets."""
        found: dict[Any, datetime.datetime] = {}
        for row, text in enumerate(texts):
            if text in found:
                continue
            try:
                found[text] = read_moment(text)
            except (ValueError, TypeError):
                raise InputError(
                    f"{self.place(row)}: {time_col!r} is {short_repr(text)}, which is no time such as 2025-01-31 or "
                    "2025-01-31 14:00. Correct it, or convert the column to datetimes."
                ) from None
        aware = [moment.tzinfo is not None for moment in found.values()]
        if any(aware) and not all(aware):
            row = next(row for row, text in enumerate(texts) if (found[text].tzinfo is not None) != aware[0])
            raise InputError(
                f"{self.place(row)}: {time_col!r} is {short_repr(texts[row])}: some times have a time zone and some "
                "have none. Give all of them one."
            )
        numbers = {text: instant(moment) for text, moment in found.items()}
        return np.array([numbers[text] for text in texts], dtype=np.int64), "UTC" if any(aware) else None

    def read_numbers(self, key: str, argument: str, also: str) -> Array:
        """Return a column of numbers, with nan where a cell is empty."""
        nw = need("narwhals", "frames", self.owner)
        column = self.get(argument, key)
        if not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
            row, what = _first_word(column)
            raise InputError(
                f"{self.place(row)}: {key!r} must hold numbers, and its type is {column.dtype}{what}. Convert it{also}."
            )
        numbers = cells(column)
        bad = ~((np.abs(numbers) <= LARGEST_ENTRY) | np.isnan(numbers))
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"{self.place(row)}: {key!r} is {numbers[row]:g}; numbers are at most {LARGEST_ENTRY:g} in size. "
                "Correct it, or make the cell empty where the value is missing."
            )
        return numbers

    def sort(self, ids: Any, times: Ints) -> tuple[Ints, Ints, Ints]:
        """Return rows in order of series and time, the place in it where each series starts, and the series of each."""
        n = len(self.frame)
        if ids is None:
            order = np.argsort(times, kind="stable")
            return order, np.zeros(1, dtype=np.int64), np.zeros(n, dtype=np.int64)
        nw = need("narwhals", "frames", self.owner)
        backend = nw.get_native_namespace(self.frame)
        helper = ids.alias("id").to_frame().with_columns(
            nw.new_series("time", times, backend=backend),
            nw.new_series("row", np.arange(n), backend=backend),
        )  # fmt: skip
        try:
            order = helper.sort("id", "time", "row").get_column("row").to_numpy()
        except Exception:  # values that cannot be compared
            raise InputError(
                f"{self.owner}: the names of series in {ids.name!r} must be of one type. Convert them to text."
            ) from None
        labels = np.empty(n, dtype=object)
        labels[:] = self.labels
        labels = labels[order]
        starts = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]])
        return order, starts, np.repeat(np.arange(starts.size), np.diff(np.r_[starts, n]))

    def refuse_disorder(self, time_col: str, times: Ints, order: Ints, series: Ints, clock: Clock) -> None:
        """Refuse the first row whose time is not later than that of the row of its series before it."""
        came = np.lexsort((order, series))  # by series, with rows as they came
        rows, times, series = order[came], times[came], series[came]
        late = np.flatnonzero((times[1:] <= times[:-1]) & (series[1:] == series[:-1]))
        if not late.size:
            return
        k = int(late[np.argmin(rows[late + 1])])
        first, second = int(rows[k]), int(rows[k + 1])
        if times[k] == times[k + 1]:
            raise self._repeat(time_col, first, second, int(times[k]), clock)
        before, now = (clock.text(int(time)) for time in times[k : k + 2])
        raise goes_back(self.place(second), time_col, before, now, _wall(clock))

    def refuse_repeats(self, time_col: str, times: Ints, order: Ints, series: Ints, clock: Clock) -> None:
        """Refuse two rows of one series and time."""
        twice = (times[1:] == times[:-1]) & (series[1:] == series[:-1])
        if twice.any():
            k = int(np.argmax(twice))
            first, second = sorted((int(order[k]), int(order[k + 1])))
            raise self._repeat(time_col, first, second, int(times[k]), clock)

    def _repeat(self, time_col: str, first: int, second: int, time: int, clock: Clock) -> InputError:
        return repeats(self.place(second), time_col, first + self.first_row, clock.text(time), _wall(clock))


def repeats(place: str, column: str, row: int, time: str, wall: bool) -> InputError:
    """Return the error of a row that has the time of another; `wall`: whether times are dates without a zone."""
    return InputError(
        f"{place}: it has the {column!r} of row {row}, {time}. Remove one of them, or add them up{ZONE[wall]}."
    )


def goes_back(place: str, column: str, before: str, now: str, wall: bool) -> InputError:
    """Return the error of a row that is earlier than the one before it; `wall` as in `repeats`."""
    return InputError(f"{place}: {column!r} goes back, from {before} to {now}. Sort the rows by time{ZONE[wall]}.")


def _wall(clock: Clock) -> bool:
    return not clock.counted and clock.zone is None


def _aware(times: Any) -> Any:
    """Return a column of pandas with a time zone whose name narwhals does not read, such as America/New_York."""
    native = times.to_native()
    return native if getattr(getattr(native, "dtype", None), "tz", None) is not None else None


def _microseconds(native: Any) -> Ints:
    """Return a column of pandas without its time zone."""
    found: Ints = native.dt.tz_localize(None).to_numpy().astype("M8[us]").astype(np.int64)
    return found


def instant(moment: datetime.datetime) -> int:
    """Return microseconds since 1970, of UTC where there is a time zone."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    return (moment - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)


def read_moment(text: Any) -> datetime.datetime:
    """Return the datetime of a text, a date, or a datetime."""
    if isinstance(text, datetime.datetime):
        return text
    if isinstance(text, datetime.date):
        return datetime.datetime(text.year, text.month, text.day)
    text = text.strip()
    if len(text) == 7 and text[4] == "-":  # a month
        text += "-01"
    return datetime.datetime.fromisoformat(text)


def _first_word(column: Any) -> tuple[int, str]:
    """Return the first row of a column of text that holds no number, and its content."""
    for row, cell in enumerate(column.to_list()):
        try:
            float(cell)
        except (TypeError, ValueError):
            if cell is not None:
                return row, f": {short_repr(cell)}"
    return 0, ""


def read_panel(
    owner: str,
    frame: Any,
    id_col: str | None,
    time_col: str | None,
    target_col: str,
    columns: Sequence[str] | None,
    freq: Any,
    first_row: int = 0,
    in_order: bool = False,
) -> Panel:
    """Read a long frame; rows are counted from `first_row` in messages. `in_order`: refuse times that go back."""
    for name, key in (("id_col", id_col), ("time_col", time_col), ("target_col", target_col)):
        if key is not None or name == "target_col":
            check_text(owner, name, key)
    named = [key for key in (id_col, time_col, target_col) if key is not None]
    if len(set(named)) < len(named):
        raise InputError(f"{owner}: id_col, time_col and target_col must be different columns. Got {', '.join(named)}.")
    table = _Rows(owner, "frame", frame, first_row)
    ids = table.read_ids(id_col)
    instants, local, clock = table.read_times(time_col)
    chosen = _choose(owner, table.keys, named, columns)
    also = ", or name the columns to use: columns=[...]" if columns is None else ""
    numbers = table.read_numbers(target_col, "target_col", "")
    rows = np.column_stack([table.read_numbers(key, "columns", also) for key in chosen]) if chosen else np.zeros(
        (numbers.size, 0)
    )  # fmt: skip
    order, starts, series = table.sort(ids, instants)
    if time_col is None:
        instants = local = np.empty_like(instants)
        instants[order] = np.arange(order.size) - starts[series]
    else:
        check = table.refuse_disorder if in_order else table.refuse_repeats
        check(time_col, instants[order], order, series, clock)
    frequency, clock, anchors, places = _lay_out(table, freq, instants, local, clock, order, starts, series)
    sizes = places[np.r_[starts[1:] - 1, order.size - 1]] + 1
    _check_density(table, frequency, sizes, starts, order)
    ends = np.r_[0, np.cumsum(sizes)]
    at = ends[series] + places
    values, wide = np.full(int(ends[-1]), np.nan), np.full((int(ends[-1]), len(chosen)), np.nan)
    values[at], wide[at] = numbers[order], rows[order]
    nw = need("narwhals", "frames", owner)
    names = None if ids is None else ids[order[starts]]
    labels = [None] if table.labels is None else [table.labels[row] for row in order[starts]]
    panel = Panel(
        (id_col, time_col or "ds", target_col), names, labels, ends, values, tuple(chosen), wide, frequency, anchors,
        clock, nw.get_native_namespace(table.frame), int(ends[-1]) - order.size,
    )  # fmt: skip
    empty = np.flatnonzero(np.add.reduceat(~np.isnan(values), ends[:-1]) == 0)
    if empty.size:
        row = int(order[starts[empty[0]]])
        raise InputError(f"{table.place(row)}: all values of {target_col!r} are missing. Leave the series out.")
    if panel.absent:
        _warn_of_gaps(owner, panel, places, starts, series)
    return panel


def _choose(owner: str, keys: list[str], named: list[str], columns: Sequence[str] | None) -> list[str]:
    """Return the names of further columns."""
    if columns is None:
        return [key for key in keys if key not in named]
    chosen = [check_text(owner, "columns", key) for key in check_items(owner, "columns", columns, "a list of names")]
    for key in chosen:
        if key in named or chosen.count(key) > 1:
            raise InputError(f"{owner}: the column {key!r} is named twice. Leave it out of columns.")
    return chosen


def _lay_out(
    table: _Rows, freq: Any, instants: Ints, local: Ints, clock: Clock, order: Ints, starts: Ints, series: Ints
) -> tuple[Frequency, Clock, Anchors, Ints]:
    """Return frequency, clock, anchors, and the place of each sorted row on the grid of its series."""
    frequency = read_frequency(table.owner, freq, clock.counted)
    same = series[1:] == series[:-1]
    if frequency is None:
        frequency = infer(instants[order], same, clock.counted)
        if frequency is not None and frequency.local and clock.zone is not None:
            frequency = infer(local[order], same, False)
    if frequency is None:
        if clock.counted:
            frequency = Frequency(COUNTED, 1)
        else:
            raise InputError(
                f"{table.owner}: every series has a single row, so the step between times is not known. Give freq='h', "
                "'D', 'MS', ..."
            )
    tries = [True, False] if clock.zone is not None and frequency.local else [False]
    found: list[tuple[Clock, Anchors, Ints, Flags]] = []
    for wall in tries:
        times = (local if wall else instants)[order]
        anchors = frequency.anchors(times, starts)
        places, fits = frequency.places(times, anchors.of(series))
        found.append((replace(clock, local=wall), anchors, places, fits))
        if fits.all():
            return frequency, *found[-1][:3]
    chosen, anchors, places, fits = found[0]
    k = int(np.argmax(~fits))
    row, first = int(order[k]), int(anchors.first[series[k]])
    times = local if chosen.local else instants
    if freq == "infer" and not fits[series == series[k]][1:].any():
        advice = f"The usual step is {frequency}: forecast series of other steps apart, with freq= for each"
    else:
        advice = "Correct it, or give another freq="
    raise InputError(
        f"{table.place(row)}: {chosen.text(int(times[row]))} is no whole number of steps of {frequency} after the "
        f"first time, {chosen.text(first)}. {advice}."
    )


def _check_density(table: _Rows, frequency: Frequency, sizes: Ints, starts: Ints, order: Ints) -> None:
    """Refuse a grid that is nearly empty."""
    counts = np.diff(np.r_[starts, order.size])
    thin = sizes > DENSEST * counts + 1000
    if thin.any():
        s = int(np.argmax(thin))
        raise InputError(
            f"{table.place(int(order[starts[s]]))}: a step of {frequency} leaves {sizes[s] - counts[s]} of {sizes[s]} "
            "times of this series without a row. Give the freq= that it has, or correct its times."
        )


def _warn_of_gaps(owner: str, panel: Panel, places: Ints, starts: Ints, series: Ints) -> None:
    steps = np.diff(places)
    steps[series[1:] != series[:-1]] = 1
    k = int(np.argmax(steps))
    s = int(series[k])
    before = panel.times(np.array([s]), places[k : k + 1])[0]
    count = np.unique(series[1:][steps > 1]).size
    of = f" in {count} of {len(panel)} series" if panel.ids is not None else ""
    warnings.warn(
        f"{owner}: {panel.absent} of {panel.values.size} rows are missing{of} and count as missing values; the longest "
        f"gap, of {int(steps[k]) - 1}, is in {said(panel.labels[s])} after {panel.clock.text(int(before))}.",
        GapWarning,
        stacklevel=4,
    )


def read_future(owner: str, future: Any, panel: Panel, time_col: str | None, horizon: int, first_row: int = 0) -> Array:
    """Return the columns of the next `horizon` steps of every series, (S, H, d)."""
    table = _Rows(owner, "future", future, first_row)
    ids = table.read_ids(panel.names[0])
    instants, local, clock = table.read_times(time_col)
    if (clock.counted, clock.zone) != (panel.clock.counted, panel.clock.zone):
        raise InputError(f"{owner}: {time_col!r} of future must be of the type and time zone that frame has.")
    rows = np.column_stack([table.read_numbers(key, "columns", "") for key in panel.columns])
    order, starts, series = table.sort(ids, instants)
    known = {label: s for s, label in enumerate(panel.labels)}
    labels = [None] if table.labels is None else [table.labels[row] for row in order[starts]]
    mine = np.array([known.get(label, -1) for label in labels])[series]
    order, series, starts_of = order[mine >= 0], mine[mine >= 0], starts[series][mine >= 0]
    if time_col is None:
        places = panel.sizes[series] + np.flatnonzero(mine >= 0) - starts_of
    else:
        times = (local if panel.clock.local else instants)[order]
        table.refuse_repeats(time_col, times, order, series, clock)
        places, fits = panel.frequency.places(times, panel.anchors.of(series))
        if not fits.all():
            k = int(np.argmax(~fits))
            raise InputError(
                f"{table.place(int(order[k]))}: {clock.text(int(times[k]))} is no time of frame's grid, whose step is "
                f"{panel.frequency}. Correct it."
            )
    ahead = places - panel.sizes[series]
    wanted = (ahead >= 0) & (ahead < horizon)
    there = np.zeros((len(panel), horizon), dtype=bool)
    found = np.full((len(panel), horizon, len(panel.columns)), np.nan)
    there[series[wanted], ahead[wanted]] = True
    found[series[wanted], ahead[wanted]] = rows[order[wanted]]
    if not there.all():
        s, h = (int(i) for i in np.argwhere(~there)[0])
        time = panel.times(np.array([s]), panel.sizes[s : s + 1] + h)[0]
        raise InputError(
            f"{owner}: future has no row for {said(panel.labels[s])} at {panel.clock.text(int(time))}, step {h + 1} of "
            f"{horizon}. Add it with the columns {', '.join(panel.columns)}; an empty cell is a value not known."
        )
    return found
