"""The report of the study of online PCA: tables, what they say, and one page in the style of the other (`page`)."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from thalweg.errors import MissingExtraError
from thalweg.lab import figures, page, pca_figures
from thalweg.lab.findings import Table, duration, number
from thalweg.lab.pca_figures import Groups
from thalweg.lab.pca_scenes import STREAMS, TIMED, TUNED, Row
from thalweg.lab.runs import write_file

__all__ = ["grouped", "part", "remarks", "tables", "write"]

OURS, PAPER = "EfficientPCA", "EfficientPCA, paper's ball"
TIE = 0.02  # a smaller difference of losses counts as none
Results = Mapping[str, Row]


def part(results: Results, name: str) -> list[Row]:
    """The results of one kind of runs, in order."""
    return [row for key, row in results.items() if key.startswith(f"{name}/")]


def grouped(runs: Sequence[Row]) -> Groups:
    """Runs that differ in their seed only, together; of Oja's steps the best in hindsight, as "OjaPCA"."""
    groups: Groups = {}
    for run in runs:
        groups.setdefault((run["stream"], run["learner"]), []).append(run)
    for stream in dict.fromkeys(run["stream"] for run in runs):
        steps = {key: value for key, value in groups.items() if key[0] == stream and key[1].startswith("OjaPCA, step")}
        if steps:
            groups[stream, "OjaPCA"] = min(steps.values(), key=lambda found: mean(found, "loss"))
    return groups


def mean(found: Sequence[Row], key: str) -> float:
    """The mean of a column over seeds."""
    return float(np.mean([row[key] for row in found]))


def spread(found: Sequence[Row], key: str) -> str:
    """Mean ± standard deviation over seeds, in per cent."""
    values = 100 * np.array([row[key] for row in found])
    return f"{values.mean():.1f}" + (f" ± {values.std(ddof=1):.1f}" if values.size > 1 else "")


# -------------------------------------------------------------------------------------------------------------- tables


def tables(results: Results) -> dict[str, Table]:
    """Every table of the report."""
    groups = grouped(part(results, "run"))
    return {
        "losses": _losses(groups, part(results, "reference")),
        "surrogates": _surrogates(groups),
        "oja": _oja(groups),
        "time": _time(part(results, "time")),
        "guarantee": _guarantee(part(results, "guarantee")),
    }


def _losses(groups: Groups, references: Sequence[Row]) -> Table:
    body = []
    for (stream, name), found in groups.items():
        if name == PAPER or name.startswith("OjaPCA, step"):
            continue
        label = f"OjaPCA, {found[0]['learner'].partition(', ')[2]}" if name == "OjaPCA" else name
        same = found[0]["curve"] == found[0]["leading_curve"]
        cells = [spread(found, "loss"), "–" if same else spread(found, "leading_loss")]
        body.append([stream, label, *cells, f"{mean(found, 'eigendecompositions'):.2g}", f"{mean(found, 'us'):.0f}"])
    order = list(STREAMS)
    for stream in dict.fromkeys(row["stream"] for row in references):
        mine = [row for row in references if row["stream"] == stream]
        body.append([stream, "best fixed subspace in hindsight", "–", spread(mine, "fixed"), "–", "–"])
        if STREAMS[stream].period:
            body.append([stream, "best subspace of each stretch in hindsight", "–", spread(mine, "pieces"), "–", "–"])
    body.sort(key=lambda row: order.index(row[0]))
    heads = ["stream", "learner", "drawn, %", "leading, %", "eigendecompositions a round", "µs a round"]
    return Table(heads, body)


def _surrogates(groups: Groups) -> Table:
    body = []
    for stream in dict.fromkeys(stream for stream, _ in groups):
        tight, wide = groups[stream, OURS], groups[stream, PAPER]
        d, k = tight[0]["dim"], tight[0]["rank"]
        body.append([
            stream, f"{d}, {k}", f"{np.sqrt(k * (d - k) / d):.2f}, {np.sqrt(k):.2f}",
            spread(tight, "loss"), spread(wide, "loss"), spread(tight, "leading_loss"), spread(wide, "leading_loss"),
        ])  # fmt: skip
    heads = ["stream", "d, k", "radius: smallest, paper's", "drawn, % (smallest)", "drawn, % (paper's)",
             "leading, % (smallest)", "leading, % (paper's)"]  # fmt: skip
    return Table(heads, body, (0,))


def _oja(groups: Groups) -> Table:
    names = list(dict.fromkeys(name for _, name in groups if name.startswith("OjaPCA, step")))
    body = []
    for stream in dict.fromkeys(stream for stream, _ in groups):
        body.append([stream, *(spread(groups[stream, name], "loss") for name in names)])
    return Table(["stream", *(f"{name.partition(', ')[2]}, %" for name in names)], body, (0,))


def _time(timed: Sequence[Row]) -> Table:
    body = []
    for row in timed:
        times = [f"{duration(1e-6 * row[name]['us'])} ({row[name]['eigh']:.2g})" for name in TIMED]
        gain = row["AdaptivePCA"]["us"] / row[OURS]["us"]
        body.append(
            [
                str(row["dim"]),
                duration(1e-6 * row["eigh"]),
                *times,
                f"{row[OURS]['us'] / row['eigh']:.2f}",
                f"{gain:.2f}",
            ]
        )
    heads = ["d", "one eigendecomposition", *TIMED, f"{OURS} ÷ one", f"AdaptivePCA ÷ {OURS}"]
    return Table(heads, body, ())


