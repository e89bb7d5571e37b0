"""Forecasts of several experts combined, round by round: weights that follow the best experts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from thalweg._core.memory import Memory
from thalweg._core.recorded import Recorded
from thalweg._core.saving import Kept
from thalweg._core.state import Block
from thalweg._core.types import Floats
from thalweg._core.validate import check_count, check_entries, check_flag, check_items, real_array, real_number, wrong
from thalweg.errors import InputError
from thalweg.estimators._frames import Native, moments
from thalweg.estimators.aggregator import kernels
from thalweg.estimators.aggregator.guests import Guest, Hosted, Names
from thalweg.estimators.aggregator.kernels import ANSWERED, PREDICTED
from thalweg.estimators.aggregator.machine import AggregatorLayout, Candidates, CopyHandles
from thalweg.estimators.aggregator.oracles import Oracle, oracle
from thalweg.estimators.aggregator.reading import Rows, as_row, one_row, read_answers, read_loss, read_rows
from thalweg.estimators.aggregator.result import Combination
from thalweg.parts.covariance import LARGEST_FORECAST, MemoriesState, foresee, foresee_rounds
from thalweg.parts.forecast_losses import CLOSEST
from thalweg.parts.forecast_rules import COVARIANCE, FAMILIES, Rule

USUAL = "BOA", "recent", "covariance"
MANY = 50  # experts: weights by covariance cost their third power, and are not usual for more
BLOCK = 4096  # rounds of a run for which the memories' weights are kept
FLOAT = np.dtype(np.float64)
ndarray = np.ndarray


def _read_rule(owner: str, name: str, rule: object) -> str:
    """Return the name of a rule, in whatever case it is given."""
    known = {key.lower(): key for key in (*FAMILIES, "Tracker")}
    if not isinstance(rule, str) or rule.lower() not in known:
        raise wrong(owner, name, "one of " + ", ".join(map(repr, known.values())), rule)
    return known[rule.lower()]


class _Hand:
    """Rounds by hand on one block: calls of the copies that were needed so far, and arrays that all of them use.

    `take` and `answer` give the calls of these kernels for copy k, bound to its arrays.
    """

    __slots__ = ("answer", "clock", "row", "shape", "take")

    def __init__(self, block: Block, turns: CopyHandles, experts: int, bounds: tuple[float, float]) -> None:
        self.row, *rest = (np.zeros(experts) for _ in range(4))
        clock = block.state.clock
        self.clock, self.shape = clock.data, (experts,)
        self.take = cache(lambda k: kernels.take.ready(turns[k], k, *bounds, self.row, *rest, clock))
        self.answer = cache(lambda k: kernels.answer.ready(turns[k], k, 0.0, 0.0, clock))


class Aggregator(Kept, Recorded):
    """Combine forecasts of several experts, with nothing to tune.

    Weights that sum to 1 follow the best experts: those of a `Tracker` on the simplex and of other rules, the guests,
    are mixed by their gains. An expert may sleep, appear or leave; answers may come late.

    Parameters
    ----------
    loss : {"square", "absolute", "percentage", "pinball", "log"}
        The loss of an error; OPERA's names "mse", "mae" and "mape" will do. For "log" the experts' forecasts are
        probabilities of y = 1, kept 1e-9 away from 0 and 1, and y is 0 or 1.
    tau : float
        The quantile that "pinball" is for.
    gradient : bool
        Compete with the best fixed weights (True) or with the best expert (False).
    horizon : int
        How many rounds a forecast may be ahead of the answers. Rounds are shared by so many copies that take turns.
    guests : "auto" or sequence
        Other rules in the mixture: "BOA", "MLpol", "MLprod", "EWA", "FS" (fixed share), "recent" (BOA that forgets,
        with half-lives of 4 to 256 rounds), "covariance" (weights from how the experts' errors go together, of all
        rounds and with a half-life of 64), "Bayes" (for "log"), or objects of your own with `weights(experts, awake)`
        and `update(experts, awake, y)`; to save them, also `state()` and `restore(saved)`. "auto": BOA, recent and
        covariance (for up to 50 experts: it costs their third power), FS where `gradient` is False, Bayes for "log".
    rule : str, optional
        One of these names or "Tracker": play that rule alone.

    Attributes
    ----------
    weights_ : array
        Those of the next forecast, if all experts are awake.
    n_experts_, expert_names_
        How many experts there are, since the first call; their names, if they came in a data frame.

    Examples
    --------
    >>> import numpy as np
    >>> from thalweg.estimators import Aggregator
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=300).cumsum()
    >>> experts = y[:, None] + rng.normal(size=(300, 3)) * [1.0, 2.0, 4.0]
    >>> aggregator = Aggregator()
    >>> run = aggregator.run(experts, y)                     # or predict(row) and update(y), one round at a time
    >>> bool(run.loss() < ((experts - y[:, None])**2).mean(axis=0).min())
    True
    >>> aggregator.weights_.round(1).tolist(), round(aggregator.oracle(experts, y, "convex").loss, 2)
    ([0.7, 0.2, 0.0], 0.73)
    """

    _noun = "aggregator"

    def __init__(
        self,
        loss: str = "square",
        *,
        tau: float = 0.5,
        gradient: bool = True,
        horizon: int = 1,
        guests: object = "auto",
        rule: str | None = None,
    ) -> None:
        name = type(self).__name__
        self.loss, self.tau, self.gradient, self.horizon, self.guests, self.rule = (
            read_loss(name, loss),
            real_number(tau),
            check_flag(name, "gradient", gradient),
            check_count(name, "horizon", horizon, most=2**12),
            guests,
            None if rule is None else _read_rule(name, "rule", rule),
        )
        if not 0 < self.tau < 1:
            raise wrong(name, "tau", "a number between 0 and 1", tau)
        self._given = {key: getattr(self, key) for key in self._given}  # as they were read
        _, own = self._rules(1)
        self._hosted = [[Hosted(guest) for guest in own] for _ in range(self.horizon)]
        self._names = Names()
        self._plain = not own and self.loss not in ("percentage", "log")  # any finite answer will do
        self._bounds = (CLOSEST, 1 - CLOSEST) if self.loss == "log" else (-LARGEST_FORECAST, LARGEST_FORECAST)
        self._layout = AggregatorLayout(self.loss, self.tau, self.gradient, self.horizon, self._candidates)
        rules = {f"copies.{k}.guest{n}.": one for k, some in enumerate(self._hosted) for n, one in enumerate(some)}
        self._memory = Memory(self._layout, moved=self._forget, guests={"facts.": self._names, **rules})

    def _rules(self, experts: int) -> tuple[list[Rule], list[Guest]]:
        """Return the rules that are candidates, and the guests of the user's own."""
        name = type(self).__name__
        if self.rule is not None:
            return [*FAMILIES.get(self.rule, ())], []
        usual = [name for name in USUAL if experts <= MANY or name != "covariance"]
        usual += ["FS"] * (not self.gradient) + ["Bayes"] * (self.loss == "log")
        guests = usual if isinstance(self.guests, str) and self.guests == "auto" else self.guests
        rows: list[Rule] = []
        own: list[Guest] = []
        for guest in check_items(name, "guests", guests, "names of rules or objects"):
            if isinstance(guest, str):
                rows += FAMILIES.get(_read_rule(name, "guests", guest), ())
            elif callable(getattr(guest, "weights", None)) and callable(getattr(guest, "update", None)):
                own.append(guest)
            else:
                raise wrong(name, "guests", "names of rules, or objects with weights() and update()", guest)
        return rows, own

    def _candidates(self, experts: int) -> Candidates:
        """Return the candidates for so many experts; raise InputError where these are too many."""
        name = type(self).__name__
        K = check_count(name, "n_experts_", experts, most=2**20)
        rows, own = self._rules(K)
        check_entries(name, "horizon", self.horizon, self.horizon * (len(rows) + 1) * K)
        if any(row.kind == COVARIANCE for row in rows):
            which = "guests" if self.rule is None else "rule"
            check_entries(name, which, getattr(self, which), 4 * K * K)
        return Candidates(self.rule in (None, "Tracker"), rows, len(own))

    # ------------------------------------------------------------------ memory

    def _forget(self, memory: Memory) -> None:
        """Drop everything that was made from other arrays."""
        self._said: dict[int, float] = {}  # by copies whose scratch space has the weights of the round that waits
        self._hand: _Hand | None = None
        self._turns = CopyHandles(memory.block, memory.sizes)

    def _ready(self) -> None:
        """Prepare rounds by hand, unless they have guests that only Python can ask."""
        if self._hand is None and not self._hosted[0]:
            self._hand = _Hand(self._memory.block, self._turns, self.n_experts_, self._bounds)

    def _grow(self, full: Sequence[int]) -> bool:
        """Grow to capacity for another round of these copies; False where there is nothing to change."""
        memory = self._memory
        sizes = self._layout.larger(memory.state, full, memory.sizes)
        if sizes == memory.sizes:
            return False
        memory.grow(sizes)
        return True

    # ------------------------------------------------------------------ rounds

    def predict(self, experts: object, awake: object = None, *, time: str | None = None) -> float | Native:
        """Combine forecasts of the next round, or of a few rounds, which then wait for `update`.

        Parameters
        ----------
        experts : array (K,), array (n, K) or data frame
            A forecast of each expert; nan where one sleeps. A column that a later frame does not have sleeps.
        awake : array or data frame of the same shape, optional
            How much of each expert is awake, from 0 to 1.
        time : str, optional
            The column of the frame that holds the time: numbers, dates or durations, which must not go backwards.

        Returns
        -------
        float, array (n,), or data frame with the column "prediction"
        """
        if self._hand is not None and awake is None and time is None:
            said = self._take(self._hand, experts)
            if said is not None:
                return said
        who = f"{type(self).__name__}.predict"
        one = one_row(experts)
        rows = self._read(who, experts if one is None else one, awake if one is None else as_row(awake), time)
        n, memory = len(rows.X), self._memory
        if n + self.waiting > self.horizon:
            raise InputError(
                f"{who}: {self.waiting} forecasts wait for an answer and {n} more were asked for, but horizon = "
                f"{self.horizon}. Call update(y) first, or build Aggregator(horizon={n + self.waiting})."
            )
        if n == 1 and time is None and memory.sizes["K"] and not self._hosted[0]:  # one call: it is whole by itself
            answers = np.array([self._ask(rows.X[0], rows.A[0])])
        else:
            with memory.all_or_nothing():
                self._meet(who, rows)
                answers = np.array([self._ask(x, a) for x, a in zip(rows.X, rows.A, strict=True)])
        self._ready()
        return float(answers[0]) if one is not None else rows.came.like(answers, ["prediction"])

    def _take(self, hand: _Hand, given: object) -> float | None:
        """`predict` for the one row that comes every round; None where it is anything else, or must be refused."""
        if type(given) is not ndarray or given.dtype is not FLOAT or given.shape != hand.shape:
            return None
        predicted = hand.clock[PREDICTED]
        if predicted - hand.clock[ANSWERED] == self.horizon or not given.flags.carray:
            return None
        turn = predicted % self.horizon
        take = hand.take(turn)
        hand.row[:] = given
        said: float = take.run()
        if said != said:
            take.entry.read(said)
            return None
        self._said[turn] = said
        return said

    def _ask(self, x: Floats, a: Floats) -> float:
        """Return the forecast of the next round, which then waits for its answer."""
        clock = self._memory.state.clock
        k = int(clock[PREDICTED]) % self.horizon
        self._seat(k, self._guest_weights(k, x, a))
        said = kernels.ask(self._turns[k], k, x, a, np.empty(x.size), clock)
        if not self._hosted[k]:
            self._said[k] = said
        return said

    def update(self, y: object) -> None:
        """Learn from the answer: one number, or one a round, for the forecasts that have waited longest."""
        hand = self._hand
        if hand is not None and self._plain and isinstance(y, float) and abs(y) <= LARGEST_FORECAST:
            answered = hand.clock[ANSWERED]
            said = self._said.pop(answered % self.horizon, None)
            if said is not None and hand.clock[PREDICTED] > answered:
                answer = hand.answer(answered % self.horizon)
                answer.floats[2], answer.floats[3] = y, said
                if answer.run() == 1:
                    return
        who = f"{type(self).__name__}.update"
        one = real_array(y)
        Y = read_answers(who, one.reshape(1) if one is not None and one.ndim == 0 else y, self.loss)
        if len(Y) > self.waiting:
            raise InputError(
                f"{who}: {len(Y)} answers came, but {self.waiting} forecasts wait for one. Call predict first."
            )
        if len(Y) == 1 and not self._hosted[0]:
            self._answer(Y.item())
        else:
            with self._memory.all_or_nothing():
                for value in Y.tolist():
                    self._answer(value)

    def _answer(self, y: float, asked: list[Floats] | None = None) -> None:
        """Learn from the answer to the forecast that has waited longest, for which guests gave the weights `asked`."""
        state = self._memory.state
        k = int(state.clock[ANSWERED]) % self.horizon
        x, a = state.memories.x[k].copy(), state.memories.a[k].copy()
        asked = self._guest_weights(k, x, a) if asked is None else asked
        if not self._learn(k, asked, y):
            with self._memory.all_or_nothing():
                while self._grow([k]) and not self._learn(k, asked, y):
                    pass
        for one in self._hosted[k]:
            one.update(x, a, y)

    def _learn(self, k: int, asked: list[Floats], y: float) -> bool:
        """One round of copy k; False, with nothing changed, where there is no capacity for it."""
        self._seat(k, asked)
        turn, said = self._turns[k], self._said.pop(k, None)
        if said is None:
            said = kernels.recall(turn, k, np.empty(self.n_experts_))
        return kernels.answer(turn, k, y, said, self._memory.state.clock)

    def run(self, experts: object, y: object, awake: object = None, *, time: str | None = None) -> Combination:
        """Many rounds: `predict` and `update` for each row, in compiled code.

        No forecast knows more than the answers up to `horizon` rounds before it.

        Parameters
        ----------
        experts, awake, time
            As for `predict`, a row a round.
        y : array (n,), or a series
            The observations.

        Returns
        -------
        Combination
            Predictions, weights and losses, and pictures of them.
        """
        who = f"{type(self).__name__}.run"
        rows = self._read(who, experts, awake, time)
        came, X, A = rows
        Y = read_answers(who, y, self.loss, len(X))
        if self.waiting:
            raise InputError(f"{who}: {self.waiting} forecasts still wait for their answer. Call update(y) first.")
        P, W = np.empty(len(Y)), np.empty_like(X)
        with self._memory.all_or_nothing():
            self._meet(who, rows)
            self._said.clear()
            if self._hosted[0]:
                for t in range(len(Y)):
                    self._play(X[t], A[t], Y.item(t), W[t], P[t : t + 1])
            else:
                for t in range(0, len(Y), BLOCK):
                    self._play_block(*(array[t : t + BLOCK] for array in (X, A, Y, W, P)))
        names = self._names.names or tuple(f"expert {i + 1}" for i in range(self.n_experts_))
        return Combination(X, A, Y, P, W, names, self.loss, self.tau, self.rule or "combined", came)

    def _play(self, x: Floats, a: Floats, y: float, w: Floats, p: Floats) -> None:
        """A round with guests that only Python can ask."""
        k = int(self._memory.state.clock[ANSWERED]) % self.horizon
        asked = self._guest_weights(k, x, a)
        self._seat(k, asked)
        p[0] = self._said[k] = kernels.ask(self._turns[k], k, x, a, w, self._memory.state.clock)
        self._answer(y, asked)

    def _play_block(self, X: Floats, A: Floats, Y: Floats, W: Floats, P: Floats) -> None:
        """Play some rounds: first the weights of the memories in each, then copy by copy."""
        n, h, memory = len(Y), self.horizon, self._memory
        s, first = memory.state.memories, int(memory.state.clock[ANSWERED])
        held = np.empty((n, *s.w.shape))
        foresee_rounds(s, memory.settings.memories, first % h, X, A, Y, held)
        at, wait = {(first + t) % h: t for t in range(min(h, n))}, True  # the next round of each copy
        while at:
            for k, t in at.items():
                at[k] = kernels.rounds(self._turns[k], X, A, Y, held, t, h, wait, W, P)
            at = {k: t for k, t in at.items() if t < n}
            wait = self._grow([*at])
        memory.state.clock[:] += n

    @property
    def weights_(self) -> Floats:
        """Weights of the next forecast, if all experts are awake."""
        if not self._memory.sizes["K"]:
            raise AttributeError(f"{type(self).__name__} has no weights_ before the first call of predict or run.")
        s, c = self._memory.state, self._memory.settings
        k, K = int(s.clock[PREDICTED]) % self.horizon, self.n_experts_
        self._said.pop(k, None)
        w, x, a = np.empty(K), np.zeros(K), np.ones(K)
        self._seat(k, self._guest_weights(k, x, a))
        held, memories = np.empty_like(s.memories.w), MemoriesState._make(map(np.copy, s.memories))
        foresee(memories, c.memories, k, x, a, held)
        kernels.propose(self._turns[k], x, a, held, w)
        return w

    # ------------------------------------------------------------------ guests in Python

    def _guest_weights(self, k: int, x: Floats, a: Floats) -> list[Floats]:
        """Return the weights of the guests of copy k."""
        return [one.weights(x, a) for one in self._hosted[k]]

    def _seat(self, k: int, asked: list[Floats]) -> None:
        """Put the guests' weights behind those of the other candidates."""
        if asked:
            self._memory.settings.copies[k].weights[-len(asked) :] = asked

    # ------------------------------------------------------------------ inspection

    @property
    def waiting(self) -> int:
        """Forecasts that wait for their answer."""
        clock = self._memory.state.clock
        return int(clock[PREDICTED] - clock[ANSWERED])

    @property
    def n_experts_(self) -> int:
        """How many experts there are, since the first call."""
        if not self._memory.sizes["K"]:
            raise AttributeError(f"{type(self).__name__} has no n_experts_ before the first call of predict or run.")
        return self._memory.sizes["K"]

    @property
    def expert_names_(self) -> NDArray[np.object_]:
        """Their names, if they came in a data frame."""
        if self._names.names is None:
            raise AttributeError(f"{type(self).__name__} has no expert_names_: no data frame has come.")
        return np.array(self._names.names, dtype=object)

    def oracle(self, experts: object, y: object, model: str = "convex", awake: object = None) -> Oracle:
        """The best in hindsight by the loss of this aggregator; see `thalweg.estimators.oracle`."""
        return oracle(experts, y, model, loss=self.loss, tau=self.tau, awake=awake)

    def restore(self, saved: Mapping[str, object]) -> None:
        """Continue from a saved state, bit for bit. A state of another class is refused and nothing changes."""
        with self._memory.all_or_nothing():
            super().restore(saved)
            names, K = self._names.names, self._memory.sizes["K"]
            if names is not None and len(names) != K:
                raise self._unfit(f"it has {len(names)} names of {K} experts")

    # ------------------------------------------------------------------ checks, before anything changes

    def _read(self, who: str, experts: object, awake: object, time: str | None) -> Rows:
        """Return the table as it came, forecasts (0 for nan) and the experts awake, in the order of the experts."""
        count, names = self._memory.sizes["K"], self._names.names
        return read_rows(who, experts, awake, time, loss=self.loss, count=count, names=names)

    def _meet(self, who: str, rows: Rows) -> None:
        """Remember the time, and at the first call the names of the experts."""
        memory, came = self._memory, rows.came
        if not memory.sizes["K"]:
            sizes = self._layout.sizes_for(rows.X.shape[1])
            memory.adopt(Block.fresh(self._layout.plan(sizes)), sizes)
            self._names.names = came.names
        time = memory.state.time
        if came.time is not None and len(came.values):
            first, last = moments(came)
            if time[0] and first < time[1]:
                raise InputError(
                    f"{who}: experts[{came.time!r}] goes backwards from the call before. Give rows in order."
                )
            time[:] = 1.0, last
