"""Experts on the intervals of a cover under a sleeping meta-learner: one round, and whole runs.

Slot k holds one expert: an ensemble of its own (`thalweg._kernels.ensemble`), which with one member is plain gradient
descent. State (overwritten), K slots with up to N members each:

    points (K, N, d), scores (K, N), shares (K, N), bases (K, d), sums (K, 1), ages (K,)     the experts
    S (K, 4), born (K,), p (K,)                                     the meta-learner, the cover, the weights
    y (d,)                                                          the combination sum_k p_k bases_k
    tally = [loss since the last marker, range]                     `range` is the unit of the meta-learner's feedback
    cover = [m]                                                     markers so far
    marks (capacity,)                                               marks[i % capacity]: where marker i + 1 starts

A round, with h the gradient and val the loss (order as the proofs need it):

    r_k = <h, y - y_k> (or f(y) - f(y_k)); feed the meta-learner                                    (1)
    y_k <- expert's own round with h                                                                (2)
    loss since the last marker += val; above the threshold C_m: marker m + 1 starts next round      (3)
    p <- weights of those alive next round; y <- sum_k p_k y_k                                      (4)
"""

from typing import Any

import numpy as np

from thalweg._kernels.clock import GRADIENTS, PROJECTIONS, ROUNDS, VALUES
from thalweg._kernels.covers import level, place_marker, slots_in_use
from thalweg._kernels.ensemble import round_own, round_shared
from thalweg._kernels.jit import inlined, kernel
from thalweg._kernels.reduction import surrogate_gradient
from thalweg._kernels.sleeping import admit, reweigh, weigh
from thalweg._kernels.stage import count_reduced, meet
from thalweg._kernels.vectors import dot
from thalweg.losses._table import slope, value

__all__ = [
    "LARGEST",
    "begin",
    "combine",
    "due",
    "feed",
    "gauge",
    "play_own",
    "play_shared",
    "round_own_slots",
    "round_shared_slots",
]


LARGEST = 1.0 + 1e-9  # |r| may exceed its range by rounding


@kernel
def begin(
    points: np.ndarray,
    scores: np.ndarray,
    shares: np.ndarray,
    bases: np.ndarray,
    sums: np.ndarray,
    ages: np.ndarray,
    S: np.ndarray,
    born: np.ndarray,
    tally: np.ndarray,
    cover: np.ndarray,
    marks: np.ndarray,
    log_prior: np.ndarray,
    start: np.ndarray,
    meta: int,
    kind: int,
    t: int,
) -> None:
    """Place the next marker, which starts at round t: end experts, create the newborn at `start`."""
    N, d = points.shape[1:]
    if marks.shape[0] > 0:
        marks[cover[0] % marks.shape[0]] = t
    cover[0] += 1
    tally[0] = 0.0
    top = place_marker(kind, cover[0], born)
    for k in range(top + 1):
        if born[k] == 0:
            continue
        for i in range(N):
            scores[k, i] = 0.0
            shares[k, i] = np.exp(log_prior[k, i])
            for j in range(d):
                points[k, i, j] = start[j]
        for j in range(d):
            bases[k, j] = start[j]
        sums[k, 0] = 0.0
        ages[k] = 0
        admit(meta, S, k, cover[0], tally[1])


@inlined
def due(tally: np.ndarray, cover: np.ndarray, thresholds: np.ndarray, val: float) -> bool:
    """(3): whether the next round starts a marker. Without thresholds every round does. Overwrites tally."""
    tally[0] += val
    return thresholds.shape[0] == 0 or tally[0] > thresholds[cover[0]]


@inlined
def combine(bases: np.ndarray, S: np.ndarray, born: np.ndarray, p: np.ndarray, y: np.ndarray, meta: int) -> None:
    """(4). Overwrites p and y.

    Around the heaviest expert: where all are in one place, so is y, to the bit. Coin betting asks whether r > 0.
    """
    weigh(meta, S, born, p)
    top = 0
    for k in range(born.shape[0]):
        top = k if p[k] > p[top] else top
    for j in range(y.shape[0]):
        y[j] = bases[top, j]
    for k in range(born.shape[0]):
        if born[k] > 0 and k != top:
            for j in range(y.shape[0]):
                y[j] += p[k] * (bases[k, j] - bases[top, j])


@inlined
def gauge(
    bases: np.ndarray, born: np.ndarray, y: np.ndarray, h: np.ndarray, span: float, observed: bool, r: np.ndarray
) -> bool:
    """r <- <h, y - y_k> / span; returns whether all are within the range they were said to have. Overwrites r."""
    fine = True
    for k in range(born.shape[0]):
        if born[k] > 0:
            gain = 0.0
            for j in range(h.shape[0]):
                gain += h[j] * (y[j] - bases[k, j])
            r[k] = gain / span  # span > 0
            fine = fine and (observed or abs(r[k]) <= LARGEST)
    return fine


