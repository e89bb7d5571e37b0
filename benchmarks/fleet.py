"""Fleets: cost of a round, of a birth and of memory, beside a single learner's run and a dict of learners; and on disk.

    python benchmarks/fleet.py                 a million streams of EfficientDynamic, fewer of the others: 6 GB
    python benchmarks/fleet.py --streams 10000

    python benchmarks/fleet.py --only Conformal    cases whose name has this, and neither frames nor disk

Processor time, the least of a few turns of everything that is compared. Single learners are as old as the streams and
get rows of the same kind; the time of a call with one row is subtracted, so that only rounds count. In the rounds that
are compared no state grows and no Forecaster looks for seasons. Resident memory is that of the process, less that
before the fleet. "Memory alone" is the time to read and write the bytes of a stream at the bandwidth of a large copy: a
bound for rounds with one row a key.
"""

import argparse
import ctypes
import gc
import os
import shutil
import tempfile
import time
import tracemalloc

import numpy as np

import thalweg as tw
from thalweg.domains import Ball, Box
from thalweg.estimators import ConformalTracker, Forecaster

AGE, MORE = 380, 120  # rounds of streams before they are measured, and of single learners after that
LONG = 5000  # the latter, for learners whose rounds stay the same
SINGLES = 100  # learners
TURNS = 7


