"""The pictures of the study of online PCA. Every function takes results of its runs and returns a matplotlib Figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from thalweg.lab.studies.pca.report import OURS, Groups, grouped
from thalweg.lab.studies.pca.runs import STREAMS, TIMED

from thalweg.lab.pictures import GREY, LOOKS, label_axes, legend, log_log, name_rows, note, panels
from thalweg.lab.report import Results, Row, mean, part

SHOWN = (*TIMED, "OjaPCA", "IncrementalPCA", "StreamingPCA")
CLOSE = ("frequent switches", "fast rotation")  # only the last fifth is shown: they repeat themselves
COARSE = 6  # points of a single run's curve that are averaged to one


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
    streams, names = list(groups[OURS]), [name for name in SHOWN if name in groups]
    height = (len(streams) + 1) // 2
    figure, axes = panels(11, 1.1 + 2.05 * height, height, 2, sharey=True)
    for axis, stream in zip(axes.flat, streams, strict=False):
        for place, name in zip(name_rows(axis, names), names, strict=True):
            (colour, mark, _), runs = LOOKS[name], groups[name][stream]
            drawn, leading = (mean(runs, key) for key in ("loss", "leading_loss"))
            axis.plot([leading, drawn], [place, place], color=colour, linewidth=1.2, zorder=1)
            axis.plot(drawn, place, mark, color=colour, markersize=8, mfc="white", mew=1.6)
            axis.plot(leading, place, mark, color=colour, markersize=8, mew=0)
        axis.set(xlim=(0, 1.04 * axis.get_xlim()[1]))
        axis.set_title(f"{stream}, k = {runs[0]['rank']} of d = {runs[0]['dim']}", loc="left")
        axis.locator_params(axis="x", nbins=6)
    for axis in axes.flat[max(0, len(streams) - 2) : len(streams)]:
        axis.set_xlabel("share of energy lost, mean over rounds")
    for axis in axes.flat[len(streams) :]:
        axis.set_axis_off()
    meaning = {
        "white": "the drawn projection, on average over its draws",
        "#333333": "the k leading directions of its mean",
    }
    for face, text in meaning.items():
        axes[0, 0].plot([], [], "o", color="#333333", markersize=8, mfc=face, mew=1.6, linestyle="", label=text)
    legend(figure, axes[0, 0], columns=2)
    return figure


def over_time(groups: Groups) -> Any:
    """The loss over the rounds: a row a stream that changes; left: drawn subspaces, right: leading directions."""
    streams = [stream for stream in groups[OURS] if stream not in ("still", "slow rotation")]
    names = [name for name in SHOWN if name != "AdaptivePCA" and name in groups]
    figure, axes = panels(11.5, 1.0 + 2.3 * len(streams), len(streams), 2, sharex="row", sharey="row")
    for line, stream in zip(axes, streams, strict=True):
        top, T = 0.0, groups[OURS][stream][0]["rounds"]
        for axis, key in zip(line, ("curve", "leading_curve"), strict=True):
            for name in names:
                curve = np.mean([run[key] for run in groups[name][stream]], axis=0)
                if STREAMS[stream].real:  # one run, not a mean over seeds: longer stretches instead
                    curve = np.array([part.mean() for part in np.array_split(curve, -(-curve.size // COARSE))])
                wide = 2.2 if name == OURS else 1.2
                _over_rounds(axis, curve, T, color=LOOKS[name][0], linewidth=wide, label=name, zorder=wide)
                if name != "IncrementalPCA":
                    top = max(top, float(np.quantile(curve, 0.98)))
            axis.set_xlim(0.8 * T if stream in CLOSE else 0, T)
        line[0].set(ylim=(0, min(1.0, 1.25 * top)), ylabel=f"{stream}\nshare lost")
    axes[0, 0].set_title("the drawn projection, on average")
    axes[0, 1].set_title("the k leading directions")
    label_axes(axes, x="round")
    legend(figure, axes[0, 0], columns=len(names))
    return figure


def _over_rounds(axis: Any, curve: Any, rounds: int, **options: Any) -> None:
    """Means over stretches of rounds, in the middle of each."""
    axis.plot((np.arange(len(curve)) + 0.5) * rounds / len(curve), curve, **options)


def guarantee(found: Sequence[Row]) -> Any:
    """A direction of the plane that jumps twice: loss over time, and the worst regret of every length of interval."""
    figure, [[left, right]] = panels(11, 4.3, 1, 2)
    for row in found:
        (colour, mark, _), name = LOOKS[row["learner"]], row["learner"]
        _over_rounds(left, row["curve"], row["rounds"], color=colour, linewidth=1.8, label=name)
        shown = np.array(row["regret"]) >= 10  # long intervals can have negative regret
        points = np.array([row["lengths"], row["regret"]])[:, shown]
        right.plot(*points, mark + "-", color=colour, linewidth=1.5, markersize=5, label=name)
    lengths = found[0]["lengths"]
    right.plot(lengths, found[0]["bound"], color="black", linewidth=2.2, label="the theorem's bound")
    right.plot(lengths, lengths, ":", color=GREY, label="all that can be lost")
    for change in found[0]["changes"]:
        left.axvline(change, color="#999999", linewidth=0.8, linestyle="--")
    left.set(xlim=(0, found[0]["rounds"]), ylim=(0, 1.02), xlabel="round", ylabel="loss")
    right.set(ylim=(10, None), xlabel="rounds of the interval", ylabel="worst regret")
    log_log(right, lengths[::2])
    for axis in (left, right):
        axis.legend()
    return figure


def scaling(timed: Sequence[Row]) -> Any:
    """Time of a round against the dimension, and how many eigendecompositions it takes."""
    figure, [[left, right]] = panels(11, 4.0, 1, 2, width_ratios=(1.2, 1))
    dims = [row["dim"] for row in timed]
    left.plot(dims, [row["eigh"] for row in timed], "--", color="black", label="one eigendecomposition")
    for name, place in zip(TIMED, name_rows(right, TIMED), strict=True):
        (colour, mark, _), count = LOOKS[name], timed[-1][name]["eigh"]
        left.plot(dims, [row[name]["us"] for row in timed], mark + "-", color=colour, label=name, markersize=6)
        right.barh(place, count, color=colour)
        note(right, f"{count:.2g}", (count, place), (4, 0), va="center")
    left.set(xlabel="dimension d", ylabel="microseconds a round")
    log_log(left, dims)
    left.legend()
    right.set_xlabel("eigendecompositions a round")
    right.margins(x=0.15)
    return figure
