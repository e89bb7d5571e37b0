"""Rules that a field of a state can declare, and the checks they are made of.

A rule looks only at members that are alive and allows for rounding: no bound is tight to the last digit, so a state
that a run left is never refused.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thalweg._core.state import Rule, Seen, field
from thalweg._core.types import AnyArray, Floats
from thalweg._core.validate import MOST_COUNTED

CLOSE = 1e-9  # relative rounding error of a point, or of a sum of weights
SLACK = 1 + 1e-6  # relative rounding error of a sum over rounds


class _Set(Protocol):
    """The part of a domain that checks need."""

    dim: int
    shape: tuple[int, ...]
    radius: float
    tolerance: float

    @property
    def center(self) -> Floats: ...
    def _scale(self, point: Floats) -> float: ...
    def distance(self, point: Floats) -> float: ...


# --------------------------------------------------------------------------------------------------------------- checks


def born(m: int, slots: int, *, geometric: bool = False) -> list[int]:
    """Return the markers at which the experts alive after marker m were born, by level; 0 for an empty slot.

    In slot k it is the last multiple of 2^k, in the compact cover only if it is an odd one: `thalweg._kernels.covers`.
    """
    return [(m >> k << k) * (geometric or m >> k & 1) for k in range(slots)]


def within_bounds(values: AnyArray, low: ArrayLike, high: ArrayLike, alive: Any = ...) -> bool:
    """Whether low <= values <= high for members that are alive, up to rounding; False for nan."""
    most = SLACK * np.asarray(high)
    return bool(((values >= low) & (values <= most))[alive].all())


def shares(weights: Floats, alive: NDArray[np.bool_]) -> bool:
    """Whether the weights of living members are >= 0 and sum to 1 in every row that has one."""
    sums = np.where(alive, weights, 0.0).sum(axis=-1)[alive.any(axis=-1)]
    return bool((weights[alive] >= 0).all() and (np.abs(sums - 1) <= CLOSE).all())


def feasible(domain: _Set, points: Floats) -> bool:
    """Whether all points, flat along the last axis, lie in the domain as exactly as it can tell."""
    rows = points.reshape(-1, domain.dim)
    scale = domain._scale(domain.center)
    with np.errstate(over="ignore"):
        away = np.abs(rows - domain.center.ravel())
    if not (away <= domain.radius + scale).all():  # no set can project every number
        return False
    tol = max(CLOSE, 2 * domain.tolerance) * scale
    return all(domain.distance(row.reshape(domain.shape)) <= tol for row in np.unique(rows, axis=0))


# ---------------------------------------------------------------------------------------------------------------- rules


def _alive(seen: Seen) -> NDArray[np.bool_]:
    """Return which entries along the leading axes K and N matter; all where the field has neither."""
    if seen.shape[:2] == ("K", "N"):
        return seen.past.alive
    if seen.shape[:1] == ("K",):
        return np.asarray(seen.past.alive.any(axis=1))
    return np.ones(seen.value.shape[:1], dtype=bool)


def inside(fact: str) -> Rule:
    """Points of a set that the plan names among its facts."""

    def rule(seen: Seen) -> bool:
        points = seen.value[_alive(seen)] if seen.value.ndim > 1 else seen.value
        return feasible(seen.facts[fact], points)

    return rule


def simplex(seen: Seen) -> bool:
    """Weights: in every row those of living members are >= 0 and sum to 1. All count where no axis is K."""
    alive = seen.past.alive if seen.shape[0] == "K" else np.ones(seen.value.shape, dtype=bool)
    return shares(seen.value, alive)


def _bound(seen: Seen, high: float | str) -> ArrayLike:
    """Return a number, or the fact, property of the past or other field of this name."""
    if not isinstance(high, str):
        return high
    if high == "all_squares":
        return seen.past.rounds * seen.past.square
    found = seen.facts[high] if high in seen.facts else getattr(seen.past, high, None)
    found = np.asarray(getattr(seen.state, high) if found is None else found)
    return found.reshape(found.shape + (1,) * (seen.value.ndim - found.ndim) * (found.ndim > 0))


def within(low: float, high: float | str) -> Rule:
    """low <= value <= high. A name is "squares", "lived" or "rounds" of the past, a fact, or another field."""
    return lambda seen: not seen.value.size or within_bounds(seen.value, low, _bound(seen, high), _alive(seen))


def magnitude(high: float | str) -> Rule:
    """|value| <= high."""
    return lambda seen: not seen.value.size or within_bounds(np.abs(seen.value), 0.0, _bound(seen, high), _alive(seen))


def counters(seen: Seen) -> bool:
    """Counters: not negative, and small enough to be counted on."""
    return bool(((seen.value >= 0) & (seen.value <= MOST_COUNTED)).all())


def counter_field(entries: int = 6) -> Any:
    """Declare counters; a learner has those of `thalweg._kernels.clock`."""
    return field(str(entries), counters, called="counters")
