"""Forecasts of long frames: as Forecaster.run, whatever the kind and order of rows, on grids of time of all kinds."""

import datetime
import itertools
import warnings
import zoneinfo

import numpy as np
import pandas as pd
import polars as pl
import pytest

import thalweg as tw
from thalweg.errors import GapWarning, InputError
from thalweg.estimators import Forecaster
from thalweg.estimators._frequencies import DAY, Frequency, read_frequency
from thalweg.estimators._panel import read_panel
from thalweg.estimators.long_frames import cutoffs

LEVELS = (0.8, 0.95)
NAMES = ["thalweg", "thalweg-lo-80", "thalweg-hi-80", "thalweg-lo-95", "thalweg-hi-95"]


def values(n=60, seed=0, season=6):
    rng = np.random.default_rng(seed)
    return 50 + 5 * np.sin(2 * np.pi * np.arange(n) / season) + rng.standard_normal(n)


def long(n=60, series=("a", "b"), times=None, **columns):
    times = np.arange(n) if times is None else times
    cells = {"unique_id": np.repeat(list(series), n), "ds": list(times) * len(series)}
    return cells | {"y": np.concatenate([values(n, k) for k in range(len(series))])} | columns


def arrow(cells):
    return pytest.importorskip("pyarrow").table({key: list(cell) for key, cell in cells.items()})


KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": arrow}


@pytest.fixture(params=KINDS)
def make(request):
    return KINDS[request.param]


def cells(frame, key):
    """A column of any kind of frame as a list."""
    return frame[key].to_pylist() if hasattr(frame, "to_pylist") else list(frame[key])


# ---------------------------------------------------------------------------------------------------- the same numbers


def test_a_backtest_is_what_forecasters_say_bit_for_bit(make):
    frame, H = long(), 3
    past = tw.backtest(make(frame), horizon=H, levels=LEVELS, season=6)
    assert type(past) is type(make(frame))
    rows = 0
    for k, name in enumerate("ab"):
        y = values(60, k)
        run = Forecaster(season=6, horizon=H, levels=LEVELS).run(y)
        wanted = [(t, h) for t in range(1, 60) for h in range(H) if t + h < 60]
        part = slice(rows, rows + len(wanted))
        rows += len(wanted)
        assert cells(past, "unique_id")[part] == [name] * len(wanted)
        assert cells(past, "cutoff")[part] == [t - 1 for t, _ in wanted]
        assert cells(past, "ds")[part] == [t + h for t, h in wanted]
        assert cells(past, "y")[part] == [y[t + h] for t, h in wanted]
        for key, said in zip(
            NAMES, (run.mean, run.lower[0.8], run.upper[0.8], run.lower[0.95], run.upper[0.95]), strict=True
        ):
            mine = [np.nan if x is None else x for x in cells(past, key)[part]]
            assert np.array_equal(mine, [said[t, h] for t, h in wanted], equal_nan=True)
    assert len(cells(past, "y")) == rows


def test_a_forecast_goes_on_after_the_last_row(make):
    ahead = tw.forecast(make(long(times=pd.date_range("2024-01-31", periods=60, freq="ME"))), 4, LEVELS)
    for k in range(2):
        forecaster = Forecaster(season=(12,), horizon=4, levels=LEVELS)
        forecaster.run(values(60, k))
        said = forecaster.forecast()
        assert cells(ahead, "thalweg")[4 * k : 4 * k + 4] == said.mean.tolist()
        assert cells(ahead, "thalweg-hi-95")[4 * k : 4 * k + 4] == said.upper[0.95].tolist()
    days = [f"{one:%Y-%m-%d}" for one in cells(ahead, "ds")]
    assert days == ["2029-01-31", "2029-02-28", "2029-03-31", "2029-04-30"] * 2


def test_the_order_of_rows_and_the_index_do_not_matter():
    frame = pd.DataFrame(long())
    mixed = frame.sample(frac=1, random_state=0)
    for call in (tw.forecast, tw.backtest):
        pd.testing.assert_frame_equal(call(frame, 2), call(mixed, 2))
    assert list(mixed["y"]) != list(frame["y"])  # and nothing was changed


