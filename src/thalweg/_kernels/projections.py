"""Euclidean projections, each a kernel that compiled loops call by its address (`thalweg._kernels.pointers`).

`projection(par, y, out, work)` writes the point of the set nearest to `y` into `out`. `y` and `out` may be the
same array. `par` holds the parameters of the set in the layout given at each function; `work` is scratch space of
the same length as `y`. Everything is a flat vector: a matrix is its entries in row-major order. A nan in `y` gives a
nan in `out`, so that a loop can notice it.
"""

from collections.abc import Callable

import numpy as np

from thalweg._kernels.jit import kernel
from thalweg._kernels.pointers import Pointer

# The ellipsoid's steps triple the digits found: 2 or 3 are usual, 9 the most seen (at a condition number of 1e8).
SECULAR_STEPS = 100
# A step cubes the relative residual, up to a factor that grows with the condition number. A step from this residual is
# the last: over 20000 ellipsoids with condition numbers up to 1e9 it leaves 5e-16, a step from 1e-7 leaves 2e-12.
LAST_RESIDUAL = 1e-8

# Products of larger squares and their roots could overflow.
LARGE_SQUARE = 1e60
# A step along a half-space's normal this much longer than the result has cost digits.
SHORTER = 10.0


@kernel
def _far(y: np.ndarray, c: np.ndarray, at: int, start: int, stop: int) -> float:
    """||y - c|| of the entries from `start` to `stop`, those of c lying `at` later: where squares of them overflow."""
    unit, square = 1.0, 0.0
    for j in range(start, stop):
        unit = max(unit, abs(y[j] - c[at + j]))
    for j in range(start, stop):
        gap = (y[j] - c[at + j]) / unit
        square += gap * gap
    return unit * np.sqrt(square)


@kernel
def onto_ball(par: np.ndarray, y: np.ndarray, out: np.ndarray, work: np.ndarray) -> None:
    """par = [R, c_1..c_d]:  c + (y - c) min(1, R / ||y - c||)."""
    d = y.shape[0]
    square = 0.0
    for j in range(d):
        gap = y[j] - par[1 + j]
        square += gap * gap
    if square <= par[0] * par[0] and square < np.inf:
        for j in range(d):
            out[j] = y[j]
    else:  # outside, or far away, or nan
        scale = par[0] / np.sqrt(square) if square < np.inf else min(1.0, par[0] / _far(y, par, 1, 0, d))
        for j in range(d):
            out[j] = par[1 + j] + scale * (y[j] - par[1 + j])


@kernel
def _box(par: np.ndarray, y: np.ndarray, out: np.ndarray, work: np.ndarray) -> None:
    """par = [l_1..l_d, u_1..u_d]:  clip every entry."""
    d = y.shape[0]
    for j in range(d):
        v = y[j]
        if v < par[j]:
            v = par[j]
        if v > par[d + j]:
            v = par[d + j]
        out[j] = v


@kernel
def _threshold(total: float, z: np.ndarray) -> float:
    """The tau with sum of (z_j - tau)_+ = total, for z with maximum 0. No sorting: Newton from the left.

    The sum is convex and decreasing in tau, so Newton's steps increase towards the root and the entries above tau
    only become fewer. When their number stays, tau is exact. The largest entry, 0, is always above tau < 0.
    """
    tau = -total
    before = np.inf
    while True:
        count = 0.0
        above = 0.0
        for j in range(z.shape[0]):
            count += 1.0 if z[j] > tau else 0.0
            above += z[j] if z[j] > tau else 0.0
        if not 0.0 < count < before:  # 0: all entries are nan
            return tau
        before = count
        tau = (above - total) / count


@kernel
def _simplex(par: np.ndarray, y: np.ndarray, out: np.ndarray, work: np.ndarray) -> None:
    """par = [total]:  (y - tau)_+ with tau such that the entries sum to total.

    Entries are first taken relative to the largest one, in memory: those that matter are then no larger than `total`,
    so that nothing is lost to rounding when y is far away.
    """
    top = y[0]
    for j in range(1, y.shape[0]):
        if y[j] > top:
            top = y[j]
    for j in range(y.shape[0]):
        work[j] = y[j] - top
    tau = _threshold(par[0], work)
    for j in range(y.shape[0]):
        v = work[j] - tau
        out[j] = 0.0 if v < 0.0 else v


