"""A pool of N gradient-descent learners under Hedge: one round, and whole runs.

An ensemble lives in slot k of arrays with a leading axis, which a lone one has to itself and a cover shares among its
experts. Indices, not views: a view made in every round costs more, in reference counts, than a small round.

State (overwritten): `Y` (K, N, d) the members' points y_{t,i}; `A` (K, N) their cumulative losses; `p` (K, N) weights;
`y` (K, d) the combination sum_i p_i y_i; `sums` (K, 1) the sum q of squared gradient norms.

Settings: `steps` (K, N) and a step rule; `log_prior` (K, N); `par` (K, 3) = [delta, epsilon, R]; `rules` = [step rule,
rate rule]. Slot k has n <= N members, and is in its `age`-th round.

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
from thalweg._kernels.projections import BALL, project
from thalweg._kernels.reduction import surrogate_gradient
from thalweg._kernels.stage import count_reduced, meet, pass_on
from thalweg._kernels.vectors import decay, dot
from thalweg.losses._table import slope, value

__all__ = [
    "CONSTANT",
    "DECAYING",
    "FIXED",
    "SCALE_FREE",
    "SELF_CONFIDENT",
    "meta_rate",
    "play_own",
    "play_own_round",
    "play_round",
    "play_shared",
    "round_own",
    "round_shared",
    "settle",
    "step_factor",
]

CONSTANT, DECAYING, SCALE_FREE = 0, 1, 2  # step rules
FIXED, SELF_CONFIDENT = 0, 1  # rate rules


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
    k: int,
    n: int,
    h: np.ndarray,
    base: float,
    steps: np.ndarray,
    factor: float,
    ball: np.ndarray,
) -> None:
    """(1) and (2) for all members on a ball, which every reduction uses: one pass, and one over those outside.

    Overwrites Y, A and, as scratch space, p.
    """
    d = h.shape[0]
    for i in range(n):
        eta = steps[k, i] * factor
        inner = 0.0
        square = 0.0
        for j in range(d):
            before = Y[k, i, j]
            moved = before - eta * h[j]
            gap = moved - ball[1 + j]
            inner += h[j] * before
            square += gap * gap
            Y[k, i, j] = moved
        A[k, i] += inner - base  # (2)
        p[k, i] = square
    for i in range(n):
        p[k, i] = ball[0] / np.sqrt(p[k, i])  # infinite in the centre
    for i in range(n):
        scale = p[k, i]
        if scale < 1.0:
            for j in range(d):
                Y[k, i, j] = ball[1 + j] + scale * (Y[k, i, j] - ball[1 + j])  # (1)


@inlined
def settle(
    Y: np.ndarray,
    A: np.ndarray,
    p: np.ndarray,
    y: np.ndarray,
    sums: np.ndarray,
    k: int,
    n: int,
    log_prior: np.ndarray,
    par: np.ndarray,
    rules: np.ndarray,
) -> None:
    """(3) and (4) from the members' points and cumulative losses. Overwrites p and y."""
    d = y.shape[1]
    epsilon = meta_rate(rules[1], par[k, 1], par[k, 2], sums[k, 0])
    top = -np.inf
    for i in range(n):
        p[k, i] = log_prior[k, i] - epsilon * A[k, i]
        top = max(top, p[k, i])
    total = 0.0
    for i in range(n):
        p[k, i] = decay(p[k, i] - top)  # the largest term is exp(0): total >= 1
        total += p[k, i]
    for i in range(n):
        p[k, i] /= total
    for j in range(d):
        y[k, j] = 0.0
    whole = n - n % 4
    for i in range(0, whole, 4):  # four rows at a time: a quarter of the loads and stores of y
        p0, p1, p2, p3 = p[k, i], p[k, i + 1], p[k, i + 2], p[k, i + 3]
        for j in range(d):
            y[k, j] += (p0 * Y[k, i, j] + p1 * Y[k, i + 1, j]) + (p2 * Y[k, i + 2, j] + p3 * Y[k, i + 3, j])
    for i in range(whole, n):
        for j in range(d):
            y[k, j] += p[k, i] * Y[k, i, j]


@inlined
def round_shared(
    Y: np.ndarray,
    A: np.ndarray,
    p: np.ndarray,
    y: np.ndarray,
    sums: np.ndarray,
    k: int,
    n: int,
    age: int,
    h: np.ndarray,
    steps: np.ndarray,
    log_prior: np.ndarray,
    par: np.ndarray,
    rules: np.ndarray,
    code: int,
    domain: np.ndarray,
    work: np.ndarray,
) -> None:
    """One round of slot k with one gradient h for all its members. Overwrites the state."""
    square = 0.0
    base = 0.0
    for j in range(h.shape[0]):
        square += h[j] * h[j]
        base += h[j] * y[k, j]
    sums[k, 0] += square
    factor = step_factor(rules[0], age, sums[k, 0], par[k, 0])
    if code == BALL:
        _descend_ball(Y, A, p, k, n, h, base, steps, factor, domain)
    else:
        for i in range(n):
            A[k, i] += dot(h, Y[k, i]) - base  # (2)
            _descend(Y[k, i], steps[k, i] * factor, h, code, domain, work)  # (1)
    settle(Y, A, p, y, sums, k, n, log_prior, par, rules)


