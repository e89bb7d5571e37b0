"""Online PCA: experts on a cover, as packed symmetric matrices, and the spectrum of a projection onto the Fantope.

A symmetric d x d matrix is packed row by row from its lower triangle, entries off the diagonal times sqrt 2. Packed
matrices are plain vectors of n = d (d + 1)/2 entries: their inner products and norms are Frobenius'. State
(overwritten), K slots, one for each level of the compact cover:

    Z (K, n), scale (K,)     expert k stands at C + scale_k Z_k, C the centre of the ball Y
    S (K, 4), born (K,)      Adapt-ML-Prod, and the round in which each expert started (0: the slot is empty)
    p (K,), y (n,)           weights, and the combination sum_k p_k scale_k Z_k: it stands at C + y

A pass over an expert reads it, scores it, moves it and measures its new norm. The rescale onto the ball costs no pass
of its own: the factor is kept in `scale` and applied when the expert is next read.
"""

import math

import numpy as np

from thalweg._kernels.covers import COMPACT, place_marker, slots_in_use
from thalweg._kernels.jit import inlined, kernel
from thalweg._kernels.sleeping import ADAPT_ML_PROD, admit, reweigh, weigh

__all__ = ["begin", "cap", "pack", "pack_vector", "play_round", "systematic", "thin", "unpack"]

ROOT2 = math.sqrt(2.0)


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
    """out <- clip(sigma + shift, 0, 1), the shift such that the entries sum to `total` < d; sigma ascends.

    As the shift grows, entries start to grow (at -sigma_i) and stop (at 1 - sigma_i), the largest first. Walk from
    corner to corner until the sum would pass `total`; there the first `stopped` of the largest are 1, those up to
    `started` lie between. Entries relative to that corner are small, so that large sigma lose nothing. Overwrites out.
    """
    d = sigma.shape[0]
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


@kernel
def begin(Z: np.ndarray, scale: np.ndarray, S: np.ndarray, born: np.ndarray, t: int, start: np.ndarray) -> None:
    """Round t begins: experts whose interval is over leave, one starts at C + start. Overwrites all but start."""
    top = place_marker(COMPACT, t, born)
    Z[top, :] = start
    scale[top] = 1.0
    admit(ADAPT_ML_PROD, S, top, t, 1.0)


@kernel
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
    left, right = work[: w * d].reshape(w, d), work[w * d : 2 * w * d].reshape(w, d)
    for c in range(w):
        i = c if c < first else c + skipped
        factor = values[i] - sigma[i] - shift if direct else sigma[i]
        for j in range(d):
            left[c, j] = factor * V[i, j]
            right[c, j] = V[i, j]
    if w > 0:
        np.dot(left.T, right, M)
    else:
        M[:, :] = 0.0
    return direct, shift


@inlined
def _surrogate_gradient(
    h: np.ndarray,
    M: np.ndarray,
    direct: bool,
    shift: float,
    y: np.ndarray,
    center: np.ndarray,
    tol: float,
    v: np.ndarray,
) -> float:
    """h <- h - min(0, <h, V>) V, packed, with V = (Y - P)/||Y - P|| and Y = C + y; returns <h, Y - P> before.

    M is Y - P - shift I (direct), or P. Overwrites h and v.
    """
    at = 0
    for i in range(M.shape[0]):
        for j in range(i):
            v[at + j] = ROOT2 * M[i, j]
        v[at + i] = M[i, i] + shift
        at += i + 1
    gap, inner = 0.0, 0.0
    for j in range(h.shape[0]):
        away = v[j] if direct else center[j] + y[j] - v[j]
        gap += away * away
        inner += h[j] * away
        v[j] = away
    if inner < 0.0 and gap > tol * tol:
        factor = inner / gap  # gap > 0
        for j in range(h.shape[0]):
            h[j] -= factor * v[j]
    return inner


@kernel
def play_round(
    Z: np.ndarray,
    scale: np.ndarray,
    S: np.ndarray,
    born: np.ndarray,
    p: np.ndarray,
    y: np.ndarray,
    t: int,
    h: np.ndarray,
    values: np.ndarray,
    sigma: np.ndarray,
    A: np.ndarray,
    steps: np.ndarray,
    start: np.ndarray,
    center: np.ndarray,
    radius: float,
    span: float,
    tol: float,
    v: np.ndarray,
    r: np.ndarray,
    work: np.ndarray,
) -> float:
    """Round t (from 1) of Algorithm 5, from the packed gradient h = -X to the next combination y. Returns <h, P>.

    The rows of A (d, d) are the eigenvectors of C + y and of the decision P, `values` and `sigma` their eigenvalues.
    `steps` (K,) are the step sizes by level, `span` the range 2 G R of the feedback. Overwrites the state, h, v (n,),
    r (K,), work (as for `thin`) and A, whose lower triangle is the next C + y.
    """
    direct, shift = thin(values, sigma, A, work, A)
    n = h.shape[0]
    K = slots_in_use(t)
    gained = 0.0
    for j in range(n):
        gained += h[j] * (center[j] + y[j])
    gained -= _surrogate_gradient(h, A, direct, shift, y, center, tol, v)
    paid = 0.0
    for j in range(n):
        paid += h[j] * y[j]
    for k in range(K):
        if born[k] == 0:
            continue
        a, eta, score, square = scale[k], steps[k], 0.0, 0.0
        for j in range(n):
            z = a * Z[k, j]
            score += h[j] * z
            z -= eta * h[j]
            square += z * z
            Z[k, j] = z
        r[k] = (paid - score) / span
        scale[k] = radius / np.sqrt(square) if square > radius * radius else 1.0
    reweigh(ADAPT_ML_PROD, S, born, r, 1.0, 1.0)
    begin(Z, scale, S, born, t + 1, start)
    weigh(ADAPT_ML_PROD, S, born, p)
    y[:] = 0.0
    for k in range(slots_in_use(t + 1)):
        if born[k] > 0:
            share = p[k] * scale[k]
            for j in range(n):
                y[j] += share * Z[k, j]
    unpack(center, y, A)
    return gained
