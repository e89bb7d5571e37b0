"""The pictures of the study of forecasts. Every function takes rows of runs and returns a matplotlib Figure."""

from __future__ import annotations

from typing import Any

import numpy as np
from thalweg.lab.studies.forecasting.peers import LEVELS
from thalweg.lab.studies.forecasting.report import OTHERS, ratios
from thalweg.lab.studies.forecasting.runs import AHEAD, OURS
from thalweg.lab.studies.forecasting.series import HALVES, SERIES

from thalweg.lab.pictures import COLOURS, GREY, legend, name_rows, note, panels
from thalweg.lab.report import Results, Row, distinct, group, part, pick

BLUE, VERMILION, GREEN, PINK, BLACK = COLOURS
LOOKS = {"choose": (GREY, "o"), "confirm": (BLUE, "D")}
NEAR, FAR = 0.4, 1.6  # ratios beyond are drawn at the edges
ASIDE = {"Naive": ((6, -11), "left"), "AutoTheta": ((-6, 4), "right"), "MSTL": ((-6, -10), "right")}  # of labels
TITLES = {"1": "one step ahead", "H": "at the horizon (8 to 24 steps)"}


def draw_all(results: Results) -> dict[str, Any]:
    """The pictures by name."""
    rows = part(results, "run")
    pictures = {"forecasting-ratios": errors(rows), "forecasting-coverage": coverage(rows)}
    pictures["forecasting-cost"] = cost(rows)
    fans = {row["series"]: row for row in rows if row["fan"]}
    return pictures | ({"forecasting-fans": draw_fans(fans)} if fans else {})


def errors(rows: list[Row]) -> Any:
    """RMSE of the Forecaster over that of others: a dot for each series, a bar for the geometric mean."""
    names = [name for name in OTHERS if ratios(rows, name, "rmse 1")]
    figure, axes = panels(12.0, 1.6 + 0.5 * len(names), 1, 2, sharey=True)
    for axis, ahead in zip(axes.flat, AHEAD, strict=True):
        places = name_rows(axis, names)
        for place, name in zip(places, names, strict=True):
            for shift, half in zip((0.16, -0.16), HALVES, strict=True):
                colour, mark = LOOKS[half]
                found = ratios(pick(rows, half=half), name, f"rmse {ahead}")
                if not found:
                    continue
                spots = np.clip(list(found.values()), NEAR, FAR)
                jitter = np.linspace(-0.11, 0.11, spots.size)
                label = half if name == names[0] else None
                axis.plot(spots, place + shift + jitter, mark, color=colour, markersize=3, alpha=0.55,
                          linestyle="none", label=label)  # fmt: skip
                axis.plot([found.middle] * 2, [place + shift - 0.15, place + shift + 0.15], color=VERMILION, lw=2.2)
        axis.axvline(1, color=BLACK, linewidth=1.0)
        axis.set(title=TITLES[ahead], xlim=(NEAR - 0.02, FAR + 0.02))
        axis.set_xlabel(f"error of the Forecaster ÷ that of the other (below 1: better; edges: {NEAR:g}, {FAR:g})")
    legend(figure, axes[0, 0], "upper center", 2)
    return figure


def coverage(rows: list[Row]) -> Any:
    """Share inside, a dot for each series: a panel for each level and how far ahead."""
    known = [row for row in rows if row[f"coverage {LEVELS[0]} 1"] is not None]
    names = distinct(known, "method")
    figure, axes = panels(12.0, 1.5 + 0.75 * len(names), 2, 2, sharey=True)
    by_method = {method: here for (method,), here in group(known, "method").items()}
    for line, level in zip(axes, LEVELS, strict=True):
        for axis, ahead in zip(line, AHEAD, strict=True):
            places = name_rows(axis, names)
            for place, name in zip(places, names, strict=True):
                inside = [row[f"coverage {level} {ahead}"] for row in by_method[name]]
                found = np.array([value for value in inside if value is not None])
                colour = BLUE if name == OURS else GREY
                jitter = np.linspace(-0.25, 0.25, found.size)
                axis.plot(found, place + jitter, "o", color=colour, markersize=3, alpha=0.6, linestyle="none")
                axis.plot([found.mean()] * 2, [place - 0.35, place + 0.35], color=VERMILION, linewidth=2.2)
            axis.axvline(level, color=BLACK, linestyle="--", linewidth=1.0)
            axis.set(title=f"{level:g} asked for, {TITLES[ahead]}", xlim=(0.0, 1.02), xlabel="share inside")
    return figure


def cost(rows: list[Row]) -> Any:
    """Time for a row against error, relative to the Forecaster: one dot for each method."""
    figure, axes = panels(11.0, 4.2, 1, 2, sharey=False)
    for axis, ahead in zip(axes.flat, AHEAD, strict=True):
        for (name,), here in group(rows, "method").items():
            found = ratios(rows, name, f"rmse {ahead}")
            each = 1e6 * sum(row["seconds"] for row in here) / sum(row["rows"] for row in here)
            if not found or each <= 0:
                continue
            error = min(1 / found.middle, 3.0)
            axis.plot([each], [error], "o", color=BLUE if name == OURS else GREY, markersize=8 if name == OURS else 6)
            aside, side = ASIDE.get(name, ((6, 4), "left"))
            note(axis, name, (each, error), aside, ha=side, color=BLACK)
        axis.axhline(1, color=BLACK, linewidth=0.8)
        axis.set(xscale="log", title=TITLES[ahead], xlabel="time for a row [µs]")
        axis.margins(x=0.25)
        axis.grid(visible=True)
    axes[0, 0].set_ylabel("error ÷ that of the Forecaster\n(geometric mean; 3 or more at 3)")
    return figure


def draw_fans(fans: dict[str, Row]) -> Any:
    """The last forecast that has all its answers, with its intervals."""
    lines = -(-len(fans) // 2)
    figure, axes = panels(12.0, 2.7 * lines, lines, 2)
    for axis in axes.flat[len(fans) :]:
        axis.set_visible(False)
    for axis, (name, row) in zip(axes.flat, fans.items(), strict=False):
        fan = row["fan"]
        H = len(fan["mean"])
        past = np.arange(-len(fan["values"]) + H, H)
        ahead = np.arange(H)
        axis.plot(past, fan["values"], color=BLACK, linewidth=1.1, label="values")
        for level, alpha in zip(reversed(LEVELS), (0.2, 0.35), strict=True):
            low, high = (np.array(band, dtype=float) for band in fan["bands"][str(level)])
            axis.fill_between(ahead, low, high, color=BLUE, alpha=alpha, linewidth=0, label=f"{level:g}")
        axis.plot(ahead, fan["mean"], color=VERMILION, linewidth=1.6, label="forecast")
        axis.axvline(-0.5, color=GREY, linestyle=":", linewidth=1.0)
        axis.set_title(f"{name}: {SERIES[name].about}", fontsize="medium")
    legend(figure, axes[0, 0], "upper center", 4)
    return figure
