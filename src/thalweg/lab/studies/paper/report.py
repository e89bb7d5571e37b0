"""The report of the paper's experiments: tables, and verdicts that follow from the numbers by rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from thalweg.lab.catalog import prompt
from thalweg.lab.report import Row, TextTable, distinct, duration, mean, number, pick, ratio, ratios, spread
from thalweg.lab.streams import STREAMS
from thalweg.lab.studies.paper.rows import interval_dynamic, losses_of, round_time, streams_of, survey, timed
from thalweg.lab.studies.paper.runs import ADAPTIVE, CROWDED, DYNAMIC

# Table 1 of the paper: the measure, our name, and its projections, gradients and values a round.
TABLE_1 = (
    ("dynamic", "Sword", "N", "N + 1", "0"),
    ("dynamic", "Sword-shared", "O(log T)", "1", "0"),
    ("dynamic", "EfficientDynamic", "1", "1", "0"),
    ("adaptive", "SACS", "O(log T)", "O(log T)", "O(log T)"),
    ("adaptive", "SACS-compact", "O(log T)", "O(log T)", "O(log T)"),
    ("adaptive", "EfficientAdaptive", "1", "1", "1"),
    ("interval dynamic", "AOA", "O(log² T)", "O(log² T)", "O(log² T)"),
    ("interval dynamic", "EfficientIntervalDynamic", "1", "1", "1"),
)
# Timings: a title, the stream, a contender and ours.
SPEED = (
    ("dynamic", "piecewise", *DYNAMIC),
    ("adaptive, thresholds as printed", "gradual", *ADAPTIVE),
    ("adaptive, thresholds scaled down", "gradual", *CROWDED),
    ("adaptive, SACS with an expert a round", "gradual", "SACS-compact", CROWDED[1]),
)
THRESHOLDS = {
    "SACS": "as printed",
    "SACS-eager": "1/100",
    "SACS-crowded": "1/1000",
    "SACS-compact": "a marker every round",
    "EfficientAdaptive": "as printed",
    "EfficientAdaptive-eager": "1/1000",
    "EfficientAdaptive-crowded": "1/100 000",
}
QUERIES = ("projections", "gradients", "values")
# A contender and its counterpart with one projection.
PAIRS = (
    ("Ader", "EfficientDynamic-worst-case"),
    ("Sword", "EfficientDynamic"),
    ("Sword-shared", "EfficientDynamic"),
    ("CBCE", "EfficientCBCE"),
    ("CBCE-shared", "EfficientCBCE"),
    ("SACS", "EfficientAdaptive"),
    ("SACS-eager", "EfficientAdaptive-eager"),
    ("AOA", "EfficientAOA"),
    ("CutkoskyAdaptive", "EfficientCutkosky"),
)
ALIKE = 1.25  # losses within this factor count as the same
ABOUT_TEN = (6, 16)
EAGER = ("SACS", "EfficientAdaptive", "EfficientIntervalDynamic")  # have a setting with smaller thresholds
SAME = "as in the paper"


# -------------------------------------------------------------------------------------------------------------- tables


def tables(rows: Sequence[Row]) -> dict[str, TextTable]:
    """Every table of the report."""
    makers = {"speed": _speed, "adaptive": _adaptive, "table_1": _table_1, "interval": _interval, "all": _all}
    return {name: make(rows) for name, make in makers.items()}


def _speed(rows: Sequence[Row]) -> TextTable:
    body = []
    for title, stream, *names in SPEED:
        for oracle in ("compiled", "solver"):
            both = [timed(rows, stream, name, oracle) for name in names]
            seconds, counts = [round_time(found) for found in both], [mean(found, "projections") for found in both]
            outside = [mean(found, "outside") for found in both]
            cells = [f"{name} {duration(time)}" for name, time in zip(names, seconds, strict=True)]
            cells += [ratio(seconds[0] / seconds[1]), ratio(counts[0] / counts[1])]
            cells.append("–" if outside[0] is None else f"{100 * outside[0]:.0f} %, {100 * outside[1]:.0f} %")
            body.append([title, f"{oracle}, {both[0][0]['rounds']:,} rounds", *cells])
    heads = ["regret", "projection by", "contender", "ours", "ratio of times", "of projections", "outside the set"]
    return TextTable(heads, body, (0, 1, 2, 3))


def _adaptive(rows: Sequence[Row]) -> TextTable:
    body = []
    for name, threshold in THRESHOLDS.items():
        found, solver = (timed(rows, "gradual", name, oracle) for oracle in ("compiled", "solver"))
        counts = [number(mean(found, key)) for key in ("markers", "experts", "most_experts")]
        losses = [spread(found, key) for key in ("total_loss", "worst_window")]
        slow = duration(round_time(solver)) if solver else "–"
        body.append([name, threshold, *counts, *losses, duration(round_time(found)), slow])
    heads = ["algorithm", "threshold", "markers", "experts alive, mean", "at most", "total loss", "worst 200 rounds",
             "time a round, compiled", "time a round, solver"]  # fmt: skip
    return TextTable(heads, body)


def _table_1(rows: Sequence[Row]) -> TextTable:
    body = []
    for measure, name, *stated in TABLE_1:
        found = survey(rows, "piecewise", name)
        cells = [f"{number(mean(found, key))} ({said})" for key, said in zip(QUERIES, stated, strict=True)]
        body.append([measure, name, *cells, prompt()[name].card.bound])
    return TextTable(["regret", "algorithm", *QUERIES, "order of its regret"], body, (0, 1, 5))


def _interval(rows: Sequence[Row]) -> TextTable:
    body = []
    for stream in ("piecewise", "gradual"):
        for name in interval_dynamic():
            found = survey(rows, stream, name)
            losses = [spread(found, key) for key in ("total_loss", "worst_window")]
            body.append([stream, name, *losses, duration(round_time(found)), number(mean(found, "projections"))])
    heads = ["stream", "algorithm", "total loss", "worst 200 rounds", "time a round", "projections a round"]
    return TextTable(heads, body)


def _all(rows: Sequence[Row]) -> TextTable:
    body = []
    for name, card in ((name, recipe.card) for name, recipe in prompt().items()):
        found = survey(rows, "piecewise", name)
        counts = [number(mean(found, key)) for key in QUERIES]
        body.append([name, card.regret, *counts, duration(round_time(found)), spread(found, "total_loss"), card.bound])
    heads = ["algorithm", "regret", *QUERIES, "time a round", "total loss", "order of its regret"]
    return TextTable(heads, body, (0, 1, 7))


# ------------------------------------------------------------------------------------------------------ sentences


def remarks(rows: Sequence[Row]) -> dict[str, Any]:
    """All that the page says beside its tables and pictures."""
    played = streams_of(rows)
    return {
        "claims": claims(rows),
        "jumps": _algorithm_facts(rows, "piecewise", (*DYNAMIC, "Sword-shared", "EfficientDynamic-wide")),
        "walk": _algorithm_facts(rows, "gradual", (*ADAPTIVE, *CROWDED)),
        "pairs": one_against_many(rows),
        "setting": _setting(rows),
        "streams": {name: STREAMS[name].about for name in played},
        "missing": [name for name in STREAMS if name not in played],
        "solver": _solver(rows),
        "ranking": _ranking(rows),
        "quiet": _quiet(rows),
        "worst": _worst(rows),
        "growth": _growth(rows),
    }


def _algorithm_facts(rows: Sequence[Row], stream: str, names: Sequence[str]) -> dict[str, Row]:
    """Facts about some algorithms on a stream."""
    keys = ("total_loss", "projections", "members", "largest_step", "experts", "first_threshold")
    found = {name: survey(rows, stream, name) for name in names}
    return {
        name: {"paid": spread(runs, "total_loss")} | {key: mean(runs, key) for key in keys}
        for name, runs in found.items()
    }


def _setting(rows: Sequence[Row]) -> Row:
    """The size of the main experiment."""
    found = survey(rows, "piecewise", "Sword")
    solver = pick(rows, part="solver")[0]["rounds"]
    return {"rounds": found[0]["rounds"], "dim": found[0]["dim"], "seeds": len(found), "solver_rounds": solver}


# ------------------------------------------------------------------------------------------------- the paper's findings


def claims(rows: Sequence[Row]) -> dict[str, Row]:
    """The paper's findings, one by one: whether ours agree, and the numbers that say so."""
    gains = {
        "solver": _speed_up(rows, DYNAMIC, "piecewise", "solver"),
        "compiled": _speed_up(rows, DYNAMIC, "piecewise", "compiled"),
        "printed": _speed_up(rows, ADAPTIVE, "gradual", "solver"),
        "scaled": _speed_up(rows, CROWDED, "gradual", "solver"),
    }
    few, many = ABOUT_TEN
    about_ten = SAME if few <= gains["solver"] <= many else f"a {'smaller' if gains['solver'] < few else 'larger'} gain"
    smaller = f"{SAME}, where several experts live" if 1.5 < gains["scaled"] < gains["solver"] else "differs"
    counts = [mean(timed(rows, "gradual", pair[0], "solver"), "projections") for pair in (ADAPTIVE, CROWDED)]
    markers = max(row["markers"] for name in ADAPTIVE for row in survey(rows, "gradual", name))
    ours = [row for row in pick(rows, part="survey") if row["algorithm"].startswith("Efficient")]
    most = {key: max(row[key] for row in ours) for key in QUERIES}
    return {
        "dynamic_loss": _alike(rows, DYNAMIC, "piecewise"),
        "dynamic_speed": {"verdict": f"{about_ten}, with the solver", **gains},
        "printed_loss": _alike(rows, ADAPTIVE, "gradual"),
        "scaled_loss": _alike(rows, CROWDED, "gradual"),
        "markers": {"verdict": "differs" if markers == 1 else SAME, "most": markers},
        "adaptive_speed": {"verdict": smaller, "counts": counts},
        "queries": {
            "verdict": SAME if max(most.values()) == 1 else "differs",
            "most": most,
            "runs": len(ours),
            "methods": len(distinct(ours, "algorithm")),
        },
    }