@kernel
def _l1_ball(par: np.ndarray, y: np.ndarray, out: np.ndarray, work: np.ndarray) -> None:
    """par = [r, c_1..c_d]:  outside the ball, c + sign(y - c) (|y - c| - tau)_+ as on the simplex."""
    d = y.shape[0]
    size = 0.0
    top = 0.0
    for j in range(d):
        gap = abs(y[j] - par[1 + j])
        work[j] = gap
        size += gap
        if gap > top:
            top = gap
    if size <= par[0]:
        for j in range(d):
            out[j] = y[j]
        return
    for j in range(d):
        work[j] -= top
    tau = _threshold(par[0], work)
    for j in range(d):
        v = work[j] - tau
        if v < 0.0:
            v = 0.0
        out[j] = par[1 + j] + (v if y[j] > par[1 + j] else -v)


@kernel
def _starts(par: np.ndarray, z: np.ndarray) -> tuple[float, float, float, float]:
    """The sums from which `_secular` starts."""
    d = z.shape[0]
    near, near_slope, far, far_slope = 0.0, 0.0, 0.0, 0.0
    for j in range(d):
        square = z[j] * z[j]
        t = square * par[j]
        near += t
        near_slope += t * par[j]
        t = square * par[d + j]
        far += t
        far_slope += t * par[d + j]
    return near, near_slope, far, far_slope


@kernel
def _secular(par: np.ndarray, z: np.ndarray) -> tuple[float, float]:
    """par = [e_1..e_d, 1/e_1..1/e_d, ..]: 0 inside, else the lam > 0 with S(lam) = sum e_j z_j^2/(u + lam e_j)^2 = 1.

    Returns lam and u; the point looked for is z / (u + lam e). u is 1 unless squares of z are very large: then z is
    divided by its largest entry, in place, and u = 1 / that entry.

    h = 1 / sqrt(S) is concave and increasing, hence a Newton step on h = 1 lands to the left of the root, from either
    side. Two starts to the left cost one pass without a division: Newton's step from lam = 0, good for points near the
    set, and the one from lam = infinity, good for points far away. Then Newton's steps x, corrected for the curvature
    where it is small: h(lam + x) = h (1 + x - curve x^2 + ..) in units of h / h'.
    """
    d = z.shape[0]
    unit = 1.0
    near, near_slope, far, far_slope = _starts(par, z)
    if near <= 1.0:
        return 0.0, unit
    if not near + near_slope + far + far_slope < LARGE_SQUARE:
        largest = 1.0
        for j in range(d):
            largest = max(largest, abs(z[j]))
        for j in range(d):
            z[j] /= largest
        unit = 1.0 / largest
        near, near_slope, far, far_slope = _starts(par, z)
    # near > 1, so some z_j is not zero and no denominator is
    low = max((np.sqrt(near) - unit) * (near / near_slope), np.sqrt(far) - unit * (far_slope / far))
    lam = low
    for _ in range(SECULAR_STEPS):
        value, slope, second = 0.0, 0.0, 0.0
        for j in range(d):
            q = 1.0 / (unit + lam * par[j])
            t = z[j] * q
            t = par[j] * t * t
            q *= par[j]
            value += t
            slope += q * t
            second += q * q * t
        residual = np.sqrt(value) - 1.0
        newton = value / slope
        bend = residual * 1.5 * (second * newton / slope - 1.0)  # curve times residual
        lam = max(low, lam + newton * (residual / (1.0 - bend) if abs(bend) < 0.5 else residual))
        if not abs(residual) > LAST_RESIDUAL:  # or nan
            break
    return lam, unit


@kernel
def _ellipsoid(par: np.ndarray, y: np.ndarray, out: np.ndarray, work: np.ndarray) -> None:
    """par = [e, 1/e, c], each of length d, the bound being 1:  c + (y - c) / (1 + lam e)."""
    d = y.shape[0]
    value = 0.0
    for j in range(d):
        work[j] = y[j] - par[2 * d + j]
        value += par[j] * work[j] * work[j]
    lam, unit = 0.0, 1.0
    if not value <= 1.0:  # outside, or nan
        lam, unit = _secular(par, work)
    for j in range(d):
        out[j] = y[j] if lam == 0.0 else par[2 * d + j] + work[j] / (unit + lam * par[j])


