"""Squared losses whose best decision moves, mostly smoothly: streams beside a bank of Kalman filters.

Constants may be chosen with `OPEN` in view. `APART` were named before any run, and nothing is chosen on them. As in
`cases`, the seed of a stream is a hash of its name; features are of length about 1 unless said otherwise.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
from thalweg.lab.studies.tracker.cases import ALL, Case, Generator, _dot, _lags, _rows, _sphere, _stages

from thalweg._core.extras import need
from thalweg._core.types import Floats
from thalweg.domains import Ball, Box, Domain, Simplex
from thalweg.lab.streams import Stream, measured
from thalweg.problems import LinearRegression

__all__ = ["APART", "GROUP", "OPEN", "SQUARED"]

GROUP = "squared"


def _stream(domain: Domain, a: Floats, b: Floats) -> Stream:
    return measured("", domain, LinearRegression(a, b))


def _smooth(rng: Generator, T: int, d: int, period: float) -> Floats:
    """Each of d numbers between -1 and 1 is a sine of about this period, with a phase of its own."""
    periods, phases = period * rng.uniform(0.7, 1.4, d), rng.uniform(0, 2 * math.pi, d)
    return np.sin(2 * math.pi * np.arange(T)[:, None] / periods + phases)


def _walk(rng: Generator, T: int, d: int, step: float) -> Floats:
    """On the unit sphere, in steps of this length."""
    w = _sphere(rng, 1, d)[0]
    path = np.empty((T, d))
    for t, move in enumerate(step * _sphere(rng, T, d)):
        w = w + move
        w = w / np.linalg.norm(w)
        path[t] = w
    return path


# ------------------------------------------------------------------------------------------------------------ made up


def _fourier(rng: Generator, T: int, *, count: int, period: float = 0.0, stages: int = 1, noise: float = 0.1) -> Stream:
    """Random features of a point in the plane; the function to learn is a sum of two bumps that move, or jump."""
    x = rng.uniform(-1, 1, (T, 2))
    a = np.cos(x @ (1.5 * rng.standard_normal((2, count))) + rng.uniform(0, 2 * math.pi, count)) * math.sqrt(2 / count)
    centres = 0.7 * _smooth(rng, T, 4, period) if period else _stages(rng.uniform(-0.7, 0.7, (stages, 4)), T)
    z = sum(sign * np.exp(-2 * ((x - centres[:, k : k + 2]) ** 2).sum(axis=1)) for k, sign in ((0, 1), (2, -1)))
    return _stream(Ball(count, radius=10.0), a, z + noise * rng.standard_normal(T))


def _walking(rng: Generator, T: int, *, d: int = 8, step: float, noise: float = 0.2, condition: float = 1.0,
             tails: float = 0.0, still: int = 0) -> Stream:  # fmt: skip
    """A model that walks on the sphere; `still` further coefficients stand. Noise may have Student's tails."""
    a = _rows(rng, T, d + still) * np.geomspace(1, 1 / math.sqrt(condition), d + still)
    w = np.c_[_walk(rng, T, d, step), np.repeat(_sphere(rng, 1, still), T, axis=0)] if still else _walk(rng, T, d, step)
    e = rng.standard_t(tails, T) if tails else rng.standard_normal(T)
    return _stream(Ball(d + still, radius=1.5), a, _dot(a, w) + noise * e)


def _jumping(rng: Generator, T: int, *, d: int, stages: int, noise: float) -> Stream:
    a = _rows(rng, T, d)
    return _stream(Ball(d), a, _dot(a, _stages(_sphere(rng, stages, d), T)) + noise * rng.standard_normal(T))


def _autoregressive(rng: Generator, T: int, *, period: float = 0.0, regimes: int = 0) -> Stream:
    """A series from its last values; a pair of roots turns slowly, or jumps between regimes."""
    angle = math.pi * (0.35 + 0.25 * _smooth(rng, T + 3, 1, period)[:, 0]) if period else (
        _stages(rng.uniform(0.1, 0.9, (regimes, 1)) * math.pi, T + 3)[:, 0]
    )  # fmt: skip
    z, noise = np.zeros(T + 3), rng.standard_normal(T + 3)
    for t in range(2, T + 3):
        z[t] = 2 * 0.95 * math.cos(angle[t]) * z[t - 1] - 0.95**2 * z[t - 2] + 0.2 * noise[t]
    return _stream(Ball(3, radius=3.0), *_lags(z, (1, 2, 3), intercept=False))


def _circle(rng: Generator, T: int, *, period: float, noise: float) -> Stream:
    angle, a = 2 * math.pi * np.arange(T) / period, _rows(rng, T, 2)
    b = _dot(a, np.stack([np.cos(angle), np.sin(angle)], axis=1)) + noise * rng.standard_normal(T)
    return _stream(Ball(2, radius=1.5), a, b)


