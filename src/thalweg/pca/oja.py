"""Oja's rule with k neurons: stochastic gradient ascent on the captured energy, without a guarantee of regret.

    W_{t+1} = orthonormal basis of W_t + s X_t W_t                                                (1)

No eigendecomposition; a QR factorisation of a d x k matrix a round.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from thalweg._core.memory import Fixed
from thalweg._core.rules import counter_field
from thalweg._core.state import Past, Plan, field
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_positive
from thalweg.pca._base import PCALearner, gram, loss_at, orthonormal, seed_field

__all__ = ["OjaPCA", "OjaPCAState"]


class OjaPCAState(NamedTuple):
    """An orthonormal basis."""

    W: Floats = field("d k", called="basis")
    seed: Ints = seed_field()
    clock: Ints = counter_field()


class OjaPCA(PCALearner):
    """Oja's rule, popular in practice. It always plays a projection, so nothing is drawn.

    Parameters
    ----------
    dim, rank, gradient_bound
        As for `EfficientPCA`.
    step_size : float
        s, constant, so that the rule keeps following.
    rng : Generator or int, optional
        Randomness of the first projection.

    Examples
    --------
    >>> import thalweg.pca
    >>> learner = thalweg.pca.OjaPCA(dim=4, rank=1, step_size=0.5, rng=0)
    >>> paid = [learner.update([1.0, 0.0, 0.0, 0.0]) for _ in range(30)]
    >>> bool(paid[-1] < 1e-6)
    True

    References
    ----------
    E. Oja, Simplified neuron model as a principal component analyzer, Journal of Mathematical Biology 15, 1982.
    """

    anytime = True

    def __init__(
        self,
        dim: int,
        rank: int,
        *,
        step_size: float,
        gradient_bound: float = 1.0,
        rng: np.random.Generator | int | None = None,
    ) -> None:
        super().__init__(dim, rank, gradient_bound=gradient_bound, rng=rng)
        self.step_size = check_positive("OjaPCA", "step_size", step_size)
        sizes = {"d": self.dim, "k": self.rank}
        self._allocate(Fixed(Plan(OjaPCAState, (), sizes, holds=self._holds, begin=self._begin)))

    def _begin(self, s: OjaPCAState, c: object) -> None:
        super()._begin(s, c)
        s.W[...] = np.linalg.qr(np.random.default_rng(self._seed).standard_normal((self.dim, self.rank)))[0]

    def _holds(self, s: OjaPCAState, c: object, past: Past) -> Iterator[tuple[str, bool]]:
        yield from super()._holds(s, c, past)
        yield "basis", orthonormal(s.W.T)

    def _spectrum(self) -> tuple[Floats, Floats]:
        return np.ones(self.rank), self._memory.state.W.T

    def _learn(self, instance: Floats) -> float:
        with self._round():
            P, W = self.decision, self._memory.state.W
            moved = np.outer(instance, instance @ W) if instance.ndim == 1 else gram(instance) @ W
            W[...] = np.linalg.qr(W + self.step_size * moved)[0]  # (1)
        return loss_at(P, instance)