@inlined
def feed(meta: int, S: np.ndarray, born: np.ndarray, r: np.ndarray, tally: np.ndarray, observed: bool) -> None:
    """(1): r in natural units; scaled by a fixed range, or measured in the largest |r| seen so far."""
    if observed:
        unit = tally[1]
        grown = unit
        for k in range(born.shape[0]):
            if born[k] > 0:
                grown = max(grown, abs(r[k]))
        reweigh(meta, S, born, r, unit, grown)
        tally[1] = grown
    else:
        reweigh(meta, S, born, r, 1.0, 1.0)


@kernel
def round_shared_slots(
    points: np.ndarray,
    scores: np.ndarray,
    shares: np.ndarray,
    bases: np.ndarray,
    sums: np.ndarray,
    ages: np.ndarray,
    S: np.ndarray,
    born: np.ndarray,
    p: np.ndarray,
    y: np.ndarray,
    tally: np.ndarray,
    cover: np.ndarray,
    marks: np.ndarray,
    clock: np.ndarray,
    h: np.ndarray,
    val: float,
    steps: np.ndarray,
    log_prior: np.ndarray,
    par: np.ndarray,
    rules: np.ndarray,
    sizes: np.ndarray,
    thresholds: np.ndarray,
    start: np.ndarray,
    current: bool,
    meta: int,
    kind: int,
    span: float,
    observed: bool,
    code: int,
    domain: np.ndarray,
    r: np.ndarray,
    work: np.ndarray,
) -> bool:
    """One round with one gradient h for all; r is divided by `span`. Overwrites the state, r and work.

    Returns False, with the state as it was, where some |r| exceeds the range it was said to have.
    """
    if not gauge(bases, born, y, h, span, observed, r):
        return False
    clock[ROUNDS] += 1
    clock[GRADIENTS] += 1
    feed(meta, S, born, r, tally, observed)  # (1)
    for k in range(born.shape[0]):
        if born[k] > 0:
            ages[k] += 1
            clock[PROJECTIONS] += sizes[k]
            round_shared(
                points, scores, shares, bases, sums, k, sizes[k], ages[k], h,
                steps, log_prior, par, rules, code, domain, work,
            )  # (2)  # fmt: skip
    if due(tally, cover, thresholds, val):
        begin(
            points, scores, shares, bases, sums, ages, S, born, tally, cover, marks,
            log_prior, y if current else start, meta, kind, clock[ROUNDS] + 1,
        )  # fmt: skip
    combine(bases, S, born, p, y, meta)
    return True


@kernel
def round_own_slots(
    points: np.ndarray,
    scores: np.ndarray,
    shares: np.ndarray,
    bases: np.ndarray,
    sums: np.ndarray,
    ages: np.ndarray,
    S: np.ndarray,
    born: np.ndarray,
    p: np.ndarray,
    y: np.ndarray,
    tally: np.ndarray,
    cover: np.ndarray,
    marks: np.ndarray,
    clock: np.ndarray,
    H: np.ndarray,
    values: np.ndarray,
    r: np.ndarray,
    val: float,
    steps: np.ndarray,
    log_prior: np.ndarray,
    par: np.ndarray,
    rules: np.ndarray,
    sizes: np.ndarray,
    thresholds: np.ndarray,
    start: np.ndarray,
    current: bool,
    meta: int,
    kind: int,
    span: float,
    observed: bool,
    code: int,
    domain: np.ndarray,
    work: np.ndarray,
) -> None:
    """One round with a gradient H (K, N, d) and a value (K, N) for each member, and r divided by `span` already.

    Overwrites the state.
    """
    clock[ROUNDS] += 1
    feed(meta, S, born, r, tally, observed)  # (1)
    for k in range(born.shape[0]):
        if born[k] > 0:
            ages[k] += 1
            clock[PROJECTIONS] += sizes[k]
            square = dot(H[k, 0], H[k, 0]) if sizes[k] == 1 else 0.0  # a single member may scale its step by its own
            round_own(
                points, scores, shares, bases, sums, k, sizes[k], ages[k], H, values, square,
                steps, log_prior, par, rules, code, domain, work,
            )  # (2)  # fmt: skip
    if due(tally, cover, thresholds, val):
        begin(
            points, scores, shares, bases, sums, ages, S, born, tally, cover, marks,
            log_prior, y if current else start, meta, kind, clock[ROUNDS] + 1,
        )  # fmt: skip
    combine(bases, S, born, p, y, meta)


@inlined
def _room(cover: np.ndarray, born: np.ndarray, thresholds: np.ndarray) -> bool:
    """Whether one more marker fits into the arrays."""
    m = cover[0]
    return (m + 1) >> born.shape[0] == 0 and (thresholds.shape[0] == 0 or m < thresholds.shape[0])


