"""Thresholds that others use, in a few lines each, from their papers. Scores in, thresholds out; alpha may be missed.

With Q(p) the conformal quantile of the last W scores, the ceil(p (n + 1))-th of n sorted ones (the largest beyond):

    window:     q = Q(1 - alpha)                                                                                    (1)
    ACI:        q = Q(1 - a);  a <- a + gamma (alpha - 1[s > q])                      Gibbs, Candes, NeurIPS 2021   (2)
    DtACI:      ACI with a = sum_i p_i a_i over 8 rates; p_i by exponential weights with a fixed share on the pinball
                loss of beta - a_i, beta the level at which s would have been met     Gibbs, Candes, JMLR 2024      (3)
    SF-OGD:     q <- q - D/sqrt(3) g / sqrt(sum g^2),  g = alpha - 1[s > q]           Orabona, Pal, 2018            (4)
    SAOCP:      SF-OGD from every round on, for 8 times the largest power of 2 that divides it, under coin betting
                                                                                      Bhatnagar et al., ICML 2023   (5)
    tracking:   q <- q + rate B (1[s > q] - alpha),  B the largest of the last 100    Angelopoulos et al.,          (6)
    PI:         (6) with rate 0.1, and q + B tan(sum(1[s > q] - alpha) ln(t+1)/(5(t+1)))    NeurIPS 2023            (7)
    decaying:   q <- q + D t^(-0.6) (1[s > q] - alpha)               Angelopoulos, Barber, Bates, ICML 2024         (8)
    betting:    q = l W from W = 1;  c = 1[s > q] - alpha;  W <- W (1 + l c);  l the mean of all c and one 0 (KT), or
                online Newton steps on -ln(1 + l c), held between -1/2 and 1/2 (ONS)  Podkopaev et al., ICML 2024   (9)
    portfolio:  (9) with l = (b - alpha)/(alpha (1 - alpha)), b = (misses + 1/2)/(rounds + 1): the universal portfolio
                of two assets, one of which pays 1/alpha at a miss, the other 1/(1 - alpha) else                   (10)
    ECI:        q = x + rate B' E;  x <- x + rate B' (1[s > q] - alpha),  B' the range of the last 100 scores;
                E = r f'(r), r = s - q of the last round, f'(r) = e^-r/(1 + e^-r)^2   Wu et al., ICLR 2025         (11)
    ECI, integral:  (11) with E the mean of all r f'(r), each counting 0.95 of the next                            (12)
    COP:        (11) with E = (1 - alpha - F(x))/2, F the share of the last 100 scores up to x
                                                                                      Hu et al., ICLR 2026         (13)

(3) is called FACI in the first version of the paper. (4) and (5) must be told a scale D: they get the largest of the
first 100 scores. Their authors let thresholds be infinite where a <= 0 in (2) and (3); here it is the largest score.
(8) starts at 0 with the D of (4); its authors have scores between 0 and 1 and D = 1. (9) is as published, with initial
wealth 1 whatever the unit. (11) to (13) follow the code of their authors, in which E corrects the threshold and is not
added up in x; rates are theirs, too: 1, 0.5, 0.1 and 0.05, of which they show the best for each data set. Of UP-OCP
(Liu, Dobriban, Orabona, arXiv 2602.03168) no code and only the abstract was at hand: (10) is the reduction that it
describes with the usual prior, and may differ from theirs in details.
"""

from __future__ import annotations

import numpy as np

from thalweg._core.types import Floats
from thalweg._kernels.jit import allocating, inner

__all__ = [
    "aci", "betting", "cop", "decaying", "dtaci", "eci", "portfolio", "saocp", "scale_free", "tracking", "window",
]  # fmt: skip

GAMMAS = np.array([0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128])
LENGTH = 100  # the stretch that DtACI is tuned for
LIVES = 8  # of SAOCP's experts
CALIBRATION = 100
SATURATION = 5.0
DECAY = 0.6  # of the steps of (8): 1/2 + 0.1
SHARE = 0.5  # of the correction of COP


@inner
def _insert(kept: Floats, n: int, value: float) -> None:
    i = np.searchsorted(kept[:n], value)
    for j in range(n, i, -1):
        kept[j] = kept[j - 1]
    kept[i] = value


@inner
def _remove(kept: Floats, n: int, value: float) -> None:
    for j in range(np.searchsorted(kept[:n], value), n - 1):
        kept[j] = kept[j + 1]


@inner
def _quantile(kept: Floats, n: int, p: float) -> float:
    if n == 0 or p <= 0:
        return 0.0
    return kept[min(max(int(np.ceil(p * (n + 1) - 1e-12)) - 1, 0), n - 1)]  # type: ignore[no-any-return]


@inner
def _pinball(score: float, q: float, alpha: float) -> float:
    return (1 - alpha) * (score - q) if score > q else alpha * (q - score)


def window(scores: Floats, alpha: float, length: int) -> Floats:
    """(1); a length of 0 is the whole past."""
    return aci(scores, alpha, 0.0, length)


