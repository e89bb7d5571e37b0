"""A product of balls {x = (x_1..x_k) : ||x_i - c_i|| <= r_i}."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import check_array, check_count, check_items, check_positives, check_shape, short_array
from thalweg._kernels import projections
from thalweg.domains._base import Domain
from thalweg.errors import InputError

__all__ = ["ProductOfBalls"]


class ProductOfBalls(Domain):
    """A point in blocks, each in its own ball. Projecting rescales every block. Radius and diameter are tight.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of a point. The first axis runs over the blocks: (H, m, n) means H matrices of m by n.
    radii : float or array
        r_i, one for each block, or a number for all.
    center : array, optional
        c, the origin when left out.
    sizes : sequence of int, optional
        Other blocks: how many consecutive entries (in row-major order) each block holds.

    Examples
    --------
    >>> from thalweg.domains import ProductOfBalls
    >>> ProductOfBalls(3, [5.0, 1.0], sizes=[2, 1]).project([6.0, 8.0, 0.5])
    array([3. , 4. , 0.5])
    >>> ProductOfBalls((4, 2, 3), 1.0).radius
    2.0
    """

    onto = projections.PRODUCT_OF_BALLS

    def __init__(
        self,
        shape: int | tuple[int, ...],
        radii: ArrayLike,
        center: ArrayLike | None = None,
        *,
        sizes: list[int] | tuple[int, ...] | None = None,
    ) -> None:
        who = "ProductOfBalls"
        size = check_shape(who, "shape", shape)
        dim = math.prod(size)
        blocks = [dim // size[0]] * size[0]
        if sizes is not None:
            blocks = [check_count(who, "sizes", n) for n in check_items(who, "sizes", sizes, "a list of whole numbers")]
        if sum(blocks) != dim:
            raise InputError(f"The 'sizes' parameter of {who} must sum to the {dim} entries of a point. Got {blocks}.")
        self.radii = check_positives(who, "radii", radii, len(blocks))
        c = np.zeros(size) if center is None else check_array(who, "center", center, shape=size)
        self.sizes = tuple(blocks)
        radius = float(np.linalg.norm(self.radii))
        self._state_facts(size, c, radius, 2 * radius)
        self.par = np.concatenate([[len(blocks)], self.radii, blocks, c.ravel()])

    @property
    def surrogate(self) -> ProductOfBalls:
        """Itself: nothing is cheaper."""
        return self

    def _support(self, directions: Floats) -> Floats:
        starts = np.cumsum((0, *self.sizes[:-1]))
        lengths = np.sqrt(np.add.reduceat(directions**2, starts, axis=1))
        return directions @ self.center.ravel() + lengths @ self.radii

    def _inner_ball(self) -> tuple[Floats, float]:
        return self.center, float(self.radii.min())

    def _depth(self, point: Floats) -> tuple[float, Floats]:
        off, starts = point - self.center.ravel(), np.cumsum((0, *self.sizes[:-1]))
        lengths = np.sqrt(np.add.reduceat(off**2, starts))
        k = int(np.argmin(self.radii - lengths))
        slope, block = np.zeros(self.dim), slice(starts[k], starts[k] + self.sizes[k])
        slope[block] = -off[block] / (lengths[k] or 1.0)
        return float(self.radii[k] - lengths[k]), slope

    def __repr__(self) -> str:
        equal = len(set(self.sizes)) == 1 and len(self.sizes) == self.shape[0]
        sizes = "" if equal else f", sizes={short_array(self.sizes)}"
        return f"ProductOfBalls({self._shape_text()}, {short_array(self.radii)}{self._center_text()}{sizes})"
