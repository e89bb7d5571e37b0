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

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from thalweg._core.rules import within_bounds
from thalweg._core.state import Past, Plan, field
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_choice, check_positive
from thalweg._kernels.jit import implement, inlined, inner
from thalweg._kernels.parts import admit, alive, clear, feed, fits, weigh
from thalweg.metas._base import Meta, fits_range

__all__ = ["AdaptMLProd", "AdaptMLProdSettings", "AdaptMLProdState", "prod_rate"]

_within = inner(fits_range)
TINY = 1e-290  # a range below it cannot be inverted; it is taken for no feedback at all


class AdaptMLProdState(NamedTuple):
    """K groups of N members."""

    log_weights: Floats = field("K N", called="wealth")  # ln w
    squares: Floats = field("K N", called="sums of squares")  # V
    rates: Floats = field("K N")  # eta
    gammas: Floats = field("K N")  # gamma
    units: Floats = field("K", called="ranges")  # B where it is observed, else 1


class AdaptMLProdSettings(NamedTuple):
    """Constants."""

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
    return c.observed or _within(m, c, k, n, born, r)


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
            grown_weight = m.log_weights[k, i] + np.log1p(before * gain)  # |eta r| <= 1/2
            m.log_weights[k, i] = after / before * grown_weight  # (2)
            m.rates[k, i] = after


@implement(weigh, AdaptMLProdState)
def _weigh(m: AdaptMLProdState, c: AdaptMLProdSettings, k: int, n: int, born: Ints | None, p: Floats) -> None:
    top = -np.inf
    for i in range(n):
        if alive(born, i):
            top = max(top, m.log_weights[k, i])
    total = 0.0
    for i in range(n):
        p[i] = m.rates[k, i] * np.exp(m.log_weights[k, i] - top) if alive(born, i) else 0.0  # the largest: exp(0)
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
    def plan(cls, metas: Sequence[AdaptMLProd], sizes: Sequence[int]) -> Plan:
        """See `Meta.plan`."""
        spans = np.array([1.0 if isinstance(B, str) else B for B in (meta.feedback_range for meta in metas)])
        settings = AdaptMLProdSettings(spans, metas[0].feedback_range == "observed")
        return Plan(AdaptMLProdState, settings, {"K": len(metas), "N": max(sizes)}, holds=_holds)


def _holds(m: AdaptMLProdState, c: AdaptMLProdSettings, past: Past) -> Iterator[tuple[str, bool]]:
    """V <= B^2 a round, the rate is that of (1), and a round changes ln w by at most ln 2, since |eta r| <= 1/2."""
    alive, B, V = past.alive, m.units[:, None], m.squares
    seen = B > TINY
    yield "ranges", bool((seen | (B == 0) if c.observed else B == 1)[alive.any(axis=1)].all())
    yield "sums of squares", within_bounds(V, 0.0, past.lived * B**2 + TINY, alive)
    gammas = np.log(1.0 + 2.0 * past.number)
    rates = np.where(seen, np.minimum(0.5 / B, np.sqrt(gammas / (B**2 + V))), 1.0)
    yield "rates", bool(np.allclose(m.gammas[alive], gammas[alive], rtol=1e-9))
    yield "rates", bool(np.allclose(m.rates[alive], rates[alive], rtol=1e-6, atol=0.0))
    yield "wealth", within_bounds(np.abs(m.log_weights), 0.0, past.lived * np.log(2), alive)
