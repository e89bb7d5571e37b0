"""Matrix equations of control with NumPy alone: SciPy takes longer to import than all else up to the first round.

Each solver checks its own outcome. Where it is not exact enough, SciPy's solver is asked.
"""

import math

import numpy as np

from thalweg._core.types import Floats

__all__ = ["exponential", "optimal", "real_eigenvectors", "schur_basis", "solve_lyapunov", "solve_riccati"]

EPS = float(np.finfo(np.float64).eps)
DOUBLINGS = 60  # of a number of rounds, so 2^60 of them
ACCEPTED_RESIDUAL = 100 * EPS  # relative residual that is accepted
MARGIN = 1e-6  # closed loops with a spectral radius closer to 1 are left to SciPy

# Padé approximant of degree 13 of the exponential, and the norm up to which it has full accuracy
PADE = [math.comb(13, k) * math.factorial(26 - k) / math.factorial(26) for k in range(14)]
LARGEST_NORM = 4.25
SHRUNK = 0.1  # norm of an exponential all of whose modes have decayed
LEADING = 1 / (math.comb(26, 13) * math.factorial(27))  # first coefficient of the approximant's backward error


def exponential(A: Floats) -> Floats:
    """e^A by scaling and squaring (Al-Mohy and Higham, "A new scaling and squaring algorithm", SIMAX 31, 2009).

    Norms of powers decide how often A is halved, so that matrices far from normal are not halved too often.
    """
    size = _norm(A)
    if not 0 < size < math.inf:
        return np.eye(len(A)) + A  # of zeros; infinities stay
    identity, unit = np.eye(len(A)), A / size
    roots = [_norm(np.linalg.matrix_power(unit, n)) ** (1 / n) for n in (6, 8, 10)]
    growth = size * min(max(roots[:2]), max(roots[1:]))
    halvings = math.ceil(math.log2(growth / LARGEST_NORM)) if growth > LARGEST_NORM else 0
    error = _norm(np.linalg.matrix_power(np.abs(unit), 27))
    if error > 0:  # backward error of the approximant, relative to the norm of A/2^halvings
        bits = math.log2(2 * LEADING / EPS) + math.log2(error) + 26 * (math.log2(size) - halvings)
        halvings += max(0, math.ceil(bits / 26))
    X = A * 2.0**-halvings
    X2 = X @ X
    X4 = X2 @ X2
    X6 = X2 @ X4
    b = PADE
    odd = X @ (X6 @ (b[13] * X6 + b[11] * X4 + b[9] * X2) + b[7] * X6 + b[5] * X4 + b[3] * X2 + b[1] * identity)
    even = X6 @ (b[12] * X6 + b[10] * X4 + b[8] * X2) + b[6] * X6 + b[4] * X4 + b[2] * X2 + b[0] * identity
    excess = np.linalg.solve(even - odd, 2 * odd)  # e^X - I: doubled, it keeps the digits of modes near 1
    power: Floats = identity + excess  # squared, it keeps those of modes near 0
    for _ in range(halvings):
        excess, power = 2 * excess + excess @ excess, power @ power
    return power if _norm(power) < SHRUNK else identity + excess


def _norm(A: Floats) -> float:
    return float(np.abs(A).sum(axis=0).max())


def solve_riccati(A: Floats, B: Floats, Q: Floats, R: Floats) -> Floats:
    """P = A'P A - A'P B (R + B'P B)^{-1} B'P A + Q, the solution that stabilises.

    The structure-preserving doubling algorithm, in which step k has the cost of 2^k rounds (Anderson, "Second-order
    convergent algorithms for the steady-state Riccati equation", Int. J. Control 28, 1978; Chu, Fan, Lin, Wang,
    "Structure-preserving algorithms for periodic discrete-time algebraic Riccati equations", Int. J. Control 77, 2004),
    then one step of Newton's method: the cost of the gain that was found.

    Raises
    ------
    LinAlgError, ValueError
        As `scipy.linalg.solve_discrete_are`: there is no such solution.
    """
    P = _double_riccati(A, B, Q, R)
    if P is None:
        from scipy.linalg import solve_discrete_are

        P = solve_discrete_are(A, B, Q, R)
    return P


