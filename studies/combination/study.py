"""The study of combination: who combines forecasts best, on 14 series, with experts that sleep and late answers.

And on real panels: experts for each series of the study of forecasting.
"""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass, replace

from thalweg.lab.studies.combination import figures, panels, report, runs
from thalweg.lab.studies.combination.runs import CONTENDERS, SERIES, VARIANTS
from thalweg.lab.studies.forecasting import series as forecasting

from thalweg.errors import MissingExtraError
from thalweg.lab.jobs import Job, job
from thalweg.lab.study import Study


@dataclass(frozen=True)
class Size:
    """How much is run."""

    series: tuple[str, ...] = tuple(SERIES)
    reps: int = 5  # repetitions of a made-up series, at most
    horizon: int | None = None  # rounds of every series; None: as many as it has
    panels: tuple[str, ...] = tuple(forecasting.SERIES)


SIZES = {"usual": Size(), "small": Size(("polls", "flights", "calm", "jumps", "short"), 2, 300, ())}


def plan(size: Size) -> list[Job]:
    """Every run, as data."""
    jobs = []
    for name, variant in itertools.product(size.series, VARIANTS):
        for rep, who in itertools.product(range(min(size.reps, SERIES[name].reps)), CONTENDERS):
            given = {"series": name, "variant": variant, "rep": rep, "who": who, "horizon": size.horizon}
            jobs.append(job(f"run/{name}/{variant}/rep-{rep}/{who}", runs.play_one, **given))
    for name, kind, who in itertools.product(size.panels, panels.KINDS, panels.CONTENDERS):
        given = {"series": name, "kind": kind, "who": who, "horizon": size.horizon}
        jobs.append(job(f"{report.PANELS}/{name}/{kind}/{who}", panels.play_one, **given))
    return jobs


def available(size: Size) -> Size:
    """Without the series whose data is not installed."""
    found = []
    for name in size.series:
        with contextlib.suppress(MissingExtraError):
            runs.draw(name, VARIANTS[0], 0, 10)
            found.append(name)
    return replace(size, series=tuple(found), panels=panels.installed(size.panels))


STUDY = Study(
    "combination", SIZES, plan, report.tables, figures.draw_all, report.remarks, "combination/page.html",
    available=available,
)  # fmt: skip
