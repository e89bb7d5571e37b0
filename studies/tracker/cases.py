"""The streams of the study of the Tracker. The seed of each is a hash of its name.

Unless said otherwise: features are Gaussian, of length about 1; models are drawn on the unit sphere, the edge of the
domain, a ball; noise is Gaussian; losses are half the squared error; constants are computed from the data.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from thalweg._core.types import Floats
from thalweg.domains import Ball, Box, Simplex
from thalweg.errors import MissingExtraError
from thalweg.lab import streams
from thalweg.lab.jobs import seed_of
from thalweg.lab.streams import Stream, measured
from thalweg.problems import (
    AbsoluteRegression,
    HingeClassification,
    HuberRegression,
    LinearRegression,
    LogisticRegression,
    QuantileRegression,
)

Generator = np.random.Generator

CALM, LIMITS = "calm", "limits"


@dataclass(frozen=True)
class Case:
    """A stream of the study.

    Attributes
    ----------
    about : str
        One line.
    rounds : int
        How many; real data may have fewer.
    make : callable (rng, T) -> Stream, or (rng, C, T) -> Stream after a calm
        Draws it; real data needs no random numbers.
    real : bool
        Whether the data is real.
    series : bool
        Whether the labels are one quantity over time, so that the last one is a forecast.
    oversized : bool
        Whether the domain is much larger than the models need.
    calm : int
        Rounds before the change. Only those after it are scored.
    """

    about: str
    rounds: int
    make: Callable[..., Stream]
    real: bool = False
    series: bool = False
    oversized: bool = False
    calm: int = 0


# ------------------------------------------------------------------------------------------------------------- material


def _rows(rng: Generator, T: int, d: int) -> Floats:
    """Gaussian features of length about 1."""
    return rng.standard_normal((T, d)) / math.sqrt(d)


def _sphere(rng: Generator, count: int, d: int, radius: float = 1.0) -> Floats:
    points = rng.standard_normal((count, d))
    on_it: Floats = radius * points / np.linalg.norm(points, axis=1, keepdims=True)
    return on_it


def _stages(models: Floats, T: int) -> Floats:
    """The models one after another, each for an equal share of T rounds."""
    lengths = [len(part) for part in np.array_split(np.arange(T), len(models))]
    return np.repeat(models, lengths, axis=0)


def _dot(a: Floats, w: Floats) -> Floats:
    products: Floats = np.einsum("td,td->t", a, w)
    return products


def _signs(rng: Generator, z: Floats, flips: float | None = None) -> Floats:
    """Labels -1 and +1: as the logistic model says, or the sign of z with a share `flips` of them flipped."""
    right = 1 / (1 + np.exp(-np.abs(z))) if flips is None else 1 - flips
    return np.where(z >= 0, 1.0, -1.0) * np.where(rng.random(z.size) < right, 1.0, -1.0)


def _lags(z: Floats, lags: tuple[int, ...], intercept: bool = True) -> tuple[Floats, Floats]:
    """Features: the values `lags` rounds ago, and a one; labels: the values."""
    most = max(lags)
    columns = [z[most - lag : z.size - lag] for lag in lags] + [np.ones(z.size - most)] * intercept
    return np.stack(columns, axis=1), z[most:]


# ------------------------------------------------------------------------------------------------ regressions that jump


def _jumps(rng: Generator, T: int, *, d: int = 8, stages: int = 10, noise: float = 0.1, radius: float = 1.0,
           condition: float = 1.0, louder: float = 1.0, filled: float = 1.0) -> Stream:  # fmt: skip
    """A regression whose model jumps.

    Its ball has this radius, the covariance of its features this condition number, this share of them is not 0, and in
    the second half features and labels are `louder` times as large.
    """
    a = _rows(rng, T, d) * np.geomspace(1, 1 / math.sqrt(condition), d)
    if filled < 1:
        a *= (rng.random((T, d)) < filled) / math.sqrt(filled)
    b = _dot(a, _stages(_sphere(rng, stages, d), T)) + noise * rng.standard_normal(T)
    scale = np.where(np.arange(T) < T // 2, 1.0, louder)
    return measured("", Ball(d, radius=radius), LinearRegression(a * scale[:, None], b * scale))


def _turning(rng: Generator, T: int) -> Stream:
    """The model goes round a circle, once in 2000 rounds."""
    angle = 2 * math.pi * np.arange(T) / 2000
    a = _rows(rng, T, 2)
    b = _dot(a, np.stack([np.cos(angle), np.sin(angle)], axis=1)) + 0.1 * rng.standard_normal(T)
    return measured("", Ball(2), LinearRegression(a, b))


def _level(rng: Generator, T: int) -> Stream:
    """A level that walks between -1 and 1 (reflected there) in steps of 0.02, seen in noise of 0.3."""
    walk = np.cumsum(0.02 * rng.standard_normal(T))
    level = np.abs((walk + 1) % 4 - 2) - 1
    return measured("", Ball(1), LinearRegression(np.ones((T, 1)), level + 0.3 * rng.standard_normal(T)))


def _autoregression(rng: Generator, T: int) -> Stream:
    """z_t = c_1 z_(t-1) + c_2 z_(t-2) + noise; the coefficients change every fifth of the rounds."""
    choices = np.array([[0.5, 0.3], [1.4, -0.7], [-0.6, 0.2], [0.9, 0.0], [0.2, -0.5]])
    c, noise, z = _stages(choices, T + 3), rng.standard_normal(T + 3), np.zeros(T + 3)
    for t in range(2, T + 3):
        z[t] = c[t] @ (z[t - 1], z[t - 2]) + 0.1 * noise[t]
    a, b = _lags(z, (1, 2, 3), intercept=False)
    return measured("", Ball(3, radius=2.0), LinearRegression(a, b))


# --------------------------------------------------------------------------------------------------------- other losses


def _logistic(rng: Generator, T: int) -> Stream:
    a = 2 * _rows(rng, T, 8)
    w = _stages(_sphere(rng, 5, 8, 3.0), T)
    return measured("", Ball(8, radius=3.0), LogisticRegression(a, _signs(rng, _dot(a, w))))


def _hinge(rng: Generator, T: int) -> Stream:
    a = 2 * _rows(rng, T, 8)
    w = _stages(_sphere(rng, 10, 8), T)
    return measured("", Ball(8, radius=5.0), HingeClassification(a, _signs(rng, _dot(a, w), 0.05)))


def _pinball(rng: Generator, T: int) -> Stream:
    """The 0.9 quantile; the model jumps and the noise gets three times as wide, and narrow again."""
    a = np.c_[_rows(rng, T, 3), np.ones(T)]
    w = _stages(np.c_[_sphere(rng, 6, 3), np.zeros(6)], T)
    wide = _stages(np.array([[0.1], [0.3], [0.1], [0.3], [0.1], [0.3]]), T)[:, 0]
    return measured("", Ball(4, radius=1.5), QuantileRegression(a, _dot(a, w) + wide * rng.standard_normal(T), tau=0.9))


def _absolute(rng: Generator, T: int) -> Stream:
    """Noise with heavy tails: Student's with 2 degrees of freedom."""
    a = _rows(rng, T, 8)
    b = _dot(a, _stages(_sphere(rng, 10, 8), T)) + 0.1 * rng.standard_t(2, T)
    return measured("", Ball(8), AbsoluteRegression(a, b))


