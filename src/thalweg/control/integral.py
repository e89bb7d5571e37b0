"""LQR with an integrator: constant disturbances leave no error in the controlled outputs.

    z_{t+1} = z_t + C x_t,   u_t = -K x_t - K_z z_t                                                                 (1)

(K, K_z) is the LQR gain of the system with z among its states, for sum x'Q x + u'R u + weight z'R z.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.rules import counter_field, magnitude
from thalweg._core.state import Past, field
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import LARGEST_ENTRY, check_array, check_positive
from thalweg.control.controller import Controller
from thalweg.control.costs import Cost
from thalweg.control.gains import riccati
from thalweg.control.system import LinearSystem
from thalweg.errors import InputError

__all__ = ["IntegralLQR", "IntegralState"]


class IntegralState(NamedTuple):
    """The integral of the outputs, and the present round."""

    z: Floats = field("z", magnitude(LARGEST_ENTRY), called="integral")
    x: Floats = field("x")
    u: Floats = field("u", called="input")
    clock: Ints = counter_field(2)


class IntegralLQR(Controller):
    """The linear-quadratic regulator with integral action.

    Parameters
    ----------
    system, Q, R, disturbance_bound
        As for `LQR`.
    outputs : array (n, d_x), optional
        C: the combinations of states whose mean is driven to zero, as many as there are inputs or fewer. The LQR gain
        when left out: as many as inputs, whatever the plant.
    weight : float
        The price of the integral. A larger one removes a constant error faster and pays more for noise.

    Examples
    --------
    >>> from thalweg.control import IntegralLQR, LQR, QuadraticCost, double_integrator, simulate
    >>> mass, cost, wind = double_integrator(), QuadraticCost([1, 1], [1]), np.full((300, 2), [0.0, 0.1])
    >>> held = IntegralLQR(mass, outputs=[[1, 0]])  # the position
    >>> [abs(float(simulate(one, mass, cost, wind).states[-1, 0].round(3))) for one in (LQR(mass), held)]
    [0.502, 0.0]
    """

    def __init__(
        self,
        system: LinearSystem,
        *,
        Q: ArrayLike | None = None,
        R: ArrayLike | None = None,
        outputs: ArrayLike | None = None,
        weight: float = 0.1,
        disturbance_bound: float | None = None,
    ) -> None:
        who, d = "IntegralLQR", system.state_dim if isinstance(system, LinearSystem) else 0
        design = riccati(who, system, Q, R)
        self.weight = check_positive(who, "weight", weight)
        C = design.K if outputs is None else check_array(who, "outputs", outputs, ndim=2)
        n, m = C.shape[0], system.input_dim
        if C.shape[1] != d or not 1 <= n <= m:
            raise InputError(
                f"The 'outputs' parameter of {who} must have {d} columns and 1 to {m} rows, as many as inputs at most. "
                f"Got shape {C.shape}."
            )
        self.Q, self.R, self.outputs = design.Q, design.R, C.copy()
        A = np.block([[system.A, np.zeros((d, n))], [C, np.eye(n)]])
        B = np.vstack([system.B, np.zeros((n, m))])
        price = np.zeros((d + n, d + n))
        price[:d, :d] = self.Q
        price[d:, d:] = self.weight * np.trace(self.R) / m * np.eye(n)
        both = riccati(who, LinearSystem(A, B), price, self.R).K
        super().__init__(system, gain=both[:, :d], disturbance_bound=disturbance_bound)
        self.integral_gain = both[:, d:]
        self._allocate(IntegralState, {"z": n})

    def _holds(self, s: IntegralState, past: Past) -> Iterator[tuple[str, bool]]:
        yield "input", self._answers(s, -self.integral_gain @ s.z)

    def _decide(self, x: Floats) -> Floats:
        return np.asarray(-self.gain @ x - self.integral_gain @ self._memory.state.z)  # (1)

    def _learn(self, cost: Cost, w: Floats) -> None:
        s = self._memory.state
        s.z[:] = np.clip(s.z + self.outputs @ s.x, -LARGEST_ENTRY, LARGEST_ENTRY)  # (1)
