"""Generic functions of the parts of a learner: experts, and meta-learners that weigh them.

Every part is a NamedTuple of arrays that change, and comes with a second one, its settings: constants and scratch
space. A part of a class of its own is added by `implement` (`thalweg._kernels.jit`) and nothing else.

An expert part holds many experts of one kind, in K groups of N: `e` the state, `c` the settings, and the arrays have
two leading axes. A lone expert, or one on an interval, is member 0 of its group; the members of a pool are a group. The
round of a group has two halves, `move` and `after_projection`; between them the points are projected: by `move` itself
where the projection is compiled, by Python where it is not.

A meta-learner part holds many groups of members, one a row of its arrays: `m` the state, `c` the settings, group `k`
with `n` members. Members with born[i] > 0 are `alive`; `born` is None where all always are.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thalweg._kernels.jit import generic, implement, optional

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# ------------------------------------------------------------------------------------------------------------- experts


@generic
def start(e: object, c: object, k: int, i: int, point: Floats) -> None:
    """Restart member i of group k at `point`."""


@generic
def move(e: object, c: object, k: int, n: int, h: Floats, scores: Floats) -> None:
    """Make the first half of a round, with one gradient h for the n members of group k.

    scores[k, i] <- the loss <h, y_i> of each; then it moves.
    """


@generic
def move_own(e: object, c: object, k: int, n: int, H: Floats, values: Floats, g: Floats) -> None:
    """As `move`, where each point has a gradient and a value of its own (H, values), and g is the combination's."""


@optional
def after_projection(e: object, c: object, k: int, n: int) -> None:
    """Make the second half of a round, after the points have been projected. Default: nothing."""


@optional
def member_decision(e: Any, k: int, i: int) -> Floats:
    """Return the decision of member i of group k. Default: `points[k, i]`."""
    return e.points[k, i]


@optional
def projected_points(e: Any) -> Floats:
    """Return all points that a round projects, (K, N, d): `points`, or those of the members of a pool."""
    return e.points


@optional
def point_count(e: object, c: object, k: int) -> int:
    """Number of points of the expert of group k, the first ones in row k of `projected_points`: 1, or the pool size."""
    return 1


# ------------------------------------------------------------------------------------------------------- meta-learners


@generic
def alive(born: Ints | None, i: int) -> bool:
    """Whether member i is alive."""
    ...


@implement(alive, np.ndarray)
def _alive(born: Ints, i: int) -> bool:
    return born[i] > 0


@implement(alive, type(None))
def _always(born: None, i: int) -> bool:
    return True


@optional
def clear(m: object, c: object, k: int) -> None:
    """Restart group k. Default: nothing, as `admit` resets each member."""


@generic
def admit(m: object, c: object, k: int, i: int, index: int) -> None:
    """Add member i to group k, the `index`-th (from 1) ever created there."""


@generic
def fits(m: object, c: object, k: int, n: int, born: Ints | None, r: Floats) -> bool:
    """Whether the gains (or losses) r of the members are within their declared range."""
    ...


@generic
def feed(m: object, c: object, k: int, n: int, born: Ints | None, base: float, losses: Floats, square: float) -> None:
    """Learn from a round: member i lost losses[i], the combination `base`, so its gain is r = base - losses[i].

    `square` is the square norm of the round's gradient.
    """


@generic
def weigh(m: object, c: object, k: int, n: int, born: Ints | None, p: Floats) -> None:
    """p <- the weights of the living members, summing to 1; 0 for the others."""
