"""The paper's experiments: one run, all runs, the same numbers again, and sentences that follow the numbers."""

import copy
import csv
import dataclasses
import errno
import functools
import json
import math
import os
import shutil
import sys

import numpy as np
import pytest

import thalweg as tw
from tests.lab.toy_jobs import refused
from thalweg.errors import InputError, MissingExtraError
from thalweg.lab import report, study
from thalweg.lab.catalog import prompt
from thalweg.lab.jobs import LabError, seed_of
from thalweg.lab.pictures import save
from thalweg.lab.runs import POINTS, curve_rounds, experts
from thalweg.lab.streams import STREAMS, draw, installed
from thalweg.lab.studies.paper import figures, runs
from thalweg.lab.studies.paper import report as claims
from thalweg.lab.studies.paper.oracles import by_solver
from thalweg.lab.studies.paper.study import SIZES, STUDY, plan, rows_of
from thalweg.testing import check_domain

TIMES = ("seconds", "slowest_seconds")  # the columns that differ when the same is run again


def reproduce(folder, **options):
    return study.run(STUDY, folder, "small", progress=False, **options)


# ---------------------------------------------------------------------------------------------------------- the solver


@pytest.mark.parametrize("distance", [0.5, 1.01, 1.5, 5.0, 30.0])
def test_solver_finds_the_exact_projection(distance):
    rng = np.random.default_rng(0)
    exact = tw.domains.Ellipsoid(np.linspace(1, 10, 8), bound=9.0, center=rng.normal(size=8))
    slow, projection = by_solver(exact)
    for direction in rng.normal(size=(10, 8)):
        edge = exact.project(exact.center + 100 * direction)
        y = exact.center + distance * (edge - exact.center)
        assert np.linalg.norm(slow.project(y) - exact.project(y)) < slow.tolerance * exact.radius
        offset = slow.project(y) - exact.center
        assert offset @ (exact.weights * offset) <= exact.bound * (1 + 1e-14)  # in the set, though solvers end outside
    assert projection.calls == 20
    assert projection.outside == (20 if distance > 1 else 0)


def test_solver_domain_keeps_the_contract_of_domains():
    slow, _ = by_solver(tw.domains.Ellipsoid([1.0, 4.0, 9.0], bound=4.0))
    check_domain(slow)


def test_solver_takes_only_what_it_can_project_onto():
    with pytest.raises(InputError, match="Ellipsoid with a diagonal"):
        by_solver(tw.domains.Ball(3))
    with pytest.raises(InputError, match="'classification' is another"):
        runs.play_one(stream="classification", algorithm="OGD", seed=0, horizon=20, oracle="solver")


def test_solver_that_stops_too_early_is_found_out(monkeypatch):
    monkeypatch.setattr("thalweg.lab.studies.paper.oracles.PRECISION", 0.1)
    slow, _ = by_solver(tw.domains.Ellipsoid([1.0, 50.0], bound=1.0))
    with pytest.raises(tw.errors.ProjectionError, match="nearest point"):
        slow.project([5.0, 5.0])


# ------------------------------------------------------------------------------------------------------------- one run


def test_play_one_tells_what_play_does():
    found = runs.play_one(stream="piecewise", algorithm="Sword", seed=5, horizon=300, repeats=2)
    stream = draw("piecewise", 5, horizon=300)
    run = tw.play(runs.make("Sword", stream), stream.problem)
    assert found["total_loss"] == run.total_loss
    assert tuple(300 * found[key] for key in ("projections", "gradients", "values")) == dataclasses.astuple(run.queries)
    assert found["curve"][0] == run.losses[0]
    assert found["curve"][-1] == pytest.approx(run.total_loss)
    assert len(found["curve"]) == len(curve_rounds(300)) == POINTS
    assert found["worst_window"] == pytest.approx(max(run.losses[t : t + 60].sum() for t in range(241)))
    assert 0 < found["seconds"] <= found["slowest_seconds"]
    json.dumps(found, allow_nan=False)


def test_how_often_a_run_is_timed_does_not_show_in_its_numbers():
    given = {"stream": "gradual", "algorithm": "EfficientAdaptive-crowded", "seed": seed_of("gradual/1")}
    once, thrice = (runs.play_one(**given, horizon=3000, repeats=repeats) for repeats in (1, 3))
    assert once["curve"] == thrice["curve"]


