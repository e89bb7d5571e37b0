"""Learners that add up: each level corrects the sum of those before it, on intervals half as long.

With o a point of W, R the radius of a ball around o that holds W, points and gradients in the units (x - o)/R and g/G:

    x^(N) = the first level's point in W; it never restarts
    x^(i) = (1 - z) x^(i+1) + y,   (y, z) = Pi_V((y', z')),  i = N - 1..1
    V     = {(y, z) : (1 - z) x^(i+1) + y in W, 0 <= z <= 1}
    x_t   = o + R x^(1)

(y', z') is the bet of a parameter-free learner for losses of length <= 1: the wealth of a coin bettor times a
direction. Level i restarts every 2^i rounds with the wealth psi_i = epsilon/ceil(T/2^i), and learns from
(g, -<g, x^(i+1)>)/sqrt(2), corrected as in (3) of `thalweg.learners.one_projection` where (y', z') lies outside V.

(0, 0) lies in V, so a level can lose no more than its wealth to the levels before it: on each of its intervals
sum <g, x^(i) - x^(i+1)> <= sqrt(2) psi_i. And (u, 1) lies in V for every u in W, so it can follow any point instead.

Row k of the state is a level; its intervals are half as long as those of row k - 1, and row 0 has one that never ends.
In a round, with a = chain[k] the point so far and b = v wealth the size of the bet:

    (p, q) = b u                                                                                     (1)
    (y, z) = the nearest point of {(y, z) : (1 - z) a + y in W, 0 <= z <= 1};   x = (1 - z) a + y    (2)
    l = weight (g, -<g, a>);  l <- l - min(0, <l, n>) n,  n = (p - y, q - z)/||(p - y, q - z)||      (3)
    s = <l, u>;  wealth -= s b;  zeta = s/(1 - s v);  A += zeta^2                                    (4)
    v <- clip(v - 2/(2 - ln 3) zeta/A, -1/2, 1/2)                                                    (5)
    u <- u - sqrt(2) l/sqrt(sum of ||l||^2), shortened to length 1                                   (6)

Row 0 has a = 0, hence z = 0: the same formulas. The rows before `exact` use the unit ball as W, the others the set
(code, par). To find z in (2), with r(z) = s - Pi_W(s), s = p + (1 - z) a, the root is needed of

    f(z) = z - q - <a, r(z)>,    which increases with slopes from 1 to 1 + ||a||^2,  and then y = p - r(z).   (7)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from thalweg._core.memory import Memory
from thalweg._core.rules import CLOSE, counter_field, feasible, within_bounds
from thalweg._core.state import Past, Plan, field, scratch
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_count, check_positive
from thalweg._kernels.clock import GRADIENTS, PROJECTIONS, ROUNDS
from thalweg._kernels.jit import implement, inner, kernel
from thalweg._kernels.pointers import Pointer, call
from thalweg._kernels.projections import PYTHON
from thalweg.domains._base import Domain
from thalweg.domains.ball import Ball
from thalweg.learners.base import Learner, Shown, bounded
from thalweg.learners.contract import core, decision, learn, propose
from thalweg.learners.machine import Machine

TOLERANCE = 1e-12  # in the unit ball, a point no further out than this counts as inside
NEWTON_RATE = 2.0 / (2.0 - math.log(3.0))
SEARCH = 7  # entries of `search`: z, the ends of its bracket, the last z and f, evaluations, the f that counts as zero
SEARCH_STEPS = 100  # of a search at most; 3 to 6 are usual
EPS = 4 * np.finfo(np.float64).eps
SETTLED = 1e-13  # where a look costs a projection, an f this small counts as zero: a smaller one is mostly rounding


class LevelsState(NamedTuple):
    """K levels in d dimensions; E = d + 1, L = K + 1."""

    bets: Floats = field("K 4")  # wealth, fraction v, A, sum of squared losses
    directions: Floats = field("K E")  # u
    chain: Floats = field("L d", called="points")  # the points x of the levels, behind the origin in row 0
    gaps: Floats = field("K E")  # (p, q) - (y, z)
    y: Floats = field("d", called="decision")  # in the units of the domain
    clock: Ints = counter_field()


class LevelsSettings(NamedTuple):
    """Constants and scratch space."""

    wealth: Floats  # (K,) of a level at its start
    weights: Floats  # (K,) factors of the gradients
    lengths: Ints  # (K,) of a level's intervals; 0: never ends
    tols: Floats  # (K,) a shorter gap has no direction
    o: Floats  # (d,)
    R: float
    exact: int  # from this level on W is the set, before it the unit ball
    onto: Pointer
    compiled: bool  # whether there is such a projection
    domain: Floats
    loss: Floats = scratch("E")
    spot: Floats = scratch("d")
    work: Floats = scratch("d")
    search: Floats = scratch(str(SEARCH))


# -------------------------------------------------------------------------------------------------- where the points go


@inner
def coin(bet: Floats, s: float) -> None:
    """(4), (5): the outcome s in [-1, 1] of a bet. Overwrites the first three entries of bet."""
    v = bet[1]
    bet[0] -= s * v * bet[0]  # |s v| <= 1/2: at least half is left
    zeta = s / (1.0 - s * v)  # and the denominator is at least 1/2
    bet[2] += zeta * zeta
    bet[1] = min(0.5, max(-0.5, v - NEWTON_RATE * zeta / bet[2]))  # A >= 1


@inner
def _narrow(low: float, high: float, z: float, f: float, slope: float, most: float) -> tuple[float, float, float]:
    """A smaller bracket from f(z), and where to look next: z itself where the search is over.

    A function whose slopes lie in [1, most] vanishes between z - f and z - f/most; if not in the bracket, the end of
    the bracket next to it is the answer. The next look is at Newton's point, or in the middle if the bracket is still
    more than half as long as before.
    """
    one = min(high, max(low, z - f))
    two = min(high, max(low, z - f / most))
    left, right = min(one, two), max(one, two)
    if right - left > 0.5 * (high - low):
        return left, right, 0.5 * (left + right)
    return left, right, min(right, max(left, z - f / slope))  # slope >= 1


@inner
def newton_root(aa: float, ae: float, ee: float, q: float) -> float:
    """z of (7) for the unit ball, from ||a||^2, <a, e> and ||e||^2 with e = p + a: Newton's steps in a bracket."""
    z = min(1.0, max(0.0, q))
    zero = EPS * (1.0 + abs(q) + np.sqrt(ee))
    low, high = 0.0, 1.0
    for _ in range(SEARCH_STEPS):
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


