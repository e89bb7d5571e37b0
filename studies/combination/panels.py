"""Real panels: the series of the study of forecasting, and experts that forecast each of them one round ahead.

"simple": means, last values and smoothed ones, good and bad; "models": exponential smoothing with a damped trend and a
season, and autoregressions, all of them reasonable and much alike. Panels of fewer than 60 rounds are left out. The
Aggregator's constants may be chosen on the half "choose", never on "confirm".
"""

from __future__ import annotations

import functools
import time

import numpy as np
from thalweg.lab.studies.combination import peers, runs
from thalweg.lab.studies.forecasting import series as forecasting

from thalweg._core.types import Floats
from thalweg.errors import MissingExtraError
from thalweg.estimators import Aggregator
from thalweg.lab.report import Row

__all__ = ["CONTENDERS", "HINDSIGHT", "KINDS", "OPERA", "installed", "play_one"]

OPERA = {**runs.RULES, **dict.fromkeys(peers.PEERS)}
HINDSIGHT = "best expert"
CONTENDERS = ["Aggregator", *OPERA, HINDSIGHT]
FEWEST = 60  # rounds


def smoothed(z: Floats, a: float) -> Floats:
    """Forecasts by exponential smoothing."""
    level, said = z[0], np.empty(z.size)
    for t, value in enumerate(z):
        said[t] = level
        level += a * (value - level)
    return said


def damped(z: Floats, m: int, a: float, b: float, g: float, keep: float) -> Floats:
    """Forecasts by additive exponential smoothing of level (a), damped trend (b) and a season of m rounds (g)."""
    season, trend, level, said = np.zeros(m), 0.0, z[:m].mean(), np.empty(z.size)
    season[: z[:m].size] = z[:m] - level  # the first season is not scored
    for t, value in enumerate(z):
        ahead, turn = level + keep * trend, t % m
        said[t] = ahead + season[turn]
        before, level = level, ahead + a * (value - season[turn] - ahead)
        trend = b * (level - before) + (1 - b) * keep * trend
        season[turn] += g * (value - level - season[turn])
    return said


def autoregressive(z: Floats, lags: tuple[int, ...], keep: float = 1.0) -> Floats:
    """Forecasts by recursive least squares on lags and an intercept, from the last value on."""
    most, w = max(lags), np.eye(1, len(lags) + 1)[0]
    P, scale, said = 1e3 * np.eye(w.size), float(np.std(z[: max(20, most + 2)])) or 1.0, np.empty(z.size)
    x = (z - z[0]) / scale
    for t in range(z.size):
        if t < most:
            said[t] = x[max(t - 1, 0)]
            continue
        a = np.append(x[t - np.array(lags)], 1.0)
        said[t], u = a @ w, P @ a
        width = keep + a @ u
        w, P = w + u / width * (x[t] - said[t]), (P - np.outer(u, u) / width) / keep
    return z[0] + scale * said


def simple(z: Floats, m: int) -> tuple[Floats, Floats]:
    """Ten experts, some of them bad for this series, and the series."""
    X, y = runs.forecasts(z, m, 1)
    more = [*(smoothed(z, a) for a in (0.1, 0.5, 0.8)), damped(z, 1, 0.4, 0.2, 0.0, 0.9)]
    return np.column_stack([X, *(column[-y.size :] for column in more)]), y


def models(z: Floats, m: int) -> tuple[Floats, Floats]:
    """Nine experts that are much alike, and the series, after two seasons and ten rounds."""
    settings = (0.2, 0.0, 0.1), (0.4, 0.02, 0.1), (0.6, 0.02, 0.2), (0.8, 0.05, 0.2), (0.1, 0.01, 0.05)
    columns = [damped(z, m, *one, keep=0.95) for one in settings]
    lags = (1,), (1, 2), tuple(sorted({1, 2, m}))
    columns += [autoregressive(z, one) for one in lags]
    columns += [autoregressive(z, tuple(sorted({1, 2, m, m + 1})), 0.995)]
    first = 2 * m + 10
    return np.column_stack(columns)[first:], z[first:]


KINDS = {"simple": simple, "models": models}


@functools.lru_cache(maxsize=4)  # a worker plays many contenders on the same data
def draw(name: str, kind: str, horizon: int | None) -> tuple[Floats, Floats]:
    """Forecasts and what came true, in units of the series' mean step; fewer rounds than `FEWEST` where it is short."""
    z, m = forecasting.values(name), max(forecasting.SERIES[name].season, 2)
    if z.size < 3 * m + 20:
        return np.empty((0, 1)), np.empty(0)
    X, y = KINDS[kind](z, m)
    unit = float(np.std(np.diff(y))) or 1.0
    return np.ascontiguousarray(X[:horizon] / unit), np.ascontiguousarray(y[:horizon] / unit)


def installed(names: tuple[str, ...]) -> tuple[str, ...]:
    """The series whose data is there and that are long enough for both kinds."""
    found = []
    for name in names:
        try:
            if all(draw(name, kind, None)[1].size >= FEWEST for kind in KINDS):
                found.append(name)
        except MissingExtraError:
            pass
    return tuple(found)


def play_one(*, series: str, kind: str, who: str, horizon: int | None) -> Row:
    """The error of one contender on one panel: the root of its mean square."""
    X, y = draw(series, kind, horizon)
    started = time.perf_counter()
    if who == HINDSIGHT:
        rmse = float(np.sqrt(((X - y[:, None]) ** 2).mean(axis=0).min()))
    else:
        said = peers.play(who, X, np.ones_like(X), y, 1) if who in peers.PEERS else (
            Aggregator(rule=OPERA.get(who)).run(X, y).said
        )  # fmt: skip
        rmse = float(np.sqrt(np.mean((said - y) ** 2)))
    row: Row = {"series": series, "kind": kind, "half": forecasting.SERIES[series].half, "who": who, "rounds": y.size}
    return row | {"experts": X.shape[1], "rmse": rmse, "seconds": time.perf_counter() - started}
