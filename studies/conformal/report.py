"""The report of the study of intervals: by method, by stream, and sentences about them."""

from __future__ import annotations

from typing import Any

import numpy as np
from thalweg.lab.studies.conformal.cases import CASES
from thalweg.lab.studies.conformal.runs import ALPHA, METHODS, OURS, PEERS, PUBLISHED

from thalweg.lab.report import Ratios, Results, Row, TextTable, group, number, part


def ratios_of(rows: list[Row]) -> dict[str, Ratios]:
    """By method and stream: the interval score over that of the best peer, chosen in hindsight."""
    found: dict[str, Ratios] = {name: Ratios() for name in METHODS}
    for (case,), here in group(rows, "case").items():
        best = min(row["score"] for row in here if row["method"] in PEERS)
        for row in here:
            found[row["method"]][case] = row["score"] / best
    return found


def tables(results: Results) -> dict[str, TextTable]:
    """By method, over all streams, over real and synthetic ones; and by stream."""
    rows = part(results, "run")
    kinds = {"methods": rows, "real": [r for r in rows if r["real"]], "drawn": [r for r in rows if not r["real"]]}
    return (
        {name: _methods(these) for name, these in kinds.items() if these}
        | {
            "streams": _streams(rows),
            "sides": _sides(part(results, "sides")),
            "late": _late(part(results, "late")),
        }
        | ({"published": _published(rows)} if (rows := part(results, "published")) else {})
    )


def _methods(rows: list[Row]) -> TextTable:
    found, body = ratios_of(rows), []
    for (method,), here in group(rows, "method").items():
        ratios = found[method]
        off = max(here, key=lambda row: abs(row["coverage"] - 1 + ALPHA))
        worst = [f"{ratios[ratios.high]:.3f} ({ratios.high})", f"{off['coverage']:.3f} ({off['case']})"]
        means = [f"{np.mean([row[key] for row in here]):.3f}" for key in ("worst", "rms")]
        body.append([method, f"{ratios.middle:.3f}", *worst, *means])
    heads = ["method", "score over best peer", "at worst", "coverage farthest off", "worst 100 rounds", "local error"]
    return TextTable(heads, body, (0,))


def _streams(rows: list[Row]) -> TextTable:
    found, body = ratios_of(rows), []
    for (case,), here in group(rows, "case").items():
        peers = {row["method"]: row for row in here if row["method"] in PEERS}
        best = min(peers, key=lambda name: peers[name]["score"])
        ours = next(row for row in here if row["method"] == OURS)
        cells = [number(ours["score"]), best, f"{found[OURS][case]:.3f}", *(f"{found[m][case]:.3f}" for m in PEERS)]
        body.append([case, f"{ours['rounds']:,}", f"{ours['coverage']:.3f}", *cells])
    heads = ["stream", "T", "coverage", "score", "best peer", OURS, *PEERS]
    return TextTable(heads, body, (0, 4))


def _sides(rows: list[Row]) -> TextTable:
    """Scores over the better of one side and two, by sides."""
    better = {
        case: min(row["score"] for row in here if row["sides"] != "auto")
        for (case,), here in group(rows, "case").items()
    }
    body = []
    for (sides,), here in group(rows, "sides").items():
        ratios = [row["score"] / better[row["case"]] for row in here]
        off = max(abs(row["coverage"] - 1 + ALPHA) for row in here)
        body.append([sides, f"{np.mean(ratios):.3f}", f"{max(ratios):.3f}", f"{off:.3f}"])
    return TextTable(["sides", "score over the better", "at worst", "coverage off by"], body, (0,))


def _late(rows: list[Row]) -> TextTable:
    """Means over streams, by how late answers come."""
    body = []
    best = {where: min(row["score"] for row in here) for where, here in group(rows, "late", "case").items()}
    for (late, method), here in group(rows, "late", "method").items():
        ratios = [row["score"] / best[late, row["case"]] for row in here]
        off = max(abs(row["coverage"] - 1 + ALPHA) for row in here)
        means = [f"{np.mean([row[key] for row in here]):.3f}" for key in ("worst", "rms")]
        body.append([str(late), method, f"{np.mean(ratios):.3f}", f"{max(ratios):.3f}", f"{off:.3f}", *means])
    heads = ["late", "method", "score over best", "at worst", "coverage off by", "worst 100 rounds", "local error"]
    return TextTable(heads, body, (1,))


def _published(rows: list[Row]) -> TextTable:
    """Interval score and coverage around published forecasts."""
    first = next(row["score"] for row in rows if row["method"] == PUBLISHED)
    body = [
        [
            row["method"],
            f"{row['score']:.2f}",
            f"{row['score'] / first:.3f}",
            f"{row['coverage']:.3f}",
            f"{row['worst']:.2f}",
        ]
        for row in sorted(rows, key=lambda row: row["score"])
    ]
    return TextTable(["method", "score", "over the published", "coverage", "worst 100 rounds"], body, (0,))


def remarks(results: Results) -> dict[str, Any]:
    """The numbers of the page's sentences."""
    rows = part(results, "run")
    found = ratios_of(rows)
    ours = found[OURS]
    cases = list(ours)
    peers = {name: found[name].middle for name in PEERS}
    runner_up = min(peers, key=lambda name: peers[name])
    mine = [row for row in rows if row["method"] == OURS]
    off = max(mine, key=lambda row: abs(row["coverage"] - 1 + ALPHA))
    return {
        "ours": ours,
        "mean": ours.middle,
        "lost": {case: ours[case] for case in sorted(ours, key=lambda c: -ours[c]) if ours[case] > 1.005},
        "won": sum(ratio < 0.995 for ratio in ours.values()),
        "runner_up": (runner_up, peers[runner_up]),
        "off": (off["case"], off["coverage"]),
        "streams": {case: CASES[case].about for case in cases},
        "missing": [case for case in CASES if case not in cases],
    }
