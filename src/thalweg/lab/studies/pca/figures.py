"""The pictures of the study of online PCA. Every function takes results of its runs and returns a matplotlib Figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from thalweg.lab.pictures import GREY, blank, legend, log_log, look, name_rows, plain_ticks, tidy
from thalweg.lab.report import Results, Row, mean, part
from thalweg.lab.studies.pca.report import Groups, grouped
from thalweg.lab.studies.pca.runs import STREAMS, TIMED

__all__ = ["draw_all", "guarantee", "losses", "over_time", "scaling"]

SHOWN = (*TIMED, "OjaPCA", "IncrementalPCA")
CLOSE = ("frequent switches", "fast rotation")  # only the last fifth is shown: they repeat themselves
COARSE = 6  # so many points of a single run's curve make one


def draw_all(results: Results) -> dict[str, Any]:
    """The pictures by name."""
    groups = grouped(part(results, "run"))
    return {
        "pca-losses": losses(groups),
        "pca-over-time": over_time(groups),
        "pca-guarantee": guarantee(part(results, "guarantee")),
        "pca-time": scaling(part(results, "time")),
    }


def losses(groups: Groups) -> Any:
    """Share of energy lost: a panel for each stream, a line for each learner; drawn (hollow) and leading (full)."""
    streams = list(dict.fromkeys(stream for stream, _ in groups))
    figure = blank(11, 1.1 + 2.05 * ((len(streams) + 1) // 2))
    axes = figure.subplots((len(streams) + 1) // 2, 2, sharey=True, squeeze=False).ravel()
    names = [name for name in SHOWN if any(name == learner for _, learner in groups)]
    for axis, stream in zip(axes, streams, strict=False):
        for place, name in zip(name_rows(axis, names), names, strict=True):
            colour, mark, _ = look(name)
            runs = groups[stream, name]
            drawn, leading = (mean(runs, key) for key in ("loss", "leading_loss"))
            axis.plot([leading, drawn], [place, place], color=colour, linewidth=1.2, zorder=1)
            axis.plot(drawn, place, mark, color=colour, markersize=8, mfc="white", mew=1.6)
            axis.plot(leading, place, mark, color=colour, markersize=8, mew=0)
        axis.set_xlim(0, 1.04 * axis.get_xlim()[1])
        axis.locator_params(axis="x", nbins=6)
        axis.set_title(f"{stream}, k = {runs[0]['rank']} of d = {runs[0]['dim']}", fontsize=10, loc="left")
    for axis in axes[max(0, len(streams) - 2) : len(streams)]:
        axis.set_xlabel("share of energy lost, mean over rounds", fontsize=9)
    for axis in axes[len(streams) :]:
        axis.set_axis_off()
    for face, label in (
        ("white", "the drawn projection, on average over its draws"),
        ("#333333", "the k leading directions of its mean"),
    ):
        axes[0].plot([], [], "o", color="#333333", markersize=8, mfc=face, mew=1.6, linestyle="", label=label)
    legend(figure, axes[0], columns=2, size=10)
    return figure


def over_time(groups: Groups) -> Any:
    """The loss over the rounds: a row for each stream that changes, what is drawn on the left, leading on the right."""
    streams = [s for s in dict.fromkeys(stream for stream, _ in groups) if s not in ("still", "slow rotation")]
    names = [name for name in SHOWN if name != "AdaptivePCA" and any(name == learner for _, learner in groups)]
    figure = blank(11.5, 1.0 + 2.3 * len(streams))
    axes = figure.subplots(len(streams), 2, sharex="row", sharey="row", squeeze=False)
    for line, stream in zip(axes, streams, strict=True):
        top = 0.0
        for axis, key in zip(line, ("curve", "leading_curve"), strict=True):
            for name in names:
                runs = groups[stream, name]
                curve = np.mean([run[key] for run in runs], axis=0)
                if STREAMS[stream].real:  # one run, not a mean over seeds: longer stretches instead
                    curve = np.array([part.mean() for part in np.array_split(curve, -(-curve.size // COARSE))])
                at = (np.arange(curve.size) + 0.5) * runs[0]["rounds"] / curve.size
                wide = 2.2 if name == "EfficientPCA" else 1.2
                axis.plot(at, curve, color=look(name)[0], linewidth=wide, label=name, zorder=3 if wide > 2 else 2)
                if name != "IncrementalPCA":
                    top = max(top, float(np.quantile(curve, 0.98)))
            T = runs[0]["rounds"]
            axis.set_xlim(0.8 * T if stream in CLOSE else 0, T)
            tidy(axis)
        line[0].set_ylim(0, min(1.0, 1.25 * top))
        line[0].set_ylabel(f"{stream}\nshare lost", fontsize=9)
    axes[0, 0].set_title("the drawn projection, on average", fontsize=10)
    axes[0, 1].set_title("the k leading directions", fontsize=10)
    for axis in axes[-1]:
        axis.set_xlabel("round", fontsize=9)
    legend(figure, axes[0, 0], columns=len(names))
    return figure


def guarantee(found: Sequence[Row]) -> Any:
    """A direction of the plane that jumps twice: loss over time, and the worst regret of every length of interval."""
    figure = blank(11, 4.3)
    left, right = figure.subplots(1, 2)
    for row in found:
        colour, mark, _ = look(row["learner"])
        curve = np.array(row["curve"])
        at = (np.arange(curve.size) + 0.5) * row["rounds"] / curve.size
        left.plot(at, curve, color=colour, linewidth=1.8, label=row["learner"])
        lengths, regret = np.array(row["lengths"]), np.array(row["regret"])
        shown = regret >= 10  # long intervals can have negative regret
        right.plot(
            lengths[shown], regret[shown], mark + "-", color=colour, linewidth=1.5, markersize=5, label=row["learner"]
        )
    longest = found[0]
    right.plot(longest["lengths"], longest["bound"], color="black", linewidth=2.2, label="the theorem's bound")
    right.plot(longest["lengths"], longest["lengths"], ":", color=GREY, label="all that can be lost")
    for change in longest["changes"]:
        left.axvline(change, color="#999999", linewidth=0.8, linestyle="--")
    left.set(xlim=(0, longest["rounds"]), ylim=(0, 1.02), xlabel="round", ylabel="loss")
    right.set(xscale="log", yscale="log", xlabel="rounds of the interval", ylabel="worst regret")
    right.set_xticks(longest["lengths"][::2], [f"{n:,}" for n in longest["lengths"][::2]])
    right.set_ylim(10, None)
    right.minorticks_off()
    plain_ticks(right, "y")
    for axis in (left, right):
        axis.legend(frameon=False, fontsize=9)
        tidy(axis)
    return figure


def scaling(timed: Sequence[Row]) -> Any:
    """Time of a round against the dimension, and how many eigendecompositions it takes."""
    figure = blank(11, 4.0)
    left, right = figure.subplots(1, 2, width_ratios=(1.2, 1))
    dims = [row["dim"] for row in timed]
    left.plot(dims, [row["eigh"] for row in timed], "--", color="black", label="one eigendecomposition")
    for name in TIMED:
        colour, mark, _ = look(name)
        left.plot(dims, [row[name]["us"] for row in timed], mark + "-", color=colour, label=name, markersize=6)
    left.set(xlabel="dimension d", ylabel="microseconds a round")
    log_log(left, dims)
    left.legend(frameon=False, fontsize=9)
    counts = [timed[-1][name]["eigh"] for name in TIMED]
    places = name_rows(right, TIMED)
    right.barh(places, counts, color=[look(name)[0] for name in TIMED])
    for place, count in zip(places, counts, strict=True):
        right.annotate(f"{count:.2g}", (count, place), (4, 0), textcoords="offset points", va="center", fontsize=9)
    right.set_xlabel("eigendecompositions a round")
    right.set_xlim(0, 1.15 * max(counts))
    return figure
