"""Numbers kept in order, in the first n places of an array: quantiles, and one more number or another one."""

from thalweg._core.types import Floats
from thalweg._kernels.jit import inner


@inner
def rank_of(n: int, level: float) -> float:
    """The rank of a quantile among n >= 1 numbers, counted from 0, with a fraction: level (n + 1) - 1, or an end."""
    return min(max(level * (n + 1) - 1.0, 0.0), float(n - 1))


@inner
def number_at(ranked: Floats, below: int, n: int, rank: float) -> float:
    """The number of this rank of n, between neighbours linear; the first `below` numbers are not in the array."""
    i = int(rank)
    if i >= n - 1:
        return float(ranked[n - 1 - below])
    low, high = ranked[i - below], ranked[i + 1 - below]
    return float(low + (rank - i) * (high - low))


@inner
def quantile(ranked: Floats, n: int, level: float) -> float:
    """The number with rank level (n + 1), counted from 1, between neighbours linear; n >= 1."""
    return number_at(ranked, 0, n, rank_of(n, level))


@inner
def place_of(ranked: Floats, n: int, value: float) -> int:
    """How many of the n numbers are below the value."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if ranked[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def insert(ranked: Floats, n: int, value: float) -> None:
    """One more number beside n."""
    i = place_of(ranked, n, value)
    for j in range(n, i, -1):
        ranked[j] = ranked[j - 1]
    ranked[i] = value


@inner
def replace(ranked: Floats, n: int, old: float, new: float) -> None:
    """Replace one of n numbers by another."""
    i = place_of(ranked, n, old)
    while i + 1 < n and ranked[i + 1] < new:
        ranked[i] = ranked[i + 1]
        i += 1
    while i > 0 and ranked[i - 1] > new:
        ranked[i] = ranked[i - 1]
        i -= 1
    ranked[i] = new