@pytest.mark.parametrize(("stream", "algorithm"), [("piecewise", "EfficientDynamic"), ("gradual", "SACS-crowded")])
def test_the_solver_plays_the_same_game(stream, algorithm):
    found = runs.play_one(stream=stream, algorithm=algorithm, seed=1, horizon=500, rounds=25, oracle="solver")
    assert found["rounds"] == 25
    assert found["horizon"] == 500
    assert found["total_loss"] == pytest.approx(found["exact_loss"], rel=1e-5)
    assert found["total_loss"] != found["exact_loss"]
    assert found["iterations"] >= 1
    assert 0 <= found["outside"] <= 1


@pytest.mark.parametrize("name", ["SACS-crowded", "EfficientAdaptive-crowded", "SACS-compact", "CBCE", "EfficientAOA"])
def test_experts_counts_those_alive_in_every_round(name):
    stream = draw("piecewise", 3, horizon=150)
    learner = runs.make(name, stream)
    inner = getattr(learner, "inner", learner)
    alive, newest = [], []
    for f in stream.problem:
        alive.append(inner.active)
        newest.append(inner.marker_count)
        learner.step(f)
    markers, average, most = experts(learner, 150)
    assert markers == newest[-1] > 10
    assert average == pytest.approx(np.mean(alive))
    assert most == max(alive) > 2


def test_settings_explain_a_run():
    stream = draw("gradual", horizon=100)
    found = runs.settings(runs.make("Sword", stream))
    assert found["largest_step"] == 1 / 36  # 1/(4L), L = 9
    assert found["first_threshold"] is None
    printed, scaled = (runs.settings(runs.make(n, stream)) for n in ("EfficientAdaptive", runs.CROWDED[1]))
    assert scaled["first_threshold"] == pytest.approx(runs.CROWDED_ADAPTIVE * printed["first_threshold"])


def test_the_wide_variant_runs_on_the_ball_of_the_paper():
    learner = runs.make("EfficientDynamic-wide", draw("piecewise", horizon=100))
    assert learner.inner.domain.radius == 6.0


def test_real_streams_can_be_played():
    pytest.importorskip("river")
    found = runs.play_one(stream="polls", algorithm="OGD", seed=0)
    assert found["rounds"] == 1001


# ------------------------------------------------------------------------------------------------------------ all runs


def test_the_plan_holds_the_papers_experiments():
    jobs = {job.name: job.arguments for job in plan(SIZES["usual"])}
    for stream, names in runs.SOLVER_RUNS.items():
        for name in names:
            for k in range(5):
                compiled, solver = jobs[f"{stream}/{name}/seed-{k}"], jobs[f"{stream}/{name}/solver/seed-{k}"]
                assert "horizon" not in compiled  # the stream's own, 20 000
                assert compiled["seed"] == solver["seed"]
    assert len(draw("piecewise").problem) == len(draw("gradual").problem) == 20_000
    full = {job.name: job.arguments for job in plan(SIZES["full"])}
    assert full["piecewise/Sword/solver/seed-0"]["rounds"] == 20_000
    assert full.keys() == jobs.keys()


def test_everybody_plays_the_same_data():
    seeds = {}
    for job in plan(SIZES["usual"]):
        key = (job.arguments["stream"], job.name.rpartition("-")[2])
        assert seeds.setdefault(key, job.arguments["seed"]) == job.arguments["seed"]
    assert len(set(seeds.values())) == len(seeds)


def test_streams_without_data_are_left_out(monkeypatch):
    def no_data():
        raise MissingExtraError("not installed")

    monkeypatch.setitem(STREAMS, "polls", dataclasses.replace(STREAMS["polls"], draw=no_data))
    assert installed(("piecewise", "polls", "gradual")) == ("piecewise", "gradual")


# ------------------------------------------------------------------------------------------------------ the whole thing


@pytest.fixture(scope="session")
def first(paper):
    assert paper.name == "index.html"
    return paper.parent


@pytest.fixture(scope="session")
def rows(first):
    jobs = plan(SIZES["small"])
    files = [json.loads(path.read_text()) for path in (first / "runs").glob("*.json")]
    kept = {file["name"]: file["result"] for file in files}
    return rows_of({job.name: kept[job.name] for job in jobs})


def numbers(folder):
    """runs.csv without its times."""
    lines = csv.DictReader((folder / "runs.csv").read_text().splitlines())
    return [{k: v for k, v in row.items() if k not in TIMES} for row in lines]


