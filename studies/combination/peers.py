"""The rules of OPERA as they are called by default, from their formulas.

Those of R's BOA, ML-Poly and ML-Prod are `Aggregator(rule=...)`. With weights w, p = sum_i w_i x_i, squared error l,
r_i = a_i l'(p)(p - x_i) and c = 2^-20, opera-python (2023) has:

    BOA      M_i = max(c, |r_i| so far), B_i = 2^ceil(log2 M_i), V_i = c + sum r_i^2, s_i = min(1/B_i, sqrt(ln K/V_i)),
             A_i += (r_i - s_i r_i^2 + B_i [s_i r_i > 1/2])/2;  w_i ~ s_i exp(s_i A_i)                              (1)
    ML-Poly  V_i = 1/c + sum r_i^2 + max r^2 so far, A_i += r_i;  w_i ~ max(A_i, 0)/V_i                             (2)
    ML-Prod  s_i = min(1/(2 M_i), sqrt(ln K/V_i));  A_i <- A_i s_i/s_i' + ln(1 + s_i r_i);  w_i ~ s_i exp(A_i)      (3)

and OPERA in R calibrates the rate eta, and the share alpha of 1e-4, 1e-3, 1e-2 or 1e-1, of

    v_i ~ w_i exp(eta r_i);  w_i = alpha/K + (1 - alpha) v_i                                                        (4)

by playing the pair that has lost least so far; eta = 1 at first, and where the best is the largest (smallest), three
more of 2, 4, 8 times (of a half, a quarter, an eighth) are played from the beginning and join. EWA is alpha = 0.
"""

import numpy as np

from thalweg._core.types import Floats
from thalweg._kernels.jit import allocating, inner

__all__ = ["PEERS", "play"]

SMALL = 2.0**-20
RATES = 200  # of the grid, 2^-100 to 2^99
BOA, MLPOL, MLPROD = range(3)


@inner
def _say(a: Floats, x: Floats, w: Floats) -> float:
    """w <- its part among those awake; the forecast."""
    total, awake = 0.0, 0.0
    for i in range(w.shape[0]):
        w[i] *= a[i]
        total += w[i]
        awake += a[i]
    p = 0.0
    for i in range(w.shape[0]):
        w[i] = w[i] / total if total > 0.0 else a[i] / awake
        p += w[i] * x[i]
    return p


@allocating
def _second_order(rule: int, X: Floats, A: Floats, Y: Floats, P: Floats) -> None:
    """(1), (2), (3)."""
    T, K = X.shape
    V, M, R, s, w = np.full(K, SMALL), np.full(K, SMALL), np.zeros(K), np.full(K, SMALL), np.zeros(K)
    V[:] = 1.0 / SMALL if rule == MLPOL else SMALL
    largest = 0.0
    for t in range(T):
        top = -np.inf
        for i in range(K):
            if rule != MLPOL:
                w[i] = np.log(s[i]) + (s[i] * R[i] if rule == BOA else R[i])
                top = max(top, w[i]) if A[t, i] > 0.0 else top
        for i in range(K):
            w[i] = max(R[i], 0.0) / V[i] if rule == MLPOL else np.exp(min(w[i] - top, 0.0))
        P[t] = _say(A[t], X[t], w)
        most = 0.0
        for i in range(K):
            most = max(most, (2.0 * A[t, i] * (P[t] - Y[t]) * (P[t] - X[t, i])) ** 2)
        for i in range(K):
            r = 2.0 * A[t, i] * (P[t] - Y[t]) * (P[t] - X[t, i])
            M[i] = max(M[i], abs(r))
            V[i] += r * r + (max(most - largest, 0.0) if rule == MLPOL else 0.0)
            if rule == BOA:
                B = 2.0 ** np.ceil(np.log2(M[i]))
                s[i] = min(1.0 / B, np.sqrt(np.log(K) / V[i]))
                R[i] += 0.5 * (r - s[i] * r * r + (B if s[i] * r > 0.5 else 0.0))
            elif rule == MLPOL:
                R[i] += r
            else:
                step = min(0.5 / M[i], np.sqrt(np.log(K) / V[i]))
                R[i] = R[i] * (step / s[i]) + np.log1p(step * r)
                s[i] = step
        largest = max(largest, most)


@inner
def _share(x: Floats, a: Floats, y: float, eta: float, alpha: float, w: Floats, u: Floats) -> float:
    """Play a round of (4); w is its state. Returns its squared error."""
    K = w.shape[0]
    for i in range(K):
        u[i] = w[i]
    p, top, total = _say(a, x, u), -np.inf, 0.0
    for i in range(K):
        u[i] = np.log(max(w[i], 1e-300)) + eta * 2.0 * a[i] * (p - y) * (p - x[i])
        top = max(top, u[i])
    for i in range(K):
        u[i] = np.exp(u[i] - top)
        total += u[i]
    for i in range(K):
        w[i] = alpha / K + (1.0 - alpha) * u[i] / total
    return (p - y) ** 2


@allocating
def _calibrated(alphas: Floats, X: Floats, A: Floats, Y: Floats, P: Floats) -> None:
    """(4) with the pair that has lost least so far."""
    T, K = X.shape
    kept, lost, u = np.full((RATES, alphas.size, K), 1.0 / K), np.zeros((RATES, alphas.size)), np.zeros(K)
    low = high = best = RATES // 2
    share = alphas.size // 2
    for t in range(T):
        u[:] = kept[best, share]
        P[t] = _say(A[t], X[t], u)
        for e in range(low, high + 1):
            for j in range(alphas.size):
                lost[e, j] += _share(X[t], A[t], Y[t], 2.0 ** (e - RATES // 2), alphas[j], kept[e, j], u)
        least = np.inf
        for e in range(low, high + 1):
            for j in range(alphas.size):
                if lost[e, j] < least:
                    least, best, share = lost[e, j], e, j
        first, last = max(low - 3, 0) if best == low else low, min(high + 3, RATES - 1) if best == high else high
        for e in range(first, last + 1):
            if e < low or e > high:
                for j in range(alphas.size):
                    for k in range(t + 1):
                        lost[e, j] += _share(X[k], A[k], Y[k], 2.0 ** (e - RATES // 2), alphas[j], kept[e, j], u)
        low, high = first, last


PEERS = {
    "BOA, opera-python": lambda *data: _second_order(BOA, *data),
    "ML-Poly, opera-python": lambda *data: _second_order(MLPOL, *data),
    "ML-Prod, opera-python": lambda *data: _second_order(MLPROD, *data),
    "EWA, OPERA": lambda *data: _calibrated(np.array([0.0]), *data),
    "fixed share, OPERA": lambda *data: _calibrated(np.array([1e-4, 1e-3, 1e-2, 1e-1]), *data),
}


def play(name: str, X: Floats, awake: Floats, y: Floats, late: int) -> Floats:
    """The forecasts of a peer; where answers come late, those of copies that take turns, as ours."""
    said = np.empty(len(y))
    for k in range(min(late, len(y))):
        mine = np.empty(len(y[k::late]))
        data = X[k::late], awake[k::late], y[k::late], mine
        PEERS[name](*(np.ascontiguousarray(part) for part in data[:3]), mine)
        said[k::late] = mine
    return said
