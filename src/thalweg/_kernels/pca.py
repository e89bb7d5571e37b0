"""Online PCA: packed symmetric matrices, and the spectrum of a projection onto the Fantope.

A symmetric d x d matrix is packed row by row from its lower triangle, entries off the diagonal times sqrt 2. Packed
matrices are plain vectors of n = d (d + 1)/2 entries: their inner products and norms are Frobenius'.
"""

import math

import numpy as np

from thalweg._kernels.jit import inner, kernel

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
        out[i] = sigma[i] + corner  # in memory: re-ordered sums would lose small terms
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
def thin(values: np.ndarray, sigma: np.ndarray, V: np.ndarray, work: np.ndarray, M: np.ndarray) -> tuple[bool, float]:
    """M <- P, or Y - P up to a shift of its diagonal: whichever takes fewer eigenvectors.

    Y = V' diag(values) V and P = V' diag(sigma) V, sigma = clip(values + shift, 0, 1), both ascending. P needs the
    eigenvectors, the rows of V, with sigma > 0. Y - P + shift I needs those that were clipped: to 0 (first) and to 1
    (last). Returns whether it is the difference, and the shift of its diagonal. Overwrites work, of 2 d (d + k)/2
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
    skipped = between if direct else zeros  # and this number after them skipped
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
