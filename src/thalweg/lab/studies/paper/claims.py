"""What the runs show, in sentences made from the numbers: they cannot claim what this very run does not show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thalweg.lab.catalog import ALGORITHMS
from thalweg.lab.report import Row, distinct, duration, mean, number, pick, ratio, ratios, spread
from thalweg.lab.streams import STREAMS
from thalweg.lab.studies.paper.report import QUERIES, interval_dynamic, losses_of, round_time, streams_of, survey, timed
from thalweg.lab.studies.paper.runs import ADAPTIVE, CROWDED, DYNAMIC

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


@dataclass(frozen=True)
class Claim:
    """What the paper reports, what was measured here, whether they agree, and what explains it."""

    paper: str
    here: str
    verdict: str
    why: str


def setting(rows: Sequence[Row]) -> dict[str, Any]:
    """The size of the main experiment."""
    found = survey(rows, "piecewise", "Sword")
    solver = pick(rows, part="solver")[0]["rounds"]
    return {"rounds": found[0]["rounds"], "dim": found[0]["dim"], "seeds": len(found), "solver_rounds": solver}


def speed_up(rows: Sequence[Row], pair: Sequence[str], stream: str, oracle: str) -> float:
    """How many times as long a round of the contender takes as one of ours."""
    theirs, ours = (round_time(timed(rows, stream, name, oracle)) for name in pair)
    return theirs / ours


# ------------------------------------------------------------------------------------------------- the paper's findings


def claims(rows: Sequence[Row]) -> list[Claim]:
    """The paper's findings, one by one, beside ours."""
    return [
        _dynamic_loss(rows),
        _dynamic_speed(rows),
        _adaptive_loss(rows, ADAPTIVE, "Thresholds as printed"),
        _adaptive_loss(rows, CROWDED, "Thresholds scaled down"),
        _markers(rows),
        _adaptive_speed(rows),
        _counts(rows),
    ]


def _compared(rows: Sequence[Row], pair: Sequence[str], stream: str) -> tuple[str, str]:
    """Total losses of a contender and of ours, and a verdict."""
    theirs, ours = (survey(rows, stream, name) for name in pair)
    times = mean(ours, "total_loss") / mean(theirs, "total_loss")
    verdict = "as in the paper" if 1 / ALIKE <= times <= ALIKE else f"ours loses {'less' if times < 1 else 'more'}"
    paid = [
        f"{name.partition('-')[0]} {spread(one, 'total_loss')}" for name, one in zip(pair, (theirs, ours), strict=True)
    ]
    return f"{paid[1]}, {paid[0]}: {ratio(times)} times as much.", verdict


def _dynamic_loss(rows: Sequence[Row]) -> Claim:
    here, verdict = _compared(rows, DYNAMIC, "piecewise")
    names = (*DYNAMIC, "Sword-shared", "EfficientDynamic-wide")
    found = [survey(rows, "piecewise", name) for name in names]
    steps = [number(mean(runs, "largest_step"), 2) for runs in found]
    shared, wide = (spread(runs, "total_loss") for runs in found[2:])
    why = (
        f"The largest step size of Sword is {steps[0]}, that of EfficientDynamic {steps[1]}. "
        f"Sword with one gradient and steps up to {steps[2]} (Sword-shared) pays {shared}. "
        f"EfficientDynamic in the paper's larger ball, of radius D, pays {wide}."
    )
    return Claim("EfficientDynamic loses about as much as Sword.", here, verdict, why)


def _dynamic_speed(rows: Sequence[Row]) -> Claim:
    slow, fast = (speed_up(rows, DYNAMIC, "piecewise", oracle) for oracle in ("solver", "compiled"))
    low, high = ABOUT_TEN
    verdict = "as in the paper" if low <= slow <= high else f"a {'smaller' if slow < low else 'larger'} gain"
    both = [survey(rows, "piecewise", name) for name in DYNAMIC]
    (many, one), (members, ours) = ([number(mean(runs, key)) for runs in both] for key in ("projections", "members"))
    why = (
        f"Projections a round: Sword {many}, EfficientDynamic {one}. Beside projecting, a round moves all members of "
        f"the pool: {members} of Sword, {ours} of EfficientDynamic. The cheaper a projection, the more that counts."
    )
    here = f"{ratio(slow)} times with the solver, {ratio(fast)} times with the compiled projection."
    return Claim("EfficientDynamic is about ten times faster than Sword.", here, f"{verdict}, with the solver", why)


