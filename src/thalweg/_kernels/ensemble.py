"""A pool of N gradient-descent learners under Hedge: one round, and whole runs.

State (overwritten): `Y` (N, d) the members' points y_{t,i}; `A` (N,) their cumulative losses; `p` (N,) weights;
`y` (d,) the combination sum_i p_i y_i; `sums` = [q], q the sum of squared gradient norms; `clock` the counters below.

Settings: `steps` (N,) and a step rule; `log_prior` (N,); `par` = [delta, epsilon, R]; `rules` = [step rule, rate rule].

A round, with h_i the gradient of member i (the same for all where it is shared) and l_i its loss:

    y_{t+1,i} = Pi(y_{t,i} - eta_{t,i} h_i)                                               (1)
    A_i      += l_i                                                                       (2)
    p_{t+1,i} = prior_i exp(-epsilon_{t+1} A_i) / normaliser                              (3)
    y_{t+1}   = sum_i p_{t+1,i} y_{t+1,i}                                                 (4)

Shared gradients use l_i = <h, y_i - y>: the same number off all losses leaves (3) as it is and keeps A small.
"""

from typing import Any

import numpy as np

from thalweg._kernels.clock import GRADIENTS, PROJECTIONS, ROUNDS, VALUES
from thalweg._kernels.jit import inlined, kernel
from thalweg._kernels.losses import slope, value
from thalweg._kernels.projections import BALL, project
from thalweg._kernels.stage import meet, pass_on
from thalweg._kernels.vectors import dot

__all__ = [
    "CONSTANT",
    "DECAYING",
    "FIXED",
    "SCALE_FREE",
    "SELF_CONFIDENT",
    "meta_rate",
    "play_own",
    "play_shared",
    "round_own",
    "round_reduced",
    "round_shared",
    "settle",
    "step_factor",
]

CONSTANT, DECAYING, SCALE_FREE = 0, 1, 2  # step rules
FIXED, SELF_CONFIDENT = 0, 1  # rate rules
NEGLIGIBLE = -40.0  # exp of it is 4e-18: nothing beside the largest weight, which is 1 before they are normalised


@inlined
def step_factor(rule: int, t: int, q: float, delta: float) -> float:
    """What the step sizes are multiplied with in round t: 1, 1/sqrt(t) or 1/sqrt(delta + q)."""
    if rule == DECAYING:
        return 1.0 / np.sqrt(t)  # t >= 1
    if rule == SCALE_FREE:
        return 1.0 / np.sqrt(delta + q)  # delta > 0
    return 1.0


@inlined
def meta_rate(rule: int, epsilon: float, R: float, q: float) -> float:
    """epsilon, or epsilon / sqrt(1 + R^2 q): the self-confident rate, with epsilon = sqrt(ln N)."""
    if rule == SELF_CONFIDENT:
        return epsilon / np.sqrt(1.0 + R * R * q)
    return epsilon


@kernel
def _descend(point: np.ndarray, eta: float, h: np.ndarray, code: int, par: np.ndarray, work: np.ndarray) -> None:
    """point <- Pi(point - eta h)   (1)."""
    for j in range(point.shape[0]):
        point[j] -= eta * h[j]
    project(code, par, point, point, work)


@inlined
def _descend_ball(
    Y: np.ndarray,
    A: np.ndarray,
    p: np.ndarray,
    h: np.ndarray,
    base: float,
    steps: np.ndarray,
    factor: float,
    ball: np.ndarray,
) -> None:
    """(1) and (2) for all members on a ball, which every reduction uses: one pass, and one over those outside.

    Overwrites Y, A and, as scratch space, p.
    """
    N, d = Y.shape
    for i in range(N):
        eta = steps[i] * factor
        inner = 0.0
        square = 0.0
        for j in range(d):
            before = Y[i, j]
            moved = before - eta * h[j]
            gap = moved - ball[1 + j]
            inner += h[j] * before
            square += gap * gap
            Y[i, j] = moved
        A[i] += inner - base  # (2)
        p[i] = square
    for i in range(N):
        p[i] = ball[0] / np.sqrt(p[i])  # infinite in the centre
    for i in range(N):
        scale = p[i]
        if scale < 1.0:
            for j in range(d):
                Y[i, j] = ball[1 + j] + scale * (Y[i, j] - ball[1 + j])  # (1)


@inlined
def settle(
    Y: np.ndarray,
    A: np.ndarray,
    p: np.ndarray,
    y: np.ndarray,
    sums: np.ndarray,
    log_prior: np.ndarray,
    par: np.ndarray,
    rules: np.ndarray,
) -> None:
    """(3) and (4) from the members' points and cumulative losses. Overwrites p and y."""
    N, d = Y.shape
    epsilon = meta_rate(rules[1], par[1], par[2], sums[0])
    top = -np.inf
    for i in range(N):
        p[i] = log_prior[i] - epsilon * A[i]
        top = max(top, p[i])
    total = 0.0
    for i in range(N):
        lag = p[i] - top
        p[i] = np.exp(lag) if lag > NEGLIGIBLE else 0.0  # the largest term is exp(0): total >= 1
        total += p[i]
    for i in range(N):
        p[i] /= total
    for j in range(d):
        y[j] = 0.0
    whole = N - N % 4
    for i in range(0, whole, 4):  # four rows at a time: a quarter of the loads and stores of y
        p0, p1, p2, p3 = p[i], p[i + 1], p[i + 2], p[i + 3]
        for j in range(d):
            y[j] += (p0 * Y[i, j] + p1 * Y[i + 1, j]) + (p2 * Y[i + 2, j] + p3 * Y[i + 3, j])
    for i in range(whole, N):
        for j in range(d):
            y[j] += p[i] * Y[i, j]


