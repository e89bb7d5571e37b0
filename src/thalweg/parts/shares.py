"""Weights over a few candidates for the log loss: exponential weights at rate 1, with shares.

Candidate i gave the outcome the probability p_i. For each of a few shares a, with candidates' priors pi:

    w_i ~ w_i p_i;  w_i <- (1 - a) w_i + a pi_i                                                                    (1)

and these are mixed likewise, by the probability that each gave the outcome, none below 1e-6. The mixture of the
probabilities loses at most ln(1/prior) more than any candidate, and more by a change of the candidate with a > 0
(Herbster and Warmuth 1998). For the log loss this beats weights by gains (`thalweg.estimators._jury`).
"""

from typing import NamedTuple

import numpy as np

from thalweg._kernels.jit import inner
from thalweg._kernels.parts import Floats

__all__ = ["Shares", "begin_shares", "new_shares", "share"]

RATES = np.array([0.0, 1e-4, 1e-3, 1e-2, 0.05])
LEAST = 1e-6


class Shares(NamedTuple):
    """What changes."""

    beliefs: Floats  # (H, N) w of each share
    trust: Floats  # (H,)


def new_shares(priors: Floats) -> Shares:
    """Before the first round."""
    s = Shares(np.empty((RATES.size, priors.size)), np.empty(RATES.size))
    begin_shares(s, priors)
    return s


@inner
def begin_shares(s: Shares, priors: Floats) -> None:
    """Back to before the first round. The priors sum to 1."""
    for h in range(s.trust.shape[0]):
        s.trust[h] = 1.0 / s.trust.shape[0]
        for i in range(priors.shape[0]):
            s.beliefs[h, i] = priors[i]


@inner
def share(s: Shares, priors: Floats, chances: Floats, weights: Floats) -> None:
    """(1): one round; chances[i] > 0 is what candidate i gave the outcome. weights <- those of the candidates."""
    H, N = s.beliefs.shape
    total = 0.0
    for h in range(H):
        mean = 0.0
        for i in range(N):
            s.beliefs[h, i] *= chances[i]
            mean += s.beliefs[h, i]
        for i in range(N):
            s.beliefs[h, i] = (1.0 - RATES[h]) * (s.beliefs[h, i] / mean) + RATES[h] * priors[i]
        s.trust[h] *= mean
        total += s.trust[h]
    again = 0.0
    for h in range(H):
        s.trust[h] = max(s.trust[h] / total, LEAST)
        again += s.trust[h]
    for i in range(N):
        weights[i] = 0.0
    for h in range(H):
        s.trust[h] /= again
        for i in range(N):
            weights[i] += s.trust[h] * s.beliefs[h, i]
