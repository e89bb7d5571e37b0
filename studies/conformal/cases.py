"""The streams of the study of intervals: real series with a simple forecaster, and synthetic errors.

The seed of a synthetic stream is a hash of its name. Forecasts: the last value (persistence); recursive least squares
on the last three values and, where there is a season, the one a season ago; the value a season ago.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from thalweg._core.extras import need
from thalweg._core.types import Floats
from thalweg._kernels.jit import allocating
from thalweg.errors import MissingExtraError
from thalweg.lab.jobs import seed_of

LAGS, FORGETTING = 3, 0.999  # of recursive least squares
HORIZON = 5_000  # rounds of a synthetic stream
Generator = np.random.Generator


@dataclass(frozen=True)
class Case:
    """A stream: one line about it, and the function that makes it: (y_hat, y), from (rng, T) where it is synthetic."""

    about: str
    make: Callable[..., tuple[Floats, Floats]]
    real: bool = False


# ------------------------------------------------------------------------------------------------------------ forecasts


def persistence(z: Floats) -> tuple[Floats, Floats]:
    """The last value."""
    return z[:-1], z[1:]


def seasonal(z: Floats, season: int) -> tuple[Floats, Floats]:
    """The value a season ago."""
    return z[:-season], z[season:]


def least_squares(z: Floats, season: int = 0) -> tuple[Floats, Floats]:
    """Recursive least squares on the last values and that of a season ago, scaled by the first 50 values."""
    first, spread = float(np.mean(z[:50])), float(np.std(z[:50])) or 1.0
    lags = np.array([*range(1, LAGS + 1), *([season] if season else [])])
    said = np.zeros(z.size)
    _recursive((z - first) / spread, lags, FORGETTING, said)
    start = int(lags.max())
    return said[start:] * spread + first, z[start:]


@allocating
def _recursive(z: Floats, lags: Any, keep: float, said: Floats) -> None:
    d = lags.shape[0] + 1
    P, w, x, k = 100.0 * np.eye(d), np.zeros(d), np.ones(d), np.zeros(d)
    w[0] = 1.0  # the last value
    for t in range(lags.max(), z.shape[0]):
        for j in range(d - 1):
            x[j] = z[t - lags[j]]
        said[t] = np.sum(w * x)
        for j in range(d):
            k[j] = np.sum(P[j] * x)
        k /= keep + np.sum(k * x)
        w += k * (z[t] - said[t])
        row = np.zeros(d)
        for j in range(d):
            row[j] = np.sum(x * P[:, j])
        for i in range(d):
            for j in range(d):
                P[i, j] = (P[i, j] - k[i] * row[j]) / keep


# ---------------------------------------------------------------------------------------------------------- real series


def _need(module: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return need(module, "data", "This stream")


def _river(name: str, drift: bool = False) -> Floats:
    rows = getattr(_need("river.drift.datasets" if drift else "river.datasets"), name)()
    return np.array([y if np.isscalar(y) else next(iter(y.values())) for _, y in rows], dtype=np.float64)


def _sea() -> Floats:
    data = _need("bokeh_sampledata.sea_surface_temperature").sea_surface_temperature
    z: Floats = data["temperature"].to_numpy(dtype=float)
    return z


def _glucose() -> Floats:
    data = _need("bokeh_sampledata.glucose").data["glucose"]
    z: Floats = _need("pandas").to_numeric(data, errors="coerce").dropna().to_numpy(dtype=float)[:20_000]
    return z


def _stock(name: str) -> Floats:
    return np.array(getattr(_need("bokeh_sampledata.stocks"), name)["adj_close"], dtype=np.float64)


SERIES: dict[str, tuple[str, int, Callable[[], Floats]]] = {  # description, season, loader
    "water": ("flow of water in a pipe, hourly", 24, functools.partial(_river, "WaterFlow")),
    "sea": ("temperature of the sea, every half hour", 48, _sea),
    "glucose": ("blood sugar, every 5 minutes", 0, _glucose),
    "polls": ("approval of a president, daily", 0, functools.partial(_river, "TrumpApproval")),
    "oil": ("price of Brent oil, daily", 0, functools.partial(_river, "BrentSpotPrice", True)),
    "apple": ("shares of Apple, daily, 2000 to 2013", 0, functools.partial(_stock, "AAPL")),
    "ibm": ("shares of IBM, daily, 2000 to 2013", 0, functools.partial(_stock, "IBM")),
    "google": ("shares of Google, daily, 2004 to 2013", 0, functools.partial(_stock, "GOOG")),
}


def _real(series: str, forecast: Callable[..., tuple[Floats, Floats]], *arguments: Any) -> Callable[[], Any]:
    return lambda: forecast(SERIES[series][2](), *arguments)


def _real_cases() -> dict[str, Case]:
    found = {}
    for name, (about, season, _) in SERIES.items():
        found[f"{name}, persistence"] = Case(f"{about}; the last value", _real(name, persistence), True)
        found[f"{name}, least squares"] = Case(f"{about}; least squares", _real(name, least_squares, season), True)
        if season:
            found[f"{name}, season"] = Case(f"{about}; the value a season ago", _real(name, seasonal, season), True)
    return found


# ------------------------------------------------------------------------------------------------------------ synthetic


def _drawn(spread: Callable[[Generator, Any], Any], tails: float = math.inf) -> Callable[[Generator, int], Any]:
    """Forecasts 0; errors of Student's distribution (normal: infinitely many degrees) times a spread."""

    def make(rng: Generator, T: int) -> tuple[Floats, Floats]:
        scale = spread(rng, np.arange(T))
        noise = rng.standard_normal(T) if tails == math.inf else rng.standard_t(tails, T)
        return np.zeros(T), noise * scale

    return make


