"""thalweg forecast: tables beside simple forecasts, no look-ahead, pipes that are killed, malformed files."""

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import types

import numpy as np
import polars as pl
import pytest

import thalweg as tw
from thalweg.errors import InputError
from thalweg.estimators import Forecaster
from thalweg.estimators._frequencies import DAY, Frequency
from thalweg.lab import forecast as lab
from thalweg.lab.columns import read_columns, read_long
from thalweg.lab.live import live
from thalweg.lab.sample import demand

NAMES = ["hour", "load", "cold", "windy"]


def lines(n=300, seed=0):
    rng = np.random.default_rng(seed)
    load = 50 + 5 * np.sin(np.arange(n) / 4) + 0.3 * rng.standard_normal(n)
    cold, windy = rng.standard_normal(n), rng.random(n) < 0.5
    return [f"{t},{float(load[t])!r},{float(cold[t])!r},{'yes' if windy[t] else 'no'}" for t in range(n)]


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "load.csv"
    path.write_text("\n".join([",".join(NAMES), *lines()]) + "\n")
    return path


# -------------------------------------------------------------------------------------------------------- the table


def short_repr(out):
    """The rows of the table of errors, by their first words."""
    lines = out.splitlines()
    names = re.split(r"\s{2,}", lines[4].strip())
    rows = (re.split(r"\s{2,}", line.strip()) for line in lines[5 : lines.index("", 5)])
    return {row[0]: dict(zip(names, row[1:], strict=True)) for row in rows}


def test_errors_by_horizon_stand_beside_simple_forecasts(file, call):
    code, out, err = call(
        "forecast", "load.csv", "--target", "load", "--time", "hour", "--horizon", 3, "--season", 25, "--levels", 80
    )
    assert code == 0, err
    assert out.startswith(
        "load of load.csv: 300 times, 1 apart; forecast 1 to 3 steps ahead\nfrom its past, seasons 25\n"
    )
    assert err == "not used: cold, windy. Name those that are known in advance with --columns\n"
    y = read_columns(file, "load", time="hour").values
    run = Forecaster(season=25, horizon=3, levels=(0.8,)).run(y)
    table = short_repr(out)
    for h in range(3):
        t = np.arange(25 - h, 300 - h)  # those for which there is a season before
        t = t[t > 0]
        row = table[f"{h + 1} ahead"]
        for name, p in (("thalweg", run.mean[t, h]), ("naive", y[t - 1]), ("seasonal naive", y[t + h - 25])):
            assert float(row[name]) == pytest.approx(np.sqrt(((y[t + h] - p) ** 2).mean()), rel=1e-4)
        inside = (run.lower[0.8][t, h] <= y[t + h]) & (y[t + h] <= run.upper[0.8][t, h])
        assert float(row["within 80 %"].rstrip("%")) == pytest.approx(100 * inside.mean(), abs=0.06)
    found = json.loads(
        call("forecast", "load.csv", "--target", "load", "--time", "hour", "--horizon", 3, "--season", "25", "--json")[
            1
        ]
    )
    assert [row["step"] for row in found["errors"]] == [1, 2, 3, "all"]
    assert found["errors"][0]["naive"] == pytest.approx(float(table["1 ahead"]["naive"]), rel=1e-4)
    assert found["seasons"] == [25]


def test_repeated_values_are_the_last_known_ones_of_their_season():
    y = np.array([1.0, 2, 3, np.nan, 5, 6, 7, 8, np.nan])
    t, h = np.array([1, 4, 4, 7, 7, 9]), np.array([0, 0, 3, 0, 4, 0])
    assert lab.repeated(y, 1, t, h).tolist() == [1, 3, 3, 7, 7, 8]
    found = lab.repeated(y, 3, t, h)
    assert np.isnan(found[0])
    assert found[1:].tolist() == [2, 2, 5, 6, 7]


def test_errors_of_many_series_are_in_steps_of_each(file, call):
    values = {name: np.array([float(line.split(",")[1]) for line in lines(120, seed=k)]) for k, name in enumerate("ab")}
    rows = [
        f"{name},{t},{(1 + 999 * (name == 'b')) * y!r}"
        for name, series in values.items()
        for t, y in enumerate(series.tolist())
    ]
    (file.parent / "two.csv").write_text("\n".join(["shop,day,sold", *rows]))
    code, out, err = call(
        "forecast", "two.csv", "--target", "sold", "--id", "shop", "--time", "day", "--season", "none"
    )
    assert (code, err) == (0, "")
    naive = [np.sqrt((np.diff(y) ** 2).mean()) / np.abs(np.diff(y)).mean() for y in values.values()]
    assert "240 times, 1 apart of 2 series" in out
    assert "in mean steps of each series" in out
    assert float(short_repr(out + "\n\n")["all steps"]["naive"]) == pytest.approx(np.mean(naive), rel=1e-4)


def test_a_forecast_that_is_beaten_says_so(tmp_path, call):
    rng = np.random.default_rng(3)
    (tmp_path / "w.csv").write_text("y\n" + "".join(f"{y}\n" for y in np.cumsum(rng.standard_cauchy(300))))
    out = call("forecast", "w.csv", "--target", "y", "--json")[1]
    row = json.loads(out)["errors"][-1]
    assert (json.loads(out)["warning"] is None) is (row["thalweg"] <= row["naive"])
    few = lab.Outcome.warning(_Beaten())
    assert few == "The forecast lost 50 % more than the naive one, which is simpler."


class _Beaten:
    def errors(self):
        return [{"step": "all", "thalweg": 3.0, "naive": 2.0}], ["thalweg", "naive"]


