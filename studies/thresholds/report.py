"""The report of the study of thresholds: four tables for each series, and sentences about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thalweg.lab.studies.thresholds.runs import SERIES

from thalweg.lab.report import Results, Row, TextTable, group, mean, number, part, pick, ratios, spread

VARIANTS = [(feedback, restart) for feedback in ("bound", "observed") for restart in ("center", "current")]
KNOBS = ((1.0, "center"), (1e-3, "center"), (1e-3, "current"), (1e-4, "center"), (1e-4, "current"))
CONSTANTS = ("T", "d", "G", "L", "B", "R", "D", "R² L", "C_1", "C_1, R = D", "C of SACS")
DIGITS = 4


def tables(results: Results) -> dict[str, TextTable]:
    """Every table of the report: the constants of all series, and four tables named after each."""
    facts, rows = part(results, "constants"), part(results, "run")
    cells = [[row["series"], *(number(row[key], DIGITS) for key in CONSTANTS)] for row in facts]
    found = {"constants": TextTable(["series", *CONSTANTS], cells, (0,))}
    makers = {"scale": _by_scale, "others": _others, "delta": _by_delta, "loose": _loose}
    for (name,), here in group(rows, "series").items():
        ends = {"worst_window": "worst 200 rounds"}
        if here[0]["later"] is not None:
            ends = {"after_change": "after a change", "later": "later"} | ends
        found |= {f"{name}, {kind}": make(here, ends) for kind, make in makers.items()}
    return found


def _scales(rows: Sequence[Row], kind: str) -> list[float]:
    return sorted({row["scale"] for row in pick(rows, group=kind)}, reverse=True)


def _by_scale(rows: Sequence[Row], ends: dict[str, str]) -> TextTable:
    body = []
    for s in _scales(rows, "scale"):
        at = [pick(rows, group="scale", scale=s, restart=b, feedback=a) for a, b in VARIANTS]
        counts = [number(mean(at[0], key)) for key in ("markers", "experts", "most_experts")]
        losses = [spread(found, "total_loss", DIGITS) for found in at]
        body.append([f"{s:.1e}", *losses, *counts, *(spread(at[0], key, DIGITS) for key in ends)])
    heads = ["scale", *(f"{a}, {b}" for a, b in VARIANTS), "markers", "experts", "at most", *ends.values()]
    return TextTable(heads, body, ())


def _others(rows: Sequence[Row], ends: dict[str, str]) -> TextTable:
    body = []
    for (name,), found in group(pick(rows, group="others"), "learner").items():
        counts = [number(mean(found, key)) for key in ("markers", "experts", "projections")]
        losses = [spread(found, key, DIGITS) for key in ("total_loss", *ends)]
        body.append([name, losses[0], *counts, *losses[1:]])
    return TextTable(["learner", "total loss", "markers", "experts", "projections", *ends.values()], body, (0,))


def _by_delta(rows: Sequence[Row], ends: dict[str, str]) -> TextTable:
    body = []
    for delta in sorted({row["delta"] for row in pick(rows, group="delta")}):
        cells = [pick(rows, group="delta", delta=delta, scale=s, restart=restart) for s, restart in KNOBS]
        losses = [f"{spread(found, 'total_loss', DIGITS)} ({number(mean(found, 'markers'))})" for found in cells]
        body.append([f"{delta:g}", *losses])
    return TextTable(["delta", "printed", *(f"{s:.0e}, {restart}" for s, restart in KNOBS[1:])], body, ())


def _loose(rows: Sequence[Row], ends: dict[str, str]) -> TextTable:
    body = []
    columns = {
        f"{a}, {G}": (a, kind) for a in ("bound", "observed") for kind, G in (("scale", "G"), ("loose", "100 G"))
    }
    for s in _scales(rows, "loose"):
        cells = [pick(rows, group=kind, scale=s, restart="center", feedback=a) for a, kind in columns.values()]
        body.append([f"{s:.0e}", *(spread(found, "total_loss", DIGITS) for found in cells)])
    return TextTable(["scale", *columns], body, ())


# ------------------------------------------------------------------------------------------------------ sentences


def remarks(results: Results) -> dict[str, Any]:
    """The numbers of the page's sentences."""
    found = {name: rows for (name,), rows in group(part(results, "run"), "series").items()}
    printed, suggested, dynamic = (
        {name: pick(rows, **wanted) for name, rows in found.items()}
        for wanted in (
            {"group": "scale", "scale": 1.0, "restart": "center", "feedback": "bound"},
            {"group": "scale", "scale": 1e-3, "restart": "center", "feedback": "observed"},
            {"group": "others", "learner": "EfficientDynamic"},
        )
    )
    return {
        "born": sum(any(row["markers"] > 1 for row in rows) for rows in printed.values()),
        "suggested": ratios(suggested, printed, "total_loss"),
        "dynamic": ratios(dynamic, suggested, "total_loss"),
        "series": {
            name: f"{SERIES[name].title}; {rows[0]['rounds']:,} rounds, {1 + max(row['rep'] for row in rows)} seed(s)"
            for name, rows in found.items()
        },
        "missing": [name for name in SERIES if name not in found],
    }
