"""Step-size pools: geometric grids that hold a step within a factor 2 of the best one in hindsight."""

import math

import numpy as np

from thalweg._core.types import Floats

__all__ = ["ader_pool", "geometric", "hint_pool", "small_loss_pool", "worst_case_pool"]


def geometric(first: float, count: int) -> Floats:
    """first, 2 first, 4 first, ...: `count` numbers."""
    return np.ldexp(first, np.arange(count))


def ader_pool(T: int, G: float, D: float) -> Floats:
    """Ader: N = ceil(log2(1 + 4T/7)/2) + 1 and eta_i = 2^{i-1} (D/G) sqrt(7/(2T))."""
    N = math.ceil(0.5 * math.log2(1 + 4 * T / 7)) + 1
    return geometric(D / G * math.sqrt(7 / (2 * T)), N)


def worst_case_pool(T: int, G: float, R: float, D: float) -> Floats:
    """Theorem 2 on a ball of radius R around a set of diameter D.

    N = ceil(log2(1 + 2DT/(5R))/2) + 1 and eta_i = 2^{i-1} (R/G) sqrt(5/(2T)): the grid covers
    eta* = sqrt((5R^2 + 2R P)/(2 T G^2)) for every path length P from 0 to DT.
    """
    N = math.ceil(0.5 * math.log2(1 + 2 * D * T / (5 * R))) + 1
    return geometric(R / G * math.sqrt(5 / (2 * T)), N)


def small_loss_pool(T: int, L: float, B: float, R: float, D: float) -> Floats:
    """Theorem 3 on a ball of radius R around a set of diameter D, for losses that are L-smooth and at most B.

    N = ceil(log2((5R^2 + 2RDT)(1 + 8LBT)/(5R^2))/2) + 1 and eta_i = 2^{i-1} sqrt(5R^2/(1 + 8LBT)): the grid covers
    eta* = sqrt((5R^2 + 2R P)/(1 + 8L F)) for every path length P up to DT and every total loss F up to BT.
    """
    spread = 1 + 8 * L * B * T
    N = math.ceil(0.5 * math.log2((5 * R**2 + 2 * R * D * T) * spread / (5 * R**2))) + 1
    return geometric(math.sqrt(5 * R**2 / spread), N)


def hint_pool(T: int, G: float, R: float, L: float | None) -> Floats:
    """`EfficientOptimistic`: eta_N = R/G, at most 1/(8L), and halves of it until one is at most R/(G sqrt(T))."""
    top = R / G if L is None else min(R / G, 1 / (8 * L))
    N = max(1, math.ceil(math.log2(top * G * math.sqrt(T) / R)) + 1)
    return geometric(math.ldexp(top, 1 - N), N)