@kernel
def _rotated_ellipsoid(par: np.ndarray, y: np.ndarray, out: np.ndarray, work: np.ndarray) -> None:
    """par = [e, 1/e, c, V], the eigenvectors in the rows of V: as `_ellipsoid`, in the coordinates V (y - c)."""
    d = y.shape[0]
    for i in range(d):
        dot = 0.0
        for j in range(d):
            dot += par[(3 + i) * d + j] * (y[j] - par[2 * d + j])
        work[i] = dot
    lam, unit = _secular(par, work)
    if lam == 0.0:
        for j in range(d):
            out[j] = y[j]
    else:
        for j in range(d):
            out[j] = par[2 * d + j]
        for i in range(d):
            w = work[i] / (unit + lam * par[i])
            for j in range(d):
                out[j] += w * par[(3 + i) * d + j]


@kernel
def _half_space(par: np.ndarray, y: np.ndarray, out: np.ndarray, work: np.ndarray) -> None:
    """par = [b, a_1..a_d] with ||a|| = 1:  y - (<a, y> - b)_+ a.

    The projection of a far point is small beside the numbers it comes from, so it is mostly rounding error: it is
    projected again as long as that makes it shorter.
    """
    d = y.shape[0]
    excess = -par[0]
    for j in range(d):
        excess += par[1 + j] * y[j]
    if excess <= 0.0:
        for j in range(d):
            out[j] = y[j]
        return
    size = 0.0
    for j in range(d):
        out[j] = y[j] - excess * par[1 + j]
        size = max(size, abs(out[j]))
    while abs(excess) > SHORTER * size and abs(excess) > SHORTER * abs(par[0]):
        before = abs(excess)
        excess = -par[0]
        for j in range(d):
            excess += par[1 + j] * out[j]
        if not abs(excess) < before:
            break
        size = 0.0
        for j in range(d):
            out[j] -= excess * par[1 + j]
            size = max(size, abs(out[j]))


@kernel
def _product_of_balls(par: np.ndarray, y: np.ndarray, out: np.ndarray, work: np.ndarray) -> None:
    """par = [k, r_1..r_k, n_1..n_k, c_1..c_d]:  k blocks of n_i entries, each rescaled like a ball."""
    blocks = int(par[0])
    c = par[1 + 2 * blocks :]
    start = 0
    for i in range(blocks):
        radius = par[1 + i]
        stop = start + int(par[1 + blocks + i])
        square = 0.0
        for j in range(start, stop):
            gap = y[j] - c[j]
            square += gap * gap
        if square <= radius * radius and square < np.inf:
            for j in range(start, stop):
                out[j] = y[j]
        else:  # as `onto_ball`
            scale = radius / np.sqrt(square) if square < np.inf else min(1.0, radius / _far(y, c, 0, start, stop))
            for j in range(start, stop):
                out[j] = c[j] + scale * (y[j] - c[j])
        start = stop


@kernel
def _left_to_python(par: np.ndarray, y: np.ndarray, out: np.ndarray, work: np.ndarray) -> None:
    """Do nothing: such sets are projected in Python, before or after."""


_LINE = "f8[1]"


def pointer(kernel: Callable[..., None]) -> Pointer:
    """A projection as domains name it, and compiled loops call it. Compiled when it is first used."""
    return Pointer(kernel, f"none({_LINE},{_LINE},{_LINE},{_LINE})")


PYTHON = pointer(_left_to_python)  # no compiled projection: call the domain's own method
BALL = pointer(onto_ball)
BOX = pointer(_box)
SIMPLEX = pointer(_simplex)
L1_BALL = pointer(_l1_ball)
ELLIPSOID = pointer(_ellipsoid)
ROTATED_ELLIPSOID = pointer(_rotated_ellipsoid)
HALF_SPACE = pointer(_half_space)
PRODUCT_OF_BALLS = pointer(_product_of_balls)
