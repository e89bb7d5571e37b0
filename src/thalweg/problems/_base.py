"""What every problem is: a sequence of losses, one a round."""

import itertools
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Self, SupportsIndex, overload

from thalweg.losses import Loss

__all__ = ["Problem"]


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
