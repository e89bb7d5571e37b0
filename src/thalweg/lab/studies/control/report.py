"""The report of the study of control: tables, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from thalweg.lab.report import Results, Row, TextTable, duration, group, less_and_more, number, part, ratio
from thalweg.lab.studies.control.runs import CONTROLLERS, COSTS, DISTURBANCES, PLANTS

__all__ = ["remarks", "tables"]

OURS = "EfficientControl"


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
    for (plant, costs, push), found in grouped(scenes).items():
        cells = [ratio(float(np.mean([relative(s, name) for s in found]))) for name in names]
        lqr = number(float(np.mean([s["controllers"]["LQR"]["total"] for s in found])))
        body.append([plant, costs, push, lqr, *cells, f"{100 * found[0]['difference']:.2g} %"])
    heads = ["plant", "costs", "disturbance", "LQR's total", *names, "Scream and Efficient apart"]
    return TextTable(heads, body, (0, 1, 2))


def _regret(scenes: Sequence[Row]) -> TextTable:
    body = []
    for (plant, costs, push), found in grouped(scenes).items():
        if found[0]["planted"] is None:
            continue
        planted = np.mean([s["planted"]["changing"]["total"] for s in found])
        lqr = np.mean([s["controllers"]["LQR"]["total"] for s in found])
        fixed = np.mean([s["planted"]["fixed"]["total"] for s in found])
        path = np.mean([s["planted"]["changing"]["path"] for s in found])
        cells = [
            f"{100 * (np.mean([s['controllers'][name]['total'] for s in found]) - planted) / lqr:.1f} %"
            for name in ("LQR", "GPC", "ScreamControl", OURS)
        ]
        numbers = [number(float(v)) for v in (planted, fixed, lqr, round(path, 9))]
        body.append([plant, costs, push, *numbers, *cells])
    heads = ["plant", "costs", "disturbance", "planted, changing", "planted, fixed", "LQR", "path length",
             "regret of LQR", "of GPC", "of Scream", "of ours"]  # fmt: skip
    return TextTable(heads, body, (0, 1, 2))


def _queries(scenes: Sequence[Row]) -> TextTable:
    body = []
    for plant in dict.fromkeys(s["plant"] for s in scenes):
        found = [s for s in scenes if s["plant"] == plant]
        for name in ("GPC", "ScreamControl", OURS):
            runs = [s["controllers"][name] for s in found]
            learned = np.array([run["gradients"] for run in runs])
            each = np.mean([run["projections"] / max(1, run["gradients"]) for run in runs])
            clipped = np.mean([run["clipped"] / max(1, run["gradients"]) for run in runs])
            waited = np.mean([s["rounds"] for s in found] - learned)
            cells = [number(float(each)), number(float(waited)), f"{100 * clipped:.1f} %"]
            body.append([plant, name, *cells])
    heads = ["plant", "controller", "projections a learning round", "rounds of measuring", "gradients clipped"]
    return TextTable(heads, body)


def _scaling(timed: Sequence[Row]) -> TextTable:
    body = []
    for kind in ("estimated", "tight"):
        for row in timed:
            scream, ours = row[f"ScreamControl, {kind}"], row[f"{OURS}, {kind}"]
            body.append([
                kind, str(row["states"]), str(row["inputs"]), duration(1e-6 * scream["us"]),
                duration(1e-6 * ours["us"]), ratio(scream["us"] / ours["us"]),
                f"{scream['projections']:g}", f"{ours['projections']:g}",
                f"{scream['decompositions']:.1f}", f"{ours['decompositions']:.1f}",
            ])  # fmt: skip
    heads = ["caps", "states", "inputs", "Scream's time", "ours", "ratio", "Scream's projections", "ours",
             "Scream's decompositions", "ours"]  # fmt: skip
    return TextTable(heads, body, (0,))


def _stability(found: Sequence[Row], scenes: Sequence[Row]) -> TextTable:
    body = []
    for row in found:
        runs = [s["controllers"][OURS] for s in scenes if s["plant"] == row["plant"]]
        bounds = [run["gradient_bound"] for run in runs if run["gradient_bound"]]
        prices = [run["switching_cost"] for run in runs if run["switching_cost"]]
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
    middle = [ratio(float(np.exp(np.mean([np.log(row["relative"][c]) for row in found])))) for c in choices]
    return TextTable(["plant", "disturbance", *choices], [*body, ["all", "geometric mean", *middle]])


# ------------------------------------------------------------------------------------------------------ what they say


def remarks(results: Results) -> dict[str, Any]:
    """Sentences that follow from the numbers."""
    scenes = part(results, "scene")
    groups = grouped(scenes)
    used = {key: {scene[key] for scene in scenes} for key in ("plant", "disturbance", "costs")}
    said: dict[str, Any] = {
        "plants": {name: plant.about for name, plant in PLANTS.items() if name in used["plant"]},
        "disturbances": {name: about for name, about in DISTURBANCES.items() if name in used["disturbance"]},
        "costs": {name: about for name, about in COSTS.items() if name in used["costs"]},
    }
    lines = []
    for other in ("LQR", "H-infinity", "GPC", "ScreamControl"):
        ratios = {key: float(np.mean([relative(s, OURS, other) for s in found])) for key, found in groups.items()}
        less, more = less_and_more(ratios.values())
        middle = float(np.exp(np.mean(np.log(list(ratios.values())))))
        (plant, costs, push), worst = max(ratios.items(), key=lambda item: item[1])
        lines.append(
            f"{OURS} pays less than {other} in {less} of {len(ratios)} scenes and more in {more} (by over 2 %); on "
            f"geometric average {ratio(middle)} times as much, at worst {ratio(worst)} times ({plant}, {costs} costs, "
            f"{push})."
        )
    said["who"] = lines
    quiet = [relative(s, OURS) for s in scenes if s["disturbance"] == "noise"]
    said["noise"] = (
        f"On noise, which nobody can foresee, it pays {ratio(min(quiet))} to {ratio(max(quiet))} times what LQR pays."
        if quiet
        else ""
    )
    with_two = [s["difference"] for s in scenes if len(PLANTS[s["plant"]].inputs) > 1]
    one = [s["difference"] for s in scenes if len(PLANTS[s["plant"]].inputs) == 1]
    said["apart"] = (
        "With one input the operator norm of a matrix is its Frobenius norm, so both controllers are the same (apart "
        f"by at most {max(one, default=0):.1e}, relative to the policy's size). With two they are "
        f"{100 * np.mean(with_two):.2g} % apart on average, {100 * np.max(with_two):.2g} % at most."
    )
    timed = part(results, "time")[-1]
    said["scaling"] = (
        f"With {timed['states']} states and tight caps, a round of ScreamControl takes "
        f"{ratio(timed['ScreamControl, tight']['us'] / timed[f'{OURS}, tight']['us'])} times as long as one of {OURS}."
    )
    return said
