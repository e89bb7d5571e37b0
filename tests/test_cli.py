"""The command line: what it prints and writes, its exit codes, and one clear line for every error."""

import csv
import errno
import io
import itertools
import json
import os
import pathlib
import re
import signal
import stat
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import thalweg as tw
from thalweg.cli import main
from thalweg.errors import InputError
from thalweg.lab import ALGORITHMS, DOMAINS, STREAMS, build, draw, read_table
from thalweg.lab.runs import forecast_losses, measure, play_stream
from thalweg.lab.studies import STUDIES

pytest.importorskip("typer", reason="the command line needs typer: pip install 'thalweg[lab]'")

COMMANDS = ("list", "forecast", "run", "compare", "reproduce", "study", "show", "fleet", "bench", "sample")
CALL = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from thalweg.cli import main; main()"


def read(path):
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.fixture
def load(tmp_path):
    """A table on disk."""
    x = np.random.default_rng(0).normal(size=(120, 2))
    y = x @ [2.0, -1.0] + 5
    path = tmp_path / "load.csv"
    path.write_text("a,b,y\n" + "".join(f"{a},{b},{c}\n" for (a, b), c in zip(x, y, strict=True)))
    return path


def test_version_and_help(call, works, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert call("--version") == (0, f"thalweg {tw.__version__}\n", "")
    out, _ = works("--help")
    assert all(f"\n  {name} " in out for name in COMMANDS)
    for name in COMMANDS:
        out, _ = works(name, "--help")
        assert f"\n  thalweg {name}" in out  # an example
        assert len(out.splitlines()) <= 40  # a screen
        assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    "arguments",
    [
        ["frobnicate"],
        ["run"],
        ["run", "ogd"],
        ["run", "OGD", "sea", "polls"],
        ["run", "OGD", "sea", "--seed", "-1"],
        ["run", "OGD", "sea", "--wat"],
        ["list", "cats"],
        ["compare", "OGD"],
    ],
)
def test_wrong_usage_ends_with_2(call, arguments):
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert "Usage" in err
    assert "Traceback" not in err


# ----------------------------------------------------------------------------------------------------------------- list


def test_list_has_one_line_each(call):
    code, out, err = call("list")
    assert (code, err) == (0, "")
    names = [line.split()[0] for line in out.splitlines() if line]
    assert names == ["algorithm", *ALGORITHMS, "domain", *DOMAINS, "stream", *STREAMS]
    lines = call("list", "algorithms")[1].splitlines()
    at = lines[0].index("bound")
    for line, recipe in zip(lines[1:], ALGORITHMS.values(), strict=True):
        assert line[at:].startswith(recipe.card.bound)
        assert recipe.card.regret in line
        assert recipe.card.about in line


def test_list_as_json(call):
    found = json.loads(call("list", "--json")[1])
    assert [row["name"] for row in found["algorithms"]] == list(ALGORITHMS)
    assert json.loads(call("list", "streams", "--json")[1]) == {"streams": found["streams"]}
    for row in found["domains"]:
        if row["written"]:
            tw.lab.build_domain(row["written"], 3)


# ------------------------------------------------------------------------------------------------------------------ run


def test_run_prints_what_play_returns(call):
    stream = draw("piecewise", 3, horizon=500)
    run = tw.play(build("Sword", stream), stream.problem)
    code, out, err = call("run", "Sword", "piecewise", "--horizon", 500, "--seed", 3)
    assert (code, err) == (0, "")
    assert "Sword on piecewise: 500 rounds, squared loss, d = 8" in out
    assert f"total loss   {run.total_loss:.6g}\n" in out
    queries = run.queries
    assert f"projections {queries.projections / 500:.4g}, gradients {queries.gradients / 500:.4g}, values 0\n" in out
    assert "us a round" in out
    assert "markers" not in out
    found = json.loads(call("run", "sword", "piecewise", "--horizon", 500, "--seed", 3, "--json")[1])
    assert (found["algorithm"], found["rounds"], found["seed"]) == ("Sword", 500, 3)
    assert found["total_loss"] == run.total_loss
    assert found["projections"] == run.queries.projections / 500


