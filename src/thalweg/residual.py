"""Learners that add up: each level corrects the sum of those before it, on intervals half as long.

With o a point of W, R the radius of a ball around o that holds W, points and gradients in the units (x - o)/R and g/G:

    x^(N) = the first level's point in W; it never starts anew                                       (1)
    x^(i) = (1 - z) x^(i+1) + y,   (y, z) = Pi_V((y', z')),  i = N - 1..1                            (2)
    V     = {(y, z) : (1 - z) x^(i+1) + y in W, 0 <= z <= 1}                                         (3)
    x_t   = o + R x^(1)                                                                              (4)

(y', z') is the bet of a parameter-free learner for losses of length <= 1: the wealth of a coin bettor times a direction
(`thalweg._machines.levels`). Level i starts anew every 2^i rounds with the wealth psi_i = epsilon/ceil(T/2^i), and
learns from (g, -<g, x^(i+1)>)/sqrt(2), corrected as in (3) of `thalweg.learners.one_projection` where (y', z') lies outside V.

(0, 0) lies in V, so a level can lose no more than its wealth to the levels before it: on each of its intervals
sum <g, x^(i) - x^(i+1)> <= sqrt(2) psi_i. And (u, 1) lies in V for every u in W, so it can follow any point instead.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thalweg._kernels.clock import PROJECTIONS, ROUNDS
from thalweg._kernels.projections import PYTHON
from thalweg._machines.levels import (
    SEARCH,
    TOLERANCE,
    LevelsSettings,
    LevelsState,
    begin_search,
    locate,
    place_one,
    weigh_level,
)
from thalweg._sound import CLOSE, feasible, within
from thalweg._stateful import refill
from thalweg._types import Array
from thalweg._validate import check_count, check_positive
from thalweg.domains import Ball, Domain
from thalweg.machine import Machine

__all__ = ["ResidualLevels"]


class ResidualLevels(Machine):
    """Parameter-free learners in a row, each on shorter intervals, each adding to the point of those before it.

    `CutkoskyAdaptive` is this class on one set, `EfficientCutkosky` is that inside `OneProjection`, and
    `CutkoskyPrintedVariant` has a ball for all levels but the last.

    Parameters
    ----------
    domain, horizon, gradient_bound, epsilon, on_violation
        As for `CutkoskyAdaptive`.
    ball : Ball, optional
        W of all levels but the last, whose W is X. Left out, X is W for all.

    Notes
    -----
    The published method takes gradients of length <= 1 and adds a length, y, to a pure number, z. In the units above
    both are numbers, ||(g, -<g, x>)|| <= sqrt(2), and a run in other units of length or loss is the same run.
    Published, epsilon is 1, and the first level starts with 1 too.
    """

    _parts: tuple[LevelsState, LevelsSettings]

    def __init__(
        self,
        domain: Domain,
        horizon: int,
        gradient_bound: float,
        *,
        epsilon: float = 1.0,
        ball: Ball | None = None,
        on_violation: str = "raise",
    ) -> None:
        name = type(self).__name__
        T = check_count(name, "horizon", horizon)
        G = check_positive(name, "gradient_bound", gradient_bound)
        self.epsilon = check_positive(name, "epsilon", epsilon)
        super().__init__(domain, horizon=T, gradient_bound=G, on_violation=on_violation)
        home = domain if ball is None else ball
        N = (T - 1).bit_length()  # the smallest N with T <= 2^N
        K, d = max(1, N), domain.dim
        exact = (K if isinstance(home, Ball) else 0) - (ball is not None)
        center = home.center.ravel().copy()
        o = center if isinstance(home, Ball) else home._project_flat(center)
        # as it is projected onto: `radius` is never tiny against the centre
        R = float(home.par[0]) if isinstance(home, Ball) else min(home.radius, home.diameter)
        levels = [N - k for k in range(K)]
        tols = np.full(K, TOLERANCE)
        tols[exact:] = domain.tolerance * domain._scale(domain.center) / R
        state = LevelsState(
            np.zeros((K, 4)), np.zeros((K, d + 1)), np.zeros((K + 1, d)), np.zeros((K, d + 1)), np.zeros(d), self._clock
        )
        settings = LevelsSettings(
            self.epsilon / np.array([1] + [math.ceil(T / 2**i) for i in levels[1:]]),
            np.array([1 / G] + [1 / (math.sqrt(2) * G)] * (K - 1)),
            np.array([0] + [2**i for i in levels[1:]]),
            tols,
            o,
            R,
            exact,
            domain.onto,
            domain.onto is not PYTHON,
            domain.par,
            np.empty(d + 1),
            np.empty(d),
            np.empty(d),
            np.empty(SEARCH),
        )
        self._adopt(state, settings)
        state.bets[:, 0], state.bets[:, 2] = settings.wealth, 1.0
        state.y[:] = o  # nobody bets yet
        self._clock[PROJECTIONS] += not isinstance(home, Ball)  # of the centre, above
        if exact < K:
            self._place_all()
        self._first = {key: array.copy() for key, array in self._arrays.items()}

    def _restart(self) -> None:
        self._write(self._first)

    def _look(self, read: dict[str, NDArray[Any]]) -> Iterator[tuple[str, bool]]:
        """With n rounds since a level began: W_n <= psi + sqrt(5) n, for a bet loses at least what its projection does.

        Losses have length <= 1, |s v| <= 1/2, and the points of V are no longer than sqrt(5).
        """
        yield from super()._look(read)
        s, c, t = refill(self._parts[0], read), self._parts[1], int(read["clock"][ROUNDS])
        n = np.where(c.lengths > 0, t % np.maximum(c.lengths, 1), t)
        wealth, v, A, squares = s.bets.T
        yield "wealth", bool((wealth > 0).all()) and within(wealth, 0.0, c.wealth + math.sqrt(5) * n)
        yield "fractions", within(np.abs(v), 0.0, 0.5)
        yield "sums of squares", within(A, 1.0, 1 + 4 * n) and within(squares, 0.0, n)
        yield "directions", within(np.linalg.norm(s.directions, axis=1), 0.0, 1.0)
        sizes = np.linalg.norm(s.chain, axis=1)
        yield "points", sizes[0] == 0 and within(sizes, 0.0, 1.0)
        yield "gaps", within(np.linalg.norm(s.gaps, axis=1), 0.0, np.abs(wealth * v) + math.sqrt(5))
        off = np.abs(c.o + c.R * s.chain[-1] - s.y).max()
        yield "decision", feasible(self.domain, s.y) and off <= CLOSE * self.domain._scale(self.domain.center)

    # ------------------------------------------------------------------ what it tells

    @property
    def levels(self) -> int:
        """N, how many levels there are."""
        return len(self.first_wealth)

    @property
    def first_wealth(self) -> Array:
        """psi, what each level starts an interval with, longest first."""
        return self._parts[1].wealth

    @property
    def wealth(self) -> Array:
        """What each level has left to bet with, in units of G R (sqrt(2) G R from the second on), longest first."""
        return self._parts[0].bets[:, 0].copy()

    @property
    def points(self) -> Array:
        """x^(N)..x^(1), the sums up to each level, (N, *shape). The last one is the decision."""
        state, settings = self._parts
        return (settings.o + settings.R * state.chain[1:]).reshape(-1, *self.domain.shape)

    # ------------------------------------------------------------------ a round

    def _peek(self) -> Array:
        return self._parts[0].y

    def _python_round(self, loss: float, clipped: int) -> None:
        with self._all_or_nothing():
            self._play_one(loss, clipped, False)
            self._place_all()

    def _place_all(self) -> None:
        """(1)-(4) level by level, each by compiled code where that can project."""
        for k in range(self.levels):
            if not place_one(self._handle, k):
                self._place(k)

    def _place(self, k: int) -> None:
        """(2) for level k of a set that only Python can project onto: as `_place_in_set` in compiled code."""
        s, c = self._parts
        u, before, gap, spot, search = s.directions[k], s.chain[k], s.gaps[k], c.spot, c.search
        b = s.bets[k, 0] * s.bets[k, 1]
        q = b * u[-1]
        begin_search(search, abs(b), q)
        over = False
        while not over:
            locate(u, b, before, search[0], c.o, c.R, spot)
            s.y[:] = self.domain._project_flat(spot.copy())
            s.clock[PROJECTIONS] += 1
            over = weigh_level(search, spot, s.y, before, q, c.R, c.tols[k], gap)
        s.chain[k + 1] = (s.y - c.o) / c.R
