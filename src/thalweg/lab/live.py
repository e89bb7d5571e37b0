"""Rows of a CSV that are forecast as they arrive: each is answered before its target is looked at."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from thalweg._core.validate import short_repr
from thalweg.errors import InputError
from thalweg.estimators._frequencies import Anchors, Frequency
from thalweg.estimators._rows import goes_back, repeats, said
from thalweg.estimators.forecaster import Forecaster
from thalweg.estimators.forecasts import as_columns, column_names
from thalweg.lab.columns import GAP, cell_number, check_named, header_of, listed, no_number, read_header, read_instant

NAME = "standard input"
MOST_VOTES = 10  # for the usual step: so many other steps make another one the usual one


class _Times:
    """The times of one series: each must be later than the one before.

    Where most steps are about the same, one that is longer by half is a gap, as in a file.
    """

    def __init__(self, column: str, place: str) -> None:
        self.column, self.place, self.row = column, place, 0
        self.now, self.shown, self.kind = 0, "", ""  # the last time: as a number, as it came, and its kind
        self.usual = self.votes = 0  # votes: how often a step was about the usual one, less how often it was not
        self.widest, self.gap = 0, ""  # longest step while the usual one is not known, and the words for it

    def see(self, cell: str, row: int, again: bool) -> str | None:
        """Take in the next time, or the same one `again`; return the remark on it."""
        now, kind = read_instant(NAME, self.column, cell, row)
        shown, place, wall = short_repr(cell.strip())[1:-1], f"{self.place}row {row}", kind == "a date"
        first, step, before, last = not self.row, now - self.now, self.shown, self.row
        if not first and kind != self.kind:
            raise InputError(f"{place}: {self.column!r} is {kind}, {shown}; before it is {self.kind}. Correct it.")
        if not first and step < 0:
            raise goes_back(place, self.column, before, shown, wall)
        if not first and step == 0 and not again:
            raise repeats(place, self.column, last, shown, wall)
        self.now, self.shown, self.kind, self.row = now, shown, kind, row
        return None if first or step == 0 else self._gap(step, f"{place}: a gap, from {before} to {shown}")

    def _gap(self, step: int, text: str) -> str | None:
        if step > self.widest:
            self.widest, self.gap = step, text
        if self.usual < GAP * step and step < GAP * self.usual:
            self.votes = min(self.votes + 1, MOST_VOTES)
        elif self.votes:
            self.votes -= 1
        else:
            self.usual, self.votes = step, 1
        if self.votes < 2:
            return None
        wide, self.widest = self.widest > GAP * self.usual, 0
        return self.gap if wide else None


class _LiveSeries:
    """One series of the pipe: its forecaster, and its times."""

    def __init__(self, label: str, forecaster: Forecaster, time: str | None, frequency: Frequency | None) -> None:
        self.forecaster, self.frequency = forecaster, frequency
        self.place = f"{NAME}, {said(label)}, " if label else f"{NAME}, "
        self.times, self.asked = None if time is None else _Times(time, self.place), False
        self.anchors: Anchors | None = None
        self.next = 0  # steps from the first time to that of the next value

    def pass_time(self, cell: str, row: int) -> str | None:
        """See the time of a row; times without a row before it are missing values. Return the remark on it."""
        if self.times is None:
            return None
        remark = self.times.see(cell, row, self.asked)  # a question has the time of its answer
        if self.frequency is None:
            return remark
        now = np.array([self.times.now])
        if self.anchors is None:
            self.anchors = self.frequency.anchors(now, np.array([0]))
        places, fits = self.frequency.places(now, self.anchors)
        if not fits[0]:
            raise InputError(
                f"{self.place}row {row}: {short_repr(cell)[1:-1]} is no whole number of steps of {self.frequency} "
                "after the first time. Correct it, or leave --freq out."
            )
        gap = int(places[0]) - self.next
        self.next += gap
        for _ in range(gap):
            if self.forecaster.columns:
                self.forecaster.predict(np.full(len(self.forecaster.columns), np.nan))
            self.forecaster.update(None)
        return f"{self.place}row {row}: {gap} row(s) are missing before {short_repr(cell)[1:-1]}" if gap else None

    def ask(self, numbers: list[float]) -> list[list[float]]:
        """Return a line of numbers for each step: the forecast, and the ends of its intervals."""
        f, X = self.forecaster, None
        if f.columns:
            X = np.full((f.horizon, len(f.columns)), np.nan)
            X[0] = numbers
        ahead = f.forecast(X)
        lines: list[list[float]] = np.column_stack(as_columns(ahead)).tolist()
        return lines


def live(
    lines: Iterable[str],
    write: Callable[[str], None],
    target: str,
    make: Callable[[str], Forecaster],
    *,
    levels: Sequence[float] = (),
    id: str | None = None,
    time: str | None = None,
    columns: Sequence[str] = (),
    frequency: Frequency | None = None,
    decimal: str = ".",
    keep: Callable[[str, Forecaster], None] | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> None:
    """Forecast every row of a CSV as it arrives: `write` gets a line for each step before the target is looked at.

    `make` gets the name of a series, "" where there is only one, and returns its forecaster, with these levels. Step 1
    is the row itself. A row whose target is empty is a question: it is answered, and nothing is learned from it. After
    every row that was learned `keep` is called, so that a run that ends at any moment can be resumed after the last row
    that was kept. With a frequency, times without a row are missing values.
    """
    text = iter(lines)
    header = header_of(text)
    if not header.strip():
        raise InputError(f"{NAME} is empty. Its first line must name the columns.")
    names, mark = read_header(header, NAME)
    check_named(NAME, names, target, id, time, columns)
    known: dict[str, _LiveSeries] = {}
    heads = [*([id] if id else []), time or "row", "step", *column_names(levels)]
    write(",".join(map(_quoted, heads)) + "\n")
    for count, cells in _rows(text, mark, len(names)):
        row = dict(zip(names, cells, strict=True))
        label = row[id].strip() if id else ""
        if id and not label:
            raise InputError(f"{NAME}, column {id!r}, row {count}: the cell is empty. Name the series.")
        if label not in known:
            known[label] = _LiveSeries(label, make(label), time, frequency)
        series = known[label]
        numbers = [_cell(count, key, row[key], decimal) for key in columns]
        remark = series.pass_time(row[time], count) if time else None
        if remark is not None:
            note(remark)
        place = [*([_quoted(label)] if id else []), _quoted(row[time]) if time else str(count)]
        for step, line in enumerate(series.ask(numbers), start=1):
            write(",".join([*place, str(step), *("" if x != x else repr(x) for x in line)]) + "\n")
        series.asked = not row[target].strip()
        if not series.asked:
            series.forecaster.update(_cell(count, target, row[target], decimal))
            series.next += 1
            if keep is not None:
                keep(label, series.forecaster)
    if not known:
        note(f"{NAME} has no rows: its columns are {listed(names)}")


def _rows(lines: Iterator[str], mark: str, wanted: int) -> Iterator[tuple[int, list[str]]]:
    rows, count = csv.reader(lines, delimiter=mark), 0
    while True:
        try:
            cells = next(rows, None)
        except csv.Error as error:
            raise InputError(f"{NAME}, row {count + 1}: it cannot be read: {error}. Correct the row.") from None
        if cells is None:
            return
        if not cells:  # a blank line
            continue
        count += 1
        if len(cells) != wanted:
            raise InputError(
                f"{NAME}, row {count}: {len(cells)} value(s), but the header names {wanted} column(s). Correct the row."
            )
        yield count, cells


def _cell(row: int, key: str, cell: str, decimal: str) -> float:
    """Return a number of a row; nan where the cell is empty."""
    value = cell_number(cell, decimal)
    place = f"{NAME}, column {key!r}, row {row}"
    if value is not None and np.isfinite(value):
        return value
    if value is not None:
        raise InputError(f"{place}: {short_repr(cell.strip())[1:-1]} is not finite. Correct it.")
    if cell.strip():
        raise InputError(f"{place}: {no_number(cell, decimal)}.")
    return float("nan")


def _quoted(cell: str) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\r\n").writerow([cell])  # a cell with either mark is quoted
    return file.getvalue().removesuffix("\r\n")
