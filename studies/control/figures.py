"""The pictures of the control study. Every function takes results of its runs and returns a matplotlib Figure."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from thalweg.lab.studies.control.report import relative
from thalweg.lab.studies.control.runs import CONTROLLERS, STAGE

from thalweg.lab.pictures import COLOURS, GREY, LOOKS, label_axes, legend, log_log, name_rows, panels, plain_ticks
from thalweg.lab.report import Results, Row, distinct, part, pick


def _shade(axis: Any, last: int) -> None:
    """Show where inputs are dear."""
    for begin in range(STAGE, last, 2 * STAGE):
        axis.axvspan(begin, min(begin + STAGE, last), color="#f2e6d0", linewidth=0)


def draw_all(results: Results) -> dict[str, Any]:
    """The pictures by name."""
    scenes = part(results, "scene")
    drawn = {row["plant"]: row for row in part(results, "trajectory")}
    made = {
        "control-costs": costs(scenes),
        "control-trajectory": trajectory(drawn["Boeing 747"]),
        "control-regret": regret(scenes),
        "control-scaling": scaling(part(results, "time")),
        "control-truncation": truncation(part(results, "truncation")),
    }
    if "inverted pendulum" in drawn:
        made["control-pendulum"] = trajectory(drawn["inverted pendulum"])
    return made


def costs(scenes: Sequence[Row]) -> Any:
    """Total cost relative to LQR's: a panel for each plant and kind of costs, a line for each disturbance."""
    plants, kinds, pushes = (distinct(scenes, key) for key in ("plant", "costs", "disturbance"))
    figure, axes = panels(
        3.7 * len(kinds) + 1.2, 2.6 * len(plants) + 0.7, len(plants), len(kinds), sharey=True, sharex=True
    )
    for (i, plant), (j, kind) in itertools.product(enumerate(plants), enumerate(kinds)):
        axis = axes[i, j]
        places = name_rows(axis, pushes)
        for place, push in zip(places, pushes, strict=True):
            found = pick(scenes, plant=plant, costs=kind, disturbance=push)
            for k, name in enumerate(name for name in CONTROLLERS if name != "LQR"):
                ratios = [relative(scene, name) for scene in found]
                (colour, mark, _), at = LOOKS[name], place + 0.33 - 0.11 * k
                label = name if place == places[0] else ""
                axis.plot([np.mean(ratios)], [at], mark, color=colour, markersize=5.5, mew=0, label=label)
                axis.plot([min(ratios), max(ratios)], [at, at], color=colour, linewidth=1)
            axis.axhline(place - 0.5, color="#dddddd", linewidth=0.8)
        axis.axvline(1, color=GREY, linewidth=1.2)
        axis.set_xscale("log")
        if i == 0:
            axis.set_title(f"{kind} costs")
        if j == 0:
            axis.set_ylabel(plant, fontsize=11, fontweight="bold")
    label_axes(axes, "cost ÷ LQR's (log scale)")
    for axis in axes[-1]:
        plain_ticks(axis, "x")
    legend(figure, axes[0, 0], columns=min(4, 2 * len(kinds)))
    return figure


def trajectory(drawn: Row) -> Any:
    """Outputs, inputs and cost of one plant under LQR, EfficientControl and TrackingControl, while the costs switch."""
    first, count = drawn["first"], len(drawn["LQR"]["costs"])
    kinds = [(kind, key) for kind in ("outputs", "inputs") for key in drawn["LQR"][kind]]
    figure, axes = panels(10, 1.55 * (len(kinds) + 1) + 0.9, len(kinds) + 1, sharex=True)
    for name in ("LQR", "EfficientControl", "TrackingControl"):
        found = [*(drawn[name][kind][key] for kind, key in kinds), drawn[name]["costs"]]
        for axis, values in zip(axes.flat, found, strict=True):
            axis.plot(np.arange(first, first + count), values, color=LOOKS[name][0], linewidth=1.4, label=name)
    for axis, label in zip(axes.flat, [*(key for _, key in kinds), "cost (log)"], strict=True):
        axis.set(ylabel=label, xlim=(first, first + count - 1))
        axis.yaxis.set_label_coords(-0.06, 0.5)
        _shade(axis, first + count)
    last = axes[-1, 0]
    last.set(xlabel="round", yscale="log", ylim=(max(1e-4 * max(drawn["LQR"]["costs"]), 1e-12), None))
    title = f"{drawn['plant']}: a wave pushes; shaded, where inputs are dear and states cheap"
    axes[0, 0].set_title(title, loc="left")
    legend(figure, axes[0, 0], "upper right", 3)
    return figure


