"""The pictures of the study of combination. Every function takes rows of runs and returns a matplotlib Figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from thalweg.lab.studies.combination.report import OPERA, relative
from thalweg.lab.studies.combination.runs import SERIES, VARIANTS

from thalweg.lab.pictures import COLOURS, GREY, legend, name_rows, panels
from thalweg.lab.report import Results, Row, part, pick

TITLES = {"as they are": "everybody awake, answers at once", "sleeping": "experts that sleep", "late": "late answers"}
DRAWN = {"Aggregator": (COLOURS[0], "o", 8), "its Tracker alone": (COLOURS[1], "^", 5)}
WIDEST = 1.3  # of the axis


def draw_all(results: Results) -> dict[str, Any]:
    """The pictures by name."""
    rows = part(results, "run")
    return {"combination-ratios": ratios(rows)}


def ratios(rows: Sequence[Row]) -> Any:
    """Errors relative to the best rule of OPERA: a row for each series, a panel for each variant."""
    names = [name for name in SERIES if pick(rows, series=name)]
    figure, axes = panels(12.0, 1.2 + 0.36 * len(names), 1, len(VARIANTS), sharey=True)
    for axis, variant in zip(axes.flat, VARIANTS, strict=True):
        here = pick(rows, variant=variant)
        places = name_rows(axis, names)
        for k, who in enumerate(OPERA):
            found = relative(here, who)
            label = "rules of OPERA, R and Python" if k == 0 else None
            spots = np.array([found[name] for name in names])
            axis.plot(np.minimum(spots, WIDEST), places, "|", color=GREY, markersize=9, label=label, zorder=1)
        for who, (colour, mark, size) in DRAWN.items():
            found = relative(here, who)
            spots = np.array([found[name] for name in names])
            axis.plot(np.minimum(spots, WIDEST), places, mark, color=colour, markersize=size, label=who, zorder=3)
        axis.axvline(1.0, color="black", linewidth=0.8, zorder=0)
        axis.set(title=TITLES[variant], xlim=(0.63, WIDEST + 0.02))
        axis.set_xlabel("error over that of the best rule of OPERA\n(left is better; 1.3 or more at the right edge)")
    legend(figure, axes[0, 0], "upper center", 3)
    return figure
