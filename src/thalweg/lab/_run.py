"""What `thalweg run` does: play an algorithm, forecast a file, forecast rows as they arrive. It prints and writes."""

import functools
import json
import pathlib
import sys
from dataclasses import asdict
from typing import Any

import typer

import thalweg as tw
from thalweg._validate import visible
from thalweg.errors import InputError
from thalweg.estimators import Forecaster
from thalweg.lab import forecast as lab
from thalweg.lab._say import note, say, terminal
from thalweg.lab._store import refuse_to_overwrite, write_file
from thalweg.lab.columns import listed, read_columns
from thalweg.lab.compare import open_data
from thalweg.lab.pictures import save as to_image
from thalweg.lab.runs import FIRST_LINE, describe, losses_as, play_stream
from thalweg.lab.tables import read_table

__all__ = ["forecast_file", "forecast_live", "play"]


def play(
    algorithm: str,
    source: str,
    data: dict[str, Any],
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
        note(visible(f"left out, since they hold no number: {listed(table.left_out)}"))
    for remark in table.remarks if table else ():
        note(remark)
    tell = _tell if terminal(progress) else None
    with_decisions = out is not None and out.suffix.lower() == ".npz"
    report, losses, decisions = play_stream(algorithm, stream, tell=tell, decisions=with_decisions)
    summary = report | {"seed": seed}
    if table:
        summary |= {"target": table.target, "features": table.features, "scales": table.scales}
    say(json.dumps(summary, indent=2) if as_json else describe(summary, table, data.get("scale", True)))
    if out is not None:
        write_file(out, losses_as(out.suffix.lower(), summary, losses, decisions))
    if report["interrupted"]:
        note(f"interrupted after {report['rounds']} of {len(stream.problem)} rounds")
        raise typer.Exit(130)


def _kept(path: pathlib.Path) -> Forecaster:
    """What --save kept."""
    kept = tw.load(path)
    if not isinstance(kept, Forecaster):
        raise InputError(f"{path} holds a {type(kept).__name__}, no forecaster that --save kept.")
    return kept


def _row_before(resume: pathlib.Path | None, target: str) -> dict[str, float]:
    """The last row that a kept forecaster has seen; none where it has seen none."""
    kept = None if resume is None else _kept(resume)
    if kept is None or not kept.rounds:
        return {}
    saved = kept.state()
    past = saved["past"]
    return dict(zip(kept.columns, saved["row"].tolist(), strict=True)) | {
        target: float(past[(kept.rounds - 1) % past.size])
    }


def _forecaster(data: dict[str, Any], columns: list[str], difference: bool, resume: pathlib.Path | None) -> Any:
    """A new forecaster for these columns, or the one that was kept, if it is one for them."""
    fresh = None
    if resume is None or data["lags"] or difference or data["loss"] != "squared":
        fresh = Forecaster(columns, lags=data["lags"], loss=data["loss"], difference=difference)
    if resume is None:
        return fresh
    kept = _kept(resume)
    if list(kept.columns) != columns:
        theirs, mine = (", ".join(names) or "none" for names in (kept.columns, columns))
        raise InputError(f"{resume} was kept for other columns: {theirs}. Here they are: {mine}.")
    if fresh is not None and fresh._settings() != kept._settings():
        raise InputError(f"{resume} was kept with other --lags, --loss or --difference. Leave them out to go on.")
    return kept


def forecast_file(
    data: dict[str, Any],
    difference: bool,
    out: pathlib.Path | None,
    save: pathlib.Path | None,
    resume: pathlib.Path | None,
    plot: pathlib.Path | None,
    as_json: bool,
) -> None:
    """Every row of a file, before it is seen."""
    for path, endings in ((out, (".csv", ".parquet", ".json")), (plot, (".png", ".html"))):
        if path is not None and path.suffix.lower() not in endings:
            raise InputError(f"{'--out' if path is out else '--plot'} must end in {', '.join(endings)}. Got {path}.")
    refuse_to_overwrite(data["source"], *(path for path in (out, save, plot) if path is not None))
    read = {key: data[key] for key in ("features", "time", "missing", "decimal", "rows")}
    before = _row_before(resume, data["target"])
    columns = read_columns(data["source"], data["target"], before=before, **read)
    for remark in columns.remarks:
        note(remark)
    if columns.left_out:
        note(f"left out, since they hold no number: {listed(columns.left_out)}")
    if columns.dropped:
        note(f"{columns.dropped} row(s) with an empty cell were dropped")
    if not columns.features and not data["lags"] and resume is None:
        raise InputError(
            f"{columns.name} has no column with numbers beside {columns.target!r}. Type --lags 8 to forecast it from "
            "its past."
        )
    forecaster = _forecaster(data, list(columns.features), difference, resume)
    outcome = lab.forecast(columns, forecaster)
    if as_json:
        about = {"target": columns.target, "features": columns.features, "lags": forecaster.lags, "of": columns.whole}
        say(json.dumps(about | {"rows": outcome.rows(), "warning": outcome.warning}, indent=2))
    else:
        say(lab.in_words(outcome))
    if out is not None:
        write_file(out, lab.as_table(outcome, out.suffix.lower()))
    if plot is not None:
        page = plot.suffix.lower() == ".html"
        write_file(plot, lab.as_page(outcome) if page else to_image(lab.picture(outcome), "png"))
    if save is not None:
        forecaster.save(save)


def forecast_live(
    data: dict[str, Any], difference: bool, save: pathlib.Path | None, resume: pathlib.Path | None
) -> None:
    """Rows as they arrive on stdin."""
    if data["target"] is None:
        raise InputError("standard input: say which column is the target.")
    if sys.stdin is None:
        raise InputError("The standard input is closed. Name a file instead of -.")

    def write(line: str) -> None:
        sys.stdout.write(line)
        sys.stdout.flush()

    shared = {key: data[key] for key in ("features", "time", "missing", "decimal")}
    keep = None if save is None else lambda forecaster: forecaster.save(save)
    before = _row_before(resume, data["target"])
    make = functools.partial(_forecaster, data, difference=difference, resume=resume)
    lab.live(
        sys.stdin,
        write,
        data["target"],
        lambda names: make(columns=names),
        before=before,
        keep=keep,
        note=note,
        **shared,
    )


def _tell(rounds: int, mean: float, recent: float, queries: tw.Queries, seconds: float) -> None:
    """A line of progress, after twice the rounds of the one before; the first with its head."""
    if rounds <= FIRST_LINE:
        _cells("rounds", "mean loss", "since last", "projections", "gradients", "values", "seconds")
    _cells(rounds, f"{mean:.5g}", f"{recent:.5g}", *asdict(queries).values(), f"{seconds:.3f}")


def _cells(*cells: Any) -> None:
    note("  ".join(str(cell).rjust(11) for cell in cells))