def aci(scores: Floats, alpha: float, gamma: float, length: int = 500) -> Floats:
    """(2)."""
    q = np.zeros(scores.size)
    _aci(scores, alpha, gamma, length or scores.size, q)
    return q


@allocating
def _aci(scores: Floats, alpha: float, gamma: float, length: int, q: Floats) -> None:
    kept, n, level = np.zeros(length + 1), 0, alpha
    for t in range(scores.size):
        q[t] = _quantile(kept, n, 1 - level)
        level += gamma * (alpha - (1.0 if scores[t] > q[t] else 0.0))
        if n == length:
            _remove(kept, n, scores[t - length])
            n -= 1
        _insert(kept, n, scores[t])
        n += 1


def dtaci(scores: Floats, alpha: float, length: int = 500) -> Floats:
    """(3)."""
    q = np.zeros(scores.size)
    _dtaci(scores, alpha, length, GAMMAS, q)
    return q


@allocating
def _dtaci(scores: Floats, alpha: float, length: int, gammas: Floats, q: Floats) -> None:
    K, kept, n = gammas.size, np.zeros(length + 1), 0
    levels, weights = np.full(K, alpha), np.full(K, 1 / K)
    share = 1 / (2 * LENGTH)
    spread = (1 - alpha) ** 2 * alpha**3 + alpha**2 * (1 - alpha) ** 3
    rate = np.sqrt(3 / LENGTH) * np.sqrt((np.log(K * LENGTH) + 2) / spread)
    for t in range(scores.size):
        q[t] = _quantile(kept, n, 1 - np.sum(weights * levels))
        beta = (n - np.searchsorted(kept[:n], scores[t])) / (n + 1) if n > 0 else alpha
        for i in range(K):
            away = beta - levels[i]
            weights[i] *= np.exp(-rate * (alpha * away - min(0.0, away)))
            levels[i] += gammas[i] * (alpha - (1.0 if levels[i] > beta else 0.0))
        weights /= np.sum(weights)
        weights = (1 - share) * weights + share / K
        if n == length:
            _remove(kept, n, scores[t - length])
            n -= 1
        _insert(kept, n, scores[t])
        n += 1


def scale_free(scores: Floats, alpha: float, scale: float | None = None) -> Floats:
    """(4)."""
    q = np.zeros(scores.size)
    _scale_free(scores, alpha, scale or _scale(scores), q)
    return q


def _scale(scores: Floats) -> float:
    return float(scores[:CALIBRATION].max()) or 1e-300


@allocating
def _scale_free(scores: Floats, alpha: float, scale: float, q: Floats) -> None:
    x, squares = 0.0, 0.0
    for t in range(scores.size):
        q[t] = max(x, 0.0)
        g = alpha - (1.0 if scores[t] > x else 0.0)
        squares += g * g
        x -= scale / np.sqrt(3.0) * g / np.sqrt(squares)


def saocp(scores: Floats, alpha: float, scale: float | None = None) -> Floats:
    """(5)."""
    q = np.zeros(scores.size)
    _saocp(scores, alpha, scale or _scale(scores), q)
    return q


@allocating
def _saocp(scores: Floats, alpha: float, scale: float, q: Floats) -> None:
    room = 1024  # experts alive: at most 8 of every level
    x, squares, bets, gains, won = np.zeros(room), np.zeros(room), np.zeros(room), np.zeros(room), np.zeros(room)
    born, ends = np.zeros(room, dtype=np.int64), np.zeros(room, dtype=np.int64)
    n, last = 0, 0.0
    for t in range(1, scores.size + 1):
        m = 0
        for i in range(n):  # those whose time is over go
            if t < ends[i]:
                x[m], squares[m], bets[m], gains[m], won[m] = x[i], squares[i], bets[i], gains[i], won[i]
                born[m], ends[m] = born[i], ends[i]
                m += 1
        n = m
        power = 1
        while t % (2 * power) == 0:
            power *= 2
        x[n], squares[n], bets[n], gains[n], won[n] = last, 0.0, 0.0, 0.0, 0.0
        born[n], ends[n] = t, t + LIVES * power
        n += 1
        total, even, betted, plain = 0.0, 0.0, 0.0, 0.0
        for i in range(n):
            prior = 1 / (float(born[i]) ** 2 * (1 + np.floor(np.log2(born[i]))))
            total += prior * max(bets[i], 0.0)
            betted += prior * max(bets[i], 0.0) * x[i]
            even += prior
            plain += prior * x[i]
        last = betted / total if total > 0 else plain / even
        q[t - 1] = max(last, 0.0)
        score = scores[t - 1]
        paid = _pinball(score, last, alpha)
        for i in range(n):
            gain = min(max((paid - _pinball(score, x[i], alpha)) / scale, -1.0), 1.0)  # as if no score were above D
            if bets[i] <= 0:
                gain = max(gain, 0.0)
            gains[i] += gain
            won[i] += bets[i] * gain
            bets[i] = gains[i] * (1 + won[i]) / (t - born[i] + 1)
            g = alpha - (1.0 if score > x[i] else 0.0)
            squares[i] += g * g
            x[i] -= scale / np.sqrt(3.0) * g / np.sqrt(squares[i])


