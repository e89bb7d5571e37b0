"""Thresholds of problem-dependent covers: how much loss ends the m-th unit interval."""

import math
from collections.abc import Callable
from functools import partial

from thalweg._core.validate import check_positive, wrong

__all__ = ["Threshold", "adaptive_paper", "adaptive_proof", "fixed", "interval_dynamic", "mu", "read", "sacs", "scaled"]

Threshold = str | float | Callable[[int], float]  # a theory's by name, one number for every m, or m -> C_m


def read(owner: str, threshold: Threshold, **named: Callable[[int], float]) -> Callable[[int], float]:
    """Return the function m -> C_m for a `threshold` argument."""
    if callable(threshold):
        return threshold
    if isinstance(threshold, str):
        if threshold not in named:
            words = " or ".join(map(repr, named))
            raise wrong(owner, "threshold", f"{words}, a number > 0 or a function m -> C_m", threshold)
        return named[threshold]
    return partial(fixed, C=check_positive(owner, "threshold", threshold, 1e307))


def fixed(m: int, *, C: float) -> float:
    """The same threshold for every m."""
    return C


def scaled(m: int, *, by: float, C: Callable[[int], float]) -> float:
    """A part of another threshold."""
    return by * C(m)


def sacs(*, L: float, D: float, delta: float) -> float:
    """C = 20 L D^2 + 2 D sqrt(2 delta): Zhang, Liu, Zhou (ICML 2019), equation 11."""
    return 20 * L * D**2 + 2 * D * math.sqrt(2 * delta)


def mu(T: int) -> float:
    """mu_T = ln(1 + (1 + ln(1 + T)) / (2e)): the cost of an unknown number of experts in Adapt-ML-Prod."""
    return math.log(1 + (1 + math.log(1 + T)) / (2 * math.e))


def adaptive_paper(m: int, *, T: int, G: float, L: float, R: float, delta: float) -> float:
    """Theorem 4 as printed, with R in the place of D.

    C_m = (54GR + 168R^2 L) ln(1 + 2m) + 168 R^2 L mu^2 + 18GR mu + 6R sqrt(delta) + 672 R^2 L.
    """
    log, mu_T = math.log(1 + 2 * m), mu(T)
    return (
        (54 * G * R + 168 * R**2 * L) * log
        + 168 * R**2 * L * mu_T**2
        + 18 * G * R * mu_T
        + 6 * R * math.sqrt(delta)
        + 672 * R**2 * L
    )


def adaptive_proof(m: int, *, T: int, G: float, L: float, R: float, delta: float) -> float:
    """Theorem 4 re-derived: the printed one lost the factor 3 of 3 sqrt(ln(1 + 2m)) and half of sqrt(delta).

    C_m = 56 R^2 L S^2 + 54 GR ln(1 + 2m) + 18 GR mu + 12 R sqrt(delta),  S = 3 sqrt(ln(1 + 2m)) + mu + 2.
    """
    log, mu_T = math.log(1 + 2 * m), mu(T)
    S = 3 * math.sqrt(log) + mu_T + 2
    return 56 * R**2 * L * S**2 + 54 * G * R * log + 18 * G * R * mu_T + 12 * R * math.sqrt(delta)


def interval_dynamic(m: int, *, T: int, G: float, L: float, R: float, N: int) -> float:
    """Theorem 5, with R in the place of D and N members in each expert.

    C_m = 7L (12R sqrt(ln(1+2m)) + 4R mu + 6R sqrt(ln N))^2 + 54GR ln(1+2m) + 18GR mu
          + 3/2 (6 + G^2 R^2) sqrt(ln N) + (630L + 23) R^2 + 9.
    """
    log, mu_T, log_N = math.log(1 + 2 * m), mu(T), math.log(N)
    return (
        7 * L * (12 * R * math.sqrt(log) + 4 * R * mu_T + 6 * R * math.sqrt(log_N)) ** 2
        + 54 * G * R * log
        + 18 * G * R * mu_T
        + 1.5 * (6 + G**2 * R**2) * math.sqrt(log_N)
        + (630 * L + 23) * R**2
        + 9
    )
