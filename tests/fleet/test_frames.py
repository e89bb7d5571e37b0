"""Long frames of any kind, in and out; bad rows are named, and nothing is played."""

import contextlib
import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

import thalweg as tw
from tests.fleet.singles import ESTIMATORS, assert_same_fleets, batch, fleet_of
from thalweg.domains import Ball
from thalweg.errors import InputError
from thalweg.estimators import Forecaster
from thalweg.fleet import FleetError

KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame}
with contextlib.suppress(ImportError):
    import pyarrow as pa

    KINDS["pyarrow"] = pa.table


def rows(days=20, keys=("tea", "coffee")):
    start = datetime.datetime(2024, 1, 1)
    return {
        "unique_id": [key for _ in range(days) for key in keys],
        "ds": [start + datetime.timedelta(days=d) for d in range(days) for _ in keys],
        "y": [10.0 * (k + 1) + np.sin(d) for d in range(days) for k in range(len(keys))],
        "other": ["x"] * (days * len(keys)),
    }


def shuffled(data, seed=0):
    """The columns in another order of rows, and that order."""
    mixed = np.random.default_rng(seed).permutation(len(data["y"]))
    return {name: [column[k] for k in mixed] for name, column in data.items()}, mixed


def make(**options):
    return tw.Fleet(Forecaster(season=None, levels=(0.8,)), **options)


def columns_of(frame):
    return list(frame.column_names if hasattr(frame, "column_names") else frame.columns)


def numbers(frame, name):
    return np.array(frame[name].to_numpy(), dtype=np.float64)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_kind_comes_back(kind):
    data = rows()
    data["y"][7] = None  # missing values pass the time
    y = np.array(data["y"], dtype=np.float64)
    played, (given, mixed) = make(), shuffled(data)
    frame = KINDS[kind](given)
    assert len(played.run(frame[:0])) == 0
    out = played.run(frame)  # by time, and back in the order of the rows
    assert len(played.run(frame[:0])) == 0
    assert type(out) is type(frame)
    assert list(np.array(out["unique_id"])) == given["unique_id"]
    assert numbers(out, "y").tobytes() == y[mixed].tobytes()
    assert columns_of(out) == ["unique_id", "ds", "y", "thalweg", "thalweg-lo-80", "thalweg-hi-80"]
    plain = make(time_col=None)
    assert numbers(out, "thalweg").tobytes() == plain.run(data["unique_id"], y)[mixed, 0].tobytes()
    assert_same_fleets(played, plain)
    said = played.predict(KINDS[kind]({"unique_id": ["coffee", "nobody"]}))
    assert columns_of(said) == ["unique_id", "thalweg", "thalweg-lo-80", "thalweg-hi-80"]
    assert np.isnan(numbers(said, "thalweg")).tolist() == [False, True]


@pytest.mark.parametrize("kind", KINDS)
def test_all_steps_of_a_horizon_come_back(kind):
    def fleet_with(**options):
        return tw.Fleet(Forecaster(season=None, horizon=3, levels=(0.8,)), **options)

    data, steps = rows(), 3
    given, mixed = shuffled(data)
    fleet = fleet_with()
    out = fleet.run(KINDS[kind](given))
    assert type(out) is type(KINDS[kind](data))
    assert columns_of(out) == ["unique_id", "ds", "step", "y", "thalweg", "thalweg-lo-80", "thalweg-hi-80"]
    assert numbers(out, "step").tolist() == [1, 2, 3] * 40
    assert list(np.array(out["unique_id"])) == np.repeat(given["unique_id"], steps).tolist()
    arrays = fleet_with(time_col=None).run(data["unique_id"], data["y"])
    assert arrays.shape == (40, 3, 3)
    for j, name in enumerate(("thalweg", "thalweg-lo-80", "thalweg-hi-80")):
        assert numbers(out, name).tobytes() == arrays[mixed, :, j].tobytes()
    singles = {key: Forecaster(season=None, horizon=3, levels=(0.8,)) for key in ("tea", "coffee")}
    for k, key in enumerate(singles):
        run = singles[key].run(data["y"][k::2])
        assert arrays[k::2, :, 0].tobytes() == run.mean.tobytes()
        assert arrays[k::2, :, 1].tobytes() == np.ascontiguousarray(run.lower[0.8]).tobytes()
    later = np.array([*data["y"], *[np.nan] * 4])
    want = np.stack([later[2 * h :][:40] for h in range(steps)], axis=1)[mixed]
    assert numbers(out, "y").tobytes() == want.tobytes()
    ahead = fleet.forecast(KINDS[kind]({"unique_id": ["coffee", "nobody", "coffee"]}))
    assert columns_of(ahead) == ["unique_id", "step", "thalweg", "thalweg-lo-80", "thalweg-hi-80"]
    assert numbers(ahead, "thalweg")[:3].tobytes() == singles["coffee"].forecast().mean.tobytes()
    assert np.isnan(numbers(ahead, "thalweg")).tolist() == [False] * 3 + [True] * 3 + [False] * 3
    with pytest.raises(InputError, match="target_col is 'step'"):
        fleet_with(target_col="step")


