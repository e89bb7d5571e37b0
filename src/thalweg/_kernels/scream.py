"""A pool of gradient descents under Hedge whose members also pay for how far they move: a round, and whole runs.

State and settings as in `thalweg._kernels.ensemble`, for one slot, and `moves` (1, N), how far each member moved in the
round before. A round, with one gradient h for all:

    A_i      += <h, y_{t,i} - y_t> + lambda ||y_{t,i} - y_{t-1,i}||                       (1)
    y_{t+1,i} = Pi(y_{t,i} - eta_i h)                                                     (2)

and then the weights and their combination, as there.
"""

from typing import Any

import numpy as np

from thalweg._kernels.clock import GRADIENTS, PROJECTIONS, ROUNDS
from thalweg._kernels.ensemble import settle
from thalweg._kernels.jit import inlined, kernel
from thalweg._kernels.projections import project
from thalweg._kernels.reduction import surrogate_gradient
from thalweg._kernels.stage import count_reduced, meet, pass_on
from thalweg._kernels.vectors import dot, square_norm

__all__ = ["play_round", "play_rounds"]


@inlined
def _round(
    Y: np.ndarray,
    A: np.ndarray,
    p: np.ndarray,
    y: np.ndarray,
    sums: np.ndarray,
    clock: np.ndarray,
    moves: np.ndarray,
    h: np.ndarray,
    steps: np.ndarray,
    log_prior: np.ndarray,
    par: np.ndarray,
    rules: np.ndarray,
    code: int,
    domain: np.ndarray,
    price: float,
    before: np.ndarray,
    work: np.ndarray,
) -> None:
    """One round from the gradient h. Overwrites the state, the clock, before and work."""
    N, d = Y.shape[1:]
    sums[0, 0] += square_norm(h)
    base = dot(h, y[0])
    for i in range(N):
        A[0, i] += dot(h, Y[0, i]) - base + price * moves[0, i]  # (1)
        for j in range(d):
            before[j] = Y[0, i, j]
            Y[0, i, j] -= steps[0, i] * h[j]
        project(code, domain, Y[0, i], Y[0, i], work)  # (2)
        square = 0.0
        for j in range(d):
            gap = Y[0, i, j] - before[j]
            square += gap * gap
        moves[0, i] = np.sqrt(square)
    clock[ROUNDS] += 1
    clock[PROJECTIONS] += N
    clock[GRADIENTS] += 1
    settle(Y, A, p, y, sums, 0, N, log_prior, par, rules)


@kernel
def play_round(
    Y: np.ndarray,
    A: np.ndarray,
    p: np.ndarray,
    y: np.ndarray,
    sums: np.ndarray,
    clock: np.ndarray,
    moves: np.ndarray,
    g: np.ndarray,
    reduced: bool,
    x: np.ndarray,
    tol: float,
    h: np.ndarray,
    outer: np.ndarray,
    steps: np.ndarray,
    log_prior: np.ndarray,
    par: np.ndarray,
    rules: np.ndarray,
    code: int,
    domain: np.ndarray,
    price: float,
    work: np.ndarray,
) -> None:
    """One round; with `reduced`, inside the reduction with clock `outer` and g the gradient at x.

    Overwrites the state, the clocks, h and work.
    """
    if reduced:
        surrogate_gradient(g, y[0], x, tol, h)
        count_reduced(outer, False)
    seen = h if reduced else g
    _round(
        Y, A, p, y, sums, clock, moves, seen, steps, log_prior, par, rules, code, domain, price, work[2], work[3]
    )  # fmt: skip


@kernel
def play_rounds(
    state: Any, settings: Any, world: Any, face: Any, first: int, last: int, price: float, work: np.ndarray
) -> int:
    """Play rounds first..last-1; stop before a round that must be refused. Returns the first that was not played.

    `world` and `face` are explained in `thalweg._kernels.stage`. Overwrites the state and work.
    """
    Y, A, p, y, sums, clock, moves = state
    steps, log_prior, par, rules, home_code, home = settings
    loss_code, loss_par, features, labels, losses, decisions, square_bound, nonnegative = world
    reduced, x, outer, code, domain, tol = face
    g, h, inner = work[0], work[1], y[0]
    for t in range(first, last):
        if not meet(
            t, inner, loss_code, loss_par, features, labels, losses, decisions, square_bound, nonnegative,
            reduced, x, outer, code, domain, g, work[2],
        ):  # fmt: skip
            return t
        pass_on(g, inner, reduced, x, outer, tol, False, h)
        _round(
            Y, A, p, y, sums, clock, moves, h, steps, log_prior, par, rules, home_code, home, price, work[2], work[3]
        )  # fmt: skip
    return last
