"""Sword++: dynamic regret that is small where gradients vary slowly (Zhao, Zhang, Zhang, Zhou, JMLR 2024).

    xhat_{t+1,i} = Pi_X(xhat_{t,i} - eta_i g_t)                                                        (1)
    x_{t+1,i}    = Pi_X(xhat_{t+1,i} - eta_i g_t)                                                      (2)
    l_{t,i}      = <g_t, x_{t,i}> + lambda ||x_{t,i} - x_{t-1,i}||^2                                   (3)
    m_{t+1,i}    = <g_t, x_{t+1,i}> + lambda ||x_{t+1,i} - x_{t,i}||^2                                 (4)
    p_{t+1,i}    ~ exp(-epsilon_t (sum_{s<=t} l_{s,i} + m_{t+1,i})),   x_{t+1} = sum_i p_{t+1,i} x_{t+1,i}     (5)
    epsilon_t    = min(1/(8 D^2 L), sqrt(ln N / (D^2 sum_{s<=t} ||g_s - g_{s-1}||^2))),   g_0 = 0      (6)

with lambda = 2L, eta_i = min(1/(8L), 2^{i-1} sqrt(D^2/(8 G^2 T))), N = ceil(log2(G^2 T/(8 D^2 L^2))/2) + 1, and g_t the
gradient at x_t. For L-smooth f_t dynamic regret O(sqrt((1 + P_T + V_T)(1 + P_T))), V_T = sum_t sup_X ||grad f_t - grad
f_{t-1}||^2; where they are >= 0 also with F_T for V_T. 2N projections a round, 1 gradient, 0 values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thalweg._kernels.clock import PROJECTIONS, ROUNDS
from thalweg.learners import loop
from thalweg._machines.sword_pp import SwordPPSettings, SwordPPState
from thalweg._sound import SLACK, feasible, shares, within
from thalweg._types import Array
from thalweg._validate import check_count, check_positive
from thalweg.algorithms.pools import geometric
from thalweg.cards import Card
from thalweg.domains import Domain
from thalweg.learners.base import bounded, read_start
from thalweg.machine import Machine

__all__ = ["SwordPP"]


class SwordPP(Machine):
    """Sword++, with optimistic members on X and an optimistic Hedge with correction above them.

    Parameters
    ----------
    domain : Domain
        X, of diameter D.
    horizon, gradient_bound, on_violation
        T, G, and what to do with a gradient above G, as for every `Learner`.
    smoothness : float
        L; the losses must be L-smooth.
    start : array, optional
        A point of the domain to begin at; the one nearest to its centre when left out.

    Notes
    -----
    Rates multiply the cumulative loss, as in the paper. `EfficientOptimistic` has such a bound with one projection.

    Examples
    --------
    >>> import thalweg as tw
    >>> learner = tw.SwordPP(tw.domains.Ball(2), horizon=1000, gradient_bound=4.0, smoothness=1.0)
    >>> learner.step(tw.losses.Squared([1.0, 0.0], 2.0))
    2.0
    >>> learner.queries
    Queries(projections=13, gradients=1, values=0)

    References
    ----------
    P. Zhao, Y.-J. Zhang, L. Zhang, Z.-H. Zhou, Adaptivity and non-stationarity, JMLR 25, 2024: Algorithms 3 and 4.
    """

    card = Card(
        about="optimistic members: small where gradients vary slowly",
        regret="dynamic",
        bound="sqrt((1 + P_T + V_T)(1 + P_T))",
        queries=("2 * N", "1", "0"),
        source="Zhao et al. 2024",
        smooth=True,
    )

    gradient_bound: float

    def __init__(
        self,
        domain: Domain,
        horizon: int,
        gradient_bound: float,
        smoothness: float,
        *,
        start: ArrayLike | None = None,
        on_violation: str = "raise",
    ) -> None:
        T = check_count("SwordPP", "horizon", horizon)
        G = check_positive("SwordPP", "gradient_bound", gradient_bound)
        L = check_positive("SwordPP", "smoothness", smoothness)
        D, d = bounded("SwordPP", domain).diameter, domain.dim
        super().__init__(domain, horizon=T, gradient_bound=G, on_violation=on_violation)
        self.smoothness = L
        N = max(1, math.ceil(math.log2(G * math.sqrt(T / 8) / (D * L))) + 1)
        self.step_sizes = np.minimum(geometric(D / (G * math.sqrt(8 * T)), N), 1 / (8 * L))
        home = domain.project(domain.center if start is None else read_start("SwordPP", domain, start))
        self._origin = np.ascontiguousarray(home.ravel())
        self._adopt(
            SwordPPState(
                np.zeros((N, d)),
                np.zeros((N, d)),
                np.zeros(N),
                np.zeros(N),
                np.zeros(N),
                np.zeros(d),
                np.zeros(1),
                np.zeros(d),
                self._clock,
            ),
            SwordPPSettings(
                self.step_sizes,
                domain.onto,
                domain.par,
                2 * L,
                1 / (8 * D**2 * L),
                math.sqrt(math.log(N)) / D,
                np.zeros((N, d)),
                np.zeros(d),
            ),
        )
        self._restart()

    def _restart(self) -> None:
        for key, array in self._arrays.items():
            if key != "clock":
                array[...] = 0
        s = self._parts[0]
        s.weights[:] = 1 / s.weights.size
        s.hats[:] = s.points[:] = s.x[:] = self._origin
        self._clock[PROJECTIONS] = 1  # of the starting point

    def _peek(self) -> Array:
        x: Array = self._parts[0].x
        return x

    def _python_round(self, loss: float, clipped: int) -> None:
        with self._all_or_nothing():
            self._play_one(loss, clipped, False)
            s, c = self._parts
            for i, step in enumerate(c.steps):
                s.hats[i] = self.domain._project_flat(s.hats[i].copy())  # (1)
                c.fresh[i] = self.domain._project_flat(s.hats[i] - step * s.last)  # (2)
            loop.finish(self._handle, loss)

    def _look(self, read: dict[str, NDArray[Any]]) -> Iterator[tuple[str, bool]]:
        yield from super()._look(read)
        X, G, rounds = self.domain, self.gradient_bound, int(read["clock"][ROUNDS])
        yield "points", feasible(X, np.vstack([read["hats"], read["points"], read["x"][None]]))
        yield "ways moved", within(read["moved"], 0.0, (X.diameter + X._scale(X.center) * 1e-9) ** 2)
        most = rounds * (G * X.diameter + 2 * self.smoothness * X.diameter**2) * SLACK
        yield "scores", bool((np.abs(read["scores"]) <= most).all())
        yield "weights", shares(read["weights"][None], np.ones((1, self.step_sizes.size), dtype=bool))
        yield "last gradient", bool(np.linalg.norm(read["last"]) <= G * SLACK)
        yield "variation", within(read["variation"], 0.0, 4 * rounds * G**2)

    # ------------------------------------------------------------------ what it tells

    @property
    def weights(self) -> Array:
        """p_t, how much each member counts in the present decision."""
        weights: Array = self._parts[0].weights.copy()
        return weights

    @property
    def points(self) -> Array:
        """x_{t,i}, the members' decisions, (N, *shape)."""
        points: Array = self._parts[0].points.reshape(-1, *self.domain.shape).copy()
        return points