def test_bad_rows_have_all_their_steps():
    fleet, data = tw.Fleet(Forecaster(season=None, horizon=2)), rows()
    data["y"][6] = float("inf")
    out = fleet.run(pl.DataFrame(data), on_bad="skip")
    assert out.shape == (80, 5)
    assert out["thalweg"].is_nan().to_numpy()[12:14].all()
    assert out["y"][4 * 2 + 1] == data["y"][8]  # the next value of tea that was played


def test_forecasts_of_frames_with_columns():
    columns, rng = ["sun", "rain"], np.random.default_rng(0)
    past = pl.DataFrame({"unique_id": ["a", "b"] * 30, "ds": np.arange(60), "y": rng.standard_normal(60)})
    past = past.with_columns(sun=pl.Series(rng.standard_normal(60)), rain=pl.Series(rng.standard_normal(60)))
    fleet = tw.Fleet(Forecaster(columns, season=None, horizon=2))
    single = Forecaster(columns, season=None, horizon=2)
    fleet.run(past)
    mine = past.filter(pl.col("unique_id") == "b")
    single.run(mine["y"].to_numpy(), mine.select(columns).to_numpy())
    X = rng.standard_normal((6, 2))
    future = {
        "unique_id": ["b", "c", "a", "b", "c", "a"],
        "ds": [63, 60, 61, 61, 61, 60],
        "sun": X[:, 0],
        "rain": X[:, 1],
    }
    out = fleet.forecast(pl.DataFrame(future))
    assert out.columns == ["unique_id", "ds", "step", "thalweg"]
    assert out["step"].to_list() == [2, 1, 2, 1, 2, 1]
    want = single.forecast(X[[3, 0]]).mean
    assert out["thalweg"].to_numpy()[[3, 0]].tobytes() == want.tobytes()
    assert np.isnan(out["thalweg"].to_numpy()).tolist() == [False, True, False, False, True, False]
    before = fleet.to_bytes()
    with pytest.raises(FleetError, match=r"row 0 \(key 'b'\): there are 1 rows of its key, and a forecast takes 2"):
        fleet.forecast(pl.DataFrame(future)[[0, 2, 5]])
    with pytest.raises(FleetError, match=r"row 1 \(key 'a'\): its time is not after"):
        fleet.forecast(pl.DataFrame(future).with_columns(ds=pl.lit(58))[[2, 5]])
    with pytest.raises(FleetError, match=r"row 0 \(key 'a'\): there are 2 rows of its key, and a forecast takes 1"):
        fleet.forecast(["a", "b", "a"], np.zeros((3, 2, 2)))
    assert fleet.to_bytes() == before


def test_pandas_keeps_its_index():
    frame = pd.DataFrame(rows()).set_index(np.arange(100, 140))
    assert make().run(frame).index.tolist() == list(range(100, 140))


DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(k) for k in range(40)]


@pytest.mark.parametrize("times", [list(range(40)), DAYS])
def test_kinds_of_times(times):
    fleet = make()
    fleet.run(pl.DataFrame({"unique_id": ["a"] * 40, "ds": times, "y": [1.0] * 40}))
    with pytest.raises(FleetError, match=r"row 0 \(key 'a'\): its time is not after"):
        fleet.run(pl.DataFrame({"unique_id": ["a"], "ds": times[-1:], "y": [1.0]}))
    other = [datetime.datetime(2030, 1, 1)] if isinstance(times[0], int) else [5]
    with pytest.raises(InputError, match="the times of this fleet are"):
        fleet.run(pl.DataFrame({"unique_id": ["b"], "ds": other, "y": [1.0]}))
    assert fleet.keys() == ["a"]


