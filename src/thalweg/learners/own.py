"""Rounds in which every member asks for a gradient of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from thalweg._core.types import Floats
from thalweg._kernels.parts import member_decision, point_count, projected_points
from thalweg.errors import InputError
from thalweg.learners.contract import Own, asks, core, has_capacity
from thalweg.losses._base import Loss

if TYPE_CHECKING:
    from thalweg.learners.base import Learner


def scratch(machine: Any, s: Any) -> Own:
    """Return working memory for everything that members ask for."""
    points = projected_points(s.experts)
    values, judged = np.zeros(points.shape[:2]), np.zeros(points.shape[0])
    return Own(np.zeros_like(points), values, judged, machine.by_value, machine.judges)


def members(s: Any, c: Any) -> Iterator[tuple[int, range]]:
    """Yield every expert that is alive, and the range of its points."""
    for k in range(projected_points(s.experts).shape[0]):
        if asks(s, k):
            yield k, range(point_count(s.experts, c.experts, k))


def _inside(learner: Learner) -> tuple[Any, Any, Own]:
    memory = learner._memory
    assert learner._own is not None
    return core(memory.state), core(memory.settings), learner._own


def refused(learner: Learner) -> InputError:
    """Return the error of `update` with one gradient."""
    s, c, _ = _inside(learner)
    count = sum(len(points) for _, points in members(s, c))
    return InputError(
        f"{type(learner).__name__} with gradients='own' asks for the gradient at the points of all its {count} "
        "members, so one gradient is not enough. Call step(f) with an object that has f.value(x) and "
        "f.gradient(x), or build the learner with gradients='shared'."
    )


def step(learner: Learner, f: Loss) -> float:
    """Play a round from the loss; returns the loss paid at the decision."""
    memory = learner._memory
    if has_capacity(core(memory.state), core(memory.settings)):
        return _step(learner, f)
    with memory.all_or_nothing():  # if the round is refused, the capacity is taken back
        learner._grow()  # before members are asked: their answers lie in arrays of the block's sizes
        return _step(learner, f)


def _step(learner: Learner, f: Loss) -> float:
    x, feedback = learner.decision, learner._feedback
    paid = feedback.read_paid(f.value(x))
    s, c, own = _inside(learner)
    shape = learner.domain.shape
    for k, points in members(s, c):
        for i in points:
            point = projected_points(s.experts)[k, i].reshape(shape).copy()
            if own.by_value:
                own.values[k, i] = feedback.read_paid(f.value(point))
            feedback.read_gradient(f.gradient(point))
            own.H[k, i] = feedback.g
        if own.wanted:
            own.judged[k] = own.values[k, 0]
            if len(points) > 1:
                own.judged[k] = feedback.read_paid(f.value(member_decision(s.experts, k, 0).reshape(shape).copy()))
    if not own.by_value:
        feedback.read_gradient(f.gradient(x))
    learner._play_round(paid, 0)
    return paid


def gradients(learner: Learner) -> Iterator[Floats]:
    """Yield all gradients of the round."""
    s, c, own = _inside(learner)
    for k, points in members(s, c):
        yield from (own.H[k, i] for i in points)
    if not own.by_value:
        yield learner._feedback.g
