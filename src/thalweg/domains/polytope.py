"""The polytope {x : A x <= b, A_eq x = b_eq}."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thalweg._core.types import Floats
from thalweg._core.validate import check_array, check_shape
from thalweg.domains._base import FARTHEST_POINT, RANK, Domain, length
from thalweg.errors import InputError, ProjectionError

__all__ = ["Polytope"]

Mask = NDArray[np.bool_]

# Required accuracy of an answer: of the constraints relative to the size of the set, and of the optimality conditions
# relative also to the distance of the point.
EXACT = 1e-11
# Least ratio of a set's unit to its distance from the origin: EXACT times this unit is at the level of rounding errors.
LEAST_UNIT = 64 * float(np.finfo(float).eps) / EXACT
# A set of this radius, in its own unit, counts as a point: its width is below `tolerance`.
TINY = 100 * EXACT
# The active constraints are first guessed for a point no further away than this, in units of the set.
NEAR = 1e3
# Bound on the rounding error of the inner product of two orthogonal unit vectors.
PRODUCT_ROUNDING = 1e-14
# A constraint blocks a direction if the slope towards it exceeds this; a smaller one stays below EXACT across the set.
FLAT = 1e-12
# Steps of the walk, for each row and column of A, before it gives up.
WALK_STEPS = 20


class Polytope(Domain):
    """All x that satisfy linear inequalities A x <= b, and equalities.

    Projecting is a quadratic programme. Non-negative least squares (Lawson and Hanson) guesses which constraints hold
    with equality. From the nearest point with these equalities, which is usually the answer already, an active-set
    method walks along faces to the answer. It never leaves the set, however far away the point is. An answer is
    accepted only if it satisfies all constraints and the optimality conditions to 1e-11 of the size of the set, or to
    rounding if the set is tiny compared with its distance from the origin.

    The smallest box around the set, found by up to 2n linear programmes, gives the centre, the radius and the diameter,
    which are correct but in general not tight. For an unbounded set, radius and diameter are infinite, and the centre
    is the point nearest to the origin.

    Inequalities that hold with equality on the whole set are found by one more linear programme, and their multipliers
    are checked to 1e-11. With the given equalities they determine the affine hull. A point is first projected onto
    it; everything else is done in coordinates of the hull, where the set has interior points.

    Parameters
    ----------
    A : array (m, n)
        One row per constraint; n is the number of entries of a point.
    b : array (m,)
        Right-hand sides.
    shape : int or tuple of int, optional
        Shape of a point, (n,) by default.
    A_eq, b_eq : array (k, n), array (k,), optional
        Equalities A_eq x = b_eq.

    Examples
    --------
    >>> from thalweg.domains import Polytope
    >>> triangle = Polytope([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]], [0.0, 0.0, 1.0])
    >>> triangle.project([1.0, 1.0]).round(12)
    array([0.5, 0.5])
    >>> half = Polytope([[-1.0, 0.0], [1.0, 0.0]], [0.0, 0.5], A_eq=[[1.0, 1.0]], b_eq=[1.0])
    >>> half.project([1.0, 1.0]).round(12), half.directions([1.0, 0.0]).round(12)
    (array([0.5, 0.5]), array([ 0.5, -0.5]))
    """

    tolerance = 10 * EXACT

    def __init__(
        self,
        A: ArrayLike,
        b: ArrayLike,
        shape: int | tuple[int, ...] | None = None,
        *,
        A_eq: ArrayLike | None = None,
        b_eq: ArrayLike | None = None,
    ) -> None:
        rows = check_array("Polytope", "A", A, ndim=2)
        sides = check_array("Polytope", "b", b, shape=rows.shape[:1])
        n = rows.shape[1]
        size = check_shape("Polytope", "shape", n if shape is None else shape)
        if math.prod(size) != n or len(rows) == 0:
            raise InputError(
                f"The 'A' parameter of Polytope must have {math.prod(size)} columns and at least one row. "
                f"Got shape {rows.shape}."
            )
        if (A_eq is None) != (b_eq is None):
            raise InputError("Polytope needs both 'A_eq' and 'b_eq', or neither of them.")
        equal = check_array("Polytope", "A_eq", np.zeros((0, n)) if A_eq is None else A_eq, ndim=2)
        equal_sides = check_array("Polytope", "b_eq", np.zeros(0) if b_eq is None else b_eq, shape=equal.shape[:1])
        if equal.shape[1] != n:
            raise InputError(f"The 'A_eq' parameter of Polytope must have {n} columns, as 'A'. Got {equal.shape[1]}.")
        lengths, equal_lengths = np.linalg.norm(rows, axis=1), np.linalg.norm(equal, axis=1)
        if (sides[lengths == 0] < 0).any():
            raise InputError("Polytope is empty: a row of zeros in 'A' has a negative entry in 'b'.")
        if equal_sides[equal_lengths == 0].any():
            raise InputError("Polytope is empty: a row of zeros in 'A_eq' has an entry in 'b_eq' that is not zero.")
        if not lengths.any():
            raise InputError("The 'A' parameter of Polytope must not be all zeros: every point would satisfy it.")
        keep, kept = lengths > 0, equal_lengths > 0
        self._A, self._b = rows[keep] / lengths[keep, None], sides[keep] / lengths[keep]
        self._E, self._e = equal[kept] / equal_lengths[kept, None], equal_sides[kept] / equal_lengths[kept]
        self._build(size)

    @classmethod
    def _common(cls, domains: list[Domain], ball: Domain) -> Polytope:
        """The intersection of sets that have `_faces`, restricted to `ball`."""
        self = cls.__new__(cls)
        self._A, self._b, self._E, self._e = map(np.concatenate, zip(*(d._faces() for d in domains), strict=True))
        self._build(ball.shape, ball)
        return self

    def _build(self, size: tuple[int, ...], ball: Domain | None = None) -> None:
        """Compute everything that follows from the constraints, including an enclosing ball unless one is given."""
        n = math.prod(size)
        # first in units of the largest distance of a constraint from the origin, then in units of the set
        self._origin = np.zeros(n)
        self._unit = float(np.abs(np.concatenate([self._b, self._e])).max()) or 1.0
        self._state_facts(size, np.zeros(n), np.inf, np.inf)
        if ball is not None:
            self._state_facts(size, ball.center, ball.radius, ball.diameter)
        else:
            low, up = self._bounding_box()
            if np.isfinite(low).all():
                diameter = float(np.linalg.norm(up - low))
                self._state_facts(size, (low + up) / 2, diameter / 2, diameter)
        bounded = math.isfinite(self.radius)
        if bounded:
            self._origin = self.center.ravel()
            self._unit = max(self.radius, LEAST_UNIT * float(np.abs(self._origin).max()))
        self._find_flat()
        if ball is None:
            self._check_center(size)

    def _check_center(self, size: tuple[int, ...]) -> None:
        """Refuse an empty set that linear programmes have missed; find the centre of an unbounded one."""
        try:
            nearest = self._project_flat(self.center.ravel())
            if (self._A @ nearest - self._b).max() > 10 * EXACT * self._unit:  # by a row constant on the hull
                raise ProjectionError(f"{self!r}: a constraint contradicts others that hold with equality.")
        except ProjectionError as error:
            raise InputError(
                f"Polytope: no point was found that satisfies all constraints to {EXACT:g} of the size of the set. It "
                "is empty by a little, or nearly so: loosen 'b', or give equalities as 'A_eq'."
            ) from error
        if not math.isfinite(self.radius):
            self._state_facts(size, nearest, np.inf, np.inf)

    def _find_flat(self) -> None:
        """Find the affine hull, move the enclosing ball into it, and express the inequalities in its coordinates."""
        while True:
            self._basis = np.eye(self.dim)  # columns: an orthonormal basis of the directions
            if len(self._E):
                _, sizes, vectors = np.linalg.svd(self._E)
                self._basis = np.ascontiguousarray(vectors[int(np.sum(sizes > RANK * sizes[0])) :].T)
                self._origin = self._origin + np.linalg.lstsq(self._E, self._e - self._E @ self._origin, rcond=RANK)[0]
            self._rows = self._A @ self._basis
            self._sides = (self._b - self._A @ self._origin) / self._unit
            lengths = np.linalg.norm(self._rows, axis=1)
            tight = self._implicit() & (lengths > RANK)  # a row of zeros only says 0 <= 0
            if not tight.any():
                break
            self._E, self._e = np.vstack([self._E, self._A[tight]]), np.concatenate([self._e, self._b[tight]])
        if len(self._E):
            keep = lengths > RANK  # the others are constant on the affine hull
            self._rows, self._sides = self._rows[keep] / lengths[keep, None], self._sides[keep] / lengths[keep]
            self._state_flat(self._E, self._origin)
            self._E = self._normals()
            self._e = self._E @ self._origin

    def _implicit(self) -> Mask:
        """Find the inequalities that hold with equality on the whole set.

        By Farkas' lemma these are the ones with a multiplier > 0 in some non-negative combination of inequalities that
        reads 0 <= 0. Such multipliers form a cone, so one linear programme finds as many as possible. It is accurate
        only to 1e-7, so the result is verified by non-negative least squares, with multipliers >= 1.
        """
        from scipy.optimize import linprog, nnls

        m = len(self._rows)
        rounding = LEAST_UNIT * EXACT * float(np.abs(self._origin).max()) / self._unit  # error of the sides
        sums = np.vstack([self._rows.T, self._sides * (EXACT / (EXACT + rounding))])
        # the largest sum of u with u <= 1 and u <= multipliers
        answer = linprog(
            np.repeat([-1.0, 0.0], m),
            A_ub=np.hstack([np.eye(m), -np.eye(m)]),
            b_ub=np.zeros(m),
            A_eq=np.hstack([np.zeros_like(sums), sums]),
            b_eq=np.zeros(len(sums)),
            bounds=[(0.0, 1.0)] * m + [(0.0, None)] * m,
            method="highs",
        )
        none = np.zeros(m, dtype=bool)
        tight: Mask = answer.x[:m] > 0.5 if answer.status == 0 else none
        try:
            _, rest = nnls(sums[:, tight], -sums[:, tight].sum(axis=1)) if tight.any() else (none, 0.0)
        except RuntimeError:  # too many iterations
            return none
        return tight if rest <= EXACT else none

    def contains(self, point: ArrayLike, tol: float = 1e-9) -> bool:
        """Whether `point` exceeds no constraint by more than `tol` (a distance, relative to the scale of the set)."""
        x = self._read(point).ravel()
        excess = np.concatenate([self._A @ x - self._b, np.abs(self._E @ x - self._e)])
        return bool(excess.max() <= self._absolute_tolerance(tol, x))

    def _bounding_box(self) -> tuple[Floats, Floats]:
        """Return the smallest and largest value of every entry over the set; all are infinite if one is.

        Each takes a linear programme, unless the solution of an earlier one attains a bound that is a row of A: this is
        then the smallest or largest value. Linear programmes take nearly all the time of building a set.
        """
        n = self._A.shape[1]
        box, stated = np.full((2, n), np.nan), self._stated_box()
        for side, sign in enumerate((1.0, -1.0)):
            for j in range(-1, n):  # first all bounds at once
                if j >= 0 and not np.isnan(box[side, j]):
                    continue
                value, x = self._least(sign * (np.isfinite(stated[side]).astype(float) if j < 0 else np.eye(n)[j]))
                if value == np.inf:
                    raise InputError("Polytope is empty: no point satisfies all constraints. Loosen 'b'.")
                if value == -np.inf:
                    return np.full(n, -np.inf), np.full(n, np.inf)
                if j >= 0:
                    box[side, j] = sign * value
                attained = np.isnan(box) & (np.abs(x - stated) <= EXACT * self._unit)
                box[attained] = stated[attained]
        return box[0], box[1]

    def _stated_box(self) -> Floats:
        """Return the bounds (2, n) that inequalities set on single entries; infinite where there is none."""
        box = np.array([[-np.inf], [np.inf]]).repeat(self._A.shape[1], axis=1)
        single = np.count_nonzero(self._A, axis=1) == 1
        rows, columns = np.nonzero(self._A[single])
        ends = self._b[single][rows] / self._A[single][rows, columns]
        upper = self._A[single][rows, columns] > 0
        np.maximum.at(box[0], columns[~upper], ends[~upper])
        np.minimum.at(box[1], columns[upper], ends[upper])
        return box

    def _least(self, direction: Floats) -> tuple[float, Floats]:
        """Return min <direction, x> over the set and a minimiser: -inf if unbounded, inf if the set is empty."""
        from scipy.optimize import linprog

        for presolve in (True, False):  # presolving may end with "unbounded or empty"
            answer = linprog(
                direction,
                A_ub=self._A,
                b_ub=self._b / self._unit,
                A_eq=self._E,
                b_eq=self._e / self._unit,
                bounds=(None, None),
                method="highs",
                options={"presolve": presolve},
            )
            if answer.status == 0:
                return (answer.fun or 0.0) * self._unit, answer.x * self._unit
            if answer.status in (2, 3):
                return {2: np.inf, 3: -np.inf}[answer.status], np.full(direction.size, np.nan)
        raise InputError(f"Polytope: the linear programme of its bounds failed. Rescale 'A' and 'b'. {answer.message}")

    def _support(self, directions: Floats) -> Floats:
        """Solve one linear programme per row."""
        return np.array([-self._least(-direction)[0] for direction in directions])

    def _faces(self) -> tuple[Floats, Floats, Floats, Floats]:
        return self._A, self._b, self._E, self._e

    def _project_flat(self, y: Floats) -> Floats:
        # in coordinates of the affine hull, relative to a point of it and in units of the set (unbounded: of the point)
        gap = y - self._origin
        far = float(np.abs(gap).max())
        unit = self._unit if math.isfinite(self.radius) else max(self._unit, far)
        v = (gap if far <= FARTHEST_POINT * unit else gap / far * (FARTHEST_POINT * unit)) @ self._basis / unit
        sides = self._sides * (self._unit / unit)
        if (self._rows @ v <= sides).all():
            return self._origin + unit * (self._basis @ v) if len(self._E) else y.copy()
        start = self._guess(v * (NEAR / max(NEAR, length(v))), sides) or self._guess(np.zeros_like(v), sides)
        x = None if start is None else self._walk(v, sides, *start)
        if x is None and start is not None and self.radius <= TINY * unit:
            x = start[0]  # as near as any other point
        if x is None:
            raise ProjectionError(
                f"{self!r}: no point was found that satisfies all constraints and the optimality conditions to "
                f"{EXACT:g} of the size of the set. Nearly parallel constraints are the usual reason: remove those "
                "that repeat others."
            )
        answer = self._origin + unit * (self._basis @ x)
        # if x is much nearer to the origin than y, it is exact in units of y, but not yet in its own
        return self._project_flat(answer) if unit > self._unit and length(x) < 0.1 else answer

    def _guess(self, v: Floats, sides: Floats) -> tuple[Floats, list[int]] | None:
        """Return a point of the set nearest to v, or nearly so, and independent constraints that are equalities there.

        Lawson and Hanson's least distance programming, min ||w|| with A w <= sides - A v: constraints with a multiplier
        > 0 hold with equality.
        """
        from scipy.optimize import nnls

        slack = sides - self._rows @ v
        if (slack >= 0).all():
            return v, []
        try:
            multipliers, _ = nnls(np.vstack([-self._rows.T, -slack / np.abs(slack).max()]), np.eye(v.size + 1)[-1])
        except RuntimeError:  # too many iterations
            return None
        order = np.argsort(-multipliers, kind="stable")[: np.count_nonzero(multipliers)]
        Q, R = np.linalg.qr(self._rows[order].T)
        free = np.abs(np.diag(R)) > RANK  # the others depend on those before them
        if not free.all() or free.size < order.size:
            order = order[: free.size][free]
            Q, R = np.linalg.qr(self._rows[order].T)
        x = v - Q @ np.linalg.solve(R.T, -slack[order])
        return (x, order.tolist()) if (self._rows @ x - sides).max() <= EXACT else None

    def _walk(self, v: Floats, sides: Floats, x: Floats, active: list[int]) -> Floats | None:
        """Walk from x in the set to its point nearest to v, by an active-set method. None if it does not arrive.

        On the face where the active constraints hold with equality, it goes straight to the point nearest to v, or to
        the first constraint in the way, which becomes active. At the nearest point of a face, v - x is a combination
        of the active normals, up to `rest`. One with a negative multiplier is released; if there is none, x is the
        answer.
        """
        A, arrived = self._rows, False
        for count in range(limit := WALK_STEPS * sum(A.shape)):
            bland = 2 * count > limit  # Bland's rule, the first constraint: slower, but prevents cycling
            far = max(1.0, length(v - x))
            pull = (v - x) / far
            Q, R = np.linalg.qr(A[active].T)
            rest = pull - Q @ (Q.T @ pull)
            rest -= Q @ (Q.T @ rest)
            size = length(rest)
            if arrived or size <= PRODUCT_ROUNDING:
                multipliers = np.linalg.solve(R, Q.T @ pull)
                wrong = np.flatnonzero(multipliers < -PRODUCT_ROUNDING * np.abs(multipliers).max(initial=0.0))
                if wrong.size == 0:
                    x = x - Q @ np.linalg.solve(R.T, A[active] @ x - sides[active])  # removes rounding errors
                    return x if size <= EXACT and (A @ x - sides).max() <= EXACT else None
                active.pop(min(wrong, key=lambda i: active[i] if bland else multipliers[i]))
                arrived = False
                continue
            way = rest / size
            slope, slack = A @ way, np.maximum(sides - A @ x, 0.0)
            ahead = np.flatnonzero(slope > FLAT)
            # among constraints met at the same time, up to rounding, take the steepest (Harris)
            meet = slack[ahead] / slope[ahead]
            first = ahead[meet <= ((slack[ahead] + PRODUCT_ROUNDING) / slope[ahead]).min(initial=np.inf)]
            stop = int(min(first, key=lambda i: i if bland else -slope[i], default=-1))
            arrived = stop < 0 or slack[stop] >= slope[stop] * (far * size)
            x = x + way * (far * size if arrived else slack[stop] / slope[stop])
            if not arrived:
                active.append(stop)
        return None

    def __repr__(self) -> str:
        return f"Polytope(<{len(self._b)} constraints>, shape={self._shape_text()})"