def test_run_counts_markers(call):
    stream = draw("ball-piecewise", horizon=800)
    learner = build("SACS-eager", stream)
    tw.play(learner, stream.problem)
    begun = [m for m in learner.markers if m <= 800]
    assert len(begun) > 2
    assert f"\nmarkers      {len(begun)}\n" in call("run", "SACS-eager", "ball-piecewise", "--horizon", 800)[1]


def test_a_marker_that_has_not_begun_does_not_count():
    stream = draw("ball-piecewise", horizon=800)
    learner = build("SACS-eager", stream)
    tw.play(learner, stream.problem)
    third = learner.markers[2]  # placed by the round before
    shorter = replace(stream, problem=stream.problem[: third - 1])
    assert play_stream("SACS-eager", shorter)[0]["markers"] == 2
    assert play_stream("SACS-eager", replace(stream, problem=stream.problem[:third]))[0]["markers"] == 3


def test_long_runs_are_the_same_in_stretches(monkeypatch):
    stream = draw("piecewise", horizon=300)
    whole = tw.play(build("EfficientAdaptive", stream), stream.problem, decisions=True)
    monkeypatch.setattr("thalweg.lab.runs.STRETCH", 7)
    report, losses, decisions = play_stream("EfficientAdaptive", stream, decisions=True)
    np.testing.assert_array_equal(losses, whole.losses)
    np.testing.assert_array_equal(decisions, whole.decisions)
    assert (report["rounds"], report["projections"], report["values"]) == (300, 1.0, 1.0)


def test_measured_is_the_best_run_after_the_first(monkeypatch):
    times = iter(np.cumsum([0, 9, 1, 2, 1, 6, 1, 3]))  # runs of 9, 2, 6 and 3 seconds
    monkeypatch.setattr("thalweg.lab.runs.time.process_time", lambda: float(next(times)))
    found = measure("OGD", draw("gradual", horizon=10), repeats=3)
    assert (found["us"], found["spread"], found["projections"]) == (2e5, 3.0, 1.0)


def test_progress_doubles_and_changes_nothing(call, works):
    quiet = json.loads(call("run", "EfficientDynamic", "gradual", "--horizon", 100, "--json")[1])
    out, err = works("run", "EfficientDynamic", "gradual", "--horizon", 100, "--json", "--progress")
    assert json.loads(out)["total_loss"] == quiet["total_loss"]
    rows = [line.split() for line in err.splitlines()[1:]]
    assert [row[0] for row in rows] == ["16", "32", "64", "100"]
    assert rows[-1][3:6] == ["100", "100", "0"]
    stream = draw("gradual", horizon=100)
    losses = tw.play(build("EfficientDynamic", stream), stream.problem).losses
    for row, first, last in zip(rows, (0, 16, 32, 64), (16, 32, 64, 100), strict=True):
        np.testing.assert_allclose(float(row[1]), losses[:last].mean(), rtol=1e-4)
        np.testing.assert_allclose(float(row[2]), losses[first:last].mean(), rtol=1e-4)


@pytest.mark.parametrize("ending", ["csv", "json", "npz"])
def test_run_keeps_the_losses_of_all_rounds(works, tmp_path, ending):
    path = tmp_path / "new" / f"losses.{ending}"
    works("run", "SOGD", "gradual", "--horizon", 60, "--out", path, "--progress")
    stream = draw("gradual", horizon=60)
    run = tw.play(build("SOGD", stream), stream.problem, decisions=True)
    if ending == "csv":
        rows = read(path)
        assert [float(row["loss"]) for row in rows] == run.losses.tolist()
        assert [int(row["round"]) for row in rows] == list(range(1, 61))
        assert float(rows[-1]["loss_so_far"]) == pytest.approx(run.total_loss, rel=1e-12)
    elif ending == "json":
        found = json.loads(path.read_text())
        assert found["losses"] == run.losses.tolist()
        assert found["algorithm"] == "SOGD"
    else:
        with np.load(path) as found:
            np.testing.assert_array_equal(found["losses"], run.losses)
            np.testing.assert_array_equal(found["decisions"], run.decisions)
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_rows_of_a_file_and_rounds_of_a_stream(call, works, load, fails):
    total = len(load.read_text().splitlines()) - 1
    said = f"the first 24 of {total} rows; {total - 24} were left out\n"
    out, err = works("forecast", load, "--target", "y", "--rows", 24)
    assert "24 rows; forecast 1 step ahead" in out
    assert err.startswith(said)
    code, out, err = call("run", "OGD", load, "--target", "y", "--rows", 24)
    assert (code, err) == (0, said)
    assert "OGD on load.csv: 24 rounds" in out
    for words in (["forecast", load], ["run", "OGD", load]):
        assert "left out" not in "".join(call(*words, "--target", "y")[1:])
    for words in (["run", load], ["run", "OGD", load], ["compare", "OGD", "--on", load]):
        assert "For the first 24 rows of a file type --rows 24" in fails(*words, "--target", "y", "--horizon", 24)
    assert "--rows" in fails("run", "gradual", "--rows", 24)


