"""From a file to a forecast: baselines beside it, no look-ahead, pipes that are killed, files that are malformed."""

import contextlib
import csv
import io
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

import thalweg as tw
from thalweg.errors import InputError
from thalweg.estimators import Forecaster
from thalweg.lab import forecast as lab
from thalweg.lab.columns import lagged, read_columns
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


def test_the_table_says_what_simple_forecasts_would_have_got(file):
    columns = read_columns(file, "load", time="hour")
    assert columns.features == ("cold", "windy")
    assert set(columns.rows[:, 1]) == {0.0, 1.0}
    outcome = lab.forecast(columns, Forecaster(columns.features, lags=3))
    y = columns.values
    rows = {row["forecast"]: row for row in outcome.rows()}
    said = outcome.forecasts["forecast"]
    assert rows["forecast"]["rmse"] == pytest.approx(np.sqrt(((y - said)[1:] ** 2).mean()))
    assert rows["repeating the last value"]["rmse"] == pytest.approx(np.sqrt((np.diff(y) ** 2).mean()))
    assert rows["repeating the last value"]["ratio"] == 1
    means = np.array([y[:t].mean() for t in range(1, y.size)])
    assert rows["mean of all values so far"]["mae"] == pytest.approx(np.abs(y[1:] - means).mean())
    X = np.c_[np.ones(y.size - 3), lagged(columns, (1, 2, 3)).rows]
    rest = y[3:] - X @ np.linalg.lstsq(X, y[3:], rcond=None)[0]
    best = np.sqrt((np.r_[np.diff(y)[:2], rest] ** 2).mean())
    assert rows["best fixed weights"]["rmse"] == pytest.approx(best)
    assert outcome.warning is None
    text = lab.in_words(outcome)
    assert "299 rows, forecast one row ahead" in text
    assert "from its values 1 to 3 back and cold, windy" in text
    assert "best single feature, load 1 back" in text


def test_a_forecast_that_is_beaten_says_so(tmp_path):
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.standard_normal(300))
    (tmp_path / "w.csv").write_text("y,x\n" + "".join(f"{a},{b}\n" for a, b in zip(walk, rng.random(300), strict=True)))
    columns = read_columns(tmp_path / "w.csv", "y")
    outcome = lab.forecast(columns, Forecaster(columns.features, lags=0))
    assert "more than repeating the last value: use the simple one, or type --lags" in outcome.warning
    assert outcome.warning in lab.in_words(outcome)


def test_what_is_written(file, call):
    code, out, err = call(
        "run", "load.csv", "--target", "load", "--time", "hour", "--lags", "2",
        "--out", "f.csv", "--plot", "f.png", "--save", "f.npz",
    )  # fmt: skip
    assert code == 0, err
    assert "over" in out
    with open("f.csv", newline="") as written:
        rows = list(csv.DictReader(written))
    assert list(rows[0])[:4] == ["hour", "load", "forecast", "loss"]
    assert len(rows) == 300
    assert rows[0]["forecast"] == ""
    last = rows[-1]
    assert float(last["loss"]) == pytest.approx((float(last["load"]) - float(last["forecast"])) ** 2)
    weights = float(last["weight of the simple forecast"]) + float(last["weight of the model"])
    assert weights == pytest.approx(1)
    assert (file.parent / "f.png").read_bytes()[:4] == b"\x89PNG"
    assert call("run", "load.csv", "--target", "load", "--time", "hour", "--lags", "2", "--out", "f.parquet")[0] == 0
    assert pl.read_parquet("f.parquet")["forecast"].to_list()[1:] == [float(row["forecast"]) for row in rows[1:]]
    code, out, _ = call("run", "load.csv", "--target", "load", "--lags", "2", "--json", "--plot", "f.html")
    summary = json.loads(out)
    assert summary["lags"] == [1, 2]
    assert {row["forecast"] for row in summary["rows"]} >= {"forecast", "repeating the last value"}
    page = (file.parent / "f.html").read_text()
    assert "<img" in page
    assert "http" not in page


