"""A few orthonormal directions that follow a matrix S >= 0, and a row z that changed it. No matrix is diagonalised.

The row joins the directions F (k, d) and the weakest leaves. Z (k + 1, d) has F and the part of z outside of F, with
length 1; u is the eigenvector of the smallest eigenvalue of Z S Z', with u_{k+1} >= 0.

    F <- F - c (u' Z + z_{k+1}),  c_i = u_i/(1 + u_{k+1})                  the smallest turn after which F u = 0    (1)
    F <- F (S + sigma I), orthonormal row by row                           a step of orthogonal iteration           (2)

These are kernels of their own, not compiled into a loop over rows: several are called twice.
"""

import numpy as np

from thalweg._core.types import Floats
from thalweg._kernels.jit import kernel
from thalweg._kernels.vectors import copy, dot

ENERGY_ROUNDING = 1e-24  # of the energy of a row: a smaller part outside of F is rounding
SIGMA = 1e-6  # of the trace: (2) keeps directions apart that hold nothing
FLAT_SPECTRUM = 1e-12  # of the trace: eigenvalues below it are one
TURNED = 1e-14  # of the trace: off the diagonal that is nothing
SEARCHES, SWEEPS = 1000, 30  # at most


@kernel
def outside(F: Floats, z: Floats) -> float:
    """|z|^2 - |F z|^2."""
    rest = dot(z, z)
    for i in range(F.shape[0]):
        along = dot(F[i], z)
        rest -= along * along
    return max(rest, 0.0)


@kernel
def _away(rows: Floats, count: int, y: Floats) -> float:
    """y <- its part outside of the first rows, which are orthonormal, with length 1. Returns that length squared."""
    for _ in range(2):  # twice is enough
        for i in range(count):
            along = dot(rows[i], y)
            for j in range(y.shape[0]):
                y[j] -= along * rows[i, j]
    square = dot(y, y)
    if square > 0.0:
        scale = 1.0 / np.sqrt(square)
        for j in range(y.shape[0]):
            y[j] *= scale
    return square


@kernel
def widen(F: Floats, z: Floats, Z: Floats) -> bool:
    """Z <- F and the part of z outside of it; return whether that part is not 0."""
    k = F.shape[0]
    for i in range(k):
        copy(F[i], Z[i])
    copy(z, Z[k])
    if _away(F, k, Z[k]) > ENERGY_ROUNDING * dot(z, z):
        return True
    for j in range(z.shape[0]):
        Z[k, j] = 0.0
    return False


@kernel
def multiply(Z: Floats, S: Floats, Y: Floats) -> None:
    """Y <- Z S."""
    d = S.shape[0]
    for i in range(Z.shape[0]):
        for j in range(d):
            Y[i, j] = 0.0
        for m in range(d):
            factor = Z[i, m]
            for j in range(d):
                Y[i, j] += factor * S[m, j]


@kernel
def _weakest(H: Floats, u: Floats, v: Floats) -> None:
    """u <- the eigenvector of the smallest eigenvalue of H >= 0, by inverse iteration. Overwrites H and v.

    It begins at 1, ..., 1: where H is diagonal, no direction is missed.
    """
    n, trace = H.shape[0], 0.0
    for i in range(n):
        trace += H[i, i]
    for i in range(n):  # Cholesky: L L' = H + LEVEL trace I, L in the lower triangle
        for j in range(i + 1):
            rest = H[i, j] + (FLAT_SPECTRUM * trace if i == j else 0.0)
            for r in range(j):
                rest -= H[i, r] * H[j, r]
            H[i, j] = rest / H[j, j] if j < i else np.sqrt(max(rest, FLAT_SPECTRUM**2 * trace))  # trace > 0
        u[i] = 1.0
    for _ in range(SEARCHES):
        for i in range(n):
            rest = u[i]
            for r in range(i):
                rest -= H[i, r] * v[r]
            v[i] = rest / H[i, i]
        for i in range(n - 1, -1, -1):
            v[i] /= H[i, i]
            for r in range(i):
                v[r] -= H[i, r] * v[i]
        scale, change = 1.0 / np.sqrt(dot(v, v)), 0.0
        for i in range(n):
            change += (scale * v[i] - u[i]) ** 2
            u[i] = scale * v[i]
        if change < 1e-24:
            return