def _harmonics(rng: Generator, T: int, *, season: int, pairs: int, step: float, noise: float) -> Stream:
    """A seasonal pattern of sines and cosines and a level; every coefficient walks."""
    phase = 2 * math.pi * np.arange(T)[:, None] * np.arange(1, pairs + 1) / season
    a = np.c_[np.ones(T), np.cos(phase), np.sin(phase)] / math.sqrt(1 + pairs)
    w = rng.standard_normal(a.shape[1]) + np.cumsum(step * rng.standard_normal((T, a.shape[1])), axis=0)
    return _stream(Ball(a.shape[1], radius=10.0), a, _dot(a, w) + noise * rng.standard_normal(T))


def _dependent(rng: Generator, T: int) -> Stream:
    """Features that follow one another (autoregressions of 0.9, and a common part); coefficients return to a mean."""
    a, w = np.zeros((T, 6)), np.zeros((T, 6))
    moves, pushes, common = rng.standard_normal((T, 6)), rng.standard_normal((T, 6)), rng.standard_normal(T)
    mean = _sphere(rng, 1, 6)[0]
    for t in range(1, T):
        a[t] = 0.9 * a[t - 1] + 0.3 * moves[t] / math.sqrt(6) + 0.3 * common[t] / math.sqrt(6)
        w[t] = 0.99 * w[t - 1] + 0.05 * pushes[t] / math.sqrt(6)
    return _stream(Ball(6, radius=2.0), a, _dot(a, mean + w) + 0.1 * rng.standard_normal(T))


def _level_and_slope(rng: Generator, T: int) -> Stream:
    """A level that walks and three coefficients that stand; features are not centred."""
    a = np.c_[np.ones(T), 0.5 + 0.5 * rng.standard_normal((T, 3))]
    w = np.c_[np.cumsum(0.02 * rng.standard_normal(T)), np.repeat(0.5 * _sphere(rng, 1, 3), T, axis=0)]
    return _stream(Ball(4, radius=4.0), a, _dot(a, w) + 0.2 * rng.standard_normal(T))


def _louder(rng: Generator, T: int) -> Stream:
    """A walk; the noise is five times as wide in every other fifth of the rounds."""
    a = _rows(rng, T, 6)
    wide = _stages(np.array([[0.1], [0.5], [0.1], [0.5], [0.1]]), T)[:, 0]
    return _stream(Ball(6, radius=1.5), a, _dot(a, _walk(rng, T, 6, 0.02)) + wide * rng.standard_normal(T))


def _now_and_then(rng: Generator, T: int) -> Stream:
    """Stands for a quarter of the rounds, walks for another, and so on."""
    path = _walk(rng, T, 8, 0.04)
    quarter = T // 4
    path[:quarter] = path[quarter]
    path[2 * quarter : 3 * quarter] = path[3 * quarter]
    a = _rows(rng, T, 8)
    return _stream(Ball(8, radius=1.5), a, _dot(a, path) + 0.2 * rng.standard_normal(T))


def _ramp(rng: Generator, T: int) -> Stream:
    """From one model to its opposite, at a steady pace."""
    ends, a = _sphere(rng, 2, 5), _rows(rng, T, 5)
    share = np.linspace(0, 1, T)[:, None]
    w = (1 - share) * ends[0] + share * ends[1]
    return _stream(Ball(5, radius=1.5), a, _dot(a, w) + 0.3 * rng.standard_normal(T))


def _gain(rng: Generator, T: int) -> Stream:
    """A sensor whose gain and offset drift; readings lie between 1 and 3."""
    reading = 2 + np.sin(np.cumsum(0.2 * rng.standard_normal(T)))
    w = np.array([1.0, 0.0]) + 0.3 * _smooth(rng, T, 2, 2500.0)
    a = np.c_[reading, np.ones(T)]
    return _stream(Ball(2, radius=2.0), a, _dot(a, w) + 0.05 * rng.standard_normal(T))


def _shares(rng: Generator, T: int) -> Stream:
    """Weights of five forecasts on the simplex, which go over into one another."""
    w = np.exp(2 * _smooth(rng, T, 5, 1500.0))
    w /= w.sum(axis=1, keepdims=True)
    a = np.sin(np.cumsum(0.1 * rng.standard_normal(T)))[:, None] + 0.5 * rng.standard_normal((T, 5))
    return _stream(Simplex(5), a, _dot(a, w) + 0.1 * rng.standard_normal(T))