def test_what_comes_later_changes_no_forecast():
    times = pd.date_range("2024-01-01", periods=400, freq="D")
    whole = pd.DataFrame(long(400, times=times))
    later = tw.backtest(whole, 3, (0.9,))
    for n in (2, 30, 370):
        part = tw.backtest(whole[whole["ds"] < times[n]], 3, (0.9,))
        same = later[(later["ds"] < times[n])].reset_index(drop=True)
        pd.testing.assert_frame_equal(part, same)
        ahead = tw.forecast(whole[whole["ds"] < times[n]], 3, (0.9,))
        mine = later[later["cutoff"] == times[n - 1]].reset_index(drop=True)
        pd.testing.assert_frame_equal(ahead, mine.drop(columns=["cutoff", "y"]))


@pytest.mark.parametrize(
    ("T", "H", "step", "windows"), [(10, 3, 1, None), (10, 3, 2, None), (10, 3, 4, 2), (3, 5, 2, None), (9, 2, 3, 1)]
)
def test_cutoffs_are_counted_back_from_the_last_whole_window(T, H, step, windows):
    origins = [t for t in range(1, T) if (T - H - t) % step == 0]
    if windows:
        origins = [t for t in origins if t <= T - H][-windows:]
    wanted = [(t, h) for t in origins for h in range(H) if t + h < T]
    assert list(zip(*(place.tolist() for place in cutoffs(np.zeros(T), H, step, windows)), strict=True)) == wanted


def test_windows_are_those_of_the_whole_backtest():
    frame = pd.DataFrame(long())
    whole = tw.backtest(frame, 4)
    some = tw.backtest(frame, 4, step_size=4, n_windows=3)
    assert sorted(set(some["cutoff"])) == [47, 51, 55]
    assert len(some) == 2 * 3 * 4
    pd.testing.assert_frame_equal(some, whole[whole["cutoff"].isin([47, 51, 55])].reset_index(drop=True))
    with pytest.raises(InputError, match="series 'a' has 60 rows; 15 windows of 4 steps need more than 60"):
        tw.backtest(frame, 4, step_size=4, n_windows=15)


