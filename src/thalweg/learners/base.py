"""The interface of every learner: decide, see the loss, move.

A learner has a machine (a value that plans its state and knows its kernels), a memory (the state, in one block) and a
reader of feedback. Named algorithms are classes that build a machine and hand it to `Learner`.
"""

from __future__ import annotations

import inspect
import math
import sys
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.guests import Restorable
from thalweg._core.memory import Memory
from thalweg._core.recorded import Recorded, build, parameters
from thalweg._core.saving import Kept
from thalweg._core.state import Block
from thalweg._core.types import Floats
from thalweg._core.validate import LARGEST_FLOAT, LARGEST_SCALE, check_array, check_count, real_array, short_repr
from thalweg._kernels.clock import CLIPPED, FRESH, GRADIENTS, PROJECTIONS, ROUNDS, VALUES
from thalweg._kernels.handle import Handle, bind
from thalweg._kernels.hulls import FULL
from thalweg._kernels.jit import Call
from thalweg.domains._base import Domain, read_domain
from thalweg.errors import ClippingWarning, HorizonWarning, InputError
from thalweg.learners import loop, own
from thalweg.learners.contract import Own, core, has_capacity
from thalweg.learners.feedback import Feedback
from thalweg.learners.machine import AnyMachine
from thalweg.learners.usual import Usual, round_call
from thalweg.losses._base import Loss
from thalweg.losses._phi import QUERY, Phi

if TYPE_CHECKING:
    from thalweg.cards import Card
    from thalweg.problems.linear_model import LinearModel

T = TypeVar("T")
TUNED = frozenset({"gradient_bound", "smoothness", "loss_bound", "step_size", "step_sizes", "scale", "horizon"})
MANY = 100  # clipped gradients before a warning
PLAYED = loop.PLAYED


def outside() -> int:
    """Return the number of frames up to the caller of the package, for the `stacklevel` of warnings."""
    frame, level = sys._getframe(1), 1
    ours = "thalweg.", "contextlib"  # a round may end inside a `with` block
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(ours):
        frame, level = frame.f_back, level + 1
    return level


def bounded(owner: str, domain: object) -> Domain:
    """Return a domain that a learner can run on, or raise an error that names an alternative."""
    found = read_domain(owner, domain)
    if not math.isfinite(found.radius):
        raise InputError(f"{owner} needs a bounded domain. Got {domain!r}. Intersect it with a ball or a box.")
    return found


def read_start(owner: str, domain: Domain, start: ArrayLike) -> Floats:
    """Return the starting point, checked to be feasible."""
    point = check_array(owner, "start", start)
    if point.shape != domain.shape or not domain.contains(point, tol=1e-9):
        raise InputError(
            f"The 'start' parameter of {owner} must be a point of {domain!r}, of shape {domain.shape}. "
            f"Got {short_repr(start)}."
        )
    return point


def read_decision(owner: str, learner: Foreign, domain: Domain) -> Floats:
    """Return the decision of a learner, possibly from another package, as a new flat array."""
    shown = learner.decision
    x = real_array(shown)
    if x is None or x.shape != domain.shape or not np.isfinite(x).all():
        raise InputError(
            f"{owner}: the decision of {type(learner).__name__} must be finite numbers of shape {domain.shape}. "
            f"Got {short_repr(shown)}."
        )
    return np.array(x, dtype=np.float64).ravel()


class Foreign(Restorable, Protocol):
    """A learner that may be from another package."""

    @property
    def decision(self) -> ArrayLike:
        """The point that it plays in this round."""

    def update(self, gradient: Floats, loss: float | None) -> None:
        """Play one round."""


def watch_horizon(learner: Any) -> None:
    """Warn once when a learner has played more rounds than it was tuned for."""
    if learner.horizon is None or learner._warned_of_horizon or learner.anytime or learner.rounds <= learner.horizon:
        return
    learner._warned_of_horizon = True
    warnings.warn(
        f"{type(learner).__name__} was tuned for {learner.horizon} rounds and has now played more: it keeps "
        "working, but its guarantee does not cover the rounds beyond. Give a larger horizon.",
        HorizonWarning,
        stacklevel=outside(),
    )


@dataclass(frozen=True)
class Queries:
    """Numbers of projections onto the domain, gradients and function values that a learner asked for."""

    projections: int = 0
    gradients: int = 0
    values: int = 0

    def __sub__(self, other: Queries) -> Queries:
        return Queries(
            self.projections - other.projections, self.gradients - other.gradients, self.values - other.values
        )


