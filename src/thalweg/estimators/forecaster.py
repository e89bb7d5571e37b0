"""Forecasts of a series up to H steps ahead, with intervals, from its own past and from columns known in advance.

Simple candidates each forecast all steps: naive, drift, seasonal naive, exponential smoothings, linear models of past
values (`thalweg.parts.forecast` has one file for each). For every horizon they are combined by their errors at that
horizon (`thalweg.parts.forecast.combination`), and intervals come from the errors of the combination
(`thalweg.parts.forecast.spans`). Everything is learned row by row, relative to the values seen so far: there is no
look-ahead and nothing to tune.
"""

import logging
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.memory import Memory
from thalweg._core.progress import progress_bar
from thalweg._core.recorded import Recorded
from thalweg._core.saving import Kept
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import (
    LARGEST_ENTRY,
    check_choice,
    check_count,
    check_items,
    check_text,
    real_array,
    real_number,
    short_repr,
    wrong,
)
from thalweg._kernels.jit import Call
from thalweg.errors import InputError
from thalweg.estimators._frames import first, named
from thalweg.estimators.forecasts import Forecast, Forecasts
from thalweg.parts.forecast.model import ASKED, CHECK, FOUND, ROUNDS, answer, ask, play
from thalweg.parts.forecast.past import ABSENT, CHANGED, CHANGES, TIME
from thalweg.parts.forecast.plan import ForecastLayout, seasons_found
from thalweg.parts.forecast.seasons import find_seasons, next_check
from thalweg.parts.records import rounds_for, slots_for

__all__ = ["Forecaster", "is_missing"]

log = logging.getLogger("thalweg.forecaster")

LOSSES = "squared", "absolute"
AUTO = "auto"
USUAL_LAGS = 1, 2, 3, 4
LONGEST_LAG = 10_000
MOST_LAGS = 64
LONGEST_SEASON = 10_000
MOST_SEASONS = 4
LONGEST_HORIZON = 1_000
MOST_COLUMNS = 1_000
CHUNK = 4096  # rows of a run between updates of the progress bar


