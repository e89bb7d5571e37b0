"""Levels of parameter-free learners, each of which corrects the sum of those before it: one round, and whole runs.

Coordinates are (x - o)/R: the set W lies in the unit ball and holds the origin. Row k of the state is a level; its
intervals are half as long as those of row k - 1, and row 0 has one that never ends. State (overwritten):
`bets` (K, 4) = [wealth, fraction v, A, sum of squared losses]; `directions` (K, d + 1) = u;
`chain` (K + 1, d), the points x of the levels, behind the origin in row 0; `gaps` (K, d + 1) = (p, q) - (y, z);
`y` (d,) the decision, in the units of the domain; `clock` the counters.

In a round, with a = chain[k] the point so far and b = v wealth the size of the bet:

    (p, q) = b u                                                                                     (1)
    (y, z) = the nearest point of {(y, z) : (1 - z) a + y in W, 0 <= z <= 1};   x = (1 - z) a + y    (2)
    l = weight (g, -<g, a>);  l <- l - min(0, <l, n>) n,  n = (p - y, q - z)/||(p - y, q - z)||      (3)
    s = <l, u>;  wealth -= s b;  zeta = s/(1 - s v);  A += zeta^2                                    (4)
    v <- clip(v - 2/(2 - ln 3) zeta/A, -1/2, 1/2)                                                    (5)
    u <- u - sqrt(2) l/sqrt(sum of ||l||^2), shortened to length 1                                   (6)

Row 0 has a = 0, hence z = 0: the same formulas. The rows before `exact` use the unit ball as W, the others the set
(code, par). To find z in (2), with r(z) = s - Pi_W(s), s = p + (1 - z) a, what has to vanish is

    f(z) = z - q - <a, r(z)>,    which increases with slopes from 1 to 1 + ||a||^2,  and then y = p - r(z).   (7)
"""

import math
from typing import Any

import numpy as np

from thalweg._kernels.clock import GRADIENTS, PROJECTIONS, ROUNDS
from thalweg._kernels.jit import kernel
from thalweg._kernels.projections import project
from thalweg._kernels.stage import meet, pass_on

__all__ = [
    "SEARCH",
    "TOLERANCE",
    "begin_search",
    "coin",
    "lean",
    "learn",
    "locate",
    "place_in_ball",
    "place_in_set",
    "play_levels",
    "propose",
    "weigh",
]

TOLERANCE = 1e-12  # in the unit ball, a point no further out than this counts as inside
NEWTON_RATE = 2.0 / (2.0 - math.log(3.0))
SEARCH = 7  # entries of `search`: z, the ends of its bracket, the last z and f, evaluations, what f counts as zero
STEPS = 100  # of a search at most; 3 to 6 are usual
EPS = 4 * np.finfo(np.float64).eps
SETTLED = 1e-13  # where a look costs a projection, an f this small counts as zero: a smaller one is mostly rounding


@kernel
def coin(bet: np.ndarray, s: float) -> None:
    """(4), (5): the outcome s in [-1, 1] of a bet. Overwrites the first three entries of bet."""
    v = bet[1]
    bet[0] -= s * v * bet[0]  # |s v| <= 1/2: at least half is left
    zeta = s / (1.0 - s * v)  # and the denominator is at least 1/2
    bet[2] += zeta * zeta
    bet[1] = min(0.5, max(-0.5, v - NEWTON_RATE * zeta / bet[2]))  # A >= 1


@kernel
def _narrow(low: float, high: float, z: float, f: float, slope: float, most: float) -> tuple[float, float, float]:
    """A smaller bracket from f(z), and where to look next: z itself where the search is over.

    A function whose slopes lie in [1, most] vanishes between z - f and z - f/most; if not in the bracket, the end of
    the bracket next to it is the answer. The next look is at Newton's point, or in the middle if the bracket is still
    more than half of what it was.
    """
    one = min(high, max(low, z - f))
    two = min(high, max(low, z - f / most))
    left, right = min(one, two), max(one, two)
    if right - left > 0.5 * (high - low):
        return left, right, 0.5 * (left + right)
    return left, right, min(right, max(left, z - f / slope))  # slope >= 1