@kernel
def turn(F: Floats, wide: bool, trace: float, Z: Floats, Y: Floats, H: Floats, u: Floats, v: Floats) -> None:
    """(1) and (2): F from Z and Y = Z S. Overwrites all but `wide` and `trace`."""
    k, d = F.shape
    if wide:
        for i in range(k + 1):
            for j in range(i + 1):
                H[i, j] = dot(Y[i], Z[j])
        _weakest(H, u, v)
        sign = 1.0 if u[k] >= 0.0 else -1.0
        for i in range(k + 1):
            u[i] *= sign
        for j in range(d):  # u' Z + z_{k+1}, and the same of Y, into the last rows
            z, y = (1.0 + u[k]) * Z[k, j], (1.0 + u[k]) * Y[k, j]
            for i in range(k):
                z += u[i] * Z[i, j]
                y += u[i] * Y[i, j]
            Z[k, j], Y[k, j] = z, y
    for i in range(k):
        c = u[i] / (1.0 + u[k]) if wide else 0.0
        for j in range(d):
            F[i, j] = Y[i, j] - c * Y[k, j] + SIGMA * trace * (Z[i, j] - c * Z[k, j])
        _away(F, i, F[i])


@kernel
def align(F: Floats, new: Floats, R: Floats) -> None:
    """F <- the rows of `new`, turned to where the rows of F were. Overwrites R (k, k)."""
    k, d = F.shape
    for i in range(k):
        for r in range(k):
            R[i, r] = dot(F[i], new[r])
        axis, least = 0, 1e-6
        while _away(R, i, R[i]) < least and axis < k:  # nothing of it is left: any direction that is free
            for r in range(k):
                R[i, r] = 1.0 if r == axis else 0.0
            axis, least = axis + 1, 0.5 / k  # of the axes one has 1/k or more outside of the others
    for i in range(k):
        for j in range(d):
            F[i, j] = 0.0
        for r in range(k):
            for j in range(d):
                F[i, j] += R[i, r] * new[r, j]


@kernel
def diagonal(H: Floats, Q: Floats) -> None:
    """H <- Q H Q', diagonal, by turns of at most 45 degrees (Jacobi); of H as many rows and columns as Q has."""
    k, trace = Q.shape[0], 0.0
    for i in range(k):
        trace += abs(H[i, i])
        for j in range(k):
            Q[i, j] = 1.0 if i == j else 0.0
    for _ in range(SWEEPS):
        largest = 0.0
        for i in range(k):
            for j in range(i):
                largest = max(largest, abs(H[i, j]))
        if largest <= TURNED * trace:
            return
        for p in range(k - 1):
            for q in range(p + 1, k):
                if abs(H[p, q]) <= 0.01 * TURNED * trace:
                    continue
                half = (H[q, q] - H[p, p]) / (2.0 * H[p, q])
                t = (1.0 if half >= 0.0 else -1.0) / (abs(half) + np.sqrt(half * half + 1.0))
                cos = 1.0 / np.sqrt(t * t + 1.0)
                sin = t * cos
                for i in range(k):
                    a, b = H[i, p], H[i, q]
                    H[i, p], H[i, q] = cos * a - sin * b, sin * a + cos * b
                for i in range(k):
                    a, b = H[p, i], H[q, i]
                    H[p, i], H[q, i] = cos * a - sin * b, sin * a + cos * b
                    a, b = Q[p, i], Q[q, i]
                    Q[p, i], Q[q, i] = cos * a - sin * b, sin * a + cos * b
