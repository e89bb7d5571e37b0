"""The half-space {x : <a, x> <= b}."""

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import check_array, check_number, short_array
from thalweg._kernels import projections
from thalweg.domains._base import Domain
from thalweg.errors import InputError

__all__ = ["HalfSpace"]


class HalfSpace(Domain):
    """A half-space. Unbounded: radius and diameter are infinite, the centre is the point nearest to the origin.

    Learners need a bounded set: use it inside an `Intersection`.

    Parameters
    ----------
    normal : array
        a, of the shape of a point. Not zero.
    offset : float
        b.

    Examples
    --------
    >>> from thalweg.domains import HalfSpace
    >>> HalfSpace([0.0, 2.0], 1.0).project([2.0, 1.0])
    array([2. , 0.5])
    """

    onto = projections.HALF_SPACE

    def __init__(self, normal: ArrayLike, offset: float) -> None:
        self.normal = np.atleast_1d(check_array("HalfSpace", "normal", normal))
        self.offset = check_number("HalfSpace", "offset", offset)
        length = float(np.linalg.norm(self.normal))
        if length == 0:
            raise InputError(
                "The 'normal' parameter of HalfSpace must not be zero: every point or none would satisfy it."
            )
        a, b = self.normal / length, self.offset / length
        self._state_facts(a.shape, min(b, 0.0) * a, np.inf, np.inf)
        self.par = np.concatenate([[b], a.ravel()])

    def _faces(self) -> tuple[Floats, Floats, Floats, Floats]:
        return self.par[None, 1:], self.par[:1], np.zeros((0, self.dim)), np.zeros(0)

    def _support(self, directions: Floats) -> Floats:
        """Finite along the normal only."""
        along = directions @ self.par[1:]
        across = np.linalg.norm(directions - along[:, None] * self.par[1:], axis=1)
        finite = (along >= 0) & (across <= 1e-15 * along)
        return np.where(finite, along * self.par[0], np.where(directions.any(axis=1), np.inf, 0.0))

    def _inner_ball(self) -> tuple[Floats, float]:
        """One of radius 1: there is no largest."""
        return self.center - self.par[1:].reshape(self.shape), 1.0

    def __repr__(self) -> str:
        return f"HalfSpace({short_array(self.normal)}, {self.offset:g})"
