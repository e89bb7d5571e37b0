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
"""

from typing import NamedTuple

import numpy as np

from thalweg._kernels.jit import kernel

__all__ = ["Response", "action", "gradient", "truncate"]


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