def test_a_file_given_to_run_says_the_new_word(fails, load):
    message = "is a file: type thalweg forecast "
    assert message in fails("run", load, "--target", "y")
    assert message in fails("run", load, "--target", "y", "--domain", "ball:radius=3")
    assert "thalweg run Tracker -" in fails("run", "-", "--target", "y")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with a name")
def test_results_replace_files_only_and_keep_permissions(call, works, fails, load, tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    code, _, err = call("forecast", load, "--target", "y", "--out", pipe)
    assert code == 1
    assert "no regular file" in err
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    mine = tmp_path / "mine.csv"
    mine.touch(0o600)
    works("forecast", load, "--target", "y", "--out", mine)
    assert stat.S_IMODE(mine.stat().st_mode) == 0o600
    assert mine.stat().st_size > 0


def test_two_results_do_not_share_a_file(fails, load, tmp_path):
    (tmp_path / "link.csv").symlink_to("x.csv")
    for other in ("x.csv", tmp_path / "x.csv", "link.csv"):
        words = ["forecast", load, "--target", "y", "--out", "x.csv", "--save", other]
        assert "Two results would be written" in fails(*words)
    assert not (tmp_path / "x.csv").exists()


def test_run_on_a_file(call, load):
    stream = read_table(load, "y").stream
    total = tw.play(build("OGD", stream), stream.problem).total_loss
    code, out, err = call("run", "OGD", load, "--target", "y")
    assert (code, err) == (0, "")
    assert f"total loss   {total:.6g}\n" in out
    assert "target       y, from a, b, intercept" in out
    assert "divided by its largest absolute value" in out
    assert "looks ahead" in out
    stream = read_table(
        load, "y", features=["b"], scale=False, intercept=False, domain="box:lower=-2,upper=2", rows=50, loss="absolute"
    ).stream
    total = tw.play(build("OGD", stream), stream.problem).total_loss
    options = ["--features", "b", "--no-scale", "--no-intercept", "--domain", "box:lower=-2,upper=2", "--rows", 50]
    found = json.loads(call("run", "OGD", load, "--target", "y", *options, "--loss", "absolute", "--json")[1])
    assert found["total_loss"] == total
    assert (found["features"], found["rounds"], found["loss"]) == (["b"], 50, "absolute")


def test_run_plays_the_tracker_on_a_stream_where_nothing_else_is_named(call, works, load):
    stream = read_table(load, "y").stream
    total = tw.play(tw.Tracker(stream.domain), stream.problem).total_loss
    out, _ = works("run", "Tracker", load, "--target", "y", "--domain", "ball:radius=3")
    assert out.startswith("Tracker on load.csv: 120 rounds")
    assert f"total loss   {total:.6g}\n" in out
    assert call("run", "gradual", "--horizon", 20)[1].startswith("Tracker on gradual: 20 rounds")


def test_run_stands_beside_simple_forecasts(call, load):
    y = read_table(load, "y").stream.problem.labels
    last, mean = y[:-1], [y[:t].mean() for t in range(1, 120)]
    paid = {name: float(((z - y[1:]) ** 2).sum() / 2) for name, z in (("persistence", last), ("running-mean", mean))}
    x = read_table(load, "y").stream.problem.features
    alone = [y - x[:, j] * (x[:, j] @ y) / (x[:, j] @ x[:, j]) for j in range(3)]
    paid |= {"best-feature": min(float(rest @ rest) / 2 for rest in alone), "best-fixed": 0.0}
    found = json.loads(call("run", "Tracker", load, "--target", "y", "--json")[1])
    assert {name: found[name] for name in paid} == pytest.approx(paid, rel=1e-12, abs=1e-20)
    said = call("run", "Tracker", load, "--target", "y")[1]
    share = found["total_loss"] / paid["persistence"]
    assert f"beside it    {paid['persistence'] / 120:.6g} repeating the last target ({share:.3g} of it)\n" in said
    assert "BEATEN" not in said
    losing = call("run", "OGD", load, "--target", "y")[1]
    assert ("BEATEN       by repeating the last target" in losing) is (
        json.loads(call("run", "OGD", load, "--target", "y", "--json")[1])["total_loss"] > paid["persistence"]
    )
    assert "beside it" not in call("run", "classification", "--horizon", 50)[1]  # classes are no targets


@pytest.mark.parametrize("loss", ["absolute", "huber", "pinball"])
def test_forecasts_pay_the_loss_of_the_stream(loss):
    problem = tw.problems.LinearModel(np.ones((4, 1)), [1.0, 3.0, -5.0, 0.0], loss)
    at = {"persistence": [1.0, 1.0, 3.0, -5.0], "running-mean": [1.0, 1.0, 2.0, -1 / 3]}
    for name, losses in forecast_losses(problem).items():
        np.testing.assert_allclose(losses, [problem[t].value([z]) for t, z in enumerate(at[name])], atol=1e-15)
    assert len(forecast_losses(problem[:1])) == 2  # one round has no past


def test_run_says_which_columns_it_left_out(works, tmp_path):
    (tmp_path / "days.csv").write_text("day,a,y\nmon,1,2\ntue,3,4\n")
    _, err = works("run", "OGD", "days.csv", "--target", "y")
    assert err == "left out, since they hold no number: day\n"


def test_run_reads_standard_input(call, load, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(load.read_bytes())))
    piped = json.loads(call("run", "OGD", "-", "--target", "y", "--json")[1])
    assert piped["total_loss"] == json.loads(call("run", "OGD", load, "--target", "y", "--json")[1])["total_loss"]


