"""Rounds with delayed feedback: their remembered decisions, and the time at which feedback counts.

Rounds are counted from 0; the present one is t. Of the rounds t - m, ..., t, m the largest delay, the decision is
remembered and feedback is taken; feedback for round s during round t counts from round t + 1 on. Round s has row
s mod (m + 1) of every array:

    x_s         its decision
    due_s       the round at whose end its feedback counts; -1 as long as there is none                    (1)

When a round ends, all feedback that is due is applied in the order of rounds, so the order in which it came within the
round does not matter. A round that is older than m without feedback is forgotten.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.memory import Memory
from thalweg._core.rules import feasible
from thalweg._core.state import Past
from thalweg._core.types import Floats
from thalweg._core.validate import check_count, check_entries, real_number, short_repr
from thalweg._kernels.clock import CLIPPED, FRESH, GRADIENTS, ROUNDS, VALUES
from thalweg.domains._base import Domain
from thalweg.errors import InputError
from thalweg.learners.base import Learner, watch_horizon
from thalweg.learners.machine import AnyMachine
from thalweg.losses._base import Loss


def read_delays(owner: str, domain: Domain, delay: object, max_delay: object, entries: int = 1) -> int:
    """Return the largest delay; `entries` numbers are remembered for each entry of a decision."""
    if (delay is None) == (max_delay is None):
        raise InputError(
            f"{owner} needs one of 'delay', the fixed number of rounds until feedback comes, and 'max_delay', "
            f"the largest such number. Got delay={short_repr(delay)}, max_delay={short_repr(max_delay)}."
        )
    which, given = ("delay", delay) if max_delay is None else ("max_delay", max_delay)
    most = check_count(owner, which, given, least=0)
    check_entries(owner, which, given, (most + 1) * domain.dim * entries)
    return most


class Waiting(AnyMachine):
    """Rounds that wait for feedback: a state with the fields x ("R d"), due ("R", -1 at first) and clock.

    `plan` gives the plan; R is the largest delay plus 1.
    """

    in_python = lazy = True

    def __init__(self, domain: Domain, delay: int) -> None:
        self.domain, self.rows = domain, delay + 1

    def view(self, s: Any) -> Floats:
        """See `Machine.view`; which row is the present one, the learner knows."""
        found: Floats = s.x
        return found

    def holds(self, s: Any, c: Any, past: Past) -> Iterator[tuple[str, bool]]:
        """See `Machine.holds`."""
        clock, due, rows = s.clock, s.due, self.rows
        t, fresh = int(clock[ROUNDS]), clock[FRESH]
        whose = t - (t - np.arange(rows)) % rows  # the round of a row; negative: none yet
        yield "counters", bool(fresh in (0, 1) and clock[CLIPPED] <= clock[GRADIENTS] <= t + 1)
        yield "counters", bool(clock[VALUES] <= clock[GRADIENTS])
        answered = due >= 0
        possible = np.where(answered, (whose >= 0) & (due >= whose) & (due - whose < rows), due == -1)
        yield "feedback", bool(possible.all())
        yield "feedback", bool(np.count_nonzero(answered) <= clock[GRADIENTS] and (due[t % rows] < 0 or fresh))
        played = (whose >= 0) & ((whose < t) | (fresh == 1))
        yield "decisions", feasible(self.domain, s.x[played]) if played.any() else True


class DelayedFeedback(Learner):
    """A learner whose feedback comes `delay` rounds later, or at most `max_delay`, in any order, or never.

    Notes
    -----
    A new one hands a `Waiting` machine to the constructor and defines `_make_decision` and `_commit`.
    """

    machine: Waiting
    takes_late = True
    delay: int | None
    max_delay: int

    def __init__(self, machine: Waiting, delay: int | None, **options: Any) -> None:
        self._rows, self.max_delay = machine.rows, machine.rows - 1
        self._asked: int | None = None  # whose feedback is being read
        super().__init__(machine, **options)
        _ = self._memory  # sets the counters that rounds read
        self.delay = None if delay is None else self.max_delay

    def _forget(self, memory: Memory) -> None:
        super()._forget(memory)
        self._oldest = 0  # no round before it waits
        self._clock, self._due = memory.state.clock.data, memory.state.due.data  # quicker than arrays, entry by entry

    # ------------------------------------------------------------------ to be defined by subclasses

    @abstractmethod
    def _make_decision(self) -> Floats:
        """Return the decision of the present round, flat. Raises with nothing changed."""

    @abstractmethod
    def _commit(self, s: int, due: int | None, loss: float | None, clipped: bool, *, end: bool) -> None:
        """Take the feedback of round s from the buffer unless `due` is None, and `end` the round; all or nothing."""

    # ------------------------------------------------------------------ remembered rounds

    def _decide(self) -> None:
        """Make the decision of the present round, unless it is there, and show its row."""
        row: Floats = self._memory.state.x[self._clock[ROUNDS] % self._rows]
        if not self._clock[FRESH]:
            row[:] = self._make_decision()
            self._clock[FRESH] = 1
        self._view = row

    def decision_at(self, round: int) -> Floats:
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
        shown: Floats = self._memory.state.x[s % self._rows].reshape(self.domain.shape).copy()
        shown.flags.writeable = False
        return shown

    @property
    def outstanding(self) -> tuple[int, ...]:
        """The rounds that are remembered and wait for their feedback, the present one too."""
        t = self.rounds
        return tuple(s for s in range(max(0, t - self.max_delay), t + 1) if self._memory.state.due[s % self._rows] < 0)

    def _remembered(self, call: str, round: object) -> int:
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

    def _whose(self, round: object) -> int:
        """The round that feedback belongs to."""
        if round is not None:
            s = self._remembered("update", round)
            if self._memory.state.due[s % self._rows] >= 0:
                raise InputError(
                    f"{self._who()}: round {s} has had its feedback. The rounds that wait are in `outstanding`."
                )
            return s
        if self.delay is None:
            raise InputError(
                f"{self._who()}: say which round the feedback is of, counted from 0: update(gradient, loss, round=...)."
            )
        t, due, rows = self._clock[ROUNDS], self._due, self._rows
        s = max(self._oldest, t - rows + 1)
        while s <= t and due[s % rows] >= 0:
            s += 1
        self._oldest = s
        if s > t:
            raise InputError(f"{self._who()}: no round waits for feedback. Call advance() to end the present one.")
        return s

    # ------------------------------------------------------------------ the calls of a round

    def update(self, gradient: ArrayLike, loss: float | None = None, *, round: int | None = None) -> None:
        """Give feedback for a past round, or the present one: the gradient at `decision_at(round)`, and the loss.

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
            value, clipped = self._feedback.read_loss(loss), self._read_feedback(gradient)
        finally:
            self._asked = None
        if s == self.rounds:
            _ = self.decision  # never read: it is played all the same
        self._commit(s, self.rounds, value, clipped, end=False)

    def advance(self) -> None:
        """End the present round, with or without feedback. Feedback for past rounds counts from now on."""
        _ = self.decision  # never read: it is played all the same
        self._commit(self.rounds, None, None, clipped=False, end=True)
        watch_horizon(self)

    def step(self, f: Loss, *, delay: int | None = None) -> float:
        """Play one round with delayed feedback: ask f at the decision, end the round, and return the loss paid.

        The gradient counts `delay` rounds later than it would without delay.

        Parameters
        ----------
        f : Loss
            The loss.
        delay : int, optional
            The delay in rounds, or a negative number: never, and no gradient is asked for. That of the learner when
            left out.
        """
        wait = self._read_delay(delay)
        self._feedback.check_loss_object(f)
        t = self.rounds
        if self._memory.state.due[t % self._rows] >= 0:
            raise InputError(f"{self._who()}: the present round has had its feedback. Call advance() to end it.")
        x = self.decision
        paid = self._feedback.read_paid(f.value(x))
        clipped = wait >= 0 and self._read_feedback(f.gradient(x))
        self._commit(t, t + wait if wait >= 0 else None, paid, clipped, end=True)
        watch_horizon(self)
        return paid

    def _read_delay(self, delay: object, who: str | None = None) -> int:
        if delay is None:
            return self.max_delay
        number = real_number(delay)
        if not number.is_integer() or number > self.max_delay:
            raise InputError(
                f"The 'delay' of {who or f'{type(self).__name__}.step'} must be a whole number of at most "
                f"{self.max_delay}, as the learner was built, or negative for never. Got {short_repr(delay)}."
            )
        return max(-1, int(number))

    def _read_feedback(self, gradient: ArrayLike) -> bool:
        """Copy a gradient into the buffer and check it; returns whether it had to be clipped."""
        feedback = self._feedback
        feedback.read_gradient(gradient)
        clipped = self._shorten(feedback.g)
        if not clipped:
            feedback.read_gradient(gradient)  # as given: the part across a flat is removed where it is learned from
        return clipped

    def _answer(self, s: int, due: int, loss: float | None, clipped: bool) -> None:
        """Count the feedback of round s."""
        state = self._memory.state
        state.due[s % self._rows] = due
        state.clock[GRADIENTS] += 1
        state.clock[CLIPPED] += clipped
        state.clock[VALUES] += self.uses_loss and loss is not None
