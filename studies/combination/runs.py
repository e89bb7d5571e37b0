"""One run of the study of combination: experts, a method that combines them, and the error.

Experts of a real series are simple forecasts from the values known `late` rounds before. The same data come
also with experts that sleep for stretches of up to 100 rounds, three tenths of the time.
"""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from thalweg.lab.studies.combination import peers

from thalweg._core.types import Floats
from thalweg.estimators import Aggregator, oracle
from thalweg.lab.jobs import seed_of
from thalweg.lab.report import Row
from thalweg.lab.streams import _need

__all__ = ["CONTENDERS", "HINDSIGHT", "RULES", "SERIES", "VARIANTS", "Series", "draw", "play_one"]

VARIANTS = "as they are", "sleeping", "late"
RULES = {"BOA, OPERA": "BOA", "ML-Poly, OPERA": "MLpol", "ML-Prod": "MLprod"}
OURS = {"Aggregator": None, "its Tracker alone": "Tracker", "its BOA that forgets, alone": "recent"}
HINDSIGHT = "best expert", "best fixed weights"
CONTENDERS = [*OURS, *RULES, *peers.PEERS, "uniform", "the first expert", *HINDSIGHT]
SHORT = {"short": 150, "short, many": 150}


@dataclass(frozen=True)
class Series:
    """Name of a series, number of draws, whether it is real, and the delay of answers in "late"."""

    title: str
    reps: int = 5
    real: bool = False
    late: int = 12


SERIES = {
    "polls": Series("a president's approval from 5 polls", 1, True, 7),
    "sea": Series("temperature of the sea, half-hourly", 1, True, 48),
    "water": Series("flow of water in a pipe, hourly", 1, True, 24),
    "glucose": Series("blood sugar, every 5 minutes", 1, True, 6),
    "flights": Series("passengers of airlines, monthly", 1, True, 3),
    "calm": Series("6 experts with errors and biases that stay"),
    "many": Series("40 such experts"),
    "twins": Series("4 experts that are nearly one, and 2 others"),
    "drift": Series("errors grow and shrink by chance"),
    "jumps": Series("the best expert changes every 250 rounds"),
    "seasons": Series("the best expert changes gradually, a turn in 150 rounds"),
    "heavy": Series("errors with a tail: Student's t, 3 degrees of freedom"),
    "short": Series("150 rounds, 6 experts"),
    "short, many": Series("150 rounds, 30 experts"),
}


# ----------------------------------------------------------------------------------------------------------------- data


