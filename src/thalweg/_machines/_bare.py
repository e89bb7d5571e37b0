"""A machine without a reduction around it is its own core, sees gradients as they are, and counts for itself."""

from typing import Any

from thalweg._kernels.jit import implement
from thalweg._kernels.parts import Floats
from thalweg._machines._contract import core, count, reduce

__all__ = ["implement_bare"]


def _core(part: Any) -> Any:
    return part


def _reduce(s: Any, c: Any, g: Floats) -> Floats:
    return g


def _count(s: Any, c: Any) -> None:
    return


def implement_bare(state: type, settings: type) -> None:
    """Say so of a new machine's state and settings."""
    implement(core, state, settings)(_core)
    implement(reduce, state)(_reduce)
    implement(count, state)(_count)
