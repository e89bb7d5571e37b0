"""One run of the study of forecasts: a series, a method, and how good its forecasts are.

Only the last rounds are scored (`start_of`): errors one step ahead and at the horizon H of the series, relative to the
mean absolute step of the rounds before (by seasons where there is one) as MASE; coverage and interval score,

    u - l + 2/(1 - level) ((l - y)_+ + (y - u)_+),

of the intervals that a method has. Coverage of ours is also counted over the whole run, for every horizon.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from thalweg.lab.studies.forecasting.peers import LEVELS, PEERS, Made, start_of
from thalweg.lab.studies.forecasting.series import SERIES, values

from thalweg._core.types import Floats
from thalweg.estimators import Forecaster
from thalweg.lab.report import Row

OURS = "Forecaster"
METHODS = (OURS, *PEERS)
SHOWN = ("airline passengers", "electricity, England", "beer", "lynx", "water", "flights")  # whose fans are drawn
AHEAD = ("1", "H")


def ours(y: Floats, season: int, horizon: int) -> Made:
    """The Forecaster, told the season and nothing else: forecasts of every round."""

    def run(z: Floats) -> Any:
        return Forecaster(season=season, horizon=horizon, levels=LEVELS).run(z)

    run(y[:3])  # kernels are loaded before time is taken
    begin = time.process_time()
    out = run(y)
    seconds = time.process_time() - begin
    return Made(out.mean, dict(out.lower), dict(out.upper), seconds, y.size)


def play_one(*, series: str, method: str, horizon: int | None = None) -> Row:
    """One method on one series, or on its last `horizon` values."""
    about, y = SERIES[series], values(series)
    y = np.ascontiguousarray(y if horizon is None else y[-horizon:])
    season, H = about.season, about.horizon
    start = start_of(y.size, season)
    row: Row = {"series": series, "method": method, "half": about.half, "frequency": about.frequency}
    row |= {"season": season, "horizon": H, "rounds": y.size, "start": start}
    if method != OURS:
        made = PEERS[method](y, season, H, start)
        return row | judged(made, y, start, season) | {"by_horizon": {}, "fan": {}}
    whole = ours(y, season, H)
    last = Made(whole.mean[start:], _from(whole.lower, start), _from(whole.upper, start), whole.seconds, whole.rows)
    covered = {str(level): _by_horizon(whole, y, level) for level in LEVELS}
    row |= judged(last, y, start, season) | {"by_horizon": covered}
    return row | {"fan": _fan(whole, y, season) if series in SHOWN else {}}


def _from(bands: dict[float, Floats], start: int) -> dict[float, Floats]:
    return {level: band[start:] for level, band in bands.items()}


def judged(made: Made, y: Floats, start: int, season: int) -> Row:
    """How good forecasts are that begin in round `start`; None where some is not finite or there are none."""
    H = made.mean.shape[1]
    scale = float(np.mean(np.abs(y[season:start] - y[: start - season])))
    row: Row = {"seconds": made.seconds, "rows": made.rows}
    for name, h in zip(AHEAD, (1, H), strict=True):
        said, came = _pairs(made.mean, y, start, h)
        errors = said - came
        fine = bool(np.isfinite(errors).all())
        row[f"rmse {name}"] = float(np.sqrt(np.mean(errors**2))) if fine else None
        row[f"mase {name}"] = float(np.mean(np.abs(errors))) / scale if fine and scale > 0 else None
        for level in LEVELS:
            inside, score = None, None
            if level in made.lower:
                inside, score, _ = covered(made, y, start, h, level)
            row |= {f"coverage {level} {name}": inside, f"score {level} {name}": score}
    return row


def _pairs(said: Floats, y: Floats, start: int, h: int) -> tuple[Floats, Floats]:
    """Return forecasts h steps ahead, and observations."""
    came = y[start + h - 1 :]
    return said[: came.size, h - 1], came


def covered(made: Made, y: Floats, start: int, h: int, level: float) -> tuple[float | None, float | None, int]:
    """Share inside, interval score and number of the finite intervals h steps ahead."""
    low, came = _pairs(made.lower[level], y, start, h)
    high, _ = _pairs(made.upper[level], y, start, h)
    known = np.isfinite(low) & np.isfinite(high)
    low, high, came = low[known], high[known], came[known]
    if not came.size:
        return None, None, 0
    missed = np.maximum(low - came, 0.0) + np.maximum(came - high, 0.0)
    score = high - low + 2 / (1 - level) * missed
    return float(np.mean(missed == 0)), float(np.mean(score)), int(came.size)


def _by_horizon(made: Made, y: Floats, level: float) -> list[list[Any]]:
    """For every horizon: coverage of the whole run, and the number of answers."""
    found = [covered(made, y, 0, h, level) for h in range(1, made.mean.shape[1] + 1)]
    return [[inside, count] for inside, _, count in found]


def _fan(made: Made, y: Floats, season: int) -> Row:
    """The last forecast with all its answers, and the values before it."""
    H = made.mean.shape[1]
    t = y.size - H
    shown = max(3 * season, 3 * H)
    bands = {str(level): [made.lower[level][t].tolist(), made.upper[level][t].tolist()] for level in LEVELS}
    return {"values": y[max(0, t - shown) :].tolist(), "mean": made.mean[t].tolist(), "bands": bands}
