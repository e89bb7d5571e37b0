"""The usual round: valid feedback for a compiled machine, played in one call that is bound once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from thalweg._core.validate import LARGEST_FLOAT
from thalweg._kernels.handle import bind
from thalweg._kernels.jit import Call
from thalweg.learners import loop

if TYPE_CHECKING:
    from thalweg.learners.base import Learner

ndarray = np.ndarray


class Usual:
    """A call of `loop.update` for the present block of a learner, and the limits of feedback that needs no longer look.

    Attributes
    ----------
    play : Call
        Plays the round whose feedback `take` took.
    clock : memoryview
        The learner's counters.
    until : int, optional
        The horizon to watch, if there is one.
    """

    __slots__ = ("_gradient", "_least", "_optional", "_unknown", "clock", "play", "until")

    def __init__(self, learner: Learner) -> None:
        memory, machine, feedback = learner._memory, learner.machine, learner._feedback
        self.play: Call = round_call(learner)
        self.clock = memory.state.clock.data
        self._gradient: Any = feedback.g.data  # takes an array only of its own type and shape
        self._optional, self._unknown = not machine.limits.needs_loss, machine.limits.unknown  # of the loss
        self._least = max(feedback.floor, -LARGEST_FLOAT)
        self.until = None if learner.anytime else learner.horizon

    def take(self, gradient: object, loss: object) -> bool:
        """Take the feedback of an ordinary round; False where the general path is needed."""
        if type(gradient) is not ndarray:
            return False
        if loss is None:
            if not self._optional:
                return False
            loss = self._unknown
        elif type(loss) is not float or not self._least <= loss <= LARGEST_FLOAT:
            return False
        try:
            self._gradient[:] = gradient
        except ValueError:  # numbers of another type, or another shape
            return False
        self.play.floats[1] = loss
        return True


def round_call(learner: Learner) -> Call:
    """Return a bound call of a round; where the machine says so it ends with making the next decision."""
    numbers = learner.machine.limits.unknown, learner._square_bound, 0, True
    if learner.machine.in_python:
        call: Call = loop.update.ready_in_python(learner._memory.unbound, *numbers)
        return call
    handle = learner._memory.handle
    if learner.machine.ahead:
        return loop.update_ahead.ready(bind(loop.ahead(handle)), *numbers)
    return loop.update.ready(handle, *numbers)
