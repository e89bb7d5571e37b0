"""Rows of long frames: the series, the time and the numbers of each, with its place for error messages."""

from __future__ import annotations

import datetime
import zoneinfo
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from thalweg._core.extras import need
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import LARGEST_ENTRY, short_repr, visible
from thalweg.errors import InputError
from thalweg.estimators._frames import Flags, Native, cells, first, is_of_numbers
from thalweg.estimators._frequencies import DAY

if TYPE_CHECKING:
    from narwhals.dtypes import DType

    from thalweg.estimators._frames import Backend, Frame, Series

Label = Hashable  # the name of a series; None where there is one without a name

NAMES_SHOWN = 8  # names of columns in a message
ZONE = "", " (where clocks go back, use times with a time zone)"  # advice for dates without a zone


@dataclass(frozen=True)
class Clock:
    """How a frame tells the time: type and time zone of its column, and whether the grid is that of local time."""

    dtype: DType | None
    counted: bool
    zone: str | None = None
    offset: int = 0  # of local time in the first row, in microseconds
    local: bool = False
    native: object = None  # pandas' own type, where narwhals has no name for it

    def column(self, name: str, times: Ints, backend: Backend) -> Series:
        """Return times as a column of the type that came."""
        nw = need("narwhals", "frames", "A data frame")
        if self.counted:
            whole: Series = nw.new_series(name, times, backend=backend)
            return whole if self.dtype is None else whole.cast(self.dtype)
        if self.local and self.zone is not None:
            unique, back = np.unique(times, return_inverse=True)
            times = np.array([self._instant(int(time)) for time in unique], dtype=np.int64)[back]
        made: Series = nw.new_series(name, times.astype("M8[us]"), nw.Datetime("us"), backend=backend)
        if self.zone is not None:
            made = made.dt.replace_time_zone("UTC").dt.convert_time_zone(self.zone)
        if self.dtype == nw.Unknown:  # see `_aware`
            aware: Series = nw.from_native(made.to_native().astype(self.native), series_only=True)
            return aware
        return made if self.dtype is None else made.cast(self.dtype)

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
        if self.counted:
            return str(time)
        text = str(np.datetime64(int(time), "us")).replace("T", " ").removesuffix(".000000").removesuffix(":00")
        return text if time % DAY else text[: text.index(" ")]


def said(label: Label) -> str:
    """Return a series for a message."""
    return "the series" if label is None else f"series {visible(short_repr(label))}"


