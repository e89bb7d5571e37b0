"""Selections of runs and numbers that tables and pictures share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thalweg._core.types import Floats
from thalweg.lab.catalog import prompt
from thalweg.lab.report import Row, mean, pick
from thalweg.lab.streams import STREAMS


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
    return [name for name, recipe in prompt().items() if recipe.card.regret == "interval dynamic"]


def losses_of(rows: Sequence[Row]) -> Floats:
    """The mean total loss of every algorithm on every stream."""
    return np.array([[mean(survey(rows, s, name), "total_loss") for s in streams_of(rows)] for name in prompt()])


def round_time(rows: Sequence[Row]) -> float:
    """Seconds a round, the mean over repetitions."""
    return float(np.mean([row["seconds"] / row["rounds"] for row in rows]))
