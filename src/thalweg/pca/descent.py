"""Gradient descent on the Fantope F (Nie, Kotłowski, Warmuth, JMLR 2016, equation 2.5): the static method.

    P_1 = (k/d) I,    P_{t+1} = Pi_F(P_t + s X_t)                                                (1)

With ||X_t||_F <= G and s = sqrt(k (d - k)/(d T))/G, expected regret against the best fixed projection is at most
G sqrt(k (d - k) T/d). After a change it can be as large on far fewer rounds. 1 eigendecomposition a round.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from thalweg._core.memory import Fixed
from thalweg._core.rules import counter_field
from thalweg._core.state import Past, Plan, field
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_count, check_positive
from thalweg._kernels.clock import FRESH
from thalweg._kernels.pca import cap
from thalweg.pca._base import PCALearner, gram, loss_at, orthonormal, seed_field, symmetric
from thalweg.pca.guarantee import step_size as tuned

__all__ = ["DescentPCA", "DescentPCAState"]


class DescentPCAState(NamedTuple):
    """One matrix."""

    A: Floats = field("d d", called="decision")  # P_t before its projection, then its eigenvectors in rows
    spectrum: Floats = field("d")  # the eigenvalues of P_t
    seed: Ints = seed_field()
    clock: Ints = counter_field()


class DescentPCA(PCALearner):
    """Online PCA by gradient descent with one step size: for a world that does not change.

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
        plan = Plan(DescentPCAState, (), {"d": self.dim}, holds=self._holds, begin=self._begin)
        self._allocate(Fixed(plan))

    def _begin(self, s: DescentPCAState, c: object) -> None:
        super()._begin(s, c)
        s.A[...] = self.domain.center

    def _holds(self, s: DescentPCAState, c: object, past: Past) -> Iterator[tuple[str, bool]]:
        yield from super()._holds(s, c, past)
        far = float(np.sqrt(self.rank)) + self.step_size * self.gradient_bound
        yield "decision", orthonormal(s.A) if s.clock[FRESH] else symmetric(s.A, far)

    def _spectrum(self) -> tuple[Floats, Floats]:
        s: DescentPCAState = self._refreshed(self._project)
        return s.spectrum, s.A

    def _project(self, s: DescentPCAState) -> None:
        values, s.A[...] = self._diagonalise(s.A.copy())
        cap(values, self.rank, s.spectrum)

    def _learn(self, instance: Floats) -> float:
        with self._round():
            P = self.decision
            np.add(P, self.step_size * gram(instance), out=self._memory.state.A)  # (1), projected when it is asked for
        return loss_at(P, instance)
