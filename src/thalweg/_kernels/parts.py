"""What the parts of a learner do, whatever they are: experts, and meta-learners that say whom to believe.

Every part is a NamedTuple of arrays (what changes) and comes with a second one (its settings: what does not, and
scratch space). A part of a class of its own is added by `implement` (`thalweg._kernels.jit`) and nothing else.

An expert part holds many experts of one kind, one a row of its arrays: `e` the state, `c` the settings, rows `first` to
`first + n - 1`. Its round has two halves, `move` and `settle`; between them the points are projected: by `move` itself
where the projection is compiled, by Python where it is not.

A meta-learner part holds many groups of members, one a row of its arrays: `m` the state, `c` the settings, group `k`
with `n` members, of which those with born[i] > 0 are alive.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thalweg._kernels.jit import generic

__all__ = ["admit", "clear", "feed", "fits", "leaves", "move", "move_own", "place", "settle", "spots", "start", "weigh"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# ------------------------------------------------------------------------------------------------------------- experts


@generic
def start(e: Any, c: Any, k: int, point: Floats) -> None:
    """Expert k starts anew, at `point`."""


@generic
def move(e: Any, c: Any, first: int, n: int, h: Floats, scores: Floats) -> None:
    """The first half of a round with one gradient h for all: scores[i] <- the loss <h, y_i> of each; then it moves."""


@generic
def move_own(e: Any, c: Any, first: int, n: int, H: Floats, values: Floats, g: Floats) -> None:
    """As `move`, where each member has a gradient and a value of its own (rows of H, values) and g is that of all."""


@generic
def settle(e: Any, c: Any, first: int, n: int) -> None:
    """The second half of a round, after the points have been projected."""


@generic
def place(e: Any) -> Floats:
    """Where the experts stand: their decisions, one a row."""
    raise NotImplementedError


@generic
def spots(e: Any) -> Floats:
    """All points that a round projects, one a row: those of the members, where an expert has members."""
    raise NotImplementedError


@generic
def leaves(e: Any, c: Any, k: int) -> tuple[int, int]:
    """Which rows of `spots` belong to expert k: the first, and how many."""
    raise NotImplementedError


# ------------------------------------------------------------------------------------------------------- meta-learners


@generic
def clear(m: Any, c: Any, k: int) -> None:
    """Group k starts anew."""


@generic
def admit(m: Any, c: Any, k: int, i: int, index: int) -> None:
    """Member i of group k is new, the `index`-th (from 1) that was ever created there."""


@generic
def fits(m: Any, c: Any, k: int, n: int, born: Ints, r: Floats) -> bool:
    """Whether the gains r are within the range they were said to have."""
    raise NotImplementedError


@generic
def feed(m: Any, c: Any, k: int, n: int, born: Ints, r: Floats, square: float) -> None:
    """A round: r[i] is how much better than the combination member i was, `square` the gradient's square norm."""


@generic
def weigh(m: Any, c: Any, k: int, n: int, born: Ints, p: Floats) -> None:
    """p <- the weights of those alive, summing to 1; 0 for the others."""
