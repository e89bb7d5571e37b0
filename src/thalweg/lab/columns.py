"""Columns of a CSV or Parquet file as numbers: what is wrong is named by column and row, with what to do.

Rows are counted from 1 without the header, in the order of the file.
"""

from __future__ import annotations

import csv
import io
import pathlib
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thalweg._extras import need
from thalweg._validate import check_choice, check_count, check_items, check_text, visible, wrong
from thalweg.errors import InputError

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "MISSING",
    "READERS",
    "Columns",
    "cell_number",
    "check_order",
    "choose_columns",
    "lagged",
    "read_columns",
    "separator_of",
]

Array = NDArray[np.float64]

MISSING = "raise", "drop", "previous"  # what to do where a cell is empty
COMMA = r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?"  # a number with a decimal comma
YES, NO = ("true", "yes"), ("false", "no")
READERS = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet"}


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
    time : str or None
        The column that says when.
    times : list of str
        What it says, row by row; the numbers of the rows, counted from 1, where there is none.
    left_out : tuple of str
        Columns that hold no number at all.
    dropped : int
        Rows that were dropped since a cell was empty.
    """

    name: str
    target: str
    features: tuple[str, ...]
    values: Array
    rows: Array
    time: str | None
    times: list[str]
    left_out: tuple[str, ...]
    dropped: int


def read_columns(
    source: str | pathlib.Path,
    target: str | None,
    *,
    features: Sequence[str] | None = None,
    time: str | None = None,
    missing: str = "raise",
    decimal: str = ".",
    horizon: int | None = None,
) -> Columns:
    """Read the target and the features of a table.

    Parameters
    ----------
    source, target, features, horizon
        As for `read_table`.
    time : str, optional
        The column that says when a row was. It must not go backwards, and is never a feature.
    missing : {"raise", "drop", "previous"}
        What to do where a cell is empty: refuse, drop the row, or take what the row before had.
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
    name = "standard input" if str(source) == "-" else visible(str(source))
    frame = _read(source, name, decimal)
    if horizon is not None:
        frame = frame.head(check_count("read_table", "horizon", horizon))
    if len(frame) < 2:
        raise InputError(f"{name} has {len(frame)} row(s) of data. At least 2 are needed.")
    if target is None:
        raise InputError(f"{name}: say which column is the target. Its columns are {', '.join(frame.columns)}.")
    chosen, left_out = choose_columns(name, frame, check_text("read_table", "target", target), features, time)
    if time is not None:
        check_order(name, frame[time])
    needed = {key: _numbers(name, frame[key], missing, features is None and key != target) for key in (target, *chosen)}
    kept = np.ones(len(frame), dtype=bool)
    if missing == "drop":
        kept = np.isfinite(np.array(list(needed.values()))).all(axis=0)
        if kept.sum() < 2:
            raise InputError(f"{name} has {kept.sum()} row(s) in which no cell is empty. At least 2 are needed.")
    rows = np.array([needed[key] for key in chosen]).reshape(len(chosen), len(frame)).T
    said = frame[time].to_list() if time is not None else range(1, len(frame) + 1)
    times = [str(one) for one, keep in zip(said, kept, strict=True) if keep]
    dropped = int((~kept).sum())
    return Columns(name, target, tuple(chosen), needed[target][kept], rows[kept], time, times, tuple(left_out), dropped)


def choose_columns(
    name: str, frame: pl.DataFrame, target: str, features: Sequence[str] | None, time: str | None
) -> tuple[list[str], list[str]]:
    """The columns of the features, checked; and those left out, since they hold no number."""
    if time is not None:
        if time not in frame.columns:
            raise InputError(f"{name} has no column {time!r} for the time. Its columns are {', '.join(frame.columns)}.")
        if time == target or time in (features or ()):
            what = "target" if time == target else "a feature"
            raise InputError(f"The column {time!r} is given twice: as the time and as {what}.")
    chosen = [key for key in _choose(name, frame.columns, target, features) if key != time]
    left_out = [key for key in chosen if features is None and not _parse(frame[key]).count()]
    for key in left_out:
        if frame[key].dtype == _polars().String and re.fullmatch(COMMA, str(frame[key][0] or "").strip()):
            raise InputError(
                f"{name}, column {key!r}, row 1: {frame[key][0]!r} is no number. Type --decimal , if that is its mark."
            )
    return [key for key in chosen if key not in left_out], left_out


def lagged(columns: Columns, lags: Sequence[int]) -> Columns:
    """With earlier values of the target as features, "demand 24 back". The first rows, which have none, go."""
    first, y = max(lags, default=0), columns.values
    if y.size < first + 2:
        raise InputError(f"{columns.name} has {y.size} rows. With a lag of {first} at least {first + 2} are needed.")
    past = [y[first - lag : y.size - lag] for lag in lags]
    names = tuple(f"{columns.target} {lag} back" for lag in lags)
    rows = np.column_stack([*past, columns.rows[first:]]) if lags else columns.rows
    return replace(
        columns, features=(*names, *columns.features), values=y[first:], rows=rows, times=columns.times[first:]
    )


