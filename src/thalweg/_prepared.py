"""Rounds by hand: calls of kernels that are bound to their arrays once."""

from typing import Any

from thalweg._stateful import Stateful

__all__ = ["Prepared"]


class Prepared(Stateful):
    """A `Stateful` whose rounds, played one at a time, are calls that were bound to their arrays once.

    Notes
    -----
    A new one defines `_prepare`, which hands its arrays and scratch arrays of one row over (`Kernel.ready`); a round by
    hand then takes `self._calls`. Whoever replaces an array calls `_unbind`. Calls share their scratch arrays, so one
    object cannot be used by two threads at once.
    """

    _bound: Any = None  # handles
    _kept: Any = None  # calls

    def _prepare(self) -> Any:
        """The calls of a round, for the present arrays."""
        raise NotImplementedError

    @property
    def _calls(self) -> Any:
        kept = self._kept
        if kept is None:
            kept = self._kept = self._prepare()
        return kept

    def _unbind(self) -> None:
        """Arrays were replaced: what compiled code knows of them is made again when it is needed."""
        self._bound = self._kept = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_bound": None, "_kept": None}  # neither handles nor calls can be copied
