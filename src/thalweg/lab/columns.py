"""Columns of a CSV or Parquet file as numbers: errors name the column, the row and a remedy.

Rows are counted from 1 without the header, in the order of the file.
"""

from __future__ import annotations

import csv
import io
import pathlib
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from thalweg._core.extras import need
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_choice, check_count, check_items, check_text, short_repr, visible, wrong
from thalweg.errors import InputError
from thalweg.estimators._rows import instant, read_moment

if TYPE_CHECKING:
    import polars as pl

MISSING = "raise", "drop", "previous"  # treatments of empty cells
COMMA = r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?"  # a number with a decimal comma
YES, NO = ("true", "yes"), ("false", "no")
NAMES_SHOWN = 20  # names in a message
GAP = 1.5  # usual steps of time, beyond which rows are missing
READERS = ".csv", ".tsv", ".txt", ".parquet", ".pq"  # endings of files


@dataclass(frozen=True)
class Columns:
    """Numbers of a table, by column.

    Attributes
    ----------
    name : str
        Of the file, fit to be shown.
    target, features : str, tuple of str
        The column that is predicted, and those it is predicted from.
    values : array (n,)
        The target.
    rows : array (n, d)
        The features.
    left_out : tuple of str
        Columns that hold no number at all.
    remarks : tuple of str
        Remarks on the rows: times that repeat, gaps, rows that were not read.
    """

    name: str
    target: str
    features: tuple[str, ...]
    values: Floats
    rows: Floats
    left_out: tuple[str, ...]
    remarks: tuple[str, ...]


def read_columns(
    source: str | pathlib.Path,
    target: str | None,
    *,
    features: Sequence[str] | None = None,
    time: str | None = None,
    missing: str = "raise",
    decimal: str = ".",
    rows: int | None = None,
) -> Columns:
    """Read the target and the features of a table.

    Parameters
    ----------
    source, target, features, rows
        As for `read_table`.
    time : str, optional
        The column with the time of a row. It must not go backwards, and is never a feature.
    missing : {"raise", "drop", "previous"}
        Treatment of empty cells: refuse, drop the row, or take the value of the row before.
    decimal : {".", ","}
        The mark before the decimals of a CSV file.
    """
    if not isinstance(source, str | pathlib.Path):
        raise wrong("read_table", "source", "a path", source)
    check_choice("read_table", "missing", missing, MISSING)
    check_choice("read_table", "decimal", decimal, (".", ","))
    if features is not None:
        names = check_items("read_table", "features", features, "names of columns")
        features = [check_text("read_table", "features", key) for key in names]
    name, frame, rest = _read(source, decimal, None if rows is None else check_count("read_table", "rows", rows))
    if len(frame) < 2:
        raise InputError(f"{name} has {len(frame)} row(s) of data. At least 2 are needed.")
    if target is None:
        raise InputError(f"{name}: say which column is the target. Its columns are {listed(frame.columns)}.")
    chosen, left_out = _choose(name, frame, check_text("read_table", "target", target), features, time)
    remarks = () if time is None else _check_order(name, frame[time])
    needed = {
        key: _numbers(name, frame[key], missing, features is None and key != target, decimal)
        for key in (target, *chosen)
    }
    kept = np.ones(len(frame), dtype=bool)
    if missing == "drop":
        kept = np.isfinite(np.array(list(needed.values()))).all(axis=0)
        if kept.sum() < 2:
            raise InputError(f"{name} has {kept.sum()} row(s) in which no cell is empty. At least 2 are needed.")
    table = np.array([needed[key] for key in chosen]).reshape(len(chosen), len(frame)).T
    remarks += rest
    return Columns(name, target, tuple(chosen), needed[target][kept], table[kept], tuple(left_out), remarks)


class Long(NamedTuple):
    """A table of one or many series, for `thalweg.estimators.long_frames`."""

    name: str  # of the file, fit to be shown
    frame: pl.DataFrame  # names of series, times, target and further columns
    rest: tuple[str, ...]  # a remark on the rows that were not read, if only the first ones were asked for
    unused: tuple[str, ...]  # columns with numbers that were not asked for


