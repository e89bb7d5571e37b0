"""Gradient descent on the Fantope F (Nie, Kotłowski, Warmuth, JMLR 2016, equation 2.5): the static method.

    P_1 = (k/d) I,    P_{t+1} = Pi_F(P_t + s X_t)                                                (1)

With ||X_t||_F <= G and s = sqrt(k (d - k)/(d T))/G, expected regret against the best fixed projection is at most
G sqrt(k (d - k) T/d). After a change it can be as large on far fewer rounds. 1 eigendecomposition a round.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thalweg._kernels import pca as kernels
from thalweg._kernels.clock import FRESH
from thalweg._types import Array
from thalweg._validate import check_count, check_positive
from thalweg.pca._base import PCALearner, gram, loss_at, orthonormal, symmetric
from thalweg.pca.guarantee import step_size as tuned

__all__ = ["DescentPCA"]


class DescentPCA(PCALearner):
    """Online PCA by gradient descent with one step size: for a world that stands still.

    Parameters
    ----------
    dim, rank, gradient_bound, rng
        As for `EfficientPCA`.
    horizon : int
        T.
    step_size : float, optional
        s; sqrt(k (d - k)/(d T))/G when left out.

    Notes
    -----
    The source prints the step without the root.

    Examples
    --------
    >>> import thalweg.pca
    >>> learner = thalweg.pca.DescentPCA(dim=4, rank=1, horizon=100, rng=0)
    >>> learner.update([1.0, 0.0, 0.0, 0.0])
    0.75
    >>> learner.decision.diagonal().round(3)
    array([0.315, 0.228, 0.228, 0.228])

    References
    ----------
    J. Nie, W. Kotłowski, M. K. Warmuth, Online PCA with optimal regret, JMLR 17, 2016.
    """

    def __init__(
        self,
        dim: int,
        rank: int,
        horizon: int,
        *,
        gradient_bound: float = 1.0,
        step_size: float | None = None,
        rng: np.random.Generator | int | None = None,
    ) -> None:
        T = check_count("DescentPCA", "horizon", horizon)
        super().__init__(dim, rank, gradient_bound=gradient_bound, rng=rng, horizon=T)
        if step_size is None:
            self.step_size = tuned(self.dim, self.rank, self.gradient_bound, T)
        else:
            self.step_size = check_positive("DescentPCA", "step_size", step_size)
        d = self.dim
        self._arrays |= {"A": np.empty((d, d)), "spectrum": np.empty(d)}  # P_t unprojected, then its eigenvectors
        self._restart()

    def _restart(self) -> None:
        self._arrays["A"][...] = self.domain.center
        self._arrays["spectrum"][:] = 0.0

    def _look(self, read: dict[str, NDArray[Any]]) -> Iterator[tuple[str, bool]]:
        yield from super()._look(read)
        A, far = read["A"], np.sqrt(self.rank) + self.step_size * self.gradient_bound
        yield "decision", orthonormal(A) if read["clock"][FRESH] else symmetric(A, far)

    def _spectrum(self) -> tuple[Array, Array]:
        self._freshen(self._project)
        return self._arrays["spectrum"], self._arrays["A"]

    def _project(self) -> None:
        a = self._arrays
        values, a["A"] = self._diagonalise(a["A"].copy())
        kernels.cap(values, self.rank, a["spectrum"])

    def _learn(self, instance: Array) -> float:
        P = self.decision
        np.add(P, self.step_size * gram(instance), out=self._arrays["A"])  # (1), projected when it is asked for
        return loss_at(P, instance)
