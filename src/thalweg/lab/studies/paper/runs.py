"""One run of the paper's experiments: an algorithm plays a stream, with the compiled projection or the paper's solver.

Its losses, queries and processor time are written down. Data depends on the names of the stream and the repetition
alone, so a new algorithm changes no other run.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from thalweg.algorithms.efficient_dynamic import EfficientDynamic
from thalweg.domains import Ball, Ellipsoid
from thalweg.errors import InputError
from thalweg.lab.catalog import build
from thalweg.lab.report import Row
from thalweg.lab.runs import (
    counted,
    curve_rounds,
    forecast_losses,
    one_thread,
    scaled_adaptive,
    scaled_sacs,
    steps,
    worst,
)
from thalweg.lab.streams import Stream, draw
from thalweg.lab.studies.paper.oracles import by_solver
from thalweg.learners.base import Learner
from thalweg.play import play

WARM_ROUNDS = 50  # played before the clock starts, and not counted
TIMED_SECONDS = 0.06  # a run that is timed is repeated for at least so long

# Parts of the printed thresholds with which about five experts are alive at a time, for both methods. The walk of the
# paper loses so little that the parts the catalog calls eager hardly fire on it.
CROWDED_SACS, CROWDED_ADAPTIVE = 1e-3, 1e-5

DYNAMIC = ("Sword", "EfficientDynamic")
ADAPTIVE = ("SACS", "EfficientAdaptive")
CROWDED = ("SACS-crowded", "EfficientAdaptive-crowded")
SOLVER_RUNS = {"piecewise": DYNAMIC, "gradual": (*ADAPTIVE, *CROWDED, "SACS-compact")}
SCALING = ("Sword", "EfficientDynamic", "SACS-compact", "EfficientAdaptive-crowded", "CBCE", "EfficientCBCE", "AOA",
           "EfficientAOA", "EfficientIntervalDynamic")  # fmt: skip
# Algorithms whose kernels have little in common. Without the package's library each row is compiled by one process.
FAMILIES = (
    ("OGD", "Sword", "Ader-own", "EfficientDynamic"),
    ("CBCE", "EfficientCBCE", "SACS", "EfficientAdaptive", "AOA"),
    ("CutkoskyAdaptive", "EfficientCutkosky"),
)


# ------------------------------------------------------------------------------------------------------------- one run


def _wide_dynamic(s: Stream) -> Learner:
    """Theorem 3 as printed: the ball Y has radius D, twice the radius needed."""
    Y = Ball(s.domain.shape, radius=s.domain.diameter, center=s.domain.center)
    T, G, B = len(s.problem), s.gradient_bound, s.loss_bound
    return EfficientDynamic(s.domain, T, G, s.smoothness, loss_bound=B, surrogate=Y)


# Settings that only this experiment needs; all else is in the catalog.
VARIANTS: dict[str, Callable[[Stream], Learner]] = {
    "EfficientDynamic-wide": _wide_dynamic,
    "SACS-crowded": lambda stream: scaled_sacs(stream, CROWDED_SACS),
    "EfficientAdaptive-crowded": lambda stream: scaled_adaptive(stream, CROWDED_ADAPTIVE),
}


def make(name: str, stream: Stream) -> Learner:
    """A fresh learner: one of the catalog, or one of the settings above."""
    return VARIANTS[name](stream) if name in VARIANTS else build(name, stream)


_draw = functools.lru_cache(maxsize=8)(draw)  # a worker plays many algorithms on the same data


@one_thread
def play_one(
    *,
    stream: str,
    algorithm: str,
    seed: int,
    oracle: str = "compiled",
    horizon: int | None = None,
    dim: int | None = None,
    rounds: int | None = None,
    repeats: int = 1,
) -> Row:
    """One run: an algorithm plays the first `rounds` of a stream. Returns its report.

    `seconds` is processor time, the best of at least `repeats`; kernels are loaded before. With oracle "solver", the
    same rounds are played with the compiled projection too: `exact_loss`.
    """
    source = _draw(stream, seed, horizon=horizon, dim=dim)
    problem, played, projection = source.problem, source, None
    if oracle == "solver":
        if not isinstance(source.domain, Ellipsoid):
            raise InputError(f"The solver projects onto the paper's ellipsoid. The set of {stream!r} is another.")
        slow, projection = by_solver(source.domain)
        played = replace(source, domain=slow)
    times: list[float] = []
    play(make(algorithm, played), problem, rounds=2 if projection else WARM_ROUNDS)
    while len(times) < repeats or (repeats > 1 and sum(times) < TIMED_SECONDS):
        learner = make(algorithm, played)  # a new one: how often a run is timed must not show in its numbers
        if projection:
            projection.calls = projection.outside = projection.iterations = 0
        began = time.thread_time()
        run = play(learner, problem, rounds=rounds)
        times.append(time.thread_time() - began)
        if run.interrupted:
            raise KeyboardInterrupt
    row: Row = {"stream": stream, "algorithm": algorithm, "oracle": oracle, "seed": seed, "dim": source.domain.dim}
    row |= counted(learner, run) | settings(learner) | {"horizon": len(problem), "worst_window": worst(run.losses)}
    simple = forecast_losses(problem).get("persistence")
    row["persistence"] = None if simple is None else float(simple[: run.rounds].sum())
    row |= {"outside": None, "iterations": None, "exact_loss": None}
    if projection:
        row["outside"] = projection.outside / projection.calls
        row["iterations"] = projection.iterations / projection.calls
        row["exact_loss"] = play(make(algorithm, source), problem, rounds=rounds).total_loss
    row |= {"seconds": min(times), "slowest_seconds": max(times)}
    row["curve"] = np.cumsum(run.losses)[curve_rounds(run.rounds) - 1].tolist()
    return row


def settings(learner: object) -> Row:
    """Facts behind a result: the size and largest step of a pool, the loss at which a cover starts a second expert."""
    found, C = steps(learner), getattr(getattr(learner, "inner", learner), "threshold", None)
    return {
        "members": None if found is None else int(found.size),
        "largest_step": None if found is None else float(found.max()),
        "first_threshold": None if C is None else float(C(1)),
    }


def warm_up(*, algorithms: list[str]) -> Row:
    """Load the kernels of some algorithms; compile and keep those that are not in the package's library."""
    for name in algorithms:
        play_one(stream="gradual", algorithm=name, seed=0, horizon=WARM_ROUNDS)
        if name in (*DYNAMIC, *ADAPTIVE):
            play_one(stream="gradual", algorithm=name, seed=0, horizon=WARM_ROUNDS, rounds=2, oracle="solver")
    return {"algorithms": algorithms}
