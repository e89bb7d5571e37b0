"""Disturbance-action policies: their inputs, the state and action they lead to, and the gradient of a loss of these.

A policy is `M` (H, d_u, d_x). `past` (2H + 1, d_x) holds the disturbances, newest first: past[k] = w_{t-1-k}. With
F = A - BK:

    u    = -K x + sum_{i=1..H} M_i w_{t-i}                                                (1)
    a_j  = sum_{i=1..H} M_i w_{t-1-j-i},                   j = 0..H                       (2)
    y    = sum_{j=0..H} F^j w_{t-1-j} + F^j B a_j                                         (3)
    v    = -K y + sum_{i=1..H} M_i w_{t-i}                                                (4)
    q    = c_x - K' c_u,   r_j = (F^j B)' q                                               (5)
    G_i  = sum_{j=0..H} r_j w_{t-1-j-i}' + c_u w_{t-i}'                                   (6)

(2) and (6) cost H (H + 1) d_u d_x multiplications each, all else less.

A preview forecasts the disturbances by autoregressions of order p, one for each state, and answers them in advance:

    theta_m = argmin sum_t keep^(T-t) (w_t,m - theta . (w_{t-1,m}, .., w_{t-p,m}, 1))^2
              + ridge b_m |theta_1..p|^2 + still theta_{p+1}^2                            (7)
    v       = -sum_{j=0..J-1} L_j w^_{t+j},   |w^_{t+j,m}| <= sqrt(b_m)                   (8)

with b_m the largest w_m^2, discounted by keep, and L_j the gains of a preview of j rounds.
"""

from typing import NamedTuple

import numpy as np

from thalweg._kernels.handle import AnyHandle, parts
from thalweg._kernels.jit import inner, kernel
from thalweg.parts.jury import judge

__all__ = ["Response", "action", "believe", "foresee", "gradient", "truncate"]

RIDGE = 0.01  # of (7): as if in a hundredth of a round the largest disturbance had been followed by none
STILL = 10.0  # of (7): as if there had been no disturbance in so many rounds before the first


class Response(NamedTuple):
    """The response of a system under a gain to inputs and disturbances."""

    powers: np.ndarray  # (H + 1, d_x, d_x) F^j, j = 0..H
    responses: np.ndarray  # (H + 1, d_x, d_u) F^j B
    gain: np.ndarray  # (d_u, d_x) K


@kernel
def _act(M: np.ndarray, past: np.ndarray, first: int, u: np.ndarray) -> None:
    """u += sum_i M_i past[first + i - 1]. Overwrites u."""
    H, n, d = M.shape
    for i in range(H):
        for k in range(n):
            total = 0.0
            for m in range(d):
                total += M[i, k, m] * past[first + i, m]
            u[k] += total


@kernel
def _add_product(matrix: np.ndarray, vector: np.ndarray, sign: float, out: np.ndarray) -> None:
    """out += sign * matrix @ vector. Overwrites out."""
    n, d = matrix.shape
    for k in range(n):
        total = 0.0
        for m in range(d):
            total += matrix[k, m] * vector[m]
        out[k] += sign * total


@kernel
def action(M: np.ndarray, past: np.ndarray, K: np.ndarray, x: np.ndarray, u: np.ndarray) -> None:
    """u <- (1). Overwrites u."""
    u[:] = 0.0
    _act(M, past, 0, u)
    _add_product(K, x, -1.0, u)


@kernel
def truncate(M: np.ndarray, past: np.ndarray, plant: Response, y: np.ndarray, v: np.ndarray) -> None:
    """y, v <- the state and action of a policy that was in force for H + 1 rounds and started at rest, (2)-(4)."""
    H = M.shape[0]
    y[:] = 0.0
    for j in range(H + 1):
        v[:] = 0.0
        _act(M, past, j + 1, v)  # (2)
        _add_product(plant.powers[j], past[j], 1.0, y)
        _add_product(plant.responses[j], v, 1.0, y)  # (3)
    action(M, past, plant.gain, y, v)  # (4)


@kernel
def gradient(
    past: np.ndarray,
    plant: Response,
    c_x: np.ndarray,
    c_u: np.ndarray,
    q: np.ndarray,
    r: np.ndarray,
    G: np.ndarray,
) -> None:
    """G <- (6) from the gradients c_x, c_u of the cost at (y, v). Overwrites q (d_x,), r (H + 1, d_u) and G."""
    H, n, d = G.shape
    for m in range(d):
        q[m] = c_x[m]
        for k in range(n):
            q[m] -= plant.gain[k, m] * c_u[k]
    for j in range(H + 1):
        for k in range(n):
            total = 0.0
            for m in range(d):
                total += plant.responses[j, m, k] * q[m]
            r[j, k] = total  # (5)
    for i in range(H):
        for k in range(n):
            for m in range(d):
                G[i, k, m] = c_u[k] * past[i, m]
            for j in range(H + 1):
                for m in range(d):
                    G[i, k, m] += r[j, k] * past[i + j + 1, m]  # (6)


# ------------------------------------------------------------------------------------------------------------- previews


@inner
def _solve(a: np.ndarray, b: np.ndarray) -> None:
    """b <- a^{-1} b by Cholesky's method. Overwrites a; a row whose pivot is not positive gets 0."""
    n = b.shape[0]
    for i in range(n):
        for j in range(i + 1):
            total = a[i, j]
            for k in range(j):
                total -= a[i, k] * a[j, k]
            if i > j:
                a[i, j] = total / a[j, j] if a[j, j] > 0.0 else 0.0
            else:
                a[i, i] = np.sqrt(total) if total > 0.0 else 0.0
        for k in range(i):
            b[i] -= a[i, k] * b[k]
        b[i] = b[i] / a[i, i] if a[i, i] > 0.0 else 0.0
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            b[i] -= a[k, i] * b[k]
        b[i] = b[i] / a[i, i] if a[i, i] > 0.0 else 0.0


@kernel
def foresee(
    squares: np.ndarray,
    products: np.ndarray,
    past: np.ndarray,
    largest: np.ndarray,
    gains: np.ndarray,
    a: np.ndarray,
    theta: np.ndarray,
    lags: np.ndarray,
    v: np.ndarray,
) -> None:
    """v <- (8), from sums (d_x, p + 1, p + 1) and (d_x, p + 1), past (p, d_x), b (d_x,) and gains (J, d_u, d_x).

    Overwrites a (p + 1, p + 1), theta (p + 1,), lags (p,) and v (d_u,).
    """
    d, p = past.shape[1], past.shape[0]
    v[:] = 0.0
    for m in range(d):
        if largest[m] == 0.0:
            continue
        for i in range(p + 1):
            for j in range(i + 1):
                a[i, j] = squares[m, i, j]
            a[i, i] += RIDGE * largest[m] if i < p else STILL
            theta[i] = products[m, i]
        _solve(a, theta)  # (7)
        for i in range(p):
            lags[i] = past[i, m]
        bound = np.sqrt(largest[m])
        for j in range(gains.shape[0]):
            w = theta[p]
            for i in range(p):
                w += theta[i] * lags[i]
            w = min(max(w, -bound), bound)
            for i in range(p - 1, 0, -1):
                lags[i] = lags[i - 1]
            if p > 0:
                lags[0] = w
            for k in range(v.shape[0]):
                v[k] -= gains[j, k, m] * w  # (8)


@kernel
def believe(handle: AnyHandle, gained: np.ndarray) -> None:
    """Update the weights of a jury by the gain of each candidate over the combination."""
    s, c = parts(handle)
    judge(s.jury, c.jury, gained)