def _double_riccati(A: Floats, B: Floats, Q: Floats, R: Floats) -> Floats | None:
    """P, or None where doubling does not reach it."""
    d = len(A)
    try:
        F, G, P = A, B @ np.linalg.solve(R, B.T), Q
        for _ in range(DOUBLINGS):
            both = np.linalg.solve(np.eye(d) + G @ P, np.hstack([F, G]))
            more = F.T @ P @ both[:, :d]
            F, G, P = F @ both[:, :d], G + F @ both[:, d:] @ F.T, P + (more + more.T) / 2
            G = (G + G.T) / 2
            if not np.abs(more).max() > EPS * np.abs(P).max():  # True also for nan
                break
        K, loop = optimal(A, B, R, P)
        if not np.abs(np.linalg.eigvals(loop)).max() < 1 - MARGIN:
            return None
        P = solve_lyapunov(loop, Q + K.T @ R @ K)
        _, loop = optimal(A, B, R, P)
        error = np.linalg.norm(Q + A.T @ P @ loop - P)
        return P if error <= ACCEPTED_RESIDUAL * (np.linalg.norm(P) + np.linalg.norm(A.T @ P @ A)) else None
    except np.linalg.LinAlgError:
        return None


def optimal(A: Floats, B: Floats, R: Floats, P: Floats) -> tuple[Floats, Floats]:
    """K and A - B K for the best controller if the state after the next costs x'P x."""
    K = np.asarray(np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A), dtype=np.float64)
    return K, A - B @ K


def solve_lyapunov(F: Floats, Q: Floats) -> Floats:
    """P = F'P F + Q for matrices F (.., d, d) with spectral radii below 1: the sum of F'^k Q F^k, doubled."""
    P = Q
    for _ in range(DOUBLINGS):
        more = F.swapaxes(-1, -2) @ P @ F
        P, F = P + more, F @ F
        if not (np.abs(more).max(axis=(-1, -2)) > EPS * np.abs(P).max(axis=(-1, -2))).any():
            break
    return (P + P.swapaxes(-1, -2)) / 2


def real_eigenvectors(values: Floats, vectors: Floats) -> Floats:
    """Columns that span the same spaces as `numpy.linalg.eig` gives, real and imaginary parts for complex pairs."""
    columns: list[Floats] = []
    for value, vector in zip(values, vectors.T, strict=True):
        if value.imag > 0:
            columns += [vector.real, vector.imag]  # a pair of equal lengths turns by a rotation
        elif value.imag == 0:
            columns.append(vector.real)
    return np.stack(columns, axis=1)


def schur_basis(A: Floats, values: Floats, vectors: Floats) -> Floats:
    """U of a real Schur form A = U T U', from the eigenvalues and eigenvectors that `numpy.linalg.eig` gives.

    Eigenvectors made orthogonal from the first to the last are such a basis, unless some are nearly parallel: then
    SciPy's QR iterations are needed. The 2 by 2 blocks of complex pairs have equal diagonal entries, the smaller of
    the others below.
    """
    U = np.linalg.qr(real_eigenvectors(values, vectors))[0]
    for i in np.flatnonzero(values.imag > 0):
        pair = U[:, i : i + 2]
        (a, b), (c, d) = (pair.T @ A @ pair).tolist()
        sign = math.copysign(1.0, b - c)
        angle = math.atan2(sign * (d - a), sign * (b + c)) / 2
        cos, sin = math.cos(angle), math.sin(angle)
        U[:, i : i + 2] = pair @ np.array([[cos, -sin], [sin, cos]])
    below = np.tril(U.T @ A @ U, -1)
    for i in np.flatnonzero(values.imag > 0):
        below[i + 1, i] = 0.0
    if np.abs(below).max() <= ACCEPTED_RESIDUAL * np.linalg.norm(A):
        return U
    from scipy.linalg import schur

    basis: Floats = schur(A, output="real")[1]
    return basis