@inner
def place_in_ball(u: Floats, b: float, a: Floats, x: Floats, gap: Floats) -> None:
    """(2) for the unit ball. Overwrites x and gap."""
    d = a.shape[0]
    q = b * float(u[d])
    aa, ae, ee = 0.0, 0.0, 0.0
    for j in range(d):
        e = b * u[j] + a[j]
        aa += a[j] * a[j]
        ae += a[j] * e
        ee += e * e
    z = newton_root(aa, ae, ee, q)
    square = 0.0
    for j in range(d):
        x[j] = b * u[j] + (1.0 - z) * a[j]
        square += x[j] * x[j]
    keep = 1.0 if square <= 1.0 else 1.0 / np.sqrt(square)
    for j in range(d):
        gap[j] = (1.0 - keep) * x[j]
        x[j] *= keep
    gap[d] = q - z


@inner
def begin_search(search: Floats, p: float, q: float) -> None:
    """Look first where z is nearest to q; p is the size of the numbers in f. Overwrites search."""
    search[0] = min(1.0, max(0.0, q))
    search[1], search[2] = 0.0, 1.0
    search[3], search[4], search[5] = 0.0, 0.0, 0.0
    search[6] = SETTLED * (1.0 + abs(q) + p)


@inner
def locate(u: Floats, b: float, a: Floats, z: float, o: Floats, R: float, spot: Floats) -> None:
    """spot <- o + R (p + (1 - z) a), in the domain's units. Overwrites spot."""
    for j in range(a.shape[0]):
        spot[j] = o[j] + R * (b * u[j] + (1.0 - z) * a[j])


