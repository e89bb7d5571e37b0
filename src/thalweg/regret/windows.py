r"""The best fixed decision of many windows of rounds.

For squared losses a window's loss is a quadratic whose coefficients are differences of prefix sums,

.. math:: \sum_{t=r}^{s-1} f_t(w) = \tfrac12 w^\top (S_s - S_r) w - (b_s - b_r)^\top w + (c_s - c_r),

so a window costs O(d^2) whatever its length, plus one constrained minimisation, all compiled. Other losses are
minimised window by window (`thalweg.regret._minimize`).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thalweg._kernels.projections import PYTHON
from thalweg._types import Array
from thalweg.domains import Domain
from thalweg.problems import LinearModel, Problem
from thalweg.regret import _hindsight as hindsight
from thalweg.regret._minimize import minimize
from thalweg.regret._rounds import total

__all__ = ["Windows"]

Counts = NDArray[np.int64]

BLOCK = 512  # windows between two looks at the progress bar and Ctrl-C
COMPILED_STEPS, STEPS = 20_000, 4_000


class Windows:
    """Best fixed decisions on windows of one problem; problem, domain and tol are those of `best_fixed`."""

    def __init__(self, problem: Problem, domain: Domain, tol: float) -> None:
        self.problem, self.domain, self.tol = problem, domain, tol
        self._sums: tuple[Array, Array, Array] | None = None
        if isinstance(problem, LinearModel) and problem.loss == "squared" and domain.onto is not PYTHON:
            T, d = problem.features.shape
            self._sums = np.empty((T + 1, d, d)), np.empty((T + 1, d)), np.empty(T + 1)
            hindsight.prefix_sums(problem.features, problem.labels, *self._sums)

    def fit(self, start: int, stop: int) -> tuple[Array, float, float]:
        """The best fixed decision of rounds start..stop-1 (flat), its loss, and how much less is possible at most."""
        if self._sums is not None:
            points = np.empty((1, self.domain.dim))
            losses, gaps = self._run(np.array([start]), np.array([stop]), points, keep=True)
            return points[0], float(losses[0]), float(gaps[0])
        part = self.problem[start:stop]
        start_point = self.domain.center.ravel()
        if isinstance(part, LinearModel) and part.kinked:
            return self._fit_kinked(part, start_point)
        return minimize(total(part), self.domain, start_point, tol=self.tol, steps=STEPS)

    def _fit_kinked(self, part: LinearModel, x: Array) -> tuple[Array, float, float]:
        """Losses with kinks: smoothed ever less, each solution the start of the next; all lower bounds hold."""
        true = total(part)
        best, f_best = x, np.inf
        bound = -np.inf
        size = float(np.linalg.norm(part.features, axis=1).max()) * self.domain.radius
        if size == 0:
            return x, true(x)[0], 0.0
        goal = self.tol * len(part) * size
        width = size
        while width * len(part) / 2 > goal / 4:
            width /= 8
            x, value, gap = minimize(total(part, width), self.domain, x, tol=self.tol, steps=STEPS)
            bound = max(bound, value - gap)  # the smoothed losses are below the true ones
            f = true(x)[0]
            if f < f_best:
                best, f_best = x, f
            if f_best - bound <= goal:
                break
        return best, f_best, max(f_best - bound, 0.0)

    def losses(self, starts: Counts, stops: Counts, tick: Callable[[int], Any]) -> tuple[Array, Array]:
        """The loss of the best fixed decision on each window, and how much less is possible at most."""
        if self._sums is None:
            fitted = []
            for r, s in zip(starts.tolist(), stops.tolist(), strict=True):
                fitted.append(self.fit(r, s)[1:])
                tick(1)
            pairs = np.array(fitted).reshape(-1, 2)
            return pairs[:, 0], pairs[:, 1]
        found = [
            (self._run(starts[k : k + BLOCK], stops[k : k + BLOCK]), tick(min(BLOCK, starts.size - k)))[0]
            for k in range(0, starts.size, BLOCK)
        ]
        return np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found])

    def _run(
        self, starts: Counts, stops: Counts, points: Array | None = None, keep: bool = False
    ) -> tuple[Array, Array]:
        assert self._sums is not None
        X = self.domain
        losses, gaps = np.empty(starts.size), np.empty(starts.size)
        ground = hindsight.Ground(X.onto, X.par, X.center.ravel(), X.radius)
        kept = np.empty((1, X.dim)) if points is None else points
        sums = hindsight.Sums(*self._sums)
        hindsight.fit_windows(sums, starts, stops, ground, self.tol, COMPILED_STEPS, kept, losses, gaps, keep)
        return losses, gaps
