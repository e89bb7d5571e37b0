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

import numpy as np

from thalweg._kernels.clock import FRESH, GRADIENTS, PROJECTIONS, ROUNDS, VALUES
from thalweg._kernels.jit import kernel
from thalweg._kernels.losses import slope, value
from thalweg._kernels.projections import BALL, project
from thalweg._kernels.reduction import surrogate_gradient
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
    "round_shared",
    "settle",
    "step_factor",
]

CONSTANT, DECAYING, SCALE_FREE = 0, 1, 2  # step rules
FIXED, SELF_CONFIDENT = 0, 1  # rate rules


@kernel
def step_factor(rule: int, t: int, q: float, delta: float) -> float:
    """What the step sizes are multiplied with in round t: 1, 1/sqrt(t) or 1/sqrt(delta + q)."""
    if rule == DECAYING:
        return 1.0 / np.sqrt(t)  # t >= 1
    if rule == SCALE_FREE:
        return 1.0 / np.sqrt(delta + q)  # delta > 0
    return 1.0


@kernel
def meta_rate(rule: int, epsilon: float, R: float, q: float) -> float:
    """epsilon, or epsilon / sqrt(1 + R^2 q): the self-confident rate, with epsilon = sqrt(ln N)."""
    if rule == SELF_CONFIDENT:
        return epsilon / np.sqrt(1.0 + R * R * q)
    return epsilon


@kernel
def _descend(point: np.ndarray, eta: float, h: np.ndarray, code: int, par: np.ndarray, work: np.ndarray) -> None:
    """point <- Pi(point - eta h)   (1). The ball, which every reduction uses, is done on the spot."""
    d = point.shape[0]
    if code == BALL:
        square = 0.0
        for j in range(d):
            moved = point[j] - eta * h[j]
            point[j] = moved
            gap = moved - par[1 + j]
            square += gap * gap
        if square > par[0] * par[0]:
            scale = par[0] / np.sqrt(square)  # square > 0
            for j in range(d):
                point[j] = par[1 + j] + scale * (point[j] - par[1 + j])
    else:
        for j in range(d):
            point[j] -= eta * h[j]
        project(code, par, point, point, work)


@kernel
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
        p[i] = np.exp(p[i] - top)  # the largest term is exp(0): total >= 1
        total += p[i]
    for j in range(d):
        y[j] = 0.0
    for i in range(N):
        p[i] /= total
        weight = p[i]
        for j in range(d):
            y[j] += weight * Y[i, j]


@kernel
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
    N, d = Y.shape
    square = 0.0
    base = 0.0
    for j in range(d):
        square += h[j] * h[j]
        base += h[j] * y[j]
    sums[0] += square
    clock[ROUNDS] += 1
    clock[GRADIENTS] += 1
    factor = step_factor(rules[0], clock[ROUNDS], sums[0], par[0])
    for i in range(N):
        loss = -base
        for j in range(d):
            loss += h[j] * Y[i, j]
        A[i] += loss  # (2)
        _descend(Y[i], steps[i] * factor, h, code, domain, work)  # (1)
        clock[PROJECTIONS] += 1
    settle(Y, A, p, y, sums, log_prior, par, rules)


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
    factor = step_factor(rules[0], clock[ROUNDS], sums[0], par[0])
    for i in range(N):
        A[i] += losses[i]  # (2)
        _descend(Y[i], steps[i] * factor, H[i], code, domain, work)  # (1)
        clock[PROJECTIONS] += 1
    settle(Y, A, p, y, sums, log_prior, par, rules)


@kernel
def play_shared(
    Y: np.ndarray,
    A: np.ndarray,
    p: np.ndarray,
    y: np.ndarray,
    sums: np.ndarray,
    clock: np.ndarray,
    x: np.ndarray,
    outer: np.ndarray,
    loss_code: int,
    features: np.ndarray,
    labels: np.ndarray,
    first: int,
    last: int,
    steps: np.ndarray,
    log_prior: np.ndarray,
    par: np.ndarray,
    rules: np.ndarray,
    home_code: int,
    home: np.ndarray,
    reduced: bool,
    code: int,
    domain: np.ndarray,
    tol: float,
    square_bound: float,
    nonnegative: bool,
    losses: np.ndarray,
    decisions: np.ndarray,
    work: np.ndarray,
) -> int:
    """Play rounds first..last-1 with one gradient each; stop before a round whose gradient or loss must be refused.

    With `reduced` the members live in the surrogate (home_code, home) and each round projects y onto the set
    (code, domain) once; `x` and the clock `outer` are the reduction's. Otherwise x = y and both sets are the same.
    Writes losses and, where it has rows, decisions. Returns the first round that was not played.
    """
    d = y.shape[0]
    g = work[0]
    h = work[1]
    scratch = work[2]
    keep = decisions.shape[0] > 0
    for t in range(first, last):
        if not reduced:
            for j in range(d):
                x[j] = y[j]
        elif outer[FRESH] == 0:
            project(code, domain, y, x, scratch)
            outer[PROJECTIONS] += 1
            outer[FRESH] = 1
        margin = dot(features[t], x)
        loss = value(loss_code, margin, labels[t])
        weight = slope(loss_code, margin, labels[t])
        square = 0.0
        for j in range(d):
            g[j] = weight * features[t, j]
            square += g[j] * g[j]
        if not (square <= square_bound) or not np.isfinite(loss) or (nonnegative and loss < 0.0):
            return t
        losses[t] = loss
        if keep:
            for j in range(d):
                decisions[t, j] = x[j]
        if reduced:
            surrogate_gradient(g, y, x, tol, h)
            outer[ROUNDS] += 1
            outer[GRADIENTS] += 1
            outer[FRESH] = 0
            round_shared(Y, A, p, y, sums, clock, h, steps, log_prior, par, rules, home_code, home, scratch)
        else:
            round_shared(Y, A, p, y, sums, clock, g, steps, log_prior, par, rules, home_code, home, scratch)
    return last


@kernel
def play_own(
    Y: np.ndarray,
    A: np.ndarray,
    p: np.ndarray,
    y: np.ndarray,
    sums: np.ndarray,
    clock: np.ndarray,
    loss_code: int,
    features: np.ndarray,
    labels: np.ndarray,
    first: int,
    last: int,
    by_value: bool,
    steps: np.ndarray,
    log_prior: np.ndarray,
    par: np.ndarray,
    rules: np.ndarray,
    code: int,
    domain: np.ndarray,
    square_bound: float,
    nonnegative: bool,
    losses: np.ndarray,
    decisions: np.ndarray,
    H: np.ndarray,
    member_losses: np.ndarray,
    work: np.ndarray,
) -> int:
    """Play rounds first..last-1, each member with its own gradient; stop before a round that must be refused.

    The members are judged by their values f(y_i) with `by_value`, else by <grad f(y), y_i - y>.
    Writes losses and, where it has rows, decisions. Returns the first round that was not played.
    """
    N, d = Y.shape
    keep = decisions.shape[0] > 0
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
        if keep:
            for j in range(d):
                decisions[t, j] = y[j]
        if by_value:
            clock[GRADIENTS] += N
            clock[VALUES] += N
            square = 0.0
        else:
            clock[GRADIENTS] += N + 1
        round_own(
            Y, A, p, y, sums, clock, H, member_losses, square, steps, log_prior, par, rules, code, domain, work[0]
        )
    return last
