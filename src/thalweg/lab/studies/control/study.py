"""The study of control: four plants, six kinds of disturbances, three kinds of costs, five controllers."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

from thalweg.lab.jobs import Job, seed_of
from thalweg.lab.report import Results, Row, part
from thalweg.lab.streams import installed
from thalweg.lab.studies.control import figures, report
from thalweg.lab.studies.control.runs import COSTS, DISTURBANCES, PLANTS, RANDOM
from thalweg.lab.study import Study

__all__ = ["SIZES", "STUDY", "Size", "plan"]

RUNS = "thalweg.lab.studies.control.runs"
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
    """Every run, as data. What is timed comes first, while no other run has heated the machine."""
    T = size.horizon
    jobs = [Job(f"time/{n}", f"{RUNS}:time_step", {"states": n, "rounds": size.timed}) for n in size.states]
    for plant in size.plants:
        jobs.append(Job(f"stability/{plant}", f"{RUNS}:stability", {"plant": plant, "horizon": T}))
        jobs.append(Job(f"trajectory/{plant}", f"{RUNS}:trajectory", {"plant": plant, "horizon": T}))
        arguments = {"plant": plant, "memories": MEMORIES, "horizon": min(T, 600)}
        jobs.append(Job(f"truncation/{plant}", f"{RUNS}:truncation", arguments))
    for plant, kind, costs in itertools.product(size.plants, size.disturbances, size.costs):
        for k in range(size.seeds if kind in RANDOM else 1):
            arguments = {"plant": plant, "disturbance": kind, "costs": costs, "horizon": T}
            arguments["seed"] = seed_of(f"{plant}/{kind}/{k}")
            jobs.append(Job(f"scene/{plant}/{kind}/{costs}/seed-{k}", f"{RUNS}:play_scene", arguments))
    for plant, kind in itertools.product(size.plants, size.disturbances):
        arguments = {"plant": plant, "disturbance": kind, "costs": "switching", "horizon": T}
        arguments["seed"] = seed_of(f"{plant}/{kind}/0")
        jobs.append(Job(f"sensitivity/{plant}/{kind}", f"{RUNS}:sensitivity", arguments))
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
    name="control",
    sizes=SIZES,
    jobs=plan,
    lines=lines,
    tables=report.tables,
    figures=figures.draw_all,
    remarks=report.remarks,
    template="control/page.html",
    available=available,
)
