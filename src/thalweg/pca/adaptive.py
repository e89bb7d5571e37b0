"""Strongly adaptive online PCA with a projection for every expert, where `EfficientPCA` has one.

Expert i lives in the rounds i, .., i + lowbit(i) - 1, starts at (k/d) I and runs gradient descent on the Fantope F:

    P_{t+1,i} = Pi_F(P_{t,i} + s_i X_t),   s_i = sqrt(k (d - k)/(d lowbit(i)))/G                   (1)
    r_{t,i} = <X_t, P_{t,i} - P_t>/(G D), D = sqrt(2 min(k, d - k)); Adapt-ML-Prod, as in Algorithm 2    (2)
    P_t = sum_i p_{t,i} P_{t,i},   i alive in round t                                              (3)

popcount(t) experts are alive in round t. All but the newborn, whose place is known, take an eigendecomposition. One
more is needed for `projection`, if it is asked for: a mixture of experts has an eigenbasis of its own.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from thalweg._core.rules import counter_field, feasible
from thalweg._core.state import Past, Plan, field, part, scratch
from thalweg._core.types import Floats, Ints
from thalweg._kernels.clock import FRESH, PROJECTIONS
from thalweg._kernels.covers import slots_in_use
from thalweg._kernels.handle import AnyHandle, Handle, bind, parts
from thalweg._kernels.jit import kernel
from thalweg._kernels.parts import feed, weigh
from thalweg._kernels.pca import cap
from thalweg.metas.adapt_ml_prod import AdaptMLProd, AdaptMLProdSettings, AdaptMLProdState
from thalweg.pca._base import assemble, close, gram, loss_at, orthonormal, seed_field, symmetric
from thalweg.pca._levels import CoverPCA, LevelsLayout, enter

__all__ = ["AdaptivePCA", "MatrixSettings", "MatrixState"]


class MatrixState(NamedTuple):
    """K slots, one for each level of the compact cover; experts are whole matrices of the Fantope."""

    points: Floats = field("K d d")
    meta: AdaptMLProdState = part()  # one group of K members
    born: Ints = field("K", called="births")  # the round in which each expert started; 0: the slot is empty
    weights: Floats = field("K")  # p
    P: Floats = field("d d", called="decision")  # the combination
    spectrum: Floats = field("d")  # its eigenvalues,
    basis: Floats = field("d d")  # and its eigenvectors in rows
    seed: Ints = seed_field()
    clock: Ints = counter_field()  # `thalweg._kernels.clock`


class MatrixSettings(NamedTuple):
    """Constants and scratch space."""

    steps: Floats  # (K,) by level
    meta: AdaptMLProdSettings = part()
    losses: Floats = scratch("K")


@kernel
def reweigh(handle: AnyHandle, t: int) -> int:
    """Begin round t: feed the losses of the round before, relative to the combination; experts leave, one enters.

    Returns the slot of the newborn. The first round has nothing to feed.
    """
    s, c = parts(handle)
    if t > 1:
        feed(s.meta, c.meta, 0, slots_in_use(t - 1), s.born, 0.0, c.losses, 0.0)
    newest = enter(s, c, t)
    weigh(s.meta, c.meta, 0, s.born.shape[0], s.born, s.weights)
    return newest


class AdaptivePCA(CoverPCA):
    """Small regret on every interval, at the cost of an eigendecomposition for every expert alive.

    Parameters
    ----------
    dim, rank, gradient_bound, rng
        As for `EfficientPCA`.

    Examples
    --------
    >>> import thalweg.pca
    >>> learner = thalweg.pca.AdaptivePCA(dim=4, rank=1, rng=0)
    >>> for _ in range(6):
    ...     _ = learner.update([1.0, 0.0, 0.0, 0.0])
    >>> learner.active, learner.eigendecompositions
    (3, 5)
    """

    def __init__(
        self, dim: int, rank: int, *, gradient_bound: float = 1.0, rng: np.random.Generator | int | None = None
    ) -> None:
        super().__init__(dim, rank, gradient_bound=gradient_bound, rng=rng)
        self._allocate(LevelsLayout(self._plan))

    def _plan(self, K: int) -> Plan:
        meta = AdaptMLProd(self.gradient_bound * self.domain.diameter)  # (2)
        return Plan(
            MatrixState,
            MatrixSettings(self._steps(K)),
            sizes={"K": K, "d": self.dim},
            parts={"meta": AdaptMLProd.plan([meta], [K])},
            holds=self._holds,
            pasts=self._pasts,
            begin=self._begin,
        )

    def _begin(self, s: MatrixState, c: MatrixSettings) -> None:
        super()._begin(s, c)
        self._begin_round(bind((s, c)), s, 1)

    def _begin_round(self, handle: Handle, s: MatrixState, t: int) -> None:
        """Begin round t: end and start experts, and compute their weights and their combination."""
        newest = reweigh(handle, t)
        s.points[newest] = self.domain.center
        s.P[...] = 0.0
        for level in np.flatnonzero(s.born):
            s.P[...] += s.weights[level] * s.points[level]  # (3)

    def _holds(self, s: MatrixState, c: MatrixSettings, past: Past) -> Iterator[tuple[str, bool]]:
        yield from super()._holds(s, c, past)
        alive, size = s.born > 0, float(np.sqrt(self.rank))
        points = s.points[alive]
        yield "experts' points", all(symmetric(point, size) for point in points) and feasible(self.domain, points)
        yield "decision", close(s.P, np.tensordot(s.weights[alive], points, 1))  # (3)
        if s.clock[FRESH]:
            yield "eigenvectors", orthonormal(s.basis) and close(assemble(s.spectrum, s.basis), s.P)

    def _spectrum(self) -> tuple[Floats, Floats]:
        s: MatrixState = self._refreshed(self._diagonalise_mixture)
        return s.spectrum, s.basis

    def _diagonalise_mixture(self, s: MatrixState) -> None:
        values, s.basis[...] = self._diagonalise(s.P.copy())
        cap(values, self.rank, s.spectrum)  # P is in the Fantope: this only removes rounding

    def _mean(self) -> Floats:
        P: Floats = self._memory.state.P
        return P.copy()  # no eigenbasis is needed for it

    def _learn(self, instance: Floats) -> float:
        with self._round():
            self._add_slot()
            s, c = self._memory.state, self._memory.settings
            t, X, moved = self.rounds + 1, gram(instance), {}
            for level in np.flatnonzero(s.born):
                if s.born[level] + 2**level > t + 1:  # its interval goes on
                    values, V = self._diagonalise(s.points[level] + c.steps[level] * X)
                    s.clock[PROJECTIONS] += 1
                    sigma = np.empty_like(values)
                    cap(values, self.rank, sigma)
                    moved[level] = assemble(sigma, V)  # (1)
            loss = loss_at(s.P, instance)
            for level in np.flatnonzero(s.born):
                c.losses[level] = -np.vdot(s.points[level] - s.P, X)  # (2)
            for level, point in moved.items():
                s.points[level] = point
            self._begin_round(self._memory.handle, s, t + 1)
        return loss
