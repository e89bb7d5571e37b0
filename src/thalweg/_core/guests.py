"""Objects with a state of their own: to remember how one is, and to let it return there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

F = TypeVar("F", bound=Callable[..., object])


class Restorable(Protocol):
    """An object with a state of its own, such as a learner from another package."""

    def state(self) -> Mapping[str, Any]:
        """Return all that changes, by name."""

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue from a state."""

    def reset(self) -> None:
        """Return to the first round."""


def memory_only(state: F) -> F:
    """Mark a method `state` that covers a memory and its guests and nothing else."""
    state.memory_only = True  # type: ignore[attr-defined]
    return state


def _has_memory_only(guest: object) -> bool:
    return getattr(getattr(type(guest), "state", None), "memory_only", False)


def snapshot(guest: Any) -> object:
    """Return all that a guest needs to return to the present: its snapshot if it can make one, else its state."""
    return guest.snapshot() if hasattr(guest, "snapshot") else guest.state()


def roll_back(guest: Any, kept: object) -> None:
    """Let a guest return to a snapshot."""
    (guest.roll_back if hasattr(guest, "snapshot") else guest.restore)(kept)


def remember(one: Any) -> object:
    """Return all that `return_to` needs, as long as the object lives: its memory if it is nothing else."""
    return one._memory._remember() if _has_memory_only(one) else snapshot(one)


def return_to(one: Any, before: Any) -> None:
    """Let an object be as it was, without a check."""
    if _has_memory_only(one):
        one._memory._return_to(before)
    else:
        roll_back(one, before)
