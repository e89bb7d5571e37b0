"""A given disturbance-action policy: the yardstick of learned ones."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.rules import counter_field
from thalweg._core.state import Past, field
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_array
from thalweg.control import _kernels as kernels
from thalweg.control.controller import Controller
from thalweg.control.costs import Cost
from thalweg.control.policy import DAC
from thalweg.control.system import LinearSystem
from thalweg.errors import InputError

__all__ = ["Planted", "PlantedState"]


class PlantedState(NamedTuple):
    """The last P disturbances, newest first, and the present round."""

    past: Floats = field("P x", called="past disturbances")
    x: Floats = field("x")
    u: Floats = field("u", called="input")
    clock: Ints = counter_field(2)


class Planted(Controller):
    """u_t = -K x_t + sum_i M_{t,i} w_{t-i} with given matrices.

    Parameters
    ----------
    system, gain
        As for every `Controller`.
    policies : array (H, d_u, d_x) or (T, H, d_u, d_x)
        One policy for all rounds, or one for each round.

    Examples
    --------
    >>> from thalweg.control import LQR, Planted, double_integrator
    >>> system = double_integrator()
    >>> still = Planted(system, policies=np.zeros((3, 1, 2)))
    >>> bool(still.act([1.0, 2.0]) == LQR(system).act([1.0, 2.0]))
    True
    """

    def __init__(self, system: LinearSystem, *, policies: ArrayLike, gain: ArrayLike | None = None) -> None:
        super().__init__(system, gain=gain)
        given = check_array("Planted", "policies", policies)
        if given.ndim not in (3, 4) or given.shape[-2:] != (system.input_dim, system.state_dim) or 0 in given.shape:
            raise InputError(
                f"The 'policies' parameter of Planted must have shape (H, {system.input_dim}, {system.state_dim}), or "
                f"a leading axis of rounds before these. Got shape {given.shape}."
            )
        given.flags.writeable = False
        self.policies: Floats = given
        self.policy = DAC(system, gain=self.gain, memory=given.shape[-3])
        self._allocate(PlantedState, {"P": 2 * self.policy.memory + 1})

    def _holds(self, s: PlantedState, past: Past) -> Iterator[tuple[str, bool]]:
        yield "past disturbances", not s.past[past.rounds :].any()  # none before the start

    @property
    def matrices(self) -> Floats:
        """M_t, the policy of the present round."""
        if self.policies.ndim == 3:
            return self.policies
        if self.rounds >= len(self.policies):
            raise InputError(f"{self._who()}: there are policies for {len(self.policies)} rounds only.")
        M: Floats = self.policies[self.rounds]
        return M

    def _decide(self, x: Floats) -> Floats:
        u = np.empty(self.system.input_dim)
        kernels.action(self.matrices, self._memory.state.past, self.gain, x, u)
        return u

    def _learn(self, cost: Cost, w: Floats) -> None:
        past = self._memory.state.past
        past[1:] = past[:-1].copy()
        past[0] = w
