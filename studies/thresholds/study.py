"""The study of thresholds: EfficientAdaptive with many thresholds beside other learners, on 14 series."""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass, replace

from thalweg.lab.studies.thresholds import figures, report, runs
from thalweg.lab.studies.thresholds.runs import OTHERS, SERIES, Contender, scale_name

from thalweg.lab.jobs import Job, job
from thalweg.lab.streams import installed
from thalweg.lab.study import Study


@dataclass(frozen=True)
class Size:
    """How much is run."""

    series: tuple[str, ...] = tuple(SERIES)
    reps: int = 5  # repetitions of a synthetic series, at most
    horizon: int | None = None  # rounds of every series; None: as many as it has
    scales: tuple[float, ...] = tuple(float(10 ** (k / 2)) for k in range(-12, 1))  # of EfficientAdaptive's threshold
    sacs_scales: tuple[float, ...] = tuple(float(10 ** (k / 2)) for k in range(-6, 0))  # of that of SACS
    deltas: tuple[float, ...] = (1e-4, 1e-2, 1.0, 1e2, 1e4)  # threshold of a small squared gradient


FEW = tuple(name for name, series in SERIES.items() if not series.check and name != "piecewise_long")
SIZES = {"usual": Size(), "small": Size(FEW, 2, 2_000, (1e-6, 1e-5, 1e-4, 1e-3, 1.0), (1e-2,), (1.0, 1e2))}


def contenders(size: Size) -> list[Contender]:
    """Everything that is played on every series."""
    restarts, ranges = ("center", "current"), ("bound", "observed")
    found = [
        Contender(scale_name(s), "scale", s, restart, feedback)
        for s, restart, feedback in itertools.product(size.scales, restarts, ranges)
    ]
    for delta, s, restart in itertools.product(size.deltas, (1.0, 1e-3, 1e-4), restarts):
        found.append(Contender(scale_name(s), "delta", s, restart, delta=delta))
    for s, feedback in itertools.product((1e-3, 1e-4, 1e-5), ranges):
        found.append(Contender(scale_name(s), "loose", s, feedback=feedback, looseness=100.0))
    found += [Contender(f"SACS, scale {s:.0e}", scale=s) for s in size.sacs_scales]
    return found + [Contender(name) for name in OTHERS]


def plan(size: Size) -> list[Job]:
    """Every run, as data."""
    jobs = []
    for name in size.series:
        shared = {"series": name, "horizon": size.horizon}
        jobs.append(job(f"constants/{name}", runs.constants, **shared))
        for rep, who in itertools.product(range(min(size.reps, SERIES[name].reps)), contenders(size)):
            if who.learner == "planted" and SERIES[name].real:
                continue
            label = f"run/{name}/rep-{rep}/{who.group}/{who.learner}/{who.restart}/{who.feedback}/{who.delta:g}"
            jobs.append(job(label, runs.play_one, rep=rep, **shared, **asdict(who)))
    return jobs


def available(size: Size) -> Size:
    """Without the series whose data is not installed."""
    return replace(size, series=installed(size.series))


STUDY = Study(
    "thresholds", SIZES, plan, report.tables, figures.draw_all, report.remarks, "thresholds/page.html",
    available=available,
)  # fmt: skip
