"""Strongly adaptive online PCA with a projection for every expert: what `EfficientPCA` does with one.

Expert i lives in the rounds i, .., i + lowbit(i) - 1, starts at (k/d) I and runs gradient descent on the Fantope F:

    P_{t+1,i} = Pi_F(P_{t,i} + s_i X_t),   s_i = sqrt(k (d - k)/(d lowbit(i)))/G                   (1)
    r_{t,i} = <X_t, P_{t,i} - P_t>/(G D), D = sqrt(2 min(k, d - k)); Adapt-ML-Prod, as in Algorithm 2    (2)
    P_t = sum_i p_{t,i} P_{t,i},   i alive in round t                                              (3)

popcount(t) experts are alive in round t. All but the newborn, whose place is known, take an eigendecomposition. One
more is needed for `projection`, if it is asked for: a mixture of experts has an eigenbasis of its own.
"""

import numpy as np

from thalweg._kernels import pca as kernels
from thalweg._kernels.clock import PROJECTIONS
from thalweg._kernels.pca import MatrixSettings, MatrixState
from thalweg._types import Array
from thalweg.metas import AdaptMLProd
from thalweg.pca._base import assemble, gram, loss_at
from thalweg.pca._levels import LEVELS, CoverPCA

__all__ = ["AdaptivePCA"]


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
        self._meta = AdaptMLProd(self.gradient_bound * self.domain.diameter)  # (2)
        self._shape(LEVELS)
        self._restart()

    def _build(self, K: int) -> tuple[MatrixState, MatrixSettings]:
        d = self.dim
        meta, meta_settings = AdaptMLProd.assemble([self._meta], [K])
        state = MatrixState(
            points=np.zeros((K, d, d)),
            meta=meta,
            born=np.zeros(K, dtype=np.int64),
            weights=np.zeros(K),
            P=np.zeros((d, d)),
            spectrum=np.zeros(d),
            basis=np.zeros((d, d)),
            seed=self._seed,
            clock=self._clock,
        )
        return state, MatrixSettings(meta_settings, self._steps(K), np.zeros(K))

    def _begin_first(self) -> None:
        self._begin(1)

    def _begin(self, t: int) -> None:
        """Round t begins: who leaves, who starts, how much they count, where they stand together."""
        s = self._parts[0]
        newest = kernels.reweigh(self._handle, t)
        s.points[newest] = self.domain.center
        s.P[...] = 0.0
        for level in np.flatnonzero(s.born):
            s.P[...] += s.weights[level] * s.points[level]  # (3)

    def _spectrum(self) -> tuple[Array, Array]:
        self._freshen(self._diagonalise_mixture)
        s = self._parts[0]
        return s.spectrum, s.basis

    def _diagonalise_mixture(self) -> None:
        s = self._parts[0]
        values, s.basis[...] = self._diagonalise(s.P.copy())
        kernels.cap(values, self.rank, s.spectrum)  # P is in the Fantope: this only removes rounding

    def _propose(self) -> Array:
        P: Array = self._parts[0].P
        return P.ravel().copy()  # no eigenbasis is needed for it

    def _learn(self, instance: Array) -> float:
        self._make_room()
        s, c = self._parts
        t, X, moved = self.rounds + 1, gram(instance), {}
        for level in np.flatnonzero(s.born):
            point = s.points[level]
            c.losses[level] = -np.vdot(point - s.P, X)  # (2)
            if s.born[level] + 2**level > t + 1:  # its interval goes on
                values, V = self._diagonalise(point + c.steps[level] * X)
                self._clock[PROJECTIONS] += 1
                sigma = np.empty_like(values)
                kernels.cap(values, self.rank, sigma)
                moved[level] = assemble(sigma, V)  # (1)
        loss = loss_at(s.P, instance)
        for level, point in moved.items():
            s.points[level] = point
        self._begin(t + 1)
        return loss