def test_what_is_written(file, works):
    words = ["forecast", "load.csv", "--target", "load", "--time", "hour", "--horizon", 4]
    works(*words, "--out", "f.csv", "--backtest", "past.csv", "--plot", "f.png", "--save", "f.npz")
    y = read_columns(file, "load", time="hour").values
    forecaster = Forecaster(horizon=4, levels=(0.8, 0.95))
    forecaster.run(y)
    said = forecaster.forecast()
    found = pl.read_csv("f.csv")
    assert found.columns == ["hour", "thalweg", "thalweg-lo-80", "thalweg-hi-80", "thalweg-lo-95", "thalweg-hi-95"]
    assert found["hour"].to_list() == [300, 301, 302, 303]
    assert found["thalweg"].to_list() == said.mean.tolist()
    past = pl.read_csv("past.csv")
    assert past.columns[:4] == ["hour", "cutoff", "load", "thalweg"]
    frame = pl.DataFrame({"ds": np.arange(300), "y": y})
    assert past["thalweg"].to_list() == tw.backtest(frame, 4, id_col=None)["thalweg"].to_list()
    assert tw.load("f.npz").forecast().mean.tolist() == said.mean.tolist()
    assert (file.parent / "f.png").read_bytes()[:4] == b"\x89PNG"
    works(*words, "--out", "f.parquet", "--plot", "f.html")
    assert pl.read_parquet("f.parquet")["thalweg"].to_list() == said.mean.tolist()
    works(*words, "--out", "f.json")
    assert json.loads((file.parent / "f.json").read_text())["thalweg"] == said.mean.tolist()
    page = (file.parent / "f.html").read_text()
    assert "<img" in page
    assert "http" not in page


def test_times_are_written_as_they_are_read(tmp_path, call, works):
    for step, last in (
        ("1d", "2024-02-15"),
        ("6h", "2024-01-12 06:00"),
        ("1mo", "2027-10-01"),
        ("90s", "2024-01-01 01:07:30"),
    ):
        times = pl.datetime_range(pl.datetime(2024, 1, 1), pl.datetime(2034, 1, 1), step, eager=True)[:45]
        text = times.dt.to_string("%Y-%m-%d" if step in ("1d", "1mo") else "%Y-%m-%d %H:%M:%S")
        pl.DataFrame({"t": text, "y": np.sin(np.arange(45))}).write_csv(tmp_path / "a.csv")
        code, out, err = call("forecast", "a.csv", "--target", "y", "--time", "t", "--out", "n.csv")
        assert (code, err) == (0, "")
        assert pl.read_csv(tmp_path / "n.csv", infer_schema_length=0)["t"].to_list() == [last]
        assert f"\n{last} " in out
    (tmp_path / "z.csv").write_text("t,y\n" + "".join(f"2024-01-{k:02}T00:00Z,{k % 7}\n" for k in range(1, 30)))
    works("forecast", "z.csv", "--target", "y", "--time", "t", "--out", "n.csv")
    assert (tmp_path / "n.csv").read_text().splitlines()[1].startswith("2024-01-30 00:00+0000,")
    (tmp_path / "r.csv").write_text("y\n" + "".join(f"{k % 7}\n" for k in range(1, 30)))
    works("forecast", "r.csv", "--target", "y", "--out", "n.csv")
    assert (tmp_path / "n.csv").read_text().splitlines()[1].startswith("30,")


def test_pictures_of_many_series(tmp_path, call):
    rows = [f"{s},{t},{np.sin(t + k)}" for k, s in enumerate(["a", r"$\\frac{1$", "c"]) for t in range(40)]
    (tmp_path / "m.csv").write_text("\n".join(["s,t,y", *rows]))
    code, _, err = call(
        "forecast", "m.csv", "--target", "y", "--id", "s", "--time", "t", "--horizon", 5, "--plot", "m.png"
    )
    assert (code, err) == (0, "")
    assert (tmp_path / "m.png").read_bytes()[:4] == b"\x89PNG"


def test_what_comes_later_changes_no_forecast(file, works):
    words = ["forecast", "load.csv", "--target", "load", "--time", "hour", "--columns", "cold,windy", "--horizon", 2]
    works(*words, "--backtest", "whole.csv")
    whole = pl.read_csv("whole.csv")
    for k in (3, 40, 299):
        works(*words, "--rows", k, "--backtest", "part.csv")
        one = pl.read_csv("part.csv").filter(pl.col("hour") == pl.col("cutoff") + 1)
        assert (
            one["thalweg"].to_list()
            == whole.filter(pl.col("hour") == pl.col("cutoff") + 1)["thalweg"].to_list()[: k - 1]
        )


def test_columns_of_rows_to_come(file, works, fails):
    words = ["forecast", "load.csv", "--target", "load", "--time", "hour", "--columns", "cold,windy", "--horizon", 2]
    (file.parent / "next.csv").write_text("hour,cold,windy\n300,0.5,yes\n301,,no\n")
    works(*words, "--future", "next.csv", "--out", "a.csv")
    columns = read_columns(file, "load", time="hour")
    forecaster = Forecaster(["cold", "windy"], horizon=2, levels=(0.8, 0.95))
    forecaster.run(columns.values, columns.rows)
    said = forecaster.forecast([[0.5, 1.0], [np.nan, 0.0]])
    assert pl.read_csv("a.csv")["thalweg"].to_list() == said.mean.tolist()
    _, err = works(*words, "--out", "b.csv")
    assert "cold, windy of the next 2 row(s) are not known: give them with --future FILE" in err
    assert pl.read_csv("b.csv")["thalweg"].to_list() != said.mean.tolist()
    (file.parent / "next.csv").write_text("hour,cold,windy\n300,0.5,yes\n")
    assert "next.csv: future has no row for the series at 301, step 2 of 2" in fails(*words, "--future", "next.csv")
    assert "name them with --columns" in fails("forecast", "load.csv", "--target", "load", "--future", "next.csv")


