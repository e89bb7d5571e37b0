"""Meta-learners over experts that come and go: Adapt-ML-Prod, AdaNormalHedge and sleeping coin betting.

An expert lives in a slot; a slot with `born` 0 is empty. Row k of `S` (K, 4) is what the meta-learner keeps for slot k,
`r` (K,) how much better than the combination each expert was in the round (positive: it did better), in units of the
range, so that |r| <= 1. Weights live in log space.

    Adapt-ML-Prod     S = [ln w, V, eta, gamma]     Gaillard, Stoltz, van Erven, COLT 2014
    AdaNormalHedge    S = [R, C, -, -]              Luo, Schapire, COLT 2015
    coin betting      S = [z, ln W, n, ln pi]       Jun, Orabona, Wright, Willett, AISTATS 2017
"""

import numpy as np

from thalweg._kernels.jit import inlined, kernel

__all__ = [
    "ADAPT_ML_PROD",
    "ADA_NORMAL_HEDGE",
    "COIN_BETTING",
    "admit",
    "log_potential",
    "prod_rate",
    "reweigh",
    "weigh",
]

ADAPT_ML_PROD, ADA_NORMAL_HEDGE, COIN_BETTING = 0, 1, 2
TINY = 1e-290  # a range below it cannot be inverted; it is taken for no feedback at all
# The coin asks only whether r > 0 to bet on an expert or not. Where experts are in one place r is 0 or rounding, which
# must not decide: less than this, in units of the range, counts as 0.
ROUNDING = 1e-13


@inlined
def prod_rate(gamma: float, V: float, unit: float) -> float:
    """min(1/(2B), sqrt(gamma / (B^2 + V))) with B = `unit`: Adapt-ML-Prod's rate for feedback in [-B, B]."""
    square = unit * unit
    if square + V <= 4.0 * gamma * square:  # then the first is the smaller one: no root needed
        return 0.5 / unit  # unit > 0
    return np.sqrt(gamma / (square + V))


@inlined
def log_potential(R: float, C: float) -> float:
    """ln of AdaNormalHedge's weight (exp([R+1]_+^2 / (3(C+1))) - exp([R-1]_+^2 / (3(C+1)))) / 2; -inf for R <= -1."""
    if R <= -1.0:
        return -np.inf
    above = (R + 1.0) ** 2 / (3.0 * (C + 1.0))
    below = max(R - 1.0, 0.0) ** 2 / (3.0 * (C + 1.0))
    return above + np.log1p(-np.exp(below - above)) - np.log(2.0)


@kernel
def admit(meta: int, S: np.ndarray, k: int, index: int, unit: float) -> None:
    """A newborn expert in slot k, the `index`-th to be created."""
    if meta == ADAPT_ML_PROD:
        gamma = np.log(1.0 + 2.0 * index)
        S[k, 0] = 0.0
        S[k, 1] = 0.0
        S[k, 2] = prod_rate(gamma, 0.0, unit) if unit > TINY else 1.0  # no feedback yet: all rates equal
        S[k, 3] = gamma
    elif meta == ADA_NORMAL_HEDGE:
        S[k, 0] = 0.0
        S[k, 1] = 0.0
    else:
        S[k, 0] = 0.0
        S[k, 1] = 0.0
        S[k, 2] = 0.0
        S[k, 3] = -2.0 * np.log(index) - np.log(1.0 + np.floor(np.log2(index)))  # index >= 1


@inlined
def weigh(meta: int, S: np.ndarray, born: np.ndarray, p: np.ndarray) -> None:
    """p <- the weights of the living experts, summing to 1; 0 for empty slots. Overwrites p.

    Where AdaNormalHedge or the coin bets on nobody, all living experts count by their prior.
    """
    K = born.shape[0]
    top = -np.inf
    for k in range(K):
        p[k] = -np.inf
        if born[k] == 0:
            continue
        if meta == ADAPT_ML_PROD:
            p[k] = S[k, 0]  # and times eta below
        elif meta == ADA_NORMAL_HEDGE:
            p[k] = log_potential(S[k, 0], S[k, 1])
        elif S[k, 0] > 0.0:
            p[k] = S[k, 3] + np.log(S[k, 0] / (S[k, 2] + 1.0)) + S[k, 1]  # pi [beta W]_+, beta = z / (n + 1)
        top = max(top, p[k])
    if top == -np.inf:
        for k in range(K):
            if born[k] > 0:
                p[k] = S[k, 3] if meta == COIN_BETTING else 0.0
                top = max(top, p[k])
    total = 0.0
    for k in range(K):
        p[k] = np.exp(p[k] - top) if p[k] > -np.inf else 0.0  # the largest term is exp(0), times eta > 0: total > 0
        if meta == ADAPT_ML_PROD and born[k] > 0:
            p[k] *= S[k, 2]
        total += p[k]
    for k in range(K):
        p[k] /= total


@inlined
def reweigh(meta: int, S: np.ndarray, born: np.ndarray, r: np.ndarray, unit: float, grown: float) -> None:
    """Feed the round's r to the living experts. Overwrites S.

    `unit` is the range B in which r is measured: 1, or the largest |r| seen so far in natural units; `grown` is the
    range after this round, at least |r|. Where it grew, Adapt-ML-Prod first moves to the smaller rates that the new
    range asks for, which takes every weight to the power new rate / old rate, as its own rate changes do.
    """
    for k in range(born.shape[0]):
        if born[k] == 0:
            continue
        if meta == ADAPT_ML_PROD:
            if grown <= TINY:
                continue  # no feedback so far
            if unit < grown:
                rate = prod_rate(S[k, 3], S[k, 1], grown)
                S[k, 0] *= rate / S[k, 2]
                S[k, 2] = rate
            S[k, 1] += r[k] * r[k]
            rate = prod_rate(S[k, 3], S[k, 1], grown)
            S[k, 0] = rate / S[k, 2] * (S[k, 0] + np.log1p(S[k, 2] * r[k]))  # |eta r| <= 1/2
            S[k, 2] = rate
        elif meta == ADA_NORMAL_HEDGE:
            S[k, 0] += r[k]
            S[k, 1] += abs(r[k])
        else:
            beta = S[k, 0] / (S[k, 2] + 1.0)
            gain = r[k] if abs(r[k]) > ROUNDING else 0.0
            gain = gain if beta > 0.0 else max(gain, 0.0)
            S[k, 0] += gain
            S[k, 1] += np.log1p(gain * beta)  # |beta| < 1 and |gain| <= 1
            S[k, 2] += 1.0
