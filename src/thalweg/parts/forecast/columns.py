"""A linear model of the next value from columns that are known before it, and from lags; iterated for further steps.

    z_t - z_{t-1} from z_{t-1}, steps between neighbouring lags, and the columns of round t                          (1)

The model is that of `TrackingRegressor` (`thalweg.parts.linear`), which follows drifts. Forecasters without columns
have `Nothing` in its place, for which the generic functions do nothing.
"""

from typing import NamedTuple

from thalweg._core.state import field, part, scratch
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import LARGEST_ENTRY
from thalweg._kernels.jit import implement, inner, optional
from thalweg._kernels.vectors import copy
from thalweg.parts.forecast.past import hold, is_there, size_or_absent
from thalweg.parts.linear.rows import LinearSettings, LinearState, learn_row, predict_row
from thalweg.parts.records import has_slots


class ColumnsState(NamedTuple):
    """A linear model, and the columns of the present round."""

    model: LinearState = part()
    row: Floats = field("C", size_or_absent(LARGEST_ENTRY), called="columns")  # ABSENT where one is not known


class ColumnsSettings(NamedTuple):
    """Constants and scratch space."""

    lags: Ints
    model: LinearSettings = part()
    at: Ints = scratch("X")
    x: Floats = scratch("X")
    given: Floats = scratch("H C")  # columns of the next rounds


@optional
def has_capacity(e: object, rounds: int) -> bool:
    """Whether there is capacity for a number of rounds."""
    return True


@optional
def give_rows(e: object, c: object, rows: Floats, first: int, known: int) -> None:
    """given <- the columns of the `known` rounds from `first` on."""


@optional
def keep_row(e: object, c: object) -> None:
    """Remember the columns of the present round, the first that is given."""


@optional
def forecast_columns(
    e: object, c: object, line: Floats, L: int, t: int, known: int, low: float, high: float, out: Floats
) -> None:
    """out[h - 1] <- forecasts for the `known` rounds whose columns are given."""


@optional
def learn_columns(e: object, c: object, line: Floats, L: int, t: int, z: float) -> None:
    """The value z, and the columns that were kept for it."""


@implement(has_capacity, ColumnsState)
def _has_capacity(e: ColumnsState, rounds: int) -> bool:
    return has_slots(e.model.jury.records, rounds)


@implement(give_rows, ColumnsState)
def _give(e: ColumnsState, c: ColumnsSettings, rows: Floats, first: int, known: int) -> None:
    for h in range(known):
        copy(rows[first + h], c.given[h])


@implement(keep_row, ColumnsState)
def _keep(e: ColumnsState, c: ColumnsSettings) -> None:
    copy(c.given[0], e.row)


@inner
def _design(c: ColumnsSettings, line: Floats, at: int, t: int, row: Floats) -> int:
    """x, at <- the features of (1) that are there, of a value at this place of `line`; returns how many."""
    K, n = c.lags.shape[0], 1
    c.at[0], c.x[0] = 1, line[at - 1]
    for k in range(K - 1):
        if c.lags[k + 1] <= t:
            step = line[at - c.lags[k]] - line[at - c.lags[k + 1]]
            c.at[n], c.x[n] = k + 2, hold(step, -LARGEST_ENTRY, LARGEST_ENTRY)
            n += 1
    for j in range(row.shape[0]):
        if is_there(row[j]):
            c.at[n], c.x[n] = 1 + max(K - 1, 0) + j + 1, row[j]
            n += 1
    return n


@implement(forecast_columns, ColumnsState)
def _forecast_columns(
    e: ColumnsState, c: ColumnsSettings, line: Floats, L: int, t: int, known: int, low: float, high: float, out: Floats
) -> None:
    if e.model.clock[0] == 0:
        return
    for h in range(min(known, out.shape[0])):
        n = _design(c, line, L + h, t, c.given[h])
        said = line[L + h - 1] + predict_row(e.model, c.model, c.at[:n], c.x[:n])
        line[L + h] = out[h] = hold(said, low, high)


@implement(learn_columns, ColumnsState)
def _learn(e: ColumnsState, c: ColumnsSettings, line: Floats, L: int, t: int, z: float) -> None:
    n = _design(c, line, L, t, e.row)
    said = predict_row(e.model, c.model, c.at[:n], c.x[:n])
    learn_row(e.model, c.model, c.at[:n], c.x[:n], hold(z - line[L - 1], -LARGEST_ENTRY, LARGEST_ENTRY), 1.0, said)
