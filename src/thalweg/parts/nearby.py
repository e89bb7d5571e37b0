"""Quantiles of a window from the part of its numbers, in order, that lies around one rank.

A row of `near` has consecutive ones of the n sorted numbers: `span` says how many are below them and how many they are.
Most numbers that come and go are below or above, and only counted. Where the ranks that are needed have left the row,
it is made again from the window (`refill`). The results are those of the whole sorted window, bit for bit.

A rank r counts from 0 and is held between 0 and n - 1; the number of the next rank is needed, too.
"""

from thalweg._core.types import Floats, Ints
from thalweg._kernels.jit import inner
from thalweg.parts.ranked import insert, place_of

NEARBY = 64  # numbers of a row: it is refilled after at least NEARBY / 2 - 2 new ones
BELOW, COUNT = range(2)  # of `span`


@inner
def reaches(span: Ints, n: int, rank: float) -> bool:
    """Whether the row has the numbers of this rank and the next one."""
    i = int(rank)
    return bool(span[BELOW] <= i and min(i + 1, n - 1) < span[BELOW] + span[COUNT])


@inner
def leave(near: Floats, span: Ints, old: float) -> None:
    """One number of the window less; there must be one in the row."""
    m = span[COUNT]
    if old < near[0]:
        span[BELOW] -= 1
    elif not old > near[m - 1]:
        for j in range(place_of(near, m, old), m - 1):
            near[j] = near[j + 1]
        span[COUNT] = m - 1


@inner
def enter(near: Floats, span: Ints, n: int, new: float, rank: float) -> None:
    """One number more beside n. A full row loses a number at the end that is farther from the rank."""
    below, m = span[BELOW], span[COUNT]
    if m == 0 and n > 0:
        return  # nothing is known of the others: the row does not reach any rank
    from_first, to_last = below == 0 or not new < near[0], below + m == n or not new > near[m - 1]
    if from_first and to_last:
        if m == near.shape[0]:
            m -= 1
            if int(rank) - below > m // 2:
                for j in range(m):
                    near[j] = near[j + 1]
                below += 1
                from_first = not new < near[0]
            else:
                to_last = not new > near[m - 1]
        if from_first and to_last:
            insert(near, m, new)
            m += 1
    span[BELOW], span[COUNT] = below + (0 if from_first else 1), m


@inner
def first_near(size: int, n: int, rank: float) -> int:
    """How many of n numbers are below a new row of this size."""
    return min(max(int(rank) - size // 2 + 1, 0), max(n - size, 0))


@inner
def refill(near: Floats, span: Ints, numbers: Floats, n: int, rank: float) -> None:
    """Make the row from all n numbers, which are put into another order."""
    first = first_near(near.shape[0], n, rank)
    last = min(first + near.shape[0], n)
    if first > 0:
        _part(numbers, 0, n - 1, first)
    if last < n:
        _part(numbers, first, n - 1, last - 1)
    for i in range(first, last):
        insert(near, i - first, numbers[i])
    span[BELOW], span[COUNT] = first, last - first


@inner
def _part(numbers: Floats, low: int, high: int, k: int) -> None:
    """Put the number that has place k in order there, smaller ones before it and larger ones after it.

    C. Hoare, Algorithm 65: Find, Communications of the ACM 4, 1961, between the places low and high.
    """
    while low < high:
        pivot, i, j = numbers[k], low, high
        while i <= j:
            while numbers[i] < pivot:
                i += 1
            while pivot < numbers[j]:
                j -= 1
            if i <= j:
                numbers[i], numbers[j] = numbers[j], numbers[i]
                i += 1
                j -= 1
        if j < k:
            low = i
        if k < i:
            high = j