class Shown(Generic[T]):
    """A read-only attribute computed from the innermost machine: `active = Shown(cover.active)`.

    `compute(learner, s, c)` gets the learner, and the state and settings of the machine inside all reductions.
    """

    def __init__(self, compute: Callable[[Any, Any, Any], T]) -> None:
        self.compute, self.__doc__ = compute, compute.__doc__

    @overload
    def __get__(self, learner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, learner: Learner, kind: type) -> T: ...
    def __get__(self, learner: Learner | None, kind: type) -> Self | T:
        if learner is None:
            return self
        return self.compute(learner, core(learner._memory.state), core(learner._memory.settings))

    def __set__(self, learner: Learner, value: object) -> None:
        raise AttributeError("this attribute is computed from the state and cannot be set")


class Extendable:
    """A learner or controller that plays up to a horizon, if it has one; its other bases are `Kept` and `Recorded`."""

    anytime = False  # the guarantee needs no horizon; if one is given, it only sets the capacity
    lasts = False  # the state stays valid when the horizon gets longer; not inherited
    _warned_of_horizon = False

    def extended(self, horizon: int) -> Self:
        """Return another one like this for a longer horizon, counted from its first round.

        If the horizon only sets a capacity, the state is kept, and only capacity and warnings change. If it is used
        for tuning, the new learner restarts: it is tuned for the remaining rounds and, if it takes a `start`, begins
        at the current decision. Each stretch then has its own guarantee, and regrets add up.
        docs/run-in-a-service.md lists which learners do which.

        Examples
        --------
        >>> import thalweg as tw
        >>> learner = tw.CBCE(tw.domains.Ball(2), gradient_bound=1.0, horizon=10)
        >>> learner.update([1.0, 0.0])
        >>> learner.extended(1000)
        CBCE(Ball(2, radius=1), gradient_bound=1, horizon=1000; 1 rounds played)
        >>> learner = tw.Ader(tw.domains.Ball(2), horizon=10, gradient_bound=1.0)
        >>> learner.update([1.0, 0.0])
        >>> learner.extended(1000)
        Ader(Ball(2, radius=1), horizon=999, gradient_bound=1, start=[-1, 0]; 0 rounds played)
        """
        mine: Any = self
        name, present = type(self).__name__, getattr(self, "horizon", None)
        if present is None:
            raise InputError(f"{name} was built without a horizon: it can go on as it is.")
        T, least = check_count(name, "horizon", horizon), max(present, mine.rounds + 1)
        if least > T and present != T:
            raise InputError(f"The 'horizon' of {name}.extended must be at least {least} here. Got {horizon!r}.")
        lasts = "lasts" in vars(type(self)) and self.lasts
        if not (lasts or self.anytime or present == T):
            restarted: Self = build(type(self), mine._arguments() | self._restarted(T - mine.rounds))
            return restarted
        longer: Any = build(type(self), mine._arguments() | {"horizon": T})
        longer.restore(mine.state() | {f"settings.{key}": value for key, value in longer._settings().items()})
        same: Self = longer
        return same

    def _restarted(self, rounds: int) -> dict[str, object]:
        """Return the arguments that change for one that is to play further rounds from here."""
        return {"horizon": rounds}


