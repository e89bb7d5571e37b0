"""Sleeping coin betting: Jun, Orabona, Wright, Willett (AISTATS 2017).

With r_{t,i} in units of the range B, so that |r| <= 1; z, W, n the sum of gains, the wealth (1 at birth) and the age of
a member, and pi_i = 1/(i^2 (1 + floor(log2 i))) for the i-th member ever created:

    beta_i = z/(n + 1),  w_i = beta_i W                                                    (1)
    p_i ~ pi_i [w_i]_+ over those alive;  pi_i where all of them vanish                    (2)
    g_i = r_i if w_i > 0 else [r_i]_+;   z += g_i;  W += g_i w_i;  n += 1                  (3)

Wealth lives in log space.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np

from thalweg._core.rules import CLOSE, within_bounds
from thalweg._core.state import Past, Plan, field
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_positive
from thalweg._kernels.jit import implement
from thalweg._kernels.parts import admit, alive, feed, fits, weigh
from thalweg.metas._base import OVER, Meta, fits_range

__all__ = ["CoinBetting", "CoinBettingState"]

# The coin asks only whether r > 0 to bet on an expert or not. Where experts are in one place r is 0 or rounding, which
# must not decide: less than this, in units of the range, counts as 0.
LOSS_ROUNDING = 1e-13


class CoinBettingState(NamedTuple):
    """K groups of N members."""

    gains: Floats = field("K N")  # z
    log_wealth: Floats = field("K N", called="wealth")  # ln W
    ages: Floats = field("K N")  # n
    log_prior: Floats = field("K N", called="priors")  # ln pi


class CoinBettingSettings(NamedTuple):
    """Constants."""

    spans: Floats  # (K,) B


implement(fits, CoinBettingState)(fits_range)


@implement(admit, CoinBettingState)
def _admit(m: CoinBettingState, c: CoinBettingSettings, k: int, i: int, index: int) -> None:
    m.gains[k, i] = 0.0
    m.log_wealth[k, i] = 0.0
    m.ages[k, i] = 0.0
    m.log_prior[k, i] = -2.0 * np.log(index) - np.log(1.0 + np.floor(np.log2(index)))  # index >= 1


@implement(feed, CoinBettingState)
def _feed(
    m: CoinBettingState,
    c: CoinBettingSettings,
    k: int,
    n: int,
    born: Ints | None,
    base: float,
    losses: Floats,
    square: float,
) -> None:
    for i in range(n):
        if alive(born, i):
            beta = m.gains[k, i] / (m.ages[k, i] + 1.0)
            gain = (base - losses[i]) / c.spans[k]
            gain = gain if abs(gain) > LOSS_ROUNDING else 0.0
            gain = gain if beta > 0.0 else max(gain, 0.0)  # (3)
            m.gains[k, i] += gain
            m.log_wealth[k, i] += np.log1p(gain * beta)  # |beta| < 1 and |gain| <= 1
            m.ages[k, i] += 1.0


@implement(weigh, CoinBettingState)
def _weigh(m: CoinBettingState, c: CoinBettingSettings, k: int, n: int, born: Ints | None, p: Floats) -> None:
    top = -np.inf
    for i in range(n):
        p[i] = -np.inf
        if alive(born, i) and m.gains[k, i] > 0.0:
            p[i] = m.log_prior[k, i] + np.log(m.gains[k, i] / (m.ages[k, i] + 1.0)) + m.log_wealth[k, i]  # (1), (2)
        top = max(top, p[i])
    if top == -np.inf:
        for i in range(n):
            if alive(born, i):
                p[i] = m.log_prior[k, i]
                top = max(top, p[i])
    total = 0.0
    for i in range(n):
        p[i] = np.exp(p[i] - top) if p[i] > -np.inf else 0.0  # the largest term is exp(0)
        total += p[i]
    for i in range(n):
        p[i] /= total


class CoinBetting(Meta):
    """Bets on experts that come and go, with priors that fall with the time of birth.

    Parameters
    ----------
    feedback_range : float
        B >= |r| for every member in every round.
    """

    def __init__(self, feedback_range: float) -> None:
        self.feedback_range = check_positive("CoinBetting", "feedback_range", feedback_range)

    @classmethod
    def plan(cls, metas: Sequence[Self], sizes: Sequence[int]) -> Plan:
        """See `Meta.plan`."""
        spans = CoinBettingSettings(np.array([meta.feedback_range for meta in metas]))
        return Plan(CoinBettingState, spans, {"K": len(metas), "N": max(sizes)}, holds=_holds)


def _holds(m: CoinBettingState, c: CoinBettingSettings, past: Past) -> Iterator[tuple[str, bool]]:
    """-1 <= z <= n: below 0 nothing is lost. So beta <= n/(n + 1), and a round's factor is in [1/(n + 1), 2]."""
    n = m.ages
    yield "ages", within_bounds(n, 0.0, past.lived, past.alive) and bool((n % 1 == 0)[past.alive].all())
    yield "gains", within_bounds(m.gains, -OVER, OVER * n, past.alive)
    yield "wealth", within_bounds(m.log_wealth, -CLOSE - n * np.log1p(n), n * np.log(2), past.alive)
    prior = -2.0 * np.log(past.number) - np.log(1.0 + np.floor(np.log2(past.number)))
    yield "priors", bool(np.allclose(m.log_prior[past.alive], prior[past.alive], atol=CLOSE))
