"""The study of control: which runs there are, and their report.

    python -m thalweg.lab.control_study results/control [--small]

Four plants, six kinds of disturbances, three kinds of costs, five controllers. What one run is: `control_scenes`;
tables, pictures and the page: `control_report`.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from thalweg.errors import MissingExtraError
from thalweg.lab import control_report
from thalweg.lab.control_scenes import COSTS, DISTURBANCES, PLANTS, RANDOM
from thalweg.lab.jobs import Job, run_jobs, seed_of
from thalweg.lab.streams import draw

__all__ = ["SMALL", "USUAL", "Size", "control_study", "plan"]

RUNS = "thalweg.lab.control_scenes"
MEMORIES = (1, 2, 3, 5, 8, 12, 20, 40)  # at which the truncated loss is looked at


@dataclass(frozen=True)
class Size:
    """How much is run.

    Attributes
    ----------
    horizon : int
        Rounds of a run.
    seeds : int
        Repetitions where the disturbance is random.
    plants, disturbances, costs : tuple of str
        Which.
    states : tuple of int
        Numbers of states for the time of a step.
    timed : int
        Rounds that are timed, three times over.
    """

    horizon: int = 2_000
    seeds: int = 3
    plants: tuple[str, ...] = tuple(PLANTS)
    disturbances: tuple[str, ...] = tuple(DISTURBANCES)
    costs: tuple[str, ...] = tuple(COSTS)
    states: tuple[int, ...] = (2, 4, 8, 16, 32, 50)
    timed: int = 200


USUAL = Size()
SMALL = Size(80, 1, ("double integrator", "Boeing 747"), ("wave", "walk"), ("switching",), (2, 4), 25)


# ------------------------------------------------------------------------------------------------------------ all runs


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


def available(kinds: Sequence[str]) -> tuple[str, ...]:
    """The disturbances whose data is installed."""
    try:
        draw("glucose", horizon=10)
    except MissingExtraError:
        return tuple(kind for kind in kinds if kind != "recorded")
    return tuple(kinds)


def control_study(
    folder: Path | str,
    *,
    small: bool = False,
    engine: str = "local",
    workers: int | None = None,
    progress: bool = True,
    command: str = "",
) -> Path:
    """Run the study of control and write its report.

    Parameters
    ----------
    folder : path
        Where everything goes. What is in folder/runs from an earlier, perhaps interrupted, call is not run again.
    small : bool
        A few rounds of everything: seconds, and no meaning. For tests.
    engine, workers, progress
        As for `run_jobs`.
    command : str
        What the reader is told to type to get the same.

    Returns
    -------
    Path
        The page, folder/index.html. Beside it: pictures, runs.csv, about.json.
    """
    size = SMALL if small else USUAL
    size = replace(size, disturbances=available(size.disturbances))
    began = time.time()
    results = run_jobs(plan(size), folder, engine=engine, workers=workers, progress=progress)
    facts = {
        "command": command or "python -m thalweg.lab.control_study" + (" --small" if small else ""),
        "size": asdict(size),
        "seconds": time.time() - began,
        "small": small,
    }
    return control_report.write(Path(folder), results, facts)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m thalweg.lab.control_study", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", nargs="?", default="results/control", help="where the report goes")
    parser.add_argument("--small", action="store_true", help="a few rounds of everything, to try it out")
    parser.add_argument("--workers", type=int, help="processes; one for each CPU when left out")
    given = parser.parse_args(arguments)
    sys.stdout.write(f"{control_study(given.folder, small=given.small, workers=given.workers)}\n")


if __name__ == "__main__":
    main()
