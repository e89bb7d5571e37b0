"""Forecasters: run, predict, forecast and update."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thalweg._core.memory import Memory
from thalweg._core.types import Floats, Ints
from thalweg._kernels.handle import Closed, parts
from thalweg._kernels.jit import Kernel, kernel
from thalweg._kernels.pointers import Pointer, call
from thalweg.estimators.forecaster import Forecaster
from thalweg.fleet.chains import Chains, after
from thalweg.fleet.families.base import Family, Growth, ordered
from thalweg.fleet.kernels import DONE, FULL, REFUSED, stopped
from thalweg.fleet.reading import BatchRows
from thalweg.parts.forecast.model import ASKED, CHECK, PLAYED, ROUNDS, answer, ask
from thalweg.parts.forecast.past import ABSENT

MEAN = "thalweg"  # the column of forecasts


class ForecasterSeat(NamedTuple):
    """A forecaster as steps see it."""

    ask: Pointer
    answer: Pointer
    handle: Closed  # the argument of both
    clock: Ints
    given: Floats  # (H, C) columns of the next rounds
    mean: Floats  # (H,)
    lower: Floats  # (V, H)
    upper: Floats


class ValueRows(NamedTuple):
    """The rows of a batch."""

    following: Ints  # (n,), or empty: see `Chains`
    columns: Floats  # (n, C)
    values: Floats  # (n,)
    ask: bool  # whether to forecast
    learn: bool  # whether to see the values
    known: int  # how many rows of a chain, from the present one on, have columns that are known
    once: bool  # whether only one forecast is made for a chain
    mean: Floats  # (n, steps) the forecasts of the first steps
    lower: Floats  # (n, V, steps)
    upper: Floats


@kernel
def forecast_rows(seat: Any, batch: Any, first: int) -> int:
    """Forecast the rows of a chain, see their values, or both in turn."""
    seer, rows = parts(seat), parts(batch)
    C, steps, t = seer.given.shape[1], rows.mean.shape[1], first
    while t >= 0:
        if seer.clock[CHECK] > 0 and seer.clock[ROUNDS] >= seer.clock[CHECK]:
            return stopped(t, FULL)
        if rows.ask:
            known, at = 0, t
            while C > 0 and known < rows.known and at >= 0:
                for j in range(C):
                    seer.given[known, j] = rows.columns[at, j]
                known += 1
                at = after(rows.following, at)
            call(seer.ask, seer.handle, known)
            for h in range(steps):
                rows.mean[t, h] = seer.mean[h]
                for v in range(seer.lower.shape[0]):
                    rows.lower[t, v, h] = seer.lower[v, h]
                    rows.upper[t, v, h] = seer.upper[v, h]
        if rows.learn:
            if C > 0 and seer.clock[ASKED] == 0:
                return stopped(t, REFUSED)
            if call(seer.answer, seer.handle, rows.values[t]) != PLAYED:
                return stopped(t, FULL)
        if rows.once:
            return DONE
        t = after(rows.following, t)
    return DONE


class Forecasters(Family):
    """`Forecaster` with any arguments."""

    calls = ("run", "predict", "forecast", "update")

    def __init__(self, template: Forecaster, columns: tuple[str, ...] = ()) -> None:
        super().__init__(template)
        self.columns = template.columns

    def memory(self, learner: Forecaster) -> Memory:
        """See `Family`."""
        return learner._memory

    def blank(self) -> Forecaster:
        """See `Family`."""
        return self.template.clone()  # type: ignore[no-any-return]

    def tree(self, learner: Forecaster) -> ForecasterSeat:
        """See `Family`."""
        memory = learner._memory
        handle, s, c = memory.handle, memory.state, memory.settings
        return ForecasterSeat(
            Pointer(ask, "f8(any,i8)", (handle.kind, "i8")),
            Pointer(answer, "i8(any,f8)", (handle.kind, "f8")),
            Closed(handle),
            s.clock,
            c.columns.given if learner.columns else np.zeros((learner.horizon, 0)),
            c.mean,
            c.lower,
            c.upper,
        )

    def grow(self, learner: Forecaster) -> Growth:
        """See `Family`."""
        sizes, fields = learner._sizes_for(learner.rounds + 1)
        return Growth(ordered(sizes), fields)

    # ------------------------------------------------------------------ rows

    def check(self, rows: BatchRows, target: str, learns: bool) -> None:
        """See `Family`: columns that are not known are ABSENT."""
        super().check(rows, target, learns)
        rows.columns[np.isnan(rows.columns)] = ABSENT

    def batch(self, call: str, chains: Chains, data: Mapping[str, NDArray[Any]]) -> tuple[Kernel[..., Any], Any]:
        """See `Family`."""
        n, H, V = chains.rows, self.template.horizon, len(self.template.levels)
        asks, learns = call != "update", call in ("run", "update")
        steps = self.steps(call) if asks else 0
        values = ValueRows(
            chains.following,
            data["columns"] if asks else np.zeros((n, 0)),
            data["values"] if learns else np.zeros(0),
            asks,
            learns,
            1 if call == "predict" else H,
            call == "forecast" and bool(self.columns),
            np.full((n, steps), np.nan),
            *(np.full((n, V, steps), np.nan) for _ in range(2)),
        )
        return forecast_rows, values

    def said(self, call: str, batch: ValueRows) -> Floats:
        """See `Family`: means, then the bounds of each level."""
        n, V, steps = batch.lower.shape
        if V == 0:
            return batch.mean
        found = np.empty((n, steps, 1 + 2 * V))
        found[:, :, 0] = batch.mean
        found[:, :, 1::2], found[:, :, 2::2] = (one.transpose(0, 2, 1) for one in (batch.lower, batch.upper))
        return found.reshape(n, steps * (1 + 2 * V))

    def steps(self, call: str) -> int:
        """See `Family`."""
        return self.template.horizon if call in ("run", "forecast") else 1

    def names(self, call: str) -> tuple[str, ...]:
        """See `Family`."""
        bounds = (f"{MEAN}-{side}-{100 * level:.10g}" for level in self.template.levels for side in ("lo", "hi"))
        return MEAN, *bounds

    def mend(self, batch: ValueRows, row: int, why: int, learner: Forecaster) -> str:
        """See `Family`."""
        return "predict must come first, with the columns of this round"
