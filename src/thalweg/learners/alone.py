"""One expert, alone: the machine `Single` and the learner `Alone`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.memory import Memory
from thalweg._core.rules import counter_field
from thalweg._core.state import Plan, part, scratch
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_choice, check_flag, real_number, wrong
from thalweg._kernels.clock import GRADIENTS, PROJECTIONS, ROUNDS, VALUES
from thalweg._kernels.jit import implement
from thalweg._kernels.parts import (
    after_projection,
    member_decision,
    move,
    move_own,
    point_count,
    projected_points,
    start,
)
from thalweg.domains._base import Domain
from thalweg.errors import InputError
from thalweg.experts._base import Expert, planned
from thalweg.experts.pool import Pool
from thalweg.learners import loop, own
from thalweg.learners.base import Learner, Shown, bounded, read_start
from thalweg.learners.contract import Own, asks, charged, core, decision, learn, learn_own, propose
from thalweg.learners.machine import Machine
from thalweg.metas._base import OVER


class SingleState(NamedTuple):
    """One expert, group 0 of its part."""

    experts: object = part()
    clock: Ints = counter_field()


class SingleSettings(NamedTuple):
    """Constants and scratch space."""

    experts: object = part()
    scores: Floats = scratch("1 1")


# --------------------------------------------------------------------------------------------------------------- rounds


@implement(decision, SingleState)
def _decision(s: SingleState, c: SingleSettings) -> Floats:
    return member_decision(s.experts, 0, 0)


@implement(learn, SingleState)
def _learn(s: SingleState, c: SingleSettings, h: Floats, loss: float) -> bool:
    s.clock[ROUNDS] += 1
    s.clock[GRADIENTS] += 1
    s.clock[PROJECTIONS] += point_count(s.experts, c.experts, 0)
    move(s.experts, c.experts, 0, 1, h, c.scores)
    return True


@implement(learn_own, SingleState)
def _learn_own(s: SingleState, c: SingleSettings, own: Own, g: Floats, loss: float) -> bool:
    n = point_count(s.experts, c.experts, 0)
    s.clock[ROUNDS] += 1
    s.clock[GRADIENTS] += n if own.by_value else n + 1
    s.clock[VALUES] += n if own.by_value else 0
    s.clock[PROJECTIONS] += n
    move_own(s.experts, c.experts, 0, 1, own.H, own.values, g)
    return True


@implement(asks, SingleState)
def _asks(s: SingleState, k: int) -> bool:
    return True


@implement(charged, SingleState)
def _charged(s: SingleState, own: Own, loss: float) -> float:
    return loss


@implement(propose, SingleState)
def _propose(s: SingleState, c: SingleSettings, loss: float) -> None:
    after_projection(s.experts, c.experts, 0, 1)


# -------------------------------------------------------------------------------------------------------------- machine


def project_members(domain: Domain, memory: Memory, loss: float) -> None:
    """End a round of experts whose set only Python can project onto."""
    s, c = core(memory.state), core(memory.settings)
    points = projected_points(s.experts)
    for k, mine in own.members(s, c):
        for i in mine:
            points[k, i] = domain._project_flat(points[k, i].copy())
    loop.finish(memory.handle, loss)


class Single(Machine[SingleState, SingleSettings]):
    """An expert that plays by itself, from `origin` on; where `own`, each member asks for a gradient of its own."""

    judges = False  # experts are not judged by values

    def __init__(self, expert: Expert, *, own: bool = False, origin: Floats | None = None) -> None:
        self.expert, self.domain, self.one_gradient = expert, expert.domain, not own
        self.origin = expert.origin if origin is None else origin
        self.by_value = isinstance(expert, Pool) and expert.judge == "value"

    def plan(self, sizes: Mapping[str, int]) -> Plan:
        """See `Machine.plan`."""
        experts = planned([[self.expert]])
        settings = SingleSettings()
        return Plan(SingleState, settings, parts={"experts": experts}, holds=self.holds, begin=self._begin)

    def _begin(self, s: SingleState, c: SingleSettings) -> None:
        start(s.experts, c.experts, 0, 0, self.origin)
        s.clock[PROJECTIONS] = 1  # of the starting point

    def finish(self, memory: Memory, loss: float) -> None:
        """See `Machine.finish`."""
        project_members(self.domain, memory, loss)


# -------------------------------------------------------------------------------------------------------------- learner


def read_origin(owner: str, domain: Domain, start: ArrayLike | None, home: Domain | None = None) -> Floats | None:
    """Return a point of the domain that was given, on the set where the experts live; None where none was given."""
    if start is None:
        return None
    return np.ascontiguousarray((home or domain).project(read_start(owner, domain, start)).ravel())


def points(learner: Learner, s: SingleState, c: object) -> Floats:
    """y_{t,i}, the members' points, (N, *shape)."""
    return projected_points(s.experts).reshape(-1, *learner.domain.shape).copy()


def within_range(owner: str, expert: Expert, gradient_bound: float | None) -> float | None:
    """Return a bound of gradients that the expert takes, the given one if there is one."""
    most = expert.largest_gradient
    if gradient_bound is None:
        return None if math.isinf(most) else most
    if real_number(gradient_bound) > most * OVER:
        raise InputError(
            f"{owner}: with gradients up to {gradient_bound:g} the losses of members differ by up to "
            f"{gradient_bound * expert.domain.diameter:g}, more than the feedback_range of their meta-learner. Give it "
            "a larger one."
        )
    return gradient_bound


class Alone(Learner):
    """An expert that plays by itself: a descent, a pool of them, or an expert of your own.

    Parameters
    ----------
    expert : Expert
        The expert, on its own domain.
    gradients : {"shared", "own"}
        One gradient at the decision, or one at the point of each member (then call `step`).
    nonnegative : bool
        Refuse negative losses.
    start : array, optional
        A point of the domain where all members begin, such as last week's weights; the point nearest to its centre
        when left out.
    horizon, gradient_bound, on_violation
        As for every `Learner`. A pool whose meta-learner has a `feedback_range` gets the bound that follows from it.

    Examples
    --------
    >>> import thalweg as tw
    >>> learner = tw.Alone(tw.experts.AdaGradDescent(tw.domains.Ball(2)))
    >>> learner.update([3.0, 0.1])
    >>> learner.decision.round(2)
    array([-0.99, -0.1 ])
    """

    machine: Single
    points = Shown(points)
    lasts = True  # its expert is given, and knows no horizon

    def __init__(
        self,
        expert: Expert,
        *,
        gradients: str = "shared",
        nonnegative: bool = False,
        start: ArrayLike | None = None,
        horizon: int | None = None,
        gradient_bound: float | None = None,
        on_violation: str = "raise",
    ) -> None:
        name = type(self).__name__
        if not isinstance(expert, Expert):
            raise wrong(name, "expert", "an Expert", expert)
        self.expert, domain = expert, bounded(name, expert.domain)
        self.gradients = check_choice(name, "gradients", gradients, ("shared", "own"))
        machine = Single(expert, own=gradients == "own", origin=read_origin(name, domain, start))
        if machine.by_value and machine.one_gradient:
            raise InputError(f"{name} judges members by value only where each has its own gradient: gradients='own'.")
        super().__init__(
            machine,
            horizon=horizon,
            gradient_bound=within_range(name, expert, gradient_bound),
            on_violation=on_violation,
            nonnegative=check_flag(name, "nonnegative", nonnegative),
        )
