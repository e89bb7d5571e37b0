"""Costs c(x, u) of a round: value and gradients. Any object with these two methods is a cost.

A controller asks for gradients only; `simulate` records `value`. Costs that change are a list, one a round.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import check_array, check_count, check_entries, check_items, check_positive, short_repr
from thalweg.control.gains import weight
from thalweg.control.system import LinearSystem
from thalweg.errors import InputError

__all__ = ["AbsoluteCost", "Cost", "HuberCost", "QuadraticCost", "check_costs", "stages"]


@runtime_checkable
class Cost(Protocol):
    """A convex function of state and input."""

    def value(self, x: Floats, u: Floats, /) -> float:
        """c(x, u)."""
        ...

    def gradients(self, x: Floats, u: Floats, /) -> tuple[ArrayLike, ArrayLike]:
        """The gradient in x and the gradient in u (subgradients at a kink)."""
        ...


class QuadraticCost:
    """x'Q x + u'R u.

    Parameters
    ----------
    Q, R : matrix, vector or number
        Symmetric, with eigenvalues >= 0. A vector is a diagonal; a number needs the dimension, so give vectors.

    Examples
    --------
    >>> cost = QuadraticCost([1.0, 0.0], [2.0])
    >>> cost.value(np.array([3.0, 1.0]), np.array([1.0]))
    11.0
    >>> cost.gradients(np.array([3.0, 1.0]), np.array([1.0]))
    (array([6., 0.]), array([4.]))
    """

    def __init__(self, Q: ArrayLike, R: ArrayLike) -> None:
        self.Q = weight("QuadraticCost", "Q", Q, definite=False)
        self.R = weight("QuadraticCost", "R", R, definite=False)

    @property
    def dims(self) -> tuple[int, int]:
        """Numbers of states and inputs."""
        return len(self.Q), len(self.R)

    @property
    def growth(self) -> float:
        """G_c with ||grad_x c||, ||grad_u c|| <= G_c D wherever ||x||, ||u|| <= D."""
        return 2 * max(float(np.linalg.norm(self.Q, 2)), float(np.linalg.norm(self.R, 2)))

    def value(self, x: ArrayLike, u: ArrayLike) -> float:
        """x'Q x + u'R u."""
        state, action = _pair(self, x, u)
        return float(state @ self.Q @ state + action @ self.R @ action)

    def gradients(self, x: ArrayLike, u: ArrayLike) -> tuple[Floats, Floats]:
        """2 Q x and 2 R u."""
        state, action = _pair(self, x, u)
        return 2 * (self.Q @ state), 2 * (self.R @ action)

    def __repr__(self) -> str:
        return f"QuadraticCost(Q={_short(self.Q)}, R={_short(self.R)})"


class _Separable:
    """sum_j q_j phi(x_j) + sum_k r_k phi(u_k) with weights >= 0."""

    def __init__(self, q: ArrayLike, r: ArrayLike) -> None:
        name = type(self).__name__
        self.q, self.r = check_array(name, "q", q, ndim=1), check_array(name, "r", r, ndim=1)
        for key, weights in (("q", self.q), ("r", self.r)):
            if not weights.size or (weights < 0).any():
                least = f"{weights.min():g}" if weights.size else "none"
                raise InputError(f"The '{key}' parameter of {name} must be weights >= 0. Got {least}.")

    @property
    def dims(self) -> tuple[int, int]:
        """Numbers of states and inputs."""
        return self.q.size, self.r.size

    def _phi(self, z: Floats) -> Floats:
        raise NotImplementedError

    def _slope(self, z: Floats) -> Floats:
        raise NotImplementedError

    def value(self, x: ArrayLike, u: ArrayLike) -> float:
        """c(x, u)."""
        state, action = _pair(self, x, u)
        return float(self.q @ self._phi(state) + self.r @ self._phi(action))

    def gradients(self, x: ArrayLike, u: ArrayLike) -> tuple[Floats, Floats]:
        """The gradients in x and in u."""
        state, action = _pair(self, x, u)
        return self.q * self._slope(state), self.r * self._slope(action)


class AbsoluteCost(_Separable):
    """sum q_j |x_j| + sum r_k |u_k|. Its subgradient at 0 is 0.

    Parameters
    ----------
    q, r : vectors >= 0
        Weights of states and inputs.

    Examples
    --------
    >>> AbsoluteCost([1.0, 2.0], [0.5]).value(np.array([-1.0, 3.0]), np.array([2.0]))
    8.0
    """

    @property
    def growth(self) -> float:
        """G_c: the gradients are at most this long, so at most G_c D for every D >= 1."""
        return max(float(np.linalg.norm(self.q)), float(np.linalg.norm(self.r)))

    def _phi(self, z: Floats) -> Floats:
        return np.abs(z)

    def _slope(self, z: Floats) -> Floats:
        return np.sign(z)

    def __repr__(self) -> str:
        return f"AbsoluteCost(q={_short(self.q)}, r={_short(self.r)})"


class HuberCost(_Separable):
    """Quadratic near 0 and linear beyond `width`: phi(z) = z^2/2 for |z| <= width, width (|z| - width/2) else.

    Parameters
    ----------
    q, r : vectors >= 0
        Weights of states and inputs.
    width : float
        Where the parabola ends.

    Examples
    --------
    >>> HuberCost([1.0], [0.0], width=1.0).value(np.array([3.0]), np.array([0.0]))
    2.5
    """

    def __init__(self, q: ArrayLike, r: ArrayLike, width: float = 1.0) -> None:
        super().__init__(q, r)
        self.width = check_positive("HuberCost", "width", width)

    @property
    def growth(self) -> float:
        """G_c with ||grad_x c||, ||grad_u c|| <= G_c D wherever ||x||, ||u|| <= D."""
        return max(float(self.q.max()), float(self.r.max()))

    def _phi(self, z: Floats) -> Floats:
        size = np.abs(z)
        return np.where(size <= self.width, z**2 / 2, self.width * (size - self.width / 2))

    def _slope(self, z: Floats) -> Floats:
        return np.clip(z, -self.width, self.width)

    def __repr__(self) -> str:
        return f"HuberCost(q={_short(self.q)}, r={_short(self.r)}, width={self.width:g})"


def stages(costs: Sequence[Cost], horizon: int, length: int) -> list[Cost]:
    """A cost for each of `horizon` rounds: `length` rounds of each, in turn, and from the first again.

    Examples
    --------
    >>> calm, strict = AbsoluteCost([1.0], [1.0]), AbsoluteCost([9.0], [1.0])
    >>> [cost is strict for cost in stages([calm, strict], horizon=5, length=2)]
    [False, False, True, True, False]
    """
    T, n = check_count("stages", "horizon", horizon), check_count("stages", "length", length)
    check_entries("stages", "horizon", horizon, T)
    each = check_costs("stages", costs)
    return [each[(t // n) % len(each)] for t in range(T)]


def check_costs(owner: str, costs: object, system: LinearSystem | None = None) -> list[Cost]:
    """One or more costs, for that system if there is one, or an error."""
    each = check_items(owner, "costs", costs, "a list of costs")
    if not each:
        raise InputError(f"{owner} needs one or more costs. Got none.")
    for cost in each:
        if not isinstance(cost, Cost):
            raise InputError(f"{owner}: a cost needs value(x, u) and gradients(x, u). Got {short_repr(cost)}.")
        states, inputs = getattr(cost, "dims", None) or (None, None)
        if system is not None and states is not None and (states, inputs) != (system.state_dim, system.input_dim):
            raise InputError(
                f"{owner}: {cost!r} weighs {states} state(s) and {inputs} input(s). The system has "
                f"{system.state_dim} and {system.input_dim}."
            )
    return each


def _pair(cost: QuadraticCost | _Separable, x: ArrayLike, u: ArrayLike) -> tuple[Floats, Floats]:
    """State and input, checked."""
    owner, (d, n) = type(cost).__name__, cost.dims
    return check_array(owner, "x", x, shape=(d,)), check_array(owner, "u", u, shape=(n,))


def _short(array: Floats) -> str:
    rows = np.diag(array) if array.ndim == 2 and np.array_equal(array, np.diag(np.diag(array))) else array
    return np.array2string(rows, separator=", ", precision=4).replace("\n", "")
