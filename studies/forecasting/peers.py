"""Forecasters of others, and the naive ones: every one forecasts 1 to H steps at each round from `start` on.

Models of statsforecast are fitted four times over these rounds, to the last 240 values at most, and between take the
new values with `forward`. Settings of AutoARIMA keep its search short. AutoETS takes no season of more than 24 and does
without it. river's learn every value: HoltWinters with the rates of river's own example; SNARIMAX with differences,
three lags and one of the season, its targets scaled (of seven settings tried on the half "choose" the best: with past
errors as features, as in river's own example, it runs away on some series).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np

from thalweg._core.extras import need
from thalweg._core.types import Floats

LEVELS = (0.8, 0.95)
FITS, HISTORY = 4, 240


@dataclass
class Made:
    """Forecasts of one method: row i is made before the value `start` + i is seen, column h - 1 is h steps ahead."""

    mean: Floats
    lower: dict[float, Floats] = field(default_factory=dict)
    upper: dict[float, Floats] = field(default_factory=dict)
    seconds: float = 0.0
    rows: int = 0  # values that were worked through in these seconds


@contextmanager
def _timed(made: Made) -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        begin = time.process_time()
        yield
        made.seconds += time.process_time() - begin


def _room(rows: int, horizon: int, intervals: bool = True) -> Made:
    def empty() -> Floats:
        return np.full((rows, horizon), np.nan)

    if not intervals:
        return Made(empty(), rows=rows)
    return Made(empty(), {level: empty() for level in LEVELS}, {level: empty() for level in LEVELS}, rows=rows)


def _write(made: Made, i: int, said: dict[str, Any]) -> None:
    made.mean[i] = said["mean"]
    for level in made.lower:
        made.lower[level][i] = said[f"lo-{round(100 * level)}"]
        made.upper[level][i] = said[f"hi-{round(100 * level)}"]


def _models() -> Any:
    return need("statsforecast.models", "peers", "This contender")


def _refitted(make: Callable[[int], Any], history: int = HISTORY) -> Callable[..., Made]:
    def forecast(y: Floats, m: int, H: int, start: int) -> Made:
        made = _room(y.size - start, H)
        fits = {start + i * (y.size - start) // FITS for i in range(FITS)}
        model, first, percent = make(m), 0, [round(100 * level) for level in LEVELS]
        with _timed(made):
            for t in range(start, y.size):
                if t in fits:
                    first = max(0, t - history)
                    model = make(m).fit(y[first:t])
                _write(made, t - start, model.forward(y[first:t], h=H, level=percent))
        return made

    return forecast


def _repeated(seasonal: bool) -> Callable[..., Made]:
    """The last value, or that of the last season; intervals of a (seasonal) random walk with normal steps."""

    def forecast(y: Floats, m: int, H: int, start: int) -> Made:
        made, m = _room(y.size - start, H), m if seasonal else 1
        steps, z = np.arange(H), {level: NormalDist().inv_cdf((1 + level) / 2) for level in LEVELS}
        with _timed(made):
            for t in range(start, y.size):
                past = y[max(0, t - HISTORY) : t]
                said = past[past.size - m + steps % m]
                spread = np.sqrt(np.mean((past[m:] - past[:-m]) ** 2) * (steps // m + 1))
                made.mean[t - start] = said
                for level in LEVELS:
                    made.lower[level][t - start] = said - z[level] * spread
                    made.upper[level][t - start] = said + z[level] * spread
        return made

    return forecast


def _river(make: Callable[[int], Any]) -> Callable[..., Made]:
    def forecast(y: Floats, m: int, H: int, start: int) -> Made:
        made, model = _room(y.size - start, H, intervals=False), make(m)
        made.rows = y.size
        with _timed(made):
            for t, value in enumerate(y.tolist()):
                if t >= start:
                    made.mean[t - start] = model.forecast(H)
                model.learn_one(value)
        return made

    return forecast


def _auto_arima(m: int) -> Any:
    return _models().AutoARIMA(season_length=m, approximation=True, nmodels=12, max_p=3, max_q=3, max_P=1, max_Q=1)


def _holt_winters(m: int) -> Any:
    module = need("river.time_series", "peers", "This contender")
    return module.HoltWinters(alpha=0.3, beta=0.1, gamma=0.6 if m > 1 else None, seasonality=m if m > 1 else 0)


def _snarimax(m: int) -> Any:
    module = need("river.time_series", "peers", "This contender")
    preprocessing, linear = need("river.preprocessing", "peers", "It"), need("river.linear_model", "peers", "It")
    model = preprocessing.StandardScaler() | preprocessing.TargetStandardScaler(linear.LinearRegression())
    orders = {"p": 3, "d": 1, "q": 0, "m": m, "sp": 1, "sd": 1} if m > 1 else {"p": 3, "d": 1, "q": 0}
    return module.SNARIMAX(**orders, regressor=model)


AUTOS = ("AutoETS", "AutoTheta", "AutoARIMA")
NAIVES = ("Naive", "SeasonalNaive")
FROM = {"statsforecast": (*AUTOS, "MSTL"), "river": ("HoltWinters", "SNARIMAX")}
PEERS: dict[str, Callable[..., Made]] = {
    "Naive": _repeated(False),
    "SeasonalNaive": _repeated(True),
    "AutoETS": _refitted(lambda m: _models().AutoETS(season_length=m if m <= 24 else 1)),
    "AutoTheta": _refitted(lambda m: _models().AutoTheta(season_length=m)),
    "AutoARIMA": _refitted(_auto_arima),
    "MSTL": _refitted(lambda m: _models().MSTL(season_length=m)),
    "HoltWinters": _river(_holt_winters),
    "SNARIMAX": _river(_snarimax),
}


def start_of(T: int, m: int) -> int:
    """The first round that is scored: two seasons are known, and 100 rounds or 60 % of them follow, at least 35."""
    start = max(2 * m + 12, T - 100, int(0.4 * T))
    return start if T - start >= 35 else max(2 * m + 5, T - 45)