@kernel
def play_shared(
    state: Any, settings: Any, world: Any, face: Any, first: int, last: int, needs_loss: bool, work: np.ndarray
) -> int:
    """Play rounds first..last-1 with one gradient each; stop before a round that must be refused or needs more room.

    `state` and `settings` are what `round_shared_slots` takes before and after the gradient and the loss; `world` and
    `face` are explained in `thalweg._kernels.stage`. Returns the first round that was not played.
    """
    points, scores, shares, bases, sums, ages, S, born, p, y, tally, cover, marks, clock = state
    (
        steps, log_prior, par, rules, sizes, thresholds, start, current, meta, kind, span, observed, home_code, home, r,
    ) = settings  # fmt: skip
    loss_code, loss_par, features, labels, losses, decisions, square_bound, nonnegative = world
    reduced, x, outer, code, domain, tol = face
    g, h, scratch = work[0], work[1], work[2]
    living = born[: slots_in_use(cover[0])]  # those beyond are empty
    for t in range(first, last):
        if not _room(cover, born, thresholds) or not meet(
            t, y, loss_code, loss_par, features, labels, losses, decisions, square_bound, nonnegative,
            reduced, x, outer, code, domain, g, scratch,
        ):  # fmt: skip
            return t
        surrogate_gradient(g, y, x, tol, h)  # g itself where x = y
        if not gauge(bases, living, y, h, span, observed, r):
            return t
        # `round_shared_slots`, written out: a call with so many arrays counts references to each, in every round
        clock[ROUNDS] += 1
        clock[GRADIENTS] += 1
        feed(meta, S, living, r, tally, observed)  # (1)
        for k in range(living.shape[0]):
            if living[k] > 0:
                ages[k] += 1
                clock[PROJECTIONS] += sizes[k]
                round_shared(
                    points, scores, shares, bases, sums, k, sizes[k], ages[k], h,
                    steps, log_prior, par, rules, home_code, home, scratch,
                )  # (2)  # fmt: skip
        if due(tally, cover, thresholds, losses[t]):
            begin(
                points, scores, shares, bases, sums, ages, S, born, tally, cover, marks,
                log_prior, y if current else start, meta, kind, clock[ROUNDS] + 1,
            )  # fmt: skip
            living = born[: slots_in_use(cover[0])]
        combine(bases, S, living, p, y, meta)
        clock[VALUES] += 1 if needs_loss else 0
        if reduced:
            count_reduced(outer, needs_loss)
    return last


@kernel
def play_own(
    state: Any, settings: Any, world: Any, first: int, last: int, H: np.ndarray, values: np.ndarray, work: np.ndarray
) -> int:
    """Play rounds first..last-1, every member with its own gradient and value, experts judged by their values.

    Markers go by the loss of the newest expert. Stops before a round that must be refused or needs more room. Returns
    the first round that was not played.
    """
    points, scores, shares, bases, sums, ages, S, born, p, y, tally, cover, marks, clock = state
    (
        steps, log_prior, par, rules, sizes, thresholds, start, current, meta, kind, span, observed, code, domain, r,
    ) = settings  # fmt: skip
    loss_code, loss_par, features, labels, losses, decisions, square_bound, nonnegative = world
    d = y.shape[0]
    for t in range(first, last):
        if not _room(cover, born, thresholds):
            return t
        a = features[t]
        b = labels[t]
        feature_square = dot(a, a)
        loss = value(loss_code, dot(a, y), b, loss_par)
        fine = np.isfinite(loss) and not (nonnegative and loss < 0.0)
        gradients = 0
        combinations = 0
        newest = 0.0
        for k in range(born.shape[0]):
            if born[k] == 0:
                continue
            expert = value(loss_code, dot(a, bases[k]), b, loss_par)
            r[k] = (loss - expert) / span
            fine = fine and abs(r[k]) <= LARGEST and not (nonnegative and expert < 0.0)
            if k == level(cover[0]):
                newest = expert
            for i in range(sizes[k]):
                margin = dot(a, points[k, i])
                own = slope(loss_code, margin, b, loss_par)
                fine = fine and own * own * feature_square <= square_bound
                values[k, i] = value(loss_code, margin, b, loss_par)
                fine = fine and np.isfinite(values[k, i]) and not (nonnegative and values[k, i] < 0.0)
                for j in range(d):
                    H[k, i, j] = own * a[j]
            gradients += sizes[k]
            combinations += 1 if sizes[k] > 1 else 0  # a single member's value is its expert's
        if not fine:
            return t
        losses[t] = loss
        if decisions.shape[0] > 0:
            for j in range(d):
                decisions[t, j] = y[j]
        clock[GRADIENTS] += gradients
        clock[VALUES] += gradients + combinations + 1
        round_own_slots(
            points, scores, shares, bases, sums, ages, S, born, p, y, tally, cover, marks, clock, H, values, r, newest,
            steps, log_prior, par, rules, sizes, thresholds, start, current, meta, kind, span, observed,
            code, domain, work,
        )  # fmt: skip
    return last