def test_the_folder_has_everything(first):
    made = {path.name for path in first.iterdir()}
    pictures = {f"{name}.{kind}" for name in ("figure", "interval", "heatmap", "scaling") for kind in ("png", "pdf")}
    assert made == pictures | {"index.html", "runs.csv", "about.json", "runs"}
    about = json.loads((first / "about.json").read_text())
    assert about["versions"]["thalweg"] == tw.__version__
    assert about["command"] == "thalweg reproduce --small"
    assert about["seeds"]["piecewise/1"] == seed_of("piecewise/1")
    assert {"processor", "platform", "seconds", "cores"} <= about.keys()
    assert len(numbers(first)) == about["runs"] == len(plan(SIZES["small"]))
    assert {row["algorithm"] for row in numbers(first)} >= set(prompt())


@pytest.fixture
def blank_pictures(monkeypatch):
    """Pictures were drawn once; where only numbers count, that is enough."""
    monkeypatch.setattr(sys.modules[__name__], "STUDY", dataclasses.replace(STUDY, figures=lambda rows: {}))
    monkeypatch.setattr(study, "_page", lambda *given: "")


@pytest.mark.slow  # `test_a_resumed_run...` here, and the same of `compare` in tests/test_cli.py, are its fast siblings
@pytest.mark.usefixtures("blank_pictures")
def test_the_same_again_gives_the_same_numbers_in_other_processes(first, tmp_path):
    reproduce(tmp_path, engine="local", workers=2)
    assert numbers(tmp_path) == numbers(first)


@pytest.mark.usefixtures("blank_pictures")
def test_a_resumed_run_gives_the_same_numbers_and_keeps_what_was_done(first, tmp_path, monkeypatch):
    shutil.copytree(first / "runs", tmp_path / "runs")
    kept = sorted((tmp_path / "runs").glob("*.json"))
    for path in kept[::2]:
        path.unlink()
    before = {path: path.stat().st_mtime_ns for path in kept[1::2]}
    played = []
    play = runs.play_one
    noted = functools.wraps(play)(lambda **given: played.append(given) or play(**given))
    monkeypatch.setattr(runs, "play_one", noted)
    reproduce(tmp_path, engine="serial")
    assert len(played) == len(kept[::2])
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert numbers(tmp_path) == numbers(first)


def test_a_size_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"'size' parameter of run .*'usual', 'full', 'small'"):
        study.run(STUDY, tmp_path, "tiny")
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_is_told_in_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with refused(LabError):
        reproduce(tmp_path / "file", engine="serial")