def forecasts(z: Floats, season: int, late: int) -> tuple[Floats, Floats]:
    """Return experts for a series, each from the values known `late` rounds before; and the series.

    The last value, that of the last season, both, the mean of a season, the trend, and a smoothed value.
    """
    past = season * -(-late // season)  # the last value of the same hour that is known
    t = np.arange(past + season + late, z.size)
    sums = np.concatenate([[0.0], np.cumsum(z)])
    smooth = z.copy()
    for k in range(1, z.size):
        smooth[k] = 0.7 * smooth[k - 1] + 0.3 * z[k]
    known = t - late
    columns = [
        z[known],
        z[t - past],
        z[known] + z[t - past] - z[t - past - late],
        (sums[known + 1] - sums[known + 1 - season]) / season,
        2 * z[known] - z[known - 1],
        smooth[known],
    ]
    return np.stack(columns, axis=1), z[t]


def _real(name: str, late: int) -> tuple[Floats, Floats]:
    if name == "polls":
        rows = list(_need("river.datasets").TrumpApproval())
        experts = np.array([[value for key, value in x.items() if key != "ordinal_date"] for x, _ in rows])
        return experts, np.array([y for _, y in rows])
    if name == "sea":
        data = _need("bokeh_sampledata.sea_surface_temperature").sea_surface_temperature
        return forecasts(data["temperature"].to_numpy(dtype=float), 48, late)
    if name == "glucose":
        data = _need("bokeh_sampledata.glucose").data["glucose"]
        z = _need("pandas").to_numeric(data, errors="coerce").dropna().to_numpy(dtype=float)
        return forecasts(z[:20_000], 288, late)
    source = "WaterFlow" if name == "water" else "AirlinePassengers"
    z = np.array([y for _, y in getattr(_need("river.datasets"), source)()], dtype=float)
    return forecasts(z, 24 if name == "water" else 12, late)


def _made_up(name: str, rep: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed_of(f"{name}/rep{rep}"))
    T, K = SHORT.get(name, 3000), {"many": 40, "short, many": 30}.get(name, 6)
    y = 20 + np.cumsum(rng.normal(size=T)) / 3 + 5 * np.sin(np.arange(T) * 2 * np.pi / 24)
    sizes, errors = rng.uniform(0.3, 2.0, K) * np.ones((T, 1)), rng.normal(size=(T, K))
    if name == "drift":
        sizes = sizes * np.exp(0.03 * np.cumsum(rng.normal(size=(T, K)), axis=0))
    if name == "jumps":
        sizes = np.full((T, K), 2.0)
        sizes[np.arange(T), np.repeat(rng.integers(0, K, -(-T // 250)), 250)[:T]] = 0.3
    if name == "seasons":
        turn = np.arange(T)[:, None] / 150 + np.arange(K) / K
        sizes = sizes * (1.1 + np.sin(2 * np.pi * turn))
    if name == "heavy":
        errors = rng.standard_t(3, size=(T, K))
    if name == "twins":
        errors[:, 1:4] = errors[:, :1] + 0.1 * errors[:, 1:4]
    return y[:, None] + sizes * errors + rng.normal(size=K) / 2, y


@functools.lru_cache(maxsize=4)  # a worker plays many contenders on the same data
def draw(series: str, variant: str, rep: int, horizon: int | None) -> tuple[Floats, Floats, Floats, int]:
    """Return forecasts, observations, the experts awake, and the delay of answers."""
    late = SERIES[series].late if variant == "late" else 1
    X, y = _real(series, late) if SERIES[series].real else _made_up(series, rep)
    X, y = np.ascontiguousarray(X[:horizon]), np.ascontiguousarray(y[:horizon])
    awake = np.ones_like(X)
    if variant == "sleeping":
        rng = np.random.default_rng(seed_of(f"{series}/rep{rep}/sleep"))
        for i in range(X.shape[1]):
            t = 0
            while t < len(y):
                length = int(rng.integers(1, 100))
                awake[t : t + length, i] = rng.random() >= 0.3
                t += length
        awake[awake.sum(axis=1) == 0, 0] = 1.0
    return X, y, awake, late


# ------------------------------------------------------------------------------------------------------------- one run


def said(who: str, X: Floats, y: Floats, awake: Floats, late: int) -> Floats:
    """The forecasts of a contender."""
    if who in peers.PEERS:
        return peers.play(who, X, awake, y, late)
    mean = (awake * X).sum(axis=1) / awake.sum(axis=1)
    if who == "uniform":
        return np.asarray(mean)
    if who == "the first expert":
        return np.asarray(np.where(awake[:, 0] > 0, X[:, 0], mean))
    if who in HINDSIGHT:
        best: Floats = oracle(X, y, "expert" if who == "best expert" else "convex", awake=awake).predictions
        return best
    rule = OURS[who] if who in OURS else RULES[who]
    ours: Floats = Aggregator(rule=rule, horizon=late).run(X, y, awake).said
    return ours


def play_one(*, series: str, variant: str, rep: int, who: str, horizon: int | None) -> Row:
    """The error of one contender: the root of its mean square."""
    X, y, awake, late = draw(series, variant, rep, horizon)
    started = time.perf_counter()
    errors = said(who, X, y, awake, late) - y
    seconds = time.perf_counter() - started
    row: dict[str, Any] = {"series": series, "variant": variant, "rep": rep, "who": who, "rounds": len(y)}
    row |= {"experts": X.shape[1], "late": late, "rmse": float(np.sqrt(np.mean(errors**2)))}
    half = len(y) // 2
    row |= {"first_half": float(np.sqrt(np.mean(errors[:half] ** 2))), "seconds": seconds}
    return row | {"second_half": float(np.sqrt(np.mean(errors[half:] ** 2)))}
