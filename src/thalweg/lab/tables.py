"""A table of features and a target, from a CSV or Parquet file, as a stream.

Every row is a round, in the order of the file. Invalid cells are refused, with their column and row; rows
are counted from 1 without the header.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thalweg._core.types import Floats
from thalweg._core.validate import check_choice, check_count, check_flag, check_items, wrong
from thalweg.errors import InputError
from thalweg.lab.catalog import build_domain
from thalweg.lab.columns import lagged, read_columns
from thalweg.lab.streams import Stream, measured
from thalweg.problems.linear_model import LinearModel

LOSSES = ("squared", "absolute", "logistic", "huber", "pinball", "hinge")
DOMAIN = "ball:radius=3"
LONGEST_LAG = 100_000


@dataclass(frozen=True)
class Table:
    """A stream made of a table, and how it was made.

    Attributes
    ----------
    stream : Stream
        Its constants were computed from the whole table, as were the scales: no learner in practice knows them in
        advance. A bound of your own, from the meaning of the columns, is better.
    target : str
        The column that is predicted.
    features : tuple of str
        The columns it is predicted from, one for each entry of a decision; "intercept" is a column of ones.
    scales : dict
        The divisor of each column.
    left_out : tuple of str
        Columns that hold no number at all.
    remarks : tuple of str
        Remarks on the rows: times that repeat, gaps, rows that were not read.
    """

    stream: Stream
    target: str
    features: tuple[str, ...]
    scales: dict[str, float]
    left_out: tuple[str, ...]
    remarks: tuple[str, ...]


def read_table(
    source: str | pathlib.Path,
    target: str | None,
    *,
    features: Sequence[str] | None = None,
    loss: str = "squared",
    domain: str = DOMAIN,
    intercept: bool = True,
    scale: bool = True,
    rows: int | None = None,
    lags: int | Sequence[int] = 0,
    time: str | None = None,
    missing: str = "raise",
    decimal: str = ".",
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
    rows : int, optional
        Read only this number of rows, the first ones.
    lags : int or sequence of int
        Earlier values of the target as features: 8 for the last 8, (1, 24) for these. The first rows then go.
    time, missing, decimal
        As for `read_columns`.

    Returns
    -------
    Table
    """
    check_choice("read_table", "loss", loss, LOSSES)
    intercept, scale = (check_flag("read_table", *flag) for flag in (("intercept", intercept), ("scale", scale)))
    shared = {"features": features, "time": time, "missing": missing, "decimal": decimal, "rows": rows}
    columns = lagged(read_columns(source, target, **shared), _read_lags(lags))  # type: ignore[arg-type]
    name, target, chosen = columns.name, columns.target, list(columns.features)
    labels, table = columns.values, columns.rows.T
    if not table.any() and not intercept:
        raise InputError(f"{name} has no feature that is not 0 in every row, and no intercept is wanted.")

    scales = dict.fromkeys((*chosen, target), 1.0)
    if scale:
        named = zip((*chosen, target), (*table, labels), strict=True)
        scales = {key: float(np.abs(column).max()) or 1.0 for key, column in named}  # 1 where all are 0
    if loss in ("logistic", "hinge"):
        labels = _signs(name, target, labels, loss)
    table = table / np.array([scales[key] for key in chosen])[:, None]
    if intercept:
        table, chosen = np.vstack([table, np.ones(labels.size)]), [*chosen, "intercept"]
    problem = LinearModel(table.T, labels / scales[target], loss)
    stream = measured(pathlib.Path(name).name, build_domain(domain, len(chosen)), problem)
    return Table(stream, target, tuple(chosen), scales, columns.left_out, columns.remarks)


def _read_lags(lags: object) -> tuple[int, ...]:
    """Return lags in ascending order; a number n means 1..n."""
    if isinstance(lags, int | np.integer) and not isinstance(lags, bool):
        return tuple(range(1, check_count("read_table", "lags", lags, least=0, most=LONGEST_LAG) + 1))
    items = check_items("read_table", "lags", lags, "a number, or a list of whole numbers")
    found = sorted(check_count("read_table", "lags", item, most=LONGEST_LAG) for item in items)
    if len(set(found)) < len(found):
        raise wrong("read_table", "lags", "a list of different whole numbers", lags)
    return tuple(found)


def _signs(name: str, target: str, labels: Floats, loss: str) -> Floats:
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
