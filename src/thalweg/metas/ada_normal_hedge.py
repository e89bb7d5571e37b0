"""AdaNormalHedge for members that come and go: Luo, Schapire (COLT 2015).

With r_{t,i} in units of the range B, so that |r| <= 1, and Phi(R, C) = exp([R]_+^2 / (3C)):

    R_i += r_{t,i};   C_i += |r_{t,i}|                                                               (1)
    p_i ~ Phi(R_i + 1, C_i + 1) - Phi(R_i - 1, C_i + 1);   uniform where all vanish                  (2)
"""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from thalweg._core.rules import magnitude, within
from thalweg._core.state import Plan, field
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_positive
from thalweg._kernels.jit import implement, inlined
from thalweg._kernels.parts import admit, alive, feed, fits, weigh
from thalweg.metas._base import Meta, fits_range

__all__ = ["AdaNormalHedge", "AdaNormalHedgeState", "log_potential"]


class AdaNormalHedgeState(NamedTuple):
    """K groups of N members."""

    regrets: Floats = field("K N", magnitude("sizes"))  # R
    sizes: Floats = field("K N", within(0.0, "lived"))  # C, at most the rounds lived since |r| <= 1


class AdaNormalHedgeSettings(NamedTuple):
    """Constants."""

    spans: Floats  # (K,) B


@inlined
def log_potential(R: float, C: float) -> float:
    """ln of (2)'s weight (exp([R+1]_+^2 / (3(C+1))) - exp([R-1]_+^2 / (3(C+1)))) / 2; -inf for R <= -1."""
    if R <= -1.0:
        return -np.inf
    above = (R + 1.0) ** 2 / (3.0 * (C + 1.0))
    below = max(R - 1.0, 0.0) ** 2 / (3.0 * (C + 1.0))
    return above + np.log1p(-np.exp(below - above)) - np.log(2.0)


implement(fits, AdaNormalHedgeState)(fits_range)


@implement(admit, AdaNormalHedgeState)
def _admit(m: AdaNormalHedgeState, c: AdaNormalHedgeSettings, k: int, i: int, index: int) -> None:
    m.regrets[k, i] = 0.0
    m.sizes[k, i] = 0.0


@implement(feed, AdaNormalHedgeState)
def _feed(
    m: AdaNormalHedgeState,
    c: AdaNormalHedgeSettings,
    k: int,
    n: int,
    born: Ints | None,
    base: float,
    losses: Floats,
    square: float,
) -> None:
    for i in range(n):
        if alive(born, i):
            gain = (base - losses[i]) / c.spans[k]
            m.regrets[k, i] += gain  # (1)
            m.sizes[k, i] += abs(gain)


@implement(weigh, AdaNormalHedgeState)
def _weigh(m: AdaNormalHedgeState, c: AdaNormalHedgeSettings, k: int, n: int, born: Ints | None, p: Floats) -> None:
    top = -np.inf
    for i in range(n):
        p[i] = log_potential(m.regrets[k, i], m.sizes[k, i]) if alive(born, i) else -np.inf
        top = max(top, p[i])
    total = 0.0
    for i in range(n):
        if top == -np.inf:
            p[i] = 1.0 if alive(born, i) else 0.0
        else:
            p[i] = np.exp(p[i] - top) if p[i] > -np.inf else 0.0  # the largest term is exp(0)
        total += p[i]
    for i in range(n):
        p[i] /= total  # (2)


class AdaNormalHedge(Meta):
    """Weights for experts that come and go, by their regret alone: nothing to tune.

    Parameters
    ----------
    feedback_range : float
        B >= |r| for every member in every round.
    """

    def __init__(self, feedback_range: float) -> None:
        self.feedback_range = check_positive("AdaNormalHedge", "feedback_range", feedback_range)

    @classmethod
    def plan(cls, metas: Sequence[Self], sizes: Sequence[int]) -> Plan:
        """See `Meta.plan`."""
        spans = AdaNormalHedgeSettings(np.array([meta.feedback_range for meta in metas]))
        return Plan(AdaNormalHedgeState, spans, {"K": len(metas), "N": max(sizes)})