class Learner(Extendable, Kept, Recorded):
    """An online learner on a convex set.

    Parameters
    ----------
    machine : Machine
        The machine that plays its rounds.
    horizon : int, optional
        Number of rounds the learner is tuned for. Beyond it, the learner keeps working and warns once.
    gradient_bound : float, optional
        G with ||gradient|| <= G. A longer gradient is refused.
    on_violation : {"raise", "clip"}
        Treatment of a gradient longer than the bound: refuse it, or scale it down to the bound and count it.
    nonnegative : bool
        Refuse negative losses.
    inside : tuple of learners
        The learner whose machine became the part `inner` of this one. It remains usable as a view of that part.

    Notes
    -----
    To write your own learner, call this constructor with a machine: one of the library's, or `InPython` with your own
    functions. CONTRIBUTING has a complete example.
    """

    card: ClassVar[Card | None] = None  # its guarantee and recipe: see `thalweg.cards`
    one_gradient = True  # one gradient a round is enough: `update` works, and so does the one-projection reduction
    values_only = False  # `update` takes values at points chosen by the learner, not gradients
    _warned_of_clipping = False

    def __new__(cls, *args: object, **options: object) -> Self:
        """Record the arguments, and check the domain's radius: tuning constants are multiplied by it."""
        self = super().__new__(cls, *args, **options)
        given = getattr(self, "_given", {})
        domain = given.get("domain")
        R = domain.radius if isinstance(domain, Domain) and not TUNED.isdisjoint(given) else 1.0
        if not (1 / LARGEST_SCALE <= R <= LARGEST_SCALE or math.isinf(R)):
            raise InputError(
                f"{cls.__name__} needs a domain with a radius from {1 / LARGEST_SCALE:g} to {LARGEST_SCALE:g}. "
                f"Got {domain!r}. Choose other units."
            )
        return self

    def __init__(
        self,
        machine: AnyMachine,
        *,
        horizon: int | None = None,
        gradient_bound: float | None = None,
        on_violation: str = "raise",
        nonnegative: bool = False,
        inside: tuple[Learner, ...] = (),
    ) -> None:
        name = type(self).__name__
        self.machine, self.domain = machine, bounded(name, machine.domain)
        self.horizon = None if horizon is None else check_count(name, "horizon", horizon)
        self.one_gradient = machine.one_gradient
        self.needs_loss, self.uses_loss = machine.limits.needs_loss, machine.limits.uses_loss
        self.nonnegative = nonnegative
        self._feedback = Feedback(
            name,
            lambda: self._who(),
            self.domain,
            machine.hull,
            machine.limits,
            bound=gradient_bound,
            on_violation=on_violation,
            nonnegative=nonnegative,
        )
        self.gradient_bound, self.on_violation = self._feedback.bound, self._feedback.on_violation
        self._square_bound = self._feedback.square
        self._line = self.domain.shape if len(self.domain.shape) == 1 else None  # kernels take such gradients directly
        self._inside = inside
        self._windows: tuple[Learner, ...] = tuple(w for one in inside for w in (one, *one._windows))  # all the way in
        self._asks = not machine.core.one_gradient  # for a gradient at the point of every member
        self._outer: Learner | None = None  # the one whose block holds that of this learner
        self._shown: Floats | None = None
        self._seated: tuple[Handle, loop.Seat] | None = None
        self._turn: Call | None = None  # a bound call of a round
        self._usual: Usual | None = None
        for one in inside:
            one._outer = self
            if "_memory" in one.__dict__:  # it was used before, and is a view of this learner's block from here on
                _ = self._memory

    # ------------------------------------------------------------------ memory

    @cached_property
    def _memory(self) -> Memory:  # type: ignore[override]  # it can be set, which mypy does not know
        """The block, made at the first use. A learner inside another one has a part of the outer block."""
        if self._outer is None:
            return Memory(self.machine, self._tree, self._forget, self.machine.guests)
        _ = self._outer._memory  # sets that of this one
        memory: Memory = self.__dict__["_memory"]
        return memory

    def _become_part(self, outer: Memory) -> None:
        """Use a part of the block of another learner."""
        part = outer.block.part("inner"), outer.sizes
        if "_memory" in self.__dict__:
            self._memory.adopt(*part)
        else:
            self._memory = Memory(self.machine, self._tree, self._forget, self.machine.guests, part)

    def _tree(self, block: Block) -> loop.Game:
        """Return the tree that kernels take."""
        return loop.Game(block.state, block.settings, self._own, *self._feedback.hull, self._feedback.g)

    def _forget(self, memory: Memory) -> None:
        """Drop everything that refers to earlier arrays, and update the views of the learners inside."""
        self._shown = self._seated = self._turn = self._usual = None
        self._view = self.machine.view(memory.state)
        self._own: Own | None = own.scratch(self.machine.core, core(memory.state)) if self._asks else None
        for one in self._inside:
            one._become_part(memory)

    def _grow(self) -> None:
        memory = self._memory
        memory.grow(self.machine.larger(memory.state, memory.settings))

    # ------------------------------------------------------------------ the two calls of a round

    @property
    def decision(self) -> Floats:
        """The point that the learner plays in this round: a read-only array of the domain's shape, always feasible."""
        shown = self._shown
        if shown is None:
            usual = self._usual
            if usual is None or not usual.clock[FRESH]:
                self._decide()
            shown = self._view.copy()
            if self._line is None:
                shown = shown.reshape(self.domain.shape)
            shown.setflags(False)  # type: ignore[call-arg]  # positional: a keyword takes a third longer
            self._shown = shown
        return shown

    def _decide(self) -> None:
        """Compute the decision where a lazy machine has not done so yet."""
        memory = self._memory
        if self.machine.lazy and not memory.state.clock[FRESH]:
            self.machine.decide(memory)

    def update(self, gradient: ArrayLike, loss: float | None = None) -> None:
        """Play one round, given the gradient of f_t at `decision` and, if the learner needs it, the value.

        A call that is refused changes nothing.
        """
        shown, usual = self._shown, self._usual
        if shown is not None and usual is not None and usual.take(gradient, loss):  # the fast path
            self._shown = None  # before the state moves: after a Ctrl-C no stale decision is shown
            for one in self._windows:
                one._shown = None
            if usual.play.run() == PLAYED:
                if usual.until is not None and usual.clock[ROUNDS] > usual.until:
                    watch_horizon(self)
                return
            self._shown = shown
        feedback = self._feedback
        if self._asks:
            raise own.refused(self)
        value = feedback.read_loss(loss)
        feedback.read_gradient(gradient)
        clipped = False
        if self._shown is None:  # never read, but the round is played with it unless it is refused
            clipped = self._shorten(feedback.g)
            _ = self.decision
            if not clipped:
                feedback.read_gradient(gradient)  # again as given: the component off a flat is removed only once
        self._play_round(value, int(clipped))

    def step(self, f: Loss) -> float:
        """Play one round from the loss itself: query `f.value` and `f.gradient`, and return the loss paid."""
        self._feedback.check_loss_object(f)
        if self._asks:
            return own.step(self, f)
        x = self.decision
        paid = self._feedback.read_paid(f.value(x))
        self.update(f.gradient(x), paid)
        return paid

    # ------------------------------------------------------------------ a round

    def _forget_decision(self) -> None:
        self._shown = None
        for one in self._windows:
            one._shown = None

    def _play_round(self, loss: float | None, clipped: int) -> None:
        """Play a round from the gradient in the buffer; `clipped` counts those already shortened in it."""
        machine, memory = self.machine, self._memory
        paid = machine.limits.unknown if loss is None else loss
        self._forget_decision()
        with memory.all_or_nothing() if machine.in_python or not machine.whole else nullcontext():
            self._call_round(paid, clipped, whole=machine.whole)
            if not machine.whole:
                machine.finish(memory, paid)
        watch_horizon(self)

    def _call_round(self, loss: float, clipped: int, *, whole: bool) -> None:
        """Call `loop.update`; if the round is refused, fix the cause and retry where possible."""
        bound, memory = self._square_bound, self._memory
        while True:
            if self._turn is None:
                self._turn = round_call(self)
            turn = self._turn
            turn.floats[1], turn.floats[2], turn.integers[3], turn.integers[4] = loss, bound, clipped, whole
            status = turn.run()
            if status == PLAYED:
                if self._usual is None and self.machine.looped and not self._asks and self._line is not None:
                    self._usual = Usual(self)
                return
            if status == loop.LARGE:
                clipped, bound = clipped + self._shorten_all(), LARGEST_FLOAT
            elif status == loop.FULL:
                with memory.all_or_nothing():
                    self._grow()
                    self._call_round(loss, clipped, whole=whole)
                return
            else:
                turn.entry.read(status)
                why = self.machine.refusal(memory.state, memory.settings)
                raise InputError(f"{self._who()}: {why}")

    def _shorten(self, g: Floats) -> bool:
        """Project a gradient onto the hull and clip it; return whether it was clipped."""
        clipped = self._feedback.shorten(g)
        if clipped:
            self._watch_clipping()
        return clipped

    def _shorten_all(self) -> int:
        """Clip all gradients of the round that are too long; return their number."""
        if self._asks:
            return sum(self._shorten(g) for g in own.gradients(self))
        self._feedback.clip(self._feedback.g)
        self._watch_clipping()
        return 1

    def _watch_clipping(self) -> None:
        """Warn once that the bound is too small when a tenth of all gradients have been clipped."""
        clock = self._memory.state.clock
        clipped, asked = int(clock[CLIPPED]) + 1, int(clock[GRADIENTS]) + 1
        if clipped >= MANY and clipped >= asked / 10 and not self._warned_of_clipping:
            self._warned_of_clipping = True
            warnings.warn(
                f"{type(self).__name__} has scaled {clipped} of {asked} gradients down to gradient_bound = "
                f"{self.gradient_bound:g}: its guarantee does not hold for them, and it may hardly move. Give a larger "
                "gradient_bound, or use thalweg.Tracker, which needs none.",
                ClippingWarning,
                stacklevel=outside(),
            )

    # ------------------------------------------------------------------ whole runs

    def _rounds(self, problem: LinearModel, losses: Floats, decisions: Floats) -> loop.Rounds | None:
        """Return a problem in the form that a compiled run takes; None if these parts have no compiled loop."""
        if not self.machine.looped:
            return None
        data = problem.features, problem.labels, losses, decisions, problem.parameter
        return loop.Rounds(*data, self._square_bound, self._feedback.floor)

    def _play(self, problem: LinearModel, rounds: loop.Rounds, first: int, last: int) -> int:
        """Play rounds first..last-1; return the first one not played. `step` then plays it or raises the error."""
        charge, handle = _charge(problem.phi)
        self._forget_decision()
        played = first
        while True:
            if self._seated is None:
                seat = loop.seat(self._memory.handle, self._asks, self._view, self._feedback.g, charge, rounds)
                self._seated = bind(seat), seat
            played = int(loop.play(self._seated[0], handle, rounds, played, last))
            if played == last or not self._grow_if_full():
                break
        if self.machine.ahead:
            self.machine.decide(self._memory)  # so a run ends in the same state as single rounds
        watch_horizon(self)
        return played

    def _grow_if_full(self) -> bool:
        """Grow if there is no capacity for another round. False if there is, or if growing fails: `step` raises."""
        memory = self._memory
        if has_capacity(core(memory.state), core(memory.settings)):
            return False
        try:
            self._grow()
        except Exception:  # raised by a threshold function
            return False
        return True

    # ------------------------------------------------------------------ inspection

    @property
    def queries(self) -> Queries:
        """Projections onto the domain, gradients and values that the learner has used so far.

        The loss that `step` returns and `play` records counts as a value only if the learner uses it.
        """
        clock = self._memory.state.clock
        return Queries(int(clock[PROJECTIONS]), int(clock[GRADIENTS]), int(clock[VALUES]))

    @property
    def clipped(self) -> int:
        """Number of gradients scaled down to the bound."""
        return int(self._memory.state.clock[CLIPPED])

    @property
    def flattens(self) -> bool:
        """Whether gradients are projected onto the directions of the domain's affine hull; the rest has no effect."""
        return self._feedback.hull[0] != FULL

    # ------------------------------------------------------------------ stop and resume

    def reset(self) -> None:
        """Return to the first round."""
        self._forget_decision()
        if not (self.machine.looped and self._memory.rewind()):
            super().reset()
        self._warned_of_horizon = False

    def _restarted(self, rounds: int) -> dict[str, object]:
        """Return the arguments that change for a learner that continues from here."""
        here: dict[str, object] = {"start": self.decision} if "start" in parameters(type(self)) else {}
        return super()._restarted(rounds) | here


