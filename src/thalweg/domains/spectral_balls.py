"""Matrices of bounded operator norm, {M = (M_1..M_H) : ||M_h||_op <= c_h}."""

import math

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import check_positives, check_shape, short_array, short_repr
from thalweg.domains._base import Domain
from thalweg.domains.product_of_balls import ProductOfBalls
from thalweg.errors import InputError, ProjectionError

__all__ = ["SpectralBalls"]


class SpectralBalls(Domain):
    """A tuple of matrices, each with its own bound on the largest singular value. Projecting clips singular values.

    One batched singular value decomposition a projection. With k = min(m, n): radius sqrt(k sum c_h^2) and diameter,
    twice that, are tight. The surrogate is the product of the Frobenius balls of radius c_h sqrt(k): no decomposition.

    Parameters
    ----------
    shape : tuple of int
        (H, m, n) for H matrices of m by n, or (m, n) for one.
    caps : float or array
        c_h, one for each matrix, or a number for all.

    Examples
    --------
    >>> from thalweg.domains import SpectralBalls
    >>> SpectralBalls((2, 2), 1.0).project([[3.0, 0.0], [0.0, 0.5]])
    array([[1. , 0. ],
           [0. , 0.5]])
    """

    def __init__(self, shape: tuple[int, ...], caps: ArrayLike = 1.0) -> None:
        size = check_shape("SpectralBalls", "shape", shape)
        if len(size) not in (2, 3):
            raise InputError(
                f"The 'shape' parameter of SpectralBalls must be (H, m, n) or (m, n). Got {short_repr(shape)}."
            )
        self._blocks = size if len(size) == 3 else (1, *size)
        self.caps = check_positives("SpectralBalls", "caps", caps, self._blocks[0])
        self._ranks = math.sqrt(min(size[-2:]))
        radius = self._ranks * float(np.linalg.norm(self.caps))
        self._state_facts(size, np.zeros(size), radius, 2 * radius)

    @property
    def surrogate(self) -> Domain:
        """The product of the Frobenius balls around the matrices."""
        sizes = [self.dim // self._blocks[0]] * self._blocks[0]
        return ProductOfBalls(self.shape, self.caps * self._ranks, sizes=sizes)

    def _project_flat(self, y: Floats) -> Floats:
        x = y.reshape(self._blocks).copy()
        unit = np.maximum(np.abs(x).max(axis=(1, 2)), self.caps)  # in these units no square overflows
        # the Frobenius norm is the larger one: below the cap there is nothing to clip
        large = np.flatnonzero(np.linalg.norm(x / unit[:, None, None], axis=(1, 2)) * unit > self.caps)
        if large.size:
            try:
                u, s, vt = np.linalg.svd(x[large] / unit[large, None, None], full_matrices=False)
            except np.linalg.LinAlgError as error:
                raise ProjectionError(f"{self!r}: the singular value decomposition did not converge.") from error
            s *= unit[large, None]
            clip = s[:, 0] > self.caps[large]
            s = np.minimum(s, self.caps[large, None])
            x[large[clip]] = ((u * s[:, None, :]) @ vt)[clip]
        return x.ravel()

    def _support(self, directions: Floats) -> Floats:
        best: Floats = np.linalg.svd(directions.reshape(-1, *self._blocks), compute_uv=False).sum(axis=2) @ self.caps
        return best

    def _inner_ball(self) -> tuple[Floats, float]:
        return self.center, float(self.caps.min())

    def _depth(self, point: Floats) -> tuple[float, Floats]:
        """The operator norm is at most Frobenius'."""
        u, s, vt = np.linalg.svd(point.reshape(self._blocks), full_matrices=False)
        h = int(np.argmin(self.caps - s[:, 0]))
        slope = np.zeros(self._blocks)
        slope[h] = -np.outer(u[h, :, 0], vt[h, 0])
        return float(self.caps[h] - s[h, 0]), slope.ravel()

    def __repr__(self) -> str:
        return f"SpectralBalls({self.shape}, {short_array(self.caps)})"