class Forecaster(Kept, Recorded):
    """Forecast a series up to `horizon` steps ahead, one row at a time, with nothing to tune.

    Parameters
    ----------
    columns : sequence of str
        Names of columns that are known before the target: temperature, hour, yesterday's price. To forecast several
        steps ahead, they must be known for all these steps.
    lags : "auto", int or sequence of int
        Past values used by one of the candidates: 8 means the last 8 values, (1, 2, 24, 168) these lags. Lag 1 is
        always included. "auto" is 4. Seasonal candidates have lags of their own.
    season : "auto", None, int or sequence of int
        The number of rounds after which the series repeats itself: 24 for hours of a day, (24, 168) for days and weeks,
        12 for months. None: no season. "auto" looks for up to two, from 3 to 60 rounds, in the series itself. A
        season that turns out to be absent costs next to nothing.
    horizon : int
        Steps ahead.
    levels : sequence of float
        Coverage of the intervals, such as (0.8, 0.95).
    loss : {"squared", "absolute"}
        The errors by which candidates are compared.

    Attributes
    ----------
    on_change : callable or None
        Called with the forecaster and the round whenever a change of level is detected. Changes are also logged
        (`logging.getLogger("thalweg.forecaster")`). Not saved.

    Notes
    -----
    A missing value, None or nan, counts as a round, but nothing is learned from it. An outlier has little effect; if
    the next value confirms it, the level of the series has changed and is followed at once.

    Examples
    --------
    >>> import numpy as np
    >>> from thalweg.estimators import Forecaster
    >>> rng = np.random.default_rng(0)
    >>> months = np.arange(240)
    >>> series = 100 + months / 4 + 20 * np.sin(2 * np.pi * months / 12) + rng.standard_normal(240)
    >>> forecaster = Forecaster(season=12, horizon=12, levels=(0.9,))
    >>> for y in series:
    ...     forecaster.update(y)
    >>> year = forecaster.forecast()
    >>> truth = 100 + np.arange(240, 252) / 4 + 20 * np.sin(2 * np.pi * np.arange(240, 252) / 12)
    >>> bool(np.abs(year.mean - truth).max() < 3.0), bool((year.lower[0.9] < truth).all())
    (True, True)
    """

    _noun = "forecaster"
    on_change: Callable[["Forecaster", int], None] | None = None

    def __init__(
        self,
        columns: Sequence[str] = (),
        *,
        lags: str | int | Sequence[int] = AUTO,
        season: str | int | Sequence[int] | None = AUTO,
        horizon: int = 1,
        levels: Sequence[float] = (),
        loss: str = "squared",
    ) -> None:
        name = type(self).__name__
        names = check_items(name, "columns", columns, "a list of names")
        self.columns = tuple(check_text(name, "columns", one) for one in names)
        if len(set(self.columns)) < len(self.columns):
            raise wrong(name, "columns", "a list of different names", columns)
        if len(self.columns) > MOST_COLUMNS:
            raise InputError(
                f"{name} takes at most {MOST_COLUMNS} columns, and a row costs the square of their number. "
                f"Got {len(self.columns)}. Choose among them, or use TrackingRegression of thalweg.estimators."
            )
        self.lags = USUAL_LAGS if isinstance(lags, str) and lags == AUTO else _read_lags(name, lags)
        self.seasons = _read_season(name, season)
        self.horizon = check_count(name, "horizon", horizon, most=LONGEST_HORIZON)
        self.levels = _read_levels(name, levels)
        self.loss = check_choice(name, "loss", loss, LOSSES)
        self._layout = ForecastLayout(
            columns=len(self.columns),
            lags=self.lags,
            seasons=self.seasons,
            search=isinstance(season, str),
            horizon=self.horizon,
            levels=self.levels,
            loss=self.loss,
        )
        self._memory = Memory(self._layout, moved=self._forget)

    def _forget(self, memory: Memory) -> None:
        self._calls: tuple[Call, Call, memoryview] | None = None  # to ask, to answer, and the clock

    def _ready(self) -> tuple[Call, Call, memoryview]:
        """Return the bound calls of a round."""
        memory = self._memory
        calls = self._calls = memory.call(ask, 0), memory.call(answer, 0.0), memory.state.clock.data
        return calls

    def _ask(self, rows: Floats | None) -> float:
        """Forecast, given the columns of the first rounds; return the forecast of the next value."""
        calls = self._calls or self._ready()
        if 0 < calls[2][CHECK] <= calls[2][ROUNDS]:
            with self._memory.all_or_nothing():
                self._ensure_capacity(self.rounds + 1)
            calls = self._ready()
        call = calls[0]
        call.integers[1] = 0
        if rows is not None:
            self._memory.settings.columns.given[: len(rows)] = rows
            call.integers[1] = len(rows)
        said: float = call.run()
        if said != said:
            call.entry.read(said)
        return said

    # ------------------------------------------------------------------ a round

    def predict(self, row: Mapping[str, object] | ArrayLike | None = None) -> float:
        """Return the forecast of the next value; nan before the first one.

        `row` has the columns of this round, by name or in their order; None or nan for unknown ones. If called
        again in the same round, the last call counts.
        """
        rows = self._read_row(row)[None] if row is not None or self.columns else None
        return self._ask(rows if self.columns else None)

    def forecast(self, X: object = None, levels: Sequence[float] | None = None) -> Forecast:
        """Return forecasts of the next `horizon` values, with intervals at `levels` (by default, the constructor's).

        If there are columns, X has one row of them for each of the next `horizon` rounds.
        """
        name = type(self).__name__
        chosen = self.levels if levels is None else _read_levels(name, levels)
        if not set(chosen) <= set(self.levels):
            raise InputError(
                f"{name}.forecast has intervals at the levels {self.levels} that it was built with. Got {levels!r}. "
                f"Build it with levels={chosen!r}."
            )
        if X is not None and not self.columns:
            raise InputError(f"{name}.forecast takes X only with columns. Build it with columns=[...].")
        self._ask(self._read_rows("forecast", "X", X, self.horizon) if self.columns else None)
        c, at = self._memory.settings, {level: v for v, level in enumerate(self.levels)}
        return Forecast(
            c.mean.copy(),
            {level: c.lower[at[level]].copy() for level in chosen},
            {level: c.upper[at[level]].copy() for level in chosen},
            self._answers(),
        )

    def _answers(self) -> Ints:
        """Return the number of errors behind the intervals of each step."""
        if not self.levels:
            return np.zeros(self.horizon, dtype=np.int64)
        answers: Ints = self._memory.state.spans.answers[self._memory.settings.pool.below]
        return answers

    def update(self, value: float | None) -> None:
        """Learn the value that was forecast, None or nan if it is missing. With columns, call `predict` first."""
        y = np.nan if value is None else real_number(value)
        if not abs(y) <= LARGEST_ENTRY and not is_missing(value):
            raise InputError(
                f"{self._who()}: a value must be a number of at most {LARGEST_ENTRY:g} in size, None if missing. "
                f"Got {short_repr(value)}."
            )
        if self.columns and not self._memory.state.clock[ASKED]:
            raise InputError(f"{self._who()}: call predict(row) with the columns of this round first.")
        changes = self._memory.state.history.counts[CHANGED]
        call = (self._calls or self._ready())[1]
        call.floats[1] = y
        if status := call.run():
            call.entry.read(status)
            with self._memory.all_or_nothing():  # it was not played
                self._ensure_capacity(self.rounds + 1)
                call = self._ready()[1]
                call.floats[1] = y
                call.entry.read(call.run())
        if self._memory.state.history.counts[CHANGED] > changes:
            self._log_changes(changes)

    def run(self, values: ArrayLike, rows: ArrayLike | None = None, *, progress: bool = False) -> Forecasts:
        """Forecast all these values, each before it is seen; the same as alternating `forecast` and `update`.

        `rows` has the columns, one row for each value. Returns arrays whose entry [t, h - 1] is the forecast of
        values[t + h - 1] made before values[t] was seen. For more than one step ahead, columns of later rows
        count as known.
        """
        name = f"{type(self).__name__}.run"
        y = _read_values(name, values)
        T, H, V = y.size, self.horizon, len(self.levels)
        X = self._read_rows("run", "rows", rows, T) if self.columns or rows is not None else np.zeros((T, 0))
        memory = self._memory
        means, lower, upper = np.empty((T, H)), np.empty((T, V, H)), np.empty((T, V, H))
        weights: list[Floats] = []
        with memory.all_or_nothing(), progress_bar(name, T, progress, "row") as tick:
            changes, t = int(memory.state.history.counts[CHANGED]), 0
            while t < T:
                self._ensure_capacity(self.rounds + 1)
                stop = min(T, t + CHUNK)
                shares = np.empty((stop - t, memory.settings.shares.size))
                window = slice(t, min(T, stop + H - 1))
                done = play(memory.handle, X[window], y[t:stop], means[t:stop], lower[t:stop], upper[t:stop], shares)
                weights.append(shares[:done])
                t += done
                tick(done)
            memory.state.clock[ASKED] = 0
        if int(memory.state.history.counts[CHANGED]) > changes:
            self._log_changes(changes)
        return Forecasts(
            means,
            {level: lower[:, v] for v, level in enumerate(self.levels)},
            {level: upper[:, v] for v, level in enumerate(self.levels)},
            _stacked(weights, memory.settings.shares.size),
            self.candidates,
        )

    def _ensure_capacity(self, rounds: int) -> None:
        """Test for seasons if a test is due, and grow to the capacity for a number of rounds."""
        memory = self._memory
        sizes, fields = self._sizes_for(rounds)
        if sizes != memory.sizes:
            memory.grow(sizes)
        for name, values in fields.items():
            memory.block.arrays[name][:] = values

    def _sizes_for(self, rounds: int) -> tuple[dict[str, int], dict[str, tuple[int, ...]]]:
        """Return the sizes needed for a number of rounds, and fields to set after growing. Nothing changes."""
        memory, sizes = self._memory, dict(self._memory.sizes)
        if self.columns and rounds > rounds_for(sizes["slots"]):
            sizes["slots"] = slots_for(rounds)
        if not 0 < memory.state.clock[CHECK] < rounds:
            return sizes, {}
        known = seasons_found(sizes)
        found = *known, *find_seasons(self._recent(), FOUND - len(known), known)
        sizes["first"], sizes["second"] = (*found, 0, 0)[:2]
        played, asked, _ = memory.state.clock.tolist()
        check = next_check(rounds) if len(found) < FOUND else 0
        return sizes, {"found": (sizes["first"], sizes["second"]), "clock": (played, asked, check)}

    def _recent(self) -> Floats:
        """Return the last values, cleaned, in chronological order."""
        s = self._memory.state.history
        t, L = int(s.counts[TIME]), s.z.shape[1]
        return np.asarray(s.z[0, np.arange(max(0, t - L), t) % L])

    def _log_changes(self, before: int) -> None:
        """Log the changes after the first `before`, and call `on_change`."""
        for change in self.changes[before - int(self._memory.state.history.counts[CHANGED]) :]:
            log.info("%s: the level of the series changed, evident in round %d", type(self).__name__, change)
            if self.on_change is not None:
                self.on_change(self, change)

    # ------------------------------------------------------------------ inspection

    @property
    def candidates(self) -> tuple[str, ...]:
        """Names of the candidates, in the order of `weights`."""
        return tuple(self._layout.candidates(seasons_found(self._memory.sizes)))

    @property
    def weights(self) -> dict[str, float]:
        """Share of each candidate in the last forecast of the next value."""
        return dict(zip(self.candidates, self._memory.settings.shares.tolist(), strict=True))

    @property
    def found(self) -> tuple[int, ...]:
        """Seasons that were found in the series itself."""
        return tuple(m for m in self._memory.state.found.tolist() if m)

    @property
    def changes(self) -> list[int]:
        """Rounds, from 1, in which it became evident that the level had changed; the latest 64."""
        s = self._memory.state.history
        n = int(s.counts[CHANGED])
        return [int(s.changes[i % CHANGES]) for i in range(max(0, n - CHANGES), n)]

    # ------------------------------------------------------------------ checks

    def _read_row(self, row: object) -> Floats:
        if isinstance(row, Mapping):
            missing = [name for name in self.columns if name not in row]
            if missing:
                raise InputError(f"{self._who()}: row has no column {missing[0]!r}. Give {', '.join(self.columns)}.")
            items = [row[name] for name in self.columns]
        else:
            items = [] if row is None else check_items(f"{type(self).__name__}.predict", "row", row, "a row of numbers")
        if len(items) != len(self.columns):
            raise InputError(f"{self._who()}: row must have the columns {list(self.columns)}. Got {short_repr(row)}.")
        values = np.array([ABSENT if is_missing(item) else real_number(item) for item in items])
        if (bad := first(~((np.abs(values) <= LARGEST_ENTRY) | (values == ABSENT)))) is not None:
            raise InputError(
                f"{self._who()}: the column {self.columns[bad]!r} must be a number of at most {LARGEST_ENTRY:g}. "
                f"Got {short_repr(items[bad])}."
            )
        return values

    def _read_rows(self, call: str, argument: str, rows: object, count: int) -> Floats:
        """Return the columns of a number of rounds."""
        owner = f"{type(self).__name__}.{call}"
        if rows is None:
            raise InputError(f"{owner} needs '{argument}': {count} rows with the columns {', '.join(self.columns)}.")
        X = named(owner, argument, rows, self.columns) if self.columns else None
        X = real_array(rows) if X is None else X
        if X is None or X.shape != (count, len(self.columns)):
            got = short_repr(rows) if X is None else f"shape {X.shape}"
            raise InputError(f"{owner} needs '{argument}' of shape ({count}, {len(self.columns)}). Got {got}.")
        X = np.where(np.isnan(X), ABSENT, X)
        bad = np.argwhere(~((np.abs(X) <= LARGEST_ENTRY) | (X == ABSENT)))
        if bad.size:
            row, column = bad[0].tolist()
            raise InputError(
                f"{owner}: '{argument}' has {X[row, column]} in row {row}, column {self.columns[column]!r}. "
                f"Numbers are at most {LARGEST_ENTRY:g} in size, nan where one is not known."
            )
        return np.ascontiguousarray(X)