def read_long(
    source: str | pathlib.Path,
    target: str | None,
    *,
    id: str | None = None,
    time: str | None = None,
    columns: Sequence[str] = (),
    decimal: str = ".",
    rows: int | None = None,
) -> Long:
    """Read these columns of a table; empty cells are allowed, and null. Without a target: further columns only."""
    check_choice("read_long", "decimal", decimal, (".", ","))
    name, frame, rest = _read(source, decimal, rows)
    if len(frame) == 0:
        raise InputError(f"{name} has no rows of data.")
    check_named(name, frame.columns, target, id, time, columns)
    polars = _polars()
    wanted = [target, *columns] if target else columns
    numbers = {key: _numbers(name, frame[key], "drop", False, decimal) for key in wanted}
    made = [polars.Series(key, column, nan_to_null=True) for key, column in numbers.items()]
    if id:
        made.append(frame[id].str.strip_chars() if frame[id].dtype == polars.String else frame[id])
    if time:
        made.append(_times(name, frame[time]))
    chosen = {one.name for one in made}
    unused = tuple(key for key in frame.columns if key not in chosen and _parse(frame[key]).count())
    return Long(name, polars.DataFrame(made), rest, unused)


def check_named(
    name: str, names: Sequence[str], target: str | None, id: str | None, time: str | None, columns: Sequence[str]
) -> None:
    """Refuse columns that are not there, or that are named twice."""
    seen: dict[str, str] = {}
    for kind, key in (("target", target), ("id", id), ("time", time), *(("column", key) for key in columns)):
        if not key:
            continue
        if key not in names:
            raise InputError(f"{name} has no column {short_repr(key)} for --{kind}. Its columns are {listed(names)}.")
        if key in seen:
            raise InputError(f"The column {short_repr(key)} is given twice: as {seen[key]} and as {kind}.")
        seen[key] = kind


def _times(name: str, column: pl.Series, row: int = 1) -> pl.Series:
    """Return times as integers or dates; as they are, where some cell is neither. Rows are counted from `row`."""
    polars = _polars()
    times = _moments(column)
    if times.dtype == polars.Float64 and column.dtype == polars.String:
        whole = times.cast(polars.Int64, strict=False)
        fits = (whole == times).fill_null(False).to_numpy()
        if times[0] is not None and not fits.all():
            k = int(np.argmin(fits))
            place = f"{name}, column {column.name!r}, row {row + k}"
            if times[k] is None:
                raise InputError(f"{place}: {_no_time(column[k])}")
            raise InputError(
                f"{place}: {short_repr(column[k])[1:-1]} is no whole number. Times are whole numbers or dates; leave "
                "--time out to go by rows."
            )
        times = whole
    return column if times.null_count() > column.null_count() else times.alias(column.name)


def read_instant(name: str, column: str, cell: str, row: int) -> tuple[int, str]:
    """Return a time as a number, read as those of a file, and its kind: a whole number, or microseconds of a date."""
    polars = _polars()
    if not cell.strip():
        raise InputError(f"{name}, column {column!r}, row {row}: {_no_time(cell)}")
    times = _times(name, polars.Series(column, [cell], dtype=polars.String), row)
    if times.dtype == polars.Int64:
        return int(times[0]), "a whole number"
    try:
        moment = times[0] if times.dtype == polars.Datetime else read_moment(cell)
    except ValueError:
        raise InputError(f"{name}, column {column!r}, row {row}: {_no_time(cell)}") from None
    return instant(moment), "a date" if moment.tzinfo is None else "a date with a time zone"


def _choose(
    name: str, frame: pl.DataFrame, target: str, features: Sequence[str] | None, time: str | None
) -> tuple[list[str], list[str]]:
    """The columns of the features, checked; and those left out, since they hold no number."""
    columns, known, asked = frame.columns, set(frame.columns), features or ()
    for kind, keys in {"the time": [] if time is None else [time], "a target": [target], "a feature": asked}.items():
        for key in keys:
            if key not in known:
                raise InputError(
                    f"{name} has no column {short_repr(key)} for {kind}. Its columns are {listed(columns)}."
                )
    for twice, kind in ((time, "time"), (target, "target")):
        if twice in asked:
            raise InputError(f"The column {twice!r} is given twice: as the {kind} and as a feature.")
    if time == target:
        raise InputError(f"The column {time!r} is given twice: as the time and as target.")
    if (again := _repeated(asked)) is not None:
        raise InputError(f"The feature {short_repr(again)} is given twice.")
    if features is not None:
        return list(features), []
    numbers = {key: bool(_parse(frame[key]).count()) for key in columns if key not in (target, time)}
    left_out = [key for key, found in numbers.items() if not found]
    for key in left_out:
        if frame[key].dtype == _polars().String and re.fullmatch(COMMA, str(frame[key][0] or "").strip()):
            raise InputError(
                f"{name}, column {key!r}, row 1: {short_repr(frame[key][0])} is no number. Type --decimal , if that "
                "is its mark."
            )
    return [key for key, found in numbers.items() if found], left_out


