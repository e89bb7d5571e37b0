"""Adapt-ML-Prod for members that come and go: Gaillard, Stoltz, van Erven (COLT 2014).

With r_{t,i} in units of the range B, so that |r| <= 1, and gamma_i = ln(1 + 2i) for the i-th member ever created:

    V_i += r_{t,i}^2;   eta'_i = min(1/2, sqrt(gamma_i / (1 + V_i)))                                 (1)
    ln w_i <- (eta'_i / eta_i) (ln w_i + ln(1 + eta_i r_{t,i}));   eta_i <- eta'_i                   (2)
    p_i ~ eta_i w_i over those alive                                                                 (3)

Where the range is observed, r stays in natural units, B is the largest |r| so far, and the rates are
min(1/(2B), sqrt(gamma/(B^2 + V))). When B grows, weights first move to the smaller rates by the power rule of (2), so
that every factor 1 + eta r is at least 1/2. Weights live in log space.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from thalweg._kernels.jit import implement, inlined
from thalweg._kernels.parts import Floats, Ints, admit, alive, clear, feed, fits, weigh
from thalweg._validate import check_choice, check_positive
from thalweg.metas._base import LARGEST, Meta

__all__ = ["AdaptMLProd", "AdaptMLProdSettings", "AdaptMLProdState", "prod_rate"]

TINY = 1e-290  # a range below it cannot be inverted; it is taken for no feedback at all


class AdaptMLProdState(NamedTuple):
    """K groups of N members."""

    log_weights: Floats  # (K, N) ln w
    squares: Floats  # (K, N) V
    rates: Floats  # (K, N) eta
    gammas: Floats  # (K, N) gamma
    units: Floats  # (K,) B where it is observed, else 1


class AdaptMLProdSettings(NamedTuple):
    """What does not change."""

    spans: Floats  # (K,) B; 1 where it is observed
    observed: bool


@inlined
def prod_rate(gamma: float, V: float, unit: float) -> float:
    """min(1/(2B), sqrt(gamma / (B^2 + V))) with B = `unit`: (1) for feedback in [-B, B]."""
    square = unit * unit
    if square + V <= 4.0 * gamma * square:  # then the first is the smaller one: no root needed
        return 0.5 / unit  # unit > 0
    return np.sqrt(gamma / (square + V))


@implement(clear, AdaptMLProdState)
def _clear(m: AdaptMLProdState, c: AdaptMLProdSettings, k: int) -> None:
    m.units[k] = 0.0 if c.observed else 1.0


@implement(admit, AdaptMLProdState)
def _admit(m: AdaptMLProdState, c: AdaptMLProdSettings, k: int, i: int, index: int) -> None:
    gamma = np.log(1.0 + 2.0 * index)
    m.log_weights[k, i] = 0.0
    m.squares[k, i] = 0.0
    m.rates[k, i] = prod_rate(gamma, 0.0, m.units[k]) if m.units[k] > TINY else 1.0  # no feedback yet: all rates equal
    m.gammas[k, i] = gamma


@implement(fits, AdaptMLProdState)
def _fits(m: AdaptMLProdState, c: AdaptMLProdSettings, k: int, n: int, born: Ints | None, r: Floats) -> bool:
    fine = True
    for i in range(n):
        fine = fine and (c.observed or not alive(born, i) or abs(r[i] / c.spans[k]) <= LARGEST)
    return fine


@implement(feed, AdaptMLProdState)
def _feed(
    m: AdaptMLProdState,
    c: AdaptMLProdSettings,
    k: int,
    n: int,
    born: Ints | None,
    base: float,
    losses: Floats,
    square: float,
) -> None:
    unit = m.units[k]
    grown = unit
    if c.observed:
        for i in range(n):
            grown = max(grown, abs(base - losses[i])) if alive(born, i) else grown
        if grown <= TINY:
            return  # no feedback so far
        m.units[k] = grown
    for i in range(n):
        if alive(born, i):
            gain = (base - losses[i]) / c.spans[k]
            if unit < grown:
                slower = prod_rate(m.gammas[k, i], m.squares[k, i], grown)
                m.log_weights[k, i] *= slower / m.rates[k, i]
                m.rates[k, i] = slower
            m.squares[k, i] += gain * gain  # (1)
            after = prod_rate(m.gammas[k, i], m.squares[k, i], grown)
            before = m.rates[k, i]
            m.log_weights[k, i] = (
                after / before * (m.log_weights[k, i] + np.log1p(before * gain))
            )  # (2), |eta r| <= 1/2
            m.rates[k, i] = after


@implement(weigh, AdaptMLProdState)
def _weigh(m: AdaptMLProdState, c: AdaptMLProdSettings, k: int, n: int, born: Ints | None, p: Floats) -> None:
    top = -np.inf
    for i in range(n):
        if alive(born, i):
            top = max(top, m.log_weights[k, i])
    total = 0.0
    for i in range(n):
        p[i] = (
            m.rates[k, i] * np.exp(m.log_weights[k, i] - top) if alive(born, i) else 0.0
        )  # the largest: eta exp(0) > 0
        total += p[i]
    for i in range(n):
        p[i] /= total  # (3)


class AdaptMLProd(Meta):
    """Second-order weights for experts that come and go; needs no number of experts and no horizon.

    Parameters
    ----------
    feedback_range : float or "observed"
        B >= |r|, or the largest |r| seen so far.
    """

    def __init__(self, feedback_range: float | str) -> None:
        self.feedback_range: float | str
        if isinstance(feedback_range, str):
            self.feedback_range = check_choice("AdaptMLProd", "feedback_range", feedback_range, ("observed",))
        else:
            self.feedback_range = check_positive("AdaptMLProd", "feedback_range", feedback_range)

    @classmethod
    def assemble(
        cls, metas: Sequence[AdaptMLProd], sizes: Sequence[int]
    ) -> tuple[AdaptMLProdState, AdaptMLProdSettings]:
        """See `Meta.assemble`."""
        K, N = len(metas), max(sizes)
        spans = np.array([1.0 if isinstance(B, str) else B for B in (meta.feedback_range for meta in metas)])
        each = [np.zeros((K, N)) for _ in range(4)]
        state = AdaptMLProdState(each[0], each[1], each[2], each[3], np.zeros(K))
        return state, AdaptMLProdSettings(spans, metas[0].feedback_range == "observed")