class FrameRows:
    """The rows of a frame: names, times, and the position of a row for error messages."""

    def __init__(self, owner: str, what: str, frame: object, first_row: int) -> None:
        self.owner, self.what, self.first_row = owner, what, first_row
        self.nw = need("narwhals", "frames", owner)
        try:
            self.frame: Frame = self.nw.from_native(frame, eager_only=True)
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
        self.backend: Backend = self.nw.get_native_namespace(self.frame)
        self.labels: list[Label] | None = None

    def labels_of(self, rows: Ints) -> list[Label]:
        """Return the names of the series of these rows."""
        return [None] if self.labels is None else [self.labels[row] for row in rows]

    def refuse(self, bad: Flags, why: str) -> None:
        """Refuse the first of these rows, if there are any."""
        if (row := first(bad)) is not None:
            raise self.error(row, why)

    def error(self, row: int, why: str) -> InputError:
        """Return the error of a row."""
        return InputError(f"{self.place(row)}: {why}")

    def place(self, row: int) -> str:
        """Return where a row is."""
        label = f"{said(self.labels[row])}, " if self.labels is not None else ""
        counted = "" if self.first_row else ", counted from 0"
        return f"{self.owner}: {self.what}, {label}row {row + self.first_row}{counted}"

    def get(self, argument: str, key: str, hint: str = "") -> Series:
        """Return a column."""
        if key not in self.keys:
            shown = ", ".join(visible(str(one)) for one in self.keys[:NAMES_SHOWN]) + ", ..." * (
                len(self.keys) > NAMES_SHOWN
            )
            index = getattr(getattr(self.frame.to_native(), "index", None), "names", ())
            hint = "It is the index: call reset_index() before." if key in index else hint
            there = f"{self.owner}: {self.what} has no column {key!r} for {argument}. Its columns are {shown}."
            raise InputError(f"{there} {hint}".strip())
        return self.frame.get_column(key)

    def read_ids(self, id_col: str | None) -> Series | None:
        """Return the column with the names of series, and keep them."""
        if id_col is None:
            return None
        nw = self.nw
        ids = self.get("id_col", id_col, "For a single series give id_col=None.")
        empty = ids.is_null().to_numpy()
        if ids.dtype.is_float():
            empty = empty | np.isnan(cells(ids))
        self.refuse(empty, f"{id_col!r} is empty. Name the series, or remove the row.")
        if ids.dtype in (nw.List, nw.Struct, nw.Array):
            raise InputError(f"{self.owner}: {id_col!r} must name series by text or numbers. Its type is {ids.dtype}.")
        self.labels = ids.to_list()
        return ids

    def read_times(self, time_col: str | None) -> tuple[Ints, Ints, Clock]:
        """Return instants, local times, and their text form."""
        if time_col is None:
            rows = np.arange(len(self.frame), dtype=np.int64)
            return rows, rows, Clock(None, True)
        nw, times = self.nw, self.get("time_col", time_col, "For rows without times give time_col=None.")
        self.refuse(times.is_null().to_numpy(), f"{time_col!r} is empty. Fill it in, or remove the row.")
        dtype = times.dtype
        if dtype.is_integer():
            whole = times.to_numpy().astype(np.int64)
            if (row := first(np.abs(whole) > 2**53)) is not None:
                wide = f"{time_col!r} is {whole[row]}; integer times are at most 2^53 in size. Convert it to datetimes."
                raise self.error(row, wide)
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
            offset = int(local[0] - instants[0])
            return instants, local, Clock(dtype, False, str(native.dtype.tz), offset, native=native.dtype)
        if dtype != nw.Datetime:
            raise InputError(
                f"{self.owner}: {time_col!r} must hold dates, datetimes or integers. Its type is {dtype}. Convert it."
            )
        instants = times.dt.timestamp("us").to_numpy().astype(np.int64)
        zone = getattr(dtype, "time_zone", None)
        if zone is None:
            return instants, instants, Clock(dtype, False)
        local = times.dt.replace_time_zone(None).dt.timestamp("us").to_numpy().astype(np.int64)
        return instants, local, Clock(dtype, False, zone, int(local[0] - instants[0]))

    def _parse(self, time_col: str, texts: list[str | datetime.date]) -> tuple[Ints, str | None]:
        """Return the instants of times as text, and their zone: UTC where they have offsets."""
        found: dict[object, datetime.datetime] = {}
        for row, text in enumerate(texts):
            if text in found:
                continue
            try:
                found[text] = read_moment(text)
            except (ValueError, TypeError):
                raise self.error(
                    row,
                    f"{time_col!r} is {short_repr(text)}, which is no time such as 2025-01-31 or 2025-01-31 14:00. "
                    "Correct it, or convert the column to datetimes.",
                ) from None
        aware = [moment.tzinfo is not None for moment in found.values()]
        if any(aware) and not all(aware):
            row = next(row for row, text in enumerate(texts) if (found[text].tzinfo is not None) != aware[0])
            mixed = "some times have a time zone and some have none. Give all of them one."
            raise self.error(row, f"{time_col!r} is {short_repr(texts[row])}: {mixed}")
        numbers = {text: instant(moment) for text, moment in found.items()}
        return np.array([numbers[text] for text in texts], dtype=np.int64), "UTC" if any(aware) else None

    def read_numbers(self, key: str, argument: str, also: str) -> Floats:
        """Return a column of numbers, with nan where a cell is empty."""
        column = self.get(argument, key)
        if not is_of_numbers(column):
            row, what = _first_word(column)
            raise self.error(row, f"{key!r} must hold numbers, and its type is {column.dtype}{what}. Convert it{also}.")
        numbers = cells(column)
        if (bad := first(np.abs(numbers) > LARGEST_ENTRY)) is not None:
            raise self.error(
                bad,
                f"{key!r} is {numbers[bad]:g}; numbers are at most {LARGEST_ENTRY:g} in size. Correct it, or make the "
                "cell empty where the value is missing.",
            )
        return numbers

    def sort(self, ids: Series | None, times: Ints) -> tuple[Ints, Ints, Ints]:
        """Return rows in order of series and time, the place in it where each series starts, and the series of each."""
        n = len(self.frame)
        if ids is None:
            order = np.argsort(times, kind="stable")
            return order, np.zeros(1, dtype=np.int64), np.zeros(n, dtype=np.int64)
        more = {"time": times, "row": np.arange(n)}
        columns = [self.nw.new_series(key, numbers, backend=self.backend) for key, numbers in more.items()]
        helper = ids.alias("id").to_frame().with_columns(*columns)
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
        before, now = int(rows[k]), int(rows[k + 1])
        if times[k] == times[k + 1]:
            raise self._repeat(time_col, before, now, int(times[k]), clock)
        first_time, second = (clock.text(int(time)) for time in times[k : k + 2])
        raise goes_back(self.place(now), time_col, first_time, second, _wall(clock))

    def refuse_repeats(self, time_col: str, times: Ints, order: Ints, series: Ints, clock: Clock) -> None:
        """Refuse two rows of one series and time."""
        if (k := first((times[1:] == times[:-1]) & (series[1:] == series[:-1]))) is not None:
            before, now = sorted((int(order[k]), int(order[k + 1])))
            raise self._repeat(time_col, before, now, int(times[k]), clock)

    def _repeat(self, time_col: str, before: int, now: int, time: int, clock: Clock) -> InputError:
        return repeats(self.place(now), time_col, before + self.first_row, clock.text(time), _wall(clock))


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


def _aware(times: Series) -> Native:
    """Return a column of pandas with a time zone whose name narwhals does not read, such as America/New_York."""
    native = times.to_native()
    return native if getattr(getattr(native, "dtype", None), "tz", None) is not None else None


def _microseconds(native: Native) -> Ints:
    """Return a column of pandas without its time zone."""
    found: Ints = native.dt.tz_localize(None).to_numpy().astype("M8[us]").astype(np.int64)
    return found


def instant(moment: datetime.datetime) -> int:
    """Return microseconds since 1970, of UTC where there is a time zone."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    return (moment - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)


def read_moment(text: str | datetime.date) -> datetime.datetime:
    """Return the datetime of a text, a date, or a datetime."""
    if isinstance(text, datetime.datetime):
        return text
    if isinstance(text, datetime.date):
        return datetime.datetime(text.year, text.month, text.day)
    text = text.strip()
    if len(text) == 7 and text[4] == "-":  # a month
        text += "-01"
    return datetime.datetime.fromisoformat(text)


def _first_word(column: Series) -> tuple[int, str]:
    """Return the first row of a column of text that holds no number, and its content."""
    for row, cell in enumerate(column.to_list()):
        try:
            float(cell)
        except (TypeError, ValueError):
            if cell is not None:
                return row, f": {short_repr(cell)}"
    return 0, ""
