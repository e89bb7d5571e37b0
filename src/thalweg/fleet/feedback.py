"""Gradients and losses of a batch, read and checked before anything is played."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from thalweg._core.types import Floats
from thalweg._kernels.jit import kernel
from thalweg.errors import InputError
from thalweg.fleet.reading import values_of
from thalweg.learners.base import Learner

T = TypeVar("T")


def read_feedback(
    owner: str, template: Learner, n: int, gradients: object, losses: object, bad: dict[int, str]
) -> dict[str, Floats]:
    """Return gradients and losses; note in `bad` the rows that every learner like the template would refuse."""
    feedback, shape = template._feedback, template.domain.shape
    g = np.require(values_of(owner, "gradients", gradients, (n, *shape), copy=False).reshape(n, -1), None, "W")
    if losses is None:
        if template.needs_loss:
            raise InputError(f"{owner}: {type(template).__name__} needs losses too. Call update(keys, g, losses).")
        paid = np.full(n, template.machine.limits.unknown)
    else:
        paid = np.require(values_of(owner, "losses", losses, (n,), copy=False), None, "W")
    clips, given = False, losses is not None
    limits = feedback.square * (1 - 1e-12), given, feedback.floor, feedback.limits.largest_loss
    row = next_unusual(g, paid, 0, *limits)
    while row < n:
        clips = True
        why = _why(feedback.read_paid, float(paid[row])) if given else ""
        if not why and not (template.flattens and np.isfinite(g[row]).all()):
            why = _why(feedback.shorten, g[row].copy())
        if why:
            bad.setdefault(row, why)
        row = next_unusual(g, paid, row + 1, *limits)
    return {"gradients": g.copy() if clips else g, "losses": paid}  # learners clip a copy, not the caller's


def _why(check: Callable[[T], object], value: T) -> str:
    """Return the reason why a check fails, or ""."""
    try:
        check(value)
    except InputError as error:
        return str(error).partition(": ")[2] or str(error)
    return ""


@kernel
def next_unusual(
    gradients: Floats, losses: Floats, first: int, square: float, given: bool, floor: float, largest: float
) -> int:
    """The next row, from `first` on, whose gradient or loss some learner refuses or clips; the number of rows if none.

    Losses count where they were `given`.
    """
    for t in range(first, gradients.shape[0]):
        total = 0.0
        for j in range(gradients.shape[1]):
            total += gradients[t, j] * gradients[t, j]
        if not total <= square:  # True for nan
            return t
        paid = losses[t]
        if given and not (np.isfinite(paid) and paid >= floor and not paid - floor > largest):
            return t
    return int(gradients.shape[0])