def _huber(rng: Generator, T: int) -> Stream:
    """One label in fifty is off by 10 or so."""
    a = _rows(rng, T, 8)
    noise = np.where(rng.random(T) < 0.02, 10.0, 0.1) * rng.standard_normal(T)
    return measured("", Ball(8), HuberRegression(a, _dot(a, _stages(_sphere(rng, 10, 8), T)) + noise, delta=0.5))


# ----------------------------------------------------------------------------------------------------------- other sets


def _experts(rng: Generator, T: int, *, d: int, stages: int, absolute: bool = False) -> Stream:
    """Weigh d forecasts of a walk on the simplex. In each stage each has another noise, the best 0.05, the worst 1."""
    truth = np.sin(np.cumsum(0.05 * rng.standard_normal(T)))
    widths = np.array([rng.permutation(np.geomspace(0.05, 1.0, d)) for _ in range(stages)])
    a = truth[:, None] + _stages(widths, T) * rng.standard_normal((T, d))
    return measured("", Simplex(d), (AbsoluteRegression if absolute else LinearRegression)(a, truth))


def _box(rng: Generator, T: int) -> Stream:
    """Weights between 0 and 1, half of them at an end."""
    a = _rows(rng, T, 8)
    w = np.clip(2 * rng.random((5, 8)) - 0.5, 0, 1)
    b = _dot(a, _stages(w, T)) + 0.1 * rng.standard_normal(T)
    return measured("", Box(0.0, 1.0, shape=8), LinearRegression(a, b))


