"""The intersection of several sets: Dykstra's algorithm for points nearby, averaged reflections for all others.

Birgin and Raydan, "Robust stopping criteria for Dykstra's algorithm", SIAM J. Sci. Comput. 26 (2005).
Walker and Ni, "Anderson acceleration for fixed-point iterations", SIAM J. Numer. Anal. 49 (2011).
"""

import itertools
import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from thalweg._validate import check_count, check_positive
from thalweg.domains._base import FARTHEST, RANK, Array, Domain, length
from thalweg.domains.half_space import HalfSpace
from thalweg.domains.polytope import Polytope
from thalweg.errors import InputError, ProjectionError

__all__ = ["Intersection"]

# Dykstra's algorithm is tried on points no more than so many radii away, for so many rounds.
NEAR, DYKSTRA = 3.0, 30
# What rounding may do to an answer, relative to the distance of the point.
ROUNDING = 64 * np.finfo(float).eps
# Earlier rounds from which a reflection learns, and how much worse than the last it may make things.
MEMORY, WORSE = 10, 2.0
# Rounds after which polyhedra among the members are taken together, which costs more a round.
PATIENCE = 300
# The largest number of entries for which that is done.
MERGED = 200


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
        return all(domain.distance(x) <= tol * self._scale(x) for domain in self.domains)

    def _project_flat(self, y: Array) -> Array:
        c, bounded = self.center.ravel(), math.isfinite(self.radius)
        # the point of the affine hull nearest to y has the same projection
        gap = self._directions((y - c)[None])[0] if self.flat else y - c
        far = length(gap)
        unit = self.radius if bounded else max(1.0, far)
        if far > FARTHEST * unit:
            gap, far = gap / far * (FARTHEST * unit), FARTHEST * unit
        scale = self._scale(c) if bounded else unit
        rounds = min(PATIENCE, self.max_iterations) if self._merged else self.max_iterations
        x = self._by_dykstra(c + gap, far, scale) if far <= NEAR * unit else None
        if x is None:
            x = self._by_reflections(self.domains, gap, far, unit, scale, rounds)
        if x is None and self._merged:
            x = self._by_reflections(self._merged, gap, far, unit, scale, self.max_iterations)
        if x is None:
            raise ProjectionError(
                f"{self!r}: after {self.max_iterations} rounds the sets still pull the point to and fro by more than the "
                f"tolerance {self.tol * scale:.3g}. If they have a point in common, raise 'max_iterations' or 'tol'."
            )
        # of an unbounded set: much nearer than y, x is exact in units of y, not yet in its own
        return self._project_flat(x) if not bounded and unit > 1.0 and length(x - c) < 0.1 * unit else x

    @cached_property
    def _merged(self) -> list[Domain]:
        """The members, those that are polyhedra as one; empty if there is nothing to merge, or too much."""
        polyhedra = [d for d in self.domains if d._faces() is not None]
        if len(polyhedra) < 2 or self.dim > MERGED:
            return []
        return [Polytope._common(polyhedra, self), *(d for d in self.domains if d._faces() is None)]

    def _by_dykstra(self, y: Array, far: float, scale: float) -> Array | None:
        """Dykstra's algorithm for a few rounds; None if they were too few."""
        x, small = y.copy(), max(self.tol * scale, ROUNDING * far)
        steps, points = np.zeros((2, len(self.domains), self.dim))
        for _ in range(min(DYKSTRA, self.max_iterations)):
            square = 0.0
            for domain, step, point in zip(self.domains, steps, points, strict=True):
                start = x + step
                point[:] = domain._project_flat(start)
                square += float(np.sum((point - x) ** 2))  # = the change of this set's step
                step[:] = start - point
                x = point.copy()
            if math.sqrt(square) <= small and float(np.sum(steps * (points - x))) <= small * max(scale, far):  # (2)
                return x
        return None

    def _by_reflections(
        self, parts: Sequence[Domain], gap: Array, far: float, unit: float, scale: float, rounds: int
    ) -> Array | None:
        """Averaged reflections (Douglas and Rachford) in units of the set, accelerated; None if `rounds` are too few."""
        c, k = self.center.ravel(), len(parts)
        if k == 1:
            return parts[0]._project_flat(c + gap)
        L = max(1.0, far / unit)
        t = gap / (L * unit)
        tol, small, reach = self.tol * scale / unit, max(self.tol * scale, ROUNDING * far) / unit, max(scale / unit, L)
        s = np.tile(t, (k, 1))
        x = np.empty_like(s)
        moves, turns = np.empty((2, MEMORY, s.size))
        count, before, safe = -1, math.inf, s
        for _ in range(rounds):
            w = (t + s.sum(axis=0)) / (1.0 / L + k)
            start = 2.0 * w - s
            for domain, q, point in zip(parts, start, x, strict=True):
                point[:] = (domain._project_flat(c + unit * q) - c) / unit
            g = x - w
            size = float(np.linalg.norm(g))
            if (
                size <= tol
                and L * float(np.linalg.norm(g.sum(axis=0))) <= small
                and L * float(np.sum((start - x) * g)) <= small * reach
            ):
                return c + unit * w
            if size > WORSE * before:
                s, count, before = safe, -1, math.inf
                continue
            if count >= 0:
                moves[count % MEMORY], turns[count % MEMORY] = (s - last_s).ravel(), (g - last_g).ravel()
            count += 1
            last_s, last_g, before, safe = s, g, size, s + g
            m = min(count, MEMORY)
            if m:
                gamma = np.linalg.lstsq(turns[:m].T, g.ravel(), rcond=1e-10)[0]
                s = safe - ((moves[:m] + turns[:m]).T @ gamma).reshape(s.shape)
            else:
                s = safe
        return None

    def _support(self, directions: Array) -> Array:
        """A bound: the least among those of the members and of the ball."""
        found = [super()._support(directions), *(domain._support(directions) for domain in self.domains)]
        best: Array = np.min(found, axis=0)
        return best

    def __repr__(self) -> str:
        return f"Intersection({', '.join(map(repr, self.domains))})"
