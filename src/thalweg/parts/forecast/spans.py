"""Intervals around forecasts, for each of a few horizons and every level, from past errors at that horizon.

Errors e at horizon h are compared in units of g, which says how large errors are now compared with the last 200 rounds:

    g = (1 + min(max(s/S, 1/5), 5) + min(max(|f|/F, 1/5), 5))/3                                                     (1)
    u = |e|/g^k, k = h^(-1/4);  q = exp(theta) g^k Q(u)                                                             (2)
    theta += eta (missed - (1 - level)),  eta = min(0.12, 0.6 (1 - level))/h^0.6                                    (3)
    Q = (1 + 5/max(n, 25)) (n E + 50 N)/(n + 50)                                                                    (4)

S is the mean absolute error of one step, s that with a half-life of 10 rounds, f the forecast and F the mean of |f|.
E is the quantile of n scores u with rank level (n + 1), and N that of a normal distribution with their mean square, but
at most 1.5 E: it is the steadier one while there are few scores, and a few huge scores would keep it large for long.
Every sqrt(h)-th score is kept, since neighbours are nearly the same at long horizons. The last 128 count, without the
first quarter of all: then the candidates knew little.
(3) keeps the coverage right whatever the quantiles are: over T answers the misses are at most
(1 - level) T + U/eta + h where exp(U) g^k Q always was enough, as in `thalweg.estimators.conformal`.

Between two horizons squares of thresholds are interpolated, since the variance of a walk is linear in h. Intervals of a
higher level hold those of a lower one. A horizon with few answers is at least as wide as the one before it; without
any, it is wider by the square root of the ratio of horizons. Intervals with two sides of their own were tried: at long
horizons their scores were worse by 3 %.
"""

from collections.abc import Iterator
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from thalweg._core.rules import magnitude, within
from thalweg._core.state import Past, Plan, field, scratch
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import LARGEST_ENTRY
from thalweg._kernels.jit import inner
from thalweg.parts.forecast.past import ABSENT, is_there, size_or_absent
from thalweg.parts.ranked import insert, quantile, replace

WINDOW = 128
OLD = 4  # the first of so many parts of all scores does not count
FASTEST, RATE, SLOWER = 0.12, 0.6, 0.6  # eta: at most, for each (1 - level), and the power of h
LOWEST, HIGHEST = -2.0, 5.0
FEWEST_SCORES = 10  # scores of a horizon
SCORE_MEMORY = 200.0  # rounds of S and F
SHORT = 1.0 / (1.0 - 0.5**0.1)  # rounds of s, with a half-life of 10
LARGEST_PART = 5.0  # parts of g are held between 1/5 and 5
STEEP = 10.0  # an error counts for at most 10 S in s
NORMAL, WIDEST = 50.0, 1.5  # scores that the normal distribution counts for, and its largest quantile over E
EARLY, LEAST = 5.0, 25.0
LARGEST_SCORE = 1e103
ERROR, LATELY, SIZE = range(3)  # of `scale`: S, s and F


class SpansState(NamedTuple):
    """Scores at A horizons, corrections of V levels, and thresholds that wait for their answer."""

    scores: Floats = field("A W", within(0.0, LARGEST_SCORE))  # the i-th at i modulo W; 0: it does not count
    sorted: Floats = field("A W", within(0.0, LARGEST_SCORE), called="scores")
    answers: Ints = field("A", within(0, 2.0**62))
    kept: Ints = field("A", within(0, 2.0**62), called="scores")  # how many scores there were
    theta: Floats = field("A V", magnitude(HIGHEST))
    scale: Floats = field("3", within(0.0, LARGEST_SCORE))
    heard: Ints = field("1", within(0, 2.0**62), called="scale")  # errors in `scale`
    means: Floats = field("S", size_or_absent(LARGEST_ENTRY), called="waiting forecasts", start=ABSENT)
    units: Floats = field("S", within(1.0 / LARGEST_PART, LARGEST_PART), called="waiting units", start=1.0)  # g^k
    waiting: Floats = field("S V", size_or_absent(100 * LARGEST_SCORE), called="waiting thresholds", start=ABSENT)


class SpansSettings(NamedTuple):
    """Constants and scratch space."""

    levels: Floats  # (V,) ascending
    normal: Floats  # (V,) quantiles of the absolute value of a normal variable
    units: Floats = scratch("A")
    q: Floats = scratch("A V")


def spans_plan(levels: tuple[float, ...], horizons: int, slots: int) -> Plan:
    """Return the plan for these levels."""
    V = len(levels)
    sizes = {"A": horizons if V else 0, "V": V, "S": slots if V else 0, "W": WINDOW}
    normal = [NormalDist().inv_cdf(0.5 + 0.5 * level) for level in sorted(levels)]
    settings = SpansSettings(np.array(sorted(levels), dtype=np.float64), np.array(normal, dtype=np.float64))
    return Plan(SpansState, settings, sizes, holds=_holds)


