"""Generic functions of machines: `s` is the state, `c` the settings, both NamedTuples.

A round is `decision`, then `learn` from the gradient at it, then `propose` the next. Between the last two every point
has moved and none is projected yet where only Python can project. A reduction around a machine (`reduced`) changes the
decision on its way out and the gradient on its way in, and leaves the rest to the machine inside, its `core`.
"""

from typing import Any, NamedTuple

from thalweg._core.types import Floats
from thalweg._kernels.jit import generic, optional


class Own(NamedTuple):
    """Gradients and values of a round at the members' own points; all of it is scratch space."""

    H: Floats  # (K, N, d) the gradient at each member's point
    values: Floats  # (K, N) the loss at each member's point
    judged: Floats  # (K,) the loss at each expert's decision
    by_value: bool  # whether members and experts are judged by values: else the gradient at the decision is used
    wanted: bool  # whether the experts' own values are wanted


# ------------------------------------------------------------------------------------- functions of every machine


@generic
def decision(s: object, c: object) -> Floats:
    """The decision of the present round, to be read only. A reduction projects, unless it has done so before."""
    ...


@optional
def has_capacity(s: object, c: object) -> bool:
    """Whether the arrays have capacity for one more round. Default: True."""
    return True


@generic
def learn(s: object, c: object, h: Floats, loss: float) -> bool:
    """Learn from the gradient and the loss of the round, and count. False, with nothing changed, if refused."""
    ...


@generic
def propose(s: object, c: object, loss: float) -> None:
    """Make the next decision, after the points have been projected."""


@optional
def see_gradient(s: object, c: object, g: Floats) -> None:
    """Receive, after `propose`, the gradient g at the decision, unchanged by any reduction. Default: nothing."""


# ------------------------------------------------------------------------ where members have gradients of their own


@generic
def asks(s: object, k: int) -> bool:
    """Whether expert k is alive: its members ask for gradients of their own."""
    ...


@generic
def learn_own(s: object, c: object, own: Own, g: Floats, loss: float) -> bool:
    """As `learn`, from the members' own gradients and values."""
    ...


@generic
def charged(s: object, own: Own, loss: float) -> float:
    """The loss that `propose` gets."""
    ...


# ---------------------------------------------------------------- functions of a reduction; a machine is its own core


@optional
def core(part: object) -> Any:
    """The machine inside: its state of a state, its settings of settings."""
    return part


@optional
def reduce(s: object, c: object, g: Floats) -> Floats:
    """The gradient that the core sees. Nothing changes."""
    return g


@optional
def count(s: object, c: object, loss: float) -> None:
    """Count a round and its queries. Default: nothing, as a machine counts in `learn`."""
