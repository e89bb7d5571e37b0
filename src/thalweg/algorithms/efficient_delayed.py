"""Dynamic regret with late gradients, one projection a round: Mild-OGD of Wan, Yao, Song, Zhang (ICML 2024), reduced.

Y is a ball of radius R around X, D the diameter of X. In round t play x_t = Pi_X(y_t). The gradient of round s comes
when the point of the members is z_i, not y_{s,i} any more. With h_s the surrogate gradient from what is remembered of
round s, x_s, y_s and all y_{s,i} (`thalweg.learners.one_projection`), each one that comes makes a step, in the order of rounds
where several come at once:

    z_i     <- Pi_Y(z_i - eta_i h_s)                                                       (1)
    A_i     <- A_i + <h_s, y_{s,i} - y_s>                  judged where it stood then      (2)
    y_{t,i} = z_i,   p_{t,i} ~ exp(-epsilon A_i),   y_t = sum_i p_{t,i} y_{t,i}            (3)
    x_t     = Pi_X(y_t)                                    the only projection onto X      (4)

With tau = d for a fixed delay d, 2m for delays of at most m, and T' = (1 + 2 tau) T the steps and the rate are

    eta_i   = 2^{i-1} (R/G) sqrt(5/(2T')),   N = ceil(log2(1 + 2DT/(5R))/2) + 1            (5)
    epsilon = sqrt(ln N / (1 + G^2 R^2 T'))                                                (6)

Theorem. Let ||g_t|| <= G. Against any u_t in X whose path has length P, after n rounds, of which M never got feedback,
and with at most B earlier rounds still waiting when the feedback of a round counted (0 if all comes in order):

    regret <= ln N/epsilon + epsilon R^2 Q/2 + min_i (a/eta_i + eta_i Q/2) + G min(2BP, nD) + M G D                 (7)
    Q = (1 + 2 tau) n G^2 with tau = m if B = 0, else 2m,   a = min(5R^2/2 + RP, ||y_1 - u_1||^2/2 + 2RP)

which is of order G sqrt((1 + tau) T R (R + P)). The proof is in docs/late-early-and-little.md. The same method with a
price on moving is Efficient-Smelt-DOGD of Yang, Yang, Jiang, Wan, Zhang (IJCAI 2025). 1 projection, 1 gradient, 0
values a round.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thalweg._kernels.clock import FRESH, GRADIENTS, PROJECTIONS, ROUNDS
from thalweg._kernels.handle import Handle, bind
from thalweg._kernels.parts import start as begin
from thalweg._sound import Past, feasible
from thalweg._stateful import named_arrays, refill
from thalweg._types import Array
from thalweg._validate import check_count, check_entries, check_positive
from thalweg.algorithms import _late_pool
from thalweg.algorithms.pools import geometric
from thalweg.cards import Card
from thalweg.domains import Domain
from thalweg.learners.ensemble import descents
from thalweg.experts import Pool
from thalweg.late import Late
from thalweg.learners.base import read_start
from thalweg.metas import Hedge
from thalweg.theorems import Theorem, bounds, path_length, step_sizes

__all__ = ["EfficientDelayed", "LateDynamic"]

OVERTAKEN, FORGOTTEN = 0, 1  # B and M of (7)


class LateDynamic(Theorem):
    """`EfficientDelayed`: (7). From the first round to any other."""

    name, whole = "(7)", True

    def __init__(self, learner: Any, paid: Array, squares: Array) -> None:
        super().__init__(learner, paid, squares)
        self.R = learner.surrogate.radius

    def bound(self, start: int, stop: int, u: Array, losses: Array) -> float:
        """See `Theorem.bound`."""
        learner, n, G = self.inner, stop - start, self.G
        steps, P, B = step_sizes(learner.pool), path_length(u), learner.overtaken
        Q = (1 + (2 if B == 0 else 4) * learner.max_delay) * n * G**2
        a = bounds.descent(steps, self.R, P, float(np.linalg.norm(learner._origin - u[0])))
        apart = G * min(2 * B * P, n * self.D) + G * self.D * min(learner.forgotten, n)
        weights = bounds.hedge(steps.size, learner.pool.meta.rate, self.R, Q)
        return float(weights + np.min(a + steps * Q / 2) + apart)


class EfficientDelayed(Late):
    """Follow any moving comparator with gradients that come late, one projection and one gradient a round.

    Parameters
    ----------
    domain : Domain
        X.
    horizon : int
        T.
    gradient_bound : float
        G.
    delay : int, optional
        Feedback always comes so many rounds later, and in order.
    max_delay : int, optional
        It comes at most so many rounds later, in any order, or never. One of the two is given.
    start : array, optional
        A point of the domain to begin at; that nearest to the centre of Y when left out.
    on_violation : {"raise", "clip"}
        What to do with a gradient above the bound.

    Notes
    -----
    The calls are those of `Delayed`. All rounds feed one learner, where `Delayed` has copies: what one round teaches is
    of use in the next. With `delay=0` it is `EfficientDynamic` without smoothness. The points of all members are
    remembered for every round that waits: (max_delay + 1) N d numbers.

    Examples
    --------
    >>> import thalweg as tw
    >>> learner = tw.EfficientDelayed(tw.domains.Ball(2), horizon=100, gradient_bound=2.0, delay=1)
    >>> learner.advance()                              # the first round ends without feedback
    >>> x = learner.decision_at(0)
    >>> learner.update(x - [1.0, 0.0])                 # that of round 0
    >>> learner.advance()
    >>> learner.decision[0] > 0
    np.True_

    References
    ----------
    Y. Wan, C. Yao, M. Song, L. Zhang, Non-stationary online convex optimization with arbitrary delays, ICML 2024.
    S. Yang, W. Yang, W. Jiang, Y. Wan, L. Zhang, Smoothed online convex optimization with delayed feedback, IJCAI 2025.
    """

    card = Card(
        about="gradients that come late, one projection",
        regret="dynamic",
        bound="sqrt((1 + d) T (1 + P_T)), gradients d rounds late",
        queries=("1", "1", "0"),
        source="Wan et al. 2024 in the reduction",
        options={"delay": 2},
        theorem=LateDynamic,
    )
    reduced = True

    def __init__(
        self,
        domain: Domain,
        horizon: int,
        gradient_bound: float,
        *,
        delay: int | None = None,
        max_delay: int | None = None,
        start: ArrayLike | None = None,
        on_violation: str = "raise",
    ) -> None:
        name = "EfficientDelayed"
        T = check_count(name, "horizon", horizon)
        G = check_positive(name, "gradient_bound", gradient_bound)
        super().__init__(
            domain, delay=delay, max_delay=max_delay, horizon=T, gradient_bound=G, on_violation=on_violation
        )
        Y = self.surrogate = domain.surrogate
        tau = 2 * self.max_delay if self.delay is None else self.delay
        more = (1 + 2 * tau) * T  # T'
        N = math.ceil(0.5 * math.log2(1 + 2 * domain.diameter * T / (5 * Y.radius))) + 1
        steps = geometric(Y.radius / G * math.sqrt(5 / (2 * more)), N)  # (5)
        rate = math.sqrt(math.log(N) / (1 + G**2 * Y.radius**2 * more))  # (6)
        check_entries(name, "delay" if max_delay is None else "max_delay", self.max_delay, self._rows * N * domain.dim)
        self.pool = descents(Y, steps, meta=Hedge(rate=rate))
        self._origin = self.pool.origin
        if start is not None:
            self._origin = np.ascontiguousarray(Y.project(read_start(name, domain, start)).ravel())
        self._state, self._pool_settings = Pool.assemble([[self.pool]])
        self._tol = domain.tolerance * domain._scale(domain.center)
        self._points = np.zeros((self._rows, N, domain.dim))
        self._y, self._gradients = np.zeros_like(self._x), np.zeros_like(self._x)
        self._tally = np.zeros(2, dtype=np.int64)
        self._work = np.empty(domain.dim)
        self._arrays |= {"points": self._points, "y": self._y, "gradients": self._gradients, "tally": self._tally}
        self._arrays |= named_arrays(self._state, "pool.")
        self._bound: Handle | None = None
        self._restart()

    @property
    def _handle(self) -> Handle:
        if self._bound is None:
            parts = self._state, self._pool_settings, *self._hull, self._tol, self._work
            self._bound = bind(_late_pool.LatePool(*parts))
        return self._bound

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_bound": None, "_shown": None}  # handles cannot be copied: they are made anew

    def __setstate__(self, kept: dict[str, Any]) -> None:
        vars(self).update(kept)
        self._state = refill(self._state, self._arrays, "pool.")  # the arrays of both are the same again

    # ------------------------------------------------------------------ a round

    def _restart(self) -> None:
        super()._restart()
        for array in (self._points, self._y, self._gradients, self._tally):
            array[:] = 0
        begin(self._state, self._pool_settings, 0, 0, self._origin)
        self._keep(0)

    def _keep(self, t: int) -> None:
        row = t % self._rows
        self._y[row], self._points[row] = self._state.y[0], self._state.members.points[0]

    def _decide(self) -> Array:
        x = np.empty(self.domain.dim)
        self.domain._project_into(self._y[self.rounds % self._rows], x, self._work)  # (4)
        self._clock[PROJECTIONS] += 1
        return x

    def _open(self, t: int) -> None:
        row = t % self._rows
        self._tally[FORGOTTEN] += t >= self._rows and self._due[row] < 0
        self._due[row], self._gradients[row] = -1, 0.0
        _late_pool.reweigh(self._handle)  # (3)
        self._keep(t)

    def _take(self, s: int, gradient: Array, loss: float | None) -> None:
        self._gradients[s % self._rows] = gradient

    def _settle(self, s: int) -> None:
        t, row = self.rounds, s % self._rows
        whose = t - (t - np.arange(self._rows)) % self._rows  # the round of each row
        waiting = np.count_nonzero((whose >= 0) & (whose < s) & ((self._due < 0) | (self._due > t)))
        self._tally[OVERTAKEN] = max(self._tally[OVERTAKEN], waiting)
        kept = self._gradients[row].copy(), self._x[row], self._y[row], self._points[row]
        _late_pool.learn(self._handle, *kept)  # (1), (2)

    # ------------------------------------------------------------------ what it tells

    @property
    def overtaken(self) -> int:
        """B, the most earlier rounds that still waited when the feedback of a round counted."""
        return int(self._tally[OVERTAKEN])

    @property
    def forgotten(self) -> int:
        """M, the rounds whose feedback did not come in time."""
        return int(self._tally[FORGOTTEN])

    @property
    def weights(self) -> Array:
        """p_t, how much each member counts in the present decision."""
        weights: Array = self._state.weights[0].copy()
        return weights

    # ------------------------------------------------------------------ stop and resume

    def _look(self, read: dict[str, NDArray[Any]]) -> Iterator[tuple[str, bool]]:
        yield from super()._look(read)
        clock, tally = read["clock"], read["tally"]
        rounds, answered = int(clock[ROUNDS]), int(clock[GRADIENTS])
        waits = int(np.count_nonzero(read["due"][: min(self._rows, rounds + 1)] < 0))
        yield "counters", clock[PROJECTIONS] == rounds + clock[FRESH]
        yield "counters", 0 <= tally[OVERTAKEN] <= self.max_delay and tally[FORGOTTEN] == rounds + 1 - answered - waits
        yield "feedback", bool((np.linalg.norm(read["gradients"], axis=1) <= math.sqrt(self._square_bound)).all())
        yield "points", feasible(self.surrogate, read["y"]) and feasible(self.surrogate, read["points"])
        one = np.ones((1, 1), dtype=np.int64)
        past = Past(one > 0, one, rounds * one, rounds, self._square_bound)
        state = refill(self._state, read, "pool.")
        yield from Pool.look([[self.pool]], state, self._pool_settings, past)
