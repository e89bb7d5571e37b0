r"""The theorem of each learner as a function: interval and comparator -> the most regret it allows.

An interval is cut where the cover of the run has its markers. Marker m starts an expert that lives until marker
m + lowbit(m), so the pieces that start at the markers p, p + lowbit(p), ... cover all rounds from marker p on; each
adds the regret of its meta-learner and of its expert, until the end of the interval if that comes first (all these
bounds hold at any time). What lies before marker p adds at most what the run can have lost there.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thalweg.regret import bounds
from thalweg.regret.comparators import path_length

__all__ = ["AOA", "Adaptive", "Betting", "Cutkosky", "Descent", "Dynamic", "IntervalDynamic", "Theorem"]

Array = NDArray[np.float64]

SHORTEST = 8  # rounds: shorter intervals of a level are not worth a bound of their own


class Theorem(ABC):
    """What a theorem allows on an interval of a run.

    Parameters
    ----------
    learner : Learner
        After the run.
    paid : array (T,)
        The learner's losses.
    squares : array (T,)
        At least ||grad f_t(x_t)||^2: measured, or the squared bound.

    Attributes
    ----------
    name : str
        Which theorem.
    whole : bool
        Whether it speaks of intervals that start with the run only.
    small_loss : bool
        Whether it needs smooth losses >= 0.
    """

    name: str
    whole = False
    small_loss = False

    def __init__(self, learner: Any, paid: Array, squares: Array) -> None:
        self.paid, self.squares = paid, squares
        self.inner = getattr(learner, "inner", learner)
        self.G: float = learner.gradient_bound
        self.L: float = getattr(learner, "smoothness", None) or 0.0
        self.D: float = learner.domain.diameter
        self.R: float = self.inner.domain.radius
        self.center: Array = self.inner.domain.center.ravel()

    @abstractmethod
    def bound(self, start: int, stop: int, u: Array, losses: Array) -> float:
        """The most regret on rounds [start, stop) against the flat decisions u (a row a round) with these losses."""


class Dynamic(Theorem):
    """`EfficientDynamic`: Theorem 2, or Theorem 3 where a smoothness was given. From the first round to any other."""

    whole = True

    def __init__(self, learner: Any, paid: Array, squares: Array) -> None:
        super().__init__(learner, paid, squares)
        self.small_loss = self.L > 0
        self.name = "Theorem 3 (small loss)" if self.small_loss else "Theorem 2"

    def bound(self, start: int, stop: int, u: Array, losses: Array) -> float:
        """See `Theorem.bound`."""
        first = float(np.linalg.norm(self.center - u[0]))
        return _ensemble(self.inner, self.R, self.G, self.L, stop - start, path_length(u), first, float(losses.sum()))


def _ensemble(inner: Any, R: float, G: float, L: float, n: int, P: float, first: float, F: float) -> float:
    """A pool of descents under Hedge, after n rounds: the best of its members' bounds."""
    steps = inner.step_sizes
    a = bounds.descent(steps, R, P, first)
    if L == 0:
        Q = G**2 * n
        return bounds.hedge(steps.size, float(inner._par[1]), R, Q) + float(np.min(a + steps * Q / 2))
    more, k = bounds.confident_hedge(steps.size, R, G)
    return bounds.small_loss(F, a + more, k * math.sqrt(2 * L), steps * L)


