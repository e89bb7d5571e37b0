"""Intervals that keep their coverage while the world drifts.

Scores s_t >= 0 come one after another, such as errors |y_t - y^_t| of forecasts. Before each there is a threshold

    q_t = exp(theta_t) sum_k w_k e_k,t                                                                              (1)
    theta_{t+1} = theta_t + eta (1[s_t > q_t] - alpha), held between -2 and 44;  theta_1 = 0                        (2)

with alpha = 1 - coverage. The candidates e_k are quantiles of the past, long and short (`thalweg.estimators._conformal`
has them). The weights w_k are those of a `Tracker` on the simplex, for the pinball loss, which is the interval score.
They begin at the square roots of what the candidates remember.
Weights and candidates make intervals short. (2) makes the coverage right, whatever they are. If
s_t <= exp(U) sum_k w_k e_k,t, 0 <= U <= 40, in all of T rounds but N (where the candidates are 0: the first, and the
first after a long run of zeros), then

    misses <= alpha T + U/eta + 1 + N                                                                               (3)

and if also s_t > exp(-L) sum_k w_k e_k,t in all rounds, 0 <= L < 2 - eta, then misses >= alpha T - L/eta - 1. With
answers h rounds late eta is correction/h^(3/4), each 1 is an h and L < 2 - h eta. docs/intervals.md has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thalweg._kernels.handle import Closed, Handle, bind
from thalweg._prepared import Prepared
from thalweg._stateful import inside, named_arrays
from thalweg._types import Array
from thalweg._validate import (
    check_count,
    check_entries,
    check_flag,
    check_items,
    check_number,
    real_number,
    told,
    wrong,
)
from thalweg.algorithms import Tracker
from thalweg.domains import Simplex
from thalweg.errors import InputError
from thalweg.estimators import _conformal as kernels
from thalweg.estimators._conformal import ANSWERED, ASKED, HIGHEST, LOWEST, MISSED, RATIOS, STEEPEST, Side, SideSettings
from thalweg.estimators._frames import column, series

__all__ = ["ConformalTracker"]

LARGEST = 1e100  # of a score or a forecast
PATIENCE = 10.0  # over alpha: zeros in a row


class _Calls(NamedTuple):
    """A round by hand."""

    ask: Any
    answer: Any
    trackers: list[Tracker]
    clock: memoryview
    forecasts: Any  # also views, quicker to read and write than arrays
    kinds: memoryview
    out: Any  # thresholds above and below

    def hide(self) -> None:
        """The decisions that the trackers have shown are about to change."""
        for tracker in self.trackers:
            tracker._shown = None


class ConformalTracker(Prepared):
    """Prediction intervals with the coverage you ask for, while the errors drift. No scale, no rate to set.

    Around forecasts: `predict_interval(y_hat)`, then `update(y)`. For scores of your own: `threshold()`, then
    `update(score)`. A whole series: `run(y_hat, y)`. Around a model: `ConformalForecaster`.

    Parameters
    ----------
    coverage : float
        The share of the answers that intervals are to hold, between 0 and 1.
    windows : sequence of int
        Lengths of the trailing windows whose quantiles are candidates.
    halflives : sequence of float
        Half-lives of the mean scores that are candidates, each times a quantile of score over mean.
    correction : float
        How fast the threshold grows after a miss, and shrinks without one. Larger: coverage is right on shorter
        stretches, and intervals are wider on average, with 0.1 by about 0.8 %.
    asymmetric : bool
        Two sides on their own, each missing half as often, for errors that are larger on one side. Intervals still
        hold the forecast. Scores are then errors with a sign, y - y_hat, and `threshold()` is a pair.
    horizon : int
        How late answers come: up to so many predictions may wait for theirs. Update answers the oldest.

    Notes
    -----
    Thresholds are 0 before the first score. They do not depend on the unit of the scores. After more than
    10/(1 - coverage) zeros in a row they are 0 until a score is above 0, and what was learned is kept.

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
    >>> inside / 2000
    0.9005
    """

    _noun = "tracker"
    _bound: tuple[Handle, Any] | None = None  # and what it points to

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
                f"Got windows={told(windows)}, halflives={told(halflives)}."
            )
        self.correction = real_number(correction)
        if not 1e-6 <= self.correction <= 1:
            raise wrong(name, "correction", "a number from 1e-6 to 1", correction)
        self.asymmetric = check_flag(name, "asymmetric", asymmetric)
        self.horizon = check_count(name, "horizon", horizon, most=2**20)
        check_entries(name, "windows", windows, (1 + len(self.windows)) * max(self.windows))
        self._sides = [_Half(self) for _ in range(1 + self.asymmetric)]
        self._forecasts = np.zeros(self.horizon)  # of the predictions that wait, as `Side.asked`
        self._kinds = np.zeros(self.horizon, dtype=np.int64)  # 1 where there is one, 0 where a score is waited for
        self._out = np.zeros(2)
        self._arrays = {"forecasts": self._forecasts, "kinds": self._kinds}
        for place, half in zip(("above", "below"), self._sides, strict=False):
            self._arrays |= {f"{place}.{key}": array for key, array in half.arrays.items()}

    def _restart(self) -> None:
        self._forecasts[:] = 0.0
        self._kinds[:] = 0
        for half in self._sides:
            half.restart()

    # ------------------------------------------------------------------ a round

    def threshold(self) -> Any:
        """The threshold of the next round: a score above it is a miss. A pair (below, above) if asymmetric."""
        above, below = self._ask(0.0, 0)
        return (below, above) if self.asymmetric else above

    def predict_interval(self, y_hat: float) -> tuple[float, float]:
        """An interval (low, high) around the forecast of the next round."""
        forecast = self._read("y_hat", y_hat)
        above, below = self._ask(forecast, 1)
        return forecast - (below if self.asymmetric else above), forecast + above

    def update(self, y: float) -> None:
        """What came: the score, or y where an interval was predicted; of the first round that waits for it.

        A call that is refused changes nothing.
        """
        error, calls = self._error(y), self._calls
        answer = calls.answer
        answer.floats[1], answer.floats[2] = self._scores(error)
        calls.hide()
        if status := answer.run():
            answer.entry.read(status)

    def _error(self, y: Any) -> float:
        """What an answer says of the first round that waits for one."""
        calls = self._calls
        row = calls.clock[ANSWERED] % self.horizon
        if calls.clock[ASKED] == calls.clock[ANSWERED]:
            raise InputError(f"{self._who()}: nothing waits for an answer. Call threshold() or predict_interval first.")
        if calls.kinds[row]:
            return self._read("y", y) - float(calls.forecasts[row])
        score = self._read("score", y)
        if score < 0 and not self.asymmetric:
            raise InputError(
                f"{self._who()}: a score must be >= 0. Got {score:g}. Pass |y - y_hat|, or use asymmetric=True for "
                "errors with a sign."
            )
        return score

    def _ask(self, forecast: float, kind: int) -> tuple[float, float]:
        """Thresholds above and below, which then wait for an answer."""
        calls: _Calls = self._calls
        asked = calls.clock[ASKED]
        if asked - calls.clock[ANSWERED] >= self.horizon:
            raise InputError(
                f"{self._who()}: {self.horizon} prediction(s) wait for an answer, as many as horizon={self.horizon} "
                "allows. Call update first, or build it with a longer horizon."
            )
        row = asked % self.horizon
        calls.forecasts[row], calls.kinds[row] = forecast, kind
        calls.hide()
        if status := calls.ask.run():
            calls.ask.entry.read(status)
        return calls.out[0], calls.out[1]

    def _scores(self, error: Any) -> tuple[Any, Any]:
        """Of an error, or many: those of both sides, or the one score twice."""
        if not self.asymmetric:
            return abs(error), abs(error)
        larger = np.maximum if isinstance(error, np.ndarray) else max
        return larger(error, 0.0), larger(-error, 0.0)

    def _read(self, what: str, value: Any) -> float:
        number = real_number(value)
        if not -LARGEST <= number <= LARGEST:  # nor nan
            raise InputError(f"{self._who()}: {what} must be a number of at most 1e100 in size. Got {told(value)}.")
        return number

    # ------------------------------------------------------------------ whole series

    def run(self, y_hat: Any, y: Any, *, time: str | None = None) -> Any:
        """Intervals for a whole series, as a loop of `predict_interval` and `update` makes them, bit for bit.

        With a horizon h, a round is answered once h predictions wait, and all that wait are answered at the end.

        Parameters
        ----------
        y_hat, y : array, series or data frame of one column
            Forecasts, made before, and what came; as many of each.
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
        sheet, came = series(name, "y_hat", y_hat, time=time), column(name, "y", y)
        forecasts = sheet.values[:, 0]
        if came.size != forecasts.size:
            raise InputError(f"{name}: y_hat has {forecasts.size} rows and y {came.size}. They must be as many.")
        for what, numbers in (("y_hat", forecasts), ("y", came)):
            self._check_sizes(name, what, numbers)
        out = self._run(name, came - forecasts)
        band = np.stack([forecasts - out[:, -1], forecasts + out[:, 0]], axis=1)
        return sheet.like(band, ("low", "high"))

    def run_scores(self, scores: Any) -> Any:
        """Thresholds for a whole series of scores, as a loop of `threshold` and `update` makes them, bit for bit.

        Returns
        -------
        array (T,), or (T, 2) if asymmetric: below, above; of a series or a data frame, a frame with these columns

        Examples
        --------
        >>> from thalweg.estimators import ConformalTracker
        >>> ConformalTracker(0.5).run_scores([1.0, 2.0, 3.0]).round(2).tolist()
        [0.0, 1.03, 1.88]
        """
        name = f"{type(self).__name__}.run_scores"
        sheet = series(name, "scores", scores)
        errors = sheet.values[:, 0]
        self._check_sizes(name, "scores", errors)
        if not self.asymmetric and (errors < 0).any():
            row = int(np.argmax(errors < 0))
            raise InputError(f"{name}: a score must be >= 0. Got {errors[row]:g} in row {row}, counted from 0.")
        out = self._run(name, errors)
        if self.asymmetric:
            return sheet.like(out[:, ::-1].copy(), ("below", "above"))
        return sheet.like(out[:, 0].copy(), ("threshold",))

    def _check_sizes(self, name: str, what: str, numbers: Array) -> None:
        large = np.abs(numbers) > LARGEST
        if large.any():
            row = int(np.argmax(large))
            raise InputError(
                f"{name}: {what} has {numbers[row]:g} in row {row}, counted from 0. At most 1e100 is allowed."
            )

    def _run(self, name: str, errors: Array) -> Array:
        """Thresholds (T, 1), or (T, 2): above, below."""
        if self.waiting:
            raise InputError(f"{name}: {self.waiting} prediction(s) wait for an answer. Call update first.")
        above, below = (np.ascontiguousarray(side) for side in self._scores(errors))
        out = np.zeros((errors.size, 2))
        kernels.run_sides(self._handle, above, below, self.horizon, out)
        return out if self.asymmetric else out[:, :1]

    # ------------------------------------------------------------------ what it tells

    @property
    def rounds(self) -> int:
        """Rounds that were answered so far."""
        return int(self._sides[0].state.clock[ANSWERED])

    @property
    def waiting(self) -> int:
        """Predictions that wait for an answer."""
        return int(self._sides[0].state.clock[ASKED]) - self.rounds

    @property
    def misses(self) -> int:
        """How many of the answers were outside."""
        return sum(int(half.state.clock[MISSED]) for half in self._sides)

    @property
    def names(self) -> list[str]:
        """What the candidates are, in the order of `weights`."""
        return [*(f"window {w}" for w in self.windows), *(f"half-life {h:g}" for h in self.halflives)]

    @property
    def weights(self) -> Array:
        """w_k of the next round; of two sides (below, above) two rows."""
        return self._rows([half.tracker.decision for half in self._sides])

    @property
    def candidates(self) -> Array:
        """e_k of the next round, in the order of `weights`."""
        return self._rows([half.state.candidates for half in self._sides])

    @property
    def theta(self) -> Any:
        """The logarithm of what candidates are multiplied by, in the next round; of two sides (below, above)."""
        found = [float(half.state.theta[0]) for half in self._sides]
        return (found[1], found[0]) if self.asymmetric else found[0]

    def _rows(self, found: list[Array]) -> Array:
        return np.stack(found[::-1]) if self.asymmetric else found[0].copy()

    def extended(self, horizon: int) -> Any:
        """Nothing to extend: it can go on for ever. Its horizon is how late answers come."""
        raise InputError(f"{type(self).__name__} plays any number of rounds: it can go on as it is.")

    # ------------------------------------------------------------------ compiled code, stop and resume

    @property
    def _handle(self) -> Handle:
        if self._bound is None:
            settings = [half.settings() for half in self._sides]
            handles = [bind((half.state, its)) for half, its in zip(self._sides, settings, strict=True)]
            closed = Closed(handles[0]), Closed(handles[-1])
            sides = kernels.Sides(*kernels.pointers(handles[0]), *closed, self.asymmetric)
            self._bound = bind(sides), (settings, sides)
        for half in self._sides:
            half.tracker._shown = None
        return self._bound[0]

    def _prepare(self) -> _Calls:
        handle, clock = self._handle, self._sides[0].state.clock.data
        ask, answer = kernels.ask_sides.ready(handle, self._out), kernels.answer_sides.ready(handle, 0.0, 0.0)
        trackers = [half.tracker for half in self._sides]
        return _Calls(ask, answer, trackers, clock, self._forecasts.data, self._kinds.data, self._out.data)

    def _write(self, read: dict[str, NDArray[Any]]) -> None:
        super()._write(read)
        for half in self._sides:
            half.tracker._shown = half.tracker.inner._shown = None

    def _read_state(self, saved: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        read = super()._read_state(saved)
        for place, half in zip(("above", "below"), self._sides, strict=False):
            probe = half.tracker.clone()  # it knows what a Tracker can have left
            probe.restore(probe.state() | inside(read, f"{place}.weights."))
        return read

    def _look(self, read: dict[str, NDArray[Any]]) -> Iterator[tuple[str, bool]]:
        yield "kinds", bool(np.isin(read["kinds"], (0, 1)).all())
        yield "forecasts", bool((np.abs(read["forecasts"]) <= LARGEST).all())
        clocks = [read[f"{place}.clock"] for place in ("above", "below")[: len(self._sides)]]
        yield "clock", all((clock[:2] == clocks[0][:2]).all() for clock in clocks)
        for place, half in zip(("above", "below"), self._sides, strict=False):
            yield from half.look(inside(read, f"{place}."))


class _Half:
    """One side: its arrays, the Tracker of its weights, and what compiled code gets."""

    def __init__(self, owner: ConformalTracker) -> None:
        W, H, h = len(owner.windows), len(owner.halflives), owner.horizon
        self.alpha = (1 - owner.coverage) / (2 if owner.asymmetric else 1)
        self.eta = owner.correction / h**0.75
        self.windows = np.array(owner.windows, dtype=np.int64)
        self.keep = 0.5 ** (1 / np.array(owner.halflives, dtype=np.float64))
        self.patience = round(PATIENCE / self.alpha)
        longest = int(self.windows.max())
        self.state = Side(
            recent=np.zeros(longest),
            scores=np.zeros((W, longest)),
            held=np.zeros(W, dtype=np.int64),
            ratios=np.zeros((H, RATIOS)),
            ranked=np.zeros((H, RATIOS)),
            ranks=np.zeros(H, dtype=np.int64),
            means=np.zeros(H),
            counts=np.zeros(H),
            candidates=np.zeros(W + H),
            theta=np.zeros(2),
            asked=np.zeros(h),
            advice=np.zeros((h, W + H)),
            scales=np.zeros((h, H)),
            clock=np.zeros(5, dtype=np.int64),
        )
        memory = np.sqrt([*owner.windows, *(h / math.log(2) for h in owner.halflives)])  # 1/error of a quantile, about
        self.tracker = Tracker(Simplex(W + H), start=memory / memory.sum())

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that changes, by name."""
        own, outer, inner = named_arrays(self.state), self.tracker._arrays, self.tracker.inner._arrays
        weights = outer | {f"inner.{key}": array for key, array in inner.items()}
        return own | {f"weights.{key}": array for key, array in weights.items()}

    def restart(self) -> None:
        for array in self.state:
            array[...] = 0
        self.tracker.reset()

    def settings(self) -> SideSettings:
        """What compiled code gets beside the state."""
        learner = kernels.weigher(self.tracker._handle, self.tracker._x, self.tracker._gradient)
        shortest = int(self.windows.argmin())
        return SideSettings(self.alpha, self.eta, self.patience, self.windows, shortest, self.keep, learner)

    def look(self, read: dict[str, NDArray[Any]]) -> Iterator[tuple[str, bool]]:
        """Whether a run can have left these arrays: whatever the next round relies on."""
        answered, asked, missed, zeros, kept = (int(n) for n in read["clock"])
        waiting = asked - answered
        yield "clock", 0 <= waiting <= self.state.asked.size and 0 <= missed <= answered
        yield "clock", 0 <= zeros <= answered and 0 <= kept <= answered and missed + zeros <= answered
        held, ranks, longest = read["held"], read["ranks"], read["recent"].size
        yield "windows", bool(((held >= 0) & (held <= np.minimum(self.windows, kept))).all())
        yield "windows", bool((held == np.minimum(self.windows, held.max(initial=0))).all())
        yield "ratios", bool(((ranks >= 0) & (ranks <= kept)).all())
        numbers = ("recent", "scores", "ratios", "ranked", "means", "counts", "candidates", "asked", "advice", "scales")
        yield "scores", all(bool((read[key] >= 0).all()) for key in numbers)
        if not (((held >= 0) & (held <= longest)).all() and (ranks >= 0).all()):
            return
        for w, n in enumerate(held):
            last = read["recent"][(kept - 1 - np.arange(n)) % longest]
            yield "windows", bool((np.sort(last) == read["scores"][w, :n]).all())
        for h, n in enumerate(np.minimum(ranks, RATIOS)):
            yield "ratios", bool((np.sort(read["ratios"][h, :n]) == read["ranked"][h, :n]).all())
            yield "ratios", bool((read["ratios"][h] <= STEEPEST).all())
        top = max(float(read["recent"].max(initial=0.0)), 0.0)
        yield "means", top <= LARGEST and bool((read["means"] <= top).all() and (read["candidates"] <= 2 * top).all())
        yield (
            "counts",
            bool((read["counts"] <= answered + 1).all() and ((read["counts"] >= 1) | (read["means"] == 0)).all()),
        )
        yield "theta", bool(((read["theta"] >= LOWEST) & (read["theta"] <= HIGHEST)).all())
        largest = 2 * LARGEST
        yield "predictions", all(bool((read[key] <= largest).all()) for key in ("advice", "scales"))
        yield "predictions", bool((read["asked"] <= math.exp(44.5) * largest).all())
