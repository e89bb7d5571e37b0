"""Hostile frames: refused by row and key, or played as the documentation says; refused ones change nothing."""

import datetime
import random
import resource
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

import thalweg as tw
from tests.hostile import Rude
from thalweg.errors import InputError
from thalweg.estimators import Forecaster, TrackingClassifier, TrackingRegressor
from thalweg.fleet import FleetError, shelves

KEYS = ["a", "b", "c", "", "ü", "a" * 200, "a\0", None, float("nan"), 1, 2.5, True, (1, 2), b"a", "\ud800", [], 2**70]
TIMES = [1, 2, 3, 0, -5, None, "x", 1.5, 2**63 - 1, -(2**63), datetime.datetime(2024, 1, 1), datetime.date(1, 1, 1)]
VALUES = [1.0, -2.0, 0.0, -0.0, 5, None, float("nan"), float("inf"), 1e99, 1e101, -1e308, "x", True, [1.0], 2**70, 1j]


def frame(rng, start):
    """A frame, mostly sound; each column is odd with some probability."""
    n = rng.choice([0, 1, 2, 5, 20])
    odd = [rng.random() < 0.3 for _ in range(4)]
    data = {
        "unique_id": [rng.choice(KEYS if odd[0] and rng.random() < 0.4 else KEYS[:3]) for _ in range(n)],
        "ds": [rng.choice(TIMES) if odd[1] and rng.random() < 0.4 else start + k for k in range(n)],
        "y": [rng.choice(VALUES if odd[2] and rng.random() < 0.4 else VALUES[:5]) for _ in range(n)],
        "x": [rng.choice(VALUES if odd[3] and rng.random() < 0.4 else VALUES[:5]) for _ in range(n)],
    }
    if rng.random() < 0.05:
        del data[rng.choice(list(data))]
    if rng.random() < 0.1:
        data["extra"] = ["?"] * n
    kinds = [pd.DataFrame, lambda d: pl.DataFrame(d, strict=False)]
    try:
        return rng.choice(kinds)(data)
    except Exception:  # no frame can hold that
        return None


def check(count, seed):
    rng, refused, played = random.Random(seed), 0, 0
    for start in range(1, 20 * count, 20):
        given = frame(rng, start)
        if start % 1000 == 1:  # a time far ahead is the last of its key
            fleet = tw.Fleet(Forecaster(["x"], season=None, lags=2))
        if given is None:
            continue
        before, skip = fleet.to_bytes(), rng.random() < 0.3
        try:
            out = fleet.run(given, on_bad="skip" if skip else "raise")
        except InputError as error:
            why = error
        else:
            assert len(out) == len(given)
            assert type(out) is type(given)
            played += 1
            continue
        refused += 1
        assert "\n" not in str(why)
        assert fleet.to_bytes() == before
        if isinstance(why, FleetError):
            assert all(0 <= row < len(given) and said for row, _, said in why.rows)
            assert "row" in str(why)
    assert refused > count / 10
    assert played > count / 10


def test_hostile_frames():
    check(300, 0)


@pytest.mark.slow
def test_many_hostile_frames():
    check(10_000, 1)