def lagged(columns: Columns, lags: Sequence[int]) -> Columns:
    """Add earlier values of the target as features, "demand 24 back". The first rows, which have none, are dropped."""
    first, y = max(lags, default=0), columns.values
    if y.size < first + 2:
        raise InputError(f"{columns.name} has {y.size} rows. With a lag of {first} at least {first + 2} are needed.")
    past = [y[first - lag : y.size - lag] for lag in lags]
    names = tuple(f"{columns.target} {lag} back" for lag in lags)
    rows = np.column_stack([*past, columns.rows[first:]]) if lags else columns.rows
    return replace(columns, features=(*names, *columns.features), values=y[first:], rows=rows)


# -------------------------------------------------------------------------------------------------------------- reading


def _read(source: str | pathlib.Path, decimal: str, rows: int | None) -> tuple[str, pl.DataFrame, tuple[str, ...]]:
    """The name of a table, its first rows as they are, columns of a CSV as text, and a remark if there are more."""
    name = "standard input" if str(source) == "-" else visible(str(source))
    frame = _read_file(source, name, decimal)
    whole = len(frame)
    frame = frame if rows is None else frame.head(rows)
    if len(frame) == whole:
        return name, frame, ()
    return name, frame, (f"the first {rows} of {whole} rows; {whole - len(frame)} were left out",)


def _read_file(source: str | pathlib.Path, name: str, decimal: str) -> pl.DataFrame:
    """All rows of a table."""
    polars = _polars()
    if str(source) == "-":
        if sys.stdin is None:
            raise InputError("The standard input is closed. Name a file instead of -.")
        return _read_csv(sys.stdin.buffer.read(), name, decimal)
    path = pathlib.Path(source)
    ending = path.suffix.lower()
    if ending not in READERS:
        raise InputError(f"{name} has an ending that is not known. Known are {', '.join(READERS)}.")
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"There is no file {name}.") from None
    if ending not in (".parquet", ".pq"):
        return _read_csv(content, name, decimal)
    if not content:
        raise InputError(f"{name} is empty.")
    try:
        frame: pl.DataFrame = polars.read_parquet(io.BytesIO(content))
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException, OSError) as error:
        raise InputError(f"{name} is no Parquet file that can be read: {_first_line(error)}") from None
    return frame


def _read_csv(content: bytes, name: str, decimal: str) -> pl.DataFrame:
    """A CSV as text; numbers with a decimal comma get a point."""
    polars = _polars()
    if not content.strip():
        raise InputError(f"{name} is empty.")
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name} is no text in UTF-8: see line {line}. Save it as UTF-8.") from None
    separator = separator_of(header_of(io.StringIO(content.decode("utf-8-sig").lstrip(), newline="")))
    try:
        frame: pl.DataFrame = polars.read_csv(
            io.BytesIO(content), has_header=False, infer_schema_length=0, separator=separator
        )
    except polars.exceptions.PolarsError as error:
        _refuse_ragged(content, separator, name)
        reason = "a quotation mark is never closed." if content.count(b'"') % 2 else _first_line(error)
        raise InputError(f"{name} is no CSV that can be read: {reason}") from None
    names = _names(name, frame.row(0))
    frame = frame.slice(1)
    frame.columns = names
    while len(frame) and all(cell is None for cell in frame.row(-1)):  # blank lines at the end
        frame = frame.head(-1)
    if frame[names[-1]].null_count():  # a row that is too short has none in its last column
        _refuse_ragged(content, separator, name)
    if decimal == ".":
        return frame
    cells = [polars.col(key) for key in names]
    numbers = (cell.str.contains(rf"^\s*{COMMA}\s*$") for cell in cells)
    return frame.with_columns(
        polars.when(number).then(cell.str.replace(",", ".", literal=True)).otherwise(cell)
        for cell, number in zip(cells, numbers, strict=True)
    )