def test_missing_values_and_rows_are_the_same():
    times = pd.date_range("2024-01-01", periods=60, freq="h")
    frame = pd.DataFrame(long(times=times))
    holes = frame.copy()
    out = holes.index.isin([0, 1, 20, 21, 22, 70, 100])
    holes.loc[out, "y"] = np.nan
    left = holes[~out | (holes.index < 2)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ahead, past = tw.forecast(holes, 3, LEVELS), tw.backtest(holes, 3, LEVELS)
    with pytest.warns(
        GapWarning, match=r"5 of 120 rows are missing in 2 of 2 series .* of 3, is in series 'a' after 2024-01-01 19:00"
    ):
        pd.testing.assert_frame_equal(tw.forecast(left, 3, LEVELS), ahead)
    with pytest.warns(GapWarning):
        pd.testing.assert_frame_equal(tw.backtest(left, 3, LEVELS), past)
    assert not past["y"].isna().any()
    assert past["cutoff"].min() == times[0]  # series b; a begins with its first value
    assert past[past["unique_id"] == "a"]["cutoff"].min() == times[2]
    y = holes["y"].to_numpy()[:60]
    run = Forecaster(season=(24, 168), horizon=3, levels=LEVELS).run(y)
    one = past[(past["unique_id"] == "a") & (past["cutoff"] == times[21])]  # within the gap
    assert one["thalweg"].tolist() == [run.mean[22, 1], run.mean[22, 2]]


def test_one_series_needs_no_name_and_no_time():
    frame = pl.DataFrame({"load": values()})
    ahead = tw.forecast(frame, 2, id_col=None, time_col=None, target_col="load")
    assert ahead.columns == ["ds", "thalweg"]
    assert ahead["ds"].to_list() == [60, 61]
    assert tw.backtest(frame, 2, id_col=None, time_col=None, target_col="load").columns == [
        "ds",
        "cutoff",
        "load",
        "thalweg",
    ]
    two = pl.DataFrame({"shop": ["a", "b"] * 30, "load": values()})
    past = tw.backtest(two, id_col="shop", time_col=None, target_col="load")
    assert past.filter(pl.col("shop") == "b")["load"].to_list() == values()[3::2].tolist()


def test_a_bar_counts_rows(capsys):
    tw.backtest(pd.DataFrame(long()), progress=True)
    assert "120" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------------------- columns


def test_columns_are_known_in_advance(make):
    rng = np.random.default_rng(5)
    x = rng.standard_normal(126)
    frame = long(60, x=np.r_[x[:60], x[63:123]])
    frame["y"] = frame["y"] + 4 * np.asarray(frame["x"])
    future = {
        "unique_id": ["b"] * 3 + ["a"] * 4,
        "ds": [62, 61, 60, 60, 61, 62, 63],
        "x": [*x[125:122:-1], *x[60:63], 9.0],
    }
    ahead = tw.forecast(make(frame), 3, season=6, future=make(future))
    past = tw.backtest(make(frame), 3, season=6)
    for k, rows in enumerate((slice(0, 60), slice(60, 120))):
        forecaster = Forecaster(["x"], season=6, horizon=3)
        run = forecaster.run(frame["y"][rows], np.asarray(frame["x"])[rows][:, None])
        mine = forecaster.forecast((x[60:63] if k == 0 else x[123:126])[:, None])
        assert cells(ahead, "thalweg")[3 * k : 3 * k + 3] == mine.mean.tolist()
        assert cells(past, "thalweg")[174 * k] == run.mean[1, 0]
    without = tw.forecast(make(frame), 3, season=6, columns=())
    assert cells(without, "thalweg") != cells(ahead, "thalweg")


def test_future_must_be_whole():
    frame = pd.DataFrame(long(x=0.0))
    future = pd.DataFrame({"unique_id": ["a", "a", "b"], "ds": [60, 61, 60], "x": 0.0})
    for arguments, message in (
        ({"future": future}, r"future has no row for series 'b' at 61, step 2 of 2. Add it with the columns x"),
        ({}, r"give future= with them for the next 2 steps of every series, or columns=\(\)"),
        ({"future": future.drop(columns="x")}, "future has no column 'x' for columns"),
        ({"future": future.assign(ds=60)}, "series 'a', row 1, counted from 0: it has the 'ds' of row 0, 60"),
        ({"columns": (), "future": future}, "future= is for further columns"),
    ):
        with pytest.raises(InputError, match=message):
            tw.forecast(frame, 2, **arguments)


# ------------------------------------------------------------------------------------------------------------ times


def grid(word, first="2024-01-01", n=40, **options):
    return pd.date_range(first, periods=n, freq=word, **options)


@pytest.mark.parametrize(
    ("times", "told", "seasons"),
    [
        (grid("s"), "1 second", (60, 3600)),
        (grid("min"), "1 minute", (60, 1440)),
        (grid("15min"), "15 minutes", (96, 672)),
        (grid("h"), "1 hour", (24, 168)),
        (grid("6h"), "6 hours", (4, 28)),
        (grid("7h"), "7 hours", (24,)),
        (grid("D"), "1 day", (7, 365)),
        (grid("B"), "1 business day", (5, 261)),
        (grid("2D"), "2 days", ()),
        (grid("W"), "1 week", (52,)),
        (grid("MS"), "1 month", (12,)),
        (grid("ME"), "1 month", (12,)),
        (grid("MS") + pd.Timedelta(days=14, hours=3), "1 month", (12,)),
        (grid("QS"), "1 quarter", (4,)),
        (grid("QE"), "1 quarter", (4,)),
        (grid("YS"), "1 year", ()),
        (grid("YE"), "1 year", ()),
        (grid("28D"), "4 weeks", (13,)),
        (grid("D", tz="Europe/Berlin", n=400), "1 day", (7, 365)),
        (grid("h", tz="Europe/Berlin", n=400, first="2024-03-20"), "1 hour", (24, 168)),
        (grid("D", tz="UTC", n=200).tz_convert("Europe/Berlin"), "1 day", (7, 365)),
        (grid("MS", tz="America/New_York"), "1 month", (12,)),
        (grid("B", tz="Asia/Tokyo"), "1 business day", (5, 261)),
    ],
)
def test_steps_are_found_and_go_on(times, told, seasons):
    """The oracle of the next times is pandas' own range."""
    whole = pd.DataFrame({"unique_id": "a", "ds": times, "y": values(len(times))})
    part, rest = whole[:-3], whole["ds"][-3:]
    panel = read_panel("forecast", part, "unique_id", "ds", "y", None, "infer")
    assert (str(panel.frequency), panel.frequency.seasons, panel.absent) == (told, seasons, 0)
    ahead = tw.forecast(part, 3)
    assert ahead["ds"].tolist() == rest.tolist()
    assert ahead["ds"].dtype == whole["ds"].dtype
    aware = pl.DataFrame({"unique_id": "a", "ds": times.to_pydatetime().tolist(), "y": values(len(times))})
    if times.tz is not None:
        aware = aware.with_columns(pl.col("ds").dt.convert_time_zone(str(times.tz)))
    again = tw.forecast(aware[:-3], 3)
    assert again["ds"].to_list() == aware["ds"][-3:].to_list()
    assert again.schema["ds"] == aware.schema["ds"]


def test_clocks_that_go_forward_and_back():
    """Hours are counted as they pass, days by the calendar; neither has a gap or a repeat."""
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    for first, hours in ((datetime.datetime(2024, 3, 30), 23), (datetime.datetime(2024, 10, 26), 25)):
        times = pd.date_range(first, periods=24 + hours, freq="h", tz=berlin)
        ahead = tw.forecast(pd.DataFrame({"unique_id": 1, "ds": times, "y": values(len(times))}), 2)
        assert [one.isoformat() for one in ahead["ds"]] == [
            (first + datetime.timedelta(days=2, hours=h)).replace(tzinfo=berlin).isoformat() for h in range(2)
        ]
    naive = pd.DataFrame({"unique_id": 1, "ds": times.tz_localize(None), "y": values(len(times))})
    with pytest.raises(
        InputError, match=r"2024-10-27 02:00. Remove one .*where clocks go back, use times with a time zone"
    ):
        tw.forecast(naive, 2)


def test_a_midnight_that_does_not_exist():
    cairo = zoneinfo.ZoneInfo("Africa/Cairo")  # clocks went from 0 to 1 on 26 April 2024
    times = [datetime.datetime(2024, 4, k, tzinfo=cairo) for k in range(1, 25)]
    ahead = tw.forecast(pl.DataFrame({"ds": times, "y": values(24)}).with_columns(
        pl.col("ds").dt.convert_time_zone("Africa/Cairo")), 3, id_col=None)  # fmt: skip
    assert [f"{one:%d %H}" for one in ahead["ds"]] == ["25 00", "26 01", "27 00"]


def test_times_as_text_dates_and_numbers():
    y = values(20)
    for times, wanted in (
        ([f"{2020 + k // 12}-{k % 12 + 1:02}" for k in range(20)], "2021-09-01"),
        ([f"2024-01-{k + 1:02} 06:00" for k in range(20)], "2024-01-21"),
        ([f"2024-01-{k + 1:02}T06:00:00Z" for k in range(20)], "2024-01-21"),
        ([datetime.date(2024, 1, k + 1) for k in range(20)], "2024-01-21"),
    ):
        for kind in (pd.DataFrame, pl.DataFrame):
            ahead = tw.forecast(kind({"ds": times, "y": y}), 1, id_col=None)
            assert f"{ahead['ds'][0]:%Y-%m-%d}" == wanted
    assert tw.forecast(pl.DataFrame({"ds": times, "y": y}), 1, id_col=None).schema["ds"] == pl.Date
    ints = pl.DataFrame({"ds": np.arange(2000, 2040, 2, dtype=np.int32), "y": y})
    ahead = tw.forecast(ints, 2, id_col=None)
    assert ahead["ds"].to_list() == [2040, 2042]
    assert ahead.schema["ds"] == pl.Int32


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        ("h", ("fixed", DAY // 24)), ("1h", ("fixed", DAY // 24)), ("H", ("fixed", DAY // 24)),
        ("30T", ("fixed", DAY // 48)), ("5m", ("fixed", DAY // 288)), ("15min", ("fixed", DAY // 96)),
        ("W-SUN", ("fixed", 7 * DAY)), ("M", ("months", 1)), ("MS", ("months", 1)), ("1mo", ("months", 1)),
        ("Q", ("months", 3)), ("QS-OCT", ("months", 3)), ("1q", ("months", 3)), ("Y", ("months", 12)),
        ("A", ("months", 12)), ("1y", ("months", 12)), ("B", ("business days", 1)), ("2d", ("fixed", 2 * DAY)),
        (datetime.timedelta(hours=2), ("fixed", DAY // 12)), (pd.offsets.MonthEnd(), ("months", 1)),
        (np.timedelta64(1, "D"), ("fixed", DAY)),
    ],
)  # fmt: skip
def test_words_for_steps(word, wanted):
    assert read_frequency("forecast", word, counted=False) == Frequency(*wanted)


def test_the_kind_of_names_is_kept():
    frame = pl.DataFrame(long(series=("b", "a"))).with_columns(pl.col("unique_id").cast(pl.Categorical))
    assert tw.forecast(frame, 1).schema["unique_id"] == pl.Categorical
    many = pd.DataFrame(long(series=(10, 9))).astype({"unique_id": "int16"})
    ahead = tw.forecast(many, 1)
    assert ahead["unique_id"].tolist() == [9, 10]
    assert ahead["unique_id"].dtype == "int16"
    assert tw.forecast(pd.DataFrame(long()).astype({"unique_id": "category"}), 1)["unique_id"].tolist() == ["a", "b"]


# --------------------------------------------------------------------------------------------------- malformed frames


def hours(n=60):
    return pd.date_range("2024-01-01", periods=n, freq="h")


def wrong(row, **cells):
    """A frame of hours with other cells in one row."""
    frame = pd.DataFrame(long(times=hours()))
    for key, cell in cells.items():
        frame[key] = frame[key].astype(object) if isinstance(cell, str) else frame[key]
        frame.loc[row, key] = cell
    return frame


MALFORMED = {
    "no frame": (
        lambda: [1, 2, 3],
        "forecast: frame must be a data frame; give one of pandas, polars or pyarrow. Got builtins.list",
    ),
    "lazy": (lambda: pl.DataFrame(long()).lazy(), "collect() it first. Got polars"),
    "no rows": (lambda: pd.DataFrame(long())[:0], "frame has no rows. Give at least one for each series."),
    "no id": (
        lambda: pd.DataFrame(long()).drop(columns="unique_id"),
        "has no column 'unique_id' for id_col. Its columns are ds, y. For a single series give id_col=None.",
    ),
    "id in the index": (
        lambda: pd.DataFrame(long()).set_index("unique_id"),
        "It is the index: call reset_index() before.",
    ),
    "no time": (
        lambda: pd.DataFrame(long()).drop(columns="ds"),
        "has no column 'ds' for time_col. Its columns are unique_id, y. For rows without times",
    ),
    "no target": (
        lambda: pd.DataFrame(long()).rename(columns={"y": "sales"}),
        "has no column 'y' for target_col. Its columns are unique_id, ds, sales.",
    ),
    "empty id": (
        lambda: wrong(7, unique_id=None),
        "row 7, counted from 0: 'unique_id' is empty. Name the series, or remove the row.",
    ),
    "empty time": (
        lambda: wrong(7, ds=None),
        "series 'a', row 7, counted from 0: 'ds' is empty. Fill it in, or remove the row.",
    ),
    "repeated time": (
        lambda: wrong(65, ds=hours()[3]),
        "series 'b', row 65, counted from 0: it has the 'ds' of row 63, 2024-01-01 03:00. Remove one of them",
    ),
    "between two steps": (
        lambda: wrong(65, ds=hours()[5] + pd.Timedelta(minutes=7)),
        "row 65, counted from 0: 2024-01-01 05:07 is no whole number of steps of 1 hour after the first time, "
        "2024-01-01. Correct it",
    ),
    "another step": (
        lambda: pd.concat(
            [pd.DataFrame(long(times=hours())), pd.DataFrame(long(series="c", times=grid("17min", n=60)))]
        ),
        "series 'c', row 121, counted from 0: 2024-01-01 00:17 is no whole number of steps of 1 hour after the first "
        "time, 2024-01-01. The usual step is 1 hour: forecast series of other steps apart",
    ),
    "a time far away": (
        lambda: wrong(119, ds=pd.Timestamp("2240-01-01")),
        "series 'b', row 60, counted from 0: a step of 1 hour leaves",
    ),
    "no time at all": (
        lambda: wrong(7, ds="yesterday"),
        "series 'a', row 7, counted from 0: 'ds' is 'yesterday', which is no time such as 2025-01-31",
    ),
    "zones mixed": (
        lambda: pd.DataFrame(long(2, times=["2024-01-01T00:00", "2024-01-02T00:00Z"])),
        "row 1, counted from 0: 'ds' is '2024-01-02T00:00Z': some times have a time zone and some have none.",
    ),
    "times as fractions": (
        lambda: pd.DataFrame(long(times=np.arange(60) / 2)),
        "'ds' must hold dates, datetimes or integers. Its type is Float64. Convert it.",
    ),
    "huge integers": (
        lambda: pd.DataFrame(long(times=10**17 + np.arange(60))),
        "row 0, counted from 0: 'ds' is 100000000000000000; integer times are at most 2^53",
    ),
    "text in the target": (
        lambda: wrong(70, y="n/a"),
        "series 'b', row 70, counted from 0: 'y' must hold numbers, and its type is Object: 'n/a'. Convert it.",
    ),
    "numbers as text": (
        lambda: pl.DataFrame(long()).cast({"y": pl.String}),
        "row 0, counted from 0: 'y' must hold numbers, and its type is String. Convert it.",
    ),
    "infinite": (
        lambda: wrong(70, y=np.inf),
        "series 'b', row 70, counted from 0: 'y' is inf; numbers are at most 1e+100 in size.",
    ),
    "huge": (lambda: wrong(70, y=-1e200), "series 'b', row 70, counted from 0: 'y' is -1e+200;"),
    "nothing but missing values": (
        lambda: pd.DataFrame(long()).assign(y=[1.0] * 60 + [np.nan] * 60),
        "series 'b', row 60, counted from 0: all values of 'y' are missing. Leave the series out.",
    ),
    "a column of text": (
        lambda: pd.DataFrame(long()).assign(note="fine"),
        "'note' must hold numbers, and its type is String: 'fine'. Convert it, or name the columns to use",
    ),
    "an infinite column": (
        lambda: pd.DataFrame(long()).assign(x=np.inf),
        "series 'a', row 0, counted from 0: 'x' is inf;",
    ),
    "single rows": (
        lambda: pd.DataFrame(long(1, times=[pd.Timestamp("2024-01-01")])),
        "every series has a single row, so the step between times is not known. Give freq=",
    ),
    "names of two types": (
        lambda: pl.DataFrame(long()).with_columns(pl.Series("unique_id", [1] * 60 + ["b"] * 60, dtype=pl.Object)),
        "the names of series in 'unique_id' must be of one type. Convert them to text.",
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_frames_name_series_row_and_cure(name):
    make, message = MALFORMED[name]
    for call in (tw.forecast, tw.backtest):
        with pytest.raises(InputError) as caught:
            call(make())
        said = str(caught.value)
        assert message.replace("forecast:", f"{call.__name__}:") in said
        assert "\n" not in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"horizon": 0}, "'horizon' parameter of forecast must be a whole number >= 1"),
        ({"levels": (80,)}, "different shares from 0.01 to 0.999"),
        ({"freq": "fortnight"}, "'freq' parameter of forecast must be 'infer', a step such as '15min'"),
        ({"freq": "h"}, "times are integers, whose steps are whole numbers, such as freq=1. Got 'h'"),
        ({"freq": 0}, "'freq' parameter"),
        ({"freq": 7}, "is no whole number of steps of 7 after the first time, 0"),
        ({"columns": ["y"]}, "the column 'y' is named twice"),
        ({"columns": ["z"]}, "has no column 'z' for columns"),
        ({"id_col": "ds"}, "must be different columns"),
        ({"target_col": None}, "target_col"),
        ({"season": "yearly"}, "'season' parameter"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(InputError) as caught:
        tw.forecast(pd.DataFrame(long()), **arguments)
    assert message in str(caught.value)


def test_steps_of_all_kinds_are_inverse():
    """times and places undo each other, on every grid, from many first times."""
    kinds = [Frequency("fixed", DAY), Frequency("fixed", 900_000_000), Frequency("months", 1), Frequency("months", 3),
             Frequency("business days", 1), Frequency("business days", 2), Frequency("integers", 5)]  # fmt: skip
    firsts = np.datetime64("2023-12-29T05:00", "us").astype(np.int64) + DAY * np.arange(0, 70)
    for kind, first in itertools.product(kinds, firsts):
        if kind.kind == "business days" and not np.is_busday(np.datetime64(int(first // DAY), "D")):
            continue
        begin = np.array([first])
        anchors = kind.anchors(begin, np.array([0])).of(np.zeros(50, dtype=int))
        places, fits = kind.places(kind.times(np.arange(50), anchors), anchors)
        assert fits.all()
        assert places.tolist() == list(range(50))
