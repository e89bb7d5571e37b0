"""A set drawn together around one of its points: {c + (1 - a)(x - c) : x in X}."""

import numpy as np

from thalweg._core.types import Floats
from thalweg.domains._base import Domain

__all__ = ["Shrunk"]


class Shrunk(Domain):
    """X_a = c + (1 - a)(X - c). One projection onto it is one projection onto X:

        Pi(y) = c + (1 - a)(Pi_X(c + (y - c)/(1 - a)) - c)                                                  (1)

    If c lies in X together with a ball of radius r around it, then so does every point of X_a with one of radius a r.

    Parameters
    ----------
    domain : Domain
        X.
    point : array
        c, in X.
    share : float
        a, from 0 to less than 1.
    """

    def __init__(self, domain: Domain, point: Floats, share: float) -> None:
        self.domain, self.point, self.share = domain, np.array(point, dtype=np.float64).ravel(), share
        keep = 1 - share
        center = self.point + keep * (domain.center.ravel() - self.point)
        self._state_facts(domain.shape, center, keep * domain.radius, keep * domain.diameter)
        self.tolerance, self.flat, self.flat_par = domain.tolerance, domain.flat, domain.flat_par

    def _project_flat(self, y: Floats) -> Floats:
        c, keep = self.point, 1 - self.share
        return c + keep * (self.domain._project_flat(c + (y - c) / keep) - c)  # (1)

    def __repr__(self) -> str:
        return f"Shrunk({self.domain!r}, {self.share:g})"