def header_of(lines: Iterator[str]) -> str:
    """Take the header from the lines of a CSV: one line, or several where a name in quotation marks has line breaks."""
    header = ""
    for line in lines:
        header += line
        if header.count('"') % 2 == 0:
            break
    return header


def read_header(header: str, name: str) -> tuple[list[str], str]:
    """Return the names of columns, each another, and the mark between them."""
    mark = separator_of(header)
    try:
        cells = next(csv.reader(io.StringIO(header.lstrip("\ufeff"), newline=""), delimiter=mark), [])
    except csv.Error as error:
        raise InputError(f"{name}: its header cannot be read: {error}.") from None
    return _names(name, cells), mark


def _names(name: str, cells: Sequence[object]) -> list[str]:
    names = [str(cell or "").strip() or f"unnamed_{k}" for k, cell in enumerate(cells, start=1)]
    if (twice := _repeated(names)) is not None:
        raise InputError(f"{name} has two columns called {short_repr(twice)}. Give each a name of its own.")
    return names


def _repeated(names: Sequence[str]) -> str | None:
    """Return the first name that is there twice."""
    return next((key for key, count in Counter(names).items() if count > 1), None)


def listed(names: Sequence[str]) -> str:
    """Names for a message: all, or the first ones of many."""
    shown = ", ".join(short_repr(key)[1:-1] for key in names[:NAMES_SHOWN])
    return shown if len(names) <= NAMES_SHOWN else f"{shown}, ... ({len(names)} in all)"


def separator_of(header: str) -> str:
    """The mark between the cells of a CSV: the one that its header has most of."""
    return max(",;\t", key=header.count)


def _refuse_ragged(content: bytes, separator: str, name: str) -> None:
    """Name the first row that is longer or shorter than the header, if there is one."""
    text = io.StringIO(content.decode("utf-8-sig"), newline="")
    try:
        rows = (row for row in csv.reader(text, delimiter=separator) if row)
        wanted = len(next(rows, []))
        for number, row in enumerate(rows, start=1):
            if len(row) != wanted:
                raise InputError(f"{name}, row {number}: {len(row)} value(s), but the header names {wanted} column(s).")
    except csv.Error:
        return  # not even the forgiving reader understands it; the caller says so


def _polars() -> ModuleType:
    return need("polars", "lab", "Reading a table")


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


# -------------------------------------------------------------------------------------------------------------- numbers


def _parse(column: pl.Series) -> pl.Series:
    """The numbers of a column, null where a cell is none. Truth values are 1 and 0, in words too."""
    polars = _polars()
    if column.dtype == polars.String:
        text = column.str.strip_chars()
        numbers = text.cast(polars.Float64, strict=False)
        if numbers.null_count() == column.null_count():
            return numbers
        words = {**dict.fromkeys(YES, 1.0), **dict.fromkeys(NO, 0.0)}
        truths = text.str.to_lowercase().replace_strict(words, default=None, return_dtype=polars.Float64)
        return numbers if numbers.count() else truths
    if column.dtype.is_numeric() or column.dtype == polars.Boolean:
        return column.cast(polars.Float64, strict=False)
    nothing: pl.Series = polars.Series(column.name, [None] * len(column), dtype=polars.Float64)
    return nothing


def cell_number(cell: str, decimal: str) -> float | None:
    """The number of one cell of a CSV, as `read_columns` reads it; None where it holds none."""
    text = cell.strip()
    if decimal == "," and re.fullmatch(COMMA, text):
        text = text.replace(",", ".")
    if text.lower() in (*YES, *NO):
        return float(text.lower() in YES)
    try:
        return float(text) if "_" not in text else None
    except ValueError:
        return None


def no_number(cell: str, decimal: str) -> str:
    """Return the message for a cell that holds no number, with a remedy."""
    comma = ", or type --decimal , if that is its mark" if decimal == "." and re.fullmatch(COMMA, cell.strip()) else ""
    return f"{short_repr(cell.strip())} is no number. Correct it{comma}"


