"""The plan of a forecaster: its candidates, and the capacity for rows with columns and for seasons that it finds."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from thalweg._core.memory import Saved, whole_numbers
from thalweg._core.state import Nothing, Past, Plan
from thalweg.parts.forecast.columns import ColumnsSettings, ColumnsState
from thalweg.parts.forecast.combination import combination_plan
from thalweg.parts.forecast.direct import direct_plan
from thalweg.parts.forecast.lagged import lagged_plan, reach
from thalweg.parts.forecast.model import (
    CHECK,
    FOUND,
    OTHERS,
    SEASONAL,
    ForecastSettings,
    ForecastState,
    forecast_holds,
)
from thalweg.parts.forecast.past import history_plan
from thalweg.parts.forecast.seasons import KEPT_VALUES, LONGEST, next_check
from thalweg.parts.forecast.smoothing import bank_plan
from thalweg.parts.forecast.spans import spans_plan
from thalweg.parts.linear.plan import LinearLayout, begin_linear
from thalweg.parts.records import slots_for, slots_of

LOSSES = {"squared": "squared_error", "absolute": "absolute_error"}  # of the model of columns


def seasons_found(sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Return the seasons that were found in the series."""
    return tuple(m for m in (sizes["first"], sizes["second"]) if m)


@dataclass(frozen=True)
class ForecastLayout:
    """A forecaster in all its sizes: `slots` of the model of columns, and two seasons found so far (0: none)."""

    columns: int
    lags: tuple[int, ...]
    seasons: tuple[int, ...]
    search: bool  # whether to look for seasons
    horizon: int
    levels: tuple[float, ...]
    loss: str

    def sizes(self) -> dict[str, int]:
        """Return the sizes of a fresh state."""
        return {"slots": slots_for(0) if self.columns else 0, "first": 0, "second": 0}

    def sizes_of(self, saved: Saved) -> dict[str, int]:
        """Return the sizes of a saved state."""
        first, second = whole_numbers(saved, "found", FOUND)
        found = [m for m in (first, second) if m]
        possible = all(3 <= m < KEPT_VALUES // 2 for m in found) and len(set(found)) == len(found)
        if found and not (self.search and possible):
            raise ValueError(f"'found' must be seasons that can be found. Got {[first, second]}")
        if second and not first:
            raise ValueError("'found' has a second season without a first")
        slots = slots_of(saved["columns.model.jury.records.born"]) if self.columns else 0
        return {"slots": slots, "first": first, "second": second}

    def plan(self, sizes: Mapping[str, int]) -> Plan:
        """Return the plan for these sizes."""
        return _plan(self, sizes["slots"], seasons_found(sizes))

    def candidates(self, found: tuple[int, ...]) -> list[str]:
        """Return the names of the candidates, in their order, with the seasons found."""
        names = ["naive", "drift", "damped trend", "lags"]
        names += [] if self.seasons else ["direct", "log direct"]
        names += ["columns"] if self.columns else []
        kinds = ["level slow", "level", "trend", "trend fast"]
        for m in (*self.seasons, *found):
            names += [f"seasonal naive {m}", *(f"{kind} {m}" for kind in kinds), *(f"log {kind} {m}" for kind in kinds)]
            names += [f"lags {m}", f"seasonal differences {m}", f"log seasonal differences {m}", f"direct {m}"]
            names += [f"log direct {m}"]
        return names


@lru_cache(256)  # each size is planned once for all forecasters of a kind
def _plan(layout: ForecastLayout, slots: int, found: tuple[int, ...]) -> Plan:
    seasons, horizon, plain = (*layout.seasons, *found), layout.horizon, not layout.seasons
    K, Q = len(layout.candidates(found)), len(seasons)
    pool = combination_plan(horizon, K, layout.loss == "squared")
    kept = max(KEPT_VALUES if layout.search else 0, reach(layout.lags, seasons))
    parts = {
        "history": history_plan(kept, horizon),
        "bank": bank_plan(seasons),
        "lagged": lagged_plan(layout.lags, seasons),
        "direct": direct_plan(2 * (int(plain) + Q), pool.settings.horizons),
        "pool": pool,
        "spans": spans_plan(layout.levels, pool.sizes["A"], pool.sizes["S"]),
        "columns": _columns_plan(layout, slots),
    }

    def begin(s: ForecastState, c: ForecastSettings) -> None:
        for name, plan in parts.items():
            plan.begin(getattr(s, name), getattr(c, name))
        s.clock[CHECK] = next_check(0) if layout.search else 0

    settings = ForecastSettings(
        seasons=np.array(seasons, dtype=np.int64),
        plain=plain,
        calm=max((*(2 * m for m in seasons), LONGEST if layout.search else 0), default=0),
        at_columns=OTHERS + 2 * plain if layout.columns else -1,
        at_seasons=K - SEASONAL * Q,
        search=layout.search,
    )
    sizes = {"K": K, "H": horizon, "V": len(layout.levels)}
    return Plan(ForecastState, settings, sizes, parts, holds=forecast_holds, begin=begin)


def _columns_plan(layout: ForecastLayout, slots: int) -> Plan:
    if not layout.columns:
        return Plan(Nothing, ())
    features = 1 + max(0, len(layout.lags) - 1) + layout.columns
    model = LinearLayout(features, LOSSES[layout.loss])
    return Plan(
        ColumnsState,
        ColumnsSettings(np.array(layout.lags, dtype=np.int64)),
        {"C": layout.columns, "X": features, "H": layout.horizon},
        {"model": model.plan({**model.sizes(), "slots": slots})},
        pasts=lambda s, c, past: {"model": Past.whole(int(s.model.clock[0]))},
        begin=lambda s, c: begin_linear(s.model, c.model),
    )