def test_gaps_and_empty_targets_are_missing_values(tmp_path, call, works):
    y = [None if k in (5, 6) else k % 4 + 0.5 for k in range(30)]
    full = "t,y\n" + "".join(f"{k},{'' if v is None else v}\n" for k, v in enumerate(y))
    holes = "t,y\n" + "".join(f"{k},{v}\n" for k, v in enumerate(y) if v is not None)
    (tmp_path / "full.csv").write_text(full)
    (tmp_path / "holes.csv").write_text(holes)
    words = ["--target", "y", "--time", "t", "--horizon", 2]
    assert call("forecast", "full.csv", *words, "--out", "a.csv", "--backtest", "pa.csv")[::2] == (0, "")
    _, err = works("forecast", "holes.csv", *words, "--out", "b.csv", "--backtest", "pb.csv")
    assert err == (
        "holes.csv: 2 of 30 rows are missing and count as missing values; the longest gap, of 2, is in the series "
        "after 4.\n"
    )
    for a, b in (("a.csv", "b.csv"), ("pa.csv", "pb.csv")):
        assert (tmp_path / a).read_text() == (tmp_path / b).read_text()


def test_a_saved_forecast_goes_on_tomorrow(file, works, fails):
    head, *rows = file.read_text().splitlines()
    (file.parent / "a.csv").write_text("\n".join([head, *rows[:200]]))
    (file.parent / "b.csv").write_text("\n".join([head, *rows[200:]]))
    usual = ["--target", "load", "--time", "hour"]
    works("forecast", "a.csv", *usual, "--horizon", 2, "--lags", "3", "--save", "kept.npz")
    works("forecast", "b.csv", *usual, "--resume", "kept.npz", "--out", "b-out.csv", "--save", "b.npz")
    works("forecast", "load.csv", *usual, "--horizon", 2, "--lags", "3", "--out", "w-out.csv", "--save", "w.npz")
    assert (file.parent / "b-out.csv").read_text() == (file.parent / "w-out.csv").read_text()
    assert (file.parent / "b.npz").read_bytes() == (file.parent / "w.npz").read_bytes()
    assert "other columns" in fails("forecast", "b.csv", *usual, "--columns", "cold", "--resume", "kept.npz")
    assert "was kept with lags = 3. Leave --lags out" in fails(
        "forecast", "b.csv", *usual, "--lags", "7", "--resume", "kept.npz"
    )
    assert "Leave --horizon out" in fails("forecast", "b.csv", *usual, "--horizon", 7, "--resume", "kept.npz")
    assert "nowhere.npz" in fails("forecast", "b.csv", *usual, "--resume", "nowhere.npz")
    assert "kept.npz is a file. Name a folder" in fails(
        "forecast", "b.csv", *usual, "--id", "windy", "--save", "kept.npz"
    )


def shops(rows, names=("b", "a")):
    """Rows of two shops in turn, of which one has a gap."""
    rng = np.random.default_rng(5)
    y = 20 + 5 * np.sin(np.arange(90))[:, None] + rng.standard_normal((90, 2))
    lines = [f"{names[k]},{t},{t % 7},{y[t, k]}" for t in rows for k in range(2) if not (k == 0 and 20 <= t < 25)]
    return "\n".join(["shop,day,weekday,sold", *lines]) + "\n"


@pytest.mark.parametrize("names", [("b", "a"), (7, 12)])
def test_many_saved_series_go_on_tomorrow(tmp_path, call, works, names):
    """One run over all rows, and two runs with a folder between them, forecast the same and keep the same."""
    usual = ["--target", "sold", "--id", "shop", "--time", "day"]
    first = ["--horizon", 3, "--lags", "3"]
    for name, rows in (("whole", range(90)), ("one", range(50)), ("two", range(50, 90))):
        pl.read_csv(io.StringIO(shops(rows, names))).write_parquet(tmp_path / f"{name}.parquet")
    works("forecast", "whole.parquet", *usual, *first, "--out", "whole.out.csv", "--save", "whole")
    works("forecast", "one.parquet", *usual, *first, "--save", "kept")
    before = {key: one.state() for key, one in opened("kept").items()}
    works("forecast", "two.parquet", *usual, "--resume", "kept", "--out", "new.out.csv", "--save", "new")
    assert same_states(before, opened("kept"))  # another folder was written
    works("forecast", "two.parquet", *usual, "--resume", "kept", "--out", "two.out.csv", "--save", "kept")
    for name in ("kept", "new"):
        found = opened(name)
        assert set(found) == set(names)
        assert [one.rounds for one in found.values()] == [90, 90]
        assert same_states({key: one.state() for key, one in opened("whole").items()}, found)
    text = (tmp_path / "whole.out.csv").read_text()
    assert (tmp_path / "two.out.csv").read_text() == (tmp_path / "new.out.csv").read_text() == text
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["kept", "new", "whole"]
    assert f"streams   2: {min(names)!r}, {max(names)!r}" in call("fleet", "kept")[1]


def opened(folder):
    with tw.Fleet.open(folder) as fleet:
        assert (fleet.id_col, fleet.time_col, fleet.target_col) == ("shop", "day", "sold")
        return {key: fleet[key] for key in sorted(fleet)}


def same_states(states, found):
    return all(
        np.array_equal(array, states[key][name]) for key, one in found.items() for name, array in one.state().items()
    )


def test_a_kept_folder_takes_in_a_new_series_and_keeps_the_others(tmp_path, works):
    usual = ["--target", "sold", "--id", "shop", "--time", "day"]
    for name, names in (("one", ("b", "a")), ("two", ("a", "c"))):
        (tmp_path / f"{name}.csv").write_text(shops(range(60), names))
    works("forecast", "one.csv", *usual, "--save", "kept")
    works("forecast", "two.csv", *usual, "--resume", "kept", "--save", "kept")
    assert {key: one.rounds for key, one in opened("kept").items()} == {"a": 120, "b": 60, "c": 60}


