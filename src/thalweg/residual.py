"""Learners that add up: each level corrects the sum of those before it, on intervals half as long.

With o a point of W, R the radius of a ball around o that holds W, points and gradients in the units (x - o)/R and g/G:

    x^(N) = the first level's point in W; it never starts anew                                       (1)
    x^(i) = (1 - z) x^(i+1) + y,   (y, z) = Pi_V((y', z')),  i = N - 1..1                            (2)
    V     = {(y, z) : (1 - z) x^(i+1) + y in W, 0 <= z <= 1}                                         (3)
    x_t   = o + R x^(1)                                                                              (4)

(y', z') is the bet of a parameter-free learner for losses of length <= 1: the wealth of a coin bettor times a direction
(`thalweg._kernels.residual`). Level i starts anew every 2^i rounds with the wealth psi_i = epsilon/ceil(T/2^i), and
learns from (g, -<g, x^(i+1)>)/sqrt(2), corrected as in (3) of `thalweg.one_projection` where (y', z') lies outside V.

(0, 0) lies in V, so a level can lose no more than its wealth to the levels before it: on each of its intervals
sum <g, x^(i) - x^(i+1)> <= sqrt(2) psi_i. And (u, 1) lies in V for every u in W, so it can follow any point instead.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thalweg._kernels import residual
from thalweg._kernels.clock import PROJECTIONS
from thalweg._kernels.projections import PYTHON
from thalweg._validate import check_count, check_positive
from thalweg.domains import Ball, Domain
from thalweg.learner import Learner, Stage

__all__ = ["ResidualLevels"]

Array = NDArray[np.float64]

kernels: Any = residual  # called with the state unpacked, which type checkers cannot follow


class ResidualLevels(Learner):
    """Parameter-free learners in a row, each on shorter intervals, each adding to the point of those before it.

    `CutkoskyAdaptive` is this class on one set, `EfficientCutkosky` is that inside `OneProjection`, and
    `CutkoskyPrintedVariant` has a ball for all levels but the last.

    Parameters
    ----------
    domain : Domain
        X.
    horizon : int
        T; there are N = ceil(log2 T) levels, one at least.
    gradient_bound : float
        G.
    epsilon : float
        What a level may lose in all its intervals together, in units of G R (times sqrt 2 for all levels but the
        first).
    ball : Ball, optional
        W of all levels but the last, whose W is X. Left out, X is W for all.
    on_violation : {"raise", "clip"}
        What to do with a gradient above the bound.

    Notes
    -----
    The published method takes gradients of length <= 1 and adds a length, y, to a pure number, z. In the units above
    both are numbers, ||(g, -<g, x>)|| <= sqrt(2), and a run in other units of length or loss is the same run.
    Published, epsilon is 1, and the first level starts with 1 too.
    """

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
        self._exact = K if isinstance(home, Ball) else 0
        self._exact -= ball is not None
        center = home.center.ravel().copy()
        self._o = center if isinstance(home, Ball) else home._project_flat(center)
        self._R = home.radius if isinstance(home, Ball) else min(home.radius, home.diameter)
        levels = [N - k for k in range(K)]
        self._psi = self.epsilon / np.array([1] + [math.ceil(T / 2**i) for i in levels[1:]])
        self._weights = np.array([1 / G] + [1 / (math.sqrt(2) * G)] * (K - 1))
        self._lengths = np.array([0] + [2**i for i in levels[1:]])
        self._tols = np.full(K, residual.TOLERANCE)
        self._tols[self._exact :] = domain.tolerance * domain._scale(domain.center) / self._R

        self._arrays |= {
            "bets": np.empty((K, 4)),
            "directions": np.empty((K, d + 1)),
            "chain": np.empty((K + 1, d)),
            "gaps": np.empty((K, d + 1)),
            "y": np.empty(d),
        }
        self._loss = np.empty(d + 1)
        self._work = np.empty((4, d))
        self._search = np.empty(residual.SEARCH)
        self._first: dict[str, NDArray[Any]] = {}
        self._restart()
        self._propose_all(self._arrays)
        self._clock[PROJECTIONS] += not isinstance(home, Ball)  # of the centre, above
        self._first = {key: array.copy() for key, array in self._arrays.items()}

    def _restart(self) -> None:
        a = self._arrays
        if self._first:
            for key, array in self._first.items():
                a[key][...] = array
            return
        for array in a.values():
            array[...] = 0
        a["bets"][:, 0] = self._psi
        a["bets"][:, 2] = 1.0

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | {
            "epsilon": self.epsilon,
            "origin": self._o,
            "unit": self._R,
            "exact": self._exact,
        }

    # ------------------------------------------------------------------ what it tells

    @property
    def levels(self) -> int:
        """N, how many levels there are."""
        return len(self._psi)

    @property
    def wealth(self) -> Array:
        """What each level has left to bet with, in units of G R (sqrt(2) G R from the second on), longest first."""
        return self._arrays["bets"][:, 0].copy()

    @property
    def points(self) -> Array:
        """x^(N)..x^(1), the sums up to each level, (N, *shape). The last one is the decision."""
        return (self._o + self._R * self._arrays["chain"][1:]).reshape(-1, *self.domain.shape)

    # ------------------------------------------------------------------ a round

    def _propose(self) -> Array:
        return self._arrays["y"].copy()

    def _peek(self) -> Array:
        return self._arrays["y"]

    def _move(self, gradient: Array, loss: float | None) -> None:
        del loss
        python = self.domain.code == PYTHON
        a = {key: array.copy() for key, array in self._arrays.items()} if python else self._arrays
        kernels.learn(
            a["bets"], a["directions"], a["chain"], a["gaps"], a["clock"], gradient,
            self._psi, self._weights, self._lengths, self._tols, self._loss,
        )  # fmt: skip
        self._propose_all(a)
        if python:  # no projection has failed
            for key, array in a.items():
                self._arrays[key][...] = array

    def _state_arrays(self, a: dict[str, NDArray[Any]]) -> Any:
        """The state in the order in which every kernel takes it."""
        return a["bets"], a["directions"], a["chain"], a["gaps"], a["y"], a["clock"]

    def _propose_all(self, a: dict[str, NDArray[Any]]) -> None:
        """(1)-(4) from the bets, written into the arrays `a`."""
        if self.domain.code != PYTHON:
            kernels.propose(
                *self._state_arrays(a), self._o, self._R, self._exact,
                self.domain.code, self.domain.par, self._tols[-1], self._work, self._search,
            )  # fmt: skip
            return
        for k in range(self.levels):
            b = a["bets"][k, 0] * a["bets"][k, 1]
            if b == 0.0 and k != self._exact:
                a["chain"][k + 1] = a["chain"][k]
                a["gaps"][k] = 0.0
            elif k < self._exact:
                kernels.place_in_ball(a["directions"][k], b, a["chain"][k], a["chain"][k + 1], a["gaps"][k])
            else:
                self._place(a, k, b)

    def _place(self, a: dict[str, NDArray[Any]], k: int, b: float) -> None:
        """(2) for level k of a set that only Python can project onto: as `place_in_set`."""
        u, before, gap, spot, search = a["directions"][k], a["chain"][k], a["gaps"][k], self._work[0], self._search
        q = b * u[-1]
        kernels.begin_search(search, abs(b), q)
        over = False
        while not over:
            kernels.locate(u, b, before, search[0], self._o, self._R, spot)
            a["y"][:] = self.domain._project_flat(spot.copy())
            a["clock"][PROJECTIONS] += 1
            over = kernels.weigh(search, spot, a["y"], before, q, self._R, self._tols[-1], gap)
        a["chain"][k + 1] = (a["y"] - self._o) / self._R

    # ------------------------------------------------------------------ whole runs

    _has_loop = True

    def _loop(self, stage: Stage, first: int, last: int) -> int:
        settings = (
            self._psi, self._weights, self._lengths, self._tols, self._o, self._R, self._exact,
            self.domain.code, self.domain.par,
        )  # fmt: skip
        state = self._state_arrays(self._arrays)
        return int(kernels.play_levels(state, settings, *stage, first, last, self._loss, self._work, self._search))
