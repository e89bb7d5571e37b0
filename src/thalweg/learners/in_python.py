"""A machine of your own in plain Python: a declared state, a function that decides and one that learns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from thalweg._core.state import Plan, declared
from thalweg._core.types import Floats
from thalweg._core.validate import short_repr
from thalweg._kernels.clock import FRESH, GRADIENTS, PROJECTIONS, ROUNDS
from thalweg._kernels.jit import implement
from thalweg.domains._base import Domain
from thalweg.learners.contract import decision, learn, propose
from thalweg.learners.limits import Limits
from thalweg.learners.machine import Machine


class PythonSettings(NamedTuple):
    """The machine, whose functions are called."""

    machine: InPython


def _decision(s: Any, c: PythonSettings) -> Floats:
    found: Floats = s.x
    return found


def _learn(s: Any, c: PythonSettings, h: Floats, loss: float) -> bool:
    returned = c.machine.take(s, h, loss)
    if returned is not None:
        raise TypeError(f"The round of {type(s).__name__} returned {short_repr(returned)}. Write into s.x[:] instead.")
    if not np.isfinite(s.x).all():
        raise FloatingPointError(f"The round wrote nan or infinity into the decision x of {type(s).__name__}.")
    s.clock[ROUNDS] += 1
    s.clock[GRADIENTS] += 1
    s.clock[PROJECTIONS] += c.machine.projections
    s.clock[FRESH] = 0
    return True


def _propose(s: object, c: PythonSettings, loss: float) -> None:
    pass


class InPython(Machine[Any, PythonSettings]):
    """Rounds in plain Python, each all or nothing. Kernels for its state's class can be written later.

    Parameters
    ----------
    domain : Domain
        The set of its decisions.
    state : type
        A NamedTuple of declared fields, among them `x`, the decision of shape "d", and `clock: Ints = counter_field()`.
    learn_round : callable
        learn_round(s, gradient, loss): one round from a flat gradient; writes the next decision into s.x.
    begin : callable, optional
        begin(s): writes the first round into a state of zeros, where x is the centre of the domain, projected.
    sizes : mapping, optional
        Sizes of the fields besides d.
    projections : int
        Projections onto the domain in a round.
    needs_loss : bool
        Whether a round needs the loss.
    """

    in_python = True

    def __init__(
        self,
        domain: Domain,
        state: type,
        learn_round: Callable[[Any, Floats, float], object],
        *,
        begin: Callable[[Any], None] | None = None,
        sizes: Mapping[str, int] | None = None,
        projections: int = 1,
        needs_loss: bool = False,
    ) -> None:
        for name in {"x", "clock"} - {*declared(state)}:
            raise TypeError(
                f"{state.__name__} must declare {name}: the fields of every state are `x: Floats = field('d', "
                "inside('domain'))`, the decision, and `clock: Ints = counter_field()`."
            )
        self.domain, self.state, self.take, self._begin = domain, state, learn_round, begin
        self.projections, self.limits = projections, Limits(needs_loss, uses_loss=needs_loss)
        self._sizes = {"d": domain.dim, **(sizes or {})}
        implement(decision, state)(_decision)
        implement(learn, state)(_learn)
        implement(propose, state)(_propose)

    def plan(self, sizes: Mapping[str, int]) -> Plan:
        """See `Machine.plan`."""
        settings, facts = PythonSettings(self), {"domain": self.domain}
        return Plan(self.state, settings, self._sizes, facts=facts, holds=self.holds, begin=self._first)

    def _first(self, s: Any, c: PythonSettings) -> None:
        domain = self.domain
        s.x[:] = domain.project(domain.center).ravel()
        if self._begin is not None:
            self._begin(s)
            if not (np.isfinite(s.x).all() and domain.contains(s.x.reshape(domain.shape), tol=1e-6)):
                raise ValueError(f"begin wrote {short_repr(s.x)} into x, which is no point of {domain!r}.")