def _alike(rows: Sequence[Row], pair: Sequence[str], stream: str) -> Row:
    """How many times as much ours loses as the contender, and whether that counts as the same."""
    theirs, ours = (mean(survey(rows, stream, name), "total_loss") for name in pair)
    alike = 1 / ALIKE <= ours / theirs <= ALIKE
    return {"verdict": SAME if alike else f"ours loses {'less' if ours < theirs else 'more'}", "times": ours / theirs}


def _speed_up(rows: Sequence[Row], pair: Sequence[str], stream: str, oracle: str) -> float:
    """How many times as long a round of the contender takes as one of ours."""
    theirs, ours = (round_time(timed(rows, stream, name, oracle)) for name in pair)
    return theirs / ours


# ----------------------------------------------------------------------------------------------------- the other parts


def one_against_many(rows: Sequence[Row]) -> list[Any]:
    """Each of `PAIRS`, and how many times as much ours pays on every stream."""
    found = []
    for pair in PAIRS:
        theirs, ours = ({stream: survey(rows, stream, name) for stream in streams_of(rows)} for name in pair)
        found.append((*pair, ratios(ours, theirs, "total_loss")))
    return found


def _solver(rows: Sequence[Row]) -> Row:
    """By seconds: the time of a projection by the solver in the rounds of each algorithm; the error of its losses."""
    found = pick(rows, part="solver")
    gaps = {row["run"]: abs(row["total_loss"] / row["exact_loss"] - 1) for row in found}
    costs = []
    for name in distinct(found, "algorithm"):
        mine = pick(found, algorithm=name)
        cost: Row = {"algorithm": name, "seconds": round_time(mine) / mean(mine, "projections")}
        costs.append(cost | {key: mean(mine, key) for key in ("outside", "iterations")})
    worst = max(gaps, key=gaps.__getitem__)
    return {"costs": sorted(costs, key=lambda cost: cost["seconds"]), "gap": gaps[worst], "run": worst}