def test_what_comes_later_changes_no_forecast(file):
    whole = lab.forecast(read_columns(file, "load", time="hour"), Forecaster(("cold", "windy"), lags=4))
    for k in (2, 40, 299):
        part = lab.forecast(read_columns(file, "load", time="hour", rows=k), Forecaster(("cold", "windy"), lags=4))
        ours = part.forecasts["forecast"]
        assert np.array_equal(ours, whole.forecasts["forecast"][:k], equal_nan=True)


def test_a_saved_forecast_goes_on_tomorrow(file, call, fails):
    head, *rows = file.read_text().splitlines()
    (file.parent / "a.csv").write_text("\n".join([head, *rows[:200]]))
    (file.parent / "b.csv").write_text("\n".join([head, *rows[200:]]))
    usual = ["--target", "load", "--time", "hour"]
    assert call("run", "a.csv", *usual, "--lags", "3", "--save", "kept.npz")[0] == 0
    assert call("run", "b.csv", *usual, "--resume", "kept.npz", "--out", "b-out.csv")[0] == 0
    assert call("run", "load.csv", *usual, "--lags", "3", "--out", "whole.csv")[0] == 0
    forecasts = [row.split(",")[2] for row in (file.parent / "whole.csv").read_text().splitlines()[201:]]
    assert [row.split(",")[2] for row in (file.parent / "b-out.csv").read_text().splitlines()[1:]] == forecasts
    assert "other columns" in fails("run", "b.csv", *usual, "--features", "cold", "--resume", "kept.npz")
    assert "other --lags" in fails("run", "b.csv", *usual, "--lags", "7", "--resume", "kept.npz")
    assert "nowhere.npz" in fails("run", "b.csv", *usual, "--resume", "nowhere.npz")


# ---------------------------------------------------------------------------------------------------------- row by row


def stream(text, **options):
    out, notes = io.StringIO(), []
    columns = options.pop("lags", 3)
    lab.live(
        io.StringIO(text),
        out.write,
        "load",
        lambda names: Forecaster(names, lags=columns),
        note=notes.append,
        **options,
    )
    return out.getvalue().splitlines(), notes


def test_rows_that_arrive_are_forecast_as_those_of_a_file(file):
    said, notes = stream(file.read_text(), time="hour")
    whole = lab.forecast(read_columns(file, "load", time="hour"), Forecaster(("cold", "windy"), lags=3))
    assert said[0] == "hour,forecast"
    assert said[1] == "0,"
    assert [float(line.split(",")[1]) for line in said[2:]] == whole.forecasts["forecast"][1:].tolist()
    assert notes == []


def test_a_forecast_is_out_before_its_answer_is_looked_at():
    seen = []

    def rows():
        yield "t,load\n"
        for t in range(20):
            yield f"{t},{t * 1.5}\n"
        yield "20,broken\n"

    with pytest.raises(InputError, match="standard input, column 'load', row 21: 'broken' is no number"):
        lab.live(rows(), seen.append, "load", lambda names: Forecaster(names, lags=2), time="t")
    assert seen[-1].startswith("20,")  # the row whose answer could not be read was forecast


def test_an_empty_target_is_a_question():
    text = "t,load\n0,1.0\n1,2.0\n2,\n2,4.0\n3,\n"
    said, _ = stream(text, time="t", lags=1)
    plain, _ = stream("t,load\n0,1.0\n1,2.0\n2,4.0\n3,\n", time="t", lags=1)
    assert said[3] == said[4] == plain[3]
    assert said[5] == plain[4]


def test_missing_cells_of_a_pipe():
    text = "a,load\n1,1\n,2\n3,3\n"
    with pytest.raises(InputError, match="column 'a', row 2: the cell is empty"):
        stream(text)
    said, notes = stream(text, missing="drop")
    assert len(said) == 3
    assert "row 2" in notes[0]
    assert stream(text, missing="previous")[0] == stream("a,load\n1,1\n1,2\n3,3\n")[0]


