"""Exponential smoothing with fixed rates: level, damped trend, and an additive season of m rounds.

    forecast h = l + b (phi + ... + phi^h) + s[t + h]                                                               (1)
    e = z - forecast 1;  l += phi b + a e;  b = phi b + a beta e;  s[t] += gamma (1 - a) e                          (2)

A missing value is passed with e = 0. After g of them a = alpha (1 + g alpha)/(1 + g alpha^2). Without a season
a >= 1/(n + 1) for the n-th value, so that the first values count nearly as a mean. With one, it starts when two seasons
are known: the slope from their means, s from the mean deviations. Where these differ by more than 8 mean steps of the
series, as after a strike in one of the two seasons, s is the smaller one. Rows of the bank: three without a season,
four for every season, each in both spaces (`thalweg.parts.forecast.past`). A grid of rates takes the place of a fit:
the combination chooses.

References
----------
E. Gardner, E. McKenzie, Forecasting trends in time series, Management Science 31, 1985: damped trends.
"""

from typing import NamedTuple

import numpy as np

from thalweg._core.rules import magnitude, within
from thalweg._core.state import Plan, field
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import LARGEST_ENTRY
from thalweg._kernels.jit import inner

# alpha, beta, phi, gamma
PLAIN = ((0.15, 0.0, 1.0, 0.0), (0.6, 0.0, 1.0, 0.0), (0.5, 0.05, 0.9, 0.0))
SEASONAL = ((0.05, 0.0, 1.0, 0.05), (0.35, 0.0, 1.0, 0.3), (0.5, 0.05, 0.95, 0.3), (0.9, 0.3, 0.98, 0.3))
# of levels and seasons: (2) is stable, and adds up to a few times m of the largest value
FARTHEST = 1e6 * LARGEST_ENTRY
UNLIKE = 8.0  # mean steps between two values of one phase
PLAIN_ROWS, SEASONAL_ROWS = len(PLAIN), len(SEASONAL)
BASE = 1  # the row in a group whose errors direct models use


class BankState(NamedTuple):
    """Levels and slopes of all rows, seasons, and the last errors of the row that direct models build on."""

    level: Floats = field("R", magnitude(FARTHEST))
    slope: Floats = field("R", magnitude(FARTHEST))
    season: Floats = field("F", magnitude(FARTHEST))
    started: Ints = field("G", within(0, 1))  # group 0 has no season
    recent: Floats = field("G 2 2", magnitude(FARTHEST), called="recent errors")  # (group, space, last and before)
    phases: Floats = field("E", magnitude(FARTHEST), called="errors by season")  # the last error of each phase


class BankSettings(NamedTuple):
    """Constants."""

    seasons: Ints  # (Q,)
    starts: Ints  # (Q,) where the values of a season begin: 8 m of `season`, 2 m of `phases`
    rates: Floats  # (R, 4)
    spaces: Ints  # (R,)


def bank_plan(seasons: tuple[int, ...]) -> Plan:
    """Return the plan of the bank for these seasons."""
    Q, total = len(seasons), sum(seasons)
    starts = np.concatenate([[0], np.cumsum(seasons)])[:Q].astype(np.int64)
    rows = [(*rates, p) for group in (PLAIN, *[SEASONAL] * Q) for p in range(2) for rates in group]
    numbers = np.array(rows, dtype=np.float64)
    spaces = numbers[:, 4].astype(np.int64)
    settings = BankSettings(np.array(seasons, dtype=np.int64), starts, numbers[:, :4].copy(), spaces)
    sizes = {"R": 2 * (PLAIN_ROWS + SEASONAL_ROWS * Q), "F": 2 * SEASONAL_ROWS * total, "G": 1 + Q, "E": 2 * total}
    return Plan(BankState, settings, sizes)


@inner
def _row(q: int, p: int, j: int) -> int:
    """The row of smoothing j of season q in space p; q = -1: without a season."""
    return p * PLAIN_ROWS + j if q < 0 else 2 * PLAIN_ROWS + (2 * q + p) * SEASONAL_ROWS + j


@inner
def _values(c: BankSettings, q: int, p: int, j: int) -> int:
    """Where the season of a row begins."""
    return 8 * c.starts[q] + (4 * p + j) * c.seasons[q]


