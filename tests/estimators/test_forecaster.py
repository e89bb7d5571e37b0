"""The forecaster: its twin, no look-ahead, runs and rows the same, saved bit for bit, finite always, little trouble."""

import copy
import logging

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tests.estimators.common import refused
from tests.twins.forecast import Forecaster as Twin
from thalweg.errors import InputError
from thalweg.estimators import Forecaster
from thalweg.estimators._linear import FreeModel
from thalweg.parts.linear import LinearLayout

T, H = 150, 9
TIMES = np.arange(T)


def worlds():
    """Series of each kind, by name."""
    rng = np.random.default_rng(0)
    e = rng.standard_normal(T)
    season = 30 + 5 * np.sin(2 * np.pi * TIMES / 6) + e
    gaps = np.where(rng.random(T) < 0.15, np.nan, season)
    gaps[60:75] = np.nan
    outliers = season.copy()
    outliers[[50, 90, 120]] += [80.0, -60.0, 100.0]
    strike = season + 4000.0 * ((TIMES > 10) & (TIMES < 14))  # from the end of the second season on
    levels = season + np.repeat(80 * rng.standard_normal(10), 15)
    return {
        "season": season,
        "trend": season + 0.3 * TIMES,
        "products": np.exp(season / 10),
        "gaps": gaps,
        "outliers": outliers,
        "shift": season + 60.0 * (TIMES > 70),
        "strike": strike,
        "levels": levels,
        "levels and gaps": np.where(np.isnan(gaps), np.nan, levels),
        "counts": rng.poisson(1.0, T) * 1.0,
        "both signs": season - 30,
        "no longer positive": np.where(TIMES < 80, season, season - 25),
        "begins late": np.where(TIMES < 5, np.nan, season),
        "walk": np.cumsum(e),
    }


WORLDS = worlds()
every = pytest.mark.parametrize("world", WORLDS)
OPTIONS = {
    "one season": ({"season": 6}, {"season": (6,)}),
    "none": ({"season": None}, {}),
    "found": ({}, {"search": True}),
    "two": (
        {"season": (2, 6), "loss": "absolute", "lags": (1, 3)},
        {"season": (2, 6), "squared": False, "lags": (1, 3)},
    ),
}


def forecaster(**options):
    return Forecaster(**({"horizon": H, "levels": (0.5, 0.9)} | options))


def by_row(model, y, rows=None):
    """Forecasts by hand: the mean and all ends of intervals (T, 1 + 2 V, H)."""
    out = []
    for t, value in enumerate(y):
        said = model.forecast(None if rows is None else rows[t : t + model.horizon])
        model.update(value)
        out.append([said.mean, *said.lower.values(), *said.upper.values()])
    return np.array(out)


def stacked(run):
    return np.stack([run.mean, *run.lower.values(), *run.upper.values()], axis=1)


# -------------------------------------------------------------------------------------------------------- the equations


@pytest.mark.parametrize("options", OPTIONS)
@every
def test_it_is_its_twin(world, options):
    y, (mine, theirs) = WORLDS[world], OPTIONS[options]
    model, twin = forecaster(**mine), Twin(horizon=H, levels=(0.5, 0.9), **theirs)
    run, size = model.run(y), np.nanmax(np.abs(y))
    for t, value in enumerate(y):
        mean, half = twin.forecast()
        np.testing.assert_allclose(run.mean[t], mean, rtol=0, atol=1e-9 * size)
        for level in (0.5, 0.9):
            np.testing.assert_allclose(run.upper[level][t], mean + half[level], rtol=0, atol=1e-9 * size)
            np.testing.assert_allclose(run.lower[level][t], mean - half[level], rtol=0, atol=1e-9 * size)
        twin.update(value)
    assert model.found == twin.found
    assert model.changes == twin.changes


def test_the_worlds_have_everything_that_the_twin_is_about():
    found, changed = forecaster(), forecaster(season=6)
    found.run(WORLDS["season"])
    changed.run(WORLDS["levels"])
    assert found.found == (6,)
    assert len(changed.changes) > 1


