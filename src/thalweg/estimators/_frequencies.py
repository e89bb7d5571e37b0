"""Regular times: the step between them, found in the times or given as a word, and the seasons that belong to it.

Times are whole numbers: microseconds since 1970, or the integers that a user counts by. A frequency counts steps from
the first time of a series:

    fixed           a constant number of units
    months          the same day of the month, or its last day; quarters and years are 3 and 12 of them
    business days   Monday to Friday
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thalweg._core.types import Ints
from thalweg._core.validate import wrong
from thalweg.errors import InputError

SECOND = 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND
WEEK = 7 * DAY
UNITS = {
    "us": 1, "ms": 1000, "s": SECOND, "sec": SECOND, "m": MINUTE, "min": MINUTE, "t": MINUTE, "h": HOUR, "d": DAY,
    "w": WEEK,
}  # fmt: skip
MONTHS = {"mo": 1, "M": 1, "MS": 1, "ME": 1, "q": 3, "QS": 3, "QE": 3, "y": 12, "A": 12, "YS": 12, "YE": 12, "AS": 12}
FIXED, MONTHLY, BUSINESS, COUNTED = "fixed", "months", "business days", "integers"
WORDS = "'infer', a step such as '15min', 'h', 'D', 'B', 'W', 'MS', 'QS' or 'YS', or a whole number for integer times"
LAST = 31  # as a day: the last one of the month
FEWEST_ROWS = 10  # rows without a weekend that make business days


class Anchors(NamedTuple):
    """The first time of each series and, for months, the day."""

    first: Ints
    day: Ints

    def of(self, series: Ints) -> Anchors:
        """Return those of these series."""
        return Anchors(self.first[series], self.day[series])


@dataclass(frozen=True)
class Frequency:
    """A step of time: `step` microseconds, months, business days or integers."""

    kind: str
    step: int

    @property
    def local(self) -> bool:
        """Whether steps are counted on the clock on the wall: a day may have 23 or 25 hours."""
        return self.kind in (MONTHLY, BUSINESS) or (self.kind == FIXED and self.step % DAY == 0)

    @property
    def seasons(self) -> tuple[int, ...]:
        """Steps after which such series often repeat themselves, at most two; empty where nothing is known."""
        if self.kind == BUSINESS:
            return (5, 261) if self.step == 1 else ()
        if self.kind == MONTHLY:
            return (12 // self.step,) if 12 % self.step == 0 and self.step < 12 else ()
        if self.kind == COUNTED:
            return ()
        if self.step == DAY:
            return 7, 365
        if self.step % WEEK == 0:
            weeks = self.step // WEEK
            return (52 // weeks,) if 52 % weeks == 0 and weeks <= 26 else ()
        periods = (DAY, WEEK) if self.step >= 5 * MINUTE else (HOUR, DAY) if self.step >= MINUTE else (MINUTE, HOUR)
        found = tuple(p // self.step for p in periods if p % self.step == 0)
        return tuple(m for m in found if 2 <= m <= 3600)

    def anchors(self, times: Ints, starts: Ints) -> Anchors:
        """Return where to count from, for sorted times of series that begin at these rows."""
        first = times[starts]
        if self.kind != MONTHLY or not times.size:
            return Anchors(first, np.zeros_like(first))
        _, day, last = _days(times)
        ends = np.logical_and.reduceat(day == last, starts)
        return Anchors(first, np.where(ends, LAST, np.maximum.reduceat(day, starts)))

    def places(self, times: Ints, anchors: Anchors) -> tuple[Ints, NDArray[np.bool_]]:
        """Return the number of steps from the anchor to each time, and whether it is a whole one."""
        if self.kind in (FIXED, COUNTED):
            steps, rest = np.divmod(times - anchors.first, self.step)
            return steps, rest == 0
        fits = times % DAY == anchors.first % DAY
        if self.kind == BUSINESS:
            days, begin = _dates(times), _dates(anchors.first)
            count = np.busday_count(begin, days).astype(np.int64)
            fits &= np.is_busday(days) & np.is_busday(begin)
        else:
            month, day, last = _days(times)
            count = month - _days(anchors.first)[0]
            fits &= day == np.minimum(anchors.day, last)
        steps, rest = np.divmod(count, self.step)
        return steps, fits & (rest == 0)

    def times(self, places: Ints, anchors: Anchors) -> Ints:
        """Return the times at these numbers of steps after the anchor."""
        if self.kind in (FIXED, COUNTED):
            return anchors.first + places * self.step
        clock = anchors.first % DAY
        if self.kind == BUSINESS:
            days: Ints = np.busday_offset(_dates(anchors.first), places * self.step, roll="forward").astype(np.int64)
            return days * DAY + clock
        month = _days(anchors.first)[0] + places * self.step
        begin: Ints = month.astype("M8[M]").astype("M8[D]").astype(np.int64)
        last = (month + 1).astype("M8[M]").astype("M8[D]").astype(np.int64) - begin
        at: Ints = (begin + np.minimum(anchors.day, last) - 1) * DAY + clock
        return at

    def __str__(self) -> str:
        if self.kind == COUNTED:
            return str(self.step)
        if self.kind == MONTHLY:
            named = {1: "1 month", 3: "1 quarter", 12: "1 year"}
            return named.get(self.step, f"{self.step} months")
        if self.kind == BUSINESS:
            return "1 business day" if self.step == 1 else f"{self.step} business days"
        scales = ((WEEK, "week"), (DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (SECOND, "second"))
        unit, name = next(((u, n) for u, n in scales if self.step % u == 0), (1, "microsecond"))
        return f"{self.step // unit} {name}{'s' * (self.step > unit)}"


def _dates(times: Ints) -> NDArray[np.datetime64]:
    return (times // DAY).astype("M8[D]")


def _days(times: Ints) -> tuple[Ints, Ints, Ints]:
    """Return month since 1970, day of the month, and the last day of that month."""
    month = _dates(times).astype("M8[M]")
    begin = month.astype("M8[D]").astype(np.int64)
    last = (month + 1).astype("M8[D]").astype(np.int64) - begin
    return month.astype(np.int64), times // DAY - begin + 1, last


def read_frequency(owner: str, freq: object, counted: bool) -> Frequency | None:
    """Return the frequency that is given; None for "infer"."""
    freq = getattr(freq, "freqstr", freq)  # an offset of pandas
    if isinstance(freq, str) and freq == "infer":
        return None
    if isinstance(freq, int | np.signedinteger) and not isinstance(freq, bool | np.timedelta64) and 0 < freq <= 2**53:
        if counted:
            return Frequency(COUNTED, int(freq))
        raise InputError(f"{owner}: a whole number is a step of integer times, and these are dates. Got freq={freq}.")
    if isinstance(freq, datetime.timedelta | np.timedelta64):
        step = int(np.timedelta64(freq, "us").astype(np.int64))
        found = Frequency(FIXED, step) if step > 0 else None
    else:
        found = _of_word(freq) if isinstance(freq, str) else None
    if found is None:
        raise wrong(owner, "freq", WORDS, freq)
    if counted:
        raise InputError(f"{owner}: times are integers, whose steps are whole numbers, such as freq=1. Got {freq!r}.")
    return found


def _of_word(word: str) -> Frequency | None:
    found = re.fullmatch(r"(\d*)([A-Za-z]+)(-[A-Za-z0-9]+)?", word.strip())
    if found is None or (found[1] and not 0 < int(found[1]) <= 1000):
        return None
    count, unit = int(found[1] or 1), found[2]
    if unit in ("B", "b"):
        return Frequency(BUSINESS, count)
    months = MONTHS.get(unit) or MONTHS.get(unit.lower())
    if months and unit != "m":
        return Frequency(MONTHLY, count * months)
    fixed = UNITS.get(unit.lower())
    return Frequency(FIXED, count * fixed) if fixed else None


def infer(times: Ints, same: NDArray[np.bool_], counted: bool) -> Frequency | None:
    """Return the most common step between neighbours of one series; None where no series has two times.

    `same`: for each time but the first, whether it belongs to the same series as the one before.
    """
    steps, counts = np.unique(np.diff(times)[same], return_counts=True)
    if not steps.size:
        return None
    step = int(steps[np.argmax(counts)])
    if counted:
        return Frequency(COUNTED, step)
    if step == DAY and times.size >= FEWEST_ROWS and 3 * DAY in steps and np.is_busday(_dates(times)).all():
        return Frequency(BUSINESS, 1)
    if step >= 28 * DAY:
        starts = np.flatnonzero(np.r_[True, ~same])
        sizes, counts = np.unique(np.diff(_days(times)[0])[same], return_counts=True)
        months = Frequency(MONTHLY, int(max(sizes[np.argmax(counts)], 1)))
        series = np.repeat(np.arange(starts.size), np.diff(np.r_[starts, times.size]))
        if months.places(times, months.anchors(times, starts).of(series))[1].all():
            return months
    return Frequency(FIXED, step)
