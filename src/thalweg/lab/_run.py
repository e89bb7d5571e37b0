"""The command `thalweg run`: play an algorithm, print its losses and write them."""

import json
import pathlib
from dataclasses import asdict

import typer

from thalweg.errors import InputError
from thalweg.lab._console import echo, notify, shows_progress
from thalweg.lab._store import refuse_to_overwrite, write_file
from thalweg.lab.columns import listed
from thalweg.lab.compare import open_data
from thalweg.lab.report import Row
from thalweg.lab.runs import FIRST_LINE, describe, losses_as, play_stream
from thalweg.lab.tables import read_table
from thalweg.learners.base import Queries


def play(
    algorithm: str,
    source: str,
    data: Row,
    seed: int,
    out: pathlib.Path | None,
    as_json: bool,
    progress: bool | None,
) -> None:
    """One algorithm on a stream or a whole file."""
    if out is not None and out.suffix.lower() not in (".csv", ".json", ".npz"):
        raise InputError(f"--out must end in .csv, .json or .npz. Got {out}.")
    if out is not None and "stream" not in data:
        refuse_to_overwrite(0 if source == "-" else source, out)
    table = None if "stream" in data else read_table(**data)
    stream = table.stream if table else open_data(data, seed)
    if table and table.left_out:
        notify(f"left out, since they hold no number: {listed(table.left_out)}")
    for remark in table.remarks if table else ():
        notify(remark)
    report_progress = _print_progress if shows_progress(progress) else None
    with_decisions = out is not None and out.suffix.lower() == ".npz"
    report, losses, decisions = play_stream(algorithm, stream, progress=report_progress, decisions=with_decisions)
    summary = report | {"seed": seed}
    if table:
        summary |= {"target": table.target, "features": table.features, "scales": table.scales}
    echo(json.dumps(summary, indent=2) if as_json else describe(summary, table, data.get("scale", True)))
    if out is not None:
        write_file(out, losses_as(out.suffix.lower(), summary, losses, decisions))
    if report["interrupted"]:
        notify(f"interrupted after {report['rounds']} of {len(stream.problem)} rounds")
        raise typer.Exit(130)


def _print_progress(rounds: int, mean: float, recent: float, queries: Queries, seconds: float) -> None:
    """Print a line of progress, and the column names before the first one."""
    if rounds <= FIRST_LINE:
        _print_cells("rounds", "mean loss", "since last", "projections", "gradients", "values", "seconds")
    _print_cells(rounds, f"{mean:.5g}", f"{recent:.5g}", *asdict(queries).values(), f"{seconds:.3f}")


def _print_cells(*cells: object) -> None:
    notify("  ".join(str(cell).rjust(11) for cell in cells))
