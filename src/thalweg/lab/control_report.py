"""The report of the control study: tables, what they say, and one page. In the style of the other report (`page`)."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from thalweg.errors import MissingExtraError
from thalweg.lab import control_figures, figures, page
from thalweg.lab.control_scenes import CONTROLLERS, COSTS, DISTURBANCES, PLANTS, Row
from thalweg.lab.findings import Table, duration, number, ratio
from thalweg.lab.runs import write_file

__all__ = ["part", "remarks", "tables", "write"]

OURS = "EfficientControl"
Results = Mapping[str, Row]


def part(results: Results, name: str) -> list[Row]:
    """The results of one kind of runs, in order."""
    return [row for key, row in results.items() if key.startswith(f"{name}/")]


def relative(scene: Row, name: str, to: str = "LQR") -> float:
    """A controller's cost in a scene, relative to another's."""
    return float(scene["controllers"][name]["total"] / scene["controllers"][to]["total"])


def grouped(scenes: Sequence[Row]) -> dict[tuple[str, str, str], list[Row]]:
    """Scenes that differ in their seed only, together."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for scene in scenes:
        groups.setdefault((scene["plant"], scene["costs"], scene["disturbance"]), []).append(scene)
    return groups


# -------------------------------------------------------------------------------------------------------------- tables


def tables(results: Results) -> dict[str, Table]:
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


def _costs(scenes: Sequence[Row]) -> Table:
    names = [name for name in CONTROLLERS if name != "LQR"]
    body = []
    for (plant, costs, push), found in grouped(scenes).items():
        cells = [ratio(float(np.mean([relative(s, name) for s in found]))) for name in names]
        lqr = number(float(np.mean([s["controllers"]["LQR"]["total"] for s in found])))
        body.append([plant, costs, push, lqr, *cells, f"{100 * found[0]['difference']:.2g} %"])
    heads = ["plant", "costs", "disturbance", "LQR's total", *names, "Scream and Efficient apart"]
    return Table(heads, body, (0, 1, 2))


def _regret(scenes: Sequence[Row]) -> Table:
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
    return Table(heads, body, (0, 1, 2))


def _queries(scenes: Sequence[Row]) -> Table:
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
    return Table(heads, body)


def _scaling(timed: Sequence[Row]) -> Table:
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
    return Table(heads, body, (0,))


def _stability(found: Sequence[Row], scenes: Sequence[Row]) -> Table:
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
    return Table(heads, body, (0, 4))


def _range(values: Sequence[float]) -> str:
    return f"{min(values):.2g}–{max(values):.2g}" if values else "–"


def _sensitivity(found: Sequence[Row]) -> Table:
    choices = list(found[0]["relative"])
    body = [[row["plant"], row["disturbance"], *(ratio(row["relative"][c]) for c in choices)] for row in found]
    middle = [ratio(float(np.exp(np.mean([np.log(row["relative"][c]) for row in found])))) for c in choices]
    return Table(["plant", "disturbance", *choices], [*body, ["all", "geometric mean", *middle]])


# ------------------------------------------------------------------------------------------------------ what they say


def remarks(results: Results) -> dict[str, Any]:
    """Sentences that follow from the numbers."""
    scenes = part(results, "scene")
    groups = grouped(scenes)
    said: dict[str, Any] = {}
    lines = []
    for other in ("LQR", "H-infinity", "GPC", "ScreamControl"):
        ratios = {key: float(np.mean([relative(s, OURS, other) for s in found])) for key, found in groups.items()}
        less, more = (sum(sign * (r - 1) > 0.02 for r in ratios.values()) for sign in (-1, 1))
        middle = float(np.exp(np.mean(np.log(list(ratios.values())))))
        key, worst = max(ratios.items(), key=lambda item: item[1])
        lines.append(
            f"{OURS} pays less than {other} in {less} of {len(ratios)} scenes and more in {more} (by over 2 %); on "
            f"geometric average {ratio(middle)} times as much, at worst {ratio(worst)} times ({', '.join(key)} "
            f"{'costs' if key[1] else ''})".replace(f", {key[1]}, {key[2]} costs", f", {key[1]} costs, {key[2]}")
            + "."
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


# ---------------------------------------------------------------------------------------------------------------- page


def to_csv(scenes: Sequence[Row]) -> str:
    """A line for each controller in each scene, without its curve (which is in runs/)."""
    keys = ("plant", "disturbance", "costs", "seed", "rounds")
    rows = []
    for scene in scenes:
        planted = scene["planted"] or {}
        for name, run in scene["controllers"].items():
            facts = {key: scene[key] for key in keys} | {"controller": name}
            facts |= {key: value for key, value in run.items() if key != "curve"}
            facts |= {f"planted_{kind}": planted[kind]["total"] for kind in planted}
            rows.append(facts)
    heads = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, heads, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def pictures(results: Results) -> dict[str, Any]:
    """The pictures by name."""
    scenes = part(results, "scene")
    drawn = {row["plant"]: row for row in part(results, "trajectory")}
    made = {
        "control-costs": control_figures.costs(scenes),
        "control-trajectory": control_figures.trajectory(drawn.get("Boeing 747") or next(iter(drawn.values()))),
        "control-regret": control_figures.regret(scenes),
        "control-scaling": control_figures.scaling(part(results, "time")),
        "control-truncation": control_figures.truncation(part(results, "truncation")),
    }
    if "inverted pendulum" in drawn:
        made["control-pendulum"] = control_figures.trajectory(drawn["inverted pendulum"])
    return made


def write(folder: Path, results: Results, facts: Mapping[str, Any]) -> Path:
    """Write everything; returns the path of the page, which comes last."""
    images = {}
    for name, figure in pictures(results).items():
        images[name] = figures.save(figure, "png")
        write_file(folder / f"{name}.png", images[name])
        write_file(folder / f"{name}.pdf", figures.save(figure, "pdf"))
    write_file(folder / "runs.csv", to_csv(part(results, "scene")).encode())
    known = page.about(
        facts["size"], seconds=facts["seconds"], command=facts["command"], full=False, small=facts["small"]
    )
    known["runs"] = len(results)
    write_file(folder / "about.json", (json.dumps(known, indent=1) + "\n").encode())
    path = folder / "index.html"
    write_file(path, render(results, known, images).encode())
    return path


def render(results: Results, facts: Mapping[str, Any], images: Mapping[str, bytes]) -> str:
    """The page. It refers to nothing outside itself; style and tables are those of the other report."""
    try:
        import jinja2
    except ImportError:
        raise MissingExtraError("The page needs jinja2. Install it with: pip install 'thalweg[lab]'") from None
    here = Path(__file__).parent
    other = (here / "page.html").read_text(encoding="utf-8")
    macros, _, rest = other.partition("<!DOCTYPE html>")
    style = rest.partition("<style>")[2].partition("</style>")[0]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(macros + (here / "control_page.html").read_text(encoding="utf-8"))
    scenes = part(results, "scene")
    used = {key: {s[key] for s in scenes} for key in ("plant", "disturbance", "costs")}
    return template.render(
        style=style,
        facts=facts,
        pictures={name: f"data:image/png;base64,{base64.b64encode(image).decode()}" for name, image in images.items()},
        tables=tables(results),
        remarks=remarks(results),
        plants={name: plant.about for name, plant in PLANTS.items() if name in used["plant"]},
        disturbances={name: about for name, about in DISTURBANCES.items() if name in used["disturbance"]},
        costs={name: about for name, about in COSTS.items() if name in used["costs"]},
    )
