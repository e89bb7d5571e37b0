"""The study of online PCA: which runs there are, and their report.

    python -m thalweg.lab.pca_study results/pca [--small]

Streams whose principal subspace jumps or turns, and two from real data. What one run is: `pca_scenes`; tables, pictures
and the page: `pca_report`. Needs the extras `lab` and, for the real streams and scikit-learn's own method, `data`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from thalweg.errors import MissingExtraError
from thalweg.lab import pca_report
from thalweg.lab.jobs import Job, run_jobs, seed_of
from thalweg.lab.pca_scenes import GUARDED, LEARNERS, STREAMS, need_sklearn

__all__ = ["SMALL", "USUAL", "Size", "pca_study", "plan"]

RUNS = "thalweg.lab.pca_scenes"


# ------------------------------------------------------------------------------------------------------------ all runs


@dataclass(frozen=True)
class Size:
    """How much is run.

    Attributes
    ----------
    horizon : int
        Rounds of a run, at most.
    seeds : int
        Repetitions of the synthetic streams.
    streams, learners : tuple of str
        Which.
    guarantee : int
        Rounds for the guarantee.
    dims : tuple of int
        Dimensions at which rounds are timed.
    timed : tuple of int
        Rounds before the clock starts, and rounds timed.
    """

    horizon: int = 16_000
    seeds: int = 3
    streams: tuple[str, ...] = tuple(STREAMS)
    learners: tuple[str, ...] = tuple(LEARNERS)
    guarantee: int = 2**14
    dims: tuple[int, ...] = (10, 25, 50, 100, 200)
    timed: tuple[int, int] = (960, 63)


USUAL = Size()
SMALL = Size(130, 1, ("still", "frequent switches", "digits"), tuple(LEARNERS), 512, (8, 12), (20, 11))


def available(size: Size) -> Size:
    """Without what needs scikit-learn, where it is not installed."""
    try:
        need_sklearn("decomposition")
    except MissingExtraError:
        streams = tuple(name for name in size.streams if not STREAMS[name].real)
        return replace(
            size, streams=streams, learners=tuple(name for name in size.learners if name != "IncrementalPCA")
        )
    return size


def plan(size: Size) -> list[Job]:
    """Every run, as data. What is timed comes first."""
    jobs = [
        Job(f"time/{d}", f"{RUNS}:time_one", {"dim": d, "before": size.timed[0], "rounds": size.timed[1]})
        for d in size.dims
    ]
    for name in GUARDED:
        jobs.append(Job(f"guarantee/{name}", f"{RUNS}:play_guarantee", {"learner": name, "horizon": size.guarantee}))
    for stream in size.streams:
        for k in range(1 if STREAMS[stream].real else size.seeds):
            shared = {"stream": stream, "seed": seed_of(f"pca/{stream}/{k}") >> 32, "horizon": size.horizon}
            jobs.append(Job(f"reference/{stream}/seed-{k}", f"{RUNS}:play_reference", shared))
            for name in size.learners:
                jobs.append(Job(f"run/{stream}/{name}/seed-{k}", f"{RUNS}:play_one", shared | {"learner": name}))
    return jobs


def pca_study(
    folder: Path | str,
    *,
    small: bool = False,
    engine: str = "local",
    workers: int | None = None,
    progress: bool = True,
    command: str = "",
) -> Path:
    """Run the study of online PCA and write its report.

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
    size = available(SMALL if small else USUAL)
    began = time.time()
    results = run_jobs(plan(size), folder, engine=engine, workers=workers, progress=progress)
    facts = {
        "command": command or "thalweg pca" + (" --small" if small else ""),
        "size": asdict(size),
        "seconds": time.time() - began,
        "small": small,
    }
    return pca_report.write(Path(folder), results, facts)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m thalweg.lab.pca_study", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", nargs="?", default="results/pca", help="where the report goes")
    parser.add_argument("--small", action="store_true", help="a few rounds of everything, to try it out")
    parser.add_argument("--workers", type=int, help="processes; one for each CPU when left out")
    given = parser.parse_args(arguments)
    sys.stdout.write(f"{pca_study(given.folder, small=given.small, workers=given.workers)}\n")


if __name__ == "__main__":
    main()