def _ranking(rows: Sequence[Row]) -> Row:
    """The lowest geometric means over streams of loss relative to the best, and the best algorithm of each stream."""
    names, losses = list(prompt()), losses_of(rows)
    typical = np.exp(np.log(losses / losses.min(axis=0)).mean(axis=1))
    lead = {names[i]: float(typical[i]) for i in np.argsort(typical, kind="stable")[:4]}
    return {"lead": lead, "best": {s: names[i] for i, s in zip(losses.argmin(axis=0), streams_of(rows), strict=True)}}


def _quiet(rows: Sequence[Row]) -> dict[str, int]:
    """On how many streams methods with thresholds are one expert from first round to last."""
    return {
        name: sum(all(row["markers"] == 1 for row in survey(rows, stream, name)) for stream in streams_of(rows))
        for name in (*EAGER, *(f"{name}-eager" for name in EAGER))
    }


def _worst(rows: Sequence[Row]) -> dict[str, list[tuple[float, str]]]:
    """The losses of the worst window of methods for interval dynamic regret, by stream, the least first."""
    return {
        stream: sorted((mean(survey(rows, stream, name), "worst_window"), name) for name in interval_dynamic())
        for stream in ("piecewise", "gradual")
    }


def _growth(rows: Sequence[Row]) -> Row:
    """How much longer a round takes as the horizon grows, and how much slower Sword is in few and many dimensions."""
    found = pick(rows, part="scaling")
    T = sorted(distinct(found, "horizon"))
    dims = sorted(distinct(pick(found, horizon=T[0]), "dim"))

    def at(name: str, horizon: int, dim: int) -> float:
        return round_time(pick(found, algorithm=name, horizon=horizon, dim=dim))

    times = sorted((at(name, T[-1], 8) / at(name, T[0], 8), name) for name in distinct(found, "algorithm"))
    sword = {dim: at(DYNAMIC[0], T[0], dim) / at(DYNAMIC[1], T[0], dim) for dim in (dims[0], dims[-1])}
    return {"from": T[0], "to": T[-1], "times": times, "sword": sword}
