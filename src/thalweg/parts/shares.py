"""Weights over a few candidates for the log loss: exponential weights at rate 1, with shares.

Candidate i gave the outcome the probability p_i. For each of a few shares a, with candidates' priors pi:

    w_i ~ w_i p_i;  w_i <- (1 - a) w_i + a pi_i                                                                    (1)

and these are mixed likewise, by the probability that each gave the outcome, none below 1e-6. The mixture of the
probabilities loses at most ln(1/prior) more than any candidate, and more by a change of the candidate with a > 0
(Herbster and Warmuth 1998). For the log loss this beats weights by gains (`thalweg.parts.jury`). A round of weight
other than 1 takes p_i to that power, in logarithms: a large one leaves nothing of any p_i.
"""

from typing import NamedTuple

import numpy as np

from thalweg._core.rules import simplex
from thalweg._core.state import Plan, field
from thalweg._core.types import Floats
from thalweg._kernels.jit import inner

RATES = np.array([0.0, 1e-4, 1e-3, 1e-2, 0.05])
LEAST_SHARE = 1e-6


class SharesState(NamedTuple):
    """H shares over N candidates; H = 0 where they are not needed."""

    beliefs: Floats = field("H N", simplex, called="shares")  # w of each share
    trust: Floats = field("H", simplex, called="shares")


def shares_plan(candidates: int, used: bool = True) -> Plan:
    """Return the plan of shares over a number of candidates."""
    return Plan(SharesState, (), {"H": RATES.size if used else 0, "N": candidates})


@inner
def begin_shares(s: SharesState, priors: Floats) -> None:
    """Back to before the first round. The priors sum to 1."""
    for h in range(s.trust.shape[0]):
        s.trust[h] = 1.0 / s.trust.shape[0]
        for i in range(priors.shape[0]):
            s.beliefs[h, i] = priors[i]


@inner
def _follow(s: SharesState, h: int, priors: Floats, chances: Floats) -> float:
    """(1) for one share; returns the probability that it gave the outcome."""
    mean = 0.0
    for i in range(priors.shape[0]):
        s.beliefs[h, i] *= chances[i]
        mean += s.beliefs[h, i]
    for i in range(priors.shape[0]):
        s.beliefs[h, i] = (1.0 - RATES[h]) * (s.beliefs[h, i] / mean) + RATES[h] * priors[i]
    return mean


@inner
def _follow_weighted(s: SharesState, h: int, priors: Floats, chances: Floats, weight: float) -> float:
    """(1) for one share, with probabilities to the power of a weight; returns the logarithm of that of the outcome."""
    top, total = -np.inf, 0.0
    for i in range(priors.shape[0]):
        log = np.log(s.beliefs[h, i]) if s.beliefs[h, i] > 0.0 else -np.inf
        s.beliefs[h, i] = log + weight * np.log(chances[i])
        top = max(top, s.beliefs[h, i])
    for i in range(priors.shape[0]):
        s.beliefs[h, i] = np.exp(s.beliefs[h, i] - top)
        total += s.beliefs[h, i]
    for i in range(priors.shape[0]):
        s.beliefs[h, i] = (1.0 - RATES[h]) * (s.beliefs[h, i] / total) + RATES[h] * priors[i]
    return float(top + np.log(total))


@inner
def share(s: SharesState, priors: Floats, chances: Floats, weight: float, weights: Floats) -> None:
    """(1): one round; chances[i] > 0 is candidate i's probability of the outcome. weights <- the candidates' ones."""
    H, N = s.beliefs.shape
    total, top = 0.0, -np.inf
    if weight == 1.0:
        for h in range(H):
            s.trust[h] *= _follow(s, h, priors, chances)
            total += s.trust[h]
    else:
        for h in range(H):
            s.trust[h] = np.log(s.trust[h]) + _follow_weighted(s, h, priors, chances, weight)
            top = max(top, s.trust[h])
        for h in range(H):
            s.trust[h] = np.exp(s.trust[h] - top)
            total += s.trust[h]
    again = 0.0
    for h in range(H):
        s.trust[h] = max(s.trust[h] / total, LEAST_SHARE)
        again += s.trust[h]
    for i in range(N):
        weights[i] = 0.0
    for h in range(H):
        s.trust[h] /= again
        for i in range(N):
            weights[i] += s.trust[h] * s.beliefs[h, i]