def cpu(work, collect=True):
    """Processor seconds."""
    if collect:
        gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def resident():
    """Bytes of this process in memory, without those that its allocator keeps for later."""
    gc.collect()
    if hasattr(trim := ctypes.CDLL(None), "malloc_trim"):
        trim.malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def bandwidth(size=1 << 28):
    """Bytes a second of a copy out of cache: each is read and written."""
    one, other = np.ones(size // 8), np.ones(size // 8)
    return size / min(cpu(lambda: np.copyto(one, other)) for _ in range(TURNS))


class Case:
    """A template, its rows, and how single learners play them: `more` rounds after the first AGE ones."""

    def __init__(self, name, make, streams, more=MORE, seed=0):
        self.name, self.make, self.streams, self.more = name, make, streams, more
        self.rng = np.random.default_rng(seed)

    def update(self, fleet, keys):
        """Play a row of each of these keys."""
        n = len(keys)
        if isinstance(self.make(), Forecaster):
            y = 5 + self.rng.standard_normal(n)
            return lambda: fleet.run(keys, y)
        if isinstance(self.make(), ConformalTracker):
            f = self.rng.standard_normal((n, 1))
            y = f[:, 0] + self.rng.standard_normal(n)
            return lambda: fleet.run(keys, y, f)
        g, paid = 0.3 * self.rng.standard_normal((n, self.make().domain.dim)), 5 + self.rng.random(n)
        return lambda: fleet.update(keys, g, paid)

    def rounds(self, one, y, first, last):
        """A call that plays some rounds of a single learner, which has played those before them."""
        if isinstance(one, Forecaster):
            return lambda: one.run(y[first:last])
        if isinstance(one, ConformalTracker):
            return lambda: one.run(np.zeros(last - first), y[first:last])
        world = tw.problems.LinearModel(self.gradients[first:last], 5 + abs(y[first:last]), loss="linear")
        return lambda: tw.play(one, world)

    def single(self):
        """Seconds of SINGLES learners for AGE rounds and one more, without the former; and for `more` ones."""
        n, d = AGE + self.more, getattr(getattr(self.make(), "domain", None), "dim", 1)
        rng = np.random.default_rng(1)  # the same rows in every turn: seasons that are found decide what a round takes
        self.gradients = 0.3 * rng.standard_normal((n, d))
        found = [0.0, 0.0]
        for _ in range(SINGLES):
            y = rng.standard_normal(n) + (5 if isinstance(self.make(), Forecaster) else 0)
            for k, last in enumerate((AGE + 1, n)):
                one = self.make()
                self.rounds(one, y, 0, AGE)()
                found[k] += cpu(self.rounds(one, y, AGE, last), collect=False)
        return found

    def alone(self, found):
        """Seconds a round of a single learner that is as old as the streams: calls themselves drop out."""
        call, rounds = np.min(found, axis=0)
        return (rounds - call) / (self.more - 1) / SINGLES

    def by_hand(self, count=300, rounds=30):
        """A dict of learners, called from Python; seconds a round, and bytes a learner."""
        tracemalloc.start()
        learners = {key: self.make() for key in range(count)}

        def play():
            for one in learners.values():
                if isinstance(one, Forecaster):
                    one.predict()
                    one.update(5.0)
                elif isinstance(one, ConformalTracker):
                    one.predict_interval(0.0)
                    one.update(1.0)
                else:
                    _ = one.decision
                    one.update(g, 1.0)

        g = np.full(learners[0].domain.dim, 0.1) if hasattr(learners[0], "domain") else None
        for _ in range(rounds):
            play()
        size = tracemalloc.get_traced_memory()[0] / count
        tracemalloc.stop()
        return min(cpu(play) for _ in range(TURNS)) / count, size


def widths(fleet):
    """Words of every stream."""
    memory = fleet._streams
    return np.array([shelf.width for _, shelf in memory.classes])[memory.kind[memory.alive]]


def measure(case, threads):
    """One line of the table."""
    n, rng = case.streams, case.rng
    hand, weight = case.by_hand()
    before = resident()
    fleet = tw.Fleet(case.make(), time_col=None, threads=threads)
    born = cpu(case.update(fleet, rng.permutation(n))) / n
    for some in np.array_split(np.arange(n), max(1, n // 50_000)):
        for _ in range(AGE // 20):
            case.update(fleet, np.repeat(some, 20))()
    memory, ours = resident() - before, fleet.nbytes  # before the single learners, which leave holes in it
    single, one, eight = [], [], []
    for _ in range(TURNS):
        single.append(case.single())
        one.append(cpu(case.update(fleet, rng.permutation(n))) / n)
        keys = np.repeat(rng.permutation(n)[: n // 8], 8)
        eight.append(cpu(case.update(fleet, keys)) / keys.size)
    s, a, b, bytes_each = case.alone(single), min(one), min(eight), 8 * np.mean(widths(fleet))
    print(
        f"| {case.name} | {n:.0e} | {1e6 * s:.2f} | {1e6 * a:.2f} ({a / s:.2f}) | {1e6 * b:.2f} ({b / s:.2f}) | "
        f"{1e6 * bytes_each / bandwidth():.2f} | {1e6 * born:.2f} | {1e6 * hand:.1f} | "
        f"{ours / n:,.0f} | {memory / ours:.2f} | {weight / 1e3:.0f} kB |",
        flush=True,
    )
    return fleet


def frames(streams):
    """From polars frames with string keys."""
    import polars as pl

    name, rng = "Forecaster(lags=8, season=None)", np.random.default_rng(0)
    case = Case(name, lambda: Forecaster(lags=8, season=None), streams)
    fleet = tw.Fleet(case.make(), time_col=None, threads=1)
    names, single, found = [f"house-{k:07d}" for k in range(streams)], [], []
    for turn in range(TURNS + AGE // 2):
        order = rng.permutation(streams)
        frame = pl.DataFrame({"unique_id": [names[k] for k in order], "y": 5 + rng.standard_normal(streams)})
        seconds = cpu(lambda frame=frame: fleet.run(frame)) / streams
        if turn >= AGE // 2:
            found.append(seconds)
            single.append(case.single())
    s, a = case.alone(single), min(found)
    print(f"{name}, {streams:.0e} string keys in a polars frame: {1e6 * a:.2f} us a row, {a / s:.2f} of a single run")


def disk(streams):
    """Checkpoints, restart and journal of EfficientDynamic."""
    folder = tempfile.mkdtemp(dir=os.environ.get("BENCH_DIR"))
    try:
        case = Case("", dynamic, streams)
        fleet = tw.Fleet(dynamic(), time_col=None, folder=os.path.join(folder, "f"))
        case.update(fleet, np.arange(streams))()
        wide = fleet._streams.classes[0][1].width * 8 + 24
        for share in (1.0, 0.01, 0.1, 1.0):
            some = case.rng.permutation(streams)[: max(1, int(share * streams))]
            call = case.update(fleet, some)
            start = time.perf_counter()
            call()
            batch, start = time.perf_counter() - start, time.perf_counter()
            written = fleet.checkpoint()
            print(
                f"{100 * share:.0f} % changed: batch with its journal {batch:.2f} s, checkpoint "
                f"{time.perf_counter() - start:.2f} s, {written / some.size / wide:.3f} of the changed bytes",
                flush=True,
            )
        small = case.update(fleet, np.arange(4000))
        times = []
        for _ in range(10):
            start = time.perf_counter()
            small()
            times.append(time.perf_counter() - start)
        print(f"a batch of 4,000 rows, on disk before its answers: {1e3 * np.median(times):.1f} ms")
        fleet.close()
        start, spent = time.perf_counter(), time.process_time()
        again = tw.Fleet.open(os.path.join(folder, "f"))
        print(
            f"restart with {len(again):,} streams: {time.perf_counter() - start:.1f} s "
            f"({time.process_time() - spent:.1f} s of processor time)"
        )
    finally:
        shutil.rmtree(folder)


def dynamic():
    """EfficientDynamic with 8 numbers."""
    return tw.EfficientDynamic(Box(-1, 1, shape=8), horizon=10_000, gradient_bound=10.0)


def main():
    """Measure everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    n = given.streams
    print("| learner | streams | single, us | one row a key (ratio) | 8 rows a key (ratio) | memory alone, us | "
          "birth, us | dict of learners, us | bytes a stream | resident / nbytes | a learner in a dict |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for case in (
        Case("EfficientDynamic(Box(8))", dynamic, n, LONG),
        Case("Tracker(Ball(4))", lambda: tw.Tracker(Ball(4)), n // 10),
        Case("Forecaster(lags=8, season=None)", lambda: Forecaster(lags=8, season=None), n // 10),
        Case("Forecaster(lags=8)", lambda: Forecaster(lags=8), n // 10),
        Case("Forecaster()", lambda: Forecaster(), n // 10),
        Case("ConformalTracker(0.9)", lambda: ConformalTracker(0.9), n // 20),
    ):
        if given.only in case.name:
            measure(case, given.threads)
            gc.collect()
    if not given.only:
        frames(n // 10)
        disk(n)


if __name__ == "__main__":
    main()
