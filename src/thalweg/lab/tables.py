"""A table of features and a target, from a CSV or Parquet file, as a stream.

Every row is a round, in the order of the file. What cannot be played is refused, with its column and row named; rows
are counted from 1 without the header.
"""

from __future__ import annotations

import csv
import io
import pathlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thalweg._extras import need
from thalweg._validate import check_choice, check_count, check_flag, check_items, check_text, visible, wrong
from thalweg.errors import InputError
from thalweg.lab.catalog import build_domain
from thalweg.lab.streams import Stream, measured
from thalweg.problems import LinearModel

if TYPE_CHECKING:
    import polars as pl

__all__ = ["LOSSES", "Table", "read_table"]

Array = NDArray[np.float64]

LOSSES = ("squared", "absolute", "logistic", "huber", "pinball", "hinge")
DOMAIN = "ball:radius=3"
READERS = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet"}


@dataclass(frozen=True)
class Table:
    """A stream made of a table, and what was done to make it.

    Attributes
    ----------
    stream : Stream
        Its constants were computed from the whole table, as were the scales: no learner in the field knows them
        beforehand. A bound of your own, from what the columns mean, is better.
    target : str
        The column that is predicted.
    features : tuple of str
        The columns it is predicted from, one for each entry of a decision; "intercept" is a column of ones.
    scales : dict
        What each column was divided by.
    left_out : tuple of str
        Columns that hold no number at all.
    """

    stream: Stream
    target: str
    features: tuple[str, ...]
    scales: dict[str, float]
    left_out: tuple[str, ...]


def read_table(
    source: str | pathlib.Path,
    target: str | None,
    *,
    features: Sequence[str] | None = None,
    loss: str = "squared",
    domain: str = DOMAIN,
    intercept: bool = True,
    scale: bool = True,
    horizon: int | None = None,
) -> Table:
    """Read a table of features and a target.

    Parameters
    ----------
    source : path
        A .csv, .tsv or .txt file with a header (separated by commas, semicolons or tabs), a .parquet file, or "-" for
        CSV from the standard input.
    target : str
        The column to predict. None is refused, with the columns named.
    features : sequence of str, optional
        The columns to predict it from; all other columns with numbers when left out.
    loss : {"squared", "absolute", "logistic", "huber", "pinball", "hinge"}
        Of the prediction; for "logistic" and "hinge" the target must be -1 and +1, or 0 and 1.
    domain : str
        Where decisions lie, as in `build_domain`.
    intercept : bool
        Add a column of ones.
    scale : bool
        Divide each feature and the target by its largest absolute value (1 for classes).
    horizon : int, optional
        Read only the first so many rows.

    Returns
    -------
    Table
    """
    check_choice("read_table", "loss", loss, LOSSES)
    intercept, scale = (check_flag("read_table", *flag) for flag in (("intercept", intercept), ("scale", scale)))
    if not isinstance(source, str | pathlib.Path):
        raise wrong("read_table", "source", "a path", source)
    if features is not None:
        names = check_items("read_table", "features", features, "names of columns")
        features = [check_text("read_table", "features", key) for key in names]
    name = "standard input" if str(source) == "-" else visible(str(source))
    frame = _read(source, name)
    if horizon is not None:
        frame = frame.head(check_count("read_table", "horizon", horizon))
    if len(frame) < 2:
        raise InputError(f"{name} has {len(frame)} row(s) of data. At least 2 are needed.")
    if target is None:
        raise InputError(f"{name}: say which column is the target. Its columns are {', '.join(frame.columns)}.")
    chosen = _choose(name, frame.columns, check_text("read_table", "target", target), features)
    left_out = [key for key in chosen if features is None and not _parse(frame[key]).count()]
    chosen = [key for key in chosen if key not in left_out]
    labels = _numbers(name, frame[target])
    rows = np.array([_numbers(name, frame[key]) for key in chosen]).reshape(len(chosen), len(frame))
    if not rows.any() and not intercept:
        raise InputError(f"{name} has no feature that is not 0 in every row, and no intercept is wanted.")

    scales = dict.fromkeys((*chosen, target), 1.0)
    if scale:
        columns = zip((*chosen, target), (*rows, labels), strict=True)
        scales = {key: float(np.abs(column).max()) or 1.0 for key, column in columns}  # 1 where all are 0
    if loss in ("logistic", "hinge"):
        labels = _signs(name, target, labels, loss)
    rows = rows / np.array([scales[key] for key in chosen])[:, None]
    if intercept:
        rows, chosen = np.vstack([rows, np.ones(len(frame))]), [*chosen, "intercept"]
    problem = LinearModel(rows.T, labels / scales[target], loss)
    stream = measured(pathlib.Path(name).name, build_domain(domain, len(chosen)), problem)
    return Table(stream, target, tuple(chosen), scales, tuple(left_out))


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


