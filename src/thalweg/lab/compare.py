"""Several algorithms on one stream, over several seeds: one table and one plot."""

from __future__ import annotations

import hashlib
import itertools
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

import numpy as np

from thalweg._core.validate import check_count
from thalweg.errors import InputError
from thalweg.lab._store import refuse_to_overwrite, write_file
from thalweg.lab.catalog import ALGORITHMS, build_domain, find
from thalweg.lab.jobs import RunOptions, job, run_jobs
from thalweg.lab.pictures import panels, save
from thalweg.lab.report import Row, mean, to_csv
from thalweg.lab.runs import FORECASTS, curve_rounds, load_kernels, play_stream, tidy
from thalweg.lab.streams import STREAMS, Stream, draw, with_domain
from thalweg.lab.tables import read_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = ("algorithm", "runs", "loss_mean", "loss_sd", "projections", "gradients", "values", "markers", "seconds")
WRITTEN = ("table.csv", "runs.csv", "loss.png")


def open_data(data: Row, seed: int = 0) -> Stream:
    """The stream that plain values describe.

    Either {"stream": name} with "horizon" and "domain" where wanted, or keyword arguments of `read_table`; "sha256",
    the hash of the file, tells one content from another.
    """
    options = {key: value for key, value in data.items() if key not in ("stream", "sha256")}
    if "stream" not in data:
        return read_table(**options).stream
    stream = draw(data["stream"], seed, horizon=data.get("horizon"))
    domain = data.get("domain")
    return stream if domain is None else with_domain(stream, build_domain(domain, stream.domain.dim))


def play_one(*, algorithm: str, data: Row, seed: int) -> Row:
    """One run, as a dict that JSON can hold."""
    report, losses, _ = play_stream(algorithm, open_data(data, seed))
    if report["interrupted"]:
        raise KeyboardInterrupt
    at = curve_rounds(losses.size)
    return report | {"at": at.tolist(), "curve": np.cumsum(losses)[at - 1].tolist()}


def compare(
    algorithms: Sequence[str], data: Row, folder: pathlib.Path, *, seeds: int = 5, **how: Unpack[RunOptions]
) -> list[Row]:
    """Play every algorithm with the seeds 0, 1, ... and write table.csv, runs.csv and loss.png to the folder.

    `data` is as for `open_data`; real data and tables are played once, as a seed changes nothing there. `how` are
    the options of `run_jobs`: finished runs are kept in the folder, so the same call again goes on where it was.
    Returns a row for each algorithm, with the keys `COLUMNS`: means over the runs, and the standard deviation of the
    loss (None for a single run). Rows for the `FORECASTS` follow, where the loss has them.
    """
    names = [find("algorithm", name, ALGORITHMS) for name in algorithms]
    twice = [name for k, name in enumerate(names) if name in names[:k]]
    if twice:
        raise InputError(f"compare: the algorithm {twice[0]} is given twice.")
    repeats = check_count("compare", "seeds", seeds)
    if "stream" in data:
        repeats = 1 if data["stream"] in STREAMS and STREAMS[data["stream"]].real else repeats
    else:
        source = pathlib.Path(data["source"])
        refuse_to_overwrite(str(source), *(folder / name for name in WRITTEN))
        if source.is_fifo():
            raise InputError(f"compare reads its data once for every run: {source} must be a file, not a pipe.")
        data, repeats = data | {"sha256": hashlib.sha256(source.read_bytes()).hexdigest()}, 1
    stream = open_data(data)
    for name in names:  # fail now if one cannot be built; compile parts of one's own once, not in every worker
        load_kernels(name, stream)
    jobs = {
        name: [
            job(f"{stream.name}/{name}/seed-{k}", play_one, algorithm=name, data=data, seed=k) for k in range(repeats)
        ]
        for name in names
    }
    results = run_jobs(itertools.chain.from_iterable(jobs.values()), folder, **how)
    runs = {name: [results[one.name] for one in some] for name, some in jobs.items()}
    rows = [
        _row(name, [run["total_loss"] for run in some], {key: mean(some, key) for key in COLUMNS[4:]})
        for name, some in runs.items()
    ]
    first = runs[names[0]]  # simple forecasts are the same beside every algorithm
    known = [name for name in FORECASTS if first[0][name] is not None]
    rows += [_row(name, [run[name] for run in first], dict.fromkeys(COLUMNS[4:])) for name in known]
    lines = [{"seed": k} | run for some in runs.values() for k, run in enumerate(some)]
    contents = to_csv(rows, COLUMNS), to_csv(lines), save(plot(runs, stream), "png")
    for name, content in zip(WRITTEN, contents, strict=True):
        write_file(folder / name, content)
    return rows


def _row(name: str, losses: Sequence[float], others: Row) -> Row:
    sd = float(np.std(losses, ddof=1)) if len(losses) > 1 else None
    return {"algorithm": name, "runs": len(losses), "loss_mean": float(np.mean(losses)), "loss_sd": sd} | others


def plot(runs: dict[str, list[Row]], stream: Stream) -> Figure:
    """Loss so far against rounds, one line an algorithm: the mean over seeds, in a band of a standard deviation."""
    figure, [[axes]] = panels(8.5, 4.8)
    for change in stream.changes:
        axes.axvline(change, color="#e4e4e4", linewidth=0.8, zorder=0)
    paid = {name: float(np.mean([run["total_loss"] for run in some])) for name, some in runs.items()}
    least, most = min(paid.values()), max(paid.values())
    floor = least / 30 if 0 < 8 * least < most else 0.0  # logarithmic where the best would lie on the axis
    for k, name in enumerate(sorted(runs, key=lambda name: -paid[name])):
        at = np.array(runs[name][0]["at"])
        curves = np.array([run["curve"] for run in runs[name]])
        middle = curves.mean(axis=0)
        color, line = f"C{k % 10}", ("-", "--", ":")[k // 10 % 3]
        axes.plot(at, middle, color=color, linestyle=line, label=f"{name} ({tidy(paid[name], 4)})")
        if len(curves) > 1:
            spread = curves.std(axis=0, ddof=1)
            low, high = np.maximum(middle - spread, floor), np.maximum(middle + spread, floor)
            axes.fill_between(at, low, high, color=color, alpha=0.18, linewidth=0)
    count = len(next(iter(runs.values())))
    seeds = f", mean and standard deviation of {count} seeds" if count > 1 else ""
    axes.set_title(f"{stream.name}, {stream.problem.loss} loss{seeds}", loc="left", fontsize=10, parse_math=False)
    axes.set(xlabel="round" + (" (grey lines: the model jumps)" if stream.changes else ""))
    axes.set(ylabel="loss so far" + (", logarithmic" if floor else ""), yscale="log" if floor else "linear")
    axes.set(xlim=(0, len(stream.problem)), ylim=(floor, None))
    axes.grid(axis="y", alpha=0.3)
    figure.legend(loc="outside right upper", frameon=False, fontsize=9, title="algorithm (total loss)")
    return figure
