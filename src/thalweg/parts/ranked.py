"""Numbers kept in order, in the first n places of an array: quantiles, and one more number or another one."""

from thalweg._core.types import Floats
from thalweg._kernels.jit import inner


@inner
def quantile(ranked: Floats, n: int, level: float) -> float:
    """The number with rank level (n + 1), between neighbours linear; n >= 1."""
    place = level * (n + 1) - 1.0
    if place <= 0.0:
        return float(ranked[0])
    if place >= n - 1:
        return float(ranked[n - 1])
    i = int(place)
    return float(ranked[i] + (place - i) * (ranked[i + 1] - ranked[i]))


@inner
def _place(ranked: Floats, n: int, value: float) -> int:
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
    i = _place(ranked, n, value)
    for j in range(n, i, -1):
        ranked[j] = ranked[j - 1]
    ranked[i] = value


@inner
def replace(ranked: Floats, n: int, old: float, new: float) -> None:
    """Replace one of n numbers by another."""
    i = _place(ranked, n, old)
    while i + 1 < n and ranked[i + 1] < new:
        ranked[i] = ranked[i + 1]
        i += 1
    while i > 0 and ranked[i - 1] > new:
        ranked[i] = ranked[i - 1]
        i -= 1
    ranked[i] = new
