"""The Fantope {P symmetric : 0 <= P <= I, trace P = k}: the convex hull of the projection matrices of rank k."""

import math

import numpy as np

from thalweg._core.types import Floats
from thalweg._core.validate import check_count, check_entries
from thalweg._kernels import hulls
from thalweg._kernels.pca import cap
from thalweg.domains._base import Domain
from thalweg.errors import InputError, ProjectionError

__all__ = ["Fantope"]


class Fantope(Domain):
    """The convex hull of the orthogonal projections onto k-dimensional subspaces of R^d.

    Projecting takes one eigendecomposition of the symmetric part; its eigenvalues are shifted by one number and
    clipped to [0, 1] such that they sum to k. Centre (k/d) I, radius sqrt(k (d - k) / d) and diameter
    sqrt(2 min(k, d - k)) are tight. With k = d the set is a single point, whose radius is stated as a tiny positive
    number.

    Parameters
    ----------
    dim : int
        d.
    rank : int
        k, from 1 to d.

    Examples
    --------
    >>> from thalweg.domains import Fantope
    >>> Fantope(2, 1).project([[2.0, 0.0], [0.0, 0.0]])
    array([[1., 0.],
           [0., 0.]])
    """

    flat = hulls.TRACE  # for k = d as well, though a single point has no directions at all

    def __init__(self, dim: int, rank: int) -> None:
        d, k = check_count("Fantope", "dim", dim), check_count("Fantope", "rank", rank)
        check_entries("Fantope", "dim", dim, d * d)
        if k > d:
            raise InputError(f"The 'rank' parameter of Fantope must be at most its 'dim' of {d}. Got {k}.")
        self.rank = k
        self._state_facts((d, d), k / d * np.eye(d), math.sqrt(k * (d - k) / d), math.sqrt(2 * min(k, d - k)))

    def _project_flat(self, y: Floats) -> Floats:
        Y = y.reshape(self.shape)
        try:
            sigma, U = np.linalg.eigh(0.5 * (Y + Y.T))
        except np.linalg.LinAlgError as error:
            raise ProjectionError(f"{self!r}: the eigendecomposition did not converge.") from error
        # the shift lies between -sigma_k and 1 - sigma_k, sigma_k the k-th largest: values further from sigma_k than 1
        # end at 0 or 1 all the same, so clipping keeps the precision of far points
        values = np.empty_like(sigma)
        cap(np.clip(sigma - sigma[-self.rank], -1.0, 1.0), self.rank, values)
        P = (U * values) @ U.T
        x: Floats = 0.5 * (P + P.T)
        return x.ravel()

    def _support(self, directions: Floats) -> Floats:
        V = directions.reshape(-1, *self.shape)
        best: Floats = np.linalg.eigvalsh(0.5 * (V + V.transpose(0, 2, 1)))[:, -self.rank :].sum(axis=1)
        return best

    def _inner_ball(self) -> tuple[Floats, float]:
        d, k = self.shape[0], self.rank
        return self.center, min(k, d - k) / math.sqrt(d * (d - 1)) if d > 1 else 0.0

    def _depth(self, point: Floats) -> tuple[float, Floats]:
        """No eigenvalue of a symmetric matrix of trace 0 is larger than sqrt(1 - 1/d) of its norm."""
        Y, d = point.reshape(self.shape), self.shape[0]
        sigma, U = np.linalg.eigh(0.5 * (Y + Y.T))
        low = sigma[0] <= 1 - sigma[-1]
        u, share = (U[:, 0], 1.0) if low else (U[:, -1], -1.0)
        root = math.sqrt(1 - 1 / d) or 1.0
        return float(sigma[0] if low else 1 - sigma[-1]) / root, (share / root * np.outer(u, u)).ravel()

    def __repr__(self) -> str:
        return f"Fantope({self.shape[0]}, {self.rank})"
