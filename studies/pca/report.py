"""The report of the study of online PCA: tables, and sentences about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from thalweg.lab.studies.pca.runs import STREAMS, TIMED, TUNED

from thalweg.lab.report import Results, Row, TextTable, distinct, duration, group, mean, number, part, pick, ratios

OURS, PAPER = "EfficientPCA", "EfficientPCA, paper's ball"
OTHERS = ("AdaptivePCA", "DescentPCA", "YuanLamperskiPCA", "OjaPCA", "IncrementalPCA", "StreamingPCA")
Groups = dict[str, dict[str, list[Row]]]  # the runs of a learner on all streams


def grouped(runs: Sequence[Row]) -> Groups:
    """Runs by learner and stream; of Oja's steps the best in hindsight on each stream, as "OjaPCA"."""
    groups: Groups = {}
    for (name, stream), found in group(runs, "learner", "stream").items():
        groups.setdefault(name, {})[stream] = found
    steps = [found for name, found in groups.items() if name.startswith("OjaPCA, step")]
    if steps:
        best = {s: min((step[s] for step in steps), key=lambda found: mean(found, "loss")) for s in steps[0]}
        groups["OjaPCA"] = best
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
    for stream in groups[OURS]:
        for name, found in ((name, found[stream]) for name, found in groups.items()):
            if name == PAPER or name.startswith("OjaPCA, step"):
                continue
            label = f"OjaPCA, {found[0]['learner'].partition(', ')[2]}" if name == "OjaPCA" else name
            same = found[0]["curve"] == found[0]["leading_curve"]
            cells = [percent(found, "loss"), "–" if same else percent(found, "leading_loss")]
            cells += [f"{mean(found, 'eigendecompositions'):.2g}", f"{mean(found, 'us'):.0f}"]
            body.append([stream, label, *cells])
        best = {"fixed": "best fixed subspace", "pieces": "best subspace of each stretch"}
        for key in best if STREAMS[stream].period else ("fixed",):
            paid = percent(pick(references, stream=stream), key)
            body.append([stream, f"{best[key]} in hindsight", "–", paid, "–", "–"])
    heads = ["stream", "learner", "drawn, %", "leading, %", "eigendecompositions a round", "µs a round"]
    return TextTable(heads, body)


def _surrogates(groups: Groups) -> TextTable:
    body = []
    for stream, tight in groups[OURS].items():
        d, k = tight[0]["dim"], tight[0]["rank"]
        both = (tight, groups[PAPER][stream])
        losses = [percent(found, key) for key in ("loss", "leading_loss") for found in both]
        body.append([stream, f"{d}, {k}", f"{np.sqrt(k * (d - k) / d):.2f}, {np.sqrt(k):.2f}", *losses])
    columns = [f"{what}, % ({ball})" for what in ("drawn", "leading") for ball in ("smallest", "paper's")]
    return TextTable(["stream", "d, k", "radius: smallest, paper's", *columns], body, (0,))


def _oja(groups: Groups) -> TextTable:
    names = [name for name in groups if name.startswith("OjaPCA, step")]
    body = [[s, *(percent(groups[name][s], "loss") for name in names)] for s in groups[OURS]]
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
    columns = (found[0]["bound"], *(row["regret"] for row in found))
    body = [[f"{n:,}", *map(number, cells)] for n, *cells in zip(found[0]["lengths"], *columns, strict=True)]
    return TextTable(["rounds of the interval", "bound", *distinct(found, "learner")], body, ())


# ------------------------------------------------------------------------------------------------------ sentences


def remarks(results: Results) -> dict[str, Any]:
    """The numbers of the page's sentences."""
    groups, last = grouped(part(results, "run")), part(results, "time")[-1]
    kinds = {"drawn": "loss", "with leading directions": "leading_loss"}
    return {
        "against": {
            other: {kind: ratios(groups[OURS], groups[other], key) for kind, key in kinds.items()}
            for other in OTHERS
            if other in groups
        },
        "streams": {name: STREAMS[name].about for name in groups[OURS]},
        "missing": [name for name in STREAMS if name not in groups[OURS]],
        "broken": {row["learner"]: row["broken"] for row in part(results, "guarantee")},
        "tuned": TUNED,
        "balls": ratios(groups[OURS], groups[PAPER], "loss"),
        "dim": last["dim"],
        "times": {name: last[name]["us"] / last["eigh"] for name in TIMED},
    }
