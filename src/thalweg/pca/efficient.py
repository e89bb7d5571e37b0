"""Online PCA with small regret on every interval: Algorithm 5 of Zhao, Xie, Zhang, Zhou (JMLR 26, 2025), corrected.

F is the Fantope {0 <= P <= I, trace P = k}, Y a Frobenius ball of radius R around it, ||X_t||_F <= G. Expert i lives
in the rounds i, .., i + lowbit(i) - 1 (compact geometric cover). In round t, with A_t those alive:

    P_t = Pi_F(Y_t);  play a projection drawn with mean P_t              the only eigendecomposition              (1)
    V_t = (Y_t - P_t)/||Y_t - P_t||_F;   H_t = -X_t - min(0, -trace(X_t V_t)) V_t                                 (2)
    r_{t,i} = trace(H_t (Y_t - Y_{t,i}))/(2GR), i in A_t;   Adapt-ML-Prod updates w_i and eta_i (Algorithm 2)     (3)
    Y_{t+1,i} = Pi_Y(Y_{t,i} - s_i H_t),   s_i = sqrt(k (d - k)/(d lowbit(i)))/G                     a rescale    (4)
    experts whose interval ends at t leave; expert t + 1 starts at (k/d) I                                        (5)
    Y_{t+1} = sum_i p_{t+1,i} Y_{t+1,i},   p_{t+1,i} ~ eta_i w_i,   i in A_{t+1}                                  (6)

Expected regret O(sqrt(k |I| log T)) on every interval I against the best projection of that interval (Theorem 7);
`regret_bound` has all constants. 1 eigendecomposition a round, popcount(t) <= log2(t) + 1 experts alive.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thalweg._kernels import pca as kernels
from thalweg._kernels.clock import FRESH
from thalweg._kernels.pca import PackedSettings, PackedState
from thalweg._sound import within
from thalweg._types import Array
from thalweg._validate import wrong
from thalweg.domains import Ball, Domain
from thalweg.errors import InputError
from thalweg.metas import AdaptMLProd
from thalweg.pca import guarantee
from thalweg.pca._base import close, orthonormal
from thalweg.pca._levels import LEVELS, CoverPCA

__all__ = ["EfficientPCA"]


class EfficientPCA(CoverPCA):
    """Follow a subspace that drifts or jumps: small regret on every interval, one eigendecomposition a round.

    Section 5.2 of the paper of `thalweg.EfficientDynamic`.

    Parameters
    ----------
    dim : int
        d.
    rank : int
        k, from 1 to d - 1. Above d/2 a `RankWarning` says what changes.
    gradient_bound : float
        G with ||X_t||_F <= G, the length of the gradient -X_t; for vectors, ||x_t||^2 <= G. A larger one is refused.
    surrogate : Ball, optional
        Y. Left out: the smallest ball around the Fantope, with centre (k/d) I and R = sqrt(k (d - k)/d). The paper's is
        `Ball((d, d), radius=sqrt(k))`.
    rng : Generator or int, optional
        Randomness of the drawn projections: one number is taken from it. A clone has the same and draws the same.

    Notes
    -----
    Deviations from the printed box, all needed by its proof: V_t points from the set to Y_t, the steps have a root, an
    expert is rescaled by its own norm, all experts start at (k/d) I, and the first exists before the first round.

    The decision is diagonalised when it is asked for, so T rounds cost exactly T eigendecompositions. Symmetric
    matrices are kept packed, d (d + 1)/2 numbers each: with log2(t) + 1 levels, (levels/2 + 6) d^2 numbers in all.

    In the rounds 2, 4, 8, .. all experts are new, so everything is learned anew; that is the cover's doing.

    Examples
    --------
    >>> import numpy as np, thalweg.pca
    >>> learner = thalweg.pca.EfficientPCA(dim=5, rank=2, rng=0)
    >>> x = np.array([0.6, 0.8, 0.0, 0.0, 0.0])
    >>> learner.components.shape, learner.transform(x).shape           # k orthonormal rows, k coordinates
    ((2, 5), (2,))
    >>> losses = [learner.update(x) for _ in range(40)]
    >>> round(losses[0], 3), bool(losses[-1] < 0.1)
    (0.6, True)
    >>> learner.eigendecompositions
    40
    """

    def __init__(
        self,
        dim: int,
        rank: int,
        *,
        gradient_bound: float = 1.0,
        surrogate: Domain | None = None,
        rng: np.random.Generator | int | None = None,
    ) -> None:
        super().__init__(dim, rank, gradient_bound=gradient_bound, rng=rng)
        d, k = self.dim, self.rank
        self.surrogate = self.domain._enclosing_ball() if surrogate is None else _ball(surrogate, d, k)
        n = d * (d + 1) // 2
        self._meta = AdaptMLProd(1.0)  # (3), of losses in units of 2 G R
        self._start, self._center = np.empty(n), np.empty(n)
        kernels.pack(k / d * np.eye(d) - self.surrogate.center, self._start)
        kernels.pack(np.array(self.surrogate.center), self._center)
        self._scratch = {"h": np.empty(n), "v": np.empty(n), "work": np.empty(2 * d * ((d + k) // 2))}
        self._shape(LEVELS)
        self._restart()

    def _build(self, K: int) -> tuple[PackedState, PackedSettings]:
        d, n = self.dim, self._start.size
        meta, meta_settings = AdaptMLProd.assemble([self._meta], [K])
        state = PackedState(
            Z=np.zeros((K, n)),
            scale=np.zeros(K),
            meta=meta,
            born=np.zeros(K, dtype=np.int64),
            weights=np.zeros(K),
            y=np.zeros(n),
            values=np.zeros(d),
            spectrum=np.zeros(d),
            A=np.zeros((d, d)),
            seed=self._seed,
            clock=self._clock,
        )
        settings = PackedSettings(
            meta=meta_settings,
            steps=self._steps(K),
            start=self._start,
            center=self._center,
            radius=self.surrogate.radius,
            span=2 * self.gradient_bound * self.surrogate.radius,
            tol=self.domain.tolerance,
            losses=np.zeros(K),
            **self._scratch,
        )
        return state, settings

    def _begin_first(self) -> None:
        kernels.begin(self._handle)

    def _look_at(self, s: PackedState, c: PackedSettings, alive: NDArray[np.bool_]) -> Iterator[tuple[str, bool]]:
        R, Z, scale = c.radius, s.Z[alive], s.scale[alive]
        sizes, far = np.linalg.norm(Z, axis=1), c.steps[alive] * self.gradient_bound
        yield "experts' points", within(scale, 0.0, 1.0) and within(sizes, 0.0, R + far)
        yield "experts' points", within(scale * sizes, 0.0, R)
        yield "decision", close(s.y, (s.weights[alive] * scale) @ Z, R)  # (6)
        Y = np.empty((self.dim, self.dim))
        kernels.unpack(c.center, s.y, Y)
        Y = np.tril(Y) + np.tril(Y, -1).T
        size = R + float(np.linalg.norm(c.center))
        if not s.clock[FRESH]:
            yield "matrix to diagonalise", close(np.tril(s.A), np.tril(Y), size)
            return
        yield "eigenvectors", orthonormal(s.A) and close((s.A.T * s.values) @ s.A, Y, size)
        spectrum = np.empty(self.dim)
        kernels.cap(np.sort(s.values), self.rank, spectrum)
        yield "eigenvalues", bool((np.diff(s.values) >= 0).all()) and close(spectrum, s.spectrum)  # (1)

    # ------------------------------------------------------------------ a round

    def _spectrum(self) -> tuple[Array, Array]:
        s = self._parts[0]
        if not self._clock[FRESH]:
            kernels.settle(self._handle, self.rank, *self._diagonalise(s.A.copy()))  # (1)
        return s.spectrum, s.A

    def _round(self, instance: Array) -> float:
        self._spectrum()
        self._shown = None  # before the state moves, which it does in one kernel: nothing comes between
        if not self._full:
            return self._learn(instance)
        with self._all_or_nothing():
            self._make_room()
            return self._learn(instance)

    def _learn(self, instance: Array) -> float:
        if instance.ndim == 1:
            trace = float(instance.dot(instance))
            kernels.pack_vector(instance, -1.0, self._scratch["h"])
        else:
            trace = float(instance.trace())
            kernels.pack(-instance, self._scratch["h"])
        return trace + float(kernels.play_round(self._handle))  # (2) - (6)

    # ------------------------------------------------------------------ what it tells

    def regret_bound(self, start: int, stop: int) -> float:
        """The most expected regret on rounds [start, stop), counted from 0, that the theory allows on any stream.

        See `thalweg.pca.guarantee` for where the constants come from.
        """
        return guarantee.interval_bound(start, stop, self.dim, self.rank, self.gradient_bound, self.surrogate.radius)


def _ball(surrogate: Any, d: int, k: int) -> Ball:
    """A ball of symmetric matrices that contains the Fantope, or an error.

    The projections P farthest from the centre C are those with the least trace(P C): ||P - C||^2 = k - 2 trace(P C) +
    ||C||^2, and trace(P C) is at least the sum of the k smallest eigenvalues of C.
    """
    if not isinstance(surrogate, Ball) or surrogate.shape != (d, d):
        raise wrong("EfficientPCA", "surrogate", f"a thalweg Ball of shape ({d}, {d})", surrogate)
    C = surrogate.center
    if not np.array_equal(C, C.T):
        raise InputError("The 'surrogate' parameter of EfficientPCA must have a symmetric matrix as its centre.")
    least = float(np.linalg.eigvalsh(C)[:k].sum())
    farthest = math.sqrt(max(k - 2 * least + float(np.sum(C * C)), 0.0))
    if farthest > surrogate.radius * (1 + 1e-9):
        raise InputError(
            f"The 'surrogate' parameter of EfficientPCA must contain all projections of rank {k}; some lie "
            f"{farthest:g} from its centre. Got {surrogate!r}. Leave it out for the smallest such ball."
        )
    return surrogate
