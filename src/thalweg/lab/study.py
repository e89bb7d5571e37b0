"""One kind of study: runs that can be resumed, and a report made of nothing but their results.

A `Study` lists its runs and makes tables, pictures and sentences of their results. `run` does the rest, the same for
all: it runs the missing jobs, then writes runs.csv, about.json, every picture as PNG and PDF, and a page that explains
them. Every file is written whole or not at all. The page comes last, so where it exists all else does, too.
"""

from __future__ import annotations

import base64
import importlib.metadata
import json
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

from thalweg._core.extras import need
from thalweg._core.validate import check_choice
from thalweg._version import __version__
from thalweg.lab._console import notify
from thalweg.lab._store import LabError, write_file
from thalweg.lab.jobs import Job, RunOptions, run_jobs
from thalweg.lab.pictures import save, style
from thalweg.lab.report import Results, Row, TextTable, duration, number, part, ratio, to_csv

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from matplotlib.figure import Figure

S = TypeVar("S", bound="DataclassInstance")  # a size
D = TypeVar("D")  # the data of the report

PACKAGES = ("numpy", "scipy", "numba", "matplotlib", "joblib", "river", "bokeh_sampledata")


def _runs(results: Any) -> list[Row]:
    return part(results, "run")


def _same(results: Results) -> Any:
    return results


@dataclass(frozen=True)
class Study(Generic[S, D]):
    """The runs of a study, and their presentation.

    Attributes
    ----------
    name : str
        Of its command.
    sizes : dict
        How much is run: a frozen dataclass each for "usual", "small" (seconds, and no meaning) and others.
    jobs : callable
        size -> every run, as data. Their names are unique and descriptive: "scene/Boeing 747/wave/seed-0".
    tables, figures, remarks : callable
        data -> tables, pictures (matplotlib Figures), and the numbers of the page's sentences, by name.
    template : str
        The page, a Jinja template that extends "base.html": a path below the folder of the studies. It sees `facts`,
        `pictures`, `tables` and `remarks`. Its sentences are made from the numbers, so they claim only facts that this
        very run shows.
    lines : callable
        data -> the rows of runs.csv: by default a row for each job whose name begins with "run/". Lists and dicts of
        a row are left to runs/.
    read : callable
        Results of the jobs, by name -> data, which all the above take. The same by default.
    available : callable
        size -> the size without jobs whose packages are not installed.
    facts : callable
        data -> more entries of about.json.
    warm_up : tuple of Job
        Run first, unless the size is "small": kernels that are not in the package's library are compiled once.
    """

    name: str
    sizes: Mapping[str, S]
    jobs: Callable[[S], Sequence[Job]]
    tables: Callable[[D], Mapping[str, TextTable]]
    figures: Callable[[D], Mapping[str, Figure]]
    remarks: Callable[[D], Mapping[str, object]]
    template: str
    lines: Callable[[D], Sequence[Row]] = _runs
    read: Callable[[Results], D] = _same
    available: Callable[[S], S] = lambda size: size
    facts: Callable[[D], Row] = lambda data: {}
    warm_up: tuple[Job, ...] = ()


def run(
    study: Study[S, D], folder: Path | str, size: str = "usual", *, command: str = "", **how: Unpack[RunOptions]
) -> Path:
    """Run a study and write its report: pictures, runs.csv, about.json and, last, the page, whose path is returned.

    Parameters
    ----------
    folder : path
        Where everything goes. Jobs in folder/runs from an earlier, perhaps interrupted, call are not run again.
    size : str
        A key of `study.sizes`.
    command : str
        The command that repeats the study, shown to the reader.
    **how
        engine, workers, scheduler and progress, as for `run_jobs`.

    Raises
    ------
    LabError
        A run failed or a file could not be written. Finished runs are kept.
    """
    check_choice("run", "size", size, tuple(study.sizes))
    chosen = study.available(study.sizes[size])
    began = time.time()
    if study.warm_up and size != "small":
        if how.get("progress", True):
            notify("Loading the kernels:")
        run_jobs(study.warm_up, folder, **how)
    results = run_jobs(study.jobs(chosen), folder, **how)
    usual = f"thalweg study {study.name}" + ("" if size == "usual" else f" --{size}")
    facts: Row = {"command": command or usual}
    facts |= about() | {"seconds": round(time.time() - began, 1), "runs": len(results)}
    facts |= {"full": size == "full", "small": size == "small", "size": asdict(chosen)}
    return write(study, Path(folder), study.read(results), facts)


def about() -> Row:
    """Return versions and machine, on which the numbers of any run depend."""
    versions = {"python": platform.python_version(), "thalweg": __version__}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "finished": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        "versions": versions,
        "processor": _processor(),
        "cores": os.cpu_count(),
        "platform": platform.platform(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def write(study: Study[S, D], folder: Path, data: D, facts: Row) -> Path:
    """Write everything; returns the path of the page."""
    facts = facts | study.facts(data)
    images = {}
    try:
        with style():
            figures = study.figures(data)
        for name, figure in figures.items():
            images[name] = save(figure, "png")
            write_file(folder / f"{name}.png", images[name])
            write_file(folder / f"{name}.pdf", save(figure, "pdf"))
        write_file(folder / "runs.csv", to_csv(study.lines(data)))
        write_file(folder / "about.json", (json.dumps(facts, indent=1) + "\n").encode())
        return write_file(folder / "index.html", _page(study, data, facts, images).encode())
    except LabError as error:
        raise LabError(f"{error} All finished runs are kept.") from error.__cause__


def _page(study: Study[S, D], data: D, facts: Row, images: Mapping[str, bytes]) -> str:
    """The page. It refers to nothing outside itself."""
    from thalweg.lab import studies  # they import this module

    jinja2 = need("jinja2", "lab", "The page")
    loader = jinja2.FileSystemLoader([Path(__file__).parent, *studies.__path__])
    options = {"autoescape": True, "undefined": jinja2.StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    environment = jinja2.Environment(loader=loader, **options)
    environment.filters |= {"number": number, "ratio": ratio, "duration": duration}
    template = environment.get_template(study.template)
    seen = {name: f"data:image/png;base64,{base64.b64encode(image).decode()}" for name, image in images.items()}
    page: str = template.render(facts=facts, pictures=seen, tables=study.tables(data), remarks=study.remarks(data))
    return page
