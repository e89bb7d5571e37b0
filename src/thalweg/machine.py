"""Learners whose rounds are played by compiled code: what they share.

A machine (`thalweg._machines`) is a state and settings, two trees of NamedTuples. This side owns the arrays, hands them
over once (`thalweg._kernels.handle`), and gives compiled code what it may not decide: what to do with a round that was
refused, how to project onto a set that only Python can project onto, and the answers of a user's own loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thalweg._kernels.clock import CLIPPED, FRESH, GRADIENTS, ROUNDS
from thalweg._kernels.handle import Handle, bind
from thalweg._kernels.jit import Call
from thalweg._kernels.parts import leaves, place, spots
from thalweg._kernels.projections import PYTHON
from thalweg._machines import loop
from thalweg._machines._contract import Own
from thalweg._stateful import named_arrays
from thalweg.errors import InputError
from thalweg.learner import Learner
from thalweg.losses import Loss
from thalweg.losses._phi import QUERY, Phi

if TYPE_CHECKING:
    from thalweg.problems import LinearModel

__all__ = ["ExpertMachine", "Machine"]

Array = NDArray[np.float64]

LARGEST = float(np.finfo(np.float64).max)
FOREVER = 2**63 - 1
PLAYED, ndarray = loop.PLAYED, np.ndarray


class Calls:
    """The calls of a round, made ready once for a handle, and what a usual round must keep within."""

    __slots__ = (
        "clock",
        "gradient",
        "handle",
        "least",
        "optional",
        "quick",
        "ready",
        "turn",
        "unknown",
        "until",
        "usual",
    )

    def __init__(self, learner: Machine) -> None:
        self.handle = handle = learner._handle
        numbers = learner.unknown, learner._square_bound, 0, True
        update, machine = loop.update, handle
        if learner._ahead:
            update, machine = loop.update_ahead, bind(loop.ahead(handle))
        self.turn: Call = update.ready(machine, *numbers)
        self.quick: Call = update.ready(machine, *numbers)  # the same where only the loss changes
        self.ready: Call = loop.ready.ready(handle)
        self.usual = learner._compiled and len(learner.domain.shape) == 1
        self.gradient: Any = learner._gradient.data  # takes an array only of its own type and shape
        self.clock = learner._clock.data
        self.optional, self.unknown = not learner.needs_loss, learner.unknown  # of the loss
        self.least = max(learner._floor, -LARGEST)
        self.until = FOREVER if learner.horizon is None or learner.anytime else learner.horizon

    def take(self, gradient: Any, loss: Any) -> bool:
        """Take the feedback of a usual round for `quick`; False where it needs a longer look."""
        if not self.usual or type(gradient) is not ndarray:
            return False
        if loss is None:
            if not self.optional:
                return False
            loss = self.unknown
        elif type(loss) is not float or not self.least <= loss <= LARGEST:
            return False
        try:
            self.gradient[:] = gradient
        except ValueError:  # numbers of another type, or another shape
            return False
        self.quick.floats[1] = loss
        return True


class Machine(Learner):
    """A learner with a machine. A new kind defines `_tree`, `_peek` and `_restart`, and calls `_adopt` once built."""

    _parts: tuple[Any, Any]  # state and settings
    _own: Own | None = None
    _bound: Handle | None = None
    _calls: Calls | None = None
    _inside: Learner | None = None  # a learner within, which the same call moves
    _seated: tuple[Handle, Handle, loop.Seat] | None = None  # the first of them, and how the loop sees it
    _view: Array | None = None  # of the decision in the state's arrays

    # ------------------------------------------------------------------ the machine

    def _adopt(self, state: Any, settings: Any, own: Own | None = None) -> None:
        """Take over a machine's arrays: what it says, saves and hands over.

        The order matters where Ctrl-C comes in between: `_write` looks at `_parts` to see what is there.
        """
        self._bound = self._view = self._shown = None
        self._parts, self._own = (state, settings), own
        self._arrays = named_arrays(state)

    @property
    def _machine(self) -> tuple[Any, Any]:
        """State and settings, as compiled code sees them."""
        return self._parts

    @property
    def _handle(self) -> Handle:
        if self._bound is None:
            state, settings = self._machine
            self._bound = bind(loop.Game(state, settings, self._own, *self._hull, self._gradient))
        return self._bound

    def _prepared(self) -> Calls:
        """The calls of a round with the present handle."""
        calls = self._calls
        if calls is None or calls.handle is not self._bound:
            calls = self._calls = Calls(self)
        return calls

    def update(self, gradient: ArrayLike, loss: float | None = None) -> None:
        """One round from one gradient; see `Learner.update`."""
        shown, calls = self._shown, self._calls
        # the usual round, in one call: everything else takes the longer way
        if shown is not None and calls is not None and calls.handle is self._bound and calls.take(gradient, loss):
            self._shown = None  # before the state moves, as in `Learner.update`
            inside = self._inside
            if inside is not None:
                inside._shown = None
            if calls.quick.run() == PLAYED:
                if calls.clock[ROUNDS] > calls.until:
                    self._watch_horizon()
                return
            self._shown = shown
        super().update(gradient, loss)

    def __getstate__(self) -> dict[str, Any]:
        # handles cannot be copied, and a copied view is no view: they are made again
        return {**vars(self), "_bound": None, "_calls": None, "_seated": None, "_shown": None, "_view": None}

    @property
    def _ahead(self) -> bool:
        """Whether a round ends with making the next decision ready: most machines have it anyway."""
        return False

    @property
    def _compiled(self) -> bool:
        """Whether every projection of a round is compiled."""
        return self.domain.onto is not PYTHON

    def _peek(self) -> Array:
        """The decision as a flat array that the caller only reads, and only until the next round."""
        raise NotImplementedError

    def _propose(self) -> Array:
        return self._peek().copy()

    def _look(self, read: dict[str, NDArray[Any]]) -> Iterator[tuple[str, bool]]:
        clock = read["clock"]
        rounds, gradients = clock[ROUNDS], clock[GRADIENTS]
        yield "counters", gradients == rounds if self.one_gradient else gradients >= rounds
        yield "counters", clock[FRESH] in (0, 1) and clock[CLIPPED] <= gradients

    # ------------------------------------------------------------------ a round

    def _round(self, loss: float | None, clipped: int) -> None:
        paid = self.unknown if loss is None else loss
        if self._compiled:
            self._play_one(paid, clipped, True)
        else:
            self._python_round(paid, clipped)

    def _move(self, gradient: Array, loss: float | None) -> None:
        raise NotImplementedError  # rounds are played by `_round`

    def _play_one(self, loss: float, clipped: int, whole: bool) -> None:
        """`loop.update`; a round that it refuses is mended and played where that is possible."""
        bound = self._square_bound
        while True:
            turn = self._prepared().turn
            turn.floats[1], turn.floats[2], turn.integers[3], turn.integers[4] = loss, bound, clipped, whole
            status = turn.run()
            if status == loop.PLAYED:
                return
            if status == loop.LARGE:
                clipped, bound = clipped + self._clip_all(), LARGEST
            elif status == loop.FULL:
                with self._all_or_nothing():
                    self._make_room()
                    self._play_one(loss, clipped, whole)
                return
            else:
                turn.entry.read(status)
                raise self._beyond_range()

    def _clip_all(self) -> int:
        """What is to be done with gradients that are too large; returns how many were clipped."""
        self._clip(self._gradient)
        return 1

    @property
    def _full(self) -> bool:
        """Whether there is no room for one more round."""
        return False

    def _make_room(self) -> None:
        """Room for one more round, in new arrays."""

    def _beyond_range(self) -> InputError:
        """Why feedback was refused."""
        raise NotImplementedError  # machines that refuse feedback define it

    def _python_round(self, loss: float, clipped: int) -> None:
        """One round where only Python can project."""
        raise NotImplementedError

    # ------------------------------------------------------------------ whole runs

    def _rounds(self, problem: LinearModel, losses: Array, decisions: Array) -> loop.Rounds | None:
        """What a compiled run needs to know of a problem; None where there is no loop for these parts."""
        if not self._compiled:
            return None
        data = problem.features, problem.labels, losses, decisions, problem.parameter
        return loop.Rounds(*data, self._square_bound, self._floor)

    def _play(self, problem: LinearModel, rounds: loop.Rounds, first: int, last: int) -> int:
        """Play rounds first..last-1; returns the first that was not played: `step` plays it, or says why not."""
        charge, handle = _charge(problem.phi)
        self._shown = None
        if self._seated is None or self._seated[0] is not self._handle:
            own = self._own is not None
            seat = loop.seat(self._handle, own, self._peek(), self._gradient, charge, rounds)
            self._seated = self._handle, bind(seat), seat
        played = int(loop.play(self._seated[1], handle, rounds, first, last))
        self._watch_horizon()
        return played


@cache
def _charge(phi: Phi) -> tuple[loop.Charge, Handle]:
    """The loss as the loop takes it; handed over once."""
    charge = loop.Charge(QUERY, phi.value, phi.slope)
    return charge, bind(charge)


class ExpertMachine(Machine):
    """What one expert alone and a cover of experts share: members that may ask for gradients of their own."""

    def _slots(self) -> list[int]:
        """The experts that are alive."""
        return [0]

    def _members(self, k: int) -> range:
        """The points of expert k."""
        state, settings = self._parts
        return range(leaves(state.experts, settings.experts, k))

    @staticmethod
    def _ask_own(experts: Any, K: int, by_value: bool, wanted: bool) -> Own:
        """What every member's own gradient takes."""
        points = spots(experts)
        return Own(np.zeros_like(points), np.zeros(points.shape[:2]), np.zeros(K), by_value, wanted)

    def update(self, gradient: ArrayLike, loss: float | None = None) -> None:
        """One round from one gradient; see `Learner.update`. Members with their own gradients refuse it."""
        if self._own is not None:
            count = sum(len(self._members(k)) for k in self._slots())
            raise InputError(
                f"{type(self).__name__} with gradients='own' asks for the gradient at the points of all its {count} "
                "members, so one gradient is not enough. Call step(f) with an object that has f.value(x) and "
                "f.gradient(x), or build the learner with gradients='shared'."
            )
        super().update(gradient, loss)

    def step(self, f: Loss) -> float:
        """One round from the loss itself; returns the loss paid at the decision."""
        if self._own is None:
            return super().step(f)
        self._check_loss_object(f)
        if not self._full:
            return self._step_own(f)
        with self._all_or_nothing():  # if the round is refused, the room is taken back
            self._make_room()
            return self._step_own(f)

    def _step_own(self, f: Loss) -> float:
        """A round in which every member asks for a gradient of its own."""
        assert self._own is not None
        x = self.decision
        paid = self._read_paid(f.value(x))
        for k in self._slots():
            self._ask(f, k)
        if not self._own.by_value:
            self._read_gradient(f.gradient(x))
        self._shown = None
        self._round(paid, 0)
        self._watch_horizon()
        return paid

    def _ask(self, f: Loss, k: int) -> None:
        """What expert k and its members ask of a loss, into `_own`."""
        own, shape = self._own, self.domain.shape
        assert own is not None
        experts, members = self._parts[0].experts, self._members(k)
        for i in members:
            point = spots(experts)[k, i].reshape(shape).copy()
            if own.by_value:
                own.values[k, i] = self._read_paid(f.value(point))
            self._read_gradient(f.gradient(point))
            own.H[k, i] = self._gradient
        if own.wanted:
            own.judged[k] = own.values[k, 0]
            if len(members) > 1:
                own.judged[k] = self._read_paid(f.value(place(experts, k, 0).reshape(shape).copy()))

    def _clip_all(self) -> int:
        if self._own is None:
            return super()._clip_all()
        asked = [self._own.H[k, i] for k in self._slots() for i in self._members(k)]
        if not self._own.by_value:
            asked.append(self._gradient)
        return sum(self._check_gradient(gradient) for gradient in asked)

    # ------------------------------------------------------------------ sets that only Python can project onto

    def _python_round(self, loss: float, clipped: int) -> None:
        with self._all_or_nothing():
            self._play_one(loss, clipped, False)
            points = spots(self._parts[0].experts)
            for k in self._slots():
                for i in self._members(k):
                    points[k, i] = self.domain._project_flat(points[k, i].copy())
            loop.finish(self._handle, loss)
