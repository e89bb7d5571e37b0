"""What every feasible set states about itself."""

from __future__ import annotations

import math
from abc import ABC
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thalweg._kernels import projections
from thalweg.errors import InputError

if TYPE_CHECKING:
    from thalweg.domains.ball import Ball

__all__ = ["Domain"]

Array = NDArray[np.float64]

# A set of one point states this radius, relative to its scale: algorithms divide by radii, and no iterate that is at
# most this far from the point is told apart from it by `contains`.
POINT = 1e-12
# Products of squares of larger entries with the numbers that describe a set could overflow.
LARGEST = 1e100


class Domain(ABC):
    """A closed convex set X with a Euclidean projection and the facts that algorithms need.

    Attributes
    ----------
    shape : tuple of int
        Shape of a point. Matrices use the Frobenius norm.
    dim : int
        Number of entries of a point.
    center, radius : array, float
        A ball that contains X: every x in X has ||x - center|| <= radius. Tight where a closed form exists.
    diameter : float
        At least max ||x - u|| over x, u in X. Tight where a closed form exists. Infinite for an unbounded set.
    tolerance : float
        How exact `project` is, relative to the scale of the set. A difference y - project(y) below it says nothing.
    code, par : int, array
        The compiled projection (`thalweg._kernels.projections`) and its parameters; code 0 means there is none.

    Notes
    -----
    A new set calls `_state_facts` in its constructor and then either has a compiled projection (`code`, `par`) or
    overrides `_project_flat`. Nothing else is needed.
    """

    shape: tuple[int, ...]
    center: Array
    radius: float
    diameter: float
    tolerance: float = 1e-12
    code: int = projections.PYTHON
    par: Array = np.zeros(0)

    def _state_facts(self, shape: tuple[int, ...], center: Array, radius: float, diameter: float) -> None:
        """Record shape, enclosing ball and diameter. A set of one point gets a tiny positive radius."""
        self.shape = shape
        self.dim = math.prod(shape)
        self.center = np.array(center, dtype=np.float64).reshape(shape)
        self.center.flags.writeable = False
        least = POINT * (float(np.abs(self.center).max()) or 1.0)
        self.radius = max(float(radius), least)
        self.diameter = max(float(diameter), least)

    def project(self, point: ArrayLike) -> Array:
        """The point of the set nearest to `point`, as a new array."""
        return self._project_flat(self._read(point).ravel()).reshape(self.shape)

    def distance(self, point: ArrayLike) -> float:
        """How far `point` is from the set: min ||point - x|| over x in X."""
        y = self._read(point).ravel()
        return float(np.linalg.norm(y - self._project_flat(y)))

    def contains(self, point: ArrayLike, tol: float = 1e-9) -> bool:
        """Whether `point` lies in the set, up to `tol` relative to the scale of the set.

        The scale is the larger of the radius and the largest entry of the centre, below which floating-point numbers
        cannot tell two points apart; for an unbounded set it is the larger of 1 and ||point||.
        """
        return self.distance(point) <= tol * self._scale(np.asarray(point, dtype=np.float64))

    @property
    def surrogate(self) -> Domain:
        """The tightest cheap set around this one: the enclosing ball, unless a set knows better."""
        return self._enclosing_ball()

    def _enclosing_ball(self) -> Ball:
        from thalweg.domains.ball import Ball

        if not math.isfinite(self.radius):
            raise InputError(
                f"{type(self).__name__} is unbounded, so no ball contains it. "
                "Intersect it with a bounded set: Intersection(Ball(...), ...)."
            )
        return Ball(self.shape, radius=self.radius, center=self.center)

    def _project_flat(self, y: Array) -> Array:
        """`project` on a checked flat point; the compiled projection where there is one. Returns a new flat array."""
        if self.code == projections.PYTHON:
            raise NotImplementedError(
                f"{type(self).__name__} must override `_project_flat`: it has no compiled projection."
            )
        out = np.empty_like(y)
        projections.project(self.code, self.par, y, out, np.empty_like(y))
        return out

    def _project_into(self, y: Array, out: Array, work: Array) -> None:
        """`_project_flat` into an array that exists: nothing is allocated where the projection is compiled."""
        if self.code == projections.PYTHON:
            out[:] = self._project_flat(y)
        else:
            projections.project(self.code, self.par, y, out, work)

    def _support(self, directions: Array) -> Array:
        """max over x in X of <v, x>, or a bound above it, for every flat row v. Here that of the enclosing ball."""
        norms: Array = np.linalg.norm(directions, axis=1)
        reach = np.multiply(norms, self.radius, where=norms > 0, out=np.zeros_like(norms))  # never 0 * inf
        return directions @ self.center.ravel() + reach

    def _read(self, point: ArrayLike) -> Array:
        """A point as a new C-contiguous float64 array of the right shape, or an error."""
        try:
            given = np.asarray(point)
            if given.dtype.kind not in "fiub":
                raise TypeError
            array: Array = np.array(given, dtype=np.float64, order="C")
        except (TypeError, ValueError):
            raise InputError(f"{self!r} holds arrays of real numbers. Got {point!r}.") from None
        if array.shape != self.shape:
            raise InputError(f"{self!r} holds points of shape {self.shape}. Got a point of shape {array.shape}.")
        if not np.isfinite(array).all():
            raise InputError(f"{self!r} cannot project a point with nan or infinite entries.")
        if np.abs(array).max() > LARGEST:
            raise InputError(f"{self!r} cannot project a point with entries beyond {LARGEST:g}: squares overflow.")
        return array

    def _scale(self, point: Array) -> float:
        if math.isfinite(self.radius):
            return max(self.radius, float(np.abs(self.center).max()))
        return max(1.0, float(np.linalg.norm(point)))

    def _shape_text(self) -> str:
        return str(self.shape[0]) if len(self.shape) == 1 else str(self.shape)

    def _center_text(self) -> str:
        return f", center={show(self.center)}" if self.center.any() else ""


def show(values: Any) -> str:
    """An array as short text for a `repr`."""
    array = np.asarray(values)
    if array.size == 1:
        return f"{array.item():g}"
    if array.size <= 6:
        return np.array2string(array, separator=", ", formatter={"float_kind": lambda v: f"{v:g}"}).replace("\n", "")
    return f"<array {array.shape}>"
