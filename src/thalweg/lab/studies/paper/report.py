"""What the runs of the paper's experiments show, as tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from thalweg.lab.catalog import ALGORITHMS
from thalweg.lab.report import Row, TextTable, duration, mean, number, pick, ratio, spread
from thalweg.lab.streams import STREAMS
from thalweg.lab.studies.paper.runs import ADAPTIVE, CROWDED, DYNAMIC

# Table 1 of the paper: the measure, our name, and its projections, gradients and values a round.
TABLE_1 = (
    ("dynamic", "Sword", "N", "N + 1", "0"),
    ("dynamic", "Sword-shared", "O(log T)", "1", "0"),
    ("dynamic", "EfficientDynamic", "1", "1", "0"),
    ("adaptive", "SACS", "O(log T)", "O(log T)", "O(log T)"),
    ("adaptive", "SACS-compact", "O(log T)", "O(log T)", "O(log T)"),
    ("adaptive", "EfficientAdaptive", "1", "1", "1"),
    ("interval dynamic", "AOA", "O(log² T)", "O(log² T)", "O(log² T)"),
    ("interval dynamic", "EfficientIntervalDynamic", "1", "1", "1"),
)
# What is timed: a title, the stream, a contender and ours.
SPEED = (
    ("dynamic", "piecewise", *DYNAMIC),
    ("adaptive, thresholds as printed", "gradual", *ADAPTIVE),
    ("adaptive, thresholds scaled down", "gradual", *CROWDED),
    ("adaptive, SACS with an expert a round", "gradual", "SACS-compact", CROWDED[1]),
)
THRESHOLDS = {
    "SACS": "as printed",
    "SACS-eager": "1/100",
    "SACS-crowded": "1/1000",
    "SACS-compact": "a marker every round",
    "EfficientAdaptive": "as printed",
    "EfficientAdaptive-eager": "1/1000",
    "EfficientAdaptive-crowded": "1/100 000",
}
QUERIES = ("projections", "gradients", "values")


# ---------------------------------------------------------------------------------------------------------- selecting


def survey(rows: Sequence[Row], stream: str, name: str) -> list[Row]:
    """The runs of an algorithm over a whole stream, with the compiled projection."""
    return pick(rows, part="survey", stream=stream, algorithm=name)


def timed(rows: Sequence[Row], stream: str, name: str, oracle: str) -> list[Row]:
    """The runs from which the time of a round with an oracle is taken."""
    return pick(rows, part="solver" if oracle == "solver" else "survey", stream=stream, algorithm=name)


def streams_of(rows: Sequence[Row]) -> list[str]:
    """The streams that all algorithms played, in the catalog's order."""
    found = {row["stream"] for row in pick(rows, part="survey")}
    return [name for name in STREAMS if name in found]


def interval_dynamic() -> list[str]:
    """The algorithms for interval dynamic regret."""
    return [name for name, recipe in ALGORITHMS.items() if recipe.card.regret == "interval dynamic"]


def losses_of(rows: Sequence[Row]) -> NDArray[np.float64]:
    """The mean total loss of every algorithm on every stream."""
    return np.array([[mean(survey(rows, s, name), "total_loss") for s in streams_of(rows)] for name in ALGORITHMS])


def round_time(rows: Sequence[Row]) -> float:
    """Seconds a round, the mean over repetitions."""
    return float(np.mean([row["seconds"] / row["rounds"] for row in rows]))


# -------------------------------------------------------------------------------------------------------------- tables


def tables(rows: Sequence[Row]) -> dict[str, TextTable]:
    """Every table of the report."""
    makers = {"speed": _speed, "adaptive": _adaptive, "table_1": _table_1, "interval": _interval, "all": _all}
    return {name: make(rows) for name, make in makers.items()}


def _speed(rows: Sequence[Row]) -> TextTable:
    body = []
    for title, stream, *names in SPEED:
        for oracle in ("compiled", "solver"):
            both = [timed(rows, stream, name, oracle) for name in names]
            seconds, counts = [round_time(found) for found in both], [mean(found, "projections") for found in both]
            outside = [mean(found, "outside") for found in both]
            cells = [f"{name} {duration(time)}" for name, time in zip(names, seconds, strict=True)]
            cells += [ratio(seconds[0] / seconds[1]), ratio(counts[0] / counts[1])]
            cells.append("–" if outside[0] is None else f"{100 * outside[0]:.0f} %, {100 * outside[1]:.0f} %")
            body.append([title, f"{oracle}, {both[0][0]['rounds']:,} rounds", *cells])
    heads = ["regret", "projection by", "contender", "ours", "ratio of times", "of projections", "outside the set"]
    return TextTable(heads, body, (0, 1, 2, 3))


def _adaptive(rows: Sequence[Row]) -> TextTable:
    body = []
    for name, threshold in THRESHOLDS.items():
        found, solver = (timed(rows, "gradual", name, oracle) for oracle in ("compiled", "solver"))
        counts = [number(mean(found, key)) for key in ("markers", "experts", "most_experts")]
        losses = [spread(found, key) for key in ("total_loss", "worst_window")]
        slow = duration(round_time(solver)) if solver else "–"
        body.append([name, threshold, *counts, *losses, duration(round_time(found)), slow])
    heads = ["algorithm", "threshold", "markers", "experts alive, mean", "at most", "total loss", "worst 200 rounds",
             "time a round, compiled", "time a round, solver"]  # fmt: skip
    return TextTable(heads, body)


def _table_1(rows: Sequence[Row]) -> TextTable:
    body = []
    for measure, name, *stated in TABLE_1:
        found = survey(rows, "piecewise", name)
        cells = [f"{number(mean(found, key))} ({said})" for key, said in zip(QUERIES, stated, strict=True)]
        body.append([measure, name, *cells, ALGORITHMS[name].card.bound])
    return TextTable(["regret", "algorithm", *QUERIES, "order of its regret"], body, (0, 1, 5))


def _interval(rows: Sequence[Row]) -> TextTable:
    body = []
    for stream in ("piecewise", "gradual"):
        for name in interval_dynamic():
            found = survey(rows, stream, name)
            losses = [spread(found, key) for key in ("total_loss", "worst_window")]
            body.append([stream, name, *losses, duration(round_time(found)), number(mean(found, "projections"))])
    heads = ["stream", "algorithm", "total loss", "worst 200 rounds", "time a round", "projections a round"]
    return TextTable(heads, body)


def _all(rows: Sequence[Row]) -> TextTable:
    body = []
    for name, card in ((name, recipe.card) for name, recipe in ALGORITHMS.items()):
        found = survey(rows, "piecewise", name)
        counts = [number(mean(found, key)) for key in QUERIES]
        body.append([name, card.regret, *counts, duration(round_time(found)), spread(found, "total_loss"), card.bound])
    heads = ["algorithm", "regret", *QUERIES, "time a round", "total loss", "order of its regret"]
    return TextTable(heads, body, (0, 1, 7))
