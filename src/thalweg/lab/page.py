"""The report as files: pictures, the raw numbers, what they depend on, and one page that explains them.

Every file is written whole or not at all. The page is last, so where it stands the rest does too.
"""

from __future__ import annotations

import base64
import csv
import importlib.metadata
import io
import json
import os
import platform
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import thalweg
from thalweg.errors import MissingExtraError
from thalweg.lab import claims, figures, findings
from thalweg.lab.jobs import LabError
from thalweg.lab.reproduce import Row
from thalweg.lab.runs import write_file
from thalweg.lab.streams import STREAMS

__all__ = ["about", "render", "to_csv", "write"]

COLUMNS = ("run", "part", "stream", "algorithm", "oracle", "seed", "dim", "horizon", "rounds", "total_loss",
           "worst_window", "projections", "gradients", "values", "markers", "experts", "most_experts", "members",
           "largest_step", "first_threshold", "outside", "iterations", "exact_loss", "seconds",
           "slowest_seconds")  # fmt: skip
TIMES = ("seconds", "slowest_seconds")  # the columns that differ when the same is run again
PACKAGES = ("numpy", "scipy", "numba", "matplotlib", "joblib", "river", "bokeh_sampledata")


def about(size: Mapping[str, Any], *, seconds: float, command: str, full: bool, small: bool) -> dict[str, Any]:
    """What the numbers depend on."""
    versions = {"python": platform.python_version(), "thalweg": thalweg.__version__}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "command": command or "thalweg reproduce" + (" --full" if full else " --small" if small else ""),
        "finished": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        "seconds": round(seconds, 1),
        "full": full,
        "small": small,
        "size": dict(size),
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


def write(folder: Path, rows: Sequence[Row], facts: Mapping[str, Any], pictures: Mapping[str, Any]) -> Path:
    """Write everything; returns the path of the page."""
    images = {name: figures.save(figure, "png") for name, figure in pictures.items()}
    for name, figure in pictures.items():
        _keep(folder / f"{name}.png", images[name])
        _keep(folder / f"{name}.pdf", figures.save(figure, "pdf"))
    _keep(folder / "runs.csv", to_csv(rows).encode())
    seeds = {f"{row['stream']}/{row['run'].rpartition('seed-')[2]}": row["seed"] for row in rows}
    facts = {
        **facts,
        "runs": len(rows),
        "processor_seconds": round(sum(row["seconds"] for row in rows), 1),
        "seeds": seeds,
    }
    _keep(folder / "about.json", (json.dumps(facts, indent=1) + "\n").encode())
    return _keep(folder / "index.html", render(rows, facts, images).encode())


def _keep(path: Path, content: bytes) -> Path:
    try:
        write_file(path, content)
    except LabError as error:
        raise LabError(
            f"{error} Make room, or choose another folder, and run the command again: finished runs are kept."
        ) from error.__cause__
    return path


def to_csv(rows: Sequence[Row]) -> str:
    """A row for each run, without its curve (which is in runs/)."""
    text = io.StringIO()
    writer = csv.DictWriter(
        text, [key for key in rows[0] if key != "curve"], extrasaction="ignore", lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def render(rows: Sequence[Row], facts: Mapping[str, Any], images: Mapping[str, bytes]) -> str:
    """The page. It refers to nothing outside itself."""
    try:
        import jinja2
    except ImportError:
        raise MissingExtraError("The page needs jinja2. Install it with: pip install 'thalweg[lab]'") from None
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    played = findings.streams_of(rows)
    return environment.get_template("page.html").render(
        facts=facts,
        pictures={name: f"data:image/png;base64,{base64.b64encode(image).decode()}" for name, image in images.items()},
        tables=findings.tables(rows),
        claims=claims.claims(rows),
        pairs=claims.one_against_many(rows),
        remarks=claims.remarks(rows),
        streams={name: STREAMS[name].about for name in played},
        missing=[name for name in STREAMS if name not in played],
        paper=claims.setting(rows),
    )
