"""The one loop: rounds of a linear model against any machine; and single rounds, for `update`.

Everything here takes a handle (`thalweg._kernels.handle`) of a `Game`. What is compiled for one kind of machine is kept
on disk and used for every learner of that kind.
"""

from typing import Any, NamedTuple

import numpy as np

from thalweg._kernels.handle import parts
from thalweg._kernels.hulls import flatten
from thalweg._kernels.jit import inner, kernel
from thalweg._kernels.parts import Floats, leaves, place, spots
from thalweg._kernels.pointers import Pointer, call
from thalweg._kernels.vectors import dot, square_norm
from thalweg._machines._contract import (
    Own,
    asks,
    charged,
    core,
    count,
    decision,
    learn,
    learn_own,
    propose,
    reduce,
    room,
)

__all__ = ["BEYOND", "FULL", "LARGE", "PLAYED", "Charge", "Game", "Rounds", "finish", "play", "update"]

PLAYED, LARGE, FULL, BEYOND = 0, 1, 2, 3  # a round was played; its gradient is too large; no room; feedback too large


class Game(NamedTuple):
    """A machine, and what stands between it and the world."""

    state: Any
    settings: Any
    flat: int  # the affine hull of the domain: `thalweg._kernels.hulls`
    normals: Floats
    g: Floats  # (d,) scratch


class Charge(NamedTuple):
    """The loss of a prediction: `thalweg.losses._phi`."""

    value: Pointer
    slope: Pointer


class Rounds(NamedTuple):
    """The rounds of a `LinearModel`, and where to write what was paid and (if it has rows) played."""

    features: Floats  # (T, d)
    labels: Floats  # (T,)
    losses: Floats  # (T,)
    decisions: Floats  # (T, d) or (0, d)
    parameter: float
    square_bound: float  # the square of the largest gradient that is not refused
    floor: float  # a loss below it is refused


@inner
def _query(game: Game, loss: Charge, rounds: Rounds, t: int, x: Floats) -> tuple[bool, float]:
    """game.g <- the gradient of round t at x; returns whether the round can be played, and its loss."""
    margin = 0.0
    for j in range(x.shape[0]):
        margin += rounds.features[t, j] * x[j]
    paid = call(loss.value, margin, rounds.labels[t], rounds.parameter)
    weight = call(loss.slope, margin, rounds.labels[t], rounds.parameter)
    for j in range(x.shape[0]):
        game.g[j] = weight * rounds.features[t, j]
    flatten(game.flat, game.normals, game.g)
    fine = np.isfinite(paid) and paid >= rounds.floor
    return fine, paid


@inner
def _ask(own: Own, game: Game, loss: Charge, rounds: Rounds, t: int) -> bool:
    """What the members ask for in round t, into `own`; returns whether the round can be played."""
    s, c = game.state, game.settings
    a, b = rounds.features[t], rounds.labels[t]
    points = spots(s.experts)
    fine = True
    for k in range(own.judged.shape[0]):
        if not asks(s, k):
            continue
        n = leaves(s.experts, c.experts, k)
        for i in range(n):
            margin = dot(a, points[k, i])
            weight = call(loss.slope, margin, b, rounds.parameter)
            for j in range(a.shape[0]):
                own.H[k, i, j] = weight * a[j]
            flatten(game.flat, game.normals, own.H[k, i])
            fine = fine and square_norm(own.H[k, i]) <= rounds.square_bound
            if own.by_value:
                own.values[k, i] = call(loss.value, margin, b, rounds.parameter)
                fine = fine and np.isfinite(own.values[k, i]) and own.values[k, i] >= rounds.floor
        if own.wanted:
            own.judged[k] = own.values[k, 0]
            if n > 1:  # a single member's value is its expert's
                own.judged[k] = call(loss.value, dot(a, place(s.experts, k, 0)), b, rounds.parameter)
            fine = fine and np.isfinite(own.judged[k]) and own.judged[k] >= rounds.floor
    return fine


@kernel
def play(handle: Any, own: Own | None, charge: Any, rounds: Rounds, first: int, last: int) -> int:
    """Play rounds first..last-1; stop before one that must be refused or needs more room.

    `own` is None where one gradient serves all; which it is, is known while compiling. `charge` is a handle of the
    loss. Returns the first round that was
    not played.
    """
    game, loss = parts(handle), parts(charge)
    s, c = game.state, game.settings
    machine, settings = core(s), core(c)
    for t in range(first, last):
        if not room(machine, settings):
            return t
        x = decision(s, c)
        fine, paid = _query(game, loss, rounds, t, x)
        if not fine:
            return t
        if own is None:
            if not square_norm(game.g) <= rounds.square_bound:  # or nan
                return t
        elif not (own.by_value or square_norm(game.g) <= rounds.square_bound) or not _ask(own, game, loss, rounds, t):
            return t
        rounds.losses[t] = paid
        if rounds.decisions.shape[0] > 0:
            for j in range(x.shape[0]):
                rounds.decisions[t, j] = x[j]
        if own is None:
            if not learn(machine, settings, reduce(s, c, game.g), paid):
                return t
            propose(machine, settings, paid)
        else:
            if not learn_own(machine, settings, own, game.g, paid):
                return t
            propose(machine, settings, charged(machine, own, paid))
        count(s, c, paid)
    return last


@kernel
def update(handle: Any, own: Own | None, loss: float, square_bound: float, whole: bool) -> int:
    """One round from the gradient in game.g, or from what is in `own`. Nothing else changes unless it is PLAYED.

    Not `whole`, it ends before the next decision is made: Python projects the points and calls `finish`.
    """
    game = parts(handle)
    s, c = game.state, game.settings
    machine, settings = core(s), core(c)
    if not room(machine, settings):
        return FULL
    if own is None:
        flatten(game.flat, game.normals, game.g)
        if not square_norm(game.g) <= square_bound:  # or nan
            return LARGE
        if not learn(machine, settings, reduce(s, c, game.g), loss):
            return BEYOND
        if whole:
            propose(machine, settings, loss)
    else:
        if not learn_own(machine, settings, own, game.g, loss):
            return BEYOND
        if whole:
            propose(machine, settings, charged(machine, own, loss))
    count(s, c, loss)
    return PLAYED


@kernel
def finish(handle: Any, own: Own | None, loss: float) -> None:
    """What `update` leaves out where it does not play a whole round."""
    game = parts(handle)
    machine, settings = core(game.state), core(game.settings)
    if own is None:
        propose(machine, settings, loss)
    else:
        propose(machine, settings, charged(machine, own, loss))
