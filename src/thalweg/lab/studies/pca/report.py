"""The report of the study of online PCA: tables, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from thalweg.lab.report import Results, Row, TextTable, duration, group, less_and_more, mean, number, part
from thalweg.lab.studies.pca.runs import STREAMS, TIMED, TUNED

__all__ = ["Groups", "grouped", "remarks", "tables"]

OURS, PAPER = "EfficientPCA", "EfficientPCA, paper's ball"
Groups = dict[tuple[str, str], list[Row]]


def grouped(runs: Sequence[Row]) -> Groups:
    """Runs that differ in their seed only, together; of Oja's steps the best in hindsight, as "OjaPCA"."""
    groups: Groups = group(runs, "stream", "learner")
    for stream in dict.fromkeys(run["stream"] for run in runs):
        steps = {key: value for key, value in groups.items() if key[0] == stream and key[1].startswith("OjaPCA, step")}
        if steps:
            groups[stream, "OjaPCA"] = min(steps.values(), key=lambda found: mean(found, "loss"))
    return groups


def percent(found: Sequence[Row], key: str) -> str:
    """Mean ± standard deviation over seeds, in per cent."""
    values = 100 * np.array([row[key] for row in found])
    return f"{values.mean():.1f}" + (f" ± {values.std(ddof=1):.1f}" if values.size > 1 else "")


# -------------------------------------------------------------------------------------------------------------- tables


def tables(results: Results) -> dict[str, TextTable]:
    """Every table of the report."""
    groups = grouped(part(results, "run"))
    return {
        "losses": _losses(groups, part(results, "reference")),
        "surrogates": _surrogates(groups),
        "oja": _oja(groups),
        "time": _time(part(results, "time")),
        "guarantee": _guarantee(part(results, "guarantee")),
    }


def _losses(groups: Groups, references: Sequence[Row]) -> TextTable:
    body = []
    for (stream, name), found in groups.items():
        if name == PAPER or name.startswith("OjaPCA, step"):
            continue
        label = f"OjaPCA, {found[0]['learner'].partition(', ')[2]}" if name == "OjaPCA" else name
        same = found[0]["curve"] == found[0]["leading_curve"]
        cells = [percent(found, "loss"), "–" if same else percent(found, "leading_loss")]
        body.append([stream, label, *cells, f"{mean(found, 'eigendecompositions'):.2g}", f"{mean(found, 'us'):.0f}"])
    order = list(STREAMS)
    for stream in dict.fromkeys(row["stream"] for row in references):
        mine = [row for row in references if row["stream"] == stream]
        body.append([stream, "best fixed subspace in hindsight", "–", percent(mine, "fixed"), "–", "–"])
        if STREAMS[stream].period:
            body.append([stream, "best subspace of each stretch in hindsight", "–", percent(mine, "pieces"), "–", "–"])
    body.sort(key=lambda row: order.index(row[0]))
    heads = ["stream", "learner", "drawn, %", "leading, %", "eigendecompositions a round", "µs a round"]
    return TextTable(heads, body)


def _surrogates(groups: Groups) -> TextTable:
    body = []
    for stream in dict.fromkeys(stream for stream, _ in groups):
        tight, wide = groups[stream, OURS], groups[stream, PAPER]
        d, k = tight[0]["dim"], tight[0]["rank"]
        body.append([
            stream, f"{d}, {k}", f"{np.sqrt(k * (d - k) / d):.2f}, {np.sqrt(k):.2f}",
            *(percent(found, key) for key in ("loss", "leading_loss") for found in (tight, wide)),
        ])  # fmt: skip
    heads = ["stream", "d, k", "radius: smallest, paper's", "drawn, % (smallest)", "drawn, % (paper's)",
             "leading, % (smallest)", "leading, % (paper's)"]  # fmt: skip
    return TextTable(heads, body, (0,))


def _oja(groups: Groups) -> TextTable:
    names = list(dict.fromkeys(name for _, name in groups if name.startswith("OjaPCA, step")))
    body = []
    for stream in dict.fromkeys(stream for stream, _ in groups):
        body.append([stream, *(percent(groups[stream, name], "loss") for name in names)])
    return TextTable(["stream", *(f"{name.partition(', ')[2]}, %" for name in names)], body, (0,))


def _time(timed: Sequence[Row]) -> TextTable:
    body = []
    for row in timed:
        times = [f"{duration(1e-6 * row[name]['us'])} ({row[name]['eigh']:.2g})" for name in TIMED]
        each = [row[OURS]["us"] / row["eigh"], row["AdaptivePCA"]["us"] / row[OURS]["us"]]
        body.append([str(row["dim"]), duration(1e-6 * row["eigh"]), *times, *(f"{value:.2f}" for value in each)])
    heads = ["d", "one eigendecomposition", *TIMED, f"{OURS} ÷ one", f"AdaptivePCA ÷ {OURS}"]
    return TextTable(heads, body, ())


def _guarantee(found: Sequence[Row]) -> TextTable:
    body = []
    for i, n in enumerate(found[0]["lengths"]):
        body.append([f"{n:,}", number(found[0]["bound"][i]), *(number(row["regret"][i]) for row in found)])
    heads = ["rounds of the interval", "bound", *(row["learner"] for row in found)]
    return TextTable(heads, body, ())


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
            less, more = less_and_more(times.values())
            low, high = min(times, key=times.__getitem__), max(times, key=times.__getitem__)
            told.append(
                f"{what}, {OURS} loses less on {less} and more on {more} of {len(times)} streams, from "
                f"{times[low]:.2f} times ({low}) to {times[high]:.2f} times ({high}) as much"
            )
        lines.append(f"Against {other}{' with its best step' if other == 'OjaPCA' else ''}: {'; '.join(told)}.")
    found = {row["learner"]: row for row in part(results, "guarantee")}
    broken = {name: row["broken"] for name, row in found.items()}
    said: dict[str, Any] = {"who": lines, "streams": {name: STREAMS[name].about for name in streams}}
    said["missing"] = [name for name in STREAMS if name not in streams]
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
