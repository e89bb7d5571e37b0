"""The engine of `Aggregator`: copies that take turns, and the rounds that wait for their answer."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from thalweg._kernels.clock import ROUNDS
from thalweg._kernels.handle import Handle, bind
from thalweg._machines import loop
from thalweg._prepared import Prepared
from thalweg._sound import shares
from thalweg._stateful import named_arrays
from thalweg._types import Array
from thalweg._validate import told
from thalweg.algorithms import Tracker
from thalweg.domains import Simplex
from thalweg.errors import InputError
from thalweg.estimators import _combine
from thalweg.estimators._combine import ANSWERED, PREDICTED, Combined, Combining
from thalweg.estimators._covariance import Memories, foresee, foresee_rounds, look_memories, new_memories
from thalweg.estimators._forecast_losses import CODES, PERCENTAGE
from thalweg.estimators._jury import look_jury, new_jury
from thalweg.estimators._rules import COVARIANCE, MLPROD, Row, Rules, RuleSettings

__all__ = ["Combiner"]

FLOAT = np.dtype(np.float64)
BLOCK = 4096  # rounds of a run for which the memories' weights are kept


class _Copy(NamedTuple):
    """One of the copies: its arrays, its Tracker, and the guests that only Python can ask."""

    state: Combined
    settings: Combining
    tracker: Tracker
    guests: list[Any]


class _Turn(NamedTuple):
    """Calls of one copy."""

    take: Any
    ask: Any
    answer: Any


class _Calls:
    """A round by hand: calls of the copies that were needed so far, and the arrays that all of them use."""

    def __init__(self, engine: Combiner, clock: NDArray[np.int64]) -> None:
        self.row, self.x, self.a, self.w = (np.zeros(engine.count) for _ in range(4))
        self.turns: dict[int, _Turn] = {}
        self._clock, self.clock = clock, clock.data

    def turn(self, k: int, engine: Combiner) -> _Turn:
        """Copy k."""
        found = self.turns.get(k)
        if found is None:
            door, round_ = engine._door(k), (self.x, self.a, self.w, self._clock)
            found = self.turns[k] = _Turn(
                _combine.take.ready(door, k, 0.0, 0.0, self.row, *round_),
                _combine.ask.ready(door, k, *round_),
                _combine.answer.ready(door, k, 0.0, 0.0, self._clock),
            )
        return found


class Combiner(Prepared):
    """Weights over `count` experts for one loss; round t is played by copy t mod `horizon`.

    Parameters
    ----------
    count : int
        K.
    loss, tau, gradient, horizon
        As of `Aggregator`.
    tracked : bool
        Whether the Tracker is a candidate.
    rows : tuple of Row
        The rules that are.
    guests : sequence
        Those of the user's own.
    """

    _noun = "aggregator"

    def __init__(
        self,
        count: int,
        *,
        loss: str,
        tau: float,
        gradient: bool,
        horizon: int,
        tracked: bool,
        rows: Sequence[Row],
        guests: Sequence[Any] = (),
    ) -> None:
        self.count, self.horizon = count, horizon
        keep = np.array([row.keep for row in rows if row.kind == COVARIANCE])
        options = loss, tau, gradient, tracked, rows, guests
        self._copies = [_new_copy(count, *options) for _ in range(horizon)]
        self._said: dict[int, float] = {}  # by copies whose scratch space has the weights of the round that waits
        self._clock = np.zeros(2, dtype=np.int64)
        self._memories, self._remembering = new_memories(keep, count, horizon, CODES[loss] == PERCENTAGE)
        self._time = np.zeros(2)  # whether there was one, and the last
        self._arrays: dict[str, NDArray[Any]] = {"clock": self._clock, "time": self._time}
        self._arrays |= named_arrays(self._memories, "memories.")
        for k, one in enumerate(self._copies):
            self._arrays |= {f"{k}.{key}": array for key, array in named_arrays(one.state).items()}
            if tracked:
                self._arrays |= {f"{k}.tracker.{key}": array for key, array in one.tracker._arrays.items()}
                self._arrays |= {f"{k}.inner.{key}": array for key, array in one.tracker.inner._arrays.items()}
        self._hosts = bool(guests)

    @property
    def rounds(self) -> int:
        """Rounds answered so far."""
        return int(self._clock[ANSWERED])

    @property
    def waiting(self) -> int:
        """Forecasts that wait for their answer."""
        return int(self._clock[PREDICTED] - self._clock[ANSWERED])

    def _restart(self) -> None:
        fresh = self.clone()
        self._write(fresh._arrays)
        for one, other in zip(self._copies, fresh._copies, strict=True):
            one.guests[:] = other.guests

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_said": {}}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        vars(self).update(kept)

    def _write(self, read: dict[str, NDArray[Any]]) -> None:
        self._said.clear()
        super()._write(read)

    def _prepare(self) -> _Calls:
        return _Calls(self, self._clock)

    def _door(self, k: int) -> Handle:
        """Copy k as compiled code sees it."""
        if self._bound is None:
            doors: list[tuple[Handle, Any]] = []  # and what they borrow
            for one in self._copies:
                of, nothing = one.tracker, cast(Any, None)
                seat = loop.seat(of._handle, False, of._x, of._gradient, nothing, nothing)
                doors.append((bind((one.state, one.settings, seat, self._memories, self._remembering)), seat))
            self._bound = doors
        door: Handle = self._bound[k][0]
        return door

    # ------------------------------------------------------------------ rounds; all arguments were checked

    def take(self, row: Any, least: float, largest: float) -> float | None:
        """`predict` for the one row that comes every round; None where it is anything else, or must be refused."""
        if type(row) is not np.ndarray or row.dtype is not FLOAT or row.shape != (self.count,) or not row.flags.carray:
            return None
        calls: _Calls = self._calls
        predicted = calls.clock[PREDICTED]
        if predicted - calls.clock[ANSWERED] == self.horizon:
            return None
        if self._hosts:
            fine = _combine.read(row, least, largest, calls.x, calls.a)
            return self.predict(calls.x, calls.a) if fine else None
        turn = predicted % self.horizon
        take = calls.turn(turn, self).take
        calls.row[:] = row
        take.floats[2], take.floats[3] = least, largest
        said: float = take.run()
        if said != said:
            take.entry.read(said)
            return None
        self._said[turn] = said
        return said

    def predict(self, x: Array, a: Array) -> float:
        """The forecast of the next round, which then waits for its answer."""
        calls: _Calls = self._calls
        turn = calls.clock[PREDICTED] % self.horizon
        self._ask(turn, x, a)
        ask = calls.turn(turn, self).ask
        calls.x[:], calls.a[:] = x, a
        said: float = ask.entry.read(ask.run())
        if not self._hosts:
            self._said[turn] = said
        return said

    def weights(self) -> Array:
        """Those of the next round, if everybody is awake."""
        k = int(self._clock[PREDICTED]) % self.horizon
        self._said.pop(k, None)
        w, x, a = np.empty(self.count), np.zeros(self.count), np.ones(self.count)
        self._ask(k, x, a)
        held, memories = np.empty_like(self._memories.w), Memories._make(map(np.copy, self._memories))
        foresee(memories, self._remembering, k, x, a, held)
        _combine.propose(self._door(k), x, a, held, w)
        return w

    def update(self, y: float) -> None:
        """The answer to the forecast that has waited longest."""
        calls: _Calls = self._calls
        k = calls.clock[ANSWERED] % self.horizon
        if not self._hosts:
            answer, said = calls.turn(k, self).answer, self._said.pop(k, None)
            answer.floats[2] = y
            answer.floats[3] = _combine.recall(self._door(k), k, calls.w) if said is None else said
            if status := answer.run():
                answer.entry.read(status)
            return
        x, a = self._memories.x[k].copy(), self._memories.a[k].copy()
        with self._all_or_nothing():
            self._ask(k, x, a)
            _combine.answer(self._door(k), k, y, _combine.recall(self._door(k), k, calls.w), self._clock)
            self._tell(k, x, a, y)

    def run(self, X: Array, A: Array, Y: Array) -> tuple[Array, Array]:
        """Rounds one after the other; nothing waits. Returns forecasts and weights."""
        P, W = np.empty(len(Y)), np.empty_like(X)
        self._said.clear()
        with self._all_or_nothing():
            if self._hosts:
                for t in range(len(Y)):
                    k = int(self._clock[ANSWERED]) % self.horizon
                    self._ask(k, X[t], A[t])
                    P[t] = _combine.ask(self._door(k), k, X[t], A[t], W[t], self._clock)
                    _combine.answer(self._door(k), k, Y.item(t), P.item(t), self._clock)
                    self._tell(k, X[t], A[t], Y[t])
            else:
                for t in range(0, len(Y), BLOCK):
                    self._run(*(array[t : t + BLOCK] for array in (X, A, Y, W, P)))
        return P, W

    def _run(self, X: Array, A: Array, Y: Array, W: Array, P: Array) -> None:
        """A block of rounds: first what the memories say in each, then copy by copy."""
        first, held = int(self._clock[ANSWERED]), np.empty((len(Y), *self._memories.w.shape))
        foresee_rounds(self._memories, self._remembering, first % self.horizon, X, A, Y, held)
        for t in range(min(self.horizon, len(Y))):
            _combine.rounds(self._door((first + t) % self.horizon), X, A, Y, held, t, self.horizon, W, P)
        self._clock += len(Y)

    # ------------------------------------------------------------------ guests in Python

    def _ask(self, k: int, x: Array, a: Array) -> None:
        """The weights of the guests of copy k."""
        if not self._hosts:
            return
        one = self._copies[k]
        first = len(one.settings.gains) - len(one.guests)
        for n, guest in enumerate(one.guests):
            w = np.asarray(guest.weights(x.copy(), a.copy()), dtype=np.float64)
            if w.shape != (self.count,) or not (np.isfinite(w).all() and (w >= 0).all()):
                raise InputError(
                    f"Aggregator: the guest {type(guest).__name__} must give {self.count} weights >= 0. Got {told(w)}."
                )
            w = w * a
            one.settings.weights[first + n] = w / w.sum() if w.sum() > 0 else a / a.sum()

    def _tell(self, k: int, x: Array, a: Array, y: float) -> None:
        for guest in self._copies[k].guests:
            guest.update(x.copy(), a.copy(), float(y))

    def _remember(self) -> Any:
        return super()._remember(), [copy.deepcopy(one.guests) for one in self._copies]

    def _return_to(self, before: Any) -> None:
        arrays, guests = before
        super()._return_to(arrays)
        for one, kept in zip(self._copies, guests, strict=True):
            one.guests[:] = kept

    # ------------------------------------------------------------------ stop and resume

    def state(self) -> dict[str, Any]:
        """As `Stateful.state`, with what the guests' own `state()` give."""
        saved = super().state()
        for k, one in enumerate(self._copies):
            for n, guest in enumerate(one.guests):
                if not (hasattr(guest, "state") and hasattr(guest, "restore")):
                    name = type(guest).__name__
                    raise InputError(f"Aggregator: the guest {name} cannot be saved. Give it state() and restore().")
                saved |= {f"{k}.guest{n}.{key}": value for key, value in guest.state().items()}
        return saved

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue from a saved state, bit for bit."""
        saved = self._migrated(saved)
        read = self._read_state(saved)
        with self._all_or_nothing():
            self._write(read)
            for k, one in enumerate(self._copies):
                for n, guest in enumerate(one.guests):
                    mark = f"{k}.guest{n}."
                    guest.restore({key.removeprefix(mark): v for key, v in saved.items() if str(key).startswith(mark)})

    def _read_state(self, saved: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        read = super()._read_state(saved)
        for k, one in enumerate(self._copies):
            if one.settings.tracked:
                outer, inner = (
                    learner.state() | {key: read[f"{k}.{part}.{key}"] for key in learner._arrays}
                    for part, learner in (("tracker", one.tracker), ("inner", one.tracker.inner))
                )
                one.tracker._read_state(outer)  # raises where no run can have left it
                one.tracker.inner._read_state(inner)
                answered = len(range(k, int(read["clock"][ANSWERED]), self.horizon))
                if outer["clock"][ROUNDS] != answered or inner["clock"][ROUNDS] != answered:
                    raise self._unfit(f"its copy {k} has not played the rounds that are counted")
        return read

    def _look(self, read: dict[str, NDArray[Any]]) -> Iterator[tuple[str, bool]]:
        answered, predicted = (int(n) for n in read["clock"])
        yield "counters", 0 <= answered <= predicted <= answered + self.horizon
        h, a = self.horizon, read["memories.a"]
        waiting = [t % h for t in range(answered, min(predicted, answered + h))]
        yield "waiting forecasts", bool(((a >= 0) & (a <= 1)).all() and (a[waiting].sum(axis=1) > 0).all())
        yield "waiting forecasts", bool((np.abs(read["memories.x"]) <= LARGEST).all())
        known = np.isin(np.arange(h), [t % h for t in range(max(predicted - h, 0), min(answered, predicted))])
        yield "answers", bool((read["memories.answered"] == known).all())
        yield "answers", bool((np.abs(read["memories.y"]) <= LARGEST).all())
        yield from look_memories(read, self._remembering.keep, answered)
        for k, one in enumerate(self._copies):
            held = read[f"{k}.held"][:, a[k] > 0] if k in waiting else np.ones((0, 1))
            yield "waiting forecasts", shares(held, np.ones(held.shape, dtype=bool))
            A, V, B = (read[f"{k}.rules.{key}"] for key in "AVB")
            yield "rules", bool((V >= 0).all() and (B >= 0).all() and not (B[V > 0] == 0)[_needs(one)[V > 0]].any())
            yield "rules", bool((np.abs(A) < LARGEST**3).all())
            yield from look_jury(read, f"{k}.jury")


LARGEST = 1e60  # of a forecast: squares of squares of differences can be added up


def _needs(one: _Copy) -> NDArray[np.bool_]:
    """Which entries have a largest regret where they have squares."""
    kinds = one.settings.rules.kinds
    return np.repeat((kinds == MLPROD)[:, None], one.state.rules.A.shape[1], axis=1)


def _new_copy(
    count: int, loss: str, tau: float, gradient: bool, tracked: bool, rows: Sequence[Row], guests: Sequence[Any]
) -> _Copy:
    rules, memories = ([row for row in rows if (row.kind == COVARIANCE) == wanted] for wanted in (False, True))
    N, shape = tracked + len(rows) + len(guests), (len(rules), count)
    priors = np.array([1.0] * tracked + [row.prior for row in (*rules, *memories)] + [1.0] * len(guests))
    jury, room = new_jury(priors)
    numbers = np.array([row[1:4] for row in rules]).reshape(len(rules), 3).T.copy()
    settings = RuleSettings(np.array([row.kind for row in rules], dtype=np.int64), *numbers)
    scratch = np.zeros((N, count)), np.zeros(N), np.zeros(count)
    state = Combined(Rules(*(np.zeros(shape) for _ in range(3))), jury, np.zeros((len(memories), count)))
    combining = Combining(settings, room, CODES[loss], tau, gradient, tracked, *scratch)
    return _Copy(state, combining, Tracker(Simplex(count)), copy.deepcopy(list(guests)))