def test_run_on_another_domain(call):
    found = json.loads(call("run", "OGD", "piecewise", "--horizon", 50, "--domain", "simplex", "--json")[1])
    assert found["domain"] == "Simplex(8)"


# --------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "Sord", "piecewise"], "no algorithm 'Sord'. Did you mean Sword"),
        (["run", "OGD", "pieces"], "'pieces' is neither a stream nor a file. The streams are piecewise, gradual"),
        (["run", "OGD", "none.csv", "--target", "y"], "There is no file none.csv"),
        (["run", "OGD", "data.xlsx", "--target", "y"], "ending that is not known"),
        (["run", "OGD", "load.csv"], "say which column is the target. Its columns are a, b, y"),
        (["run", "OGD", "load.csv", "--target", "z"], "no column 'z' for a target. Its columns are a, b, y"),
        (["run", "OGD", "load.csv", "--target", "y", "--target", "a"], "target is given twice: y and a"),
        (["run", "OGD", "load.csv", "--target", "y", "--features", "a,y"], "'y' is given twice"),
        (["run", "OGD", "load.csv", "--target", "y", "--features", "a,q"], "no column 'q'"),
        (["run", "OGD", "load.csv", "--target", "y", "--domain", "bal"], "no domain 'bal'"),
        (["run", "OGD", "load.csv", "--target", "y", "--rows", "1"], "has 1 row(s) of data"),
        (["run", "OGD", "load.csv", "--target", "y", "--loss", "logistic"], "column 'y', row 1: the logistic loss"),
        (["run", "OGD", "load.csv", "--target", "y", "--loss", "hinge"], "column 'y', row 1: the hinge loss needs"),
        (["run", "Sword", "load.csv", "--target", "y", "--loss", "absolute"], "Sword needs losses that are smooth"),
        (["run", "OGD", "piecewise", "--target", "y"], "'piecewise' is a stream of its own"),
        (["run", "OGD", "piecewise", "--no-scale"], "'piecewise' is a stream of its own"),
        (["run", "OGD", "piecewise", "--out", "losses.txt"], "--out must end in .csv, .json or .npz"),
        (["run", "OGD", "piecewise", "--horizon", str(10**13)], "more than 2^30"),
        (["run", "OGD", "folder.csv", "--target", "y"], "folder.csv: Is a directory"),
        (["compare", "OGD", "Ogd", "--on", "piecewise"], "OGD is given twice"),
        (["compare", "OGD", "wat", "--on", "piecewise"], "no algorithm 'wat'"),
        (["compare", "OGD", "--on", "-"], "save it to a file"),
        (["compare", "OGD", "--on", "none.csv", "--target", "y"], "none.csv"),
        (["compare", "OGD", "--on", "gradual", "--horizon", "20", "--engine", "abacus"], "'engine'"),
        (["compare", "OGD", "--on", "gradual", "--horizon", "20", "--out", "load.csv"], "Cannot write"),
        (["reproduce", "--full", "--small"], "exclude each other"),
        (["study", "control", "--full"], "'size' parameter of run must be"),
    ],
)
def test_errors_are_one_line(fails, load, tmp_path, arguments, message):
    (tmp_path / "folder.csv").mkdir()
    assert message in fails(*arguments)


