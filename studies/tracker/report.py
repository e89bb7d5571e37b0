"""The report of the study of the Tracker: tables of ratios, and sentences about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from thalweg.lab.studies.tracker import squared
from thalweg.lab.studies.tracker.cases import AFTER_CALM, CALM, CASES, KNOWN_LIMITS, LIMITS
from thalweg.lab.studies.tracker.runs import (
    AFTER,
    AGAIN,
    BANK,
    FREE,
    FRESH,
    GOES_ON,
    LOW,
    METHODS,
    ON_INTERVALS,
    PUBLISHED,
    REFERENCE,
    SIMPLE,
    TRACKERS,
)

from thalweg.lab.report import Ratios, Results, Row, TextTable, distinct, group, number, part

TARGETS = {  # ratios to reach
    "Tracker: worst": 1.10,
    "Tracker: geometric mean": 0.85,
    "no values, domain of the right size: worst": 1.5,
    "after a calm: worst": 1.4,
    "after a calm: geometric mean": 1.1,
    "beside a bank of filters: worst": 1.15,
    "beside a bank of filters: geometric mean": 1.0,
}
MARGIN = 1.005  # a smaller loss is shown as one


def ratios_of(rows: Iterable[Row]) -> dict[str, Ratios]:
    """By method and stream: loss over that of the reference; streams that a method does not apply to are left out."""
    found: dict[str, Ratios] = {}
    for here in group(rows, "case").values():
        best = next(row["total_loss"] for row in here if row["method"] == REFERENCE)
        for row in here:
            if row["total_loss"] is not None and row["method"] != REFERENCE:
                found.setdefault(row["method"], Ratios())[row["case"]] = row["total_loss"] / best
    return found


def ratio(value: float | None) -> str:
    """A ratio as in tables: two digits after the point, fewer where it is large."""
    if value is None:
        return "–"
    return f"{value:.2f}" if value < 9.995 else f"{value:,.0f}" if value < 9999.5 else f"{value:.0e}"


def sized(ratios: Ratios) -> Ratios:
    """On domains of the right size."""
    return Ratios({case: value for case, value in ratios.items() if not CASES[case].oversized})


# --------------------------------------------------------------------------------------------------------------- tables


def tables(results: Results) -> dict[str, TextTable]:
    """Every table of the report."""
    return {
        "methods": _methods(ratios_of(part(results, "run"))),
        "streams": _streams(part(results, "run")),
        "calm": _after(part(results, CALM), AFTER_CALM),
        "after": _methods(ratios_of(part(results, CALM))),
        "beaten": _table_of_beaten(results),
        "targets": TextTable(
            ["what", "target", "found", "where", ""],
            [[what, f"{TARGETS[what]:.2f}", f"{value:.3f}", where, "met" if value <= TARGETS[what] else "missed"]
             for what, (value, where) in _found(results).items()],
            (0, 3, 4),
        ),
        "again": _again(results),
        "pynol": _pynol(part(results, "pynol")),
        "intervals": _intervals(part(results, "intervals")),
        "limits": _limits(results),
        "squared": _squared(part(results, squared.GROUP)),
    }  # fmt: skip


def _table_of_beaten(results: Results) -> TextTable:
    heads = ["stream", "by", "Tracker / best step", "it / best step", "Tracker / it"]
    body = [[case, who, ratio(a), ratio(b), ratio(a / b)] for case, who, a, b in _beaten(results)]
    return TextTable(heads, body)


def _methods(found: Mapping[str, Ratios]) -> TextTable:
    body = []
    for name in (name for name in (*METHODS, FRESH, GOES_ON) if name in found):
        here = found[name]
        above = sum(value > MARGIN for value in here.values())
        ends = [ratio(here[here.high]), here.high, ratio(here.middle), ratio(here[here.low])]
        body.append([name, *ends, str(above), str(len(here))])
    return TextTable(["method", "worst", "on", "geometric mean", "best", "above 1", "streams"], body, (0, 2))


def _streams(rows: list[Row]) -> TextTable:
    found = ratios_of(rows)
    body = []
    for (case,), here in group(rows, "case").items():
        best = next(row for row in here if row["method"] == REFERENCE)
        facts = [number(best["total_loss"] / best["rounds"]), f"2^{best['step']}"]
        cells = [ratio(found.get(name, {}).get(case)) for name in METHODS if name != LOW]
        body.append([case, f"{best['rounds']:,}", str(best["dim"]), *facts, *cells])
    heads = ["stream", "T", "d", "best mean loss", "step G/R", *(name for name in METHODS if name != LOW)]
    return TextTable(heads, body, (0,))


def _after(rows: list[Row], cases: Mapping[str, Any]) -> TextTable:
    found = ratios_of(rows)
    names = [name for name in AFTER if name in found]
    body = []
    for (case,), here in group(rows, "case").items():
        calm = [f"{here[0]['calm']:,}", f"{here[0]['rounds']:,}"]
        body.append([case, cases[case].about, *calm, *(ratio(found[name].get(case)) for name in names)])
    return TextTable(["stream", "after the calm", "calm", "change", *names], body)


def _draws(results: Results, group_of: str, name: str) -> dict[str, list[float]]:
    """The ratios of a method on all draws of the synthetic streams."""
    first = ratios_of(part(results, group_of or "run"))[name]
    more = {row["case"]: row["ratios"][name] for row in part(results, "again") if row["group"] == group_of}
    return {case: [first[case], *ratios] for case, ratios in more.items()}


def _again(results: Results) -> TextTable:
    body = []
    for group_of, where in (("", ""), (CALM, "after a calm: ")):
        seen, blind = (_draws(results, group_of, name) for name in AGAIN)
        for case in seen:
            ends = [ratio(end(values)) for values in (seen[case], blind[case]) for end in (min, max)]
            body.append([where + case, str(len(seen[case])), *ends])
    return TextTable(["stream", "draws", "Tracker: least", "largest", "no values: least", "largest"], body, (0,))


def _pynol(rows: list[Row]) -> TextTable:
    lengths = distinct(rows, "rounds")
    body = [
        [name, *(number(row["total_loss"], 4) for row in rows if row["method"] == name)]
        for name in distinct(rows, "method")
    ]
    body += [[name, *(number(told.get(T), 4) for T in lengths)] for name, told in PUBLISHED.items()]
    stages = [next(row["stages"] for row in rows if row["rounds"] == T) for T in lengths]
    heads = [f"T = {T:,}, {count} stages" for T, count in zip(lengths, stages, strict=True)]
    return TextTable(["method", *heads], body, (0,))


def _intervals(rows: list[Row]) -> TextTable:
    body = []
    for (noise,), here in group(rows, "noise").items():
        body.append([f"{noise:g}", "markers", *(str(row["markers"]) for row in here)])
        for k, length in enumerate(here[0]["lengths"]):
            body.append([f"{noise:g}", f"{length:,}", *(number(row["regrets"][k]) for row in here)])
    return TextTable(["noise", "length", *ON_INTERVALS], body)


def _limits(results: Results) -> TextTable:
    body, others = [], ("EfficientDynamic", "SOGD", "RLS 0.99")
    usual, after = ratios_of(part(results, "run")), ratios_of(part(results, LIMITS))
    for case in after.get("Tracker", {}):
        body.append([KNOWN_LIMITS[case].about, *(ratio(after[name][case]) for name in ("Tracker", FRESH, *others))])
    best = {row["case"]: row["total_loss"] for row in part(results, "run") if row["method"] == REFERENCE}
    for row in part(results, "floor"):
        case = row["case"]
        cells = [row["total_loss"] / best[case], *(usual[name].get(case) for name in ("Tracker", *others))]
        body.append([f"{case}: told that losses are at least -1", *(ratio(cell) for cell in cells)])
    return TextTable(["what", "Tracker", "Tracker, fresh or told 0", *others], body, (0,))


def over_bank(rows: Iterable[Row]) -> dict[str, Ratios]:
    """By method and stream: loss over that of the bank, projected or not, whichever paid less on that stream."""
    found: dict[str, Ratios] = {}
    for (case,), here in group(rows, "case").items():
        paid = {row["method"]: row["total_loss"] for row in here}
        for method, loss in paid.items():
            found.setdefault(method, Ratios())[case] = loss / min(paid[BANK], paid[FREE])
    return found


def _squared(rows: list[Row]) -> TextTable:
    found = over_bank(rows)
    body = [
        [case, "apart" if case in squared.APART else "", squared.SQUARED[case].about, f"{here[0]['rounds']:,}",
         str(here[0]["dim"]), *(f"{found[name][case]:.3f}" for name in found)]
        for (case,), here in group(rows, "case").items()
    ]  # fmt: skip
    for name, chosen in (("geometric mean", squared.SQUARED), ("of those apart", squared.APART)):
        middles = [Ratios({case: one[case] for case in one if case in chosen}) for one in found.values()]
        body.append([name, "", "", "", "", *(f"{one.middle:.3f}" if one else "–" for one in middles)])
    return TextTable(["stream", "", "about", "T", "d", *found], body, (0, 1, 2))


# ------------------------------------------------------------------------------------------------------ what they say


def _beaten(results: Results) -> list[tuple[str, str, float, float]]:
    """Where a simple method pays less than the Tracker: stream, method, both ratios to the best step; worst first."""
    found = ratios_of(part(results, "run"))
    ours = found["Tracker"]
    simple = {name: found[name] for name in (*SIMPLE, "SOGD") if name in found}
    simple[REFERENCE] = Ratios(dict.fromkeys(ours, 1.0))
    pairs = [
        (case, name, ours[case], value)
        for name, ratios in simple.items()
        for case, value in ratios.items()
        if ours[case] > MARGIN * value
    ]
    return sorted(pairs, key=lambda pair: pair[3] / pair[2])


def _found(results: Results) -> dict[str, tuple[float, str]]:
    """The values to compare with the targets, and their streams."""
    usual, calm = ratios_of(part(results, "run")), ratios_of(part(results, CALM))["Tracker"]
    bank = over_bank(part(results, squared.GROUP))["Tracker"]
    ours, blind = usual["Tracker"], sized(usual["Tracker, no values"])
    values = ((ours[ours.high], ours.high), (ours.middle, ""), (blind[blind.high], blind.high),
              (calm[calm.high], calm.high), (calm.middle, ""), (bank[bank.high], bank.high),
              (bank.middle, ""))  # fmt: skip
    return dict(zip(TARGETS, values, strict=True))


def _over_draws(draws: Mapping[str, list[float]]) -> dict[str, Any]:
    """How many draws, the largest ratio, its stream, and the geometric mean of each draw over streams."""
    worst, where = max((max(values), case) for case, values in draws.items())
    means = [Ratios(zip(draws, column, strict=True)).middle for column in zip(*draws.values(), strict=True)]
    return {"count": len(means), "worst": worst, "where": where, "low": min(means), "high": max(means)}


def remarks(results: Results) -> dict[str, Any]:
    """The numbers of the page's sentences."""
    rows = part(results, "run")
    found, beaten = ratios_of(rows), _beaten(results)
    edges = [row["case"] for row in rows if row["method"] == REFERENCE and abs(row["step"]) == 20]
    others = {
        name: ratios for name, ratios in found.items() if name not in TRACKERS and len(ratios) == len(found["Tracker"])
    }
    example = {row["method"]: row["total_loss"] for row in part(results, "pynol")}  # of the longest
    lengths = {row["case"]: row["rounds"] for row in rows}
    return {
        "streams": {case: f"{CASES[case].about}; {n:,} rounds" for case, n in lengths.items()},
        "missing": [name for name in CASES if name not in found["Tracker"]],
        "ours": found["Tracker"],
        "ends": found["Tracker"].ends(ratio),
        "runner_up": min(others, key=lambda name: others[name].middle),
        "second": min(others.values(), key=lambda ratios: ratios.middle),
        "safest": min((ratios[ratios.high], name) for name, ratios in others.items()),
        "beaten": sorted({case for case, *_ in beaten}),
        "persistence": sorted({case for case, name, *_ in beaten if name == "persistence"}),
        "edges": edges,
        "met": sum(value <= TARGETS[what] for what, (value, _) in _found(results).items()),
        "targets": len(TARGETS),
        "draws": {where: _over_draws(_draws(results, where, "Tracker")) for where in ("", CALM)},
        "example": example["Tracker"] / example[REFERENCE],
    }  # fmt: skip