def check_takes_losses(owner: str, learner: object) -> None:
    """Refuse a learner that takes instances instead of losses or gradients, such as a PCA learner."""
    if getattr(learner, "takes_instances", False):
        raise InputError(
            f"{owner} needs a learner that takes losses. Got {type(learner).__name__}, which takes instances: "
            "call its update(x) in a loop of your own."
        )


def check_made(owner: str, maker: str, made: object) -> None:
    """Refuse the answer of a user's function that is no learner, or one that takes instances."""
    missing = [name for name in ("decision", "update", "state", "restore", "reset") if not _has(made, name)]
    if missing or isinstance(made, type):
        lacks = f", and it lacks {', '.join(missing)}" if missing else ""
        raise InputError(f"{owner} cannot use {short_repr(made)}: {maker} must return a learner{lacks}.")
    check_takes_losses(owner, made)


def _has(made: object, name: str) -> bool:
    """Whether an object has an attribute; a decision is not made for that."""
    missing = object()
    return inspect.getattr_static(made, name, missing) is not missing or (name != "decision" and hasattr(made, name))


@cache
def _charge(phi: Phi) -> tuple[loop.Charge, Handle]:
    """Return the loss in the form that the loop takes, bound once."""
    charge = loop.Charge(QUERY, phi.value, phi.slope)
    return charge, bind(charge)
