"""Intervals that keep their coverage: `ConformalTracker`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thalweg._core.memory import Memory
from thalweg._core.types import Floats, Ints
from thalweg._kernels.handle import parts
from thalweg._kernels.jit import Kernel, inner, kernel
from thalweg._kernels.pointers import call
from thalweg.estimators.conformal import ConformalTracker
from thalweg.fleet.chains import Chains, after
from thalweg.fleet.families.base import Family, Growth, ordered
from thalweg.fleet.kernels import FULL, REFUSED, stopped
from thalweg.fleet.reading import BatchRows, check_numbers
from thalweg.parts.conformal import ANSWERED, ASKED, Sides, SideTurn, answer_sides, ask_sides

FORECAST = "y_hat"  # the column of forecasts


class ErrorRows(NamedTuple):
    """The rows of a batch."""

    following: Ints  # (n,), or empty: see `Chains`
    forecasts: Floats  # (n,)
    values: Floats  # (n,)
    band: Floats  # (n, 2) low and high
    begun: Ints  # (n,) 1 in the row that the next answer is for, where a chain goes on after a stop
    out: Floats  # (n, 2) thresholds above and below


@inner
def _fits(sides: Any) -> bool:
    """Whether there is capacity for an answer."""
    return call(sides.has_capacity, sides.above) and (not sides.two or call(sides.has_capacity, sides.below))


@inner
def _above(e: float) -> float:
    """The part above 0; 0.0 for -0.0."""
    return e if e > 0.0 else 0.0


@inner
def _enclose(sides: Any, rows: Any, t: int) -> None:
    """band <- the interval of row t."""
    rows.band[t, 0] = rows.forecasts[t] - (rows.out[t, 1] if sides.two else rows.out[t, 0])
    rows.band[t, 1] = rows.forecasts[t] + rows.out[t, 0]


@kernel
def cover_rows(seat: Any, batch: Any, first: int) -> int:
    """Intervals for the rows of a chain, as `run_sides` makes them: answers are `horizon - 1` rows late."""
    sides, rows = parts(seat), parts(batch)
    tail, asking, late = first, first, sides.horizon - 1
    waiting = sides.clock[ASKED] - sides.clock[ANSWERED]
    if waiting > 0 and rows.begun[first] == 0:
        return stopped(first, REFUSED)
    for _ in range(waiting):
        asking = after(rows.following, asking)
    while tail >= 0:
        waiting = sides.clock[ASKED] - sides.clock[ANSWERED]
        answers = waiting == late or asking < 0
        if answers and not _fits(sides):
            rows.begun[tail] = 1
            return stopped(tail, FULL)
        if asking >= 0:
            row = sides.clock[ASKED] % sides.horizon
            rows.out[asking, 0] = call(sides.ask, sides.above, row)
            if sides.two:
                rows.out[asking, 1] = call(sides.ask, sides.below, row)
            sides.clock[ASKED] += 1
            _enclose(sides, rows, asking)
            asking = after(rows.following, asking)
        if answers:
            row = sides.clock[ANSWERED] % sides.horizon
            e = rows.values[tail] - rows.forecasts[tail]
            call(sides.answer, sides.above, row, _above(e) if sides.two else abs(e))
            if sides.two:
                call(sides.answer, sides.below, row, _above(-e))
            sides.clock[ANSWERED] += 1
            tail = after(rows.following, tail)
    return tail  # DONE


@kernel
def ask_rows(seat: Any, batch: Any, first: int) -> int:
    """Intervals for the rows of a chain, which then wait for their answers."""
    sides, rows = parts(seat), parts(batch)
    t = first
    while t >= 0:
        if sides.clock[ASKED] - sides.clock[ANSWERED] >= sides.horizon:
            return stopped(t, REFUSED)
        ask_sides(seat, rows.forecasts[t], 1, rows.out[t])
        _enclose(sides, rows, t)
        t = after(rows.following, t)
    return t  # DONE


@kernel
def answer_rows(seat: Any, batch: Any, first: int) -> int:
    """The values that came, for the predictions that have waited longest."""
    sides, rows = parts(seat), parts(batch)
    t = first
    while t >= 0:
        if sides.clock[ASKED] == sides.clock[ANSWERED]:
            return stopped(t, REFUSED)
        e = rows.values[t] - sides.forecasts[sides.clock[ANSWERED] % sides.horizon]
        above, below = (_above(e), _above(-e)) if sides.two else (abs(e), abs(e))
        if not answer_sides(seat, above, below):
            return stopped(t, FULL)
        t = after(rows.following, t)
    return t  # DONE


STEPS: Mapping[str, Kernel[..., Any]] = {"run": cover_rows, "predict": ask_rows, "update": answer_rows}


class Trackers(Family):
    """`ConformalTracker` with any arguments."""

    calls = ("run", "predict", "update")
    columns = (FORECAST,)

    def memory(self, learner: ConformalTracker) -> Memory:
        """See `Family`."""
        return learner._memory

    def blank(self) -> ConformalTracker:
        """See `Family`."""
        return self.template.clone()  # type: ignore[no-any-return]

    def tree(self, learner: ConformalTracker) -> Sides:
        """See `Family`."""
        return learner._memory.handle.tree  # type: ignore[no-any-return]

    def spare(self, learner: ConformalTracker) -> list[NDArray[Any]]:
        """Scores and ratios around quantiles, in order, and how many Trackers have not begun."""
        sides: Sides = learner._memory.handle.tree
        turns: list[SideTurn] = [one.tree for one in (sides.above, sides.below)[: 1 + sides.two]]
        kept = [array for turn in turns for array in (turn.settings.near, turn.settings.spans)]
        return [*kept, turns[0].weigher.pending]

    def grow(self, learner: ConformalTracker) -> Growth:
        """See `Family`."""
        memory = learner._memory
        return Growth(ordered(learner._layout.larger(memory.state, memory.sizes)), {})

    # ------------------------------------------------------------------ rows

    def check(self, rows: BatchRows, target: str, learns: bool) -> None:
        """See `Family`: nothing may be missing."""
        check_numbers(rows.bad, FORECAST, rows.columns[:, 0], missing=False)
        if learns:
            check_numbers(rows.bad, target, rows.target, missing=False)

    def batch(self, call: str, chains: Chains, data: Mapping[str, NDArray[Any]]) -> tuple[Kernel[..., Any], Any]:
        """See `Family`."""
        n = chains.rows
        forecasts = np.zeros(0) if call == "update" else np.ascontiguousarray(data["columns"][:, 0])
        values = np.zeros(0) if call == "predict" else data["values"]
        band = np.full((0 if call == "update" else n, 2), np.nan)
        return STEPS[call], ErrorRows(
            chains.following, forecasts, values, band, np.zeros(n, dtype=np.int64), np.zeros((n, 2))
        )

    def said(self, call: str, batch: ErrorRows) -> Floats:
        """See `Family`."""
        return batch.band

    def names(self, call: str) -> tuple[str, ...]:
        """See `Family`."""
        return "low", "high"

    def mend(self, batch: ErrorRows, row: int, why: int, learner: ConformalTracker) -> str:
        """See `Family`."""
        if learner.waiting:
            return f"{learner.waiting} prediction(s) of its key wait for an answer: call update first"
        return "no prediction of its key waits for an answer: call predict first"