@inner
def weigh_level(
    search: Floats, spot: Floats, point: Floats, a: Floats, q: float, R: float, tol: float, gap: Floats
) -> bool:
    """Compute f(z) of (7) from a point and its projection onto the set; return whether the search is over.

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
    if after == z or abs(f) <= search[6] or count + 1.0 >= SEARCH_STEPS:
        return True
    search[0], search[3], search[4], search[5] = after, z, f, count + 1.0
    return False


# --------------------------------------------------------------------------------------------------------------- rounds


@inner
def _place_level(s: LevelsState, c: LevelsSettings, k: int) -> bool:
    """(1), (2) of level k; one that bets nothing leaves the point where it is. False where Python has to do it."""
    d, b = s.y.shape[0], s.bets[k, 0] * s.bets[k, 1]
    if b == 0.0 and k != c.exact:  # the point lies in this level's set already
        for j in range(d):
            s.chain[k + 1, j] = s.chain[k, j]
            s.gaps[k, j] = 0.0
        s.gaps[k, d] = 0.0
    elif k < c.exact:
        place_in_ball(s.directions[k], b, s.chain[k], s.chain[k + 1], s.gaps[k])
        s.clock[PROJECTIONS] += 1 if c.exact == s.bets.shape[0] else 0  # the ball is the domain itself
    elif not c.compiled:
        return False
    else:
        _place_in_set(s, c, k, b)
    return True


@inner
def _place_in_set(s: LevelsState, c: LevelsSettings, k: int, b: float) -> None:
    """Make (2) for the set, and count its projections."""
    u, a, gap = s.directions[k], s.chain[k], s.gaps[k]
    q = b * u[a.shape[0]]
    begin_search(c.search, abs(b), q)  # ||p|| <= |b|
    while True:
        locate(u, b, a, c.search[0], c.o, c.R, c.spot)
        call(c.onto, c.domain, c.spot, s.y, c.work)
        s.clock[PROJECTIONS] += 1
        if weigh_level(c.search, c.spot, s.y, a, q, c.R, c.tols[k], gap):
            break
    for j in range(a.shape[0]):
        s.chain[k + 1, j] = (s.y[j] - c.o[j]) / c.R


@kernel
def place_one(s: LevelsState, c: LevelsSettings, k: int) -> bool:
    """`_place_level`, from Python."""
    return _place_level(s, c, k)


@implement(decision, LevelsState)
def _decision(s: LevelsState, c: LevelsSettings) -> Floats:
    return s.y


@implement(propose, LevelsState)
def _propose(s: LevelsState, c: LevelsSettings, loss: float) -> None:
    K = s.bets.shape[0]
    for k in range(K):
        if not _place_level(s, c, k):
            return  # Python goes on from here
    if c.exact == K:
        for j in range(s.y.shape[0]):
            s.y[j] = c.o[j] + c.R * s.chain[K, j]


@implement(learn, LevelsState)
def _learn(s: LevelsState, c: LevelsSettings, h: Floats, loss: float) -> bool:
    """(3)-(6) for all levels; those whose interval ends restart with their first wealth."""
    K, d = s.bets.shape[0], h.shape[0]
    s.clock[ROUNDS] += 1
    s.clock[GRADIENTS] += 1
    for k in range(K):
        bet, u, gap_k = s.bets[k], s.directions[k], s.gaps[k]
        if c.lengths[k] > 0 and s.clock[ROUNDS] % c.lengths[k] == 0:
            bet[0], bet[1], bet[2], bet[3] = c.wealth[k], 0.0, 1.0, 0.0
            for j in range(d + 1):
                u[j] = 0.0
            continue
        inner, gap, last = 0.0, gap_k[d] * gap_k[d], 0.0
        for j in range(d):
            c.loss[j] = c.weights[k] * h[j]
            last -= c.loss[j] * s.chain[k, j]
            inner += c.loss[j] * gap_k[j]
            gap += gap_k[j] * gap_k[j]
        c.loss[d] = last
        inner += last * gap_k[d]
        # <l, n> n = inner/gap (p - y, q - z)
        back = inner / gap if inner < 0.0 and gap > c.tols[k] * c.tols[k] else 0.0
        outcome, square = 0.0, 0.0
        for j in range(d + 1):
            c.loss[j] -= back * gap_k[j]  # (3)
            outcome += c.loss[j] * u[j]
            square += c.loss[j] * c.loss[j]
        coin(bet, outcome)  # (4), (5)
        bet[3] += square
        if bet[3] > 0.0:
            step = np.sqrt(2.0 / bet[3])
            square = 0.0
            for j in range(d + 1):
                u[j] -= step * c.loss[j]  # (6)
                square += u[j] * u[j]
            if square > 1.0:
                step = 1.0 / np.sqrt(square)
                for j in range(d + 1):
                    u[j] *= step
    return True


# -------------------------------------------------------------------------------------------------------------- machine


class Levels(Machine[LevelsState, LevelsSettings]):
    """Parameter-free learners in a row, on `domain`; all but the last on `ball` where one is given.

    Parameters
    ----------
    domain, horizon, gradient_bound, epsilon, ball
        As for `ResidualLevels`.
    flattens : bool
        Whether gradients are projected onto the affine hull of the domain first.
    """

    def __init__(
        self,
        domain: Domain,
        horizon: int,
        gradient_bound: float,
        *,
        epsilon: float,
        ball: Ball | None = None,
        flattens: bool = True,
    ) -> None:
        self.domain, self.flattens = domain, flattens
        home = domain if ball is None else ball
        N = (horizon - 1).bit_length()  # the smallest N with T <= 2^N
        K = self.levels = max(1, N)
        exact = (K if isinstance(home, Ball) else 0) - (ball is not None)
        center = home.center.ravel().copy()
        self.placed = int(not isinstance(home, Ball))  # projections for the origin
        # as it is projected onto: `radius` is never tiny against the centre
        R = float(home.par[0]) if isinstance(home, Ball) else min(home.radius, home.diameter)
        below = range(N - 1, N - K, -1)  # the levels after the first, by the logarithm of their length
        tols = np.full(K, TOLERANCE)
        tols[exact:] = domain.tolerance * domain._scale(domain.center) / R
        self.settings = LevelsSettings(
            wealth=epsilon / np.array([1] + [math.ceil(horizon / 2**i) for i in below]),
            weights=np.array([1 / gradient_bound] + [1 / (math.sqrt(2) * gradient_bound)] * (K - 1)),
            lengths=np.array([0] + [2**i for i in below]),
            tols=tols,
            o=home._project_flat(center) if self.placed else center,
            R=R,
            exact=exact,
            onto=domain.onto,
            compiled=domain.onto is not PYTHON,
            domain=domain.par,
        )

    # ------------------------------------------------------------------ the state

    def plan(self, sizes: Mapping[str, int]) -> Plan:
        """See `Machine.plan`."""
        K, d = self.levels, self.domain.dim
        shapes = {"K": K, "L": K + 1, "d": d, "E": d + 1}
        return Plan(LevelsState, self.settings, shapes, holds=self.holds, begin=self._begin)

    def _begin(self, s: LevelsState, c: LevelsSettings) -> None:
        s.bets[:, 0], s.bets[:, 2] = c.wealth, 1.0
        s.y[:] = c.o  # no level bets yet
        s.clock[PROJECTIONS] = self.placed
        if c.exact < self.levels:
            self._place_all(s, c)

    def holds(self, s: LevelsState, c: LevelsSettings, past: Past) -> Iterator[tuple[str, bool]]:
        """With n rounds since a level began: W_n <= psi + sqrt(5) n, as a bet loses at least as much as its projection.

        Losses have length <= 1, |s v| <= 1/2, and the points of V are no longer than sqrt(5).
        """
        yield from super().holds(s, c, past)
        t = past.rounds
        n = np.where(c.lengths > 0, t % np.maximum(c.lengths, 1), t)
        wealth, v, A, squares = s.bets.T
        yield "wealth", bool((wealth > 0).all()) and within_bounds(wealth, 0.0, c.wealth + math.sqrt(5) * n)
        yield "fractions", within_bounds(np.abs(v), 0.0, 0.5)
        yield "sums of squares", within_bounds(A, 1.0, 1 + 4 * n) and within_bounds(squares, 0.0, n)
        yield "directions", within_bounds(np.linalg.norm(s.directions, axis=1), 0.0, 1.0)
        lengths = np.linalg.norm(s.chain, axis=1)
        yield "points", bool(lengths[0] == 0) and within_bounds(lengths, 0.0, 1.0)
        yield "gaps", within_bounds(np.linalg.norm(s.gaps, axis=1), 0.0, np.abs(wealth * v) + math.sqrt(5))
        off = np.abs(c.o + c.R * s.chain[-1] - s.y).max()
        scale = self.domain._scale(self.domain.center)
        yield "decision", bool(off <= CLOSE * scale) and feasible(self.domain, s.y)

    # ------------------------------------------------------------------ rounds

    def finish(self, memory: Memory, loss: float) -> None:
        """See `Machine.finish`."""
        self._place_all(core(memory.state), core(memory.settings))

    def _place_all(self, s: LevelsState, c: LevelsSettings) -> None:
        """(1) and (2) level by level, each in compiled code where that can project."""
        in_python = c._replace(onto=Pointer(self._project, "none()", ()))
        for k in range(self.levels):
            if not place_one(s, c, k):
                _place_in_set(s, in_python, k, s.bets[k, 0] * s.bets[k, 1])

    def _project(self, par: Floats, y: Floats, out: Floats, work: Floats) -> None:
        """Project onto the domain, with the arguments of `thalweg._kernels.projections`."""
        out[:] = self.domain._project_flat(y.copy())


# -------------------------------------------------------------------------------------------------------------- learner


def _first_wealth(learner: Learner, s: LevelsState, c: LevelsSettings) -> Floats:
    """psi, the wealth of each level at the start of an interval, longest first."""
    return c.wealth


def _wealth(learner: Learner, s: LevelsState, c: LevelsSettings) -> Floats:
    """The wealth left of each level, in units of G R (sqrt(2) G R from the second on), longest first."""
    return s.bets[:, 0].copy()


def _points(learner: Learner, s: LevelsState, c: LevelsSettings) -> Floats:
    """x^(N)..x^(1), the sums up to each level, (N, *shape). The last one is the decision."""
    return (c.o + c.R * s.chain[1:]).reshape(-1, *learner.domain.shape)


class ResidualLevels(Learner):
    """Parameter-free learners in a row, each on shorter intervals, each adding to the point of those before it.

    `CutkoskyAdaptive` is this class on one set, `EfficientCutkosky` is that inside `OneProjection`, and
    `CutkoskyPrintedVariant` has a ball for all levels but the last.

    Parameters
    ----------
    domain, horizon, gradient_bound, epsilon, on_violation
        As for `CutkoskyAdaptive`.
    ball : Ball, optional
        W of all levels but the last, whose W is X. Left out, X is W for all.
    flattens : bool
        Whether gradients are projected onto the affine hull of X first.

    Notes
    -----
    The published method takes gradients of length <= 1 and adds a length, y, to a pure number, z. In the units above
    both are numbers, ||(g, -<g, x>)|| <= sqrt(2), and a run in other units of length or loss is the same run.
    Published, epsilon is 1, and the first level starts with 1 too.
    """

    machine: Levels
    first_wealth, wealth, points = Shown(_first_wealth), Shown(_wealth), Shown(_points)

    def __init__(
        self,
        domain: Domain,
        horizon: int,
        gradient_bound: float,
        *,
        epsilon: float = 1.0,
        ball: Ball | None = None,
        flattens: bool = True,
        on_violation: str = "raise",
    ) -> None:
        name = type(self).__name__
        T = check_count(name, "horizon", horizon)
        G = check_positive(name, "gradient_bound", gradient_bound)
        self.epsilon = check_positive(name, "epsilon", epsilon)
        machine = Levels(bounded(name, domain), T, G, epsilon=self.epsilon, ball=ball, flattens=flattens)
        super().__init__(machine, horizon=T, gradient_bound=G, on_violation=on_violation)

    @property
    def levels(self) -> int:
        """N, how many levels there are."""
        return self.machine.levels
