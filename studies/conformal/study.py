"""The study of intervals: ConformalTracker and its peers on errors of simple forecasters and synthetic drifts."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

from thalweg.lab.studies.conformal import cases, figures, published, report, runs

from thalweg.lab.jobs import Job, job
from thalweg.lab.study import Study


@dataclass(frozen=True)
class Size:
    """How much is run."""

    streams: tuple[str, ...] = tuple(cases.CASES)
    late: tuple[int, ...] = (6, 24, 48)  # rounds that answers come late
    delayed: tuple[str, ...] = ("sea", "glucose", "oil", "apple", "stationary", "levels", "walk", "autoregressive")
    published: bool = True  # whether published intervals are compared
    horizon: int | None = None  # rounds of every stream at most; None: as many as it has


FEW = ("water, persistence", runs.SHOWN, "stationary", "levels")
SIZES = {"usual": Size(), "small": Size(FEW, (6,), ("sea", "stationary"), horizon=600)}


def plan(size: Size) -> list[Job]:
    """Every run, as data."""
    jobs = [
        job(f"run/{case}/{method}", runs.play_one, case=case, method=method, horizon=size.horizon)
        for case, method in itertools.product(size.streams, runs.METHODS)
    ]
    for case, sides in itertools.product(size.streams, runs.SIDES):
        shared = {"case": case, "sides": sides, "horizon": size.horizon}
        jobs.append(job(f"sides/{case}/{sides}", runs.play_sides, **shared))
    for late, case, method in itertools.product(size.late, size.delayed, runs.LATE):
        shared = {"case": case, "method": method, "late": late, "horizon": size.horizon}
        jobs.append(job(f"late/{late}/{case}/{method}", runs.play_late, **shared))
    if size.published:
        for method in (runs.PUBLISHED, *runs.METHODS):
            jobs.append(job(f"published/{method}", runs.play_published, method=method))
    return jobs


def available(size: Size) -> Size:
    """Without the streams whose data is not installed."""
    delayed = tuple(case for case in size.delayed if case not in cases.SERIES or cases.at_hand(case))
    given = size.published and published.at_hand()
    return replace(size, streams=cases.installed(size.streams), delayed=delayed, published=given)


STUDY = Study(
    "conformal", SIZES, plan, report.tables, figures.draw_all, report.remarks, "conformal/page.html",
    available=available,
)  # fmt: skip