CROWD = """
import resource, numpy as np, thalweg as tw
from thalweg.domains import Ball
fleet = tw.Fleet(tw.OGD(Ball(50), horizon=10, gradient_bound=1.0), threads=1)
fleet.update(np.arange(10), np.zeros((10, 50)))
before = fleet.to_bytes()
keys, g = np.arange({count}), np.zeros(({count}, 50))
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + {spare}, used + {spare}))
try:
    fleet.update(keys, g)
except MemoryError:
    print("refused", len(fleet), fleet.to_bytes() == before)
fleet.update(np.arange(20), np.zeros((20, 50)))
print("goes on", len(fleet))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory as Linux does")
@pytest.mark.parametrize("spare", [20_000_000, 100_000_000, 170_000_000])
def test_more_keys_than_memory(spare):
    program = CROWD.format(count=200_000, spare=spare)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["refused 10 True", "goes on 20"], done.stderr
    assert resource.RLIMIT_AS


def test_memory_that_did_not_suffice_is_given_back(monkeypatch):
    shelf, pages = shelves.Shelf(1000), [b""] * 3
    shelf.take(5)

    def few(size, large, real=shelves._pages):
        if not pages:
            raise MemoryError
        pages.pop()
        return real(size, large)

    monkeypatch.setattr(shelves, "_pages", few)
    with pytest.raises(MemoryError):
        shelf.take(6 * shelf.rows)
    assert not pages
    assert [chunk is not None for chunk in shelf._chunks] == [True]
    assert (shelf.count, shelf.take(3).tolist()) == (5, [5, 6, 7])


@pytest.mark.parametrize("keys", [Rude(), [Rude()], [np.ones(2)], np.eye(2).tolist(), 3, "tea", [1.5], [None, 2.5]])
def test_what_is_no_list_of_keys_is_refused(keys):
    fleet = tw.Fleet(Forecaster(horizon=2), time_col=None)
    fleet.run(["a", "b"], [1.0, 2.0])
    before = fleet.to_bytes()
    for call in (fleet.forecast, fleet.predict, fleet.rounds, lambda keys: fleet.run(keys, [1.0, 2.0])):
        with pytest.raises(InputError, match="key"):
            call(keys)
    assert fleet.to_bytes() == before


def test_no_keys_have_no_forecasts():
    assert tw.Fleet(Forecaster(horizon=2)).forecast([]).shape == (0, 2)
    assert tw.Fleet(Forecaster(horizon=3, levels=(0.8, 0.9))).forecast([]).shape == (0, 3, 5)
    assert tw.Fleet(Forecaster(["p"], horizon=2)).forecast([], np.zeros((0, 2, 1))).shape == (0, 2)


@pytest.mark.parametrize("time", [Rude(), [1, 2], [], np.eye(2), 1.5, "soon", None])
def test_what_is_no_time_is_refused(time):
    fleet = tw.Fleet(Forecaster())
    fleet.run(["a", "b"], [1.0, 2.0], time=[5, 6])
    with pytest.raises(InputError, match="time"):
        fleet.forget(idle_since=time)
    with pytest.raises(InputError, match="time"):
        fleet.run(["a"], [1.0], time=[Rude()] if time is None else time)
    assert fleet.keys() == ["a", "b"]


@pytest.mark.parametrize(
    "options", [{"folder": 1e50}, {"folder": ["x"]}, {"folder": ""}, {"columns": 3}, {"columns": [3]}]
)
def test_what_is_no_folder_or_column_is_refused(options):
    with pytest.raises(InputError, match=r"folder|columns|path"):
        tw.Fleet(TrackingRegressor(), **options)


def test_two_columns_of_one_name_are_refused():
    fleet = tw.Fleet(Forecaster())
    frame = pd.DataFrame([["a", 1, 2.0, 3.0]], columns=["unique_id", "ds", "y", "y"])
    with pytest.raises(InputError, match="two columns of one name"):
        fleet.run(frame)
    assert len(fleet) == 0


def test_classes_are_0_and_1():
    fleet = tw.Fleet(TrackingClassifier(), columns=["a"], time_col=None)
    for y in (2.0, -1.0, 0.5):
        with pytest.raises(InputError, match="classes are 0 and 1"):
            fleet.run(["x", "z"], [1, y], [[1.0], [2.0]])
    frame = pl.DataFrame({"unique_id": ["x", "z"], "a": [1.0, 2.0], "y": [True, False]})
    assert fleet.run(frame)["y"].to_list() == [True, False]
    assert fleet["x"].classes_.tolist() == [0, 1]
    for weight, error in (("balanced", "all rows at once"), ({1: -1.0}, "from 0 to")):
        with pytest.raises(InputError, match=error):
            tw.Fleet(TrackingClassifier(class_weight=weight), columns=["a"])


def _named(kind, names, **more):
    return kind().partial_fit(pd.DataFrame([[1.0] * len(names)], columns=names), [1], **more)


@pytest.mark.parametrize(
    ("learner", "why"),
    [
        (TrackingRegressor(), "no row"),
        (_named(TrackingRegressor, ["a"]), "n_features_in_ = 1"),
        (_named(TrackingRegressor, ["a", "b", "c"]), "n_features_in_ = 3"),
        (_named(TrackingRegressor, ["b", "a"]), "feature_names_in_"),
        (_named(TrackingRegressor, ["a", "b"]).set_params(loss="huber"), "loss"),
        (_named(lambda: TrackingRegressor("huber"), ["a", "b"]).set_params(loss="squared_error"), "changed after"),
        (_named(TrackingClassifier, ["a", "b"], classes=[1, 2]), "classes_"),
    ],
)
def test_linear_models_of_other_columns_or_classes_are_refused(learner, why):
    fleet = tw.Fleet(type(learner)(), columns=["a", "b"], time_col=None)
    with pytest.raises(InputError, match=f"does not belong in this fleet.*{why}"):
        fleet["x"] = learner
    assert len(fleet) == 0
    more = {"classes": [0, 1]} if isinstance(learner, TrackingClassifier) else {}
    fleet["x"] = type(learner)().partial_fit([[1.0, 2.0]], [1], **more)  # of an array: it has no names
    fleet.run(["x"], [1.0], [[1.0, 2.0]])
    assert fleet["x"].rounds == 2
