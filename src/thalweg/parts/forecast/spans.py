"""Intervals around forecasts, for each of a few horizons and every level, from the last errors at that horizon.

    q = exp(theta) Q(|e|, level)                    symmetric: the quantile of the last 100 errors without their sign (1)
    q' = exp(theta') Q(e, (1 + level)/2),  q'' = exp(theta'') Q(-e, (1 + level)/2)                        two-sided  (2)
    theta += eta (missed - (1 - level)),  theta' and theta'' likewise with (1 - level)/2;  eta = 0.05/h^(3/4)        (3)

(3) keeps the coverage right whatever the quantiles are: over T answers the misses of (1) are at most
(1 - level) T + (U + eta h)/eta where exp(U) times the quantile always was enough, as in `thalweg.parts.conformal`. The
kind with the smaller interval score so far is shown, (1) at first. Between two horizons thresholds are interpolated,
and intervals of a higher level hold those of a lower one. A horizon with few answers is at least as wide as the one
before it; without any, it is wider by the square root of the ratio of horizons.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from thalweg._core.rules import magnitude, within
from thalweg._core.state import Floats, Ints, Past, Plan, field, scratch
from thalweg._kernels.jit import inner
from thalweg._validate import LARGEST
from thalweg.parts.forecast.past import ABSENT, is_there, size_or_absent

__all__ = ["WINDOW", "SpansSettings", "SpansState", "learn_span", "say_spans", "span", "spans_plan"]

WINDOW = 100
RATE, LOWEST, HIGHEST = 0.05, -2.0, 5.0
FEW = 10  # answers of a horizon
KEEP, BETTER, TRIED = 0.99, 0.98, 30  # of interval scores; how much better two sides must be, after so many answers
LARGEST_ERROR = 1e103
SYMMETRIC, ABOVE, BELOW = range(3)  # of thresholds


class SpansState(NamedTuple):
    """Errors at A horizons, corrections of V levels, and thresholds that wait for their answer."""

    errors: Floats = field("A W", magnitude(LARGEST_ERROR))  # the i-th at i modulo W
    sorted: Floats = field("A W", magnitude(LARGEST_ERROR), called="errors")
    answers: Ints = field("A", within(0, 2.0**62))
    theta: Floats = field("A V 3", magnitude(HIGHEST))
    costs: Floats = field("A V 2", within(0.0, 1e110), called="interval scores")  # symmetric and two-sided
    means: Floats = field("S", size_or_absent(LARGEST), called="waiting forecasts", start=ABSENT)
    waiting: Floats = field("S V 3", size_or_absent(100 * LARGEST_ERROR), called="waiting thresholds", start=ABSENT)


class SpansSettings(NamedTuple):
    """Constants and scratch space."""

    levels: Floats  # (V,) ascending
    q: Floats = scratch("A V 3")


def spans_plan(levels: tuple[float, ...], horizons: int, slots: int) -> Plan:
    """Return the plan for these levels."""
    V = len(levels)
    sizes = {"A": horizons if V else 0, "V": V, "S": slots if V else 0, "W": WINDOW}
    settings = SpansSettings(np.array(sorted(levels), dtype=np.float64))
    return Plan(SpansState, settings, sizes, holds=_holds)


def _holds(s: SpansState, c: SpansSettings, past: Past) -> Iterator[tuple[str, bool]]:
    for a in range(s.answers.size):
        n = min(int(s.answers[a]), s.errors.shape[1])
        yield "errors", bool((np.sort(s.errors[a, :n]) == s.sorted[a, :n]).all())


@inner
def _at(values: Floats, n: int, level: float, sign: float) -> float:
    """The quantile of n sorted numbers, or of these times -1."""
    r = min(max(level * (n + 1.0) - 1.0, 0.0), n - 1.0)
    low = int(r)
    part, high = r - low, min(low + 1, n - 1)
    if sign > 0.0:
        return (1.0 - part) * values[low] + part * values[high]
    return -((1.0 - part) * values[n - 1 - low] + part * values[n - 1 - high])


@inner
def _size_at(values: Floats, n: int, level: float) -> float:
    """The quantile of the sizes of n sorted numbers: the largest size is at one of the ends."""
    r = min(max(level * (n + 1.0) - 1.0, 0.0), n - 1.0)
    low = int(r)
    i, j, above, here = 0, n - 1, 0.0, 0.0
    for k in range(n - 1, low - 1, -1):  # the k-th smallest, from the largest on
        above = here
        if -values[i] > values[j]:
            here = -values[i]
            i += 1
        else:
            here = abs(values[j])
            j -= 1
        if k == n - 1:
            above = here
    return here + (r - low) * (above - here)


@inner
def say_spans(s: SpansState, c: SpansSettings, horizons: Ints) -> None:
    """q <- thresholds (1) and (2) for all horizons and levels; ABSENT where there are no answers at all."""
    for a in range(horizons.shape[0]):
        n = min(s.answers[a], s.errors.shape[1])
        for v in range(c.levels.shape[0]):
            level = c.levels[v]
            for k in range(3):
                c.q[a, v, k] = ABSENT
            if n > 0:
                c.q[a, v, 0] = np.exp(s.theta[a, v, 0]) * _size_at(s.sorted[a], n, level)
                c.q[a, v, 1] = _times(np.exp(s.theta[a, v, 1]), _at(s.sorted[a], n, 0.5 + 0.5 * level, 1.0))
                c.q[a, v, 2] = _times(np.exp(s.theta[a, v, 2]), _at(s.sorted[a], n, 0.5 + 0.5 * level, -1.0))
            if n < FEW and a > 0:
                wider = 1.0 if n > 0 else np.sqrt(horizons[a] / horizons[a - 1])
                for k in range(3):
                    before = c.q[a - 1, v, k]
                    if is_there(before):
                        before = before * wider if before > 0.0 else before
                        c.q[a, v, k] = max(before, c.q[a, v, k]) if n > 0 else before


@inner
def _times(factor: float, q: float) -> float:
    """A threshold that may be negative: a larger factor always makes the interval wider."""
    return q * factor if q > 0.0 else q / factor


@inner
def span(s: SpansState, c: SpansSettings, a: int, v: int, above: bool) -> float:
    """The threshold that is shown at the a-th horizon, above or below the forecast."""
    two = s.answers[a] >= TRIED and s.costs[a, v, 1] < BETTER * s.costs[a, v, 0]
    return c.q[a, v, (ABOVE if above else BELOW) if two else SYMMETRIC]


@inner
def _score(y: float, mean: float, above: float, below: float, alpha: float) -> float:
    """The interval score of [mean - below, mean + above]."""
    high, low = max(y - mean - above, 0.0), max(mean - below - y, 0.0)
    return above + below + 2.0 / alpha * (high + low)


@inner
def learn_span(s: SpansState, c: SpansSettings, a: int, h: int, slot: int, y: float) -> None:
    """The answer y to the forecast that waits in this slot."""
    mean = s.means[slot]
    if not is_there(mean):
        return
    eta, e = RATE / float(h) ** 0.75, y - mean
    for v in range(c.levels.shape[0]):
        q, above, below = s.waiting[slot, v, 0], s.waiting[slot, v, 1], s.waiting[slot, v, 2]
        if is_there(q):
            alpha = 1.0 - c.levels[v]
            _correct(s.theta[a, v], 0, eta, alpha, abs(e) > q)
            _correct(s.theta[a, v], 1, eta, 0.5 * alpha, e > above)
            _correct(s.theta[a, v], 2, eta, 0.5 * alpha, -e > below)
            s.costs[a, v, 0] = KEEP * s.costs[a, v, 0] + _score(y, mean, q, q, alpha)
            s.costs[a, v, 1] = KEEP * s.costs[a, v, 1] + _score(y, mean, above, below, alpha)
    W = s.errors.shape[1]
    at, n = s.answers[a] % W, min(s.answers[a], W)
    if n == W:
        _remove(s.sorted[a], n, s.errors[a, at])
        n -= 1
    s.errors[a, at] = e
    _insert(s.sorted[a], n, e)
    s.answers[a] += 1


@inner
def _correct(theta: Floats, k: int, eta: float, alpha: float, missed: bool) -> None:
    """(3)."""
    theta[k] = min(max(theta[k] + eta * ((1.0 if missed else 0.0) - alpha), LOWEST), HIGHEST)


@inner
def _remove(values: Floats, n: int, old: float) -> None:
    i = 0
    while i < n - 1 and values[i] != old:
        i += 1
    for j in range(i, n - 1):
        values[j] = values[j + 1]


@inner
def _insert(values: Floats, n: int, new: float) -> None:
    j = n
    while j > 0 and values[j - 1] > new:
        values[j] = values[j - 1]
        j -= 1
    values[j] = new
