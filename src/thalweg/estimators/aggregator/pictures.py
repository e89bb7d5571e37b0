"""Pictures of a `Combination`: the six that users of OPERA know.

Every function draws a run on Axes and returns their labels and their title (extra `lab`). Experts have one colour in
all of them; the combination is black.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from thalweg._core.types import Floats, Ints
from thalweg.estimators.aggregator.oracles import oracle as hindsight
from thalweg.estimators.aggregator.result import Combination, costs
from thalweg.regret._axes import axes, describe, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PALETTE = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#8c564b", "#7f7f7f"
REST = "#c8c8c8"  # the others, summed up
POINTS = 2000  # of a curve: more cannot be seen


Labels = tuple[str, str, str]  # of both axes, and the title


class _Cast:
    """The experts shown: those with the largest weights in their order, and the rest."""

    def __init__(self, run: Combination, most: int) -> None:
        best = np.sort(np.argsort(-run.played.mean(axis=0), kind="stable")[: max(int(most), 1)])
        self.shown = best.tolist()
        self.rest = [i for i in range(run.played.shape[1]) if i not in self.shown]
        self.names = [run.names[i] for i in self.shown] + [f"{len(self.rest)} others"] * bool(self.rest)
        self.colors = [PALETTE[k % len(PALETTE)] for k in range(len(self.shown))] + [REST] * bool(self.rest)

    def sums(self, table: Floats) -> Floats:
        """The columns of those shown, and the sum of the rest."""
        columns = [table[:, i] for i in self.shown]
        return np.stack(columns + ([table[:, self.rest].sum(axis=1)] if self.rest else []), axis=1)


def _rounds_to_draw(T: int) -> Ints:
    """Rounds to draw, when there are many."""
    return np.unique(np.linspace(0, T - 1, min(T, POINTS)).astype(np.int64))


def _shares(table: Floats, T: int) -> tuple[Floats, Floats]:
    """Means over as many stretches as can be seen, and their midpoints."""
    edges = np.unique(np.linspace(0, T, min(T, POINTS // 4) + 1).astype(np.int64))
    means = np.add.reduceat(table, edges[:-1], axis=0) / np.diff(edges)[:, None]
    return (edges[:-1] + edges[1:] + 1) / 2, means


def _name(run: Combination) -> str:
    return {"square": "squared error", "absolute": "absolute error", "percentage": "percentage error"}.get(
        run.loss_name, f"{run.loss_name} loss"
    )


def _weights(ax: Axes, run: Combination, who: _Cast) -> Labels:
    """Weights over time, on top of each other: together 1."""
    t, shares = _shares(who.sums(run.played), len(run.y))
    ax.stackplot(t, shares.T, colors=who.colors, labels=who.names, linewidth=0)
    ax.set_ylim(0, 1)
    ax.margins(x=0)
    return "round", "weight", "Weights of the combination over time"


def _box(ax: Axes, run: Combination, who: _Cast) -> Labels:
    """How each expert's weight is spread over the rounds: quartiles, and 5 % and 95 %."""
    table = who.sums(run.played)
    order = np.argsort(-np.median(table, axis=0), kind="stable")
    drawn = ax.boxplot([table[:, i] for i in order], whis=(5, 95), showfliers=False, patch_artist=True, widths=0.6)
    for k, i in enumerate(order):
        drawn["boxes"][k].set_facecolor(who.colors[i])
        drawn["medians"][k].set_color("black")
    ax.set_xticks(range(1, len(order) + 1), [who.names[i] for i in order])
    ax.set_ylim(bottom=0)
    return "", "weight", "How each expert's weight was spread (box: half of the rounds; whiskers: 90 %)"


def _cumulative(ax: Axes, run: Combination, who: _Cast) -> Labels:
    """Draw the cumulative loss of each beyond the combination: above 0 it was worse."""
    t = _rounds_to_draw(len(run.y))
    paid, theirs = run.losses, run.expert_losses()
    for k, i in enumerate(who.shown):
        beyond = np.cumsum(np.where(np.isnan(theirs[:, i]), 0.0, theirs[:, i] - paid))
        ax.plot(t + 1, beyond[t], color=who.colors[k], linewidth=1.6, label=run.names[i])
    ax.axhline(0.0, color="black", linewidth=1.6, label=run.title)
    ax.margins(x=0.01)
    title = "Loss so far, minus that of the combination: above 0 is worse"
    return "rounds", f"sum of {_name(run)}, difference", title