class Covered(Theorem):
    """A bound that adds up over the pieces of a cover."""

    def bound(self, start: int, stop: int, u: Array, losses: Array) -> float:
        """See `Theorem.bound`."""
        total = 0.0
        for m, first, last in self.pieces(start, stop):
            if m == 0:
                total += self.before(first, last)
            else:
                part = slice(first - start, last - start)
                total += self.piece(m, first, last, u[part], float(losses[part].sum()))
        return total

    def pieces(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """(m, first, last): rounds [first, last) belong to the expert of marker m; m = 0 before the first marker."""
        m = start + 1  # every round is a marker, counted from 1
        while m - 1 < stop:
            after = m + (m & -m)
            yield m, m - 1, min(after - 1, stop)
            m = after

    def before(self, first: int, last: int) -> float:
        """What can be lost on rounds [first, last) of one unit interval, before its end."""
        raise NotImplementedError  # covers of all rounds have no such stretch

    @abstractmethod
    def piece(self, m: int, first: int, last: int, u: Array, F: float) -> float:
        """The bound of one piece."""


class _Marked(Covered):
    """Covers whose markers the losses place."""

    small_loss = True

    def __init__(self, learner: Any, paid: Array, squares: Array) -> None:
        super().__init__(learner, paid, squares)
        markers = np.array(learner.markers) - 1
        self.first = learner.marker_count - markers.size + 1  # only the latest ones are kept on a very long run
        self.markers = markers
        self.largest = float(paid.max())

    def pieces(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """As in `Covered`, from the markers of the run."""
        k = int(np.searchsorted(self.markers, start))
        begin = int(self.markers[k]) if k < self.markers.size else stop
        if begin > start:
            yield 0, start, min(begin, stop)
        while k < self.markers.size and self.markers[k] < stop:
            m = self.first + k
            after = k + (m & -m)
            last = int(self.markers[after]) if after < self.markers.size else stop
            yield m, int(self.markers[k]), min(last, stop)
            k = after

    def before(self, first: int, last: int) -> float:
        """C_m and the loss of the round that exceeded it, or the largest loss in every round."""
        m = self.first + int(np.searchsorted(self.markers, first, side="right")) - 1
        return min(float(self.inner.threshold(m)) + self.largest, self.largest * (last - first))


class Adaptive(_Marked):
    """`EfficientAdaptive`."""

    name = "Theorem 4"

    def piece(self, m: int, first: int, last: int, u: Array, F: float) -> float:
        """Adapt-ML-Prod and scale-free descent."""
        a, k = bounds.adapt_ml_prod(m, last, self.R, self.G)
        more, slope = bounds.scale_free(self.R, float(self.inner._par[0, 0]))
        return bounds.small_loss(F, a + more, (k + slope) * math.sqrt(2 * self.L))


class IntervalDynamic(_Marked):
    """`EfficientIntervalDynamic`."""

    name = "Theorem 5"

    def piece(self, m: int, first: int, last: int, u: Array, F: float) -> float:
        """Adapt-ML-Prod, Hedge and descent."""
        a, k = bounds.adapt_ml_prod(m, last, self.R, self.G)
        steps = self.inner._templates[0].step_sizes
        more, slope = bounds.confident_hedge(steps.size, self.R, self.G)
        away = float(np.linalg.norm(self.center - u[0])) if self.inner.restart == "center" else 2 * self.R
        drift = bounds.descent(steps, self.R, path_length(u), away)
        return bounds.small_loss(F, a + more + drift, (k + slope) * math.sqrt(2 * self.L), steps * self.L)


class Betting(Covered):
    """`EfficientCBCE`: coin betting over descent with steps 2R/(G sqrt n)."""

    name = "coin betting on a cover (Section 3.2)"

    def piece(self, m: int, first: int, last: int, u: Array, F: float) -> float:
        """With D = 2R a descent loses at most 3/2 D G sqrt n; a comparator that moves adds D P over the last step."""
        n = last - first
        moved = self.G * math.sqrt(n) * path_length(u)
        return bounds.coin_betting(n, last, self.R, self.G) + 3 * self.G * self.R * math.sqrt(n) + moved


class AOA(Covered):
    """`EfficientAOA`: AdaNormalHedge over Theorem 2's ensembles, each tuned to the length of its interval."""

    name = "AdaNormalHedge on a geometric cover (Section 4.2)"

    def piece(self, m: int, first: int, last: int, u: Array, F: float) -> float:
        """The expert of the shortest interval that starts at m and reaches the end."""
        n = last - first
        level = min((n - 1).bit_length(), (m & -m).bit_length() - 1)
        template = self.inner._templates[level]
        away = float(np.linalg.norm(self.center - u[0]))
        expert = _ensemble(template, self.R, self.G, 0.0, n, path_length(u), away, F)
        return bounds.ada_normal_hedge(n, last, self.R, self.G) + expert


class Cutkosky(Theorem):
    r"""`EfficientCutkosky`: the levels of `thalweg.residual`, in units of G R.

    On an interval J of level i, against a fixed point: sqrt(2) times the bound of its parameter-free learner (1 times
    for the first level), plus the wealth sqrt(2) psi_l that each level below may lose on each of its intervals in J.
    A path adds :math:`\sum_J \|u_t - \bar u_J\|`. A round costs at most its diameter. The best partition into intervals
    of levels is found by comparing each with its two halves.
    """

    name = "residual levels (Cutkosky 2020)"

    def bound(self, start: int, stop: int, u: Array, losses: Array) -> float:
        """See `Theorem.bound`."""
        points = (u - self.center) / self.R
        return self.G * self.R * self._best(int(self.inner.levels), 0, start, stop, points, start)

    def _best(self, level: int, begin: int, start: int, stop: int, points: Array, offset: int) -> float:
        """The least bound on [begin, begin + 2^level), cut to [start, stop)."""
        end = min(begin + (1 << level), stop)
        if end <= start or begin >= stop:
            return 0.0
        rounds = end - max(begin, start)
        plain = rounds * self.D / self.R
        if level == 0 or rounds < SHORTEST:
            return plain
        whole = math.inf
        if begin >= start:
            part = points[begin - offset : end - offset]
            middle = part.mean(axis=0)
            drift = float(np.linalg.norm(part - middle, axis=1).sum())
            whole = self._fixed(level, rounds, float(np.linalg.norm(middle))) + drift
            if drift <= 1e-9 * rounds:  # nothing moves: halves gain nothing
                return min(plain, whole)
        half = 1 << (level - 1)
        halves = self._best(level - 1, begin, start, stop, points, offset)
        halves += self._best(level - 1, begin + half, start, stop, points, offset)
        return min(plain, whole, halves)

    def _fixed(self, level: int, n: int, size: float) -> float:
        psi: list[float] = self.inner._psi.tolist()  # longest level first
        K = len(psi)
        row = K - level
        if row == 0:
            own = bounds.parameter_free(round(size, 9) + 1e-9, psi[0], float(n))
        else:
            own = math.sqrt(2) * bounds.parameter_free(round(math.hypot(size, 1.0), 9) + 1e-9, psi[row], float(n))
        below = sum(math.ceil(n / (1 << (K - k))) * psi[k] for k in range(row + 1, K))
        return own + math.sqrt(2) * below


class Descent(Theorem):
    r"""`OGD` and `SOGD`, from the first round on, with eta the last step and the gradients that were seen:

    .. math:: \frac{\|x_1 - u_1\|^2 \text{ or } D^2}{2 \eta} + \frac{D P}{\eta} + \frac12 \sum_t \eta_t \|g_t\|^2
    """

    name = "telescoping sum (Zinkevich 2003)"
    whole = True

    def bound(self, start: int, stop: int, u: Array, losses: Array) -> float:
        """See `Theorem.bound`."""
        squares, scale, rule = self.squares[start:stop], float(self.inner.step_sizes[0]), self.inner.step_rule
        Q, P, n = float(squares.sum()), path_length(u), stop - start
        first = float(np.linalg.norm(self.inner._start - u[0])) if rule == "constant" else self.D
        if rule == "scale_free":
            last = scale / math.sqrt(float(self.inner._par[0]) + Q)
            steps = scale * math.sqrt(Q)  # at least the sum of eta_t ||g_t||^2 / 2
        elif rule == "decaying":
            last = scale / math.sqrt(n)
            steps = float(scale / np.sqrt(1 + np.arange(n)) @ squares) / 2
        else:
            last, steps = scale, scale * Q / 2
        return (first**2 / 2 + self.D * P) / last + steps