@inner
def forecast_smoothed(s: BankState, c: BankSettings, q: int, p: int, j: int, t: int, out: Floats) -> None:
    """out[h - 1] <- (1), of season q, or without one where q = -1."""
    r = _row(q, p, j)
    phi = c.rates[r, 2]
    level, slope, power = s.level[r], s.slope[r], 1.0
    if q < 0:
        for h in range(out.shape[0]):
            power *= phi
            level += power * slope
            out[h] = level
    else:
        m, first = c.seasons[q], _values(c, q, p, j)
        phase = t % m
        for h in range(out.shape[0]):
            power *= phi
            level += power * slope
            out[h] = level + s.season[first + phase]
            phase = phase + 1 if phase + 1 < m else 0


@inner
def coast(s: BankState, c: BankSettings) -> None:
    """A missing value: (2) with e = 0."""
    for r in range(s.level.shape[0]):
        s.slope[r] *= c.rates[r, 2]
        s.level[r] += s.slope[r]


@inner
def _rate(alpha: float, gap: int) -> float:
    return alpha * (1.0 + gap * alpha) / (1.0 + gap * alpha * alpha)


@inner
def smooth(s: BankState, c: BankSettings, p: int, z: float, t: int, seen: int, gap: int) -> None:
    """(2) for all rows of space p; `seen` values came before."""
    for j in range(PLAIN_ROWS):
        r = _row(-1, p, j)
        if s.started[0] == 0:
            s.level[r] = z
            continue
        b = c.rates[r, 2] * s.slope[r]
        e = z - (s.level[r] + b)
        a = max(_rate(c.rates[r, 0], gap), 1.0 / (seen + 2.0))
        s.level[r] += b + a * e
        s.slope[r] = b + a * c.rates[r, 1] * e
        if j == BASE:
            s.recent[0, p, 1] = s.recent[0, p, 0]
            s.recent[0, p, 0] = e
    for q in range(c.seasons.shape[0]):
        if s.started[q + 1] == 0:
            continue
        m = c.seasons[q]
        phase = t % m
        for j in range(SEASONAL_ROWS):
            r, at = _row(q, p, j), _values(c, q, p, j) + phase
            b = c.rates[r, 2] * s.slope[r]
            e = z - (s.level[r] + b + s.season[at])
            a = _rate(c.rates[r, 0], gap)
            s.level[r] += b + a * e
            s.slope[r] = b + a * c.rates[r, 1] * e
            s.season[at] += c.rates[r, 3] * (1.0 - a) * e
            if j == BASE:
                s.recent[q + 1, p, 1] = s.recent[q + 1, p, 0]
                s.recent[q + 1, p, 0] = e
                s.phases[2 * c.starts[q] + p * m + phase] = e


@inner
def start_season(s: BankState, c: BankSettings, q: int, t: int, line: Floats, L: int, step: Floats) -> None:
    """Start season q from the two that `line` (2, at least L) ends with; `step` (2,) is the mean step of the series."""
    m = c.seasons[q]
    for p in range(2):
        one, two = 0.0, 0.0
        for i in range(m):
            one += line[p, L - 2 * m + i]
            two += line[p, L - m + i]
        one /= m
        two /= m
        slope = (two - one) / m
        for j in range(SEASONAL_ROWS):
            r, first = _row(q, p, j), _values(c, q, p, j)
            for i in range(m):
                trend = slope * (i - 0.5 * (m - 1))
                before, lately = line[p, L - 2 * m + i] - one - trend, line[p, L - m + i] - two - trend
                apart = 0.5 * (before + lately)
                if abs(before - lately) > UNLIKE * step[p]:
                    apart = before if abs(before) <= abs(lately) else lately
                s.season[first + (t + i) % m] = apart
            s.level[r] = two + 0.5 * slope * (m - 1)
            s.slope[r] = slope if c.rates[r, 1] > 0.0 else 0.0
    s.started[q + 1] = 1


@inner
def shift_levels(s: BankState, c: BankSettings, shift: float, shift_log: float) -> None:
    """The level of the series has changed."""
    for r in range(s.level.shape[0]):
        s.level[r] += shift if c.spaces[r] == 0 else shift_log