@kernel
def lean(aa: float, ae: float, ee: float, q: float) -> float:
    """z of (7) for the unit ball, from ||a||^2, <a, e> and ||e||^2 with e = p + a: Newton's steps in a bracket."""
    z = min(1.0, max(0.0, q))
    zero = EPS * (1.0 + abs(q) + np.sqrt(ee))
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        square = ee - 2.0 * z * ae + z * z * aa  # ||p + (1 - z) a||^2
        f, steepness = z - q, 1.0
        if square > 1.0:
            keep = 1.0 - 1.0 / np.sqrt(square)
            turn = z * aa - ae
            f += keep * turn
            steepness += keep * aa + (1.0 - keep) * turn * turn / square
        elif low == 0.0 and high == 1.0:  # the first look: inside
            return z
        low, high, after = _narrow(low, high, z, f, steepness, 1.0 + aa)
        if after == z or abs(f) <= zero:
            break
        z = after
    return z


@kernel
def place_in_ball(u: np.ndarray, b: float, a: np.ndarray, x: np.ndarray, gap: np.ndarray) -> None:
    """(2) for the unit ball. Overwrites x and gap."""
    d = a.shape[0]
    q = b * float(u[d])
    aa, ae, ee = 0.0, 0.0, 0.0
    for j in range(d):
        e = b * u[j] + a[j]
        aa += a[j] * a[j]
        ae += a[j] * e
        ee += e * e
    z = lean(aa, ae, ee, q)
    square = 0.0
    for j in range(d):
        x[j] = b * u[j] + (1.0 - z) * a[j]
        square += x[j] * x[j]
    keep = 1.0 if square <= 1.0 else 1.0 / np.sqrt(square)
    for j in range(d):
        gap[j] = (1.0 - keep) * x[j]
        x[j] *= keep
    gap[d] = q - z


@kernel
def begin_search(search: np.ndarray, p: float, q: float) -> None:
    """Look first where z is nearest to q; p is the size of the numbers in f. Overwrites search."""
    search[0] = min(1.0, max(0.0, q))
    search[1], search[2] = 0.0, 1.0
    search[3], search[4], search[5] = 0.0, 0.0, 0.0
    search[6] = SETTLED * (1.0 + abs(q) + p)


@kernel
def locate(u: np.ndarray, b: float, a: np.ndarray, z: float, o: np.ndarray, R: float, spot: np.ndarray) -> None:
    """spot <- o + R (p + (1 - z) a), in the domain's units. Overwrites spot."""
    for j in range(a.shape[0]):
        spot[j] = o[j] + R * (b * u[j] + (1.0 - z) * a[j])


@kernel
def weigh(
    search: np.ndarray,
    spot: np.ndarray,
    point: np.ndarray,
    a: np.ndarray,
    q: float,
    R: float,
    tol: float,
    gap: np.ndarray,
) -> bool:
    """f(z) of (7) from a spot and the point of the set nearest to it; says whether the search is over.

    It is over at once for a spot in the set. Overwrites search, and gap with (r(z), q - z).
    """
    d = a.shape[0]
    z, count = search[0], search[5]
    f = z - q
    square, aa = 0.0, 0.0
    for j in range(d):
        gap[j] = (spot[j] - point[j]) / R
        square += gap[j] * gap[j]
        f -= a[j] * gap[j]
        aa += a[j] * a[j]
    gap[d] = q - z
    if count == 0.0 and square <= tol * tol:
        for j in range(d):
            gap[j] = 0.0
        return True
    steepness = 1.0 + 0.5 * aa
    if count > 0.0:  # a secant; z differs from the last one
        steepness = min(1.0 + aa, max(1.0, (f - search[4]) / (z - search[3])))
    search[1], search[2], after = _narrow(search[1], search[2], z, f, steepness, 1.0 + aa)
    if after == z or abs(f) <= search[6] or count + 1.0 >= STEPS:
        return True
    search[0], search[3], search[4], search[5] = after, z, f, count + 1.0
    return False


@kernel
def place_in_set(
    u: np.ndarray,
    b: float,
    a: np.ndarray,
    x: np.ndarray,
    gap: np.ndarray,
    y: np.ndarray,
    o: np.ndarray,
    R: float,
    code: int,
    par: np.ndarray,
    tol: float,
    work: np.ndarray,
    search: np.ndarray,
) -> int:
    """(2) for the set (code, par): returns how many projections onto it that took. Overwrites x, gap, y and scratch."""
    d = a.shape[0]
    q = b * float(u[d])
    begin_search(search, abs(b), q)  # ||p|| <= |b|
    count = 0
    while True:
        locate(u, b, a, search[0], o, R, work[0])
        project(code, par, work[0], y, work[1])
        count += 1
        if weigh(search, work[0], y, a, q, R, tol, gap):
            break
    for j in range(d):
        x[j] = (y[j] - o[j]) / R
    return count


