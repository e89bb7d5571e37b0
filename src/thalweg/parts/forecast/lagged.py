"""Linear models of one step, from past values, iterated for further steps.

    lags       z_t - z_{t-1} from z_{t-l} - z_{t-l'} between neighbouring lags, z_{t-1} - mean, and with a season m also
               z_{t-m} - z_{t-1}, z_{t-m} - z_{t-m-1}, z_{t-m+1} - z_{t-m}                                          (1)
    seasonal differences   z_t - z_{t-m} from z_{t-j} - z_{t-j-m}, j = 1, 2, 3, m, m + 1                            (2)

Both have a constant of the size of a step. Weights are those of least squares (`thalweg.parts.forecast.ridge`). A
forecast of step h takes the place of z in step h + 1. (1) is there without a season and for each of them, in space 0;
(2) for every season in both spaces.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from thalweg._core.rules import within
from thalweg._core.state import Past, Plan, field, scratch
from thalweg._core.types import Floats, Ints
from thalweg._kernels.jit import inner
from thalweg.parts.forecast.past import TIME, HistoryState, hold
from thalweg.parts.forecast.ridge import are_sums, learn_ridge, packed, solve_ridge

KAPPA = 3.0
LAGS, SEASONAL_DIFFERENCES = 0, 1


class LaggedState(NamedTuple):
    """Sums of I models with up to D features."""

    A: Floats = field("I T", called="lagged models")
    c: Floats = field("I D", called="lagged models")
    rows: Floats = field("I", within(0.0, 2.0**62), called="lagged models")


class LaggedSettings(NamedTuple):
    """Constants and scratch space."""

    lags: Ints
    seasons: Ints  # (Q,)
    x: Floats = scratch("D")
    w: Floats = scratch("D")
    root: Floats = scratch("T")


def lagged_plan(lags: tuple[int, ...], seasons: tuple[int, ...]) -> Plan:
    """Return the plan of the models with these lags and seasons."""
    D = max(len(lags) - 1, 0) + 6
    sizes = {"I": 1 + 3 * len(seasons), "D": D, "T": packed(D)}
    settings = LaggedSettings(np.array(lags, dtype=np.int64), np.array(seasons, dtype=np.int64))
    return Plan(LaggedState, settings, sizes, holds=_holds)


def reach(lags: tuple[int, ...], seasons: tuple[int, ...]) -> int:
    """Return how many past values the models read."""
    return max([4, *lags, *(2 * m + 2 for m in seasons)]) + 1


def _holds(s: LaggedState, c: LaggedSettings, past: Past) -> Iterator[tuple[str, bool]]:
    yield "lagged models", are_sums(s.A, s.c)


@inner
def _model(kind: int, q: int, p: int) -> int:
    """The index of a model."""
    return 0 if q < 0 else 1 + 3 * q + (0 if kind == LAGS else 1 + p)


@inner
def _season(c: LaggedSettings, q: int) -> int:
    """The length of season q; 0 where there is none."""
    m = 0
    if q >= 0:
        m = c.seasons[q]
    return m


@inner
def _needs(c: LaggedSettings, kind: int, m: int) -> int:
    """How many values there must be."""
    if kind == SEASONAL_DIFFERENCES:
        return 2 * m + 2
    longest = c.lags[c.lags.shape[0] - 1] if c.lags.shape[0] > 0 else 1
    return max(max(longest, m + 1), 4)


@inner
def _features(c: LaggedSettings, line: Floats, at: int, kind: int, m: int, mean: float, step: float) -> int:
    """x <- (1) or (2) for the value at this place of `line`; returns how many."""
    x, n = c.x, 0
    if kind == LAGS:
        for k in range(c.lags.shape[0] - 1):
            x[n] = line[at - c.lags[k]] - line[at - c.lags[k + 1]]
            n += 1
        x[n] = line[at - 1] - mean
        n += 1
        if m > 2:
            x[n] = line[at - m] - line[at - 1]
            x[n + 1] = line[at - m] - line[at - m - 1]
            x[n + 2] = line[at - m + 1] - line[at - m]
            n += 3
    else:
        for j in range(1, 4):
            x[n] = line[at - j] - line[at - j - m]
            n += 1
        x[n] = line[at - m] - line[at - 2 * m]
        x[n + 1] = line[at - m - 1] - line[at - 2 * m - 1]
        n += 2
    x[n] = step
    return n + 1


@inner
def forecast_lagged(
    s: LaggedState, c: LaggedSettings, history: HistoryState, line: Floats, kind: int, q: int, p: int, low: float,
    high: float, out: Floats,
) -> bool:  # fmt: skip
    """out[h - 1] <- forecasts of season q (-1: none) in space p, held between low and high; False: none yet."""
    i, m, L = _model(kind, q, p), _season(c, q), history.z.shape[1]
    mean, step = history.mean[p], history.step[p]
    if history.counts[TIME] <= _needs(c, kind, m) or s.rows[i] <= 2.0:
        return False
    d = _features(c, line, L, kind, m, mean, step)
    solve_ridge(s.A[i], s.c[i], d, s.rows[i], KAPPA, c.root, c.w)
    for h in range(out.shape[0]):
        if h > 0:
            _features(c, line, L + h, kind, m, mean, step)
        f = line[L + h - 1] if kind == LAGS else line[L + h - m]
        for k in range(d):
            f += c.w[k] * c.x[k]
        f = hold(f, low, high)
        line[L + h] = f
        out[h] = f
    return True


@inner
def learn_lagged(
    s: LaggedState, c: LaggedSettings, history: HistoryState, line: Floats, kind: int, q: int, p: int, z: float
) -> None:
    """The value z."""
    m, L = _season(c, q), history.z.shape[1]
    if history.counts[TIME] > _needs(c, kind, m):
        i = _model(kind, q, p)
        d = _features(c, line, L, kind, m, history.mean[p], history.step[p])
        base = line[L - 1] if kind == LAGS else line[L - m]
        s.rows[i] += 1.0
        learn_ridge(s.A[i], s.c[i], c.x, d, z - base)
