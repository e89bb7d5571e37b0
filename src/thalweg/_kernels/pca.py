"""Online PCA: experts on a cover, as packed symmetric matrices, and the spectrum of a projection onto the Fantope.

A symmetric d x d matrix is packed row by row from its lower triangle, entries off the diagonal times sqrt 2. Packed
matrices are plain vectors of n = d (d + 1)/2 entries: their inner products and norms are Frobenius'.

A pass over an expert reads it, scores it, moves it and measures its new norm. The rescale onto the ball costs no pass
of its own: the factor is kept in `scale` and applied when the expert is next read. That is why this loop is not made of
the shared parts: `Cover` inside `OneProjection` plays the same rounds on whole matrices, and takes 60 us a round
against 18 at d = 5, 325 against 243 at d = 50 (eigendecomposition included, 1023 and 511 rounds).
"""

import math
from typing import Any, NamedTuple

import numpy as np

from thalweg._kernels.clock import FRESH, GRADIENTS, PROJECTIONS, ROUNDS
from thalweg._kernels.covers import COMPACT, place_marker, slots_in_use
from thalweg._kernels.handle import parts
from thalweg._kernels.jit import inner, kernel
from thalweg._kernels.parts import Floats, Ints, admit, feed, weigh
from thalweg._kernels.vectors import copy

__all__ = [
    "MatrixSettings",
    "MatrixState",
    "PackedSettings",
    "PackedState",
    "begin",
    "cap",
    "pack",
    "pack_vector",
    "play_round",
    "reweigh",
    "systematic",
    "thin",
    "unpack",
]

ROOT2 = math.sqrt(2.0)


class PackedState(NamedTuple):
    """K slots, one for each level of the compact cover; C is the centre of the ball Y."""

    Z: Floats  # (K, n) expert k stands at C + scale_k Z_k
    scale: Floats  # (K,)
    meta: Any  # one group of K members
    born: Ints  # (K,) the round in which each expert started; 0: the slot is empty
    weights: Floats  # (K,) p
    y: Floats  # (n,) sum_k p_k scale_k Z_k: the combination stands at C + y
    values: Floats  # (d,) eigenvalues of C + y,
    spectrum: Floats  # (d,) and of the decision
    A: Floats  # (d, d) the lower triangle of C + y, then its eigenvectors in rows
    seed: Ints  # (1,)
    clock: Ints  # `thalweg._kernels.clock`


class PackedSettings(NamedTuple):
    """What does not change, and scratch space."""

    meta: Any
    steps: Floats  # (K,) by level
    start: Floats  # (n,) an expert starts at C + start
    center: Floats  # (n,) C
    radius: float
    span: float  # 2 G R: losses are fed in units of it, so the range of the meta-learner is 1
    tol: float  # a projection that moves less than this is none
    h: Floats  # (n,) scratch
    v: Floats  # (n,) scratch
    losses: Floats  # (K,) scratch
    work: Floats  # 2 d (d + k)/2 numbers, scratch


class MatrixState(NamedTuple):
    """K slots, one for each level of the compact cover; experts are whole matrices of the Fantope."""

    points: Floats  # (K, d, d)
    meta: Any  # one group of K members
    born: Ints  # (K,) the round in which each expert started; 0: the slot is empty
    weights: Floats  # (K,) p
    P: Floats  # (d, d) the combination
    spectrum: Floats  # (d,) its eigenvalues,
    basis: Floats  # (d, d) and its eigenvectors in rows
    seed: Ints  # (1,)
    clock: Ints  # `thalweg._kernels.clock`


class MatrixSettings(NamedTuple):
    """What does not change, and scratch space."""

    meta: Any
    steps: Floats  # (K,) by level
    losses: Floats  # (K,) scratch


@kernel
def pack(A: np.ndarray, out: np.ndarray) -> None:
    """out <- the symmetric matrix A, packed; only its lower triangle is read. Overwrites out."""
    at = 0
    for i in range(A.shape[0]):
        for j in range(i):
            out[at + j] = ROOT2 * A[i, j]
        out[at + i] = A[i, i]
        at += i + 1


@kernel
def pack_vector(x: np.ndarray, factor: float, out: np.ndarray) -> None:
    """out <- factor x x', packed. Overwrites out."""
    at = 0
    for i in range(x.shape[0]):
        a = factor * x[i]
        for j in range(i):
            out[at + j] = ROOT2 * a * x[j]
        out[at + i] = a * x[i]
        at += i + 1


@kernel
def unpack(center: np.ndarray, y: np.ndarray, A: np.ndarray) -> None:
    """A <- the matrix packed in center + y, its lower triangle only. Overwrites A."""
    at = 0
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] = (center[at + j] + y[at + j]) * (1.0 / ROOT2)
        A[i, i] = center[at + i] + y[at + i]
        at += i + 1