def test_late_rows_are_skipped():
    fleet, other = make(), make()
    keys = ["a", "b", "a", "b", "a", "a", "a"]
    times, y = [3, 3, 5, 4, 5, 2, 9], np.arange(7.0)
    for one in (fleet, other):
        one.run(["a"], [1.0], time=[3])
    with pytest.raises(FleetError) as error:
        fleet.run(keys, y, time=times)
    assert [bad.row for bad in error.value.rows] == [0, 4, 5]
    said = fleet.run(keys, y, time=times, on_bad="skip")
    assert [(bad.row, bad.key) for bad in fleet.bad] == [(0, "a"), (4, "a"), (5, "a")]
    kept = [1, 2, 3, 6]
    want = other.run([keys[k] for k in kept], y[kept], time=[times[k] for k in kept])
    assert np.isnan(said[[0, 4, 5]]).all()
    assert said[kept].tobytes() == want.tobytes()
    assert_same_fleets(fleet, other)


def test_keys_may_be_categories_or_integers():
    data = rows()
    plain = make().run(pl.DataFrame(data))["thalweg"]
    for frame in (pl.DataFrame(data).with_columns(pl.col("unique_id").cast(pl.Categorical)),
                  pd.DataFrame(data).astype({"unique_id": "category"})):  # fmt: skip
        assert numbers(make().run(frame), "thalweg").tobytes() == plain.to_numpy().tobytes()
    numbered = make()
    numbered.run(pd.DataFrame(data | {"unique_id": [0, 7] * 20}))
    assert numbered.keys() == [0, 7]
    with pytest.raises(InputError, match="keys of this fleet are integers"):
        numbered.run(pd.DataFrame(data))
    assert numbered.keys() == [0, 7]


BAD = {
    "a huge value": ({"y": 1e200}, "y is 1e\\+200"),
    "an infinite value": ({"y": float("inf")}, "y is inf"),
    "no key": ({"unique_id": None}, "is missing"),
    "no time": ({"ds": None}, "is missing"),
    "the same time twice": ({"ds": datetime.datetime(2024, 1, 3)}, "its time is not after"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_rows_are_named_and_nothing_is_played(name):
    changes, why = BAD[name]
    fleet, other, data = make(), make(), rows()
    for one in (fleet, other):
        one.run(pl.DataFrame(data).head(4))
    before = fleet.to_bytes()
    added = {"unique_id": "a new one", "ds": datetime.datetime(2024, 1, 1), "y": 1.0, "other": "x"}
    later = {name: [*column[4:], added[name]] for name, column in data.items()}
    for column, value in changes.items():
        later[column][4] = value
    with pytest.raises(FleetError, match=rf"row \d+ .*{why}.*Nothing was played") as error:
        fleet.run(pl.DataFrame(later))
    assert any(row in (2, 4) for row, _, _ in error.value.rows)
    assert fleet.to_bytes() == before
    assert fleet.keys() == ["tea", "coffee"]
    sound = pl.DataFrame(data)[4:]
    assert fleet.run(sound).equals(other.run(sound))  # no trace is left


def test_bad_rows_can_be_left_out():
    fleet, clean, data = make(), make(), rows()
    bad = rows()
    bad["y"][6], bad["unique_id"][11] = float("inf"), None
    said = fleet.run(pl.DataFrame(bad), on_bad="skip")
    assert [(row, key) for row, key, _ in fleet.bad] == [(6, "tea"), (11, None)]
    assert said["thalweg"].is_nan().to_list()[6]
    assert len(said) == 40
    kept = [k for k in range(40) if k not in (6, 11)]
    clean.run(pl.DataFrame(data)[kept])
    assert_same_fleets(fleet, clean)
    fleet.run(pl.DataFrame({"unique_id": ["tea"], "ds": [datetime.datetime(2025, 1, 1)], "y": [1.0]}), on_bad="skip")
    assert fleet.bad == []


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        ({"unique_id": ["a"], "ds": [1]}, "no column 'y'"),
        ({"unique_id": ["a"], "ds": [1], "y": ["text"]}, "must hold numbers"),
        ({"unique_id": ["a"], "ds": ["text"], "y": [1.0]}, "dates, datetimes or integers"),
        ({"unique_id": ["a"], "ds": [1.5], "y": [1.0]}, "dates, datetimes or integers"),
        ({"unique_id": [1.5], "ds": [1], "y": [1.0]}, "integers or strings"),
        ({"unique_id": [[1]], "ds": [1], "y": [1.0]}, "integers or strings"),
    ],
)
def test_frames_that_cannot_be_read(frame, why):
    with pytest.raises(InputError, match=why):
        make().run(pl.DataFrame(frame))
    with pytest.raises(InputError, match="narwhals cannot read"):
        make().run(pl.DataFrame({"unique_id": ["a"]}).lazy())


