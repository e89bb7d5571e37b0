"""The ellipsoid {w : (w - c)^T E (w - c) <= rho}."""

import math

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import LARGEST_ENTRY, check_array, check_positive, short_array
from thalweg._kernels import projections
from thalweg.domains._base import Domain
from thalweg.errors import InputError

__all__ = ["Ellipsoid"]

# A matrix is taken as symmetric when its halves differ by no more than rounding does.
SYMMETRY = 1e-10


class Ellipsoid(Domain):
    """An ellipsoid. Projecting finds the root of one equation in one unknown, to machine precision.

    The nearest point is w = c + (I + lam E)^{-1} (y - c), where lam > 0 solves (w - c)^T E (w - c) = rho. Centre,
    radius sqrt(rho / e_min) and diameter are tight.

    Parameters
    ----------
    weights : array
        E: a vector e of positive numbers means diag(e), or a symmetric positive definite matrix.
    bound : float
        rho.
    center : array, optional
        c, the origin when left out.

    Examples
    --------
    >>> from thalweg.domains import Ellipsoid
    >>> Ellipsoid([1.0, 4.0], bound=4.0).project([0.0, 3.0])
    array([0., 1.])
    """

    def __init__(self, weights: ArrayLike, bound: float = 1.0, center: ArrayLike | None = None) -> None:
        E = check_array("Ellipsoid", "weights", weights)
        self.weights, self.bound = E, check_positive("Ellipsoid", "bound", bound, LARGEST_ENTRY)
        n = E.shape[0] if E.ndim else 0
        if n == 0 or E.shape not in ((n,), (n, n)):
            raise InputError(
                "The 'weights' parameter of Ellipsoid must be a vector (a diagonal) or a square matrix. "
                f"Got shape {E.shape}."
            )
        c = np.zeros(n) if center is None else check_array("Ellipsoid", "center", center, shape=(n,))
        if E.ndim == 1:
            e, rows = E, np.zeros((0, n))
            self.onto = projections.ELLIPSOID
        else:
            if np.abs(E - E.T).max() > SYMMETRY * np.abs(E).max():
                raise InputError("The 'weights' matrix of Ellipsoid must be symmetric. Pass (E + E.T) / 2.")
            e, vectors = np.linalg.eigh((E + E.T) / 2)
            rows = vectors.T
            self.onto = projections.ROTATED_ELLIPSOID
        if not e.min() > 0:
            what = "entries" if E.ndim == 1 else "eigenvalues"
            raise InputError(
                f"The 'weights' parameter of Ellipsoid must have positive {what}, or the set is unbounded. "
                f"Got a smallest one of {e.min():g}."
            )
        radius = math.sqrt(self.bound / e.min())
        self._state_facts((n,), c, radius, 2 * radius)
        # the kernel's bound is 1
        self.par = np.concatenate([e / self.bound, self.bound / e, c, rows.ravel()])

    def _support(self, directions: Floats) -> Floats:
        n = self.dim
        turned = directions @ self.par[3 * n :].reshape(n, n).T if self.weights.ndim == 2 else directions
        return directions @ self.center + np.sqrt(turned**2 @ self.par[n : 2 * n])

    def _inner_ball(self) -> tuple[Floats, float]:
        return self.center, math.sqrt(float(self.par[self.dim : 2 * self.dim].min()))

    def _depth(self, point: Floats) -> tuple[float, Floats]:
        """r (1 - q) with q the norm whose unit ball is the set: q(v) <= ||v|| / r."""
        off, r = point - self.center, self._inner_ball()[1]
        pull = (self.weights @ off if self.weights.ndim == 2 else self.weights * off) / self.bound
        q = math.sqrt(max(float(pull @ off), 0.0))
        return r * (1 - q), -r * pull / (q or 1.0)

    def __repr__(self) -> str:
        return f"Ellipsoid({short_array(self.weights)}, bound={self.bound:g}{self._center_text()})"