def _adaptive_loss(rows: Sequence[Row], pair: Sequence[str], thresholds: str) -> Claim:
    here, verdict = _compared(rows, pair, "gradual")
    alive = [number(mean(survey(rows, "gradual", name), "experts")) for name in pair]
    why = f"Experts alive on average: {alive[1]} of EfficientAdaptive, {alive[0]} of SACS."
    return Claim("EfficientAdaptive loses about as much as SACS.", f"{thresholds}: {here}", verdict, why)


def _markers(rows: Sequence[Row]) -> Claim:
    found = {name: survey(rows, "gradual", name) for name in ADAPTIVE}
    most = max(row["markers"] for one in found.values() for row in one)
    here = f"With the printed thresholds up to {most} markers fire in a run."
    if most == 1:
        here = "With the printed thresholds no second expert is ever born, neither in SACS nor in EfficientAdaptive."
    facts = []
    for name, one in found.items():
        paid, threshold = (number(mean(one, key)) for key in ("total_loss", "first_threshold"))
        facts.append(f"{name} pays {paid} in a whole run, and its first threshold is {threshold}.")
    verdict = "differs" if most == 1 else "as in the paper"
    return Claim("Several learners are alive for adaptive regret.", here, verdict, " ".join(facts))


def _adaptive_speed(rows: Sequence[Row]) -> Claim:
    dynamic = speed_up(rows, DYNAMIC, "piecewise", "solver")
    gains = [speed_up(rows, pair, "gradual", "solver") for pair in (ADAPTIVE, CROWDED)]
    counts = [mean(timed(rows, "gradual", pair[0], "solver"), "projections") for pair in (ADAPTIVE, CROWDED)]
    here = (
        f"{ratio(gains[0])} times with the printed thresholds, {ratio(gains[1])} times with scaled ones; "
        f"over Sword {ratio(dynamic)} times."
    )
    verdict = "as in the paper, where several experts live" if 1.5 < gains[1] < dynamic else "differs"
    why = (
        f"With the solver. Projections a round of SACS: {number(counts[0])} with the printed thresholds, "
        f"{number(counts[1])} with scaled ones."
    )
    return Claim("The gain over SACS is a little smaller than that over Sword.", here, verdict, why)


def _counts(rows: Sequence[Row]) -> Claim:
    ours = [row for row in pick(rows, part="survey") if row["algorithm"].startswith("Efficient")]
    most = [max(row[key] for row in ours) for key in QUERIES]
    here = "At most {} projection, {} gradient and {} value a round.".format(*(number(value) for value in most))
    why = f"Counted in {len(ours)} runs of {len(distinct(ours, 'algorithm'))} efficient methods and settings."
    verdict = "as in the paper" if max(most) == 1 else "differs"
    return Claim("One projection, one gradient, at most one value a round.", here, verdict, why)


# ----------------------------------------------------------------------------------------------------- the other parts


def one_against_many(rows: Sequence[Row]) -> list[str]:
    """For each of `PAIRS`: on how many streams ours pays less and more, and the two ends."""
    told = []
    for pair in PAIRS:
        theirs, ours = ({stream: survey(rows, stream, name) for stream in streams_of(rows)} for name in pair)
        times = ratios(ours, theirs, "total_loss")
        how_often = f"pays less on {times.less}, more on {times.more} of {len(times)} streams"
        told.append(f"{pair[1]} against {pair[0]}: {how_often}; {times.ends()}.")
    return told