def _holds(s: SpansState, c: SpansSettings, past: Past) -> Iterator[tuple[str, bool]]:
    yield "scores", bool((s.kept <= s.answers).all() and (s.answers <= past.rounds).all())
    yield "scale", int(s.heard[0]) <= past.rounds
    for a in range(s.answers.size):
        kept, W = int(s.kept[a]), s.scores.shape[1]
        n = _used(kept, W)
        used = np.arange(kept - n, kept) % W
        yield "scores", bool((np.sort(s.scores[a, used]) == s.sorted[a, :n]).all())
        yield "scores", not np.delete(s.scores[a], used).any()


@inner
def _thinned(h: int) -> int:
    """The number of scores out of which one is kept."""
    return int(np.sqrt(float(h)))


@inner
def _used(kept: int, most: int) -> int:
    """The number of scores that count, the latest ones."""
    return min(kept - kept // OLD, most)


@inner
def _spread(values: Floats, n: int) -> float:
    """The root of the mean square of n numbers."""
    square = 0.0
    for i in range(n):
        square += values[i] * values[i]
    return float(np.sqrt(square / n))


@inner
def _held(ratio: float) -> float:
    return min(max(ratio, 1.0 / LARGEST_PART), LARGEST_PART)


@inner
def _unit(s: SpansState, h: int, mean: float) -> float:
    """(1), to the power k."""
    S, F = s.scale[ERROR], s.scale[SIZE]
    lately = _held(s.scale[LATELY] / S) if S > 0.0 else 1.0
    size = _held(abs(mean) / F) if F > 0.0 else 1.0
    return float(((1.0 + lately + size) / 3.0) ** (float(h) ** -0.25))


@inner
def write_spans(s: SpansState, c: SpansSettings, horizons: Ints, means: Floats) -> None:
    """q <- (2) for all horizons and levels; ABSENT where there are no answers at all. means[h - 1] are forecasts."""
    for a in range(horizons.shape[0]):
        h, n = horizons[a], _used(s.kept[a], s.scores.shape[1])
        c.units[a] = _unit(s, h, means[h - 1])
        spread = _spread(s.sorted[a], n) if n > 0 else 0.0
        for v in range(c.levels.shape[0]):
            q = ABSENT
            if n > 0:
                E = quantile(s.sorted[a], n, c.levels[v])
                both = n * E + NORMAL * min(c.normal[v] * spread, WIDEST * E)
                q = np.exp(s.theta[a, v]) * c.units[a] * (1.0 + EARLY / max(n, LEAST)) * both / (n + NORMAL)  # (2), (4)
            if n < FEWEST_SCORES and a > 0 and is_there(c.q[a - 1, v]):
                before = c.q[a - 1, v]
                q = max(q, before) if n > 0 else before * np.sqrt(float(h) / horizons[a - 1])
            c.q[a, v] = q


@inner
def wait_for_answer(s: SpansState, c: SpansSettings, a: int, slot: int, mean: float) -> None:
    """The forecast at the a-th horizon and its thresholds wait in this slot; ABSENT: there is none."""
    s.means[slot], s.units[slot] = mean, c.units[a]
    for v in range(c.levels.shape[0]):
        s.waiting[slot, v] = c.q[a, v]


@inner
def learn_scale(s: SpansState, y: float, mean: float) -> None:
    """The answer to a forecast of one step: S, s and F of (1)."""
    s.heard[0] += 1
    n, e = float(s.heard[0]), abs(y - mean)
    s.scale[ERROR] += (e - s.scale[ERROR]) / min(n, SCORE_MEMORY)
    s.scale[LATELY] += (min(e, STEEP * s.scale[ERROR]) - s.scale[LATELY]) / min(n, SHORT)
    s.scale[SIZE] += (abs(mean) - s.scale[SIZE]) / min(n, SCORE_MEMORY)


@inner
def learn_span(s: SpansState, c: SpansSettings, a: int, h: int, slot: int, y: float) -> None:
    """The answer y to the forecast that waits in this slot."""
    mean = s.means[slot]
    if not is_there(mean):
        return
    slower, e = float(h) ** SLOWER, abs(y - mean)
    for v in range(c.levels.shape[0]):
        if is_there(s.waiting[slot, v]):
            alpha, missed = 1.0 - c.levels[v], 1.0 if e > s.waiting[slot, v] else 0.0
            eta = min(FASTEST, RATE * alpha) / slower
            s.theta[a, v] = min(max(s.theta[a, v] + eta * (missed - alpha), LOWEST), HIGHEST)  # (3)
    if s.answers[a] % _thinned(h) == 0:
        W, u = s.scores.shape[1], e / s.units[slot]
        kept, n = s.kept[a], _used(s.kept[a], W)
        if _used(kept + 1, W) == n:
            oldest = (kept - n) % W
            replace(s.sorted[a], n, s.scores[a, oldest], u)
            s.scores[a, oldest] = 0.0
        else:
            insert(s.sorted[a], n, u)
        s.scores[a, kept % W] = u
        s.kept[a] += 1
    s.answers[a] += 1
