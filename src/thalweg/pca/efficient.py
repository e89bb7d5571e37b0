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

Matrices are packed (`thalweg._kernels.pca`). A pass over an expert reads it, scores it, moves it and measures its new
norm. The rescale onto the ball costs no pass of its own: the factor is kept in `scale` and applied when the expert is
next read. That is why this loop is not made of the shared parts: `Cover` inside `OneProjection` plays the same rounds
on whole matrices, and takes 60 us a round against 18 at d = 5, 325 against 243 at d = 50 (eigendecomposition included,
1023 and 511 rounds).
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from thalweg._core.rules import counter_field, within_bounds
from thalweg._core.state import Past, Plan, field, part, scratch
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import wrong
from thalweg._kernels.clock import FRESH, GRADIENTS, PROJECTIONS, ROUNDS
from thalweg._kernels.covers import slots_in_use
from thalweg._kernels.handle import AnyHandle, bind, parts
from thalweg._kernels.jit import inner, kernel
from thalweg._kernels.parts import feed, weigh
from thalweg._kernels.pca import cap, pack, pack_vector, thin, unpack
from thalweg._kernels.vectors import copy
from thalweg.domains._base import Domain
from thalweg.domains.ball import Ball
from thalweg.errors import InputError
from thalweg.metas.adapt_ml_prod import AdaptMLProd, AdaptMLProdSettings, AdaptMLProdState
from thalweg.pca import guarantee
from thalweg.pca._base import close, orthonormal, seed_field
from thalweg.pca._levels import CoverPCA, LevelsLayout, enter

__all__ = ["EfficientPCA", "PackedSettings", "PackedState"]


class PackedState(NamedTuple):
    """K slots, one for each level of the compact cover; C is the centre of the ball Y."""

    Z: Floats = field("K n")  # the point of expert k is C + scale_k Z_k
    scale: Floats = field("K")
    meta: AdaptMLProdState = part()  # one group of K members
    born: Ints = field("K", called="births")  # the round in which each expert started; 0: the slot is empty
    weights: Floats = field("K")  # p
    y: Floats = field("n", called="decision")  # sum_k p_k scale_k Z_k: the combination is C + y
    values: Floats = field("d")  # eigenvalues of C + y,
    spectrum: Floats = field("d")  # and of the decision
    A: Floats = field("d d")  # the lower triangle of C + y, then its eigenvectors in rows
    seed: Ints = seed_field()
    clock: Ints = counter_field()  # `thalweg._kernels.clock`


class PackedSettings(NamedTuple):
    """Constants and scratch space."""

    steps: Floats  # (K,) by level
    start: Floats  # (n,) an expert starts at C + start
    center: Floats  # (n,) C
    radius: float
    span: float  # 2 G R: losses are fed in units of it, so the range of the meta-learner is 1
    tol: float  # a projection that moves less than this is none
    meta: AdaptMLProdSettings = part()
    h: Floats = scratch("n")
    v: Floats = scratch("n")
    losses: Floats = scratch("K")
    work: Floats = scratch("w")  # w = 2 d (d + k)/2


# --------------------------------------------------------------------------------------------------------------- rounds


@inner
def _begin(s: PackedState, c: PackedSettings, t: int) -> None:
    """Round t begins, from the weights to the matrix to be diagonalised."""
    newest = enter(s, c, t)
    copy(c.start, s.Z[newest])
    s.scale[newest] = 1.0
    K = slots_in_use(t)
    weigh(s.meta, c.meta, 0, K, s.born, s.weights)
    s.y[:] = 0.0
    for k in range(K):
        if s.born[k] > 0:
            share = s.weights[k] * s.scale[k]
            for j in range(s.y.shape[0]):
                s.y[j] += share * s.Z[k, j]
    unpack(c.center, s.y, s.A)


@kernel
def begin(handle: AnyHandle) -> None:
    """The first round begins."""
    s, c = parts(handle)
    _begin(s, c, 1)


@inner
def _surrogate_gradient(s: PackedState, c: PackedSettings, direct: bool, shift: float) -> float:
    """h <- h - min(0, <h, V>) V, packed, with V = (Y - P)/||Y - P|| and Y = C + y; returns <h, Y - P> before.

    A is Y - P - shift I (direct), or P. Overwrites h and v.
    """
    h, v, n = c.h, c.v, c.h.shape[0]
    pack(s.A, v)
    at = -1
    for i in range(s.A.shape[0]):
        at += i + 1
        v[at] += shift
    gap, along = 0.0, 0.0
    for j in range(n):
        away = v[j] if direct else c.center[j] + s.y[j] - v[j]
        gap += away * away
        along += h[j] * away
        v[j] = away
    if along < 0.0 and gap > c.tol * c.tol:
        factor = along / gap  # gap > 0
        for j in range(n):
            h[j] -= factor * v[j]
    return along


@kernel
def take_decomposition(handle: AnyHandle, rank: int, values: np.ndarray, V: np.ndarray) -> None:
    """Take over the eigendecomposition of C + y: A <- V, its eigenvectors in rows, and the decision's spectrum."""
    s, _ = parts(handle)
    copy(values, s.values)
    for i in range(V.shape[0]):
        copy(V[i], s.A[i])
    cap(s.values, rank, s.spectrum)
    s.clock[PROJECTIONS] += 1
    s.clock[FRESH] = 1