def test_a_pipe_of_many_series_goes_on_from_a_folder(tmp_path, works, monkeypatch):
    """Names are text in a pipe, and may be numbers in a file: those of the folder count."""
    usual = ["--target", "sold", "--id", "shop", "--time", "day", "--columns", "weekday"]
    said = {}
    pl.read_csv(io.StringIO(shops(range(50), (7, 12)))).write_parquet(tmp_path / "one.parquet")
    for name, rows, more in (
        ("whole", range(90), ["--save", "whole"]),
        ("one", range(50), ["--save", "kept"]),
        ("two", range(50, 90), ["--resume", "kept", "--save", "kept"]),
    ):
        monkeypatch.setattr("thalweg.lab._kept.OFTEN", 16)  # rows between two checkpoints
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(shops(rows, (7, 12)).encode())))
        said[name], _ = works("forecast", "-", *usual, *more)
    _, *rest = said["two"].splitlines()
    assert said["whole"].splitlines() == [*said["one"].splitlines(), *rest]
    whole = {key: one.state() for key, one in opened("whole").items()}
    assert set(whole) == {"7", "12"}
    assert same_states(whole, opened("kept"))
    works("forecast", "one.parquet", *usual, "--resume", "whole", "--save", "whole")
    assert {key: one.rounds for key, one in opened("whole").items()} == {"12": 140, "7": 135}
    works("forecast", "one.parquet", *usual, "--save", "numbers")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(shops(range(50, 90), (7, 12)).encode())))
    works("forecast", "-", *usual, "--resume", "numbers", "--save", "numbers")
    assert {key: one.rounds for key, one in opened("numbers").items()} == {7: 90, 12: 90}


def test_folders_of_many_series_that_cannot_be_used(tmp_path, call, works, fails, monkeypatch):
    usual = ["--target", "sold", "--id", "shop", "--time", "day"]
    (tmp_path / "one.csv").write_text(shops(range(50)))
    works("forecast", "one.csv", *usual, "--save", "kept")
    before = {key: one.state() for key, one in opened("kept").items()}
    with tw.Fleet(tw.Tracker(tw.domains.Ball(2)), folder="trackers"):
        pass
    for words, text in (
        (["--save", "kept"], "kept is not empty. Go on with it by --resume kept"),
        (["--resume", "kept", "--lags", "7"], "kept was kept with lags"),
        (["--resume", "kept", "--columns", "weekday"], "kept was kept for other columns"),
        (["--resume", "nowhere"], "nowhere"),
        (["--resume", "trackers"], "trackers holds a fleet of Tracker, no forecasters"),
    ):
        assert text in fails("forecast", "one.csv", *usual, *words)
    assert "folder of many series" in fails("forecast", "one.csv", "--target", "sold", "--resume", "kept")

    def full(*_):
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(tw.Fleet, "checkpoint", full)
        code, _, err = call("forecast", "one.csv", *usual, "--resume", "kept", "--save", "kept")
    assert (code, "no space left" in err) == (1, True)
    assert same_states(before, opened("kept"))
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["kept", "trackers"]


