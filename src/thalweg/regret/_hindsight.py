"""The best decisions in hindsight: least squares on a set for many windows, and proximal steps of all rounds.

Every answer comes with a bound on its gap to the optimum. It needs only projections onto the set X, and a ball
(c, R) around X. Let x+ = Pi_X(x - grad F(x)/L) for a convex F. Then <x - grad F(x)/L - x+, u - x+> <= 0 for u in X, so

    F(x+) - F(u) <= F(x+) - F(x) - <grad F(x), x+ - x> + L <x - x+, x+ - u>                                    (1)

and the last inner product is at most <x - x+, x+ - c> + R ||x - x+||, whatever u is.
"""

from typing import Any, NamedTuple

import numpy as np

from thalweg._kernels.jit import kernel
from thalweg._kernels.pointers import Pointer, call
from thalweg._kernels.vectors import copy, dot, square_norm

__all__ = ["BLOCK", "Ground", "Kind", "Sums", "Term", "add_blocks", "fit_windows", "proximal_rounds"]

EPS = np.finfo(np.float64).eps
BLOCK = 8  # rounds whose sums are not kept
SEARCH_STEPS = 200  # of a bracketed search; about 10 are usual


class Ground(NamedTuple):
    """A set: its compiled projection, and a ball around it."""

    onto: Pointer
    par: np.ndarray
    center: np.ndarray
    radius: float


class Kind(NamedTuple):
    """A loss of a prediction: `thalweg.losses.Phi`."""

    slope: Pointer
    prox_slope: Pointer
    tangent: Pointer
    par: float
    kinked: bool


class Sums(NamedTuple):
    """Rounds of squared losses, and sums over blocks of them in a tree: node k holds those of nodes 2k and 2k + 1.

    A row holds the sums of a_i a_j (j <= i), of y a and of y^2/2. Block i is node M + i.
    """

    features: np.ndarray  # (T, d)
    labels: np.ndarray  # (T,)
    nodes: np.ndarray  # (2M, d(d + 1)/2 + d + 1)


class Term(NamedTuple):
    """A term added to the loss of a round: <q, z> + rho/2 ||z - v||^2. With a leading axis, of many rounds."""

    q: np.ndarray
    v: np.ndarray
    rho: Any  # a number, or an array


@kernel
def _add_round(a: np.ndarray, y: float, row: np.ndarray) -> None:
    """row += the terms of a round."""
    d, k = a.shape[0], 0
    for i in range(d):
        for j in range(i + 1):
            row[k] += a[i] * a[j]
            k += 1
    for i in range(d):
        row[k + i] += y * a[i]
    row[k + d] += 0.5 * y * y


