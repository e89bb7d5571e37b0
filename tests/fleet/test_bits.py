"""A fleet is a dict of learners, bit for bit."""

import copy

import numpy as np
import pytest

import thalweg as tw
from tests.fleet.singles import ESTIMATORS, Singles, assert_equal, assert_same, batch, fleet_of, learners, width
from thalweg.domains import Ball, Box
from thalweg.errors import HorizonWarning, InputError
from thalweg.fleet import streams

LEARNERS = learners()


def plays(make):
    try:
        tw.Fleet(make())
    except InputError as error:
        return str(error)
    return ""


REFUSED = {name: why for name, make in LEARNERS.items() if (why := plays(make))}


@pytest.fixture(params=[1, 2])
def threads(request, monkeypatch):
    """One thread, and two even for few streams."""
    monkeypatch.setattr(streams, "FEW", 1)
    return request.param


@pytest.mark.parametrize("name", ESTIMATORS)
def test_runs_of_estimators(name, threads):
    make = ESTIMATORS[name]
    fleet, singles = fleet_of(make, threads=threads), Singles(make)
    for seed in range(6):
        keys, y, X = batch(seed, make())
        said = fleet.run(keys, y, X if X.shape[1] else None).reshape(len(y), -1)
        assert said.tobytes() == singles.run(keys, y, X).tobytes()
    assert_equal(fleet, singles)
    assert (fleet.rounds(list(singles)) == [one.rounds for one in singles.values()]).all()


@pytest.mark.parametrize("name", [name for name in LEARNERS if name not in REFUSED])
def test_rounds_of_learners(name, threads):
    make, rng = LEARNERS[name], np.random.default_rng(0)
    fleet, singles = tw.Fleet(make(), threads=threads), Singles(make)
    for _ in range(5):
        keys, g, paid = rng.integers(0, 9, 200), rng.standard_normal((200, 3)), rng.random(200)
        fleet.update(keys, g, paid)
        for key, one, loss in zip(keys.tolist(), g, paid.tolist(), strict=True):
            _ = singles[key].decision
            singles[key].update(one, loss)
        shown = fleet.decide(list(singles))
        assert shown.tobytes() == np.array([one.decision for one in singles.values()]).tobytes()
    assert_equal(fleet, singles)


def test_learners_that_only_python_can_play_are_refused():
    assert set(REFUSED) >= {"EfficientBandit", "EfficientDelayed", "Sword", "AFLH"}
    assert "gradients of their own" in REFUSED["Sword"]
    custom = tw.domains.Custom(lambda y: np.clip(y, -1, 1), (2,), np.zeros(2), 2.0)
    with pytest.raises(InputError, match="need Python"):
        tw.Fleet(tw.OGD(custom, horizon=10, gradient_bound=1.0))
    with pytest.raises(InputError, match="cannot play dict"):
        tw.Fleet({})
    with pytest.raises(InputError, match="Got the class"):
        tw.Fleet(tw.Tracker)
    played = tw.Tracker(Ball(2))
    played.update([1.0, 0.0], 1.0)
    with pytest.raises(InputError, match="fresh Tracker"):
        tw.Fleet(played)


def test_growth_goes_through_many_classes():
    make = LEARNERS["Tracker"]
    fleet, single, rng = tw.Fleet(make()), make(), np.random.default_rng(1)
    classes = set()
    for _ in range(40):
        g, paid = 10.0 ** rng.integers(-3, 4) * rng.standard_normal((60, 3)), rng.random(60)
        fleet.update([7] * 60, g, paid)
        for one, loss in zip(g, paid.tolist(), strict=True):
            single.update(one, loss)
        assert_same(fleet[7], single)
        classes.add(int(fleet._streams.kind[0]))
    assert len(classes) > 3


@pytest.mark.parametrize("count", [1, 2, 7])
def test_streams_of_many_classes_are_played_in_one_batch(count, monkeypatch):
    """Threads get parts of the batch that begin and end within classes, or have several."""
    monkeypatch.setattr(streams, "FEW", 1)
    make = ESTIMATORS["Forecaster, columns"]
    fleet, singles = fleet_of(make, threads=count), Singles(make)
    for seed, rows in enumerate((1, 2, 300, 5, 1000, 40)):
        keys, y, X = batch(seed, make(), rows, 3 + 5 * seed)
        assert fleet.run(keys, y, X).tobytes() == singles.run(keys, y, X).tobytes()
    assert len({int(fleet._streams.kind[s]) for s in fleet._streams.alive}) > 2
    assert_equal(fleet, singles)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_by_hand_out_and_in(name):
    make = ESTIMATORS[name]
    fleet, singles = fleet_of(make), Singles(make)
    for seed in range(3):
        keys, y, X = batch(seed, make())
        columns = X if X.shape[1] else None
        fleet.run(keys, y, columns)
        singles.run(keys, y, X)
        taken = fleet["shop 3"]
        assert_same(taken, singles["shop 3"])
        before = taken.state()
        fleet.run(["shop 3"], y[:1], X[:1] if X.shape[1] else None)  # a copy: it does not move
        assert_same(taken, singles["shop 3"])
        assert before.keys() == taken.state().keys()
        fleet["shop 3"] = taken
        fleet["another"] = taken
        singles["another"] = copy.deepcopy(taken)
    assert_equal(fleet, singles)


