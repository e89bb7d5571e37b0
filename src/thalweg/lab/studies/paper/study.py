"""All experiments of the paper: the list of runs, and the study made of them.

Everything is one kind of run (`runs.play_one`). The tables and pictures only select from these runs.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from thalweg.lab.catalog import prompt
from thalweg.lab.jobs import Job, job, seed_of
from thalweg.lab.report import Results, Row
from thalweg.lab.streams import STREAMS, installed
from thalweg.lab.studies.paper import figures, report, runs
from thalweg.lab.studies.paper.runs import CROWDED, FAMILIES, SCALING, SOLVER_RUNS
from thalweg.lab.study import Study


@dataclass(frozen=True)
class Size:
    """How much is run."""

    seeds: int = 5  # repetitions on synthetic streams; real ones are played once
    horizon: int | None = None  # rounds of every stream; None: as many as it has, 20 000 for a synthetic one
    solver_rounds: int = 1_000  # how many of these are played with the solver
    repeats: int = 2  # how often a run is timed, where times are reported; the fastest counts
    horizons: tuple[int, ...] = (2_000, 20_000, 200_000)  # T at d = 8, for the time of a round
    dims: tuple[int, ...] = (2, 8, 32, 128, 512)  # d at the first of these T
    streams: tuple[str, ...] = tuple(STREAMS)  # played by every algorithm of the catalog


SIZES = {
    "usual": Size(),
    "full": Size(solver_rounds=20_000),
    "small": Size(2, 120, 8, 1, (60, 120), (2, 4), ("piecewise", "gradual", "classification")),
}


def plan(size: Size) -> list[Job]:
    """Every run, as data."""
    survey = []
    for stream in size.streams:
        seeds = 1 if STREAMS[stream].real else size.seeds
        extra = {"piecewise": ("EfficientDynamic-wide",), "gradual": CROWDED}.get(stream, ())
        repeats = size.repeats if stream in SOLVER_RUNS else 1
        for name, k in itertools.product((*prompt(), *extra), range(seeds)):
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
    even = [((i + 0.5) / len(group), g, one) for g, group in enumerate(groups) for i, one in enumerate(group)]
    return [one for *_, one in sorted(even, key=operator.itemgetter(0, 1))]


def _job(stream: str, algorithm: str, k: int, **options: Any) -> Job:
    given = {key: value for key, value in options.items() if value is not None}
    seed = seed_of(f"{stream}/{k}")
    marks = [given.get("oracle", ""), *(f"{key}-{given[key]}" for key in ("dim", "horizon") if "dim" in given)]
    name = "/".join([stream, algorithm, *filter(None, marks), f"seed-{k}"])
    return job(name, runs.play_one, stream=stream, algorithm=algorithm, seed=seed, **given)


def rows_of(results: Results) -> list[Row]:
    """A row for each run, with its name and the part of the report it belongs to."""
    parts = {name: "scaling" if "/dim-" in name else "solver" if "/solver/" in name else "survey" for name in results}
    return [{"run": name, "part": parts[name], **results[name]} for name in sorted(results)]


def _facts(rows: Sequence[Row]) -> Row:
    seeds = {f"{row['stream']}/{row['run'].rpartition('seed-')[2]}": row["seed"] for row in rows}
    return {"processor_seconds": round(sum(row["seconds"] for row in rows), 1), "seeds": seeds}


STUDY = Study(
    "reproduce", SIZES, plan, report.tables, figures.draw_all, report.remarks, "paper/page.html",
    lines=lambda rows: rows,
    read=rows_of,
    available=lambda size: replace(size, streams=installed(size.streams)),
    facts=_facts,
    warm_up=tuple(job(f"warm-up/{k}", runs.warm_up, algorithms=names) for k, names in enumerate(FAMILIES)),
)  # fmt: skip
