"""Gradients and losses of a batch, read and checked before anything is played."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thalweg.errors import InputError
from thalweg.fleet.reading import values_of
from thalweg.learners.base import Learner

__all__ = ["read_feedback"]


def read_feedback(
    owner: str, template: Learner, n: int, gradients: Any, losses: Any, bad: dict[int, str]
) -> dict[str, NDArray[Any]]:
    """Return gradients and losses; note in `bad` the rows that every learner like the template would refuse."""
    feedback, shape = template._feedback, template.domain.shape
    g = values_of(owner, "gradients", gradients, (n, *shape), copy=False).reshape(n, -1)
    if losses is None:
        if template.needs_loss:
            raise InputError(f"{owner}: {type(template).__name__} needs losses too. Call update(keys, g, losses).")
        paid = np.full(n, template.machine.limits.unknown)
    else:
        paid = values_of(owner, "losses", losses, (n,))
        fine = np.isfinite(paid) & (paid >= feedback.floor) & ~(paid - feedback.floor > feedback.limits.largest_loss)
        for row in np.flatnonzero(~fine).tolist():
            bad.setdefault(row, _why(feedback.read_paid, float(paid[row])))
    squares = np.einsum("ij,ij->i", g, g)
    large = np.flatnonzero(~(squares <= feedback.square * (1 - 1e-12))).tolist()
    if large or not g.flags.writeable:
        g = g.copy()  # learners may clip them; kernels take arrays that can be written
    for row in large:
        if not np.isfinite(g[row]).all() or not template.flattens:
            why = _why(feedback.shorten, g[row].copy())
            if why:
                bad.setdefault(row, why)
    return {"gradients": g, "losses": paid}


def _why(check: Callable[[Any], Any], value: Any) -> str:
    """Return the reason why a check fails, or ""."""
    try:
        check(value)
    except InputError as error:
        return str(error).partition(": ")[2] or str(error)
    return ""
