"""The paper's experiments, all of them, from one call: which runs, what one run is, and what is made of the results.

Everything is one kind of run: an algorithm plays a stream, with the compiled projection or with the paper's solver, and
its losses, queries and processor time are written down. The tables and pictures only select from these runs.

Data depends on the names of the stream and the repetition alone, so a new algorithm changes no other run.
"""

from __future__ import annotations

import functools
import itertools
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import thalweg as tw
from thalweg.algorithms import thresholds
from thalweg.domains import Ball, Ellipsoid
from thalweg.errors import InputError, MissingExtraError
from thalweg.lab._engines import need
from thalweg.lab.catalog import ALGORITHMS, build
from thalweg.lab.jobs import Job, run_jobs, seed_of
from thalweg.lab.oracles import by_solver
from thalweg.lab.streams import STREAMS, Stream, draw

__all__ = ["FULL", "SMALL", "USUAL", "Size", "experts", "plan", "play_one", "reproduce"]

Array = NDArray[np.float64]
Row = dict[str, Any]

POINTS = 200  # of a stored curve
WINDOW = 200  # rounds; the worst stretch of this length is reported
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
# Algorithms whose kernels have little in common: each row is compiled by one process while others compile the next.
FAMILIES = (
    ("OGD", "Sword", "Ader-own", "EfficientDynamic"),
    ("CBCE", "EfficientCBCE", "SACS", "EfficientAdaptive", "AOA"),
    ("CutkoskyAdaptive", "EfficientCutkosky"),
)


@dataclass(frozen=True)
class Size:
    """How much is run.

    Attributes
    ----------
    seeds : int
        Repetitions on synthetic streams; real ones are played once.
    horizon : int or None
        Rounds of every stream; None: as many as it has, 20 000 for a synthetic one.
    solver_rounds : int
        How many of these are played with the solver.
    repeats : int
        How often a run is timed, where times are reported; the fastest counts.
    horizons, dims : tuple of int
        T at d = 8, and d at the first of these T, for the time of a round.
    streams : tuple of str
        What every algorithm of the catalog plays.
    """

    seeds: int = 5
    horizon: int | None = None
    solver_rounds: int = 1_000
    repeats: int = 2
    horizons: tuple[int, ...] = (2_000, 20_000, 200_000)
    dims: tuple[int, ...] = (2, 8, 32, 128, 512)
    streams: tuple[str, ...] = tuple(STREAMS)


USUAL = Size()
FULL = Size(solver_rounds=20_000)
SMALL = Size(2, 120, 8, 1, (60, 120), (2, 4), ("piecewise", "gradual", "classification"))


# ------------------------------------------------------------------------------------------------------------- one run


def _wide_dynamic(s: Stream) -> tw.Learner:
    """Theorem 3 as printed: the ball Y has radius D, twice what is needed."""
    Y = Ball(s.domain.shape, radius=s.domain.diameter, center=s.domain.center)
    return tw.EfficientDynamic(
        s.domain, len(s.problem), s.gradient_bound, s.smoothness, loss_bound=s.loss_bound, surrogate=Y
    )


def _crowded_sacs(s: Stream) -> tw.Learner:
    L = s.smoothness or 0.0
    C = CROWDED_SACS * thresholds.sacs(L=L, D=s.domain.diameter, delta=1.0)
    return tw.SACS(s.domain, s.loss_bound, L, threshold=C, horizon=len(s.problem))


def _crowded_adaptive(s: Stream) -> tw.Learner:
    T, G, L = len(s.problem), s.gradient_bound, s.smoothness or 0.0
    C = functools.partial(thresholds.adaptive_paper, T=T, G=G, L=L, R=s.domain.surrogate.radius, delta=1.0)
    return tw.EfficientAdaptive(s.domain, T, G, L, threshold=lambda m: CROWDED_ADAPTIVE * C(m))


# Settings that only this experiment needs; all else is in the catalog.
VARIANTS: dict[str, Callable[[Stream], tw.Learner]] = {
    "EfficientDynamic-wide": _wide_dynamic,
    "SACS-crowded": _crowded_sacs,
    "EfficientAdaptive-crowded": _crowded_adaptive,
}


def make(name: str, stream: Stream) -> tw.Learner:
    """A fresh learner: one of the catalog, or one of the settings above."""
    return VARIANTS[name](stream) if name in VARIANTS else build(name, stream)