def _stacked(parts: list[Floats], width: int) -> Floats:
    """Concatenate weights of several stretches; candidates that were added later had weight 0 before."""
    wide = [np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in parts]
    return np.concatenate([np.zeros((0, width)), *wide])


def is_missing(value: object) -> bool:
    """Whether a value is missing: None, nan, or the null of a data frame library."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def _read_values(owner: str, values: object) -> Floats:
    """Return a series as an array; None and nan are missing."""
    if isinstance(values, list | tuple):
        values = [np.nan if is_missing(value) else value for value in values]
    array = real_array(values)
    if array is None or array.ndim != 1:
        got = short_repr(values) if array is None else f"shape {array.shape}"
        raise InputError(f"{owner} needs 'values', a list of numbers; None or nan where one is missing. Got {got}.")
    if (bad := first(np.abs(array) > LARGEST_ENTRY)) is not None:
        raise InputError(
            f"{owner}: values[{bad}] is {array[bad]}. A value must be a number up to {LARGEST_ENTRY:g} in size."
        )
    return np.array(array)  # a writable copy: one kind of array fewer for kernels


def _read_season(owner: str, season: object) -> tuple[int, ...]:
    """Return the seasons that are given, in ascending order."""
    expected = f"'auto', None, a whole number from 2 to {LONGEST_SEASON}, or a list of up to {MOST_SEASONS} of them"
    if season is None or (isinstance(season, str) and season == AUTO):
        return ()
    if isinstance(season, str):
        raise wrong(owner, "season", expected, season)
    if isinstance(season, int | np.integer) and not isinstance(season, bool):
        season = () if season == 1 else (season,)
    items = check_items(owner, "season", season, expected)
    found = tuple(sorted(check_count(owner, "season", item, least=2, most=LONGEST_SEASON) for item in items))
    if len(set(found)) < len(found) or len(found) > MOST_SEASONS:
        raise wrong(owner, "season", expected, season)
    return found


def _read_levels(owner: str, levels: object) -> tuple[float, ...]:
    """Return levels in ascending order."""
    if isinstance(levels, float | np.floating):
        levels = (levels,)
    found = tuple(sorted(real_number(level) for level in check_items(owner, "levels", levels, "a list of shares")))
    if not all(0.01 <= level <= 0.999 for level in found) or len(set(found)) < len(found):
        raise wrong(owner, "levels", "different shares from 0.01 to 0.999, such as (0.8, 0.95)", levels)
    return found


def _read_lags(owner: str, lags: object) -> tuple[int, ...]:
    """Return lags in ascending order, always with lag 1; a number n means 1..n."""
    if isinstance(lags, int | np.integer) and not isinstance(lags, bool):
        return tuple(range(1, check_count(owner, "lags", lags, least=1, most=MOST_LAGS) + 1))
    items = check_items(owner, "lags", lags, f"'auto', a number, or a list of up to {MOST_LAGS} whole numbers")
    found = sorted({1, *(check_count(owner, "lags", item, most=LONGEST_LAG) for item in items)})
    if len(items) > MOST_LAGS:
        raise wrong(owner, "lags", f"at most {MOST_LAGS} lags, since a row costs the square of their number", lags)
    return tuple(found)
