"""The pictures of the study of the Tracker. Every function returns a matplotlib Figure."""

from __future__ import annotations

from typing import Any

import numpy as np
from thalweg.lab.studies.tracker.cases import CALM, CASES
from thalweg.lab.studies.tracker.report import ratios_of
from thalweg.lab.studies.tracker.runs import (
    FRESH,
    GOES_ON,
    LEARNERS,
    LOW,
    METHODS,
    ON_INTERVALS,
    SIMPLE,
    STAGES,
    TRACKERS,
)

from thalweg.lab.pictures import COLOURS, GREY, label_axes, legend, log_log, name_rows, panels
from thalweg.lab.report import Results, distinct, group, part

BLUE, VERMILION, GREEN, PINK, BLACK = COLOURS
PRINTED = {
    "EfficientAdaptive": ("printed thresholds", "1/1000 of its thresholds"),
    "EfficientIntervalDynamic": ("printed thresholds", "1/10,000 of its thresholds"),
}
FAR = 20.0  # ratios beyond this have the darkest colour
BARS = {
    "Tracker": BLUE, "Tracker, no intervals": "#56B4E9", "EfficientDynamic": GREEN, "SOGD": VERMILION, GOES_ON: GREY,
}  # fmt: skip
LINES = dict(
    zip(ON_INTERVALS, [(BLUE, "o", "-"), ("#56B4E9", "s", "--"), (GREEN, "v", "-"), (GREEN, "^", "--"),
                       (VERMILION, "D", "-"), (VERMILION, "X", "--")], strict=True)
)  # fmt: skip


def draw_all(results: Results) -> dict[str, Any]:
    """The pictures by name."""
    drawn = {"ratios": heat_map, "calm": after_calm, "intervals": by_length}
    return {f"tracker-{name}": draw(results) for name, draw in drawn.items()}


def heat_map(results: Results) -> Any:
    """Loss of every method on every stream, over that of gradient descent with the best step in hindsight."""
    from matplotlib.colors import LogNorm

    rows = part(results, "run")
    cases, found = distinct(rows, "case"), ratios_of(rows)
    names = [name for name in METHODS if name != LOW and name in found]
    table = np.array([[found[name].get(case, np.nan) for name in names] for case in cases])
    means = [found[name].middle for name in names]
    worst = [found[name][found[name].high] for name in names]
    table = np.vstack([table, means, worst])
    figure, [[axis]] = panels(3.2 + 0.52 * len(names), 2.4 + 0.24 * len(table))
    shown = np.ma.masked_invalid(np.clip(table, 1 / FAR, FAR))
    image = axis.imshow(shown, aspect="auto", cmap="PuOr_r", norm=LogNorm(1 / FAR, FAR))
    for (i, j), value in np.ndenumerate(table):
        dark = np.isfinite(value) and not 1 / 7 < value < 7
        axis.text(j, i, _cell(value), ha="center", va="center", fontsize=8, color="white" if dark else "black")
    axis.set_xticks(range(len(names)), names, rotation=55, ha="left", rotation_mode="anchor")
    labels = [f"{case}{' (real)' if CASES[case].real else ''}" for case in cases]
    axis.set_yticks(range(len(table)), [*labels, "geometric mean", "worst"])
    axis.xaxis.tick_top()
    axis.tick_params(length=0)
    axis.grid(visible=False)
    axis.spines[:].set_visible(False)
    axis.axhline(len(cases) - 0.5, color="black", linewidth=1.2)
    parts = {
        "told the set and nothing else": list(TRACKERS),
        "given their constants": [name for name in names if name in LEARNERS],
        "common methods": [name for name in names if name in SIMPLE],
    }
    for text, group_of in parts.items():
        first, last = names.index(group_of[0]), names.index(group_of[-1])
        axis.axvline(last + 0.5, color="black", linewidth=1.2)
        axis.text((first + last) / 2, len(table) - 0.3, text, ha="center", va="top", fontsize=9, fontweight="bold")
    ticks = [1 / FAR, 0.2, 0.5, 1, 2, 5, FAR]
    bar = figure.colorbar(image, ax=axis, location="bottom", shrink=0.5, aspect=50, pad=0.03, ticks=ticks)
    bar.ax.set_xticklabels(["1/20 or less", "1/5", "1/2", "1", "2", "5", "20 or more"], fontsize=9)
    bar.set_label("loss ÷ loss of gradient descent with its best constant step (violet: less, orange: more)")
    bar.ax.minorticks_off()
    return figure


def _cell(value: float) -> str:
    if not np.isfinite(value):
        return "–"
    return f"{value:.2f}" if value < 9.995 else f"{value:.0f}" if value < 999.5 else f"{value:.0e}".replace("e+0", "e")


def after_calm(results: Results) -> Any:
    """Loss after the change, relative to gradient descent that starts at the change with its best step."""
    found = ratios_of(part(results, CALM))
    names, cases = [*BARS, FRESH], list(found["Tracker"])
    calm = {row["case"]: row["calm"] for row in part(results, CALM)}
    table = np.array([[found[name].get(case, np.nan) for case in cases] for name in names])
    figure, [[axis]] = panels(9.5, 1.6 + 0.58 * len(cases))
    places = name_rows(axis, [f"{case}\n{calm[case]:,} calm rounds" for case in cases])
    tall, top = 0.8 / len(names), min(FAR, float(np.nanmax(table)))
    for k, (name, values) in enumerate(zip(names, table, strict=True)):
        colour, style = (BARS[name], {}) if name in BARS else ("white", {"edgecolor": BLUE, "hatch": "////"})
        where = places + 0.4 - tall * (k + 0.5)
        axis.barh(where, np.minimum(values, top), tall * 0.92, color=colour, label=_told(name), **style)
    axis.axvline(1, color=BLACK, linewidth=1.0)
    axis.set(xlim=(0, top * 1.06), xlabel="loss after the change ÷ loss of OGD that starts there with its best step")
    legend(figure, axis, "upper center", 3)
    return figure


def _told(name: str) -> str:
    return {FRESH: "Tracker that starts at the change", GOES_ON: "OGD, best step, not restarted"}.get(name, name)


def by_length(results: Results) -> Any:
    """The largest regret of the intervals of each length: a panel for each noise."""
    found = group(part(results, "intervals"), "noise")
    figure, [axes] = panels(5.4 * len(found), 5.0, 1, len(found))
    for axis, ((noise,), rows) in zip(axes, found.items(), strict=True):
        for row in rows:
            colour, mark, line = LINES[row["method"]]
            lengths, regrets = np.array(row["lengths"]), np.array(row["regrets"])
            inside = lengths <= row["rounds"] // STAGES
            name, _, eager = row["method"].partition("-")
            text = name + (f", {PRINTED[name][bool(eager)]}" if name in PRINTED else "")
            axis.plot(lengths[inside], regrets[inside], mark, ls=line, color=colour, ms=5, lw=1.8, label=text)
        log_log(axis, [int(n) for n in lengths[inside]][::2])
        axis.set_title(f"noise up to {noise:g}")
    label_axes(axes[None], "length of the interval, rounds", "largest regret of an interval of this length")
    legend(figure, axes[0], "upper center", 2)
    return figure
