"""The base of theorems: a function of an interval and a comparator, the most regret that it allows.

On a cover, an interval is cut where the cover of the run has its markers. Marker m starts an expert that lives until
marker m + lowbit(m), so the pieces that start at the markers p, p + lowbit(p), ... cover all rounds from marker p on;
each adds the regret of its meta-learner and of its expert, until the end of the interval if that comes first (all these
bounds hold at any time). The rounds before marker p add at most the loss that is possible there.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from thalweg._core.types import Floats, Ints
from thalweg.errors import InputError
from thalweg.theorems import bounds

if TYPE_CHECKING:
    from thalweg.experts.pool import Pool
    from thalweg.metas.hedge import Hedge

__all__ = ["CoverTheorem", "Marked", "Theorem", "path_length", "pool_bound", "step_sizes"]


class Theorem(ABC):
    """The regret that a theorem allows on an interval of a run.

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
        Whether it needs smooth losses >= 0, for ||grad f||^2 <= 2 L f.
    still : bool
        Whether it speaks of comparators that stand still only.
    floor : float or None
        The lower bound that it needs of every loss, at the decisions and at the comparators; None: it needs none, or 0
        with `small_loss`.

    Notes
    -----
    A new theorem is a class with a `name` and `bound`; the `Card` of its learner names it, and
    `thalweg.regret.certify` evaluates it.
    """

    name: str
    whole = False
    small_loss = False
    still = False
    floor: float | None = None

    def __init__(self, learner: Any, paid: Floats, squares: Floats) -> None:
        self.learner, self.paid, self.squares = learner, paid, squares
        self.inner = getattr(learner, "inner", learner)
        self.G: float = learner.gradient_bound
        self.L: float = getattr(learner, "smoothness", None) or 0.0
        self.D: float = learner.domain.diameter
        self.R: float = self.inner.domain.radius
        self.center: Floats = self.inner.domain.center.ravel()

    @abstractmethod
    def bound(self, start: int, stop: int, u: Floats, losses: Floats) -> float:
        """The most regret on rounds [start, stop) against the flat decisions u (a row a round) with these losses."""


def path_length(u: Floats) -> float:
    """P, the length of the path of the flat decisions u."""
    return float(np.linalg.norm(np.diff(u, axis=0), axis=1).sum())


def step_sizes(expert: Any) -> Floats:
    """eta_i of a pool of descents, or of one."""
    return np.array([member.step_size for member in getattr(expert, "members", (expert,))])


def pool_bound(pool: Pool, R: float, G: float, L: float, n: int, P: float, first: float, F: float) -> float:
    """A pool of descents under Hedge on a ball, after n rounds: the best of its members' bounds.

    With L = 0 for gradients of length <= G and a fixed rate, else for L-smooth losses >= 0 and the self-confident one.
    """
    steps, meta = step_sizes(pool), cast("Hedge", pool.meta)
    a = bounds.descent(steps, R, P, first)
    if L == 0:
        Q = G**2 * n
        assert meta.rate is not None
        return bounds.hedge(steps.size, meta.rate, R, Q) + float(np.min(a + steps * Q / 2))
    more, k = bounds.confident_hedge(steps.size, R, G)
    return bounds.small_loss(F, a + more, k * math.sqrt(2 * L), steps * L)


class CoverTheorem(Theorem):
    """A bound that adds up over the pieces of a cover."""

    def bound(self, start: int, stop: int, u: Floats, losses: Floats) -> float:
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
        """The most loss on rounds [first, last) of one unit interval, before its end."""
        raise NotImplementedError  # covers of all rounds have no such stretch

    @abstractmethod
    def piece(self, m: int, first: int, last: int, u: Floats, F: float) -> float:
        """The bound of one piece."""


class Marked(CoverTheorem):
    """Covers whose markers the losses place."""

    small_loss = True

    def __init__(self, learner: Any, paid: Floats, squares: Floats) -> None:
        super().__init__(learner, paid, squares)
        self.markers = np.array(learner.markers) - 1
        if learner.marker_count > self.markers.size:  # only the latest ones are kept on a very long run
            self.markers = self._replayed(learner.marker_count)
        self.largest = float(paid.max())

    def _replayed(self, count: int) -> Ints:
        """All markers, from the rule that set them: unit interval m ends where its loss exceeds C_m."""
        kept, found = self.markers, [0]
        total, C = 0.0, float(self.inner.threshold(1))
        for t, loss in enumerate(self.paid.tolist()):
            total += loss
            if total > C:
                found.append(t + 1)
                total, C = 0.0, float(self.inner.threshold(len(found)))
        markers = np.array(found)
        if markers.size != count or (markers[-kept.size :] != kept).any():
            raise InputError(
                f"certify needs the losses that the learner was given: with these, its cover would have set "
                f"{markers.size} markers. It has set {count}. Pass the result of `play`."
            )
        return markers

    def pieces(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """As in `CoverTheorem`, from the markers of the run."""
        k = int(np.searchsorted(self.markers, start))
        begin = int(self.markers[k]) if k < self.markers.size else stop
        if begin > start:
            yield 0, start, min(begin, stop)
        while k < self.markers.size and self.markers[k] < stop:
            m = k + 1
            after = k + (m & -m)
            last = int(self.markers[after]) if after < self.markers.size else stop
            yield m, int(self.markers[k]), min(last, stop)
            k = after

    def before(self, first: int, last: int) -> float:
        """C_m and the loss of the round that exceeded it, or the largest loss in every round."""
        m = int(np.searchsorted(self.markers, first, side="right"))
        return min(float(self.inner.threshold(m)) + self.largest, self.largest * (last - first))
