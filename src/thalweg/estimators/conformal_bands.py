"""Intervals of several levels that do not cross, each with one side or two, whichever is shorter.

Every level has a `ConformalTracker` with one side, |y - y_hat|, and one with two. Which of them is heard is decided
after 128, 256, 512, .. rounds: the one with the smaller interval score since the last decision,

    sum_t (high - low) + 2/(1 - coverage) (distance of y from the interval)                                         (1)

and the one side at first. A tracker keeps its coverage on every stretch of rounds, up to a number of misses that does
not grow with the stretch, and there are at most log2(T) decisions, so coverage is kept up to that number times log2(T).

Thresholds of all levels are then sorted, on each side. A sum of pinball losses never grows by that, and neither does
the number of misses on a side, over all levels: the same thresholds are used, by other levels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from thalweg._core.memory import Fixed, Memory
from thalweg._core.recorded import Recorded
from thalweg._core.rules import counters, magnitude, within
from thalweg._core.saving import Kept
from thalweg._core.state import Past, Plan, field
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_choice, check_items, real_number, wrong
from thalweg.errors import InputError
from thalweg.estimators.conformal import ConformalTracker, read_pair, read_score
from thalweg.parts.conformal import ANSWERED, ASKED, LARGEST_SCORE

__all__ = ["ConformalBands"]

FIRST = 128  # rounds before the first decision
LARGEST = 1e140  # of a threshold, and of a sum of scores
ONE, TWO = 0, 1  # sides


class BandsState(NamedTuple):
    """C levels, two kinds of trackers for each, and up to h predictions that wait for their answer."""

    chosen: Ints = field("C", within(0, 1))  # sides of each level
    paid: Floats = field("C 2", magnitude(LARGEST), called="interval scores")  # since the last decision
    forecasts: Floats = field("h", magnitude(LARGEST_SCORE))  # of the predictions that wait
    widths: Floats = field("h C 2 2", magnitude(LARGEST), called="thresholds")  # level, kind, below and above
    clock: Ints = field("2", counters)  # rounds that were answered, and asked


class ConformalBands(Kept, Recorded):
    """Nested prediction intervals of several levels, which keep their coverage while the errors drift.

    Parameters
    ----------
    coverages : sequence of float
        The shares of the answers that the intervals are to hold, each between 0 and 1, growing.
    sides : {"auto", "one", "two"}
        One threshold for |y - y_hat|, one for each side, or for each level whichever made the shorter intervals.
    windows, halflives, correction, horizon
        As for `ConformalTracker`.

    Examples
    --------
    >>> import numpy as np
    >>> from thalweg.estimators import ConformalBands
    >>> rng = np.random.default_rng(0)
    >>> y_hat, y = np.zeros(4000), rng.exponential(size=4000) - 0.3     # long errors on one side
    >>> bands = ConformalBands((0.5, 0.9))
    >>> found = bands.run(y_hat, y)
    >>> ((found[:, :, 0] <= y[:, None]) & (y[:, None] <= found[:, :, 1])).mean(axis=0).round(2).tolist()
    [0.5, 0.9]
    >>> bands.chosen
    ('two', 'two')
    """

    _noun = "estimator"

    def __init__(
        self,
        coverages: Sequence[float] = (0.5, 0.8, 0.95),
        *,
        sides: str = "auto",
        windows: Sequence[int] = (100, 400),
        halflives: Sequence[float] = (1, 5, 20, 80, 320),
        correction: float = 0.05,
        horizon: int = 1,
    ) -> None:
        name = type(self).__name__
        levels = [real_number(c) for c in check_items(name, "coverages", coverages, "a list of shares")]
        if not levels or not all(0 < c < 1 for c in levels) or not all(np.diff(levels) > 0):
            raise wrong(name, "coverages", "shares between 0 and 1 that grow, such as (0.5, 0.9)", coverages)
        self.coverages = tuple(levels)
        self.sides = check_choice(name, "sides", sides, ("auto", "one", "two"))
        kinds = {"auto": (ONE, TWO), "one": (ONE,), "two": (TWO,)}[self.sides]
        trackers = {
            f"level{k}.{('one', 'two')[kind]}.": ConformalTracker(
                c,
                windows=windows,
                halflives=halflives,
                correction=correction,
                asymmetric=kind == TWO,
                horizon=horizon,
            )
            for k, c in enumerate(levels)
            for kind in kinds
        }
        self._kinds = kinds
        self.horizon = next(iter(trackers.values())).horizon
        sizes = {"C": len(levels), "h": self.horizon}
        plan = Plan(BandsState, (), sizes, holds=self._holds, begin=self._begin)
        self._memory = Memory(Fixed(plan), guests=trackers)

    def _begin(self, s: BandsState, c: object) -> None:
        s.chosen[:] = self._kinds[0]

    def _holds(self, s: BandsState, c: object, past: Past) -> Iterator[tuple[str, bool]]:
        yield "clock", bool(0 <= s.clock[ASKED] - s.clock[ANSWERED] <= self.horizon)
        yield "chosen", bool(np.isin(s.chosen, self._kinds).all())
        yield "interval scores", bool((s.paid >= 0).all())
        yield "thresholds", bool((s.widths >= 0).all())

    # ------------------------------------------------------------------ a round

    @property
    def chosen(self) -> tuple[str, ...]:
        """For each level "one" or "two", the sides it is made of now."""
        return tuple(("one", "two")[kind] for kind in self._memory.state.chosen)

    @property
    def waiting(self) -> int:
        """Predictions that wait for their answer."""
        clock = self._memory.state.clock
        return int(clock[ASKED] - clock[ANSWERED])

    def predict_intervals(self, y_hat: float) -> Floats:
        """Return the intervals (low, high) around the forecast of the next round, a row for each level."""
        forecast = read_score(self, "y_hat", y_hat)
        if self.waiting >= self.horizon:
            raise InputError(
                f"{self._who()}: {self.horizon} prediction(s) wait for an answer, as many as horizon={self.horizon} "
                "allows. Call update first, or build it with a longer horizon."
            )
        with self._memory.all_or_nothing():
            return self._ask(forecast)

    def update(self, y: float) -> None:
        """Learn what came, of the first round that waits for it. A call that is refused changes nothing."""
        came = read_score(self, "y", y)
        if not self.waiting:
            raise InputError(f"{self._who()}: nothing waits for an answer. Call predict_intervals first.")
        with self._memory.all_or_nothing():
            self._answer(came)

    def _ask(self, forecast: float) -> Floats:
        s, guests = self._memory.state, iter(self._memory.guests.values())
        row = s.clock[ASKED] % self.horizon
        for k in range(len(self.coverages)):
            for kind in self._kinds:
                low, high = next(guests).predict_interval(forecast)
                s.widths[row, k, kind] = max(forecast - low, 0.0), max(high - forecast, 0.0)
        s.forecasts[row] = forecast
        s.clock[ASKED] += 1
        widths = np.sort(s.widths[row, np.arange(len(s.chosen)), s.chosen], axis=0)
        return np.stack([forecast - widths[:, 0], forecast + widths[:, 1]], axis=1)

    def _answer(self, y: float) -> None:
        s = self._memory.state
        row = s.clock[ANSWERED] % self.horizon
        error = y - s.forecasts[row]
        for tracker in self._memory.guests.values():
            tracker.update(y)
        below, above = s.widths[row, :, :, 0], s.widths[row, :, :, 1]
        missed = np.maximum(error - above, 0.0) + np.maximum(-error - below, 0.0)
        alpha = 1 - np.array(self.coverages)[:, None]
        s.paid[:] = np.minimum(s.paid + (below + above) + 2 / alpha * missed, LARGEST)  # (1)
        s.clock[ANSWERED] += 1
        n = int(s.clock[ANSWERED])
        if n >= FIRST and n & (n - 1) == 0:
            if len(self._kinds) == 2:
                s.chosen[:] = np.where(s.paid[:, TWO] < s.paid[:, ONE], TWO, ONE)
            s.paid[:] = 0.0

    def run(self, y_hat: object, y: object) -> Floats:
        """Return the intervals of a whole series, (T, K, 2), as `predict_intervals` and `update` make them."""
        name = f"{type(self).__name__}.run"
        _, forecasts, came = read_pair(name, y_hat, y)
        if self.waiting:
            raise InputError(f"{name}: {self.waiting} prediction(s) wait for an answer. Call update first.")
        out, late = np.empty((forecasts.size, len(self.coverages), 2)), self.horizon - 1
        with self._memory.all_or_nothing():
            for t in range(forecasts.size + late):
                if t < forecasts.size:
                    out[t] = self._ask(float(forecasts[t]))
                if t >= late:
                    self._answer(float(came[t - late]))
        return out
