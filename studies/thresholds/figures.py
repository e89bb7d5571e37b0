"""The pictures of the study of thresholds. Every function takes rows of runs and returns a matplotlib Figure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from thalweg.lab.studies.thresholds.runs import CURVES, SERIES

from thalweg.lab.pictures import GREY, LOOKS, label_axes, legend, panels, plain_ticks
from thalweg.lab.report import Results, Row, group, mean, part, pick

VARIANTS = ("bound, center", "bound, current", "observed, center", "observed, current")
NAMES = {
    "printed": "EfficientAdaptive, printed threshold",
    "scale 1e-03": "EfficientAdaptive, $10^{-3}$ × printed",
    "scale 1e-05": "EfficientAdaptive, $10^{-5}$ × printed",
    "SACS, default": "SACS, its own threshold",
    "EfficientDynamic": "EfficientDynamic (Theorem 3)",
    "planted": "the planted model (noise only)",
}


def draw_all(results: Results) -> dict[str, Any]:
    """The pictures by name. The series of the check have one of their own."""
    check, usual = (
        [row for row in part(results, "run") if SERIES[row["series"]].check == kind] for kind in (True, False)
    )
    jumps = [row for row in usual if row["curve"]]
    pictures = {"losses": (losses, usual), "check": (losses, check), "after-a-jump": (after_change, jumps)}
    return {f"thresholds-{name}": draw(rows) for name, (draw, rows) in pictures.items() if rows}


def _title(name: str, rows: Sequence[Row]) -> str:
    return f"{SERIES[name].title}\nT = {rows[0]['rounds']:,}"


def losses(rows: Sequence[Row]) -> Any:
    """Total loss against the scale of the threshold, relative to the printed one: a panel for each series."""
    found = group(rows, "series")
    columns = min(4, len(found) + 1)
    height = -(-(len(found) + 1) // columns)
    figure, axes = panels(3.3 * columns, 3.2 * height, height, columns)
    for axis, ((name,), here) in zip(axes.flat, found.items(), strict=False):
        _by_scale(axis, here)
        axis.set_title(_title(name, here))
    label_axes(axes, y="total loss relative to printed")
    for axis in axes.flat[len(found) :]:
        axis.axis("off")
    title = "EfficientAdaptive: feedback range, restart"
    axes.flat[len(found)].legend(*axes[0, 0].get_legend_handles_labels(), loc="center", title=title)
    figure.supxlabel("threshold scale (1 = as printed); below it: markers fired with bound, center", fontsize=10)
    return figure


def _by_scale(axis: Any, rows: Sequence[Row]) -> None:
    scales = sorted({row["scale"] for row in pick(rows, group="scale")})

    def runs(s: float, feedback: str = "bound", restart: str = "center") -> list[Row]:
        return pick(rows, group="scale", scale=s, feedback=feedback, restart=restart)

    def paid(found: Sequence[Row]) -> float:
        each = zip(found, runs(1.0), strict=True)
        return float(np.mean([row["total_loss"] / printed["total_loss"] for row, printed in each]))

    for variant in VARIANTS:
        colour, mark, line = LOOKS[variant]
        values = [paid(runs(s, *variant.split(", "))) for s in scales]
        axis.plot(scales, values, mark, color=colour, linestyle=line, markersize=4, linewidth=1.4, label=variant)
    for learner in ("EfficientDynamic", "SACS, default"):
        colour, _, line = LOOKS[learner]
        level = paid(pick(rows, group="others", learner=learner))
        axis.axhline(level, color=colour, linestyle=line, linewidth=1.6, label=NAMES[learner])
    fired = {s: mean(runs(s), "markers") for s in scales}
    alone = [s for s in scales if fired[s] == 1]
    if alone:
        axis.axvspan(alone[0] / 1.3, scales[-1] * 1.5, color="#eeeeee", zorder=0, label="no second expert")
    axis.axvline(1e-3, color=GREY, linewidth=1.0, linestyle=":", label="scale we suggest", zorder=0)
    axis.set(xscale="log", yscale="log", xlim=(scales[0] / 1.6, scales[-1] * 1.5))
    plain_ticks(axis, "y")
    axis.grid(visible=True)
    whole = [s for s in scales if abs(math.log10(s) - round(math.log10(s))) < 1e-9]
    axis.set_xticks(whole, [f"$10^{{{round(math.log10(s))}}}$\n{fired[s]:.0f}" for s in whole], fontsize=8)
    axis.minorticks_off()


def after_change(rows: Sequence[Row]) -> Any:
    """Mean loss against rounds since the last jump."""
    usual = [row for row in pick(rows, restart="center", feedback="bound") if row["group"] in ("scale", "others")]
    found = group(usual, "series")
    figure, axes = panels(max(7.0, 5.0 * len(found)), 5.0, 1, len(found), sharey=True)
    for axis, ((name,), here) in zip(axes.flat, found.items(), strict=True):
        for learner in CURVES:
            curve = np.mean([row["curve"] for row in pick(here, learner=learner)], axis=0)
            edges = np.unique(np.geomspace(1, len(curve) + 1, 30).astype(int)) - 1  # windows that grow, for calm lines
            points = [(np.sqrt((a + 1) * b), np.mean(curve[a:b])) for a, b in itertools.pairwise(edges)]
            colour, _, line = LOOKS[learner]
            axis.plot(*np.transpose(points), color=colour, linestyle=line, linewidth=1.8, label=NAMES[learner])
        axis.set(xscale="log", yscale="log", title=_title(name, here))
        axis.grid(visible=True)
    label_axes(axes, "rounds since the last jump", "mean loss of a round (squared error / 2)")
    legend(figure, axes[0, 0], "lower center", 3 if len(found) > 1 else 2)
    return figure