@inlined
def round_own(
    Y: np.ndarray,
    A: np.ndarray,
    p: np.ndarray,
    y: np.ndarray,
    sums: np.ndarray,
    k: int,
    n: int,
    age: int,
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
    """One round of slot k with a gradient (of H) and a loss for each member; `square` is added to q."""
    sums[k, 0] += square
    factor = step_factor(rules[0], age, sums[k, 0], par[k, 0])
    for i in range(n):
        A[k, i] += losses[k, i]  # (2)
        _descend(Y[k, i], steps[k, i] * factor, H[k, i], code, domain, work)  # (1)
    settle(Y, A, p, y, sums, k, n, log_prior, par, rules)


@inlined
def _count(clock: np.ndarray, projections: int, gradients: int, values: int) -> None:
    """Count a round of a lone ensemble."""
    clock[ROUNDS] += 1
    clock[PROJECTIONS] += projections
    clock[GRADIENTS] += gradients
    clock[VALUES] += values


@kernel
def play_round(
    Y: np.ndarray,
    A: np.ndarray,
    p: np.ndarray,
    y: np.ndarray,
    sums: np.ndarray,
    clock: np.ndarray,
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
    work: np.ndarray,
) -> None:
    """One round of a lone ensemble; with `reduced`, inside the reduction with clock `outer` and g the gradient at x.

    Overwrites the state, the clocks and h.
    """
    N = Y.shape[1]
    if reduced:
        surrogate_gradient(g, y[0], x, tol, h)
        count_reduced(outer, False)
    _count(clock, N, 1, 0)
    seen = h if reduced else g
    round_shared(Y, A, p, y, sums, 0, N, clock[ROUNDS], seen, steps, log_prior, par, rules, code, domain, work)


@kernel
def play_own_round(
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
    """One round of a lone ensemble whose members have their own gradients. Overwrites the state and the clock."""
    N = Y.shape[1]
    _count(clock, N, 0, 0)
    round_own(
        Y, A, p, y, sums, 0, N, clock[ROUNDS], H, losses, square, steps, log_prior, par, rules, code, domain, work
    )


@kernel
def play_shared(state: Any, settings: Any, world: Any, face: Any, first: int, last: int, work: np.ndarray) -> int:
    """Play rounds first..last-1 with one gradient each; stop before a round that must be refused.

    `state` and `settings` are what `play_round` takes first and last; `world` and `face` are explained in
    `thalweg._kernels.stage`. Returns the first round that was not played.
    """
    Y, A, p, y, sums, clock = state
    steps, log_prior, par, rules, home_code, home = settings
    loss_code, loss_par, features, labels, losses, decisions, square_bound, nonnegative = world
    reduced, x, outer, code, domain, tol = face
    g, h, scratch, inner = work[0], work[1], work[2], y[0]
    N = Y.shape[1]
    for t in range(first, last):
        if not meet(
            t, inner, loss_code, loss_par, features, labels, losses, decisions, square_bound, nonnegative,
            reduced, x, outer, code, domain, g, scratch,
        ):  # fmt: skip
            return t
        pass_on(g, inner, reduced, x, outer, tol, False, h)
        _count(clock, N, 1, 0)
        round_shared(Y, A, p, y, sums, 0, N, clock[ROUNDS], h, steps, log_prior, par, rules, home_code, home, scratch)
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
    loss_code, loss_par, features, labels, losses, decisions, square_bound, nonnegative = world
    N, d = Y.shape[1:]
    member_losses = np.empty((1, N))
    for t in range(first, last):
        a = features[t]
        b = labels[t]
        feature_square = dot(a, a)
        margin = dot(a, y[0])
        loss = value(loss_code, margin, b, loss_par)
        weight = slope(loss_code, margin, b, loss_par)
        square = weight * weight * feature_square
        fine = np.isfinite(loss) and not (nonnegative and loss < 0.0) and (by_value or square <= square_bound)
        for i in range(N):
            own_margin = dot(a, Y[0, i])
            own = slope(loss_code, own_margin, b, loss_par)
            fine = fine and own * own * feature_square <= square_bound
            for j in range(d):
                H[0, i, j] = own * a[j]
            if by_value:
                member_losses[0, i] = value(loss_code, own_margin, b, loss_par)
                fine = fine and np.isfinite(member_losses[0, i])
            else:
                member_losses[0, i] = weight * (own_margin - margin)
        if not fine:
            return t
        losses[t] = loss
        if decisions.shape[0] > 0:
            for j in range(d):
                decisions[t, j] = y[0, j]
        _count(clock, N, N if by_value else N + 1, N if by_value else 0)
        round_own(
            Y, A, p, y, sums, 0, N, clock[ROUNDS], H, member_losses, 0.0 if by_value else square,
            steps, log_prior, par, rules, code, domain, work,
        )  # fmt: skip
    return last
