"""Rounds: one of them for `update`, and the loop that plays many against a linear model. It is the same code.

A round is compiled once for each kind of machine (`update`), the loop once for all of them: it calls the
kernels of a machine by their addresses. A round that `play` makes is therefore, bit for bit, the one that `step` makes.

Everything here takes a handle (`thalweg._kernels.handle`) of a `Game`, unless it says otherwise.
"""

from typing import Any, NamedTuple

import numpy as np

from thalweg._kernels.clock import CLIPPED
from thalweg._kernels.handle import AnyHandle, Closed, Handle, parts
from thalweg._kernels.hulls import flatten
from thalweg._kernels.jit import inner, kernel
from thalweg._kernels.kinds import kind
from thalweg._kernels.parts import Floats, member_decision, point_count, projected_points
from thalweg._kernels.pointers import Pointer, call
from thalweg._kernels.vectors import square_norm
from thalweg.learners.contract import (
    Own,
    asks,
    charged,
    core,
    count,
    decision,
    has_capacity,
    learn,
    learn_own,
    propose,
    reduce,
    see_gradient,
)

TURN = "f8", "f8", "i8", "b1"  # arguments of `update` after the handle
PLAYED, LARGE, FULL, BEYOND = 0, 1, 2, 3  # played; gradient too large; no capacity; feedback too large


class Game(NamedTuple):
    """A machine with its feedback: own gradients, affine hull and gradient buffer."""

    state: Any
    settings: Any
    own: Own | None  # where members have gradients of their own; which it is, is known while compiling
    flat: int  # the affine hull of the domain: `thalweg._kernels.hulls`
    normals: Floats
    g: Floats  # (d,) the gradient of the round


class Charge(NamedTuple):
    """The loss of a prediction: `thalweg.losses._phi`."""

    query: Pointer
    value: Pointer
    slope: Pointer


class Rounds(NamedTuple):
    """The rounds of a `LinearModel`, and arrays for the losses and (if it has rows) the decisions."""

    features: Floats  # (T, d)
    labels: Floats  # (T,)
    losses: Floats  # (T,)
    decisions: Floats  # (T, d) or (0, d)
    parameter: float
    square_bound: float  # the square of the largest gradient that is not refused
    floor: float  # a loss below it is refused


# ------------------------------------------------------------------------------------ compiled for each machine


@kernel
def ready(handle: AnyHandle) -> None:
    """Compute the decision, so that it can be read: a reduction projects."""
    game = parts(handle)
    decision(game.state, game.settings)


@kernel
def update(handle: AnyHandle, loss: float, square_bound: float, clipped: int, whole: bool) -> int:
    """Play one round from the gradient in game.g, or those in `own`. Unless it is PLAYED, nothing else changes.

    `clipped` gradients of the round were shortened. Not `whole`, it ends before the next decision is made: Python
    projects the points and calls `finish`.
    """
    game = parts(handle)
    s, c = game.state, game.settings
    machine, settings = core(s), core(c)
    if not has_capacity(machine, settings):
        return FULL
    if not _within(game.own, game, square_bound):
        return LARGE
    if not _learn(game.own, game, loss):
        return BEYOND
    if whole:
        propose(machine, settings, _charged(game.own, machine, loss))
        see_gradient(machine, settings, game.g)
    count(s, c, loss)
    s.clock[CLIPPED] += clipped
    return PLAYED


@kernel
def finish(handle: AnyHandle, loss: float) -> None:
    """Complete a round after `update` has played its first part."""
    game = parts(handle)
    machine, settings = core(game.state), core(game.settings)
    propose(machine, settings, _charged(game.own, machine, loss))
    see_gradient(machine, settings, game.g)


# `own` is a separate argument below, so that Numba sees which branch it may leave out.


@inner
def _within(own: Own | None, game: Game, square_bound: float) -> bool:
    """Project all gradients onto the affine hull; return whether none is too long (or nan)."""
    if own is None:
        flatten(game.flat, game.normals, game.g)
        return square_norm(game.g) <= square_bound
    s, c = game.state, game.settings
    if not own.by_value:
        flatten(game.flat, game.normals, game.g)
    fine = own.by_value or square_norm(game.g) <= square_bound
    for k in range(own.judged.shape[0]):
        if asks(s, k):
            for i in range(point_count(s.experts, c.experts, k)):
                flatten(game.flat, game.normals, own.H[k, i])
                fine = fine and square_norm(own.H[k, i]) <= square_bound
    return fine