@kernel
def cap(sigma: np.ndarray, total: int, out: np.ndarray) -> None:
    """out <- clip(sigma + shift, 0, 1), the shift such that the entries sum to `total` <= d; sigma ascends.

    As the shift grows, entries start to grow (at -sigma_i) and stop (at 1 - sigma_i), the largest first. Walk from
    corner to corner until the sum would pass `total`; there the first `stopped` of the largest are 1, those up to
    `started` lie between. Entries relative to that corner are small, so that large sigma lose nothing. Overwrites out.
    """
    d = sigma.shape[0]
    if total == d:
        out[:] = 1.0
        return
    started, stopped = 1, 0
    corner, reached = -sigma[d - 1], 0.0
    while True:
        start = -sigma[d - 1 - started] if started < d else np.inf
        stop = 1.0 - sigma[d - 1 - stopped]  # stopped < d: before that the sum reaches total < d
        gain = (started - stopped) * (min(start, stop) - corner)
        if not reached + gain < total or stopped == d - 1:  # or nan
            break
        reached += gain
        if start <= stop:
            corner = start
            started += 1
        else:
            corner = stop
            stopped += 1
    for i in range(d):
        out[i] = sigma[i] + corner  # in memory: re-ordered sums would lose what is small
    rest = float(total - stopped)
    for i in range(d - started, d - stopped):
        rest -= out[i]
    rest /= max(started - stopped, 1)
    for i in range(d):
        if i < d - started:
            out[i] = 0.0
        elif i >= d - stopped:
            out[i] = 1.0
        else:
            out[i] = min(max(out[i] + rest, 0.0), 1.0)


@kernel
def systematic(sigma: np.ndarray, u: float, chosen: np.ndarray) -> None:
    """chosen <- the indices i with a point of u, u + 1, .. in [c_{i-1}, c_i), c the sums of sigma. Overwrites chosen.

    sigma in [0, 1] sums to k, the length of `chosen`. Whatever the rounding, k different indices are chosen: where no
    more than k are left, they are taken.
    """
    k = chosen.shape[0]
    left = 0  # entries above zero that are still to come
    for i in range(sigma.shape[0]):
        left += 1 if sigma[i] > 0.0 else 0
    end = 0.0
    count = 0
    for i in range(sigma.shape[0]):
        if count == k:
            break
        if sigma[i] > 0.0:
            end += sigma[i]
            if u + count < end or left <= k - count:
                chosen[count] = i
                count += 1
            left -= 1


@inner
def _enter(s: Any, c: Any, t: int) -> int:
    """Round t begins: experts whose interval is over leave, one enters. Returns its slot; its place is still to set."""
    newest = place_marker(COMPACT, t, s.born)
    admit(s.meta, c.meta, 0, newest, t)
    return newest


@kernel
def reweigh(handle: Any, t: int) -> int:
    """Round t begins: feed what each expert lost, relative to the combination, in the round before; who leaves, enters.

    Returns the slot of the newborn. The first round has nothing to feed.
    """
    s, c = parts(handle)
    if t > 1:
        feed(s.meta, c.meta, 0, slots_in_use(t - 1), s.born, 0.0, c.losses, 0.0)
    newest = _enter(s, c, t)
    weigh(s.meta, c.meta, 0, s.born.shape[0], s.born, s.weights)
    return newest


@inner
def _begin(s: PackedState, c: PackedSettings, t: int) -> None:
    """Round t begins, from the weights to the matrix to be diagonalised."""
    newest = _enter(s, c, t)
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
def begin(handle: Any) -> None:
    """The first round begins."""
    s, c = parts(handle)
    _begin(s, c, 1)


@inner
def thin(values: np.ndarray, sigma: np.ndarray, V: np.ndarray, work: np.ndarray, M: np.ndarray) -> tuple[bool, float]:
    """M <- P, or Y - P up to a shift of its diagonal: whichever takes fewer eigenvectors.

    Y = V' diag(values) V and P = V' diag(sigma) V, sigma = clip(values + shift, 0, 1), both ascending. P needs the
    eigenvectors, the rows of V, with sigma > 0. Y - P + shift I needs those that were clipped: to 0 (first) and to 1
    (last). Returns whether it is the difference, and what to add to its diagonal. Overwrites work, of 2 d (d + k)/2
    entries, and M, which may be V itself.
    """
    d = sigma.shape[0]
    zeros, ones = 0, 0
    for i in range(d):
        zeros += 1 if sigma[i] == 0.0 else 0
        ones += 1 if sigma[i] == 1.0 else 0
    between = d - zeros - ones
    direct = zeros < between
    shift = values[zeros] - sigma[zeros] if direct else 0.0
    w = zeros + ones if direct else between + ones
    first = zeros if direct else 0  # rows up to here are taken,
    skipped = between if direct else zeros  # and so many after them left out
    left, right = work[: w * d], work[w * d : 2 * w * d]  # (w, d) each
    for c in range(w):
        i = c if c < first else c + skipped
        factor = values[i] - sigma[i] - shift if direct else sigma[i]
        for j in range(d):
            left[c * d + j] = factor * V[i, j]
            right[c * d + j] = V[i, j]
    for i in range(d):
        for j in range(d):
            M[i, j] = 0.0
        for c in range(w):
            factor = left[c * d + i]
            for j in range(d):
                M[i, j] += factor * right[c * d + j]
    return direct, shift


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
def settle(handle: Any, rank: int, values: np.ndarray, V: np.ndarray) -> None:
    """The eigendecomposition of C + y is taken over: A <- V, its eigenvectors in rows, and the decision's spectrum."""
    s, _ = parts(handle)
    copy(values, s.values)
    for i in range(V.shape[0]):
        copy(V[i], s.A[i])
    cap(s.values, rank, s.spectrum)
    s.clock[PROJECTIONS] += 1
    s.clock[FRESH] = 1


@kernel
def play_round(handle: Any) -> float:
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
