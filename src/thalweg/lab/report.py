"""Common parts of reports: choosing rows, numbers as text, tables and CSV."""

from __future__ import annotations

import csv
import functools
import io
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from thalweg._core.validate import visible

K = TypeVar("K")
Row = dict[str, Any]  # that JSON can hold
Results = Mapping[str, Row]  # results of the jobs of a study, by name

TIE = 0.02  # a smaller difference counts as none


# ------------------------------------------------------------------------------------------------------------ choosing


def part(results: Results, name: str) -> list[Row]:
    """The results of the jobs whose names begin with "name/", in order."""
    return [row for key, row in results.items() if key.startswith(f"{name}/")]


def pick(rows: Iterable[Row], **wanted: object) -> list[Row]:
    """The rows with these entries."""
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def group(rows: Iterable[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows that agree in these entries, together."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def distinct(rows: Iterable[Row], key: str) -> list[Any]:
    """Return the distinct values of a column, in order of appearance."""
    return list(dict.fromkeys(row[key] for row in rows))


def mean(rows: Iterable[Row], *keys: str) -> Any:
    """The mean of a column, or of a column of dicts in a column; None where nothing was measured."""
    found: list[Any] = [functools.reduce(operator.getitem, keys, row) for row in rows]
    values = [value for value in found if value is not None]
    return float(np.mean(values)) if values else None


# ------------------------------------------------------------------------------------------------------ numbers as text


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with this many digits, or all those before the point; a dash for None."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"


def spread(rows: Sequence[Row], key: str, digits: int = 3) -> str:
    """Mean ± standard deviation over repetitions, or the one value; a dash where nothing was measured."""
    values = [row[key] for row in rows if row[key] is not None]
    text = number(mean(rows, key), digits)
    return text if len(values) < 2 else f"{text} ± {number(float(np.std(values, ddof=1)), 2)}"


def duration(seconds: float) -> str:
    """A short time with its unit."""
    return f"{1e6 * seconds:.3g}\u00a0µs" if seconds < 1e-4 else f"{1e3 * seconds:.3g}\u00a0ms"


def ratio(value: float) -> str:
    """A ratio in two or three digits."""
    return f"{value:.2f}" if value < 0.995 else f"{value:.1f}" if value < 9.95 else f"{value:,.0f}"


class Ratios(dict[K, float]):
    """Ratios by name, and sentences about them."""

    @property
    def less(self) -> int:
        """How many are below 1 by more than `TIE`."""
        return sum(value < 1 - TIE for value in self.values())

    @property
    def more(self) -> int:
        """How many are above 1 by more than `TIE`."""
        return sum(value > 1 + TIE for value in self.values())

    @property
    def middle(self) -> float:
        """Their geometric mean."""
        return float(np.exp(np.mean(np.log(list(self.values())))))

    @property
    def low(self) -> K:
        """The name of the least."""
        return min(self, key=self.__getitem__)

    @property
    def high(self) -> K:
        """The name of the largest."""
        return max(self, key=self.__getitem__)

    def ends(self, form: Callable[[float], str] = ratio) -> str:
        """The least and the largest, with their names."""
        low, high = (f"{form(self[name])} times ({name})" for name in (self.low, self.high))
        return f"from {low} to {high} as much"


def ratios(ours: Mapping[str, Sequence[Row]], theirs: Mapping[str, Sequence[Row]], key: str) -> Ratios[str]:
    """By name: the mean of a column of ours relative to that of theirs."""
    return Ratios({name: mean(rows, key) / mean(theirs[name], key) for name, rows in ours.items()})


# -------------------------------------------------------------------------------------------------------------- tables


@dataclass(frozen=True)
class TextTable:
    """Heads and cells as text; `words` says which columns hold words."""

    heads: Sequence[str]
    body: Sequence[Sequence[str]]
    words: Sequence[int] = (0, 1)


def to_csv(rows: Sequence[Row], columns: Sequence[str] | None = None) -> bytes:
    """A line for each row: these columns, or all that hold no lists and no dicts.

    Text that a spreadsheet would take for a formula begins with an apostrophe; control characters are written out.
    """
    if columns is None:
        nested = {key for row in rows for key, value in row.items() if isinstance(value, list | dict)}
        columns = list(dict.fromkeys(key for row in rows for key in row if key not in nested))
    text = io.StringIO()
    lines = [columns, *([row.get(key) for key in columns] for row in rows)]
    csv.writer(text, lineterminator="\n").writerows([_harmless(cell) for cell in line] for line in lines)
    return text.getvalue().encode()


def _harmless(cell: object) -> object:
    """A cell that nothing runs: numbers as they are, text that looks like a formula after an apostrophe."""
    if not isinstance(cell, str):
        return cell
    try:
        float(cell)
    except ValueError:
        return ("'" if cell.startswith(("=", "+", "-", "@")) else "") + visible(cell)
    return cell
