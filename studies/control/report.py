"""The report of the study of control: tables, and sentences about them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from thalweg.lab.studies.control.runs import CONTROLLERS, COSTS, DISTURBANCES, PLANTS

from thalweg.lab.report import (
    Ratios,
    Results,
    Row,
    TextTable,
    distinct,
    duration,
    group,
    mean,
    number,
    part,
    pick,
    ratio,
)

OURS, PREVIEW = "EfficientControl", "Preview"
OTHERS = tuple(name for name in CONTROLLERS if name != OURS)


def relative(scene: Row, name: str, to: str = "LQR") -> float:
    """A controller's cost in a scene, relative to another's."""
    return float(scene["controllers"][name]["total"] / scene["controllers"][to]["total"])


def grouped(scenes: Sequence[Row]) -> dict[tuple[str, ...], list[Row]]:
    """Scenes that differ in their seed only, together."""
    return group(scenes, "plant", "costs", "disturbance")


# -------------------------------------------------------------------------------------------------------------- tables


def tables(results: Results) -> dict[str, TextTable]:
    """Every table of the report."""
    scenes = part(results, "scene")
    return {
        "controllers": _controllers(scenes),
        "costs": _costs(scenes),
        "regret": _regret(scenes),
        "queries": _queries(scenes),
        "scaling": _scaling(part(results, "time")),
        "stability": _stability(part(results, "stability"), scenes),
        "sensitivity": _sensitivity(part(results, "sensitivity")),
    }


def _costs(scenes: Sequence[Row]) -> TextTable:
    names = [name for name in CONTROLLERS if name != "LQR"]
    body = []
    for key, found in grouped(scenes).items():
        cells = [ratio(float(np.mean([relative(s, name) for s in found]))) for name in names]
        lqr = number(mean(found, "controllers", "LQR", "total"))
        body.append([*key, lqr, *cells, f"{100 * found[0]['difference']:.2g} %"])
    heads = ["plant", "costs", "disturbance", "LQR's total", *names, "Scream and Efficient apart"]
    return TextTable(heads, body, (0, 1, 2))


def _controllers(scenes: Sequence[Row]) -> TextTable:
    """Every controller over all plants and disturbances, by the kind of costs."""
    body = []
    for kind in distinct(scenes, "costs"):
        here = pick(scenes, costs=kind)
        for name in CONTROLLERS:
            lqr, preview = (against(here, name, other) for other in ("LQR", PREVIEW))
            costs = ratio(lqr.middle), ratio(lqr[lqr.high])
            body.append([kind, name, *costs, f"{preview.less}", f"{preview.more} of {len(preview)}"])
    heads = ["costs", "controller", "cost ÷ LQR's", "at worst", "less than Preview", "more than Preview"]
    return TextTable(heads, body, (0, 1))


def _regret(scenes: Sequence[Row]) -> TextTable:
    body = []
    quadratic = [scene for scene in scenes if scene["planted"] is not None]
    for key, found in grouped(quadratic).items():
        planted, path = (mean(found, "planted", "changing", what) for what in ("total", "path"))
        paid = {name: mean(found, "controllers", name, "total") for name in ("LQR", "GPC", "ScreamControl", OURS)}
        numbers = (planted, mean(found, "planted", "fixed", "total"), paid["LQR"], round(path, 9))
        regrets = [f"{100 * (cost - planted) / paid['LQR']:.1f} %" for cost in paid.values()]
        body.append([*key, *map(number, numbers), *regrets])
    heads = ["plant", "costs", "disturbance", "planted, changing", "planted, fixed", "LQR", "path length",
             "regret of LQR", "of GPC", "of Scream", "of ours"]  # fmt: skip
    return TextTable(heads, body, (0, 1, 2))


def _queries(scenes: Sequence[Row]) -> TextTable:
    body = []
    for plant, name in itertools.product(distinct(scenes, "plant"), ("GPC", "ScreamControl", OURS)):
        runs = [scene["controllers"][name] | {"rounds": scene["rounds"]} for scene in pick(scenes, plant=plant)]
        each, clipped = (
            float(np.mean([run[key] / max(1, run["gradients"]) for run in runs])) for key in ("projections", "clipped")
        )
        waited = mean(runs, "rounds") - mean(runs, "gradients")
        body.append([plant, name, number(each), number(waited), f"{100 * clipped:.1f} %"])
    heads = ["plant", "controller", "projections a learning round", "rounds of measuring", "gradients clipped"]
    return TextTable(heads, body)


def _scaling(timed: Sequence[Row]) -> TextTable:
    body = []
    for kind, row in itertools.product(("estimated", "tight"), timed):
        both = scream, ours = [row[f"{name}, {kind}"] for name in ("ScreamControl", OURS)]
        cells = [duration(1e-6 * one["us"]) for one in both] + [ratio(scream["us"] / ours["us"])]
        cells += [f"{one['projections']:g}" for one in both] + [f"{one['decompositions']:.1f}" for one in both]
        body.append([kind, str(row["states"]), str(row["inputs"]), *cells])
    heads = ["caps", "states", "inputs", "Scream's time", "ours", "ratio", "Scream's projections", "ours",
             "Scream's decompositions", "ours"]  # fmt: skip
    return TextTable(heads, body, (0,))


def _stability(found: Sequence[Row], scenes: Sequence[Row]) -> TextTable:
    body = []
    for row in found:
        runs = [scene["controllers"][OURS] for scene in pick(scenes, plant=row["plant"])]
        bounds, prices = ([run[key] for run in runs if run[key]] for key in ("gradient_bound", "switching_cost"))
        H, c, G, price = row["theory"]
        worst = row["worst_gain"]
        body.append([
            row["plant"], f"{row['radius']:.3f}", f"{row['kappa']:.3g}", f"{row['gamma']:.3g}", row["method"],
            f"{H}, {c:.2g}, {G:.1e}, {price:.1e}",
            f"{row['ours'][0]}, {row['ours'][1]:.2g}, {_range(bounds)}, {_range(prices)}",
            f"{100 * row['theory_cost']:+.1e} %", f"{worst['LQR']:.3g}, {worst['H-infinity']:.3g}",
        ])  # fmt: skip
    heads = ["plant", "spectral radius", "κ", "γ", "found by", "theory: H, c₁, G, λ", "used: H, c₁, G, λ",
             "theory's cost beside LQR's", "worst gain: LQR, H∞"]  # fmt: skip
    return TextTable(heads, body, (0, 4))


def _range(values: Sequence[float]) -> str:
    return f"{min(values):.2g}–{max(values):.2g}" if values else "–"


def _sensitivity(found: Sequence[Row]) -> TextTable:
    choices = list(found[0]["relative"])
    body = [[row["plant"], row["disturbance"], *(ratio(row["relative"][c]) for c in choices)] for row in found]
    middle = [ratio(Ratios(enumerate(row["relative"][c] for row in found)).middle) for c in choices]
    return TextTable(["plant", "disturbance", *choices], [*body, ["all", "geometric mean", *middle]])


# ------------------------------------------------------------------------------------------------------ sentences


def remarks(results: Results) -> dict[str, Any]:
    """The numbers of the page's sentences."""
    scenes, timed = part(results, "scene"), part(results, "time")[-1]
    one, two = ([s["difference"] for s in scenes if len(PLANTS[s["plant"]].inputs) == count] for count in (1, 2))
    return {
        "plants": {name: PLANTS[name].about for name in distinct(scenes, "plant")},
        "disturbances": {name: DISTURBANCES[name] for name in distinct(scenes, "disturbance")},
        "costs": {name: COSTS[name] for name in distinct(scenes, "costs")},
        "against": {other: against(scenes, OURS, other) for other in OTHERS},
        "noise": [relative(scene, OURS) for scene in pick(scenes, disturbance="noise")],
        "apart": {"one": max(one, default=0), "mean": 100 * np.mean(two), "most": 100 * np.max(two)},
        "states": timed["states"],
        "gain": timed["ScreamControl, tight"]["us"] / timed[f"{OURS}, tight"]["us"],
    }


def against(scenes: Sequence[Row], name: str, other: str) -> Ratios[str]:
    """A controller's cost relative to another's, by scene: the mean over seeds."""
    return Ratios(
        (f"{plant}, {costs} costs, {push}", float(np.mean([relative(scene, name, other) for scene in found])))
        for (plant, costs, push), found in grouped(scenes).items()
    )
