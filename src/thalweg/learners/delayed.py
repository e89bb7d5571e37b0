"""Delayed feedback for any learner: copies of it take turns (Weinberger & Ordentlich 2002; Joulani et al. 2013).

A copy that played a round waits for its feedback and plays no other round before. Round t is played by the first copy
that waits for nothing; if none does, a new one is made. With a fixed delay d that is copy t mod (d + 1).            (1)

Each copy plays a game of its own without delay, on the rounds I_k that were its turn. So whatever the learner promises
holds for each: with R(n, P) its regret after n rounds against a path of length P, K copies, and P_k <= P_T the length
of the path as copy k sees it,

    regret_T <= sum_k R(|I_k|, P_k),     sum_k |I_k| = T                                                            (2)
    R(n, P) = c sqrt(n (1 + P))  gives  c sqrt(K T (1 + P_T)) at most, by Cauchy and Schwarz.                       (3)

There are at most as many copies as rounds ever waited at once, and one: K <= max_delay + 1. (3) is the order of the
lower bound (Wan, Yao, Song, Zhang, ICML 2024). A round whose feedback never comes has no part in (2): it costs at
most G D.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.interrupts import interrupts
from thalweg._core.memory import Memory
from thalweg._core.rules import counter_field, counters, feasible
from thalweg._core.saving import check_kind
from thalweg._core.state import Past, Plan, field, scratch
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import ask, short_repr, wrong
from thalweg._kernels.clock import FRESH, GRADIENTS, ROUNDS, VALUES
from thalweg._kernels.handle import AnyHandle, parts
from thalweg._kernels.jit import Call, inner, kernel
from thalweg.domains._base import Domain
from thalweg.errors import InputError, StateError
from thalweg.learners import loop
from thalweg.learners.base import Learner, Queries, bounded, check_made, read_decision, watch_horizon
from thalweg.learners.delayed_feedback import DelayedFeedback, Waiting, read_delays
from thalweg.learners.limits import limits_of
from thalweg.problems.linear_model import LinearModel

FIRST_STRETCH = 16  # rounds of each copy that are played at a time, at first
NO_COPY = NONE = -1  # no copy; no feedback


class DelayedState(NamedTuple):
    """R rounds that are remembered; the copies keep states of their own."""

    x: Floats = field("R d")  # decisions
    due: Ints = field("R", start=-1)  # the round at whose end the feedback of a row counts; -1: none came
    copies: Ints = field("1", counters, start=1)
    holders: Ints = field("R", start=-1)  # the copy that played a round
    clock: Ints = counter_field()


class DelayedSettings(NamedTuple):
    """Scratch space."""

    waits: Ints = scratch("R")  # 1 for a copy that waits


@kernel
def open_round(handle: AnyHandle, t: int) -> int:
    """Begin round t; return the copy that plays it, or NO_COPY if one more is needed, and nothing has changed.

    Takes a handle of a `loop.Game`.
    """
    game = parts(handle)
    s, c = game.state, game.settings
    k = _first_free(s, c, t)
    if k != NO_COPY:
        row = t % s.due.shape[0]
        s.due[row] = NONE
        s.holders[row] = k
        s.clock[ROUNDS] = t
        s.clock[FRESH] = 0
    return k


@inner
def _waits(s: DelayedState, row: int, t: int) -> bool:
    """Whether the copy that played the round in this row still waits for its feedback at the end of round t - 1."""
    return (s.holders[row] >= 0) & ((s.due[row] < 0) | (s.due[row] >= t))  # no branches: loops can vectorise it


@inner
def _first_free(s: DelayedState, c: DelayedSettings, t: int) -> int:
    """(1), or NO_COPY. The round that shares its row with round t is forgotten: its copy waits no longer.

    A copy waits in one row at most, so where all but one wait, the sum of their numbers tells which one does not.
    """
    rows, count, here = s.due.shape[0], s.copies[0], t % s.due.shape[0]
    waiting = total = 0
    for row in range(rows):
        one = 1 if _waits(s, row, t) else 0
        waiting += one
        total += one * s.holders[row]
    if _waits(s, here, t):
        waiting -= 1
        total -= s.holders[here]
    if waiting == count:
        return NO_COPY
    if waiting == count - 1:
        return count * (count - 1) // 2 - total
    for k in range(count):
        c.waits[k] = 0
    for row in range(rows):
        if row != here and _waits(s, row, t):
            c.waits[s.holders[row]] = 1
    for k in range(count):
        if c.waits[k] == 0:
            return k
    return NO_COPY


class _Refused(Exception):
    """A copy refused a round of a run: the run is undone."""


class Turns(Waiting):
    """The rounds of `Delayed`."""

    def plan(self, sizes: Mapping[str, int]) -> Plan:
        """See `Machine.plan`."""
        sizes = {"R": self.rows, "d": self.domain.dim}
        return Plan(DelayedState, DelayedSettings(), sizes, holds=self.holds, begin=_begin)

    def holds(self, s: DelayedState, c: DelayedSettings, past: Past) -> Iterator[tuple[str, bool]]:
        """See `Machine.holds`."""
        yield from super().holds(s, c, past)
        t, due, holders, count = int(s.clock[ROUNDS]), s.due, s.holders, int(s.copies[0])
        yield "copies", 1 <= count <= min(self.rows, t + 1)
        used = t - (t - np.arange(self.rows)) % self.rows >= 0
        yield "copies", bool(np.where(used, (holders >= 0) & (holders < count), holders == -1).all())
        waiting = holders[used & ((due < 0) | (due >= t))]
        yield "copies", np.unique(waiting).size == waiting.size


def _begin(s: DelayedState, c: object) -> None:
    s.holders[0] = 0


class Delayed(DelayedFeedback):
    """Any one-gradient learner with delayed feedback, in any order, or never.

    Parameters
    ----------
    domain : Domain
        X.
    make_learner : callable
        `make_learner(domain)` returns a fresh learner on that set, always the same: one of ours, or any object with
        `decision`, `update(gradient, loss)`, `state`, `restore` and `reset`. Where it takes a horizon, that is the
        number of rounds one copy plays: T/(delay + 1).
    delay : int, optional
        Feedback always comes this many rounds later, and in order: `update` needs no round.
    max_delay : int, optional
        Feedback comes at most this many rounds later, in any order. One of the two is given.

    Notes
    -----
    `decision` is that of the present round; `update(gradient, loss, round=s)` brings feedback of round s, counted from
    0; `advance()` ends the present round. Decisions of `max_delay` rounds are remembered (`decision_at`), so that their
    gradients can be computed when the answer comes; older rounds are forgotten. `step` and `play(..., delay=...)`
    simulate all that. A round costs as much as one of the learner: one projection and at most one gradient where it
    is a learner of one projection. Where losses drift fast, one learner for all rounds can be better:
    `EfficientDelayed`.

    Examples
    --------
    >>> import numpy as np, thalweg as tw
    >>> learner = tw.Delayed(tw.domains.Ball(2), tw.SOGD, max_delay=5)
    >>> for t in range(3):
    ...     x = learner.decision                       # play it
    ...     learner.advance()                          # the answer is not there yet
    >>> learner.outstanding
    (0, 1, 2, 3)
    >>> x = learner.decision_at(1)
    >>> learner.update(x - [1.0, 0.0], round=1)        # the gradient of ||x - (1, 0)||^2 / 2
    >>> learner.advance()                              # round 1's copy is free, and plays round 4
    >>> learner.decision
    array([1., 0.])
    >>> problem = tw.problems.LinearRegression(np.ones((500, 2)), np.ones(500))
    >>> run = tw.play(tw.Delayed(tw.domains.Ball(2), tw.Tracker, delay=9), problem)
    >>> run.rounds, bool(run.losses[-1] < 1e-3)
    (500, True)

    References
    ----------
    M. J. Weinberger, E. Ordentlich, On delayed prediction of individual sequences, IEEE Trans. Inf. Theory 48, 2002.
    P. Joulani, A. György, C. Szepesvári, Online learning under delayed feedback, ICML 2013.
    """

    machine: Turns

    def __init__(
        self,
        domain: Domain,
        make_learner: Callable[[Domain], object],
        *,
        delay: int | None = None,
        max_delay: int | None = None,
    ) -> None:
        name = type(self).__name__
        machine = Turns(bounded(name, domain), read_delays(name, domain, delay, max_delay))
        if not callable(make_learner):
            raise wrong(name, "make_learner", "a function domain -> learner", make_learner)
        self.domain, self.make_learner = domain, make_learner
        first = self._new_copy(None)
        machine.limits = limits_of(first)
        self._copies, self._ours = [first], isinstance(first, Learner)
        self._entries = domain.dim
        super().__init__(machine, delay, nonnegative=getattr(first, "nonnegative", False))
        if isinstance(first, Learner):
            self._feedback.follow(first._feedback)
            self.gradient_bound, self.on_violation = first.gradient_bound, first.on_violation
            self._square_bound = first._square_bound

    def _forget(self, memory: Memory) -> None:
        """Have as many copies as the state counts."""
        super()._forget(memory)
        self._holders, self._x = memory.state.holders.data, memory.state.x.reshape(-1).data
        self._opens: Call | None = None  # a bound call of `open_round`
        count = int(memory.state.copies[0])
        del self._copies[count:]
        while len(self._copies) < count:
            self._copies.append(self._new_copy(self._copies[0]))
        self._list_guests(memory)

    def _new_copy(self, like: object) -> Any:
        """Return one more learner, checked to be built `like` the first, if there is one."""
        name = type(self).__name__
        made = ask(name, "make_learner", self.make_learner, self.domain)
        check_made(name, "make_learner", made)
        kind = type(made).__name__
        if getattr(made, "takes_late", False):
            raise InputError(f"{name} cannot use {kind}, which takes delayed feedback itself.")
        if getattr(made, "values_only", False):
            raise InputError(
                f"{name} cannot use {kind}, which takes values: delayed feedback is one gradient a round. Use another."
            )
        if not getattr(made, "one_gradient", True):
            raise InputError(
                f"{name} cannot use {kind} with gradients='own': delayed feedback is one gradient a round. "
                "Use gradients='shared'."
            )
        if isinstance(made, Learner) and made.domain is not self.domain:
            raise InputError(f"make_learner of {name} must build on the set that it is given. Got {short_repr(made)}.")
        if getattr(made, "rounds", 0) != 0 or any(made is copy for copy in getattr(self, "_copies", ())):
            raise InputError(f"make_learner of {name} must return a fresh learner every time. Got {short_repr(made)}.")
        if like is not None and not _alike(made, like):
            raise InputError(
                f"make_learner of {name} must always return the same kind of learner. Got {short_repr(made)}, before "
                f"that {short_repr(like)}."
            )
        return made

    # ------------------------------------------------------------------ a round

    @property
    def decision(self) -> Floats:
        """See `DelayedFeedback.decision`."""
        shown, clock = self._shown, self._clock
        if shown is not None:
            return shown
        if clock[FRESH] or not self._ours:
            return super().decision
        row, d = clock[ROUNDS] % self._rows, self._entries
        shown = self._copies[self._holders[row]].decision
        self._x[d * row : d * row + d] = shown if self._line is not None else shown.ravel()
        clock[FRESH] = 1
        self._shown = shown
        return shown

    def _make_decision(self) -> Floats:
        """Return the decision of a foreign learner, checked."""
        copy = self._copies[self._holders[self.rounds % self._rows]]
        x = read_decision(self._who(), copy, self.domain)
        if not feasible(self.domain, x):
            raise InputError(
                f"{self._who()}: the decision of {type(copy).__name__} must be a point of {self.domain!r}. "
                f"Got {short_repr(copy.decision)}. Project it."
            )
        return x

    def _open(self, t: int) -> None:
        if self._begin_round(t) == NO_COPY:
            self._copies.append(self._new_copy(self._copies[0]))
            self._memory.state.copies[0] = len(self._copies)
            self._list_guests(self._memory)
            self._begin_round(t)

    def _begin_round(self, t: int) -> int:
        """Call `open_round`."""
        call = self._opens
        if call is None:
            call = self._opens = open_round.ready(self._memory.handle, 0)
        call.integers[1] = t
        return int(call.run())

    def _list_guests(self, memory: Memory) -> None:
        memory.guests = {f"copy{k}.": copy for k, copy in enumerate(self._copies)}

    def update(self, gradient: ArrayLike, loss: float | None = None, *, round: int | None = None) -> None:
        """See `DelayedFeedback.update`. The usual feedback goes to the copy as it is; everything else takes longer."""
        clock, due, rows = self._clock, self._due, self._rows
        t = clock[ROUNDS]
        s = t - rows + 1  # the oldest round that is remembered
        row = s % rows
        if round is not None or self.delay is None or s < 0 or due[row] >= 0:
            s = self._whose(round)
            row = s % rows
        copy = self._copies[self._holders[row]]
        usual = copy._usual if self._ours and (s < t or clock[FRESH]) else None
        if usual is None or copy._shown is None or not usual.take(gradient, loss):
            super().update(gradient, loss, round=s)
            return
        asked, values, learned, shown = clock[GRADIENTS], clock[VALUES], usual.clock[ROUNDS], copy._shown
        try:
            due[row], clock[GRADIENTS] = t, asked + 1
            if loss is not None and self.uses_loss:
                clock[VALUES] = values + 1
            copy._shown = None
            for one in copy._windows:
                one._shown = None
            played = usual.play.run() == loop.PLAYED
            if not played:
                due[row], clock[GRADIENTS], clock[VALUES], copy._shown = NONE, asked, values, shown
        except BaseException:
            with interrupts():
                if usual.clock[ROUNDS] == learned:
                    due[row], clock[GRADIENTS], clock[VALUES], copy._shown = NONE, asked, values, shown
            raise
        if not played:
            super().update(gradient, loss, round=s)
        elif usual.until is not None and learned >= usual.until:
            watch_horizon(copy)

    def advance(self) -> None:
        """See `DelayedFeedback.advance`. It is one call where the decision was read and a copy is free."""
        clock, call = self._clock, self._opens
        if clock[FRESH] and call is not None:
            self._shown = None
            call.integers[1] = clock[ROUNDS] + 1
            if call.run() != NO_COPY:
                return
        super().advance()

    def _commit(self, s: int, due: int | None, loss: float | None, clipped: bool, *, end: bool) -> None:
        """As `DelayedFeedback._commit`. The copy is idle until the feedback is due, so it may learn at once."""
        state, copy, count = self._memory.state, self._copies[self._holders[s % self._rows]], len(self._copies)
        ours = self._ours  # rounds of our learners are whole, or were not
        theirs = (copy.rounds if ours else copy.state()) if due is not None else None
        changing = state.clock, state.due, state.holders, state.copies
        before, shown = [array.copy() for array in changing], self._shown
        try:
            if due is not None:
                self._answer(s, due, loss, clipped)
            if end:
                self._shown = None
                self._open(self.rounds + 1)
            if due is not None:
                copy.update(self._feedback.g.reshape(self.domain.shape), loss)
        except BaseException:
            with interrupts():
                if due is None or not (ours and copy.rounds > theirs):
                    del self._copies[count:]
                    self._list_guests(self._memory)
                    for array, kept in zip(changing, before, strict=True):
                        array[:] = kept
                    self._shown, self._oldest = shown, 0
                    if due is not None and not ours:
                        copy.restore(theirs)
            raise

    @property
    def queries(self) -> Queries:
        """As for every learner; projections are those of all copies."""
        mine = super().queries
        theirs = sum(getattr(copy, "queries", Queries()).projections for copy in self._copies)
        return Queries(theirs, mine.gradients, mine.values)

    @property
    def copies(self) -> int:
        """The number of copies: one more than rounds ever waited at once."""
        return len(self._copies)

    # ------------------------------------------------------------------ whole runs

    def _rounds(self, problem: LinearModel, losses: Floats, decisions: Floats) -> loop.Rounds | None:
        first = self._copies[0]
        if self.delay is None or not isinstance(first, Learner):
            return None
        return first._rounds(problem, losses, decisions)

    def _play(self, problem: LinearModel, rounds: loop.Rounds, first: int, last: int) -> int:
        """As `Learner._play`: where the copies take turns each plays its part of the rounds."""
        size = FIRST_STRETCH * self._rows  # rounds played in vain where one is refused
        while first < last and self._turns():
            stop = min(last, first + size)
            refused = first
            with suppress(_Refused), self._memory.all_or_nothing():
                refused = self._play_turns(problem, first, stop, rounds.losses, rounds.decisions)
                if refused < stop:
                    raise _Refused
            if refused == first:
                break
            if refused < stop:
                last = refused  # those before it are played again
            else:
                first, size = stop, 2 * size
        return first

    def _turns(self) -> bool:
        """Whether the copies take turns from here on: (1) with all of them there, and feedback that is always due."""
        d, t, due = self.max_delay, self.rounds, self._memory.state.due
        past = np.arange(t - d, t)
        in_time = due[t % self._rows] < 0 and (due[past % self._rows] == past + d).all()
        return bool(in_time and len(self._copies) == self._rows)

    def _play_turns(self, problem: LinearModel, first: int, stop: int, losses: Floats, decisions: Floats) -> int:
        """Play rounds first..stop-1, copy by copy; returns the first that one of them refused, or `stop`."""
        t, rows, count, refused, state = self.rounds, self._rows, stop - first, stop, self._memory.state
        for j in range(min(rows, count)):
            copy, mine = self._copies[state.holders[(t + j) % rows]], slice(first + j, stop, rows)
            part = problem._part(mine)
            paid, played = np.empty(len(part)), np.empty((len(part), self.domain.dim))
            inside = copy._rounds(part, paid, played)
            assert inside is not None
            done = copy._play(part, inside, 0, len(part))
            if done < len(part):
                refused = min(refused, first + j + done * rows)
            losses[mine] = paid
            if len(decisions):
                decisions[mine] = played
            last = t + j + (len(part) - 1) * rows
            state.x[last % rows], state.due[last % rows] = played[-1], last + self.max_delay
        self._shown = None
        state.clock[GRADIENTS] += count
        state.clock[VALUES] += count * self.uses_loss
        self._open(t + count)
        return refused

    # ------------------------------------------------------------------ stop and resume

    def restore(self, saved: Mapping[str, object]) -> None:
        """As `Learner.restore`."""
        with self._memory.all_or_nothing():
            super().restore(saved)
            if self._ours and sum(copy.rounds for copy in self._copies) != self._memory.state.clock[GRADIENTS]:
                raise self._unfit("its copies have not learned from the feedback that is counted")


def _alike(one: object, other: object) -> bool:
    """Whether two learners were built alike."""
    try:
        if isinstance(one, Learner) and isinstance(other, Learner):
            check_kind(one, other.state())
    except StateError:
        return False
    return type(one) is type(other)
