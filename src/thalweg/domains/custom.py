"""Any set given by its projection."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import LARGEST_ENTRY, check_array, check_callable, check_positive, check_shape
from thalweg.domains._base import Domain, length
from thalweg.errors import InputError, ProjectionError

__all__ = ["Custom"]

T = TypeVar("T")

# How far outside its enclosing ball a projected point may lie, relative to the scale of the set: well above the
# accuracy of usual solvers, well below a wrong radius.
RADIUS_SLACK = 1e-6


class Custom(Domain):
    """Any convex set, given by a function that returns the nearest point.

    The result of the function is checked in every call: shape, nan, the enclosing ball, and `contains` if given.
    `thalweg.testing.check_domain` finds out whether the function really is a projection.

    Parameters
    ----------
    project : callable
        Takes an array of the given shape, which it may overwrite, and returns the nearest point of the set.
    shape : int or tuple of int
        Shape of a point.
    center, radius : array, float
        A ball that contains the set. A number as centre is used for all entries.
    diameter : float, optional
        An upper bound of the distance of two points of the set. 2 radius when left out.
    contains : callable, optional
        Says whether a point lies in the set, up to the accuracy of `project`.
    tolerance : float
        How exact `project` is, relative to the scale of the set. Solvers that stop early return a point slightly off
        even for one inside the set; a difference below the tolerance is taken for none.
    normals : array (m, d) or (m, *shape), optional
        Directions in which the set does not extend: <n, x> is the same for all its points x. For instance a row of ones
        if entries have a fixed sum. Rows need not be orthogonal. Left out, the set is taken to have inner points.

    Examples
    --------
    >>> import numpy as np
    >>> from thalweg.domains import Custom
    >>> positive_part = Custom(lambda y: np.clip(y, 0, 1), shape=2, center=0.5, radius=0.75)
    >>> positive_part.project([-1.0, 0.5])
    array([0. , 0.5])
    """

    def __init__(
        self,
        project: Callable[[Floats], ArrayLike],
        shape: int | tuple[int, ...],
        center: ArrayLike,
        radius: float,
        *,
        diameter: float | None = None,
        contains: Callable[[Floats], object] | None = None,
        tolerance: float = 1e-6,
        normals: ArrayLike | None = None,
    ) -> None:
        self._function = check_callable("Custom", "project", project)
        self._inside = None if contains is None else check_callable("Custom", "contains", contains)
        size = check_shape("Custom", "shape", shape)
        c = check_array("Custom", "center", center)
        c = np.full(size, c) if c.ndim == 0 else check_array("Custom", "center", c, shape=size)
        R = check_positive("Custom", "radius", radius, LARGEST_ENTRY)
        self.tolerance = check_positive("Custom", "tolerance", tolerance)
        D = 2 * R if diameter is None else check_positive("Custom", "diameter", diameter, LARGEST_ENTRY)
        self._state_facts(size, c, R, D)
        if normals is not None:
            rows = check_array("Custom", "normals", normals)
            if rows.ndim < 2 or rows.shape[1:] not in (size, (self.dim,)) or not len(rows):
                raise InputError(
                    f"The 'normals' parameter of Custom must have one row a normal: shape (m, {self.dim}), m >= 1. "
                    f"Got shape {rows.shape}."
                )
            rows = rows.reshape(len(rows), -1)
            lengths = np.linalg.norm(rows, axis=1)
            if not lengths.all():
                raise InputError("The 'normals' of Custom must not be zero: a zero row says nothing. Leave it out.")
            self._state_flat(rows / lengths[:, None], self._project_flat(c.ravel()))

    def contains(self, point: ArrayLike, tol: float = 1e-9) -> bool:
        """Whether `point` lies in the set: by the function given, which then sets its own tolerance, or by distance."""
        if self._inside is None:
            return super().contains(point, tol)
        return self._call("contains", self._inside, self._read(point).ravel(), bool)

    def _project_flat(self, y: Floats) -> Floats:
        x: Floats = self._call(
            "project", self._function, y, lambda answer: np.array(answer, dtype=np.float64, order="C")
        )
        if x.shape != self.shape:
            raise ProjectionError(f"The function of {self!r} returned shape {x.shape}. It must return {self.shape}.")
        if not np.isfinite(x).all():
            raise ProjectionError(
                f"The function of {self!r} returned nan or infinite entries. Check its solver's status."
            )
        off = length(x - self.center)
        if off > self.radius + RADIUS_SLACK * self._scale(x):
            raise ProjectionError(
                f"The function of {self!r} returned a point at distance {off:g} from the centre, outside the radius. "
                "Correct the function, or state a centre and radius that enclose the set."
            )
        if self._inside is not None and not self._call("contains", self._inside, x.ravel(), bool):
            raise ProjectionError(
                f"The function of {self!r} returned a point that `contains` refuses. "
                "Correct one of them, or loosen the tolerance of `contains`."
            )
        return x.ravel()

    def _call(self, name: str, function: Callable[[Floats], object], y: Floats, read: Callable[[Any], T]) -> T:
        """Call a function of the user on a copy, so that it may overwrite its argument, and read its answer."""
        try:
            return read(function(y.reshape(self.shape).copy()))
        except Exception as error:
            raise ProjectionError(
                f"The `{name}` function of {self!r} failed with {type(error).__name__}: {error}. "
                f"It must accept any float64 array of shape {self.shape} and return "
                f"{'an array of that shape' if name == 'project' else 'True or False'}."
            ) from error

    def __repr__(self) -> str:
        name = getattr(self._function, "__name__", type(self._function).__name__)
        return f"Custom({name}, shape={self._shape_text()}, radius={self.radius:g})"
