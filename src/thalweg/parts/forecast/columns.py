"""A linear model of the next value from columns that are known before it, and from lags; iterated for further steps.

    z_t - z_{t-1} from z_{t-1}, steps between neighbouring lags, and the columns of round t                          (1)

The model is that of `TrackingRegressor` (`thalweg.parts.linear`), which follows drifts. Forecasters without columns
have `NoColumns` in its place.
"""

from typing import Any, NamedTuple

import numpy as np

from thalweg._core.state import Floats, Ints, Past, Plan, field, part, scratch
from thalweg._kernels.jit import generic, implement, inner
from thalweg._validate import LARGEST_ENTRY
from thalweg.parts.forecast.past import hold, is_there, size_or_absent
from thalweg.parts.linear.plan import LinearLayout, begin_linear
from thalweg.parts.linear.rows import learn_row, predict_row
from thalweg.parts.records import has_slots

__all__ = [
    "ColumnsState",
    "NoColumns",
    "columns_plan",
    "forecast_columns",
    "give_rows",
    "has_capacity",
    "keep_row",
    "learn_columns",
]

LOSSES = {"squared": "squared_error", "absolute": "absolute_error"}


class NoColumns(NamedTuple):
    """There are no columns."""


class ColumnsState(NamedTuple):
    """A linear model, and the columns of the present round."""

    model: Any = part()
    row: Floats = field("C", size_or_absent(LARGEST_ENTRY), called="columns")  # ABSENT where one is not known


class ColumnsSettings(NamedTuple):
    """Constants and scratch space."""

    lags: Ints
    model: Any = part()
    at: Ints = scratch("X")
    x: Floats = scratch("X")
    given: Floats = scratch("H C")  # columns of the next rounds


def columns_plan(columns: int, lags: tuple[int, ...], horizon: int, loss: str, slots: int) -> Plan:
    """Return the plan for a number of columns."""
    if columns == 0:
        return Plan(NoColumns, ())
    features = 1 + max(0, len(lags) - 1) + columns
    layout = LinearLayout(features, LOSSES[loss])
    return Plan(
        ColumnsState,
        ColumnsSettings(np.array(lags, dtype=np.int64)),
        {"C": columns, "X": features, "H": horizon},
        {"model": layout.plan({**layout.sizes(), "slots": slots})},
        pasts=lambda s, c, past: {"model": Past.whole(int(s.model.clock[0]))},
        begin=lambda s, c: begin_linear(s.model, c.model),
    )


@generic
def has_capacity(e: Any, rounds: int) -> bool:
    """Whether there is capacity for a number of rounds."""
    ...


@generic
def give_rows(e: Any, c: Any, rows: Floats, first: int, known: int) -> None:
    """given <- the columns of the `known` rounds from `first` on."""


@generic
def keep_row(e: Any, c: Any) -> None:
    """Remember the columns of the present round, the first that is given."""


@generic
def forecast_columns(
    e: Any, c: Any, line: Floats, L: int, t: int, known: int, low: float, high: float, out: Floats
) -> bool:
    """out[h - 1] <- forecasts for the `known` rounds whose columns are given; False where there are none."""
    ...


@generic
def learn_columns(e: Any, c: Any, line: Floats, L: int, t: int, z: float) -> None:
    """The value z, and the columns that were kept for it."""


@implement(has_capacity, NoColumns)
def _always(e: NoColumns, rounds: int) -> bool:
    return True


@implement(give_rows, NoColumns)
def _no_rows(e: NoColumns, c: Any, rows: Floats, first: int, known: int) -> None:
    pass


@implement(keep_row, NoColumns)
def _no_row(e: NoColumns, c: Any) -> None:
    pass


@implement(forecast_columns, NoColumns)
def _silent(
    e: NoColumns, c: Any, line: Floats, L: int, t: int, known: int, low: float, high: float, out: Floats
) -> bool:
    return False


@implement(learn_columns, NoColumns)
def _nothing(e: NoColumns, c: Any, line: Floats, L: int, t: int, z: float) -> None:
    pass


@implement(has_capacity, ColumnsState)
def _has_capacity(e: ColumnsState, rounds: int) -> bool:
    return has_slots(e.model.jury.records, rounds)


@implement(give_rows, ColumnsState)
def _give(e: ColumnsState, c: ColumnsSettings, rows: Floats, first: int, known: int) -> None:
    for h in range(known):
        for j in range(rows.shape[1]):
            c.given[h, j] = rows[first + h, j]


@implement(keep_row, ColumnsState)
def _keep(e: ColumnsState, c: ColumnsSettings) -> None:
    for j in range(e.row.shape[0]):
        e.row[j] = c.given[0, j]


@inner
def _design(c: ColumnsSettings, line: Floats, at: int, t: int, row: Floats) -> int:
    """x, at <- the features of (1) that are there, of a value at this place of `line`; returns how many."""
    K, n = c.lags.shape[0], 1
    c.at[0], c.x[0] = 1, line[at - 1]
    for k in range(K - 1):
        if c.lags[k + 1] <= t:
            c.at[n], c.x[n] = (
                k + 2,
                hold(line[at - c.lags[k]] - line[at - c.lags[k + 1]], -LARGEST_ENTRY, LARGEST_ENTRY),
            )
            n += 1
    for j in range(row.shape[0]):
        if is_there(row[j]):
            c.at[n], c.x[n] = 1 + max(K - 1, 0) + j + 1, row[j]
            n += 1
    return n


@implement(forecast_columns, ColumnsState)
def _forecast_columns(
    e: ColumnsState, c: ColumnsSettings, line: Floats, L: int, t: int, known: int, low: float, high: float, out: Floats
) -> bool:
    if e.model.clock[0] == 0:
        return False
    for h in range(min(known, out.shape[0])):
        n = _design(c, line, L + h, t, c.given[h])
        said = line[L + h - 1] + predict_row(e.model, c.model, c.at[:n], c.x[:n])
        line[L + h] = out[h] = hold(said, low, high)
    return True


@implement(learn_columns, ColumnsState)
def _learn(e: ColumnsState, c: ColumnsSettings, line: Floats, L: int, t: int, z: float) -> None:
    n = _design(c, line, L, t, e.row)
    said = predict_row(e.model, c.model, c.at[:n], c.x[:n])
    learn_row(e.model, c.model, c.at[:n], c.x[:n], hold(z - line[L - 1], -LARGEST_ENTRY, LARGEST_ENTRY), 1.0, said)