def tracking(scores: Floats, alpha: float, rate: float, integral: bool = False) -> Floats:
    """(6), or (7)."""
    q = np.zeros(scores.size)
    _tracking(scores, alpha, rate, integral, q)
    return q


@allocating
def _tracking(scores: Floats, alpha: float, rate: float, integral: bool, q: Floats) -> None:
    x, total, largest = 0.0, 0.0, 0.0
    for t in range(scores.size):
        add = 0.0
        if integral and t > 0:
            angle = total * np.log(t + 1.0) / (SATURATION * (t + 1.0))
            add = largest * np.tan(min(max(angle, -1.5), 1.5))
        q[t] = max(x + add, 0.0)
        missed = (1.0 if scores[t] > q[t] else 0.0) - alpha
        largest = np.max(scores[max(0, t - 99) : t + 1])
        x += rate * largest * missed
        total += missed


def decaying(scores: Floats, alpha: float, scale: float | None = None) -> Floats:
    """(8)."""
    q = np.zeros(scores.size)
    _decaying(scores, alpha, scale or _scale(scores), q)
    return q


@allocating
def _decaying(scores: Floats, alpha: float, scale: float, q: Floats) -> None:
    x = 0.0
    for t in range(scores.size):
        q[t] = max(x, 0.0)
        x += scale * (t + 1.0) ** -DECAY * ((1.0 if scores[t] > x else 0.0) - alpha)


def betting(scores: Floats, alpha: float, newton: bool = False) -> Floats:
    """(9)."""
    q = np.zeros(scores.size)
    _betting(scores, alpha, newton, q)
    return q


@allocating
def _betting(scores: Floats, alpha: float, newton: bool, q: Floats) -> None:
    bet, wealth, total, curvature = 0.0, 1.0, 0.0, 1.0
    for t in range(scores.size):
        x = bet * wealth
        q[t] = max(x, 0.0)
        c = (1.0 if scores[t] > x else 0.0) - alpha
        wealth *= 1.0 + bet * c
        if newton:
            z = -c / (1.0 + bet * c)
            curvature += z * z
            bet = min(max(bet - 2.0 / (2.0 - np.log(3.0)) * z / curvature, -0.5), 0.5)
        else:
            total += c
            bet = total / (t + 2.0)


def portfolio(scores: Floats, alpha: float) -> Floats:
    """(10)."""
    q = np.zeros(scores.size)
    _portfolio(scores, alpha, q)
    return q


@allocating
def _portfolio(scores: Floats, alpha: float, q: Floats) -> None:
    wealth, missed = 1.0, 0.0
    for t in range(scores.size):
        b = (missed + 0.5) / (t + 1.0)
        x = (b - alpha) / (alpha * (1.0 - alpha)) * wealth
        q[t] = max(x, 0.0)
        if scores[t] > x:
            wealth *= b / alpha
            missed += 1.0
        else:
            wealth *= (1.0 - b) / (1.0 - alpha)


def eci(scores: Floats, alpha: float, rate: float, integral: bool = False) -> Floats:
    """(11), or (12)."""
    q = np.zeros(scores.size)
    _eci(scores, alpha, rate, integral, q)
    return q


@allocating
def _eci(scores: Floats, alpha: float, rate: float, integral: bool, q: Floats) -> None:
    x, at, added, count = 0.0, 0.0, 0.0, 0.0
    for t in range(scores.size):
        q[t] = max(at, 0.0)
        past = scores[max(0, t - 100) : t]
        step = rate * (np.max(past) - np.min(past)) if t > 0 else rate
        r = scores[t] - at
        tail = np.exp(-abs(r))  # f' is even
        e = r * tail / (1.0 + tail) ** 2
        x += step * ((1.0 if r > 0.0 else 0.0) - alpha)
        if integral:  # of the rounds before the last
            at = x + (step * added / count if count > 0.0 else 0.0)
            added, count = 0.95 * added + e, 0.95 * count + 1.0
        else:
            at = x + step * e


def cop(scores: Floats, alpha: float, rate: float) -> Floats:
    """(13)."""
    q = np.zeros(scores.size)
    _cop(scores, alpha, rate, q)
    return q


@allocating
def _cop(scores: Floats, alpha: float, rate: float, q: Floats) -> None:
    x, at = 0.0, 0.0
    for t in range(scores.size):
        q[t] = max(at, 0.0)
        past = scores[max(0, t - 100) : t]
        step = rate * (np.max(past) - np.min(past)) if t > 0 else rate
        x += step * ((1.0 if scores[t] > at else 0.0) - alpha)
        share = np.mean(past <= x) if t >= 100 else 1.0 - alpha
        at = x + step * SHARE * (1.0 - alpha - share)
