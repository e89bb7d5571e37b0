"""The base class of problems: sequences of losses, one a round."""

import itertools
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NoReturn, Self, SupportsIndex, overload

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import check_array
from thalweg.errors import InputError
from thalweg.losses._base import Loss

__all__ = ["Problem"]

_BOUND = "Work out a bound that holds on your set and give it to the learner, or use thalweg.Tracker, which needs none."
_MODEL = "Losses of a linear prediction are a thalweg.problems.LinearModel, which has it."
_PATH = "Compute decisions to compare with: thalweg.regret.best_fixed, best_per_round, best_path."
KNOWN = {
    **dict.fromkeys(("gradient_bound", "loss_bound", "smoothness"), _BOUND),
    **dict.fromkeys(("dim", "features", "kinked", "labels", "loss", "nonnegative", "phi"), _MODEL),
    "comparators": _PATH,
}  # attributes of other problems, and the remedy without them


class Problem(ABC):
    """A sequence of losses f_0, f_1, ... on decisions of one shape.

    `problem[t]` is the loss of round t, counted from 0; `problem[a:b]` the problem of those rounds alone;
    `len(problem)` the number of rounds. A new problem sets `shape` and `horizon` and defines `_round` and `_part`.

    Attributes
    ----------
    shape : tuple of int
        Shape of a decision.
    horizon : int or None
        Number of rounds; None if the problem never ends.
    """

    shape: tuple[int, ...]
    horizon: int | None

    @abstractmethod
    def _round(self, t: int) -> Loss:
        """The loss of round t >= 0, which exists."""

    @abstractmethod
    def _part(self, rounds: slice) -> Self:
        """The problem of those rounds."""

    def losses_of(self, decisions: ArrayLike) -> Floats:
        """f_t(w_t) of every round for the decisions w_t (one row a round), or for one fixed decision."""
        name = type(self).__name__
        if self.horizon is None:
            raise InputError(f"{name} never ends, so it has no losses of all rounds. Slice it: problem[:1000].")
        T = self.horizon
        w = check_array(name, "decisions", decisions)
        if w.shape == self.shape:
            return self._losses_at(w)
        if w.shape not in ((T, *self.shape), (T, math.prod(self.shape))):
            raise InputError(
                f"{name} has {T} rounds and decisions of shape {self.shape}. Pass one decision, or one a round: shape "
                f"{(T, *self.shape)}. Got shape {w.shape}."
            )
        return self._losses_at(w.reshape(T, *self.shape))

    def _losses_at(self, w: Floats) -> Floats:
        """f_t(w_t) of every round, for one decision or one a round."""
        rows = np.broadcast_to(w, (len(self), *self.shape))
        return np.array([float(f.value(x)) for f, x in zip(self, rows, strict=True)])

    def __getattr__(self, name: str) -> NoReturn:
        """Raise an AttributeError; for an attribute of other problems it says why it is missing."""
        if name in KNOWN:
            raise AttributeError(
                f"{type(self).__name__} has no {name!r}: it knows nothing of its losses but values and gradients. "
                f"{KNOWN[name]}"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @overload
    def __getitem__(self, t: SupportsIndex) -> Loss: ...
    @overload
    def __getitem__(self, t: slice) -> Self: ...
    def __getitem__(self, t: SupportsIndex | slice) -> Loss | Self:
        if isinstance(t, slice):
            return self._part(t)
        index = operator.index(t)
        if self.horizon is None:
            if index < 0:
                raise IndexError(f"{type(self).__name__} never ends, so it has no round {index} from the end.")
        elif not -self.horizon <= index < self.horizon:
            raise IndexError(f"{type(self).__name__} has rounds 0 to {self.horizon - 1}. Got {index}.")
        elif index < 0:
            index += self.horizon
        return self._round(index)

    def __len__(self) -> int:
        if self.horizon is None:
            raise TypeError(f"{type(self).__name__} never ends, so it has no length. Give it a horizon, or slice it.")
        return self.horizon

    def __iter__(self) -> Iterator[Loss]:
        return map(self._round, itertools.count() if self.horizon is None else range(self.horizon))
