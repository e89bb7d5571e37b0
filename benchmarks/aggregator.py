"""Forecast combination: microseconds a round of `predict` + `update` and of `run`, beside opera-python's way.

    python benchmarks/aggregator.py

opera-python is timed where it is installed (it is not on PyPI); else a transcription of a round of its BOA,
which also appends to a history that grows, as it does.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from thalweg.estimators import Aggregator

TARGET = 30.0  # us, predict + update
CASES = (3, 5, 10, 40)  # experts
T = 2_000


def _data(K: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.cumsum(rng.normal(size=T))
    return y[:, None] + rng.normal(size=(T, K)) * rng.uniform(0.5, 2, K), y


def best(work: Callable[[], Any], repeats: int = 5) -> float:
    """Microseconds a round: the best of a few."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return 1e6 * min(times) / T


def by_rounds(X: np.ndarray, y: np.ndarray, **options: Any) -> None:
    """One round at a time."""
    aggregator = Aggregator(**options)
    for x, answer in zip(X, y, strict=True):
        aggregator.predict(x)
        aggregator.update(answer)


def opera_python(X: np.ndarray, y: np.ndarray) -> None:
    """A round of its BOA in NumPy, and its history."""
    K = X.shape[1]
    V, M, A, s = np.full(K, 2.0**-20), np.full(K, 2.0**-20), np.zeros(K), np.full(K, 2.0**-20)
    said, played, shown, seen = np.array([]), np.empty((0, K)), np.empty((0, K)), np.array([])
    for x, answer in zip(X, y, strict=True):
        logs = np.log(s) + np.log(1 / K) + s * A
        w = np.exp(logs - np.max(logs))
        w = w / np.sum(w)
        p = np.sum(w * x)
        r = 2 * (p - answer) * p - 2 * (p - answer) * x
        V, M = V + np.square(r), np.maximum(M, np.abs(r))
        B = np.power(2, np.ceil(np.log2(M)))
        s = np.minimum(1 / B, np.sqrt(np.log(K) / V))
        A = A + (r - s * np.square(r) + B * (s * r > 0.5)) / 2
        said, seen = np.append(said, p), np.append(seen, answer)
        played, shown = np.vstack((played, w)), np.vstack((shown, x))


def installed(X: np.ndarray, y: np.ndarray) -> Callable[[], Any] | None:
    """opera-python itself, where it is."""
    try:
        mixture = importlib.import_module("opera").Mixture
        frame = importlib.import_module("pandas").DataFrame(X)
    except (ImportError, AttributeError):
        return None
    return lambda: mixture(y, frame, model="BOA", loss_type="mse")


def main() -> None:
    """Measure and print."""
    print(f"us of processor time a round, best of 5, {T} rounds; target of predict + update: {TARGET:g}")
    print(f"{'experts':>8}{'predict + update':>18}{'run':>8}{'BOA alone, run':>16}{'opera-python BOA':>18}")
    worst = 0.0
    for K in CASES:
        X, y = _data(K)
        Aggregator().run(X, y)
        by_rounds(X[:2], y[:2])
        one = best(lambda X=X, y=y: by_rounds(X, y))
        whole = best(lambda X=X, y=y: Aggregator().run(X, y))
        alone = best(lambda X=X, y=y: Aggregator(rule="BOA").run(X, y))
        theirs = best(installed(X, y) or (lambda X=X, y=y: opera_python(X, y)), 2)
        worst = max(worst, one) if K <= 10 else worst
        print(f"{K:>8}{one:>18.1f}{whole:>8.2f}{alone:>16.2f}{theirs:>18.1f}")
    print("target met up to 10 experts" if worst <= TARGET else f"target missed: {worst:.1f} us")


if __name__ == "__main__":
    main()