def test_columns_are_a_candidate():
    """(1) of `thalweg.parts.forecast.columns`, with the model's answers taken from its own object."""
    rng = np.random.default_rng(1)
    rows, y = rng.standard_normal((60, 2)), np.zeros(60)
    for t in range(1, 60):
        y[t] = 0.5 * y[t - 1] + rows[t] @ [2.0, -1.0] + 0.1 * rng.standard_normal()
    f, model = Forecaster(("a", "b"), lags=(1, 3), season=None), FreeModel(LinearLayout(4))
    for t in range(60):
        f.predict(rows[t])
        if t > 1 and f.weights["columns"] > 0.999999:  # nobody else has a say
            x, at = _design(y, rows, t)
            assert f.predict(rows[t]) == pytest.approx(y[t - 1] + model.predict(x, at)[0], rel=1e-6)
        f.update(y[t])
        if t > 0:
            x, at = _design(y, rows, t)
            model.learn(x, np.array([y[t] - y[t - 1]]), np.ones(1), at)
    assert f.weights["columns"] > 0.999999


def _design(y, rows, t):
    steps = [y[t - 1] - y[t - 3]] if t >= 3 else []
    return np.array([[y[t - 1], *steps, *rows[t]]]), np.array([1, *([2] if steps else []), 3, 4])


def test_a_column_that_is_not_known_is_left_out():
    rng = np.random.default_rng(2)
    x = rng.standard_normal(400)
    f = Forecaster(("x",), season=None)
    y = 10 + x + 0.01 * rng.standard_normal(400)
    rows = np.where(np.arange(400) % 5 == 4, np.nan, x)[:, None]
    said = f.run(y, rows).mean[:, 0]
    known = ~np.isnan(rows[200:, 0])
    assert np.isfinite(said[1:]).all()
    assert np.abs(said - y)[200:][known].mean() < 0.1
    assert f.predict([None]) == f.predict({"x": np.nan})


# ------------------------------------------------------------------------------------ rows, runs and files: bit for bit


@pytest.mark.parametrize("options", OPTIONS)
@every
def test_runs_and_rows_are_the_same(world, options):
    """So a run knows nothing of later values."""
    y, (mine, _) = WORLDS[world], OPTIONS[options]
    one, two = forecaster(**mine), forecaster(**mine)
    whole = stacked(one.run(y))
    assert np.array_equal(whole, by_row(two, y), equal_nan=True)
    assert one.rounds == two.rounds == T
    for k in (0, 2, 30, 31, 67, 149):  # 67: in the middle of a gap
        parts = forecaster(**mine)
        first = stacked(parts.run(y[:k]))
        assert np.array_equal(np.concatenate([first, stacked(parts.run(y[k:]))]), whole, equal_nan=True)
    assert np.isfinite(whole[~np.isnan(y).cumprod().astype(bool)][1:, 0]).all()


def test_rows_with_columns():
    """A forecast knows the columns of the rounds that it is for, and none of later ones."""
    rng = np.random.default_rng(4)
    y, rows = WORLDS["gaps"], rng.standard_normal((T + H - 1, 2))
    for options in ({}, {"loss": "absolute", "season": 6}):
        run = forecaster(columns=("a", "b"), **options).run(y, rows[:T])
        out = by_row(forecaster(columns=("a", "b"), **options), y, rows)
        known = T - H + 1  # after that, columns of later rounds were not given
        assert np.array_equal(stacked(run)[:known], out[:known], equal_nan=True)


@every
def test_it_goes_on_from_every_state_that_a_run_leaves(world):
    """Also in the middle of a gap, after an outlier, and before a test for seasons."""
    f, other, said = forecaster(), forecaster(), []
    for value in WORLDS[world]:
        said.append(f.predict())
        other.restore(f.state())
        f, other = other, f
        f.update(value)
    assert np.array_equal(said, forecaster().run(WORLDS[world]).mean[:, 0], equal_nan=True)


