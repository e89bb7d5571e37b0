"""From a table to a forecast: every row forecast before it is seen, beside what one would have got for free.

Errors are in the units of the target. Simple forecasts are made of the same rows; those in hindsight know all of them
and are no forecasts, but show what there was to be had.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thalweg._extras import need
from thalweg._validate import told, visible
from thalweg.errors import InputError
from thalweg.estimators.forecaster import Forecaster
from thalweg.lab._say import aligned
from thalweg.lab.columns import Columns, Order, cell_number, header_of, lagged, listed, no_number, read_header
from thalweg.lab.pictures import panels, save
from thalweg.lab.report import number
from thalweg.parts.linear import WIDEST
from thalweg.regret._axes import plain

__all__ = ["Outcome", "as_page", "as_table", "forecast", "in_words", "live", "picture"]

Array = NDArray[np.float64]

OURS, LAST, MEAN = "forecast", "repeating the last value", "mean of all values so far"
WORSE = 1.0  # of the loss of the simplest forecast: beyond, a reader is told
SHOWN = 400  # rows of a picture


@dataclass(frozen=True)
class Outcome:
    """Forecasts of all rows, and what they are to be held against.

    Attributes
    ----------
    columns : Columns
        The data.
    forecasts : dict
        Of every row by name: "forecast" is ours; nan where there was no past to forecast from.
    hindsight : dict
        The same, of what knows all rows.
    weights : array (n, 2)
        How much the simple forecast and the model counted, row by row.
    loss : str
        "squared" or "absolute".
    lags : tuple of int
        Of the series itself.
    """

    columns: Columns
    forecasts: dict[str, Array]
    hindsight: dict[str, Array]
    weights: Array
    loss: str
    lags: tuple[int, ...]

    @property
    def scored(self) -> NDArray[np.bool_]:
        """The rows that all forecasts have."""
        known: NDArray[np.bool_] = np.isfinite(np.array(list(self.forecasts.values()))).all(axis=0)
        return known

    def rows(self) -> list[dict[str, Any]]:
        """Errors of each forecast over the scored rows, and its loss over that of repeating the last value."""
        y, scored = self.columns.values, self.scored
        losses = {name: self._loss(p)[scored] for name, p in (self.forecasts | self.hindsight).items()}
        least = float(losses[LAST].mean())
        table = []
        for name, p in (self.forecasts | self.hindsight).items():
            error = (y - p)[scored]
            mean = float(losses[name].mean())
            table.append({
                "forecast": name,
                "rmse": float(np.sqrt((error**2).mean())),
                "mae": float(np.abs(error).mean()),
                "ratio": mean / least if least > 0 else (1.0 if mean == 0 else float("inf")),
                "hindsight": name in self.hindsight,
            })  # fmt: skip
        return table

    def _loss(self, p: Array) -> Array:
        error = self.columns.values - p
        loss: Array = error**2 if self.loss == "squared" else np.abs(error)
        return loss

    @property
    def warning(self) -> str | None:
        """What to tell a user whose forecast is no better than a simple one."""
        rows = {row["forecast"]: row["ratio"] for row in self.rows()}
        best = min((name for name in self.forecasts if name != OURS), key=lambda name: rows[name])
        if rows[OURS] <= WORSE * rows[best]:
            return None
        much = 100 * (rows[OURS] / rows[best] - 1)
        text = f"The forecast lost {number(much, 2)} % more than {best}"
        more = "give it other columns or lags" if self.lags else "type --lags 24 to use the last 24 values as well"
        return f"{text}: use the simple one, or {more}."


def forecast(columns: Columns, forecaster: Forecaster) -> Outcome:
    """Forecast every row before it is seen."""
    ours, weights = forecaster.run(columns.values, columns.rows)
    lags = forecaster.lags
    past = {OURS: ours} | _simple(columns.values, lags[0] if lags else 1)
    return Outcome(columns, past, _hindsight(columns, lags, past[LAST]), weights, forecaster.loss, lags)


def _simple(y: Array, lag: int) -> dict[str, Array]:
    """Forecasts that need no learner."""
    last = np.r_[np.full(min(lag, y.size), np.nan), y[: max(0, y.size - lag)]]
    means = np.r_[np.nan, np.cumsum(y)[:-1] / np.arange(1, y.size)]
    return {LAST: last, MEAN: means}


def _hindsight(columns: Columns, lags: tuple[int, ...], last: Array) -> dict[str, Array]:
    """Least squares on all rows at once, from one feature and from all. Without all lags: the last value repeated.

    Nothing where there are more than 512 features: it would take longer than the forecasts.
    """
    first = max(lags, default=0)
    if columns.values.size < first + 2 or len(lags) + len(columns.features) > WIDEST:
        return {}
    whole = lagged(columns, lags)
    found: dict[str, Array] = {}
    X, y = whole.rows, whole.values
    if X.shape[1] == 0:
        return found

    def fitted(features: Array) -> Array:
        design = np.c_[np.ones(y.size), features]
        scale = np.abs(design).max(axis=0)
        weights = np.linalg.lstsq(design / np.where(scale > 0, scale, 1.0), y, rcond=None)[0]
        best: Array = np.r_[last[:first], design / np.where(scale > 0, scale, 1.0) @ weights]
        return best

    alone = [fitted(X[:, [j]]) for j in range(X.shape[1])]
    best = int(np.argmin([((y - p[first:]) ** 2).sum() for p in alone]))
    found[f"best single feature, {whole.features[best]}"] = alone[best]
    found["best fixed weights"] = fitted(X)
    return found


# ------------------------------------------------------------------------------------------------------------- to read


def in_words(outcome: Outcome) -> str:
    """The table that a user sees."""
    columns, rows = outcome.columns, outcome.rows()
    parts = [f"its values {_listed(outcome.lags)} back"] * bool(outcome.lags)
    parts += [", ".join(columns.features)] * bool(columns.features)
    head = f"{columns.target} of {columns.name}: {int(outcome.scored.sum())} rows, forecast one row ahead"
    ratio = "squared" if outcome.loss == "squared" else "absolute"
    cells = [("", "root mean square", "mean absolute", f"{ratio}, over"), ("", "error", "error", "repeating")]
    for hindsight in (False, True):
        if hindsight and outcome.hindsight:
            cells.append(("in hindsight, knowing all rows", "", "", ""))
        for row in (row for row in rows if row["hindsight"] is hindsight):
            name = f"{'  ' if hindsight else ''}{visible(row['forecast'])}"
            cells.append((name, f"{row['rmse']:.6g}", f"{row['mae']:.6g}", f"{row['ratio']:.4g}"))
    table = aligned(cells[0], cells[1:])
    said = [outcome.warning] if outcome.warning else []
    first = columns.left_over()
    heads = [head, f"from {' and '.join(parts)}", *([first] if first else [])]
    lines = [*heads, "", *table.split("\n"), *([""] * bool(said)), *said]
    return "\n".join(map(visible, lines))


def _listed(lags: Sequence[int]) -> str:
    """1, 2, 3, 4, 24 as "1 to 4, 24"."""
    runs: list[list[int]] = []
    for lag in lags:
        if runs and lag == runs[-1][-1] + 1:
            runs[-1].append(lag)
        else:
            runs.append([lag])
    return ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]} to {r[-1]}" for r in runs)


def as_table(outcome: Outcome, ending: str) -> bytes:
    """Forecasts, losses and weights of every row, as .csv, .parquet or .json."""
    polars = need("polars", "lab", "A table of forecasts")
    columns = outcome.columns
    ours = outcome.forecasts[OURS]
    frame = polars.DataFrame({
        columns.time or "row": columns.times if columns.time else [int(row) for row in columns.times],
        columns.target: columns.values,
        "forecast": ours,
        "loss": outcome._loss(ours),
        "weight of the simple forecast": outcome.weights[:, 0],
        "weight of the model": outcome.weights[:, 1],
    }, nan_to_null=True)  # fmt: skip
    file = io.BytesIO()
    if ending == ".parquet":
        frame.write_parquet(file)
    elif ending == ".json":
        return (json.dumps(frame.to_dict(as_series=False)) + "\n").encode()
    else:
        frame.write_csv(file)
    return file.getvalue()


def picture(outcome: Outcome) -> Any:
    """The last rows with their forecasts, and how far ahead of repeating the last value the forecast is."""
    y, scored = outcome.columns.values, outcome.scored
    figure, [[above], [below]] = panels(9.0, 5.6, rows=2)
    tail = slice(max(0, y.size - SHOWN), y.size)
    t = np.arange(1, y.size + 1)
    above.plot(t[tail], y[tail], color="0.25", linewidth=1.4, label=plain(outcome.columns.target))
    above.plot(t[tail], outcome.forecasts[OURS][tail], color="#D55E00", linewidth=1.2, label="forecast")
    above.set_title(f"The last {min(SHOWN, y.size)} rows", loc="left", fontsize=10, parse_math=False)
    above.legend(frameon=False, fontsize=9, loc="best")
    saved = np.where(scored, outcome._loss(outcome.forecasts[LAST]) - outcome._loss(outcome.forecasts[OURS]), 0.0)
    below.plot(t, np.cumsum(saved), color="#0072B2", linewidth=1.4)
    below.axhline(0.0, color="0.6", linewidth=0.8)
    below.set_title("Loss saved so far over repeating the last value (below 0: lost)", loc="left", fontsize=10)
    below.set_xlabel("row")
    for axes in (above, below):
        axes.grid(alpha=0.3)
    return figure


def as_page(outcome: Outcome) -> bytes:
    """A page of its own: the table and the picture."""
    import base64
    import html

    image = base64.b64encode(save(picture(outcome), "png")).decode()
    title = html.escape(visible(f"{outcome.columns.target} of {outcome.columns.name}"))
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{title}</title>"
        "<meta name='viewport' content='width=device-width'>"
        "<style>body{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
        "img{max-width:100%}pre{overflow-x:auto}</style>"
        f"<h1>{title}</h1><pre>{html.escape(in_words(outcome))}</pre>"
        f"<img alt='the forecast beside the values, and the loss saved' src='data:image/png;base64,{image}'></html>\n"
    ).encode()


# -------------------------------------------------------------------------------------------------------- row by row


def live(
    lines: Iterable[str],
    write: Callable[[str], None],
    target: str,
    make: Callable[[list[str]], Forecaster],
    *,
    features: Sequence[str] | None = None,
    time: str | None = None,
    missing: str = "raise",
    decimal: str = ".",
    before: Mapping[str, float] | None = None,
    keep: Callable[[Forecaster], None] | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> None:
    """Forecast every row of a CSV as it arrives: `write` gets the forecast before the target of the row is looked at.

    A row whose target is empty is a question: it is answered, and nothing is learned from it. After every row that was
    learned `keep` is called, so that a run that ends at any moment can be resumed after the last row that was kept.
    `before` has the numbers of the row before the first one, where a stream goes on.
    """
    name = "standard input"
    text = iter(lines)
    header = header_of(text)
    if not header.strip():
        raise InputError(f"{name} is empty. Its first line must name the columns.")
    names, mark = read_header(header, name)
    for what, key in (("target", target), ("time", time), *(("feature", key) for key in features or ())):
        if key is not None and key not in names:
            raise InputError(f"{name} has no column {told(key)} for a {what}. Its columns are {listed(names)}.")
    forecaster: Forecaster | None = None
    latest = dict(before or {})
    order, asked = None if time is None else Order(name, time), False
    label = time or "row"
    write(f"{_quoted(label)},forecast\n")
    for count, cells in _rows(text, mark, name, len(names)):
        row = dict(zip(names, cells, strict=True))
        if forecaster is None:
            others = [key for key in names if key not in (target, time)]
            chosen = list(features) if features is not None else [
                key for key in others if cell_number(row[key], decimal) is not None or key in latest
            ]  # fmt: skip
            left = [key for key in others if features is None and key not in chosen]
            if left:
                note(f"left out, since the first row has no number there: {listed(left)}")
            forecaster = make(chosen)
        remark = None if order is None else order.see(row[time])  # type: ignore[index]
        if remark and not asked:  # a question has the time of its answer
            note(remark)
        asked = not row[target].strip()
        numbers = {}
        for key in forecaster.columns:
            numbers[key] = _cell(name, count, key, row[key], missing, decimal, latest)
            if numbers[key] is None:
                break
        if None in numbers.values():
            note(f"{name}, column {key!r}, row {count}: the cell is empty; the row is dropped")
            continue
        said = forecaster.predict(numbers)
        write(f"{_quoted(row[time]) if time else count},{'' if np.isnan(said) else repr(said)}\n")
        if not asked:
            forecaster.update(_cell(name, count, target, row[target], "raise", decimal, latest))  # type: ignore[arg-type]
            if keep is not None:
                keep(forecaster)


def _rows(lines: Iterator[str], mark: str, name: str, wanted: int) -> Iterator[tuple[int, list[str]]]:
    rows, count = csv.reader(lines, delimiter=mark), 0
    while True:
        try:
            cells = next(rows, None)
        except csv.Error as error:
            raise InputError(f"{name}, row {count + 1}: it cannot be read: {error}. Correct the row.") from None
        if cells is None:
            return
        if not cells:  # a blank line
            continue
        count += 1
        if len(cells) != wanted:
            raise InputError(
                f"{name}, row {count}: {len(cells)} value(s), but the header names {wanted} column(s). Correct the row."
            )
        yield count, cells


def _cell(
    name: str, row: int, key: str, cell: str, missing: str, decimal: str, before: dict[str, float]
) -> float | None:
    """A number of a row; None where the row is to be dropped."""
    value = cell_number(cell, decimal)
    place = f"{name}, column {key!r}, row {row}"
    if value is not None and np.isfinite(value):
        before[key] = value
        return value
    if value is not None:
        raise InputError(f"{place}: {told(cell.strip())[1:-1]} is not finite. Correct it.")
    if cell.strip():
        raise InputError(f"{place}: {no_number(cell, decimal)}.")
    if missing == "drop":
        return None
    if missing == "previous" and key in before:
        return before[key]
    raise InputError(f"{place}: the cell is empty. Fill it, or type --missing drop or --missing previous.")


def _quoted(cell: str) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="").writerow([cell])
    return file.getvalue()
