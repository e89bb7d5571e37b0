"""The one loop: rounds of a linear model against any machine; and single rounds, for `update`.

Everything here takes a handle (`thalweg._kernels.handle`) of a `Game`. What is compiled for one kind of machine is kept
on disk and used for every learner of that kind.
"""

from typing import Any, NamedTuple

import numpy as np

from thalweg._kernels.handle import parts
from thalweg._kernels.hulls import flatten
from thalweg._kernels.jit import generic, implement, inner, kernel
from thalweg._kernels.parts import Floats, leaves, place, spots
from thalweg._kernels.vectors import dot, square_norm
from thalweg._machines._contract import Own, asks, charged, decision, learn, learn_own, propose, room
from thalweg.losses._table import slope, value

__all__ = ["BEYOND", "FULL", "LARGE", "PLAYED", "Game", "Rounds", "other_half", "play", "update"]

PLAYED, LARGE, FULL, BEYOND = 0, 1, 2, 3  # a round was played; its gradient is too large; no room; feedback too large


class Game(NamedTuple):
    """A machine, and what stands between it and the world."""

    state: Any
    settings: Any
    own: Any  # Own, or None where one gradient serves all
    flat: int  # the affine hull of the domain: `thalweg._kernels.hulls`
    normals: Floats
    g: Floats  # (d,) scratch


class Rounds(NamedTuple):
    """The rounds of a `LinearModel`, and where to write what was paid and (if it has rows) played."""

    features: Floats  # (T, d)
    labels: Floats  # (T,)
    losses: Floats  # (T,)
    decisions: Floats  # (T, d) or (0, d)
    code: int  # the loss
    parameter: float
    square_bound: float  # the square of the largest gradient that is not refused
    nonnegative: bool  # whether a negative loss is refused


@inner
def _query(game: Game, rounds: Rounds, t: int, x: Floats) -> tuple[bool, float]:
    """game.g <- the gradient of round t at x; returns whether the round can be played, and its loss."""
    margin = 0.0
    for j in range(x.shape[0]):
        margin += rounds.features[t, j] * x[j]
    loss = value(rounds.code, margin, rounds.labels[t], rounds.parameter)
    weight = slope(rounds.code, margin, rounds.labels[t], rounds.parameter)
    for j in range(x.shape[0]):
        game.g[j] = weight * rounds.features[t, j]
    flatten(game.flat, game.normals, game.g)
    fine = np.isfinite(loss) and not (rounds.nonnegative and loss < 0.0)
    return fine, loss


@generic
def _ask(own: Own | None, game: Game, rounds: Rounds, t: int) -> bool:
    """What the members ask for in round t, into `own`; returns whether the round can be played."""
    raise NotImplementedError


@implement(_ask, type(None))
def _ask_nothing(own: None, game: Game, rounds: Rounds, t: int) -> bool:
    return True


@implement(_ask, Own)
def _ask_own(own: Own, game: Game, rounds: Rounds, t: int) -> bool:
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
            weight = slope(rounds.code, margin, b, rounds.parameter)
            for j in range(a.shape[0]):
                own.H[k, i, j] = weight * a[j]
            flatten(game.flat, game.normals, own.H[k, i])
            fine = fine and square_norm(own.H[k, i]) <= rounds.square_bound
            if own.by_value:
                own.values[k, i] = value(rounds.code, margin, b, rounds.parameter)
                fine = fine and np.isfinite(own.values[k, i]) and not (rounds.nonnegative and own.values[k, i] < 0.0)
        if own.wanted:
            own.judged[k] = own.values[k, 0]
            if n > 1:  # a single member's value is its expert's
                own.judged[k] = value(rounds.code, dot(a, place(s.experts, k, 0)), b, rounds.parameter)
            fine = fine and np.isfinite(own.judged[k]) and not (rounds.nonnegative and own.judged[k] < 0.0)
    return fine


@generic
def _propose(own: Own | None, game: Game, loss: float) -> None:
    """Make the next decision."""


@implement(_propose, type(None))
def _propose_shared(own: None, game: Game, loss: float) -> None:
    propose(game.state, game.settings, loss)


@implement(_propose, Own)
def _propose_own(own: Own, game: Game, loss: float) -> None:
    propose(game.state, game.settings, charged(game.state, own, loss))


@generic
def _learn(own: Own | None, game: Game, loss: float, square_bound: float) -> int:
    """Learn from the gradient in game.g, or from what is in own. Nothing changes unless it returns PLAYED."""
    raise NotImplementedError


@implement(_learn, type(None))
def _learn_shared(own: None, game: Game, loss: float, square_bound: float) -> int:
    if not square_norm(game.g) <= square_bound:  # or nan
        return LARGE
    return PLAYED if learn(game.state, game.settings, game.g, loss) else BEYOND


@implement(_learn, Own)
def _learn_own(own: Own, game: Game, loss: float, square_bound: float) -> int:
    if not (own.by_value or square_norm(game.g) <= square_bound):
        return LARGE
    return PLAYED if learn_own(game.state, game.settings, own, game.g, loss) else BEYOND


@kernel
def play(handle: Any, rounds: Rounds, first: int, last: int) -> int:
    """Play rounds first..last-1; stop before one that must be refused or needs more room.

    Returns the first round that was not played.
    """
    game = parts(handle)
    s, c = game.state, game.settings
    for t in range(first, last):
        if not room(s, c):
            return t
        x = decision(s, c)
        fine, loss = _query(game, rounds, t, x)
        if not fine or not _ask(game.own, game, rounds, t):
            return t
        rounds.losses[t] = loss
        if rounds.decisions.shape[0] > 0:
            for j in range(x.shape[0]):
                rounds.decisions[t, j] = x[j]
        if _learn(game.own, game, loss, rounds.square_bound) != PLAYED:
            return t
        _propose(game.own, game, loss)
    return last


@kernel
def update(handle: Any, loss: float, square_bound: float, whole: bool) -> int:
    """One round from the gradient in game.g, or from what is in game.own. Nothing else changes unless it is PLAYED.

    Not `whole`, it ends before the next decision is made: Python projects the points and calls `other_half`.
    """
    game = parts(handle)
    if not room(game.state, game.settings):
        return FULL
    flatten(game.flat, game.normals, game.g)
    status = _learn(game.own, game, loss, square_bound)
    if whole and status == PLAYED:
        _propose(game.own, game, loss)
    return status


@kernel
def other_half(handle: Any, loss: float) -> None:
    """What `update` leaves out where it does not play a whole round."""
    game = parts(handle)
    _propose(game.own, game, loss)
