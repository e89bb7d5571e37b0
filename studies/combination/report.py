"""The report of the study of combination: errors relative to the best rule of OPERA, and sentences about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from thalweg.lab.studies.combination import panels
from thalweg.lab.studies.combination.peers import PEERS
from thalweg.lab.studies.combination.runs import CONTENDERS, HINDSIGHT, RULES, SERIES, VARIANTS

from thalweg.lab.report import Ratios, Results, Row, TextTable, group, mean, number, part, pick

OPERA = [*RULES, *PEERS]  # with default settings
BOA = "BOA, OPERA"
PANELS = "panel"


def best_rule(rows: Sequence[Row]) -> float:
    """The mean over repetitions of the least error that a rule of OPERA has."""
    found = group([row for row in rows if row["who"] in OPERA], "rep")
    return float(np.mean([min(row["rmse"] for row in here) for here in found.values()]))


def relative(rows: Sequence[Row], who: str) -> Ratios:
    """By series: the error of a contender over that of the best rule of OPERA, the geometric mean over repetitions."""
    found = Ratios()
    for (name,), here in group(rows, "series").items():
        logs = []
        for _, one in group(here, "rep").items():
            best = min(row["rmse"] for row in one if row["who"] in OPERA)
            logs += [np.log(row["rmse"] / best) for row in pick(one, who=who)]
        found[name] = float(np.exp(np.mean(logs)))
    return found


def tables(results: Results) -> dict[str, TextTable]:
    """By variant: errors of everybody on every series, and these relative to the best rule."""
    found = {}
    for variant in VARIANTS:
        rows = pick(part(results, "run"), variant=variant)
        names = [name for name in SERIES if pick(rows, series=name)]
        cells = [
            [who, *(number(mean(pick(rows, series=name, who=who), "rmse"), 4) for name in names)] for who in CONTENDERS
        ]
        found[variant] = TextTable(["who", *names], cells, (0,))
        body = []
        for who in CONTENDERS:
            ratios = relative(rows, who)
            body.append([who, number(ratios.middle, 4), number(max(ratios.values()), 4), ratios.high])
        found[f"{variant}, relative"] = TextTable(["who", "geometric mean", "worst", "on"], body, (0, 3))
    rows = part(results, PANELS)
    return found | ({"panels": _panels(rows)} if rows else {})


def over(rows: Sequence[Row], rivals: Sequence[str]) -> Ratios:
    """By panel: the error of the Aggregator over the least of these rivals'."""
    found = Ratios()
    for place, here in group(rows, "series", "kind").items():
        errors = {row["who"]: row["rmse"] for row in here}
        found[place] = errors["Aggregator"] / min(errors[who] for who in rivals)
    return found


def _panels(rows: Sequence[Row]) -> TextTable:
    body = []
    for kind in panels.KINDS:
        for half in ("choose", "confirm"):
            here = pick(rows, kind=kind, half=half)
            if not here:
                continue
            boa, best, expert = (over(here, who) for who in ([BOA], OPERA, [panels.HINDSIGHT]))
            ahead = sum(value < 1 for value in boa.values())
            means = [number(one.middle, 4) for one in (boa, best, expert)]
            body.append([kind, half, str(len(boa)), means[0], f"{ahead}", *means[1:], number(best[best.high], 4)])
    heads = ["experts", "half", "panels", "over BOA", "ahead on", "over the best rule", "over the best expert"]
    return TextTable([*heads, "worst, over the best rule"], body, (0, 1))


def remarks(results: Results) -> dict[str, Any]:
    """The numbers of the page's sentences."""
    rows = part(results, "run")
    ours = {variant: relative(pick(rows, variant=variant), "Aggregator") for variant in VARIANTS}
    usual = pick(rows, variant=VARIANTS[0])
    return {
        "ours": ours,
        "best": {variant: _best(pick(rows, variant=variant)) for variant in VARIANTS},
        "within": sum(value <= 1.005 for found in ours.values() for value in found.values()),
        "count": sum(len(found) for found in ours.values()),
        "hindsight": Ratios({name: _over(usual, name) for (name,) in group(usual, "series")}),
        "series": {
            name: f"{SERIES[name].title}; {here[0]['rounds']:,} rounds, {1 + max(row['rep'] for row in here)} run(s)"
            for (name,), here in group(usual, "series").items()
        },
        "missing": [name for name in SERIES if not pick(rows, series=name)],
    }


def _best(rows: Sequence[Row]) -> tuple[str, float]:
    """The rule of OPERA that is best on average, and its geometric mean."""
    means = {who: relative(rows, who).middle for who in OPERA}
    name = min(means, key=means.__getitem__)
    return name, means[name]


def _over(rows: Sequence[Row], name: str) -> float:
    here = pick(rows, series=name)
    ours, theirs = (mean(pick(here, who=who), "rmse") for who in ("Aggregator", HINDSIGHT[1]))
    assert ours is not None
    assert theirs is not None
    return float(ours / theirs)
