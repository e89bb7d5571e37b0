"""What reports share: choosing rows, numbers as text, tables and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = [
    "Results", "Row", "TextTable", "duration", "group", "less_and_more", "mean", "number", "part", "pick", "ratio",
    "spread", "to_csv",
]  # fmt: skip

Row = dict[str, Any]
Results = Mapping[str, Row]  # what the jobs of a study returned, by name

TIE = 0.02  # a smaller difference counts as none


# ------------------------------------------------------------------------------------------------------------ choosing


def part(results: Results, name: str) -> list[Row]:
    """The results of the jobs whose names begin with "name/", in order."""
    return [row for key, row in results.items() if key.startswith(f"{name}/")]


def pick(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """The rows with these entries."""
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def group(rows: Iterable[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows that agree in these entries, together."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def mean(rows: Iterable[Row], key: str) -> Any:
    """The mean of a column; None where nothing was measured."""
    values = [row[key] for row in rows if row[key] is not None]
    return float(np.mean(values)) if values else None


def less_and_more(ratios: Iterable[float]) -> tuple[int, int]:
    """How many are below 1 and how many above, by more than `TIE`."""
    values = list(ratios)
    return sum(value < 1 - TIE for value in values), sum(value > 1 + TIE for value in values)


# ------------------------------------------------------------------------------------------------------ numbers as text


def number(value: float | None, digits: int = 3) -> str:
    """So many digits, or all those before the point; a dash for None."""
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


# -------------------------------------------------------------------------------------------------------------- tables


@dataclass(frozen=True)
class TextTable:
    """Heads and cells as text; `words` says which columns hold words."""

    heads: Sequence[str]
    body: Sequence[Sequence[str]]
    words: Sequence[int] = (0, 1)


def to_csv(rows: Sequence[Row], columns: Sequence[str] | None = None) -> bytes:
    """A line for each row: these columns, or all that hold no lists and no dicts."""
    if columns is None:
        nested = {key for row in rows for key, value in row.items() if isinstance(value, list | dict)}
        columns = list(dict.fromkeys(key for row in rows for key in row if key not in nested))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()