@kernel
def add_blocks(features: np.ndarray, labels: np.ndarray, nodes: np.ndarray) -> None:
    """The sums of all nodes of a tree over these rounds. Overwrites nodes."""
    M = nodes.shape[0] // 2
    nodes[:] = 0.0
    for t in range(min(labels.shape[0], M * BLOCK)):
        _add_round(features[t], labels[t], nodes[M + t // BLOCK])
    for k in range(M - 1, 0, -1):
        for i in range(nodes.shape[1]):
            nodes[k, i] = nodes[2 * k, i] + nodes[2 * k + 1, i]


@kernel
def _add_window(sums: Sums, r: int, s: int, row: np.ndarray) -> None:
    """The sums of rounds r..s-1: whole blocks from the tree, the ends round by round. Overwrites row."""
    M = sums.nodes.shape[0] // 2
    first, last = (r + BLOCK - 1) // BLOCK, s // BLOCK
    row[:] = 0.0
    for t in range(r, min(s, first * BLOCK)):
        _add_round(sums.features[t], sums.labels[t], row)
    for t in range(max(r, first * BLOCK, last * BLOCK), s):
        _add_round(sums.features[t], sums.labels[t], row)
    low, high = first + M, last + M
    while low < high:
        if low % 2 == 1:
            for i in range(row.shape[0]):
                row[i] += sums.nodes[low, i]
            low += 1
        if high % 2 == 1:
            high -= 1
            for i in range(row.shape[0]):
                row[i] += sums.nodes[high, i]
        low, high = low // 2, high // 2


@kernel
def _cholesky_solve(A: np.ndarray, b: np.ndarray, C: np.ndarray, w: np.ndarray) -> bool:
    """w <- A^-1 b for a well-conditioned A; False where it is not. Overwrites C and w."""
    d = b.shape[0]
    trace = 0.0
    for i in range(d):
        trace += A[i, i]
    for i in range(d):
        for j in range(i + 1):
            total = A[i, j]
            for k in range(j):
                total -= C[i, k] * C[j, k]
            if i == j:
                if total <= 1e-10 * trace:
                    return False
                C[i, i] = np.sqrt(total)
            else:
                C[i, j] = total / C[j, j]
    for i in range(d):
        total = b[i]
        for k in range(i):
            total -= C[i, k] * w[k]
        w[i] = total / C[i, i]
    for i in range(d - 1, -1, -1):
        total = w[i]
        for k in range(i + 1, d):
            total -= C[k, i] * w[k]
        w[i] = total / C[i, i]
    return True


@kernel
def _miss(g: np.ndarray, x: np.ndarray, c: np.ndarray, R: float) -> float:
    """max over the ball of <g, x - u>: the largest gap of a point with gradient g."""
    inner = 0.0
    for j in range(x.shape[0]):
        inner += g[j] * (x[j] - c[j])
    return inner + R * np.sqrt(square_norm(g))


@kernel
def _slope_at(A: np.ndarray, b: np.ndarray, x: np.ndarray, g: np.ndarray) -> None:
    """g <- A x - b."""
    d = x.shape[0]
    for i in range(d):
        total = -b[i]
        for j in range(d):
            total += A[i, j] * x[j]
        g[i] = total


class WindowScratch(NamedTuple):
    """Scratch space of `fit_windows`."""

    row: np.ndarray  # as a row of `Sums.nodes`
    A: np.ndarray  # (d, d)
    C: np.ndarray  # (d, d)
    b: np.ndarray  # (d,)
    w: np.ndarray  # (d,)
    work: np.ndarray  # (5, d)


def window_scratch(sums: Sums, d: int) -> WindowScratch:
    """Return scratch space for windows in this dimension."""
    A, C, b, w = np.empty((d, d)), np.empty((d, d)), np.empty(d), np.empty(d)
    return WindowScratch(np.empty(sums.nodes.shape[1]), A, C, b, w, np.empty((5, d)))


@kernel
def _fit(X: Ground, tol: float, steps: int, scratch: WindowScratch) -> float:
    """w <- the minimiser of w'Aw/2 - b'w on the set, from the point w; returns a bound on its gap.

    The unconstrained minimiser if it lies in the set, else accelerated projected gradients, restarted whenever the
    momentum points uphill. Overwrites w, work and C.
    """
    A, b, C, w, work = scratch.A, scratch.b, scratch.C, scratch.w, scratch.work
    d, c, R = b.shape[0], X.center, X.radius
    g, ahead, new, old, move = work[0], work[1], work[2], work[3], work[4]
    _slope_at(A, b, c, g)
    goal = tol * _miss(g, c, c, R)
    if _cholesky_solve(A, b, C, new):
        call(X.onto, X.par, new, old, move)
        square = 0.0
        for j in range(d):
            square += (new[j] - old[j]) ** 2
        if square <= EPS * EPS * square_norm(new):
            copy(old, w)
            _slope_at(A, b, w, g)
            return max(0.0, _miss(g, w, c, R))
    L = 0.0
    for i in range(d):
        for j in range(d):
            L += A[i, j] * A[i, j]
    L = np.sqrt(L)  # at least the largest eigenvalue
    if L == 0.0:
        return max(0.0, _miss(g, w, c, R))
    call(X.onto, X.par, w, old, move)
    copy(old, w)
    copy(w, ahead)
    momentum, best = 1.0, np.inf
    for _ in range(steps):
        _slope_at(A, b, ahead, g)
        for j in range(d):
            new[j] = ahead[j] - g[j] / L
        call(X.onto, X.par, new, new, move)
        uphill = 0.0
        for j in range(d):
            old[j] = w[j]
            move[j] = ahead[j] - new[j]
            uphill += move[j] * (new[j] - w[j])
        curved = 0.0
        for i in range(d):
            for j in range(d):
                curved += move[i] * A[i, j] * move[j]
        missed = 0.5 * curved + L * _miss(move, new, c, R)  # (1)
        copy(new, w)
        best = missed
        if missed <= goal:
            break
        if uphill > 0.0:
            momentum = 1.0
        after = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        keep = (momentum - 1.0) / after
        for j in range(d):
            ahead[j] = new[j] + keep * (new[j] - old[j])
        momentum = after
    return max(0.0, best)


class Fits(NamedTuple):
    """The best decisions of windows, with bounds on their error."""

    points: np.ndarray  # (K, d)
    losses: np.ndarray  # (K,)
    gaps: np.ndarray  # (K,) at most so far from the smallest loss
    rounding: np.ndarray  # (K,) the part of it that floating point takes


@kernel
def fit_windows(
    sums: Sums,
    starts: np.ndarray,
    stops: np.ndarray,
    X: Ground,
    tol: float,
    steps: int,
    found: Fits,
    scratch: WindowScratch,
) -> None:
    """The least-squares decision of every window [starts[k], stops[k]): its loss and a bound on its gap.

    Rounding errors of a loss: every term of a window goes through a few sums only, so it errs by at
    most that many EPS times the sizes of the window's own terms at points of at most the size U of the set. The gap
    holds it. Each window starts where the one before ended up. Overwrites `found` and `scratch`.
    """
    center, R = X.center, X.radius
    d = center.shape[0]
    points, losses, gaps, rounding = found.points, found.losses, found.gaps, found.rounding
    row, A, b, w = scratch.row, scratch.A, scratch.b, scratch.w
    U = R
    for j in range(d):
        U += abs(center[j])
        w[j] = center[j]
    most = 3.0 * BLOCK + 3.0 * np.log2(sums.nodes.shape[0] + 1.0)  # additions that a term goes through
    for k in range(starts.shape[0]):
        _add_window(sums, starts[k], stops[k], row)
        at, trace = 0, 0.0
        for i in range(d):
            for j in range(i + 1):
                A[i, j] = A[j, i] = row[at]
                at += 1
            trace += A[i, i]
        for i in range(d):
            b[i] = row[at + i]
        constant = row[at + d]
        missed = _fit(X, tol, steps, scratch)
        total = constant
        for i in range(d):
            total += w[i] * (0.5 * dot(A[i], w) - b[i])
        losses[k] = total
        # the sizes |y| ||a|| of the terms of b add up to sqrt(2 c trace) at most
        linear = U * np.sqrt(2.0 * constant * trace)
        additions = min(most, float(stops[k] - starts[k])) + 2.0 * d + 4.0
        rounding[k] = 0.5 * additions * EPS * (0.5 * trace * U * U + linear + constant)
        gaps[k] = missed + (1.0 + 4.0 * R / U) * rounding[k]  # the slope is rounded too, and reaches 2R far
        copy(w, points[k])


@kernel
def _proximal(a: np.ndarray, term: Term, s: float, X: Ground, z: np.ndarray, scratch: np.ndarray) -> float:
    """z(s) = Pi_X(v - (q + s a)/rho); returns <a, z(s)>. Overwrites z and scratch, (2, d)."""
    y, work = scratch[0], scratch[1]
    for j in range(a.shape[0]):
        y[j] = term.v[j] - (term.q[j] + s * a[j]) / term.rho
    call(X.onto, X.par, y, z, work)
    return dot(a, z)


@kernel
def _off(loss: Kind, b: float, s: float, h: float, width: float) -> float:
    """How far s is from being a slope of phi at h: 0 if it is one, and it rises with s and falls with h.

    Without kinks s - phi'(h). With kinks (width > 0) how far h is from the proximal point of h + width s.
    """
    if width == 0.0:
        return s - call(loss.slope, h, b, loss.par)
    return width * (s - call(loss.prox_slope, h + width * s, b, loss.par, width))


@kernel
def _multiplier(
    loss: Kind, a: np.ndarray, b: float, term: Term, X: Ground, z: np.ndarray, scratch: np.ndarray
) -> float:
    """The s in the slopes of phi at h(s) = <a, z(s)>; leaves z = z(s). Overwrites z and scratch, (2, d).

    Where nothing is projected h(s) = p - width s with width = ||a||^2/rho, and the slope at the proximal point of p is
    the answer. Else h(s) falls with s, so the answer lies between any s and the slope at h(s): a search in there. With
    kinks it uses h(s) + width s, which does not fall with s, since a projection does not expand.
    """
    p = 0.0
    for j in range(a.shape[0]):
        p += a[j] * (term.v[j] - term.q[j] / term.rho)
    width = square_norm(a) / term.rho
    s = call(loss.slope, p, b, loss.par) if width == 0.0 else call(loss.prox_slope, p, b, loss.par, width)
    h = _proximal(a, term, s, X, z, scratch)
    if width == 0.0:
        return s
    if not loss.kinked:
        width = 0.0
    k = _off(loss, b, s, h, width)
    if abs(k) <= 4.0 * EPS * (abs(s) + abs(b)):
        return s
    low, k_low = s, k
    for _ in range(SEARCH_STEPS):
        other = call(loss.slope, h, b, loss.par)
        s = other if np.isfinite(other) else 2.0 * s  # phi may be infinite at h(s), where s is too small
        h = _proximal(a, term, s, X, z, scratch)
        k = _off(loss, b, s, h, width)
        if (k > 0.0) != (k_low > 0.0):
            break
        if np.isfinite(other):
            return s  # the answer up to rounding
        low, k_low = s, k
    high, k_high = s, k
    if low > high:
        low, k_low, high, k_high = high, k_high, low, k_low
    side = 0
    for _ in range(SEARCH_STEPS):  # the Illinois form of false position
        s = (low * k_high - high * k_low) / (k_high - k_low)
        if not low < s < high:
            s = 0.5 * (low + high)
        h = _proximal(a, term, s, X, z, scratch)
        k = _off(loss, b, s, h, width)
        if abs(k) <= 4.0 * EPS * (abs(s) + abs(b)) or high - low <= 4.0 * EPS * abs(s):
            break
        if k > 0.0:
            high, k_high = s, k
            if side == 1:
                k_low *= 0.5
            side = 1
        else:
            low, k_low = s, k
            if side == -1:
                k_high *= 0.5
            side = -1
    return s


@kernel
def proximal_rounds(
    loss: Kind,
    features: np.ndarray,
    labels: np.ndarray,
    terms: Term,
    X: Ground,
    Z: np.ndarray,
    lower: np.ndarray,
    scratch: np.ndarray,
) -> None:
    """Z[t] <- argmin over X of f_t(z) + <q, z> + rho/2 ||z - v||^2, row t of `terms`: by a search for one multiplier.

    lower[t] <= min over X of f_t + <q, .>, whatever the search left undone: with z = Pi_X(y), y = v - (q + s a)/rho,
    the line of slope s below phi and <y - z, u - z> <= 0 give for u in X

        f(u) + <q, u> >= tangent(<a, z>, s) + <q, z> + rho <v - z, u - z>.

    Overwrites Z, lower and the scratch space `scratch`, (2, d).
    """
    T, d = features.shape
    for t in range(T):
        a, b, z, v, q, rho = features[t], labels[t], Z[t], terms.v[t], terms.q[t], terms.rho[t]
        s = _multiplier(loss, a, b, Term(q, v, rho), X, z, scratch)
        gap, turn = 0.0, 0.0
        for j in range(d):
            gap += (v[j] - z[j]) ** 2
            turn += (v[j] - z[j]) * (X.center[j] - z[j])
        beyond = rho * (turn - X.radius * np.sqrt(gap))
        lower[t] = call(loss.tangent, dot(a, z), b, loss.par, s) + dot(q, z) + beyond
