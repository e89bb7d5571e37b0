"""A loss as a function of the prediction, for compiled loops.

Every loss is f(w) = phi(z, b) with z = <a, w>, features a and label b. So its value is phi(z, b) and its gradient is
phi'(z, b) a, the slope taken in z. `par` is the one number that a loss may have besides, 0 where it has none.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from thalweg._kernels.handle import data
from thalweg._kernels.jit import PLAIN, Entry, inner, kernel
from thalweg._kernels.pointers import Pointer, call

__all__ = ["QUERY", "Phi", "each", "each_prox", "of_kernels", "query", "slope_at", "value_at"]

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
    """f(x), and g <- its gradient. All queries of losses end here, from compiled loops and from Python."""
    z = 0.0
    for j in range(a.shape[0]):
        z += a[j] * x[j]
    weight = call(slope, z, b, par)
    for j in range(a.shape[0]):
        g[j] = weight * a[j]
    paid: float = call(value, z, b, par)
    return paid


QUERY = Pointer(query, f"f8(@{_OF_THREE},@{_OF_THREE},f8[1]r,f8,f8,f8[1]r,f8[1])")


# ------------------------------------------------------------------------------------------- a loss asked from Python


@inner
def _prediction(a: np.ndarray, x: np.ndarray) -> float:
    z = 0.0
    for j in range(a.shape[0]):
        z += a[j] * x[j]
    return z


@kernel
def ask_value(value: Pointer, b: float, par: float, a: np.ndarray, x: np.ndarray) -> float:
    """f(x) as in `query`; nan where <a, x> is not finite."""
    z = _prediction(a, x)
    return call(value, z, b, par) if math.isfinite(z) else np.nan


@kernel
def ask_slope(slope: Pointer, b: float, par: float, a: np.ndarray, x: np.ndarray, g: np.ndarray) -> float:
    """g <- the gradient as in `query`; returns <a, x>. Where that is not finite, g is unchanged."""
    z = _prediction(a, x)
    if math.isfinite(z):
        weight = call(slope, z, b, par)
        for j in range(a.shape[0]):
            g[j] = weight * a[j]
    return z


_DATA = f"@{_OF_THREE}", "f8", "f8", "f8[1]r", "f8[1]r"


@cache
def _entries() -> tuple[Entry, Entry]:
    return ask_value.entry(_DATA), ask_slope.entry((*_DATA, "f8[1]"))


def value_at(phi: Phi, b: float, par: float, a: np.ndarray, x: np.ndarray) -> float:
    """`ask_value` for contiguous float64 arrays of one shape: their kinds are known, so words are handed over."""
    if PLAIN:
        return ask_value(phi.value, b, par, _line(a), _line(x))
    entry, n = _entries()[0], a.size
    found: float = entry.function(entry.pack(phi.value.address, b, par, data(a), n, data(x), n))
    return found


def slope_at(phi: Phi, b: float, par: float, a: np.ndarray, x: np.ndarray, g: np.ndarray) -> float:
    """`ask_slope`, as `value_at`."""
    if PLAIN:
        return ask_slope(phi.slope, b, par, _line(a), _line(x), g.reshape(-1))
    entry, n = _entries()[1], a.size
    z: float = entry.function(entry.pack(phi.slope.address, b, par, data(a), n, data(x), n, data(g), n))
    return z


def _line(array: np.ndarray) -> np.ndarray:
    line = array.reshape(-1).view()
    line.flags.writeable = False
    return line


# ------------------------------------------------------------------------------------------------------ many at once


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