@inlined
def round_shared(
    Y: np.ndarray,
    A: np.ndarray,
    p: np.ndarray,
    y: np.ndarray,
    sums: np.ndarray,
    clock: np.ndarray,
    h: np.ndarray,
    steps: np.ndarray,
    log_prior: np.ndarray,
    par: np.ndarray,
    rules: np.ndarray,
    code: int,
    domain: np.ndarray,
    work: np.ndarray,
) -> None:
    """One round with one gradient h for all members. Overwrites the state."""
    N = Y.shape[0]
    square = 0.0
    base = 0.0
    for j in range(h.shape[0]):
        square += h[j] * h[j]
        base += h[j] * y[j]
    sums[0] += square
    clock[ROUNDS] += 1
    clock[GRADIENTS] += 1
    clock[PROJECTIONS] += N
    factor = step_factor(rules[0], clock[ROUNDS], sums[0], par[0])
    if code == BALL:
        _descend_ball(Y, A, p, h, base, steps, factor, domain)
    else:
        for i in range(N):
            A[i] += dot(h, Y[i]) - base  # (2)
            _descend(Y[i], steps[i] * factor, h, code, domain, work)  # (1)
    settle(Y, A, p, y, sums, log_prior, par, rules)


@kernel
def round_reduced(
    Y: np.ndarray,
    A: np.ndarray,
    p: np.ndarray,
    y: np.ndarray,
    sums: np.ndarray,
    clock: np.ndarray,
    g: np.ndarray,
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
    work: np.ndarray,
) -> None:
    """One round inside the reduction, whose clock is `outer`: g is the gradient at x. Overwrites all of it."""
    pass_on(g, y, True, x, outer, tol, False, h)
    round_shared(Y, A, p, y, sums, clock, h, steps, log_prior, par, rules, code, domain, work)


@kernel
def round_own(
    Y: np.ndarray,
    A: np.ndarray,
    p: np.ndarray,
    y: np.ndarray,
    sums: np.ndarray,
    clock: np.ndarray,
    H: np.ndarray,
    losses: np.ndarray,
    square: float,
    steps: np.ndarray,
    log_prior: np.ndarray,
    par: np.ndarray,
    rules: np.ndarray,
    code: int,
    domain: np.ndarray,
    work: np.ndarray,
) -> None:
    """One round with a gradient H_i and a loss for each member; `square` is added to q. Overwrites the state."""
    N = Y.shape[0]
    sums[0] += square
    clock[ROUNDS] += 1
    clock[PROJECTIONS] += N
    factor = step_factor(rules[0], clock[ROUNDS], sums[0], par[0])
    for i in range(N):
        A[i] += losses[i]  # (2)
        _descend(Y[i], steps[i] * factor, H[i], code, domain, work)  # (1)
    settle(Y, A, p, y, sums, log_prior, par, rules)


@kernel
def play_shared(state: Any, settings: Any, world: Any, face: Any, first: int, last: int, work: np.ndarray) -> int:
    """Play rounds first..last-1 with one gradient each; stop before a round that must be refused.

    `state` and `settings` are what `round_shared` takes before and after the gradient; `world` and `face` are explained
    in `thalweg._kernels.stage`. Returns the first round that was not played.
    """
    Y, A, p, y, sums, clock = state
    steps, log_prior, par, rules, home_code, home = settings
    loss_code, features, labels, losses, decisions, square_bound, nonnegative = world
    reduced, x, outer, code, domain, tol = face
    g, h, scratch = work[0], work[1], work[2]
    for t in range(first, last):
        if not meet(
            t, y, loss_code, features, labels, losses, decisions, square_bound, nonnegative,
            reduced, x, outer, code, domain, g, scratch,
        ):  # fmt: skip
            return t
        pass_on(g, y, reduced, x, outer, tol, False, h)
        round_shared(Y, A, p, y, sums, clock, h, steps, log_prior, par, rules, home_code, home, scratch)
    return last


@kernel
def play_own(
    state: Any, settings: Any, world: Any, first: int, last: int, by_value: bool, H: np.ndarray, work: np.ndarray
) -> int:
    """Play rounds first..last-1, each member with its own gradient; stop before a round that must be refused.

    The members are judged by their values f(y_i) with `by_value`, else by <grad f(y), y_i - y>. Returns the first round
    that was not played.
    """
    Y, A, p, y, sums, clock = state
    steps, log_prior, par, rules, code, domain = settings
    loss_code, features, labels, losses, decisions, square_bound, nonnegative = world
    N, d = Y.shape
    member_losses = np.empty(N)
    for t in range(first, last):
        a = features[t]
        b = labels[t]
        feature_square = dot(a, a)
        margin = dot(a, y)
        loss = value(loss_code, margin, b)
        weight = slope(loss_code, margin, b)
        square = weight * weight * feature_square
        fine = np.isfinite(loss) and not (nonnegative and loss < 0.0) and (by_value or square <= square_bound)
        for i in range(N):
            own_margin = dot(a, Y[i])
            own = slope(loss_code, own_margin, b)
            fine = fine and own * own * feature_square <= square_bound
            for j in range(d):
                H[i, j] = own * a[j]
            if by_value:
                member_losses[i] = value(loss_code, own_margin, b)
                fine = fine and np.isfinite(member_losses[i])
            else:
                member_losses[i] = weight * (own_margin - margin)
        if not fine:
            return t
        losses[t] = loss
        if decisions.shape[0] > 0:
            for j in range(d):
                decisions[t, j] = y[j]
        clock[GRADIENTS] += N if by_value else N + 1
        clock[VALUES] += N if by_value else 0
        round_own(
            Y, A, p, y, sums, clock, H, member_losses, 0.0 if by_value else square,
            steps, log_prior, par, rules, code, domain, work,
        )  # fmt: skip
    return last
