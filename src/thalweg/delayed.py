"""Late feedback for any learner: copies of it take turns (Weinberger & Ordentlich 2002; Joulani et al. 2013).

A copy that played a round waits for its feedback and plays no other round before. Round t is played by the first copy
that waits for nothing; if none does, a new one is made. With a fixed delay d that is copy t mod (d + 1).            (1)

Each copy plays a game of its own without delay, on the rounds I_k that were its turn. So whatever the learner promises
holds for each: with R(n, P) its regret after n rounds against a path of length P, K copies, and P_k <= P_T the length
of the path as copy k sees it,

    regret_T <= sum_k R(|I_k|, P_k),     sum_k |I_k| = T                                                            (2)
    R(n, P) = c sqrt(n (1 + P))  gives  c sqrt(K T (1 + P_T)) at most, by Cauchy and Schwarz.                       (3)

There are at most as many copies as rounds ever waited at once, and one: K <= max_delay + 1. (3) is the order of the
lower bound (Wan, Yao, Song, Zhang, ICML 2024). A round whose feedback never comes has no part in (2): it costs at most
what one round can, G D.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thalweg._interrupts import interrupts
from thalweg._kernels.clock import FRESH, GRADIENTS, ROUNDS, VALUES
from thalweg.learners import loop
from thalweg._sound import feasible
from thalweg._stateful import Savable, Stateful, inside
from thalweg._types import Array
from thalweg._validate import ask, told, wrong
from thalweg.domains import Domain
from thalweg.errors import InputError, StateError
from thalweg.late import Late
from thalweg.learners.base import Learner, Queries, check_takes_losses, read_decision
from thalweg.machine import Machine
from thalweg.problems import LinearModel

__all__ = ["Delayed"]

SHORTEST = 16  # rounds of each copy that are played at a time, at first


class Delayed(Late):
    """Any one-gradient learner with feedback that comes late, in any order, or never.

    Parameters
    ----------
    domain : Domain
        X.
    make_learner : callable
        `make_learner(domain)` returns a fresh learner on that set, always the same: one of ours, or any object with
        `decision`, `update(gradient, loss)`, `state`, `restore` and `reset`. Where it takes a horizon, that is the
        number of rounds one copy plays: T/(delay + 1).
    delay : int, optional
        Feedback always comes so many rounds later, and in order: `update` need not say of which round.
    max_delay : int, optional
        Feedback comes at most so many rounds later, in any order. One of the two is given.

    Notes
    -----
    `decision` is that of the present round; `update(gradient, loss, round=s)` brings feedback of round s, counted from
    0; `advance()` ends the present round. Decisions of `max_delay` rounds are remembered (`decision_at`), so that their
    gradients can be computed when the answer comes; older rounds are forgotten. `step` and `play(..., delay=...)`
    simulate all that. A round costs what it costs the learner: one projection and at most one gradient for those of one
    projection. Where losses drift fast, one learner for all rounds can be better: `EfficientDelayed`.

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

    def __init__(
        self,
        domain: Domain,
        make_learner: Callable[[Domain], Any],
        *,
        delay: int | None = None,
        max_delay: int | None = None,
    ) -> None:
        super().__init__(domain, delay=delay, max_delay=max_delay)
        name = type(self).__name__
        if not callable(make_learner):
            raise wrong(name, "make_learner", "a function domain -> learner", make_learner)
        self.make_learner = make_learner
        first = self._new_copy(None)
        if isinstance(first, Learner):
            self.gradient_bound, self.on_violation = first.gradient_bound, first.on_violation
            self._square_bound, self._hull = first._square_bound, first._hull
        self.needs_loss = getattr(first, "needs_loss", False)
        self.uses_loss = getattr(first, "uses_loss", self.needs_loss)
        self.nonnegative = getattr(first, "nonnegative", False)
        self._copies = [first]
        self._feedback: list[tuple[Array, float | None]] = []  # what a copy is to learn from
        self._count_of_copies = np.ones(1, dtype=np.int64)
        self._holders = np.full(self._rows, -1, dtype=np.int64)  # who played a round
        self._arrays |= {"copies": self._count_of_copies, "holders": self._holders}
        self._holders[0] = 0

    def _new_copy(self, like: Any) -> Any:
        """One more learner, checked; the first is `like` nobody."""
        name = type(self).__name__
        made = ask(name, "make_learner", self.make_learner, self.domain)
        missing = [n for n in ("decision", "update", "state", "restore", "reset") if not _has(made, n)]
        if missing or isinstance(made, type):
            lacks = f", and it lacks {', '.join(missing)}" if missing else ""
            raise InputError(f"{name} cannot use {told(made)}: make_learner must return a learner{lacks}.")
        check_takes_losses(name, made)
        kind = type(made).__name__
        if isinstance(made, Late):
            raise InputError(f"{name} cannot use {kind}, which takes late feedback itself.")
        if getattr(made, "values_only", False):
            raise InputError(
                f"{name} cannot use {kind}, which takes values: late feedback is one gradient a round. Use another one."
            )
        if not getattr(made, "one_gradient", True):
            raise InputError(
                f"{name} cannot use {kind} with gradients='own': late feedback is one gradient a round. "
                "Use gradients='shared'."
            )
        if isinstance(made, Learner) and made.domain is not self.domain:
            raise InputError(f"make_learner of {name} must build on the set that it is given. Got {told(made)}.")
        if getattr(made, "rounds", 0) != 0 or any(made is copy for copy in getattr(self, "_copies", ())):
            raise InputError(f"make_learner of {name} must return a fresh learner every time. Got {told(made)}.")
        if like is not None and not _alike(made, like):
            raise InputError(
                f"make_learner of {name} must always return the same kind of learner. Got {told(made)}, before that "
                f"{told(like)}."
            )
        return made

    # ------------------------------------------------------------------ a round

    def _decide(self) -> Array:
        copy = self._copies[self._holders[self.rounds % self._rows]]
        x = read_decision(self._who(), copy, self.domain)
        if not (isinstance(copy, Learner) or feasible(self.domain, x)):
            raise InputError(
                f"{self._who()}: the decision of {type(copy).__name__} must be a point of {self.domain!r}. "
                f"Got {told(copy.decision)}. Project it."
            )
        return x

    def _open(self, t: int) -> None:
        row = t % self._rows
        self._due[row], self._holders[row] = -1, -1
        waits = np.zeros(len(self._copies) + 2, dtype=bool)  # the last entry, -1, is for rows of no round
        waits[self._holders[(self._due < 0) | (self._due >= t)]] = True
        k = int(np.argmin(waits[:-1]))  # (1)
        if k == len(self._copies):
            self._copies.append(self._new_copy(self._copies[0]))
            self._count_of_copies[0] = k + 1
        self._holders[row] = k

    def _take(self, s: int, gradient: Array, loss: float | None) -> None:
        # nobody asks this copy before the feedback is due, so it may learn from it at once: when all else is done
        self._feedback.append((gradient.reshape(self.domain.shape), loss))

    def _restart(self) -> None:
        super()._restart()
        self._copies[0].reset()
        del self._copies[1:]
        self._count_of_copies[0], self._holders[:] = 1, -1
        self._holders[0] = 0

    def _read_paid(self, loss: Any) -> float:
        value = super()._read_paid(loss)
        first = self._copies[0]
        return first._read_paid(value) if isinstance(first, Learner) else value

    @property
    def _floor(self) -> float:
        first = self._copies[0]
        return first._floor if isinstance(first, Learner) else super()._floor

    def _why_floor(self) -> str:
        first = self._copies[0]
        return first._why_floor() if isinstance(first, Learner) else super()._why_floor()

    @property
    def queries(self) -> Queries:
        """As of every learner; projections are those of all copies."""
        mine = super().queries
        theirs = sum(getattr(copy, "queries", Queries()).projections for copy in self._copies)
        return Queries(theirs, mine.gradients, mine.values)

    @property
    def copies(self) -> int:
        """How many copies there are: one more than rounds ever waited at once."""
        return len(self._copies)

    # ------------------------------------------------------------------ whole runs

    def _rounds(self, problem: LinearModel, losses: Array, decisions: Array) -> loop.Rounds | None:
        first = self._copies[0]
        return (
            first._rounds(problem, losses, decisions) if self.delay is not None and isinstance(first, Machine) else None
        )

    def _play(self, problem: LinearModel, rounds: loop.Rounds, first: int, last: int) -> int:
        """As `Machine._play`: where the copies take turns each plays its part of the rounds."""
        size = SHORTEST * self._rows  # what is in vain where a round is refused
        while first < last and self._turns():
            before, stop = self._remember(), min(last, first + size)
            while (refused := self._play_turns(problem, first, stop, rounds.losses, rounds.decisions)) < stop:
                self._return_to(before)
                if refused == first:
                    return first
                last = stop = refused
            first, size = stop, 2 * size
        return first

    def _turns(self) -> bool:
        """Whether the copies take turns from here on: (1) with all of them there, and feedback that is always due."""
        d, t = self.max_delay, self.rounds
        past = np.arange(t - d, t)
        due = self._due[t % self._rows] < 0 and (self._due[past % self._rows] == past + d).all()
        return bool(due and len(self._copies) == self._rows)

    def _play_turns(self, problem: LinearModel, first: int, stop: int, losses: Array, decisions: Array) -> int:
        """Rounds first..stop-1, copy by copy; returns the first that one of them refused, or `stop`."""
        t, rows, count, refused = self.rounds, self._rows, stop - first, stop
        for j in range(min(rows, count)):
            copy, mine = self._copies[self._holders[(t + j) % rows]], slice(first + j, stop, rows)
            part = problem._part(mine)
            paid, played = np.empty(len(part)), np.empty((len(part), self.domain.dim))
            done = copy._play(part, copy._rounds(part, paid, played), 0, len(part))
            if done < len(part):
                refused = min(refused, first + j + done * rows)
            losses[mine] = paid
            if len(decisions):
                decisions[mine] = played
            last = t + j + (len(part) - 1) * rows
            self._x[last % rows], self._due[last % rows] = played[-1], last + self.max_delay
        self._shown = None
        self._clock[[ROUNDS, GRADIENTS]] += count
        self._clock[VALUES] += count * self.uses_loss
        self._clock[FRESH] = 0
        self._open(t + count)
        return refused

    # ------------------------------------------------------------------ a round that fails has not been

    @contextmanager
    def _playing(self, s: int) -> Iterator[None]:
        copy, count = self._copies[self._holders[s % self._rows]], len(self._copies)
        ours = isinstance(copy, Learner)  # whose rounds are whole, or were not
        arrays, theirs = super()._remember(), copy.rounds if ours else copy.state()
        self._feedback.clear()
        try:
            yield
            for gradient, loss in self._feedback:
                copy.update(gradient, loss)
        except BaseException:
            with interrupts():
                if not (ours and copy.rounds > theirs):
                    del self._copies[count:]
                    super()._return_to(arrays)
                    if not ours:
                        copy.restore(theirs)
            raise

    def _remember(self) -> Any:
        return super()._remember(), [(copy, _remember(copy)) for copy in self._copies]

    def _return_to(self, before: Any) -> None:
        arrays, copies = before
        for copy, theirs in copies:
            _return_to(copy, theirs)
        self._copies[:] = [copy for copy, _ in copies]
        super()._return_to(arrays)

    # ------------------------------------------------------------------ stop and resume

    def state(self) -> dict[str, Any]:
        """As `Learner.state`, with the states of the copies under `copy0.`, `copy1.`, ..."""
        states = {f"copy{k}.{key}": value for k, c in enumerate(self._copies) for key, value in c.state().items()}
        return super().state() | states

    def restore(self, saved: Any) -> None:
        """As `Learner.restore`."""
        saved = self._migrated(saved)
        read = self._read_state(saved)
        copies = []
        for k in range(int(read["copies"][0])):
            copies.append(self._new_copy(self._copies[0]))
            copies[k].restore(inside(saved, f"copy{k}."))
        if isinstance(copies[0], Learner) and sum(copy.rounds for copy in copies) != read["clock"][GRADIENTS]:
            raise self._unfit("its copies have not learned from the feedback that is counted")
        with self._all_or_nothing():
            self._copies[:] = copies
            self._write(read)

    def _look(self, read: dict[str, NDArray[Any]]) -> Iterator[tuple[str, bool]]:
        yield from super()._look(read)
        t, due, holders, count = int(read["clock"][ROUNDS]), read["due"], read["holders"], int(read["copies"][0])
        yield "copies", 1 <= count <= min(self._rows, t + 1)
        used = t - (t - np.arange(self._rows)) % self._rows >= 0
        yield "copies", bool(np.where(used, (holders >= 0) & (holders < count), holders == -1).all())
        waiting = holders[used & ((due < 0) | (due >= t))]
        yield "copies", np.unique(waiting).size == waiting.size


def _remember(copy: Any) -> Any:
    return copy._remember() if isinstance(copy, Stateful) else copy.state()


def _return_to(copy: Any, before: Any) -> None:
    if isinstance(copy, Stateful):
        copy._return_to(before)
    else:
        copy.restore(before)


def _has(made: Any, name: str) -> bool:
    """Whether an object has an attribute; a decision is not made for that."""
    missing = object()
    return inspect.getattr_static(made, name, missing) is not missing or (name != "decision" and hasattr(made, name))


def _alike(one: Any, other: Any) -> bool:
    """Whether two learners were built alike."""
    try:
        if isinstance(one, Savable) and isinstance(other, Savable):
            one._check_kind(other.state())
    except StateError:
        return False
    return type(one) is type(other)