def _average(ax: Axes, run: Combination, who: _Cast) -> Labels:
    """Draw the mean loss of each expert, of the uniform mixture, and of the best fixed weights in hindsight."""
    theirs = run.expert_losses()
    bars = {run.names[i]: (float(np.nanmean(theirs[:, i])), who.colors[k]) for k, i in enumerate(who.shown)}
    mean = (run.awake * run.experts).sum(axis=1) / run.awake.sum(axis=1)
    bars["uniform"] = float(costs(run.loss_name, run.tau, mean, run.y).mean()), "white"
    fixed = hindsight(run.experts, run.y, "convex", loss=run.loss_name, tau=run.tau, awake=run.awake)
    bars["best fixed weights,\nin hindsight"] = fixed.loss, "white"
    bars[run.title] = run.loss(), "black"
    names = sorted(bars, key=lambda name: bars[name][0])
    values = [bars[name][0] for name in names]
    drawn = ax.barh(range(len(names)), values, color=[bars[n][1] for n in names], edgecolor="black", linewidth=0.8)
    ax.bar_label(drawn, [f"{value:.4g}" for value in values], padding=3, fontsize="small")
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.margins(x=0.12)
    return f"mean {_name(run)}", "", "Mean loss: shorter is better (an expert's in the rounds it was awake)"


def _contributions(ax: Axes, run: Combination, who: _Cast) -> Labels:
    """Draw each expert's part of the forecast, weight times forecast, and the forecast itself."""
    t, parts = _shares(who.sums(run.played * run.experts), len(run.y))
    up = np.cumsum(np.maximum(parts, 0.0), axis=1)
    down = np.cumsum(np.minimum(parts, 0.0), axis=1)
    for k, name in enumerate(who.names):
        for sums, label in ((up, name), (down, None)):
            below = sums[:, k - 1] if k else np.zeros(len(t))
            ax.fill_between(t, below, sums[:, k], color=who.colors[k], linewidth=0, label=label)
    ax.plot(t, parts.sum(axis=1), color="black", linewidth=1.2, label=f"{run.title} forecast")
    ax.margins(x=0)
    return "round", "weight × forecast", "Each expert's part of the forecast"


def _oracle(ax: Axes, run: Combination, who: _Cast) -> Labels:
    """The mean loss of the best sequence of experts, by how often it may change; and others to compare with."""
    T = len(run.y)
    best = hindsight(run.experts, run.y, "shifting", loss=run.loss_name, tau=run.tau, awake=run.awake)
    fixed = hindsight(run.experts, run.y, "convex", loss=run.loss_name, tau=run.tau, awake=run.awake)
    assert best.losses is not None
    ax.plot(range(len(best.losses)), best.losses, color=PALETTE[0], linewidth=1.8, label="best sequence, in hindsight")
    ax.axhline(fixed.loss, color=PALETTE[1], linestyle="--", label="best fixed weights, in hindsight")
    ax.axhline(run.loss(), color="black", label=run.title)
    ax.set_xlim(0, len(best.losses) - 1 or 1)
    ax.set_xscale("symlog", linthresh=10)
    ax.set_ylim(bottom=0)
    return f"changes of expert allowed in {T} rounds", f"mean {_name(run)}", "One expert at a time, with hindsight"


DRAWN = {
    "weights": _weights,
    "box": _box,
    "cumulative": _cumulative,
    "average": _average,
    "contributions": _contributions,
    "oracle": _oracle,
}


def draw(kind: str, run: Combination, ax: Axes | None, most: int) -> Axes:
    """Draw a picture on the Axes given, or on a new figure; the experts beyond the first `most` are summed up."""
    ax, own = axes("plot", ax)
    describe(ax, *DRAWN[kind](ax, run, _Cast(run, most)))
    if kind not in ("box", "average"):  # whose axis names the experts
        legend(ax, own)
    return ax