@pytest.mark.parametrize("freq", [[], ["--freq", "1"]])
def test_a_resumed_file_or_pipe_may_begin_with_an_empty_row(tmp_path, call, works, monkeypatch, freq):
    """The first rows after --resume have no target and no column: they are missing values, or questions of a pipe."""
    y = [f"{k},{k % 5},{k % 4 + 0.5}\n" for k in range(30)]
    y[18] = "18,,1.5\n"
    y[20] = "20,,\n"  # where the second part begins
    y[21] = "21,2,\n"
    words = ["--target", "y", "--time", "t", "--columns", "x", *freq]
    parts = {"whole": y, "first": y[:20], "second": y[20:]}
    for name, rows in parts.items():
        (tmp_path / f"{name}.csv").write_text("t,x,y\n" + "".join(rows))
    for name, more in (("whole", []), ("first", []), ("second", ["--resume", "first.npz"])):
        err = call("forecast", f"{name}.csv", *words, *more, "--out", f"{name}.out.csv", "--save", f"{name}.npz")[2]
        assert err.endswith("give them with --future FILE\n")
    assert (tmp_path / "second.out.csv").read_text() == (tmp_path / "whole.out.csv").read_text()
    assert (tmp_path / "second.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()

    said = {}
    for name, more in (("whole", []), ("first", []), ("second", ["--resume", "first.live.npz"])):
        text = (tmp_path / f"{name}.csv").read_bytes()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        said[name], _ = works("forecast", "-", *words, *more, "--save", f"{name}.live.npz")
    head, *rows = said["whole"].splitlines()
    assert [head, *rows[20:]] == said["second"].splitlines()
    assert (tmp_path / "second.live.npz").read_bytes() == (tmp_path / "whole.live.npz").read_bytes()
    assert tw.load(tmp_path / "second.live.npz").rounds == (30 if freq else 28)  # time passes only with --freq


def test_windows(file, call, fails):
    words = ["forecast", "load.csv", "--target", "load", "--time", "hour", "--horizon", 10, "--season", "none"]
    out = call(*words, "--windows", 4, "--json")[1]
    y = read_columns(file, "load", time="hour").values
    last = np.array([[y[t + h] - y[t - 1] for h in range(10)] for t in (260, 270, 280, 290)])
    assert json.loads(out)["errors"][-1]["naive"] == pytest.approx(np.sqrt((last**2).mean()))
    assert "30 windows of 10 steps need series of more than 300" in fails(*words, "--windows", 30)


def test_beside_another_library(file, call, fails, monkeypatch):
    words = ["forecast", "load.csv", "--target", "load", "--time", "hour", "--horizon", 5, "--beside", "statsforecast"]
    for name in ("statsforecast", "statsforecast.models"):
        monkeypatch.setitem(sys.modules, name, None)
    assert "needs statsforecast. Install it with: pip install statsforecast" in fails(*words)
    models = types.ModuleType("statsforecast.models")
    for name in ("AutoETS", "AutoTheta", "AutoARIMA"):
        setattr(models, name, lambda season_length, name=name: name)

    class Last:
        """A stand-in with the call and the columns of statsforecast; AutoETS knows the future."""

        def __init__(self, models, freq):
            assert freq == 1
            self.names = models

        def cross_validation(self, df, h, n_windows, step_size):
            y = df["y"].to_numpy()
            rows = [(len(y) - (n_windows - w) * step_size - 1, k) for w in range(n_windows) for k in range(h)]
            said = {name: [y[c + k + 1 if name == "AutoETS" else c] for c, k in rows] for name in self.names}
            return pl.DataFrame(
                {"unique_id": 0, "ds": [c + k + 1 for c, k in rows], "cutoff": [c for c, _ in rows], **said}
            )

    library = types.ModuleType("statsforecast")
    library.StatsForecast = Last
    monkeypatch.setitem(sys.modules, "statsforecast", library)
    monkeypatch.setitem(sys.modules, "statsforecast.models", models)
    rows = json.loads(call(*words, "--json")[1])["errors"]
    for row in rows:
        assert row["AutoETS"] == 0
        assert row["AutoARIMA"] == row["AutoTheta"] == row["naive"]


# ---------------------------------------------------------------------------------------------------------- row by row


def stream(text, make=lambda: Forecaster(season=None), **options):
    out, notes = io.StringIO(), []
    live(io.StringIO(text), out.write, "load", lambda _: make(), levels=make().levels, note=notes.append, **options)
    return out.getvalue().splitlines(), notes


def test_rows_that_arrive_are_forecast_as_those_of_a_file(file):
    columns = read_columns(file, "load", time="hour")
    make = lambda: Forecaster(("cold", "windy"), levels=(0.8,))  # noqa: E731
    said, notes = stream(file.read_text(), make, time="hour", columns=["cold", "windy"])
    run = make().run(columns.values, columns.rows)
    assert said[0] == "hour,step,thalweg,thalweg-lo-80,thalweg-hi-80"
    assert said[1] == "0,1,,,"
    assert [float(line.split(",")[2]) for line in said[2:]] == run.mean[1:, 0].tolist()
    assert float(said[-1].split(",")[4]) == run.upper[0.8][-1, 0]
    assert notes == []


def test_a_forecast_is_out_before_its_answer_is_looked_at():
    seen = []

    def rows():
        yield "t,load\n"
        for t in range(20):
            yield f"{t},{t * 1.5}\n"
        yield "20,broken\n"

    with pytest.raises(InputError, match="standard input, column 'load', row 21: 'broken' is no number"):
        live(rows(), seen.append, "load", lambda _: Forecaster(horizon=2), time="t")
    assert [line.split(",")[:2] for line in seen[-2:]] == [["20", "1"], ["20", "2"]]  # its row was forecast


def test_an_empty_target_is_a_question():
    text = "t,load\n0,1.0\n1,2.0\n2,\n2,4.0\n3,\n"
    plain, _ = stream("t,load\n0,1.0\n1,2.0\n2,4.0\n3,\n", time="t")
    for options in ({}, {"frequency": Frequency("integers", 1)}):
        said, notes = stream(text, time="t", **options)
        assert said[3] == said[4] == plain[3]
        assert said[5] == plain[4]
        assert notes == []


def test_gaps_of_a_pipe_are_missing_values_where_the_step_is_known():
    y = np.sin(np.arange(40.0))
    rows = [f"2024-{1 + k // 31:02}-{1 + k % 31:02},{float(y[k])!r}\n" for k in range(31) if k not in (9, 10, 20)]
    said, notes = stream("t,load\n" + "".join(rows), time="t", frequency=Frequency("fixed", DAY))
    holes = y[:31].copy()
    holes[[9, 10, 20]] = np.nan
    wanted = np.delete(Forecaster(season=None).run(holes).mean[:, 0], [9, 10, 20])
    assert [float(line.split(",")[2] or "nan") for line in said[1:]] == pytest.approx(
        wanted.tolist(), rel=0, abs=0, nan_ok=True
    )
    assert [note.partition(": ")[2] for note in notes] == [
        "2 row(s) are missing before 2024-01-12", "1 row(s) are missing before 2024-01-22",
    ]  # fmt: skip
    with pytest.raises(InputError, match="row 2: 2024-01-01 05:00 is no whole number of steps of 1 day"):
        stream("t,load\n2024-01-01,1\n2024-01-01 05:00,2\n", time="t", frequency=Frequency("fixed", DAY))
    with pytest.raises(InputError, match="row 2: it has the 't' of row 1, 2024-01-01"):
        stream("t,load\n2024-01-01,1\n2024-01-01,2\n", time="t", frequency=Frequency("fixed", DAY))


def test_series_of_a_pipe_are_apart():
    y = np.sin(np.arange(60.0))
    both = "s,load\n" + "".join(f"{'ab'[k % 2]},{float(y[k])!r}\n" for k in range(60))
    said, _ = stream(both, id="s")
    assert said[0] == "s,row,step,thalweg"
    for k, name in enumerate("ab"):
        mine = [float(line.split(",")[3] or "nan") for line in said[1:] if line.startswith(name)]
        assert np.array_equal(mine, Forecaster(season=None).run(y[k::2]).mean[:, 0], equal_nan=True)


def test_an_empty_column_of_a_pipe_is_not_known():
    text = "a,load\n1,1\n,2\n3,3\n"
    make = lambda: Forecaster(["a"])  # noqa: E731
    said, _ = stream(text, make, columns=["a"])
    run = make().run([1.0, 2, 3], [[1.0], [np.nan], [3.0]])
    assert [float(line.split(",")[2]) for line in said[2:]] == run.mean[1:, 0].tolist()


def test_a_pipe_refuses_what_a_file_refuses(tmp_path):
    """The same text as a file and as a pipe: both refuse it, for the same reason."""
    for text, options, message in (
        ("a,a,load\n1,2,3\n4,5,6\n", {}, "two columns called 'a'"),
        ("a,load\n1,1\n1,inf\n", {}, "row 2: inf is not finite"),
        ('a,load\n"EUR 47,32",1\n2,2\n', {"columns": ["a"], "decimal": ","}, r"'EUR 47,32' is no number. Correct it\."),
        ('a,load\n"47,32",1\n2,2\n', {"columns": ["a"]}, "'47,32' is no number. Correct it, or type --decimal ,"),
        ("a,load\n1,1\n", {"time": "t"}, "has no column 't' for --time. Its columns are a, load"),
        ("a,load\n1,1\n", {"columns": ["a", "a"]}, "The column 'a' is given twice: as column and as column"),
    ):
        (tmp_path / "f.csv").write_text(text)
        with pytest.raises(InputError, match=message):
            read_long(tmp_path / "f.csv", "load", **options)
        with pytest.raises(InputError, match=message):
            stream(text, **options)
    long = "a,load\n" + "1" * 200_000 + ",1\n2,2\n"
    with pytest.raises(InputError, match="standard input, row 1: it cannot be read"):
        stream(long)


def test_a_name_with_a_line_break_is_a_name(tmp_path, call):
    text = '"a\nb",load\n1,3\n2,4\n3,5\n'
    (tmp_path / "f.csv").write_text(text)
    assert "a\\nb" in call("forecast", "f.csv", "--target", "load", "--columns", "a\nb")[1]
    assert stream(text, time="a\nb")[0][0] == '"a'


@pytest.mark.parametrize(("rows", "options", "forecasts", "runs"), [
    ("3,1\n2,2\n1,3\n", [], "row 2: 't' goes back, from 3 to 2. Sort", "row 2: time goes back, from 3 to 2"),
    ("10,1\n9,2\n", [], "row 2: 't' goes back", "row 2: time goes back"),  # as text 9 would be later
    ("2020-01-02,1\n2020-01-01 23:00,2\n", [], "row 2: 't' goes back, from 2020-01-02 to 2020-01-01 23:00. Sort the "
     "rows by time (where clocks go back, use times with a time zone).", "row 2: time goes back"),
    ("2020-01-02T00:00Z,1\n2020-01-02T00:30+01:00,2\n", [], "row 2: 't' goes back", "row 2: time goes back"),
    ("1,1\n2,2\n2,3\n3,4\n", [], "row 3: it has the 't' of row 2, 2. Remove one of them", None),
    ("1,1\n1,2\n0,3\n", [], "row 2: it has the 't' of row 1, 1. Remove", "row 3: time goes back"),
    ("2020-01-01,1\n2020-01-02,2\n2020-01-02,3\n", ["--freq", "D"],
     "row 3: it has the 't' of row 2, 2020-01-02. Remove one of them, or add them up (where clocks go back", None),
    ("1,1\n1.5,2\n", [], "row 2: 1.5 is no whole number", None),
    ("1,1\n,2\n", [], "row 2: the cell is empty", "row 2: the cell is empty"),
    ("1,1\n2,2\nx,3\n", [], "row 3: 'x' is no time", "row 3: 'x' is no time"),
    ("Monday,1\nTuesday,2\n", [], "'Monday'", None),
    ("2024-01,1\n2024-02,2\n2024-03,3\n2024-02,4\n", [], "row 4: 't' goes back", "row 4: time goes back"),
])  # fmt: skip
def test_times_of_a_file_and_a_pipe_are_refused_alike(tmp_path, call, monkeypatch, rows, options, forecasts, runs):
    """`run` takes several rows of one time: each is a round."""
    (tmp_path / "f.csv").write_text("t,load\n" + rows)
    for command, message in ((["forecast", *options], forecasts), (["run", "SOGD"], runs)):
        for source in ("f.csv", "-"):
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "f.csv").read_bytes())))
            code, _, err = call(*command, source, "--target", "load", "--time", "t")
            assert (code, err.count("\n")) == (1, 1) if message else code == 0
            assert (message or "") in err