def remarks(rows: Sequence[Row]) -> dict[str, Any]:
    """All that the page says beside its tables and pictures."""
    played = streams_of(rows)
    return {
        "claims": claims(rows),
        "pairs": one_against_many(rows),
        "setting": setting(rows),
        "streams": {name: STREAMS[name].about for name in played},
        "missing": [name for name in STREAMS if name not in played],
        "solver": _solver(rows),
        "heatmap": _ranking(rows),
        "quiet": _quiet(rows),
        "interval": _worst(rows),
        "scaling": _growth(rows),
    }


def _solver(rows: Sequence[Row]) -> str:
    found = pick(rows, part="solver")
    gaps = {row["run"]: abs(row["total_loss"] / row["exact_loss"] - 1) for row in found}
    worst = max(gaps, key=gaps.__getitem__)
    told = {}
    for name in distinct(found, "algorithm"):
        mine = pick(found, algorithm=name)
        seconds = round_time(mine) / mean(mine, "projections")
        outside = f"{100 * mean(mine, 'outside'):.0f} % of the points outside the set"
        told[seconds] = (
            f"{duration(seconds)} in the rounds of {name} ({outside}, {mean(mine, 'iterations'):.1f} iterations each)"
        )
    return (
        f"With the solver a round took, for each projection, from {told[min(told)]} to {told[max(told)]}. Total losses of the "
        f"same rounds by the two ways differ by at most {gaps[worst]:.0e} of their value ({worst})."
    )


def _ranking(rows: Sequence[Row]) -> str:
    streams, names, losses = streams_of(rows), list(ALGORITHMS), losses_of(rows)
    typical = np.exp(np.log(losses / losses.min(axis=0)).mean(axis=1))
    lead = ", ".join(f"{names[i]} {typical[i]:.2f}" for i in np.argsort(typical, kind="stable")[:4])
    firsts = ", ".join(f"{names[i]} on {stream}" for i, stream in zip(losses.argmin(axis=0), streams, strict=True))
    return f"The four lowest geometric means over {len(streams)} streams: {lead}. The best: {firsts}."


def _quiet(rows: Sequence[Row]) -> str:
    """On how many streams methods with thresholds are one expert from first round to last."""
    streams, told = streams_of(rows), []
    for name in (*EAGER, *(f"{name}-eager" for name in EAGER)):
        alone = [s for s in streams if all(row["markers"] == 1 for row in survey(rows, s, name))]
        told.append(f"{name} {len(alone)}")
    count = len(streams)
    return f"On how many of the {count} streams no threshold fires, so that one expert plays alone: {', '.join(told)}."


def _worst(rows: Sequence[Row]) -> str:
    parts = []
    for stream in ("piecewise", "gradual"):
        paid = {name: mean(survey(rows, stream, name), "worst_window") for name in interval_dynamic()}
        order = sorted(paid, key=paid.__getitem__)
        told = [f"{name} {number(paid[name])}" for name in (*order[:2], order[-1])]
        parts.append(f"on {stream} {told[0]}, then {told[1]}, last {told[2]}")
    return f"Loss of the worst 200 rounds in a row, mean over seeds: {'; '.join(parts)}."


def _growth(rows: Sequence[Row]) -> str:
    found = pick(rows, part="scaling")
    T = sorted({row["horizon"] for row in found})
    dims = sorted({row["dim"] for row in pick(found, horizon=T[0])})

    def at(name: str, horizon: int, dim: int) -> float:
        return round_time(pick(found, algorithm=name, horizon=horizon, dim=dim))

    growth = {name: at(name, T[-1], 8) / at(name, T[0], 8) for name in distinct(found, "algorithm")}
    low, high = min(growth, key=growth.__getitem__), max(growth, key=growth.__getitem__)
    ends = [at(DYNAMIC[0], T[0], dim) / at(DYNAMIC[1], T[0], dim) for dim in (dims[0], dims[-1])]
    return (
        f"From T = {T[0]:,} to {T[-1]:,} a round takes {ratio(growth[low])} ({low}) to {ratio(growth[high])} times "
        f"({high}) as long. Sword takes {ratio(ends[0])} times as long as EfficientDynamic at d = {dims[0]} and "
        f"{ratio(ends[1])} times at d = {dims[-1]}."
    )
