"""Problems from a user's own functions or loss objects."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import (
    check_callable,
    check_count,
    check_items,
    check_shape,
    real_array,
    real_number,
    short_repr,
)
from thalweg.errors import InputError
from thalweg.losses._base import Loss
from thalweg.problems._base import Problem

__all__ = ["FromFunctions", "FromLosses"]

T = TypeVar("T")


class FromFunctions(Problem):
    """A problem from two plain functions of the round and the decision.

    Parameters
    ----------
    value : callable (t, x) -> float
        f_t(x). Rounds t count from 0.
    gradient : callable (t, x) -> array
        The gradient of f_t at x, of the shape of x.
    shape : int or tuple of int
        Shape of a decision.
    horizon : int, optional
        Number of rounds. Left out, the problem never ends.

    Notes
    -----
    `play` and `step` call `value` once a round, to record the loss paid, also for a learner that uses no values. With
    gradients only, call `learner.update(gradient)` in a loop of your own. A function that raises gives a RuntimeError
    that names the round and carries the original error. A slice `problem[a:b]` calls the functions with the rounds a to
    b - 1, as in the whole problem.

    Examples
    --------
    >>> import numpy as np
    >>> from thalweg.problems import FromFunctions
    >>> def target(t):
    ...     return np.array([np.cos(0.01 * t), np.sin(0.01 * t)])
    >>> problem = FromFunctions(
    ...     value=lambda t, x: 0.5 * np.sum((x - target(t)) ** 2), gradient=lambda t, x: x - target(t), shape=2
    ... )
    >>> problem[0].value([0.0, 0.0]), problem[0].gradient([0.0, 0.0])
    (0.5, array([-1.,  0.]))
    """

    def __init__(
        self,
        value: Callable[[int, Floats], float],
        gradient: Callable[[int, Floats], ArrayLike],
        shape: int | tuple[int, ...],
        horizon: int | None = None,
    ) -> None:
        self._value = check_callable("FromFunctions", "value", value)
        self._gradient = check_callable("FromFunctions", "gradient", gradient)
        self.shape = check_shape("FromFunctions", "shape", shape)
        self.horizon = None if horizon is None else check_count("FromFunctions", "horizon", horizon)
        self._first = 0

    def _round(self, t: int) -> Loss:
        return _FunctionLoss(self._value, self._gradient, self.shape, self._first + t)

    def _part(self, rounds: slice) -> Self:
        start, stop = rounds.start or 0, self.horizon if rounds.stop is None else rounds.stop
        if rounds.step not in (None, 1) or start < 0 or (stop is not None and stop < 0):
            raise InputError(f"FromFunctions can be cut only into consecutive rounds a:b, 0 <= a < b. Got {rounds}.")
        if stop is not None and self.horizon is not None:
            stop = min(stop, self.horizon)
        if stop is not None and stop <= start:
            raise InputError(f"FromFunctions with horizon {self.horizon}: {rounds} selects no round.")
        horizon = None if stop is None else stop - start
        part = type(self)(self._value, self._gradient, self.shape, horizon)
        part._first = self._first + start
        return part

    def __repr__(self) -> str:
        return f"FromFunctions(shape={self.shape}, horizon={self.horizon})"


@dataclass(frozen=True, eq=False)
class _FunctionLoss:
    """Round t of `FromFunctions`."""

    _value: Callable[[int, Floats], float]
    _gradient: Callable[[int, Floats], ArrayLike]
    shape: tuple[int, ...]
    _t: int

    def value(self, x: ArrayLike) -> float:
        """f_t(x)."""
        answer = self._call("value", self._value, x)
        value = real_number(answer)
        if math.isnan(value) and not isinstance(answer, float):
            raise self._unfit("value", f"a number. Got {short_repr(answer)}")
        return value

    def gradient(self, x: ArrayLike) -> Floats:
        """The gradient of f_t at x."""
        answer = self._call("gradient", self._gradient, x)
        array = real_array(answer)
        if array is None:
            raise self._unfit("gradient", f"an array of real numbers. Got {short_repr(answer)}")
        if array.shape != self.shape:
            expected = f"an array of shape {self.shape}, the shape of a decision"
            raise self._unfit("gradient", f"{expected}. Got shape {array.shape}")
        return np.array(array)

    def _call(self, name: str, function: Callable[[int, Floats], T], x: ArrayLike) -> T:
        point = real_array(x)
        if point is None:
            raise InputError(f"FromFunctions: a decision must be an array of real numbers. Got {short_repr(x)}.")
        if point.shape != self.shape:
            raise InputError(f"FromFunctions has decisions of shape {self.shape}. Got shape {point.shape}.")
        try:
            return function(self._t, point)
        except Exception as error:
            raise RuntimeError(f"{self._who(name)} raised {type(error).__name__}: {error}") from error

    def _who(self, name: str) -> str:
        return f"Round {self._t} (counted from 0): the '{name}' function of FromFunctions"

    def _unfit(self, name: str, expected: str) -> InputError:
        return InputError(f"{self._who(name)} must return {expected}.")


class FromLosses(Problem):
    """A problem from a finite sequence of loss objects, built-in or your own, one a round.

    Parameters
    ----------
    losses : sequence of losses
        Objects with `value(x)` and `gradient(x)`; entry t is played in round t, counted from 0.
    shape : int or tuple of int, optional
        Shape of a decision. Left out, it is the `shape` of the first loss.

    Examples
    --------
    >>> from thalweg.losses import Absolute, Squared
    >>> from thalweg.problems import FromLosses
    >>> problem = FromLosses([Squared([1.0, 2.0], 3.0), Absolute([1.0, 0.0], 1.0)])
    >>> [f.value([0.0, 0.0]) for f in problem]
    [4.5, 1.0]
    """

    _asked: tuple[str, ...] = "value", "gradient"  # methods of a loss

    def __init__(self, losses: Iterable[Loss], shape: int | tuple[int, ...] | None = None) -> None:
        self._losses: list[Loss] = check_items("FromLosses", "losses", losses, "a list of losses")
        if not self._losses:
            raise InputError("FromLosses needs at least one loss. Got none.")
        for t, loss in enumerate(self._losses):
            if not all(hasattr(loss, name) for name in self._asked):
                noun = "methods" if len(self._asked) > 1 else "method"
                raise InputError(
                    f"Round {t} (counted from 0): FromLosses needs objects with the {noun} "
                    f"{' and '.join(f'{name}(x)' for name in self._asked)}. Got {short_repr(loss)}."
                )
        if shape is None:
            shape = getattr(self._losses[0], "shape", None)
            if shape is None:
                raise InputError(
                    "The first loss has no 'shape'. Pass the shape of a decision: FromLosses(losses, shape)."
                )
        self.shape = check_shape("FromLosses", "shape", shape)
        for t, loss in enumerate(self._losses):
            if getattr(loss, "shape", self.shape) != self.shape:
                raise InputError(
                    f"Round {t} (counted from 0): FromLosses has decisions of shape {self.shape}. Got "
                    f"{short_repr(loss)}, which is for decisions of another shape."
                )
        self.horizon = len(self._losses)

    def _round(self, t: int) -> Loss:
        return self._losses[t]

    def _part(self, rounds: slice) -> Self:
        part = self._losses[rounds]
        if not part:
            raise InputError(f"FromLosses has {self.horizon} rounds, and {rounds} selects none of them.")
        return type(self)(part, self.shape)

    def __repr__(self) -> str:
        return f"FromLosses(<{self.horizon} rounds of shape {self.shape}>)"


class FromValues(FromLosses):
    """The same for learners that ask for values only."""

    _asked = ("value",)
