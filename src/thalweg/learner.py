"""The contract every learner keeps: decide, see the loss, move.

A learner states a few facts (does it need function values, one gradient or many), keeps its whole state in named
arrays, and says what one round does. Checks, counters, saving and the horizon's warning are the same for all: here.
"""

from __future__ import annotations

import math
import sys
import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thalweg._kernels.clock import CLIPPED, ENTRIES, GRADIENTS, PROJECTIONS, ROUNDS, VALUES
from thalweg._kernels.hulls import FULL, flatten
from thalweg._kernels.vectors import square_norm
from thalweg._recorded import parameters
from thalweg._stateful import Stateful
from thalweg._types import Array
from thalweg._validate import (
    WIDEST,
    check_array,
    check_choice,
    check_count,
    check_positive,
    real_array,
    real_number,
    told,
)
from thalweg.domains import Domain
from thalweg.domains._base import read_domain
from thalweg.errors import ClippingWarning, HorizonWarning, InputError
from thalweg.losses import Loss

if TYPE_CHECKING:
    from thalweg.cards import Card

__all__ = ["Learner", "Player", "Queries", "bounded", "check_takes_losses", "read_decision", "read_start"]

TUNED = frozenset({"gradient_bound", "smoothness", "loss_bound", "step_size", "step_sizes", "scale", "horizon"})
FLOAT64 = np.dtype(np.float64)
MANY = 100  # clipped gradients, before that is said
ROUNDING = 1e-9  # a gradient may exceed its bound by this much, relatively: bounds are computed in floating point too


def _outside() -> int:
    """How many frames up the caller of the package stands: where a warning belongs."""
    frame, level = sys._getframe(1), 1
    ours = "thalweg.", "contextlib"  # a round may end as a `with` does
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(ours):
        frame, level = frame.f_back, level + 1
    return level


def bounded(owner: str, domain: Any) -> Domain:
    """A domain that a learner can run on, or an error that says what to pass instead."""
    if not math.isfinite(read_domain(owner, domain).radius):
        raise InputError(f"{owner} needs a bounded domain. Got {domain!r}. Intersect it with a ball or a box.")
    return domain  # type: ignore[no-any-return]


def read_start(owner: str, domain: Domain, start: ArrayLike) -> Array:
    """A feasible point to begin at."""
    point = check_array(owner, "start", start)
    if point.shape != domain.shape or not domain.contains(point, tol=1e-9):
        raise InputError(
            f"The 'start' parameter of {owner} must be a point of {domain!r}, of shape {domain.shape}. "
            f"Got {told(start)}."
        )
    return point


def read_decision(owner: str, learner: Any, domain: Domain) -> Array:
    """The decision of a learner that may be somebody else's, as a new flat array."""
    shown = learner.decision
    x = real_array(shown)
    if x is None or x.shape != domain.shape or not np.isfinite(x).all():
        raise InputError(
            f"{owner}: the decision of {type(learner).__name__} must be finite numbers of shape {domain.shape}. "
            f"Got {told(shown)}."
        )
    return np.array(x, dtype=np.float64).ravel()


@dataclass(frozen=True)
class Queries:
    """What a learner asked for: projections onto its domain, gradients and function values."""

    projections: int = 0
    gradients: int = 0
    values: int = 0

    def __sub__(self, other: Queries) -> Queries:
        return Queries(
            self.projections - other.projections, self.gradients - other.gradients, self.values - other.values
        )


class Player(Stateful):
    """Who decides on a convex set, one round at a time: a decision, counters, and a horizon that is watched."""

    anytime = False  # the guarantee needs no horizon: a given one only sizes the state

    def __init__(self, domain: Domain, horizon: int | None) -> None:
        name = type(self).__name__
        self.domain = bounded(name, domain)
        self.horizon = None if horizon is None else check_count(name, "horizon", horizon)
        self._clock = np.zeros(ENTRIES, dtype=np.int64)
        self._arrays: dict[str, NDArray[Any]] = {"clock": self._clock}
        self._shown: Array | None = None
        self._warned = False

    @abstractmethod
    def _propose(self) -> Array:
        """The decision of the present round as a new flat array. May project; raises with nothing changed."""

    @property
    def decision(self) -> Array:
        """What the learner plays in this round: a read-only array of the domain's shape, always feasible."""
        if self._shown is None:
            shown, shape = self._propose(), self.domain.shape
            if len(shape) > 1:
                shown = shown.reshape(shape)
            shown.setflags(False)  # type: ignore[call-arg]  # by position: a keyword takes a third longer
            self._shown = shown
        return self._shown

    @property
    def rounds(self) -> int:
        """Rounds played so far."""
        return int(self._clock[ROUNDS])

    @property
    def queries(self) -> Queries:
        """Projections onto the domain, gradients and values the learner used so far.

        The value that `step` returns and `play` records is the world's bill; it counts only if the learner uses it.
        """
        clock = self._clock
        return Queries(int(clock[PROJECTIONS]), int(clock[GRADIENTS]), int(clock[VALUES]))

    def reset(self) -> None:
        """Back to the first round."""
        self._shown = None
        with self._all_or_nothing():
            self._clock[:] = 0
            self._restart()
        self._warned = False

    def _write(self, read: dict[str, NDArray[Any]]) -> None:
        self._shown = None
        super()._write(read)

    @property
    def _lasts(self) -> bool:
        return self.anytime

    def _start_anew(self, rounds: int) -> dict[str, Any]:
        here = {"start": self.decision} if "start" in parameters(type(self)) else {}
        return super()._start_anew(rounds) | here

    def _watch_horizon(self) -> None:
        if self.horizon is not None and not (self._warned or self.anytime) and self._clock[ROUNDS] > self.horizon:
            self._warned = True
            warnings.warn(
                f"{type(self).__name__} was tuned for {self.horizon} rounds and has now played more: it keeps working, "
                "but its guarantee does not cover the rounds beyond. Give a larger horizon.",
                HorizonWarning,
                stacklevel=_outside(),
            )


