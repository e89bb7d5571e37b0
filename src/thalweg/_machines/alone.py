"""One expert, alone."""

from typing import Any, NamedTuple

from thalweg._kernels.clock import GRADIENTS, PROJECTIONS, ROUNDS, VALUES
from thalweg._kernels.jit import implement
from thalweg._kernels.parts import Floats, Ints, leaves, move, move_own, place, settle
from thalweg._machines._contract import Own, asks, charged, decision, learn, learn_own, propose

__all__ = ["AloneSettings", "AloneState"]


class AloneState(NamedTuple):
    """One expert, group 0 of its part."""

    experts: Any
    clock: Ints  # `thalweg._kernels.clock`


class AloneSettings(NamedTuple):
    """What does not change, and scratch space."""

    experts: Any
    scores: Floats  # (1, 1) scratch


@implement(decision, AloneState)
def _decision(s: AloneState, c: AloneSettings) -> Floats:
    return place(s.experts, 0, 0)


@implement(learn, AloneState)
def _learn(s: AloneState, c: AloneSettings, h: Floats, loss: float) -> bool:
    s.clock[ROUNDS] += 1
    s.clock[GRADIENTS] += 1
    s.clock[PROJECTIONS] += leaves(s.experts, c.experts, 0)
    move(s.experts, c.experts, 0, 1, h, c.scores)
    return True


@implement(learn_own, AloneState)
def _learn_own(s: AloneState, c: AloneSettings, own: Own, g: Floats, loss: float) -> bool:
    n = leaves(s.experts, c.experts, 0)
    s.clock[ROUNDS] += 1
    s.clock[GRADIENTS] += n if own.by_value else n + 1
    s.clock[VALUES] += n if own.by_value else 0
    s.clock[PROJECTIONS] += n
    move_own(s.experts, c.experts, 0, 1, own.H, own.values, g)
    return True


@implement(asks, AloneState)
def _asks(s: AloneState, k: int) -> bool:
    return True


@implement(charged, AloneState)
def _charged(s: AloneState, own: Own, loss: float) -> float:
    return loss


@implement(propose, AloneState)
def _propose(s: AloneState, c: AloneSettings, loss: float) -> None:
    settle(s.experts, c.experts, 0, 1)