@inner
def _learn(own: Own | None, game: Game, loss: float) -> bool:
    s, c = game.state, game.settings
    if own is None:
        return learn(core(s), core(c), reduce(s, c, game.g), loss)
    return learn_own(core(s), core(c), own, game.g, loss)


@inner
def _charged(own: Own | None, machine: object, loss: float) -> float:
    return loss if own is None else charged(machine, own, loss)


@kernel
def ask(handle: AnyHandle, loss: Charge, rounds: Rounds, t: int) -> bool:
    """Fill `own` with the members' gradients and values of round t; return whether all values are valid."""
    game = parts(handle)
    s, c, own = game.state, game.settings, game.own
    a, b, points = rounds.features[t], rounds.labels[t], projected_points(s.experts)
    fine = True
    for k in range(own.judged.shape[0]):
        if not asks(s, k):
            continue
        n = point_count(s.experts, c.experts, k)
        for i in range(n):
            value = call(loss.query, loss.value, loss.slope, a, b, rounds.parameter, points[k, i], own.H[k, i])
            if own.by_value:
                own.values[k, i] = value
                fine = fine and np.isfinite(value) and value >= rounds.floor
        if own.wanted:
            own.judged[k] = own.values[k, 0]
            if n > 1:  # a single member's value is its expert's
                x = member_decision(s.experts, k, 0)
                own.judged[k] = call(loss.query, loss.value, loss.slope, a, b, rounds.parameter, x, game.g)
            fine = fine and np.isfinite(own.judged[k]) and own.judged[k] >= rounds.floor
    return fine


# ------------------------------------------------------------------------------------------- compiled once for all


class Seat(NamedTuple):
    """A machine as the loop sees it."""

    ready: Pointer
    ask: Pointer | None  # where members have gradients of their own
    update: Pointer
    handle: Closed  # argument of these three
    x: Floats  # (d,) the decision, to be read only
    g: Floats  # (d,) the gradient of the round


def seat(handle: Handle, own: bool, x: Floats, g: Floats, loss: Charge, rounds: Rounds) -> Seat:
    """A machine, whose decision is found at x, ready to be played against such losses and rounds."""
    theirs = f"*{kind(loss)}", f"*{kind(rounds)}", "i8"
    return Seat(
        Pointer(ready, "none(any)", (handle.kind,)),
        Pointer(ask, f"b1(any,{','.join(theirs)})", (handle.kind, *theirs)) if own else None,
        Pointer(update, f"i8(any,{','.join(TURN)})", (handle.kind, *TURN)),
        Closed(handle),
        x,
        g,
    )


class Ahead(NamedTuple):
    """A machine that is made ready for the next round at the end of each."""

    update: Pointer
    ready: Pointer
    handle: Closed  # argument of both


def ahead(handle: Handle) -> Ahead:
    """A machine whose next decision depends on nothing but its rounds."""
    return Ahead(
        Pointer(update, f"i8(any,{','.join(TURN)})", (handle.kind, *TURN)),
        Pointer(ready, "none(any)", (handle.kind,)),
        Closed(handle),
    )


@kernel
def update_ahead(handle: AnyHandle, loss: float, square_bound: float, clipped: int, whole: bool) -> int:
    """`update` and, if the round is PLAYED, `ready`. Takes a handle of an `Ahead`."""
    game = parts(handle)
    status: int = call(game.update, game.handle, loss, square_bound, clipped, whole)
    if status == PLAYED:
        call(game.ready, game.handle)
    return status


@kernel
def play(machine: AnyHandle, charge: AnyHandle, rounds: Rounds, first: int, last: int) -> int:
    """Play rounds first..last-1; stop before one that must be refused or needs more capacity.

    `machine` is a handle of a `Seat`, `charge` one of the loss. Returns the first round that was not played.
    """
    game, loss = parts(machine), parts(charge)
    x = game.x
    for t in range(first, last):
        call(game.ready, game.handle)
        if not _ask(game.ask, game.handle, loss, rounds, t):
            return t
        a, b = rounds.features[t], rounds.labels[t]
        paid = call(loss.query, loss.value, loss.slope, a, b, rounds.parameter, x, game.g)
        if not (np.isfinite(paid) and paid >= rounds.floor):
            return t
        rounds.losses[t] = paid
        if rounds.decisions.shape[0] > 0:
            for j in range(x.shape[0]):
                rounds.decisions[t, j] = x[j]
        if call(game.update, game.handle, paid, rounds.square_bound, 0, True) != PLAYED:
            return t
    return last


@inner
def _ask(asking: Pointer | None, handle: Closed, loss: Charge, rounds: Rounds, t: int) -> bool:
    return True if asking is None else call(asking, handle, loss, rounds, t)