# ----------------------------------------------------------------------------------------------------------- real data


def _of_lab(name: str) -> Callable[[Generator, int], Stream]:
    """A stream of `thalweg.lab.draw`."""

    def make(rng: Generator, T: int) -> Stream:
        seed = int(rng.integers(2**62))
        return streams.draw(name, horizon=T) if streams.STREAMS[name].real else streams.draw(name, seed, horizon=T)

    return make


def _prices(name: str, unit: float, absolute: bool) -> Callable[[Generator, int], Stream]:
    """A price from those 1, 2 and 5 rounds ago and an intercept."""

    def make(rng: Generator, T: int) -> Stream:
        z = np.array([y for _, y in getattr(streams._need("river.drift.datasets"), name)()], dtype=float) / unit
        a, b = _lags(z[: T + 5], (1, 2, 5))
        return measured("", Ball(4, radius=1.5), (AbsoluteRegression if absolute else LinearRegression)(a, b))

    return make


def _phishing(rng: Generator, T: int) -> Stream:
    rows = list(streams._need("river.datasets").Phishing())[:T]
    a = np.array([[*x.values(), 1.0] for x, _ in rows])
    return measured("", Ball(10, radius=5.0), LogisticRegression(a, [1 if y else -1 for _, y in rows]))


def _bananas(rng: Generator, T: int) -> Stream:
    """Two classes in the plane, from monomials up to degree 2 of the coordinates over 3."""
    rows = list(streams._need("river.datasets").Bananas())[:T]
    x, y = np.array([list(x.values()) for x, _ in rows]).T / 3
    a = np.stack([x, y, x * y, x**2, y**2, np.ones(x.size)], axis=1)
    return measured("", Ball(6, radius=10.0), HingeClassification(a, [1 if label else -1 for _, label in rows]))


def _digits(rng: Generator, T: int) -> Stream:
    """Odd or even, from 64 pixels."""
    data = streams._need("sklearn.datasets").load_digits()
    labels = np.where(data.target[:T] % 2, 1.0, -1.0)
    return measured("", Ball(64, radius=5.0), LogisticRegression(data.data[:T] / 64, labels))


# ------------------------------------------------------------------------------------------------------- after a calm