def regret(scenes: Sequence[Row]) -> Any:
    """Cost beyond that of the best policy that changes every 250 rounds, over time; costs switch."""
    plants, pushes = distinct(scenes, "plant"), ("wave", "walk")
    figure, axes = panels(3.0 * len(plants) + 0.6, 2.6 * len(pushes) + 0.6, len(pushes), len(plants), sharex=True)
    for axis, (push, plant) in zip(axes.flat, itertools.product(pushes, plants), strict=True):
        found = pick(scenes, plant=plant, costs="switching", disturbance=push)
        T = found[0]["rounds"]
        planted = np.mean([s["planted"]["changing"]["curve"] for s in found], axis=0)
        learned = []
        for name in ("LQR", "GPC", "ScreamControl", "EfficientControl", "TrackingControl"):
            beyond = np.mean([s["controllers"][name]["curve"] for s in found], axis=0) - planted
            colour, _, dash = LOOKS[name]
            axis.plot(np.linspace(0, T, beyond.size), beyond, color=colour, linewidth=1.6, label=name, linestyle=dash)
            if name != "LQR":
                learned.append(beyond)
        axis.axhline(0, color="black", linewidth=0.8)
        top, low = max(curve[-1] for curve in learned), np.min(learned)
        axis.set(title=f"{plant}, {push}", xlim=(0, T), ylim=(min(1.2 * low, 0), 2.2 * max(top, 1e-9)))
        _shade(axis, T)
        axis.grid(visible=True)
    label_axes(axes, "round", "regret so far")
    legend(figure, axes[0, 0], columns=5)
    return figure


def scaling(timed: Sequence[Row]) -> Any:
    """Time of a round and decompositions a round against the number of states."""
    figure, axes = panels(10.5, 7.2, 2, 2, sharex=True, sharey="row")
    sizes = [row["states"] for row in timed]
    kinds = {"estimated": "estimated caps", "tight": "caps 100 times smaller: policies press against them"}
    for column, (kind, title) in zip(axes.T, kinds.items(), strict=True):
        for name in ("GPC", "ScreamControl", "EfficientControl"):
            colour, mark, _ = LOOKS[name]
            for axis, key in zip(column, ("us", "decompositions"), strict=True):
                values = [row[f"{name}, {kind}"][key] for row in timed]
                axis.plot(sizes, values, color=colour, marker=mark, markersize=5, linewidth=1.6, label=name)
        log_log(column[0], sizes)
        column[0].set_title(title)
        column[1].set_xlabel("states (inputs: half as many)")
        column[1].grid(visible=True)
    axes[0, 0].set_ylabel("microseconds a round")
    axes[1, 0].set_ylabel("decompositions a round")
    legend(figure, axes[0, 0], columns=3)
    return figure


def truncation(found: Sequence[Row]) -> Any:
    """The error of the truncated loss against the memory; a ring where `estimated_constants` puts it."""
    figure, [[axis]] = panels(7, 4)
    for row, colour in zip(found, COLOURS, strict=False):
        errors = np.maximum(row["errors"], 1e-12)
        axis.plot(row["memories"], errors, "o-", color=colour, markersize=4, linewidth=1.6, label=row["plant"])
        near = np.exp(np.interp(np.log(row["chosen"]), np.log(row["memories"]), np.log(errors)))
        axis.plot([row["chosen"]], [near], "o", markersize=12, markerfacecolor="none", markeredgecolor=colour, mew=1.6)
    axis.set(ylim=(1e-6, 2), xlabel="memory H", ylabel="mean |truncated loss − cost| ÷ mean cost")
    log_log(axis, found[0]["memories"])
    axis.legend()
    return figure
