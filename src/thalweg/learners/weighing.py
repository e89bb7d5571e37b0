"""Weights on a simplex that follow a moving optimum: a Tracker as a part of another state.

Estimators that weigh candidates plan one or more of these inside their own state (`Weighing.plan`), hand them to their
kernels (`Weighing.weigher`) and grow them between rounds: their sizes are the same for all of them. The first round
needs capacity for whatever it may begin with. Once all have begun, most of it is given back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from thalweg._core.memory import Saved, whole_numbers
from thalweg._core.saving import inside
from thalweg._core.state import Plan
from thalweg._core.types import Floats, Ints
from thalweg._kernels.handle import AnyHandle, Closed, bind, parts
from thalweg._kernels.jit import kernel
from thalweg._kernels.pointers import Pointer
from thalweg.domains.simplex import Simplex
from thalweg.learners import loop
from thalweg.learners.contract import core
from thalweg.learners.contract import has_capacity as core_has_capacity
from thalweg.learners.one_projection import Reduced, ReducedSettings, ReducedState
from thalweg.learners.tracker.kernels import curved_in_use, helpers_in_use
from thalweg.learners.tracker.machine import Tracking
from thalweg.parts.cut_descent import COUNT, rows_needed
from thalweg.parts.records import MARKERS
from thalweg.parts.weigher import Weigher


@kernel
def has_capacity(handle: AnyHandle) -> bool:
    """Whether there is capacity for one more round. Takes a handle of a `Game`."""
    game = parts(handle)
    return core_has_capacity(core(game.state), core(game.settings))


class Weighing:
    """Plans of a Tracker on the simplex in all its sizes.

    Parameters
    ----------
    count : int
        How many weights.
    start : array, optional
        Weights to begin with; equal ones when left out.
    """

    def __init__(self, count: int, start: Floats | None = None) -> None:
        X = Simplex(count)
        Y = X._enclosing_ball()
        directions = X.flat, X.flat_par
        self.machine = Reduced(X, Tracking(Y, start=start, directions=directions, embedded=True, owner="Tracker"))

    def sizes(self) -> dict[str, int]:
        """Return the sizes before the first round, and that they are capacity for it."""
        return {**self.machine.sizes(), "first": 1}

    def plan(self, sizes: Mapping[str, int]) -> Plan:
        """Return the plan for these sizes."""
        return self.machine.plan(sizes)

    def sizes_of(self, saved: Saved, places: Sequence[str]) -> dict[str, int]:
        """Return the sizes of those saved at these prefixes; raise ValueError if no run can have them."""
        found = self.machine.sizes_of(inside(saved, places[0]))
        blank = any(whole_numbers(saved, f"{place}inner.members.sizes", 3)[COUNT] == 0 for place in places)
        return {**found, "first": int(blank)}

    def larger(
        self, states: Sequence[ReducedState], full: Iterable[ReducedState], sizes: Mapping[str, int]
    ) -> dict[str, int]:
        """Return sizes for another round of those that are `full`, among all that share the present sizes."""
        N, S, H, Q, first = (sizes[name] for name in ("N", "S", "H", "Q", "first"))
        if first and all(one.inner.members.sizes[COUNT] > 0 for one in states):
            N, first = max(int(rows_needed(one.inner.members)) for one in states), 0
            H = max(int(helpers_in_use(one.inner)) for one in states)
            Q = max(int(curved_in_use(one.inner)) for one in states)
        for one in full:
            count, markers = int(one.inner.members.sizes[COUNT]), int(one.inner.records.counts[MARKERS])
            N = max(N, int(rows_needed(one.inner.members))) if count else N
            S = max(S, (markers + 1).bit_length())
        return {"N": N, "S": S, "H": H, "Q": Q, "first": first}

    def weigher(self, s: ReducedState, c: ReducedSettings, pending: Ints, sizes: Mapping[str, int]) -> Weigher:
        """Return one of them for kernels, as long as the block stays where it is."""
        g = np.zeros(s.x.size)
        handle = bind(loop.Game(s, c, None, *self.machine.hull, g))
        return Weigher(
            Pointer(loop.ready, "none(any)", (handle.kind,)),
            Pointer(has_capacity, "b1(any)", (handle.kind,)),
            Pointer(loop.update, f"i8(any,{','.join(loop.TURN)})", (handle.kind, *loop.TURN)),
            Closed(handle),
            s.x,
            g,
            s.inner.members.sizes,
            pending,
            bool(sizes["first"]),
        )


def pending(states: Iterable[ReducedState]) -> Ints:
    """Return how many of those that share their sizes have not begun, for `Weigher.pending`."""
    return np.array([sum(one.inner.members.sizes[COUNT] == 0 for one in states)], dtype=np.int64)
