"""What a saved state must agree with: what is known of the past of its parts, and the checks that theirs are made of.

Every part says in `look` what a run can have left: pairs of a name and whether that is fine. No bound is tight to the
last digit, since a run has rounding; each is what the mathematics has, so a state that a run left is never refused.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thalweg._types import Array
from thalweg.domains import Domain

__all__ = ["CLOSE", "SLACK", "Past", "born", "feasible", "shares", "within"]

CLOSE = 1e-9  # of the scale: what rounding may do to a point or to a sum of weights
SLACK = 1 + 1e-6  # what it may do to a sum over rounds


class Past(NamedTuple):
    """What is known of K groups of N parts, whatever their state says. Of those not alive nothing matters."""

    alive: NDArray[np.bool_]  # (K, N)
    number: NDArray[np.int64]  # (K, N) who it was, from 1, of those that were ever created in its group
    lived: NDArray[np.int64]  # (K, N) rounds since then, at most
    rounds: int  # of the whole run
    square: float  # the largest square norm of a gradient that was not refused

    @property
    def squares(self) -> Array:
        """(K, N) the most that square norms can have added up to."""
        return np.multiply(self.lived, self.square, dtype=np.float64)


def born(m: int, slots: int, *, geometric: bool = False) -> list[int]:
    """The markers at which those alive after marker m were born, by level; 0: nobody (`thalweg._kernels.covers`).

    In slot k it is the last multiple of 2^k, of the compact cover only if that is an odd one.
    """
    return [(m >> k << k) * (geometric or m >> k & 1) for k in range(slots)]


def within(values: NDArray[Any], low: Any, high: Any, alive: Any = ...) -> bool:
    """Whether low <= values <= high for those alive, up to rounding; false for nan."""
    most = SLACK * np.asarray(high)
    return bool(((values >= low) & (values <= most))[alive].all())


def shares(weights: Array, alive: NDArray[np.bool_]) -> bool:
    """Whether the weights of those alive in each row are >= 0 and sum to 1; a row where nobody is does not matter."""
    sums = np.where(alive, weights, 0.0).sum(axis=-1)[alive.any(axis=-1)]
    return bool((weights[alive] >= 0).all() and (np.abs(sums - 1) <= CLOSE).all())


def feasible(domain: Domain, points: Array) -> bool:
    """Whether all these points, the last axis flat, are points of the domain as exactly as it can tell."""
    rows = points.reshape(-1, domain.dim)
    scale = domain._scale(domain.center)
    with np.errstate(over="ignore"):
        away = np.abs(rows - domain.center.ravel())
    if not (away <= domain.radius + scale).all():  # no set projects just any number
        return False
    tol = max(CLOSE, 2 * domain.tolerance) * scale
    return all(domain.distance(row.reshape(domain.shape)) <= tol for row in np.unique(rows, axis=0))
