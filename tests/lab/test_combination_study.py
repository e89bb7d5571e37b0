"""The study of combination runs at small size; its peers are what their formulas say, and it tells what it found."""

import numpy as np
import pytest
from thalweg.lab.studies.combination import panels, peers, report, runs
from thalweg.lab.studies.combination.study import SIZES, STUDY, Size, available, plan

from tests.estimators.test_aggregator import opera_python, stream
from tests.lab.reports import check_report

FEW = Size(("calm", "short"), 2, 120, ())


@pytest.mark.parametrize(("name", "rule"), [("BOA, opera-python", "BOA"), ("ML-Poly, opera-python", "MLpol")])
def test_peers_of_opera_python(name, rule):
    X, y, _ = stream(T=200)
    np.testing.assert_allclose(peers.play(name, X, np.ones_like(X), y, 1), opera_python(X, y, rule), rtol=1e-9)


def calibrated(X, y, alphas):
    """The share with the parameters that have lost least so far: everything is replayed in every round."""

    def whole(eta, alpha, t):
        """Loss in the rounds before t, and the weights in round t."""
        w, lost = np.full(X.shape[1], 1 / X.shape[1]), 0.0
        for k in range(t):
            p = w @ X[k]
            lost += (p - y[k]) ** 2
            v = w * np.exp(eta * 2 * (p - y[k]) * (p - X[k]))
            w = alpha / len(w) + (1 - alpha) * v / v.sum()
        return lost, w

    grid, said, best = [0], [], (0, alphas[len(alphas) // 2])
    for t in range(len(y)):
        said.append(whole(2.0 ** best[0], best[1], t)[1] @ X[t])
        lost = {(e, alpha): whole(2.0**e, alpha, t + 1)[0] for e in grid for alpha in alphas}
        best = min(lost, key=lost.__getitem__)
        first = [grid[0] - k for k in (3, 2, 1)] if best[0] == grid[0] else []
        grid = [*first, *grid, *([grid[-1] + k for k in (1, 2, 3)] if best[0] == grid[-1] else [])]
    return np.array(said)


@pytest.mark.parametrize(("name", "alphas"), [("EWA, OPERA", [0.0]), ("fixed share, OPERA", [1e-4, 1e-3, 1e-2, 1e-1])])
def test_peers_that_calibrate(name, alphas):
    X, y, _ = stream(T=25, K=3)
    X, y = X / 4, y / 4
    np.testing.assert_allclose(peers.play(name, X, np.ones_like(X), y, 1), calibrated(X, y, alphas), rtol=1e-9)


def test_peers_take_turns_where_answers_are_late_and_sleepers_have_no_weight():
    X, y, awake = stream(T=60, asleep=0.3)
    for name in peers.PEERS:
        late = peers.play(name, X, awake, y, 3)
        np.testing.assert_array_equal(
            late[1::3], peers.play(name, X[1::3].copy(), awake[1::3].copy(), y[1::3].copy(), 1)
        )
        hidden = np.where(awake > 0, X, 1e3)
        np.testing.assert_allclose(peers.play(name, hidden, awake, y, 1), peers.play(name, X, awake, y, 1))


def test_forecasts_know_only_what_was_known():
    z = np.random.default_rng(0).normal(size=400).cumsum()
    for late in (1, 7, 30):
        X, y = runs.forecasts(z, 24, late)
        t = 100
        later = z.copy()
        later[z.size - len(y) + t - late + 1 :] += 5
        np.testing.assert_array_equal(runs.forecasts(later, 24, late)[0][: t + 1], X[: t + 1])
        assert not np.array_equal(runs.forecasts(later, 24, late)[0][t + 1], X[t + 1])


@pytest.mark.parametrize("kind", panels.KINDS)
def test_experts_of_panels_know_only_what_was_known(kind):
    z, m = np.random.default_rng(0).normal(size=200).cumsum(), 6
    X, y = panels.KINDS[kind](z, m)
    later, t = z.copy(), 60
    later[z.size - len(y) + t :] += 5
    np.testing.assert_array_equal(panels.KINDS[kind](later, m)[0][: t + 1], X[: t + 1])
    assert not np.array_equal(panels.KINDS[kind](later, m)[0][t + 1], X[t + 1])
    assert np.isfinite(X).all()


def test_experts_of_panels_find_a_world_that_is_simple():
    z = np.zeros(400)
    for t in range(2, 400):
        z[t] = 1.6 * z[t - 1] - 0.8 * z[t - 2] + 0.01 * np.sin(t * t)
    assert np.abs(panels.autoregressive(z, (1, 2)) - z)[200:].max() < 0.02
    season = np.tile([1.0, 5.0, -2.0], 60)
    assert np.abs(panels.damped(season, 3, 0.2, 0.0, 0.1, 0.95) - season).max() < 1e-12
    np.testing.assert_allclose(panels.smoothed(np.array([2.0, 4.0, 0.0]), 0.5), [2.0, 2.0, 3.0])


def test_ratios_of_panels():
    rows = [{"series": "a", "kind": "simple", "half": "choose", "who": who, "rmse": 2.0} for who in panels.CONTENDERS]
    rows[0]["rmse"], rows[1]["rmse"] = 1.0, 0.5  # the Aggregator, and BOA
    assert panels.CONTENDERS[:2] == ["Aggregator", report.BOA]
    assert report.over(rows, [report.BOA]) == {("a", "simple"): 2.0}
    assert report.over(rows, [panels.HINDSIGHT]) == {("a", "simple"): 0.5}
    assert report._panels(rows).body[0][:5] == ["simple", "choose", "1", "2", "0"]


def test_the_report_says_what_the_runs_say(page, results):
    lines, text, _ = check_report(page, STUDY, results, "ratios")
    rows = [row | {"rmse": float(row["rmse"]), "rep": int(row["rep"])} for row in lines]
    assert len(rows) == len(plan(FEW)) == 2 * 3 * 2 * len(runs.CONTENDERS)
    here = [row for row in rows if row["variant"] == "as they are" and row["series"] == "calm"]
    ratios = []
    for rep in (0, 1):
        errors = {row["who"]: row["rmse"] for row in here if row["rep"] == rep}
        assert errors["best fixed weights"] < errors["best expert"] <= errors["the first expert"]
        ratios.append(errors["Aggregator"] / min(errors[who] for who in report.OPERA))
    mean = report.relative([row for row in rows if row["variant"] == "as they are"], "Aggregator")["calm"]
    assert mean == pytest.approx(np.sqrt(ratios[0] * ratios[1]))
    assert "Who combines forecasts best?" in text


def test_series_without_their_data_are_left_out(monkeypatch):
    from thalweg.errors import MissingExtraError

    def missing(module):
        raise MissingExtraError(module)

    runs.draw.cache_clear()
    monkeypatch.setattr(runs, "_need", missing)
    assert available(SIZES["usual"]).series == tuple(name for name, s in runs.SERIES.items() if not s.real)
    runs.draw.cache_clear()
