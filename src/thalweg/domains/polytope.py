"""The polytope {x : A x <= b, A_eq x = b_eq}."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thalweg._extras import need
from thalweg._validate import check_array, check_shape
from thalweg.domains._base import RANK, Array, Domain
from thalweg.errors import InputError, ProjectionError

__all__ = ["Polytope"]

Mask = NDArray[np.bool_]

# OSQP only has to find out which constraints hold with equality; the answer is then computed from them.
SETTINGS = {"verbose": False, "eps_abs": 1e-6, "eps_rel": 1e-6, "polishing": True, "max_iter": 1000}
# Accuracy demanded of that answer, in units of the size of the set (and of the distance to the point, by rounding).
EXACT = 1e-11
# How often that computation may exchange constraints before it is given up.
EXCHANGES = 20


class Polytope(Domain):
    """All x that satisfy linear inequalities A x <= b, and equalities. Needs the extra `qp`: `pip install thalweg[qp]`.

    Projecting is a quadratic programme. OSQP, set up once and started from the last answer, finds the constraints that
    hold with equality; the nearest point with these equalities is then computed directly and accepted only if it
    satisfies all constraints and the optimality conditions, to about 1e-11 of the size of the set. So the answer
    depends on earlier calls in its last digits at most. Should OSQP mistake a constraint, the slower method of Lawson
    and Hanson (non-negative least squares) takes its place.

    The smallest box around the set, found by 2n linear programmes, gives the centre, the radius and the diameter:
    correct, in general not tight. Of an unbounded set they are infinite, and the centre is the point nearest to the
    origin.

    Inequalities that hold with equality on the whole set are found by one more linear programme, and their multipliers
    are checked to 1e-11. They and the given equalities make the affine hull. A point is first projected onto it, and
    all else is done in coordinates of it, where the set has inner points.

    Parameters
    ----------
    A : array (m, n)
        One row a constraint, n being the number of entries of a point.
    b : array (m,)
        Right-hand sides.
    shape : int or tuple of int, optional
        Shape of a point, (n,) when left out.
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
        need("osqp", "qp", "Polytope")
        length, equal_length = np.linalg.norm(rows, axis=1), np.linalg.norm(equal, axis=1)
        if (sides[length == 0] < 0).any():
            raise InputError("Polytope is empty: a row of zeros in 'A' has a negative entry in 'b'.")
        if equal_sides[equal_length == 0].any():
            raise InputError("Polytope is empty: a row of zeros in 'A_eq' has an entry in 'b_eq' that is not zero.")
        if not length.any():
            raise InputError("The 'A' parameter of Polytope must not be all zeros: every point would satisfy it.")
        keep, kept = length > 0, equal_length > 0
        self._A, self._b = rows[keep] / length[keep, None], sides[keep] / length[keep]
        self._E, self._e = equal[kept] / equal_length[kept, None], equal_sides[kept] / equal_length[kept]
        self._solver: Any = None
        # first in units of the largest distance of a constraint from the origin, then in units of the set
        self._origin = np.zeros(n)
        self._unit = float(np.abs(np.concatenate([self._b, self._e])).max()) or 1.0
        self._state_facts(size, np.zeros(n), np.inf, np.inf)
        low, up = self._bounding_box()
        bounded = bool(np.isfinite(low).all())
        if bounded:
            diameter = float(np.linalg.norm(up - low))
            self._state_facts(size, (low + up) / 2, diameter / 2, diameter)
            self._origin, self._unit = self.center.ravel(), self.radius
        self._find_flat()
        if not bounded:
            self._state_facts(size, self._project_flat(np.zeros(n)), np.inf, np.inf)

    def _find_flat(self) -> None:
        """Find the affine hull; move the ball into it; express the inequalities in coordinates of it."""
        while True:
            self._basis = np.eye(self.dim)  # columns: an orthonormal basis of the directions
            if len(self._E):
                _, sizes, vectors = np.linalg.svd(self._E)
                self._basis = np.ascontiguousarray(vectors[int(np.sum(sizes > RANK * sizes[0])) :].T)
                self._origin = self._origin + np.linalg.lstsq(self._E, self._e - self._E @ self._origin, rcond=RANK)[0]
            self._rows = self._A @ self._basis
            self._sides = (self._b - self._A @ self._origin) / self._unit
            length = np.linalg.norm(self._rows, axis=1)
            tight = self._implicit() & (length > RANK)  # a row of zeros says 0 <= 0 and no more
            if not tight.any():
                break
            self._E, self._e = np.vstack([self._E, self._A[tight]]), np.concatenate([self._e, self._b[tight]])
        if len(self._E):
            keep = length > RANK  # the others say the same all over the affine hull
            self._rows, self._sides = self._rows[keep] / length[keep, None], self._sides[keep] / length[keep]
            self._state_flat(self._E, self._origin)
            self._E = self._normals()
            self._e = self._E @ self._origin

    def _implicit(self) -> Mask:
        """Which inequalities hold with equality all over the set.

        By Farkas' lemma those with a multiplier > 0 in some sum of inequalities, multipliers >= 0, that reads 0 <= 0.
        These multipliers form a cone: one linear programme finds as many as possible. It is exact to 1e-7 only, hence
        the second look at multipliers, now >= 1, by non-negative least squares.
        """
        from scipy.optimize import linprog, nnls

        m = len(self._rows)
        rounding = 8 * np.finfo(float).eps * float(np.abs(self._origin).max()) / self._unit  # of the sides
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
        return bool(excess.max() <= self._reach(tol, x))

    def _bounding_box(self) -> tuple[Array, Array]:
        """The smallest and largest value of every entry over the set; infinite as soon as one is."""
        n = self._A.shape[1]
        if self._least(np.zeros(n)) == np.inf:
            raise InputError("Polytope is empty: no point satisfies all constraints. Loosen 'b'.")
        box = np.empty((2, n))
        for side, sign in enumerate((1.0, -1.0)):
            for j in range(n):
                box[side, j] = sign * self._least(sign * np.eye(n)[j])
                if np.isinf(box[side, j]):
                    return np.full(n, -np.inf), np.full(n, np.inf)
        return box[0], box[1]

    def _least(self, direction: Array) -> float:
        """min <direction, x> over the set: -inf when unbounded, inf when there is no point."""
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
            if answer.status in (0, 2, 3):
                return {0: (answer.fun or 0.0) * self._unit, 2: np.inf, 3: -np.inf}[answer.status]
        raise InputError(f"Polytope: the linear programme of its bounds failed. Rescale 'A' and 'b'. {answer.message}")

    def _support(self, directions: Array) -> Array:
        """One linear programme a row."""
        return np.array([-self._least(-direction) for direction in directions])

    def _project_flat(self, y: Array) -> Array:
        # in coordinates of the affine hull, relative to a point of it and in units of the set
        v = (y - self._origin) @ self._basis / self._unit
        if (self._rows @ v <= self._sides).all():
            return self._origin + self._unit * (self._basis @ v) if len(self._E) else y.copy()
        for guess in (self._active_by_osqp, self._active_by_least_squares):
            x = self._nearest(v, self._sides, guess(v, self._sides))
            if x is not None:
                return self._origin + self._unit * (self._basis @ x)
        raise ProjectionError(
            f"{self!r}: no point was found that satisfies all constraints and the optimality conditions to {EXACT:g} "
            "of the size of the set. Nearly parallel constraints are the usual reason: remove those that repeat others."
        )

    def _active_by_osqp(self, v: Array, sides: Array) -> Mask:
        if self._solver is None:
            from scipy.sparse import csc_matrix, identity

            self._solver = need("osqp", "qp", "Polytope").OSQP()
            P, A = identity(v.size, format="csc"), csc_matrix(self._rows)
            self._solver.setup(P, -v, A, np.full(sides.size, -np.inf), sides, **SETTINGS)
        else:
            self._solver.update(q=-v)
        answer = self._solver.solve(raise_error=False)
        multipliers = np.nan_to_num(np.asarray(answer.y, dtype=np.float64))
        return np.asarray(multipliers > SETTINGS["eps_abs"] * max(1.0, float(np.abs(multipliers).max())))

    def _active_by_least_squares(self, v: Array, sides: Array) -> Mask:
        """Lawson and Hanson's least distance programming: min ||w|| with A w <= sides - A v."""
        from scipy.optimize import nnls

        room = sides - self._rows @ v
        try:
            multipliers, _ = nnls(np.vstack([-self._rows.T, -room]), np.eye(v.size + 1)[-1])
        except RuntimeError:  # too many iterations
            return np.zeros(sides.size, dtype=bool)
        return np.asarray(multipliers > 0)

    def _nearest(self, v: Array, sides: Array, active: Mask) -> Array | None:
        """The nearest point to v, if the `active` constraints are those that hold with equality, or nearly so."""
        far = float(np.abs(v).max()) + float(np.abs(self._origin).max()) / self._unit
        tol = EXACT + 8 * np.finfo(float).eps * far
        for _ in range(EXCHANGES):
            A, b = self._rows[active], sides[active]
            inverse = np.linalg.pinv(A)
            step = inverse @ (A @ v - b)
            x = v - step
            x -= inverse @ (A @ x - b)  # once more: v may be far away, and x - v then is a sum of large numbers
            multipliers = np.zeros(sides.size)
            multipliers[active] = inverse.T @ step
            wrong = multipliers < -tol * max(1.0, float(np.abs(step).max()))
            violated = self._rows @ x - sides > tol
            if not wrong.any() and not violated.any():
                return np.asarray(x)
            active = (active & ~wrong) | (violated & ~active)
        return None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_solver": None}  # the solver's memory cannot be copied; it is set up anew

    def __repr__(self) -> str:
        return f"Polytope(<{len(self._b)} constraints>, shape={self._shape_text()})"