def test_a_pipe_refuses_what_a_file_refuses(tmp_path):
    """The same text as a file and as a pipe: both refuse it, for the same reason."""
    for text, options, message in (
        ("a,a,load\n1,2,3\n4,5,6\n", {}, "two columns called 'a'"),
        ("t,load\n3,1\n2,2\n1,3\n", {"time": "t"}, "row 2: time goes back, from 3 to 2"),
        ("t,load\n2020-01-02,1\n2020-01-01 23:00,2\n", {"time": "t"}, "row 2: time goes back"),
        ("t,load\n10,1\n9,2\n", {"time": "t"}, "row 2: time goes back"),  # as text 9 would be later
        ("t,load\n1,1\n,2\n", {"time": "t"}, "row 2: the cell is empty"),
        ("t,load\n1,1\nx,2\n", {"time": "t"}, "row 2: 'x' is no time"),
        ("a,load\n1,1\n1,inf\n", {}, "row 2: inf is not finite"),
        (
            'a,load\n"EUR 47,32",1\n2,2\n',
            {"features": ["a"], "decimal": ","},
            r"'EUR 47,32' is no number. Correct it\.",
        ),
        ('a,load\n"47,32",1\n2,2\n', {"features": ["a"]}, "'47,32' is no number. Correct it, or type --decimal ,"),
    ):
        (tmp_path / "f.csv").write_text(text)
        with pytest.raises(InputError, match=message):
            read_columns(tmp_path / "f.csv", "load", **options)
        with pytest.raises(InputError, match=message):
            stream(text, **options)
    long = "a,load\n" + "1" * 200_000 + ",1\n2,2\n"
    with pytest.raises(InputError, match="standard input, row 1: it cannot be read"):
        stream(long)


def test_a_name_with_a_line_break_is_a_name(tmp_path):
    text = '"a\nb",load\n1,3\n2,4\n3,5\n'
    (tmp_path / "f.csv").write_text(text)
    columns = read_columns(tmp_path / "f.csv", "load")
    assert columns.features == ("a\nb",)
    made = []
    lab.live(io.StringIO(text), made.append, "load", lambda names: made.append(names) or Forecaster(names))
    assert ["a\nb"] in made
    assert len(made) == 5
    assert "a\\nb" in lab.in_words(lab.forecast(columns, Forecaster(columns.features)))


def test_times_that_repeat_and_gaps_are_told(tmp_path):
    for step in ("1h", "1mo", None):
        times = list(range(20))
        if step:
            dates = pl.datetime_range(pl.datetime(2020, 1, 1), pl.datetime(2022, 1, 1), step, eager=True)[:20]
            times = dates.dt.to_string("%Y-%m-%d %H:%M").to_list()
        repeat = f"1 row(s) have the time of the row before, first row 6, {times[4]}"
        gap = f"1 gap(s); the longest, of 3 row(s), is before row 6, from {times[4]} to {times[8]}"
        for rows, wanted in (
            (times, []),
            ([*times[:5], times[4], *times[5:]], [repeat]),
            (times[:5] + times[8:], [gap]),
        ):
            text = "t,load\n" + "".join(f"{t},{k % 7}\n" for k, t in enumerate(rows))
            (tmp_path / "f.csv").write_text(text)
            assert list(read_columns(tmp_path / "f.csv", "load", time="t").remarks) == [f"t: {one}" for one in wanted]
            notes = stream(text, time="t", lags=1)[1]
            assert len(notes) == len(wanted)
            assert all("row 6: " in note for note in notes)


def test_a_resumed_run_knows_the_row_before(call, tmp_path):
    head, past, more = "a,load\n", "1,3\n2,4\n3,5\n", ",3\n2,\n,7\n"
    (tmp_path / "past.csv").write_text(head + past)
    (tmp_path / "more.csv").write_text(head + more.replace("2,\n", "2,4\n"))
    (tmp_path / "whole.csv").write_text(head + past + more.replace("2,\n", "2,4\n"))
    options = ["--target", "load", "--missing", "previous"]
    assert call("run", "past.csv", *options, "--save", "kept.npz")[0] == 0
    assert call("run", "more.csv", *options, "--resume", "kept.npz", "--out", "more-out.csv")[0] == 0
    assert call("run", "whole.csv", *options, "--out", "whole-out.csv")[0] == 0
    ours, theirs = (pl.read_csv(tmp_path / name)["forecast"].to_list() for name in ("more-out.csv", "whole-out.csv"))
    assert ours == theirs[3:]
    before = {"a": 3.0, "load": 5.0}
    make = lambda names: tw.load(tmp_path / "kept.npz")  # noqa: E731
    said = []
    lab.live(io.StringIO(head + ",3\n"), said.append, "load", make, missing="previous", before=before)
    assert float(said[1].partition(",")[2]) == ours[0]


