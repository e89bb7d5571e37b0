"""The L1 ball {x : sum |x - c| <= r}."""

import math

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import LARGEST_ENTRY, check_array, check_positive, check_shape
from thalweg._kernels import projections
from thalweg.domains._base import Domain

__all__ = ["L1Ball"]


class L1Ball(Domain):
    """A ball of the 1-norm (of a matrix: the sum of the sizes of its entries). Projecting is soft thresholding.

    The threshold is exact, found as for the `Simplex`. Centre, radius and diameter are tight.

    Parameters
    ----------
    shape, radius, center
        As for `Ball`.

    Examples
    --------
    >>> from thalweg.domains import L1Ball
    >>> L1Ball(3, radius=2.0).project([3.0, -2.0, 0.5])
    array([ 1.5, -0.5, 0. ])
    """

    onto = projections.L1_BALL

    def __init__(self, shape: int | tuple[int, ...], radius: float = 1.0, center: ArrayLike | None = None) -> None:
        size = check_shape("L1Ball", "shape", shape)
        c = np.zeros(size) if center is None else check_array("L1Ball", "center", center, shape=size)
        r = check_positive("L1Ball", "radius", radius, LARGEST_ENTRY)
        self._state_facts(size, c, r, 2 * r)
        self.par = np.concatenate([[r], c.ravel()])

    def _support(self, directions: Floats) -> Floats:
        best: Floats = directions @ self.center.ravel() + self.radius * np.abs(directions).max(axis=1)
        return best

    def _inner_ball(self) -> tuple[Floats, float]:
        return self.center, self.radius / math.sqrt(self.dim)

    def _depth(self, point: Floats) -> tuple[float, Floats]:
        off, root = point - self.center.ravel(), math.sqrt(self.dim)
        return (self.radius - float(np.abs(off).sum())) / root, -np.sign(off) / root

    def __repr__(self) -> str:
        return f"L1Ball({self._shape_text()}, radius={self.radius:g}{self._center_text()})"
