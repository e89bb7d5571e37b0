"""The past of a series: cleaned, gaps filled, as it is and in logarithms.

Candidates read z, not the values themselves. With f the forecast of y and s the running mean of its absolute errors:

    z = f + 5 s or f - 5 s where |y - f| > 8 s                an outlier; else z = y                                 (1)
    where the next value is closer to an outlier than to its forecast, the level of the series has changed: y - f is
    added to all of z and to every level that candidates keep, z = y, and s is learned again                         (2)
    where more than twice as many outliers have turned out to be (2) as not, the next one is taken for a change of
    level at once, if it is at most twice as large as the largest of them
    z = f where y is missing. When a value returns after g of them, its error e is spread over the gap:
    z_{t-j} += e (g + 1 - j)/(g + 1),  j = 1..g                                                                      (3)

s is a mean over the last 20 errors, each cut at 8 s; errors after a gap are left out, and before there are 10 of them
nothing is an outlier. Naive forecasts and drift start from z instead of y while y is an outlier.

Before two seasons are known there are no outliers: a season may look like changes of level. Space 0 holds values, space
1 their logarithms, as long as all values are positive.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from thalweg._core.rules import SLACK, counters, magnitude, within
from thalweg._core.state import Past, Plan, Rule, field, scratch
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import LARGEST_ENTRY
from thalweg._kernels.jit import inner

ABSENT = 1e300  # in a state, where there is no number
CHANGES = 64  # the latest changes of level that are remembered
OUTLIER, COUNTS = 8.0, 5.0  # mean errors: from there on a value is an outlier; its capped error
ERROR_MEMORY = 20.0  # rounds of the mean absolute error
WARM = 10  # errors before an outlier can be recognised
# of `marks`: range, first and last value, s, the forecast of the last value, and the largest error that was (2)
LOW, HIGH, FIRST, LAST, SCALE, EXPECTED, STEP = range(7)
TIME, SEEN, GAP, POSITIVE, SIDE, ERRORS, CHANGED, STAYED, RETURNED, TRUSTED = range(10)  # of `counts`


def size_or_absent(high: float) -> Rule:
    """|value| <= high, or ABSENT."""
    return lambda seen: bool(((np.abs(seen.value) <= SLACK * high) | (seen.value == ABSENT)).all())


class HistoryState(NamedTuple):
    """The last L values in both spaces, and a summary of all of them."""

    z: Floats = field("2 L", magnitude(LARGEST_ENTRY), called="past")  # that of time t at t modulo L
    mean: Floats = field("2", magnitude(LARGEST_ENTRY))
    step: Floats = field("2", within(0.0, 4 * LARGEST_ENTRY))  # mean |z_t - z_{t-1}|
    marks: Floats = field("7", magnitude(2 * LARGEST_ENTRY))
    changes: Ints = field(str(CHANGES), counters)  # rounds; the i-th at i modulo their number
    # time since the first value, values seen, missing ones in a row, whether all are > 0, the side of an outlier in
    # the last round (-1, 0, 1), errors counted, changes, outliers that were changes of level and that were not,
    # and whether the last one was taken for a change at once
    counts: Ints = field("10")


class HistorySettings(NamedTuple):
    """Scratch space."""

    line: Floats = scratch("2 B")  # the last L values in order of time, then forecasts


def history_plan(length: int, horizon: int) -> Plan:
    """Return the plan for the last `length` values."""
    sizes = {"L": length, "B": length + horizon}
    return Plan(HistoryState, HistorySettings(), sizes, holds=_holds, begin=_begin)


def _begin(s: HistoryState, c: HistorySettings) -> None:
    s.counts[POSITIVE] = 1


def _holds(s: HistoryState, c: HistorySettings, past: Past) -> Iterator[tuple[str, bool]]:
    time, seen, gap, positive, side, errors, changed, stayed, returned, trusted = s.counts.tolist()
    yield "counters", 0 <= seen <= time <= past.rounds and 0 <= gap <= time - seen and 0 <= errors <= seen
    yield "counters", positive in (0, 1) and side in (-1, 0, 1) and 0 <= changed <= seen and trusted in (0, 1)
    yield "counters", stayed >= 0 and returned >= 0 and stayed + returned <= seen
    yield "marks", bool(s.marks[LOW] <= s.marks[HIGH] and s.marks[SCALE] >= 0.0)
    yield "past", not positive or not seen or bool(s.marks[LOW] > 0.0)
    yield "changes", bool((s.changes <= past.rounds).all())


@inner
def is_there(value: float) -> bool:
    """Whether a number of a state is one."""
    return value < ABSENT


@inner
def hold(value: float, low: float, high: float) -> float:
    """The value within these bounds; the lower one where it is not a number."""
    if not value > low:
        return low
    return min(value, high)


@inner
def usual(s: HistoryState, p: int) -> bool:
    """Whether space p is in use."""
    return p == 0 or s.counts[POSITIVE] == 1


@inner
def logarithm(s: HistoryState, value: float) -> float:
    """Return log(value), for a value that a forecast may have brought to 0 or below."""
    return float(np.log(max(value, 0.5 * s.marks[LOW])))


@inner
def lay_out(s: HistoryState, c: HistorySettings) -> None:
    """line <- the last L values in order of time. Those before the first are 0."""
    L, t = s.z.shape[1], s.counts[TIME]
    for p in range(2):
        first = t % L
        for i in range(L - first):
            c.line[p, i] = s.z[p, first + i]
        for i in range(first):
            c.line[p, L - first + i] = s.z[p, i]


@inner
def rebase(s: HistoryState, shift: float, shift_log: float) -> None:
    """(2): the level of the series has changed."""
    for i in range(s.z.shape[1]):
        s.z[0, i] = hold(s.z[0, i] + shift, -LARGEST_ENTRY, LARGEST_ENTRY)
        s.z[1, i] += shift_log
    s.mean[0] = hold(s.mean[0] + shift, -LARGEST_ENTRY, LARGEST_ENTRY)
    s.mean[1] += shift_log
    s.marks[FIRST] = hold(s.marks[FIRST] + shift, -LARGEST_ENTRY, LARGEST_ENTRY)


@inner
def usual_error(s: HistoryState, e: float) -> None:
    """Learn the size of errors."""
    most = OUTLIER * s.marks[SCALE]
    size = min(abs(e), most) if most > 0.0 else abs(e)
    s.counts[ERRORS] += 1
    s.marks[SCALE] += (size - s.marks[SCALE]) / min(float(s.counts[ERRORS]), ERROR_MEMORY)


@inner
def accept(s: HistoryState, y: float, clean: float) -> None:
    """A value: (3), then z and the summary."""
    L, t = s.z.shape[1], s.counts[TIME]
    if s.counts[POSITIVE] == 1 and y <= 0.0:
        s.counts[POSITIVE] = 0
    first = s.counts[SEEN] == 0
    s.marks[LOW] = clean if first else min(s.marks[LOW], clean)
    s.marks[HIGH] = clean if first else max(s.marks[HIGH], clean)
    if first:
        s.marks[FIRST] = y
    s.marks[LAST] = y
    s.counts[SEEN] += 1
    for p in range(2):
        z = clean
        if p == 1:
            z = np.log(clean) if s.counts[POSITIVE] == 1 else 0.0
        s.z[p, t % L] = z
        s.mean[p] += (z - s.mean[p]) / float(s.counts[SEEN])
        if t > 0:
            s.step[p] += (abs(z - s.z[p, (t - 1) % L]) - s.step[p]) / float(max(s.counts[SEEN] - 1, 1))
    s.counts[GAP] = 0
    s.counts[TIME] += 1


@inner
def spread_back(s: HistoryState, e: float, e_log: float) -> None:
    """(3): the error of the first value after a gap."""
    L, t, g = s.z.shape[1], s.counts[TIME], s.counts[GAP]
    for j in range(1, min(g, L - 1) + 1):
        part = float(g + 1 - j) / float(g + 1)
        s.z[0, (t - j) % L] = hold(s.z[0, (t - j) % L] + e * part, -LARGEST_ENTRY, LARGEST_ENTRY)
        s.z[1, (t - j) % L] += e_log * part


@inner
def fill(s: HistoryState, forecast: float) -> None:
    """A missing value."""
    L, t = s.z.shape[1], s.counts[TIME]
    s.z[0, t % L] = forecast
    s.z[1, t % L] = logarithm(s, forecast) if s.counts[POSITIVE] == 1 else 0.0
    s.counts[GAP] += 1
    s.counts[TIME] += 1
