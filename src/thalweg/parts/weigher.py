"""A learner of weights as compiled code sees it: a Tracker on the simplex, behind addresses of its kernels.

`thalweg.learners.weighing` plans its state, hands it over and grows it.
"""

from typing import NamedTuple

import numpy as np

from thalweg._core.types import Floats, Ints
from thalweg._kernels.handle import Closed
from thalweg._kernels.jit import inner
from thalweg._kernels.pointers import Pointer, call
from thalweg.parts.cut_descent import COUNT


class Weigher(NamedTuple):
    """A learner of weights as compiled code sees it."""

    ready: Pointer
    has_capacity: Pointer
    update: Pointer
    handle: Closed  # the argument of these three
    x: Floats  # (K,) the weights, to be read only
    g: Floats  # (K,) the gradient of the round
    members: Ints  # its sizes: none before the first gradient
    pending: Ints  # (1,) how many have not begun, of those that share their sizes
    first: bool  # capacity for the first round, to be given back once all have begun


@inner
def fits(w: Weigher) -> bool:
    """Whether the next round can be played with the present capacity."""
    if w.first and w.pending[0] == 0:
        return False
    return call(w.has_capacity, w.handle)


@inner
def teach(w: Weigher, loss: float) -> None:
    """One round, from the gradient in `g`, after `fits`."""
    before = w.members[COUNT]
    call(w.update, w.handle, loss, np.inf, 0, True)
    if before == 0 and w.members[COUNT] > 0:
        w.pending[0] -= 1
