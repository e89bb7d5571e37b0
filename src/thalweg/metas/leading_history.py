"""Follow the leading history: Hazan, Seshadhri (ICML 2009); with pruned experts Zhang, Yang, Jin, Zhou (ICML 2018).

Exponential weights in which the t-th newcomer takes 1/t of all weight. With l_{t,i} the loss of member i:

    p_t     = the newcomer 1/t, the others (1 - 1/t) q_t                                   (1)
    q_{t+1,i} ~ p_{t,i} exp(-alpha l_{t,i}) over those alive after round t                 (2)

A newcomer without others alive has all the weight. Newcomers of one round come in one after the other, so N that
come first of all have 1/N each. The r-th member is never worse off by more than (ln s)/alpha until the s-th has
come, if exp(-alpha f) is concave; for losses in an interval of length c another alpha c^2/8 a round is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from thalweg._core.rules import shares, within_bounds
from thalweg._core.state import Past, Plan, field
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_positive
from thalweg._kernels.jit import implement
from thalweg._kernels.parts import admit, alive, feed, fits, weigh
from thalweg.metas._base import Meta, fits_range

__all__ = ["LeadingHistory", "LeadingHistorySettings", "LeadingHistoryState"]

LEAST_LOG_WEIGHT = -1e300  # of a log weight: losses may be of any size, but not so that weights are nan


class LeadingHistoryState(NamedTuple):
    """K groups of N members."""

    log_weights: Floats = field("K N")  # ln q, or ln p once weighed
    fresh: Ints = field("K N", called="newcomers")  # the index of a member that is new; 0 for the others


class LeadingHistorySettings(NamedTuple):
    """Constants."""

    rates: Floats  # (K,) alpha
    spans: Floats  # (K,) c; infinite where any loss will do


implement(fits, LeadingHistoryState)(fits_range)


@implement(admit, LeadingHistoryState)
def _admit(m: LeadingHistoryState, c: LeadingHistorySettings, k: int, i: int, index: int) -> None:
    m.log_weights[k, i] = 0.0
    m.fresh[k, i] = index


@implement(feed, LeadingHistoryState)
def _feed(
    m: LeadingHistoryState,
    c: LeadingHistorySettings,
    k: int,
    n: int,
    born: Ints | None,
    base: float,
    losses: Floats,
    square: float,
) -> None:
    for i in range(n):
        if alive(born, i):
            m.log_weights[k, i] = max(LEAST_LOG_WEIGHT, m.log_weights[k, i] - c.rates[k] * (losses[i] - base))  # (2)


@implement(weigh, LeadingHistoryState)
def _weigh(m: LeadingHistoryState, c: LeadingHistorySettings, k: int, n: int, born: Ints | None, p: Floats) -> None:
    top = -np.inf
    for i in range(n):
        if alive(born, i) and m.fresh[k, i] == 0:
            top = max(top, m.log_weights[k, i])
    total = 0.0
    for i in range(n):
        p[i] = 0.0
        if alive(born, i) and m.fresh[k, i] == 0:
            m.log_weights[k, i] -= top
            total += np.exp(m.log_weights[k, i])
    empty = total == 0.0
    for i in range(n):
        if alive(born, i) and m.fresh[k, i] == 0:
            m.log_weights[k, i] -= np.log(total)  # (2); the largest term is exp(0)
            p[i] = np.exp(m.log_weights[k, i])
    while True:
        new = -1  # the next newcomer
        for i in range(n):
            if alive(born, i) and m.fresh[k, i] > 0 and (new < 0 or m.fresh[k, i] < m.fresh[k, new]):
                new = i
        if new < 0:
            break
        share = 1.0 if empty else 1.0 / max(2, m.fresh[k, new])
        for i in range(n):
            if alive(born, i) and m.fresh[k, i] == 0:
                m.log_weights[k, i] += np.log1p(-share)  # (1)
                p[i] *= 1.0 - share
        m.log_weights[k, new] = np.log(share)
        m.fresh[k, new] = 0
        p[new] = share
        empty = False


class LeadingHistory(Meta):
    """Exponential weights in which every newcomer starts with a fair share.

    Parameters
    ----------
    rate : float
        alpha: for losses with concave exp(-alpha f) the largest such number; for others of order sqrt(log T / T) / c.
    feedback_range : float, optional
        c, at least the difference of any two losses of a round. Left out, losses may be of any size.
    """

    def __init__(self, rate: float, feedback_range: float | None = None) -> None:
        self.rate = check_positive("LeadingHistory", "rate", rate)
        known = feedback_range is not None
        self.feedback_range = check_positive("LeadingHistory", "feedback_range", feedback_range) if known else None

    @classmethod
    def plan(cls, metas: Sequence[LeadingHistory], sizes: Sequence[int]) -> Plan:
        """See `Meta.plan`."""
        rates = np.array([meta.rate for meta in metas])
        spans = np.array([meta.feedback_range or np.inf for meta in metas])
        settings = LeadingHistorySettings(rates, spans)
        return Plan(LeadingHistoryState, settings, {"K": len(metas), "N": max(sizes)}, holds=_holds)


def _holds(m: LeadingHistoryState, c: LeadingHistorySettings, past: Past) -> Iterator[tuple[str, bool]]:
    """Between rounds the weights are those of (1); the first member of all is weighed with the first round."""
    yield "newcomers", within_bounds(m.fresh, 0, int(past.rounds == 0), past.alive)
    yield "log weights", within_bounds(m.log_weights, LEAST_LOG_WEIGHT, 0.0, past.alive)
    yield "log weights", shares(np.exp(np.minimum(m.log_weights, 0.0)), past.alive)
