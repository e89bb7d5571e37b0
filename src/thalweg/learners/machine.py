"""Machines: values that plan the state of a learner. Their rounds are kernels (`thalweg.learners.contract`).

A learner *has* a machine: `Single` (one expert), `Covered` (experts on a cover), `Reduced` (any machine behind one
projection), and so on. A machine is immutable; the state that it plans lies in the learner's `Memory`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from thalweg._core.guests import Restorable
from thalweg._core.memory import Memory, Saved
from thalweg._core.state import Past, Plan
from thalweg._core.types import Floats, Ints
from thalweg._kernels.clock import CLIPPED, FRESH, GRADIENTS, ROUNDS
from thalweg._kernels.hulls import FULL
from thalweg._kernels.projections import PYTHON
from thalweg.domains._base import Domain
from thalweg.learners.contract import decision
from thalweg.learners.limits import Limits


class Clocked(Protocol):
    """A state with counters."""

    @property
    def clock(self) -> Ints:
        """See `thalweg._kernels.clock`."""


S = TypeVar("S", bound=Clocked)
C = TypeVar("C")


class Machine(ABC, Generic[S, C]):
    """A value that plans a state, and has the operations on it that need Python.

    Attributes
    ----------
    domain : Domain
        The set of its decisions.
    one_gradient : bool
        One gradient a round is enough.
    limits : Limits
        The losses and gradients that it takes.
    in_python : bool
        A round runs functions that only Python can call.
    lazy : bool
        The decision has to be made from the state.
    ahead : bool
        The next decision is made at the end of a round.
    """

    domain: Domain
    one_gradient = True
    limits = Limits()
    flattens = True
    in_python = False
    lazy = False
    ahead = False

    # ------------------------------------------------------------------ the state

    @abstractmethod
    def plan(self, sizes: Mapping[str, int]) -> Plan:
        """Return the plan for these sizes, those that can grow."""

    def sizes(self) -> dict[str, int]:
        """Return the sizes of a fresh state."""
        return {}

    def larger(self, s: S, c: C) -> dict[str, int]:
        """Return sizes with capacity for one more round."""
        return self.sizes()

    def sizes_of(self, saved: Saved) -> dict[str, int]:
        """Return the sizes of a saved state; raise ValueError with the reason if no run can have them."""
        return self.sizes()

    def holds(self, s: S, c: C, past: Past) -> Iterator[tuple[str, bool]]:
        """Yield (name, holds) for relations between fields; here that counters agree."""
        t, gradients = s.clock[ROUNDS], s.clock[GRADIENTS]
        yield "counters", bool(gradients == t if self.one_gradient else gradients >= t)
        yield "counters", bool(s.clock[FRESH] in (0, 1) and s.clock[CLIPPED] <= gradients)

    # ------------------------------------------------------------------ rounds

    @property
    def core(self) -> AnyMachine:
        """The machine inside all reductions."""
        return self

    @property
    def guests(self) -> Mapping[str, Restorable]:
        """Foreign objects whose state is not in the block, by the prefix of their names."""
        return {}

    @property
    def hull(self) -> tuple[int, Floats]:
        """The affine hull that gradients are projected onto: `thalweg._kernels.hulls`."""
        return (self.domain.flat, self.domain.flat_par) if self.flattens else (FULL, np.zeros(0))

    @property
    def whole(self) -> bool:
        """Whether a round is one kernel call, with no projection in Python in its middle."""
        return self.in_python or self.domain.onto is not PYTHON

    @property
    def looped(self) -> bool:
        """Whether whole runs can be compiled."""
        return self.whole and not self.in_python

    def view(self, s: S) -> Floats:
        """Return the array that holds the decision, flat; of a lazy machine it may be that of an earlier round."""
        return decision(s, None)

    def decide(self, memory: Memory) -> None:  # nothing to do, unless a machine says otherwise
        """Make the decision of the present round; only lazy machines have to."""

    def finish(self, memory: Memory, loss: float) -> None:
        """End a round whose projections only Python can compute."""
        raise NotImplementedError(f"{type(self).__name__} plays its rounds whole")

    def refusal(self, s: S, c: C) -> str:
        """Return the reason why feedback was refused."""
        raise NotImplementedError(f"{type(self).__name__} refuses no feedback")


AnyMachine = Machine[Any, Any]