@pytest.mark.parametrize("columns", [(), ("a", "b")])
def test_between_a_forecast_and_its_value_anything_may_happen(columns):
    y, rows = WORLDS["gaps"][:70], np.random.default_rng(5).standard_normal((70, 2))
    make = lambda: Forecaster(columns, lags=3)  # noqa: E731
    expected = make().run(y, rows if columns else None).mean[:, 0]
    f, other, got = make(), make(), []
    for t, (value, row) in enumerate(zip(y, rows if columns else [None] * 70, strict=True)):
        saved = f.state()
        if t % 7 == 6 and not columns:  # nothing is asked
            f.update(value)
            got.append(expected[t])
            continue
        if t % 6 == 1:  # other columns, or none were asked for
            f.predict(-row if columns else None)
        got.append(f.predict(row))
        if t % 6 == 2:
            f = copy.deepcopy(f)
        elif t % 6 == 3:
            other.predict(row)
            other.restore(f.state())
            f, other = other, f
        elif t % 6 == 4:  # another round is played, and undone
            f.update(-value)
            f.restore(saved)
            f.predict(row)
        elif t % 6 == 5 and not columns:
            f.restore(saved)  # which was not asked
        f.update(value)
    assert np.array_equal(got, expected, equal_nan=True)


# --------------------------------------------------------------------------------------------------- units and extremes


@pytest.mark.parametrize("power", [-60, 40])
@pytest.mark.parametrize("options", OPTIONS)
@every
def test_units_do_not_matter(world, options, power):
    """Exactly where no logarithm takes part: a series with both signs from the first values on."""
    y, (mine, _) = WORLDS[world], OPTIONS[options]
    one, two = forecaster(**mine), forecaster(**mine)
    a, b = stacked(one.run(y)) * 2.0**power, stacked(two.run(y * 2.0**power))
    if world in ("both signs", "walk", "counts") and min(y[:2]) <= 0:
        assert np.array_equal(a, b, equal_nan=True)
    np.testing.assert_allclose(b, a, rtol=0, atol=1e-9 * np.nanmax(np.abs(y)) * 2.0**power)
    assert one.changes == two.changes
    assert one.found == two.found


def extremes():
    rng = np.random.default_rng(6)
    signs, share = np.sign(rng.standard_normal(T)), rng.random(T)
    return {
        "constant": np.full(T, 7.0),
        "zeros": np.zeros(T),
        "rare counts": rng.poisson(0.2, T) * 1.0,
        "all missing": np.full(T, np.nan),
        "missing at first": np.where(TIMES < 100, np.nan, share),
        "one long gap": np.where((TIMES > 20) & (TIMES < 140), np.nan, share),
        "one value": np.where(TIMES == 3, 5.0, np.nan),
        "huge": 1e100 * signs,
        "huge, positive": 1e100 * share,
        "huge, missing": np.where(share < 0.4, np.nan, 1e100 * signs),
        "huge in turn": 1e100 * np.where(TIMES % 2, 1.0, -1.0),
        "tiny": 1e-300 * share,
        "tiny at last": np.where(TIMES < 75, 1e100, 1e-300) * share,
        "huge at last": np.where(TIMES < 75, 1e-300, 1e100) * share,
        "changes sign": np.where(TIMES < 75, 1e100, -1e100) * share,
        "grows": 10.0 ** (TIMES - 60.0),
        "steps": np.repeat([1.0, 1e50, -1e90, 1e100, 1.0], 30),
        "spikes": np.where(TIMES % 20 == 19, 1e100, 1.0) * share,
        "a line": 6e97 * TIMES,
        "below the smallest": 1e-320 * share,
    }


EXTREMES = extremes()