def test_feedback_is_checked_before_anything_is_played():
    fleet = tw.Fleet(tw.Tracker(Ball(2)))
    g, paid = np.ones((3, 2)), np.ones(3)
    fleet.update([1, 2, 1], g, paid)
    before = fleet.to_bytes()
    for gradients, losses, why in [
        (g * [[1], [np.nan], [1]], paid, r"row 1 \(key 2\): gradient has entries"),
        (g, [1.0, 1.0, -1.0], r"row 2 \(key 1\): loss is -1"),
        (g, [1.0, np.inf, 1.0], r"row 1 \(key 2\): loss must be finite"),
        (g[:2], paid, "shape"),
        ("text", paid, "real numbers"),
    ]:
        with pytest.raises(InputError, match=why):
            fleet.update([1, 2, 1], gradients, losses)
    for call in (lambda: fleet.run([1], [1.0]), lambda: fleet.predict([1]), lambda: fleet.forecast([1])):
        with pytest.raises(InputError, match="They have decide, update"):
            call()
    assert fleet.to_bytes() == before


def test_one_stream():
    fleet, data = make(), rows()
    fleet.run(pd.DataFrame(data))
    assert "tea" in fleet
    assert "water" not in fleet
    assert 5 not in fleet
    assert len(fleet) == 2
    assert sorted(fleet) == ["coffee", "tea"]
    with pytest.raises(KeyError, match="water"):
        fleet["water"]
    with pytest.raises(KeyError, match="water"):
        del fleet["water"]
    with pytest.raises(InputError, match="has lags"):
        fleet["tea"] = Forecaster(season=None, levels=(0.8,), lags=2)
    with pytest.raises(InputError, match="it is a Tracker"):
        fleet["tea"] = tw.Tracker(Ball(2))
    del fleet["tea"]
    assert fleet.keys() == ["coffee"]
    assert fleet.rounds(["tea", "coffee"]).tolist() == [0, 20]
    assert "Fleet of 1 Forecaster" in repr(fleet)


def test_idle_streams_are_forgotten():
    fleet, data = make(), rows(keys=("tea", "coffee", "milk"))
    frame = pl.DataFrame(data)
    fleet.run(frame.filter((pl.col("unique_id") != "tea") | (pl.col("ds") < datetime.datetime(2024, 1, 5))))
    size = fleet.nbytes
    assert fleet.forget(idle_since=datetime.datetime(2024, 1, 4)) == 0
    assert fleet.forget(idle_since=datetime.datetime(2024, 1, 6)) == 1
    assert sorted(fleet) == ["coffee", "milk"]
    assert fleet.nbytes < size
    fleet.run(frame.filter(pl.col("unique_id") == "tea"))  # it is born again, in the same place
    assert fleet.rounds(["tea"]).tolist() == [20]
    by_batch = fleet_of(ESTIMATORS["Forecaster"])
    by_batch.run(["a", "b"], [1.0, 2.0])
    by_batch.run(["a"], [1.0])
    assert by_batch.forget(idle_since=2) == 1
    assert by_batch.keys() == ["a"]


def test_progress_changes_nothing(capsys):
    template = ESTIMATORS["Forecaster"]
    one, other = fleet_of(template), fleet_of(template)
    keys, y, _ = batch(0, template(), 2000, 700)
    assert one.run(keys, y, progress=True).tobytes() == other.run(keys, y).tobytes()
    assert_same_fleets(one, other)
    assert "stream" in capsys.readouterr().err
    with pytest.raises(InputError, match="progress"):
        one.run(keys, y, progress="yes")
    assert_same_fleets(one, other)
