"""The Euclidean ball {x : ||x - c|| <= R}."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import LARGEST_ENTRY, check_array, check_positive, check_shape
from thalweg._kernels import projections
from thalweg.domains._base import Domain, length

__all__ = ["Ball"]


class Ball(Domain):
    """A Euclidean ball; for matrices the norm is Frobenius'. Projecting is a rescale.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of a point.
    radius : float
        R.
    center : array, optional
        c, the origin when left out.

    Examples
    --------
    >>> from thalweg.domains import Ball
    >>> Ball(2, radius=5.0).project([6.0, 8.0])
    array([3., 4.])
    """

    onto = projections.BALL

    def __init__(self, shape: int | tuple[int, ...], radius: float = 1.0, center: ArrayLike | None = None) -> None:
        size = check_shape("Ball", "shape", shape)
        c = np.zeros(size) if center is None else check_array("Ball", "center", center, shape=size)
        R = check_positive("Ball", "radius", radius, LARGEST_ENTRY)
        self._state_facts(size, c, R, 2 * R)
        self.par = np.concatenate([[R], c.ravel()])

    @property
    def surrogate(self) -> Ball:
        """Itself: nothing is cheaper."""
        return self

    def _inner_ball(self) -> tuple[Floats, float]:
        return self.center, self.radius

    def _depth(self, point: Floats) -> tuple[float, Floats]:
        off = point - self.center.ravel()
        away = length(off)
        return self.radius - away, -off / (away or 1.0)

    def __repr__(self) -> str:
        return f"Ball({self._shape_text()}, radius={self.radius:g}{self._center_text()})"
