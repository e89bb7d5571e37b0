"""The simplex {x >= 0, sum x = s}."""

import math

import numpy as np

from thalweg._core.types import Floats
from thalweg._core.validate import LARGEST_ENTRY, check_count, check_entries, check_positive
from thalweg._kernels import hulls, projections
from thalweg.domains._base import Domain

__all__ = ["Simplex"]


class Simplex(Domain):
    """The simplex: non-negative entries that sum to `total`. Projecting subtracts a threshold and clips at zero.

    The threshold is exact; no sorting. Centre (total / n), radius total sqrt(1 - 1/n) and diameter are tight. In one
    dimension the set is a single point, whose radius is stated as a tiny positive number.

    Parameters
    ----------
    dim : int
        n, the number of entries.
    total : float
        The sum of the entries.

    Examples
    --------
    >>> from thalweg.domains import Simplex
    >>> Simplex(3).project([0.5, 0.9, -2.0])
    array([0.3, 0.7, 0. ])
    """

    onto = projections.SIMPLEX
    flat = hulls.MEAN

    def __init__(self, dim: int, total: float = 1.0) -> None:
        n = check_count("Simplex", "dim", dim)
        check_entries("Simplex", "dim", dim, n)
        self.total = check_positive("Simplex", "total", total, LARGEST_ENTRY)
        # the diameter is the distance of two vertices; one dimension has one vertex
        diameter = self.total * math.sqrt(2) if n > 1 else 0.0
        self._state_facts((n,), np.full(n, self.total / n), self.total * math.sqrt(1 - 1 / n), diameter)
        self.par = np.array([self.total])

    def _faces(self) -> tuple[Floats, Floats, Floats, Floats]:
        n = self.dim
        return -np.eye(n), np.zeros(n), np.full((1, n), n**-0.5), np.array([self.total * n**-0.5])

    def _support(self, directions: Floats) -> Floats:
        best: Floats = self.total * directions.max(axis=1)
        return best

    def _inner_ball(self) -> tuple[Floats, float]:
        n = self.dim
        return self.center, self.total / math.sqrt(n * (n - 1)) if n > 1 else 0.0

    def __repr__(self) -> str:
        return f"Simplex({self.dim})" if self.total == 1 else f"Simplex({self.dim}, total={self.total:g})"
