"""Disturbances of a system: arrays of w_1..w_T, one row a round, and an adversary that looks at the state.

Rows are at most `bound` long (Euclidean). `direction` says which states are pushed; it is made a unit vector.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import check_array, check_count, check_entries, check_number, check_positive, check_rng
from thalweg.control.gains import riccati
from thalweg.control.system import LinearSystem
from thalweg.errors import InputError

__all__ = ["BangBang", "piecewise", "random_walk", "recorded", "sinusoid"]

Seed = int | np.random.Generator | None


def _direction(owner: str, value: ArrayLike) -> Floats:
    direction = check_array(owner, "direction", value, ndim=1)
    size = float(np.linalg.norm(direction))
    if size == 0:
        raise InputError(f"The 'direction' parameter of {owner} must not be zero.")
    return direction / size


def sinusoid(
    horizon: int, direction: ArrayLike, bound: float = 1.0, *, period: float = 50.0, phase: float = 0.0
) -> Floats:
    """bound * sin(2 pi t / period + phase) along a direction.

    Examples
    --------
    >>> sinusoid(3, [0.0, 1.0], bound=2.0, period=4.0).round(2)
    array([[0., 0.],
           [0., 2.],
           [0., 0.]])
    """
    T = check_count("sinusoid", "horizon", horizon)
    W, P = check_positive("sinusoid", "bound", bound), check_positive("sinusoid", "period", period)
    shift, along = check_number("sinusoid", "phase", phase), _direction("sinusoid", direction)
    check_entries("sinusoid", "horizon", horizon, T * along.size)
    return np.outer(W * np.sin(2 * math.pi * np.arange(T) / P + shift), along)


def random_walk(
    horizon: int, direction: ArrayLike, bound: float = 1.0, *, step: float = 0.1, rng: Seed = None
) -> Floats:
    """A walk along a direction, with normal steps of standard deviation step * bound, reflected at -bound and bound."""
    T = check_count("random_walk", "horizon", horizon)
    W, size = check_positive("random_walk", "bound", bound), check_positive("random_walk", "step", step)
    along, generator = _direction("random_walk", direction), check_rng("random_walk", rng)
    check_entries("random_walk", "horizon", horizon, T * along.size)
    walk = np.cumsum(size * generator.standard_normal(T))
    folded = np.abs((walk + 1) % 4 - 2) - 1  # reflection at -1 and 1
    return np.outer(-W * folded, along)


def piecewise(horizon: int, dim: int, bound: float = 1.0, *, length: int = 100, rng: Seed = None) -> Floats:
    """A constant push of size `bound`, in a new random direction every `length` rounds."""
    T, n = check_count("piecewise", "horizon", horizon), check_count("piecewise", "length", length)
    d, W = check_count("piecewise", "dim", dim), check_positive("piecewise", "bound", bound)
    check_entries("piecewise", "horizon", horizon, T * d)
    pushes = check_rng("piecewise", rng).standard_normal((-(-T // n), d))
    pushes *= W / np.linalg.norm(pushes, axis=1, keepdims=True)
    return np.repeat(pushes, min(n, T), axis=0)[:T]


def recorded(series: ArrayLike, bound: float = 1.0, *, direction: ArrayLike | None = None) -> Floats:
    """A measured series, centred and scaled so that its largest row has size `bound`.

    Parameters
    ----------
    series : array (T,) or (T, d_x)
        One axis needs a direction.
    bound : float
        Size of the largest row.
    direction : array, optional
        Which states a series with one axis pushes.
    """
    rows = check_array("recorded", "series", series)
    W = check_positive("recorded", "bound", bound)
    if rows.ndim == 1:
        if direction is None:
            raise InputError("recorded needs a direction for a series with one axis: which states does it push?")
        rows = np.outer(rows - rows.mean(), _direction("recorded", direction))
    elif rows.ndim == 2 and direction is None:
        rows = rows - rows.mean(axis=0)
    else:
        raise InputError(
            f"recorded needs a series of shape (T,) with a direction, or (T, d_x) without. Got {rows.shape}."
        )
    largest = float(np.linalg.norm(rows, axis=1).max()) if len(rows) else 0.0
    if largest == 0:
        raise InputError("recorded needs a series that changes. Got a constant one.")
    return W * (rows / largest)


class BangBang:
    """An adversary with two choices, w = -bound d or bound d: always the one that makes the future dearer.

    The future's cost from state x is measured by x'P x, the future cost of the best linear controller (the solution
    of the Riccati equation). d is the dearest direction, the top eigenvector of P, unless another is given. A call with
    (t, state, input) gives the disturbance of the round, so it can be passed to `simulate` in place of an array.

    Examples
    --------
    >>> from thalweg.control import double_integrator
    >>> push = BangBang(double_integrator(), bound=0.5, direction=[0.0, 1.0])
    >>> push(0, np.array([1.0, 1.0]), np.array([0.0]))
    array([0. , 0.5])
    """

    def __init__(
        self,
        system: LinearSystem,
        bound: float = 1.0,
        *,
        direction: ArrayLike | None = None,
        Q: ArrayLike | None = None,
        R: ArrayLike | None = None,
    ) -> None:
        self.system = system
        self.bound = check_positive("BangBang", "bound", bound)
        self._future = riccati("BangBang", system, Q, R).P
        top = np.linalg.eigh(self._future)[1][:, -1]
        self.direction = _direction("BangBang", top if direction is None else direction)
        if self.direction.shape != (system.state_dim,):
            raise InputError(
                f"The 'direction' parameter of BangBang must have {system.state_dim} entries, one for each state. "
                f"Got {self.direction.size}."
            )

    def __call__(self, t: int, state: Floats, action: Floats) -> Floats:
        """The disturbance of this round."""
        x = check_array("BangBang", "state", state, shape=(self.system.state_dim,))
        u = check_array("BangBang", "action", action, shape=(self.system.input_dim,))
        ahead = self.system.A @ x + self.system.B @ u
        sign = 1.0 if self.direction @ self._future @ ahead >= 0 else -1.0
        return sign * self.bound * self.direction
