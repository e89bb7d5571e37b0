r"""The best fixed decision of many windows of rounds.

For squared losses a window's loss is a quadratic,

.. math:: \sum_{t=r}^{s-1} f_t(w) = \tfrac12 w^\top S w - b^\top w + c,

whose coefficients are sums over the window. They are added up from a tree of sums over blocks of rounds: O(d^2 log T)
whatever the length, plus one constrained minimisation, all compiled. No sum is the difference of two longer ones, so
rounds outside the window, however large their losses, leave no trace of rounding in it. Other losses are minimised
window by window (`thalweg.regret._minimize`).
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats, Ints
from thalweg._kernels.projections import PYTHON
from thalweg.domains._base import Domain
from thalweg.problems._base import Problem
from thalweg.problems.linear_model import LinearModel
from thalweg.regret import _hindsight as hindsight
from thalweg.regret._minimize import minimize
from thalweg.regret._rounds import total

__all__ = ["Windows"]


STRETCH = 512  # windows between two looks at the progress bar and Ctrl-C
COMPILED_STEPS, STEPS = 20_000, 4_000


class Windows:
    """Best fixed decisions on windows of one problem; problem, domain and tol are those of `best_fixed`."""

    def __init__(self, problem: Problem, domain: Domain, tol: float) -> None:
        self.problem, self.domain, self.tol = problem, domain, tol
        self._sums: hindsight.Sums | None = None
        if isinstance(problem, LinearModel) and problem.loss == "squared" and domain.onto is not PYTHON:
            T, d = problem.features.shape
            nodes = np.empty((2 * (T // hindsight.BLOCK), d * (d + 1) // 2 + d + 1))
            hindsight.add_blocks(problem.features, problem.labels, nodes)
            self._sums = hindsight.Sums(problem.features, problem.labels, nodes)

    def fit(self, start: int, stop: int) -> tuple[Floats, float, float]:
        """The best fixed decision of rounds start..stop-1 (flat), its loss, and a bound on its gap."""
        if self._sums is not None:
            points, losses, gaps, _ = self._run(np.array([start]), np.array([stop]))
            return points[0], float(losses[0]), float(gaps[0])
        part = self.problem[start:stop]
        start_point = self.domain.center.ravel()
        if isinstance(part, LinearModel) and part.kinked:
            return self._fit_kinked(part, start_point)
        return minimize(total(part), self.domain, start_point, tol=self.tol, steps=STEPS)

    def _fit_kinked(self, part: LinearModel, x: Floats) -> tuple[Floats, float, float]:
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
            enough = width * len(part) / 8  # smoothing is off by more
            x, value, gap = minimize(total(part, width), self.domain, x, tol=self.tol, steps=STEPS, enough=enough)
            bound = max(bound, value - gap)  # the smoothed losses are below the true ones
            f = true(x)[0]
            if f < f_best:
                best, f_best = x, f
            if f_best - bound <= goal:
                break
        return best, f_best, max(f_best - bound, 0.0)

    def fits(self, starts: Ints, stops: Ints, tick: Callable[[int], object]) -> tuple[Floats, Floats, Floats, Floats]:
        """The best fixed decisions of many windows: a row each, its loss, a bound on its gap, the rounding error.

        The loss is known up to the rounding, either way.
        """
        found: list[tuple[ArrayLike, ...]] = []
        if self._sums is None:
            for r, s in zip(starts.tolist(), stops.tolist(), strict=True):
                w, loss, gap = self.fit(r, s)
                found.append((w[None], [loss], [gap], [0.0]))
                tick(1)
        else:
            for k in range(0, starts.size, STRETCH):
                found.append(self._run(starts[k : k + STRETCH], stops[k : k + STRETCH]))
                tick(min(STRETCH, starts.size - k))
        points, losses, gaps, rounding = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return points, losses, gaps, rounding

    def _run(self, starts: Ints, stops: Ints) -> tuple[Floats, Floats, Floats, Floats]:
        assert self._sums is not None
        X, n = self.domain, starts.size
        found = hindsight.Fits(np.empty((n, X.dim)), np.empty(n), np.empty(n), np.empty(n))
        ground = hindsight.Ground(X.onto, X.par, X.center.ravel(), X.radius)
        scratch = hindsight.window_scratch(self._sums, ground.center.size)
        hindsight.fit_windows(self._sums, starts, stops, ground, self.tol, COMPILED_STEPS, found, scratch)
        return found
