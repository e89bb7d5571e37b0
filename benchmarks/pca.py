"""Time of a round of online PCA beside one eigendecomposition.

1. A round of `EfficientPCA` (`components`, which draws the projection, and `update`) against LAPACK's symmetric
   eigendecomposition of the very matrices of these rounds, by the fastest driver. Two stretches: the first rounds, and
   those before round 2^14, where the most experts are alive.
2. Time of a round of each learner, and its number of eigendecompositions.
3. Memory.

    python benchmarks/pca.py [--quick] [--json FILE]

One thread for LAPACK: at these sizes more only get in each other's way. Times are processor time, the best of several
runs that take turns; the spread is slowest over fastest. The exit code is 0 whatever the times are.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import pathlib
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

for _library in ("OPENBLAS", "MKL", "OMP"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"  # before NumPy is loaded

import numpy as np  # noqa: E402
from scipy.linalg import lapack  # noqa: E402

from bench import best_of, mark, table  # noqa: E402
from thalweg.pca import AdaptivePCA, DescentPCA, EfficientPCA, PCALearner, YuanLamperskiPCA  # noqa: E402

TARGET = 1.3  # times one eigendecomposition
RANK = 5
LATE = 2**14  # 14 experts are alive in the round before
FULL = ((50, 512), (100, 256), (200, 128))  # (d, rounds)
QUICK = ((50, 64), (100, 32))


def stream(d: int, rounds: int) -> np.ndarray:
    """Unit vectors near a subspace that changes twice."""
    rng = np.random.default_rng(0)
    rows = np.empty((rounds, d))
    for t in range(rounds):
        if t % max(1, rounds // 3) == 0:
            A = np.linalg.qr(rng.standard_normal((d, RANK)))[0]
        rows[t] = A @ rng.standard_normal(RANK) + 0.1 * rng.standard_normal(d)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@functools.cache
def late_state(d: int, rounds: int) -> dict[str, Any]:
    """The state so many rounds before round 2^14."""
    played = LATE - 1 - rounds
    return EfficientPCA(d, RANK, rng=0).partial_fit(np.resize(stream(d, rounds), (played, d))).state()


def drivers(matrices: list[np.ndarray]) -> dict[str, Callable[[], float]]:
    """One eigendecomposition of each of the matrices, by every driver that can do it."""
    d = matrices[0].shape[0]
    work = np.empty((d, d), order="F")

    def numpy_eigh() -> float:
        began = time.process_time()
        for A in matrices:
            np.linalg.eigh(A)
        return time.process_time() - began

    def scipy_lapack(name: str) -> Callable[[], float]:
        function, sizes = getattr(lapack, name), getattr(lapack, f"{name}_lwork")(d)
        keys = ("lwork", "liwork") if len(sizes) == 3 else ("lwork",)
        options = {key: int(size) for key, size in zip(keys, sizes, strict=False)}

        def run() -> float:
            began = time.process_time()
            for A in matrices:
                work[...] = A
                function(work, lower=1, overwrite_a=1, **options)
            return time.process_time() - began

        return run

    return {"numpy eigh": numpy_eigh} | {f"scipy {name}": scipy_lapack(name) for name in ("dsyevd", "dsyevr")}


def captured(learner: PCALearner, rows: np.ndarray) -> list[np.ndarray]:
    """The matrices that a learner diagonalises in these rounds."""
    found: list[np.ndarray] = []
    real = learner._diagonalise

    def watched(A: np.ndarray) -> Any:
        found.append(A.copy())  # only its lower triangle counts
        return real(A)

    learner._diagonalise = watched  # type: ignore[method-assign]
    for x in rows:
        learner.update(x)
    del learner._diagonalise
    return found


def rounds_of(learner: PCALearner, state: dict[str, Any], rows: np.ndarray, drawn: bool) -> Callable[[], float]:
    """Play the rows from a state."""

    def run() -> float:
        learner.restore(state)
        began = time.process_time()
        for x in rows:
            if drawn:
                _ = learner.components
            learner.update(x)
        return time.process_time() - began

    return run


def against_lapack(cases: tuple[tuple[int, int], ...], repeats: int) -> list[dict[str, Any]]:
    """The first measurement."""
    results = []
    for d, rounds in cases:
        rows = stream(d, rounds)
        for where, first in (("first", 0), ("late", LATE - 1 - rounds)):
            learner = EfficientPCA(d, RANK, rng=0)
            state = late_state(d, rounds) if first else learner.state()
            learner.restore(state)
            matrices = captured(learner, rows)
            alive = np.mean([(first + t + 1).bit_count() for t in range(rounds)])
            runs = {"round": rounds_of(learner, state, rows, drawn=True), **drivers(matrices)}
            times = dict(zip(runs, best_of(repeats, *runs.values()), strict=True))
            best = min((name for name in runs if name != "round"), key=lambda name: times[name][0])
            results.append(
                {
                    "d": d,
                    "rounds": rounds,
                    "where": where,
                    "alive": float(alive),
                    "driver": best,
                    "eigh_us": 1e6 * times[best][0] / rounds,
                    "eigh_spread": times[best][1],
                    "round_us": 1e6 * times["round"][0] / rounds,
                    "round_spread": times["round"][1],
                    "ratio": times["round"][0] / times[best][0],
                }
            )
    return results


def learners(cases: tuple[tuple[int, int], ...], repeats: int) -> list[dict[str, Any]]:
    """The second measurement: whole rounds, without drawing."""
    results = []
    for d, rounds in cases:
        rows = stream(d, rounds)
        makers: dict[str, Callable[[], PCALearner]] = {
            "EfficientPCA": lambda d=d: EfficientPCA(d, RANK, rng=0),
            "DescentPCA": lambda d=d, T=rounds: DescentPCA(d, RANK, T, rng=0),
            "AdaptivePCA": lambda d=d: AdaptivePCA(d, RANK, rng=0),
            "YuanLamperskiPCA": lambda d=d, T=rounds: YuanLamperskiPCA(d, RANK, T, rng=0),
        }
        players = {name: make() for name, make in makers.items()}
        runs = [rounds_of(player, player.state(), rows, drawn=False) for player in players.values()]
        for (name, player), (seconds, spread) in zip(players.items(), best_of(repeats, *runs), strict=True):
            count = player.eigendecompositions / rounds
            results.append(
                {
                    "d": d,
                    "rounds": rounds,
                    "learner": name,
                    "us": 1e6 * seconds / rounds,
                    "spread": spread,
                    "eigh": count,
                }
            )
    return results


def memory(cases: tuple[tuple[int, int], ...]) -> list[dict[str, Any]]:
    """The third: memory of a learner before round 2^14, in units of d^2 numbers, and the most while LAPACK works."""
    results = []
    for d, rounds in cases:
        state = late_state(d, rounds)
        tracemalloc.start()
        learner = EfficientPCA(d, RANK, rng=0)
        learner.restore(state)
        learner.update(stream(d, rounds)[0])
        held, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        unit = 8 * d * d
        results.append(
            {"d": d, "levels": len(learner._memory.block.arrays["born"]), "held": held / unit, "peak": peak / unit}
        )
    return results


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few seconds")
    parser.add_argument("--json", type=pathlib.Path, help="write the numbers to this file")
    options = parser.parse_args()
    cases, repeats = (QUICK, 3) if options.quick else (FULL, 9)
    print(f"load: {os.getloadavg()[0]:.1f} processes wanted a core during the last minute")

    first = against_lapack(cases, repeats)
    table(
        "1. A round of EfficientPCA against one LAPACK eigendecomposition, microseconds",
        ["rounds", "d", "number", "alive", "fastest driver", "eigh us", "spread", "round us", "spread", "ratio",
         f"<= {TARGET:g}"],
        [[r["where"], r["d"], r["rounds"], f"{r['alive']:.1f}", r["driver"], f"{r['eigh_us']:.0f}",
          f"{r['eigh_spread']:.2f}", f"{r['round_us']:.0f}", f"{r['round_spread']:.2f}", f"{r['ratio']:.2f}",
          mark(r["ratio"], TARGET)] for r in first],
    )  # fmt: skip
    second = learners(cases, max(3, repeats // 3))
    table(
        "2. A round of each learner",
        ["learner", "d", "rounds", "us", "spread", "eigendecompositions a round"],
        [[r["learner"], r["d"], r["rounds"], f"{r['us']:.0f}", f"{r['spread']:.2f}", f"{r['eigh']:.2f}"]
         for r in second],
    )  # fmt: skip
    third = memory(cases)
    table(
        "3. Memory in round 2^14, in units of d^2 numbers",
        ["d", "levels", "held", "most, while LAPACK works"],
        [[r["d"], r["levels"], f"{r['held']:.1f}", f"{r['peak']:.1f}"] for r in third],
    )  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps({"lapack": first, "learners": second, "memory": third}, indent=1) + "\n")


if __name__ == "__main__":
    main()
