"""The pictures of the control study. Every function takes results of its runs and returns a matplotlib Figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from thalweg.lab.pictures import COLOURS, GREY, blank, legend, log_log, look, name_rows, plain_ticks, tidy
from thalweg.lab.report import Results, Row, part, pick
from thalweg.lab.studies.control.report import relative
from thalweg.lab.studies.control.runs import CONTROLLERS, COSTS, DISTURBANCES, PLANTS, STAGE

__all__ = ["costs", "draw_all", "regret", "scaling", "trajectory", "truncation"]

SHADE = {"color": "#f2e6d0", "linewidth": 0}  # where inputs are dear


def draw_all(results: Results) -> dict[str, Any]:
    """The pictures by name."""
    scenes = part(results, "scene")
    drawn = {row["plant"]: row for row in part(results, "trajectory")}
    made = {
        "control-costs": costs(scenes),
        "control-trajectory": trajectory(drawn.get("Boeing 747") or next(iter(drawn.values()))),
        "control-regret": regret(scenes),
        "control-scaling": scaling(part(results, "time")),
        "control-truncation": truncation(part(results, "truncation")),
    }
    if "inverted pendulum" in drawn:
        made["control-pendulum"] = trajectory(drawn["inverted pendulum"])
    return made


def costs(scenes: Sequence[Row]) -> Any:
    """Total cost relative to LQR's: a panel for each plant and kind of costs, a line for each disturbance."""
    plants = [name for name in PLANTS if any(s["plant"] == name for s in scenes)]
    kinds = [name for name in COSTS if any(s["costs"] == name for s in scenes)]
    pushes = [name for name in DISTURBANCES if any(s["disturbance"] == name for s in scenes)]
    figure = blank(3.7 * len(kinds) + 1.2, 2.0 * len(plants) + 0.7)
    axes = figure.subplots(len(plants), len(kinds), sharey=True, sharex=True, squeeze=False)
    for line, plant in zip(axes, plants, strict=True):
        for axis, kind in zip(line, kinds, strict=True):
            places = name_rows(axis, pushes)
            for place, push in zip(places, pushes, strict=True):
                found = pick(scenes, plant=plant, costs=kind, disturbance=push)
                for k, name in enumerate(name for name in CONTROLLERS if name != "LQR"):
                    ratios = [relative(scene, name) for scene in found]
                    (colour, mark, _), at = look(name), place + 0.27 - 0.18 * k
                    label = name if place == places[0] else ""
                    axis.plot([np.mean(ratios)], [at], mark, color=colour, markersize=5.5, mew=0, label=label)
                    axis.plot([min(ratios), max(ratios)], [at, at], color=colour, linewidth=1)
            axis.axvline(1, color=GREY, linewidth=1.2)
            axis.set_xscale("log")
            for place in places[:-1]:
                axis.axhline(place - 0.5, color="#dddddd", linewidth=0.8)
        line[0].set_ylabel(plant, fontsize=11, fontweight="bold")
    for axis, kind in zip(axes[0], kinds, strict=True):
        axis.set_title(f"{kind} costs", fontsize=11)
    for axis in axes[-1]:
        axis.set_xlabel("cost ÷ LQR's (log scale)", fontsize=9)
        plain_ticks(axis, "x")
    legend(figure, axes[0, 0], columns=min(4, 2 * len(kinds)), size=10)
    return figure


def trajectory(drawn: Row) -> Any:
    """Outputs, inputs and cost of one plant under LQR and under EfficientControl, while the costs switch."""
    rows = [("outputs", key) for key in drawn["LQR"]["outputs"]] + [("inputs", key) for key in drawn["LQR"]["inputs"]]
    figure = blank(10, 1.55 * (len(rows) + 1) + 0.9)
    axes = figure.subplots(len(rows) + 1, 1, sharex=True)
    first, count = drawn["first"], len(drawn["LQR"]["costs"])
    t = np.arange(first, first + count)
    for axis, row in zip(axes, [*rows, None], strict=True):
        for name in ("LQR", "EfficientControl"):
            values = drawn[name]["costs"] if row is None else drawn[name][row[0]][row[1]]
            axis.plot(t, values, color=look(name)[0], linewidth=1.4, label=name)
        axis.set_ylabel("cost" if row is None else row[1], fontsize=10)
        for begin in range(STAGE, first + count, 2 * STAGE):
            axis.axvspan(begin, begin + STAGE, **SHADE)
        axis.set_xlim(first, first + count - 1)
        tidy(axis)
        axis.yaxis.set_label_coords(-0.06, 0.5)
    axes[-1].set(xlabel="round", yscale="log")
    axes[-1].set_ylim(max(1e-4 * max(drawn["LQR"]["costs"]), 1e-12), None)
    axes[-1].set_ylabel("cost (log)", fontsize=10)
    axes[0].set_title(
        f"{drawn['plant']}: a wave pushes; shaded, where inputs are dear and states cheap", loc="left", fontsize=11
    )
    legend(figure, axes[0], "upper right", 2, 10)
    return figure


