"""Learners that take gradients: decide and update."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thalweg._core.memory import Memory
from thalweg._core.types import Floats, Ints
from thalweg._kernels.clock import FRESH, ROUNDS
from thalweg._kernels.handle import Closed, parts
from thalweg._kernels.jit import Kernel, kernel
from thalweg._kernels.pointers import Pointer, call
from thalweg.errors import HorizonWarning, InputError
from thalweg.fleet.chains import Chains, after
from thalweg.fleet.families.base import Family, Growth, ordered
from thalweg.fleet.kernels import DONE, FULL, LARGE, REFUSED, stopped
from thalweg.learners import loop
from thalweg.learners.base import Learner, outside

OWN = ("update", "decision", "_decide", "_play_round", "_call_round", "_tree", "_grow", "_forget")
LARGEST = float(np.finfo(np.float64).max)


class MachineSeat(NamedTuple):
    """A learner as steps see it."""

    ready: Pointer
    update: Pointer
    handle: Closed  # the argument of both
    x: Floats  # (d,) the decision
    g: Floats  # (d,) the gradient of the round
    clock: Ints


class FeedbackRows(NamedTuple):
    """The rows of a batch."""

    following: Ints  # (n,), or empty: see `Chains`
    gradients: Floats  # (n, d)
    losses: Floats  # (n,)
    clipped: NDArray[np.bool_]  # (1 + n,) whether any gradient was shortened before, and that of each row
    decisions: Floats  # (n, d) or (0, d): those that were played
    square_bound: float
    ahead: bool  # whether the next decision is made at the end of a round
    until: int  # the horizon
    beyond: Ints  # (1,) rounds that were played after it


@kernel
def update_rows(seat: Any, batch: Any, first: int) -> int:
    """Play the rows of a chain: the decision, then the gradient and the loss."""
    machine, rows = parts(seat), parts(batch)
    t, d = first, machine.g.shape[0]
    while t >= 0:
        if machine.clock[FRESH] == 0:
            call(machine.ready, machine.handle)
        for j in range(d):
            machine.g[j] = rows.gradients[t, j]
        if rows.decisions.shape[0] > 0:
            for j in range(d):
                rows.decisions[t, j] = machine.x[j]
        clipped = rows.clipped[0] and rows.clipped[1 + t]
        bound = LARGEST if clipped else rows.square_bound
        status = call(machine.update, machine.handle, rows.losses[t], bound, 1 if clipped else 0, True)
        if status != loop.PLAYED:
            return stopped(t, FULL if status == loop.FULL else LARGE if status == loop.LARGE else REFUSED)
        if rows.ahead:
            call(machine.ready, machine.handle)
        if machine.clock[ROUNDS] > rows.until:
            rows.beyond[0] += 1
        t = after(rows.following, t)
    return DONE


@kernel
def decide_rows(seat: Any, batch: Any, first: int) -> int:
    """decisions <- the present one, in all rows of a chain."""
    machine, rows = parts(seat), parts(batch)
    call(machine.ready, machine.handle)
    t = first
    while t >= 0:
        for j in range(machine.x.shape[0]):
            rows.decisions[t, j] = machine.x[j]
        t = after(rows.following, t)
    return t  # DONE


class Deciders(Family):
    """`Tracker`, `EfficientDynamic` and every other compiled learner with one gradient a round."""

    calls = ("decide", "update")
    _told_horizon = False

    @staticmethod
    def refusal(template: Learner) -> str:
        """Return the reason why a learner cannot be in a fleet, or nothing."""
        machine = template.machine
        if not machine.looped or machine.guests:
            return "its rounds, its domain or a part of yours need Python"
        if not machine.one_gradient:
            return "its members ask for gradients of their own, which update(keys, gradients) cannot give"
        own = [name for name in OWN if getattr(type(template), name) is not getattr(Learner, name)]
        if own:
            return f"its rounds are not those of other learners ({', '.join(own)})"
        return ""

    def memory(self, learner: Learner) -> Memory:
        """See `Family`."""
        return learner._memory

    def blank(self) -> Learner:
        """See `Family`."""
        return self.template.clone()  # type: ignore[no-any-return]

    def tree(self, learner: Learner) -> MachineSeat:
        """See `Family`."""
        handle, turn = learner._memory.handle, loop.TURN
        return MachineSeat(
            Pointer(loop.ready, "none(any)", (handle.kind,)),
            Pointer(loop.update, f"i8(any,{','.join(turn)})", (handle.kind, *turn)),
            Closed(handle),
            learner._view,
            learner._feedback.g,
            learner._memory.state.clock,
        )

    def grow(self, learner: Learner) -> Growth:
        """See `Family`."""
        memory = learner._memory
        return Growth(ordered(learner.machine.larger(memory.state, memory.settings)), {})

    # ------------------------------------------------------------------ rows

    def batch(self, call: str, chains: Chains, data: Mapping[str, NDArray[Any]]) -> tuple[Kernel[..., Any], Any]:
        """See `Family`."""
        template, n, updates = self.template, chains.rows, call == "update"
        d = template.domain.dim
        forever = template.horizon is None or template.anytime
        feedback = FeedbackRows(
            chains.following,
            data["gradients"] if updates else np.zeros((0, d)),
            data["losses"] if updates else np.zeros(0),
            np.zeros(1 + n if updates else 1, dtype=np.bool_),
            np.full((0 if updates else n, d), np.nan),
            template._square_bound,
            template.machine.ahead,
            2**62 if forever else template.horizon,
            np.zeros(1, dtype=np.int64),
        )
        return (update_rows if updates else decide_rows), feedback

    def said(self, call: str, batch: FeedbackRows) -> Floats:
        """See `Family`: decisions."""
        return batch.decisions

    def names(self, call: str) -> tuple[str, ...]:
        """See `Family`."""
        return ()

    def mend(self, batch: FeedbackRows, row: int, why: int, learner: Learner) -> str:
        """Clip a gradient that is too large, where the learner is to do that."""
        if why == REFUSED:
            memory = learner._memory
            return learner.machine.refusal(memory.state, memory.settings)
        try:
            learner._feedback.shorten(batch.gradients[row])
        except InputError as error:
            return str(error).partition(": ")[2]
        batch.clipped[0] = batch.clipped[1 + row] = True
        return ""

    def after(self, batch: FeedbackRows) -> None:
        """Warn once that streams are past the horizon."""
        if batch.beyond[0] and not self._told_horizon:
            self._told_horizon = True
            warnings.warn(
                f"{type(self.template).__name__} was tuned for {self.template.horizon} rounds, and streams of the "
                "fleet have played more: their guarantee no longer covers the run. Give a longer horizon.",
                HorizonWarning,
                stacklevel=outside(),
            )