@pytest.mark.parametrize("columns", [(), ("a",)])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("world", EXTREMES)
def test_it_is_finite_always(world, options, columns):
    y, f = EXTREMES[world], forecaster(columns=columns, **OPTIONS[options][0])
    rows = np.sin(TIMES)[:, None] * 1e100 ** (TIMES[:, None] % 2) if columns else None
    run = f.run(y, rows)
    values = np.r_[0, np.cumsum(~np.isnan(y))[:-1]]
    assert np.isfinite(run.mean[values > 0]).all()
    assert np.isnan(run.mean[values == 0]).all()
    some = np.isfinite(run.lower[0.9])
    assert np.array_equal(some, np.isfinite(run.upper[0.9]))
    assert some[values > 2 * H][:, 0].all()
    assert (run.lower[0.9][some] <= run.lower[0.5][some]).all()
    assert (run.lower[0.5][some] <= run.upper[0.5][some]).all()
    assert (run.upper[0.5][some] <= run.upper[0.9][some]).all()
    f.clone().restore(f.state())


def test_a_constant_and_a_line_are_forecast():
    """The next value of a line exactly, later ones to one step of it."""
    assert np.array_equal(forecaster().run(np.full(60, 3.0)).mean[1:], np.full((59, H), 3.0))
    line = forecaster(season=None).run(2.0 * TIMES)
    away = np.abs(line.mean - 2.0 * (TIMES[:, None] + np.arange(H)))[50:]
    assert away[:, 0].max() < 1e-3
    assert away.max() < 2.0


# -------------------------------------------------------------------------------------------------------------- trouble

LONG = 600


def stream(kind, seed):
    """A series of 600 values: (values, its season)."""
    rng, t = np.random.default_rng([seed, len(kind)]), np.arange(LONG)
    e, wave = rng.standard_normal(LONG), np.sin(2 * np.pi * t / 12)
    if kind == "season":
        return 100 + 10 * wave + 5 * np.cos(2 * np.pi * t / 6) + e, 12
    if kind == "trend":
        return 50 + 0.1 * t + 10 * wave + e, 12
    if kind == "walk":
        return 200 + np.cumsum(e), None
    return 10 + e, None  # noise


def errors(y, season, use):
    """Root mean square errors one and H steps ahead of the values in `use`, from row 100 on."""
    return sizes(Forecaster(season=season, horizon=H).run(y).mean, y, use)


def sizes(mean, truth, use):
    found = []
    for h in (1, H):
        e = (truth[h - 1 :] - mean[: LONG - h + 1, h - 1])[100:][use[h - 1 :][100:]]
        found.append(np.sqrt(np.mean(e**2)))
    return np.array(found)


def outliers(y, size, rng):
    at = 150 + 130 * np.arange(3) + rng.integers(100)
    y = y.copy()
    y[at] += size * rng.choice([-1, 1], 3)
    return y, ~np.isin(np.arange(LONG), at)


def shift(y, size, rng):
    """Those that were forecast before the new level was there, and its first two values, are left out."""
    near = np.arange(LONG)
    return y + size * (near >= 300), (near < 300) | (near > 301 + H)


def blocks(y, size, rng):
    gone = np.zeros(LONG, dtype=bool)
    while gone.mean() < 0.3:
        gone[(first := rng.integers(40, LONG - 30)) : first + rng.integers(5, 25)] = True
    return np.where(gone, np.nan, y), ~gone


def at_random(y, size, rng):
    gone = rng.random(LONG) < 0.2
    return np.where(gone, np.nan, y), ~gone


ALL = np.ones(LONG, dtype=bool)
BEYOND = {("trend", "blocks"): 1.15}  # at H steps 1.107 over 40 seeds, with a standard error of 0.009
TROUBLE = {"outliers": outliers, "shift": shift, "at random": at_random, "blocks": blocks}


