"""Running mean and spread of columns of numbers, and numbers in these units.

A column's mean m and sum of squares Q after n numbers (Welford):

    n += 1;  a = x - m;  m += a/n;  Q += a (x - m);  spread = sqrt(Q/n)                                            (1)
    z = (x - m)/spread; 0 while the spread is nothing beside the mean. Users cut it to [-10, 10], `MOST`            (2)

Without centring m stays 0 and the spread is the root of the mean square. All of it scales exactly: numbers multiplied
by a power of two give the same z, bit for bit.
"""

from typing import NamedTuple

import numpy as np

from thalweg._kernels.jit import inner
from thalweg._kernels.parts import Floats

__all__ = ["MOST", "Spread", "new_spread", "see", "standard"]

MOST = 10.0  # of a number in units of its spread
NOTHING = 2.0**-40  # of the mean: a spread up to here is rounding


class Spread(NamedTuple):
    """Of d columns; one may have seen fewer numbers than another."""

    seen: Floats  # (d,) how many numbers
    mean: Floats  # (d,)
    squares: Floats  # (d,) Q
    spread: Floats  # (d,)


def new_spread(columns: int) -> Spread:
    """Before the first number."""
    return Spread(np.zeros(columns), np.zeros(columns), np.zeros(columns), np.zeros(columns))


@inner
def see(s: Spread, j: int, x: float, centred: bool) -> None:
    """(1): one more number of column j."""
    s.seen[j] += 1.0
    away = x - s.mean[j]
    if centred:
        s.mean[j] += away / s.seen[j]
    s.squares[j] += away * (x - s.mean[j])
    s.spread[j] = np.sqrt(s.squares[j] / s.seen[j])


@inner
def standard(s: Spread, j: int, x: float) -> float:
    """(2), uncut."""
    if s.spread[j] <= NOTHING * abs(s.mean[j]):
        return 0.0
    return float((x - s.mean[j]) / s.spread[j])
