"""The base class of feasible sets."""

from __future__ import annotations

import math
from abc import ABC
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.recorded import Recorded
from thalweg._core.types import Floats
from thalweg._core.validate import LARGEST_ENTRY, check_nonnegative, real_array, short_array, short_repr
from thalweg._kernels import hulls, projections
from thalweg._kernels.pointers import Pointer
from thalweg.errors import InputError

if TYPE_CHECKING:
    from thalweg.domains.ball import Ball

__all__ = ["Domain", "projection_fault", "read_domain"]

# A set of one point states this radius, relative to its scale: algorithms divide by radii, and no iterate that is at
# most this far from the point is distinguished from it by `contains`.
POINT = 1e-12
# Sums of larger entries of a point could overflow.
BIGGEST = 1e300
# Further away than these radii, a point is moved to this distance in the same direction: to all digits and many more
# its projection onto a bounded set is the same.
FARTHEST_POINT = 1e100
# Rows are linearly dependent when a singular value is smaller than this, relative to the largest.
RANK = 1e-10


class Domain(Recorded, ABC):
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
    onto, par : Pointer, array
        The compiled projection (`thalweg._kernels.projections`), `PYTHON` where there is none; and its parameters.
    flat, flat_par : int, array
        The directions of the affine hull (`thalweg._kernels.hulls`) and their parameters; code 0 means all directions.
        The centre of a set with a flat lies in the affine hull.

    Notes
    -----
    A new set calls `_state_facts` in its constructor and then either has a compiled projection (`onto`, `par`) or
    overrides `_project_flat`. Nothing else is needed.
    """

    shape: tuple[int, ...]
    center: Floats
    radius: float
    diameter: float
    tolerance: float = 1e-12
    onto: Pointer = projections.PYTHON
    par: Floats = np.zeros(0)
    flat: int = hulls.FULL
    flat_par: Floats = np.zeros(0)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copy. Kernels are compiled for parameters that can be written: mapped from a file, they cannot."""
        for name in ("par", "flat_par"):
            if name in state and not state[name].flags.writeable:
                state[name] = np.array(state[name])
        self.__dict__.update(state)

    def _state_facts(self, shape: tuple[int, ...], center: Floats, radius: float, diameter: float) -> None:
        """Record shape, enclosing ball and diameter. A set of one point gets a tiny positive radius."""
        if not isinstance(shape, tuple):
            raise TypeError(f"{type(self).__name__}: its shape must be a tuple, such as (3,). Got {short_repr(shape)}.")
        self.shape = shape
        self.dim = math.prod(shape)
        self.center = np.array(center, dtype=np.float64).reshape(shape)
        if (
            not float(np.abs(self.center).max()) <= LARGEST_ENTRY
            or LARGEST_ENTRY < radius < math.inf
            or math.isnan(radius)
        ):
            raise InputError(
                f"A {type(self).__name__} must lie within {LARGEST_ENTRY:g} of the origin: choose other units."
            )
        self.center.flags.writeable = False
        least = POINT * (float(np.abs(self.center).max()) or 1.0)
        self.radius = max(float(radius), least)
        self.diameter = max(float(diameter), least)

    def project(self, point: ArrayLike) -> Floats:
        """The point of the set nearest to `point`, as a new array."""
        return self._project_flat(self._read(point).ravel()).reshape(self.shape)

    def distance(self, point: ArrayLike) -> float:
        """How far `point` is from the set: min ||point - x|| over x in X."""
        y = self._read(point).ravel()
        return length(y - self._project_flat(y))

    def contains(self, point: ArrayLike, tol: float = 1e-9) -> bool:
        """Whether `point` lies in the set, up to `tol` relative to the scale of the set.

        The scale is the larger of the radius and the largest entry of the centre, below which floating-point numbers
        cannot tell two points apart; for an unbounded set it is the larger of 1 and ||point||.
        """
        x = self._read(point)
        return self.distance(x) <= self._absolute_tolerance(tol, x)

    def directions(self, v: ArrayLike) -> Floats:
        """The part of `v` in the directions of the affine hull, as a new array: the span of all differences of points.

        This part of a gradient still determines the loss on the set. On a set with inner points it is `v`.

        Examples
        --------
        >>> from thalweg.domains import Simplex
        >>> Simplex(3).directions([1.0, 2.0, 6.0])
        array([-2., -1.,  3.])
        """
        return self._directions(self._read(v).reshape(1, -1)).reshape(self.shape)

    def _directions(self, rows: Floats) -> Floats:
        """`directions` of every flat row, as a new array."""
        rows = rows.copy()
        hulls.flatten_rows(self.flat, self.flat_par, rows)
        return rows

    def _state_flat(self, rows: Floats, point: Floats) -> None:
        """Record the affine hull {x : <n, x> = <n, point> for all rows n}, and move the enclosing ball into it.

        For x in the hull and c moved to its nearest point c' there, ||x - c'||^2 = ||x - c||^2 - ||c - c'||^2.
        """
        normals = orthonormal(rows)
        if len(normals) == 0:
            return
        self.flat, self.flat_par = hulls.NORMALS, normals.ravel()
        self._move_into_flat(point)

    def _move_into_flat(self, point: Floats) -> None:
        """Move the enclosing ball into the affine hull, which holds the flat `point`."""
        off = self.center.ravel() - point
        off -= self._directions(off.reshape(1, -1))[0]
        radius = math.sqrt(max(self.radius**2 - float(off @ off), 0.0))
        self._state_facts(self.shape, self.center.ravel() - off, radius, min(self.diameter, 2 * radius))

    def _normals(self) -> Floats:
        """Orthonormal rows that span the orthogonal complement of all directions."""
        if self.flat == hulls.NORMALS:
            return self.flat_par.reshape(-1, self.dim)
        return (
            orthonormal(np.eye(self.dim) - self._directions(np.eye(self.dim))) if self.flat else np.zeros((0, self.dim))
        )

    @property
    def freedom(self) -> int:
        """The dimension of the affine hull: `dim`, unless the set lies in a flat."""
        if self.flat == hulls.TRACE:
            n = self.shape[0]
            return n * (n + 1) // 2 - 1
        return self.dim - {hulls.FULL: 0, hulls.MEAN: 1}.get(self.flat, self.flat_par.size // self.dim)

    @cached_property
    def interior(self) -> tuple[Floats, float]:
        """A ball inside: (c, r) such that every point of the affine hull within r > 0 of c lies in the set.

        The largest one of the built-in bounded sets; of an `Intersection`, nearly the largest that its members' own
        bounds allow. A set that is a single point has none, and a `Custom` set does not know its own.

        Examples
        --------
        >>> from thalweg.domains import Box
        >>> Box(0.0, [1.0, 4.0]).interior
        (array([0.5, 2. ]), 0.5)
        """
        point, radius = self._inner_ball()
        if not radius > self.tolerance * self._scale(point):
            raise InputError(
                f"{self!r} has no interior: no ball of its affine hull lies in it, or none larger than rounding. "
                "Enlarge the set, or state its affine hull: equalities of a Polytope, normals of a Custom set."
            )
        point = np.array(point, dtype=np.float64).reshape(self.shape)
        point.flags.writeable = False
        return point, float(radius)

    def _inner_ball(self) -> tuple[Floats, float]:
        """`interior`, unchecked; the radius of a set without one is 0. Polyhedra need not define it."""
        from thalweg.domains._inside import deepest

        if self._faces() is None:
            raise InputError(
                f"{self!r} does not know a ball inside it. Give one to the learner: interior=(point, radius)."
            )
        return deepest(self, [self])

    def _depth(self, point: Floats) -> tuple[float, Floats] | None:
        """A lower bound on the depth of a flat point, concave in the point; and a supergradient. None if not known."""
        return None

    @property
    def surrogate(self) -> Domain:
        """The tightest cheap set around this one. Default: the enclosing ball."""
        return self._enclosing_ball()

    def _enclosing_ball(self) -> Ball:
        from thalweg.domains.ball import Ball

        if not math.isfinite(self.radius):
            raise InputError(
                f"{type(self).__name__} is unbounded, so no ball contains it. "
                "Intersect it with a bounded set: Intersection(Ball(...), ...)."
            )
        return Ball(self.shape, radius=self.radius, center=self.center)

    def _project_flat(self, y: Floats) -> Floats:
        """`project` on a checked flat point; the compiled projection where there is one. Returns a new flat array."""
        if self.onto is projections.PYTHON:
            raise NotImplementedError(
                f"{type(self).__name__} must override `_project_flat`: it has no compiled projection."
            )
        out = np.empty_like(y)
        self.onto(self.par, y, out, np.empty_like(y))
        return out

    def _project_into(self, y: Floats, out: Floats, work: Floats) -> None:
        """`_project_flat` into an array that exists: nothing is allocated where the projection is compiled."""
        if self.onto is projections.PYTHON:
            out[:] = self._project_flat(y)
        else:
            self.onto(self.par, y, out, work)

    def _support(self, directions: Floats) -> Floats:
        """max over x in X of <v, x>, or a bound above it, for every flat row v. Here that of the enclosing ball."""
        norms: Floats = np.linalg.norm(self._directions(directions), axis=1)
        reach = np.multiply(norms, self.radius, where=norms > 0, out=np.zeros_like(norms))  # never 0 * inf
        return directions @ self.center.ravel() + reach

    def _faces(self) -> tuple[Floats, Floats, Floats, Floats] | None:
        """A, b, E, e if the set is a polyhedron {x : A x <= b, E x = e}, all rows of length 1; None if not."""
        return None

    def _read(self, point: ArrayLike) -> Floats:
        """A point as a new C-contiguous float64 array of the right shape, or an error."""
        numbers = real_array(point)
        if numbers is None:
            raise InputError(f"{self!r} holds arrays of real numbers. Got {short_repr(point)}.")
        array: Floats = np.array(numbers, order="C")
        if array.shape != self.shape:
            raise InputError(f"{self!r} holds points of shape {self.shape}. Got a point of shape {array.shape}.")
        if not np.isfinite(array).all():
            raise InputError(f"{self!r} cannot project a point with nan or infinite entries.")
        if np.abs(array).max() > BIGGEST:
            raise InputError(f"{self!r} cannot project a point with entries beyond {BIGGEST:g}: sums overflow.")
        return array

    def _absolute_tolerance(self, tol: float, point: Floats) -> float:
        """Return a tolerance, checked, in units of length."""
        return check_nonnegative(f"{type(self).__name__}.contains", "tol", tol) * self._scale(point)

    def _scale(self, point: Floats) -> float:
        if math.isfinite(self.radius):
            return max(self.radius, float(np.abs(self.center).max()))
        return max(1.0, length(point))

    def _shape_text(self) -> str:
        return str(self.shape[0]) if len(self.shape) == 1 else str(self.shape)

    def _center_text(self) -> str:
        return f", center={short_array(self.center)}" if self.center.any() else ""


def read_domain(owner: str, domain: object) -> Domain:
    """Return a domain, or raise an error that says how to make one."""
    if not isinstance(domain, Domain):
        raise InputError(
            f"The 'domain' parameter of {owner} must be a thalweg Domain. Got {short_repr(domain)}. "
            "Wrap a projection of your own as thalweg.domains.Custom(project, shape, center, radius)."
        )
    fault = projection_fault(domain)
    if fault:
        raise InputError(f"{owner} cannot use {type(domain).__name__}: {fault}.")
    return domain


def projection_fault(domain: Domain) -> str:
    """Return the reason why compiled code cannot call the projection of a set, or nothing."""
    onto: object = domain.onto
    par: object = domain.par
    if not isinstance(onto, Pointer):
        return "`onto` is not a pointer; write onto = pointer(kernel)"
    flat = isinstance(par, np.ndarray) and par.dtype == np.float64 and par.ndim == 1 and par.flags.c_contiguous
    if onto is projections.PYTHON or (par is not Domain.par and flat):
        return ""
    return "its projection is compiled, so it must set `par`, a flat float64 array (empty if there are no parameters)"


def length(v: Floats) -> float:
    """||v||, also where squares of the entries overflow or vanish."""
    largest = float(np.abs(v).max())
    return largest * float(np.linalg.norm(v / largest)) if largest else 0.0


def orthonormal(rows: Floats) -> Floats:
    """Orthonormal rows with the same span, up to singular values of the size of rounding errors."""
    if not rows.any():
        return np.zeros((0, rows.shape[1]))
    _, sizes, vectors = np.linalg.svd(rows, full_matrices=False)
    return np.ascontiguousarray(vectors[sizes > RANK * sizes[0]])
