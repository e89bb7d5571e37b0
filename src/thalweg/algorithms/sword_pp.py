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
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.memory import Memory
from thalweg._core.rules import CLOSE, SLACK, counter_field, inside, simplex, within, within_bounds
from thalweg._core.state import Past, Plan, field, scratch
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_count, check_positive
from thalweg._kernels.clock import GRADIENTS, PROJECTIONS, ROUNDS
from thalweg._kernels.jit import implement
from thalweg._kernels.pointers import Pointer, call
from thalweg._kernels.vectors import copy, decay, dot
from thalweg.algorithms.pools import geometric
from thalweg.cards import Card
from thalweg.domains._base import Domain
from thalweg.learners import loop
from thalweg.learners.base import Learner, Shown, bounded, read_start
from thalweg.learners.contract import decision, learn, propose
from thalweg.learners.machine import Machine

__all__ = ["SwordPP", "SwordPPMachine", "SwordPPSettings", "SwordPPState"]


class SwordPPState(NamedTuple):
    """N members."""

    hats: Floats = field("N d", inside("domain"), called="points")  # xhat_{t,i}
    points: Floats = field("N d", inside("domain"))  # x_{t,i}
    moved: Floats = field("N", within(0.0, "far"), called="ways moved")  # ||x_{t,i} - x_{t-1,i}||^2
    scores: Floats = field("N")  # sum_s l_{s,i}
    weights: Floats = field("N", simplex)  # p_t
    last: Floats = field("d", called="last gradient")  # g_{t-1}
    variation: Floats = field("1")  # sum_s ||g_s - g_{s-1}||^2
    x: Floats = field("d", inside("domain"), called="points")  # x_t
    clock: Ints = counter_field()


class SwordPPSettings(NamedTuple):
    """Constants and scratch space."""

    steps: Floats  # (N,) eta
    onto: Pointer  # the set: `thalweg._kernels.projections`
    domain: Floats
    price: float  # lambda
    highest: float  # of the rate
    root: float  # sqrt(ln N)/D
    fresh: Floats = scratch("N d")  # x_{t+1,i}
    work: Floats = scratch("d")


# --------------------------------------------------------------------------------------------------------------- rounds


@implement(decision, SwordPPState)
def _decision(s: SwordPPState, c: SwordPPSettings) -> Floats:
    return s.x


@implement(learn, SwordPPState)
def _learn(s: SwordPPState, c: SwordPPSettings, g: Floats, loss: float) -> bool:
    N, d = s.points.shape
    s.clock[ROUNDS] += 1
    s.clock[GRADIENTS] += 1
    s.clock[PROJECTIONS] += 2 * N
    for j in range(d):
        s.variation[0] += (g[j] - s.last[j]) * (g[j] - s.last[j])
        s.last[j] = g[j]
    base = dot(g, s.x)
    for i in range(N):
        s.scores[i] += dot(g, s.points[i]) - base + c.price * s.moved[i]  # (3)
        for j in range(d):
            s.hats[i, j] -= c.steps[i] * g[j]
        call(c.onto, c.domain, s.hats[i], s.hats[i], c.work)  # (1)
        for j in range(d):
            c.fresh[i, j] = s.hats[i, j] - c.steps[i] * g[j]
        call(c.onto, c.domain, c.fresh[i], c.fresh[i], c.work)  # (2)
    return True


@implement(propose, SwordPPState)
def _propose(s: SwordPPState, c: SwordPPSettings, loss: float) -> None:
    N, d = s.points.shape
    rate = min(c.highest, c.root / np.sqrt(s.variation[0]))  # (6); infinite before the first gradient
    base, top = dot(s.last, s.x), -np.inf
    for i in range(N):
        square = 0.0
        for j in range(d):
            gap = c.fresh[i, j] - s.points[i, j]
            square += gap * gap
        s.moved[i] = square
        copy(c.fresh[i], s.points[i])
        guess = dot(s.last, s.points[i]) - base + c.price * square  # (4)
        s.weights[i] = -rate * (s.scores[i] + guess)
        top = max(top, s.weights[i])
    total = 0.0
    for i in range(N):
        s.weights[i] = decay(s.weights[i] - top)
        total += s.weights[i]
    for j in range(d):
        s.x[j] = 0.0
    for i in range(N):
        s.weights[i] /= total  # (5)
        for j in range(d):
            s.x[j] += s.weights[i] * s.points[i, j]