@kernel
def propose(
    bets: np.ndarray,
    directions: np.ndarray,
    chain: np.ndarray,
    gaps: np.ndarray,
    y: np.ndarray,
    clock: np.ndarray,
    o: np.ndarray,
    R: float,
    exact: int,
    code: int,
    par: np.ndarray,
    tol: float,
    work: np.ndarray,
    search: np.ndarray,
) -> None:
    """(1), (2) for all levels. A level that bets nothing leaves the point where it is. Overwrites chain, gaps, y."""
    K, d = bets.shape[0], y.shape[0]
    for k in range(K):
        b = bets[k, 0] * bets[k, 1]
        if b == 0.0 and k != exact:  # the point lies in this level's set already
            for j in range(d):
                chain[k + 1, j] = chain[k, j]
                gaps[k, j] = 0.0
            gaps[k, d] = 0.0
        elif k < exact:
            place_in_ball(directions[k], b, chain[k], chain[k + 1], gaps[k])
            clock[PROJECTIONS] += 1 if exact == K else 0  # the ball is the domain itself
        else:
            clock[PROJECTIONS] += place_in_set(
                directions[k], b, chain[k], chain[k + 1], gaps[k], y, o, R, code, par, tol, work, search
            )
    if exact == K:
        for j in range(d):
            y[j] = o[j] + R * chain[K, j]


@kernel
def learn(
    bets: np.ndarray,
    directions: np.ndarray,
    chain: np.ndarray,
    gaps: np.ndarray,
    clock: np.ndarray,
    g: np.ndarray,
    wealth: np.ndarray,
    weights: np.ndarray,
    lengths: np.ndarray,
    tols: np.ndarray,
    loss: np.ndarray,
) -> None:
    """(3)-(6) for all levels; those whose interval ends start anew with their first wealth. Overwrites the state."""
    K, d = bets.shape[0], g.shape[0]
    clock[ROUNDS] += 1
    clock[GRADIENTS] += 1
    for k in range(K):
        if lengths[k] > 0 and clock[ROUNDS] % lengths[k] == 0:
            bets[k, 0], bets[k, 1], bets[k, 2], bets[k, 3] = wealth[k], 0.0, 1.0, 0.0
            for j in range(d + 1):
                directions[k, j] = 0.0
            continue
        inner, gap, last = 0.0, gaps[k, d] * gaps[k, d], 0.0
        for j in range(d):
            loss[j] = weights[k] * g[j]
            last -= loss[j] * chain[k, j]
            inner += loss[j] * gaps[k, j]
            gap += gaps[k, j] * gaps[k, j]
        loss[d] = last
        inner += last * gaps[k, d]
        back = inner / gap if inner < 0.0 and gap > tols[k] * tols[k] else 0.0  # <l, n> n = inner/gap (p - y, q - z)
        s, square = 0.0, 0.0
        for j in range(d + 1):
            loss[j] -= back * gaps[k, j]  # (3)
            s += loss[j] * directions[k, j]
            square += loss[j] * loss[j]
        coin(bets[k], s)  # (4), (5)
        bets[k, 3] += square
        if bets[k, 3] > 0.0:
            step = np.sqrt(2.0 / bets[k, 3])
            square = 0.0
            for j in range(d + 1):
                directions[k, j] -= step * loss[j]  # (6)
                square += directions[k, j] * directions[k, j]
            if square > 1.0:
                step = 1.0 / np.sqrt(square)
                for j in range(d + 1):
                    directions[k, j] *= step


@kernel
def play_levels(
    state: Any,
    settings: Any,
    world: Any,
    face: Any,
    first: int,
    last: int,
    loss: np.ndarray,
    work: np.ndarray,
    search: np.ndarray,
) -> int:
    """Play rounds first..last-1; stop before a round whose gradient or loss must be refused.

    As `thalweg._kernels.ensemble.play_shared`. Returns the first round that was not played.
    """
    bets, directions, chain, gaps, y, clock = state
    wealth, weights, lengths, tols, o, R, exact, home_code, home = settings
    loss_code, loss_par, features, labels, losses, decisions, square_bound, nonnegative = world
    reduced, x, outer, code, domain, tol = face
    g, h = work[2], work[3]
    for t in range(first, last):
        if not meet(
            t, y, loss_code, loss_par, features, labels, losses, decisions, square_bound, nonnegative,
            reduced, x, outer, code, domain, g, work[0],
        ):  # fmt: skip
            return t
        pass_on(g, y, reduced, x, outer, tol, False, h)
        learn(bets, directions, chain, gaps, clock, h, wealth, weights, lengths, tols, loss)
        propose(bets, directions, chain, gaps, y, clock, o, R, exact, home_code, home, tols[-1], work, search)
    return last