@pytest.mark.parametrize("name", ["Forecaster, columns", "ConformalTracker, two sides", "Aggregator"])
def test_predict_and_update(name):
    make = ESTIMATORS[name]
    fleet, singles, keys = fleet_of(make), Singles(make), ["a", "b", "c"]
    rng = np.random.default_rng(0)
    fleet.run(keys, np.ones(3), np.ones((3, width(make()))))
    singles.run(keys, np.ones(3), np.ones((3, width(make()))))
    for _ in range(80):
        X, y = rng.standard_normal((3, width(make()))), rng.standard_normal(3)
        said = fleet.predict(keys, X).reshape(3, -1)
        fleet.update(keys, y)
        for i, key in enumerate(keys):
            one = singles[key]
            mine = one.predict_interval(X[i, 0]) if name.startswith("Conformal") else one.predict(X[i].copy())
            assert (said[i, : np.size(mine)] == mine).all()
            one.update(y.item(i))
    assert_equal(fleet, singles)
    assert np.isnan(fleet.predict(["stranger"], X[:1])).all()
    assert "stranger" not in fleet


def test_forecasts_of_all_steps():
    make = ESTIMATORS["Forecaster, columns"]
    fleet, singles = fleet_of(make), Singles(make)
    keys, y, X = batch(0, make())
    fleet.run(keys, y, X)
    singles.run(keys, y, X)
    ahead = np.random.default_rng(0).standard_normal((2, 2, 2))
    said = fleet.forecast(["shop 1", "shop 2"], ahead)
    for i, key in enumerate(("shop 1", "shop 2")):
        one = singles[key].forecast(ahead[i])
        assert (said[i] == np.stack([one.mean, one.lower[0.9], one.upper[0.9]], axis=1)).all()


def test_gradients_are_clipped_as_a_single_learner_clips_them():
    def make():
        return tw.EfficientDynamic(Box(-1, 1, shape=2), horizon=500, gradient_bound=1.0, on_violation="clip")

    fleet, singles, rng = tw.Fleet(make()), Singles(make), np.random.default_rng(0)
    keys, g = rng.integers(0, 5, 200), 2 * rng.standard_normal((200, 2))
    g.flags.writeable = False  # the caller's own are not changed
    fleet.update(keys, g)
    small = 0.1 * g / np.abs(g).max()
    small.flags.writeable = False
    fleet.update(keys, small)
    for gradients in (g, small):
        for key, one in zip(keys.tolist(), gradients, strict=True):
            singles[key].update(one)
    assert_equal(fleet, singles)
    assert fleet[int(keys[0])].clipped > 0


def test_a_round_that_is_refused_stops_its_stream_and_no_other(monkeypatch):
    make = LEARNERS["EfficientDynamic"]
    fleet, good = tw.Fleet(make()), tw.Fleet(make())
    g = np.random.default_rng(0).standard_normal((6, 3))
    monkeypatch.setattr("thalweg.fleet.fleet.read_feedback", lambda owner, template, n, g, paid, bad: {
        "gradients": np.array(g), "losses": np.zeros(n)})  # fmt: skip
    large = g.copy()
    large[2] *= 1e6
    with pytest.raises(tw.fleet.FleetError, match=r"row 2 \(key 1\): gradient has norm") as error:
        fleet.update([1, 2, 1, 2, 1, 3], large)
    assert [(row, key) for row, key, _ in error.value.rows] == [(2, 1)]
    good.update([1, 2, 2, 3], g[[0, 1, 3, 5]])
    for key in (1, 2, 3):
        assert_same(fleet[key], good[key])


def test_a_horizon_is_watched():
    fleet = tw.Fleet(tw.OGD(Ball(2), horizon=3, gradient_bound=1.0))
    with pytest.warns(HorizonWarning, match="streams of the fleet"):
        fleet.update([1] * 4, np.zeros((4, 2)))
    fleet.update([1], np.zeros((1, 2)))


def test_copies_are_of_their_own():
    make = ESTIMATORS["ConformalTracker"]
    fleet, keys, y, X = fleet_of(make), *batch(0, make())
    fleet.run(keys, y, X)
    other = copy.deepcopy(fleet)
    assert other.run(keys, y, X).tobytes() == fleet.run(keys, y, X).tobytes()
    other.run(keys, y, X)
    assert other["shop 1"].rounds > fleet["shop 1"].rounds
