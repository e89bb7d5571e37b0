"""Strongly adaptive online PCA with a projection for every expert: what `EfficientPCA` does with one.

Expert i lives in the rounds i, .., i + lowbit(i) - 1, starts at (k/d) I and runs gradient descent on the Fantope F:

    P_{t+1,i} = Pi_F(P_{t,i} + s_i X_t),   s_i = sqrt(k (d - k)/(d lowbit(i)))/G                   (1)
    r_{t,i} = <X_t, P_{t,i} - P_t>/(G D), D = sqrt(2 min(k, d - k)); Adapt-ML-Prod, as in Algorithm 2    (2)
    P_t = sum_i p_{t,i} P_{t,i},   i alive in round t                                              (3)

popcount(t) experts are alive in round t. All but the newborn, whose place is known, take an eigendecomposition. One
more is needed for `projection`, if it is asked for: a mixture of experts has an eigenbasis of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thalweg._kernels import pca as kernels
from thalweg._kernels.clock import FRESH
from thalweg._kernels.covers import COMPACT, place_marker
from thalweg._kernels.sleeping import ADAPT_ML_PROD, admit, reweigh, weigh
from thalweg.pca._base import assemble, gram, loss_at
from thalweg.pca._levels import CoverPCA

__all__ = ["AdaptivePCA"]

Array = NDArray[np.float64]


class AdaptivePCA(CoverPCA):
    """Small regret on every interval, at the cost of an eigendecomposition for every expert alive.

    Parameters
    ----------
    dim, rank, instance_bound, rng
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
        self,
        dim: int,
        rank: int,
        *,
        instance_bound: float = 1.0,
        rng: np.random.Generator | int | None = None,
    ) -> None:
        super().__init__(dim, rank, instance_bound=instance_bound, rng=rng)
        self._range = self.instance_bound * self.domain.diameter
        self._shape_state()
        self._restart()

    def _layout(self, K: int) -> dict[str, NDArray[Any]]:
        d = self.dim
        return {
            "points": np.zeros((K, d, d)),
            "meta": np.zeros((K, 4)),
            "born": np.zeros(K, dtype=np.int64),
            "weights": np.zeros(K),
            "P": np.zeros((d, d)),
            "spectrum": np.zeros(d),
            "basis": np.zeros((d, d)),
        }

    def _restart(self) -> None:
        self._clear()
        self._begin(1)

    def _begin(self, t: int) -> None:
        """Round t begins: who leaves, who starts, how much they count, where they stand together."""
        a = self._arrays
        newest = place_marker(COMPACT, t, a["born"])
        a["points"][newest] = self.domain.center
        admit(ADAPT_ML_PROD, a["meta"], newest, t, 1.0)
        weigh(ADAPT_ML_PROD, a["meta"], a["born"], a["weights"])
        a["P"][...] = 0.0
        for level in np.flatnonzero(a["born"]):
            a["P"] += a["weights"][level] * a["points"][level]  # (3)

    def _spectrum(self) -> tuple[Array, Array]:
        a = self._arrays
        if not self._clock[FRESH]:
            values, a["basis"] = self._diagonalise(a["P"].copy())
            kernels.cap(values, self.rank, a["spectrum"])  # P is in the Fantope: this only removes rounding
            self._clock[FRESH] = 1
        return a["spectrum"], a["basis"]

    def _propose(self) -> Array:
        return self._arrays["P"].ravel().copy()  # no eigenbasis is needed for it

    def _learn(self, instance: Array) -> float:
        self._make_room()
        a, t, X = self._arrays, self.rounds + 1, gram(instance)
        P, r, moved = a["P"], self._r, {}
        for level in np.flatnonzero(a["born"]):
            point = a["points"][level]
            r[level] = np.vdot(point - P, X) / self._range  # (2)
            if a["born"][level] + 2**level > t + 1:  # its interval goes on
                values, V = self._diagonalise(point + self._steps[level] * X)
                s = np.empty_like(values)
                kernels.cap(values, self.rank, s)
                moved[level] = assemble(s, V)  # (1)
        loss = loss_at(P, instance)
        for level, point in moved.items():
            a["points"][level] = point
        reweigh(ADAPT_ML_PROD, a["meta"], a["born"], r, 1.0, 1.0)
        self._begin(t + 1)
        return loss