def test_debug_shows_the_error_itself():
    with pytest.raises(InputError, match="no algorithm"):
        main(["--debug", "run", "Sord", "piecewise"])


def test_a_refused_round_is_named(fails, monkeypatch):
    def refuse(*arguments, **options):
        error = InputError("too long")
        error.add_note("In round 17 of the problem, counted from 0.")
        error.add_note("a trace\nof many lines")
        raise error

    monkeypatch.setattr("thalweg.lab._run.play_stream", refuse)
    assert fails("run", "OGD", "gradual") == "error: too long In round 17 of the problem, counted from 0.\n"


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("typer", ["list"]),
        ("polars", ["run", "OGD", "load.csv", "--target", "y"]),
        ("matplotlib.figure", ["compare", "OGD", "--on", "gradual", "--horizon", "20"]),
    ],
)
def test_missing_libraries_are_named(fails, load, monkeypatch, module, arguments):
    monkeypatch.setitem(sys.modules, module, None)
    assert "pip install 'thalweg[lab]'" in fails(*arguments)


def test_a_full_disk_is_one_line_and_leaves_nothing_behind(call, monkeypatch, tmp_path):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    code, out, err = call("run", "OGD", "gradual", "--horizon", 20, "--out", "losses.csv")
    assert (code, err) == (
        1,
        "error: Cannot write to losses.csv: No space left on device. Free some space and run the same command again.\n",
    )
    assert "total loss" in out  # what was computed is not lost
    assert list(tmp_path.iterdir()) == []
    code, _, err = call("compare", "OGD", "--on", "gradual", "--horizon", 20)
    assert code == 1
    assert err.startswith("error: ")
    assert "No space left on device" in err