def _read(source: str | pathlib.Path, name: str) -> pl.DataFrame:
    """The table as it is; columns of a CSV are text."""
    polars = _polars()
    if str(source) == "-":
        if sys.stdin is None:
            raise InputError("The standard input is closed. Name a file instead of -.")
        return _read_csv(sys.stdin.buffer.read(), name)
    path = pathlib.Path(source)
    kind = READERS.get(path.suffix.lower())
    if kind is None:
        raise InputError(f"{name} has an ending that is not known. Known are {', '.join(READERS)}.")
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"There is no file {name}.") from None
    if kind == "csv":
        return _read_csv(content, name)
    if not content:
        raise InputError(f"{name} is empty.")
    try:
        frame: pl.DataFrame = polars.read_parquet(io.BytesIO(content))
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException, OSError) as error:
        raise InputError(f"{name} is no Parquet file that can be read: {_first_line(error)}") from None
    return frame


def _read_csv(content: bytes, name: str) -> pl.DataFrame:
    polars = _polars()
    if not content.strip():
        raise InputError(f"{name} is empty.")
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name} is no text in UTF-8: see line {line}. Save it as UTF-8.") from None
    header = content.lstrip().partition(b"\n")[0]
    separator = max(",;\t", key=lambda mark: header.count(mark.encode()))
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
    """The numbers of a column, null where a cell is none."""
    polars = _polars()
    if column.dtype == polars.String:
        return column.str.strip_chars().cast(polars.Float64, strict=False)
    if column.dtype.is_numeric() or column.dtype == polars.Boolean:
        return column.cast(polars.Float64, strict=False)
    nothing: pl.Series = polars.Series(column.name, [None] * len(column), dtype=polars.Float64)
    return nothing


def _numbers(name: str, column: pl.Series) -> Array:
    """The finite numbers of a column, or an error that names the first cell that holds none."""
    parsed = _parse(column)
    numbers: Array = parsed.fill_null(np.nan).to_numpy().astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if not bad.size:
        return numbers
    k = int(bad[0])
    cell = column[k]
    place = f"{name}, column {column.name!r}, row {k + 1}"
    if cell is None or not str(cell).strip():
        raise InputError(f"{place}: the cell is empty. Fill it or drop the row.")
    if parsed[k] is None:
        raise InputError(f"{place}: {str(cell)!r} is no number. Correct it, or use other columns.")
    raise InputError(f"{place}: {str(cell).strip()} is not finite. Correct it or drop the row.")


def _signs(name: str, target: str, labels: Array, loss: str) -> Array:
    """Classes as -1 and +1."""
    if np.isin(labels, (0.0, 1.0)).all():
        return 2 * labels - 1
    bad = np.flatnonzero(~np.isin(labels, (-1.0, 1.0)))
    if bad.size:
        k = int(bad[0])
        raise InputError(
            f"{name}, column {target!r}, row {k + 1}: the {loss} loss needs classes -1 and +1, or 0 and 1. "
            f"Got {labels[k]:g}."
        )
    return labels
