"""The forecaster for river: its own checks, the same numbers as `Forecaster`, features that come and go."""

import copy
import datetime

import numpy as np
import pytest
from river import base, checks, datasets, metrics, time_series

from tests.estimators.common import refused
from tests.hostile import Rude
from thalweg.estimators import Forecaster, TrackingForecaster

try:
    from river.evaluate import evaluate
except ImportError:
    from river.time_series import evaluate

PASSENGERS = [y for _, y in datasets.AirlinePassengers()]


@pytest.mark.parametrize("check", list(checks.yield_checks(TrackingForecaster())), ids=lambda check: check.__name__)
def test_what_river_asks_of_a_forecaster(check):
    check(TrackingForecaster().clone())


def test_it_skips_none_of_them():
    assert isinstance(TrackingForecaster(), base.Estimator)
    assert not TrackingForecaster()._unit_test_skips()


def test_it_is_the_forecaster():
    model, other = TrackingForecaster(horizon=6, season=12), Forecaster(season=12, horizon=6)
    assert model.forecast(2) == [0.0, 0.0]
    for t, y in enumerate(PASSENGERS):
        y = None if t % 10 == 7 else y
        if t:
            assert model.forecast(4) == other.forecast().mean[:4].tolist()
        model.learn_one(y)
        other.update(y)
    assert model.rounds == len(PASSENGERS)


def test_features_are_columns():
    rng = np.random.default_rng(0)
    rows, y = rng.standard_normal((120, 2)), np.zeros(120)
    for t in range(120):
        y[t] = 5 + rows[t] @ [2.0, -1.0] + 0.1 * rng.standard_normal()
    xs = [{"a": float(a), "b": float(b), "day": datetime.date(2020, 1, 1)} for a, b in rows]
    for t in range(3, 120, 10):
        del xs[t]["a"]
        rows[t, 0] = np.nan
        xs[t + 1]["new"] = 3.0  # comes too late, and is left out
    model, other = TrackingForecaster(2, season=None), Forecaster(("a", "b"), season=None, horizon=2)
    errors = []
    for t in range(118):
        said = other.forecast(rows[t : t + 2])
        if t:
            assert model.forecast(2, xs[t : t + 2]) == said.mean.tolist()
            errors.append(abs(said.mean[0] - y[t]))
        model.learn_one(y[t], xs[t])
        other.update(y[t])
    assert np.mean(errors[60:]) < 1.0
    silent = copy.deepcopy(model)
    assert silent.forecast(1) == silent.forecast(1, [{"unknown": 1.0}])  # nothing is known of the next round


def test_nobody_has_to_ask():
    rows = [{"a": float(t % 4)} for t in range(50)]
    asked, silent = TrackingForecaster(1), TrackingForecaster(1)
    for t in range(50):
        if t % 3:
            asked.forecast(1, [rows[t]])
        elif t:
            asked.forecast(1, [{"a": -9.0}])  # it came differently
        for model in (asked, silent):
            model.learn_one(float(t % 4) + 0.1 * (t % 7), rows[t])
    assert asked.forecast(1, [rows[0]]) == silent.forecast(1, [rows[0]])


class Last(time_series.base.Forecaster):
    """The last value."""

    def learn_one(self, y, x=None):
        self.y = y

    def forecast(self, horizon, xs=None):
        return [self.y] * horizon


@pytest.mark.filterwarnings("ignore:.*evaluate.*:DeprecationWarning")
def test_rivers_own_evaluation():
    """It takes forecasts that are made before a value as those of the values after it, for all models alike."""
    found = evaluate(datasets.AirlinePassengers(), TrackingForecaster(season=12), metrics.MAE(), horizon=6)
    other = evaluate(datasets.AirlinePassengers(), Last(), metrics.MAE(), horizon=6)
    errors, theirs = ([metric.get() for metric in one.metrics] for one in (found, other))
    assert len(errors) == 6
    assert (np.array(errors) < 0.7 * np.array(theirs)).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: model.forecast(13), "Build it with horizon=13"),
        (lambda model: model.forecast(0), "'horizon' parameter"),
        (lambda model: model.forecast(2, [{}]), "as many rows in 'xs' as steps. Got 1"),
        (lambda model: model.learn_one("much", {"a": 1.0}), "a value must be a number"),
        (lambda model: model.learn_one(1.0, {"a": "much"}), "features must be numbers"),
        (lambda model: model.learn_one(1.0, {"a": 1e101}), r"the column 'a' must be a number .*1e"),
        (lambda model: TrackingForecaster(horizon=0).learn_one(1.0), "'horizon' parameter"),
        (lambda model: TrackingForecaster(season="month").learn_one(1.0), "'season' parameter"),
    ],
)
def test_bad_input_is_told_and_changes_nothing(call, message):
    model = TrackingForecaster()
    for t in range(30):
        model.learn_one(float(t % 5), {"a": 1.0 * t})
    with refused(model, message):
        call(model)


def test_names_of_features_that_look_alike():
    model = TrackingForecaster(1)
    for t in range(20):
        model.learn_one(1.0 * t, {1: 1.0, "1": 2.0})
    assert len(model.forecast(1)) == 1


@pytest.mark.parametrize(
    "x", [Rude(), 3, "p", [("p", 1.0)], np.eye(2), {"p": "2"}, {"p": [1.0]}, {"p": 10**400}, {"p": 1e200}]
)
def test_what_is_no_row_of_features_is_refused(x):
    fresh, model = TrackingForecaster(3), TrackingForecaster(3)
    for y in (1.0, 2.0):
        model.learn_one(y, {"p": y})
    with refused(model, r"feature|column"):
        model.learn_one(3.0, x)
    with refused(model, r"feature|'X'"):
        model.forecast(1, [x])
    with refused(model, "xs"):
        model.forecast(1, 3.0)
    if not isinstance(x, dict):
        with refused(fresh, "features by name"):
            fresh.learn_one(1.0, x)