def test_times_of_a_series_are_apart_in_files_and_pipes(tmp_path, call, monkeypatch):
    good = "s,t,load\na,1,1\nb,1,1\na,2,1\nb,2,1\na,3,1\nb,3,1\n"
    for text, message in (
        (good, ""),
        (good + "a,2,1\n", "series 'a', row 7: 't' goes back, from 3 to 2"),
        (good + "b,3,1\n", "series 'b', row 7: it has the 't' of row 6, 3"),
    ):
        (tmp_path / "f.csv").write_text(text)
        for source in ("f.csv", "-"):
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "f.csv").read_bytes())))
            code, _, err = call("forecast", source, "--target", "load", "--time", "t", "--id", "s")
            assert code == bool(message)
            assert message in err


def test_gaps_are_told_of_files_and_pipes(tmp_path, call):
    for step in ("1h", "1mo", None):
        times = list(range(20))
        if step:
            dates = pl.datetime_range(pl.datetime(2020, 1, 1), pl.datetime(2022, 1, 1), step, eager=True)[:20]
            times = dates.dt.to_string("%Y-%m-%d %H:%M").to_list()
        repeat = f"1 row(s) have the time of the row before, first row 6, {times[4]}"
        gap = f"1 gap(s); the longest, of 3 row(s), is before row 6, from {times[4]} to {times[8]}"
        late = f"1 gap(s); the longest, of 2 row(s), is before row 2, from {times[0]} to {times[3]}"
        for rows, wanted in (
            (times, []),
            ([*times[:5], times[4], *times[5:]], [repeat]),
            (times[:5] + times[8:], [gap]),
            (times[:1] + times[3:], [late]),
        ):
            text = "t,load\n" + "".join(f"{t},{k % 7}\n" for k, t in enumerate(rows))
            (tmp_path / "f.csv").write_text(text)
            assert list(read_columns(tmp_path / "f.csv", "load", time="t").remarks) == [f"t: {one}" for one in wanted]
            if wanted == [repeat]:
                continue
            notes = stream(text, time="t")[1]
            assert [note.partition(", from ")[2] for note in notes] == [one.partition(", from ")[2] for one in wanted]
            err = call("forecast", "f.csv", "--target", "load", "--time", "t")[2]
            assert ("rows are missing" in err) == bool(wanted)