def _garch(rng: Generator, T: int) -> tuple[Floats, Floats]:
    y, variance = np.empty(T), 1.0
    for t, e in enumerate(rng.standard_normal(T)):
        y[t] = e * math.sqrt(variance)
        variance = 0.05 + 0.1 * y[t] ** 2 + 0.85 * variance
    return np.zeros(T), y


def _autoregressive(rng: Generator, T: int) -> tuple[Floats, Floats]:
    y, last = np.empty(T), 0.0
    for t, e in enumerate(rng.standard_normal(T)):
        y[t] = last = 0.9 * last + e
    return np.zeros(T), y


def _rare(rng: Generator, T: int) -> tuple[Floats, Floats]:
    return np.zeros(T), rng.standard_normal(T) * (rng.random(T) < 0.3)


def _shape(rng: Generator, T: int) -> tuple[Floats, Floats]:
    return np.zeros(T), np.where(np.arange(T) < T // 2, rng.standard_normal(T), rng.standard_t(2, T))


def _levels(rng: Generator, t: Any) -> Any:
    return (10.0 ** rng.integers(-1, 2, 10)).repeat(-(-t.size // 10))[: t.size]


SYNTHETIC = {
    "stationary": Case("normal errors", _drawn(lambda rng, t: 1.0)),
    "heavy tails": Case("Student's errors, 2 degrees of freedom", _drawn(lambda rng, t: 1.0, 2)),
    "no mean": Case("Cauchy's errors", _drawn(lambda rng, t: 1.0, 1)),
    "levels": Case("ten spreads from 0.1, 1 and 10", _drawn(_levels)),
    "a million": Case("spread 1, then 1e6, and again", _drawn(lambda rng, t: np.where(t // 1250 % 2, 1e6, 1.0))),
    "up": Case("the spread triples", _drawn(lambda rng, t: np.where(t < t.size // 2, 1.0, 3.0))),
    "down": Case("the spread falls to a third", _drawn(lambda rng, t: np.where(t < t.size // 2, 3.0, 1.0))),
    "growing": Case("the spread grows evenly, 11 times in all", _drawn(lambda rng, t: 1 + 10 * t / t.size)),
    "shrinking": Case("the spread falls by half in 700 rounds", _drawn(lambda rng, t: np.exp(-t / 1000))),
    "season 500": Case("spread 0.2 to 2.2 in 500 rounds", _drawn(lambda rng, t: 1.2 + np.sin(t / 500 * 2 * np.pi))),
    "season 24": Case("spread 0.2 to 2.2 in 24 rounds", _drawn(lambda rng, t: 1.2 + np.sin(t / 24 * 2 * np.pi))),
    "bursts": Case("5 times the spread in 40 of 400 rounds", _drawn(lambda rng, t: np.where(t % 400 < 40, 5.0, 1.0))),
    "walk": Case("the spread walks", _drawn(lambda rng, t: np.exp(0.03 * np.cumsum(rng.standard_normal(t.size))))),
    "fast walk": Case(
        "the spread walks fast", _drawn(lambda rng, t: np.exp(0.1 * np.cumsum(rng.standard_normal(t.size))))
    ),
    "garch": Case("GARCH(1, 1)", _garch),
    "autoregressive": Case("errors that are 0.9 of the last and noise", _autoregressive),
    "zeros": Case("7 of 10 errors are 0", _rare),
    "other shape": Case("normal errors, then Student's with 2 degrees", _shape),
}
CASES: dict[str, Case] = _real_cases() | SYNTHETIC


@functools.lru_cache(maxsize=4)  # a worker plays many methods on the same data
def draw(name: str, horizon: int | None) -> tuple[Floats, Floats]:
    """Return forecasts and observations."""
    case = CASES[name]
    if case.real:
        y_hat, y = case.make()
        return (y_hat, y) if horizon is None else (y_hat[:horizon], y[:horizon])
    return case.make(np.random.default_rng(seed_of(f"conformal/{name}", bits=64)), horizon or HORIZON)


def at_hand(series: str) -> bool:
    """Whether the data of a series is installed."""
    try:
        SERIES[series][2]()
    except MissingExtraError:
        return False
    return True


def installed(names: Iterable[str]) -> tuple[str, ...]:
    """Those of the streams whose data is installed."""
    known = {series for series in SERIES if at_hand(series)}
    return tuple(name for name in names if not CASES[name].real or name.partition(",")[0] in known)
