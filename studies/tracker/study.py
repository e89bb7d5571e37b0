"""The study of the Tracker: losses on many streams and after a calm, PyNOL's example, regret on all intervals."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

from thalweg.lab.studies.tracker import cases, figures, report, runs, squared
from thalweg.lab.studies.tracker.cases import AFTER_CALM, CALM, CASES, KNOWN_LIMITS, LIMITS

from thalweg.lab.jobs import Job, job, seed_of
from thalweg.lab.study import Study


@dataclass(frozen=True)
class Size:
    """How much is run."""

    streams: tuple[str, ...] = tuple(CASES)
    calm: tuple[str, ...] = tuple(AFTER_CALM)
    limits: tuple[str, ...] = tuple(KNOWN_LIMITS)
    squared: tuple[str, ...] = tuple(squared.SQUARED)  # beside a bank of filters
    horizon: int | None = None  # rounds of every stream at most, and half of those of a calm; None: as many as it has
    draws: int = 4  # of a synthetic stream, for the Tracker alone, besides the one that all play
    examples: tuple[tuple[int, int], ...] = ((2_000, 20), (10_000, 100))  # rounds and stages of PyNOL's
    rounds: int = 8192  # on all of whose intervals regret is measured
    noises: tuple[float, ...] = (0.1, 1.0)  # of these rounds


FEW = ("jumps", "ball-1000", "level", "hinge-jumps", "simplex", "sea")
SIZES = {
    "usual": Size(),
    "small": Size(FEW, ("walk", "absolute"), ("one giant loss",), ("circle-2", "shares"), 400, 1, ((400, 4),), 256),
}
LOW_FLOOR = ("jumps-noisy", "jumps-rare", "ball-30", "ball-1000")  # where the Tracker is also told a floor too low


def plan(size: Size) -> list[Job]:
    """Every run, as data."""
    jobs = []
    known = [name for name in runs.METHODS if name != runs.LOW]
    for case, method in itertools.product(size.streams, (runs.REFERENCE, *known)):
        jobs.append(job(f"run/{case}/{method}", runs.play_one, case=case, method=method, horizon=size.horizon))
    for case in (case for case in LOW_FLOOR if case in size.streams):
        jobs.append(job(f"floor/{case}", runs.play_one, case=case, method=runs.LOW, horizon=size.horizon))
    for group, names in ((CALM, size.calm), (LIMITS, size.limits)):
        for case, method in itertools.product(names, (runs.REFERENCE, *runs.AFTER)):
            shared = {"group": group, "case": case, "method": method, "horizon": size.horizon}
            jobs.append(job(f"{group}/{case}/{method}", runs.play_one, **shared))
    for case, method in itertools.product(size.squared, runs.BESIDE_BANK):
        shared = {"group": squared.GROUP, "case": case, "method": method, "horizon": size.horizon}
        jobs.append(job(f"{squared.GROUP}/{case}/{method}", runs.play_one, **shared))
    drawn = [("", case) for case in size.streams if not CASES[case].real] + [(CALM, case) for case in size.calm]
    for group, case in drawn:
        shared = {"group": group, "case": case, "horizon": size.horizon, "draws": size.draws}
        jobs.append(job(f"again/{group or 'whole'}/{case}", runs.play_again, **shared))
    for (T, stages), method in itertools.product(size.examples, runs.EXAMPLE):
        jobs.append(job(f"pynol/{T}/{method}", runs.play_pynol, horizon=T, stages=stages, method=method))
    for noise, method in itertools.product(size.noises, runs.ON_INTERVALS):
        where = {"horizon": size.rounds, "noise": noise, "seed": seed_of("tracker/intervals")}
        jobs.append(job(f"intervals/{noise:g}/{method}", runs.intervals, method=method, **where))
    return jobs


def available(size: Size) -> Size:
    """Without the streams whose data is not installed."""
    return replace(size, streams=cases.installed(size.streams), squared=cases.installed(size.squared, squared.GROUP))


STUDY = Study(
    "tracker", SIZES, plan, report.tables, figures.draw_all, report.remarks, "tracker/page.html", available=available
)
