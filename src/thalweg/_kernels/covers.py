"""Interval covers: the living experts, in slots by level.

A marker starts a unit interval; `m` counts the markers so far. Slot k holds the expert of level k, created at marker
`born[k]` (0: the slot is empty).

Compact cover: marker m = n 2^k, n odd, creates one expert that lives for the 2^k unit intervals [m, m + 2^k). The
living experts are the one-bits of m; going to m + 1 clears its trailing ones and fills one slot.
Geometric cover: marker m creates an expert of every level k with 2^k | m, in place of the one that ends there.

With a marker every round these are the covers of the rounds themselves; with a marker whenever the loss since the last
one exceeds a threshold they are problem-dependent.
"""

import numpy as np

from thalweg._kernels.jit import inner

COMPACT, GEOMETRIC = 0, 1


@inner
def level(m: int) -> int:
    """The exponent of the largest power of 2 that divides m >= 1: the level of the expert that marker m creates."""
    k = 0
    while m & 1 == 0:
        m >>= 1
        k += 1
    return k


@inner
def slots_in_use(m: int) -> int:
    """How many slots markers 1..m have ever filled: the number of binary digits of m."""
    k = 0
    while m >> k > 0:
        k += 1
    return k


@inner
def place_marker(kind: int, m: int, born: np.ndarray) -> int:
    """Marker m: end the experts whose intervals are over, create the new ones. Overwrites born.

    Slots up to and including the returned level changed: the newborn have born[k] = m, the others are empty.
    """
    top = level(m)
    for k in range(top):
        born[k] = m if kind == GEOMETRIC else 0
    born[top] = m
    return top
