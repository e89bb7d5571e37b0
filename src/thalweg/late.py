"""Rounds whose feedback comes later: what is remembered of them, and when it counts.

Rounds are counted from 0; the present one is t. Of the rounds t - m, ..., t, m the largest delay, the decision is
remembered and feedback is taken; what comes for round s during round t counts from round t + 1 on. Round s has row
s mod (m + 1) of every array:

    x_s         its decision
    due_s       the round at whose end its feedback counts; -1 as long as there is none                    (1)

When a round ends, what is due is applied in the order of rounds, so the order in which it came within the round does
not matter. A round that is older than m without feedback is forgotten.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thalweg._kernels.clock import CLIPPED, FRESH, GRADIENTS, ROUNDS, VALUES
from thalweg.learners import loop
from thalweg._sound import feasible
from thalweg._types import Array
from thalweg._validate import check_count, check_entries, real_number, told
from thalweg.domains import Domain
from thalweg.errors import InputError
from thalweg.learners.base import Learner
from thalweg.losses import Loss
from thalweg.problems import LinearModel

__all__ = ["Late"]


class Late(Learner):
    """A learner whose feedback comes later.

    Parameters
    ----------
    domain : Domain
        X.
    delay : int or None
        How many rounds later feedback comes, always.
    max_delay : int or None
        The most rounds later it comes; one of the two is given.
    horizon, gradient_bound, on_violation
        As for every `Learner`.

    Notes
    -----
    A new one defines `_decide`, `_open`, `_take`, `_settle` and `_restart`, which calls that of this class.
    """

    def __init__(
        self,
        domain: Domain,
        *,
        delay: int | None,
        max_delay: int | None,
        horizon: int | None = None,
        gradient_bound: float | None = None,
        on_violation: str = "raise",
    ) -> None:
        super().__init__(domain, horizon=horizon, gradient_bound=gradient_bound, on_violation=on_violation)
        name = type(self).__name__
        if (delay is None) == (max_delay is None):
            raise InputError(
                f"{name} needs one of 'delay', where feedback always comes so many rounds later, and 'max_delay', "
                f"where it comes at most so many later. Got delay={told(delay)}, max_delay={told(max_delay)}."
            )
        which, given = ("delay", delay) if max_delay is None else ("max_delay", max_delay)
        self.max_delay = check_count(name, which, given, least=0)
        self.delay = None if delay is None else self.max_delay
        self._rows = self.max_delay + 1
        self._asked: int | None = None  # whose feedback is being read
        check_entries(name, which, given, self._rows * domain.dim)
        self._x, self._due = np.zeros((self._rows, domain.dim)), np.full(self._rows, -1, dtype=np.int64)
        self._arrays |= {"x": self._x, "due": self._due}

    # ------------------------------------------------------------------ what a new one defines

    @abstractmethod
    def _decide(self) -> Array:
        """The decision of the present round as a flat array."""

    @abstractmethod
    def _open(self, t: int) -> None:
        """Round t begins."""

    @abstractmethod
    def _take(self, s: int, gradient: Array, loss: float | None) -> None:
        """Feedback of round s, checked; the gradient is flat, and a new array."""

    def _settle(self, s: int) -> None:
        """The feedback of round s counts from now on."""

    def _restart(self) -> None:
        self._x[:], self._due[:] = 0.0, -1

    def _move(self, gradient: Array, loss: float | None) -> None:
        raise NotImplementedError  # rounds end by `advance`

    # ------------------------------------------------------------------ what is remembered

    def _propose(self) -> Array:
        row: Array = self._x[self.rounds % self._rows]
        if not self._clock[FRESH]:
            row[:] = self._decide()
            self._clock[FRESH] = 1
        return row.copy()

    def decision_at(self, round: int) -> Array:
        """The decision of a round that is remembered: the present one, or one of the `max_delay` before it.

        Examples
        --------
        >>> import thalweg as tw
        >>> learner = tw.Delayed(tw.domains.Ball(2), tw.SOGD, delay=1)
        >>> learner.advance()
        >>> learner.decision_at(0)
        array([0., 0.])
        """
        s = self._remembered("decision_at", round)
        if s == self.rounds:
            return self.decision
        shown: Array = self._x[s % self._rows].reshape(self.domain.shape).copy()
        shown.flags.writeable = False
        return shown

    @property
    def outstanding(self) -> tuple[int, ...]:
        """The rounds that are remembered and wait for their feedback, the present one too."""
        t = self.rounds
        return tuple(s for s in range(max(0, t - self.max_delay), t + 1) if self._due[s % self._rows] < 0)

    def _remembered(self, call: str, round: Any) -> int:
        who, t = f"{type(self).__name__}.{call}", self.rounds
        s = check_count(who, "round", round, least=0)
        if s > t:
            raise InputError(f"{who}: round {s} is not there yet. The present one is {t}, counted from 0.")
        if s < t - self.max_delay:
            raise InputError(
                f"{who}: round {s} is forgotten. In round {t} those from {t - self.max_delay} on are remembered. "
                f"Build it with a larger {'max_delay' if self.delay is None else 'delay'}."
            )
        return s

    def _who(self) -> str:
        s = self.rounds if self._asked is None else self._asked
        return f"{type(self).__name__}, round {s} (counted from 0)"

    def _whose(self, round: Any) -> int:
        """Whose feedback comes."""
        if round is not None:
            s = self._remembered("update", round)
            if self._due[s % self._rows] >= 0:
                raise InputError(
                    f"{self._who()}: round {s} has had its feedback. The rounds that wait are in `outstanding`."
                )
            return s
        if self.delay is None:
            raise InputError(
                f"{self._who()}: say which round the feedback is of, counted from 0: update(gradient, loss, round=...)."
            )
        waiting = self.outstanding
        if not waiting:
            raise InputError(f"{self._who()}: no round waits for feedback. Call advance() to end the present one.")
        return waiting[0]

    # ------------------------------------------------------------------ the calls of a round

    def update(self, gradient: ArrayLike, loss: float | None = None, *, round: int | None = None) -> None:
        """Feedback of a past round, or of the present one: the gradient at `decision_at(round)`, and the loss.

        It counts from the next round on; `advance` ends the present one. Feedback may come in any order and may never
        come.

        Parameters
        ----------
        gradient : array
            That of f_s at the decision of round s.
        loss : float, optional
            f_s there, where the learner needs it.
        round : int
            s, counted from 0. With a fixed `delay` it may be left out: the oldest round that waits.
        """
        s = self._asked = self._whose(round)
        try:
            value, clipped = self._read_loss(loss), self._read_feedback(gradient)
        finally:
            self._asked = None
        if s == self.rounds:
            _ = self.decision  # never read: it is played all the same
        with self._playing(s):
            self._answer(s, self.rounds, value, clipped)

    def advance(self) -> None:
        """End the present round, whether or not feedback came. What came for past rounds counts from now on."""
        _ = self.decision  # never read: it is played all the same
        with self._playing(self.rounds):
            self._end()
        self._watch_horizon()

    def step(self, f: Loss, *, delay: int | None = None) -> float:
        """One round with feedback that comes late: asks f at the decision, ends the round, and returns the loss paid.

        The gradient counts `delay` rounds later than it would without delay.

        Parameters
        ----------
        f : Loss
            The loss.
        delay : int, optional
            How many rounds late, or a negative number: never, and no gradient is asked for. That of the learner when
            left out.
        """
        late = self._read_delay(delay)
        self._check_loss_object(f)
        t = self.rounds
        if self._due[t % self._rows] >= 0:
            raise InputError(f"{self._who()}: the present round has had its feedback. Call advance() to end it.")
        x = self.decision
        paid = self._read_paid(f.value(x))
        clipped = late >= 0 and self._read_feedback(f.gradient(x))
        with self._playing(t):
            if late >= 0:
                self._answer(t, t + late, paid, clipped)
            self._end()
        self._watch_horizon()
        return paid

    def _read_delay(self, delay: Any, who: str | None = None) -> int:
        if delay is None:
            return self.max_delay
        number = real_number(delay)
        if not number.is_integer() or number > self.max_delay:
            raise InputError(
                f"The 'delay' of {who or f'{type(self).__name__}.step'} must be a whole number of at most "
                f"{self.max_delay}, as the learner was built, or negative for never. Got {told(delay)}."
            )
        return max(-1, int(number))

    def _read_feedback(self, gradient: ArrayLike) -> bool:
        """Copy a gradient into the buffer and check it; returns whether it had to be clipped."""
        self._read_gradient(gradient)
        clipped = self._check_gradient(self._gradient)
        if not clipped:
            self._read_gradient(gradient)  # as given: what lies across a flat is taken off by who learns from it
        return clipped

    def _playing(self, s: int) -> AbstractContextManager[None]:
        """As `_all_or_nothing`, where nothing changes but what belongs to round s and to the learner as a whole."""
        return self._all_or_nothing()

    def _answer(self, s: int, due: int, loss: float | None, clipped: bool) -> None:
        self._due[s % self._rows] = due
        self._clock[GRADIENTS] += 1
        self._clock[CLIPPED] += clipped
        self._clock[VALUES] += self.uses_loss and loss is not None
        self._take(s, self._gradient.copy(), loss)

    def _end(self) -> None:
        t = self.rounds
        self._shown = None
        for s in sorted(t - (t - row) % self._rows for row in np.flatnonzero(self._due == t).tolist()):
            self._settle(s)
        self._clock[ROUNDS], self._clock[FRESH] = t + 1, 0
        self._open(t + 1)

    def _rounds(self, problem: LinearModel, losses: Array, decisions: Array) -> loop.Rounds | None:
        """As `Machine._rounds`; one that returns any defines `_play`, too."""
        return None

    # ------------------------------------------------------------------ stop and resume

    def _look(self, read: dict[str, NDArray[Any]]) -> Iterator[tuple[str, bool]]:
        clock, due = read["clock"], read["due"]
        t, fresh = int(clock[ROUNDS]), clock[FRESH]
        s = t - (t - np.arange(self._rows)) % self._rows  # whose row it is; negative: nobody's yet
        yield "counters", fresh in (0, 1) and clock[CLIPPED] <= clock[GRADIENTS] <= t + 1
        yield "counters", clock[VALUES] <= clock[GRADIENTS]
        answered = due >= 0
        yield "feedback", bool(np.where(answered, (s >= 0) & (due >= s) & (due - s <= self.max_delay), due == -1).all())
        yield "feedback", np.count_nonzero(answered) <= clock[GRADIENTS] and bool(due[t % self._rows] < 0 or fresh)
        played = (s >= 0) & ((s < t) | (fresh == 1))
        yield "decisions", feasible(self.domain, read["x"][played]) if played.any() else True