def test_a_full_disk_is_told_in_one_line_and_leaves_no_half_page(rows, tmp_path, monkeypatch):
    def full(source, target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    blank = dataclasses.replace(STUDY, figures=lambda rows: {})
    with refused(LabError, r"No space left on device.*finished runs are kept"):
        study.write(blank, tmp_path, rows, study.about())
    assert list(tmp_path.iterdir()) == []


# --------------------------------------------------------------------------------- sentences follow from the numbers


def changed(rows, algorithm, **new):
    """The rows with some entries of an algorithm replaced."""
    found = copy.deepcopy(rows)
    for row in found:
        if row["algorithm"] == algorithm:
            row.update(new)
    return found


def verdict(rows, name):
    return claims.claims(rows)[name]["verdict"]


def test_verdicts_on_losses(rows):
    for paid, expected in ((10.0, "ours loses more"), (1.0, "as in the paper"), (0.5, "ours loses less")):
        found = changed(changed(rows, "Sword", total_loss=1.0), "EfficientDynamic", total_loss=paid)
        assert claims.claims(found)["dynamic_loss"] == {"verdict": expected, "times": paid}


def test_verdicts_on_speed(rows):
    for seconds, expected in ((1.0, "a smaller gain"), (9.0, "as in the paper"), (100.0, "a larger gain")):
        found = changed(changed(rows, "Sword", seconds=seconds), "EfficientDynamic", seconds=1.0)
        told = claims.claims(found)["dynamic_speed"]
        assert told["verdict"] == f"{expected}, with the solver"
        assert told["solver"] == pytest.approx(seconds)


def test_verdicts_on_markers(rows):
    assert claims.claims(rows)["markers"] == {"verdict": "differs", "most": 1}
    assert claims.claims(changed(rows, "SACS", markers=7))["markers"] == {"verdict": "as in the paper", "most": 7}


def test_verdicts_on_the_gain_over_sacs(rows):
    base = changed(changed(rows, "Sword", seconds=9.0), "EfficientDynamic", seconds=1.0)
    base = changed(changed(base, "SACS-crowded", seconds=4.0), "EfficientAdaptive-crowded", seconds=1.0)
    assert verdict(base, "adaptive_speed").startswith("as in the paper")
    assert verdict(changed(base, "SACS-crowded", seconds=20.0), "adaptive_speed") == "differs"
    assert verdict(changed(base, "SACS-crowded", seconds=1.0), "adaptive_speed") == "differs"


def test_verdicts_on_queries(rows):
    assert verdict(rows, "queries") == "as in the paper"
    assert verdict(changed(rows, "EfficientAOA", projections=1.5), "queries") == "differs"


def test_the_page_says_the_verdicts(first):
    text = (first / "index.html").read_text(encoding="utf-8")
    assert "<b>As in the paper.</b> At most 1 projection, 1 gradient and 1 value a round." in text
    assert "<b>Differs.</b> With the printed thresholds no second expert is ever born" in text


def test_pair_by_pair(rows):
    found = changed(changed(rows, "CBCE", total_loss=1.0), "EfficientCBCE", total_loss=3.0)
    times = next(times for theirs, _, times in claims.one_against_many(found) if theirs == "CBCE")
    assert times == {"piecewise": 3.0, "gradual": 3.0, "classification": 3.0}


def test_remarks_name_the_best(rows):
    told = claims.remarks(changed(rows, "OGD", total_loss=1e-9))
    assert set(told["ranking"]["best"].values()) == {"OGD"}
    assert told["quiet"]["EfficientAdaptive"] == 3
    off = copy.deepcopy(rows)
    for row in off:
        if row["run"] == "piecewise/Sword/solver/seed-1":
            row["total_loss"] = 1.25 * row["exact_loss"]
    told = claims.remarks(off)["solver"]
    assert (told["run"], told["gap"]) == ("piecewise/Sword/solver/seed-1", 0.25)


def test_tables_measure_the_papers_table(rows):
    table = claims.tables(rows)["table_1"]
    cells = {row[1]: row[2:5] for row in table.body}
    assert cells["EfficientDynamic"] == ["1 (1)", "1 (1)", "0 (0)"]
    assert cells["EfficientIntervalDynamic"] == ["1 (1)", "1 (1)", "1 (1)"]
    assert cells["Sword"] == ["5 (N)", "6 (N + 1)", "0 (0)"]
    every = claims.tables(rows)
    assert {row[0] for row in every["all"].body} == set(prompt())
    for one in every.values():
        assert {len(row) for row in one.body} == {len(one.heads)}


def test_numbers_as_text():
    numbers = ((None, "–"), (0.0, "0"), (0.12345, "0.123"), (12.345, "12.3"), (1234.5, "1,234"), (98770.7, "98,771"))
    assert [report.number(value) for value, _ in numbers] == [text for _, text in numbers]
    ratios = ((0.344, "0.34"), (0.999, "1.0"), (1.04, "1.0"), (9.94, "9.9"), (12.3, "12"), (1234.0, "1,234"))
    assert [report.ratio(value) for value, _ in ratios] == [text for _, text in ratios]
    assert report.duration(5e-7) == "0.5\u00a0µs"
    assert report.duration(5e-3) == "5\u00a0ms"
    assert report.spread([{"x": 1.0}, {"x": 3.0}], "x") == f"2 ± {math.sqrt(2):.2g}"
    assert report.spread([{"x": 1.0}], "x") == "1"


# ------------------------------------------------------------------------------------------------------------ pictures


def test_pictures_show_what_they_should(rows):
    drawn = figures.draw_all(rows)
    texts = {name: " ".join(t.get_text() for t in figure.findobj(match=_is_text)) for name, figure in drawn.items()}
    for panel in ("(a) dynamic", "(b) dynamic", "(c) adaptive", "(d) adaptive"):
        assert panel in texts["figure"]
    assert "5 proj." in texts["figure"]
    for name in prompt():
        assert name in texts["heatmap"]
    for name in runs.SCALING:
        assert name in texts["scaling"]
    assert save(drawn["scaling"], "png").startswith(b"\x89PNG")
    assert save(drawn["scaling"], "pdf").startswith(b"%PDF")


def _is_text(artist):
    return hasattr(artist, "get_text") and hasattr(artist, "set_fontsize")
