"""The report of the study of combination: errors relative to the best rule of OPERA, and sentences about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from thalweg.lab.studies.combination.peers import PEERS
from thalweg.lab.studies.combination.runs import CONTENDERS, HINDSIGHT, RULES, SERIES, VARIANTS

from thalweg.lab.report import Ratios, Results, Row, TextTable, group, mean, number, part, pick

OPERA = [*RULES, *PEERS]  # with default settings


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
    return found


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
