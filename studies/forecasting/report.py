"""The report of the study of forecasts: by method, by half, by series, and sentences about them.

Ratios are errors of the Forecaster over those of another on the same series: below 1 it is better. Beside single
methods stand "best Auto", of AutoETS, AutoTheta and AutoARIMA the one with the least error on the series, which only
hindsight knows; "mean of Autos", the mean of their errors; and "better naive", the better one of Naive and
SeasonalNaive in hindsight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from thalweg.lab.studies.forecasting.peers import AUTOS, LEVELS, NAIVES
from thalweg.lab.studies.forecasting.runs import AHEAD, METHODS, OURS
from thalweg.lab.studies.forecasting.series import HALVES, HORIZONS, SERIES, TRIED

from thalweg.lab.report import Ratios, Results, Row, TextTable, distinct, duration, group, number, part, pick

BEST, MEAN, NAIVE = "best Auto", "mean of Autos", "better naive"
OF_SEVERAL: dict[str, tuple[Sequence[str], Callable[[Sequence[float]], Any]]] = {
    BEST: (AUTOS, min), MEAN: (AUTOS, np.mean), NAIVE: (NAIVES, min),
}  # fmt: skip
OTHERS = (BEST, MEAN, NAIVE, *METHODS[1:])
TOLD = (BEST, MEAN, "AutoARIMA", NAIVE)  # in the page's sentences
MARGIN = 1.02  # a smaller loss is not listed
ENOUGH = 200  # answers that a series must have where coverage is counted for every horizon
FAR_OFF = 0.02  # of the coverage asked for
TARGETS = {  # competitor, steps ahead: targets of the geometric mean and of the worst
    (BEST, "1"): (1.0, 1.12), ("AutoARIMA", "1"): (0.98, None), (MEAN, "H"): (0.98, None), (NAIVE, "H"): (0.88, 1.25),
}  # fmt: skip


def by_series(rows: Iterable[Row]) -> dict[str, dict[str, Row]]:
    """The rows by series and method."""
    return {name: {row["method"]: row for row in here} for (name,), here in group(rows, "series").items()}


def ratios(rows: Iterable[Row], other: str, key: str) -> Ratios:
    """By series: ours over that of another, where both have it."""
    found = Ratios()
    names, put = OF_SEVERAL.get(other, ((other,), min))
    for series, here in by_series(rows).items():
        theirs = [here[name][key] for name in names if name in here and here[name][key] is not None]
        mine = here[OURS][key] if OURS in here else None
        if theirs and mine is not None and put(theirs) > 0:
            found[series] = mine / float(put(theirs))
    return found


def halves(rows: list[Row]) -> dict[str, list[Row]]:
    """All rows, those of each half and those that are fresh, where there are any."""
    found = {"all": rows} | {half: pick(rows, half=half) for half in HALVES}
    found["fresh"] = [row for row in found["confirm"] if row["series"] not in TRIED]
    return {name: here for name, here in found.items() if here}


# --------------------------------------------------------------------------------------------------------------- tables


def tables(results: Results) -> dict[str, TextTable]:
    """Every table of the report."""
    rows = part(results, "run")
    found = {}
    for half, here in halves(rows).items():
        found[f"ratios {half}"] = _ratios(here)
        found[f"errors {half}"] = _errors(here)
        found[f"intervals {half}"] = _intervals(here)
    return found | {
        "targets": _targets(rows),
        "frequencies": _frequencies(rows),
        "horizons": _horizons(rows),
        "lost": _lost(rows),
        "series": _series(rows),
    }


def _three(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}" if value < 99.95 else number(value)


def _ratios(rows: list[Row]) -> TextTable:
    body = []
    for other in OTHERS:
        cells = []
        for ahead in AHEAD:
            here = ratios(rows, other, f"rmse {ahead}")
            if here:
                above = sum(value > 1 for value in here.values())
                cells += [_three(here.middle), _three(here[here.high]), here.high, f"{above} of {len(here)}"]
        if cells:
            body.append([other, *cells])
    heads = ["ours over that of", *(head for name in AHEAD for head in (f"{name} ahead", "worst", "on", "above 1"))]
    return TextTable(heads, body, (0, 3, 7))


def _errors(rows: list[Row]) -> TextTable:
    body = []
    for (method,), here in group(rows, "method").items():
        cells = []
        for ahead in AHEAD:
            values = [row[f"mase {ahead}"] for row in here if row[f"mase {ahead}"] is not None]
            cells += [_three(float(np.mean(values))), _three(float(np.median(values)))] if values else ["–", "–"]
        took = float(np.sum([row["seconds"] for row in here]))
        each = took / max(sum(row["rows"] for row in here), 1)
        body.append([method, *cells, f"{took:.2f}", duration(each), str(len(here))])
    heads = ["method", *(head for name in AHEAD for head in (f"MASE {name} ahead", "median"))]
    return TextTable([*heads, "seconds in all", "a row", "series"], body, (0,))


def _intervals(rows: list[Row]) -> TextTable:
    body = []
    for (method,), here in group(rows, "method").items():
        for level in LEVELS:
            cells = []
            for ahead in AHEAD:
                inside = [row[f"coverage {level} {ahead}"] for row in here]
                known = [value for value in inside if value is not None]
                if known:
                    score = ratios(rows, method, f"score {level} {ahead}")
                    cells += [_three(float(np.mean(known))), _three(float(np.quantile(known, 0.1)))]
                    cells += [_three(score.middle), _three(score[score.high])] if score else ["–", "–"]
            if cells:
                body.append([method, f"{level:g}", *cells])
    names = ("coverage", "a tenth below", "our score over its", "worst")
    return TextTable(["method", "level", *(f"{name}, {a} ahead" for a in AHEAD for name in names)], body, (0,))


def _frequencies(rows: list[Row]) -> TextTable:
    body = []
    kinds = group(rows, "frequency")
    for (frequency,), here in sorted(kinds.items(), key=lambda item: list(HORIZONS).index(item[0][0])):
        cells = []
        for other, ahead in ((BEST, "1"), (NAIVE, "1"), ("Naive", "1"), ("SeasonalNaive", "1"), (MEAN, "H"),
                             (NAIVE, "H"), ("Naive", "H"), ("SeasonalNaive", "H")):  # fmt: skip
            found = ratios(here, other, f"rmse {ahead}")
            cells.append(_three(found.middle if found else None))
        body.append([frequency, str(HORIZONS[frequency]), str(len(distinct(here, "series"))), *cells])
    first = ["frequency", "H", "series", f"1 ahead over {BEST}", f"over {NAIVE}", "over Naive", "over SeasonalNaive"]
    return TextTable([*first, f"H ahead over {MEAN}", f"over {NAIVE}", "over Naive", "over SeasonalNaive"], body, (0,))


def coverage_by_horizon(rows: Iterable[Row], level: float) -> dict[int, list[float]]:
    """Coverage of ours over whole runs: for every horizon the series that have enough answers to it."""
    found: dict[int, list[float]] = {}
    for row in rows:
        for k, (inside, count) in enumerate(row["by_horizon"].get(str(level), ())):
            if count >= ENOUGH:
                found.setdefault(k + 1, []).append(inside)
    return found


def _horizons(rows: list[Row]) -> TextTable:
    found = {level: coverage_by_horizon(rows, level) for level in LEVELS}
    body = []
    for h in sorted(found[LEVELS[0]]):
        cells = [_three(float(np.mean(found[level][h]))) for level in LEVELS]
        body.append([str(h), *cells, str(len(found[LEVELS[0]][h]))])
    return TextTable(["steps ahead", *(f"coverage of {level:g}" for level in LEVELS), "series"], body, ())


def _lost(rows: list[Row]) -> TextTable:
    body = []
    for other, ahead in ((BEST, "1"), (NAIVE, "1"), (MEAN, "H"), (NAIVE, "H")):
        here = ratios(rows, other, f"rmse {ahead}")
        for name in sorted(here, key=lambda name: -here[name]):
            if here[name] > MARGIN:
                body.append([f"{ahead} ahead, {other}", name, SERIES[name].half, f"{here[name]:.3f}"])
    return TextTable(["against", "series", "half", "ratio"], body, (0, 1, 2))


def _series(rows: list[Row]) -> TextTable:
    columns = [(other, ahead) for ahead in AHEAD for other in (BEST, "Naive", "SeasonalNaive")]
    found = {pair: ratios(rows, pair[0], f"rmse {pair[1]}") for pair in columns}
    body = []
    for name, here in by_series(rows).items():
        row = here[OURS]
        facts = [row["half"], str(row["season"]), str(row["horizon"]), f"{row['rounds']:,}"]
        inside = [_three(row[f"coverage {level} {ahead}"]) for level in LEVELS for ahead in AHEAD]
        errors = [number(row[f"rmse {ahead}"], 4) for ahead in AHEAD]
        body.append([name, *facts, *errors, *(_three(found[pair].get(name)) for pair in columns), *inside])
    heads = ["series", "half", "season", "H", "T", *(f"RMSE, {ahead} ahead" for ahead in AHEAD)]
    heads += [f"over {other}, {ahead}" for other, ahead in columns]
    heads += [f"inside {level:g}, {ahead}" for level in LEVELS for ahead in AHEAD]
    return TextTable(heads, body, (0, 1))


def reached(rows: list[Row]) -> list[tuple[str, float, float, str]]:
    """Return the targets: name, target, value found, and where."""
    found: list[tuple[str, float, float, str]] = []
    for (other, ahead), (middle, worst) in TARGETS.items():
        here = ratios(rows, other, f"rmse {ahead}")
        if not here:
            continue
        found.append((f"{ahead} ahead over {other}: geometric mean", middle, here.middle, ""))
        if worst is not None:
            found.append((f"{ahead} ahead over {other}: worst", worst, here[here.high], here.high))
    for level in LEVELS:
        means = {h: abs(float(np.mean(inside)) - level) for h, inside in coverage_by_horizon(rows, level).items()}
        if means:
            h = max(means, key=means.__getitem__)
            found.append((f"coverage off {level:g}, largest of all horizons", FAR_OFF, means[h], f"{h} ahead"))
    for level in LEVELS:
        for ahead in AHEAD:
            scores = {name: ratios(rows, name, f"score {level} {ahead}") for name in METHODS[1:]}
            middles = {name: here.middle for name, here in scores.items() if here}
            if middles:
                name = max(middles, key=middles.__getitem__)
                what = f"interval score over that of others, level {level:g}, {ahead} ahead: largest mean"
                found.append((what, 1.0, middles[name], name))
    return found


def _targets(rows: list[Row]) -> TextTable:
    body = []
    for half, here in halves(rows).items():
        for what, target, value, where in reached(here):
            body.append([half, what, f"{target:.2f}", _three(value), where, "met" if value <= target else "missed"])
    return TextTable(["half", "what", "target", "found", "where", ""], body, (0, 1, 4, 5))


# ------------------------------------------------------------------------------------------------------ sentences


def remarks(results: Results) -> dict[str, Any]:
    """The numbers of the page's sentences."""
    rows = part(results, "run")
    used = distinct(rows, "series")
    told = "confirm" if pick(rows, half="confirm") else rows[0]["half"]
    here = pick(rows, half=told)
    pairs = {(other, ahead): ratios(here, other, f"rmse {ahead}") for other in TOLD for ahead in AHEAD}
    mine = pick(rows, method=OURS)
    aims = reached(here)
    return {
        "half": told,
        "count": {half: len(distinct(pick(rows, half=half), "series")) for half in HALVES},
        "fresh": sum(name not in TRIED and SERIES[name].half == "confirm" for name in used),
        "pairs": [(other, ahead, found) for (other, ahead), found in pairs.items() if found],
        "met": sum(value <= target for _, target, value, _ in aims),
        "targets": len(aims),
        "missed": [what for what, target, value, _ in aims if value > target],
        "broken": sorted({row["method"] for row in rows if row["rmse 1"] is None or row["rmse H"] is None}),
        "row": sum(row["seconds"] for row in mine) / sum(row["rows"] for row in mine),
        "series": {
            name: f"{SERIES[name].about}; {SERIES[name].frequency}; {SERIES[name].package}, {SERIES[name].item}; "
            f"{SERIES[name].half}"
            for name in used
        },
        "missing": [name for name in SERIES if name not in used],
        "absent": [name for name in METHODS if name not in distinct(rows, "method")],
    }