def regret(scenes: Sequence[Row], pushes: Sequence[str] = ("wave", "walk")) -> Any:
    """Cost beyond that of the best policy that changes every 250 rounds, over time; costs switch."""
    plants = [name for name in PLANTS if any(s["plant"] == name for s in scenes)]
    figure = blank(3.0 * len(plants) + 0.6, 2.6 * len(pushes) + 0.6)
    axes = figure.subplots(len(pushes), len(plants), squeeze=False, sharex=True)
    for line, push in zip(axes, pushes, strict=True):
        for axis, plant in zip(line, plants, strict=True):
            found = pick(scenes, plant=plant, costs="switching", disturbance=push)
            T = found[0]["rounds"]
            planted = np.mean([s["planted"]["changing"]["curve"] for s in found], axis=0)
            t = np.linspace(0, T, len(planted))
            for name in ("LQR", "GPC", "ScreamControl", "EfficientControl"):
                paid = np.mean([s["controllers"][name]["curve"] for s in found], axis=0)
                colour, _, dash = look(name)
                axis.plot(t, paid - planted, color=colour, linewidth=1.6, label=name, linestyle=dash)
            for begin in range(STAGE, T, 2 * STAGE):
                axis.axvspan(begin, min(begin + STAGE, T), **SHADE)
            axis.axhline(0, color="black", linewidth=0.8)
            axis.set_title(f"{plant}, {push}", fontsize=10)
            axis.set_xlim(0, T)
            best = max(float(axis.lines[k].get_ydata()[-1]) for k in (1, 2, 3))
            low = min(float(np.min(axis.lines[k].get_ydata())) for k in (1, 2, 3))
            axis.set_ylim(min(1.2 * low, 0), 2.2 * max(best, 1e-9))
            tidy(axis, "both")
    for axis in axes[:, 0]:
        axis.set_ylabel("regret so far", fontsize=10)
    for axis in axes[-1]:
        axis.set_xlabel("round", fontsize=10)
    legend(figure, axes[0, 0], columns=4, size=10)
    return figure


def scaling(timed: Sequence[Row]) -> Any:
    """Time of a round and decompositions a round against the number of states."""
    figure = blank(10.5, 7.2)
    axes = figure.subplots(2, 2, sharex=True, sharey="row")
    sizes = [row["states"] for row in timed]
    kinds = {"estimated": "estimated caps", "tight": "caps 100 times smaller: policies press against them"}
    for column, (kind, title) in zip(axes.T, kinds.items(), strict=True):
        for name in ("GPC", "ScreamControl", "EfficientControl"):
            colour, mark, _ = look(name)
            for axis, key in zip(column, ("us", "decompositions"), strict=True):
                values = [row[f"{name}, {kind}"][key] for row in timed]
                axis.plot(sizes, values, color=colour, marker=mark, markersize=5, linewidth=1.6, label=name)
        column[0].set_title(title, fontsize=11)
        log_log(column[0], sizes)
        column[1].set_xlabel("states (inputs: half as many)")
        tidy(column[1], "both")
    axes[0, 0].set_ylabel("microseconds a round")
    axes[1, 0].set_ylabel("decompositions a round")
    legend(figure, axes[0, 0], columns=3, size=10)
    return figure


def truncation(found: Sequence[Row]) -> Any:
    """The error of the truncated loss against the memory; a ring where `estimated_constants` puts it."""
    figure = blank(7, 4)
    axis = figure.subplots()
    for row, colour in zip(found, COLOURS, strict=False):
        errors = np.maximum(row["errors"], 1e-12)
        axis.plot(row["memories"], errors, "o-", color=colour, markersize=4, linewidth=1.6, label=row["plant"])
        near = np.exp(np.interp(np.log(row["chosen"]), np.log(row["memories"]), np.log(errors)))
        axis.plot([row["chosen"]], [near], "o", markersize=12, markerfacecolor="none", markeredgecolor=colour, mew=1.6)
    axis.set(xscale="log", yscale="log", xlabel="memory H", ylabel="mean |truncated loss − cost| ÷ mean cost")
    axis.set_ylim(1e-6, 2)
    axis.set_xticks(found[0]["memories"], [str(H) for H in found[0]["memories"]])
    axis.minorticks_off()
    tidy(axis, "both")
    axis.legend(frameon=False, fontsize=9)
    return figure
