"""The contract of controllers: act on the state, observe the next one."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.memory import Fixed, Memory
from thalweg._core.recorded import Recorded, parameters
from thalweg._core.rules import CLOSE, counter_field
from thalweg._core.saving import Kept
from thalweg._core.state import Past, Plan, field
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import LARGEST_ENTRY, check_positive, real_array, short_repr
from thalweg.control.costs import Cost
from thalweg.control.gains import check_gain
from thalweg.control.system import LinearSystem
from thalweg.errors import InputError
from thalweg.learners.base import Extendable, Queries

__all__ = ["ACTED", "ROUNDS", "Controller", "ControllerState"]

ROUNDS, ACTED = 0, 1  # entries of the clock
BOUND_SLACK = 1e-9  # a disturbance may exceed its bound by this much, relatively: it is a difference of states


class ControllerState(NamedTuple):
    """A controller that remembers the present round only; x has d_x numbers and u has d_u."""

    x: Floats = field("x")  # the state that it acted on,
    u: Floats = field("u", called="input")  # and its answer
    clock: Ints = counter_field(2)


class Controller(Extendable, Kept, Recorded, ABC):
    """A controller of a known linear system, one round at a time.

    Parameters
    ----------
    system : LinearSystem
        The plant.
    gain : array (d_u, d_x), optional
        K of u = -K x, stabilising; the LQR gain with identity weights when left out.
    disturbance_bound : float, optional
        W. A disturbance longer than this is refused.

    Notes
    -----
    A round is `u = act(state)`, then `observe(cost, next_state)`. A call that is refused changes nothing, so it can be
    made again with valid arguments. A new controller declares its state, with the fields of `ControllerState` among
    others, ends its constructor with `_allocate`, and defines `_decide`, `_learn` and, where fields depend on each
    other, `_holds`.
    """

    _noun = "controller"
    _longest = float("inf")  # of a disturbance, where no bound was given

    def __init__(
        self, system: LinearSystem, *, gain: ArrayLike | None = None, disturbance_bound: float | None = None
    ) -> None:
        name = type(self).__name__
        self.gain = check_gain(name, system, gain)
        self.gain.flags.writeable = False
        self.system = system
        self.disturbance_bound = (
            None if disturbance_bound is None else check_positive(name, "disturbance_bound", disturbance_bound)
        )

    def _allocate(
        self,
        state: type,
        sizes: Mapping[str, int] | None = None,
        begin: Callable[[Any, Any], None] = lambda s, c: None,
        moved: Callable[[Memory], None] | None = None,
        guests: Mapping[str, "Controller"] | None = None,
        settings: object = (),
        **parts: Plan,
    ) -> None:
        """Begin the first round in a state of this class; `sizes` are those besides x and u."""
        shapes = {"x": self.system.state_dim, "u": self.system.input_dim, **(sizes or {})}
        plan = Plan(state, settings, shapes, parts, holds=self._relations, begin=begin)
        self._memory = Memory(Fixed(plan), moved=moved, guests=guests)

    def _relations(self, s: Any, c: object, past: Past) -> Iterator[tuple[str, bool]]:
        yield "counters", bool(s.clock[ACTED] in (0, 1))
        yield from self._holds(s, past)

    # ------------------------------------------------------------------ to be defined by subclasses

    @abstractmethod
    def _decide(self, x: Floats) -> Floats:
        """The input for a checked state, as a new array. Raises with nothing changed."""

    @abstractmethod
    def _learn(self, cost: Cost, w: Floats) -> None:
        """Learn from the round's cost and disturbance, inside a call that is all or nothing."""

    def _holds(self, s: Any, past: Past) -> Iterator[tuple[str, bool]]:
        """Yield (name, holds) for relations between fields of the state."""
        yield from ()

    def _arguments(self) -> dict[str, Any]:
        given = super()._arguments()
        return given | {"gain": self.gain} if "gain" in {*parameters(type(self)), *given} else given

    # ------------------------------------------------------------------ the two calls of a round

    def act(self, state: ArrayLike) -> Floats:
        """Return the input u_t for the state x_t. Called again before `observe`, the last call counts."""
        x = self._read_sensors("state", state)
        u, s = self._decide(x), self._memory.state
        with self._memory.all_or_nothing():  # Ctrl-C
            s.x[:], s.u[:] = x, u
            s.clock[ACTED] = 1
        return u

    def observe(self, cost: Cost, next_state: ArrayLike) -> None:
        """The cost c_t of the round and the state x_{t+1} that followed; from it w_t = x_{t+1} - A x_t - B u_t."""
        s = self._memory.state
        if not s.clock[ACTED]:
            raise InputError(f"{self._who()}: call act(state) before observe(cost, next_state).")
        if not hasattr(cost, "gradients"):
            raise InputError(f"{self._who()}: a cost needs gradients(x, u). Got {short_repr(cost)}.")
        after = self._read_sensors("next_state", next_state)
        w = after - self.system.A @ s.x - self.system.B @ s.u
        self._check_disturbance(w)
        with self._memory.all_or_nothing():
            self._learn(cost, w)
            s.clock[ROUNDS] += 1
            s.clock[ACTED] = 0

    def _check_disturbance(self, w: Floats) -> None:
        size, bound = float(np.linalg.norm(w)), self.disturbance_bound
        if bound is not None and size > bound * (1 + BOUND_SLACK):
            raise InputError(
                f"{self._who()}: the disturbance x_(t+1) - A x_t - B u_t has size {size:g}, above "
                f"disturbance_bound = {bound:g}. Check the state and the model, or give a larger bound."
            )
        if not size <= self._longest:
            raise InputError(
                f"{self._who()}: the disturbance x_(t+1) - A x_t - B u_t has size {size:g}, above {self._longest:g}. "
                "Check the state and the model."
            )

    # ------------------------------------------------------------------ inspection

    @property
    def queries(self) -> Queries:
        """Projections onto the set of policies, gradients and values used so far."""
        return Queries()

    @property
    def clipped(self) -> int:
        """Gradients that were scaled down to their bound."""
        return 0

    def _answers(self, s: Any, policy: Floats) -> bool:
        """Whether the input of a state is -K x plus the policy's part, where a round is under way."""
        with np.errstate(all="ignore"):
            size = np.abs(self.gain).sum() * np.abs(s.x).max() + np.abs(policy).max()
            off = np.abs(policy - self.gain @ s.x - s.u)
        return not s.clock[ACTED] or bool((off <= CLOSE * size).all() and size < np.inf)

    # ------------------------------------------------------------------ checks

    def _read_sensors(self, what: str, state: ArrayLike) -> Floats:
        x = real_array(state)
        if x is None:
            raise InputError(f"{self._who()}: {what} must be an array of real numbers. Got {short_repr(state)}.")
        if x.shape != (self.system.state_dim,):
            raise InputError(
                f"{self._who()}: {what} has shape {x.shape}, the system has {self.system.state_dim} states."
            )
        if not np.abs(x).max() <= LARGEST_ENTRY:  # or nan
            if not np.isfinite(x).all():
                raise InputError(
                    f"{self._who()}: {what} has entries that are nan or infinite. Check the sensor or the simulation."
                )
            raise InputError(
                f"{self._who()}: {what} has entries beyond {LARGEST_ENTRY:g}. Check that the gain stabilises."
            )
        return x.copy()
