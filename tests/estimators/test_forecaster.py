"""The forecaster: never far behind the last value, no look-ahead, rows and runs the same, saved bit for bit."""

import copy
import pickle

import numpy as np
import pytest

import thalweg as tw
from thalweg.errors import InputError, StateError
from thalweg.estimators import Forecaster
from thalweg.estimators._linear import FreeModel
from thalweg.parts.linear import LinearLayout


def series(n=400, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    y = 50 + 5 * np.sin(t / 4) + 0.01 * t + 0.3 * rng.standard_normal(n)
    return y, np.c_[np.sin(t / 4 + 0.1), rng.standard_normal(n)]


def by_row(forecaster, y, rows):
    out = []
    for value, row in zip(y, rows, strict=True):
        out.append(forecaster.predict(row))
        forecaster.update(value)
    return np.array(out)


def make(**options):
    return Forecaster(("wave", "noise"), **({"lags": 4} | options))


@pytest.mark.parametrize(
    "options", [{}, {"lags": (2, 3, 24)}, {"lags": 0}, {"difference": True}, {"loss": "absolute"}, {"lags": 1}]
)
def test_runs_and_rows_are_the_same(options):
    y, rows = series()
    a, b = make(**options), make(**options)
    first, weights = a.run(y[:150], rows[:150])
    rest, _ = a.run(y[150:], rows[150:])
    assert np.array_equal(np.r_[first, rest], by_row(b, y, rows), equal_nan=True)
    assert np.isnan(first[0])
    assert np.isfinite(np.r_[first, rest][1:]).all()
    assert weights.shape == (150, 2)
    assert np.allclose(weights.sum(axis=1), 1)
    assert a.rounds == b.rounds == 400


@pytest.mark.parametrize("columns", [(), ("wave", "noise")])
def test_between_a_forecast_and_its_value_anything_may_happen(columns):
    """`update` uses the forecast that `predict` made, where it is still the right one."""
    y, rows = series(60)
    expected, _ = Forecaster(columns, lags=3).run(y, rows if columns else None)
    f, other, got = Forecaster(columns, lags=3), Forecaster(columns, lags=3), []
    for t, (value, row) in enumerate(zip(y, rows if columns else [None] * 60, strict=True)):
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


def test_it_is_what_the_equations_say():
    """(1) to (3) of the module, with the model's and the jury's answers taken from their own objects."""
    y, rows = series(60)
    f = make(lags=(1, 3))
    model = FreeModel(LinearLayout(4))  # the level, one step, two columns
    for t, (value, row) in enumerate(zip(y, rows, strict=True)):
        said = f.predict(row)
        if t >= 1:
            base = y[t - 1]
            x, at = [base], [1]
            if t >= 3:
                x, at = [base, base - y[t - 3]], [1, 2]
            x, at = np.array([[*x, *row]]), np.array([*at, 3, 4])
            if t >= 2:  # the model has learned something
                w = f.weights
                expected = w["last value"] * base + w["model"] * (base + model.predict(x, at)[0])
                assert said == pytest.approx(expected, rel=1e-12)
            else:
                assert said == base
            model.learn(x, np.array([value - base]), np.ones(1), at)
        f.update(value)


def test_what_comes_later_changes_nothing():
    y, rows = series()
    whole, _ = make().run(y, rows)
    for k in (1, 2, 57, 399):
        changed, other = y.copy(), rows.copy()
        changed[k:] = -1e6
        other[k + 1 :] = 1e6
        part, _ = make().run(changed, other)
        assert np.array_equal(part[: k + 1], whole[: k + 1], equal_nan=True)


@pytest.mark.parametrize("kind", ["walk", "constant", "jumps", "noise", "steep", "heavy", "tiny", "huge"])
def test_it_is_never_far_behind_the_last_value(kind):
    rng = np.random.default_rng(1)
    e = rng.standard_normal(1500)
    y = {
        "walk": np.cumsum(e),
        "constant": np.full(1500, 7.0),
        "jumps": np.repeat(rng.standard_normal(15) * 100, 100),
        "noise": e,
        "steep": np.exp(np.arange(1500) / 100),
        "heavy": np.cumsum(rng.standard_t(1.5, 1500)),
        "tiny": 1e-12 * np.cumsum(e),
        "huge": 1e12 + 1e9 * np.cumsum(e),
    }[kind]
    said, _ = Forecaster(lags=8).run(y)
    assert np.isfinite(said[1:]).all()
    free = (np.diff(y) ** 2).sum()
    assert ((y - said)[1:] ** 2).sum() <= 1.05 * free + 1e-9


def test_it_gains_where_there_is_something_to_gain():
    y, rows = series(2000)
    said, _ = make(lags=8).run(y, rows)
    assert ((y - said)[1:] ** 2).sum() < 0.3 * (np.diff(y) ** 2).sum()
    assert make(lags=8).weights["last value"] == pytest.approx(0.8)


@pytest.mark.parametrize("power", [-30, 20])
def test_units_do_not_matter(power):
    y, rows = series()
    a, _ = make().run(y, rows)
    b, _ = make().run(y * 2.0**power, rows * 2.0**-power)
    assert np.array_equal(a * 2.0**power, b, equal_nan=True)


@pytest.mark.parametrize(("columns", "lags"), [(510, 2), (511, 2), (6_000, 1), (0, 100_000)])
def test_many_columns_and_long_lags_take_memory_in_proportion(columns, lags):
    names, rng = [f"c{k}" for k in range(columns)], np.random.default_rng(0)
    forecaster = Forecaster(names, lags=lags)
    features = columns + lags
    assert (len(forecaster._memory.state.model.guests.B) > 0) == (features <= 512)
    if features > 512:
        assert forecaster._memory.block.memory.nbytes < 300 * features
    X, y = rng.standard_normal((3, columns)), rng.standard_normal(3)
    assert np.isfinite(forecaster.run(y, X)[0][1:]).all()


@pytest.mark.parametrize("at", [0, 1, 3, 100, 399])
def test_saved_and_continued(tmp_path, at):
    y, rows = series()
    whole, _ = make().run(y, rows)
    f = make()
    f.run(y[:at], rows[:at])
    if at < 400:
        f.predict(rows[at])  # a question that is open
    f.save(tmp_path / "f.npz")
    restored = make()
    restored.restore(f.state())
    for other in (tw.load(tmp_path / "f.npz"), pickle.loads(pickle.dumps(f)), copy.deepcopy(f), restored):
        assert np.array_equal(other.run(y[at:], rows[at:])[0], whole[at:], equal_nan=True)
    assert "rounds played" in repr(f)


def test_states_that_do_not_fit_are_refused():
    y, rows = series(50)
    f = make()
    f.run(y, rows)
    before, saved = f.run(y[:0], rows[:0]), f.state()
    del before
    for key, value in {
        "past": np.full(4, 1e200),
        "jury.weights": np.array([0.9, 0.9]),
        "clock": np.array([3, 0]),
        "model.clock": saved["model.clock"] + 7,
        "row": np.zeros(3),
    }.items():
        with pytest.raises(StateError):
            f.restore(saved | {key: value})
    with pytest.raises(StateError, match="saved with lags"):
        make(lags=5).restore(saved)
    assert np.array_equal(f.state()["past"], saved["past"])


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: Forecaster(lags=0), "needs lags of the series, or columns"),
        (lambda: Forecaster(("a", "a")), "a list of different names"),
        (lambda: Forecaster("abc"), "'columns' parameter"),
        (lambda: Forecaster(lags=-1), "'lags' parameter"),
        (lambda: Forecaster(lags=(1, 1)), "different whole numbers"),
        (lambda: Forecaster(lags=1.5), "'lags' parameter"),
        (lambda: Forecaster(lags=True), "'lags' parameter"),
        (lambda: Forecaster(loss="log"), "'loss' parameter"),
        (lambda: Forecaster(difference=1), "'difference' parameter"),
        (lambda: make().predict({"wave": 1.0}), "row has no column 'noise'"),
        (lambda: make().predict([1.0]), r"row must have the columns \['wave', 'noise'\]"),
        (lambda: make().predict([1.0, np.nan]), "the column 'noise' must be a number"),
        (lambda: make().predict(), "row must have the columns"),
        (lambda: make().update(1.0), "call predict"),
        (lambda: Forecaster().update(np.inf), "a value must be a number"),
        (lambda: Forecaster().update("x"), "a value must be a number"),
        (lambda: make().run([1.0, 2.0], [[1.0, 2.0]]), "'rows' parameter"),
        (lambda: make().run([1.0, np.nan], np.zeros((2, 2))), "'values' parameter"),
    ],
)
def test_bad_input_is_told(call, told):
    with pytest.raises(InputError, match=told):
        call()


def test_a_refused_call_changes_nothing():
    y, rows = series(80)
    f = make()
    f.run(y, rows)
    before = f.state()
    for call in (lambda: f.update(np.nan), lambda: f.run([1.0, np.inf], np.zeros((2, 2))), lambda: f.predict([1.0])):
        with pytest.raises(InputError):
            call()
    after = f.state()
    assert all(np.array_equal(before[key], after[key]) for key in before)
