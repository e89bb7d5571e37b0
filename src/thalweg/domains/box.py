"""The box {x : l <= x <= u}, entry by entry."""

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import check_array, check_shape, short_array
from thalweg._kernels import hulls, projections
from thalweg.domains._base import Domain
from thalweg.errors import InputError

__all__ = ["Box"]


class Box(Domain):
    """A box: every entry has its own interval. Projecting clips.

    Centre, radius and diameter are tight. A bound may be infinite: the box is then unbounded, and so is its radius.

    Parameters
    ----------
    lower, upper : float or array
        l and u, entry by entry l <= u. Numbers and arrays are broadcast against each other.
    shape : int or tuple of int, optional
        Shape of a point, needed when both bounds are numbers.

    Examples
    --------
    >>> from thalweg.domains import Box
    >>> Box(-1.0, [1.0, 2.0]).project([-3.0, 1.5])
    array([-1. ,  1.5])
    """

    onto = projections.BOX

    def __init__(self, lower: ArrayLike, upper: ArrayLike, shape: int | tuple[int, ...] | None = None) -> None:
        low = check_array("Box", "lower", lower, finite=False)
        up = check_array("Box", "upper", upper, finite=False)
        if shape is None and low.ndim == up.ndim == 0:
            raise InputError("Box needs 'shape' when both bounds are numbers: Box(-1.0, 1.0, shape=3).")
        size = None if shape is None else check_shape("Box", "shape", shape)
        try:
            size = np.broadcast_shapes(low.shape, up.shape) if size is None else size
            low, up = np.broadcast_to(low, size), np.broadcast_to(up, size)
        except ValueError:
            raise InputError(
                f"The bounds of Box must have the shape of a point or broadcast to it. "
                f"Got lower of shape {low.shape}, upper of shape {up.shape} and shape={shape}."
            ) from None
        check_shape("Box", "shape", size)
        empty = (low > up) | (low == np.inf) | (up == -np.inf)
        if empty.any():
            where = np.unravel_index(int(np.argmax(empty)), size)
            raise InputError(
                f"Box is empty: entry {tuple(map(int, where))} has lower bound {low[where]:g} and upper bound "
                f"{up[where]:g}. Exchange or correct the bounds."
            )
        self.lower, self.upper = low, up
        # of an unbounded box, the point nearest to the origin; halves are added because l + u may overflow
        bounded = bool(np.isfinite(low).all() and np.isfinite(up).all())
        center = 0.5 * low + 0.5 * up if bounded else np.clip(np.zeros(size), low, up)
        diameter = float(np.linalg.norm(up - low)) if bounded else np.inf
        self._state_facts(size, center, diameter / 2, diameter)
        self.par = np.concatenate([low.ravel(), up.ravel()])
        fixed = np.flatnonzero((low == up).ravel())
        if fixed.size:
            self.flat, self.flat_par = hulls.NORMALS, np.eye(self.dim)[fixed].ravel()

    def _faces(self) -> tuple[Floats, Floats, Floats, Floats]:
        eye, low, up = np.eye(self.dim), self.lower.ravel(), self.upper.ravel()
        above, below, fixed = np.isfinite(up) & (up > low), np.isfinite(low) & (up > low), up == low
        sides = np.concatenate([up[above], -low[below]])
        return np.vstack([eye[above], -eye[below]]), sides, eye[fixed], up[fixed]

    def _support(self, directions: Floats) -> Floats:
        ends = np.where(directions > 0, self.upper.ravel(), self.lower.ravel())
        best: Floats = np.multiply(directions, ends, where=directions != 0, out=np.zeros_like(directions)).sum(axis=1)
        return best

    def _inner_ball(self) -> tuple[Floats, float]:
        free = self.upper > self.lower
        if not np.isfinite(self.radius):
            return super()._inner_ball()
        return self.center, float((self.upper - self.lower)[free].min(initial=np.inf) / 2) if free.any() else 0.0

    def __repr__(self) -> str:
        low, up = np.unique(self.lower), np.unique(self.upper)
        if low.size == up.size == 1:
            return f"Box({low[0]:g}, {up[0]:g}, shape={self._shape_text()})"
        return f"Box({short_array(self.lower)}, {short_array(self.upper)})"