def best_errors(y, kind, use):
    """As `errors`, of the best forecasts by someone who knows the kind of the process, and all but its coefficients.

    That is the last value of a walk, and for the others least squares: a Kalman filter without any noise of the state.
    """
    t, mean = np.arange(LONG + H), np.zeros((LONG, H))
    waves = [wave(2 * np.pi * t / m) for m in (12, 6) for wave in (np.sin, np.cos)]
    columns = {"season": waves, "trend": [*waves, t / LONG]}.get(kind, [])
    X = np.column_stack([t**0, *columns])
    A, c, last = 1e-9 * np.eye(X.shape[1]), np.zeros(X.shape[1]), 0.0
    for now in range(LONG):
        mean[now] = last if kind == "walk" else X[now : now + H] @ np.linalg.solve(A, c)
        if not np.isnan(y[now]):
            A, c, last = A + np.outer(X[now], X[now]), c + X[now] * y[now], y[now]
    return sizes(mean, y, use)


@pytest.mark.parametrize("trouble", TROUBLE)
@pytest.mark.parametrize("kind", ["season", "trend", "walk", "noise"])
@pytest.mark.parametrize("seeds", [2, pytest.param(12, marks=pytest.mark.slow)])
def test_trouble_costs_little(kind, trouble, seeds):
    """At most 1.1 of the errors without it, but for `BEYOND`. Gaps cost the best forecasts something too, for a walk up
    to 1.26: that is not counted.
    """
    found = []
    for seed in range(seeds):
        y, season = stream(kind, seed)
        changed, use = TROUBLE[trouble](y, 100.0, np.random.default_rng(seed))
        found.append(np.log(errors(changed, season, use) / errors(y, season, use)))
        if np.isnan(changed).any():
            found[-1] -= np.log(best_errors(changed, kind, use) / best_errors(y, kind, use))
    assert np.exp(np.mean(found, axis=0)).max() <= BEYOND.get((kind, trouble), 1.1)


@pytest.mark.parametrize("kind", ["season", "trend", "walk", "noise"])
def test_seasons_that_are_wrong_cost_nothing(kind):
    found = []
    for seed in range(2):
        y, season = stream(kind, seed)
        true = errors(y, season, ALL)
        if season is None:
            found += [errors(y, 12, ALL) / true, errors(y, "auto", ALL) / true]
        else:
            found += [errors(y, (7, season), ALL) / true, errors(y, "auto", ALL) / true]
            found += [errors(y, 7, ALL) / errors(y, None, ALL)]
    assert np.max(found) <= 1.1


def test_intervals_cover():
    found = []
    for seed in range(3):
        y, _ = stream("season", seed)
        run = Forecaster(season=12, horizon=H, levels=(0.8, 0.95)).run(y)
        for level in (0.8, 0.95):
            for h in (1, H):
                low, high = (side[level][100 : LONG - h + 1, h - 1] for side in (run.lower, run.upper))
                found.append(np.mean((low <= y[99 + h :]) & (y[99 + h :] <= high)) - level)
    assert np.abs(np.mean(np.reshape(found, (3, 4)), axis=0)).max() < 0.03


def test_intervals_cover_at_far_horizons_when_errors_shrink():
    """Most of the scores are too large for a long time; the misses at that horizon correct it."""
    found, t = [], np.arange(1200)
    for seed in range(3):
        e = np.where(t < 400, 10.0, 1.0) * np.random.default_rng(seed).standard_normal(t.size)
        y = 100 + 10 * np.sin(2 * np.pi * t / 24) + e
        run = Forecaster(season=24, horizon=24, levels=(0.8,)).run(y)
        low, high = (side[0.8][100 : t.size - 23, -1] for side in (run.lower, run.upper))
        found.append(np.mean((low <= y[123:]) & (y[123:] <= high)))
    assert abs(np.mean(found) - 0.8) < 0.02