def _choose(name: str, columns: list[str], target: str, features: Sequence[str] | None) -> list[str]:
    """The columns of the features, checked."""
    for key in (target, *(features or ())):
        if key not in columns:
            kind = "target" if key == target else "feature"
            raise InputError(f"{name} has no column {key!r} for a {kind}. Its columns are {', '.join(columns)}.")
    if features is None:
        return [key for key in columns if key != target]
    if target in features:
        raise InputError(f"The column {target!r} is given twice: as the target and as a feature.")
    twice = [key for k, key in enumerate(features) if key in features[:k]]
    if twice:
        raise InputError(f"The feature {twice[0]!r} is given twice.")
    return list(features)


# -------------------------------------------------------------------------------------------------------------- reading


def _read(source: str | pathlib.Path, name: str, decimal: str) -> pl.DataFrame:
    """The table as it is; columns of a CSV are text."""
    polars = _polars()
    if str(source) == "-":
        if sys.stdin is None:
            raise InputError("The standard input is closed. Name a file instead of -.")
        return _decimals(_read_csv(sys.stdin.buffer.read(), name), decimal)
    path = pathlib.Path(source)
    kind = READERS.get(path.suffix.lower())
    if kind is None:
        raise InputError(f"{name} has an ending that is not known. Known are {', '.join(READERS)}.")
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"There is no file {name}.") from None
    if kind == "csv":
        return _decimals(_read_csv(content, name), decimal)
    if not content:
        raise InputError(f"{name} is empty.")
    try:
        frame: pl.DataFrame = polars.read_parquet(io.BytesIO(content))
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException, OSError) as error:
        raise InputError(f"{name} is no Parquet file that can be read: {_first_line(error)}") from None
    return frame


def _decimals(frame: pl.DataFrame, decimal: str) -> pl.DataFrame:
    """Cells with a decimal point, of one whose numbers have another mark there."""
    if decimal == ".":
        return frame
    polars = _polars()
    return frame.with_columns(
        polars.when(polars.col(key).str.contains(rf"^\s*{COMMA}\s*$"))
        .then(polars.col(key).str.replace(",", ".", literal=True))
        .otherwise(polars.col(key))
        .alias(key)
        for key in frame.columns
    )


def _read_csv(content: bytes, name: str) -> pl.DataFrame:
    polars = _polars()
    if not content.strip():
        raise InputError(f"{name} is empty.")
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name} is no text in UTF-8: see line {line}. Save it as UTF-8.") from None
    separator = separator_of(content.lstrip().partition(b"\n")[0].decode())
    try:
        frame: pl.DataFrame = polars.read_csv(
            io.BytesIO(content), has_header=False, infer_schema_length=0, separator=separator
        )
    except polars.exceptions.PolarsError as error:
        _refuse_ragged(content, separator, name)
        reason = "a quotation mark is never closed." if content.count(b'"') % 2 else _first_line(error)
        raise InputError(f"{name} is no CSV that can be read: {reason}") from None
    names = [str(cell or "").strip() or f"unnamed_{k}" for k, cell in enumerate(frame.row(0), start=1)]
    twice = [key for k, key in enumerate(names) if key in names[:k]]
    if twice:
        raise InputError(f"{name} has two columns called {twice[0]!r}. Give each a name of its own.")
    frame = frame.slice(1)
    frame.columns = names
    while len(frame) and all(cell is None for cell in frame.row(-1)):  # blank lines at the end
        frame = frame.head(-1)
    if frame[names[-1]].null_count():  # a row that is too short has none in its last column
        _refuse_ragged(content, separator, name)
    return frame


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


def _polars() -> Any:
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


def _numbers(name: str, column: pl.Series, missing: str = "raise", optional: bool = False) -> Array:
    """The finite numbers of a column, or an error that names the first cell that holds none.

    Empty cells are nan where rows are to be dropped, and what the row before had where that is wanted. `optional` is a
    column that nobody asked for by name.
    """
    parsed = _parse(column)
    numbers: Array = parsed.fill_null(np.nan).to_numpy().astype(np.float64)
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
        comma = ", or type --decimal , if that is its mark" if "," in str(cell) else ""
        raise InputError(f"{place}: {str(cell)!r} is no number. Correct it{comma}{others}.")
    raise InputError(f"{place}: {str(cell).strip()} is not finite. Correct it or drop the row{others}.")


def check_order(name: str, column: pl.Series) -> None:
    """Refuse a column of times that goes backwards, or has an empty cell."""
    polars = _polars()
    times = column
    if column.dtype == polars.String:
        times = column.str.strip_chars()
        numbers = times.cast(polars.Float64, strict=False)
        dates = times.str.to_datetime(strict=False) if not numbers.count() else None
        times = numbers if numbers.count() else dates if dates is not None and dates.count() else times
    place = f"{name}, column {column.name!r}, row"
    empty = np.flatnonzero(times.is_null().to_numpy())
    if empty.size:
        cell = column[int(empty[0])]
        what = "the cell is empty" if cell is None or not str(cell).strip() else f"{str(cell)!r} is no time"
        raise InputError(f"{place} {empty[0] + 1}: {what}. Correct it, or leave --time out.")
    back = np.flatnonzero((times.head(-1) > times.tail(-1)).to_numpy()) if len(times) > 1 else np.zeros(0, dtype=int)
    if back.size:
        k = int(back[0]) + 1
        raise InputError(
            f"{place} {k + 1}: time goes back, from {column[k - 1]} to {column[k]}. Sort the rows by time."
        )
