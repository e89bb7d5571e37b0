"""A pool of descents with delayed gradients: the kernel of `EfficientDelayed`."""

from typing import NamedTuple

from thalweg._kernels.handle import AnyHandle, parts
from thalweg._kernels.hulls import flatten
from thalweg._kernels.jit import kernel
from thalweg._kernels.parts import Floats, after_projection, feed, move
from thalweg._kernels.reduction import surrogate_gradient
from thalweg._kernels.vectors import dot
from thalweg.experts.pool import PoolSettings, PoolState

__all__ = ["DelayedPool", "learn", "reweigh"]


class DelayedPool(NamedTuple):
    """A pool, and the constants of the reduction around it."""

    state: PoolState
    settings: PoolSettings
    flat: int  # the affine hull of the set: `thalweg._kernels.hulls`
    normals: Floats
    tol: float  # a shorter way from y to x has no direction
    h: Floats  # (d,) scratch


@kernel
def learn(handle: AnyHandle, g: Floats, x: Floats, y: Floats, points: Floats) -> None:
    """Learn from the gradient g of a round with the decision x, the point y and the members' points (N, d)."""
    pool = parts(handle)
    e, c, h = pool.state, pool.settings, pool.h
    for j in range(h.shape[0]):
        h[j] = y[j] - x[j]
    flatten(pool.flat, pool.normals, g)
    flatten(pool.flat, pool.normals, h)
    surrogate_gradient(g, h, pool.tol, h)
    flatten(pool.flat, pool.normals, h)  # removes rounding errors
    n, base, square = c.sizes[0], 0.0, 0.0
    for j in range(h.shape[0]):
        square += h[j] * h[j]
        base += h[j] * y[j]
    move(e.members, c.members, 0, n, h, c.scores)
    for i in range(n):
        c.scores[0, i] = dot(h, points[i])  # its loss at its point of that round
    feed(e.meta, c.meta, 0, n, None, base, c.scores[0], square)


@kernel
def reweigh(handle: AnyHandle) -> None:
    """Compute the weights and the point of the next round."""
    pool = parts(handle)
    after_projection(pool.state, pool.settings, 0, 1)
