"""The Tracker: nothing to set but the domain.

Y is a ball around X with centre c and radius R. Play x_t = Pi_X(y_t); let h_t be the surrogate gradient of
`thalweg.learners.one_projection` and f = f_t(x_t) - loss_floor >= 0, or inf if the value is not given.

    l_t(u) = max(-2f, <h_t, u - y_t>) <= f_t(u) - f_t(x_t) for u in X        the linear loss, cut                   (1)
    member k:  y_k <- Pi_Y(y_k - s_k h_t)                                   the proximal step of l_t,
               s_k = min(2^k R / sqrt(S_t), (2f - r_k)_+ / ||h_t||^2)        r_k = <h_t, y_t - y_k>                 (2)
               for k = k0 - 2, ..., K; K grows while 2^(K+1) sqrt(S_t) <= 2 sum_s ||h_s||
    members C, D:  a step of recursive least squares on l_t; D restarts when its errors grow                    (3)
               two walkers: Kalman filters of a decision in a random walk, slow or fast
               without values: C, with f estimated, and M, which makes the estimate
    record j:  Hedge on the gains min(r_i, 2f) seen since its birth, rate 1/sqrt(B^2 + V)                          (4)
    y_{t+1} = sum_j w_j sum_i p_i^(j) y_i                                   w_j by the gains of record j            (5)

with S_t = sum_{s<=t} ||h_s||^2. One record begins at the start, one at every change that D detects, and the others
at the markers of a compact cover. (2) is in `thalweg.parts.cut_descent`, (3) in `curvature` and `estimate`, (4) and
(5) in `records`.

For every T and every path in X of length P, the regret is of order R sqrt(S_T (1 + P/R)), up to logarithms. On every
interval I it is of order R sqrt(S_I (P_I/R + log^2 T)), up to G (P_I + R log^2 T), where G is the longest gradient so
far. For smooth f_t >= 0, sqrt(S_I) is of order sqrt(L F_I). No constant need be known in advance.
1 projection, 1 gradient, 1 value a round.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._kernels.covers import slots_in_use
from thalweg.cards import Card
from thalweg.domains._base import Domain
from thalweg.learners.base import Learner, Shown, read_start
from thalweg.learners.contract import core
from thalweg.learners.one_projection import OneProjection
from thalweg.learners.tracker.kernels import TrackerSettings, TrackerState
from thalweg.learners.tracker.machine import Tracking, multipliers
from thalweg.parts.cut_descent import BELOW, COUNT
from thalweg.parts.records import ANCHORED, CHANGES, MARKERS, OTHERS
from thalweg.theorems._base import Theorem, path_length

__all__ = ["Tracked", "Tracker"]


KAPPA = 2 * (math.e - 2)  # from the lemma on a record
SPREAD = 3 * (2.75 + math.sqrt(2))  # Z, the normalising constant of the priors in record 0
REACH = 2048**2  # rounds, times L, for which the grid of a record is long enough


class Tracked(Theorem):
    """Bounds of `Tracker` on intervals and against any path: (T1'), (T2), (T2*) of docs/why-the-tracker-works.md."""

    name = "(T1'), (T2), (T2*)"

    def __init__(self, learner: Any, paid: Floats, squares: Floats) -> None:
        super().__init__(learner, paid, squares)
        self.whole = not learner.intervals
        floor = learner.loss_floor
        self.floor = floor if learner.queries.values > 0 else None
        self.blind = floor is None or learner.queries.values < learner.rounds
        phi = 2 * self.R * np.sqrt(squares)  # an upper bound: surrogate gradients are never longer than these
        self.phi = np.maximum.accumulate(phi if self.blind else np.minimum(phi, 2 * (paid - floor)))
        self.longest = np.maximum.accumulate(np.sqrt(squares))
        self.squares = np.concatenate([[0.0], np.cumsum(squares)])
        self.markers = np.array(self.learner.markers)
        self.forgotten = self.learner.marker_count - self.markers.size

    def bound(self, start: int, stop: int, u: Floats, losses: Floats) -> float:
        """See `Theorem.bound`."""
        P = path_length(u)
        whole = self.learner.regret_bound(P) if (start, stop) == (0, self.paid.size) else math.inf
        return min(whole, self.interval(start, stop, P) if self.learner.intervals else math.inf)

    def interval(self, start: int, stop: int, P: float) -> float:
        """The smaller of (T2) and (T2*)."""
        F = float(self.phi[stop - 1])
        marked = int(((self.markers > start) & (self.markers <= stop)).sum())
        if self.forgotten and start < self.markers[0]:
            marked += min(self.forgotten, (stop - start) // 16 + 1)
        if marked == 0:
            return 16 * F
        m = self.forgotten + int((self.markers <= stop).sum())
        a, N = self.learner.anchored, self.learner.weights.size
        c = self.learner.multipliers
        prior = math.log(SPREAD) + math.log(c[-1] / c[BELOW]) / 2 if self.blind else math.log(N)
        L = math.log(8 * m / 3 * (4 + 3 * math.log(m) + 3 * (a + self.learner.changes)))
        if stop > REACH * L:
            return math.inf
        S = float(self.squares[stop] - self.squares[start])
        root, steep = self.R * math.sqrt(S), self.R * float(self.longest[stop - 1])

        def records(n: int) -> float:
            """Bound the loss of n consecutive records to a member and to the mixture of all records."""
            mixed = math.sqrt(5) * (KAPPA + prior) + 5 * math.sqrt((1 + a) * L)
            return root * math.sqrt(n) * mixed + steep * (n * (32 if a == 0 else 40.2) * L + 2)

        path, n = P / self.R, 1 + math.floor(math.log2(marked))
        M = 1 + math.floor(path)
        pieces = records(M * n) + 4.25 * root * math.sqrt(M * n) + 4 * steep * M * n + 17 * M * F
        at_once = records(n) + 4.95 * root * math.sqrt(2 * n + 2 * path) + 2.83 * steep * (n + path) + 17 * F
        return min(pieces, at_once)


def _weights(learner: Learner, s: TrackerState, c: TrackerSettings) -> Floats:
    """p_i: weights of the two walkers, C and D (0 if absent), then of the descents in `multipliers`."""
    return s.p[: s.members.sizes[COUNT]].copy()


def _points(learner: Learner, s: TrackerState, c: TrackerSettings) -> Floats:
    """y_i, in the order of `weights`."""
    return s.members.points[: s.members.sizes[COUNT]].reshape(-1, *learner.domain.shape).copy()


def _multipliers(learner: Learner, s: TrackerState, c: TrackerSettings) -> Floats:
    """2^k of the active descents, which come after the 4 members with curvature."""
    return multipliers(s)


def _markers(learner: Learner, s: TrackerState, c: TrackerSettings) -> list[int]:
    """The rounds, counted from 1, that set the latest markers: at most 64 of them."""
    m, kept = int(s.records.counts[MARKERS]), s.records.marks.size
    return [int(s.records.marks[i % kept]) for i in range(max(0, m - kept), m)]


def _marker_count(learner: Learner, s: TrackerState, c: TrackerSettings) -> int:
    """Markers of the cover so far."""
    return int(s.records.counts[MARKERS])


def _anchored(learner: Learner, s: TrackerState, c: TrackerSettings) -> int:
    """Number of times the grid of a record was re-anchored."""
    return int(s.records.counts[ANCHORED])


def _changes(learner: Learner, s: TrackerState, c: TrackerSettings) -> int:
    """Number of changes detected."""
    return int(s.records.counts[CHANGES])


def _records(learner: Learner, s: TrackerState, c: TrackerSettings) -> dict[int, float]:
    """The weight of every record: 0 since the start, 1 since the last detected change, k + 2 for slot k."""
    rows = OTHERS + slots_in_use(int(s.records.counts[MARKERS]))
    return {j: float(s.records.weights[j]) for j in range(rows) if j == 0 or s.records.born[j - 1] > 0}


class Tracker(OneProjection):
    """Keep up with a moving optimum given only the set: no horizon, no gradient bound, no step size.

    Parameters
    ----------
    domain : Domain
        X, any bounded convex set.
    intervals : bool
        Whether to keep up on every interval as well as on the whole run. The extra cost is a few scalars.
    curvature : {"auto", True, False}
        Whether four members follow the curvature of the losses, each with d^2 numbers; "auto": if d is at most 64.
        Without values there is only one, whose curvature is estimated from the gradients.
    loss_floor : float or None
        A known lower bound of the losses on the domain; a tight one helps. None: their values are not used.
    start : array, optional
        The first decision, such as last week's weights or the persistence forecast; Pi_X(c) by default.
    surrogate : Ball, optional
        Y; by default the ball around `domain.center` with radius `domain.radius`.

    Notes
    -----
    Scaling all losses changes no decision. Values may be left out in some or all rounds: `update(gradient)`. The
    loss is not cut in these rounds. If the first value is missing, members with curvature use an estimate; if a later
    one is, they pause. Without values, a set that is much too large may cost a lot.

    Examples
    --------
    >>> import numpy as np, thalweg as tw
    >>> rng = np.random.default_rng(0)
    >>> learner = tw.Tracker(tw.domains.Ball(2, radius=5.0))
    >>> for t in range(300):
    ...     a, w = rng.normal(size=2), np.array([1.0, -1.0]) if t < 150 else np.array([-2.0, 1.0])
    ...     paid = learner.step(tw.losses.Squared(a, a @ w))
    >>> learner.queries
    Queries(projections=300, gradients=300, values=300)
    >>> bool(np.linalg.norm(learner.decision - [-2.0, 1.0]) < 0.1)
    True
    """

    card = Card(
        about="nothing to set but the domain",
        regret="interval dynamic",
        bound="sqrt(S_I (P_I + log^2 T))",
        queries=("1", "1", "1"),
        source="this library, docs/why-the-tracker-works.md",
        theorem=Tracked,
        arguments=lambda s: {"loss_floor": 0.0 if s.nonnegative else None},
    )

    inner: Tracking
    tight_surrogate = False
    weights, points, multipliers = Shown(_weights), Shown(_points), Shown(_multipliers)
    markers, marker_count = Shown(_markers), Shown(_marker_count)
    anchored, changes, records = Shown(_anchored), Shown(_changes), Shown(_records)

    def __init__(
        self,
        domain: Domain,
        *,
        intervals: bool = True,
        curvature: bool | str = "auto",
        loss_floor: float | None = 0.0,
        start: ArrayLike | None = None,
        surrogate: Domain | None = None,
    ) -> None:
        name = type(self).__name__

        def make_inner(Y: Domain) -> Tracking:
            home = None if start is None else read_start(name, domain, start)
            return Tracking(
                Y,
                intervals=intervals,
                curvature=curvature,
                loss_floor=loss_floor,
                start=home,
                directions=None if surrogate is not None else (domain.flat, domain.flat_par),
                owner=name,
            )

        super().__init__(domain, make_inner, surrogate=surrogate)

    def regret_bound(self, path_length: float = 0.0) -> float:
        """Bound the regret so far against all comparators in the domain whose path has at most this length.

        Computed from the run, by (T1') of docs/why-the-tracker-works.md. It assumes only that losses are convex and
        not below the floor. With 0 it bounds the regret against the best fixed decision.

        Examples
        --------
        >>> import thalweg as tw
        >>> learner = tw.Tracker(tw.domains.Ball(2))
        >>> for _ in range(100):
        ...     _ = learner.step(tw.losses.Squared([1.0, 0.0], 0.5))
        >>> learner.regret_bound() < learner.regret_bound(path_length=5.0)
        True
        """
        return self.inner.regret_bound(core(self._memory.state), path_length)
