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

from thalweg._core.types import Floats
from thalweg._core.validate import check_count, check_positive
from thalweg.domains._base import FARTHEST_POINT, RANK, Domain, length
from thalweg.domains.ball import Ball
from thalweg.domains.half_space import HalfSpace
from thalweg.domains.polytope import Polytope
from thalweg.errors import InputError, ProjectionError

__all__ = ["Intersection"]

# Dykstra's algorithm is tried on points at most NEAR radii away, for DYKSTRA rounds.
NEAR, DYKSTRA = 3.0, 100
# Rounding error of an answer, relative to the distance of the point.
ANSWER_ROUNDING = 64 * np.finfo(float).eps
# Earlier rounds from which a reflection learns, and how much worse than the last one it may be.
REMEMBERED_ROUNDS, WORSE = 10, 2.0
# Rounds after which the sets are taken apart in another way, or the point is given a lower weight: a hundredth.
PATIENCE, LESS = 300, 100.0
# The largest number of entries for which polyhedra among the members are made one.
MERGED = 200
# Trials of the radius from which the answer is found.
TRIALS = 200


class Intersection(Domain):
    """The points that lie in all of several sets. Projections alternate between the sets, to a tolerance.

    Nearby points are tried with Dykstra's algorithm, which takes back the step that a set made last time before it
    projects onto it again, and stops when these steps stay the same (Birgin and Raydan). Where it is slow, and for far
    points, averaged reflections take its place; where these are slow, too, polyhedra among the members become one
    `Polytope` and balls are taken off one by one. The result x for y is within `tol` of every set, and normals
    of the sets certify it: <y - x, z - x> <= 0 for all z in the set, up to `tol` times ||y - x|| or the scale.

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
        """The affine hull as known from the members: theirs, and half-spaces that meet in a plane."""
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
        return all(domain.distance(x) <= self._absolute_tolerance(tol, x) for domain in self.domains)

    def _project_flat(self, y: Floats) -> Floats:
        c, bounded = self.center.ravel(), math.isfinite(self.radius)
        # the point of the affine hull nearest to y has the same projection
        gap = self._directions((y - c)[None])[0] if self.flat else y - c
        far = length(gap)
        unit = self.radius if bounded else max(1.0, far)
        if far > FARTHEST_POINT * unit:
            gap, far = gap / far * (FARTHEST_POINT * unit), FARTHEST_POINT * unit
        y = c + gap
        x = self._by_dykstra(y, far) if far <= NEAR * unit else None
        if x is None and len(self._parts) != 1:
            rounds = min(PATIENCE, self.max_iterations) if self._parts else self.max_iterations
            x = self._by_reflections(self.domains, y, unit, rounds)
        if x is None and self._parts:
            x = self._by_parts(self._parts, y, unit)
        if x is None:
            raise self._failure(y)
        # of an unbounded set: much nearer than y, x is exact in units of y, not yet in its own
        return self._project_flat(x) if not bounded and unit > 1.0 and length(x - c) < 0.1 * unit else x

    @cached_property
    def _parts(self) -> list[Domain]:
        """The members, those that are polyhedra as one, balls first; empty if that is no gain."""
        polyhedra = [d for d in self.domains if d._faces() is not None]
        balls = [d for d in self.domains if isinstance(d, Ball)]
        if len(polyhedra) > 1 and self.dim <= MERGED:
            polyhedra = [Polytope._common(polyhedra, self)]
        parts = [*balls, *polyhedra, *(d for d in self.domains if d not in balls and d._faces() is None)]
        return parts if balls or len(parts) < len(self.domains) else []

    def _failure(self, y: Floats) -> ProjectionError:
        return ProjectionError(
            f"{self!r}: after {self.max_iterations} rounds the sets still pull the point to and fro, by more than the "
            f"tolerance {self.tol * self._scale(y):.3g}. If they have a point in common, raise 'max_iterations' or "
            "'tol'."
        )

    def _accepts(self, y: Floats, x: Floats, points: Floats, normals: Floats) -> bool:
        """Whether x, in the set, is its point nearest to y, to the tolerance: the certificate.

        Every row n_i of `normals` is one of a member at p_i in `points`: <n_i, z - p_i> <= 0 for all its points z. So

            <y - x, z - x> <= sum_i <n_i, p_i - x> + ||y - x - sum_i n_i|| ||z - x||   for all z of the set     (1)
        """
        far, scale = length(y - x), self._scale(y)
        tol = self.tol * scale
        rest, gap = np.linalg.norm(y - x - normals.sum(axis=0)), np.sum(normals * (points - x))
        return bool(rest <= max(tol, ANSWER_ROUNDING * far) and gap <= tol * max(scale, far))

    def _by_dykstra(self, y: Floats, far: float) -> Floats | None:
        """Dykstra's algorithm for a few rounds; None if they are too few."""
        x, small = y, max(self.tol * self._scale(y), ANSWER_ROUNDING * far)
        steps, points = np.zeros((2, len(self.domains), self.dim))
        for _ in range(min(DYKSTRA, self.max_iterations)):
            square = 0.0
            for domain, step, point in zip(self.domains, steps, points, strict=True):
                start = x + step
                moved = domain._project_flat(start)
                square += float(np.sum((moved - x) ** 2))  # = the change of this set's step
                step[:] = start - moved
                point[:] = x = moved
            # 0: nothing moves at all, as for a point of the set
            if square == 0.0 or (square <= small * small and self._accepts(y, x, points, steps)):
                return x
        return None

    def _by_reflections(self, parts: Sequence[Domain], y: Floats, unit: float, rounds: int) -> Floats | None:
        """Douglas and Rachford's averaged reflections with Anderson's acceleration; None if `rounds` are too few.

        In units of the set. The point t weighs 1/rho against the sets, s_i belongs to set i:

            w = (t/rho + sum_i s_i) / (1/rho + k),   x_i = P_i(2 w - s_i),   s_i <- s_i + x_i - w              (2)

        Where all x_i = w, that is the answer, and rho (w - s_i) are normals that add up to t - w. With rho = ||t|| all
        numbers stay as small as the set, however far t. A point that is far from the set only along one direction
        weighs too little for the others, and rho gets smaller in time.
        """
        c, k = self.center.ravel(), len(parts)
        t = (y - c) / unit
        rho = max(1.0, length(t))
        s = np.tile(t / rho, (k, 1))
        x = np.empty_like(s)
        moves, turns = np.empty((2, REMEMBERED_ROUNDS, s.size))
        kept, before, plain, last, last_g = -1, math.inf, s, s, s
        for count in range(1, rounds + 1):
            w = (t / rho + s.sum(axis=0)) / (1.0 / rho + k)  # (2)
            start = 2.0 * w - s
            for domain, q, point in zip(parts, start, x, strict=True):
                point[:] = (domain._project_flat(c + unit * q) - c) / unit
            g = x - w
            size = float(np.linalg.norm(g))
            if size * unit <= self.tol * self._scale(y) and self._accepts(
                y, c + unit * w, c + unit * x, rho * unit * (start - x)
            ):
                return np.asarray(c + unit * w)
            if size > WORSE * before:  # the acceleration was none
                s, kept, before = plain, -1, math.inf
                continue
            if kept >= 0:
                place = kept % REMEMBERED_ROUNDS
                moves[place], turns[place] = (s - last).ravel(), (g - last_g).ravel()
            kept, last, last_g, before, plain = kept + 1, s, g, size, s + g
            if count % PATIENCE == 0 and rho > 1.0:
                less = max(1.0, rho / LESS)
                s = w - (w - s) * (rho / less)  # the same normals
                rho, kept, before, plain = less, -1, math.inf, s
                continue
            m = min(kept, REMEMBERED_ROUNDS)
            shift = np.linalg.lstsq(turns[:m].T, g.ravel(), rcond=None)[0] @ (moves[:m] + turns[:m]) if m else 0.0
            s = plain - np.reshape(shift, s.shape if m else ())
        return None

    def _by_parts(self, parts: Sequence[Domain], y: Floats, unit: float) -> Floats:
        """One ball at a time. With b and r that of the first, and C the other sets, the answer is

            x(u) = P_C(b + u (y - b)),   u in (0, 1] the largest with ||x(u) - b|| <= r                              (3)

        since y - x = (q - x)/u + (1/u - 1) (x - b) with q = b + u (y - b): a normal of C and one of the ball. The
        distance grows with u, so u is found between two trials. Where rounding leaves a jump between them, the answer
        lies on the segment of their points, which belongs to C.
        """
        if len(parts) == 1:
            return parts[0]._project_flat(y)
        if not isinstance(parts[0], Ball):
            found = self._by_reflections(parts, y, unit, self.max_iterations)
            if found is None:
                raise self._failure(y)
            return found
        from scipy.optimize import brentq

        b, r = parts[0].center.ravel(), parts[0].radius
        trials: dict[bool, tuple[float, Floats]] = {}

        def excess(log_u: float) -> float:
            u = math.exp(log_u)
            x = self._by_parts(parts[1:], b + u * (y - b), unit)  # (3)
            over = length(x - b) - r
            trials[over > 0.0] = u, x
            return over

        if excess(0.0) <= 0.0:
            return trials[False][1]
        away = length(y - b)
        least = math.log(r / away) - 40.0 if away else 0.0  # so small a u is 0
        if excess(least) > 0.0:
            raise self._failure(y)
        brentq(excess, least, 0.0, xtol=1e-15, rtol=4 * np.finfo(float).eps, maxiter=TRIALS, disp=False)
        (low, p), (high, q) = trials[False], trials[True]
        # where the segment from p to q leaves the ball
        way, start = q - p, p - b
        slope, square = float(way @ start), float(way @ way)
        slack = (r - length(start)) * (r + length(start))
        share = slack / (slope + math.sqrt(slope**2 + square * slack)) if slack > 0.0 else 0.0
        x = p + share * way
        u = (1.0 - share) * low + share * high
        of_C = (1.0 - share) / u * (b + low * (y - b) - p), share / u * (b + high * (y - b) - q)
        if not self._accepts(y, x, np.array([p, q, x]), np.array([*of_C, (1.0 / u - 1.0) * (x - b)])):
            raise self._failure(y)
        return x

    def _support(self, directions: Floats) -> Floats:
        """A bound: the least among those of the members and of the ball."""
        found = [super()._support(directions), *(domain._support(directions) for domain in self.domains)]
        best: Floats = np.min(found, axis=0)
        return best

    def _inner_ball(self) -> tuple[Floats, float]:
        from thalweg.domains._inside import deepest

        members = self._members()
        for member in members:
            if member._faces() is None and member._depth(self.center.ravel()) is None:
                raise InputError(
                    f"{self!r} does not know a ball inside it, since {member!r} does not say how far inside a point "
                    "lies. Give a ball to the learner: interior=(point, radius)."
                )
        return deepest(self, members)

    def _members(self) -> list[Domain]:
        """Members, of members too."""
        return [m for d in self.domains for m in (d._members() if isinstance(d, Intersection) else [d])]

    def __repr__(self) -> str:
        return f"Intersection({', '.join(map(repr, self.domains))})"
