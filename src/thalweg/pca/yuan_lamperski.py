"""Online PCA by matrix exponentiated gradients with a fixed share (Yuan, Lamperski, ICML 2019, Algorithm 4).

m = d - k. W_t, with eigenvalues in (0, 1/m] that sum to 1, describes the complement: the mean projection is I - m W_t.

    V_{t+1} = exp(ln W_t - eta X_t/G)/trace(..)                                                              (1)
    its eigenvalues v_i become (1 - alpha) v_i + alpha/d                                                     (2)
    W_{t+1}: of these, the fewest largest ones set to 1/m and the others scaled up such that none exceeds it (3)

alpha = 1/(T m + 1), D_0 = m ln(d (1 + m T)) + 1, eta = ln(1 + sqrt(2 D_0/L_0)), where L_0 is at least the comparator's
loss on any interval, in units of G. Regret O(sqrt(L_0 D_0) + D_0) on every interval: of order sqrt(T) also on short
ones, where that says nothing (weakly adaptive). 1 eigendecomposition a round: that of (1), whose eigenvectors are those
of W_{t+1}.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from thalweg._core.memory import Fixed
from thalweg._core.rules import counter_field, shares, within_bounds
from thalweg._core.state import Past, Plan, field
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_count, check_positive
from thalweg._kernels.clock import FRESH
from thalweg.pca._base import PCALearner, gram, loss_at, orthonormal, seed_field, symmetric

__all__ = ["WeightedState", "YuanLamperskiPCA"]


class WeightedState(NamedTuple):
    """The eigenvectors of W_t and their weights."""

    A: Floats = field("d d", called="decision")  # the exponent of (1), then its eigenvectors in rows
    weights: Floats = field("d")
    seed: Ints = seed_field()
    clock: Ints = counter_field()


class YuanLamperskiPCA(PCALearner):
    """Exponentiated gradients with a fixed share: regret O(sqrt(T)) on every interval.

    Parameters
    ----------
    dim, rank, gradient_bound, rng
        As for `EfficientPCA`.
    horizon : int
        T.
    loss_bound : float, optional
        At least the loss of the best projection on any interval; G T when left out, which is right for vectors.

    Notes
    -----
    The source takes two eigendecompositions a round, one for ln W and one for exp; here the eigenvectors of W are kept
    from the round before. Its equation for (3) sums over one index too many; Warmuth and Kuzmin (JMLR 2008) have it
    right.

    Examples
    --------
    >>> import thalweg.pca
    >>> learner = thalweg.pca.YuanLamperskiPCA(dim=4, rank=1, horizon=100, rng=0)
    >>> learner.update([1.0, 0.0, 0.0, 0.0])
    0.75
    >>> learner.decision.diagonal().round(3)
    array([0.499, 0.167, 0.167, 0.167])

    References
    ----------
    J. Yuan, A. Lamperski, Online adaptive principal component analysis and its extensions, ICML 2019.
    """

    def __init__(
        self,
        dim: int,
        rank: int,
        horizon: int,
        *,
        gradient_bound: float = 1.0,
        loss_bound: float | None = None,
        rng: np.random.Generator | int | None = None,
    ) -> None:
        name = "YuanLamperskiPCA"
        T = check_count(name, "horizon", horizon)
        super().__init__(dim, rank, gradient_bound=gradient_bound, rng=rng, horizon=T)
        d, m, G = self.dim, self.dim - self.rank, self.gradient_bound
        self.loss_bound = None if loss_bound is None else check_positive(name, "loss_bound", loss_bound)
        L = T if self.loss_bound is None else self.loss_bound / G
        self.share = 1 / (T * m + 1)
        self.rate = math.log1p(math.sqrt(2 * (m * math.log(d * (1 + m * T)) + 1) / L))
        # the first A = 0 is ln W_1 up to a multiple of I, which (1) removes
        self._allocate(Fixed(Plan(WeightedState, (), {"d": d}, holds=self._holds, begin=self._begin)))

    def _holds(self, s: WeightedState, c: object, past: Past) -> Iterator[tuple[str, bool]]:
        yield from super()._holds(s, c, past)
        w, least = s.weights, self.share / self.dim
        if s.clock[FRESH]:
            yield "eigenvectors", orthonormal(s.A)
            yield "weights", within_bounds(w, least * (1 - 1e-6), 1 / (self.dim - self.rank)) and shares(w, w > 0)
            yield "weights", bool((np.diff(w) <= 0).all())
        else:
            yield "decision", symmetric(s.A, math.sqrt(self.dim) * (self.rate - math.log(least)))

    def _spectrum(self) -> tuple[Floats, Floats]:
        s: WeightedState = self._refreshed(self._project)
        return np.clip(1 - (self.dim - self.rank) * s.weights, 0.0, 1.0), s.A

    def _project(self, s: WeightedState) -> None:
        logs, V = self._diagonalise(s.A.copy())
        s.A[...] = V[::-1]  # W's largest weights first: the complement
        v = np.exp(logs[::-1] - logs[-1])
        w = (1 - self.share) * v / v.sum() + self.share / self.dim  # (1), (2)
        s.weights[:] = capped(w, 1 / (self.dim - self.rank))  # (3)

    def _learn(self, instance: Floats) -> float:
        with self._round():
            P, s = self.decision, self._memory.state
            scaled = self.rate / self.gradient_bound * gram(instance)
            exponent = (s.A.T * np.log(s.weights)) @ s.A - scaled  # w > 0, by (2)
            s.A[...] = 0.5 * (exponent + exponent.T)
        return loss_at(P, instance)


def capped(w: Floats, cap: float) -> Floats:
    """The fewest largest entries set to `cap`, the others scaled by one factor to keep the sum of 1; w descends.

    The others are scaled up, so one more may exceed the cap: then it is set to it too.
    """
    tails = np.cumsum(w[::-1])[::-1]  # w_i + w_{i+1} + ..
    for i in range(w.size):
        factor = (1 - i * cap) / tails[i]  # tails > 0
        if factor * w[i] <= cap * (1 + 1e-15):
            break
    out = factor * w
    out[:i] = cap
    bounded: Floats = np.minimum(out, cap)
    return bounded
