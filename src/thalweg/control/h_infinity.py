"""A state feedback for the worst disturbance: H-infinity control by the game Riccati equation.

For x_{t+1} = A x + B u + w, cost z'z = x'Q x + u'R u and a level g, iterate from P = Q:

    S = I + (B R^{-1} B' - g^{-2} I) P                                                     (1)
    P <- Q + A'P S^{-1} A                                                                  (2)

If P stays below g^2 I and settles, K = R^{-1} B'P S^{-1} A stabilises and the gain from w to z is below g (Basar and
Bernhard, H-infinity optimal control, 1995, Chapter 3). The least such g is found by bisection. As g grows, K tends to
the LQR gain.
"""

import math
from contextlib import suppress

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import check_count, check_entries, check_positive, wrong
from thalweg.control.gains import check_gain, check_system, closed_loop, lqr_gain, solving, weight
from thalweg.control.system import LinearSystem
from thalweg.errors import InputError

__all__ = ["closed_loop_norm", "h_infinity_gain"]

ITERATIONS = 20_000
SETTLED = 1e-10  # relative change of P
FINEST = 1e-7  # the smallest slack


def h_infinity_gain(
    system: LinearSystem, Q: ArrayLike | None = None, R: ArrayLike | None = None, *, slack: float = 0.01
) -> tuple[Floats, float]:
    """K of u = -K x that (nearly) minimises the worst gain from disturbance to cost, and that gain's level.

    Parameters
    ----------
    system : LinearSystem
        The plant.
    Q, R : array, vector or number, optional
        Weights, as for `lqr_gain`.
    slack : float
        How far, relatively, the level may stay above the least: at the least one the equation is close to singular.

    Returns
    -------
    K, level

    Examples
    --------
    >>> from thalweg.control import double_integrator, h_infinity_gain
    >>> K, level = h_infinity_gain(double_integrator(period=1.0))
    >>> K.round(1), round(level, 1)
    (array([[0.7, 1.3]]), 2.3)
    """
    who = "h_infinity_gain"
    check_system(who, system)
    q = weight(who, "Q", Q, system.state_dim, definite=False)
    r = weight(who, "R", R, system.input_dim, definite=True)
    slack = check_positive(who, "slack", slack)
    if slack < FINEST:
        raise wrong(who, "slack", f"at least {FINEST:g}: closer to the least level the equation does not settle", slack)
    high = closed_loop_norm(system, lqr_gain(system, q, r), q, r)  # the LQR gain reaches this level, so it is feasible
    while (K := _solve(system, q, r, high)) is None:
        high *= 2
        if not high < 1e12:
            raise InputError(f"h_infinity_gain: the game Riccati equation of {system!r} has no solution.")
    low = 0.0
    while high - low > slack * high / 2:
        level = (low + high) / 2
        tried = _solve(system, q, r, level)
        if tried is None:
            low = level
        else:
            K, high = tried, level
    return K, high


def _solve(system: LinearSystem, q: Floats, r: Floats, level: float) -> Floats | None:
    """Return the gain for a level: iterate (1) and (2) until P converges. None if it does not: infeasible."""
    A, B, identity = system.A, system.B, np.eye(system.state_dim)
    P = q.copy()
    with solving(), suppress(np.linalg.LinAlgError):
        spread = B @ np.linalg.solve(r, B.T) - identity / level**2
        for _ in range(ITERATIONS):
            if not np.linalg.eigvalsh(P).max() < level**2:
                break
            ahead = np.linalg.solve(identity + spread @ P, A)  # (1)
            new = q + A.T @ P @ ahead  # (2)
            new = (new + new.T) / 2
            if np.abs(new - P).max() <= SETTLED * np.abs(new).max():
                K = np.asarray(np.linalg.solve(r, B.T @ P @ ahead), dtype=np.float64)
                return K if np.abs(np.linalg.eigvals(closed_loop(system, K))).max() < 1 else None
            P = new
    return None


def closed_loop_norm(
    system: LinearSystem, gain: ArrayLike, Q: ArrayLike | None = None, R: ArrayLike | None = None, *, points: int = 400
) -> float:
    """The largest gain from disturbance to cost over frequencies, sup ||[Q^1/2; -R^1/2 K] (e^{is} I - A + B K)^{-1}||.

    From a grid of frequencies, refined around the largest; so it can miss a peak between two of them.
    """
    who = "closed_loop_norm"
    K = check_gain(who, system, gain)
    q = weight(who, "Q", Q, system.state_dim, definite=False)
    r = weight(who, "R", R, system.input_dim, definite=True)
    n = check_count(who, "points", points)
    check_entries(who, "points", points, n * system.state_dim**2)
    loop, identity = closed_loop(system, K), np.eye(system.state_dim)
    cost = q + K.T @ r @ K
    sizes, basis = np.linalg.eigh(cost)
    root = np.sqrt(np.maximum(sizes, 0))[:, None] * basis.T

    def largest(grid: Floats) -> tuple[float, float]:
        gains = np.linalg.norm(root @ np.linalg.inv(np.exp(1j * grid)[:, None, None] * identity - loop), 2, axis=(1, 2))
        best = int(np.argmax(gains))
        return float(gains[best]), float(grid[best])

    value, at = largest(np.linspace(0, math.pi, n))
    width = math.pi / n
    for _ in range(3):
        value, at = max((value, at), largest(np.clip(np.linspace(at - width, at + width, 41), 0, math.pi)))
        width /= 20
    return value
