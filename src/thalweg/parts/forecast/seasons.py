"""Seasons that a series shows by itself: peaks of the autocorrelation of its steps.

    d = z_t - z_{t-1} less their median, cut at 4 robust deviations;  r(l) = sum d_t d_{t-l} / sum d_t^2            (1)

A season is a lag l >= 3 where r has a peak above 3/sqrt(n), the higher the better, and no multiple of one that was
taken already. The test is made after 30 rounds, and then whenever there are half as many more, of the last 256 values.
"""

import math

import numpy as np

from thalweg._core.types import Floats

LONGEST = 60  # season that is looked for
KEPT_VALUES = 256  # values that are looked at
START = 30  # rounds before the first test
CUT = 4.0
SURE = 3.0
NORMAL = 1.4826  # standard deviations in a median absolute deviation


def next_check(rounds: int) -> int:
    """Return the round of the next test after this one; they are half again as far apart each time."""
    return max(START, rounds + rounds // 2)


def find_seasons(z: Floats, most: int, known: tuple[int, ...] = ()) -> list[int]:
    """Return up to `most` seasons of these values, the clearest first; none that is a multiple of one known."""
    d = np.diff(z)
    if d.size < 8:
        return []
    d = d - np.median(d)
    scale = NORMAL * float(np.median(np.abs(d))) or float(d.std())
    if not scale > 0.0:
        return []
    d = np.clip(d / scale, -CUT, CUT)
    longest = min(LONGEST, d.size // 2 - 1)
    r = np.array([d[lag:] @ d[:-lag] for lag in range(1, longest + 2)]) / (d @ d)  # of lag 1, 2, ...
    found: list[int] = []
    peaks = [k + 1 for k in range(2, longest) if r[k] > r[k - 1] and r[k] >= r[k + 1]]
    for lag in sorted((lag for lag in peaks if r[lag - 1] > SURE / math.sqrt(d.size)), key=lambda lag: -r[lag - 1]):
        if len(found) < most and all(lag % other for other in (*known, *found)):
            found.append(lag)
    return found
