"""The report of the study of thresholds: four tables for each series, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thalweg.lab.report import Results, Row, TextTable, less_and_more, mean, number, part, pick, ratio, spread
from thalweg.lab.studies.thresholds.runs import SERIES

__all__ = ["remarks", "tables"]

VARIANTS = [(feedback, restart) for feedback in ("bound", "observed") for restart in ("center", "current")]
KNOBS = ((1.0, "center"), (1e-3, "center"), (1e-3, "current"), (1e-4, "center"), (1e-4, "current"))
DIGITS = 4


def tables(results: Results) -> dict[str, TextTable]:
    """Every table of the report: the constants of all series, and four tables named after each."""
    facts, rows = part(results, "constants"), part(results, "run")
    found = {"constants": TextTable(list(facts[0]), [_cells(row) for row in facts], (0,))}
    makers = {"scale": _by_scale, "others": _others, "delta": _by_delta, "loose": _loose}
    for name in dict.fromkeys(row["series"] for row in rows):
        here = pick(rows, series=name)
        ends = {"worst_window": "worst 200 rounds"}
        if here[0]["later"] is not None:
            ends = {"after_change": "after a change", "later": "later"} | ends
        found |= {f"{name}, {kind}": make(here, ends) for kind, make in makers.items()}
    return found


def _cells(row: Row) -> list[str]:
    return [value if isinstance(value, str) else number(value, DIGITS) for value in row.values()]


def _scales(rows: Sequence[Row], group: str) -> list[float]:
    return sorted({row["scale"] for row in pick(rows, group=group)}, reverse=True)


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
    others = pick(rows, group="others")
    for name in dict.fromkeys(row["learner"] for row in others):
        found = pick(others, learner=name)
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
    for s in _scales(rows, "loose"):
        cells = [
            pick(rows, group=group, scale=s, restart="center", feedback=feedback)
            for feedback in ("bound", "observed")
            for group in ("scale", "loose")
        ]
        body.append([f"{s:.0e}", *(spread(found, "total_loss", DIGITS) for found in cells)])
    return TextTable(["scale", "bound, G", "bound, 100 G", "observed, G", "observed, 100 G"], body, ())


# ------------------------------------------------------------------------------------------------------ what they say


def remarks(results: Results) -> dict[str, Any]:
    """Sentences that follow from the numbers."""
    rows = part(results, "run")
    names = list(dict.fromkeys(row["series"] for row in rows))
    paid = {key: {} for key in ("printed", "suggested", "dynamic")}  # type: dict[str, dict[str, float]]
    born = 0
    for name in names:
        here = pick(rows, series=name)
        printed = pick(here, group="scale", scale=1.0, restart="center", feedback="bound")
        scaled = pick(here, group="scale", scale=1e-3, restart="center", feedback="observed")
        dynamic = pick(here, group="others", learner="EfficientDynamic")
        born += max(row["markers"] for row in printed) > 1
        for key, found in (("printed", printed), ("suggested", scaled), ("dynamic", dynamic)):
            paid[key][name] = mean(found, "total_loss")
    gains = {name: paid["suggested"][name] / paid["printed"][name] for name in names}
    low, high = min(gains, key=gains.__getitem__), max(gains, key=gains.__getitem__)
    less, more = less_and_more(gains.values())
    below, above = less_and_more(paid["dynamic"][name] / paid["suggested"][name] for name in names)
    shown = {name: pick(rows, series=name) for name in names}
    return {
        "printed": f"With the printed threshold a second expert is born on {born} of {len(names)} series.",
        "suggested": (
            f"One thousandth of it, with the feedback range observed, pays less than the printed one on {less} and more "
            f"on {more} of {len(names)} series (by over 2 %): from {ratio(gains[low])} times ({low}) to "
            f"{ratio(gains[high])} times ({high}) as much."
        ),
        "dynamic": f"EfficientDynamic, which has no threshold, pays less than that on {below} and more on {above}.",
        "series": {
            name: f"{SERIES[name].title}; {found[0]['rounds']:,} rounds, {len({row['rep'] for row in found})} seed(s)"
            for name, found in shown.items()
        },
        "missing": [name for name in SERIES if name not in names],
    }