def _numbers(name: str, column: pl.Series, missing: str, optional: bool, decimal: str) -> Floats:
    """The finite numbers of a column, or an error that names the first cell that holds none.

    Empty cells are nan where rows are to be dropped, and the value of the row before where that is wanted. `optional`
    is a column that was not asked for by name.
    """
    parsed = _parse(column)
    numbers: Floats = parsed.fill_null(np.nan).to_numpy().astype(np.float64)
    bad = ~np.isfinite(numbers)
    if missing != "raise" and bad.any():
        empty = np.array([cell is None or not str(cell).strip() for cell in column])
        bad &= ~empty
        if missing == "previous" and not bad.any():
            if empty[0]:
                raise InputError(
                    f"{name}, column {column.name!r}, row 1: the cell is empty and there is no row before. Type "
                    "--missing drop."
                )
            latest = np.maximum.accumulate(np.where(empty, 0, np.arange(numbers.size)))
            numbers = numbers[latest]
    if not bad.any():
        return numbers
    k = int(np.argmax(bad))
    cell = column[k]
    place = f"{name}, column {column.name!r}, row {k + 1}"
    others = ", or leave the column out: --features with those you need" if optional else ""
    if cell is None or not str(cell).strip():
        raise InputError(f"{place}: the cell is empty. Fill it, or type --missing drop or --missing previous{others}.")
    if parsed[k] is None:
        raise InputError(f"{place}: {no_number(str(cell), decimal)}{others}.")
    raise InputError(
        f"{place}: {short_repr(str(cell).strip())[1:-1]} is not finite. Correct it or drop the row{others}."
    )


# ---------------------------------------------------------------------------------------------------------------- times


def _moments(column: pl.Series) -> pl.Series:
    """Times that can be compared: numbers where a cell is one, else dates, else the text as it is."""
    polars = _polars()
    if column.dtype != polars.String:
        return column
    text = column.str.strip_chars()
    numbers = text.cast(polars.Float64, strict=False)
    if numbers.count():
        return numbers
    try:
        dates = text.str.to_datetime(strict=False)
    except polars.exceptions.PolarsError:  # no date at all
        return text
    return dates if dates.count() else text


def _check_order(name: str, column: pl.Series) -> tuple[str, ...]:
    """Refuse a column of times that goes backwards, or has an empty cell. Return remarks on repeats and gaps."""
    times = _moments(column)
    place = f"{name}, column {column.name!r}, row"
    empty = np.flatnonzero(times.is_null().to_numpy())
    if empty.size:
        raise InputError(f"{place} {empty[0] + 1}: {_no_time(column[int(empty[0])])}")
    try:
        ahead, level = times.head(-1) > times.tail(-1), times.head(-1) == times.tail(-1)
    except _polars().exceptions.PolarsError:
        raise InputError(f"{place} 1: times of type {column.dtype} have no order. Leave --time out.") from None
    back = np.flatnonzero(ahead.to_numpy())
    if back.size:
        k = int(back[0]) + 1
        before, now = (short_repr(str(column[row]))[1:-1] for row in (k - 1, k))
        raise InputError(f"{place} {k + 1}: time goes back, from {before} to {now}. Sort the rows by time.")
    return _repeats(column, np.flatnonzero(level.to_numpy()) + 1) + _gaps(column, times)


def _no_time(cell: object) -> str:
    what = "the cell is empty" if cell is None or not str(cell).strip() else f"{short_repr(str(cell))} is no time"
    return f"{what}. Correct it, or leave --time out."


def _repeats(column: pl.Series, rows: Ints) -> tuple[str, ...]:
    if not rows.size:
        return ()
    first = int(rows[0])
    return (
        f"{column.name}: {rows.size} row(s) have the time of the row before, first row {first + 1}, {column[first]}",
    )


def _gaps(column: pl.Series, times: pl.Series) -> tuple[str, ...]:
    """Tell of gaps where most steps are the same: longer ones than that and a half."""
    if not (times.dtype.is_numeric() or times.dtype.is_temporal()) or len(times) < 4:
        return ()
    steps = times.diff().to_physical().cast(_polars().Float64).to_numpy()[1:]
    sizes, counts = np.unique(steps[steps > 0], return_counts=True)
    if not counts.size or 2 * counts.max() < counts.sum():
        return ()
    usual = sizes[np.argmax(counts)]
    wide = np.flatnonzero(steps > GAP * usual) + 1
    if not wide.size:
        return ()
    k = int(wide[np.argmax(steps[wide - 1])])
    missing = round(steps[k - 1] / usual) - 1
    return (
        f"{column.name}: {wide.size} gap(s); the longest, of {missing} row(s), is before row {k + 1}, from "
        f"{column[k - 1]} to {column[k]}",
    )