def test_every_gap_of_a_pipe_is_told_and_another_step_becomes_the_usual_one():
    def gaps(times):
        text = "t,load\n" + "".join(f"{t},1\n" for t in times)
        return [note.partition(": a gap, from ")[2] for note in stream(text, time="t")[1]]

    assert gaps([0, 1, 2, 5, 6, 9, 10, 11]) == ["2 to 5", "6 to 9"]
    slower = [*range(60), *range(60, 600, 6)]
    assert gaps(slower) == [f"{t} to {t + 6}" for t in range(60, 60 + 6 * 8, 6)]  # eight are gaps
    assert gaps(np.cumsum(2 ** np.arange(40)).tolist()) == []  # no usual step


def test_dollars_in_a_name_are_no_formula(works, file):
    file.write_text(file.read_text().replace("load", r"$\frac{1$"))
    works("forecast", "load.csv", "--target", r"$\frac{1$", "--plot", "p.png")


HEAD = "hour,step,thalweg,thalweg-lo-80,thalweg-hi-80,thalweg-lo-95,thalweg-hi-95\n"


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_pipe_that_is_killed_and_resumed_says_the_same(tmp_path):
    rows = lines(60, seed=4)
    head = ",".join(NAMES)
    command = [sys.executable, "-m", "thalweg", "forecast", "-", "--target", "load", "--time", "hour"]
    whole = subprocess.run(
        [*command, "--lags", "3"], input="\n".join([head, *rows]) + "\n", capture_output=True, text=True, cwd=tmp_path
    )
    assert whole.returncode == 0, whole.stderr
    kept, said, rng = tmp_path / "kept.npz", [], np.random.default_rng(0)
    for kill in (17, 40, None):
        more = ["--lags", "3"] if not kept.exists() else ["--resume", str(kept)]
        done = 0 if not kept.exists() else tw.load(kept).rounds
        process = subprocess.Popen(
            [*command, *more, "--save", str(kept)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
        process.stdin.write(head + "\n")
        process.stdin.flush()
        del said[done:]  # what was said of a row that was not kept is said again
        assert process.stdout.readline() == HEAD
        for row in rows[done : kill or len(rows)]:
            process.stdin.write(row + "\n")
            process.stdin.flush()
            said.append(process.stdout.readline())
        if kill is None:
            process.stdin.close()
            assert process.wait(60) == 0
        else:
            time.sleep(0.02 * rng.random())
            process.send_signal(signal.SIGKILL)
            process.wait(60)
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        process.stdout.close()
    assert "".join([HEAD, *said]) == whole.stdout


# ------------------------------------------------------------------------------------------------------------ bad files


MALFORMED = {
    "empty": ("", [], "bad.csv is empty"),
    "header only": ("t,y\n", [], "has no rows of data"),
    "word in the target": ("t,y\n1,2\n2,x\n3,4\n", [], "column 'y', row 2: 'x' is no number"),
    "word in a column": (
        "a,y\n1,2\nx,3\n3,4\n",
        ["--columns", "a"],
        "column 'a', row 2: 'x' is no number. Correct it.",
    ),
    "nothing but empty targets": ("a,y\n1,\n2,\n3,\n", [], "bad.csv, row 1: all values of 'y' are missing"),
    "huge": ("a,y\n1,2\n2,1e200\n3,4\n", [], "bad.csv, row 2: 'y' is 1e+200; numbers are at most 1e+100"),
    "no target": ("a,b\n1,2\n3,4\n", [], "no column 'y' for --target. Its columns are a, b"),
    "no id": ("a,y\n1,2\n3,4\n", ["--id", "shop"], "no column 'shop' for --id"),
    "repeated time": (
        "t,y\n1,2\n3,4\n3,5\n",
        ["--time", "t"],
        "bad.csv, row 3: it has the 't' of row 2, 3. Remove one of them",
    ),
    "repeated in a series": (
        "s,t,y\nb,1,1\na,1,2\na,2,4\na,2,5\n",
        ["--time", "t", "--id", "s"],
        "bad.csv, series 'a', row 4: it has the 't' of row 3, 2.",
    ),
    "no such date": (
        "t,y\n2025-01-02,2\nlater,4\n",
        ["--time", "t"],
        "bad.csv, row 2: 't' is 'later', which is no time such as",
    ),
    "empty time": ("t,y\n2025-01-02,2\n,4\n", ["--time", "t"], "bad.csv, row 2: 't' is empty"),
    "half times": ("t,y\n1,2\n1.5,4\n", ["--time", "t"], "column 't', row 2: 1.5 is no whole number"),
    "off the grid": (
        "t,y\n2025-01-01,2\n2025-01-02,4\n2025-01-03,3\n2025-01-03 07:00,3\n",
        ["--time", "t"],
        "row 4: 2025-01-03 07:00 is no whole number of steps of 1 day after the first time, 2025-01-01. Correct it, or "
        "give another --freq.",
    ),
    "a step for rows": (
        "t,y\n1,2\n2,4\n",
        ["--time", "t", "--freq", "h"],
        "times are integers, whose steps are whole numbers",
    ),
    "lags in words": ("y\n1\n2\n3\n", ["--lags", "x"], "--lags must be a number"),
    "levels in words": ("y\n1\n2\n3\n", ["--levels", "most"], "--levels must be percentages from 1 to 99.9, as 80,95"),
    "levels as shares": ("y\n1\n2\n3\n", ["--levels", "0.8"], "--levels must be percentages"),
    "season in words": ("y\n1\n2\n3\n", ["--season", "week"], "--season must be a number"),
    "time twice": ("t,y\n1,2\n3,4\n", ["--time", "y"], "The column 'y' is given twice: as target and as time"),
    "out": ("y\n1\n2\n3\n", ["--out", "x.txt"], "--out must end in .csv, .parquet, .json"),
    "over itself": ("y\n1\n2\n3\n", ["--out", "bad.csv"], "would be overwritten"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_wrong_with_a_file_is_one_line(tmp_path, name, fails):
    content, options, told = MALFORMED[name]
    (tmp_path / "bad.csv").write_text(content)
    assert told in fails("forecast", "bad.csv", "--target", "y", *options)


@pytest.mark.parametrize(
    ("content", "missing", "told"),
    [
        ("a,y\n1,2\n2,\n3,4\n", "raise", "column 'y', row 2: the cell is empty. Fill it, or type --missing drop"),
        ("a,y\n,2\n1,3\n3,4\n", "previous", "row 1: the cell is empty and there is no row before"),
        ("a,y\n,2\n1,\n,4\n", "drop", "has 0 row(s) in which no cell is empty"),
    ],
)
def test_empty_cells_of_a_table_for_an_algorithm(tmp_path, fails, content, missing, told):
    """What else may be wrong with a table: tests/lab/test_tables.py."""
    (tmp_path / "bad.csv").write_text(content)
    assert told in fails("run", "OGD", "bad.csv", "--target", "y", "--missing", missing)


def test_decimal_commas_and_missing_cells(tmp_path):
    (tmp_path / "a.csv").write_text("a;y\n1,5;2,25\n;3\n2,5;\n-0,5;1e1\n")
    previous = read_columns(tmp_path / "a.csv", "y", decimal=",", missing="previous")
    assert previous.values.tolist() == [2.25, 3.0, 3.0, 10.0]
    assert previous.rows.ravel().tolist() == [1.5, 1.5, 2.5, -0.5]
    drop = read_columns(tmp_path / "a.csv", "y", decimal=",", missing="drop")
    assert (drop.values.tolist(), drop.rows.ravel().tolist()) == ([2.25, 10.0], [1.5, -0.5])


def test_a_bad_cell_in_a_column_that_is_not_needed(tmp_path):
    (tmp_path / "a.csv").write_text("a,b,y\n1,x,2\n2,3,3\n")
    with pytest.raises(InputError, match=r"column 'b', row 1: 'x' is no number.*--features"):
        read_columns(tmp_path / "a.csv", "y")
    assert read_columns(tmp_path / "a.csv", "y", features=["a"]).values.tolist() == [2.0, 3.0]


# --------------------------------------------------------------------------------------- own parts, samples, warming up


OWN = """
import thalweg as tw
def make(domain):
    return tw.SOGD(domain)
def box(dim):
    return tw.domains.Box(-2.0, 2.0, dim)
def wrong(domain):
    return 7
"""


def test_learners_and_sets_of_ones_own(file, monkeypatch, call, works, fails):
    (file.parent / "mine_for_forecast.py").write_text(OWN)
    data = ["load.csv", "--target", "load", "--time", "hour", "--lags", "1"]
    own = ["--learner", "mine_for_forecast:make", "--domain", "mine_for_forecast:box"]
    out = works("run", *data, *own)[0]
    assert out.startswith("mine_for_forecast:make on load.csv: 299 rounds")
    assert "Box(" in out
    known = call("run", "SOGD", *data, "--domain", "box:lower=-2,upper=2")[1]
    assert known.splitlines()[1] == out.splitlines()[1]  # the same loss
    assert "must return a thalweg Learner. Got 7" in fails("run", *data, "--learner", "mine_for_forecast:wrong")
    assert "has no function 'gone'" in fails("run", *data, "--learner", "mine_for_forecast:gone")
    assert "cannot be imported" in fails("run", *data, "--learner", "not_there_at_all:make")
    assert "not both" in fails("run", "SOGD", *data, "--learner", "mine_for_forecast:make")


def test_the_sample_has_its_jump_and_is_always_the_same(tmp_path, works, fails):
    works("sample")
    assert (tmp_path / "load.csv").read_bytes() == demand()
    works("sample", "load.csv")  # it is the same
    (tmp_path / "load.csv").write_text("mine\n")
    assert "is another file" in fails("sample", "load.csv")
    assert (tmp_path / "load.csv").read_text() == "mine\n"
    (tmp_path / "load.csv").write_bytes(demand())
    columns = read_columns("load.csv", "demand", time="hour")
    assert columns.values.size == 8760
    cold = np.maximum(16 - columns.rows[:, 0], 0)
    slopes = [np.polyfit(cold[part], columns.values[part], 1)[0] for part in (slice(0, 4900), slice(5100, 8760))]
    assert slopes[1] > 2 * slopes[0]


def _real_series():
    import pandas as pd

    sea = pytest.importorskip("bokeh_sampledata.sea_surface_temperature").sea_surface_temperature["temperature"]
    sugar = pytest.importorskip("bokeh_sampledata.glucose").data["glucose"]
    water = [y for _, y in pytest.importorskip("river.datasets").WaterFlow()]
    return {"sea": sea[:4000], "glucose": pd.to_numeric(sugar, errors="coerce").dropna()[:4000], "water": water}


@pytest.mark.filterwarnings("ignore")
def test_real_series_are_forecast_no_worse_than_by_their_last_value(tmp_path, works):
    """As a user would make the files, with nothing to say but the target; jumps of water cost a little."""
    ratios = {}
    for name, values in _real_series().items():
        (tmp_path / f"{name}.csv").write_text("value\n" + "".join(f"{float(value)!r}\n" for value in values))
        row = json.loads(works("forecast", f"{name}.csv", "--target", "value", "--json")[0])["errors"][-1]
        ratios[name] = (row["thalweg"] / row["naive"]) ** 2
    assert max(ratios.values()) <= 1.07, ratios
    assert sum(ratio < 1 for ratio in ratios.values()) >= 2, ratios


def test_errors_of_an_algorithm_are_told_in_the_units_of_the_target(file, call):
    out = call("run", "SOGD", "load.csv", "--target", "load", "--time", "hour", "--lags", "1")[1]
    found = json.loads(
        call("run", "SOGD", "load.csv", "--target", "load", "--time", "hour", "--lags", "1", "--json")[1]
    )
    unit = found["scales"]["load"]
    ours, last = (np.sqrt(2 * found[key] / found["rounds"]) * unit for key in ("total_loss", "persistence"))
    assert f"its units    root mean square error {ours:.6g}, repeating the last target {last:.6g}" in out
    y = read_columns(file, "load", time="hour").values[1:]
    assert last == pytest.approx(np.sqrt((np.diff(y) ** 2).sum() / y.size))
