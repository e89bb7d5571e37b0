"""The contract every controller keeps: act on the state, observe what came of it."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thalweg._interrupts import interrupts
from thalweg._recorded import parameters
from thalweg._sound import CLOSE
from thalweg._stateful import Stateful
from thalweg._types import Array
from thalweg._validate import LARGEST, check_positive, real_array, told
from thalweg.control.costs import Cost
from thalweg.control.gains import check_gain
from thalweg.control.system import LinearSystem
from thalweg.errors import InputError
from thalweg.learner import Queries

__all__ = ["Controller"]

ROUNDS, ACTED = 0, 1  # entries of the clock
ROUNDING = 1e-9  # a disturbance may exceed its bound by this much, relatively: it is a difference of states


class Controller(Stateful):
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
    made again with what is right. A new controller defines `_decide` and `_learn`.
    """

    _noun = "controller"

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
        self._arrays = {
            "clock": np.zeros(2, dtype=np.int64),
            "x": np.zeros(system.state_dim),
            "u": np.zeros(system.input_dim),
        }

    # ------------------------------------------------------------------ what a new controller defines

    @abstractmethod
    def _decide(self, x: Array) -> Array:
        """The input for a checked state, as a new array. Raises with nothing changed."""

    @abstractmethod
    def _learn(self, cost: Cost, w: Array) -> None:
        """What to make of the round's cost and disturbance."""

    def _arguments(self) -> dict[str, Any]:
        given = super()._arguments()
        return given | {"gain": self.gain} if "gain" in {*parameters(type(self)), *given} else given

    # ------------------------------------------------------------------ the two calls of a round

    def act(self, state: ArrayLike) -> Array:
        """The input u_t for the state x_t. Called again before `observe`, the last call counts."""
        x = self._read_sensors("state", state)
        u, arrays = self._decide(x), self._arrays
        before = {name: arrays[name].copy() for name in ("x", "u", "clock")}
        try:
            arrays["x"][:] = x
            arrays["u"][:] = u
            arrays["clock"][ACTED] = 1
        except BaseException:  # Ctrl-C
            with interrupts():  # a second one waits
                self._write(before)
            raise
        return u

    def observe(self, cost: Cost, next_state: ArrayLike) -> None:
        """The cost c_t of the round and the state x_{t+1} that followed; from it w_t = x_{t+1} - A x_t - B u_t."""
        if not self._arrays["clock"][ACTED]:
            raise InputError(f"{self._who()}: call act(state) before observe(cost, next_state).")
        if not hasattr(cost, "gradients"):
            raise InputError(f"{self._who()}: a cost needs gradients(x, u). Got {told(cost)}.")
        after = self._read_sensors("next_state", next_state)
        w = after - self.system.A @ self._arrays["x"] - self.system.B @ self._arrays["u"]
        if self.disturbance_bound is not None:
            size = float(np.linalg.norm(w))
            if size > self.disturbance_bound * (1 + ROUNDING):
                raise InputError(
                    f"{self._who()}: the disturbance x_(t+1) - A x_t - B u_t has size {size:g}, above "
                    f"disturbance_bound = {self.disturbance_bound:g}. Check the state and the model, or give a larger "
                    "bound."
                )
        with self._all_or_nothing():
            self._learn(cost, w)
            self._arrays["clock"][ROUNDS] += 1
            self._arrays["clock"][ACTED] = 0

    # ------------------------------------------------------------------ what it tells

    @property
    def rounds(self) -> int:
        """Rounds played so far."""
        return int(self._arrays["clock"][ROUNDS])

    @property
    def queries(self) -> Queries:
        """Projections onto the set of policies, gradients and values used so far."""
        return Queries()

    @property
    def clipped(self) -> int:
        """Gradients that were scaled down to their bound."""
        return 0

    def _look(self, read: dict[str, NDArray[Any]]) -> Iterator[tuple[str, bool]]:
        yield "clock", read["clock"][ACTED] in (0, 1)

    def _answers(self, read: dict[str, NDArray[Any]], policy: Array) -> bool:
        """Whether the input of a saved state is -K x plus what a policy adds, where a round is under way."""
        x, u = read["x"], read["u"]
        with np.errstate(all="ignore"):
            size = np.abs(self.gain).sum() * np.abs(x).max() + np.abs(policy).max()
            off = np.abs(policy - self.gain @ x - u)
        return not read["clock"][ACTED] or bool((off <= CLOSE * size).all() and size < np.inf)

    def _restart(self) -> None:
        for array in self._arrays.values():
            array[...] = 0

    # ------------------------------------------------------------------ checks

    def _read_sensors(self, what: str, state: ArrayLike) -> Array:
        x = real_array(state)
        if x is None:
            raise InputError(f"{self._who()}: {what} must be an array of real numbers. Got {told(state)}.")
        if x.shape != (self.system.state_dim,):
            raise InputError(
                f"{self._who()}: {what} has shape {x.shape}, the system has {self.system.state_dim} states."
            )
        if not np.abs(x).max() <= LARGEST:  # or nan
            if not np.isfinite(x).all():
                raise InputError(
                    f"{self._who()}: {what} has entries that are nan or infinite. Check the sensor or the simulation."
                )
            raise InputError(f"{self._who()}: {what} has entries beyond {LARGEST:g}. Check that the gain stabilises.")
        return x.copy()
