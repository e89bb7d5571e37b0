"""The plant: a known linear system x_{t+1} = A x_t + B u_t + w_t."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.recorded import Recorded
from thalweg._core.types import Floats
from thalweg._core.validate import LARGEST_ENTRY, check_array, check_positive, short_repr, wrong
from thalweg.control.equations import exponential
from thalweg.errors import InputError

__all__ = ["LinearSystem"]


def _matrices(A: ArrayLike, B: ArrayLike) -> tuple[Floats, Floats]:
    who = "LinearSystem"
    a, b = check_array(who, "A", A, ndim=2), check_array(who, "B", B, ndim=2)
    d = a.shape[0]
    if a.shape != (d, d) or d == 0:
        raise InputError(f"The 'A' parameter of {who} must be a square matrix. Got shape {a.shape}.")
    if b.shape[0] != d or b.shape[1] == 0:
        raise InputError(
            f"The 'B' parameter of {who} must have {d} rows, as A has, and a column for each input. "
            f"Got shape {b.shape}."
        )
    return a, b


class LinearSystem(Recorded):
    """x_{t+1} = A x_t + B u_t + w_t with state x, input u and disturbance w.

    The matrices are those of discrete time. For dx/dt = A x + B u write `LinearSystem.sampled(A, B, period)`, for a
    `StateSpace` of python-control `LinearSystem.from_control(plant)`. Where A
    looks like one of continuous time, all real parts of its eigenvalues below 0 and one below -1, a warning says so.

    Parameters
    ----------
    A : array (d_x, d_x)
        The transition matrix of the state.
    B : array (d_x, d_u)
        The effect of the input on the state.
    period : float, optional
        Seconds between two samples, where it is known: messages then speak of seconds beside rounds.

    Attributes
    ----------
    A, B : array
        Read-only copies.
    state_dim, input_dim : int
        d_x and d_u.

    Examples
    --------
    >>> system = LinearSystem([[1.0, 0.1], [0.0, 1.0]], [[0.0], [0.1]])
    >>> system.step([1.0, 0.0], [2.0], [0.0, 0.5])
    array([1. , 0.7])
    """

    def __init__(self, A: ArrayLike, B: ArrayLike, *, period: float | None = None) -> None:
        self.A, self.B = _matrices(A, B)
        self.period = None if period is None else check_positive("LinearSystem", "period", period)
        poles = np.linalg.eigvals(self.A).real
        if poles.max() < 0 and poles.min() < -1:
            warnings.warn(
                f"LinearSystem: A has eigenvalues from {poles.min():.3g} to {poles.max():.3g}, as one of continuous "
                "time. In discrete time this system swings and grows. For dx/dt = A x + B u write "
                "LinearSystem.sampled(A, B, period).",
                stacklevel=2,
            )
        self.A.flags.writeable = self.B.flags.writeable = False
        self.state_dim, self.input_dim = self.B.shape

    @classmethod
    def sampled(cls, A: ArrayLike, B: ArrayLike, period: float) -> LinearSystem:
        """The system dx/dt = A x + B u, its input held between samples `period` apart (zero-order hold)."""
        A, B = _matrices(A, B)
        h = check_positive("LinearSystem.sampled", "period", period)
        d, n = B.shape
        with np.errstate(all="ignore"):
            free = exponential(h * A)
            pushed = exponential(h * np.block([[A, B], [np.zeros((n, d + n))]]))[:d, d:]
        if not max(np.abs(free).max(), np.abs(pushed).max()) <= LARGEST_ENTRY:
            raise wrong(
                "LinearSystem.sampled", "period", f"short enough that nothing grows beyond {LARGEST_ENTRY:g}", period
            )
        return cls(free, pushed, period=h)

    @classmethod
    def from_control(cls, plant: Any) -> LinearSystem:
        """Return the system of a `StateSpace` of python-control, in discrete time.

        Its A, B and sampling time are taken. Controllers see the whole state, so C and D are not used.

        Examples
        --------
        >>> import control
        >>> plant = control.sample_system(control.ss([[0, 1], [0, 0]], [[0], [1]], [[1, 0]], 0), 0.2)
        >>> LinearSystem.from_control(plant)
        LinearSystem(2 states, 1 inputs, spectral radius 1, sampled every 0.2 s)
        """
        who = "LinearSystem.from_control"
        if not all(hasattr(plant, name) for name in ("A", "B", "dt")):
            raise InputError(f"{who} needs a StateSpace of python-control, with A, B and dt. Got {short_repr(plant)}.")
        if plant.dt is None or plant.dt == 0:
            time = "has no sampling time (dt is None)" if plant.dt is None else "is one of continuous time (dt = 0)"
            raise InputError(
                f"{who}: this StateSpace {time}. Sample it first: control.sample_system(plant, period), or "
                "LinearSystem.sampled(plant.A, plant.B, period)."
            )
        return cls(plant.A, plant.B, period=None if plant.dt is True else plant.dt)

    def lasts(self, rounds: int) -> str:
        """Return a number of rounds in words, with seconds where the period is known."""
        return f"{rounds} rounds" + ("" if self.period is None else f" ({rounds * self.period:.4g} s)")

    def step(self, state: ArrayLike, action: ArrayLike, disturbance: ArrayLike | None = None) -> Floats:
        """The next state."""
        who = "LinearSystem.step"
        x = check_array(who, "state", state, shape=(self.state_dim,))
        u = check_array(who, "action", action, shape=(self.input_dim,))
        moved: Floats = self.A @ x + self.B @ u
        if disturbance is not None:
            moved += check_array(who, "disturbance", disturbance, shape=(self.state_dim,))
        return moved

    def rollout(self, inputs: ArrayLike, disturbances: ArrayLike, start: ArrayLike | None = None) -> Floats:
        """The states x_1..x_{T+1} under given inputs u_1..u_T and disturbances w_1..w_T, from x_1 = `start` (0)."""
        who = "LinearSystem.rollout"
        u = check_array(who, "inputs", inputs, ndim=2)
        w = check_array(who, "disturbances", disturbances, shape=(len(u), self.state_dim))
        check_array(who, "inputs", u, shape=(len(u), self.input_dim))
        states = np.zeros((len(u) + 1, self.state_dim))
        if start is not None:
            states[0] = check_array(who, "start", start, shape=(self.state_dim,))
        with np.errstate(all="ignore"):
            for t in range(len(u)):
                states[t + 1] = self.A @ states[t] + self.B @ u[t] + w[t]
        if not np.isfinite(states).all():
            raise InputError(f"{who}: the states grow beyond the range of floating point. Take fewer rounds.")
        return states

    def __repr__(self) -> str:
        radius = float(np.abs(np.linalg.eigvals(self.A)).max())
        sampled = "" if self.period is None else f", sampled every {self.period:.4g} s"
        return f"LinearSystem({self.state_dim} states, {self.input_dim} inputs, spectral radius {radius:.4g}{sampled})"