def _guarantee(found: Sequence[Row]) -> Table:
    body = []
    for i, n in enumerate(found[0]["lengths"]):
        body.append([f"{n:,}", number(found[0]["bound"][i]), *(number(row["regret"][i]) for row in found)])
    heads = ["rounds of the interval", "bound", *(row["learner"] for row in found)]
    return Table(heads, body, ())


# ------------------------------------------------------------------------------------------------------ what they say


def remarks(results: Results) -> dict[str, Any]:
    """Sentences that follow from the numbers."""
    groups = grouped(part(results, "run"))
    streams = list(dict.fromkeys(stream for stream, _ in groups))
    lines = []
    for other in ("AdaptivePCA", "DescentPCA", "YuanLamperskiPCA", "OjaPCA", "IncrementalPCA"):
        if (streams[0], other) not in groups:
            continue
        told = []
        for key, what in (("loss", "drawn"), ("leading_loss", "with leading directions")):
            times = {s: mean(groups[s, OURS], key) / mean(groups[s, other], key) for s in streams}
            less, more = (sum(sign * (1 - t) > TIE for t in times.values()) for sign in (1, -1))
            low, high = min(times, key=times.__getitem__), max(times, key=times.__getitem__)
            told.append(
                f"{what}, {OURS} loses less on {less} and more on {more} of {len(times)} streams, from "
                f"{times[low]:.2f} times ({low}) to {times[high]:.2f} times ({high}) as much"
            )
        lines.append(f"Against {other}{' with its best step' if other == 'OjaPCA' else ''}: {'; '.join(told)}.")
    found = {row["learner"]: row for row in part(results, "guarantee")}
    broken = {name: row["broken"] for name, row in found.items()}
    said: dict[str, Any] = {"who": lines}
    said["guarantee"] = (
        f"Of all intervals of 16 rounds and more of the geometric cover, {OURS} exceeds the bound on {broken[OURS]}, "
        f"DescentPCA on {broken['DescentPCA']}, YuanLamperskiPCA on {broken['YuanLamperskiPCA']}."
    )
    said["tuned"] = f"{TUNED:,}"
    ratios = [mean(groups[s, OURS], "loss") / mean(groups[s, PAPER], "loss") for s in streams]
    said["surrogates"] = (
        f"Drawn, the smallest ball loses {min(ratios):.3f} to {max(ratios):.3f} times what the paper's loses. "
        "Its radius also enters the bound."
    )
    last = part(results, "time")[-1]
    said["time"] = (
        f"At d = {last['dim']} a round of {OURS} takes {last[OURS]['us'] / last['eigh']:.2f} times one "
        f"eigendecomposition, a round of AdaptivePCA {last['AdaptivePCA']['us'] / last['eigh']:.2f} times."
    )
    return said


# ---------------------------------------------------------------------------------------------------------------- page


def to_csv(runs: Sequence[Row]) -> str:
    """A line for each run, without its curves (which are in runs/)."""
    keys = [key for key, value in runs[0].items() if not isinstance(value, list | dict)]
    text = io.StringIO()
    writer = csv.DictWriter(text, keys, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(runs)
    return text.getvalue()


def write(folder: Path, results: Results, facts: Mapping[str, Any]) -> Path:
    """Write everything; returns the path of the page, which comes last."""
    drawn = pca_figures.panels(grouped(part(results, "run")), part(results, "time"), part(results, "guarantee"))
    images = {}
    for name, figure in drawn.items():
        images[name] = figures.save(figure, "png")
        write_file(folder / f"{name}.png", images[name])
        write_file(folder / f"{name}.pdf", figures.save(figure, "pdf"))
    write_file(folder / "runs.csv", to_csv(part(results, "run")).encode())
    known = page.about(
        facts["size"], seconds=facts["seconds"], command=facts["command"], full=False, small=facts["small"]
    )
    known["runs"] = len(results)
    write_file(folder / "about.json", (json.dumps(known, indent=1) + "\n").encode())
    path = folder / "index.html"
    write_file(path, render(results, known, images).encode())
    return path


def render(results: Results, facts: Mapping[str, Any], images: Mapping[str, bytes]) -> str:
    """The page. It refers to nothing outside itself; style and tables are those of the other report."""
    try:
        import jinja2
    except ImportError:
        raise MissingExtraError("The page needs jinja2. Install it with: pip install 'thalweg[lab]'") from None
    here = Path(__file__).parent
    macros, _, rest = (here / "page.html").read_text(encoding="utf-8").partition("<!DOCTYPE html>")
    style = rest.partition("<style>")[2].partition("</style>")[0]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(macros + (here / "pca_page.html").read_text(encoding="utf-8"))
    played = dict.fromkeys(row["stream"] for row in part(results, "run"))
    return template.render(
        style=style,
        facts=facts,
        pictures={name: f"data:image/png;base64,{base64.b64encode(image).decode()}" for name, image in images.items()},
        tables=tables(results),
        remarks=remarks(results),
        streams={name: STREAMS[name].about for name in played},
        missing=[name for name in STREAMS if name not in played],
    )
