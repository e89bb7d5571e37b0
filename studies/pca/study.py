"""The study of online PCA: streams whose principal subspace jumps or turns, and two from real data."""

from __future__ import annotations

from dataclasses import dataclass, replace

from thalweg.lab.studies.pca import figures, report, runs
from thalweg.lab.studies.pca.runs import GUARDED, LEARNERS, STREAMS

from thalweg.errors import MissingExtraError
from thalweg.lab.jobs import Job, job, seed_of
from thalweg.lab.study import Study


@dataclass(frozen=True)
class Size:
    """How much is run."""

    horizon: int = 16_000  # rounds of a run, at most
    seeds: int = 3  # repetitions of the synthetic streams
    streams: tuple[str, ...] = tuple(STREAMS)
    learners: tuple[str, ...] = tuple(LEARNERS)
    guarantee: int = 2**14  # rounds for the guarantee
    dims: tuple[int, ...] = (10, 25, 50, 100, 200)  # dimensions at which rounds are timed
    timed: tuple[int, int] = (960, 63)  # rounds before the clock starts, and rounds timed


SIZES = {
    "usual": Size(),
    "small": Size(130, 1, ("still", "frequent switches", "digits"), tuple(LEARNERS), 512, (8, 12), (20, 11)),
}


def available(size: Size) -> Size:
    """The size without runs that need scikit-learn, where it is not installed."""
    try:
        runs.need_sklearn("decomposition")
    except MissingExtraError:
        streams = tuple(name for name in size.streams if not STREAMS[name].real)
        learners = tuple(name for name in size.learners if name not in ("IncrementalPCA", "StreamingPCA"))
        return replace(size, streams=streams, learners=learners)
    return size


def plan(size: Size) -> list[Job]:
    """Every run, as data. Timed runs come first."""
    before, rounds = size.timed
    jobs = [job(f"time/{d}", runs.time_one, dim=d, before=before, rounds=rounds) for d in size.dims]
    jobs += [job(f"guarantee/{name}", runs.play_guarantee, learner=name, horizon=size.guarantee) for name in GUARDED]
    for stream in size.streams:
        for k in range(1 if STREAMS[stream].real else size.seeds):
            data = {"stream": stream, "seed": seed_of(f"pca/{stream}/{k}", bits=31), "horizon": size.horizon}
            jobs.append(job(f"reference/{stream}/seed-{k}", runs.play_reference, **data))
            for name in size.learners:
                jobs.append(job(f"run/{stream}/{name}/seed-{k}", runs.play_one, learner=name, **data))
    return jobs


STUDY = Study("pca", SIZES, plan, report.tables, figures.draw_all, report.remarks, "pca/page.html", available=available)
