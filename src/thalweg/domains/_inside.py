"""A large ball inside an intersection of sets.

With tau the directions of the affine hull, polyhedra {A x <= b} and sets that know how deep a point lies in them:

    max r   subject to   <a_i, c> + r ||tau a_i|| <= b_i,   r <= depth_j(c)                        (1)

a convex programme, for every depth_j is concave; a linear one (Chebyshev's centre) where all sets are polyhedra. The
solver only proposes c: its r is computed from the constraints themselves, so a poor answer is a smaller ball.
"""

import math
from collections.abc import Sequence

import numpy as np

from thalweg._core.types import Floats
from thalweg.domains._base import Domain, length

__all__ = ["deepest"]

FLAT = 1e-9  # a row shorter than this is constant on the affine hull
SOLVER_STEPS = 200  # of the solver


def deepest(domain: Domain, members: Sequence[Domain]) -> tuple[Floats, float]:
    """(c, r) with the ball around c in the affine hull of `domain` inside all members; r <= 0 if none was found."""
    from scipy.optimize import linprog, minimize

    home, bounded = domain.center.ravel(), math.isfinite(domain.radius)
    unit = domain.radius if bounded else max(1.0, length(home))
    faces = [found for member in members if (found := member._faces()) is not None]
    curved = [member for member in members if member._faces() is None]
    n, basis = domain.freedom, _basis(domain)  # c = home + unit basis z

    A = np.concatenate([np.zeros((0, n)), *(f[0] @ basis for f in faces)])
    slack = np.concatenate([np.zeros(0), *(f[1] - f[0] @ home for f in faces)]) / unit
    lengths = np.linalg.norm(A, axis=1)
    A, slack, lengths = (v[lengths > FLAT] for v in (A, slack, lengths))

    def depths(z: Floats) -> tuple[Floats, Floats]:
        """Of the curved members, in units: values and slopes."""
        found = [d for member in curved if (d := member._depth(home + unit * (basis @ z))) is not None]
        values, slopes = np.array([d[0] for d in found]) / unit, np.array([d[1] for d in found]).reshape(-1, len(basis))
        return values, slopes @ basis

    def radius(z: Floats) -> float:
        return float(np.concatenate([(slack - A @ z) / lengths, depths(z)[0]]).min(initial=1.0))

    least = np.append(np.zeros(n), -1.0)  # maximise r
    if curved:
        rows = np.column_stack([-A, -lengths])
        start = np.append(np.zeros(n), radius(np.zeros(n)))
        answer = minimize(
            lambda v: -v[-1],
            start,
            jac=lambda v: least,
            method="SLSQP",
            constraints={
                "type": "ineq",
                "fun": lambda v: np.concatenate([slack + rows @ v, depths(v[:-1])[0] - v[-1]]),
                "jac": lambda v: np.vstack([rows, np.column_stack([depths(v[:-1])[1], -np.ones(len(curved))])]),
            },
            options={"maxiter": SOLVER_STEPS},
        )
        tried = [start[:-1], answer.x[:-1]]
    else:
        box = [(-1.0, 1.0) if bounded else (None, None)] * n + [(None, 1.0)]
        answer = linprog(least, A_ub=np.column_stack([A, lengths]), b_ub=slack, bounds=box, method="highs")
        tried = [np.zeros(n)] + [answer.x[:-1]] * (answer.x is not None)
    z = max((z for z in tried if np.isfinite(z).all()), key=radius)
    return home + unit * (basis @ z), unit * radius(z)


def _basis(domain: Domain) -> Floats:
    """Columns: an orthonormal basis of the directions of the affine hull."""
    if domain.freedom == domain.dim:
        return np.eye(domain.dim)
    _, _, vectors = np.linalg.svd(domain._directions(np.eye(domain.dim)))
    return np.ascontiguousarray(vectors[: domain.freedom].T)