# -------------------------------------------------------------------------------------------------------------- machine


class SwordPPMachine(Machine[SwordPPState, SwordPPSettings]):
    """Optimistic members on X, two projections each, and an optimistic Hedge with correction above them."""

    def __init__(self, domain: Domain, steps: Floats, gradient_bound: float, smoothness: float, origin: Floats) -> None:
        self.domain, self.steps, self.origin = domain, steps, origin
        self.bound, self.smoothness = gradient_bound, smoothness

    def plan(self, sizes: Mapping[str, int]) -> Plan:
        """See `Machine.plan`."""
        X, N, D, L = self.domain, self.steps.size, self.domain.diameter, self.smoothness
        return Plan(
            SwordPPState,
            SwordPPSettings(self.steps, X.onto, X.par, 2 * L, 1 / (8 * D**2 * L), math.sqrt(math.log(N)) / D),
            sizes={"N": N, "d": X.dim},
            facts={"domain": X, "far": (D + X._scale(X.center) * CLOSE) ** 2},
            holds=self.holds,
            begin=self._begin,
        )

    def _begin(self, s: SwordPPState, c: SwordPPSettings) -> None:
        s.weights[:] = 1 / s.weights.size
        s.hats[:] = s.points[:] = s.x[:] = self.origin
        s.clock[PROJECTIONS] = 1  # of the starting point

    def holds(self, s: SwordPPState, c: SwordPPSettings, past: Past) -> Iterator[tuple[str, bool]]:
        """See `Machine.holds`."""
        yield from super().holds(s, c, past)
        G, D, rounds = self.bound, self.domain.diameter, past.rounds
        yield "scores", within_bounds(np.abs(s.scores), 0.0, rounds * (G * D + 2 * self.smoothness * D**2))
        yield "last gradient", bool(np.linalg.norm(s.last) <= G * SLACK)
        yield "variation", within_bounds(s.variation, 0.0, 4 * rounds * G**2)

    def finish(self, memory: Memory, loss: float) -> None:
        """See `Machine.finish`."""
        s, c = memory.state, memory.settings
        for i, step in enumerate(c.steps):
            s.hats[i] = self.domain._project_flat(s.hats[i].copy())  # (1)
            c.fresh[i] = self.domain._project_flat(s.hats[i] - step * s.last)  # (2)
        loop.finish(memory.handle, loss)


# -------------------------------------------------------------------------------------------------------------- learner


def _weights(learner: Learner, s: SwordPPState, c: SwordPPSettings) -> Floats:
    """p_t, how much each member counts in the present decision."""
    return s.weights.copy()


def _points(learner: Learner, s: SwordPPState, c: SwordPPSettings) -> Floats:
    """x_{t,i}, the members' decisions, (N, *shape)."""
    return s.points.reshape(-1, *learner.domain.shape).copy()


class SwordPP(Learner):
    """Sword++, with optimistic members on X and an optimistic Hedge with correction above them.

    Parameters
    ----------
    domain : Domain
        X, of diameter D.
    horizon, gradient_bound, on_violation
        T, G, and the treatment of gradients above G, as for every `Learner`.
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

    weights, points = Shown(_weights), Shown(_points)

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
        D = bounded("SwordPP", domain).diameter
        N = max(1, math.ceil(math.log2(G * math.sqrt(T / 8) / (D * L))) + 1)
        self.smoothness, self.step_sizes = L, np.minimum(geometric(D / (G * math.sqrt(8 * T)), N), 1 / (8 * L))
        home = domain.project(domain.center if start is None else read_start("SwordPP", domain, start))
        machine = SwordPPMachine(domain, self.step_sizes, G, L, np.ascontiguousarray(home.ravel()))
        super().__init__(machine, horizon=T, gradient_bound=G, on_violation=on_violation)