class Learner(Player):
    """An online learner on a convex set.

    Parameters
    ----------
    domain : Domain
        The feasible set X. Must be bounded.
    horizon : int, optional
        Rounds the learner is tuned for. Past it the learner keeps working and warns once.
    gradient_bound : float, optional
        G with ||gradient|| <= G. A longer gradient is refused.
    on_violation : {"raise", "clip"}
        What to do with a gradient longer than the bound: refuse it, or scale it down to the bound and count it.

    Notes
    -----
    A new learner calls this constructor, fills `self._arrays` with its state, and defines `_restart` (write the first
    round's state into these arrays), `_propose` (the decision as a new flat array) and `_move` (one round, ended by
    `self._count(gradients=1, projections=...)`). CONTRIBUTING has a complete one.
    """

    card: ClassVar[Card | None] = None  # what it promises and how to build one: see `thalweg.cards`
    one_gradient = True  # one gradient a round is enough: `update` works, and so does the one-projection reduction
    values_only = False  # `update` takes values at points that the learner names, and no gradient
    needs_loss = False  # `update` needs the loss as well
    uses_loss = False  # a round counts a value
    nonnegative = False  # the theory needs f >= 0: a negative loss is refused
    _told_of_clipping = False
    unknown = 0.0  # what compiled code gets for a loss that was not given

    def __init__(
        self,
        domain: Domain,
        *,
        horizon: int | None = None,
        gradient_bound: float | None = None,
        on_violation: str = "raise",
    ) -> None:
        super().__init__(domain, horizon)
        name = type(self).__name__
        self.gradient_bound = None if gradient_bound is None else check_positive(name, "gradient_bound", gradient_bound)
        self.on_violation = check_choice(name, "on_violation", on_violation, ("raise", "clip"))
        self._square_bound = (
            np.finfo(np.float64).max if self.gradient_bound is None else (self.gradient_bound * (1 + ROUNDING)) ** 2
        )
        self._gradient = np.empty(domain.dim)
        self._hull = domain.flat, domain.flat_par  # what a gradient has across it cannot matter

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Record the arguments. Numbers are multiplied with the size of the set, so both must be of a size for it."""
        self = super().__new__(cls, *args, **options)
        given = getattr(self, "_given", {})
        domain = given.get("domain")
        R = domain.radius if isinstance(domain, Domain) and not TUNED.isdisjoint(given) else 1.0
        if not (1 / WIDEST <= R <= WIDEST or math.isinf(R)):
            raise InputError(
                f"{cls.__name__} needs a domain with a radius from {1 / WIDEST:g} to {WIDEST:g}. Got {domain!r}. "
                "Choose other units."
            )
        return self

    # ------------------------------------------------------------------ what a new learner defines

    @abstractmethod
    def _move(self, gradient: Array, loss: float | None) -> None:
        """One round from a checked flat gradient. Counts the round and what it queried."""

    def _count(self, *, gradients: int = 0, projections: int = 0, values: int = 0) -> None:
        """Count a round and what it queried."""
        self._clock[ROUNDS] += 1
        self._clock[GRADIENTS] += gradients
        self._clock[PROJECTIONS] += projections
        self._clock[VALUES] += values

    # ------------------------------------------------------------------ the two calls of a round

    def update(self, gradient: ArrayLike, loss: float | None = None) -> None:
        """One round: the gradient of f_t at `decision`, and its value where the learner needs it.

        A call that is refused changes nothing.
        """
        value = self._read_loss(loss)
        self._read_gradient(gradient)
        clipped = False
        if self._shown is None:  # never read: the round is played with it all the same, unless it is refused
            clipped = self._check_gradient(self._gradient)
            _ = self.decision
            if not clipped:
                self._read_gradient(gradient)  # as given: what lies across a flat is taken off once, not twice
        self._shown = None  # before the state moves: whenever Ctrl-C comes, what is shown next is what the state says
        self._round(value, int(clipped))
        if self.horizon is not None:
            self._watch_horizon()

    def _round(self, loss: float | None, clipped: int) -> None:
        """One round from the gradient in the buffer, which was shortened before if it is `clipped`. All or nothing."""
        clipped += self._check_gradient(self._gradient)
        with self._all_or_nothing():
            self._move(self._gradient, loss)
            self._clock[CLIPPED] += clipped

    def step(self, f: Loss) -> float:
        """One round from the loss itself: queries `f.value` and `f.gradient`, moves, and returns the loss paid."""
        self._check_loss_object(f)
        x = self.decision
        paid = self._read_paid(f.value(x))
        self.update(f.gradient(x), paid)
        return paid

    # ------------------------------------------------------------------ what it tells

    @property
    def flattens(self) -> bool:
        """Whether it takes the part of a gradient across the flat that holds the domain off, which cannot matter."""
        return self._hull[0] != FULL

    @property
    def clipped(self) -> int:
        """How many gradients were scaled down to the bound."""
        return int(self._clock[CLIPPED])

    # ------------------------------------------------------------------ checks, before anything changes

    def _read_gradient(self, gradient: ArrayLike) -> None:
        """Copy a gradient into the learner's buffer; its shape and type are checked."""
        array = self._shaped("gradient", gradient)
        self._gradient[:] = array if array.ndim == 1 else array.ravel()

    def _shaped(self, what: str, given: ArrayLike) -> Array:
        """Numbers in the shape of the domain: a gradient, or what is like one. It may be the array itself."""
        array = given if type(given) is np.ndarray and given.dtype is FLOAT64 else real_array(given)
        if array is None:
            raise InputError(f"{self._who()}: {what} must be an array of real numbers. Got {told(given)}.")
        if array.shape != self.domain.shape:
            raise InputError(
                f"{self._who()}: {what} has shape {array.shape}, the domain has shape {self.domain.shape}. "
                f"Pass a {what} in the shape of `decision`."
            )
        return array

    def _check_gradient(self, g: Array) -> bool:
        """Take the part that cannot matter off a flat gradient; returns whether it had to be clipped."""
        if self.flattens:
            flatten(*self._hull, g)
        if square_norm(g) <= self._square_bound:  # False for nan
            return False
        self._clip(g)
        return True

    def _clip(self, g: Array) -> None:
        """A gradient that is not finite or above the bound: raise, or scale it down to the bound."""
        if not np.isfinite(g).all():
            raise InputError(
                f"{self._who()}: gradient has entries that are nan or infinite. Check the loss where it was asked."
            )
        G = self.gradient_bound
        largest = float(np.abs(g).max())
        norm = largest * float(np.linalg.norm(g / largest))  # where the squares would overflow, too
        if G is None:
            raise InputError(f"{self._who()}: gradient of norm {norm:g} is too large for floating point.")
        if self.on_violation == "raise":
            raise InputError(
                f"{self._who()}: gradient has norm {norm:g}, above gradient_bound = {G:g}. "
                "Give a larger gradient_bound, or on_violation='clip' to scale such gradients down."
            )
        g *= G / norm
        self._watch_clipping()

    def _watch_clipping(self) -> None:
        """Say once that a bound is too small, where a tenth of all gradients was clipped."""
        clipped, asked = int(self._clock[CLIPPED]) + 1, int(self._clock[GRADIENTS]) + 1
        if clipped >= MANY and clipped >= asked / 10 and not self._told_of_clipping:
            self._told_of_clipping = True
            warnings.warn(
                f"{type(self).__name__} has scaled {clipped} of {asked} gradients down to gradient_bound = "
                f"{self.gradient_bound:g}: its guarantee does not hold for them, and it may hardly move. Give a larger "
                "gradient_bound, or use thalweg.Tracker, which needs none.",
                ClippingWarning,
                stacklevel=_outside(),
            )

    def _read_loss(self, loss: float | None) -> float | None:
        if loss is None:
            if self.needs_loss:
                raise InputError(
                    f"{self._who()}: {type(self).__name__} needs the loss too. Call update(gradient, loss)."
                )
            return None
        return self._read_paid(loss)

    def _read_paid(self, loss: Any) -> float:
        value = real_number(loss)
        if not math.isfinite(value):
            what = "finite" if isinstance(loss, float) else "a number"
            raise InputError(f"{self._who()}: loss must be {what}. Got {told(loss)}.")
        if value < self._floor:
            raise InputError(f"{self._who()}: loss is {value:g}, but {self._why_floor()}")
        return value

    @property
    def _floor(self) -> float:
        """The smallest loss that is not refused."""
        return 0.0 if self.nonnegative else -math.inf

    def _why_floor(self) -> str:
        return (
            f"the guarantee of {type(self).__name__} needs losses >= 0. "
            "Add a constant to the loss, or use a learner without small-loss theory."
        )

    def _check_loss_object(self, f: Any) -> None:
        if not (hasattr(f, "value") and hasattr(f, "gradient")):
            raise InputError(f"{self._who()}: step needs a loss with f.value(x) and f.gradient(x). Got {told(f)}.")


def check_takes_losses(owner: str, learner: Any) -> None:
    """A learner that can be given losses or gradients, or an error that says what it takes."""
    if isinstance(learner, Player) and not isinstance(learner, Learner):
        raise InputError(
            f"{owner} needs a learner that takes losses. Got {type(learner).__name__}, which takes instances: "
            "call its update(x) in a loop of your own."
        )
