"""Prod with a rate for each length of interval: Daniely, Gonen, Shalev-Shwartz (ICML 2015).

With r_{t,i} in units of the range B, so that |r| <= 1, and member i on intervals of 2^i rounds:

    eta_i   = min(1/2, 2^(-i/2))                                                           (1)
    w_i     = 1 at birth;  w_i <- w_i (1 + eta_i r_i)                                      (2)
    p_i     ~ eta_i w_i over those alive                                                   (3)

sum_i p_i r_i <= 0 keeps the sum of all w at most the number of members ever created. Weights live in log space.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np

from thalweg._core.rules import within_bounds
from thalweg._core.state import Past, Plan, field
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_positive
from thalweg._kernels.jit import implement
from thalweg._kernels.parts import admit, alive, feed, fits, weigh
from thalweg._kernels.vectors import decay
from thalweg.metas._base import Meta, fits_range

__all__ = ["Prod", "ProdSettings", "ProdState"]


class ProdState(NamedTuple):
    """K groups of N members."""

    log_weights: Floats = field("K N", called="wealth")  # ln w


class ProdSettings(NamedTuple):
    """Constants."""

    spans: Floats  # (K,) B
    rates: Floats  # (N,) eta


implement(fits, ProdState)(fits_range)


@implement(admit, ProdState)
def _admit(m: ProdState, c: ProdSettings, k: int, i: int, index: int) -> None:
    m.log_weights[k, i] = 0.0


@implement(feed, ProdState)
def _feed(
    m: ProdState, c: ProdSettings, k: int, n: int, born: Ints | None, base: float, losses: Floats, square: float
) -> None:
    for i in range(n):
        if alive(born, i):
            m.log_weights[k, i] += np.log1p(c.rates[i] * ((base - losses[i]) / c.spans[k]))  # (2); |eta r| <= 1/2


@implement(weigh, ProdState)
def _weigh(m: ProdState, c: ProdSettings, k: int, n: int, born: Ints | None, p: Floats) -> None:
    top = -np.inf
    for i in range(n):
        top = max(top, m.log_weights[k, i]) if alive(born, i) else top
    total = 0.0
    for i in range(n):
        p[i] = c.rates[i] * decay(m.log_weights[k, i] - top) if alive(born, i) else 0.0  # (3)
        total += p[i]
    for i in range(n):
        p[i] /= total


class Prod(Meta):
    """First-order weights for experts on intervals, with a slower rate on longer ones.

    Parameters
    ----------
    feedback_range : float
        B >= |r| for every member in every round.
    """

    def __init__(self, feedback_range: float) -> None:
        self.feedback_range = check_positive("Prod", "feedback_range", feedback_range)

    @classmethod
    def plan(cls, metas: Sequence[Self], sizes: Sequence[int]) -> Plan:
        """See `Meta.plan`."""
        K, N = len(metas), max(sizes)
        spans = np.array([meta.feedback_range for meta in metas])
        rates = np.minimum(0.5, 2.0 ** (-np.arange(N) / 2))  # (1)
        return Plan(ProdState, ProdSettings(spans, rates), {"K": K, "N": N}, holds=_holds)


def _holds(m: ProdState, c: ProdSettings, past: Past) -> Iterator[tuple[str, bool]]:
    """A round changes ln w by at most ln 2, since |eta r| <= 1/2."""
    yield "wealth", within_bounds(np.abs(m.log_weights), 0.0, past.lived * np.log(2), past.alive)