def _bounded(rng: Generator, T: int) -> Stream:
    """Weights between 0 and 1 that drift, and stay at an end for a while."""
    w = np.clip(0.5 + 0.7 * _smooth(rng, T, 6, 2000.0), 0, 1)
    a = _rows(rng, T, 6)
    return _stream(Box(0.0, 1.0, shape=6), a, _dot(a, w) + 0.1 * rng.standard_normal(T))


# ---------------------------------------------------------------------------------------------------------------- real


def _lagged(name: str, column: str, lags: tuple[int, ...], radius: float) -> Callable[[Generator, int], Stream]:
    """A series of statsmodels from its past and an intercept, in units of its first tenth's mean."""

    def make(rng: Generator, T: int) -> Stream:
        module = need(f"statsmodels.datasets.{name}", "peers", "This stream")
        z = np.asarray(module.load_pandas().data[column], dtype=float)
        z = z[np.isfinite(z)][: T + max(lags)]
        return _stream(Ball(len(lags) + 1, radius=radius), *_lags(z / z[: z.size // 10].mean(), lags))

    return make


P = functools.partial

OPEN: dict[str, Case] = {
    "features-40": Case("40 random features, a function that moves", 4_000, P(_fourier, count=40, period=2500.0)),
    "walk-slow": Case("d = 8, steps of 0.01", 4_000, P(_walking, step=0.01)),
    "walk-fast": Case("d = 8, steps of 0.05", 4_000, P(_walking, step=0.05)),
    "walk-condition": Case("d = 8, condition 1e3, steps of 0.02", 4_000,
                           P(_walking, step=0.02, condition=1e3, noise=0.05)),
    "walk-tails": Case("d = 8, Student's noise, steps of 0.02", 4_000, P(_walking, step=0.02, tails=3.0, noise=0.1)),
    "ar-turning": Case("an autoregression whose root turns", 4_000, P(_autoregressive, period=2000.0), series=True),
    "circle-2": Case("d = 2, round a circle in 500 rounds", 4_000, P(_circle, period=500.0, noise=0.1)),
    "season": Case("a season of 24 with 4 harmonics, all walk", 4_000,
                   P(_harmonics, season=24, pairs=4, step=0.02, noise=0.3)),
    "jumps-8": Case("d = 8, 8 stages, noise 0.3", 4_000, P(_jumping, d=8, stages=8, noise=0.3)),
    "still": Case("d = 10, one model, noise 0.3", 4_000, P(_jumping, d=10, stages=1, noise=0.3)),
    "dependent": Case("features that follow one another, coefficients that return", 4_000, _dependent),
    "level-slope": Case("a level that walks, coefficients that stand", 4_000, _level_and_slope),
}  # fmt: skip

APART: dict[str, Case] = {
    "features-60": Case("60 random features, a function that moves slowly", 6_000,
                        P(_fourier, count=60, period=5000.0)),
    "features-30": Case("30 random features, a function that jumps twice", 4_000, P(_fourier, count=30, stages=3)),
    "walk-16": Case("d = 16, steps of 0.02", 6_000, P(_walking, d=16, step=0.02)),
    "half-walk": Case("6 coefficients walk, 6 stand", 4_000, P(_walking, d=6, still=6, step=0.03)),
    "ar-regimes": Case("an autoregression with 4 regimes", 4_000, P(_autoregressive, regimes=4), series=True),
    "circle-slow": Case("d = 2, round a circle in 3000 rounds, noise 0.5", 6_000, P(_circle, period=3000.0, noise=0.5)),
    "season-week": Case("a season of 7 with 3 harmonics, all walk slowly", 3_000,
                        P(_harmonics, season=7, pairs=3, step=0.005, noise=0.2)),
    "louder": Case("a walk, noise that widens and narrows", 5_000, _louder),
    "now-and-then": Case("stands, walks, stands, walks", 6_000, _now_and_then),
    "ramp": Case("from one model to another at a steady pace", 5_000, _ramp),
    "gain": Case("a sensor's gain and offset drift", 5_000, _gain),
    "shares": Case("weights of 5 forecasts on the simplex drift", 5_000, _shares),
    "bounded": Case("weights in [0, 1] drift", 5_000, _bounded),
    "sunspots": Case("real: yearly sunspots from 1, 2, 9 and 11 years ago", 400,
                     _lagged("sunspots", "SUNACTIVITY", (1, 2, 9, 11), 5.0), real=True, series=True),
    "co2": Case("real: weekly carbon dioxide from 1, 2, 51 and 52 weeks ago", 4_000,
                _lagged("co2", "co2", (1, 2, 51, 52), 3.0), real=True, series=True),
}  # fmt: skip

SQUARED = OPEN | APART
ALL[GROUP] = SQUARED  # so `draw` finds them