@kernel
def play_round(handle: AnyHandle) -> float:
    """A round of Algorithm 5, from the packed gradient h = -X to the next combination y. Returns <h, P>.

    The rows of A (d, d) are the eigenvectors of C + y and of the decision P, `values` and `spectrum` their eigenvalues.
    Then the lower triangle of A is the next C + y.
    """
    s, c = parts(handle)
    direct, shift = thin(s.values, s.spectrum, s.A, c.work, s.A)
    h, n, t = c.h, c.h.shape[0], s.clock[ROUNDS] + 1
    K = slots_in_use(t)
    gained = 0.0
    for j in range(n):
        gained += h[j] * (c.center[j] + s.y[j])
    gained -= _surrogate_gradient(s, c, direct, shift)
    paid = 0.0
    for j in range(n):
        paid += h[j] * s.y[j]
    for k in range(K):
        if s.born[k] == 0:
            continue
        a, eta, score, square = s.scale[k], c.steps[k], 0.0, 0.0
        for j in range(n):
            z = a * s.Z[k, j]
            score += h[j] * z
            z -= eta * h[j]
            square += z * z
            s.Z[k, j] = z
        c.losses[k] = (score - paid) / c.span
        s.scale[k] = c.radius / np.sqrt(square) if square > c.radius * c.radius else 1.0
    feed(s.meta, c.meta, 0, K, s.born, 0.0, c.losses, 0.0)
    _begin(s, c, t + 1)
    s.clock[ROUNDS] += 1
    s.clock[GRADIENTS] += 1
    s.clock[FRESH] = 0
    return gained


# -------------------------------------------------------------------------------------------------------------- learner


class EfficientPCA(CoverPCA):
    """Follow a subspace that drifts or jumps: small regret on every interval, one eigendecomposition a round.

    Section 5.2 of the paper of `thalweg.EfficientDynamic`.

    Parameters
    ----------
    dim : int
        d.
    rank : int
        k, from 1 to d - 1. Above d/2 a `RankWarning` states the other bound.
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

    In the rounds 2, 4, 8, .. all experts are new, so learning restarts there; that is the cover's doing.

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
        self._start, self._center = np.empty(n), np.empty(n)
        pack(k / d * np.eye(d) - self.surrogate.center, self._start)
        pack(np.array(self.surrogate.center), self._center)
        self._allocate(LevelsLayout(self._plan))

    def _plan(self, K: int) -> Plan:
        d, n, R = self.dim, self._start.size, self.surrogate.radius
        span = 2 * self.gradient_bound * R
        return Plan(
            PackedState,
            PackedSettings(self._steps(K), self._start, self._center, R, span, self.domain.tolerance),
            sizes={"K": K, "n": n, "d": d, "w": 2 * d * ((d + self.rank) // 2)},
            parts={"meta": AdaptMLProd.plan([AdaptMLProd(1.0)], [K])},  # (3), of losses in units of 2 G R
            holds=self._holds,
            pasts=self._pasts,
            begin=self._begin,
        )

    def _begin(self, s: PackedState, c: PackedSettings) -> None:
        super()._begin(s, c)
        begin(bind((s, c)))

    def _holds(self, s: PackedState, c: PackedSettings, past: Past) -> Iterator[tuple[str, bool]]:
        yield from super()._holds(s, c, past)
        alive, R = s.born > 0, c.radius
        Z, scale = s.Z[alive], s.scale[alive]
        sizes, far = np.linalg.norm(Z, axis=1), c.steps[alive] * self.gradient_bound
        yield "experts' points", within_bounds(scale, 0.0, 1.0) and within_bounds(sizes, 0.0, R + far)
        yield "experts' points", within_bounds(scale * sizes, 0.0, R)
        yield "decision", close(s.y, (s.weights[alive] * scale) @ Z, R)  # (6)
        Y = np.empty((self.dim, self.dim))
        unpack(c.center, s.y, Y)
        Y = np.tril(Y) + np.tril(Y, -1).T
        size = R + float(np.linalg.norm(c.center))
        if not s.clock[FRESH]:
            yield "matrix to diagonalise", close(np.tril(s.A), np.tril(Y), size)
            return
        yield "eigenvectors", orthonormal(s.A) and close((s.A.T * s.values) @ s.A, Y, size)
        spectrum = np.empty(self.dim)
        cap(np.sort(s.values), self.rank, spectrum)
        yield "eigenvalues", bool((np.diff(s.values) >= 0).all()) and close(spectrum, s.spectrum)  # (1)

    # ------------------------------------------------------------------ a round

    def _spectrum(self) -> tuple[Floats, Floats]:
        s = self._memory.state
        if not s.clock[FRESH]:
            take_decomposition(self._memory.handle, self.rank, *self._diagonalise(s.A.copy()))  # (1)
        return s.spectrum, s.A

    def _learn(self, instance: Floats) -> float:
        self._spectrum()
        self._shown = None  # before the state moves, which it does in one kernel: nothing comes between
        if not self._full:
            return self._play(instance)
        with self._memory.all_or_nothing():
            self._add_slot()
            return self._play(instance)

    def _play(self, instance: Floats) -> float:
        memory = self._memory
        if instance.ndim == 1:
            trace = float(instance.dot(instance))
            pack_vector(instance, -1.0, memory.settings.h)
        else:
            trace = float(instance.trace())
            pack(-instance, memory.settings.h)
        call = memory.call(play_round)
        return trace + float(call.entry.read(call.run()))  # (2) - (6)

    # ------------------------------------------------------------------ inspection

    def regret_bound(self, start: int, stop: int) -> float:
        """The most expected regret on rounds [start, stop), counted from 0, that the theory allows on any stream.

        See `thalweg.pca.guarantee` for where the constants come from.
        """
        return guarantee.interval_bound(start, stop, self.dim, self.rank, self.gradient_bound, self.surrogate.radius)


def _ball(surrogate: object, d: int, k: int) -> Ball:
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
