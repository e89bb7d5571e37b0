"""Prediction intervals that keep their coverage while the data drift.

Scores s_t >= 0 arrive one by one, such as errors |y_t - y^_t| of forecasts. The threshold for score t is

    q_t = exp(theta_t) sum_k w_k e_k,t,  theta_t = g(D_t) + c_F F_t                                                 (1)
    D_{t+1} = D_t + 1[s_t > q_t] - alpha, held between two ends;  F_{t+1} = e^(-1/60) F_t + 1[s_t > q_t] - alpha    (2)

with alpha = 1 - coverage, g(D) = c_D D (1 + (D/5)^2), c_D = 0.4 correction, c_F = 0.6 correction and D_1 = F_1 = 0.
The candidates e_k are quantiles of the long and short past (`thalweg.parts.conformal`). The weights w_k are those of a
`Tracker` on the simplex, for the pinball loss of exp(g(D_t)) sum_k w_k e_k,t, which is the interval score. They start
proportional to the square roots of the candidates' memory lengths.

Weights and candidates keep intervals short. D keeps the coverage right for any weights and candidates, and F keeps it
right on short stretches. Let G be the inverse of g, f = c_F alpha/(1 - e^(-1/60)) and
f' = c_F (1 - alpha)/(1 - e^(-1/60)), so that c_F F_t lies between -f and f'. If s_t <= exp(U) sum_k w_k e_k,t, U >= 0,
in all of T rounds but the first and N others in which the candidates are 0, then

    misses <= alpha T + G(U + f) + (1 - alpha)(1 + N)                                                               (3)

and if s_t > exp(-L) sum_k w_k e_k,t in all rounds, L >= 0, then misses >= alpha T - G(L + f') - alpha, as long as D
stays away from its ends, G(44) and -G(2 + f').
If answers come h rounds late, c_D = (1 - 0.6/h) correction/h^(3/4), c_F = 0.6/h correction/h^(3/4), and 5 becomes 5 h.
Then 1 + N becomes h + N, and the last alpha becomes h alpha.
docs/intervals-proofs.md has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, NoReturn

import numpy as np

from thalweg._core.memory import Memory, Saved
from thalweg._core.recorded import Recorded
from thalweg._core.rules import counters, within
from thalweg._core.saving import Kept
from thalweg._core.state import Block, Nothing, Past, Plan, field, part
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import (
    check_count,
    check_entries,
    check_flag,
    check_items,
    check_number,
    real_number,
    short_repr,
    wrong,
)
from thalweg._kernels.clock import ROUNDS
from thalweg._kernels.handle import Closed, bind
from thalweg._kernels.jit import Call
from thalweg.errors import InputError
from thalweg.estimators._frames import FrameTable, Native, column, first, series
from thalweg.learners import loop
from thalweg.learners.weighing import Weighing, pending
from thalweg.parts import conformal as kernels
from thalweg.parts.conformal import (
    ANSWERED,
    ASKED,
    KEPT,
    LARGEST_SCORE,
    MISSED,
    RATIOS,
    SideLayout,
    Sides,
    SideSettings,
    SideState,
    SideTurn,
    capacities,
    log_factor,
    sort,
)
from thalweg.parts.weigher import Weigher

__all__ = ["ConformalTracker"]

PATIENCE = 10.0  # divided by alpha: zeros in a row before thresholds are 0
PLACES = "above", "below"


class ConformalState(NamedTuple):
    """State of one or two sides, and up to h predictions that wait for their answers."""

    forecasts: Floats = field("h")  # of the waiting predictions: the i-th is forecasts[i % h]
    kinds: Ints = field("h", within(0, 1))  # 1 if there is a forecast, 0 if a score is expected
    above: SideState = part()
    below: SideState | Nothing = part()  # `Nothing` if there is only one side
    clock: Ints = field("2", counters)  # rounds answered, and rounds asked


class ConformalSettings(NamedTuple):
    """Settings of the sides."""

    above: SideSettings = part()
    below: SideSettings | tuple[()] = part()


class ConformalLayout:
    """Layout of the state, see `thalweg._core.memory.Layout`. The Trackers of both sides have the same sizes.

    Parameters
    ----------
    side : SideLayout
        One side.
    start : array
        Initial weights.
    two : bool
        Whether there are two sides.
    """

    def __init__(self, side: SideLayout, start: Floats, two: bool) -> None:
        self._side, self._two = side, two
        self._longest = int(side.windows.max())
        self._capacities = capacities(self._longest)
        self.weighing = Weighing(start.size, start)

    def sides(self, s: ConformalState) -> tuple[SideState, ...]:
        """Return the sides of a state."""
        return (s.above, s.below) if isinstance(s.below, SideState) else (s.above,)

    def pairs(self, s: ConformalState, c: ConformalSettings) -> list[tuple[SideState, SideSettings]]:
        """Return the state and the settings of every side."""
        found = [(s.above, c.above)]
        if isinstance(s.below, SideState) and isinstance(c.below, SideSettings):
            found.append((s.below, c.below))
        return found

    def sizes(self) -> dict[str, int]:
        """See `Layout.sizes`."""
        return {**self.weighing.sizes(), "C": self._capacities[0]}

    def sizes_of(self, saved: Saved) -> dict[str, int]:
        """See `Layout.sizes_of`."""
        found = self.weighing.sizes_of(saved, [f"{place}.weights." for place in PLACES[: 1 + self._two]])
        scores, ratios = saved["above.recent"].size, saved["above.ratios"].shape[-1]
        for capacity in self._capacities:
            if (scores, ratios) == (min(self._longest, capacity), min(RATIOS, capacity)):
                return {**found, "C": capacity}
        raise ValueError(f"'above.recent' and 'above.ratios' must have a capacity of {self._capacities} scores")

    def larger(self, s: ConformalState, sizes: Mapping[str, int]) -> dict[str, int]:
        """Return sizes with capacity for another answer."""
        weights = [side.weights for side in self.sides(s)]
        kept = max(int(side.tally[KEPT]) for side in self.sides(s))
        capacity = next((one for one in self._capacities if one > kept), self._capacities[-1])
        return {**self.weighing.larger(weights, weights, sizes), "C": max(capacity, sizes["C"])}

    def plan(self, sizes: Mapping[str, int]) -> Plan:
        """See `Layout.plan`."""
        side = self._side.plan(sizes["C"], self.weighing.plan(sizes))

        def begin(s: ConformalState, c: ConformalSettings) -> None:
            for one in self.pairs(s, c):
                side.begin(*one)

        return Plan(
            ConformalState,
            ConformalSettings(),
            {"h": self._side.horizon},
            {"above": side, "below": side if self._two else Plan(Nothing, ())},
            holds=self._holds,
            begin=begin,
        )

    def _holds(self, s: ConformalState, c: ConformalSettings, past: Past) -> Iterator[tuple[str, bool]]:
        """Relations that the next round relies on."""
        answered, asked = s.clock.tolist()
        yield "clock", 0 <= asked - answered <= self._side.horizon
        yield "forecasts", bool((np.abs(s.forecasts) <= LARGEST_SCORE).all())
        yield "clock", all(side.weights.clock[ROUNDS] <= answered for side in self.sides(s))


def read_score(owner: Kept, what: str, value: object) -> float:
    """Return a forecast, an answer or a score."""
    number = real_number(value)
    if not -LARGEST_SCORE <= number <= LARGEST_SCORE:  # also refuses nan
        raise InputError(f"{owner._who()}: {what} must be a number of at most 1e100 in size. Got {short_repr(value)}.")
    return number


def read_pair(owner: str, y_hat: object, y: object, time: str | None = None) -> tuple[FrameTable, Floats, Floats]:
    """Return forecasts as the table that came and as numbers, and the answers to them."""
    sheet, came = series(owner, "y_hat", y_hat, time=time), column(owner, "y", y)
    forecasts = sheet.values[:, 0]
    if came.size != forecasts.size:
        raise InputError(f"{owner}: y_hat has {forecasts.size} rows and y {came.size}. They must be as many.")
    _check_sizes(owner, "y_hat", forecasts)
    _check_sizes(owner, "y", came)
    return sheet, forecasts, came


def _check_sizes(owner: str, what: str, numbers: Floats) -> None:
    if (row := first(np.abs(numbers) > LARGEST_SCORE)) is not None:
        raise InputError(
            f"{owner}: {what} has {numbers[row]:g} in row {row}, counted from 0. At most 1e100 is allowed."
        )


class _IntervalCalls(NamedTuple):
    """Bound calls of a single round, and views, which are quicker to read than arrays."""

    ask: Call
    answer: Call
    clock: memoryview
    forecasts: memoryview
    kinds: memoryview
    out: memoryview  # thresholds above and below


class ConformalTracker(Kept, Recorded):
    """Prediction intervals with the coverage you ask for, even if errors drift. No scale or rate to set.

    For intervals around forecasts call `predict_interval(y_hat)`, then `update(y)`; for your own scores `threshold()`,
    then `update(score)`; for a whole series `run(y_hat, y)`. To wrap a model, use `ConformalForecaster`.

    Parameters
    ----------
    coverage : float
        Target share of the answers inside the intervals, between 0 and 1.
    windows : sequence of int
        Lengths of the trailing windows whose quantiles are candidates.
    halflives : sequence of float
        Half-lives of the running mean scores behind the other candidates: mean times a quantile of score over mean.
    correction : float
        Rate at which the threshold grows after a miss and shrinks otherwise. A larger one makes coverage right on
        shorter stretches and intervals slightly worse; 0.1 costs about 0.7 % in interval score.
    asymmetric : bool
        Whether to treat the two sides separately, each with half the misses, for errors that are larger on one side.
        Intervals still contain the forecast. Scores are then signed errors y - y_hat, and `threshold()` is a pair.
    horizon : int
        The largest delay of answers: the number of predictions that may wait at once. `update` answers the oldest.

    Notes
    -----
    Thresholds are 0 before the first score. They scale with the scores. After more than 10/(1 - coverage) zeros
    in a row they are 0 until a score is above 0; the rest of the state is kept.

    Examples
    --------
    >>> import numpy as np
    >>> from thalweg.estimators import ConformalTracker
    >>> rng = np.random.default_rng(0)
    >>> tracker, inside = ConformalTracker(0.9), 0
    >>> for t in range(2000):
    ...     y_hat, y = 0.0, rng.normal() * (1 if t < 1000 else 20)      # the spread jumps
    ...     low, high = tracker.predict_interval(y_hat)
    ...     inside += low <= y <= high
    ...     tracker.update(y)
    >>> round(inside / 2000, 2)
    0.9
    """

    _noun = "tracker"

    def __init__(
        self,
        coverage: float = 0.9,
        *,
        windows: Sequence[int] = (100, 400),
        halflives: Sequence[float] = (1, 5, 20, 80, 320),
        correction: float = 0.05,
        asymmetric: bool = False,
        horizon: int = 1,
    ) -> None:
        name = type(self).__name__
        self.coverage = real_number(coverage)
        if not 1e-4 <= self.coverage <= 1 - 1e-4:
            raise wrong(name, "coverage", "a share between 0.0001 and 0.9999, such as 0.9", coverage)
        self.windows = tuple(
            check_count(name, "windows", w, least=2) for w in check_items(name, "windows", windows, "a list of lengths")
        )
        self.halflives = tuple(
            check_number(name, "halflives", h) for h in check_items(name, "halflives", halflives, "a list of numbers")
        )
        if not self.windows or not self.halflives or not all(0.1 <= h <= 1e9 for h in self.halflives):
            raise InputError(
                f"{name} needs at least one window and one half-life, from 0.1 to 1e9. "
                f"Got windows={short_repr(windows)}, halflives={short_repr(halflives)}."
            )
        self.correction = real_number(correction)
        if not 1e-6 <= self.correction <= 1:
            raise wrong(name, "correction", "a number from 1e-6 to 1", correction)
        self.asymmetric = check_flag(name, "asymmetric", asymmetric)
        self.horizon = check_count(name, "horizon", horizon, most=2**20)
        check_entries(name, "windows", windows, (1 + len(self.windows)) * max(self.windows))
        alpha = (1 - self.coverage) / (2 if self.asymmetric else 1)
        memory = np.sqrt([*self.windows, *(h / math.log(2) for h in self.halflives)])  # roughly 1/error of a quantile
        side = SideLayout(
            alpha,
            self.correction,
            round(PATIENCE / alpha),
            np.array(self.windows, dtype=np.int64),
            0.5 ** (1 / np.array(self.halflives, dtype=np.float64)),
            self.horizon,
        )
        self._layout = ConformalLayout(side, memory / memory.sum(), self.asymmetric)
        self._memory = Memory(self._layout, self._tree, self._forget)

    # ------------------------------------------------------------------ memory

    def _tree(self, block: Block) -> Sides:
        """Return the tree that kernels take."""
        s, unbegun = block.state, pending(side.weights for side in self._layout.sides(block.state))
        handles = [bind(self._turn(*side, unbegun)) for side in self._layout.pairs(s, block.settings)]
        closed = Closed(handles[0]), Closed(handles[-1])
        return Sides(
            *kernels.pointers(handles[0]), *closed, self.asymmetric, self.horizon, s.clock, s.forecasts, s.kinds
        )

    def _forget(self, memory: Memory) -> None:
        """Drop calls that are bound to earlier arrays, and rebuild the scratch space from the state."""
        self._calls: _IntervalCalls | None = None
        self._out = np.zeros(2)
        for side in self._layout.pairs(memory.state, memory.settings):
            sort(*side)

    # ------------------------------------------------------------------ a round

    def threshold(self) -> float | tuple[float, float]:
        """Return the threshold of the next round; a score above it is a miss. A pair (below, above) if asymmetric."""
        above, below = self._ask(0.0, 0)
        return (below, above) if self.asymmetric else above

    def predict_interval(self, y_hat: float) -> tuple[float, float]:
        """Return an interval (low, high) around the forecast of the next round."""
        forecast = read_score(self, "y_hat", y_hat)
        above, below = self._ask(forecast, 1)
        return forecast - (below if self.asymmetric else above), forecast + above

    def update(self, y: float) -> None:
        """Learn the answer of the oldest waiting round: the score, or y if an interval was predicted.

        A call that is refused changes nothing.
        """
        error = self._error(y)
        if not self._answer(error):
            with self._memory.all_or_nothing():
                while self._grow() and not self._answer(error):
                    pass

    def _skip(self) -> None:
        """Skip the oldest waiting round: no answer will come, and nothing is learned from it."""
        (self._calls or self._prepare()).clock[ANSWERED] += 1

    def _answer(self, error: float) -> bool:
        """Play a round; return False, with nothing changed, if there is no capacity for it."""
        answer = (self._calls or self._prepare()).answer
        answer.floats[1], answer.floats[2] = self._scores(error)
        played = answer.run()
        return played == 1 or answer.entry.read(played)  # type: ignore[no-any-return]

    def _grow(self) -> bool:
        """Grow to the capacity for another answer; return False if there is nothing to change."""
        memory = self._memory
        sizes = self._layout.larger(memory.state, memory.sizes)
        if sizes == memory.sizes:
            return False
        memory.grow(sizes)
        return True

    def _error(self, y: object) -> float:
        """Return the error of the oldest round that waits for an answer."""
        calls = self._calls or self._prepare()
        row = calls.clock[ANSWERED] % self.horizon
        if calls.clock[ASKED] == calls.clock[ANSWERED]:
            raise InputError(f"{self._who()}: nothing waits for an answer. Call threshold() or predict_interval first.")
        if calls.kinds[row]:
            return read_score(self, "y", y) - float(calls.forecasts[row])
        score = read_score(self, "score", y)
        if score < 0 and not self.asymmetric:
            raise InputError(
                f"{self._who()}: a score must be >= 0. Got {score:g}. Pass |y - y_hat|, or use asymmetric=True for "
                "errors with a sign."
            )
        return score

    def _ask(self, forecast: float, kind: int) -> tuple[float, float]:
        """Return thresholds above and below, which then wait for an answer."""
        calls = self._calls or self._prepare()
        if calls.clock[ASKED] - calls.clock[ANSWERED] >= self.horizon:
            raise InputError(
                f"{self._who()}: {self.horizon} prediction(s) wait for an answer, as many as horizon={self.horizon} "
                "allows. Call update first, or build it with a longer horizon."
            )
        calls.ask.floats[1], calls.ask.integers[2] = forecast, kind
        if status := calls.ask.run():
            calls.ask.entry.read(status)
        return calls.out[0], calls.out[1]

    def _scores(self, error: float) -> tuple[float, float]:
        """Return the scores (above, below) of an error; the same one twice if symmetric."""
        if self.asymmetric:
            return max(error, 0.0) + 0.0, max(-error, 0.0) + 0.0  # 0.0 for -0.0
        return abs(error), abs(error)

    # ------------------------------------------------------------------ whole series

    def run(self, y_hat: object, y: object, *, time: str | None = None) -> Native:
        """Return intervals for a whole series, bit for bit as from a loop of `predict_interval` and `update`.

        With a horizon h, a round is answered once h predictions are waiting; the rest are answered at the end.

        Parameters
        ----------
        y_hat, y : array, series or data frame of one column
            Forecasts made in advance, and observations, of the same length.
        time : str, optional
            A column of the data frame `y_hat` that must not go backwards; it is kept.

        Returns
        -------
        array (T, 2), or a data frame of the same kind with the columns low and high
            The intervals.

        Examples
        --------
        >>> import numpy as np
        >>> from thalweg.estimators import ConformalTracker
        >>> y = np.cumsum(np.random.default_rng(0).normal(size=1000))
        >>> band = ConformalTracker(0.8).run(y[:-1], y[1:])             # around the last value
        >>> bool(np.mean((band[:, 0] <= y[1:]) & (y[1:] <= band[:, 1])).round(2) == 0.8)
        True
        """
        name = f"{type(self).__name__}.run"
        sheet, forecasts, came = read_pair(name, y_hat, y, time)
        out = self._run(name, came - forecasts)
        band = np.stack([forecasts - out[:, -1], forecasts + out[:, 0]], axis=1)
        return sheet.like(band, ("low", "high"))

    def run_scores(self, scores: object) -> Native:
        """Return thresholds for a series of scores, bit for bit as from a loop of `threshold` and `update`.

        Returns
        -------
        array (T,), or (T, 2) if asymmetric: below, above; for a series or a data frame, a frame with these columns

        Examples
        --------
        >>> from thalweg.estimators import ConformalTracker
        >>> ConformalTracker(0.5).run_scores([1.0, 2.0, 3.0]).round(2).tolist()
        [0.0, 1.03, 1.88]
        """
        name = f"{type(self).__name__}.run_scores"
        sheet = series(name, "scores", scores)
        errors = sheet.values[:, 0]
        _check_sizes(name, "scores", errors)
        if not self.asymmetric and (row := first(errors < 0)) is not None:
            raise InputError(f"{name}: a score must be >= 0. Got {errors[row]:g} in row {row}, counted from 0.")
        out = self._run(name, errors)
        if self.asymmetric:
            return sheet.like(out[:, ::-1].copy(), ("below", "above"))
        return sheet.like(out[:, 0].copy(), ("threshold",))

    def _run(self, name: str, errors: Floats) -> Floats:
        """Return thresholds (T, 1), or (T, 2): above, below."""
        if self.waiting:
            raise InputError(f"{name}: {self.waiting} prediction(s) wait for an answer. Call update first.")
        above = below = np.abs(errors)
        if self.asymmetric:
            above, below = np.maximum(errors, 0.0) + 0.0, np.maximum(-errors, 0.0) + 0.0  # 0.0 for -0.0
        out, t, steps = np.zeros((errors.size, 2)), 0, errors.size + self.horizon - 1
        with self._memory.all_or_nothing():
            while (t := kernels.run_sides(self._memory.handle, above, below, t, out)) < steps and self._grow():
                pass
        return out if self.asymmetric else out[:, :1]

    # ------------------------------------------------------------------ inspection

    @property
    def waiting(self) -> int:
        """Number of predictions that wait for an answer."""
        clock = self._memory.state.clock
        return int(clock[ASKED] - clock[ANSWERED])

    @property
    def misses(self) -> int:
        """Number of answers outside their intervals."""
        return sum(int(side.tally[MISSED]) for side in self._layout.sides(self._memory.state))

    @property
    def names(self) -> list[str]:
        """Names of the candidates, in the order of `weights`."""
        return [*(f"window {w}" for w in self.windows), *(f"half-life {h:g}" for h in self.halflives)]

    @property
    def weights(self) -> Floats:
        """w_k of the next round; if asymmetric, two rows (below, above)."""
        sides: Sides = self._memory.handle.tree
        found = []
        for side in (sides.above, sides.below)[: 1 + self.asymmetric]:
            weigher: Weigher = side.tree.weigher
            loop.ready(weigher.handle.handle)
            found.append(weigher.x)
        return self._rows(found)

    @property
    def candidates(self) -> Floats:
        """e_k of the next round, in the order of `weights`."""
        return self._rows([side.candidates for side in self._layout.sides(self._memory.state)])

    @property
    def theta(self) -> float | tuple[float, float]:
        """Logarithm of the candidates' factor in the next round; a pair (below, above) if asymmetric."""
        memory = self._memory
        found = [float(log_factor(*side)) for side in self._layout.pairs(memory.state, memory.settings)]
        return (found[1], found[0]) if self.asymmetric else found[0]

    def _rows(self, found: list[Floats]) -> Floats:
        return np.stack(found[::-1]) if self.asymmetric else found[0].copy()

    def extended(self, horizon: int) -> NoReturn:
        """Raise an error: the horizon is the delay of answers, and the number of rounds is unlimited."""
        raise InputError(f"{type(self).__name__} plays any number of rounds: it can go on as it is.")

    # ------------------------------------------------------------------ compiled code

    def _turn(self, s: SideState, c: SideSettings, unbegun: Ints) -> SideTurn:
        """Return one side in the form that kernels take."""
        weigher = self._layout.weighing.weigher(s.weights, c.weights, unbegun, self._memory.sizes)
        return SideTurn(s._replace(weights=None), c._replace(weights=None), weigher)

    def _prepare(self) -> _IntervalCalls:
        """Bind the calls of a single round."""
        handle, s = self._memory.handle, self._memory.state
        ask, answer = kernels.ask_sides.ready(handle, 0.0, 0, self._out), kernels.answer_sides.ready(handle, 0.0, 0.0)
        calls = self._calls = _IntervalCalls(ask, answer, s.clock.data, s.forecasts.data, s.kinds.data, self._out.data)
        return calls
