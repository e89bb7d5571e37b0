"""The pictures of the paper's experiments. Every function takes rows of runs and returns a matplotlib Figure."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from thalweg._core.extras import new_figure
from thalweg.lab.catalog import prompt
from thalweg.lab.pictures import COLOURS, GREY, legend, log_log, name_rows, note, panels, plain_ticks, side
from thalweg.lab.report import Row, mean, number, pick, ratio
from thalweg.lab.runs import curve_rounds
from thalweg.lab.streams import STREAMS
from thalweg.lab.studies.paper.rows import losses_of, streams_of, survey, timed
from thalweg.lab.studies.paper.runs import ADAPTIVE, CROWDED, DYNAMIC, SCALING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# By oracle: its name, the unit of its times, and the number of these units in a second.
ORACLES = {"compiled": ("compiled projection", "microseconds", 1e6), "solver": ("SciPy solver", "milliseconds", 1e3)}
INTERVAL = ("AOA", "EfficientAOA", "EfficientIntervalDynamic", "EfficientIntervalDynamic-eager", "CutkoskyAdaptive",
            "EfficientCutkosky")  # fmt: skip


def draw_all(rows: Sequence[Row]) -> dict[str, Figure]:
    """The pictures by name."""
    drawn = {"figure": four_panels, "interval": interval, "heatmap": heat_map, "scaling": scaling}
    return {name: draw(rows) for name, draw in drawn.items()}


# --------------------------------------------------------------------------------------------------- the paper's figure


def four_panels(rows: Sequence[Row]) -> Figure:
    """Cumulative loss and running time, for dynamic and for adaptive regret."""
    figure = new_figure("A picture", 12, 8.4)
    parts = figure.subfigures(2, 2, squeeze=False, width_ratios=(1, 1.15), wspace=0.04, hspace=0.05)
    kinds = itertools.product(("dynamic", "adaptive"), ("loss", "time"))
    for panel, letter, (regret, what) in zip(parts.flat, "abcd", kinds, strict=True):
        panel.suptitle(f"({letter}) {regret} regret: {what}", fontweight="bold", fontsize=12)
    _losses(parts[0, 0].subplots(), rows, "piecewise", DYNAMIC, "the model jumps")
    _times(parts[0, 1], rows, "piecewise", (DYNAMIC,), ("",))
    left, right = parts[1, 0].subplots(1, 2)
    _losses(left, rows, "gradual", ADAPTIVE, "thresholds as printed")
    _losses(right, rows, "gradual", CROWDED, "thresholds scaled down")
    right.set_ylabel("")
    _times(parts[1, 1], rows, "gradual", (ADAPTIVE, CROWDED), ("as printed", "scaled down"))
    return figure


def _losses(axis: Axes, rows: Sequence[Row], stream: str, names: Sequence[str], title: str) -> None:
    """Mean and standard deviation of the cumulative loss."""
    for name in names:
        found = survey(rows, stream, name)
        at = curve_rounds(found[0]["rounds"])
        curves = np.array([row["curve"] for row in found])
        middle, wide = curves.mean(axis=0), curves.std(axis=0, ddof=1)
        alive = mean(found, "experts")
        text = name.partition("-")[0] + (f"\nexperts alive: {alive:.2g}" if alive is not None else "")
        axis.plot(at, middle, color=side(name)[0], linewidth=1.8, label=text)
        axis.fill_between(at, middle - wide, middle + wide, color=side(name)[0], alpha=0.25, linewidth=0)
    axis.set(title=title, xlim=(0, at[-1]), ylim=(0, None), xlabel="round", ylabel="cumulative loss")
    axis.locator_params(axis="x", nbins=4)
    axis.legend(loc="best")


def _times(
    panel: SubFigure, rows: Sequence[Row], stream: str, groups: Sequence[Sequence[str]], titles: Sequence[str]
) -> None:
    """Time of a round with each oracle, bars from zero; how many times as long as ours; projections a round."""
    for axis, (oracle, (label, unit, factor)) in zip(panel.subplots(1, 2), ORACLES.items(), strict=True):
        place, ticks, names, top = 0.0, [], [], 0.0
        for group, title in zip(groups, titles, strict=True):
            found = [timed(rows, stream, name, oracle) for name in group]
            times = [[factor * row["seconds"] / row["rounds"] for row in one] for one in found]
            least = float(np.mean(times[-1]))
            for name, one, values in zip(group, found, times, strict=True):
                height, wide = float(np.mean(values)), float(np.std(values, ddof=1))
                axis.bar(place, height, 0.8, color=side(name)[0], yerr=wide, error_kw={"elinewidth": 1, "ecolor": GREY})
                above = "" if name == group[-1] else f"{ratio(height / least)}×\n"
                note(axis, f"{above}{mean(one, 'projections'):.2g} proj.", (place, height + wide), (0, 3), ha="center")
                ticks.append(place)
                names.append(name.partition("-")[0].replace("Efficient", "Efficient\n"))
                top, place = max(top, height + wide), place + 1
            if title:
                axis.text(place - 1.5, -0.2, title, ha="center", fontsize=9, transform=axis.get_xaxis_transform())
            place += 0.5
        axis.set_xticks(ticks, names, fontsize=8.5)
        title = f"{label}, {found[0][0]['rounds']:,} rounds"
        axis.set(ylim=(0, 1.28 * top), ylabel=f"{unit} a round", title=title)


# --------------------------------------------------------------------------------------------------- beyond the paper


def interval(rows: Sequence[Row]) -> Figure:
    """Methods for interval dynamic regret on both streams of the paper: total loss, worst window, time."""
    figure, axes = panels(11, 5.6, 2, 3, sharey=True)
    measures = {"total_loss": "total loss", "worst_window": "worst 200 rounds in a row", "us": "microseconds a round"}
    titles = {"piecewise": "the model jumps", "gradual": "the model walks slowly"}
    for axis, (stream, key) in zip(axes.flat, itertools.product(titles, measures), strict=True):
        for place, name in zip(name_rows(axis, INTERVAL), INTERVAL, strict=True):
            found, colour = survey(rows, stream, name), side(name)[0]
            values = [1e6 * r["seconds"] / r["rounds"] if key == "us" else r[key] for r in found]
            middle = float(np.mean(values))
            axis.plot(values, [place] * len(values), "o", color=colour, alpha=0.35, markersize=5, mew=0)
            axis.plot(middle, place, "|", color=colour, markersize=16, markeredgewidth=2.5)
            note(axis, number(middle), (middle, place), (0, 9), ha="center")
        axis.set(xscale="log", ylim=(-0.6, len(INTERVAL) - 0.2))
        low, high = axis.get_xlim()
        axis.set_xlim(low / 1.25, high * 1.25)
        plain_ticks(axis, "x")
    for axis, title in zip(axes[:, 0], titles.values(), strict=True):
        axis.set_title(title, loc="left")
    for axis, label in zip(axes[-1], measures.values(), strict=True):
        axis.set_xlabel(f"{label} (log scale)")
    return figure


def heat_map(rows: Sequence[Row]) -> Figure:
    """Total loss of every algorithm on every stream, relative to the best on that stream."""
    from matplotlib.colors import LogNorm

    recipes, streams, losses = prompt(), streams_of(rows), losses_of(rows)
    names = list(recipes)
    least = losses.min(axis=0)
    figure, [[axis]] = panels(2.6 + 1.05 * len(streams), 1.6 + 0.33 * len(names))
    ratios = losses / least
    image = axis.imshow(np.minimum(ratios, 30.0), aspect="auto", cmap="YlOrBr", norm=LogNorm(1, 30))
    for (i, j), value in np.ndenumerate(ratios):
        text = f"{value:.2f}" if value < 9.95 else f"{value:.0f}"
        axis.text(j, i, text, ha="center", va="center", fontsize=9, color="white" if value > 9 else "black",
                  fontweight="bold" if value < 1.0005 else "normal")  # fmt: skip
    simple = [mean(survey(rows, s, names[0]), "persistence") for s in streams]
    heads = [
        f"{s}\n{'real' if STREAMS[s].real else 'synthetic'}\nbest {number(low)}"
        + (f"\nlast value\n{number(last)}" if STREAMS[s].real and last is not None else "")
        for s, low, last in zip(streams, least, simple, strict=True)
    ]
    axis.set_xticks(range(len(streams)), heads)
    axis.set_yticks(range(len(names)), names)
    axis.xaxis.tick_top()
    axis.tick_params(length=0)
    axis.grid(visible=False)
    kinds = [recipe.card.regret for recipe in recipes.values()]
    for i in range(1, len(names)):
        if kinds[i] != kinds[i - 1]:
            axis.axhline(i - 0.5, color="black", linewidth=1.2)
    axis.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axis, fraction=0.03, pad=0.015, ticks=[1, 2, 5, 10, 30])
    bar.ax.set_yticklabels(["1", "2", "5", "10", "30 and more"], fontsize=9)
    bar.ax.set_title("loss ÷\nbest", fontsize=9)
    bar.ax.minorticks_off()
    return figure


def scaling(rows: Sequence[Row]) -> Figure:
    """Time of a round against T and against d; a contender and its counterpart with one projection share a colour."""
    figure, [axes] = panels(11, 4.6, 1, 2, sharey=True)
    found = pick(rows, part="scaling")
    least = min(row["horizon"] for row in found)
    for axis, key in zip(axes, ("horizon", "dim"), strict=True):
        for k, name in enumerate(SCALING):
            mine = pick(found, algorithm=name, **({"dim": 8} if key == "horizon" else {"horizon": least}))
            points = sorted((row[key], 1e6 * row["seconds"] / row["rounds"]) for row in mine)
            _, mark, line = side(name)
            axis.plot(*np.transpose(points), mark, ls=line, color=COLOURS[k // 2], ms=5, lw=1.8, label=name)
        ticks = sorted({row[key] for row in found if key == "horizon" or row["horizon"] == least})
        log_log(axis, ticks)
    axes[0].set(xlabel="rounds T, at d = 8", ylabel="microseconds a round")
    axes[1].set_xlabel(f"dimension d, at T = {least:,}")
    legend(figure, axes[0], "right center")
    return figure