def _then(rng: Generator, C: int, T: int, *, d: int = 8, stages: int = 1, noise: float = 0.1, louder: float = 1.0,
          walk: float = 0.0, loss: str = "squared", giant: float = 0.0) -> Stream:  # fmt: skip
    """One model for C rounds, then for T rounds others, or a walk in steps of this length.

    After the calm features and labels are `louder` times as large. `giant`: the loss of one round in the middle of the
    calm has labels off by so much.
    """
    radius = 3.0 if loss == "logistic" else 1.0
    a = _rows(rng, C + T, d) * (2.0 if loss in ("logistic", "hinge") else 1.0)
    models = _sphere(rng, stages + 1, d, radius)
    after = _stages(models[1:], T)
    if walk:
        after = after + np.cumsum(walk * _sphere(rng, T, d), axis=0)
        after *= radius / np.linalg.norm(after, axis=1, keepdims=True)
    w = np.concatenate([np.repeat(models[:1], C, axis=0), after])
    scale = np.where(np.arange(C + T) < C, 1.0, louder)
    z = _dot(a, w)
    b = z + noise * rng.standard_normal(C + T)
    b[C // 2] += giant
    if loss == "logistic":
        return measured("", Ball(d, radius=radius), LogisticRegression(a, _signs(rng, z)))
    if loss == "hinge":
        return measured("", Ball(d, radius=5.0), HingeClassification(a, _signs(rng, z, 0.05)))
    kind = AbsoluteRegression if loss == "absolute" else LinearRegression
    return measured("", Ball(d), kind(a * scale[:, None], b * scale))


def _expert_then(rng: Generator, C: int, T: int) -> Stream:
    """One of ten forecasts is good, then another one."""
    truth = np.sin(np.cumsum(0.05 * rng.standard_normal(C + T)))
    wide = np.full((C + T, 10), 0.5)
    wide[:C, 0] = wide[C:, 7] = 0.05
    return measured("", Simplex(10), LinearRegression(truth[:, None] + wide * rng.standard_normal((C + T, 10)), truth))


def _level_then(rng: Generator, C: int, T: int) -> Stream:
    """A level of -0.8, then one of 0.8, in noise of 0.3."""
    level = np.where(np.arange(C + T) < C, -0.8, 0.8)
    return measured("", Ball(1), LinearRegression(np.ones((C + T, 1)), level + 0.3 * rng.standard_normal(C + T)))


# ---------------------------------------------------------------------------------------------------------------- lists

P = functools.partial

CASES: dict[str, Case] = {
    "jumps": Case("the paper's: 25 stages on an ellipsoid, d = 8", 20_000, _of_lab("piecewise")),
    "jumps-noisy": Case("20 stages, noise 0.5", 10_000, P(_jumps, stages=20, noise=0.5)),
    "jumps-rare": Case("3 stages, noise 0.1", 10_000, P(_jumps, stages=3)),
    "slow-walk": Case("the paper's walk, steps of D/T, on the ellipsoid", 20_000, _of_lab("gradual")),
    "fast-walk": Case("steps of D/sqrt(T) on the ellipsoid", 20_000, _of_lab("fast-walk")),
    "turning": Case("a model that goes round a circle, d = 2", 10_000, _turning),
    "noiseless": Case("one model, no noise", 5_000, P(_jumps, stages=1, noise=0.0)),
    "noiseless-jumps": Case("10 stages, no noise", 10_000, P(_jumps, noise=0.0)),
    "condition-1e3": Case("covariance of condition 1e3, 4 stages, noise 0.01", 10_000,
                          P(_jumps, stages=4, noise=0.01, condition=1e3)),
    "condition-1e6": Case("covariance of condition 1e6, 4 stages, noise 0.01", 10_000,
                          P(_jumps, stages=4, noise=0.01, condition=1e6)),
    "ball-30": Case("a ball 30 times too large, 5 stages", 10_000, P(_jumps, stages=5, radius=30.0), oversized=True),
    "ball-1000": Case("a ball 1000 times too large, 5 stages", 10_000, P(_jumps, stages=5, radius=1000.0),
                      oversized=True),
    "scale-up": Case("losses 1e4 times as large from the middle on, 10 stages", 10_000, P(_jumps, louder=100.0)),
    "sparse": Case("d = 100, one feature in twenty not 0, 5 stages", 10_000, P(_jumps, d=100, stages=5, filled=0.05)),
    "level": Case("d = 1, a level that walks, noise 0.3", 10_000, _level, series=True),
    "dim-100": Case("d = 100, 4 stages", 4_000, P(_jumps, d=100, stages=4)),
    "dim-1000": Case("d = 1000, 2 stages", 1_000, P(_jumps, d=1000, stages=2)),
    "autoregression": Case("a series from its last 3 values, 5 stages", 10_000, _autoregression, series=True),
    "logistic-walk": Case("logistic loss, weights that walk", 10_000, _of_lab("classification")),
    "logistic-jumps": Case("logistic loss, 5 stages", 10_000, _logistic),
    "hinge-jumps": Case("hinge loss, 10 stages, 5 % of labels wrong", 10_000, _hinge),
    "pinball": Case("quantile 0.9, 6 stages, noise that widens", 10_000, _pinball),
    "absolute": Case("absolute loss, heavy tails, 10 stages", 10_000, _absolute),
    "huber": Case("Huber's loss, outliers, 10 stages", 10_000, _huber),
    "simplex": Case("weigh 10 forecasts, 5 stages", 10_000, P(_experts, d=10, stages=5)),
    "simplex-absolute": Case("weigh 50 forecasts, absolute loss, 3 stages", 4_000,
                             P(_experts, d=50, stages=3, absolute=True)),
    "box": Case("weights in [0, 1], 5 stages", 10_000, _box),
    "polls": Case("real: weigh 5 pollsters", 20_000, _of_lab("polls"), real=True, series=True),
    "glucose": Case("real: calibrate a sensor", 20_000, _of_lab("glucose"), real=True, series=True),
    "sea": Case("real: sea temperature from its past", 20_000, _of_lab("sea"), real=True, series=True),
    "water": Case("real: flow of water from its past", 20_000, _of_lab("water"), real=True, series=True),
    "oil": Case("real: price of oil from its past, absolute loss", 20_000, _prices("BrentSpotPrice", 100.0, True),
                real=True, series=True),
    "bitcoin": Case("real: price of a bitcoin from its past", 20_000, _prices("Bitcoin", 20_000.0, False),
                    real=True, series=True),
    "phishing": Case("real: phishing pages, logistic loss", 20_000, _phishing, real=True),
    "bananas": Case("real: two classes in the plane, hinge loss", 20_000, _bananas, real=True),
    "digits": Case("real: odd or even digits, logistic loss, d = 64", 20_000, _digits, real=True),
}  # fmt: skip

AFTER_CALM: dict[str, Case] = {
    "jump after 10,000": Case("another model", 2_000, _then, calm=10_000),
    "jump after 60,000": Case("another model", 2_000, _then, calm=60_000),
    "noisy jump": Case("another model, noise 0.5", 3_000, P(_then, noise=0.5), calm=30_000),
    "noiseless jump": Case("another model, no noise", 2_000, P(_then, noise=0.0), calm=10_000),
    "many jumps": Case("8 models", 4_000, P(_then, stages=8), calm=20_000),
    "walk": Case("a walk in steps of 0.02", 4_000, P(_then, walk=0.02), calm=20_000),
    "jump, d = 50": Case("another model, d = 50", 3_000, P(_then, d=50), calm=20_000),
    "level": Case("a level, d = 1", 1_000, _level_then, calm=40_000),
    "louder": Case("another model, losses 1e4 times as large", 2_000, P(_then, louder=100.0), calm=20_000),
    "absolute": Case("another model, absolute loss", 3_000, P(_then, loss="absolute"), calm=20_000),
    "logistic": Case("other weights, logistic loss", 3_000, P(_then, loss="logistic"), calm=30_000),
    "hinge": Case("other weights, hinge loss", 3_000, P(_then, loss="hinge"), calm=30_000),
    "simplex": Case("another of 10 forecasts is good", 3_000, _expert_then, calm=20_000),
}

KNOWN_LIMITS: dict[str, Case] = {
    "100 times quieter": Case("another model, gradients 100 times smaller for good", 3_000, P(_then, louder=0.1),
                              calm=10_000),
    "10,000 times quieter": Case("another model, gradients 10,000 times smaller for good", 3_000,
                                 P(_then, louder=0.01), calm=10_000),
    "one giant loss": Case("another model, after a calm with one label off by 1000", 3_000, P(_then, giant=1000.0),
                           calm=10_000),
}  # fmt: skip

ALL = {"": CASES, CALM: AFTER_CALM, LIMITS: KNOWN_LIMITS}


@functools.lru_cache(maxsize=4)  # a worker plays many learners on the same data
def draw(name: str, group: str = "", horizon: int | None = None, rep: int = 0) -> Stream:
    """A stream of the study, or another draw of it; a horizon cuts the rounds, and the calm ones to twice as many."""
    case = ALL[group][name]
    T = min(case.rounds, horizon or case.rounds)
    place = "/".join(filter(None, ("tracker", group, name, f"draw-{rep}" if rep else "")))
    rng = np.random.default_rng(seed_of(place))
    stream = case.make(rng, calm_of(case, horizon), T) if case.calm else case.make(rng, T)
    return replace(stream, name=name)


def calm_of(case: Case, horizon: int | None) -> int:
    """The rounds before the change."""
    return min(case.calm, 2 * horizon) if horizon else case.calm


def installed(names: tuple[str, ...], group: str = "") -> tuple[str, ...]:
    """Those whose data is there."""
    found = []
    for name in names:
        with contextlib.suppress(MissingExtraError):
            if ALL[group][name].real:
                draw(name, group, 100)
            found.append(name)
    return tuple(found)
