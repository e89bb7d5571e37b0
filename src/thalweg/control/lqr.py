"""Linear state feedback, u = -K x: LQR, and any other gain."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.state import Past
from thalweg._core.types import Floats
from thalweg.control.controller import Controller, ControllerState
from thalweg.control.costs import Cost
from thalweg.control.gains import riccati
from thalweg.control.system import LinearSystem

__all__ = ["LQR", "LinearFeedback"]


class LinearFeedback(Controller):
    """u = -K x with a gain of your own, such as that of `h_infinity_gain`. It learns nothing.

    Parameters
    ----------
    system, gain, disturbance_bound
        As for every `Controller`.
    """

    def __init__(
        self, system: LinearSystem, *, gain: ArrayLike | None = None, disturbance_bound: float | None = None
    ) -> None:
        super().__init__(system, gain=gain, disturbance_bound=disturbance_bound)
        self._allocate(ControllerState)

    def _decide(self, x: Floats) -> Floats:
        return -self.gain @ x

    def _learn(self, cost: Cost, w: Floats) -> None:
        return

    def _holds(self, s: ControllerState, past: Past) -> Iterator[tuple[str, bool]]:
        yield "input", self._answers(s, np.zeros(self.system.input_dim))


class LQR(LinearFeedback):
    """The linear-quadratic regulator: u = -K x with the K that is best for one quadratic cost and random disturbances.

    Parameters
    ----------
    system, disturbance_bound
        As for every `Controller`.
    Q, R : array, vector or number, optional
        Weights of state and input, identities when left out. A vector or a number is a diagonal.

    Examples
    --------
    >>> from thalweg.control import LQR, double_integrator
    >>> LQR(double_integrator(period=1.0)).act([1.0, 0.0]).round(3)
    array([-0.434])
    """

    def __init__(
        self,
        system: LinearSystem,
        *,
        Q: ArrayLike | None = None,
        R: ArrayLike | None = None,
        disturbance_bound: float | None = None,
    ) -> None:
        design = riccati("LQR", system, Q, R)
        super().__init__(system, gain=design.K, disturbance_bound=disturbance_bound)
        self.Q, self.R = design.Q, design.R
