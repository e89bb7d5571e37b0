"""The paper's way to project: a general solver, called for every point.

The nearest point of an ellipsoid has a formula up to one root (`thalweg.domains.Ellipsoid`), found in a fraction of a
microsecond. The paper's experiments hand the same problem to `scipy.optimize` with a `NonlinearConstraint`:

    minimise ||w - y||^2 / 2   subject to   (w - c)^T E (w - c) <= rho                     (1)

which takes a thousand times as long. So the number of projections decides how long a run takes. This module makes
such a set, to measure by.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import NonlinearConstraint, minimize

from thalweg._core.types import Floats
from thalweg.domains import Custom, Ellipsoid
from thalweg.errors import InputError, ProjectionError

# The solver stops when an iteration gains less than this. It is then within about 1e-7 of the nearest point, in
# units of the radius: well below the tolerance that a `Custom` set states, under which a difference y - project(y)
# counts as none. A looser solver would make the direction of that difference noise.
PRECISION = 1e-12
STATIONARY = 1e-5  # how far from a right angle an answer may be before it is refused


class SolverProjection:
    """(1) by SLSQP, from the point of the set in the direction of y. Counts its calls.

    Attributes
    ----------
    calls, outside : int
        Points projected, and how many of them lay outside the set. Inside, the solver stops after one iteration.
    iterations : int
        Iterations of the solver in all.
    """

    def __init__(self, domain: Ellipsoid) -> None:
        if not isinstance(domain, Ellipsoid) or domain.weights.ndim != 1:
            raise InputError(f"SolverProjection needs an Ellipsoid with a diagonal. Got {domain!r}.")
        self._e: Floats = domain.weights / domain.bound  # the set is {w : (w - c)^T diag(e) (w - c) <= 1}
        self._c = domain.center
        self._inside = NonlinearConstraint(self._level, -np.inf, 1.0, jac=lambda w: 2 * self._normal(w)[None, :])
        self.calls = self.outside = self.iterations = 0

    def __call__(self, y: Floats) -> Floats:
        """The point of the set nearest to y."""
        found = minimize(
            lambda w: ((w - y) @ (w - y) / 2, w - y),
            self._shrunk(y),
            jac=True,
            method="SLSQP",
            constraints=self._inside,
            options={"ftol": PRECISION, "maxiter": 500},
        )
        self.calls += 1
        self.outside += bool(self._level(y) > 1)
        self.iterations += int(found.nit)
        w = self._shrunk(found.x)  # solvers end a little outside
        # At the limit of its precision the solver reports failure beside a good answer, so we look at the answer: y - w
        # must point straight out of the set.
        out, normal = y - w, self._normal(w)
        sideways = out - normal * (out @ normal) / max(float(normal @ normal), 1e-300)
        if self._level(y) > 1 and np.linalg.norm(sideways) > STATIONARY * np.linalg.norm(y - self._c):
            raise ProjectionError(f"SLSQP did not find the nearest point of the ellipsoid: {found.message}.")
        return w

    def _level(self, w: Floats) -> float:
        return float((w - self._c) @ (self._e * (w - self._c)))

    def _normal(self, w: Floats) -> Floats:
        normal: Floats = self._e * (w - self._c)
        return normal

    def _shrunk(self, w: Floats) -> Floats:
        return self._c + (w - self._c) / max(1.0, float(np.sqrt(self._level(w))))


def by_solver(domain: Ellipsoid) -> tuple[Custom, SolverProjection]:
    """The same set, each projection a run of the solver; and the projection, which counts.

    Examples
    --------
    >>> import numpy as np
    >>> from thalweg.domains import Ellipsoid
    >>> from thalweg.lab.studies.paper.oracles import by_solver
    >>> exact = Ellipsoid([1.0, 4.0], bound=4.0)
    >>> slow, projection = by_solver(exact)
    >>> bool(np.linalg.norm(slow.project([3.0, 3.0]) - exact.project([3.0, 3.0])) < 1e-6)
    True
    >>> projection.calls, projection.outside
    (1, 1)
    """
    projection = SolverProjection(domain)
    return Custom(projection, domain.shape, domain.center, domain.radius, diameter=domain.diameter), projection
