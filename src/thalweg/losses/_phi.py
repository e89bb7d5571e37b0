"""A loss as a function of the prediction, for compiled loops.

Every loss is f(w) = phi(z, b) with z = <a, w>, features a and label b. So its value is phi(z, b) and its gradient is
phi'(z, b) a, the slope taken in z. `par` is the one number that a loss may have besides, 0 where it has none.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from thalweg._kernels.jit import kernel
from thalweg._kernels.pointers import Pointer, call

__all__ = ["QUERY", "Phi", "each", "each_prox", "of_kernels", "query"]

_OF_THREE = "f8(f8,f8,f8)"
_OF_FOUR = "f8(f8,f8,f8,f8)"


class Phi(NamedTuple):
    """The four kernels of a loss. Comparators need the last two."""

    value: Pointer  # (z, b, par): phi(z, b)
    slope: Pointer  # (z, b, par): phi'(z, b)
    prox_slope: Pointer  # (z, b, par, width): phi' at argmin over x of phi(x, b) + (x - z)^2 / (2 width), width > 0
    tangent: Pointer  # (z, b, par, s): at z, the line of slope s that touches phi(., b) from below


Kernel = Callable[..., float]


def of_kernels(value: Kernel, slope: Kernel, prox_slope: Kernel, tangent: Kernel) -> Phi:
    """The kernels by their addresses."""
    at = Pointer(value, _OF_THREE), Pointer(slope, _OF_THREE), Pointer(prox_slope, _OF_FOUR), Pointer(tangent, _OF_FOUR)
    return Phi(*at)


@kernel
def query(value: Pointer, slope: Pointer, a: np.ndarray, b: float, par: float, x: np.ndarray, g: np.ndarray) -> float:
    """f(x), and g <- its gradient. Every loss of the package is asked here, by compiled loops and from Python."""
    z = 0.0
    for j in range(a.shape[0]):
        z += a[j] * x[j]
    weight = call(slope, z, b, par)
    for j in range(a.shape[0]):
        g[j] = weight * a[j]
    paid: float = call(value, z, b, par)
    return paid


QUERY = Pointer(query, f"f8(@{_OF_THREE},@{_OF_THREE},f8[1]r,f8,f8,f8[1]r,f8[1])")


@kernel
def each(function: Pointer, z: np.ndarray, b: np.ndarray, par: float, out: np.ndarray) -> None:
    """out <- `value` or `slope` at z_t, b_t for every t. Overwrites out."""
    for t in range(z.shape[0]):
        out[t] = call(function, z[t], b[t], par)


@kernel
def each_prox(prox_slope: Pointer, z: np.ndarray, b: np.ndarray, par: float, width: float, out: np.ndarray) -> None:
    """out <- the slope of phi at the proximal point of z_t for every t. Overwrites out."""
    for t in range(z.shape[0]):
        out[t] = call(prox_slope, z[t], b[t], par, width)
