"""Inner products, norms, and an exponential that loops can vectorise."""

import math

import numpy as np

from thalweg._kernels.jit import inlined, kernel

# 2^-n; nothing from n = 59 on, which beside a weight of 1 is nothing in floating point.
HALVES = np.array([2.0**-n if n < 59 else 0.0 for n in range(66)])
LOWEST = -45.0  # n = 65
LOG2_E = 1.0 / math.log(2.0)
# ln 2 in two parts; the first ends in zeros, so that n times it is exact.
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13 = (1.0 / math.factorial(n) for n in range(2, 14))


@kernel
def copy(a: np.ndarray, out: np.ndarray) -> None:
    """out <- a. (A slice would do, but Numba compiles the words of its error messages into every one: seconds.)"""
    for j in range(a.shape[0]):
        out[j] = a[j]


@kernel
def dot(a: np.ndarray, b: np.ndarray) -> float:
    """<a, b>."""
    total = 0.0
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total


@kernel
def square_norm(a: np.ndarray) -> float:
    """||a||^2: inf where it overflows, nan where a has one."""
    return dot(a, a)


@inlined
def decay(x: float) -> float:
    """exp(x) for x <= 0, to 2e-15 relatively; 0 below -40.6, where it is nothing beside 1.

    Numba's exp is a call into the C library for each number, and in a small round of many members those calls took a
    quarter of the time. This one is plain arithmetic, so a loop over members does several at once: x = r - n ln 2 with
    |r| <= ln(2)/2, Taylor's polynomial of degree 13 for exp(r) (its error is below 1e-17 there), times 2^-n.
    """
    x = max(x, LOWEST)
    n = np.floor(0.5 - x * LOG2_E)
    r = (x + n * LN2_HIGH) + n * LN2_LOW
    q = C10 + r * (C11 + r * (C12 + r * C13))
    q = C6 + r * (C7 + r * (C8 + r * (C9 + r * q)))
    q = C2 + r * (C3 + r * (C4 + r * (C5 + r * q)))
    return (1.0 + (r + r * r * q)) * HALVES[np.int64(n)]
