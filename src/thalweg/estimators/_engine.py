"""What the estimators run on: a state and settings for compiled code, handed over once, with a round counter."""

from typing import Any

import numpy as np

from thalweg._kernels.handle import Handle, bind
from thalweg._prepared import Prepared
from thalweg._stateful import named_arrays

__all__ = ["Engine", "clock"]


class Engine(Prepared):
    """A `Stateful` whose rounds are played by kernels that take a handle (`thalweg._kernels.handle`) of its parts.

    Notes
    -----
    A new one builds two NamedTuples, what changes and what does not, and calls `_adopt`. What changes has a field
    `clock`, an int64 array whose first entry counts rounds. In kernels, `state, settings = parts(handle)`.
    """

    _noun = "estimator"
    _parts: tuple[Any, Any]
    _bound: Handle | None = None

    def _adopt(self, state: Any, settings: Any) -> None:
        """Take over arrays: what it says, saves and hands over."""
        self._unbind()
        self._parts = state, settings
        self._arrays = named_arrays(state)

    @property
    def _handle(self) -> Handle:
        if self._bound is None:
            self._bound = bind(self._parts)
        return self._bound

    @property
    def rounds(self) -> int:
        """Rounds played so far."""
        return int(self._parts[0].clock[0])


def clock() -> np.ndarray[Any, np.dtype[np.int64]]:
    """A counter of rounds."""
    return np.zeros(1, dtype=np.int64)