def test_a_few_huge_errors_do_not_widen_intervals_of_lower_levels():
    """A tenth of the values are far away for a while; most scores are as before, and so is their quantile."""
    wide, t = [], np.arange(700)
    for far in (0.0, 1000.0):
        rng = np.random.default_rng(0)
        y = 100 + 10 * np.sin(2 * np.pi * t / 12) + rng.standard_normal(t.size)
        y[(t > 300) & (t < 400) & (rng.random(t.size) < 0.1)] += far
        run = Forecaster(season=12, horizon=1, levels=(0.8,)).run(y)
        wide.append(np.median((run.upper[0.8] - run.lower[0.8])[401:440, 0]))
    assert wide[1] < 2.0 * wide[0]


def test_changes_are_told(caplog):
    y, told = WORLDS["shift"], []
    f = forecaster(season=6)
    f.on_change = lambda who, when: told.append((who is f, when))
    with caplog.at_level(logging.INFO, "thalweg.forecaster"):
        for value in y:
            f.update(value)
    assert f.changes == [73]  # the second value of the new level
    assert told == [(True, 73)]
    assert "evident in round 73" in caplog.text
    other = forecaster(season=6)
    other.run(y)
    assert other.changes == [73]


# ----------------------------------------------------------------------------------------------------- states and input


def test_a_state_is_small():
    assert Forecaster(season=24, horizon=24, levels=(0.8, 0.95))._memory.block.memory.nbytes <= 50_000


def wave(**options):
    return Forecaster(("wave", "noise"), **options)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: Forecaster(lags=0), "'lags' parameter"),
        (lambda: Forecaster(("a", "a")), "a list of different names"),
        (lambda: Forecaster("abc"), "'columns' parameter"),
        (lambda: Forecaster(lags=True), "'lags' parameter"),
        (lambda: Forecaster(lags="many"), "'lags' parameter"),
        (lambda: Forecaster(loss="log"), "'loss' parameter"),
        (lambda: Forecaster(season=0), "'season' parameter"),
        (lambda: Forecaster(season="hourly"), "'season' parameter"),
        (lambda: Forecaster(season=(7, 7)), "'season' parameter"),
        (lambda: Forecaster(season=True), "'season' parameter"),
        (lambda: Forecaster(horizon=0), "'horizon' parameter"),
        (lambda: Forecaster(levels=(90,)), "'levels' parameter"),
        (lambda: Forecaster(levels=(0.9, 0.9)), "'levels' parameter"),
        (lambda: Forecaster(levels="90"), "'levels' parameter"),
        (lambda: Forecaster(levels=(0.8,)).forecast(levels=(0.9,)), r"Build it with levels=\(0.9,\)"),
        (lambda: Forecaster().forecast([[1.0]]), "takes X only with columns"),
        (lambda: wave().forecast(), "needs 'X'"),
        (lambda: wave(horizon=2).forecast([[1.0, 2.0]]), r"shape \(2, 2\)"),
        (lambda: wave().predict({"wave": 1.0}), "row has no column 'noise'"),
        (lambda: wave().predict([1.0]), r"row must have the columns \['wave', 'noise'\]"),
        (lambda: wave().predict([1.0, np.inf]), "the column 'noise' must be a number"),
        (lambda: wave().predict([1.0, "x"]), "the column 'noise' must be a number"),
        (lambda: wave().predict(), "row must have the columns"),
        (lambda: wave().update(1.0), "call predict"),
        (lambda: Forecaster().update(np.inf), "a value must be a number"),
        (lambda: Forecaster().update(2e100), "a value must be a number"),
        (lambda: Forecaster().update("x"), "a value must be a number"),
        (lambda: wave().run([1.0, 2.0], [[1.0, 2.0]]), r"'rows' of shape \(2, 2\)"),
        (lambda: wave().run([1.0, 2.0]), "needs 'rows'"),
        (lambda: wave().run([1.0, 2.0], [[1.0, 2.0], [1.0, 1e101]]), "row 1, column 'noise'"),
        (lambda: Forecaster().run([1.0, np.inf]), r"values\[1\] is inf"),
        (lambda: Forecaster().run([[1.0]]), r"Got shape \(1, 1\)"),
        (lambda: Forecaster().run("abc"), "needs 'values'"),
        (lambda: Forecaster().run([1.0, "x"]), "needs 'values'"),
    ],
)
def test_bad_input_is_told(call, told):
    with pytest.raises(InputError, match=told) as error:
        call()
    assert "\n" not in str(error.value)


