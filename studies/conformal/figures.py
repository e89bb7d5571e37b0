"""The pictures of the study of intervals. Every function takes rows of runs and returns a matplotlib Figure."""

from __future__ import annotations

from typing import Any

import numpy as np
from thalweg.lab.studies.conformal.cases import draw
from thalweg.lab.studies.conformal.report import ratios_of
from thalweg.lab.studies.conformal.runs import ALPHA, OURS, PEERS, SHOWN

from thalweg.estimators import interval_plots
from thalweg.lab.pictures import COLOURS, GREY, legend, name_rows, note, panels
from thalweg.lab.report import Results, Row, group, part

BLUE, VERMILION, GREEN, PINK, BLACK = COLOURS
LOOKS = {
    OURS: (BLUE, "o"), "DtACI": (VERMILION, "s"), "SAOCP": (GREEN, "^"), "conformal PI": (PINK, "D"),
    "ACI 0.05": ("#E69F00", "v"), "window 500": (GREY, "x"),
}  # fmt: skip
FAR = 1.6  # ratios beyond are drawn at the edge
DRAWN = (OURS, "DtACI", "window 500")


def draw_all(results: Results) -> dict[str, Any]:
    """The pictures by name."""
    rows = part(results, "run")
    pictures = {"conformal-scores": scores(rows), "conformal-coverage": coverage(rows)}
    shown = {row["method"]: row["thresholds"] for row in rows if row["case"] == SHOWN and row["method"] in DRAWN}
    return pictures | ({"conformal-over-time": over_time(shown)} if len(shown) == len(DRAWN) else {})


def scores(rows: list[Row]) -> Any:
    """Interval score over that of the best peer, a row for each stream."""
    found = ratios_of(rows)
    cases = sorted(found[OURS], key=lambda case: found[OURS][case])
    figure, [[axis]] = panels(9.5, 1.8 + 0.25 * len(cases))
    places = name_rows(axis, cases)
    for name, (colour, mark) in reversed(LOOKS.items()):
        values = np.array([found[name][case] for case in cases])
        size = 7 if name == OURS else 5
        axis.plot(np.minimum(values, FAR), places, mark, color=colour, markersize=size, linestyle="none", label=name)
    axis.axvline(1, color=BLACK, linewidth=1.0)
    axis.set(
        xlim=(min(0.7, min(found[OURS].values()) - 0.03), FAR + 0.02),
        xlabel=f"interval score ÷ that of the best of {len(PEERS)} peers, chosen in hindsight for the stream",
    )
    note(axis, f"{FAR:g} or more", (FAR, places[0]), (-4, 12), ha="right", color=GREY)
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside upper center", ncols=len(LOOKS))
    return figure


def coverage(rows: list[Row]) -> Any:
    """Coverage of the whole run, and the worst 100 rounds: a dot for each stream."""
    names = list(LOOKS)
    figure, [axes] = panels(11.0, 4.2, 1, 2)
    by_method = {method: here for (method,), here in group(rows, "method").items()}
    for axis, key, title in zip(
        axes, ("coverage", "worst"), ("the whole run", "the worst 100 rounds of each stream"), strict=True
    ):
        places = name_rows(axis, names)
        for place, name in zip(places, names, strict=True):
            values = np.maximum([row[key] for row in by_method[name]], 0.8 if key == "coverage" else 0.0)
            spread = np.linspace(-0.25, 0.25, values.size)
            axis.plot(values, place + spread, "o", color=LOOKS[name][0], markersize=3.5, alpha=0.7, linestyle="none")
        axis.axvline(1 - ALPHA, color=BLACK, linestyle="--", linewidth=1.0)
        edge = "; 0.8 or less at the edge" if key == "coverage" else ""
        axis.set(title=title, xlabel=f"share inside (asked for: {1 - ALPHA:g}{edge})")
    return figure


def over_time(shown: dict[str, list[float]]) -> Any:
    """Local coverage, width and a stretch of intervals, on one stream."""
    T = len(next(iter(shown.values())))
    y_hat, y = (part_[:T] for part_ in draw(SHOWN, None))
    bands = {name: np.stack([y_hat - q, y_hat + np.array(q)], axis=1) for name, q in shown.items()}
    figure, [[top], [middle], [low]] = panels(10.0, 9.0, 3, 1)
    n = min(500, T // 2)
    interval_plots.coverage_over_time(y, bands, coverage=1 - ALPHA, window=n, ax=top)
    interval_plots.width_over_time(bands, window=n, ax=middle)
    first = min(3000, T // 2)
    low.set_title(f"{OURS}: intervals of some rounds", fontsize="medium")
    interval_plots.band(y, bands[OURS], first=first, last=min(first + 600, T), ax=low)
    for axis in (top, middle, low):
        axis.get_legend().remove()
    legend(figure, top, "upper center", 5)
    low.legend(loc="upper right", fontsize=8)
    low.set_ylabel("temperature of the sea [°C]")
    return figure
