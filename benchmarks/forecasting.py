"""Forecasts of several steps: time and memory of a row, beside river's Holt-Winters, and many series at once.

    python benchmarks/forecasting.py [SERIES]

Each row is forecast up to H steps ahead, with one season and two levels of intervals, and then learned: in a compiled
`run`, and by `forecast` and `update` in turn. Times are processor times, the best of several passes in turn.
statsforecast's AutoETS is timed on the same series where it is installed, in as many processes. It is fitted once a
series, for the forecast after its last row; that takes minutes for 1,000 series.
"""

import concurrent.futures
import functools
import sys
import time

import numpy as np
from river.time_series import HoltWinters

from thalweg.estimators import Forecaster

LEVELS = (0.8, 0.95)
ROWS, PASSES = 2_000, 5
MANY, LENGTH, HORIZON = 1_000, 500, 12


def series(seed, rows=ROWS, season=24):
    """A level that walks, a season and noise."""
    rng, t = np.random.default_rng(seed), np.arange(rows)
    walk = 0.2 * np.cumsum(rng.standard_normal(rows))
    return 100 + walk + 10 * np.sin(2 * np.pi * t / season) + rng.standard_normal(rows)


def by_run(y, horizon, levels, season):
    """A compiled run."""
    Forecaster(season=season, horizon=horizon, levels=levels).run(y)


def by_row(y, horizon, levels, season):
    """Forecast and update in turn."""
    model = Forecaster(season=season, horizon=horizon, levels=levels)
    for value in y.tolist():
        model.forecast()
        model.update(value)


def by_river(y, horizon, levels, season):
    """River's Holt-Winters; it has no intervals."""
    model = HoltWinters(alpha=0.3, beta=0.1, gamma=0.3, seasonality=season)
    for t, value in enumerate(y.tolist()):
        if t > 2 * season:
            model.forecast(horizon)
        model.learn_one(value)


def best(works):
    """Microseconds a row of each, the best of several passes in turn."""
    found = np.full(len(works), np.inf)
    for _ in range(PASSES):
        for i, work in enumerate(works):
            began = time.process_time()
            work()
            found[i] = min(found[i], time.process_time() - began)
    return 1e6 * found / ROWS


def rows():
    """The table of single rows."""
    print("| steps, season, levels | run | forecast and update | river's Holt-Winters | state |\n|---|---|---|---|---|")
    for horizon, levels, season in ((1, (), 24), (1, LEVELS, 24), (12, LEVELS, 12), (24, LEVELS, 24)):
        y = series(0, season=season)
        works = [functools.partial(way, y, horizon, levels, season) for way in (by_run, by_row, by_river)]
        times = " | ".join(f"{us:.1f} µs" for us in best(works))
        state = Forecaster(season=season, horizon=horizon, levels=levels)._memory.block.memory.nbytes
        print(f"| {horizon}, {season}, {len(levels)} | {times} | {state / 1000:.1f} kB |", flush=True)
    print()


def one(seed):
    """A series with all its forecasts; returns the squared error at the horizon."""
    y = series(seed, LENGTH, 12)
    said = Forecaster(season=12, horizon=HORIZON, levels=LEVELS).run(y).mean
    return float(np.mean((y[100 + HORIZON - 1 :] - said[100 : LENGTH - HORIZON + 1, -1]) ** 2))


def fitted(seed):
    """AutoETS fitted to the same series; nothing where it is not installed."""
    try:
        from statsforecast.models import AutoETS
    except ImportError:
        return False
    AutoETS(season_length=12).forecast(series(seed, LENGTH, 12), HORIZON)
    return True


def measured(work, seed):
    """Return the result for one series, and seconds of the processor."""
    began = time.process_time()
    return work(seed), time.process_time() - began


def timed(work, count):
    """Return results for so many series, and seconds in words, in two processes that have done some work before."""
    task = functools.partial(measured, work)
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        list(pool.map(task, range(count, count + 4)))
        began = time.perf_counter()
        found, seconds = zip(*pool.map(task, range(count), chunksize=20), strict=True)
        return found, f"{time.perf_counter() - began:.1f} s in 2 processes, {sum(seconds):.1f} s of the processor"


def many(count):
    """Many series, then AutoETS on the same."""
    errors, seconds = timed(one, count)
    print(f"{count} series of {LENGTH} rows, every row forecast {HORIZON} steps ahead with {len(LEVELS)} levels:")
    print(f"{seconds}; RMSE at the horizon {np.sqrt(np.mean(errors)):.3f}", flush=True)
    if fitted(0):
        _, seconds = timed(fitted, count)
        print(f"AutoETS, one fit of each of the {count} series: {seconds}")


if __name__ == "__main__":
    rows()
    many(int(sys.argv[1]) if len(sys.argv) > 1 else MANY)
