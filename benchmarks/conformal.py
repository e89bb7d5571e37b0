"""Time of a round of intervals: `ConformalTracker` beside other methods.

1. `threshold` and `update` one by one, from Python, beside the peers of the study in plain Python, one round a call.
2. Whole series, compiled: `run_scores` beside the peers' loops.

    python benchmarks/conformal.py [--quick] [--json FILE]

Times are processor time, the best of several runs that take turns; the spread is slowest over fastest. The exit code is
0 whatever the times are.
"""

from __future__ import annotations

import argparse
import bisect
import json
import math
import pathlib
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from thalweg.lab.studies.conformal.runs import METHODS

from bench import best_of, mark, table
from thalweg.estimators import ConformalTracker

TARGET = 20.0  # us a round, from Python
ALPHA = 0.1


class Quantiles:
    """ACI with a rate gamma on the last 500 scores, as one writes it: a sorted list."""

    def __init__(self, gamma: float) -> None:
        self.gamma, self.level = gamma, ALPHA
        self.sorted: list[float] = []
        self.recent: deque[float] = deque()

    def threshold(self) -> float:
        """The quantile of the level."""
        n = len(self.sorted)
        place = min(max(math.ceil((1 - self.level) * (n + 1)) - 1, 0), n - 1)
        self.q = self.sorted[place] if n else 0.0
        return self.q

    def update(self, score: float) -> None:
        """The level moves; one score comes, one goes."""
        self.level += self.gamma * (ALPHA - (score > self.q))
        bisect.insort(self.sorted, score)
        self.recent.append(score)
        if len(self.recent) > 500:
            self.sorted.pop(bisect.bisect_left(self.sorted, self.recent.popleft()))


class Several:
    """DtACI: eight rates under exponential weights, in NumPy."""

    def __init__(self) -> None:
        self.inner = Quantiles(0.0)
        self.gammas = 0.001 * 2.0 ** np.arange(8)
        self.levels, self.weights = np.full(8, ALPHA), np.full(8, 1 / 8)

    def threshold(self) -> float:
        """The quantile of the mean level."""
        self.inner.level = float(self.weights @ self.levels)
        return self.inner.threshold()

    def update(self, score: float) -> None:
        """All levels move, and their weights."""
        n = len(self.inner.sorted)
        beta = (n - bisect.bisect_left(self.inner.sorted, score)) / (n + 1) if n else ALPHA
        away = beta - self.levels
        weights = self.weights * np.exp(-2.7 * (ALPHA * away - np.minimum(0.0, away)))
        self.weights = 0.995 * weights / weights.sum() + 0.005 / 8
        self.levels += self.gammas * (ALPHA - (self.levels > beta))
        self.inner.update(score)


CONTENDERS = {
    "ConformalTracker": ConformalTracker,
    "ConformalTracker, two sides": partial(ConformalTracker, asymmetric=True),
    "ConformalTracker, 24 late": partial(ConformalTracker, horizon=24),
    "ACI 0.05, plain Python": partial(Quantiles, 0.05),
    "DtACI, NumPy": Several,
}


def by_rounds(tracker: Any, scores: list[float]) -> float:
    """Seconds of one round after another."""
    start = time.process_time()
    for score in scores:
        tracker.threshold()
        tracker.update(score)
    return time.process_time() - start


def whole(method: Callable[[np.ndarray], np.ndarray], scores: np.ndarray) -> float:
    """Seconds of a whole series."""
    start = time.process_time()
    method(scores)
    return time.process_time() - start


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    T = 1_000 if options.quick else 10_000
    scores = np.abs(np.random.default_rng(0).standard_normal(T))
    listed = scores.tolist()
    found: dict[str, dict[str, float]] = {}
    rows = []
    trackers = {name: make() for name, make in CONTENDERS.items()}
    for tracker in trackers.values():
        by_rounds(tracker, listed[:600])  # compiled, and the windows are full
    timed = best_of(5, *(partial(by_rounds, tracker, listed) for tracker in trackers.values()))
    for name, (seconds, spread) in zip(trackers, timed, strict=True):
        found[name] = {"us": 1e6 * seconds / T, "spread": spread}
        target = mark(found[name]["us"], TARGET) if name == "ConformalTracker" else ""
        rows.append([name, f"{found[name]['us']:.2f}", f"{spread:.2f}", target])
    table("threshold and update from Python", ["", "us a round", "spread", f"<= {TARGET:g}"], rows)
    for method in METHODS.values():
        method(scores[:5])
    timed = best_of(3, *(partial(whole, method, scores) for method in METHODS.values()))
    rows = []
    for name, (seconds, spread) in zip(METHODS, timed, strict=True):
        found[f"{name}, series"] = {"us": 1e6 * seconds / T, "spread": spread}
        rows.append([name, f"{1e6 * seconds / T:.3f}", f"{spread:.2f}"])
    table("a whole series, compiled", ["", "us a round", "spread"], rows)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