_draw = functools.lru_cache(maxsize=8)(draw)  # a worker plays many algorithms on the same data


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
    """One run: an algorithm plays the first `rounds` of a stream. Returns what there is to report.

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
    with need("threadpoolctl", "lab").threadpool_limits(1):  # with more, the solver's last digits depend on how many
        tw.play(make(algorithm, played), problem, rounds=2 if projection else WARM_ROUNDS)
        while len(times) < repeats or (repeats > 1 and sum(times) < TIMED_SECONDS):
            learner = make(algorithm, played)  # a new one: how often a run is timed must not show in its numbers
            if projection:
                projection.calls = projection.outside = projection.iterations = 0
            began = time.thread_time()
            run = tw.play(learner, problem, rounds=rounds)
            times.append(time.thread_time() - began)
            if run.interrupted:
                raise KeyboardInterrupt
    T = run.rounds
    markers, alive, most = experts(learner, T)
    row: Row = {"stream": stream, "algorithm": algorithm, "oracle": oracle, "seed": seed, "dim": source.domain.dim}
    row |= {"horizon": len(problem), "rounds": T, "total_loss": run.total_loss, "worst_window": worst(run.losses)}
    row |= {key: getattr(run.queries, key) / T for key in ("projections", "gradients", "values")}
    row |= {"markers": markers, "experts": alive, "most_experts": most} | settings(learner)
    row |= {"outside": None, "iterations": None, "exact_loss": None}
    if projection:
        row["outside"] = projection.outside / projection.calls
        row["iterations"] = projection.iterations / projection.calls
        row["exact_loss"] = tw.play(make(algorithm, source), problem, rounds=rounds).total_loss
    row |= {"seconds": min(times), "slowest_seconds": max(times)}
    row["curve"] = np.cumsum(run.losses)[curve_rounds(T) - 1].tolist()
    return row


def curve_rounds(rounds: int) -> NDArray[np.int64]:
    """The rounds, counted from 1, at which a curve is stored."""
    return np.unique(np.linspace(1, rounds, POINTS).astype(np.int64))


def worst(losses: Array) -> float:
    """The largest loss of `WINDOW` rounds in a row; of a fifth of the rounds where there are few."""
    wide = max(1, min(WINDOW, losses.size // 5))
    sums = np.cumsum(np.r_[0.0, losses])
    return float((sums[wide:] - sums[:-wide]).max())


def experts(learner: Any, rounds: int) -> tuple[int | None, float | None, int | None]:
    """Markers so far, mean and largest number of experts alive in these rounds; None without a cover.

    In a compact cover the experts alive are the one-bits of the newest marker's number, in the other its digits.
    """
    inner = getattr(learner, "inner", learner)
    if not isinstance(inner, tw.CoverEnsemble):
        return None, None, None
    played = np.arange(1, rounds + 1)
    newest = played
    if inner.threshold is not None:
        starts = np.array(inner.markers)  # on a very long run only the latest ones
        played = played[played >= starts[0]]
        newest = np.searchsorted(starts, played, side="right") + inner.marker_count - starts.size
    bits = newest[:, None] >> np.arange(40)
    alive = ((bits & 1) if inner.cover == "compact" else (bits > 0)).sum(axis=1)
    return int(newest[-1]), float(alive.mean()), int(alive.max())


def settings(learner: Any) -> Row:
    """What explains a result: the size and largest step of a pool, the loss at which a cover starts a second expert."""
    inner = getattr(learner, "inner", learner)
    steps, C = getattr(inner, "step_sizes", None), getattr(inner, "threshold", None)
    return {
        "members": None if steps is None else int(steps.size),
        "largest_step": None if steps is None else float(steps.max()),
        "first_threshold": None if C is None else float(C(1)),
    }


def warm_up(*, algorithms: list[str]) -> Row:
    """Have the kernels of some algorithms compiled, for this machine and all later processes."""
    for name in algorithms:
        play_one(stream="gradual", algorithm=name, seed=0, horizon=WARM_ROUNDS)
        if name in (*DYNAMIC, *ADAPTIVE):
            play_one(stream="gradual", algorithm=name, seed=0, horizon=WARM_ROUNDS, rounds=2, oracle="solver")
    return {"algorithms": algorithms}


# ------------------------------------------------------------------------------------------------------------ all runs


def plan(size: Size) -> list[Job]:
    """Every run, as data."""
    survey = []
    for stream in size.streams:
        seeds = 1 if STREAMS[stream].real else size.seeds
        extra = {"piecewise": ("EfficientDynamic-wide",), "gradual": CROWDED}.get(stream, ())
        repeats = size.repeats if stream in SOLVER_RUNS else 1
        for name, k in itertools.product((*ALGORITHMS, *extra), range(seeds)):
            survey.append(_job(stream, name, k, horizon=size.horizon, repeats=repeats))
    solver = [
        _job(stream, name, k, oracle="solver", horizon=size.horizon, rounds=size.solver_rounds)
        for stream, names in SOLVER_RUNS.items()
        for name, k in itertools.product(names, range(size.seeds))
    ]
    sizes = [{"horizon": T, "dim": 8} for T in size.horizons]
    sizes += [{"horizon": size.horizons[0], "dim": d} for d in size.dims if d != 8]
    scaling = [_job("piecewise", name, 0, repeats=size.repeats, **at) for at in sizes for name in SCALING]
    # The long runs spread evenly among the short ones: progress is then as even as time.
    groups = (survey, solver, scaling)
    order = [((i + 0.5) / len(group), g) for g, group in enumerate(groups) for i in range(len(group))]
    each = [iter(group) for group in groups]
    return [next(each[g]) for _, g in sorted(order)]


def _job(stream: str, algorithm: str, k: int, **options: Any) -> Job:
    given = {key: value for key, value in options.items() if value is not None}
    seed = seed_of(f"{stream}/{k}")
    marks = [given.get("oracle", ""), *(f"{key}-{given[key]}" for key in ("dim", "horizon") if "dim" in given)]
    name = "/".join([stream, algorithm, *filter(None, marks), f"seed-{k}"])
    return Job(name, f"{__name__}:play_one", {"stream": stream, "algorithm": algorithm, "seed": seed, **given})


def _part(job: Job) -> str:
    """Which part of the report a run belongs to: "survey", "solver" or "scaling"."""
    return "scaling" if "dim" in job.arguments else "solver" if "oracle" in job.arguments else "survey"


def available(streams: Iterable[str]) -> tuple[str, ...]:
    """The streams whose data is installed."""
    found = []
    for name in streams:
        try:
            if STREAMS[name].real:
                draw(name, horizon=10)
            found.append(name)
        except MissingExtraError:
            pass
    return tuple(found)


def reproduce(
    folder: Path | str,
    *,
    full: bool = False,
    small: bool = False,
    engine: str = "local",
    workers: int | None = None,
    scheduler: str | None = None,
    progress: bool = True,
    command: str = "",
) -> Path:
    """Run the paper's experiments and write the report.

    Parameters
    ----------
    folder : path
        Where everything goes. What is in folder/runs from an earlier, perhaps interrupted, call is not run again.
    full : bool
        Play the solver's runs to the end too. Takes about ten times as long.
    small : bool
        A few rounds of everything: seconds, and no meaning. For tests.
    engine, workers, scheduler, progress
        As for `run_jobs`.
    command : str
        What the reader is told to type to get the same.

    Returns
    -------
    Path
        The page, folder/index.html. Beside it: pictures, runs.csv, about.json.

    Raises
    ------
    LabError
        A run failed or a file could not be written. What is finished is kept.
    """
    from thalweg.lab import figures, page

    if full and small:
        raise InputError("reproduce: full and small exclude each other.")
    size = FULL if full else SMALL if small else USUAL
    size = replace(size, streams=available(size.streams))
    folder = Path(folder)
    began = time.time()
    options: dict[str, Any] = {"engine": engine, "workers": workers, "scheduler": scheduler, "progress": progress}
    if not small:
        if progress:
            sys.stderr.write("Compiling the kernels, or loading them:\n")
        run_jobs(
            [Job(f"warm-up/{k}", f"{__name__}:warm_up", {"algorithms": f}) for k, f in enumerate(FAMILIES)],
            folder,
            **options,
        )
    jobs = plan(size)
    results = run_jobs(jobs, folder, **options)
    rows = [
        {"run": job.name, "part": _part(job), **results[job.name]} for job in sorted(jobs, key=lambda job: job.name)
    ]
    about = page.about(asdict(size), seconds=time.time() - began, command=command, full=full, small=small)
    pictures = figures.draw_all(rows)
    return page.write(folder, rows, about, pictures)
