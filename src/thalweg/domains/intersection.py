"""The intersection of several sets, by Dykstra's algorithm.

Birgin and Raydan, "Robust stopping criteria for Dykstra's algorithm", SIAM J. Sci. Comput. 26 (2005).
"""

import itertools
import math

import numpy as np
from numpy.typing import ArrayLike

from thalweg._validate import check_count, check_positive
from thalweg.domains._base import RANK, Array, Domain
from thalweg.domains.half_space import HalfSpace
from thalweg.errors import InputError, ProjectionError

__all__ = ["Intersection"]


class Intersection(Domain):
    """The points that lie in all of several sets. Projecting runs Dykstra's algorithm to a tolerance.

    Dykstra goes round the sets; before it projects onto one, it takes back the step which that set made last time.
    It stops when these steps stay the same for a whole round (Birgin and Raydan), not when the point does: the point
    can rest for many rounds and move on. What is returned, x for y, is then within `tol` of every set and satisfies the
    optimality condition of the nearest point, <y - x, z - x> <= 0 for all z in the set, up to `tol` times the length of
    the steps. Sets that meet at a sharp angle need many rounds; a `Polytope` is better than many half-spaces.

    Centre and radius are those of the smallest enclosing ball among the members, the diameter is the smallest among
    theirs: correct, in general not tight. Infinite when no member is bounded. The affine hull is that of the members
    together, and of half-spaces that leave only a plane; where sets touch in another way it may be smaller than known.

    Parameters
    ----------
    *domains : Domain
        At least two sets of points of one shape.
    tol : float
        Accuracy, relative to the scale of the set.
    max_iterations : int
        Rounds after which to give up with a `ProjectionError`.

    Examples
    --------
    >>> from thalweg.domains import Ball, HalfSpace, Intersection
    >>> Intersection(Ball(2), HalfSpace([1.0, 0.0], 0.0)).project([1.0, 2.0]).round(9)
    array([0., 1.])
    """

    def __init__(self, *domains: Domain, tol: float = 1e-10, max_iterations: int = 10_000) -> None:
        strangers = [type(d).__name__ for d in domains if not isinstance(d, Domain)]
        if strangers or len(domains) < 2:
            got = f"an argument of type {strangers[0]}" if strangers else f"{len(domains)}"
            raise InputError(f"Intersection needs at least two domains. Got {got}.")
        if len({d.shape for d in domains}) > 1:
            raise InputError(
                f"The domains of an Intersection must hold points of one shape. Got {[d.shape for d in domains]}."
            )
        self.domains = domains
        self.tol = check_positive("Intersection", "tol", tol)
        self.tolerance = 10 * self.tol
        self.max_iterations = check_count("Intersection", "max_iterations", max_iterations)
        smallest = min(domains, key=lambda d: d.radius)
        self._state_facts(smallest.shape, smallest.center, smallest.radius, min(d.diameter for d in domains))
        self._find_flat()

    def _find_flat(self) -> None:
        """The affine hull as far as the members tell: their own, and half-spaces that meet in a plane."""
        flats = [d for d in self.domains if d.flat]
        walls = [d for d in self.domains if isinstance(d, HalfSpace)]
        planes = [p.par for p, q in itertools.combinations(walls, 2) if np.array_equal(p.par, -q.par)]
        if len(flats) == 1 and not planes:
            self.flat, self.flat_par = flats[0].flat, flats[0].flat_par
            self._move_into_flat(flats[0].center.ravel())
        elif flats or planes:
            rows = [(n, n @ d.center.ravel()) for d in flats for n in d._normals()]
            rows += [(par[1:], par[0]) for par in planes]
            A, b = np.array([n for n, _ in rows]), np.array([side for _, side in rows])
            self._state_flat(A, np.linalg.lstsq(A, b, rcond=RANK)[0])

    def contains(self, point: ArrayLike, tol: float = 1e-9) -> bool:
        """Whether `point` lies within `tol` of every member, relative to the scale of the intersection."""
        x = self._read(point)
        return all(domain.distance(x) <= self._reach(tol, x) for domain in self.domains)

    def _project_flat(self, y: Array) -> Array:
        c = self.center.ravel()
        # the point of the affine hull nearest to y has the same projection, and fewer rounds to go
        x = c + self._directions((y - c)[None])[0] if self.flat else y.copy()
        steps = np.zeros((len(self.domains), self.dim))
        far = float(np.linalg.norm(y - c))
        # second term: the rounding error of a point this far away
        small = max(self.tol * self._scale(y), 16 * np.finfo(float).eps * far)
        change = math.inf
        for _ in range(self.max_iterations):
            square = 0.0
            for domain, step in zip(self.domains, steps, strict=True):
                start = x + step
                moved = domain._project_flat(start)
                square += float(np.sum((moved - x) ** 2))  # = the change of this set's step
                step[:] = start - moved
                x = moved
            change = math.sqrt(square)
            if change <= small:
                return x
        raise ProjectionError(
            f"{self!r}: after {self.max_iterations} rounds the sets still pull the point {change:.3g} to and fro, more "
            f"than the tolerance {small:.3g}. If they have a point in common, raise 'max_iterations' or 'tol'."
        )

    def _support(self, directions: Array) -> Array:
        """A bound: the least among those of the members and of the ball."""
        found = [super()._support(directions), *(domain._support(directions) for domain in self.domains)]
        best: Array = np.min(found, axis=0)
        return best

    def __repr__(self) -> str:
        return f"Intersection({', '.join(map(repr, self.domains))})"
