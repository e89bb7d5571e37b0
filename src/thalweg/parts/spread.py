"""Running mean and spread of columns of numbers, and numbers in these units.

A column's mean m and sum of squares Q after n numbers (Welford):

    n += 1;  a = x - m;  m += a/n;  Q += a (x - m);  spread = sqrt(Q/n)                                            (1)
    z = (x - m)/spread; 0 while the spread is nothing beside the mean. Users cut it to [-10, 10], `MOST_SPREADS`    (2)

Without centring m stays 0 and the spread is the root of the mean square. All of it scales exactly: numbers multiplied
by a power of two give the same z, bit for bit.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from thalweg._core.rules import magnitude, within
from thalweg._core.state import Past, Plan, field
from thalweg._core.types import Floats
from thalweg._core.validate import LARGEST_ENTRY
from thalweg._kernels.jit import inner

MOST_SPREADS = 10.0  # of a number in units of its spread
SPREAD_ROUNDING = 2.0**-40  # of the mean: a spread up to here is rounding


class SpreadState(NamedTuple):
    """D columns; one may have seen fewer numbers than another."""

    seen: Floats = field("D", within(0.0, "rounds"), called="means and spreads")  # how many numbers
    mean: Floats = field("D", magnitude(LARGEST_ENTRY), called="means and spreads")
    squares: Floats = field("D", within(0.0, np.inf), called="means and spreads")  # Q
    spread: Floats = field("D", within(0.0, np.inf), called="means and spreads")


class _Spreads(Protocol):
    """A state with these fields, such as `SpreadState`."""

    @property
    def seen(self) -> Floats: ...
    @property
    def mean(self) -> Floats: ...
    @property
    def squares(self) -> Floats: ...
    @property
    def spread(self) -> Floats: ...


def spread_plan(columns: int, centred: bool) -> Plan:
    """Return the plan of a number of columns; `centred`: whether means are subtracted."""
    return Plan(SpreadState, (), {"D": columns}, holds=partial(spread_holds, centred))


def spread_holds(centred: bool, s: _Spreads, c: object, past: Past) -> Iterator[tuple[str, bool]]:
    """Relations of (1), of columns that need not be there in every round."""
    seen, squares, mean, rounds = s.seen, s.squares, s.mean, past.rounds
    known = rounds == 1 and centred  # later on, one that is seldom present need not be centred
    yield "means and spreads", bool(((seen % 1 == 0) & (seen <= rounds)).all() and not squares[seen <= known].any())
    yield "means and spreads", not mean[(seen == 0) | (not centred)].any()
    yield "means and spreads", np.allclose(s.spread**2 * seen, squares, rtol=1e-9, atol=0.0)
    yield "means and spreads", bool((squares <= rounds * 4 * LARGEST_ENTRY**2).all())


@inner
def see(s: _Spreads, j: int, x: float, centred: bool) -> None:
    """(1): one more number of column j."""
    s.seen[j] += 1.0
    away = x - s.mean[j]
    if centred:
        s.mean[j] += away / s.seen[j]
    s.squares[j] += away * (x - s.mean[j])
    s.spread[j] = np.sqrt(s.squares[j] / s.seen[j])


@inner
def standard(s: _Spreads, j: int, x: float) -> float:
    """(2), uncut."""
    if s.spread[j] <= SPREAD_ROUNDING * abs(s.mean[j]):
        return 0.0
    return float((x - s.mean[j]) / s.spread[j])
