"""The one-projection reduction around another machine (`thalweg.one_projection`): the only one that knows it."""

from typing import Any, NamedTuple

import numpy as np

from thalweg._kernels.clock import FRESH, GRADIENTS, PROJECTIONS, ROUNDS, VALUES
from thalweg._kernels.hulls import flatten
from thalweg._kernels.jit import implement
from thalweg._kernels.parts import Floats, Ints
from thalweg._kernels.pointers import Pointer, call
from thalweg._kernels.reduction import surrogate_gradient
from thalweg._machines._contract import core, count, decision, reduce

__all__ = ["ReducedSettings", "ReducedState"]


class ReducedState(NamedTuple):
    """A machine on the surrogate, and where it was projected to."""

    inner: Any
    x: Floats  # (d,) the decision, where clock[FRESH] is 1
    clock: Ints  # `thalweg._kernels.clock`


class ReducedSettings(NamedTuple):
    """What does not change, and scratch space."""

    inner: Any
    onto: Pointer  # the set: `thalweg._kernels.projections`
    domain: Floats
    flat: int  # its affine hull: `thalweg._kernels.hulls`
    normals: Floats
    tol: float  # a shorter way from y to x has no direction
    uses_loss: bool
    h: Floats  # (d,) scratch


@implement(decision, ReducedState)
def _decision(s: ReducedState, c: ReducedSettings) -> Floats:
    if s.clock[FRESH] == 0:
        call(c.onto, c.domain, decision(s.inner, c.inner), s.x, c.h)
        s.clock[FRESH] = 1
    return s.x


@implement(core, ReducedState)
def _core(s: ReducedState) -> Any:
    return core(s.inner)


@implement(core, ReducedSettings)
def _core_settings(c: ReducedSettings) -> Any:
    return core(c.inner)


@implement(reduce, ReducedState)
def _reduce(s: ReducedState, c: ReducedSettings, g: Floats) -> Floats:
    y = decision(s.inner, c.inner)
    for j in range(g.shape[0]):
        c.h[j] = y[j] - s.x[j]
    flatten(c.flat, c.normals, c.h)  # g has no part across the flat, nor may the way from x to y
    surrogate_gradient(g, c.h, c.tol, c.h)
    flatten(c.flat, c.normals, c.h)  # what rounding left: members with curvature would amplify it
    return reduce(s.inner, c.inner, c.h)


@implement(count, ReducedState)
def _count(s: ReducedState, c: ReducedSettings, loss: float) -> None:
    s.clock[ROUNDS] += 1
    s.clock[PROJECTIONS] += 1  # that of the round's decision, whenever it was made
    s.clock[GRADIENTS] += 1
    s.clock[VALUES] += 1 if c.uses_loss and loss < np.inf else 0  # it may be unknown
    s.clock[FRESH] = 0
    count(s.inner, c.inner, loss)