def test_ctrl_c_before_the_first_round(call, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("thalweg.lab._run.play_stream", interrupted)
    assert call("run", "OGD", "gradual") == (130, "", "interrupted\n")


@pytest.fixture
def ctrl_c(monkeypatch):
    """Ctrl-C comes during a call of `play`; the number is that of the call, counted from 1."""
    real, usual = tw.play, signal.signal(signal.SIGINT, signal.default_int_handler)

    def during(number):
        calls = itertools.count(1)

        def play(*arguments, **options):
            if next(calls) == number:
                signal.raise_signal(signal.SIGINT)
            return real(*arguments, **options)

        monkeypatch.setattr("thalweg.lab.runs.play", play)

    yield during
    signal.signal(signal.SIGINT, usual)


def test_no_ctrl_c_is_lost(ctrl_c, monkeypatch):
    stream = draw("gradual", horizon=60)
    ctrl_c(3)
    with pytest.raises(KeyboardInterrupt):
        measure("OGD", stream)
    ctrl_c(1)  # while kernels are loaded
    with pytest.raises(KeyboardInterrupt):
        play_stream("OGD", stream)
    monkeypatch.setattr("thalweg.lab.runs.STRETCH", 20)
    ctrl_c(3)  # in the second stretch
    report, losses, _ = play_stream("OGD", stream)
    assert (report["interrupted"], report["rounds"], losses.size) == (True, 40, 40)


# --------------------------------------------------------------------------------------- names and files of the user's


@pytest.mark.parametrize("link", [pathlib.Path.symlink_to, pathlib.Path.hardlink_to, None])
def test_no_run_overwrites_its_input(fails, load, tmp_path, link):
    before = load.read_bytes()
    out = load if link is None else tmp_path / "other.csv"
    if link:
        link(out, load)
    assert "would be overwritten" in fails("run", "OGD", "load.csv", "--target", "y", "--out", out)
    (tmp_path / "there").mkdir()
    for name in ("table.csv", "runs.csv"):
        inside = tmp_path / "there" / name
        (link or pathlib.Path.symlink_to)(inside, load)
        assert "would be overwritten" in fails("compare", "OGD", "--on", inside, "--target", "y", "--out", "there")
        assert "would be overwritten" in fails("compare", "OGD", "--on", load, "--target", "y", "--out", "there")
        inside.unlink()
    assert load.read_bytes() == before
    assert list((tmp_path / "there").iterdir()) == []


def test_standard_input_is_not_overwritten_either(load):
    command = [sys.executable, "-c", CALL, "run", "OGD", "-", "--target", "y", "--out", str(load)]
    with open(load) as file:
        done = subprocess.run(command, stdin=file, capture_output=True, text=True)
    assert done.returncode == 1
    assert "would be overwritten" in done.stderr
    assert load.read_text().startswith("a,b,y\n")


def test_compare_takes_no_pipe(fails, tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    assert "must be a file, not a pipe" in fails("compare", "OGD", "--on", "pipe.csv", "--target", "y")


@pytest.mark.parametrize("name", ["price_$_$x^{.csv", "=1+1.csv", "@sum.csv", "\x1b[31mred\n\u202e.csv", "\udcff.csv"])
def test_hostile_file_names(call, works, load, tmp_path, name):
    load.rename(tmp_path / name)
    for command in (["run", "OGD", name], ["compare", "OGD", "--on", name, "--out", "there"]):
        out, err = works(*command, "--target", "y")
        assert all(mark.isprintable() or mark == "\n" for mark in out + err)
    (row,) = read(tmp_path / "there" / "runs.csv")
    assert row["stream"].isprintable()
    assert row["stream"][0] not in "=+-@"
    assert float(row["total_loss"]) > 0  # numbers stay numbers
    code, _, err = call("run", "OGD", name, "--target", "nothing")
    assert code == 1
    assert err.rstrip("\n").isprintable()


def test_hostile_column_names(call, works, tmp_path):
    (tmp_path / "load.csv").write_text('"\x1b[2Ja\nb",day,y\n1,mon,2\n3,tue,4\n')
    out, err = works("run", "OGD", "load.csv", "--target", "y")
    assert "\ntarget       y, from \\x1b[2Ja\\nb, intercept\n" in out
    assert "\x1b" not in out + err
    code, _, err = call("run", "OGD", "load.csv", "--target", "\x1b[2J")
    assert code == 1
    assert "\x1b" not in err


# --------------------------------------------------------------------------------------------- in a process of its own


def test_ctrl_c_ends_a_run_after_the_round_at_hand():
    command = [sys.executable, "-c", CALL, "run", "AOA", "fast-walk", "--horizon", "400000", "--progress"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert "rounds" in process.stderr.readline()  # the first lines are there: it plays
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1].startswith("interrupted after ")
    assert err.splitlines()[-1].endswith(" of 400000 rounds")
    assert "total loss" in out
    assert "Traceback" not in err


def test_a_closed_pipe_is_no_error_to_talk_about():
    command = [sys.executable, "-c", CALL, "list"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    process.wait(timeout=60)
    assert process.stderr.read() == ""
    process.stderr.close()


@pytest.mark.skipif(not pathlib.Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("argument", ["list", "--help"])
def test_a_full_disk_behind_stdout(argument):
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", CALL, argument], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "error: No space left on device.\n"


@pytest.mark.parametrize(
    ("closed", "arguments", "code", "says"),
    [
        (">&-", "list", 1, "error: The standard output is closed. Send it to a file, or to /dev/null.\n"),
        ("<&-", "list streams", 0, ""),
        ("<&-", "run OGD - --target y", 1, "error: The standard input is closed. Name a file instead of -.\n"),
        ("2>&-", "run OGD nowhere.csv --target y", 1, ""),
    ],
)
def test_closed_streams(closed, arguments, code, says):
    command = f'exec "$0" -c "$1" {arguments} {closed}'
    done = subprocess.run(["sh", "-c", command, sys.executable, CALL], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (code, says)


def test_nothing_asks_the_network(tmp_path):
    """Not to start, not for data, not to report."""
    code = """
import socket, sys
def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.sendmsg"):
        raise AssertionError(f"{event}: {arguments}")
sys.addaudithook(refuse)
from thalweg.cli import main
from thalweg.lab import STREAMS
streams = [["run", "OGD", name, "--horizon", "20"] for name in STREAMS]
for arguments in (["list"], *streams, ["compare", "OGD", "--on", "gradual", "--horizon", "20", "--seeds", "1"]):
    try: main(arguments)
    except SystemExit as end: assert not end.code, arguments
try: socket.create_connection(("127.0.0.1", 9))
except AssertionError: print("refused")
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.endswith("\nrefused\n"), done.stderr


def test_help_loads_nothing_heavy():
    code = (
        "import sys, thalweg; assert not {'thalweg.lab', 'typer'} & set(sys.modules)\n"
        "from thalweg.cli import main\n"
        "try: main(['list'])\n"
        "except SystemExit: pass\n"
        "print({'polars', 'matplotlib', 'joblib', 'distributed', 'tqdm', 'jinja2'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


# ---------------------------------------------------------------------------------------- compare, reproduce and bench


def test_compare_means_over_seeds(call, tmp_path):
    arguments = ["compare", "ogd", "SACS-eager", "--on", "gradual", "--horizon", 300, "--seeds", 3, "--out", "there"]
    code, out, err = call(*arguments)
    assert (code, err) == (0, "")
    rows, runs = (read(tmp_path / "there" / name) for name in ("table.csv", "runs.csv"))
    assert [row["algorithm"] for row in rows] == [
        "OGD", "SACS-eager", "persistence", "running-mean", "best-feature", "best-fixed",
    ]  # fmt: skip
    forecasts = [forecast_losses(draw("gradual", seed, horizon=300).problem) for seed in range(3)]
    for row in rows[2:]:
        totals = [losses[row["algorithm"]].sum() for losses in forecasts]
        assert float(row["loss_mean"]) == pytest.approx(np.mean(totals), rel=1e-12)
        assert float(row["loss_sd"]) == pytest.approx(np.std(totals, ddof=1), rel=1e-9)
        assert row["projections"] == row["seconds"] == ""
    for row in rows[:2]:
        played = []
        for seed in range(3):
            stream = draw("gradual", seed, horizon=300)
            played.append(tw.play(build(row["algorithm"], stream), stream.problem))
        totals = [run.total_loss for run in played]
        assert [float(run["total_loss"]) for run in runs if run["algorithm"] == row["algorithm"]] == totals
        assert float(row["loss_mean"]) == pytest.approx(np.mean(totals), rel=1e-12)
        assert float(row["loss_sd"]) == pytest.approx(np.std(totals, ddof=1), rel=1e-9)
        assert float(row["gradients"]) == pytest.approx(np.mean([run.queries.gradients for run in played]) / 300)
    assert rows[0]["markers"] == ""
    assert float(rows[1]["markers"]) >= 1
    assert (tmp_path / "there" / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert [line.split()[0] for line in out.splitlines()[:3]] == ["algorithm", "OGD", "SACS-eager"]
    assert "Written to there" in out
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "there" / "runs").iterdir()}
    assert len(before) == 6
    assert call(*arguments)[1] == out  # seconds too: finished runs are not played again
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "there" / "runs").iterdir()} == before
    next(iter(before)).unlink()  # as after a kill: what is missing is played, and the rows are the same
    call(*arguments)
    timed = "seconds", "us_a_round"
    again = read(tmp_path / "there" / "runs.csv")
    assert [{**row, **dict.fromkeys(timed)} for row in again] == [{**row, **dict.fromkeys(timed)} for row in runs]


def test_compare_on_a_file_plays_once_and_notices_new_content(call, load, tmp_path):
    arguments = ["compare", "OGD", "SOGD", "--on", "load.csv", "--target", "y"]
    code, out, err = call(*arguments)
    assert (code, err) == (0, "one run each: on data that is given a seed changes nothing\n")
    assert (tmp_path / "results" / "compare-load" / "table.csv").exists()
    stream = read_table(load, "y").stream
    total = tw.play(build("OGD", stream), stream.problem).total_loss
    assert out.splitlines()[1].split()[1:3] == [f"{total:.5g}", "-"]
    load.write_text("\n".join(load.read_text().splitlines()[:40]))
    assert call(*arguments)[1] != out


def test_compare_plays_the_tracker_where_nothing_is_named(call, load):
    out = call("compare", "--on", "load.csv", "--target", "y")[1]
    assert [line.split()[0] for line in out.splitlines()[1:4]] == ["Tracker", "persistence", "running-mean"]
    classes = call("compare", "--on", "classification", "--horizon", 20, "--seeds", 1)[1]
    assert "running-mean" not in classes


def test_compare_in_processes_gives_the_same_numbers(works, tmp_path):
    pytest.importorskip("joblib")
    columns = {}
    for engine in ("serial", "local"):
        works("compare", "OGD", "--on", "gradual", "--horizon", 50, "--seeds", 2, "--engine", engine,
                    "--workers", 2, "--out", engine)  # fmt: skip
        columns[engine] = [(row["seed"], row["total_loss"]) for row in read(tmp_path / engine / "runs.csv")]
    assert columns["serial"] == columns["local"]


def test_the_plot_shows_every_algorithm():
    pytest.importorskip("matplotlib")
    from thalweg.lab.compare import play_one, plot

    data = {"stream": "piecewise", "horizon": 100}
    names = ("OGD", "SOGD", "EfficientDynamic")
    runs = {name: [play_one(algorithm=name, data=data, seed=k) for k in range(2)] for name in names}
    figure = plot(runs, draw("piecewise", horizon=100))
    (axes,) = figure.axes
    labels = [line.get_label() for line in axes.get_lines() if not line.get_label().startswith("_")]
    assert sorted(label.split()[0] for label in labels) == sorted(names)
    assert len(axes.collections) == 3  # a band each
    curve = runs["OGD"][0]
    assert len(curve["at"]) == len(curve["curve"]) == 100
    assert curve["curve"][-1] == pytest.approx(curve["total_loss"])
    json.dumps(curve, allow_nan=False)


@pytest.fixture
def asked(monkeypatch):
    """What the commands of studies ask for; nothing is run."""
    from thalweg.lab import study

    seen = {}

    def stub(which, folder, size, **options):
        seen.update(options, study=which.name, folder=folder, size=size)
        return folder / "index.html"

    monkeypatch.setattr(study, "run", stub)
    return seen


def test_reproduce_passes_its_options_on(call, asked):
    code, out, _ = call("reproduce", "--small", "--out", "here", "--engine", "serial", "--workers", 3, "--no-progress")
    assert (code, out) == (0, "Open here/index.html\n")
    assert asked.pop("command").startswith("thalweg")
    assert asked == {"study": "reproduce", "folder": pathlib.Path("here"), "size": "small", "engine": "serial",
                     "workers": 3, "scheduler": None, "progress": False}  # fmt: skip


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_has_a_command(call, asked, name):
    words, folder = (["reproduce"], "paper") if name == "reproduce" else (["study", name], name)
    code, out, _ = call(*words)
    assert (code, out) == (0, f"Open results/{folder}/index.html\n")
    assert (asked["study"], asked["size"], asked["engine"], asked["progress"]) == (name, "usual", "local", True)
    help_text = call(*words, "--help")[1]
    assert f"thalweg {' '.join(words)} --small --out /tmp/look" in help_text
    assert ("--full" in help_text) == (name == "reproduce")


def test_studies_are_listed_and_where_there_are_none_it_says_where_they_are(call, fails, monkeypatch):
    code, out, err = call("study")
    assert (code, err) == (0, "")
    assert all(re.search(rf"^  {name} ", out, re.M) for name in STUDIES if name != "reproduce")
    monkeypatch.setattr("thalweg.lab.commands.OUTSIDE", None)
    assert "Clone the repository" in fails("study")
    assert "Clone the repository" in fails("study", "tracker", "--small")


def test_bench_has_a_line_for_every_algorithm(call):
    code, out, err = call("bench", "--rounds", 30)
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert [line[0] for line in lines[1:]] == list(ALGORITHMS)
    rows = {line[0]: [float(cell) for cell in line[1:]] for line in lines[1:]}
    for name, (us, spread, projections, gradients, _) in rows.items():
        assert us > 0
        assert spread >= 1
        if name.startswith("Efficient"):
            assert (projections, gradients) == (1, not ALGORITHMS[name].kind.values_only)
