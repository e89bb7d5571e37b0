"""One run of the study of intervals: a stream, a method, and how good its intervals are.

The first 100 rounds are not scored. The interval score of a threshold q and a score s is 2 (q + (s - q)_+/alpha): the
width, and 2/alpha times by how much was missed. The right quantile has the least mean.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from thalweg.lab.studies.conformal import peers, published
from thalweg.lab.studies.conformal.cases import CASES, SERIES, draw

from thalweg._core.types import Floats
from thalweg.estimators import ConformalBands, ConformalTracker
from thalweg.lab.report import Row

ALPHA = 0.1
FIRST = 100  # rounds that are not scored
WINDOW = 100
SHOWN = "sea, season"  # the stream whose intervals are drawn
P = functools.partial

OURS = "ConformalTracker"
METHODS: dict[str, Callable[[Floats], Floats]] = {
    OURS: lambda scores: ConformalTracker(1 - ALPHA).run_scores(scores),
    "ConformalTracker 0.1": lambda scores: ConformalTracker(1 - ALPHA, correction=0.1).run_scores(scores),
    "DtACI": P(peers.dtaci, alpha=ALPHA),
    "DtACI, window 250": P(peers.dtaci, alpha=ALPHA, length=250),
    "SAOCP": P(peers.saocp, alpha=ALPHA),
    "conformal PI": P(peers.tracking, alpha=ALPHA, rate=0.1, integral=True),
    "ACI 0.005": P(peers.aci, alpha=ALPHA, gamma=0.005),
    "ACI 0.01": P(peers.aci, alpha=ALPHA, gamma=0.01),
    "ACI 0.05": P(peers.aci, alpha=ALPHA, gamma=0.05),
    "SF-OGD": P(peers.scale_free, alpha=ALPHA),
    "decaying steps": P(peers.decaying, alpha=ALPHA),
    "betting, KT": P(peers.betting, alpha=ALPHA),
    "betting, ONS": P(peers.betting, alpha=ALPHA, newton=True),
    "betting, portfolio": P(peers.portfolio, alpha=ALPHA),
    "ECI 0.05": P(peers.eci, alpha=ALPHA, rate=0.05),
    "ECI 0.1": P(peers.eci, alpha=ALPHA, rate=0.1),
    "ECI, integral 0.05": P(peers.eci, alpha=ALPHA, rate=0.05, integral=True),
    "COP 0.05": P(peers.cop, alpha=ALPHA, rate=0.05),
    "COP 0.1": P(peers.cop, alpha=ALPHA, rate=0.1),
    "quantile tracking": P(peers.tracking, alpha=ALPHA, rate=0.05),
    "window 100": P(peers.window, alpha=ALPHA, length=100),
    "window 500": P(peers.window, alpha=ALPHA, length=500),
    "all past": P(peers.window, alpha=ALPHA, length=0),
}
SIDES = ("one", "two", "auto")
PUBLISHED = "published: ACI 0.04, calibrated on the days before"
PEERS = [name for name in METHODS if not name.startswith(OURS)]


def play_one(*, case: str, method: str, horizon: int | None = None) -> Row:
    """One method on the absolute errors of one stream."""
    y_hat, y = draw(case, horizon)
    scores = np.abs(y - y_hat)
    q = METHODS[method](scores)
    row: Row = {"case": case, "method": method, "rounds": scores.size, "real": CASES[case].real}
    row |= judged(scores, q, min(FIRST, scores.size // 2))
    return row | {"thresholds": q.tolist() if case == SHOWN else []}


def play_published(*, method: str) -> Row:
    """One method around the forecasts of published intervals, or these intervals themselves."""
    y, limits = published.intervals()
    scores = np.abs(y - limits.mean(axis=1))
    q = (limits[:, 1] - limits[:, 0]) / 2 if method == PUBLISHED else METHODS[method](scores)
    return {"method": method, "rounds": scores.size} | judged(scores, q, min(FIRST, scores.size // 2))


# ---------------------------------------------------------------------------------------------------------- two sides


def play_sides(*, case: str, sides: str, horizon: int | None = None) -> Row:
    """Intervals with one side, with two, or with whichever was shorter, around the forecasts of one stream."""
    y_hat, y = draw(case, horizon)
    band = ConformalBands((1 - ALPHA,), sides=sides).run(y_hat, y)[:, 0]
    first = min(FIRST, y.size // 2)
    low, high = band[first:, 0], band[first:, 1]
    missed = np.maximum(low - y[first:], 0.0) + np.maximum(y[first:] - high, 0.0)
    return {
        "case": case,
        "sides": sides,
        "score": float(np.mean(high - low + 2 / ALPHA * missed)),
        "coverage": float(1 - np.mean(missed > 0)),
    }


# --------------------------------------------------------------------------------------------------------- late answers


def _one(scores: Floats, late: int) -> Floats:
    """One tracker that knows of the delay."""
    q: Floats = ConformalTracker(1 - ALPHA, horizon=late).run_scores(scores)
    return q


def _interleaved(scores: Floats, late: int) -> Floats:
    """A tracker for every `late`-th round: each has its answer before it is asked again."""
    q = np.zeros(scores.size)
    for first in range(late):
        q[first::late] = ConformalTracker(1 - ALPHA).run_scores(np.ascontiguousarray(scores[first::late]))
    return q


def _full_rate(scores: Floats, late: int) -> Floats:
    """One tracker whose correction does not know of the delay."""
    q: Floats = ConformalTracker(1 - ALPHA, correction=min(0.05 * late**0.75, 1.0), horizon=late).run_scores(scores)
    return q


def _window(scores: Floats, late: int) -> Floats:
    """The quantile of the last 500 that are known."""
    q = np.zeros(scores.size)
    q[late - 1 :] = peers.window(scores, ALPHA, 500)[: scores.size - late + 1]
    return q


LATE: dict[str, Callable[[Floats, int], Floats]] = {
    "one tracker": _one, "interleaved trackers": _interleaved, "correction as for no delay": _full_rate,
    "window 500": _window,
}  # fmt: skip


def play_late(*, case: str, method: str, late: int, horizon: int | None = None) -> Row:
    """Play with answers `late` rounds late: to forecasts by the value of then, or on a synthetic stream."""
    if case in SERIES:
        z = SERIES[case][2]()[:horizon]
        scores = np.abs(z[late:] - z[:-late])
    else:
        scores = np.abs(draw(case, horizon)[1])
    q = LATE[method](scores, late)
    row = {"case": case, "method": method, "late": late, "rounds": scores.size}
    return row | judged(scores, q, min(3 * FIRST, scores.size // 2))


def judged(scores: Floats, q: Floats, first: int) -> Row:
    """How good thresholds are from this round on."""
    missed = scores > q
    inside = _means(~missed[first:], min(WINDOW, scores.size - first))
    return {
        "score": float(np.mean(2 * (q + np.maximum(scores - q, 0.0) / ALPHA)[first:])),
        "width": float(np.mean(2 * q[first:])),
        "coverage": float(1 - np.mean(missed[first:])),
        "worst": float(inside.min()),
        "rms": float(np.sqrt(np.mean((inside - (1 - ALPHA)) ** 2))),
    }


def _means(values: NDArray[Any], n: int) -> Floats:
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    means: Floats = (sums[n:] - sums[:-n]) / n
    return means