def test_a_refused_call_changes_nothing():
    f = wave()
    f.run(WORLDS["season"], np.ones((T, 2)))
    for call in (
        lambda: f.update(np.inf),
        lambda: f.run([1.0, np.inf], np.zeros((2, 2))),
        lambda: f.predict([1.0]),
        lambda: f.forecast(np.ones((3, 2))),
    ):
        with refused(f):
            call()


@pytest.mark.parametrize("missing", [None, np.nan, np.float32("nan")])
def test_missing_values_by_any_name(missing):
    one, two = forecaster(), forecaster()
    y = [1.0, 2.0, missing, 4.0] * 5
    for value in y:
        one.update(value)
    run = two.run(y)
    assert np.array_equal(one.forecast().mean, two.forecast().mean)
    assert np.isfinite(run.mean[1:]).all()


def test_a_forecast_as_a_frame():
    f = forecaster(horizon=3, levels=(0.8, 0.95))
    f.run(WORLDS["season"])
    said = f.forecast()
    frame = said.to_frame()
    assert frame.columns == ["step", "thalweg", "thalweg-lo-80", "thalweg-hi-80", "thalweg-lo-95", "thalweg-hi-95"]
    assert np.array_equal(frame["thalweg"].to_numpy(), said.mean)
    assert np.array_equal(frame["thalweg-hi-95"].to_numpy(), said.upper[0.95])
    assert list(f.forecast(levels=(0.95,)).lower) == [0.95]
    assert (said.answers == [149, 148, 147]).all()
    assert sum(f.weights.values()) == pytest.approx(1.0)
    assert f.run(WORLDS["season"]).weights.shape == (T, len(f.candidates))


@pytest.mark.parametrize(("rows", "message"), [
    (pl.LazyFrame({"a": [1.0, 2, 3]}), r"needs 'rows' of shape \(3, 1\). Got <LazyFrame"),
    (pl.DataFrame({"a": ["1", "2", "x"]}), r"rows\['a'\] must hold numbers. Its type is String"),
    (pd.DataFrame({"a": pd.date_range("2020", periods=3)}), r"rows\['a'\] must hold numbers. Its type is Datetime"),
    (pd.DataFrame({"b": [1.0, 2, 3]}), "rows has no column 'a'. Its columns are b"),
    (pd.DataFrame([[1, 2]] * 3, columns=["a", "a"]), "rows has two columns called 'a'"),
    (pd.DataFrame({"a": [1.0, np.inf, 3]}), r"rows\['a'\] has inf in row 1"),
    (pd.DataFrame({"a": [1.0, 1e200, 3]}), "'rows' has 1e.200 in row 1"),
])  # fmt: skip
def test_frames_that_do_not_fit_are_refused(rows, message):
    """A lazy frame warns where it is asked for its columns, and warnings are errors."""
    forecaster = Forecaster(["a"], lags=2)
    with pytest.raises(InputError, match=message):
        forecaster.run([1.0, 2, 3], rows)
    assert forecaster.rounds == 0


def test_columns_of_a_frame_are_found_by_name():
    run = Forecaster(["a", "b"], lags=2).run([1.0, 2, 3], [[1, 4], [np.nan, 5], [3, 6]])
    cells = {"b": [4, 5, 6], "day": ["x", "y", "z"], "a": [1, None, 3]}
    for frame in (pl.DataFrame(cells), pd.DataFrame(cells | {"a": pd.array([1, None, 3], dtype="Int64")})):
        found = Forecaster(["a", "b"], lags=2).run([1.0, 2, 3], frame)
        assert np.array_equal(found.mean, run.mean, equal_nan=True)