def test_dollars_in_a_name_are_no_formula(call, file):
    file.write_text(file.read_text().replace("load", r"$\frac{1$"))
    assert call("run", "load.csv", "--target", r"$\frac{1$", "--plot", "p.png")[0] == 0


def test_hindsight_is_for_few_features(tmp_path):
    rng = np.random.default_rng(0)
    for many, there in ((512, True), (513, False)):
        names = [f"c{k}" for k in range(many)]
        pl.DataFrame(rng.random((4, many)), schema=names).with_columns(load=pl.lit(1.0)).write_csv(tmp_path / "w.csv")
        outcome = lab.forecast(read_columns(tmp_path / "w.csv", "load"), Forecaster(names, lags=0))
        assert bool(outcome.hindsight) is there


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_pipe_that_is_killed_and_resumed_says_the_same(tmp_path):
    rows = lines(60, seed=4)
    head = ",".join(NAMES)
    command = [sys.executable, "-m", "thalweg", "run", "-", "--target", "load", "--time", "hour"]
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
        assert process.stdout.readline() == "hour,forecast\n"
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
    assert "".join(["hour,forecast\n", *said]) == whole.stdout


# ------------------------------------------------------------------------------------------------------------ bad files


MALFORMED = {
    "empty": ("", [], "bad.csv is empty"),
    "header only": ("t,y\n", [], "has 0 row"),
    "one row": ("t,y\n1,2\n", [], "has 1 row"),
    "word in the target": ("t,y\n1,2\n2,x\n3,4\n", [], "column 'y', row 2: 'x' is no number"),
    "word in a feature": (
        "a,y\n1,2\nx,3\n3,4\n",
        [],
        "column 'a', row 2: 'x' is no number. Correct it, or leave the column out: --features",
    ),
    "empty target": (
        "a,y\n1,2\n2,\n3,4\n",
        [],
        "column 'y', row 2: the cell is empty. Fill it, or type --missing drop",
    ),
    "empty feature": ("a,y\n1,2\n,3\n3,4\n", [], "column 'a', row 2: the cell is empty"),
    "nothing before": (
        "a,y\n,2\n1,3\n3,4\n",
        ["--missing", "previous"],
        "row 1: the cell is empty and there is no row before",
    ),
    "all dropped": ("a,y\n,2\n1,\n,4\n", ["--missing", "drop"], "has 0 row(s) in which no cell is empty"),
    "infinite": ("a,y\n1,2\n2,inf\n3,4\n", [], "column 'y', row 2: inf is not finite"),
    "ragged": ("a,y\n1,2\n2\n3,4\n", [], "row 2: 1 value(s), but the header names 2"),
    "too long": ("a,y\n1,2\n2,3,4\n3,4\n", [], "row 2: 3 value(s), but the header names 2"),
    "twice": ("y,y\n1,2\n3,4\n", [], "two columns called 'y'"),
    "no target": ("a,b\n1,2\n3,4\n", [], "no column 'y' for a target. Its columns are a, b"),
    "no time": ("a,y\n1,2\n3,4\n", ["--time", "when"], "no column 'when' for the time"),
    "time goes back": (
        "t,y\n1,2\n3,4\n2,5\n",
        ["--time", "t", "--lags", "1"],
        "column 't', row 3: time goes back, from 3 to 2. Sort",
    ),
    "dates go back": ("t,y\n2025-01-02,2\n2025-01-01,4\n", ["--time", "t", "--lags", "1"], "row 2: time goes back"),
    "no such date": ("t,y\n2025-01-02,2\nlater,4\n", ["--time", "t", "--lags", "1"], "row 2: 'later' is no time"),
    "decimal comma": (
        "a;y\n1,5;2\n2,5;3\n",
        [],
        "column 'a', row 1: '1,5' is no number. Type --decimal , if that is its mark",
    ),
    "latin": (b"a,y\n1,2\n\xe9,3\n", [], "no text in UTF-8: see line 3"),
    "nothing to go by": ("y\n1\n2\n3\n", [], "Type --lags 8 to forecast it from its past"),
    "too short": ("y\n1\n2\n3\n", ["--target", "y", "--lags", "x"], "--lags must be a number"),
    "time twice": ("t,y\n1,2\n3,4\n", ["--time", "y"], "given twice: as the time and as target"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_wrong_with_a_file_is_one_line(tmp_path, monkeypatch, name, fails):
    content, options, told = MALFORMED[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    options = options if "--target" in options else ["--target", "y", *options]
    assert told in fails("run", "bad.csv", *options)


def test_decimal_commas_and_missing_cells(tmp_path):
    (tmp_path / "a.csv").write_text("a;y\n1,5;2,25\n;3\n2,5;\n-0,5;1e1\n")
    previous = read_columns(tmp_path / "a.csv", "y", decimal=",", missing="previous")
    assert previous.values.tolist() == [2.25, 3.0, 3.0, 10.0]
    assert previous.rows.ravel().tolist() == [1.5, 1.5, 2.5, -0.5]
    drop = read_columns(tmp_path / "a.csv", "y", decimal=",", missing="drop")
    assert (drop.values.tolist(), drop.dropped, drop.times) == ([2.25, 10.0], 2, ["1", "4"])


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


def test_learners_and_sets_of_ones_own(file, monkeypatch, call, fails):
    (file.parent / "mine_for_forecast.py").write_text(OWN)
    data = ["load.csv", "--target", "load", "--time", "hour", "--lags", "1"]
    own = ["--learner", "mine_for_forecast:make", "--domain", "mine_for_forecast:box"]
    code, out, err = call("run", *data, *own)
    assert code == 0, err
    assert out.startswith("mine_for_forecast:make on load.csv: 299 rounds")
    assert "Box(" in out
    known = call("run", "SOGD", *data, "--domain", "box:lower=-2,upper=2")[1]
    assert known.splitlines()[1] == out.splitlines()[1]  # the same loss
    assert "must return a thalweg Learner. Got 7" in fails("run", *data, "--learner", "mine_for_forecast:wrong")
    assert "has no function 'gone'" in fails("run", *data, "--learner", "mine_for_forecast:gone")
    assert "cannot be imported" in fails("run", *data, "--learner", "not_there_at_all:make")
    assert "not both" in fails("run", "SOGD", *data, "--learner", "mine_for_forecast:make")


def test_options_of_forecasts_are_not_for_algorithms(file, fails):
    assert "--save is for forecasts" in fails("run", "SOGD", "load.csv", "--target", "load", "--save", "x.npz")
    assert "--out must end in" in fails("run", "load.csv", "--target", "load", "--lags", "1", "--out", "x.txt")
    assert "would be overwritten" in fails("run", "load.csv", "--target", "load", "--lags", "1", "--out", "load.csv")


def test_the_sample_has_its_jump_and_is_always_the_same(tmp_path, monkeypatch, call, fails):
    monkeypatch.chdir(tmp_path)
    assert call("sample")[0] == 0
    assert (tmp_path / "load.csv").read_bytes() == demand()
    assert call("sample", "load.csv")[0] == 0  # it is the same
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
    return {"sea": sea, "glucose": pd.to_numeric(sugar, errors="coerce").dropna(), "water": water}


@pytest.mark.filterwarnings("ignore")
def test_real_series_are_forecast_no_worse_than_by_their_last_value(tmp_path, call):
    """As a user would make the files and type: --lags 8 and nothing else. At most 1.05, below 1 on two of three."""
    ratios = {}
    for name, values in _real_series().items():
        (tmp_path / f"{name}.csv").write_text("value\n" + "".join(f"{float(value)!r}\n" for value in values))
        code, out, err = call("run", f"{name}.csv", "--target", "value", "--lags", "8")
        assert code == 0, err
        row = next(line for line in out.splitlines() if line.startswith("forecast "))
        ratios[name] = float(row.split()[-1])
        assert ("more than repeating the last value" in out) is (ratios[name] > 1)  # the page says so itself
    assert max(ratios.values()) <= 1.05, ratios
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
