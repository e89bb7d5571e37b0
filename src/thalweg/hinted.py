"""Descents on a ball that lean on a guess of the next gradient, under Hedge.

`thalweg.algorithms.efficient_optimistic` has the equations in one place, `thalweg._machines.hinted` the round.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thalweg._kernels.clock import PROJECTIONS, ROUNDS
from thalweg._kernels.parts import admit, clear, start, weigh
from thalweg._kernels.projections import BALL
from thalweg._machines.hinted import HintedSettings, HintedState, lean
from thalweg._sound import CLOSE, SLACK, Past, feasible, shares, within
from thalweg._stateful import refill
from thalweg._types import Array
from thalweg._validate import told
from thalweg.domains import Domain
from thalweg.errors import InputError
from thalweg.experts import Descent
from thalweg.learners.base import read_start
from thalweg.machine import Machine
from thalweg.metas import Hedge
from thalweg.metas.hedge import rate

__all__ = ["Hinted"]


class Hinted(Machine):
    """What `EfficientOptimistic` runs on the ball around its domain; see there. Its decision may lie outside the ball.

    Parameters
    ----------
    domain : Ball
        Y.
    step_sizes : array of N numbers > 0
        eta_i, ascending.
    gradient_bound : float
        G; hints are no longer either.
    spread : float
        C, at least the most that two members can differ by in a round, halved.
    start : array, optional
        Where members begin; the centre when left out.
    owner : str, optional
        Who speaks in error messages.
    """

    gradient_bound: float

    def __init__(
        self,
        domain: Domain,
        step_sizes: Array,
        gradient_bound: float,
        *,
        spread: float,
        start: ArrayLike | None = None,
        owner: str | None = None,
    ) -> None:
        super().__init__(domain, gradient_bound=gradient_bound)
        self._owner = name = owner or type(self).__name__
        if domain.onto is not BALL:
            raise InputError(f"{name} moves its members on a ball around the domain. Got {told(domain)} as surrogate.")
        self.step_sizes, self.spread, N, d = step_sizes, spread, len(step_sizes), domain.dim
        self._experts = [[Descent(domain, float(step)) for step in step_sizes]]
        members = Descent.assemble(self._experts)
        meta = Hedge.assemble([Hedge(rate=math.sqrt(math.log(2 * N)) / spread, radius=1 / spread)], [2 * N])
        self._origin = domain.center.ravel().copy()
        if start is not None:
            self._origin = read_start(name, domain, start).ravel()
        self._adopt(
            HintedState(
                members[0], meta[0], np.zeros(2 * N), np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(1), self._clock
            ),
            HintedSettings(members[1], meta[1], np.array(step_sizes), np.zeros((1, N)), np.zeros(2 * N)),
        )
        self._restart()

    def _restart(self) -> None:
        s, c = self._parts
        clear(s.meta, c.meta, 0)
        for i in range(s.weights.size):
            admit(s.meta, c.meta, 0, i, i + 1)
        for i in range(c.steps.size):
            start(s.members, c.members, 0, i, self._origin)
        weigh(s.meta, c.meta, 0, s.weights.size, None, s.weights)
        s.hint[:] = s.error[:] = 0.0
        s.mean[:] = s.y[:] = self._origin
        self._clock[PROJECTIONS] = 1  # of the starting point

    def _lean(self, hint: Array) -> None:
        """Take a flat hint in the place of the last gradient, in one call: Ctrl-C comes before or after."""
        s, c = self._parts
        self._shown = None
        lean(s.mean, s.weights, c.steps, hint, s.hint, s.y)

    def _peek(self) -> Array:
        y: Array = self._parts[0].y
        return y

    def _look(self, read: dict[str, NDArray[Any]]) -> Iterator[tuple[str, bool]]:
        yield from super()._look(read)
        s, c = refill(self._parts[0], read), self._parts[1]
        rounds, G = int(read["clock"][ROUNDS]), self.gradient_bound
        M, N = s.weights.size, c.steps.size
        one = np.ones((1, M), dtype=np.int64)
        past = Past(one > 0, one.cumsum(axis=1), rounds * one, rounds, self.spread**2)
        yield from Hedge.look(s.meta, c.meta, past)
        past = Past(past.alive[:, :N], past.number[:, :N], past.lived[:, :N], rounds, self._square_bound)
        yield from Descent.look(self._experts, s.members, c.members, past)
        yield "weights", shares(s.weights[None], one > 0)
        yield "mean", feasible(self.domain, s.mean)
        yield "hint", bool(np.linalg.norm(s.hint) <= G * SLACK)
        yield "hint", rounds > 0 or not s.error[0]
        yield "errors of hints", within(s.error, 0.0, 4 * rounds * G**2)
        y = s.mean - s.weights[:N] @ c.steps * s.hint
        yield "decision", bool((np.abs(s.y - y) <= CLOSE * self.domain._scale(self.domain.center)).all())

    # ------------------------------------------------------------------ what it tells

    @property
    def weights(self) -> Array:
        """p_t: of the N members that lean on the hint, then of the N that do not."""
        weights: Array = self._parts[0].weights.copy()
        return weights

    @property
    def meta_rate(self) -> float:
        """epsilon_t, the rate behind the present weights."""
        hedge = self._parts[1].meta
        return float(rate(hedge.epsilon[0], hedge.radius[0], self._parts[0].meta.sums[0]))

    @property
    def points(self) -> Array:
        """yhat_{t,i}, (N, *shape)."""
        points: Array = self._parts[0].members.points[0].reshape(-1, *self.domain.shape).copy()
        return points

    @property
    def error(self) -> float:
        """sum ||g_s - m_s||^2 over the rounds so far."""
        return float(self._parts[0].error[0])
