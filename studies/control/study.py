"""The study of control: five plants, seven kinds of disturbances, three kinds of costs, eight controllers."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

from thalweg.lab.studies.control import figures, report, runs
from thalweg.lab.studies.control.runs import COSTS, DISTURBANCES, PLANTS, RANDOM

from thalweg.lab.jobs import Job, job, seed_of
from thalweg.lab.report import Results, Row, part
from thalweg.lab.streams import installed
from thalweg.lab.study import Study

MEMORIES = (1, 2, 3, 5, 8, 12, 20, 40)  # at which the truncated loss is looked at


@dataclass(frozen=True)
class Size:
    """How much is run."""

    horizon: int = 2_000  # rounds of a run
    seeds: int = 3  # repetitions where the disturbance is random
    plants: tuple[str, ...] = tuple(PLANTS)
    disturbances: tuple[str, ...] = tuple(DISTURBANCES)
    costs: tuple[str, ...] = tuple(COSTS)
    states: tuple[int, ...] = (2, 4, 8, 16, 32, 50)  # numbers of states for the time of a step
    timed: int = 200  # rounds that are timed, three times over


SIZES = {
    "usual": Size(),
    "small": Size(80, 1, ("double integrator", "Boeing 747"), ("wave", "walk"), ("switching",), (2, 4), 25),
}


def plan(size: Size) -> list[Job]:
    """Every run, as data. Timed runs come first, before others have heated the machine."""
    T = size.horizon
    jobs = [job(f"time/{n}", runs.time_step, states=n, rounds=size.timed) for n in size.states]
    for plant in size.plants:
        jobs.append(job(f"stability/{plant}", runs.stability, plant=plant, horizon=T))
        jobs.append(job(f"trajectory/{plant}", runs.trajectory, plant=plant, horizon=T))
        truncated = {"plant": plant, "memories": MEMORIES, "horizon": min(T, 600)}
        jobs.append(job(f"truncation/{plant}", runs.truncation, **truncated))

    def scene(plant: str, kind: str, k: int) -> Row:
        return {"plant": plant, "disturbance": kind, "seed": seed_of(f"{plant}/{kind}/{k}"), "horizon": T}

    for plant, kind, costs in itertools.product(size.plants, size.disturbances, size.costs):
        for k in range(size.seeds if kind in RANDOM else 1):
            name = f"scene/{plant}/{kind}/{costs}/seed-{k}"
            jobs.append(job(name, runs.play_scene, costs=costs, **scene(plant, kind, k)))
    for plant, kind in itertools.product(size.plants, size.disturbances):
        jobs.append(job(f"sensitivity/{plant}/{kind}", runs.sensitivity, costs="switching", **scene(plant, kind, 0)))
    return jobs


def available(size: Size) -> Size:
    """Without the disturbance whose data is not installed."""
    found = tuple(kind for kind in size.disturbances if kind != "recorded" or installed(["glucose"]))
    return replace(size, disturbances=found)


def lines(results: Results) -> list[Row]:
    """A line for each controller in each scene."""
    rows = []
    for scene in part(results, "scene"):
        shared = {key: scene[key] for key in ("plant", "disturbance", "costs", "seed", "rounds")}
        planted = {f"planted_{kind}": found["total"] for kind, found in (scene["planted"] or {}).items()}
        rows += [shared | {"controller": name} | run | planted for name, run in scene["controllers"].items()]
    return rows


STUDY = Study(
    "control",
    SIZES,
    plan,
    report.tables,
    figures.draw_all,
    report.remarks,
    "control/page.html",
    lines,
    available=available,
)
